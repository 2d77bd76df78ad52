"""Print the built site as one book, _build/pdf/self-attention-worked.pdf, and pack an e-book of it.

    python tools/pdf.py            what `make pdf` does, between two builds of the site

The pages of _build/html are put behind one another: the sidebar's order, links between them turned
into links inside the book, solutions at the end, explorers as they stand before a move. Chromium
prints that with tags and an outline. Nothing is executed. A second build of the site offers the
file for download, as long as it is of the same sources (`key`).
"""

import argparse
import hashlib
import html
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import address as published  # noqa: E402
from tools import epub  # noqa: E402

NAME = "self-attention-worked.pdf"
EPUB = "self-attention-worked.epub"
KEY = "key"
# What goes into a page: while none of it changes, the printed book is the one on the site.
SOURCES = (
    "index.md", "_toc.yml", "_config.yml", "pyproject.toml", "requirements.txt", "book/**/*.*",
    "code/**/*.py", "sphinx_ext/*.py", "tools/pdf.*", "tools/epub.py", "tools/address.py",
)  # fmt: skip
# On the site alone: a list that the chapters hold already, the reference of the code, and what is
# of use on other pages.
NOT_PRINTED = {
    f"book/{name}.html"
    for name in ("exercises", "api", "api_topics", "api_trained", "api_explorers", "embedding")
}
UNKNOWN = "000"


def key(root, address):
    """Return a sum of all that the printed book is made from."""
    digest = hashlib.sha256(repr((*address, published.site(address))).encode())
    for pattern in SOURCES:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def ready(root, address):
    """Return the path of the printed book if it is of the present sources, or None."""
    file, noted = root / "_build/pdf" / NAME, root / "_build/pdf" / KEY
    if file.is_file() and noted.is_file() and noted.read_text() == key(root, address):
        return file
    return None


def size(file):
    """Say in words how large a file is.

    >>> size(Path(__file__))
    '0.0 MB'
    """
    return f"{file.stat().st_size / 1e6:.1f} MB"


# --- one page of the site ----------------------------------------------------------------------


def leaf_id(page):
    """Return the anchor of a page in the book.

    >>> leaf_id("book/02_queries_keys_values.html")
    'book-02_queries_keys_values'
    """
    return page.removesuffix(".html").replace("/", "-")


class Leaf:
    """A page of the site, made fit to stand in the book."""

    def __init__(self, site, page, printed, live):
        from bs4 import BeautifulSoup

        self.page, self.printed, self.live = page, printed, live
        self.id = leaf_id(page)
        self.soup = BeautifulSoup((site / page).read_text("utf-8"), "html.parser")
        self.article = self.soup.select_one("article.bd-article")
        for useless in self.article.select(
            "a.headerlink, script, button, details.hide.above-input, .prev-next-footer, "
            ".to-explorers"
        ):
            useless.decompose()
        self.title = self.article.select_one("h1").get_text()
        self._rest_explorers()
        self.solutions = self._take_solutions()
        self._name_ids()
        self._turn_links(self.article)

    def headings(self):
        """Return the words of every heading, in their order."""
        found = self.article.select("h1, h2, h3, h4, h5, h6")
        for formula in (part for heading in found for part in heading.select(".katex-html")):
            formula.decompose()
        return [" ".join(heading.get_text().split()) for heading in found]

    def new(self, name, text="", **attributes):
        """Make an element; `class_` and `for_` stand for the words that Python keeps."""
        element = self.soup.new_tag(
            name, attrs={key.rstrip("_"): value for key, value in attributes.items()}
        )
        element.string = text
        return element

    def _rest_explorers(self):
        """Say at which settings an explorer stands, in place of its controls."""
        for explorer in self.article.select("section.explorer"):
            settings = [_setting(control) for control in explorer.select(".explorer-control")]
            words = f"Shown for: {'; '.join(settings)}."
            cell = explorer.find_parent("div", class_="cell")
            if cell and (code := cell.select_one(".cell_input")):
                code.decompose()
            for part in explorer.select("form, .explorer-note, .explorer-said"):
                part.decompose()
            explorer.append(self._live_at(explorer, words))
        for box in self.article.select(".typed"):
            parts = ".typed-about, .typed-offer, form, .explorer-note, .explorer-result"
            for part in box.select(f"{parts}, .explorer-said"):
                part.decompose()
            box.append(self._live_at(box, "On the site, a box takes any sentence."))

    def _live_at(self, explorer, words):
        """Write what stands in place of controls, with a link to them where the site is known."""
        note = self.new("p", words, class_="explorer-settings")
        if self.live:
            note.append(" Live at ")
            there = f"{self.live}{self.page}#{explorer.select_one('.explorer-title')['id']}"
            note.append(self.new("a", there, href=there))
        return note

    def _take_solutions(self):
        """Take the folded solutions out; return [(anchor, heading, elements)]."""
        taken = []
        for details in self.article.select("details"):
            summary = details.select_one("summary")
            if summary.get_text().strip() != "Solution":
                details.name = "div"
                summary.name = "p"
                continue
            heading = details.find_previous(["h2", "h3", "h4"])
            exercise = heading.find_parent("section")
            anchor = f"solution-{exercise['id']}"
            summary.decompose()
            body = self.new("div")
            for child in list(details.contents):
                body.append(child.extract())
            back = self.new("p", class_="to-solution")
            back.append(self.new("a", "Back to the exercise", href=f"#{exercise['id']}"))
            body.append(back)
            place = self.new("p", class_="to-solution")
            place.append(
                self.new("a", "Its solution is at the end of the book.", href=f"#{anchor}")
            )
            details.replace_with(place)
            taken.append((anchor, heading.get_text(), body))
        return taken

    def _parts(self):
        return [self.article, *(body for _, _, body in self.solutions)]

    def _name_ids(self):
        """Make every id the page's own, and every reference to one inside an element."""
        for part in self._parts():
            for element in part.find_all(True):
                for name in ("id", "for", "aria-labelledby", "aria-describedby", "headers"):
                    if element.get(name):
                        value = element[name]
                        words = value if isinstance(value, list) else value.split()
                        element[name] = " ".join(f"{self.id}--{word}" for word in words)
                for name, value in list(element.attrs.items()):
                    if isinstance(value, str) and "url(#" in value:
                        element[name] = value.replace("url(#", f"url(#{self.id}--")
        self.solutions = [(f"{self.id}--{a}", title, body) for a, title, body in self.solutions]
        for _, _, body in self.solutions:
            self._turn_links(body)

    def _turn_links(self, part):
        """Let links lead to places in the book; pictures to the site's files."""
        for link in part.select("[href]"):
            target = link["href"]
            if urlsplit(target).scheme:
                continue
            path, anchor = urldefrag(target)
            page = urljoin(self.page, path) if path else self.page
            if page in self.printed:
                link["href"] = f"#{leaf_id(page)}" + (f"--{unquote(anchor)}" if anchor else "")
            elif self.live:
                link["href"] = urljoin(self.live + self.page, target)
            else:
                link.name = "span"
                del link["href"]
        for picture in part.select("[src]"):
            picture["src"] = urljoin(self.page, picture["src"])


