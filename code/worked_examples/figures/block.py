"""Figures of the chapter on the rest of the block."""

import math

import numpy as np
from matplotlib.patches import FancyBboxPatch, Rectangle

from worked_examples.block import ORDERS, gelu, relu
from worked_examples.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, new_figure

__all__ = ["activations", "gradient_by_layer", "shares", "through_depth", "wiring"]

# The palette's blue, green and orange, light enough for black type on them.
_FILL = {
    "attention": "#a6cbe3",
    "feed-forward": "#a6dccd",
    "norm 1": "#f7dca5",
    "norm 2": "#f7dca5",
}


def wiring(orders=None):
    """Draw blocks from bottom to top: the parts, and the paths around them.

    Parameters
    ----------
    orders : dict of str to sequence of str, optional
        Name to steps, as in `block.ORDERS`, which is the default.

    Returns
    -------
    matplotlib.figure.Figure
    """
    orders = ORDERS if orders is None else orders
    figure, axes = new_figure(5.0, 5.6, len(orders), squeeze=False)
    for axis, (name, steps) in zip(axes.flat, orders.items(), strict=True):
        _block(axis, steps)
        axis.set_title(f"{name}-norm")
    return figure


def _block(axis, steps):
    """Draw one column: a step up for each step, a path aside from each branch to its add."""
    top = len(steps) + 0.2
    axis.annotate("", (0, top + 0.35), (0, -0.75), arrowprops={"arrowstyle": "->", "lw": 1.5})
    branched = 0.0
    for y, step in enumerate(steps):
        if step == "branch":
            branched = y
            axis.plot(0, y, "o", color=RED, ms=6)
        elif step == "add":
            axis.plot([0, 1.15, 1.15, 0], [branched, branched, y, y], color=RED, lw=2)
            axis.plot(0, y, "o", ms=17, mfc="white", mec=RED, mew=1.5, zorder=3)
            axis.text(0, y - 0.01, "+", ha="center", va="center", color=RED, fontsize=14)
        else:
            axis.add_patch(
                FancyBboxPatch(
                    (-0.85, y - 0.3), 1.7, 0.6, boxstyle="round,pad=0,rounding_size=0.12",
                    facecolor=_FILL[step], edgecolor="black", zorder=3,
                )
            )  # fmt: skip
            axis.text(0, y, step, ha="center", va="center")
    axis.text(0, -0.8, "X", ha="center", va="top")
    axis.text(0, top + 0.4, "output", ha="center", va="bottom")
    axis.set(xlim=(-1.2, 1.4), ylim=(-1.3, top + 0.9))
    axis.axis("off")


def activations(low=-4.0, high=4.0):
    """Draw ReLU and GELU over an interval.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axis = new_figure(height=2.8)
    x = np.linspace(low, high, 161)
    for function, name, color in ((relu, "ReLU", BLUE), (gelu, "GELU", RED)):
        axis.plot(x, function(x), color=color, linestyle="-" if name == "ReLU" else "--")
    axis.annotate("ReLU", (low, 0), (2, 5), textcoords="offset points", color=BLUE)
    axis.annotate("GELU", (low, 0), (2, -15), textcoords="offset points", color=RED)
    axis.axvline(0, color=GREY, lw=0.8)
    axis.set(xlabel="a hidden unit's sum", ylabel="what it hands on")
    axis.set_ylim(-0.9, None)
    return figure


def through_depth(measured, depths, *, label="gradient at the input"):
    """Draw what arrives through stacks of several depths, on a log axis: a line a kind of stack.

    Parameters
    ----------
    measured : dict of str to (depths, seeds) array
        The line is the median over the seeds, the band goes from the least to the most.
    depths : sequence of int
    label : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axis = new_figure(height=3.8)
    ends = []
    for i, (name, values) in enumerate(measured.items()):
        color = (RED, ORANGE, GREY, PURPLE, BLUE)[i % 5]
        middle = np.median(values, axis=1)
        axis.plot(depths, middle, color=color, marker="o", ms=4)
        axis.fill_between(depths, values.min(axis=1), values.max(axis=1), color=color, alpha=0.15)
        ends.append((math.log10(middle[-1]), name, "#a66f00" if color == ORANGE else color))
    axis.set_yscale("log")
    axis.set(xlabel="layers", ylabel=label, xlim=(0, max(depths) * 1.02), xticks=depths[::-2])
    _named_at_the_end(axis, ends)
    return figure


def _named_at_the_end(axis, ends):
    """Write each line's name beside its end, pushed apart where two would cover each other."""
    low, high = np.log10(axis.get_ylim())
    ends = sorted(ends)
    at = (np.array([height for height, _, _ in ends]) - low) / (high - low)
    for _ in range(50):
        overlap = np.maximum(0.075 - np.diff(at), 0) / 2
        at[:-1] -= overlap
        at[1:] += overlap
    for height, (_, name, color) in zip(at, ends, strict=True):
        axis.text(1.02, height, name, color=color, fontsize=10, transform=axis.transAxes,
                  va="center")  # fmt: skip


def gradient_by_layer(measured):
    """Draw the gradient that each layer's parameters receive, a line a kind of stack.

    Parameters
    ----------
    measured : dict of str to (layers, seeds) array

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axis = new_figure(height=3.2)
    for i, (name, values) in enumerate(measured.items()):
        color = (PURPLE, BLUE)[i % 2]
        layers = np.arange(1, len(values) + 1)
        middle = np.median(values, axis=1)
        axis.plot(layers, middle, color=color)
        axis.fill_between(layers, values.min(axis=1), values.max(axis=1), color=color, alpha=0.15)
        axis.annotate(name, (layers[-1], middle[-1]), (4, 0), textcoords="offset points",
                      color=color, va="center")  # fmt: skip
    axis.set_yscale("log")
    axis.set(xlabel="layer, from the input up", ylabel="gradient of its W₂")
    axis.set_xlim(0, len(layers) * 1.25)
    axis.set_xticks(layers[:: -math.ceil(len(layers) / 6)])
    axis.spines["bottom"].set_bounds(0, len(layers))
    return figure


def shares(rows):
    """Draw what the parts of one layer hold, end to end in one bar.

    Parameters
    ----------
    rows : dict of str to int
        Part to count.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axis = new_figure(height=1.7)
    total, start = sum(rows.values()), 0.0
    for i, (name, count) in enumerate(rows.items()):
        share, color = count / total, (BLUE, GREEN, GREY, ORANGE)[i % 4]
        axis.add_patch(Rectangle((start, 0), share, 1, facecolor=color, alpha=0.45, edgecolor="k"))
        if share > 0.2:
            axis.text(start + share / 2, 0.5, f"{name}\n{share:.1%}", ha="center", va="center")
        start += share
    small = [f"{name} {count / total:.2%}" for name, count in rows.items() if count / total <= 0.2]
    if small:
        axis.text(1, -0.12, "also " + ", ".join(small), ha="right", va="top", fontsize=10)
    axis.set(xlim=(-0.01, 1.01), ylim=(-0.6, 1.05))
    axis.axis("off")
    return figure
