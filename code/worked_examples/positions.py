"""Position in numpy: sinusoids, a bias for each offset, ALiBi, rotary, and how they compare.

Attention sees a set of rows. What tells it their order is either added to the rows (sinusoids,
learned vectors), added to the scores (a bias for each offset, ALiBi), or turned into the queries
and keys (rotary).

=======  ==============================================================================
L        number of positions; L_q queries and L_k keys where they differ
d        width of an encoding, and of what is rotated: even, two features an angle
omega_i  angle of pair i a position: base^(-2i / d), for i from 0 to d/2 - 1
k        offset: how far apart two positions are; key's minus query's in a matrix
h        number of heads
=======  ==============================================================================

A pair of features, here, is two columns that hold the sine and the cosine of one angle. Pairs are
*interleaved*, columns (2i, 2i + 1), as Vaswani et al. and Su et al. write them; `rotary` also
takes *halves*, columns (i, i + d/2), as some libraries store them.
"""

import math

import numpy as np

from worked_examples.attention import _finite, _length

__all__ = [
    "alibi_bias",
    "alibi_slopes",
    "angles",
    "encoding_table",
    "first_rise",
    "monotone_table",
    "offset_similarity",
    "offsets",
    "relative_bias",
    "rotary",
    "shift_rotation",
    "similarity_table",
    "sinusoidal_encoding",
    "slopes_table",
    "with_positions",
]

BASE = 10000.0
PAIRINGS = ("interleaved", "halves")


# ------------------------------------------------------------------------------- sinusoids


def angles(d, base=BASE):
    """Give the angle by which each pair of features turns from one position to the next.

    ``omega_i = base^(-2i / d)``: 1 for the first pair, falling to nearly 1 / base.

    Parameters
    ----------
    d : int
        Width, even.
    base : float, default 10000

    Returns
    -------
    (d / 2,) array
        Radians.

    Raises
    ------
    ValueError
        If d is not an even whole number of at least 2, or the base not a finite number above 0.

    Examples
    --------
    >>> print(angles(4, base=100))
    [1.  0.1]
    """
    d = _even(d)
    return _positive("the base", base) ** (-np.arange(0, d, 2) / d)


def sinusoidal_encoding(L, d, base=BASE):
    """Give each position a vector of sines and cosines of ever longer waves.

    ``PE(pos, 2i) = sin(pos omega_i)`` and ``PE(pos, 2i + 1) = cos(pos omega_i)`` with
    ``omega_i = base^(-2i / d)`` (Vaswani et al. 2017, section 3.5).

    Parameters
    ----------
    L : int
        Number of positions, 0 to L - 1.
    d : int
        Width, even.
    base : float, default 10000

    Returns
    -------
    (L, d) array of float64

    Raises
    ------
    ValueError
        If L is not a whole number of at least 1, d not an even one, or the base not a finite
        number above 0.

    Examples
    --------
    >>> print(sinusoidal_encoding(2, 4).round(4))
    [[0.     1.     0.     1.    ]
     [0.8415 0.5403 0.01   1.    ]]
    """
    phase = np.outer(np.arange(_length("L", L)), angles(d, base))  # (L, d/2)
    return np.stack([np.sin(phase), np.cos(phase)], axis=-1).reshape(len(phase), -1)


def with_positions(X, base=BASE):
    """Add sinusoids to rows: each sequence of a batch gets the same, each position its own.

    Parameters
    ----------
    X : (..., L, d) array
        Positions along the last axis but one, whatever stands before it.
    base : float, default 10000

    Returns
    -------
    (..., L, d) array

    Raises
    ------
    ValueError
        If X has fewer than two axes, or an odd width, or holds anything but real numbers.

    Examples
    --------
    >>> encoded = with_positions(np.zeros((2, 3, 4)))  # two sequences, three positions
    >>> bool((encoded[0] == encoded[1]).all()), bool((encoded[:, 0] == encoded[:, 1]).all())
    (True, False)
    """
    X = _rows(X)
    encoding = sinusoidal_encoding(*X.shape[-2:], base)
    return X + encoding.astype(X.dtype if X.dtype.kind == "f" else float, copy=False)


