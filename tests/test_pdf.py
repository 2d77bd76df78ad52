"""The book on paper, printed from the built site and read with another program."""

import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import pypdf
import pytest
from conftest import ROOT, SITE
from tools import epub, pdf

LIVE, SOURCE = "https://someone.github.io/fork/", "https://github.com/someone/fork"
NOTEBOOKS = sorted(path.stem for path in (ROOT / "book").glob("[0-9][0-9]_*.ipynb"))


@pytest.fixture(scope="module")
def book():
    return pdf.Book(SITE, LIVE, SOURCE)


@pytest.fixture(scope="module")
def printed(tmp_path_factory, book):
    """Print the site as a fork's workflow would; print_book itself fails on a request elsewhere."""
    file = tmp_path_factory.mktemp("paper") / pdf.NAME
    # In a thread of its own: another test's browser may hold this one's event loop.
    with ThreadPoolExecutor(1) as apart:
        pages = apart.submit(pdf.print_book, book, SITE, file).result()
    reader = pypdf.PdfReader(file)
    assert len(reader.pages) == pages
    return reader


def walk(outline, depth=0):
    for entry in outline:
        if isinstance(entry, list):
            yield from walk(entry, depth + 1)
        else:
            yield depth, entry


def text(printed, number):
    return " ".join(printed.pages[number].extract_text().split())


def titles(book):
    return [title for _, title in book.entries]


def test_it_has_a_title_a_language_tags_and_many_pages(printed):
    catalogue = printed.root_object
    assert catalogue["/MarkInfo"]["/Marked"].value is True
    assert "/StructTreeRoot" in catalogue
    assert catalogue["/Lang"].startswith("en")
    assert printed.metadata.title == "Self-Attention, Worked"
    assert 60 < len(printed.pages) < 300


def test_the_outline_holds_every_chapter_and_its_sections_in_order(printed, book):
    entries = list(walk(printed.outline))
    top = [entry.title for depth, entry in entries if depth == 0]
    assert top == ["Contents", *titles(book)]
    assert [entry.title for _, entry in entries] == book.headings
    chapters = [title for title in top if re.match(r"\d+\. ", title)]
    assert len(chapters) == len(NOTEBOOKS)


def test_each_title_stands_on_the_page_to_which_the_outline_and_the_contents_lead(printed, book):
    contents = text(printed, 1)
    for depth, entry in walk(printed.outline):
        if depth == 0:
            number = printed.get_destination_page_number(entry)
            assert entry.title in text(printed, number)
            if entry.title != "Contents":
                assert f"{entry.title} {number + 1}" in contents


def links(printed):
    for number, page in enumerate(printed.pages):
        for annotation in page.get("/Annots", []):
            link = annotation.get_object()
            if link.get("/Subtype") == "/Link":
                yield number, link


def test_every_link_inside_the_book_leads_to_a_place_in_it(printed):
    goals = printed.named_destinations
    inside = [link["/Dest"] for _, link in links(printed) if "/Dest" in link]
    assert len(inside) > 200
    assert [goal for goal in inside if isinstance(goal, str) and goal not in goals] == []


def test_no_link_leads_to_the_machine_that_printed_it(printed):
    outside = {link["/A"]["/URI"] for _, link in links(printed) if "/URI" in link.get("/A", {})}
    assert {LIVE, SOURCE} <= outside
    assert [url for url in outside if not re.match(r"https?://(?!127\.|localhost)", url)] == []
    for notebook in NOTEBOOKS:
        assert any(url.startswith(f"{LIVE}book/{notebook}.html#") for url in outside), notebook


def test_every_font_is_embedded(printed):
    bare, seen = [], 0
    for page in printed.pages:
        for font in page["/Resources"].get("/Font", {}).values():
            font = font.get_object()
            for part in [d.get_object() for d in font.get("/DescendantFonts", [])] or [font]:
                seen += 1
                description = part.get("/FontDescriptor", {})
                embedded = {"/FontFile", "/FontFile2", "/FontFile3"} & set(description)
                if not embedded and part.get("/Subtype") != "/Type3":
                    bare.append(part.get("/BaseFont"))
    assert seen
    assert bare == []


# --- the page that is printed ------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(book):
    from bs4 import BeautifulSoup

    return BeautifulSoup(book.html(), "html.parser")


def test_ids_are_unique_and_every_reference_has_its_place(page):
    ids = [element["id"] for element in page.select("[id]")]
    assert len(ids) == len(set(ids))
    goals = [link["href"][1:] for link in page.select("a[href^='#']")]
    assert sorted(set(goals) - set(ids)) == []
    assert [link["href"] for link in page.select("a[href]:not([href^='#'])")
            if not link["href"].startswith("http")] == []  # fmt: skip


