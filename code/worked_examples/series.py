"""One head reads a time series: the series, the head's tied map, and what to measure in it.

=======  ==============================================================================
y        a series, (n,); of several series, (N, n), one a row
X        what the positions hold, (L, d): a point on a circle, or two neighbouring values
A        weights of a causal head, (L, L): row i is the query at i, column j the key at j
lag k    how far back a query looks: i - j, so 0 for itself and L - 1 for the farthest
period   after how many steps a season comes again
horizon  how many steps ahead is asked for: 0 what is now, 1 the next value
=======  ==============================================================================

A head is *tied* if queries, keys and values are the embedding itself: nothing in it is learned.
What a trained head makes of such series is in `worked_examples.forecaster`.
"""

import math

import numpy as np

from worked_examples.attention import _length, scaled_dot_product_attention
from worked_examples.positions import _positive

__all__ = [
    "baseline_errors",
    "circle",
    "draw_seasons",
    "draw_series",
    "lag_profile",
    "map_distance",
    "map_table",
    "matching_lags",
    "next_step_query",
    "pairs",
    "season_share",
    "seasonal_mean",
    "seasonal_naive",
    "share_table",
    "shrunk_mean_error",
    "study_series",
    "tied_map",
    "uniform_map",
]


# ------------------------------------------------------------------------------- the series


def circle(L, period):
    """Go round a circle, one turn a period: (sin, cos)(2 pi t / period).

    Parameters
    ----------
    L : int
        Number of positions, at least 1.
    period : float
        Steps a turn, above 0.

    Returns
    -------
    (L, 2) array

    Raises
    ------
    ValueError
        If L is not a whole number of at least 1, or the period not a finite number above 0.

    Examples
    --------
    >>> print(circle(4, 4).round(2) + 0.0)
    [[ 0.  1.]
     [ 1.  0.]
     [ 0. -1.]
     [-1.  0.]]
    """
    angle = 2 * np.pi * np.arange(_length("L", L)) / _positive("the period", period)
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


def draw_series(n, *, period=4, season=1.0, trend=0.0, noise=0.0, seed=0):
    """Draw a series: a cosine, a straight rise and white noise, each of its size.

    Parameters
    ----------
    n : int
        How many values, at least 1.
    period : float
        Steps a season, above 0.
    season, trend, noise : float
        Height of the cosine; rise from the first value to the last; standard deviation.
    seed : int
        Of the noise.

    Returns
    -------
    (n,) array

    Raises
    ------
    ValueError
        If n is not a whole number of at least 1, a size is not finite, the noise is negative, or
        the period not above 0.

    Examples
    --------
    >>> print(draw_series(5, trend=4.0).round(4))
    [1. 1. 1. 3. 5.]
    """
    t = np.arange(_length("n", n))
    sizes = {"season": season, "trend": trend, "noise": noise}
    if not all(math.isfinite(size) for size in sizes.values()) or noise < 0:
        raise ValueError(f"sizes must be finite and the noise not negative; got {sizes}")
    drawn = np.random.default_rng(seed).normal(size=n)
    wave = np.cos(2 * np.pi * t / _positive("the period", period))
    return season * wave + trend * t / max(n - 1, 1) + noise * drawn


def study_series(L, period=7, seed=0):
    """Give the series of the chapter's study, each with one value more than positions.

    Parameters
    ----------
    L : int
        Number of positions that `pairs` will make of a series.
    period : int
    seed : int
        Of the noise and of the random walk.

    Returns
    -------
    dict of str to (L + 1,) array
    """
    n = _length("L", L) + 1
    trending = draw_series(n + 1, period=period, trend=3.0)
    white = draw_series(n, season=0, noise=1, seed=seed)
    return {
        "period 4": draw_series(n, period=4),
        f"period {period}": draw_series(n, period=period),
        "trend and season": trending[1:],
        "its differences": np.diff(trending),
        "white noise": white,
        "random walk": np.cumsum(white) / math.sqrt(n / 2),
    }


