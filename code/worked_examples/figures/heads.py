"""Figures of the chapter on heads."""

import numpy as np
from matplotlib.patches import Polygon, Rectangle

from worked_examples.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    draw_map,
    new_figure,
    new_panels,
)

__all__ = ["maps", "reach", "runs", "splits"]

_HEAD_COLORS = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)


def reach(values, wanted, best):
    """Draw what one row of weights can return, and what two heads can, in the values' plane.

    Parameters
    ----------
    values : (n, 2) array
    wanted : (2,) array
    best : (2,) array
        The average of the values that comes nearest to what is wanted.

    Returns
    -------
    matplotlib.figure.Figure
    """
    values, wanted, best = (np.asarray(part, dtype=float) for part in (values, wanted, best))
    figure, axes = new_figure(height=3.6)
    low, high = values.min(axis=0), values.max(axis=0)
    axes.add_patch(
        Rectangle(low, *(high - low), facecolor="none", edgecolor=GREEN, linestyle="--", lw=1.5)
    )
    axes.add_patch(Polygon(_hull(values), facecolor=BLUE, alpha=0.18, edgecolor=BLUE))
    axes.plot(*values.T, "o", color="black", ms=5)
    if len(values) <= 12:
        for t, point in enumerate(values):
            axes.annotate(str(t), point, (5, -13), textcoords="offset points", fontsize=10)
    axes.plot(*zip(best, wanted, strict=True), color=RED, lw=1.5)
    axes.plot(*best, "s", color=BLUE, ms=8)
    axes.plot(*wanted, "*", color=RED, ms=14)
    note = {"textcoords": "offset points", "fontsize": 10}
    axes.annotate("wanted", wanted, (-8, 9), color=RED, ha="right", **note)
    axes.annotate("best of one head", best, (-9, -14), color=BLUE, ha="right", **note)
    middle = values.mean(axis=0) - (0, (high - low)[1] / 4)
    axes.annotate("one head: the shape", middle, (0, 0), color=BLUE, ha="center", **note)
    axes.annotate("two heads: the whole box", (low[0], low[1]), (6, 6), color=GREEN, **note)
    axes.margins(0.12)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("level")
    axes.set_ylabel("swing")
    return figure


def _hull(points):
    """Give the corners of the smallest convex shape around points, by Andrew's two chains."""
    points = sorted(map(tuple, points))
    corners = []
    for chain in (points, points[::-1]):
        start = len(corners)
        for x, y in chain:
            while len(corners) - start >= 2:
                (ax, ay), (bx, by) = corners[-2:]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                corners.pop()
            corners.append((x, y))
        corners.pop()
    return corners or points


def splits(panels):
    """Draw, for each way of cutting, which head each entry of a matrix goes to.

    Parameters
    ----------
    panels : dict of str to (L, d) array of int
        Title to the number of the head.

    Returns
    -------
    matplotlib.figure.Figure
    """
    L, d = next(iter(panels.values())).shape
    figure, axes = new_figure(5.0, 0.9 + min(2.4 * L / d, 3), len(panels), squeeze=False)
    for axis, (title, heads) in zip(axes.flat, panels.items(), strict=True):
        for (i, j), head in np.ndenumerate(heads):
            color = _HEAD_COLORS[head % len(_HEAD_COLORS)]
            axis.add_patch(
                Rectangle((j, i), 1, 1, facecolor=color, alpha=0.6, edgecolor="white", lw=1)
            )
            if L * d <= 100:
                axis.text(j + 0.5, i + 0.5, str(head), ha="center", va="center", fontsize=10)
        axis.set(xlim=(0, d), ylim=(L, 0), aspect="equal", xticks=(), yticks=())
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("column")
        for spine in axis.spines.values():
            spine.set_visible(False)
    axes[0, 0].set_ylabel("position")
    return figure


def maps(weights, titles, columns=2):
    """Draw one matrix of mean weights a head, darker for more.

    Parameters
    ----------
    weights : (h, L, L) array
    titles : sequence of str
        One a head.
    columns : int

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_panels(len(weights), 2.4, columns)
    for axis, A, title in zip(axes.flat, weights, titles, strict=False):
        draw_map(axis, A, title)
    axes[-1, 0].set_xlabel("key")
    axes[-1, 0].set_ylabel("query")
    return figure


def runs(losses, least, costs):
    """Draw the loss of each trained model, and what the removal of each head costs.

    Parameters
    ----------
    losses : dict of int to (seeds,) array
        Number of heads to losses in bits.
    least : float
        The loss that knowledge of the rules leaves.
    costs : (seeds, h) array
        Rise of the loss in bits.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (left, right) = new_figure(5.0, 3.2, 2)
    for x, values in enumerate(losses.values()):
        left.plot(np.full(len(values), x), values, "o", color=BLUE, ms=7, alpha=0.6)
    left.axhline(least, color="black", linestyle="--", linewidth=1)
    left.annotate("the rules' own doubt", (len(losses) - 0.5, least), (0, -13), color="black",
                  textcoords="offset points", ha="right", fontsize=10)  # fmt: skip
    left.set(xlim=(-0.5, len(losses) - 0.5), xlabel="heads", ylabel="bits a token", ylim=(0, None))
    left.set_xticks(range(len(losses)), losses)
    left.set_title("Loss, a dot a seed", fontsize=11)
    for x, row in enumerate(costs):
        right.plot(np.full(len(row), x), row, "o", color=RED, ms=7, alpha=0.6)
    right.axhline(0, color=GREY, linewidth=1)
    right.set(xlabel="seed", xlim=(-0.5, len(costs) - 0.5))
    right.set_xticks(range(len(costs)))
    right.set_title("Rise without one head", fontsize=11)
    return figure
