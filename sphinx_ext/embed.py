"""Give each explorer and each figure an address of its own, for other people's pages.

`embed/NAME.html` is an explorer, or a figure with its caption, and a link back to its chapter; a
page elsewhere shows it in an iframe. A figure's picture is at `embed/fig-NAME.svg` too. Both stay
when a figure is drawn anew, where the chapter's own files change their names.
"""

import html
import json
import re
import shutil
from pathlib import Path

from tools import address as published

from sphinx_ext import contents
from sphinx_ext.policy import policy
from sphinx_ext.runtime import AT_REST, FOLDER
from sphinx_ext.styles import NAME as SHEET
from worked_examples import explorers
from worked_examples.explorer import NOTE, Explorer

ALL = explorers.ALL
BOOK = "Self-Attention, Worked"
PLACE = "embed"
LIST = "<!-- the list of what can be embedded -->"
PAGE = "book/embedding"
# Stands in the page's example until the address of the site is known.
SOMEWHERE = "https://example.org/"
FIGURE = re.compile(
    r'<figure\b[^>]*\bid="(fig-[\w-]+)"[^>]*>\s*(<img\b[^>]*\bsrc="([^"]+\.svg)"[^>]*>)'
    r"\s*<figcaption>\s*<p>(.*?)</p>\s*</figcaption>",
    re.S,
)
HEADERLINK = re.compile(r'<a class="headerlink".*?</a>', re.S)
EXPLORER = re.compile(r'data-explorer="(\w+)"')
TITLE = re.compile(r"<title>(.*?) (?:—|&#8212;) .*?</title>", re.S)

# Light or dark: as the address asks (?theme=dark), or else as the reader's machine has it.
THEME = """\
{
  const asked = new URLSearchParams(location.search).get("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const own = dark.matches ? "dark" : "light";
    document.documentElement.dataset.theme = ["light", "dark"].includes(asked) ? asked : own;
  };
  show();
  dark.addEventListener("change", show);
}"""
# Tells the page around it how tall it is, each time that this changes.
HEIGHT = """\
if (parent !== self) {
  const tell = () => parent.postMessage({ embedHeight: document.body.offsetHeight + 2 }, "*");
  new ResizeObserver(tell).observe(document.body);
}"""
STYLE = """\
html, body { height: auto; min-height: 0; }
body { background: var(--pst-color-background); display: block; margin: 0; padding: 0.25rem; }
.explorer, .bd-content figure { margin: 0; }
.bd-content { display: block; }
.bd-content figure img { display: block; height: auto; margin: 0 auto; max-width: 100%; }
.source { color: var(--pst-color-text-muted); font-size: 0.85rem; margin: 0.5rem 0.25rem; }"""


def page(title, body, back, sheets, scripts=""):
    """Return a small page that holds one thing.

    Parameters
    ----------
    title, body : str
        Words, and HTML.
    back : (str, str)
        Where it comes from: address and words.
    sheets : list of str
        Addresses of the style sheets.
    scripts : str, optional
        HTML of what comes last.
    """
    links = "".join(f'<link rel="stylesheet" href="{sheet}">' for sheet in sheets)
    rules = html.escape(policy([THEME, HEIGHT]), quote=True).replace("&#x27;", "'")
    address, words = back
    return (
        f'<!doctype html>\n<html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="robots" content="noindex"><title>{html.escape(title)}</title>'
        f"{links}<style>{STYLE}</style><script>{THEME}</script></head>\n<body><main "
        f'class="bd-content">{body}<p class="source">From <a href="{address}" target="_blank">'
        f"{words}</a>, CC BY 4.0.</p></main><script>{HEIGHT}</script>{scripts}</body></html>\n"
    )


def explorer_page(name, back, sheets, runtime):
    """Return the page of an explorer; `runtime` is the folder of its Python, "" without one."""
    explorer = ALL[name]
    body = explorer.page()
    if not runtime:
        return page(explorer.title, body.replace(NOTE, AT_REST), back, sheets)
    script = f'<script defer src="../{FOLDER}/{runtime}/starter.js"></script>'
    return page(explorer.title, body, back, sheets, script)


