"""Make a second build end where a first one would.

Sphinx writes only pages whose own text changed, keeps what it wrote for pages that are gone, and
reports the warnings of a page only when it reads that page. Each is put right here.
"""

import hashlib
from pathlib import Path

# What every page is made with, beside its own text.
SOURCES = ("sphinx_ext/**/*.py", "book/_static/**/*.*")


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
    """Delete the pages, and the copies of the sources, of documents that left the book.

    What has no such copy was put into the site by something else, and stays.
    """
    out = Path(app.outdir)
    for source in list(out.glob("_sources/**/*.*")):
        name = source.relative_to(out / "_sources").with_suffix("")
        if name.as_posix() not in app.env.found_docs:
            source.unlink()
            (out / name).with_suffix(".html").unlink(missing_ok=True)


def finish(app, exception):
    """Tidy the output, and let a build with warnings show them again next time."""
    if exception is None and app.builder.name == "html":
        remove_stale_pages(app)
    if exception is not None or app._warncount:
        (Path(app.doctreedir) / "environment.pickle").unlink(missing_ok=True)


def setup(app):
    """Register the setting that carries the hash, and the hooks."""
    app.add_config_value("book_sources", "", "html")
    app.connect("config-inited", note_sources)
    app.connect("env-before-read-docs", note_reading)
    app.connect("env-updated", write_every_page)
    app.connect("build-finished", finish)
