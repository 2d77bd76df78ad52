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
    """Add the link to each page's downloads, and in words to the first page."""
    size = app.config.book_paper
    if not size or doctree is None:
        return
    link = context["pathto"](pdf.NAME, 1)
    button = {"type": "link", "url": link, "text": "Whole book", "icon": "fas fa-file-pdf"}
    button |= {"tooltip": f"The whole book as a PDF, {size}", "label": LABEL}
    for group in context["header_buttons"]:
        if group.get("label") == "download-buttons":
            group["buttons"].append(button)
    if pagename == app.config.root_doc:
        words = f'<p><a href="{link}">The whole book on paper</a> (PDF, {size}).</p>'
        context["body"] += words


def serve(app, exception):
    """Put the printed book among the pages, or take an older one away."""
    if exception is not None or app.builder.name != "html":
        return
    target = Path(app.outdir) / pdf.NAME
    if app.config.book_paper:
        shutil.copyfile(Path(app.srcdir) / "_build/pdf" / pdf.NAME, target)
    else:
        target.unlink(missing_ok=True)


def setup(app):
    """Register the setting and the hooks."""
    app.add_config_value("book_paper", "", "html")
    app.connect("config-inited", note_book)
    app.connect("html-page-context", offer, priority=800)
    app.connect("build-finished", serve)
