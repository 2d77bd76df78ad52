"""Exact attention at the speed of the machine's matrix products, beside `blocked`, which explains.

The mathematics is that of `blocked_attention`: a tile of scores at a time, and the online softmax.
A *group* is some queries of one head, 64 as a rule; a *block*, the groups of one head or several
that are computed together; a *tile*, their scores with as many keys as fit; a *part*, the keys of
one product; a *turn*, the blocks that a thread takes at a time. What makes it fast:

- a tile is made, exponentiated and used in place, in memory that a thread keeps and that starts on
  a cache line, by products so small that OpenBLAS need not copy their factors first;
- it is stored transposed, a row a key, and so are its products with the values: keys are read as
  they lie, and both products fill the processor's vectors. Queries are transposed while they are
  scaled, the output while it is divided;
- several groups share a tile: each step is one call of numpy for all of them;
- a turn is prepared before any of it is computed. Only the thread that holds Python's global
  interpreter lock is in Python, and one that comes back from numpy meanwhile sleeps until it is
  woken, which takes longer than most steps here;
- without a bias, no maximum is taken if a few scores are small: the sums show in the end whether
  all were. If not, the turn is computed again, and later turns with the maximum, unless a bound
  from the longest query and key rules large scores out;
- the scale goes into the queries, once a block, and with it log2(e) where no maximum is taken and
  2^x is quicker than e^x;
- values have a column of ones beside them, so that a product of weights and values has the
  weights' total too (where queries are many: it is a copy); an output is divided once, at the end;
- with ``causal`` only as many keys are scored as the last query of a block sees, to a whole part,
  and only what lies past the diagonal is masked, if it can be after exp2, which is slow for -inf;
- threads take turns from one list, the longest first (`plan`), and each multiplies alone: numpy's
  own threads would get in their way, and are held at one through threadpoolctl (`sharing`).

With numba and SciPy installed a float32 block is one compiled function (`fused`), without coming
back to Python. Without any of the packages the result is the same, to the last digits.

Tried and not kept: totals from sums of their own where queries are many; products of twice the
rows; longer sums in one product, which lose digits where weights are equal; the bound for every
call, since the lengths of all rows take a twentieth of the time at a thousand positions;
eight groups a tile, some hundredths quicker from 2048 positions on, for twice the memory.
"""

import math
from collections import deque
from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from worked_examples import sharing  # for its lock, which a forked process replaces
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
from worked_examples.plan import TILE, Plan, planned
from worked_examples.sharing import (
    default_threads,
    one_blas_thread,
    part_of_a_call,
    space,
    together,
)

__all__ = ["fast_attention"]

FEW = 2**12  # scores of a head; below, sharing a tile is quicker than compiled blocks
MANY = 2**22  # queries of all heads; plans for more are long, and not kept
FUTURE = 2**23  # bytes; a larger mask of the future is not kept for the next tile
NO_MASK, NO_BIAS = np.empty((0, 0), dtype=bool), np.empty((0, 0), dtype=np.float32)


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
        How many queries a product takes, by default 64, or up to 192 where a block is compiled,
        and 1024 at most;
        and how many keys a tile has at most. A tile has one group of so many rows or several:
        with their products these have up to some three million numbers. Each thread holds one, and
        keeps each of its arrays of up to 8 MiB for its next call. Few columns, where keys are many,
        lose digits: sums are rounded once a tile. A compiled block makes no tile but begins a new
        sum every so many keys.
    fused : bool, optional
        Whether a float32 block is one compiled function; by default, if numba and SciPy are
        installed and a head has some thousand scores or more.

    Returns
    -------
    (..., L_q, d_v) array
        The output alone. A query that may see nothing gets zeros; what stands at a hidden
        position changes nothing, NaN included. With several threads and a few large scores the
        last digits may differ from call to call: it depends on who comes upon them when.

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
    if bias is not None:
        with np.errstate(over="ignore"):
            bias = _bias(bias, scored, Q.dtype)
    scale, causal = _scale(scale, Q.shape[-1]), _whether("causal", causal)

    # Who computes, and how many queries and keys make a product.
    if fused is None and L_q * L_k < FEW:
        fused = False
    with sharing.one_loads:
        compiled = fused_kernel(fused) if Q.dtype == np.float32 else None
    threads = default_threads(compiled) if threads is None else _length("threads", threads)
    leading = _broadcast(scored[:-2], V.shape[:-2])
    shapes = (L_q, Q.shape[-1]), K.shape[-2:], V.shape[-2:], (L_q, L_k), (L_q, L_k)
    heads = _heads(leading, shapes, (Q, K, V, mask, bias))
    make = planned if math.prod(heads) * L_q < MANY else planned.__wrapped__
    plan = make(
        heads, L_q, L_k, Q.shape[-1], d_v, bool(causal), threads,
        rows if rows is None else _length("rows", rows), _length("columns", columns),
        compiled is not None,
    )  # fmt: skip

    with part_of_a_call():
        # What the numbers allow.
        if not compiled and bias is None and _seem_small(Q, K, V, scale):
            small, in_range, prepare = True, True, _hopeful
            ufunc, factor = _ufunc(Q.dtype, scale)
        else:
            if compiled:
                Q, K, V, bias = (_aligned(X) for X in (Q, K, V, bias))
                K, V = _in_rows(K), _in_rows(V)
            small, factor, ufunc, in_range = _allowed(Q, K, V, bias, scale, compiled)
            prepare = partial(_one_by_one, partial(_fused, compiled.block)) if compiled else _turn
        if not in_range:
            prepare = _plainly
        elif not compiled and L_q >= 2 * plan.rows:
            V = _with_ones(V)  # each row is read once a block: for less it is not worth a copy

        output = np.empty((*heads, L_q, d_v), dtype=Q.dtype)
        shapes = *shapes[:2], V.shape[-2:], *shapes[3:]
        Q, K, V, mask, bias = (
            _view(X, leading, heads, shape)
            for X, shape in zip((Q, K, V, mask, bias), shapes, strict=True)
        )
        call = _Call(
            Q, K, V, mask, bias, output, plan, causal, scale, factor, small, ufunc, prepare, []
        )
        work = partial(_work, deque(plan.turns), call)
        if plan.alone:
            work()
        else:
            with one_blas_thread(compiled):
                together(work, min(threads, len(plan.turns)))
    return output.reshape(*leading, L_q, d_v).astype(dtype, copy=False)