def test_the_solutions_stand_at_the_end_each_once(page):
    solutions = page.select_one("#solutions")
    exercises = [h for h in page.select("h3") if h.get_text().startswith("Exercise: ")]
    assert len(exercises) > 20
    assert len(solutions.select("section")) == len(exercises)
    assert page.select("details") == []
    for heading in exercises:
        anchor = heading.find_parent("section")["id"].replace("--", "--solution-", 1)
        solution = page.find(id=anchor)
        assert len(solution.get_text().split()) > 5
        assert page.select(f"a[href='#{anchor}']")
    titles = [heading.get_text() for heading in solutions.select("h3")]
    assert [title for title in titles if title[0] != title[0].upper()] == []


def test_no_control_and_no_set_up_is_printed(page):
    assert page.select("form, input, button, script, .headerlink") == []
    assert 'worked_examples") is None' not in page.get_text()
    for explorer in page.select("section.explorer"):
        words = explorer.select_one(".explorer-settings").get_text()
        assert re.match(r"Shown for: .+: .+\. Live at https://", words)
        assert explorer.select_one(".explorer-result")


def test_without_an_address_nothing_leads_to_one():
    leaf = pdf.Leaf(SITE, "book/03_scaling.html", {"book/03_scaling.html"}, "")
    assert "Live at" not in leaf.article.get_text()
    assert "Shown for: " in leaf.article.get_text()
    links = [link["href"] for link in leaf.article.select("[href]")]
    assert links
    assert [link for link in links if not link.startswith(("#", "http"))] == []


# --- the e-book --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ebook(tmp_path_factory, book):
    """Pack the site as an e-book and take it apart again: {name: text}."""
    file = tmp_path_factory.mktemp("epub") / pdf.EPUB
    count = epub.pack(book, SITE, file)
    with zipfile.ZipFile(file) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert len(files) == count
    assert files["mimetype"] == "application/epub+zip"
    return files


def test_every_file_of_the_ebook_is_listed_and_is_xml(ebook):
    package = ElementTree.fromstring(ebook["book/book.opf"])
    listed = {item.get("href") for item in package.iter("{http://www.idpf.org/2007/opf}item")}
    inside = {name.removeprefix("book/") for name in ebook if name.startswith("book/")}
    assert listed == inside - {"book.opf"}
    for name, text in ebook.items():
        if name.endswith((".xhtml", ".svg", ".opf", ".xml")):
            ElementTree.fromstring(text)


def test_the_ebook_has_no_attribute_that_its_kind_of_html_has_not(ebook):
    """What epubcheck once found; it needs Java, and is no part of the tests."""
    old = {"border", "align", "halign", "valign", "frame", "rules", "width", "download"}
    for name, text in ebook.items():
        if name.endswith(".xhtml"):
            html = ElementTree.fromstring(text).iter()
            elements = [e for e in html if e.tag.startswith("{http://www.w3.org/1999/xhtml}")]
            found = {
                attribute for e in elements if not e.tag.endswith("}img") for attribute in e.attrib
            }
            assert found & old == set(), name


def test_every_link_of_the_ebook_has_its_place(ebook, book):
    ids = {
        name: {element.get("id") for element in ElementTree.fromstring(text).iter()}
        for name, text in ebook.items()
        if name.endswith(".xhtml")
    }
    dead = []
    for name, text in ebook.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', text) if name in ids else []:
            file, _, anchor = target.partition("#")
            if not target.startswith("http"):
                found = f"book/{file}" in ebook if file else False
                if not found or (anchor and anchor not in ids[f"book/{file}"]):
                    dead.append((name, target))
    assert dead == []
    contents = ebook["book/contents.xhtml"]
    assert [title for title in titles(book) if f">{title}</a>" not in contents] == []
    mathematics = sum(text.count("<math") for text in ebook.values())
    assert mathematics > 300
    assert not any("katex-html" in text or "<script" in text for text in ebook.values())


def test_a_change_of_the_sources_makes_a_printed_book_stale(tmp_path):
    from tools.address import Address

    for name in ("index.md", "_toc.yml"):
        (tmp_path / name).write_text("text")
    (tmp_path / "_build/pdf").mkdir(parents=True)
    assert pdf.ready(tmp_path, Address()) is None
    (tmp_path / "_build/pdf" / pdf.NAME).write_bytes(b"")
    (tmp_path / "_build/pdf" / pdf.KEY).write_text(pdf.key(tmp_path, Address()))
    assert pdf.ready(tmp_path, Address())
    assert pdf.ready(tmp_path, Address("https://github.com/o/n")) is None
    (tmp_path / "index.md").write_text("other text")
    assert pdf.ready(tmp_path, Address()) is None
