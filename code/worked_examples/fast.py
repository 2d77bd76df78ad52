"""Exact attention at the speed of the machine's matrix products, beside `blocked`, which explains.

The mathematics is that of `blocked_attention`: a tile of scores at a time, and the online softmax.
What makes it fast is what is done with a tile:

- it is made, exponentiated and used in place, in memory that a thread keeps and that starts on a
  line of the cache, by products so small that OpenBLAS need not copy their factors first;
- it stands on its side, a row a key, so that keys are read as they lie;
- several groups of rows, and short heads, share it: each step is one call of numpy for all of them,
  and between two calls a thread may have to wait for another;
- no maximum is looked for where queries and keys are too short for a large score;
- the scale goes into the queries, once a block, and with it log2(e): 2^x is quicker than e^x;
- values have a column of ones beside them, so that a product of weights and values has the
  weights' total too (where queries are many: it is a copy); an output is divided once, at the end;
- with ``causal`` only as many keys are scored as the last query of a block sees, to a whole part,
  and only what lies past the diagonal is masked, if it can be after exp2, which is slow for -inf;
- threads take blocks of queries from one list, the longest first, and each multiplies alone:
  numpy's own threads would get in their way, and are held at one through threadpoolctl.

With numba and SciPy installed a float32 block is one compiled function (`fused`), without coming
back to Python. Without any of the packages the result is the same, to the last digits.

Tried and not kept: a copy of the keys on its side, which is as quick to multiply but takes its time
to make; totals from sums of their own where queries are many; products of twice the rows; longer
sums in one product, which lose digits where weights are equal.
"""

import math
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np

from worked_examples.attention import (
    _as_floats,
    _bias,
    _broadcast,
    _length,
    _require_matching,
    _scale,
    _seen,
    _whether,
    scaled_dot_product_attention,
)
from worked_examples.fused import fused_kernel, space_for

__all__ = ["fast_attention"]

TILE = 3_400_000  # scores, and numbers of their products; who has fewer shares a tile
ROWS, ROWS_FUSED = 64, 192  # queries of a product; of a compiled block, at most
GROUPS = 4  # of rows that share a tile; with `causal` each computes what the last may see
ALONE = 2**18  # scores; up to here threads would take longer to start than they save
ALONE_FUSED = 2**17  # the same where they need not wait for each other
TURN = 2**19  # scores; heads that have fewer share a compiled block
FEW = 2**12  # scores of a head; below, sharing a tile is quicker than compiled blocks
PRODUCT = 10**6  # multiply-adds; OpenBLAS copies the factors of more (on processors with AVX-512)
LINE = 64  # bytes; a vector of AVX-512, and a line of nearly every processor's cache
KEPT = 2**23  # bytes; a thread keeps no array for its next call that is larger
NO_MASK, NO_BIAS = np.empty((0, 0), dtype=bool), np.empty((0, 0), dtype=np.float32)
PART = 128  # keys; longer sums would be rounded too often for the last digits


