"""Open each chapter in JupyterLite, served beside the pages.

tools/lite.py makes it before Sphinx runs. Where it could not, no page has the button.
"""

from pathlib import Path

from tools import lite

FOLDER = "lite"


def note_made(app, config):
    """Name what was made in the settings: with another one Sphinx writes every page again."""
    ready = lite.made(Path(app.srcdir))
    config.book_lite = ready.name if ready else ""


def add_button(app, pagename, templatename, context, doctree):
    """Offer a chapter in the browser, and the way back to the published one."""
    chapter = context.get("page_source_suffix") == ".ipynb" and "header_buttons" in context
    if not (app.config.book_lite and chapter):
        return
    page = context["pathto"](FOLDER, 1)
    path = f"?path={pagename}.ipynb"
    buttons = [
        {"text": "Open in the browser", "url": f"{page}/{lite.START}{path}",
         "tooltip": "Run and change this chapter here, without an account", "icon": "fas fa-play"},
        {"text": "Start again", "url": f"{page}/reset.html{path}",
         "tooltip": "Forget what you changed here", "icon": "fas fa-rotate-left"},
    ]  # fmt: skip
    context["header_buttons"].append(
        {
            "type": "group",
            "label": "lite-buttons",
            "tooltip": "Run this chapter in the browser",
            "icon": "fas fa-play",
            "buttons": [{"type": "link", **button} for button in buttons],
        }
    )


def serve(app, exception):
    """Put JupyterLite among the pages, with the chapters as they are now."""
    if exception is not None or app.builder.name != "html":
        return
    out, root = Path(app.outdir), Path(app.srcdir)
    # GitHub Pages leaves out folders that begin with an underscore unless this file is there.
    (out / ".nojekyll").touch()
    if app.config.book_lite:
        results = Path(app.config.nb_execution_cache_path)
        lite.assemble(root, lite.made(root), results, out / FOLDER)


def setup(app):
    """Register the setting and the hooks."""
    app.add_config_value("book_lite", "", "html")
    app.connect("config-inited", note_made)
    app.connect("html-page-context", add_button, priority=502)
    # After the runtime, whose files it uses.
    app.connect("build-finished", serve, priority=600)
