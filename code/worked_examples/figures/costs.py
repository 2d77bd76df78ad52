"""Figures of the chapter on what the length costs."""

import math

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from worked_examples.blocked import ring_schedule
from worked_examples.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, new_figure

__all__ = ["balance", "kernels", "measured", "ring", "tiles", "windows", "work"]

COLORS = {"plain": RED, "blocked": BLUE, "fast": PURPLE, "library": GREEN}
WORK = {
    "scores and averages": RED, "feed-forward": PURPLE, "projections": BLUE,
    "recurrent layer": GREY,
}  # fmt: skip
# Light enough for black type on them, one a block of the ring.
_PALE = ("#a6cbe3", "#f3c3a2", "#a6dccd", "#f7dca5", "#ddb8db", "#d5d5d5")


def work(rows, crossings=()):
    """Draw the multiply-adds of one layer's parts against the length, on log axes.

    Parameters
    ----------
    rows : list of dict
        As from `costs.growth_table`.
    crossings : iterable of float
        Lengths to mark on the line of scores and averages.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.6)
    lengths = [row["L"] for row in rows]
    ends = []
    for name, color in WORK.items():
        counts = [float(row[name]) for row in rows]
        axes.plot(lengths, counts, "--" if color == GREY else "-", color=color)
        ends.append((counts[-1], name, color))
    per_pair = float(rows[0]["scores and averages"]) / lengths[0] ** 2
    for L in crossings:
        if min(lengths) <= L <= max(lengths):
            axes.plot(L, per_pair * L**2, "o", color=RED, ms=7, mfc="white", mew=2)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("length L")
    axes.set_ylabel("multiply-adds of one layer")
    _label_ends(axes, ends)
    return figure


def measured(rows, slopes, floor=()):
    """Draw seconds and bytes of each kernel against the length, on log axes.

    Parameters
    ----------
    rows : list of dict
        As from `measuring.compare_lengths`.
    slopes : dict of str to dict of str to float
        By "seconds" and "bytes", then by kernel; NaN is not shown.
    floor : sequence of float
        Seconds that no kernel can save, one a length; drawn dotted.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, both = new_figure(height=6.2, rows=2)
    kernels = list(dict.fromkeys(row["kernel"] for row in rows))
    for axes, what, scale, label in (
        (both[0], "seconds", 1e3, "milliseconds"), (both[1], "bytes", 2**-20, "MiB at the peak"),
    ):  # fmt: skip
        ends = []
        for kernel in kernels:
            lengths = [row["L"] for row in rows if row["kernel"] == kernel]
            values = [row[what] * scale for row in rows if row["kernel"] == kernel]
            axes.plot(lengths, values, "-o", ms=4, color=COLORS.get(kernel, GREY))
            slope = slopes[what].get(kernel, math.nan)
            name = kernel if math.isnan(slope) else f"{kernel}, slope {slope:.1f}"
            ends.append((values[-1], name, COLORS.get(kernel, GREY)))
        if what == "seconds" and len(floor):
            values = [1e3 * seconds for seconds in floor]
            axes.plot(lengths, values, ":", color=GREY)
            ends.append((values[-1], "floor", GREY))
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("length L")
        axes.set_ylabel(label)
        _label_ends(axes, ends)
    return figure


def kernels(rows, floor):
    """Draw every kernel's time against length, without a mask and with a causal one.

    Parameters
    ----------
    rows : list of dict
        With `L`, `causal`, `kernel` and `median ms`.
    floor : callable
        ``floor(L, causal)``: the seconds that the matrix products alone would take.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, both = new_figure(width=6.5, height=8, rows=2)
    names = list(dict.fromkeys(row["kernel"] for row in rows))
    colors = dict(zip(names, (GREEN, BLUE, PURPLE, ORANGE, RED, GREY, "black"), strict=False))
    for axes, causal in zip(both, (False, True), strict=True):
        ends = []
        for name in names:
            points = [(row["L"], row["median ms"]) for row in rows
                      if row["kernel"] == name and row["causal"] == causal]  # fmt: skip
            if points:
                lengths, taken = zip(*points, strict=True)
                axes.plot(lengths, taken, "-o", ms=4, color=colors.get(name, GREY))
                ends.append((taken[-1], name, colors.get(name, GREY)))
        lengths = sorted({row["L"] for row in rows})
        axes.plot(lengths, [1e3 * floor(L, causal) for L in lengths], ":", color=GREY)
        ends.append((1e3 * floor(lengths[-1], causal), "products alone", GREY))
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(xlabel="length L", ylabel="milliseconds", title="causal" if causal else "dense")
        _label_ends(axes, ends)
    return figure


def _label_ends(axes, ends):
    """Name each line beside its last point, pushed apart where the points are close."""
    low, high = np.log10(axes.get_ylim())
    last = -math.inf
    for value, name, color in sorted(ends):
        if not value > 0:  # NaN: the line is not drawn
            continue
        last = max((math.log10(value) - low) / max(high - low, 1e-9), last + 0.1)
        axes.annotate(name, (1.01, last), xycoords="axes fraction", va="center", color=color)


def tiles(L_q=8, L_k=8, rows=2, columns=2, causal=True):
    """Draw the order in which the blocked kernel walks over the matrix of scores.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(4.2, 3.6)
    step = 0
    for top in range(0, L_q, rows):
        for left in range(0, L_k, columns):
            height, width = min(rows, L_q - top), min(columns, L_k - left)
            hidden = causal and left > top + height - 1 + L_k - L_q
            step += not hidden
            axes.add_patch(Rectangle((left, top), width, height, lw=1.2, edgecolor="black",
                                     facecolor="white" if hidden else _PALE[0]))  # fmt: skip
            axes.text(left + width / 2, top + height / 2, "" if hidden else str(step),
                      ha="center", va="center")  # fmt: skip
    axes.set(xlim=(0, L_k), ylim=(L_q, 0), aspect="equal", xlabel="keys", ylabel="queries",
             xticks=range(0, L_k + 1, columns), yticks=range(0, L_q + 1, rows))  # fmt: skip
    return figure