def draw_seasons(N, n, *, period=7, noise=0.5, rng):
    """Draw series that share a period and nothing else: each repeats a pattern of its own.

    Parameters
    ----------
    N, n : int
        How many series, and how many values each.
    period : int
        Length of the pattern, whose values are drawn from a standard normal distribution.
    noise : float
        Standard deviation of what is added to every value anew.
    rng : numpy.random.Generator

    Returns
    -------
    (N, n) array

    Examples
    --------
    >>> y = draw_seasons(2, 6, period=3, noise=0, rng=np.random.default_rng(0))
    >>> bool((y[:, :3] == y[:, 3:]).all())
    True
    """
    patterns = rng.normal(size=(N, _length("the period", period)))
    return patterns[:, np.arange(n) % period] + noise * rng.normal(size=(N, n))


# ---------------------------------------------------------------------------------- the map


def pairs(y):
    """Describe each position by two numbers: the value there, and the one before it.

    Parameters
    ----------
    y : (L + 1,) array
        The first value has none before it, so it gets no position.

    Returns
    -------
    (L, 2) array

    Raises
    ------
    ValueError
        If there are fewer than two values, or one is not a finite number.

    Examples
    --------
    >>> print(pairs([5.0, 6.0, 8.0]))
    [[6. 5.]
     [8. 6.]]
    """
    y = _numbers("a series", y, 1)
    if len(y) < 2:
        raise ValueError(f"a pair needs a value before it, so two values at least; got {len(y)}")
    return np.stack([y[1:], y[:-1]], axis=1)


def tied_map(X, W_Q=None):
    """Give the weights of a causal head whose queries, keys and values are the embedding.

    Parameters
    ----------
    X : (L, d_k) array
    W_Q : (d_k, d_k) array, optional
        Turns the queries; by default they are X too.

    Returns
    -------
    (L, L) array

    Raises
    ------
    ValueError
        If X is not a matrix with rows and columns, or holds a number that is not finite.

    Examples
    --------
    >>> print(tied_map(circle(3, 4)).round(2))
    [[1.   0.   0.  ]
     [0.33 0.67 0.  ]
     [0.14 0.28 0.58]]
    """
    X = _numbers("the embedding", X, 2)
    Q = X if W_Q is None else X @ _numbers("W_Q", W_Q, 2)
    return scaled_dot_product_attention(Q, X, X, causal=True)[1]


def next_step_query(period, horizon=1):
    """Give W_Q for which a pair of a pure cosine asks for the pair some steps ahead.

    A cosine obeys ``y[t+1] = 2 cos(2 pi / period) y[t] - y[t-1]``, which is linear in the pair
    ``(y[t], y[t-1])``; each further step multiplies by the same matrix again.

    Parameters
    ----------
    period : float
    horizon : int
        Steps ahead, at least 0.

    Returns
    -------
    (2, 2) array

    Examples
    --------
    >>> y = draw_series(9, period=7)
    >>> bool(np.allclose(pairs(y)[:-1] @ next_step_query(7), pairs(y)[1:]))
    True
    """
    turn = 2 * math.cos(2 * math.pi / _positive("the period", period))
    step = np.array([[turn, 1.0], [-1.0, 0.0]])
    return np.linalg.matrix_power(step, _length("the horizon", horizon, least=0))


def uniform_map(L):
    """Give the weights of a causal head that prefers nothing: row i has 1 / (i + 1) each.

    Examples
    --------
    >>> print(uniform_map(2))
    [[1.  0. ]
     [0.5 0.5]]
    """
    seen = np.tri(_length("L", L))
    return seen / seen.sum(axis=1, keepdims=True)


# ------------------------------------------------------------------------------ reading it


def lag_profile(A):
    """Average a map along its diagonals: the mean weight at each lag.

    Lag k occurs in L - k rows, those with i >= k, and the mean is over these.

    Parameters
    ----------
    A : (L, L) array
        Row i is the query.

    Returns
    -------
    (L,) array
        Entry k is the mean of A[i, i - k].

    Raises
    ------
    ValueError
        If A is not square, is empty, or holds a number that is not finite.

    Examples
    --------
    >>> print(lag_profile([[1.0, 0.0], [0.3, 0.7]]))
    [0.85 0.3 ]
    """
    A = _square(A)
    query, key = np.tril_indices(len(A))
    return np.bincount(query - key, A[query, key]) / np.arange(len(A), 0, -1)


