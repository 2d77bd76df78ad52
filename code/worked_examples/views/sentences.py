"""The view of a trained model's maps: one head, one sentence."""

import math
from functools import lru_cache

import numpy as np

from worked_examples.attention import entropy
from worked_examples.sentences import TRAITS, shown_maps, traits
from worked_examples.views.markup import BLUE, escape, number, paragraph, shades, svg, table

__all__ = ["NAMES", "head", "head_of", "rows_of"]

# Short, so that a phone shows the part in which they differ.
NAMES = {"… because it was loud.": 0, "… because it was scared.": 1, "A puppy was barking.": 2}
_CELL, _LEFT, _TOP, _RIGHT = 19, 66, 62, 56
_NAMED = 40  # tokens: the names of more would be too small to read
_SMALL_CELL, _TICKS = 5, 16


def head(*, sentence, layer, head, divide):
    """Show one head's map of a sentence that the package carries, and its traits.

    Parameters
    ----------
    sentence : str
        One of NAMES, which stand for the sentences in SHOWN.
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


@lru_cache(maxsize=1)
def _shown(number, divide):
    """Keep what does not depend on the head. One result: pages carry what is kept here."""
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
    # The medians; `np.median` would bring numpy.ma into every page's memory.
    count = len(every)
    medians = np.sort(every, axis=0)[[(count - 1) // 2, count // 2]].mean(axis=0)
    rows = [
        (name, f"{value:.2f}", f"{flat:.2f}", f"{median:.2f}")
        for name, value, flat, median in zip(names, own, even, medians, strict=True)
    ]
    title = f"Weights of layer {layer}, head {head}: {L} queries on {L} keys"
    columns = ("mean over rows", "this head", "even weights", "median head")
    return _map(A, tokens, title) + table(columns, rows) + paragraph(_legend(A))


def _legend(A):
    """Say what the picture shows; a long sentence's has no names, and shades of its own."""
    most = f"{math.log2(len(A)):.2f}"
    if len(A) > _NAMED:
        return (
            "A row is a query, a column a key, both by position. The darkest cell is a weight of "
            f"{A.max():.2f}. A row's entropy is at most {most} bits."
        )
    return (
        "A row is a query, a column a key. At its right, a row's entropy in bits, of "
        f"{most} possible."
    )


def rows_of(tokens, A):
    """List one map row by row: how spread each query's weights are, and what it looks at most.

    Parameters
    ----------
    tokens : (L,) sequence of str
    A : (L, L) array

    Returns
    -------
    str
        HTML.
    """
    most = A.argmax(axis=-1)
    rows = [
        (f"{i} {token}", f"{bits:.2f}", f"{j} {tokens[j]}", f"{A[i, j]:.2f}")
        for i, (token, bits, j) in enumerate(zip(tokens, entropy(A), most, strict=True))
    ]
    return table(("query", "entropy, bits", "looks most at", "weight"), rows)


def _map(A, tokens, title):
    """Draw the weights as shaded cells between the tokens, with each row's entropy at its end."""
    if len(tokens) > _NAMED:
        return _large_map(A, title)
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


def _large_map(A, title):
    """Draw the weights as an image, the largest darkest, with positions in place of tokens."""
    L = len(A)
    left, top, span = 30, 20, _SMALL_CELL * L
    marks = [
        f'<rect x="{left}" y="{top}" width="{span}" height="{span}" fill="none" '
        'stroke="currentColor" stroke-opacity="0.35"/>'
        f'<image href="{shades(A / A.max())}" x="{left}" y="{top}" width="{span}" height="{span}" '
        'preserveAspectRatio="none" image-rendering="pixelated"/>'
    ]
    for i in range(0, L, _TICKS):
        middle = _SMALL_CELL * (i + 0.5)
        marks.append(
            f'<text x="{left - 5}" y="{top + middle + 4:.1f}" text-anchor="end">{i}</text>'
            f'<text x="{left + middle:.1f}" y="{top - 5}" text-anchor="middle">{i}</text>'
        )
    return svg(left + span + 2, top + span + 8, "".join(marks), title)
