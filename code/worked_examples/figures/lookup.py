"""Figures of the chapter on queries, keys and values."""

import numpy as np
from matplotlib.patches import Rectangle

from worked_examples.figures.style import BLUE, GREEN, GREY, ORANGE, RED, new_figure
from worked_examples.lookup import lookup

__all__ = ["averages", "entropy_by_length", "pipeline"]


def averages(values, weights, names):
    """Draw values as points and each row's output as their average, in two components.

    Parameters
    ----------
    values : dict of str to sequence of float
        One value a key; the first component is drawn across, the last one up.
    weights : (m, n) array
        One row an output.
    names : sequence of str
        One name an output.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.4)
    points = np.asarray(list(values.values()), dtype=float)[:, [0, -1]]
    for name, row, color in zip(names, np.asarray(weights), _colors(len(names)), strict=True):
        output = row @ points
        for point, weight in zip(points, row, strict=True):
            axes.plot(
                *zip(point, output, strict=True), color=color, lw=0.3 + 4 * weight, alpha=0.35
            )
        axes.plot(*output, "s", color=color, ms=9)
        axes.annotate(f"“{name}”", output, (10, 6), textcoords="offset points", color=color)
    axes.plot(*points.T, "o", color="black", ms=6)
    for name, point in zip(values, points, strict=True):
        if len(values) <= 12:
            axes.annotate(name, point, (-6, -16), textcoords="offset points")
    axes.margins(0.22)
    axes.set_xlabel("first component of value and output")
    axes.set_ylabel("last component")
    return figure


def entropy_by_length(directions, keys, lengths):
    """Draw entropy in bits against the size of a query, a curve a direction.

    Parameters
    ----------
    directions : dict of str to (d_k,) sequence
        Queries of size 1, by name.
    keys : (n, d_k) array
    lengths : (m,) array
        What the directions are multiplied by.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.0)
    for i, (name, direction) in enumerate(directions.items()):
        color = _colors(i + 1)[-1]
        bits = lookup(np.outer(lengths, direction), keys).entropy
        axes.plot(lengths, bits, color=color)
        if bits.min() > 0.9 * bits.max():  # a level curve is named above its end
            at, side = len(bits) - 1, {"xytext": (0, 6), "ha": "right"}
        else:  # falling ones in turn: low on the left, higher on the right
            at = int(np.argmin(abs(bits - (0.25 if i % 2 == 0 else 0.6) * bits.max())))
            side = {"xytext": (-8, -6), "ha": "right"} if i % 2 == 0 else {"xytext": (8, 4)}
        axes.annotate(
            f"“{name}”", (lengths[at], bits[at]), textcoords="offset points", color=color, **side
        )
    axes.set_ylim(0, 1.2 * np.log2(max(len(keys), 2)))
    axes.set_xlim(lengths[0], lengths[-1])
    axes.set_xlabel("size of the query's components")
    axes.set_ylabel("entropy of the weights (bits)")
    return figure


def pipeline(L_q, L_k, d_k, d_v):
    """Draw the two products of attention as blocks, each as high and wide as its matrix.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (upper, lower) = new_figure(height=4.4, rows=2)
    unit = 1 / max(L_q, L_k, d_k, d_v)
    scores = [("Q", L_q, d_k, BLUE), ("Kᵀ", d_k, L_k, ORANGE), ("scores S", L_q, L_k, GREY)]
    _product(upper, scores, unit)
    output = [("weights A", L_q, L_k, GREY), ("V", L_k, d_v, GREEN), ("output", L_q, d_v, RED)]
    _product(lower, output, unit)
    upper.set_title("1 score, 2 divide by √d_k", loc="left")
    lower.set_title("3 softmax of each row of S, 4 average", loc="left")
    return figure


def _product(axes, blocks, unit):
    """Draw ``first @ second = third`` in blocks, one row or column `unit` wide."""
    for i, (name, rows, columns, color) in enumerate(blocks):
        height, width = rows * unit, columns * unit
        corner = (1.7 * i - width / 2, -height / 2)
        axes.add_patch(
            Rectangle(corner, width, height, facecolor=color, alpha=0.5, edgecolor="black")
        )
        axes.text(1.7 * i, 0.58, name, ha="center", va="bottom")
        axes.text(1.7 * i, -0.58, f"{rows} × {columns}", ha="center", va="top")
        if i:
            axes.text(1.7 * i - 0.85, 0, "×" if i == 1 else "=", ha="center", va="center")
    axes.set_xlim(-0.7, 4.1)
    axes.set_ylim(-0.85, 0.85)
    axes.set_aspect("equal")
    axes.axis("off")


def _colors(n):
    return [(BLUE, RED, GREEN, GREY)[i % 4] for i in range(n)]
