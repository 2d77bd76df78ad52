"""Exact attention that never holds the matrix of scores: the online softmax, a block at a time.

A block of keys and values is boiled down to three things a query: the largest score, the sum of
``exp(score - largest)``, and the values summed with those powers. Two blocks merge into what
their union would have given, in any order. So attention may walk over the keys block by block,
or gather the blocks from several machines.
"""

from typing import NamedTuple

import numpy as np

from worked_examples.attention import (
    _as_floats,
    _bias,
    _boolean,
    _length,
    _require_matching,
    _scale,
    _seen,
    _whether,
)

__all__ = [
    "Partial",
    "blocked_attention",
    "finish",
    "merge",
    "nothing",
    "partial_attention",
    "ring_attention_in_turn",
    "ring_schedule",
]


class Partial(NamedTuple):
    """What is known after some of the keys, a row a query.

    Attributes
    ----------
    largest : (..., L_q, 1) array
        Largest score so far; the lowest finite number where nothing was seen.
    total : (..., L_q, 1) array
        Sum of exp(score - largest).
    summed : (..., L_q, d_v) array
        Sum of exp(score - largest) times the value.
    """

    largest: np.ndarray
    total: np.ndarray
    summed: np.ndarray


def nothing(shape, d_v, dtype=float):
    """Give the partial result before the first block: merged with another, it changes nothing.

    The largest score starts at the lowest finite number, not at -inf: a row that has seen nothing
    yet would have to compute -inf - -inf, which is NaN.

    Parameters
    ----------
    shape : tuple of int
        (..., L_q).
    d_v : int
    dtype : dtype

    Returns
    -------
    Partial

    Examples
    --------
    >>> nothing((1,), 2).summed
    array([[0., 0.]])
    """
    return Partial(
        np.full((*shape, 1), np.finfo(dtype).min, dtype=dtype),
        np.zeros((*shape, 1), dtype=dtype),
        np.zeros((*shape, d_v), dtype=dtype),
    )


def partial_attention(Q, K, V, *, seen=None, scale=None, bias=None):
    """Boil one block of keys and values down to a partial result.

    Parameters
    ----------
    Q : (..., L_q, d_k) array
    K : (..., n, d_k) array
    V : (..., n, d_v) array
    seen : (..., L_q, n) array of bool, optional
        True where a query may look.
    scale : float, optional
        What the scores are multiplied by; by default 1 / sqrt(d_k).
    bias : array of float, optional
        Added to the scores after the scaling; broadcastable to (..., L_q, n).

    Returns
    -------
    Partial

    Raises
    ------
    ValueError
        If shapes do not fit or a length is 0, or the bias holds an infinity; the message shows
        what came.

    Examples
    --------
    >>> part = partial_attention([[1.0]], [[0.0], [2.0]], [[1.0], [3.0]])
    >>> print(part.largest, part.total.round(4), part.summed.round(4))
    [[2.]] [[1.1353]] [[3.1353]]
    """
    (Q, K, V), _ = _as_floats(Q=Q, K=K, V=V)
    _require_matching(Q, K, V)
    lowest = np.finfo(Q.dtype).min
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scores = Q @ np.swapaxes(K, -1, -2) * _scale(scale, Q.shape[-1])  # (..., L_q, n)
        if bias is not None:
            scores += _bias(bias, scores.shape, scores.dtype)
        if seen is not None:
            np.copyto(scores, -np.inf, where=~_boolean(seen))
        largest = np.maximum(scores.max(axis=-1, keepdims=True), lowest)
        scores -= largest
        powers = np.exp(scores, out=scores)
        return Partial(largest, powers.sum(axis=-1, keepdims=True), powers @ V)


