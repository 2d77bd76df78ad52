"""A box for a sentence of the reader's own, read by the trained model.

In Jupyter and Colab it is the published model. On the website a button loads it, cut to 8 bits,
and Python in the page reads the sentence: book/_live/typed.js is the script to what `page` writes.
"""

import sys

from worked_examples import minilm, wordpiece
from worked_examples.controls import Slider
from worked_examples.explorer import widget_style
from worked_examples.minilm import HEADS, LAYERS
from worked_examples.sentences import SHOWN, traits
from worked_examples.views.markup import escape
from worked_examples.views.sentences import head_of, rows_of

__all__ = ["ABOUT", "MOST", "NAME", "OFFER", "OwnSentence"]

# A map of more tokens is too large to be read.
MOST = 128
# No text of more characters is cut into tokens: a pasted book would keep the page busy.
MOST_CHARACTERS = 20_000
NAME = "own_sentence"
TITLE = "Type a sentence of your own"
# What a page says until its script has put what the build knows in its place.
ABOUT = "This needs JavaScript, or this chapter open in Jupyter or Colab."
OFFER = "Load the model"
CONTROLS = (
    Slider("layer", "layer", 0, LAYERS - 1, 1, 0),
    Slider("head", "head", 0, HEADS - 1, 1, 2),
)


class OwnSentence:
    """Show every map of any sentence; where there is no model or no such map, one line.

    Parameters
    ----------
    model : sentences.Model or None
        On the website it comes later: the attribute may be set.
    """

    def __init__(self, model=None):
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

        Raises
        ------
        ValueError
            If there is no such layer or head.
        """
        layer, head = (c.check(n) for c, n in zip(CONTROLS, (layer, head), strict=True))
        if self.model is None:
            return _line("This needs the model's file, which could not be had.")
        if text != self._read[0]:
            self._read = (text, self._maps(text))
        found = self._read[1]
        if isinstance(found, str):
            return found
        tokens, maps, _ = found
        rows = rows_of(tokens, maps[layer, head])
        shown = _tokens(tokens) + head_of(*found, layer, head)
        return f'{shown}<div class="typed-rows">{rows}</div>'

    def _maps(self, text):
        """Compute what does not depend on the head, or the line that says why there is nothing."""
        if len(text) > MOST_CHARACTERS:
            return _line(
                f"This text has {len(text):,} characters, more than can belong to {MOST} tokens. "
                "Shorten it to a few sentences."
            )
        tokens, numbers = wordpiece.encode(text, self.model.vocabulary)
        if len(tokens) == 2:
            return _line("There is no word here to read. Type a sentence.")
        if len(tokens) > MOST:
            return _line(
                f"This text has {len(tokens)} tokens, with [CLS] and [SEP]; up to {MOST} are "
                f"read here. Shorten it by {len(tokens) - MOST}."
            )
        maps = minilm.read(numbers, self.model.arrays).maps
        return tokens, maps, traits(maps, tokens)

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
        """Write it for the website, where the build adds which file the button loads."""
        controls = "".join(control.html(NAME, control.default) for control in CONTROLS)
        return (
            f'<div class="explorer typed" role="region" aria-labelledby="{NAME}-title" '
            f'data-typed="{NAME}"><p class="explorer-title" id="{NAME}-title">{TITLE}</p>'
            f'<p class="typed-about">{ABOUT}</p><div class="typed-offer" hidden>'
            f'<button type="button">{OFFER}</button>'
            '<progress hidden aria-label="the model, loaded so far"></progress>'
            '<span class="typed-loaded"></span></div>'
            '<form class="explorer-form" autocomplete="off" hidden>'
            f'<label for="{NAME}-text">Your sentence, up to {MOST} tokens</label>'
            f'<textarea id="{NAME}-text" name="text" rows="3">{escape(SHOWN[0])}</textarea>'
            '<button type="submit">Read it</button><fieldset>'
            '<legend class="explorer-legend">Which map</legend>'
            f'<div class="explorer-group">{controls}</div></fieldset></form>'
            '<p class="explorer-note typed-note"></p><div class="explorer-result"></div>'
            '<p class="explorer-said" role="status"></p></div>'
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
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


def _line(text):
    return f'<p role="alert">{escape(text)}</p>'


def _tokens(tokens):
    """List what the sentence was cut into; say so where the model knows none of it."""
    listed = " ".join(f"<code>{escape(token)}</code>" for token in tokens)
    unknown = set(tokens[1:-1]) == {"[UNK]"}
    note = "<p>The model knows no part of this text: each word became [UNK].</p>" * unknown
    return f'<div class="typed-tokens">{len(tokens)} tokens: {listed}</div>{note}'
