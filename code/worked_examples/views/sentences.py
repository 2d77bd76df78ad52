"""The view of a trained model's maps: one head, one sentence."""

import math
from functools import cache

import numpy as np

from worked_examples.attention import entropy
from worked_examples.sentences import SHOWN, TRAITS, shown_maps, traits
from worked_examples.views.markup import BLUE, escape, number, paragraph, svg, table

__all__ = ["NAMES", "head", "head_of"]

NAMES = {text: number for number, text in enumerate(SHOWN)}
_CELL, _LEFT, _TOP, _RIGHT = 19, 66, 62, 56


def head(*, sentence, layer, head, divide):
    """Show one head's map of a sentence that the package carries, and its traits.

    Parameters
    ----------
    sentence : str
        One of SHOWN.
    layer, head : int
        Counted from 0.
    divide : bool
        Whether scores are divided by sqrt(32).

    Returns
    -------
    str
        HTML: the map with the entropy of each row, the traits, and a sentence.
    """
    return head_of(*_shown(NAMES[sentence], divide), layer, head)


@cache
def _shown(number, divide):
    """Keep what does not depend on the head: six results in all."""
    tokens, maps = shown_maps(number, divide=divide)
    return tokens, maps, traits(maps, tokens)


def head_of(tokens, maps, measured, layer, head):
    """Show one head's map of any sentence, its traits, and how they compare with the others'.

    Parameters
    ----------
    tokens : (L,) sequence of str
    maps : (LAYERS, HEADS, L, L) array
    measured : (LAYERS, HEADS, 6) array
        The maps' traits.
    layer, head : int

    Returns
    -------
    str
        HTML.
    """
    A, L = maps[layer, head], len(tokens)
    own, every = measured[layer, head], measured.reshape(-1, len(TRAITS))
    names = ("entropy, bits", "on the token before", "on the token after", "on the same token",
             "on [CLS] and [SEP]", "mean distance")  # fmt: skip
    even = traits(np.full((L, L), 1 / L), tokens)
    rows = [
        (name, f"{value:.2f}", f"{flat:.2f}", f"{np.median(column):.2f}")
        for name, value, flat, column in zip(names, own, even, every.T, strict=True)
    ]
    title = f"Weights of layer {layer}, head {head}: {L} queries on {L} keys"
    columns = ("mean over rows", "this head", "even weights", "median head")
    return (
        _map(A, tokens, title)
        + table(columns, rows)
        + paragraph(
            f"A row is a query, a column a key. At its right, a row's entropy in bits, of "
            f"{math.log2(L):.2f} possible."
        )
    )


def _map(A, tokens, title):
    """Draw the weights as shaded cells between the tokens, with each row's entropy at its end."""
    span = _CELL * len(tokens)
    marks = [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{span}" height="{span}" fill="none" '
        'stroke="currentColor" stroke-opacity="0.35"/>'
    ]
    # Cells that nobody could tell from the ground are left out: long sentences have thousands.
    for i, j in np.argwhere(A > 0.005):
        marks.append(
            f'<rect x="{_LEFT + _CELL * j}" y="{_TOP + _CELL * i}" width="{_CELL - 1}" '
            f'height="{_CELL - 1}" fill="{BLUE}" fill-opacity="{A[i, j]:.3f}"/>'
        )
    for i, (token, bits) in enumerate(zip(tokens, entropy(A), strict=True)):
        middle, name = _CELL * i + _CELL / 2, escape(token)
        marks.append(
            f'<text x="{_LEFT - 5}" y="{_TOP + middle + 4:.1f}" text-anchor="end" '
            f'font-size="12">{name}</text>'
            f'<text x="{_LEFT + span + 5}" y="{_TOP + middle + 4:.1f}" font-size="12">'
            f"{number(bits, 2)}</text>"
            f'<text transform="translate({_LEFT + middle + 4:.1f} {_TOP - 5}) rotate(-90)" '
            f'font-size="12">{name}</text>'
        )
    return svg(_LEFT + span + _RIGHT, _TOP + span + 2, "".join(marks), title)
