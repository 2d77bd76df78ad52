"""Figures of the last chapter."""

import numpy as np

from worked_examples.figures.style import BLUE, RED, new_figure

__all__ = ["reach"]


def reach(curves):
    """Draw how strongly the last output depends on each input, by distance, on a log axis.

    Parameters
    ----------
    curves : dict of str to (seeds, L) array
        By the kind of model; position 1 first.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = new_figure(height=3.2)
    for (name, runs), color in zip(curves.items(), (BLUE, RED), strict=False):
        runs = np.maximum(np.asarray(runs), 1e-300)
        distance = np.arange(runs.shape[1])[::-1]
        axes.fill_between(distance, runs.min(axis=0), runs.max(axis=0), color=color, alpha=0.2)
        axes.semilogy(distance, np.median(runs, axis=0), color=color)
        at = runs.shape[1] // 3
        axes.annotate(name, (distance[at], runs[:, at].max()), (4, 6),
                      textcoords="offset points", color=color)  # fmt: skip
    axes.set_xlabel("distance from the last position, in steps")
    axes.set_ylabel("size of the dependence")
    return figure
