"""What this book asks of Sphinx beyond `_config.yml`, one module a concern."""

from sphinx_ext import (
    cache,
    citations,
    contents,
    explorers,
    maths,
    pages,
    paper,
    pictures,
    policy,
    progress,
    rebuild,
    repository,
    runtime,
    styles,
    widgets,
)

CONCERNS = (
    cache, citations, contents, explorers, maths, pages, paper, pictures, policy, progress,
    rebuild, repository, runtime, styles, widgets,
)  # fmt: skip


def setup(app):
    """Register every concern with Sphinx."""
    # Jupyter Book sets this for sphinx_comments, which this book leaves out.
    app.add_config_value("comments_config", {}, "html")
    for concern in CONCERNS:
        concern.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
