"""Figures of the chapter on the bottleneck."""

import numpy as np
from matplotlib.patches import FancyArrowPatch

from worked_examples.figures.style import BLUE, GREEN, GREY, PURPLE, RED, new_figure

__all__ = ["gradients", "reading", "recalls", "relay"]

COLORS = (BLUE, RED, GREEN, PURPLE)


def relay(L=5):
    """Draw the relay of a recurrence above the all-to-all look of attention.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (above, below) = new_figure(height=3.8, rows=2)
    for axes, title in ((above, "recurrence: a relay"), (below, "attention: every pair, at once")):
        axes.set_title(title, loc="left")
        axes.set_xlim(-0.5, L - 0.5)
        axes.set_ylim(-0.6, 1.1)
        axes.axis("off")
        for t in range(L):
            axes.plot(t, 0, "o", ms=16, color="white", mec="black")
            axes.text(t, 0, str(t + 1), ha="center", va="center", size=10)
    for t in range(L - 1):
        above.add_patch(_arrow(t, t + 1, BLUE, 0, shrink=9))
    for i in range(L - 1):  # what the last position looks at; the others do the same
        below.add_patch(_arrow(i, L - 1, RED, -0.16 * (L - 1 - i) ** 0.5, shrink=9))
    for j in range(L):
        for i in range(j):
            if j < L - 1:
                below.add_patch(_arrow(i, j, GREY, -0.16 * (j - i) ** 0.5, shrink=9, alpha=0.35))
    return figure


def _arrow(start, end, color, bend, shrink, alpha=1.0):
    return FancyArrowPatch(
        (start, 0), (end, 0), connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
        mutation_scale=11, color=color, alpha=alpha, shrinkA=shrink, shrinkB=shrink, lw=1.4,
    )  # fmt: skip


def recalls(curves):
    """Draw R^2 against the distance of a position from the end, a curve a length.

    Parameters
    ----------
    curves : dict of int to (L,) array
        By the length of the sequence.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.0)
    for i, (L, r2) in enumerate(curves.items()):
        color = COLORS[i % len(COLORS)]
        axes.plot(np.arange(1, L + 1), r2, "-o", ms=3, color=color)
        # Beside its own rise, where the curves stand apart.
        at = int(np.argmin(abs(r2 - 0.5))) if r2.min() < 0.9 else 0
        axes.annotate(
            f"L = {L}", (at + 1, r2[at]), (6, -4 - 14 * (r2.min() >= 0.9)),
            textcoords="offset points", color=color,
        )  # fmt: skip
    axes.axhline(0, color="black", lw=0.8)
    axes.set_ylim(min(-0.1, *(r2.min() for r2 in curves.values())), 1.15)
    axes.set_xlabel("position t")
    axes.set_ylabel("R² of reading x_t from h_L")
    return figure


def gradients(curves):
    """Draw the norm of d h_L / d x_t against the distance, on a log axis, a curve a radius.

    Parameters
    ----------
    curves : dict of float to (L,) array
        By spectral radius; position 1 first.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.2)
    for i, (radius, norms) in enumerate(curves.items()):
        color = COLORS[i % len(COLORS)]
        distance = np.arange(len(norms))[::-1]
        axes.semilogy(distance, np.maximum(norms, 1e-300), color=color)
        end = (distance[0], max(norms[0], 1e-300))
        axes.annotate(f"radius {radius:g}", end, (5, -4), textcoords="offset points", color=color)
    axes.set_xlabel("distance L − t, in steps")
    axes.set_ylabel("size of ∂h_L / ∂x_t")
    return figure


def reading(from_last, with_attention, weights):
    """Draw the recall from the last state beside that of a decoder that may look anywhere.

    Parameters
    ----------
    from_last, with_attention : (L,) arrays
        R^2 of each position.
    weights : (L, L) array
        Row t: where the decoder looked when asked for position t.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (left, right) = new_figure(height=5.6, rows=2, height_ratios=(1, 1.5))
    positions = np.arange(1, len(from_last) + 1)
    for r2, color, name, below in (
        (with_attention, RED, "all states, attention", -14),
        (from_last, BLUE, "last state", 6),
    ):
        left.plot(positions, r2, "-o", ms=3, color=color)
        middle = len(positions) // 3
        beside = r2[middle : middle + 9]  # what the words stretch over
        at = (positions[middle], beside.max() if below > 0 else beside.min())
        left.annotate(name, at, (0, below), textcoords="offset points", color=color)
    left.set_ylim(min(-0.4, from_last.min(), with_attention.min()), 1.15)
    left.set_xlabel("position t")
    left.set_ylabel("R²")
    edges = np.arange(len(weights) + 1) + 0.5
    right.pcolormesh(edges, edges, weights, cmap="Blues", vmin=0, vmax=1)
    right.invert_yaxis()
    right.set_aspect("equal")
    right.set_xlabel("state j looked at")
    right.set_ylabel("position t asked for")
    return figure