def figure_page(name, image, caption, back, sheets):
    """Return the page of a figure: its picture's element and its caption, both HTML."""
    image = re.sub(r'src="[^"]*"', f'src="{name}.svg"', image)
    body = f"<figure>{image}<figcaption><p>{caption}</p></figcaption></figure>"
    number = re.search(r"Fig\. [\d.]+\d", caption)
    return page(f"{number.group() if number else name}, {BOOK}", body, back, sheets)


def write(site, folder, pages, runtime):
    """Write the page of everything that can be shown elsewhere; return their file names.

    Parameters
    ----------
    site, folder : Path
        The built site, and where in it they go.
    pages : list of Path
        The site's pages, in the order of the book: what stands twice belongs to the first.
    runtime : str
    """
    made = {}
    sheets = (site / "_static/styles").glob(SHEET.format("*"))
    sheets = [f"../_static/styles/{path.name}" for path in sheets]
    for path in pages:
        text = path.read_text("utf-8")
        here = f"../{path.relative_to(site).as_posix()}"
        words = f"{TITLE.search(text)[1]} (<cite>{BOOK}</cite>)"
        for name in set(EXPLORER.findall(text)) & set(ALL):
            back = (f"{here}#{name}-title", words)
            made.setdefault(f"{name}.html", explorer_page(name, back, sheets, runtime))
        for name, image, address, caption in FIGURE.findall(text):
            caption = re.sub(r"</?a\b[^>]*>", "", HEADERLINK.sub("", caption))
            back = (f"{here}#{name}", words)
            made.setdefault(f"{name}.html", figure_page(name, image, caption, back, sheets))
            made.setdefault(f"{name}.svg", (path.parent / address).read_text("utf-8"))
    if folder.is_dir():
        shutil.rmtree(folder)
    if made:
        folder.mkdir()
    for name, text in made.items():
        (folder / name).write_text(text, "utf-8")
    return sorted(made)


def serve(app, exception):
    """Write them when the pages, their figures and their style sheet are as they will be."""
    if exception is not None or app.builder.name != "html":
        return
    site, root = Path(app.outdir), Path(app.srcdir)
    names = [path.relative_to(root).with_suffix(".html") for path in contents.chapters(root)]
    pages = [site / name for name in names if (site / name).is_file()]
    write(site, site / PLACE, pages, app.config.book_runtime)


# --- the page that says how --------------------------------------------------------------------


def list_all(root):
    """List every explorer and every figure under its chapter, in Markdown."""
    lines = []
    for notebook in contents.chapters(root):
        _, texts = contents.read(notebook)
        lines += [f"### {contents.title_of(texts)}", ""]
        for name, words in [*_explorers(notebook), *_figures(notebook)]:
            link = f'<a href="../{PLACE}/{name}.html"><code>{name}</code></a>'
            lines.append(f"- {link}: {words}")
        lines.append("")
    return "\n".join(lines)


def _explorers(notebook):
    """Give (name, title) of the explorers that a chapter's cells show."""
    named = re.findall(r"\bexplorers\.([A-Z][A-Z_]+)\b", notebook.read_text("utf-8"))
    for word in dict.fromkeys(named):
        explorer = getattr(explorers, word)
        if isinstance(explorer, Explorer):
            yield explorer.name, explorer.title


def _figures(notebook):
    """Give (name, caption) of a chapter's figures."""
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        figure = cell["metadata"].get("mystnb", {}).get("figure", {})
        if figure.get("name"):
            yield figure["name"], figure["caption"]


def fill(app, docname, source):
    """Put the list into its page, and read the page again when a chapter changes."""
    if docname == PAGE:
        root = Path(app.srcdir)
        for notebook in contents.chapters(root):
            app.env.note_dependency(str(notebook))
        source[0] = source[0].replace(LIST, list_all(root))


def name_site(app, pagename, templatename, context, doctree):
    """Write the site's own address into the code to copy, where it is known."""
    address = published.Address(*app.config.book_address)
    if pagename == PAGE and (live := published.site(address)):
        context["body"] = context["body"].replace(SOMEWHERE, live)


def setup(app):
    """Register the hooks; the pages come after the style sheet, which has all their rules."""
    app.connect("source-read", fill)
    app.connect("html-page-context", name_site, priority=800)
    app.connect("build-finished", serve, priority=950)
