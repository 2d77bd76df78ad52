"""Give the pages one style sheet that holds what they use of the theme's, and nothing else.

The theme's sheets, Bootstrap and Font Awesome among them, have thousands of rules for what no page
here has. A rule stays where every class, id and attribute that it asks for occurs in a page, in a
script or in what a view may write: so it is derived from the built site, and follows it.
"""

import hashlib
import re
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path

from sphinx_ext import icons

FOLDER = "_static/styles"
NAME = "site-{}.css"
LINK = re.compile(r'[ \t]*<link\b[^>]*\brel="stylesheet"[^>]*>\n?')
ADDRESS = re.compile(r'\bhref="([^"?]+)')

# --- a style sheet as text ----------------------------------------------------------------------

COMMENT = re.compile(r"/\*.*?\*/", re.S)
# What has to stay in every copy.
NOTICE = re.compile(r"/\*!.*?\*/", re.S)
# Strings, and what stands in brackets, may hold braces and semicolons.
PIECE = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\\.|[{};]|[^{};"'\\]+""", re.S)
NESTED = ("@media", "@supports", "@layer", "@container")


def rules(sheet):
    """Yield (head, body) of each rule; a statement without a body has the body None.

    >>> list(rules('@charset "x";a{b:c}@media print{a{b:d}}'))
    [('@charset "x"', None), ('a', 'b:c'), ('@media print', 'a{b:d}')]
    """
    depth, start, head = 0, 0, ""
    for piece in PIECE.finditer(sheet):
        if piece.group() == "{":
            if depth == 0:
                head, start = sheet[start : piece.start()].strip(), piece.end()
            depth += 1
        elif piece.group() == "}":
            depth -= 1
            if depth == 0:
                yield head, sheet[start : piece.start()].strip()
                start = piece.end()
        elif piece.group() == ";" and depth == 0:
            yield sheet[start : piece.start()].strip(), None
            start = piece.end()


