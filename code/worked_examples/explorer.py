"""An explorer: a view and its controls, declared once, shown in a notebook and on a page.

The view is a pure function from the controls' values to HTML, in numpy alone. In Jupyter and
Colab the explorer shows ipywidgets controls that call the view on every move. On the website it
is native controls with the result for the defaults already rendered; the names and ranges in
its HTML are what a script needs to call the same view there.
"""

import re
import sys
from itertools import groupby

from worked_examples.views.markup import escape

__all__ = ["NOTE", "Explorer", "widget_style"]

# What a page says until its script has made the controls live.
# Short: its place is kept for the line that follows it.
NOTE = "The controls need JavaScript, or this chapter open in Jupyter or Colab."

# The oldest ipywidgets that the explorers are tested with, which is Colab's.
OLDEST_IPYWIDGETS = (7, 7)
TOO_OLD = (
    "The controls rest here: this machine has ipywidgets {}, which is too old for them, so run "
    "pip install --upgrade ipywidgets, and restart the notebook."
)

# ipywidgets brings no stylesheet of the book's, so the tables and pictures carry this one.
_NOTEBOOK_STYLE = """<style>
.explorer-result { display: flex; flex-wrap: wrap; gap: 1em; align-items: flex-start; }
.explorer-result table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.explorer-result th, .explorer-result td { padding: .15em .6em; text-align: right; }
.explorer-result th[scope=row], .explorer-result caption { text-align: left; }
.explorer-result svg { max-width: 100%; height: auto; }
.explorer-result p { flex-basis: 100%; margin: .3em 0; }
</style>"""


def widget_style(html):
    """Wrap a view's result with the style that a notebook lacks."""
    return f'{_NOTEBOOK_STYLE}<div class="explorer-result">{html}</div>'


class Explorer:
    """A view with controls for its arguments.

    Parameters
    ----------
    name : str
        Unique in the book, a Python identifier; the page's ids start with it.
    title : str
        One line that says what can be explored.
    view : callable
        Takes each control's value by keyword and returns HTML.
    controls : sequence of controls
        Of `worked_examples.controls`, in the order in which they are shown; neighbours of one
        `group` stand together under its name.

    Raises
    ------
    ValueError
        If a default is not among the values that its control takes.
    """

    def __init__(self, name, title, view, controls):
        self.name, self.title, self.view = name, title, view
        self.controls = tuple(controls)
        self.defaults = {control.name: control.check(control.default) for control in controls}
        self._shown = None  # keeps the widgets of the last display alive

    def __repr__(self):
        return f"<Explorer {self.name}: {self.title}>"

    def result(self, **values):
        """Compute the view's HTML for these values, and the defaults for those not given.

        Raises
        ------
        ValueError
            If a name is no control of this explorer, or its control does not take the value.
        """
        unknown = set(values) - set(self.defaults)
        if unknown:
            raise ValueError(f"{self.name} has no control named {', '.join(sorted(unknown))}")
        checked = {
            control.name: control.check(values.get(control.name, control.default))
            for control in self.controls
        }
        return self.view(**checked)

    def shown(self, values):
        """Compute the view's HTML, or write its error in the same place: the next move works.

        Parameters
        ----------
        values : dict
            As `result` takes them.
        """
        try:
            return self.result(**values)
        except Exception as error:
            return f'<p role="alert">{escape(type(error).__name__)}: {escape(error)}</p>'

    def page(self):
        """Write the explorer for the website, with the result for the defaults in it."""
        groups = "".join(
            f'<div class="explorer-group">{_group_name(group)}{"".join(rows)}</div>'
            for group, rows in (
                (group, [c.html(self.name, self.defaults[c.name]) for c in members])
                for group, members in self._groups()
            )
        )
        heading = f"{self.name}-title"
        return (
            f'<section class="explorer" data-explorer="{self.name}" aria-labelledby="{heading}">'
            f'<p class="explorer-title" id="{heading}">{escape(self.title)}</p>'
            f'<form class="explorer-form" autocomplete="off"><fieldset disabled>'
            f'<legend class="explorer-legend">Controls</legend>{groups}</fieldset>'
            f'<div class="explorer-foot"><p class="explorer-note">{NOTE}</p>'
            f'<button type="button" class="explorer-reset" disabled>Reset</button></div></form>'
            f'<div class="explorer-result">{self.result()}</div>'
            f'<p class="explorer-said" role="status"></p></section>'
        )

    def widget(self):
        """Make the explorer from ipywidgets: controls that recompute the result on every move.

        Returns
        -------
        ipywidgets.VBox
        """
        import ipywidgets

        style = {
            "style": {"description_width": "initial"},
            "layout": ipywidgets.Layout(width="18em"),
        }
        inputs = {c.name: c.widget(ipywidgets, style) for c in self.controls}
        output = ipywidgets.HTML()
        reset = ipywidgets.Button(
            description="Reset", tooltip="Put every control back to its default",
            layout=ipywidgets.Layout(width="6em"),
        )  # fmt: skip

        def recompute(_=None):
            values = {name: widget.value for name, widget in inputs.items()}
            reset.disabled = values == self.defaults
            output.value = widget_style(self.shown(values))

        def go_back(_):
            for name, widget in inputs.items():
                widget.value = self.defaults[name]

        reset.on_click(go_back)
        for widget in inputs.values():
            widget.observe(recompute, names="value")
        recompute()
        wrap = ipywidgets.Layout(flex_flow="row wrap")
        rows = []
        for group, members in self._groups():
            name = [ipywidgets.Label(group, layout={"width": "8em"})] if group else []
            rows.append(ipywidgets.Box(name + [inputs[c.name] for c in members], layout=wrap))
        title = ipywidgets.HTML(f"<b>{escape(self.title)}</b>")
        top = ipywidgets.HBox([title, reset], layout={"justify_content": "space-between"})
        return ipywidgets.VBox([top, *rows, output])

    def _groups(self):
        for group, members in groupby(self.controls, key=lambda control: control.group):
            yield group, list(members)

    def _repr_mimebundle_(self, include=None, exclude=None):
        """Offer the widget and the page; the reader's tool takes the one that it can show.

        Colab gets the widget alone: of several forms it may pick the one that does nothing.
        """
        bundle = {"text/plain": repr(self)}
        if "google.colab" not in sys.modules:
            bundle["text/html"] = self.page()
        try:
            fault = _too_old()
            self._shown = None if fault else self.widget()
        except ImportError:  # no ipywidgets here: the page's form has to serve
            bundle["text/html"] = self.page()
        else:
            if fault:
                bundle["text/html"] = self.page().replace(NOTE, escape(fault))
                return bundle
            bundle["application/vnd.jupyter.widget-view+json"] = {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self._shown.model_id,
            }
        return bundle


def _too_old():
    """Return a sentence that says what to do about an old ipywidgets, and "" for another."""
    import ipywidgets

    version = tuple(map(int, re.findall(r"\d+", ipywidgets.__version__)[:2]))
    return "" if version >= OLDEST_IPYWIDGETS else TOO_OLD.format(ipywidgets.__version__)


def _group_name(group):
    return f'<span class="explorer-group-name">{escape(group)}</span>' if group else ""
