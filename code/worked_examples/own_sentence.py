"""A box for a sentence of the reader's own, read by the trained model, in Jupyter and Colab."""

from worked_examples.explorer import widget_style
from worked_examples.minilm import HEADS, LAYERS
from worked_examples.sentences import SHOWN, traits
from worked_examples.views.markup import paragraph
from worked_examples.views.sentences import head_of

__all__ = ["MOST", "OwnSentence"]

# A map of more tokens is too large to be read.
MOST = 128


class OwnSentence:
    """Show every map of any sentence; where there are no widgets or no model, one line.

    Parameters
    ----------
    model : sentences.Model or None
    """

    def __init__(self, model):
        self.model = model
        self._read = (None, None)
        self._shown = None  # keeps the widgets of the last display alive

    def __repr__(self):
        return "<A sentence of your own>"

    def result(self, text, layer, head):
        """Read a text, unless it is the one that was read last, and show one of its maps.

        Parameters
        ----------
        text : str
        layer, head : int

        Returns
        -------
        str
            HTML: the view, or one line that says why there is none.
        """
        if self.model is None:
            return paragraph("This needs the model's file, which could not be had.")
        if text != self._read[0]:
            self._read = (text, self._maps(text))
        found = self._read[1]
        return found if isinstance(found, str) else head_of(*found, layer, head)

    def _maps(self, text):
        try:
            tokens, reading = self.model.read(text)
        except ValueError as fault:
            return paragraph(f"This cannot be read: {fault}.")
        if len(tokens) > MOST:
            return paragraph(f"That is {len(tokens)} tokens; up to {MOST} are shown.")
        return tokens, reading.maps, traits(reading.maps, tokens)

    def widget(self):
        """Make a text box and two sliders that show the result.

        Returns
        -------
        ipywidgets.VBox
        """
        import ipywidgets

        text = ipywidgets.Text(SHOWN[0], description="sentence", continuous_update=False,
                               layout={"width": "95%"})  # fmt: skip
        layer = ipywidgets.IntSlider(0, 0, LAYERS - 1, description="layer")
        head = ipywidgets.IntSlider(2, 0, HEADS - 1, description="head")
        output = ipywidgets.HTML()

        def recompute(_=None):
            html = self.result(text.value, layer.value, head.value)
            output.value = widget_style(html)

        for control in (text, layer, head):
            control.observe(recompute, names="value")
        recompute()
        return ipywidgets.VBox([text, ipywidgets.HBox([layer, head]), output])

    def page(self):
        """Write what stands on the website's page, where nothing runs before a reader asks."""
        return paragraph(
            "Open this chapter in Jupyter or Colab to type a sentence of your own: a box for it "
            "stands here, and the model runs where the notebook does."
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        import sys

        bundle = {"text/plain": repr(self)}
        if "google.colab" not in sys.modules:
            bundle["text/html"] = self.page()
        try:
            self._shown = self.widget()
        except ImportError:
            bundle["text/html"] = self.page()
        else:
            bundle["application/vnd.jupyter.widget-view+json"] = {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self._shown.model_id,
            }
        return bundle