def _setting(control):
    """Say in words where a control stands."""
    label = " ".join(control.select_one("label").get_text().split())
    if box := control.select_one("input[type=checkbox]"):
        return f"{label}: {'on' if box.has_attr('checked') else 'off'}"
    if exact := control.select_one("input.explorer-exact"):
        return f"{label}: {exact['value']}"
    chosen = control.select_one("option[selected]") or control.select_one("option")
    return f"{label}: {chosen.get_text()}"


# --- the whole book ----------------------------------------------------------------------------


def order(site):
    """Return the pages in the order of the sidebar, the first page first."""
    from bs4 import BeautifulSoup

    index = BeautifulSoup((site / "index.html").read_text("utf-8"), "html.parser")
    links = index.select("nav.bd-links a.internal")
    pages = ["index.html"] + [urldefrag(link["href"]).url for link in links]
    listed = [page for page in dict.fromkeys(pages) if (site / page).is_file()]
    return [page for page in listed if page not in NOT_PRINTED], index


class Book:
    """The whole book as one HTML page.

    Parameters
    ----------
    site : Path
        The built site.
    live, repository : str
        Their addresses, "" while unknown.
    """

    def __init__(self, site, live="", repository=""):
        pages, index = order(site)
        leaves = [Leaf(site, page, set(pages), live) for page in pages]
        chapters = [leaf for leaf in leaves if leaf.solutions]
        self.name, self.live, self.repository = leaves[0].title, live, repository
        leaves[0].article.select_one("h1").string = leaves[0].title = "About this book"
        self.styles = [link["href"] for link in index.select("link[rel=stylesheet]")]
        # What stands in the contents, (anchor, title); every heading; (anchor, title, element).
        self.entries, self.headings, self.parts = [], ["Contents"], []
        for leaf in leaves:
            self._add(leaf.id, leaf.title, leaf.headings(), leaf.article)
            if leaf is chapters[-1]:
                self._add("solutions", "Solutions", *_solutions(chapters))

    def _add(self, anchor, title, headings, part):
        self.entries.append((anchor, title))
        self.headings += headings
        self.parts.append((anchor, title, part))

    def _leaves(self):
        return "".join(
            f'<div class="leaf" id="{anchor}" style="page: leaf{number}">'
            f"{part.decode_contents()}</div>"
            for number, (anchor, _, part) in enumerate(self.parts, 1)
        )

    def html(self, numbers=None):
        """Return the page.

        Parameters
        ----------
        numbers : dict, optional
            The number of the page on which each entry of the contents stands, by its title.
        """
        heads = "\n".join(
            f"@page leaf{number} {{ @top-center {{ color: #444; font: 9pt sans-serif; "
            f"content: {_css_string(title)}; }} }}"
            for number, (_, title) in enumerate(self.entries, 1)
        )
        links = [f'<link rel="stylesheet" href="{html.escape(href)}">' for href in self.styles]
        own = Path(__file__).with_suffix(".css").read_text("utf-8")
        return (
            f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
            f"<title>{html.escape(self.name)}</title>{''.join(links)}<style>{own}\n{heads}</style>"
            f'</head><body><main class="bd-content"><article class="bd-article">'
            f"{self._cover()}{self._contents(numbers or {})}{self._leaves()}"
            f"</article></main></body></html>"
        )

    def _cover(self):
        places = [
            f'<p>{words}: <a href="{html.escape(to)}">{html.escape(to)}</a></p>'
            for words, to in (("The live book", self.live), ("Its source", self.repository))
            if to
        ]
        name = html.escape(self.name)
        return (
            f'<div class="cover"><p class="title">{name}</p>'
            f"<p>By the authors of <cite>{name}</cite></p>"
            f"<p>Text and figures: CC BY 4.0. Code: MIT.</p>{''.join(places)}</div>"
        )

    def _contents(self, numbers):
        items = "".join(
            f'<li><a href="#{anchor}">{html.escape(title)}</a><span class="dots"></span>'
            f'<span class="number">{numbers.get(title, UNKNOWN)}</span></li>'
            for anchor, title in self.entries
        )
        return (
            f'<nav class="leaf contents" aria-labelledby="contents">'
            f'<h1 id="contents">Contents</h1><ol>{items}</ol></nav>'
        )


