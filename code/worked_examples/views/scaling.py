"""View of the scores of many draws, and of the weights that they become."""

import math

import numpy as np

from worked_examples.attention import entropy, softmax
from worked_examples.scaling import DRAWS, jacobian_norm, sample_scores
from worked_examples.views.markup import BLUE, RED, columns, paragraph, table

__all__ = ["divisor"]

# One scale for every setting, or no growth would show: columns one score wide, and half of all
# scores is the tallest that one can get (a normal number lies between 0 and 1 in 34% of cases).
_WINDOW, _TALLEST = 16, 0.5


def divisor(*, d_k, keys, divide):
    """Show the scores of 200 draws at a width, and how decided their softmax is.

    Parameters
    ----------
    d_k : int
        Width of the query and the keys, 1 or more.
    keys : int
        Keys of each draw, 1 or more.
    divide : bool
        Divide the scores by sqrt(d_k).

    Returns
    -------
    str
        HTML: a histogram of the scores, the mean weights from the largest down, and the
        readings between their two ends, as a table.
    """
    scores = sample_scores(d_k, keys)
    if divide:
        scores = scores / math.sqrt(d_k)
    weights = softmax(scores)
    ranked = np.sort(weights, axis=-1)[:, ::-1].mean(axis=0)
    # What a query's weights say about it, and what they would if equal, and if one were 1.
    rows = [
        ("entropy (bits)", entropy(weights).mean(), math.log2(keys), 0.0),
        ("largest weight", ranked[0], 1 / keys, 1.0),
        ("gradient norm", jacobian_norm(weights).mean(), math.sqrt(keys - 1) / keys, 0.0),
    ]
    return (
        _histogram(scores)
        + columns(
            ranked, "largest", "smallest", f"Mean weights, from {ranked[0]:.2f} down",
            axis="mean weight, by rank", tallest=1.0,
        )
        + table(("reading", f"mean of {DRAWS} draws", "weights equal", "one weight is 1"), rows)
        + paragraph(_sentence(scores, d_k, divide))
    )  # fmt: skip


def _histogram(scores):
    """Draw shares of the scores in columns of width 1, and what lies outside in red ones."""
    # Cut at the next whole number down: far faster than np.histogram, and the same.
    column = np.clip(np.floor(scores), -_WINDOW - 1, _WINDOW).astype(int) + _WINDOW + 1
    counts = np.bincount(column.ravel(), minlength=2 * _WINDOW + 2)
    return columns(
        counts / scores.size,
        f"below -{_WINDOW}",
        f"above {_WINDOW}",
        f"Histogram of {scores.size} scores, standard deviation {scores.std():.2f}",
        axis="score",
        color=[RED] + [BLUE] * (2 * _WINDOW) + [RED],
        tallest=_TALLEST,
    )


def _sentence(scores, d_k, divide):
    what = "Divided by √d_k, the scores" if divide else "The scores"
    expected = 1.0 if divide else math.sqrt(d_k)
    outside = np.mean((scores < -_WINDOW) | (scores >= _WINDOW))
    beyond = (
        f" {outside:.0%} of them lie outside the window, in the orange-red columns at its ends."
        if outside
        else ""
    )
    return (
        f"{what} have a standard deviation of {scores.std():.2f}; "
        f"{expected:.2f} is expected.{beyond}"
    )