def windows(masks):
    """Draw masks side by side: what may be looked at, filled.

    Parameters
    ----------
    masks : dict of str to (L_q, L_k) array of bool

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=2.6, columns=len(masks), squeeze=False)
    for axis, (name, mask) in zip(axes.flat, masks.items(), strict=True):
        axis.pcolormesh(mask, cmap="Blues", vmin=0, vmax=1.4, edgecolors="white", lw=0.5)
        axis.set(aspect="equal", title=name, xlabel="key", xticks=[], yticks=[])
        axis.invert_yaxis()
    axes.flat[0].set_ylabel("query")
    return figure


def ring(n=4):
    """Draw who holds what when: a row a step, a column a process.

    Parameters
    ----------
    n : int
        Number of processes. From 17 on there is no room for words: the colours alone are shown.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if n > 16:
        figure, axes = new_figure(height=4.6)
        axes.pcolormesh(ring_schedule(n) % len(_PALE), cmap=ListedColormap(_PALE))
        axes.set(aspect="equal", xlabel="process", ylabel="step")
        axes.invert_yaxis()
        return figure
    figure, axes = new_figure(height=0.95 * n + 0.9)
    for step, blocks in enumerate(ring_schedule(n)):
        for rank, block in enumerate(blocks):
            axes.add_patch(Rectangle((rank + 0.08, step + 0.12), 0.84, 0.66, edgecolor="black",
                                     facecolor=_PALE[block % len(_PALE)]))  # fmt: skip
            axes.text(rank + 0.5, step + 0.29, f"Q {rank}", ha="center", va="center")
            axes.text(rank + 0.5, step + 0.6, f"K, V {block}", ha="center", va="center")
            if step < n - 1 and rank < n - 1:
                axes.annotate("", (rank + 1.3, step + 1.1), (rank + 0.7, step + 0.8),
                              arrowprops={"arrowstyle": "-|>", "color": GREY})  # fmt: skip
    axes.set(xlim=(0, n), ylim=(n, 0), xlabel="process (the last hands on to process 0)",
             xticks=np.arange(n) + 0.5, yticks=np.arange(n) + 0.45)  # fmt: skip
    axes.set_xticklabels(range(n))
    axes.set_yticklabels([f"step {s}" for s in range(n)])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def balance(L=16, n=4):
    """Draw who scores what under a causal mask: positions in a row, and dealt out in turn.

    Parameters
    ----------
    L : int
        Length.
    n : int
        Number of processes.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, both = new_figure(height=3.2, columns=2, sharey=True)
    in_a_row = np.repeat(np.arange(n), [len(part) for part in np.array_split(np.arange(L), n)])
    for axes, name, owners in zip(
        both, ("in a row", "dealt in turn"), (in_a_row, np.arange(L) % n), strict=True
    ):
        for query, owner in enumerate(owners):
            axes.add_patch(Rectangle((0, query), query + 1, 1, facecolor=_PALE[owner % len(_PALE)],
                                     edgecolor="white", lw=0.5))  # fmt: skip
        pairs = [int((np.arange(L) + 1)[owners == rank].sum()) for rank in range(n)]
        for rank in range(min(n, 6)):  # beyond six the colours repeat, and words would not fit
            axes.text(L, (rank + 0.2) * L / 8, f"process {rank}: {pairs[rank]}", ha="right",
                      va="top", backgroundcolor=_PALE[rank], fontsize=10)  # fmt: skip
        axes.set(xlim=(0, L), ylim=(L, 0), aspect="equal", title=name, xlabel="key", xticks=[],
                 yticks=[])  # fmt: skip
    both[0].set_ylabel("query")
    return figure