def _css_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _solutions(chapters):
    """Return the headings and the element of all solutions, under their chapters and exercises."""
    new = chapters[0].new
    headings, part = ["Solutions"], new("div")
    part.append(new("h1", "Solutions"))
    for leaf in chapters:
        headings.append(leaf.title)
        part.append(new("h2", leaf.title))
        for anchor, title, body in leaf.solutions:
            words = title.removeprefix("Exercise: ")
            words = words[:1].upper() + words[1:]
            headings.append(words)
            section = new("section", id=anchor)
            section.append(new("h3", words))
            section.append(body)
            part.append(section)
    return headings, part


# --- printing ----------------------------------------------------------------------------------


def print_book(book, site, target):
    """Print a book into a file; return how many pages it has.

    Printed twice: only then is it known on which page each chapter begins.

    Raises
    ------
    RuntimeError
        If the page asked another host for anything.
    """
    from tools.browser import launched
    from tools.serve import served

    target.parent.mkdir(parents=True, exist_ok=True)
    numbers, asked = {}, []
    with served(site) as address, launched() as browser:
        page = browser.new_page(color_scheme="light")
        page.set_default_timeout(300_000)  # A busy machine is no failure.
        page.on("request", lambda request: asked.append(request.url))

        def answer(route):
            route.fulfill(body=book.html(numbers), content_type="text/html; charset=utf-8")

        page.route("**/book-on-paper", answer)
        for tagged in (False, True):
            page.goto(f"{address}/book-on-paper")
            page.evaluate("document.fonts.ready.then(() => true)")
            options = {"prefer_css_page_size": True, "print_background": True, "outline": True}
            page.pdf(path=target, tagged=tagged, **options)
            if not tagged:
                numbers = page_numbers(target, book.entries)
    pages = finish(target, book.headings)
    strangers = [url for url in asked if not url.startswith(f"{address}/")]
    if strangers:
        raise RuntimeError(f"the book on paper asked other hosts: {', '.join(strangers)}")
    return pages


def page_numbers(file, entries):
    """Return {title: page} for what the contents lists, by where its links lead."""
    from pypdf import PdfReader

    reader = PdfReader(file)
    goals = reader.named_destinations
    return {
        title: reader.get_destination_page_number(goals[f"/{anchor}"]) + 1
        for anchor, title in entries
    }


def finish(file, headings):
    """Put the headings' own words into the outline of a printed file; return its pages' count.

    The words of a heading that a page begins with come twice from Chromium.
    """
    from pypdf import PdfWriter
    from pypdf.generic import NameObject, TextStringObject

    writer = PdfWriter(clone_from=file)
    entries = list(_walk(writer.root_object["/Outlines"]))
    if len(entries) != len(headings):
        raise RuntimeError(f"{len(headings)} headings, but {len(entries)} entries in the outline")
    for entry, words in zip(entries, headings, strict=True):
        entry[NameObject("/Title")] = TextStringObject(words)
    writer.write(file)
    return len(writer.pages)


def _walk(parent):
    """Give the entries of an outline in the order of reading."""
    entry = parent.get("/First")
    while entry is not None:
        entry = entry.get_object()
        yield entry
        yield from _walk(entry)
        entry = entry.get("/Next")


def main(arguments=None):
    """Print the book of this checkout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args(arguments)
    address, site = published.find(ROOT), ROOT / "_build/html"
    target = ROOT / "_build/pdf" / NAME
    (target.parent / KEY).unlink(missing_ok=True)
    book = Book(site, published.site(address), address.url)
    pages = print_book(book, site, target)
    epub.pack(book, site, target.with_name(EPUB))
    (target.parent / KEY).write_text(key(ROOT, address))
    print(f"The book on paper: {target} ({pages} pages, {size(target)}); beside it {EPUB}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