def shift_rotation(k, d, base=BASE):
    """Build the matrix that moves every encoding k positions on, the same for all of them.

    ``PE(pos + k) = R PE(pos)``: on its diagonal, one two-by-two rotation a pair, by k omega_i.

    Parameters
    ----------
    k : float
        Positions to move by; negative ones move back.
    d : int
    base : float, default 10000

    Returns
    -------
    (d, d) array
        Orthogonal: its transpose moves back.

    Raises
    ------
    ValueError
        As `sinusoidal_encoding`, or if k is not a finite number.

    Examples
    --------
    >>> PE = sinusoidal_encoding(9, 6)
    >>> bool(np.allclose(shift_rotation(5, 6) @ PE[2], PE[7]))
    True
    """
    turn = _finite("the shift", k) * angles(d, base)
    R = np.zeros((2 * len(turn), 2 * len(turn)))
    even = np.arange(0, len(R), 2)
    R[even, even] = R[even + 1, even + 1] = np.cos(turn)
    R[even, even + 1], R[even + 1, even] = np.sin(turn), -np.sin(turn)
    return R


def offset_similarity(k, d, base=BASE):
    """Measure how alike two encodings are that stand k apart: their cosine.

    ``PE(pos) . PE(pos + k) = sum over i of cos(k omega_i)``, whatever pos is; a vector's own
    square is d / 2, so the cosine is that sum over d / 2.

    Parameters
    ----------
    k : (...) array
        Offsets.
    d : int
    base : float, default 10000

    Returns
    -------
    (...) array
        Between -1 and 1; 1 for k = 0.

    Examples
    --------
    >>> print(offset_similarity([0, 1, -1], 2).round(4))
    [1.     0.5403 0.5403]
    """
    with np.errstate(invalid="ignore"):
        return np.cos(_real("offsets", k)[..., None] * angles(d, base)).mean(axis=-1)


def first_rise(d, base=BASE, longest=100_000):
    """Find the first offset at which two encodings are less alike than one further apart.

    Returns
    -------
    int
        The least k >= 0 with similarity(k + 1) > similarity(k): up to it, further means less
        alike. `longest` if there is none before.

    Examples
    --------
    >>> first_rise(2)  # one wave: half a turn is 3.14 positions
    3
    """
    for start in range(0, longest, 256):  # nearly all are found in the first block
        k = np.arange(start, min(start + 256, longest) + 1)
        rises = np.flatnonzero(np.diff(offset_similarity(k, d, base)) > 0)
        if len(rises):
            return int(k[rises[0]])
    return longest


# ------------------------------------------------------------------- position in the scores


def offsets(L_q, L_k=None):
    """Give each key's position minus each query's, the last query standing at the last key.

    Aligned as `attention.causal_mask` is: 0 and less is what a causal mask lets through.

    Parameters
    ----------
    L_q : int
        Number of queries.
    L_k : int, optional
        Number of keys; by default as many as queries.

    Returns
    -------
    (L_q, L_k) array of int

    Raises
    ------
    ValueError
        If a length is not a whole number of at least 1.

    Examples
    --------
    >>> print(offsets(2, 4))
    [[-2 -1  0  1]
     [-3 -2 -1  0]]
    """
    L_q = _length("L_q", L_q)
    L_k = L_q if L_k is None else _length("L_k", L_k)
    return np.arange(L_k) - (np.arange(L_q)[:, None] + L_k - L_q)