class _Call(NamedTuple):
    """What every thread reads: arrays with one set of leading dimensions, and the settings."""

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    mask: np.ndarray | None
    bias: np.ndarray | None
    output: np.ndarray
    plan: Plan
    causal: bool
    scale: float
    factor: float  # what queries are multiplied by for the powers to be e^score
    small: bool  # no maximum is taken: scores are small, or hoped to be
    ufunc: np.ufunc  # exp or exp2
    prepare: Callable  # (turn, call) -> what computes the turn
    careful: list  # the call as all numbers allow, once sums were not those of small scores

    @property
    def values(self):
        """The values, without ones beside them."""
        return self.V[..., : self.output.shape[-1]]


def _work(todo, call):
    """Take turns from the list until it is empty."""
    try:
        while True:
            try:
                turn = todo.popleft()
            except IndexError:
                return
            call.prepare(turn, call)()
    except BaseException:
        todo.clear()  # no thread begins another
        raise


# ------------------------------------------------------------------------- a turn, by numpy


def _turn(turn, call):
    """Prepare blocks, whose groups have equally many queries: lay everything out in memory.

    The function that is returned computes them, and says if the sums are those of small scores.
    """
    rows, width = turn[0].rows, call.output.shape[-1] + 1
    sums = space("sums", (sum(math.prod(b.stack) for b in turn), width, rows), call.Q.dtype)
    computes, outputs, used = [], [], 0
    for block in turn:
        output = call.output[block.place]
        if not block.end:
            output[...] = 0
            continue
        first, used = used, used + math.prod(block.stack)
        summed = sums[first:used].reshape(*block.stack, width, rows)
        computes.append(_block(block, summed, call))
        output = output.reshape(*block.stack, rows, width - 1).swapaxes(-1, -2)
        outputs.append((summed[..., :-1, :], summed[..., -1:, :], output))
    sums, (_, least, tiny) = sums[:used], _limits(sums.dtype)
    totals = sums[:, -1]

    def compute():
        for one in computes:
            one()
        as_small = not used or bool(
            np.vdot(sums, sums) < np.inf and np.minimum.reduce(totals, axis=None) >= least
        )
        if not as_small:
            np.maximum(totals, tiny, out=totals)  # 0 / 0 is 0 here
        for averages, total, output in outputs:
            np.divide(averages, total, out=output)
        return as_small

    return compute


class _Tile(NamedTuple):
    """The scores of a block with some keys, and what belongs to them: views of memory."""

    scores: np.ndarray  # (heads, groups, keys, queries)
    parts: list  # of keys, scores, values and products
    bias: np.ndarray | None
    hide: list  # functions
    ones: np.ndarray  # (parts,); a product with them is quicker than a sum over an axis
    products: np.ndarray  # (heads, groups, parts, width * queries)
    added: np.ndarray  # (heads, groups, width, queries): their sum
    flat: np.ndarray  # the same, (heads, groups, width * queries)


