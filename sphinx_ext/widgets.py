"""Leave the state of ipywidgets out of the pages.

The site shows an explorer's HTML. The saved state of its widgets would only make the page longer,
and ask for a manager that the site does not load.
"""

from myst_nb.sphinx_ import NbMetadataCollector


def drop_state(app, doctree):
    """Forget the widget state that myst-nb collected from the page just read."""
    files = NbMetadataCollector.get_doc_data(app.env)[app.env.docname].get("js_files", {})
    for key in [key for key in files if key.startswith("ipywidgets_")]:
        del files[key]


def setup(app):
    """Run for each page as soon as it has been read."""
    app.connect("doctree-read", drop_state)