def relative_bias(table, L_q, L_k=None):
    """Lay out one number an offset as a matrix to add to scores.

    ``B_ij = table[clip(j - i, -R, R) + R]``: keys further off than R share the last number, as
    in Shaw et al. (2018), who clip, and Raffel et al. (2020), who add one number a score.

    Parameters
    ----------
    table : (..., 2 R + 1) array
        For the offsets -R to R; leading dimensions, as one for the heads, are kept.
    L_q, L_k : int
        As for `offsets`.

    Returns
    -------
    (..., L_q, L_k) array

    Raises
    ------
    ValueError
        If the table's last axis is not of odd length, or a length is no whole number of at
        least 1.

    Examples
    --------
    >>> print(relative_bias([0.5, 0.0, -0.5], 3))
    [[ 0.  -0.5 -0.5]
     [ 0.5  0.  -0.5]
     [ 0.5  0.5  0. ]]
    """
    table = _array("a table of biases", table)
    if table.ndim == 0 or table.shape[-1] % 2 == 0:
        raise ValueError(
            f"a table of biases needs 2 R + 1 numbers, for offsets -R to R; got {table.shape}"
        )
    R = table.shape[-1] // 2
    return table[..., np.clip(offsets(L_q, L_k), -R, R) + R]


def alibi_slopes(h):
    """Give each head the slope by which its scores fall with distance.

    For h a power of two: ``2^(-8/h), 2^(-16/h), ..., 2^(-8)``. For another h, those of the power
    of two below it, and then every second one of those of the power above, as many as are
    lacking (Press et al. 2022: the rule is in the code that they published).

    Parameters
    ----------
    h : int
        Number of heads.

    Returns
    -------
    (h,) array

    Raises
    ------
    ValueError
        If h is not a whole number of at least 1.

    Examples
    --------
    >>> print(alibi_slopes(4))
    [0.25       0.0625     0.015625   0.00390625]
    >>> print(alibi_slopes(3))
    [0.0625     0.00390625 0.25      ]
    """
    h = _length("the number of heads", h)
    below = 2 ** int(math.log2(h))
    slopes = 2.0 ** (-8 * np.arange(1, below + 1) / below)
    between = 2.0 ** (-8 * np.arange(1, 2 * below + 1, 2) / (2 * below))
    return np.concatenate([slopes, between[: h - below]])


def alibi_bias(slopes, L_q, L_k=None):
    """Take from each score its head's slope times the distance from query to key.

    ``B_ij = -slope |j - i|`` (Press et al. 2022). They use it behind a causal mask, where it is
    ``slope (j - i)``; without one, this is the same on both sides.

    Parameters
    ----------
    slopes : (...) array
        One a head, as `alibi_slopes` gives them; a number gives one matrix.
    L_q, L_k : int
        As for `offsets`: the last query stands at the last key.

    Returns
    -------
    (..., L_q, L_k) array
        0 where a query stands at a key, negative elsewhere.

    Raises
    ------
    ValueError
        If a slope is not a finite number, or a length no whole number of at least 1.

    Examples
    --------
    >>> print(alibi_bias(0.5, 2, 3))
    [[-0.5  0.  -0.5]
     [-1.  -0.5  0. ]]
    """
    slopes = _real("slopes", slopes)
    if not np.isfinite(slopes).all():
        raise ValueError(f"slopes must be finite numbers; got {slopes}")
    return 0.0 - slopes[..., None, None] * np.abs(offsets(L_q, L_k))


# ---------------------------------------------------------------------------------- rotary


