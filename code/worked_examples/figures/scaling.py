"""Figures of the chapter on the divisor."""

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator

from worked_examples.figures.style import BLUE, GREEN, GREY, PURPLE, RED, new_figure

__all__ = ["divisors", "growth", "losses", "saturation", "two_rows"]

# The divisor of the book is blue, its absence red, in every figure.
_COLORS = (RED, PURPLE, GREY, "black", GREEN, BLUE)


def growth(rows):
    """Draw the measured sizes of scores against the width, and the line sqrt(d_k).

    Parameters
    ----------
    rows : list of dict
        Of `scaling.scale_table`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.2)
    widths = np.array([row["d_k"] for row in rows])
    ends = np.array([widths.min() / 1.6, widths.max() * 1.6])
    axes.plot(ends, np.sqrt(ends), color=GREY, lw=1.2)
    axes.plot(widths, [row["pooled"] for row in rows], "o", color=BLUE, ms=8, mfc="none", mew=2)
    axes.plot(widths, [row["spread"] for row in rows], "s", color=RED, ms=5)
    axes.set(xscale="log", yscale="log", xlim=ends)
    _width_axis(axes, widths)
    axes.yaxis.set_major_locator(FixedLocator(np.sqrt(widths)))
    axes.yaxis.set_major_formatter(lambda size, _: f"{size:.3g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("standard deviation of scores")
    for at, text, color in (
        (0.9, "○ all draws pooled", BLUE),
        (0.79, "■ each draw by itself, mean", RED),
        (0.68, "— √d_k", GREY),
    ):
        axes.text(0.04, at, text, color=color, transform=axes.transAxes)
    return figure


def two_rows(rows):
    """Draw rows of weights as bars, one panel a row, on one scale.

    Parameters
    ----------
    rows : dict of str to (n,) sequence
        Title to weights.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, panels = new_figure(height=2.6, columns=len(rows), sharey=True, squeeze=False)
    for axes, (title, weights), color in zip(panels.flat, rows.items(), (RED, BLUE), strict=True):
        axes.bar(np.arange(len(weights)), weights, color=color, width=0.8)
        axes.set_title(title)
        axes.set_xlabel("key")
        axes.set_ylim(0, 1)
        axes.xaxis.get_major_locator().set_params(integer=True)
    panels.flat[0].set_ylabel("weight")
    return figure


def saturation(rows, most):
    """Draw mean entropy and mean Jacobian norm against the width, divided and not.

    Parameters
    ----------
    rows : list of dict
        Of `scaling.scale_table`.
    most : float
        The most possible entropy.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, panels = new_figure(height=3.0, columns=2)
    widths = [row["d_k"] for row in rows]
    for axes, name in zip(panels, ("entropy", "Jacobian norm"), strict=True):
        for kind, color in (("unscaled", RED), ("scaled", BLUE)):
            axes.plot(widths, [row[f"{name} {kind}"] for row in rows], "o-", color=color, ms=4)
        axes.set_xscale("log")
        _width_axis(axes, widths)
        axes.set_title(name if name != "entropy" else "entropy (bits)")
    panels[0].axhline(most, color=GREY, lw=1, ls="--")
    panels[0].set_ylim(0, 1.22 * max(most, 0.1))
    panels[0].text(0.97, 0.93, "dashed: most possible", color=GREY, ha="right", va="center",
                   fontsize=10, transform=panels[0].transAxes)  # fmt: skip
    top = max(max(row["Jacobian norm unscaled"], row["Jacobian norm scaled"]) for row in rows)
    panels[1].set_ylim(0, 1.22 * max(top, 0.1))
    panels[1].text(0.97, 0.93, "divided", color=BLUE, ha="right", va="center",
                   transform=panels[1].transAxes)  # fmt: skip
    panels[1].text(0.04, 0.05, "not divided", color=RED, va="bottom",
                   transform=panels[1].transAxes)  # fmt: skip
    return figure


def divisors(rows, most):
    """Draw entropy against the width, one line a divisor, named at its end.

    Parameters
    ----------
    rows : list of dict
        Of `scaling.divisor_table`.
    most : float
        The most possible entropy.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.6)
    widths = [row["width"] for row in rows]
    names = [name for name in rows[0] if name != "width"]
    colors = [_COLORS[i % len(_COLORS)] for i in range(len(names))]
    for name, color in zip(names, colors, strict=True):
        heavy = 3 if name == "√d_k" else 1.5
        axes.plot(widths, [row[name] for row in rows], "o-", color=color, ms=4, lw=heavy)
    axes.set_xscale("log")
    _width_axis(axes, widths)
    axes.set_ylim(0, 1.12 * max(most, 0.1))
    axes.set_ylabel("entropy of the weights (bits)")
    ends = _apart([rows[-1][name] for name in names], 0.075 * axes.get_ylim()[1])
    for name, color, end in zip(names, colors, ends, strict=True):
        axes.annotate(
            name, (1.02, end), xycoords=("axes fraction", "data"), color=color, va="center",
            annotation_clip=False,
        )  # fmt: skip
    return figure


def losses(runs, every):
    """Draw the median loss of several seeds, and their range as a band.

    Parameters
    ----------
    runs : dict of str to (seeds, times) array
        Name to losses; the first is red and the second blue.
    every : int
        Steps between two of them.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.2)
    for (name, values), color in zip(runs.items(), (RED, BLUE), strict=True):
        steps = every * np.arange(values.shape[1])
        middle = np.median(values, axis=0)
        axes.fill_between(
            steps, values.min(axis=0), values.max(axis=0), color=color, alpha=0.2, lw=0
        )
        axes.plot(steps, middle, color=color)
        at = 2 * len(steps) // 3
        axes.annotate(
            name, (steps[at], values[:, at].max()), (0, 8), textcoords="offset points",
            color=color, ha="center",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlim(0, steps[-1])
    axes.set_xlabel("steps of gradient descent")
    axes.set_ylabel("mean squared error")
    return figure


def _width_axis(axes, widths):
    """Name the widths themselves under a logarithmic axis."""
    axes.xaxis.set_major_locator(FixedLocator(sorted(widths)))
    axes.xaxis.set_major_formatter(lambda width, _: f"{width:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("width d_k")


def _apart(heights, gap):
    """Move heights as little as need be, upwards, so that no two are closer than `gap`."""
    places, free = {}, -np.inf
    for height in sorted(set(heights)):
        free = places[height] = max(height, free)
        free += gap
    return [places[height] for height in heights]
