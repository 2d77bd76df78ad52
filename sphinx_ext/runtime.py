"""Serve what makes the explorers answer on their page, and let each page with one start it.

tools/runtime.py lays the files out before Sphinx runs. Where it could not, the pages say so.
"""

import shutil
from pathlib import Path

from tools import runtime

from worked_examples.explorer import NOTE

FOLDER = "_runtime"
MARK = 'data-explorer="'
AT_REST = (
    "This copy of the site was built without Python for the browser: the controls rest where the "
    "result below was computed. They work when this chapter is open in Jupyter or Colab."
)
# A browser runs no module of a page that was opened from the disk. This small script stands in the
# page itself: even a file beside it may be refused there.
FROM_DISK = """\
<script>
if (location.protocol === "file:") {
  for (const note of document.querySelectorAll(".explorer-note")) {
    note.innerHTML = "Opened from the disk, this page rests: a browser computes only on pages " +
      "that come from a web server. Run <code>make serve</code> in the book's folder, or " +
      "<code>python -m http.server</code> in an unpacked site's, and open the address it names.";
  }
}
</script>"""


def note_layout(app, config):
    """Name the layout in the settings: with another one Sphinx writes every page again."""
    ready = runtime.laid_out(Path(app.srcdir))
    config.book_runtime = ready.name if ready else ""


def start_explorers(app, pagename, templatename, context, doctree):
    """Add the starter to a page with an explorer, or say why its controls rest."""
    if MARK not in context.get("body", ""):
        return
    if not app.config.book_runtime:
        context["body"] = context["body"].replace(NOTE, AT_REST)
        return
    address = f"{FOLDER}/{app.config.book_runtime}/starter.js"
    script = f'<script defer src="{context["pathto"](address, 1)}"></script>'
    context["body"] += script + FROM_DISK


def serve(app, exception):
    """Put the layout among the pages, and take away those of earlier builds."""
    if exception is not None or app.builder.name != "html":
        return
    served = Path(app.outdir) / FOLDER
    name = app.config.book_runtime
    for old in served.glob("*"):
        if old.name != name:
            shutil.rmtree(old)
    if not name:
        print("The pages' controls are at rest: there was no Python for the browser to be had.")
    elif not (served / name).is_dir():
        shutil.copytree(runtime.laid_out(Path(app.srcdir)), served / name, copy_function=_link)


def _link(source, target):
    """Link where the disk allows it: the files are large and never change."""
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def setup(app):
    """Register the setting and the hooks."""
    app.add_config_value("book_runtime", "", "html")
    app.connect("config-inited", note_layout)
    app.connect("html-page-context", start_explorers)
    app.connect("build-finished", serve)
