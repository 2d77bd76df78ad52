"""The worked numbers of the chapter on the causal mask: who may look, and how one finds a leak.

Four raw scores in every row, hidden in the right way and in the wrong ones; models that look at
the future, and the test that catches them; padding beside the causal mask. Rows and positions
are counted from 0, as torch and numpy count them.
"""

import numpy as np

from worked_examples.attention import (
    causal_mask,
    key_padding_mask,
    scaled_dot_product_attention,
    softmax,
)

__all__ = [
    "MODELS",
    "ORDERINGS",
    "SCORES",
    "influence",
    "leaks",
    "mask_first",
    "mask_shapes",
    "multiply_scores",
    "ordering_table",
    "plain_softmax",
    "renormalise",
    "same_scores",
    "softmax_first",
]

# The raw scores of four keys, the same for every query, so that only the mask tells rows apart.
SCORES = (2.0, 1.0, 0.5, 1.5)


# -------------------------------------------------------------------------------- orderings


def same_scores(scores=SCORES):
    """Give every query the same scores.

    Parameters
    ----------
    scores : (L,) array

    Returns
    -------
    (L, L) array of float
    """
    scores = np.asarray(scores, dtype=float)
    return np.tile(scores, (len(scores), 1))  # (L,) -> (L, L)


def mask_first(S, seen):
    """Put -inf on what may not be seen, then take the softmax: the right way.

    Parameters
    ----------
    S : (..., L_q, L_k) array
        Scores.
    seen : (..., L_q, L_k) array of bool
        True = may look.

    Returns
    -------
    (..., L_q, L_k) array
        Rows sum to 1, or to 0 where there is nothing to see.
    """
    return softmax(np.where(seen, S, -np.inf))


def softmax_first(S, seen):
    """Take the softmax, then put 0 on what may not be seen: the rest falls short of 1."""
    return softmax(S) * seen


def multiply_scores(S, seen):
    """Put 0 on the scores of what may not be seen: exp(0) = 1, so it is seen all the same."""
    return softmax(S * seen)


def renormalise(S, seen):
    """Take the softmax, put 0 on what may not be seen, and divide each row by what is left.

    Right in exact arithmetic. In floats a large hidden score drives the weights that may be seen
    to 0, and the row to 0 / 0 = NaN.
    """
    weights = softmax_first(S, seen)
    with np.errstate(invalid="ignore"):
        return weights / weights.sum(axis=-1, keepdims=True)


# What each ordering is called, here and by the explorer.
ORDERINGS = {
    "mask first": mask_first,
    "softmax first": softmax_first,
    "multiply scores": multiply_scores,
}


def ordering_table(order, scores=SCORES):
    """List the causal weights of every row, and their sum, for one ordering.

    Parameters
    ----------
    order : str
        A name in `ORDERINGS`.
    scores : (L,) array
        The same in every row.

    Returns
    -------
    list of dict
        One row a query: its name, the weight of each key, the sum.

    Raises
    ------
    ValueError
        If there is no such ordering.

    Examples
    --------
    >>> [round(float(row["sum"]), 4) for row in ordering_table("softmax first")]
    [0.4551, 0.6225, 0.724, 1.0]
    """
    if order not in ORDERINGS:
        raise ValueError(f"order is one of {', '.join(map(repr, ORDERINGS))}; got {order!r}")
    S = same_scores(scores)
    A = ORDERINGS[order](S, causal_mask(len(S)))
    return [
        {"query": f"row {i}", **{f"key {j}": a for j, a in enumerate(row)}, "sum": row.sum()}
        for i, row in enumerate(A)
    ]


def plain_softmax(scores):
    """Take the softmax as most code writes it: a row of nothing but -inf gives 0 / 0 = NaN.

    Parameters
    ----------
    scores : (..., n) array

    Returns
    -------
    (..., n) array

    Examples
    --------
    >>> plain_softmax(np.array([-np.inf, -np.inf]))
    array([nan, nan])
    """
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)


# ------------------------------------------------------------------------------------ leaks