def merge(one, other):
    """Merge the partial results of two blocks into that of their union.

    With M the larger of the two largest scores, each side's sums are multiplied by
    ``exp(largest - M)`` and added: this is the one step of the online softmax.

    Parameters
    ----------
    one, other : Partial

    Returns
    -------
    Partial

    References
    ----------
    Milakov and Gimelshein (2018), for the total; Rabe and Staats (2021) and Dao et al. (2022), for
    attention.

    Examples
    --------
    >>> halves = [partial_attention([[1.0]], [[k]], [[v]]) for k, v in ((0.0, 1.0), (2.0, 3.0))]
    >>> print(*(part.round(4) for part in merge(*halves)))
    [[2.]] [[1.1353]] [[3.1353]]
    """
    largest = np.maximum(one.largest, other.largest)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        shrink_one, shrink_other = np.exp(one.largest - largest), np.exp(other.largest - largest)
        return Partial(
            largest,
            one.total * shrink_one + other.total * shrink_other,
            one.summed * shrink_one + other.summed * shrink_other,
        )


def finish(partial):
    """Divide by the total, once, at the end; a row that saw nothing becomes 0.

    Parameters
    ----------
    partial : Partial

    Returns
    -------
    (..., L_q, d_v) array

    Examples
    --------
    >>> finish(partial_attention([[0.0]], [[0.0], [2.0]], [[1.0], [3.0]]))
    array([[2.]])
    """
    return partial.summed / np.where(partial.total == 0, 1, partial.total)


def blocked_attention(
    Q, K, V, *, mask=None, causal=False, scale=None, bias=None, rows=128, columns=512
):
    """Compute what `scaled_dot_product_attention` does, without its matrix of scores.

    A block of queries meets one block of keys after the other, and keeps a `Partial`. At no time
    are there more than ``rows * columns`` scores, so beside the inputs and the output the memory
    does not depend on the length. The work does: it is that of the plain kernel. Here every step
    is written to be read; `fast_attention` does the same to be fast.

    Parameters
    ----------
    Q : (..., L_q, d_k) array
    K : (..., L_k, d_k) array
    V : (..., L_k, d_v) array
        As in `scaled_dot_product_attention`, dtypes too.
    mask : array of bool, optional
        Broadcastable to the scores, (..., L_q, L_k); True means *may look*.
    causal : bool, default False
        Also hide the future: the last query sees the last key. Blocks that lie wholly in the
        future are skipped.
    scale : float, optional
        What the scores are multiplied by; by default 1 / sqrt(d_k).
    bias : array of float, optional
        Broadcastable to the scores, and added to them after the scaling and before the masks.
    rows, columns : int
        How many queries and how many keys a block has, at least 1.

    Returns
    -------
    (..., L_q, d_v) array
        The output alone: the weights are what is not kept. A query that may see nothing gets
        zeros; what stands at a hidden position changes nothing, NaN included.

    Raises
    ------
    ValueError
        If shapes do not fit, a length, width or block is 0, the mask is not boolean, or the
        bias is boolean or holds an infinity.

    References
    ----------
    Rabe and Staats (2021); Dao et al. (2022).

    Examples
    --------
    >>> X = np.eye(3)
    >>> print(blocked_attention(X, X, X, causal=True, rows=2, columns=2).round(2))
    [[1.   0.   0.  ]
     [0.36 0.64 0.  ]
     [0.26 0.26 0.47]]
    """
    (Q, K, V), dtype = _as_floats(Q=Q, K=K, V=V)
    _require_matching(Q, K, V)
    rows, columns = _length("rows", rows), _length("columns", columns)
    L_q, L_k, d_v = Q.shape[-2], K.shape[-2], V.shape[-1]
    batch = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    scored = (*np.broadcast_shapes(Q.shape[:-2], K.shape[:-2]), L_q, L_k)
    mask = _seen(mask, False, scored)
    mask = None if mask is None else np.atleast_2d(mask)
    bias = None if bias is None else np.atleast_2d(_bias(bias, scored, Q.dtype))
    finite = np.isfinite(V)
    odd, V = (None, V) if finite.all() else (V, np.where(finite, V, 0))
    output = np.empty((*batch, L_q, d_v), dtype=dtype)
    for top in range(0, L_q, rows):
        block = slice(top, min(top + rows, L_q))
        so_far = nothing((*batch, block.stop - top), d_v, Q.dtype)
        unusual = None
        end = (
            min(L_k, block.stop + L_k - L_q) if _whether("causal", causal) else L_k
        )  # beyond it lies the future
        for left in range(0, end, columns):
            keys = slice(left, min(left + columns, end))
            seen = _cut(mask, causal, block, keys, L_k - L_q)
            part = partial_attention(
                Q[..., block, :], K[..., keys, :], V[..., keys, :], seen=seen, scale=scale,
                bias=None if bias is None else _tile(bias, block, keys),
            )  # fmt: skip
            so_far = merge(so_far, part)
            if odd is not None:
                unusual = _add(unusual, odd[..., keys, :], seen, part.total.shape[:-1])
        with np.errstate(invalid="ignore"):
            result = finish(so_far)
            output[..., block, :] = result if unusual is None else result + unusual
    return output


