"""Exercises of the chapter on one head and a time series."""

import numpy as np

from worked_examples.attention import scaled_dot_product_attention, softmax
from worked_examples.exercises.checking import Check, Mistake
from worked_examples.series import (
    circle,
    draw_series,
    lag_profile,
    pairs,
    seasonal_naive,
    tied_map,
)

__all__ = ["check_lag_profile", "check_seasonal_naive", "check_tied_map"]


def _embeddings():
    rng = np.random.default_rng(0)
    return [
        (circle(8, 4),),
        (rng.normal(size=(5, 3)),),
        (pairs(draw_series(13, period=7, trend=2.0)),),
        (rng.normal(size=(1, 4)),),
    ]


def _mask_last(X):
    return np.tril(softmax(X @ X.T / np.sqrt(X.shape[1])))


check_tied_map = Check(
    "check_tied_map",
    correct=tied_map,
    inputs=_embeddings,
    mistakes=(
        Mistake(
            lambda X: scaled_dot_product_attention(X, X, X)[1],
            "These rows see the future. Hide key j from query i where j > i.",
        ),
        Mistake(
            lambda X: scaled_dot_product_attention(X, X, X, causal=True, scale=1)[1],
            "The mask is right. The divisor is missing: the root of the width d_k.",
        ),
        Mistake(
            lambda X: scaled_dot_product_attention(X, X, X, causal=True, scale=len(X) ** -0.5)[1],
            "The scores are divided by the root of the length L. It is the width d_k that makes "
            "them grow.",
        ),
        Mistake(
            lambda X: scaled_dot_product_attention(
                X, X, X, causal=True, scale=1 / X.shape[1])[1],
            "The scores are divided by d_k itself; its root is wanted.",
        ),
        Mistake(
            _mask_last,
            "The future is cut off after the softmax, so rows no longer sum to 1. Mask the scores "
            "first, with -inf.",
        ),
        Mistake(
            lambda X: softmax(np.tril(X @ X.T / np.sqrt(X.shape[1]))),
            "The hidden scores are 0, and exp(0) is 1: the future still gets weight. Use -inf.",
        ),
        Mistake(
            lambda X: scaled_dot_product_attention(X, X, X, mask=np.tri(len(X), dtype=bool).T)[1],
            "The mask is the wrong way round: each row sees itself and the future.",
        ),
        Mistake(
            lambda X: scaled_dot_product_attention(X, X, X, causal=True)[0],
            "This is the output, the averaged values. The weights are wanted.",
        ),
    ),
    praise="The causal weights of a tied head, for any embedding.",
)  # fmt: skip


def _maps():
    rng = np.random.default_rng(1)
    return [(tied_map(rng.normal(size=(L, 2))),) for L in (5, 8, 2, 1)]


def _sums(A, offset=-1):
    return np.array([np.diagonal(A, offset * k).sum() for k in range(len(A))])


check_lag_profile = Check(
    "check_lag_profile",
    correct=lag_profile,
    inputs=_maps,
    mistakes=(
        Mistake(
            lambda A: _sums(A) / len(A),
            "Every lag is divided by L. Lag k occurs in L - k rows only: long lags come out too "
            "small.",
        ),
        Mistake(
            _sums, "These are sums. Divide each by the number of rows that have this lag, L - k."
        ),
        Mistake(
            lambda A: _sums(A, 1) / np.arange(len(A), 0, -1),
            "This looks in the wrong direction, into the future, where a causal map is 0: lag k "
            "is the entry A[i, i - k], below the diagonal.",
        ),
        Mistake(
            lambda A: (_sums(A) / np.arange(len(A), 0, -1))[::-1],
            "The order is turned round: entry 0 belongs to lag 0, the position itself.",
        ),
        Mistake(
            lambda A: A.sum(axis=0) / np.arange(len(A), 0, -1),
            "This averages by key, down the columns. A lag is the way from query to key: average "
            "along the diagonals.",
        ),
        Mistake(
            lambda A: A[-1, ::-1],
            "This is the last row alone. Every row that has the lag counts.",
        ),
        Mistake(
            lambda A: A.mean(axis=0),
            "This averages by key, down the columns. A lag is the way from query to key: average "
            "along the diagonals.",
        ),
    ),
    praise="Each lag has the mean over the rows that have it.",
)


def _seasons():
    rng = np.random.default_rng(2)
    return [
        (rng.normal(size=12).round(2), period, horizon)
        for period, horizon in ((5, 1), (5, 3), (4, 6), (1, 2), (12, 1))
    ]


def _at(index):
    """Make a wrong forecaster from the index that it reads."""
    return lambda y, period, horizon: y[index(len(y), period, horizon)]


check_seasonal_naive = Check(
    "check_seasonal_naive",
    correct=seasonal_naive,
    inputs=_seasons,
    mistakes=(
        Mistake(
            _at(lambda n, p, H: n - 1),
            "This is the last value. The season of the wanted one stood a period before it.",
        ),
        Mistake(
            _at(lambda n, p, H: n - 1 - p),
            "This is a period before the newest value, not before the wanted one: one step off, "
            "and the tied head's mistake.",
        ),
        Mistake(
            _at(lambda n, p, H: n - p),
            "Right for one step ahead. Further ahead, the season moves on with the horizon.",
        ),
        Mistake(
            _at(lambda n, p, H: H - p - 1),
            "Right up to a horizon of one period. Beyond it the index is no longer negative, and "
            "counts from the start: the last season has to repeat.",
        ),
        Mistake(
            _at(lambda n, p, H: n - p + H % p),
            "One step too far: the value `horizon` steps after y[-1] has the index n - 1 + "
            "horizon.",
        ),
    ),
    praise="The right season, also beyond one period.",
)