def influence(model, X, *, other=None):
    """Find which positions each output depends on, by changing them one at a time.

    Parameters
    ----------
    model : callable
        Takes (L, ...) and returns (L, ...): one output a position.
    X : (L, ...) array
        Features, or token numbers.
    other : array of the shape of X, optional
        What a position is changed to. By default it is changed twice, by adding large noise
        (seed 0) and by taking it off: a key that one of the two turns away from a query, the
        other turns towards it, so it gets enough weight to show.

    Returns
    -------
    (L, L) array of bool
        True at (i, j) where any bit of output i moved when position j was changed.

    Raises
    ------
    ValueError
        If `other` has another shape, or X holds no floats and there is no `other`.

    Examples
    --------
    >>> print(influence(lambda X: X.cumsum(axis=0), np.ones((3, 2))).astype(int))
    [[1 0 0]
     [1 1 0]
     [1 1 1]]
    """
    X = np.asarray(X)
    others = _others(X) if other is None else [np.asarray(other)]
    before = np.asarray(model(X.copy()))
    moved = np.zeros((len(before), len(X)), dtype=bool)
    for other in others:
        if other.shape != X.shape:
            raise ValueError(f"other must have the shape of X, {X.shape}; got {other.shape}")
        for j in range(len(X)):
            changed = X.copy()
            changed[j] = other[j]
            moved[:, j] |= _moved(before, np.asarray(model(changed)))
    return moved


def _others(X):
    if X.dtype.kind != "f":
        raise ValueError(f"X of dtype {X.dtype} needs an `other` for its positions to change to")
    noise = 1000 * np.random.default_rng(0).normal(size=X.shape)
    return [(X + noise).astype(X.dtype), (X - noise).astype(X.dtype)]


def _moved(before, after):
    """Name the rows in which any number differs; NaN that stays NaN does not."""
    differs = (before != after) & ~((before != before) & (after != after))
    return differs.reshape(len(differs), -1).any(axis=-1)


def leaks(model, X, *, other=None):
    """Find the rows whose output moves when a later position is changed.

    Parameters
    ----------
    model, X, other
        As for `influence`.

    Returns
    -------
    list of int
        Rows that read the future; empty if none does.

    Examples
    --------
    >>> leaks(lambda X: X.cumsum(axis=0), np.ones((3, 2)))
    []
    >>> leaks(lambda X: X - X.mean(axis=0), np.ones((3, 2)))
    [0, 1]
    """
    future = np.triu(influence(model, X, other=other), k=1)
    return [int(i) for i in np.flatnonzero(future.any(axis=-1))]


def _attend(seen, weigh=mask_first):
    """Make a model that attends over its own rows, with `seen` for a mask of length L."""

    def model(X):
        S = X @ X.T / np.sqrt(X.shape[-1])  # (L, d) @ (d, L) -> (L, L)
        return weigh(S, seen(len(X))) @ X  # (L, L) @ (L, d) -> (L, d)

    return model


def _book(X):
    return scaled_dot_product_attention(X, X, X, causal=True)[0]


def _centred(X):
    """Look back only, but take the mean over all positions off the input first."""
    return _book(X - X.mean(axis=0))


# Self-attention on X (L, d) that should look back only. The first does.
MODELS = {
    "the book's kernel": _book,
    "mask inverted": _attend(lambda L: ~causal_mask(L)),
    "mask transposed": _attend(lambda L: causal_mask(L).T),
    "off by one": _attend(lambda L: np.tri(L, k=1, dtype=bool)),
    "softmax first": _attend(causal_mask, softmax_first),
    "mean taken off": _centred,
}


# ---------------------------------------------------------------------------------- padding


def mask_shapes(lengths=(4, 2), L=4):
    """List the masks of a padded batch and their shapes.

    Parameters
    ----------
    lengths : (B,) sequence of int
        Real positions of each sequence.
    L : int
        Length of the padded sequences.

    Returns
    -------
    list of dict
        One row a mask: its shape as it is made, made ready for scores (B, L, L), and for
        (B, h, L, L).
    """
    real, past = key_padding_mask(lengths, L), causal_mask(L)
    masks = {
        "padding": (real, real[:, None, :], real[:, None, None, :]),
        "causal": (past, past, past),
        "both": (None, real[:, None, :] & past, real[:, None, None, :] & past),
    }
    return [
        {
            "mask": name,
            "as made": "" if made is None else str(made.shape),
            "for (B, L, L)": str(one.shape),
            "for (B, h, L, L)": str(several.shape),
        }
        for name, (made, one, several) in masks.items()
    ]
