"""Serve the trained model in 8 bits, and tell the page that offers it which file to load.

tools/eight_bits.py makes the file before Sphinx runs. Where it could not, there is no button.
"""

import html
import json
import shutil
from pathlib import Path

from tools import eight_bits

from sphinx_ext.runtime import link
from worked_examples.own_sentence import ABOUT, OFFER

FOLDER = "_model"
MARK = 'data-typed="'
WITHOUT = (
    "This copy of the site was built without the trained model. To type a sentence, open this "
    "chapter in Jupyter or Colab."
)


def note_layout(app, config):
    """Name the file in the settings: with another one Sphinx writes every page again."""
    config.book_model = json.dumps(eight_bits.laid_out(Path(app.srcdir)))


def offer(app, pagename, templatename, context, doctree):
    """Write what the button loads, or that there is nothing to load."""
    body = context.get("body", "")
    if MARK not in body:
        return
    model = json.loads(app.config.book_model)
    if not model or not app.config.book_runtime:
        context["body"] = body.replace(ABOUT, WITHOUT)
        return
    address = context["pathto"](f"{FOLDER}/{model['path']}", 1)
    file = f'data-file="{address}" data-size="{model["size"]}" '
    file += f'data-integrity="{model["integrity"]}" data-about="{html.escape(about(model))}" '
    body = body.replace(MARK, file + MARK)
    context["body"] = body.replace(OFFER, f"{OFFER} ({model['size'] / 1e6:.1f} MB)")


def about(model):
    """Say what the button does, and what the reader gets that is not the published model."""
    cost = model["cost"]
    return (
        "The model that this chapter runs can read a sentence of yours in this page. The button "
        f"loads it once, {model['size'] / 1e6:.1f} MB, and your browser keeps it; what you type "
        "stays here. Its parameters are rounded to 8 bits. In "
        f"{cost['texts']} texts that moved no weight of a map by more than {cost['weight']:.3f}, "
        f"{cost['mean weight']:.4f} on average, and no cosine of two texts by more than "
        f"{cost['cosine']:.3f}."
    )


def serve(app, exception):
    """Put the file among the pages, and take away those of earlier builds."""
    if exception is not None or app.builder.name != "html":
        return
    served, model = Path(app.outdir) / FOLDER, json.loads(app.config.book_model)
    name = model["path"].partition("/")[0] if model else ""
    for old in served.glob("*"):
        if old.name != name:
            shutil.rmtree(old)
    if model and not (served / name).is_dir():
        made = Path(app.srcdir) / "_build" / "model" / name
        shutil.copytree(made, served / name, copy_function=link)


def setup(app):
    """Register the setting and the hooks; the notes of explorers are written after this."""
    app.add_config_value("book_model", "null", "html")
    app.connect("config-inited", note_layout)
    app.connect("html-page-context", offer, priority=400)
    app.connect("build-finished", serve)
