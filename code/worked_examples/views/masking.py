"""The view of four scores behind a causal mask and a padding mask."""

import numpy as np

from worked_examples.attention import causal_mask
from worked_examples.masking import ORDERINGS, same_scores
from worked_examples.views.markup import heatmap, paragraph, table

__all__ = ["orderings"]


def orderings(*, order, padded_start, padded_end, **scores):
    """Show the weights of four rows with the same scores, and where their weight went.

    Parameters
    ----------
    order : str
        A name in `masking.ORDERINGS`.
    padded_start, padded_end : int
        How many of the positions are padding, before the real ones and after them.
    **scores : float
        ``score_0``, ``score_1`` and so on: one for each key, the same in every row.

    Returns
    -------
    str
        HTML: the matrix of weights, orange-red where a hidden position got any; a table of the row
        sums; a sentence on what is wrong, if anything is.
    """
    S = same_scores([scores[f"score_{j}"] for j in range(len(scores))])
    L = len(S)
    real = (np.arange(L) >= padded_start) & (np.arange(L) < L - padded_end)
    seen = causal_mask(L) & real  # (L, L) & (L,) -> (L, L)
    A = ORDERINGS[order](S, seen)
    wasted = np.where(seen, 0.0, A)
    names = [f"row {i}" for i in range(L)]
    keys = [f"key {j}" if real[j] else f"pad {j}" for j in range(L)]
    rows = [
        (name, int(sees.sum()), row.sum() - lost.sum(), lost.sum(), row.sum())
        for name, sees, row, lost in zip(names, seen, A, wasted, strict=True)
    ]
    return (
        heatmap(A, names, keys, "Weights, a row a query", accent=(wasted > 0))
        + table(("query", "sees", "on seen keys", "on hidden keys", "sum"), rows)
        + paragraph(_verdict(A, seen, wasted))
    )


def _verdict(A, seen, wasted):
    sees = seen.any(axis=-1)
    empty = int((~sees).sum())
    if (wasted > 0).any():
        text = (
            "Orange-red: weight on positions that should be hidden. "
            "A score of 0 is a score like any other."
        )
    elif (A.sum(axis=-1)[sees] < 1 - 1e-9).any():
        text = "Weight is thrown away: what is left of a row is no distribution."
    else:
        text = "Nothing hidden has weight, and no row with something to see lost any."
    if empty:
        rows = "1 row has" if empty == 1 else f"{empty} rows have"
        text += f" {rows} nothing to see."
    return text
