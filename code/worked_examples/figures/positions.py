"""Figures of the chapter on position."""

import math

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Circle

from worked_examples.figures.style import BLUE, GREEN, GREY, PURPLE, RED, new_figure
from worked_examples.positions import angles, offset_similarity

__all__ = ["accuracy_by_position", "clocks", "encoding_heatmap", "score_biases", "similarities"]

# Red below 0, white at 0, blue above: both ends are told apart by every kind of colour vision.
_SIGNED = LinearSegmentedColormap.from_list("signed", [RED, "white", BLUE])


def encoding_heatmap(encoding):
    """Draw encodings as a grid, positions to the right, features down.

    Parameters
    ----------
    encoding : (L, d) array

    Returns
    -------
    matplotlib.figure.Figure
    """
    L, d = np.shape(encoding)
    figure, axes = new_figure(height=3.6)
    mesh = _grid(axes, np.transpose(encoding), 1)
    axes.set(xlabel="position", ylabel="feature")
    figure.colorbar(mesh, ax=axes, ticks=(-1, 0, 1), shrink=0.8)
    return figure


def clocks(k, starts, d, base, most=4):
    """Draw some pairs of features as clocks, with the turn that a shift by k gives to each.

    Parameters
    ----------
    k : int
        Positions of the shift.
    starts : sequence of int
        Where the shift begins.
    d : int
    base : float
    most : int, default 4
        Pairs to draw.

    Returns
    -------
    matplotlib.figure.Figure
    """
    pairs = angles(d, base)[:most]
    figure, axes = new_figure(
        5.0 if len(pairs) > 1 else 2.5, 1.75 * math.ceil(len(pairs) / 2) + 0.6,
        min(2, len(pairs)), math.ceil(len(pairs) / 2), squeeze=False,
    )  # fmt: skip
    for axis in axes.flat:
        axis.set_axis_off()
    for i, (axis, omega) in enumerate(zip(axes.flat, pairs, strict=False)):
        axis.add_patch(Circle((0, 0), 1, fill=False, edgecolor=GREY, linewidth=1))
        for start, color in zip(starts, (BLUE, RED, GREEN), strict=False):
            _turn(axis, start * omega, k * omega, color, start, k)
        axis.set(xlim=(-1.8, 1.8), ylim=(-1.5, 1.5), aspect="equal")
        axis.set_title(f"features {2 * i}, {2 * i + 1}: turned {k * omega:.4g} rad", fontsize=10)
    return figure


def _turn(axis, start, turn, color, pos, k):
    """Draw two points on a clock and the arc from one to the other; sines up, cosines right."""
    arc = start + np.linspace(0, turn, 200)
    axis.plot(np.cos(arc), np.sin(arc), color=color, linewidth=3, alpha=0.45)
    ends = ((start, pos, "white", 0.66), (start + turn, pos + k, color, 1.32))
    for phase, name, face, reach in ends:  # the start is named inside the clock, the end outside
        point = np.array([math.cos(phase), math.sin(phase)])
        axis.plot(*point, "o", color=color, markerfacecolor=face, markersize=7)
        axis.text(*(reach * point), str(name), color=color, ha="center", va="center", fontsize=10)


def similarities(widths, base, longest=100):
    """Draw the cosine of two encodings against their offset, a curve a width.

    Parameters
    ----------
    widths : sequence of int
    base : float
    longest : int, default 100

    Returns
    -------
    matplotlib.figure.Figure
    """
    k = np.arange(longest + 1)
    figure, axes = new_figure(height=3.2)
    ends = {}
    for i, d in enumerate(widths):
        cosine = offset_similarity(k, d, base)
        (line,) = axes.plot(k, cosine, color=(RED, BLUE, GREEN, PURPLE)[i % 4], linewidth=1.6)
        ends[d] = (cosine[-1], line.get_color())
    height = -np.inf
    for d, (end, color) in sorted(ends.items(), key=lambda item: item[1]):
        height = max(end, height + 0.1)  # names stand above one another where the ends are close
        axes.annotate(f"d = {d}", (longest, height), (5, 0), textcoords="offset points",
                      color=color, va="center", annotation_clip=False)  # fmt: skip
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set(xlabel="offset k", ylabel="cosine of PE(p) and PE(p + k)", xlim=(0, longest))
    return figure