def matching_lags(L, period, horizon=0):
    """Mark the lags at which the season of the wanted position stood before.

    The wanted position lies `horizon` steps after the query, so lag k lies ``k + horizon`` steps
    before it; that has to be a period, or several. Zero steps are no match: that is the wanted
    position itself.

    Parameters
    ----------
    L, period : int
        At least 1.
    horizon : int
        At least 0. It may be L or more: then the lags of the last L positions are marked still.

    Returns
    -------
    (L,) array of bool

    Raises
    ------
    ValueError
        If a number is not whole or too small.

    Examples
    --------
    >>> np.flatnonzero(matching_lags(10, 4)), np.flatnonzero(matching_lags(10, 4, horizon=1))
    (array([4, 8]), array([3, 7]))
    """
    back = np.arange(_length("L", L)) + _length("the horizon", horizon, least=0)
    return (back % _length("the period", period) == 0) & (back > 0)


def season_share(A, period, horizon=0):
    """Measure how much of a row's weight lies on matching lags, over the rows that have one.

    Parameters
    ----------
    A : (L, L) array
    period, horizon : int
        As for `matching_lags`.

    Returns
    -------
    float
        From 0 to 1; NaN if no row has a matching lag.

    Examples
    --------
    >>> print(round(season_share(uniform_map(8), 4), 4))
    0.1586
    """
    A = _square(A)
    L = len(A)
    lags = np.flatnonzero(matching_lags(L, period, horizon))
    if not len(lags):
        return math.nan
    rows = np.arange(lags[0], L)
    return float(sum(np.diagonal(A, -k).sum() for k in lags) / len(rows))


def map_distance(A, B):
    """Measure how differently two maps spread their weight, averaged over the rows.

    In a row it is the total variation distance, half the sum of the absolute differences: the
    share of the weight that would have to move. 0 for equal rows, 1 for rows that share nothing.

    Parameters
    ----------
    A, B : (..., rows, L) arrays
        Leading dimensions broadcast.

    Returns
    -------
    (...) array

    Examples
    --------
    >>> print(map_distance(np.eye(2), uniform_map(2)))
    0.25
    """
    return (np.abs(np.asarray(A) - np.asarray(B)).sum(axis=-1) / 2).mean(axis=-1)


# ------------------------------------------------------------------------------- baselines


def seasonal_naive(y, period, horizon=1):
    """Forecast by the newest value of the same season.

    Parameters
    ----------
    y : (..., n) array
        Series along the last axis; at least one period of values.
    period, horizon : int
        At least 1. A horizon beyond the period, or beyond n, repeats the last season.

    Returns
    -------
    (...) array

    Raises
    ------
    ValueError
        If there are fewer values than a period has, or one is not finite.

    Examples
    --------
    >>> y = [10, 20, 30, 11, 21, 31]
    >>> [int(seasonal_naive(y, 3, horizon)) for horizon in (1, 2, 3, 4)]
    [11, 21, 31, 11]
    """
    y = _season_of_values(y, period)
    ahead = (_length("the horizon", horizon) - 1) % period
    return y[..., y.shape[-1] - period + ahead]


def seasonal_mean(y, period):
    """Forecast the next value by the mean of all earlier values of its season.

    Examples
    --------
    >>> print(seasonal_mean([10, 20, 30, 11, 21, 31], 3))
    10.5
    """
    y = _season_of_values(y, period)
    return y[..., y.shape[-1] % period :: period].mean(axis=-1)


