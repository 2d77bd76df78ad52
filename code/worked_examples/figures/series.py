"""Figures of the chapter on one head and a time series."""

import numpy as np

from worked_examples.figures.style import BLUE, RED, draw_map, new_figure, new_panels
from worked_examples.series import lag_profile, matching_lags, uniform_map

__all__ = ["maps", "profiles", "seasons", "seeds"]


def seasons(panels):
    """Draw each series as a small line.

    Parameters
    ----------
    panels : dict of str to (n,) array

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_panels(len(panels), 1.15)
    for axis, (title, y) in zip(axes.flat, panels.items(), strict=False):
        axis.plot(y, "-o", ms=3, lw=1.2, color=BLUE)
        axis.set_title(title, fontsize=10)
        axis.set_xticks([])
        axis.locator_params(axis="y", nbins=3)
    return figure


def maps(panels):
    """Draw each map, darker for more weight; a map's darkest cell is its own largest weight.

    The first quarter of the rows does not count for what is darkest: it has few keys.

    Parameters
    ----------
    panels : dict of str to (L, L) array

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_panels(len(panels), 2.4)
    for axis, (title, A) in zip(axes.flat, panels.items(), strict=False):
        draw_map(axis, A, title, darkest=max(A[len(A) // 4 :].max(), 1e-9), ticks=3)
    axes[-1, 0].set_xlabel("key")
    axes[-1, 0].set_ylabel("query")
    return figure


def profiles(panels, periods):
    """Draw each map's mean weight by lag, over that of uniform weights.

    Whole periods are orange-red.

    Parameters
    ----------
    panels : dict of str to (L, L) array
    periods : sequence of int
        One a map.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_panels(len(panels), 1.5)
    for axis, (title, A), period in zip(axes.flat, panels.items(), periods, strict=False):
        times = lag_profile(A) / lag_profile(uniform_map(len(A)))
        colors = np.where(matching_lags(len(A), period), RED, BLUE)
        axis.bar(np.arange(len(A)), times, width=0.8, color=colors)
        axis.axhline(1, color="black", lw=0.8, ls="--")
        axis.set_title(title, fontsize=10)
    axes[-1, 0].set_xlabel("lag")
    axes[-1, 0].set_ylabel("times uniform")
    return figure


def seeds(profiles_by_kind, labels, matching):
    """Draw the mean weight by lag of trained heads: a row a seed, a column a lag.

    Parameters
    ----------
    profiles_by_kind : dict of str to (seeds, L) array
    labels : sequence
        The seeds.
    matching : (L,) array of bool
        Lags that match what is to be forecast; marked on the axis.

    Returns
    -------
    matplotlib.figure.Figure
    """
    count = len(profiles_by_kind)
    figure, axes = new_figure(
        5.0, 0.4 + count * (0.7 + 0.17 * len(labels)), rows=count, squeeze=False
    )
    for axis, (title, profiles) in zip(axes.flat, profiles_by_kind.items(), strict=True):
        n, L = profiles.shape
        for (s, k), weight in np.ndenumerate(profiles):
            if weight > 0.004:
                share = min(float(weight) / 0.5, 1.0)
                axis.fill_between((k, k + 0.92), s + 0.06, s + 0.94, color=BLUE, alpha=share, lw=0)
        axis.set(xlim=(0, L), ylim=(n, 0))
        ticks = np.flatnonzero(matching)[:8]
        axis.set_xticks(ticks + 0.5, map(str, ticks))
        axis.set_yticks(np.arange(n) + 0.5, map(str, labels))
        axis.tick_params(length=0)
        axis.set_title(title, fontsize=10)
        axis.set_ylabel("seed")
    axes[-1, 0].set_xlabel("lag (those that match are named)")
    return figure