def score_biases(panels):
    """Draw matrices that are added to scores, one panel each, on one scale.

    Parameters
    ----------
    panels : dict of str to (L_q, L_k) array
        Title to bias; NaN is left white.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(5.0, 2.5, len(panels), squeeze=False)
    most = max(1e-9, *(np.nanmax(np.abs(bias)) for bias in panels.values()))
    for axis, (title, bias) in zip(axes.flat, panels.items(), strict=True):
        mesh = _grid(axis, bias, most)
        axis.set_title(title, fontsize=10)
        axis.set(aspect="equal", xlabel="key")
    axes[0, 0].set_ylabel("query")
    figure.colorbar(mesh, ax=axes, shrink=0.6, pad=0.02)
    return figure


def _grid(axis, matrix, most):
    """Draw cells from the top down; many of them as one picture, lest the file grow."""
    rows, columns = np.shape(matrix)
    mesh = axis.pcolormesh(
        np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5, matrix, cmap=_SIGNED, vmin=-most,
        vmax=most, edgecolors="face", linewidth=0.1, rasterized=rows * columns > 8000,
    )  # fmt: skip
    axis.invert_yaxis()
    for kind, count in (("x", columns), ("y", rows)):
        step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 1000, count) if count / n <= 7)
        getattr(axis, f"set_{kind}ticks")(range(0, count, step))
    return mesh


def accuracy_by_position(studies, trained, chance):
    """Draw how often each method is right at each position, one panel a method.

    Parameters
    ----------
    studies : dict of str to dict of str to extrapolation.Run
        Task to method to runs.
    trained : int
        Length of the sequences in training: a line stands there.
    chance : dict of str to float
        Task to the share of right answers of a guess.

    Returns
    -------
    matplotlib.figure.Figure
    """
    methods = list(next(iter(studies.values())))
    rows = math.ceil(len(methods) / 2)
    figure, axes = new_figure(5.0, 1.5 * rows + 0.7, 2, rows, squeeze=False, sharex=True,
                              sharey=True)  # fmt: skip
    for axis in axes.flat[len(methods) :]:
        axis.set_axis_off()
    for axis, method in zip(axes.flat, methods, strict=False):
        for (task, runs), color in zip(studies.items(), (BLUE, RED), strict=False):
            sides = np.split(runs[method].accuracy, [trained], axis=1)
            accuracy = np.concatenate([_smooth(side) for side in sides], axis=1)
            x = np.arange(accuracy.shape[1])
            axis.fill_between(
                x, accuracy.min(axis=0), accuracy.max(axis=0), color=color, alpha=0.25, lw=0
            )
            axis.plot(x, accuracy.mean(axis=0), color=color, linewidth=1.6)
            axis.axhline(chance[task], color=color, linestyle=":", linewidth=1)
        axis.axvline(trained - 0.5, color=GREY, linestyle="--", linewidth=1)
        axis.set_title(method, fontsize=11)
        axis.set_ylim(0, 1.04)
    for axis in axes[-1]:
        axis.set_xlabel("position")
    for axis in axes[:, 0]:
        axis.set_ylabel("share right")
    for (task, _), color, height in zip(studies.items(), (BLUE, RED), (0.82, 0.62), strict=False):
        axes[0, 0].text(0.97, height, task, color=color, ha="right", transform=axes[0, 0].transAxes)
    return figure


def _smooth(accuracy, reach=3):
    """Average each position with its neighbours, and leave out those where nothing was asked."""
    columns = range(accuracy.shape[1])
    with np.errstate(invalid="ignore"):
        near = [accuracy[:, max(0, i - reach) : i + reach + 1] for i in columns]
        asked = [np.isfinite(part).sum(axis=1).clip(min=1) for part in near]
        return np.stack(
            [np.nansum(p, axis=1) / n for p, n in zip(near, asked, strict=True)], axis=1
        )