def baseline_errors(seen, new, period):
    """Measure how well simple rules forecast the next value, wherever a period lies behind it.

    The autoregression is a linear map from all the past to the next value, fitted for each
    position by least squares to `seen`. The other rules need no fit.

    Parameters
    ----------
    seen, new : (N, L + 1) arrays
        Series to fit on, and series to measure on.
    period : int
        At most L.

    Returns
    -------
    dict of str to float
        Root mean square errors over the series `new` and the positions.
    """
    seen, new = _season_of_values(seen, period), _season_of_values(new, period)
    wrong = {"last value": [], "seasonal naive": [], "mean of the season": [],
             "autoregression": [], "always 0": []}  # fmt: skip
    for t in range(period, new.shape[-1]):
        past, wanted = new[:, :t], new[:, t]
        fitted = np.linalg.lstsq(seen[:, :t], seen[:, t], rcond=None)[0]
        wrong["last value"].append(past[:, -1] - wanted)
        wrong["seasonal naive"].append(seasonal_naive(past, period) - wanted)
        wrong["mean of the season"].append(seasonal_mean(past, period) - wanted)
        wrong["autoregression"].append(past @ fitted - wanted)
        wrong["always 0"].append(-wanted)
    return {rule: float(np.sqrt(np.mean(np.square(errors)))) for rule, errors in wrong.items()}


def shrunk_mean_error(new, period, noise):
    """Measure the best forecast that there is where patterns and noise are normal.

    For a pattern of variance 1 it is the mean of the season's m earlier values, drawn towards 0:
    times m / (m + noise^2).

    Parameters
    ----------
    new : (N, L + 1) array
        Series to measure on.
    period : int
        At most L.
    noise : float
        Standard deviation of the noise on each value.

    Returns
    -------
    float
        Root mean square error over the series and the positions with a period behind them.

    Examples
    --------
    >>> shrunk_mean_error([[2.0, 4.0, 1.5, 2.5]], 2, noise=1.0)
    0.5
    """
    new = _season_of_values(new, period)
    wrong = []
    for t in range(period, new.shape[-1]):
        m = t // period
        wrong.append(seasonal_mean(new[:, :t], period) * m / (m + noise**2) - new[:, t])
    return float(np.sqrt(np.mean(np.square(wrong))))


# ---------------------------------------------------------------------------------- tables


def map_table(L=8, period=4):
    """List the weights of the tied head that reads a circle.

    Returns
    -------
    list of dict
        One row a query, one column a key; hidden keys have 0.
    """
    A = tied_map(circle(L, period))
    return [{"query": i, **{f"key {j}": A[i, j] for j in range(L)}} for i in range(L)]


def share_table(L=21, period=7, seed=0):
    """List, for each series of the study, the tied head's weight on matching lags.

    Returns
    -------
    list of dict
        One row a series: its share of the weight on lags of one period and more, what uniform
        weights would have there, and how many times as much it is.
    """
    rows = []
    for name, y in study_series(L, period, seed).items():
        own = 4 if name == "period 4" else period
        share = season_share(tied_map(pairs(y)), own)
        uniform = season_share(uniform_map(L), own)
        rows.append({"series": name, "share": share, "uniform": uniform, "times": share / uniform})
    return rows


# --------------------------------------------------------------------------------- helpers


def _numbers(name, values, dimensions):
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or array.ndim != dimensions or array.size == 0:
        raise ValueError(
            f"{name} must be numbers along {dimensions} axes, at least one; "
            f"got {array.dtype} {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers; got {_first_odd(array)}")
    return array.astype(float)


def _first_odd(array):
    place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    return f"{array[place]} at {place[0] if len(place) == 1 else place}"


def _square(A):
    A = _numbers("a map", A, 2)
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"a map has as many queries as keys; got {A.shape}")
    return A


def _season_of_values(y, period):
    y = np.asarray(y)
    period = _length("the period", period)
    if y.ndim == 0 or y.dtype.kind not in "biuf" or y.shape[-1] < period:
        raise ValueError(f"a season of {period} values is needed; got {y.dtype} {y.shape}")
    if not np.isfinite(y).all():
        raise ValueError(f"a series must hold finite numbers; got {_first_odd(y)}")
    return y
