"""Make a second build end where a first one would.

Sphinx writes only pages whose own text changed, keeps what it wrote for pages that are gone, and
reports the warnings of a page only when it reads that page. Each is put right here.
"""

import hashlib
from pathlib import Path

from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
# What every page is made with, beside its own text.
SOURCES = ("sphinx_ext/**/*.py", "book/_static/**/*.*")
# Pages that Sphinx makes itself.
GENERATED = {"search"}


def note_sources(app, config):
    """Hash what all pages share: a change there makes Sphinx write every page again."""
    root, digest = Path(app.srcdir), hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(root.glob(pattern)):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    config.book_sources = digest.hexdigest()


def write_every_page(app, env):
    """Write all pages when one was read: each carries the others' titles in its sidebar."""
    return sorted(env.found_docs) if getattr(app, "book_pages_read", False) else []


def note_reading(app, env, docnames):
    """Remember that this build reads at least one page."""
    app.book_pages_read = bool(docnames)


def remove_stale_pages(app):
    """Delete the pages of documents that the book no longer has."""
    out = Path(app.outdir)
    keep = set(app.env.found_docs) | GENERATED
    for page in out.rglob("*.html"):
        name = page.relative_to(out).with_suffix("").as_posix()
        if name not in keep and not name.startswith("_"):
            page.unlink()


def finish(app, exception):
    """Tidy the output, and let a build with warnings show them again next time."""
    if exception is None and app.builder.name == "html":
        remove_stale_pages(app)
    if exception is not None or app._warncount:
        (Path(app.doctreedir) / "environment.pickle").unlink(missing_ok=True)


def setup(app):
    """Register the setting that carries the hash, and the four hooks."""
    app.add_config_value("book_sources", "", "html")
    app.connect("config-inited", note_sources)
    app.connect("env-before-read-docs", note_reading)
    app.connect("env-updated", write_every_page)
    app.connect("build-finished", finish)