def ring_schedule(n):
    """List which block of keys and values each of n processes holds at each step of a ring.

    Parameters
    ----------
    n : int
        Number of processes, and of blocks.

    Returns
    -------
    (n, n) array of int
        Row s, column r: the block that process r works on at step s. It keeps its own block of
        queries all the time. After a step it hands its keys and values to process r + 1.

    Raises
    ------
    ValueError
        If n is not a whole number of at least 1.

    Examples
    --------
    >>> print(ring_schedule(3))
    [[0 1 2]
     [2 0 1]
     [1 2 0]]
    """
    n = _length("the number of processes", n)
    return (np.arange(n) - np.arange(n)[:, None]) % n


def ring_attention_in_turn(Q, K, V, n):
    """Play a ring of n processes in one: each owns a block of the sequence, and merges.

    It shows that the split is exact, and who needs what when. Nothing is sent anywhere.

    Parameters
    ----------
    Q, K, V : (L, d_k), (L, d_k) and (L, d_v) arrays
    n : int
        Number of processes, at most L.

    Returns
    -------
    (L, d_v) array

    Raises
    ------
    ValueError
        If shapes do not fit, or there are more processes than positions.

    Examples
    --------
    >>> print(ring_attention_in_turn(np.eye(2), np.eye(2), [[1.0], [1.0]], 2))
    [[1.]
     [1.]]
    """
    (Q, K, V), dtype = _as_floats(Q=Q, K=K, V=V)
    _require_matching(Q, K, V)
    schedule = ring_schedule(n)
    if n > min(len(Q), len(K)):
        raise ValueError(f"each process needs a position; got {n} processes, {len(Q)} positions")
    queries, keys, values = (np.array_split(X, n) for X in (Q, K, V))
    held = [nothing((len(block),), V.shape[-1], Q.dtype) for block in queries]
    for step in schedule:
        for rank, block in enumerate(step):
            part = partial_attention(queries[rank], keys[block], values[block])
            held[rank] = merge(held[rank], part)
    return np.concatenate([finish(partial) for partial in held]).astype(dtype, copy=False)


# ---------------------------------------------------------------------------------- helpers


def _cut(mask, causal, block, keys, offset):
    """Cut out of the masks what concerns one block, or None if all of it may be seen."""
    seen = None
    if causal and keys.stop - 1 > block.start + offset:  # the block's first query does not see all
        i, j = np.arange(block.start, block.stop), np.arange(keys.start, keys.stop)
        seen = j <= i[:, None] + offset
    if mask is None:
        return seen
    part = _tile(mask, block, keys)
    return part if seen is None else part & seen


def _tile(array, block, keys):
    """Cut a tile out of what broadcasts to the scores: an axis of one entry stays as it is."""
    return array[
        ...,
        block if array.shape[-2] > 1 else slice(None),
        keys if array.shape[-1] > 1 else slice(None),
    ]


def _add(unusual, V, seen, shape):
    """Collect what the visible infinities and NaN among the values make of each output."""
    seen = np.ones((1, 1), dtype=bool) if seen is None else seen
    seen = np.broadcast_to(seen, (*shape, V.shape[-2])).astype(V.dtype)
    for kind, value in ((np.isnan(V), np.nan), (np.isposinf(V), np.inf), (np.isneginf(V), -np.inf)):
        here = np.where(seen @ kind.astype(V.dtype) > 0, V.dtype.type(value), V.dtype.type(0))
        with np.errstate(invalid="ignore"):
            unusual = here if unusual is None else unusual + here
    return unusual
