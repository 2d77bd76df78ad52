"""Figures of the chapter on the causal mask."""

import math

import numpy as np
from matplotlib.colors import ListedColormap

from worked_examples.figures.style import BLUE, GREY, RED, new_figure

__all__ = ["loss_curves", "masks", "row_sums"]


def masks(panels, *, wrong=None, columns=3, rows="query", entries="key"):
    """Draw boolean matrices as grids of cells, side by side.

    Parameters
    ----------
    panels : dict of str to (L_q, L_k) array of bool
        Title to mask; a True cell is filled.
    wrong : dict of str to (L_q, L_k) array of bool, optional
        Cells to fill in red, by the same titles.
    columns : int, default 3
        Panels in a line.
    rows, entries : str
        What a row and a column of the grids are.

    Returns
    -------
    matplotlib.figure.Figure
    """
    columns = min(columns, len(panels))
    lines = math.ceil(len(panels) / columns)
    tallest = max(len(mask) / mask.shape[1] for mask in panels.values())
    width = 5.0 if columns > 1 else 2.6
    height = 0.3 + lines * (0.5 + (width - 0.5) / columns * min(tallest, 1.5))
    figure, axes = new_figure(width, height, columns, lines, squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (title, mask) in zip(axes.flat, panels.items(), strict=False):
        _grid(axis, mask, None if wrong is None else wrong.get(title))
        axis.set_title(title, fontsize=10)
    axes[0, 0].set_ylabel(rows)
    axes[0, 0].set_xlabel(entries)
    return figure


def _grid(axis, mask, wrong):
    kinds = np.asarray(mask).astype(int)  # 0 empty, 1 filled, 2 wrong
    if wrong is not None:
        kinds[np.asarray(wrong)] = 2
    colors = ListedColormap(["white", BLUE, RED])
    axis.pcolormesh(kinds, cmap=colors, vmin=0, vmax=2, edgecolors=GREY, linewidth=0.6)
    L_q, L_k = kinds.shape
    axis.set(xlim=(0, L_k), ylim=(L_q, 0), aspect="equal")
    for kind, count in (("x", L_k), ("y", L_q)):
        numbers = range(0, count, math.ceil(count / 6))
        axis.tick_params(length=0)
        getattr(axis, f"set_{kind}ticks")([k + 0.5 for k in numbers], map(str, numbers))
    for spine in axis.spines.values():
        spine.set_visible(False)


def row_sums(tables):
    """Draw each row's weights end to end, one panel an ordering: a full bar is a distribution.

    Parameters
    ----------
    tables : dict of str to list of dict
        Title to the rows of `masking.ordering_table`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    L = max(len(table) for table in tables.values())
    figure, axes = new_figure(5.0, 1.1 + 0.36 * min(L, 20), len(tables), squeeze=False, sharey=True)
    for axis, (title, table) in zip(axes.flat, tables.items(), strict=True):
        for i, row in enumerate(table):
            weights = [value for name, value in row.items() if name.startswith("key")]
            _weights_bar(axis, i, weights if L <= 12 else [sum(weights)])
            if L <= 12:
                axis.text(1.04, i, f"{row['sum']:.4f}", va="center", fontsize=10)
        axis.set(xlim=(0, 1.38 if L <= 12 else 1), ylim=(L - 0.5, -0.5), xticks=(0, 0.5, 1))
        axis.set_title(title, fontsize=11)
        axis.axvline(1, color=GREY, linewidth=1)
        axis.set_xlabel("weight given")
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="y", length=0)
    shown = range(0, L, math.ceil(L / 12))
    axes.flat[0].set_yticks(list(shown), [f"row {i}" for i in shown])
    return figure


def _weights_bar(axis, i, weights):
    start = 0.0
    for weight in weights:
        if weight > 0:
            axis.barh(i, weight, left=start, height=0.72, color=BLUE, edgecolor="white")
        start += weight
    if start < 0.9999:
        axis.barh(i, 1 - start, left=start, height=0.72, color="none", edgecolor=RED,
                  linestyle="--", linewidth=1.2)  # fmt: skip


def loss_curves(runs, *, entropy, guess):
    """Draw the loss in training, step by step, beside the loss when deployed.

    Parameters
    ----------
    runs : dict of list of leak.Run
        Under "with the mask" and "without".
    entropy : float
        What is left to guess when the past is known, in bits.
    guess : float
        What it costs to know nothing, in bits.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (training, deployed) = new_figure(5.0, 3.4, 2, width_ratios=(1.6, 1))
    for x, (name, color) in enumerate(zip(runs, (BLUE, RED), strict=True)):
        for run in runs[name]:
            training.plot(np.arange(1, len(run.curve) + 1), run.curve, color=color, linewidth=1)
            deployed.plot(x, run.deployed, "o", color=color, markersize=7, alpha=0.7)
        end = np.mean([run.curve[-20:].mean() for run in runs[name]])
        steps = len(runs[name][0].curve)
        _note(training, name, (steps, end), (0, -9 if x == 0 else 6), color, ha="right",
              va="top" if x == 0 else "bottom")  # fmt: skip
    for axis in (training, deployed):
        axis.axhline(entropy, color="black", linestyle="--", linewidth=1)
        axis.axhline(guess, color=GREY, linestyle=":", linewidth=1.5)
    _note(training, "the chain's entropy", (steps, entropy), (0, 11), "black", ha="right")
    _note(training, "a guess", (steps, guess), (0, 4), GREY, ha="right")
    training.set(xlabel="step", ylabel="loss in bits a token")
    training.set_ylim(-0.15, max(guess * 1.5, entropy * 1.5))
    training.set_title("In training")
    deployed.set_title("Deployed")
    deployed.set_xlim(-0.6, 1.6)
    deployed.set_ylim(bottom=0)
    deployed.set_xticks((0, 1), [name.replace(" the ", "\nthe ") for name in runs])
    return figure


def _note(axis, text, at, offset, color, **options):
    axis.annotate(text, at, offset, textcoords="offset points", color=color, fontsize=10, **options)