def _block(block, summed, call):
    """Prepare one block: what computes its sums, a tile at a time."""
    stack, dtype, part, rows = block.stack, summed.dtype, call.plan.part, summed.shape[-1]
    end = min(-(-block.end // part) * part, call.K.shape[-2])  # whole parts: a rest takes time
    Q = call.Q[block.place].reshape(*stack, rows, -1).swapaxes(-1, -2)
    K, V = call.K[block.heads][:, None], call.V[block.heads][:, None].swapaxes(-1, -2)
    scaled = space("queries", Q.shape, dtype)
    tiles = []
    for left in range(0, end, call.plan.columns):
        keys = slice(left, min(left + call.plan.columns, end))
        n = keys.stop - left
        count = -(-n // part)
        scores = space("tile", (*stack, n, rows), dtype)
        products = space("products", (*stack, count, *summed.shape[-2:]), dtype)
        bias = call.bias
        if bias is not None:
            bias = bias[(*block.place, keys)].reshape(*stack, rows, n).swapaxes(-1, -2)
        added = space("added", summed.shape, dtype) if left else summed
        tiles.append(_Tile(
            scores, list(_in_parts(part, K[:, :, keys], scores, V[..., keys], products)), bias,
            list(_hidden(scores, block, keys, call)), _ones(count, dtype),
            products.reshape(*stack, count, -1), added, added.reshape(*stack, -1),
        ))  # fmt: skip

    def compute():
        np.multiply(Q, call.factor, out=scaled)
        queries, largest = scaled[:, :, None], None
        for tile in tiles:
            for k, s, _, _ in tile.parts:  # (n, d_k) @ (d_k, rows) -> (n, rows)
                np.matmul(k, queries, out=s)
            if tile.bias is not None:
                np.add(tile.scores, tile.bias, out=tile.scores)
            new = _powers(tile.scores, largest, call.ufunc, call.small, tile.hide)
            for _, s, v, p in tile.parts:  # (width, n) @ (n, rows) -> (width, rows)
                _weigh(s, v, p)
            np.matmul(tile.ones, tile.products, out=tile.flat)
            if tile.added is not summed:
                if largest is not None:
                    np.multiply(summed, call.ufunc(largest - new), out=summed)
                np.add(summed, tile.added, out=summed)
            largest = new

    return compute


def _in_parts(size, keys, tile, values, products):
    """Cut a tile and what belongs to it into parts of so many keys, and what is left: views."""
    n = tile.shape[-2]
    count, rest = divmod(n, size)
    if count:
        whole = n - rest
        yield (
            keys[..., :whole, :].reshape(*keys.shape[:-2], count, size, keys.shape[-1]),
            tile[..., :whole, :].reshape(*tile.shape[:-2], count, size, tile.shape[-1]),
            values[..., :whole].reshape(*values.shape[:-1], count, size).swapaxes(-2, -3),
            products[:, :, :count],
        )
    if rest:
        yield (
            keys[..., None, -rest:, :], tile[..., None, -rest:, :], values[..., None, :, -rest:],
            products[:, :, count:],
        )  # fmt: skip


def _powers(tile, largest, ufunc, small, hide):
    """Turn a tile of scores into powers, and give the largest so far where one is taken off."""
    if small:
        ufunc(tile, out=tile)
    for function in hide:  # after exp2, which takes eight times as long for -inf
        function()
    if small:
        return None
    new = tile.max(axis=-2, keepdims=True, initial=np.finfo(tile.dtype).min)
    if largest is not None:
        np.maximum(new, largest, out=new)
    tile -= new
    lowest = np.log(_limits(tile.dtype)[2]) + 16  # 16 for values that are small as well
    if not tile.min() >= lowest:  # subnormal numbers would slow products manyfold
        np.copyto(tile, -np.inf, where=tile < lowest)
    ufunc(tile, out=tile)
    return new


def _weigh(weights, values, output):
    """Average values with weights that are no shares yet; the last row is the weights' total."""
    if values.shape[-2] == output.shape[-2]:  # a row of ones among them
        np.matmul(values, weights, out=output)
    else:
        np.matmul(values, weights, out=output[..., :-1, :])
        output[..., -1, :] = _ones(weights.shape[-2], weights.dtype) @ weights


def _hidden(tile, block, keys, call):
    """Give functions that hide what queries may not see: powers become 0, scores -inf."""
    seen, value = block.sees, 0.0 if call.small else -np.inf
    if call.causal and keys.stop > seen:  # the diagonal passes through
        groups, rows = tile.shape[1], tile.shape[-1]
        size = rows * (2 * groups * rows + call.plan.part) * tile.itemsize
        make = _future if size <= FUTURE else _future.__wrapped__
        future = make(groups, rows, call.plan.part, tile.dtype, value)
        first = max(keys.start, seen)
        crossed = tile[:, :, first - keys.start :]
        # fmin replaces NaN as well. A product is quicker, and powers of small scores are no NaN; if
        # one is inf after all, NaN reaches the sums, and they tell.
        ufunc = np.fmin if value else np.multiply
        yield partial(ufunc, crossed, future[:, first - seen : keys.stop - seen], out=crossed)
    if call.mask is not None:
        by_query = tile.swapaxes(-1, -2)
        may_look = call.mask[(*block.place, keys)].reshape(by_query.shape)
        yield lambda: np.copyto(by_query, value, where=~may_look)


@lru_cache(4)
def _future(groups, rows, part, dtype, value):
    """Give an array that hides the future: by fmin (inf or -inf), or for value 0 by a product.

    It is (groups, keys, rows), and its first key is the first that a block's first query does not
    see. What one group sees, the next sees so many rows later: they share their memory, which
    stays near the processor.
    """
    size = groups * rows
    seen = np.tri(rows, 2 * size - rows + part, size - rows - 1, dtype=bool).T
    future = np.where(seen, np.inf if value else 1, value).astype(dtype, order="C")
    return sliding_window_view(future, (size + part, rows))[::rows, 0][::-1]


@lru_cache(256)
def _ones(n, dtype):
    return np.ones(n, dtype=dtype)


# ---------------------------------------------------------------- a turn, hoped to be simple


def _seem_small(Q, K, V, scale):
    """Say if a few scores are so small that all may be, and if a few values are not too small.

    Values must be as large that sums of small powers of them do not vanish.
    """
    Q, K, V = (
        X[tuple(slice(None, None, -(-n // 4) | 1) for n in X.shape[:-1])] for X in (Q, K, V)
    )  # odd steps: every second one may be like the others
    scores = Q @ K.swapaxes(-1, -2)
    score, least, _ = _limits(Q.dtype)
    few = (score / 5) ** 2 * scores.size  # seldom is a score five times their root mean square
    return bool(np.vdot(scores, scores) * (scale * scale) <= few and np.vdot(V, V) >= least**2)


def _hopeful(turn, call):
    """Prepare a turn as if no score were large, to do it again if its sums say that one was."""
    if call.careful:
        return call.careful[0].prepare(turn, call.careful[0])
    hoped = _turn(turn, call)

    def compute():
        if hoped():
            return
        if not call.careful:
            call.careful.append(_with_care(call))
        careful = call.careful[0]
        if not careful.small:  # else a query sees nothing, its total is 0, and all is right
            careful.prepare(turn, careful)()

    return compute


def _with_care(call):
    """Give the same call as all of its numbers allow."""
    numbers = call.Q, call.K, call.values, call.bias
    small, factor, ufunc, in_range = _allowed(*numbers, call.scale, None)
    prepare = _turn if in_range else _plainly
    return call._replace(small=small, factor=factor, ufunc=ufunc, prepare=prepare, careful=[])


# ---------------------------------------------------------------- a turn, by another kernel


def _one_by_one(compute, turn, call):
    """Prepare blocks that need no preparation."""
    return lambda: [compute(block, call) for block in turn]


def _fused(compute, block, call):
    """Compute one block of queries, of one head after another, by the compiled function."""
    *index, heads = block.heads
    plan, end = call.plan, block.end
    size = space_for(plan.rows, plan.part, call.Q.shape[-1], call.V.shape[-1])
    memory = space("block", (size,), call.Q.dtype)
    for head in range(heads.start, heads.stop):
        keys = (*index, head)
        rows = (*keys, block.queries)
        compute(
            call.Q[rows], call.K[keys], call.V[keys], call.output[rows],
            NO_MASK if call.mask is None else call.mask[rows],
            NO_BIAS if call.bias is None else call.bias[rows],
            memory, plan.part, plan.columns, block.sees if call.causal else end, end,
            call.factor, call.small,
        )  # fmt: skip


def _plain(block, call):
    """Compute one block by the plain kernel, where numbers could leave the range.

    It takes care of them, and time; and memory, were it not for a few heads and a group at a time.
    """
    *index, heads = block.heads
    first, stop = block.queries.start, block.queries.stop
    few = max(TILE // (call.plan.rows * max(block.end, 1)), 1)
    for at, top in product(range(heads.start, heads.stop, few), range(first, stop, call.plan.rows)):
        after = min(top + call.plan.rows, stop)
        last = block.sees + after - 1 - first if call.causal else block.end
        seen = slice(0, min(last, block.end))
        keys = (*index, slice(at, min(at + few, heads.stop)))
        place = (*keys, slice(top, after))
        if seen.stop <= 0:
            call.output[place] = 0
            continue
        call.output[place], _ = scaled_dot_product_attention(
            call.Q[place], call.K[keys][:, seen], call.values[keys][:, seen],
            mask=None if call.mask is None else call.mask[(*place, seen)],
            bias=None if call.bias is None else call.bias[(*place, seen)],
            causal=call.causal, scale=call.scale,
        )  # fmt: skip


_plainly = partial(_one_by_one, _plain)


# ----------------------------------------------------------------------------------- arrays


def _heads(leading, shapes, arrays):
    """Give the leading dimensions that are computed with: one axis, if arrays can be seen so."""
    if len(leading) < 2:
        return leading or (1,)
    for X, shape in zip(arrays, shapes, strict=True):
        if X is not None:
            X = np.broadcast_to(X, (*leading, *shape))
            axes = [axis for axis in zip(leading, X.strides, strict=False) if axis[0] != 1]
            if any(step != n * next_step for (_, step), (n, next_step) in pairwise(axes)):
                return leading
    return (math.prod(leading),)


def _view(X, leading, heads, shape):
    """Give an array, or None, with such leading dimensions: nothing is copied."""
    if X is None or X.shape == (*heads, *shape):
        return X
    return np.broadcast_to(X, (*leading, *shape)).reshape(*heads, *shape)


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
    copy = space("values", (*V.shape[:-1], V.shape[-1] + 1), V.dtype)
    copy[..., :-1] = V
    copy[..., -1] = 1
    return copy


# -------------------------------------------------------------------- what numbers allow


def _allowed(Q, K, V, bias, scale, compiled):
    """Say what the numbers allow, and what powers are made with.

    Gives whether no score can be large, what queries are multiplied by, exp or exp2, and whether
    all that is finite stays so.
    """
    Q, K, V = (_once(X) for X in (Q, K, V))
    query, key, value = (_longest(X, compiled) for X in (Q, K, V))
    small = bias is None and _are_small(scale * query * key, value, Q.dtype)
    ufunc, factor = _ufunc(Q.dtype, scale, small, compiled)
    in_range = (
        (math.isfinite(value) or np.isfinite(V).all())
        and abs(factor) < float(np.finfo(Q.dtype).max)
        and _stays_finite(V, V.shape[-2], value)
        and _stays_finite(Q, factor, query)
    )
    return small, Q.dtype.type(factor) if in_range else factor, ufunc, in_range


def _ufunc(dtype, scale, small=True, compiled=None):
    """Give exp2 or exp, and what queries are multiplied by for the powers to be e^score."""
    if small and (compiled or _has_quick_exp2(dtype)):
        return np.exp2, scale * math.log2(math.e)
    return np.exp, scale


def _are_small(score, value, dtype):
    """Say if powers of such scores need no maximum taken off, and their sums stay in range.

    NaN is not small.
    """
    most, least, _ = _limits(dtype)
    return abs(score) <= most and least <= value <= 1 / least


@cache
def _limits(dtype):
    """Give the largest small score, the least total of its powers, and the least normal number.

    A quarter of what exponents reach goes to the powers, a quarter to the values: as many terms as
    a third quarter holds may be summed.
    """
    most = math.log(min(float(np.finfo(dtype).max), np.finfo(float).max)) / 4  # of longdouble too
    return most, math.exp(-most), np.finfo(dtype).tiny


def _longest(X, compiled=None):
    """Give a bound of the longest vector's length: |q k| is at most the product of two of them.

    A square may be too small for its dtype, and is then short by no more than the least normal
    number.
    """
    if compiled and X.flags.c_contiguous:
        square = compiled.longest(X.reshape(-1, X.shape[-1]))
    else:
        square = np.einsum("...d,...d->...", X, X).max(initial=0)
    return math.sqrt(square + X.shape[-1] * np.finfo(X.dtype).tiny)


def _stays_finite(X, factor, longest):
    """Say if what is finite in X is so times a factor, and ask its numbers only if in doubt."""
    if abs(factor) * longest < float(np.finfo(X.dtype).max):
        return True
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