def split(text, mark):
    """Split at a mark that stands outside brackets and strings.

    >>> split("a:is(b,c),[d=',']", ",")
    ['a:is(b,c)', "[d=',']"]
    """
    parts, depth, start = [], 0, 0
    for piece in re.finditer(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\\.|[()\[\]]|.""", text, re.S):
        character = piece.group()
        depth += (character in "([") - (character in ")]")
        if character == mark and depth == 0:
            parts.append(text[start : piece.start()])
            start = piece.end()
    return [*parts, text[start:]]


BRACKETS = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
NEEDED = re.compile(r"[.#]((?:[\w-]|\\.)+)|\[\s*([\w-]+)")


def asks_for(selector):
    """Return the classes, ids and attributes without which a selector matches nothing.

    What stands in :not(), :is() and their like is left out of account: the rule then stays.

    >>> sorted(asks_for("#a .b:not(.c) > d[e='.f']::before"))
    ['a', 'b', 'e']
    """
    text = BRACKETS.sub("", re.sub(r"\"[^\"]*\"|'[^']*'", "", selector))
    return {re.sub(r"\\(.)", r"\1", a or b) for a, b in NEEDED.findall(text)}


def trimmed(sheet, words):
    """Return a sheet without the selectors that ask for something that is in no page.

    >>> trimmed(".a, .b > .c { d: e } @media print { .f { g: h } }", {"a", "b"})
    '.a{d: e}'
    """
    kept = []
    for head, body in rules(COMMENT.sub("", sheet)):
        if body is None:
            kept.append(f"{head};" if not head.startswith("@charset") else "")
        elif head.startswith(NESTED):
            inner = trimmed(body, words)
            kept.append(f"{head}{{{inner}}}" if inner else "")
        elif head.startswith("@"):
            kept.append(f"{head}{{{body}}}")
        else:
            selectors = [s.strip() for s in split(head, ",") if asks_for(s) <= words]
            kept.append(f"{','.join(selectors)}{{{body}}}" if selectors else "")
    return "".join(kept)


VARIABLE = re.compile(
    r"""(?<=[{;])\s*(--[\w-]+)\s*:(?:"[^"]*"|'[^']*'|\([^()]*\)|[^;{}"'()])*(?:;|(?=}))"""
)


def without_unused_variables(sheet, elsewhere):
    """Drop each declaration of a variable that nothing reads, here or in the text `elsewhere`.

    >>> without_unused_variables("a{--b:1;--c:var(--b);d:var(--e)}f{--g:1}", "")
    'a{d:var(--e)}'
    """
    named = set(re.findall(r"--[\w-]+", elsewhere))
    while True:
        read = named | set(re.findall(r"var\(\s*(--[\w-]+)", sheet))
        unread = [found for found in VARIABLE.finditer(sheet) if found[1] not in read]
        if not unread:
            return sheet
        for found in reversed(unread):
            sheet = sheet[: found.start()] + sheet[found.end() :]
        sheet = re.sub(r"(?<=[{}])[^{};]+\{\}", "", sheet)


def smaller(sheet):
    """Take out the spaces and line breaks between a sheet's signs."""
    sheet = re.sub(r"\s*\n\s*", " ", sheet)
    return re.sub(r"(?<=[{};,]) +| +(?=[{}])|;(?=})", "", sheet)


# --- the sheets of the site ---------------------------------------------------------------------


def whole(path, site):
    """Return a sheet with those that it imports, its addresses as seen from FOLDER."""
    sheet = path.read_text("utf-8")

    def imported(found):
        return whole((path.parent / found[1]).resolve(), site)

    def moved(found):
        target = (path.parent / found[1]).resolve().relative_to(site).as_posix()
        return f"url({'../' * (FOLDER.count('/') + 1)}{target})"

    sheet = re.sub(r"""url\(["']?(?!["']?data:)([^"')]+)["']?\)""", moved, sheet)
    return re.sub(r"""@import\s+["']([^"']+)["'];""", imported, sheet)


class _Names(HTMLParser):
    """Collects classes, ids and attributes."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            self.seen.add(name)
            if name in ("class", "id"):
                self.seen.update((value or "").split())


def names_in(pages):
    """Return every class, id and attribute of some HTML texts."""
    parser = _Names()
    for page in pages:
        parser.feed(page)
    return parser.seen


def words_in(paths):
    """Return every word of some scripts: one that sets a class has to name it."""
    return set(re.findall(r"[\w-]+", "\n".join(path.read_text("utf-8") for path in paths)))


def scripts(root, site, pages):
    """Return the files that may change a page: its scripts, and the views behind the explorers."""
    named = {Path(address).name for page in pages for address in re.findall(r'src="([^"?]+)', page)}
    served = [path for path in (site / "_static").rglob("*.js") if path.name in named]
    return [*served, *(root / "book/_live").glob("*.js"), *(root / "code").rglob("views/*.py")]


def pages_of(app):
    """Return the paths of the pages that Sphinx makes."""
    names = sorted({*app.env.found_docs, "search"})
    return [path for name in names if (path := Path(app.outdir, f"{name}.html")).is_file()]


def bundle(root, site, texts):
    """Write the one sheet of some pages, given as {path: text}; return their new texts."""
    pages = list(texts.values())
    linked = {
        (path.parent / ADDRESS.search(link)[1]).resolve(): None
        for path, text in texts.items()
        for link in LINK.findall(text)
    }
    sheets = [path for path in linked if not fnmatch(path.name, NAME.format("*"))]
    files = scripts(root, site, pages)
    words = names_in(pages) | words_in(files)
    everything = "".join(whole(sheet, site) for sheet in sheets)
    elsewhere = "\n".join([*pages, *(path.read_text("utf-8") for path in files)])
    sheet = without_unused_variables(smaller(trimmed(everything, words)), elsewhere)
    sheet = icons.with_subsets(sheet, site / FOLDER, elsewhere)
    sheet = "\n".join([*dict.fromkeys(NOTICE.findall(everything)), sheet])
    name = NAME.format(hashlib.sha256(sheet.encode()).hexdigest()[:12])
    for old in (site / FOLDER).glob(NAME.format("*")):
        old.unlink()
    (site / FOLDER / name).write_text(sheet, "utf-8")
    return {path: _relink(text, path, site / FOLDER / name) for path, text in texts.items()}


def _relink(text, path, sheet):
    """Put one link where the first one stood, and take the others away."""
    up = "../" * (len(path.relative_to(sheet.parents[2]).parts) - 1)
    link = f'    <link rel="stylesheet" href="{up}{FOLDER}/{sheet.name}" />\n'
    first = LINK.search(text).start()
    return text[:first] + link + LINK.sub("", text[first:])


def finish(app, exception):
    """Bundle the sheets of the pages that were just written: all of them, or none."""
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    texts = {path: path.read_text("utf-8") for path in pages_of(app)}
    ours = f"/{NAME.partition('{')[0]}"
    if all(ours in link for text in texts.values() for link in LINK.findall(text)):
        return  # Sphinx had nothing to write
    for path, text in bundle(Path(app.srcdir), site, texts).items():
        path.write_text(text, "utf-8")


def setup(app):
    """Run when everything is written: the theme itself replaces a sheet at the end."""
    app.connect("build-finished", finish, priority=900)
