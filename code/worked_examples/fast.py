"""Exact attention at the speed of the machine's matrix products, beside `blocked`, which explains.

The mathematics is that of `blocked_attention`: a tile of scores at a time, and the online softmax.
What makes it fast is what a tile does not do:

- it is small enough to stay in a core's own cache, and is made, exponentiated and used in place,
  in a buffer that a thread keeps;
- the scale goes into the queries, once a block; a row is divided by its total once, at the end;
- the row's total is a product with ones, which numpy does faster than a sum;
- with ``causal`` no tile of the future is made, and only those on the diagonal are masked;
- threads take blocks of queries from one list, the longest first, and each multiplies alone:
  numpy's own threads would get in their way, and are held at one through threadpoolctl.

With numba installed a tile's softmax is one pass (`fused`). Without either package the result is
the same, to the last digits.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import NamedTuple

import numpy as np

from worked_examples.attention import (
    _as_floats,
    _bias,
    _length,
    _require_matching,
    _scale,
    _seen,
    scaled_dot_product_attention,
)
from worked_examples.fused import fused_softmax

__all__ = ["fast_attention"]

TILE = 2**17  # scores; heads that have fewer share a tile
ALONE = 2**19  # scores; up to here threads would take longer to start than they save


def fast_attention(
    Q, K, V, *, mask=None, causal=False, scale=None, bias=None, threads=None, rows=256,
    columns=1024, fused=None,
):  # fmt: skip
    """Compute what `scaled_dot_product_attention` does, fast, and without its matrix of scores.

    Parameters
    ----------
    Q : (..., L_q, d_k) array
    K : (..., L_k, d_k) array
    V : (..., L_k, d_v) array
        As in `scaled_dot_product_attention`, dtypes too.
    mask : array of bool, optional
        Broadcastable to the scores, (..., L_q, L_k); True means *may look*. It is read a tile at
        a time, so a view made with ``numpy.broadcast_to`` is enough.
    causal : bool, default False
        Also hide the future: the last query sees the last key. Needs no mask in memory.
    scale : float, optional
        What the scores are multiplied by; by default 1 / sqrt(d_k).
    bias : array of float, optional
        Broadcastable to the scores, and added to them after the scaling and before the masks.
    threads : int, optional
        How many blocks are worked on at once; by default one a processor, where numpy's own
        threads can be held back, and otherwise one.
    rows, columns : int
        How many queries and how many keys a tile has. Each thread holds one tile.
    fused : bool, optional
        Whether a float32 tile's softmax is numba's one pass; by default, if numba is installed.

    Returns
    -------
    (..., L_q, d_v) array
        The output alone. A query that may see nothing gets zeros; what stands at a hidden
        position changes nothing, NaN included.

    Raises
    ------
    ValueError
        As `scaled_dot_product_attention`, and if threads, rows or columns are less than 1.
    ImportError
        If fused is true and numba is not installed.

    References
    ----------
    Dao et al. (2022), whose blocks these are; on a GPU the cache is the small fast memory.

    Examples
    --------
    >>> X = np.eye(3)
    >>> print(fast_attention(X, X, X, causal=True).round(2))
    [[1.   0.   0.  ]
     [0.36 0.64 0.  ]
     [0.26 0.26 0.47]]
    """
    (Q, K, V), dtype = _as_floats(Q=Q, K=K, V=V)
    _require_matching(Q, K, V)
    L_q, L_k = Q.shape[-2], K.shape[-2]
    scored = (*np.broadcast_shapes(Q.shape[:-2], K.shape[:-2]), L_q, L_k)
    mask = _seen(mask, False, scored)
    bias = None if bias is None else _bias(bias, scored, Q.dtype)
    rows, columns = min(_length("rows", rows), L_q), min(_length("columns", columns), L_k)
    threads = _default_threads() if threads is None else _length("threads", threads)
    leading = np.broadcast_shapes(scored[:-2], V.shape[:-2])
    *batch, h = leading or (1,)
    Q, K, V, mask, bias = (
        None if X is None else np.broadcast_to(X, (*batch, h, *shape))  # views, nothing is copied
        for X, shape in (
            (Q, (L_q, Q.shape[-1])), (K, K.shape[-2:]), (V, V.shape[-2:]),
            (mask, (L_q, L_k)), (bias, (L_q, L_k)),
        )
    )  # fmt: skip
    output = np.empty((*batch, h, L_q, V.shape[-1]), dtype=dtype)
    heads = min(h, max(1, TILE // (rows * columns)))
    softmax = fused_softmax(fused) if Q.dtype == np.float32 else None
    call = _Call(
        Q, K, V, mask, bias, output, rows, columns, heads, causal,
        _scale(scale, Q.shape[-1]), softmax or _softmax, bool(np.isfinite(V).all()),
    )  # fmt: skip
    todo = deque(
        (*index, slice(first, first + heads), slice(top, top + rows))
        for top in range(0, L_q, rows)[::-1]  # with `causal` the last block is the longest
        for index in np.ndindex(*batch)
        for first in range(0, h, heads)
    )
    if output[..., 0].size * L_k <= ALONE:
        _work(todo, call)
    else:
        _share(todo, call, min(threads, len(todo)))
    return output.reshape(*leading, L_q, V.shape[-1])


class _Call(NamedTuple):
    """What every thread reads: arrays with one set of leading dimensions, and the settings."""

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    mask: np.ndarray | None
    bias: np.ndarray | None
    output: np.ndarray
    rows: int
    columns: int
    heads: int
    causal: bool
    scale: float
    softmax: Callable
    finite: bool


def _share(todo, call, threads):
    """Let so many threads, this one among them, take blocks from the list until it is empty."""
    with _one_blas_thread(), ThreadPoolExecutor(threads) as pool:  # it starts none unasked
        others = [pool.submit(_work, todo, call) for _ in range(threads - 1)]
        try:
            _work(todo, call)
        finally:
            todo.clear()  # after an error nobody starts another block
        for other in others:
            other.result()


def _work(todo, call):
    """Take blocks from the list until it is empty, all of them in the same buffers."""
    dtype, rows, d_v = call.Q.dtype, call.heads * call.rows, call.V.shape[-1]
    buffers = [np.empty(rows * width, dtype=dtype) for width in (call.columns, d_v, d_v)]
    ones = np.ones((call.columns, 1), dtype=dtype)
    # The least of this and the scores hides the future, and a NaN there too.
    future = np.where(np.tri(call.rows, dtype=bool), np.inf, -np.inf).astype(dtype)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        while True:
            try:
                block = todo.popleft()
            except IndexError:
                return
            _block(block, call, buffers, ones, future)


def _block(block, call, buffers, ones, future):
    """Compute the output of one block of queries, a tile of scores at a time."""
    Q, K, V, dtype = call.Q[block], call.K[block[:-1]], call.V[block[:-1]], call.Q.dtype
    Q = Q * dtype.type(call.scale)  # (heads, rows, d_k)
    (heads, rows, _), L_k, d_v = Q.shape, K.shape[-2], V.shape[-1]
    seen = block[-1].start + L_k - call.Q.shape[-2] + 1  # how many keys the first query may see
    end = seen + rows - 1 if call.causal else L_k
    if not call.finite:
        return _plain(block, call, slice(0, max(end, 0)))
    largest = np.full((heads, rows, 1), np.finfo(dtype).min, dtype=dtype)
    total = np.zeros((heads, rows, 1), dtype=dtype)
    product, summed = (X[: heads * rows * d_v].reshape(heads, rows, d_v) for X in buffers[1:])
    if end <= 0:
        summed[:] = 0
    for left in range(0, end, call.columns):
        keys = slice(left, min(left + call.columns, end))
        n = keys.stop - left
        tile = buffers[0][: heads * rows * n].reshape(heads, rows, n)
        np.matmul(Q, np.swapaxes(K[:, keys], -1, -2), out=tile)
        if call.bias is not None:
            tile += call.bias[(*block, keys)]
        if call.causal and keys.stop > seen:  # the diagonal passes through
            first = max(left, seen)
            part = tile[..., first - left :]
            np.fmin(part, future[:rows, first - seen + 1 : keys.stop - seen + 1], out=part)
        if call.mask is not None:
            np.copyto(tile, -np.inf, where=~call.mask[(*block, keys)])
        shrink = call.softmax(tile, largest, total, ones)
        if left:
            summed *= shrink
            summed += np.matmul(tile, V[:, keys], out=product)
        else:
            np.matmul(tile, V[:, keys], out=summed)
    call.output[block] = np.divide(summed, np.where(total == 0, 1, total), out=summed)


def _plain(block, call, keys):
    """Compute a block as the plain kernel does: its care for values such as NaN takes time."""
    call.output[block] = 0
    if keys.stop:
        call.output[block], _ = scaled_dot_product_attention(
            call.Q[block], call.K[block[:-1]][:, keys], call.V[block[:-1]][:, keys],
            mask=None if call.mask is None else call.mask[(*block, keys)],
            bias=None if call.bias is None else call.bias[(*block, keys)],
            causal=call.causal, scale=call.scale,
        )  # fmt: skip


def _softmax(s, largest, total, ones):
    """Turn a tile of scores into powers, carry on each row's two numbers, and say the factor."""
    new = np.maximum(s.max(axis=-1, keepdims=True), largest)
    s -= new
    np.exp(s, out=s)
    shrink = np.exp(largest - new)
    largest[:] = new
    total *= shrink
    total += s @ ones[: s.shape[-1]]
    return shrink


# ---------------------------------------------------------------------------------- threads


def _default_threads():
    if _blas() is None:
        return 1
    here = getattr(os, "sched_getaffinity", None)
    return len(here(0)) if here else os.cpu_count() or 1


@cache
def _blas():
    """Give threadpoolctl's hold on numpy's matrix products, or None: finding it takes long."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas")


_turn = threading.Lock()


@contextmanager
def _one_blas_thread():
    """Hold numpy's products at one thread each; the setting is one for all, so calls take turns."""
    with _turn, nullcontext() if _blas() is None else _blas().limit(limits=1):
        yield