def fast_attention(
    Q, K, V, *, mask=None, causal=False, scale=None, bias=None, threads=None, rows=None,
    columns=2304, fused=None,
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
        How many blocks are worked on at once, at most; by default one a processor, where numpy's
        own threads can be held back, and otherwise one.
    rows, columns : int
        How many queries a product takes, by default 64, or up to 192 where a block is compiled;
        and how many keys a tile has at most. A tile has one group of so many rows or several:
        with their products these have up to some three million numbers. Each thread holds one, and
        keeps what has up to 8 MiB for its next call. Few columns, where keys are many, lose
        digits: sums are rounded once a tile. A compiled block makes no tile but begins a new sum
        every so many keys.
    fused : bool, optional
        Whether a float32 block is one compiled function; by default, if numba and SciPy are
        installed and a head has some thousand scores or more.

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
        If fused is true, inputs are float32, and numba or SciPy is not installed.

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
    L_q, L_k, d_v = Q.shape[-2], *V.shape[-2:]
    scored = (*_broadcast(Q.shape[:-2], K.shape[:-2]), L_q, L_k)
    mask = _seen(mask, False, scored)
    with np.errstate(over="ignore"):
        bias = None if bias is None else _bias(bias, scored, Q.dtype)
    scale, causal = _scale(scale, Q.shape[-1]), _whether("causal", causal)

    # Who computes, and how many queries and keys make a product.
    if fused is None and L_q * L_k < FEW:
        fused = False
    with _first:
        compiled = fused_kernel(fused) if Q.dtype == np.float32 else None
    threads = _default_threads(compiled) if threads is None else _length("threads", threads)
    leading = _broadcast(scored[:-2], V.shape[:-2])
    heads = math.prod(leading)
    alone = heads * L_q * L_k // (1 + causal) <= (ALONE_FUSED if compiled else ALONE)
    threads = 1 if alone else threads
    if rows is None:
        rows = _fair(L_q, heads, threads) if compiled else ROWS
    rows, columns = min(_length("rows", rows), L_q), min(_length("columns", columns), L_k)
    part = PRODUCT // (rows * max(Q.shape[-1], V.shape[-1] + 1)) // 16 * 16
    part = min(max(part, 16), PART, columns)
    if not compiled:
        part = _without_rest(part, L_k)
        columns = min(columns, TILE // (rows * (part + V.shape[-1] + 1)) * part)
    columns = max(columns // part, 1) * part

    # What the numbers allow.
    if compiled:
        Q, K, V, bias = (_aligned(X) for X in (Q, K, V, bias))
        K, V = _in_rows(K), _in_rows(V)
    small, factor, ufunc, in_range = _allowed(Q, K, V, bias, scale, compiled)
    compute = partial(_fused_block, compiled.block) if compiled else _block
    compute = compute if in_range else _plain

    with _memory_of_a_call():
        if compute is _block and L_q >= 2 * rows:
            V = _with_ones(V)  # each row is read once a block: for less it is not worth a copy
        full = leading or (1,)
        output = np.empty((*full, L_q, d_v), dtype=Q.dtype)
        Q, K, V, mask, bias = (
            _view(X, (*full, *shape))
            for X, shape in (
                (Q, (L_q, Q.shape[-1])), (K, K.shape[-2:]), (V, V.shape[-2:]),
                (mask, (L_q, L_k)), (bias, (L_q, L_k)),
            )
        )  # fmt: skip
        call = _Call(
            Q, K, V, mask, bias, output, rows, columns, part, causal, scale, factor, small, ufunc,
            compute,
        )  # fmt: skip
        todo = _blocks(call, threads)
        if alone:
            _work(todo, call)
        else:
            _share(todo, call, min(threads, len(todo)), compiled)
    return output.reshape(*leading, L_q, d_v).astype(dtype, copy=False)


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
    part: int
    causal: bool
    scale: float
    factor: float  # what queries are multiplied by for the powers to be e^score
    small: bool  # no score can be large
    ufunc: np.ufunc  # exp or exp2
    compute: Callable  # what is done with a block

    def sees(self, query):
        """How many keys a query may see with ``causal``; less than 1 is none."""
        return query + self.K.shape[-2] - self.Q.shape[-2] + 1

    def end(self, queries):
        """How many keys are of use to a block of queries."""
        L_k = self.K.shape[-2]
        return min(max(self.sees(queries.stop - 1), 0), L_k) if self.causal else L_k


def _fair(L_q, heads, threads):
    """Give so many rows to a compiled block that every thread has as many blocks."""
    least = -(-L_q // ROWS_FUSED)
    every = range(least, least + threads)
    blocks = next((n for n in every if n * heads % threads == 0), least)
    return -(-L_q // (16 * blocks)) * 16


def _without_rest(most, L_k):
    """Give `most` keys, or down to half as many if L_k is a multiple of those, and they of 4."""
    return next((n for n in (most, *range(most // 4 * 4, most // 2, -4)) if L_k % n == 0), most)


def _blocks(call, threads):
    """List what threads take: the queries of some heads, each with its place in the arrays.

    With ``causal`` the last queries are the longest to compute, and come first.
    """
    *batch, h, L_q, _ = call.output.shape
    groups, heads = _stacked(call, threads)
    return deque(
        (*index, slice(first, first + heads), queries)
        for queries in _cut(L_q, call.rows, groups)
        for index in product(*map(range, batch))
        for first in range(0, h, heads)
    )


def _stacked(call, threads):
    """Say how many groups of rows, and of how many heads, make a block.

    As many as fit into a tile of numpy's, but no more than a thread's fair share; half of that with
    ``causal``, where one block is longer than another. A compiled block has one group: of heads it
    takes as many as are worth a turn.
    """
    *batch, h, L_q, d_v = call.output.shape
    keys = min(call.K.shape[-2], call.columns)
    if call.compute is _block:
        most, fit = GROUPS, TILE // (call.rows * (keys + keys // call.part * (d_v + 1)))
    else:
        most, fit = 1, TURN // (call.rows * keys)
    fit = max(1, fit)
    whole, turns = L_q // call.rows, threads * (1 + call.causal)
    stacks = math.prod((*batch, h, whole))
    blocks = max(-(-stacks // (turns * min(fit, most))), 1) * turns  # as many for every thread
    groups = min(whole, max(-(-stacks // blocks), 1))
    heads = max(1, min(h, fit // groups, stacks // turns // groups))
    return groups, -(-h // -(-h // heads)) if h else 1  # of 8 heads not 5 and 3, but 4 and 4


def _cut(L_q, rows, groups):
    """Cut the queries into blocks of so many groups of rows, the last first, and what is left."""
    whole = L_q // rows * rows
    size = groups * rows
    yield from (slice(top, min(top + size, whole)) for top in range(0, whole, size)[::-1])
    if whole < L_q:
        yield slice(whole, L_q)


def _share(todo, call, threads, compiled=None):
    """Let so many threads, this one among them, take blocks from the list until it is empty."""
    with _one_blas_thread(compiled):
        others = []
        with suppress(RuntimeError):  # while Python ends, no thread starts any more
            for _ in range(threads - 1):
                others.append(_pool().submit(_work, todo, call))
        try:
            _work(todo, call)
        finally:
            todo.clear()  # after an error nobody starts another block
            for other in others:
                other.exception()  # waits
        for other in others:
            other.result()


def _work(todo, call):
    """Take blocks from the list until it is empty."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        while True:
            try:
                block = todo.popleft()
            except IndexError:
                return
            call.compute(block, call)


def _block(block, call):
    """Compute the output of one block of queries with numpy, a tile of scores at a time."""
    queries, end, dtype = block[-1], call.end(block[-1]), call.Q.dtype
    if not end:
        call.output[block] = 0
        return
    end = min(-(-end // call.part) * call.part, call.K.shape[-2])  # whole parts: a rest takes time
    K, V, Q = call.K[block[:-1]][:, None], call.V[block[:-1]][:, None], call.Q[block]
    rows, width = min(call.rows, queries.stop - queries.start), call.output.shape[-1] + 1
    Q = Q.reshape(len(Q), -1, rows, Q.shape[-1]).swapaxes(-1, -2)
    Q = np.multiply(Q, call.factor, out=_space("queries", Q.shape, dtype))
    stack, largest, summed = Q.shape[:2], None, None  # (heads, groups)
    for left in range(0, end, call.columns):
        keys = slice(left, min(left + call.columns, end))
        tile = _space("tile", (*stack, keys.stop - left, rows), dtype)
        parts = list(_in_parts(call.part, K[:, :, keys], tile, V[:, :, keys]))
        for k, s, _ in parts:  # (n, d_k) @ (d_k, rows) -> (n, rows)
            np.matmul(k, Q[:, :, None], out=s)
        if call.bias is not None:
            by_query = tile.swapaxes(-1, -2)
            by_query += call.bias[(*block, keys)].reshape(by_query.shape)
        new = _powers(
            tile, largest, call.ufunc, call.small, partial(_hide, tile, block, keys, call)
        )
        count = sum(s.shape[2] for _, s, _ in parts)
        products, done = _space("products", (*stack, count, rows, width), dtype), 0
        for _, s, v in parts:  # (rows, n) @ (n, width) -> (rows, width)
            here = products[:, :, done : (done := done + s.shape[2])]
            _weigh(s.swapaxes(-1, -2), v, here)
        # A product with ones is quicker than a sum over an axis.
        together = _ones(count, dtype) @ products.reshape(*stack, count, -1)
        together = together.reshape(*stack, rows, width)
        if summed is not None:
            if largest is not None:
                summed *= call.ufunc(largest - new).swapaxes(-1, -2)
            together += summed
        largest, summed = new, together
    total = np.maximum(summed[..., -1:], np.finfo(dtype).tiny)  # 0 / 0 is 0 here
    np.divide(summed[..., :-1], total, out=call.output[block].reshape(*stack, rows, -1))


def _powers(tile, largest, ufunc, small, hide):
    """Turn a tile of scores into powers, and give the largest so far where one is taken off."""
    if small:
        ufunc(tile, out=tile)
        hide(0.0)  # not before: exp2 of -inf takes eight times as long
        return None
    hide(-np.inf)
    new = tile.max(axis=-2, keepdims=True, initial=np.finfo(tile.dtype).min)
    if largest is not None:
        np.maximum(new, largest, out=new)
    tile -= new
    ufunc(tile, out=tile)
    return new


def _weigh(weights, values, output):
    """Average values with weights that are no shares yet; the last column is the weights' total."""
    if values.shape[-1] == output.shape[-1]:  # a column of ones among them
        np.matmul(weights, values, out=output)
    else:
        np.matmul(weights, values, out=output[..., :-1])
        output[..., -1] = weights @ _ones(weights.shape[-1], weights.dtype)


def _hide(tile, block, keys, call, value):
    """Set what a query may not see to a value no larger than any in the tile."""
    queries = block[-1]
    seen = call.sees(queries.start)
    groups, rows = tile.shape[1], tile.shape[-1]
    if call.causal and keys.stop > seen:  # the diagonal passes through
        first = max(keys.start, seen)
        part = tile[:, :, first - keys.start :]
        size = groups * rows * (groups * rows + call.part) * tile.itemsize
        make = _future if size <= KEPT else _future.__wrapped__
        future = make(groups, rows, call.part, tile.dtype, value)
        future = future[:, first - seen + 1 : keys.stop - seen + 1]
        # fmin replaces NaN as well; a product is quicker, and powers of small scores are no NaN.
        (np.fmin if value else np.multiply)(part, future, out=part)
    if call.mask is not None:
        by_query = tile.swapaxes(-1, -2)
        allowed = call.mask[(*block, keys)].reshape(by_query.shape)
        np.copyto(by_query, value, where=~allowed)


@lru_cache(4)
def _future(groups, rows, more, dtype, value):
    """Give what hides the future: the least of it and a tile, or for 0 their product.

    A row is a key, of as many as there are queries and some more.
    """
    size = groups * rows
    seen = np.tri(size, size + more, dtype=bool).T.reshape(-1, groups, rows).swapaxes(0, 1)
    return np.where(seen, np.inf if value else 1, value).astype(dtype)


def _in_parts(size, *arrays):
    """Cut (..., n, width) arrays into (..., n // size, size, width) and what is left: views."""
    n = arrays[0].shape[-2]
    whole = n - n % size
    if whole:
        yield [X[..., :whole, :].reshape(*X.shape[:-2], -1, size, X.shape[-1]) for X in arrays]
    if whole < n:
        yield [X[..., None, whole:, :] for X in arrays]


def _fused_block(compute, block, call):
    """Compute one block of queries, of one head after another, by the compiled function."""
    *index, heads, queries = block
    top, end = queries.start, call.end(queries)
    size = space_for(call.rows, call.part, call.Q.shape[-1], call.V.shape[-1])
    space = _space("block", (size,), call.Q.dtype)
    for head in range(call.Q.shape[-3])[heads]:
        rows, keys = (*index, head, queries), (*index, head)
        compute(
            call.Q[rows], call.K[keys], call.V[keys], call.output[rows],
            NO_MASK if call.mask is None else call.mask[rows],
            NO_BIAS if call.bias is None else call.bias[rows],
            space, call.part, call.columns, call.sees(top) if call.causal else end, end,
            call.factor, call.small,
        )  # fmt: skip


def _plain(block, call):
    """Compute a block as the plain kernel does: its care for values such as NaN takes time."""
    keys = slice(0, call.end(block[-1]))
    call.output[block] = 0
    if keys.stop:
        call.output[block], _ = scaled_dot_product_attention(
            call.Q[block], call.K[block[:-1]][:, keys], call.V[block[:-1]][:, keys],
            mask=None if call.mask is None else call.mask[(*block, keys)],
            bias=None if call.bias is None else call.bias[(*block, keys)],
            causal=call.causal, scale=call.scale,
        )  # fmt: skip


# ----------------------------------------------------------------------------------- memory


class _Held(threading.local):
    """A thread's memory by name, kept for its next call: new memory costs a fault a page."""

    def __init__(self):
        self.by_name, self.calls = {}, 0


_held = _Held()


@contextmanager
def _memory_of_a_call():
    """Mark that this thread's memory is in use: a call within, as of a signal's, takes its own."""
    _held.calls += 1
    try:
        yield
    finally:
        _held.calls -= 1


def _space(name, shape, dtype):
    """Give this thread's memory of a name as an array, whatever it held."""
    size = math.prod(shape)
    if _held.calls > 1:
        return _on_a_line(size, dtype).reshape(shape)
    array = _held.by_name.get((name, dtype))
    if array is None or len(array) < size:
        array = _on_a_line(size, dtype)
        if array.nbytes <= KEPT:
            _held.by_name[name, dtype] = array
    return array[:size].reshape(shape)


def _on_a_line(size, dtype):
    """Make an empty array that starts where a line of the processor's cache does."""
    array = np.empty(size + LINE // dtype.itemsize, dtype=dtype)
    first = -array.ctypes.data % LINE // dtype.itemsize
    return array[first : first + size]


def _view(X, shape):
    """Give an array, or None, in another shape: nothing is copied."""
    return X if X is None or X.shape == shape else np.broadcast_to(X, shape)


def _aligned(X):
    """Give an array, or None, whose numbers lie at addresses that are multiples of their size."""
    return X if X is None or X.flags.aligned else _copied(X)


def _in_rows(X):
    """Give the same matrices with their numbers in rows without gaps, copied if they had any."""
    gaps = X.strides[-2:] != (X.shape[-1] * X.itemsize, X.itemsize)
    return _copied(X) if gaps else X


def _copied(X):
    """Give the same matrices, copied in rows without gaps; those that lie at one place, once."""
    return np.broadcast_to(_once(X).copy(), X.shape)


def _once(X):
    """Give each matrix once of those that lie at one place: the axis stays, with one entry."""
    return X[tuple(slice(None if step else 1) for step in X.strides[:-2])]


def _with_ones(V):
    """Give values with a column of ones beside them: their sum is the total of the weights."""
    V = _once(V)
    copy = _space("values", (*V.shape[:-1], V.shape[-1] + 1), V.dtype)
    copy[..., :-1] = V
    copy[..., -1] = 1
    return copy


# ---------------------------------------------------------------------------------- softmax


def _allowed(Q, K, V, bias, scale, compiled):
    """Say what the numbers allow, and what powers are made with.

    Gives whether no score can be large, what queries are multiplied by, exp or exp2, and whether
    all that is finite stays so.
    """
    query, key, value = (_longest(X, compiled) for X in (Q, K, V))
    small = bias is None and _are_small(scale * query * key, value, Q.dtype)
    ufunc = np.exp2 if small and (compiled or _has_quick_exp2(Q.dtype)) else np.exp
    factor = scale * (math.log2(math.e) if ufunc is np.exp2 else 1)
    in_range = (
        (math.isfinite(value) or np.isfinite(V).all())
        and abs(factor) < float(np.finfo(Q.dtype).max)
        and _stays_finite(V, V.shape[-2], value)
        and _stays_finite(Q, factor, query)
    )
    return small, Q.dtype.type(factor) if in_range else factor, ufunc, in_range


@lru_cache(256)
def _ones(n, dtype):
    return np.ones(n, dtype=dtype)


def _are_small(score, value, dtype):
    """Say if powers of such scores need no maximum taken off, and their sums stay in range.

    A quarter of what exponents reach goes to the powers, a quarter to the values: as many terms
    as a third quarter holds may be summed. NaN is not small.
    """
    limit = math.log(min(float(np.finfo(dtype).max), np.finfo(float).max)) / 4  # of longdouble too
    return abs(score) <= limit and math.exp(-limit) <= value <= math.exp(limit)


def _longest(X, compiled=None):
    """Give a bound of the longest vector's length: |q k| is at most the product of two of them.

    A square may be too small for its dtype, and is then short by no more than the least number.
    """
    if compiled and X.flags.c_contiguous:
        square = compiled.longest(X.reshape(-1, X.shape[-1]))
    else:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            square = np.einsum("...d,...d->...", X, X).max(initial=0)
    return math.sqrt(square + X.shape[-1] * np.finfo(X.dtype).tiny)


def _stays_finite(X, factor, longest):
    """Say if what is finite in X is so times a factor, and ask its numbers only if in doubt."""
    if abs(factor) * longest < float(np.finfo(X.dtype).max):
        return True
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return not (np.isfinite(X) & ~np.isfinite(X * X.dtype.type(factor))).any()


@cache
def _has_quick_exp2(dtype):
    """Say if this processor's vectors are as wide in numpy's exp2 as in its exp: by far not all."""
    try:
        found = np.lib.introspect.opt_func_info("^exp2?$", dtype.name)
    except AttributeError:  # numpy before 2.1 does not say
        return False
    widths = {loop["current"] for loops in found.values() for loop in loops.values()}
    return len(found) == 2 and len(widths) == 1


# ---------------------------------------------------------------------------------- threads


def _default_threads(compiled=None):
    with _first:
        if _blas(compiled) is None:
            return 1
    here = getattr(os, "sched_getaffinity", None)
    return len(here(0)) if here else os.cpu_count() or 1


@cache
def _blas(compiled=None):
    """Give the libraries of matrix products that threadpoolctl knows, or None without it.

    Finding them takes long; so does its own limit, which looks at each of them again.

    The compiled function's are another library's, which is not there before.
    """
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas").lib_controllers


@cache
def _pool():
    """Give the threads, which stay: starting them takes as long as attention over 256 positions."""
    return ThreadPoolExecutor(thread_name_prefix="attention")


_turn = threading.RLock()  # a call within a call goes on
# Compiling, and looking for libraries, each hold a lock of the system's while Python waits for its
# own: two threads that did both at a time could wait for each other for ever.
_first = threading.RLock()


@contextmanager
def _one_blas_thread(compiled=None):
    """Hold matrix products at one thread each; the setting is one for all, so calls take turns."""
    with _first:
        libraries = _blas(compiled)
    with _turn:
        before = [(library, library.get_num_threads()) for library in libraries or ()]
        try:
            for library, count in before:
                if count != 1:
                    library.set_num_threads(1)
            yield
        finally:
            for library, count in before:
                if count != 1:
                    library.set_num_threads(count)


def _start_anew():
    """Forget in a forked process what only its parent has: threads, and who holds a lock."""
    global _turn, _first
    _turn, _first = threading.RLock(), threading.RLock()
    _held.calls = 0
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    # A fork waits for who compiles: the compiler's own lock would stay locked in the child.
    os.register_at_fork(
        before=lambda: _first.acquire(),
        after_in_parent=lambda: _first.release(),
        after_in_child=_start_anew,
    )