def rotary(X, positions=None, base=BASE, pairing="interleaved"):
    """Turn each pair of features of a query or a key by an angle in proportion to its position.

    ``(a, b) -> (a cos t - b sin t, a sin t + b cos t)`` with ``t = position omega_i`` (Su et al.
    2021). Rotated alike, a query and a key have a dot product that depends on the difference of
    their positions. Values are not rotated.

    Parameters
    ----------
    X : (..., L, d) array
        Queries or keys of one head, d even.
    positions : (..., L) array, optional
        Any real numbers; by default 0 to L - 1.
    base : float, default 10000
    pairing : {"interleaved", "halves"}
        Which columns are a pair: (2i, 2i + 1), or (i, i + d/2). Weights trained with one do not
        work with the other until their columns are reordered.

    Returns
    -------
    (..., L, d) array
        Of the same lengths, row by row. float32 stays float32.

    Raises
    ------
    ValueError
        If d is odd, the positions do not fit the rows, or the pairing has another name.

    Examples
    --------
    >>> print(rotary([[1.0, 0.0], [1.0, 0.0]]).round(4))
    [[1.     0.    ]
     [0.5403 0.8415]]
    """
    X = _rows(X)
    if pairing not in PAIRINGS:
        raise ValueError(f"pairing is one of {', '.join(PAIRINGS)}; got {pairing!r}")
    *_, L, d = X.shape
    positions = np.arange(L) if positions is None else _real("positions", positions)
    if positions.ndim == 0 or positions.shape[-1] != L:
        raise ValueError(f"each of {L} rows needs a position; got positions {positions.shape}")
    try:
        shape = np.broadcast_shapes(X.shape[:-1], positions.shape)
    except ValueError:
        raise ValueError(f"X {X.shape} does not fit positions {positions.shape}") from None
    turn = positions[..., None] * angles(d, base)  # (..., L, d/2)
    first, second = _pairs(d, pairing)
    a, b = X[..., first], X[..., second]
    turned = np.empty((*shape, d), dtype=X.dtype if X.dtype.kind == "f" else float)
    with np.errstate(invalid="ignore", over="ignore"):  # a padded row may hold anything
        turned[..., first] = a * np.cos(turn) - b * np.sin(turn)
        turned[..., second] = a * np.sin(turn) + b * np.cos(turn)
    return turned


def _pairs(d, pairing):
    """Slice the first and the second column of every pair."""
    if pairing == "interleaved":
        return slice(0, d, 2), slice(1, d, 2)
    return slice(0, d // 2), slice(d // 2, d)


# ---------------------------------------------------------------------------------- tables


def encoding_table(L=4, d=4, base=BASE):
    """List each position's encoding, one column a feature.

    Returns
    -------
    list of dict
        One row a position.
    """
    return [
        {"position": pos, **{f"feature {j}": x for j, x in enumerate(row)}}
        for pos, row in enumerate(sinusoidal_encoding(L, d, base))
    ]


def similarity_table(k=(0, 1, 2, 4, 8, 16, 32, 64, 128), widths=(8, 64, 512), base=BASE):
    """List for some offsets the cosine of two encodings so far apart, one column a width.

    Returns
    -------
    list of dict
        One row an offset.
    """
    cosines = [offset_similarity(k, d, base) for d in widths]
    return [
        {"offset": offset, **{f"d = {d}": x for d, x in zip(widths, row, strict=True)}}
        for offset, row in zip(k, np.transpose(cosines), strict=True)
    ]


def monotone_table(widths=(4, 8, 16, 32, 64, 128, 256, 512), base=BASE):
    """List for some widths how far "further" means "less alike", and the likeness there.

    Returns
    -------
    list of dict
        One row a width.
    """
    rows = []
    for d in widths:
        k = first_rise(d, base)
        rows.append(
            {"d": d, "falls up to offset": k, "cosine there": offset_similarity(k, d, base)}
        )
    return rows


def slopes_table(heads=(4, 6, 8)):
    """List ALiBi's slopes, one column for each number of heads.

    Returns
    -------
    list of dict
        One row a head; the entries past a column's last head are empty text.
    """
    columns = {f"h = {h}": alibi_slopes(h) for h in heads}
    return [
        {"head": i, **{name: s[i] if i < len(s) else "" for name, s in columns.items()}}
        for i in range(max(heads))
    ]


# --------------------------------------------------------------------------------- helpers


def _even(d):
    width = _length("the width d", d)
    if width % 2:
        raise ValueError(f"the width d must be even, a sine and a cosine an angle; got {d!r}")
    return width


def _array(name, value):
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length; got {str(value)[:60]}") from None


def _real(name, value):
    array = _array(name, value)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers; got {str(value)[:60]}")
    return array.astype(float, copy=False)


def _rows(X):
    X = _array("X", X)
    if X.dtype.kind not in "biuf" or X.ndim < 2:
        raise ValueError(
            "positions need rows of real numbers, so two axes at least; "
            f"got {X.dtype} of shape {X.shape}"
        )
    return X


def _positive(name, value):
    number = _finite(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}")
    return number
