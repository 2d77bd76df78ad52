"""A block of the fast kernel in one compiled function, where numba and SciPy are installed.

numpy comes back to Python after every product and every pass over the scores, and only one thread
may be in Python at a time. Here a thread computes a block of queries from its first key to its last
without coming back, so the scores of a few keys are made, exponentiated and used while they lie in
the nearest cache. numba compiles it; the products are those of SciPy's BLAS.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

__all__ = ["Fused", "fused_kernel", "space_for"]


class Fused(NamedTuple):
    """Compiled functions of float32 arrays; matrices are contiguous but for Q, seen and bias.

    Attributes
    ----------
    block : callable
        ``block(Q, K, V, output, seen, bias, space, part, columns, sees, end, factor, small)``:
        attention of the queries, (n, d_k), over the first `end` of the keys, written to the
        output, (n, d_v). `seen` and `bias` are (n, L_k), or have no element. `space` is memory of
        ``space_for(n, part, d_k, d_v)`` numbers. Scores are made for `part` keys at a time, and
        sums begun anew every `columns` keys. The first query sees the first `sees` keys, each
        next query one more. Queries are multiplied by `factor`; with `small` no maximum is taken
        off, and powers are those of 2.
    small_powers, powers : callable
        ``small_powers(scores, total)`` and ``powers(scores, total, largest, shrink)``: what is
        done with the scores of some keys, (keys, n), in place.
    longest : callable
        The square of the length of a matrix's longest row; NaN if an entry is no finite number.
    """

    block: Callable
    small_powers: Callable
    powers: Callable
    longest: Callable


def fused_kernel(wanted=None):
    """Give the compiled functions; the first call compiles, for some seconds.

    Parameters
    ----------
    wanted : bool, optional
        True: they must be there. False: they are not asked for. By default, if numba and SciPy
        are installed.

    Returns
    -------
    Fused or None

    Raises
    ------
    ImportError
        If they must be there and a package is not.

    Examples
    --------
    >>> fused_kernel(False) is None
    True
    """
    if wanted is not None and not wanted:
        return None
    try:
        return _compiled()
    except ImportError:
        if wanted:
            raise
        return None


def space_for(n, part, d_k, d_v):
    """Count the numbers that a block of n queries keeps while it is computed.

    Parameters
    ----------
    n, part, d_k, d_v : int

    Returns
    -------
    int

    Examples
    --------
    >>> space_for(128, 112, 64, 64)
    31360
    """
    return n * (d_k + part + d_v + 5)


def _coefficients():
    """Fit (2^r - 1) / r by a polynomial, for r up to a half: float32 sees no difference."""
    r = np.cos(np.pi * (np.arange(64) + 0.5) / 64) / 2
    return np.polynomial.Polynomial.fit(r, np.expm1(np.log(2) * r) / r, 5).convert().coef


@cache
def _compiled():
    import numba
    from numba.extending import get_cython_function_address

    # numba's own product cannot add to what is there.
    address = get_cython_function_address("scipy.linalg.cython_blas", "sgemm")
    sgemm = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(address)

    f32, i32 = np.float32, np.int32
    c1, c2, c3, c4, c5, c6 = _coefficients().astype(f32)
    ln_2, log2_e = f32(np.log(2)), f32(1 / np.log(2))
    whole = f32(1.5 * 2**23)  # added to a number, it leaves no room for a fraction

    @numba.njit(inline="always")
    def doubled(r, n):
        """2^r, for r up to a half, doubled n - whole times: that is added to its exponent."""
        p = (((((c6 * r + c5) * r + c4) * r + c3) * r + c2) * r + c1) * r + f32(1)
        return i32(f32(p).view(i32) + (f32(n).view(i32) << i32(23))).view(f32)

    @numba.njit(inline="always")
    def power_of_two(x):
        """2^x for x up to 126, and not NaN: from -127 down it is 0, as that exponent is."""
        x = x if x > f32(-127) else f32(-127)
        n = x + whole
        return doubled(x - (n - whole), n)

    @numba.njit(inline="always")
    def power_of_e(x):
        """e^x for any x up to 87; below -87 it is 0, about the smallest that float32 tells."""
        y = x if x > f32(-87) else f32(-87)
        n = y * log2_e + whole
        p = doubled((y - (n - whole) * ln_2) * log2_e, n)
        return p if x > f32(-87) else (f32(0) if x <= f32(-87) else x)  # what is left is NaN

    # Queries lie side by side: an instruction takes several, each with a maximum and a total.
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}

    @numba.njit("void(f4[:,::1], f4[::1])", **options)
    def small_powers(scores, total):
        """Raise 2 to the scores of some keys, (keys, queries), in place, and total them."""
        total[:] = 0
        for j in range(scores.shape[0]):
            for i in range(scores.shape[1]):
                p = power_of_two(scores[j, i])
                scores[j, i] = p
                total[i] += p

    @numba.njit("void(f4[:,::1], f4[::1], f4[::1], f4[::1])", **options)
    def powers(scores, total, largest, shrink):
        """Raise e to scores less the largest so far; say by what earlier sums shrink for it."""
        for i in range(scores.shape[1]):
            shrink[i] = largest[i]
        for j in range(scores.shape[0]):
            for i in range(scores.shape[1]):
                largest[i] = max(largest[i], scores[j, i])
        for i in range(scores.shape[1]):
            shrink[i] = power_of_e(shrink[i] - largest[i])
        total[:] = 0
        for j in range(scores.shape[0]):
            for i in range(scores.shape[1]):
                p = power_of_e(scores[j, i] - largest[i])
                scores[j, i] = p
                total[i] += p

    @numba.njit(**options)
    def hide(scores, seen, sees):
        """Set to -inf what a query may not see: the first sees so many of these keys."""
        for j in range(max(sees, 0), scores.shape[0]):
            for i in range(min(j - sees + 1, scores.shape[1])):
                scores[j, i] = -np.inf
        if seen.size:
            for i in range(scores.shape[1]):
                for j in range(scores.shape[0]):
                    if not seen[i, j]:
                        scores[j, i] = -np.inf

    @numba.njit(**options)
    def multiply(A, turned, B, kept, C):
        """Set C to A @ B, or if turned A.T @ B, and so much of what it was; all lie in rows.

        BLAS has columns in mind, and finds in what lies in rows the same matrices turned.
        """
        letters = np.array([78, 84 if turned else 78], dtype=np.uint8)  # N and T
        factors = np.array([1, kept], dtype=np.float32)
        sizes = np.array([C.shape[1], C.shape[0], B.shape[0], A.shape[1]], dtype=np.int32)
        across, down, deep, a_across = sizes, sizes[1:], sizes[2:], sizes[3:]
        sgemm(
            letters.ctypes, letters[1:].ctypes, across.ctypes, down.ctypes, deep.ctypes,
            factors.ctypes, B.ctypes, across.ctypes, A.ctypes, a_across.ctypes,
            factors[1:].ctypes, C.ctypes, across.ctypes,
        )  # fmt: skip

    def read(dtype, layout="A"):
        return numba.types.Array(dtype, 2, layout, readonly=True)

    f4, i8 = numba.float32, numba.int64
    signature = numba.void(
        read(f4), read(f4, "C"), read(f4, "C"), f4[:, ::1], read(numba.boolean), read(f4),
        f4[::1], i8, i8, i8, i8, f4, numba.boolean,
    )  # fmt: skip

    @numba.njit(signature, **options)
    def block(Q, K, V, output, seen, bias, space, part, columns, sees, end, factor, small):
        (n, d_k), d_v = Q.shape, V.shape[1]
        at = n * d_k
        queries = space[:at].reshape(d_k, n)
        tile, at = space[at : at + n * part].reshape(part, n), at + n * part
        some, at = space[at : at + n * d_v].reshape(n, d_v), at + n * d_v
        vectors = space[at : at + 5 * n].reshape(5, n)
        total, some_total, part_total, largest, shrink = (
            vectors[0],
            vectors[1],
            vectors[2],
            vectors[3],
            vectors[4],
        )
        for i in range(n):
            for d in range(d_k):
                queries[d, i] = Q[i, d] * factor
        output[:] = 0
        total[:] = 0
        largest[:] = np.finfo(np.float32).min
        for left in range(0, end, columns):  # a longer sum would be rounded too often
            some[:] = 0
            some_total[:] = 0
            right = min(left + columns, end)
            for first in range(left, right, part):
                last = min(first + part, right)
                scores = tile[: last - first]
                multiply(K[first:last], False, queries, 0, scores)
                if bias.size:
                    for i in range(n):
                        for j in range(last - first):
                            scores[j, i] += bias[i, first + j]
                if last > sees or seen.size:
                    hide(scores, seen[:, first:last], sees - first)
                if small:
                    small_powers(scores, part_total)
                else:
                    powers(scores, part_total, largest, shrink)
                    for i in range(n):
                        total[i] *= shrink[i]
                        some_total[i] *= shrink[i]
                        for d in range(d_v):
                            output[i, d] *= shrink[i]
                            some[i, d] *= shrink[i]
                multiply(scores, True, V[first:last], 1, some)
                for i in range(n):
                    some_total[i] += part_total[i]
            for i in range(n):
                total[i] += some_total[i]
                for d in range(d_v):
                    output[i, d] += some[i, d]
        for i in range(n):
            if total[i] != 0:
                for d in range(d_v):
                    output[i, d] /= total[i]

    # Sums of squares in any order, which is that of an instruction's several.
    in_any_order = {**options, "fastmath": {"contract", "nsz", "reassoc"}}

    @numba.njit(f4(read(f4, "C")), **in_any_order)
    def longest(X):
        most = total = f32(0)
        for i in range(X.shape[0]):
            square = f32(0)
            for d in range(X.shape[1]):
                square += X[i, d] * X[i, d]
            most = max(most, square)
            total += square  # which a NaN does not leave
        return most if np.isfinite(total) else f32(np.nan)

    return Fused(block, small_powers, powers, longest)
