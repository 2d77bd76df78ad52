"""Offer the printed book for download, as long as it is of the same sources as the site.

tools/pdf.py prints it from a finished site, so the next build offers it: `make pdf` builds
once more, and executes nothing. After a change the link goes, until it is printed anew.
"""

import shutil
from pathlib import Path

from tools import address as published
from tools import pdf

LABEL = "download-book-button"


def note_book(app, config):
    """Name the printed book in the settings: with another one Sphinx writes every page again."""
    root = Path(app.srcdir)
    file = pdf.ready(root, published.find(root))
    config.book_paper = pdf.size(file) if file else ""


def offer(app, pagename, templatename, context, doctree):
    """Add the links to each page's downloads, and in words to the first page."""
    size = app.config.book_paper
    if not size or doctree is None:
        return
    paper, ebook = (context["pathto"](name, 1) for name in (pdf.NAME, pdf.EPUB))
    for group in context["header_buttons"]:
        if group.get("label") == "download-buttons":
            group["buttons"] += [
                _button(paper, "Book (.pdf)", f"The whole book on paper, {size}"),
                _button(ebook, "Book (.epub)", "The whole book as an e-book"),
            ]
    if pagename == app.config.root_doc:
        context["body"] += (
            f'<p><a href="{paper}">The whole book on paper</a> (PDF, {size}), '
            f'and <a href="{ebook}">as an e-book</a> (EPUB).</p>'
        )


def _button(url, text, tooltip):
    button = {"type": "link", "url": url, "text": text, "tooltip": tooltip, "label": LABEL}
    return button | {"icon": "fas fa-book"}


def serve(app, exception):
    """Put the printed book among the pages, or take an older one away."""
    if exception is not None or app.builder.name != "html":
        return
    for name in (pdf.NAME, pdf.EPUB):
        target = Path(app.outdir, name)
        if app.config.book_paper:
            shutil.copyfile(Path(app.srcdir) / "_build/pdf" / name, target)
        else:
            target.unlink(missing_ok=True)


def setup(app):
    """Register the setting and the hooks."""
    app.add_config_value("book_paper", "", "html")
    app.connect("config-inited", note_book)
    app.connect("html-page-context", offer, priority=800)
    app.connect("build-finished", serve)
