"""The softmax of a tile in one pass, compiled by numba where that is installed.

numpy walks over a tile four times: for the maxima, the differences, the powers and their sums.
Here a row stays in the nearest cache from its first number to its last.
"""

from functools import cache

import numpy as np

__all__ = ["fused_softmax"]


def fused_softmax(wanted=None):
    """Give the compiled softmax of a float32 tile; the first call compiles, for about a second.

    Parameters
    ----------
    wanted : bool, optional
        True: it must be there. False: it is not asked for. By default, if numba is installed.

    Returns
    -------
    callable or None
        ``softmax(scores, largest, total, ones)``, as `fast_attention` calls it for every tile:
        scores (..., n) become exp(score - largest) in place; the largest so far and the total so
        far, (..., 1) each, are carried on; it returns by what the sums so far shrink.

    Raises
    ------
    ImportError
        If it must be there and numba is not.

    Examples
    --------
    >>> fused_softmax(False) is None
    True
    """
    if wanted is False:
        return None
    try:
        return _compiled()
    except ImportError:
        if wanted:
            raise
        return None


def _coefficients():
    """Fit (exp(r) - 1) / r by a polynomial for r of half a halving: float32 sees no difference."""
    widest, nodes = np.log(2) / 2, np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    fit = np.polynomial.chebyshev.chebfit(nodes, np.expm1(widest * nodes) / (widest * nodes), 5)
    return np.polynomial.chebyshev.cheb2poly(fit) / widest ** np.arange(6)


@cache
def _compiled():
    import numba

    f32, i32 = np.float32, np.int32
    c1, c2, c3, c4, c5, c6 = _coefficients().astype(f32)
    ln_2, log2_e = f32(np.log(2)), f32(1 / np.log(2))
    lowest = f32(-87)  # exp(-87) is about the smallest of float32

    @numba.njit(inline="always")
    def power(x):
        """exp(x) for x <= 0: n halvings, written as a float's exponent, and exp(r) for the rest."""
        y = x if x > lowest else lowest
        n = i32(y * log2_e - f32(0.5))
        r = y - f32(n) * ln_2
        p = (((((c6 * r + c5) * r + c4) * r + c3) * r + c2) * r + c1) * r + f32(1)
        p *= i32((n + i32(127)) << i32(23)).view(f32)
        return p if x > lowest else (f32(0) if x <= lowest else x)  # what is left is NaN

    @numba.njit(inline="always")
    def ordered(bits):
        """Turn a float's bits into an integer of the same order, and back."""
        return bits ^ ((bits >> i32(31)) & i32(0x7FFFFFFF))

    # Sums may be taken in any order, so that several are taken at once. NaN and infinities keep
    # their meaning. The maximum is one of integers: of floats it would be taken one by one.
    @numba.njit(
        "void(f4[:,::1], i4[:,::1], f4[::1], f4[::1], f4[::1])",
        nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"},
    )  # fmt: skip
    def rows(scores, bits, largest, total, shrink):
        for i in range(scores.shape[0]):
            row, row_bits = scores[i], bits[i]
            top = i32(-(2**31))
            for j in range(row_bits.size):
                top = max(top, ordered(row_bits[j]))
            new = max(largest[i], i32(ordered(top)).view(f32))
            sum_ = f32(0)
            for j in range(row.size):
                row[j] = power(row[j] - new)
                sum_ += row[j]
            shrink[i] = power(largest[i] - new)
            total[i] = total[i] * shrink[i] + sum_
            largest[i] = new

    def softmax(scores, largest, total, ones):
        shrink = np.empty_like(largest)
        flat = scores.reshape(-1, scores.shape[-1])
        rows(flat, flat.view(i32), *(X.reshape(-1) for X in (largest, total, shrink)))
        return shrink

    return softmax
