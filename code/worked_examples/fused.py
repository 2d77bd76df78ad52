"""The powers of a tile of scores, compiled by numba where that is installed.

numpy walks over a tile three times, for the maxima, the differences and the powers, and its exp
minds more than a softmax needs. Here it is twice, or once where no maximum is needed.
"""

from functools import cache

import numpy as np

__all__ = ["fused_powers"]


def fused_powers(wanted=None):
    """Give the compiled powers of a float32 tile; the first call compiles, for about a second.

    Parameters
    ----------
    wanted : bool, optional
        True: it must be there. False: it is not asked for. By default, if numba is installed.

    Returns
    -------
    callable or None
        ``powers(scores, largest, total, ufunc, hide)``, as `fast_attention` calls it for every
        tile: ``hide(value)`` sets the scores that a query may not see, here to -inf before all
        else. Scores (h, n, L_q) become exp(score - largest) in place; the largest and the total
        so far, (h, 1, L_q) each, are carried on; it returns by what earlier sums shrink. With
        None for the largest, scores become 2^score, and it returns None. The ufunc is for numpy's
        counterpart.

    Raises
    ------
    ImportError
        If it must be there and numba is not.

    Examples
    --------
    >>> fused_powers(False) is None
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
    """Fit (2^r - 1) / r by a polynomial, for r up to a half: float32 sees no difference."""
    r = np.cos(np.pi * (np.arange(64) + 0.5) / 64) / 2
    return np.polynomial.Polynomial.fit(r, np.expm1(np.log(2) * r) / r, 5).convert().coef


@cache
def _compiled():
    import numba

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
    # Totals are those of 64 keys at a time: a longer sum would be rounded too often.
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}

    @numba.njit("void(f4[:,:,::1], f4[:,::1])", **options)
    def small(scores, totals):
        for h in range(len(scores)):
            tile, total, some = scores[h], totals[h], np.empty_like(totals[h])
            for first in range(0, len(tile), 64):
                some[:] = 0
                for j in range(first, min(first + 64, len(tile))):
                    for i in range(tile.shape[1]):
                        p = power_of_two(tile[j, i])
                        tile[j, i] = p
                        some[i] += p
                for i in range(tile.shape[1]):
                    total[i] += some[i]

    @numba.njit("void(f4[:,:,::1], f4[:,::1], f4[:,::1], f4[:,::1])", **options)
    def any_size(scores, largest, totals, shrink):
        for h in range(len(scores)):
            tile, total, some, new = scores[h], totals[h], np.empty_like(totals[h]), largest[h]
            before = new.copy()
            for j in range(len(tile)):
                for i in range(tile.shape[1]):
                    new[i] = max(new[i], tile[j, i])
            for i in range(tile.shape[1]):
                shrink[h, i] = power_of_e(before[i] - new[i])
                total[i] *= shrink[h, i]
            for first in range(0, len(tile), 64):
                some[:] = 0
                for j in range(first, min(first + 64, len(tile))):
                    for i in range(tile.shape[1]):
                        p = power_of_e(tile[j, i] - new[i])
                        tile[j, i] = p
                        some[i] += p
                for i in range(tile.shape[1]):
                    total[i] += some[i]

    def powers(scores, largest, total, _, hide):
        hide(-np.inf)
        if largest is None:
            return small(scores, total[:, 0])
        shrink = np.empty_like(largest)
        any_size(scores, largest[:, 0], total[:, 0], shrink[:, 0])
        return shrink

    return powers
