"""Figures of the chapter on a trained model."""

import numpy as np
from matplotlib.patches import Rectangle

from worked_examples.figures.style import BLUE, GREEN, GREY, ORANGE, RED, draw_map, new_figure

__all__ = ["every_head", "pruned", "two_maps"]

_KINDS = (("token before", BLUE), ("token after", ORANGE), ("same token", GREEN),
          ("[CLS] or [SEP]", "#b8b8b8"), ("others", "white"))  # fmt: skip


def every_head(destinations, evenness):
    """Draw one box a head: what its weight goes to, and how evenly it is spread.

    Parameters
    ----------
    destinations : (layers, heads, 5) array
        Shares of the weight, as `sentences.destinations` gives them.
    evenness : (layers, heads) array
        Entropy over the most possible, 0 to 1.

    Returns
    -------
    matplotlib.figure.Figure
    """
    layers, heads, _ = np.shape(destinations)
    figure, axis = new_figure(5.0, 0.75 + 0.72 * layers)
    for (layer, head), even in np.ndenumerate(evenness):
        x, y, bottom = head + 0.08, layers - 1 - layer + 0.06, 0.0
        for share, (_, color) in zip(destinations[layer, head], _KINDS, strict=True):
            axis.add_patch(
                Rectangle((x, y + 0.88 * bottom), 0.84, 0.88 * share, facecolor=color, lw=0)
            )
            bottom += share
        axis.add_patch(Rectangle((x, y), 0.84, 0.88, facecolor="none", edgecolor=GREY, lw=0.6))
        axis.plot([x, x + 0.84], [y + 0.88 * even] * 2, color="black", lw=2.2,
                  solid_capstyle="butt")  # fmt: skip
    axis.set(xlim=(0, heads), ylim=(0, layers), xlabel="head", ylabel="layer")
    axis.set_xticks(np.arange(heads) + 0.5, range(heads))
    axis.set_yticks(np.arange(layers) + 0.5, range(layers)[::-1])
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, facecolor=color, edgecolor=GREY, lw=0.6)
               for _, color in _KINDS]  # fmt: skip
    handles.append(axis.plot([], [], color="black", lw=2.2)[0])
    figure.legend(
        handles, [name for name, _ in _KINDS] + ["entropy"], loc="outside upper center",
        ncols=3, handlelength=1.2, columnspacing=1.2,
    )  # fmt: skip
    return figure


def two_maps(maps, titles, tokens, row):
    """Draw maps of one sentence side by side, with one query's row framed.

    Parameters
    ----------
    maps : sequence of (L, L) arrays
    titles : sequence of str
    tokens : (L,) sequence of str
    row : int
        The query that is framed.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(5.0, 3.3, len(maps), sharey=True)
    for axis, A, title in zip(axes, maps, titles, strict=True):
        draw_map(axis, A, title, ticks=len(tokens))
        axis.set_xticks(np.arange(len(tokens)) + 0.5, tokens, rotation=90)
        axis.set_yticks(np.arange(len(tokens)) + 0.5, tokens)
        axis.add_patch(Rectangle((0, row), len(tokens), 1, facecolor="none", edgecolor=RED, lw=1.2))
    return figure


def pruned(steps, curves):
    """Draw how near the sentence vectors stay when more and more heads are switched off.

    Parameters
    ----------
    steps : sequence of int
        How many heads are off.
    curves : (2, n) array
        Mean cosine: those of least effect first, those of greatest effect first.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axis = new_figure(5.0, 2.9)
    for curve, color, name, place, side in (
        (curves[0], BLUE, "least effect first", 0.62, (4, 6)),
        (curves[1], RED, "greatest effect first", 0.2, (6, 8)),
    ):
        axis.plot(steps, curve, "o-", color=color, ms=4)
        at = round(place * (len(steps) - 1))
        axis.annotate(name, (steps[at], curve[at]), side, color=color, textcoords="offset points")
    axis.set(xlabel="heads switched off", ylabel="cosine to the whole model", ylim=(0, 1.05))
    axis.set_xticks(steps[::2])
    return figure
