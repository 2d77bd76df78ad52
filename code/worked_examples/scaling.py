"""The worked numbers of the chapter on the divisor: how scores grow with the width of the keys.

A *draw* is one query and its keys, all entries independent standard normal numbers.
"""

import math
from functools import lru_cache

import numpy as np

from worked_examples.attention import entropy, softmax

__all__ = [
    "DIVISORS",
    "DRAWS",
    "KEYS",
    "SEED",
    "WIDTHS",
    "distance_score",
    "distance_table",
    "divisor_table",
    "dot_score",
    "draw_scores",
    "jacobian_norm",
    "mean_norm",
    "readings",
    "sample_scores",
    "scale_table",
    "small_sample_factor",
]

DRAWS, KEYS, SEED = 200, 8, 0
WIDTHS = (4, 16, 64, 256, 1024)

# What people divide by, as functions of the width d_k. In a layer of eight heads the embedding
# is eight times as wide as one head's keys.
DIVISORS = {
    "nothing": lambda d_k: 1.0,
    "2": lambda d_k: 2.0,
    "16": lambda d_k: 16.0,
    "d_k": lambda d_k: float(d_k),
    "√(8 d_k)": lambda d_k: math.sqrt(8 * d_k),
    "√d_k": lambda d_k: math.sqrt(d_k),
}


# ------------------------------------------------------------------------------------ scores


def dot_score(q, K):
    """Score each key by its dot product with the query: (n, d_k) @ (d_k,) -> (n,)."""
    return K @ q


def distance_score(q, K):
    """Score each key by minus its squared distance from the query: (n,) from (n, d_k)."""
    return -((K - q) ** 2).sum(axis=-1)


def draw_scores(rng, d_k, keys=KEYS, draws=DRAWS, score=dot_score):
    """Draw a query and its keys, again and again, and score them.

    Parameters
    ----------
    rng : numpy.random.Generator
        Gives, for each draw, first the query (d_k,), then the keys (keys, d_k).
    d_k, keys, draws : int
    score : callable, default `dot_score`
        Takes q (d_k,) and K (keys, d_k), gives (keys,) scores.

    Returns
    -------
    (draws, keys) array
    """
    return np.array(
        [score(rng.normal(size=d_k), rng.normal(size=(keys, d_k))) for _ in range(draws)]
    )


def sample_scores(d_k, keys=KEYS, draws=DRAWS, seed=SEED):
    """Draw dot products without drawing the vectors: the same distribution at any width's cost.

    Given the query, its dot products with independent standard normal keys are independent
    normal numbers of variance ``|q|^2``, and ``|q|^2`` has the chi-square distribution with d_k
    degrees of freedom. So one norm and `keys` normal numbers make a draw.

    Returns
    -------
    (draws, keys) array
        For one seed and number of draws, another d_k stretches the same normal numbers, and up
        to 100 keys, fewer keys are the first of the same ones.
    """
    normal, state = _normal(draws, max(keys, 100), seed)
    rng = np.random.default_rng(0)
    rng.bit_generator.state = state
    return np.sqrt(rng.chisquare(d_k, size=(draws, 1))) * normal[:, :keys]


@lru_cache(2)
def _normal(draws, keys, seed):
    """Draw once what every move of a slider stretches, and say the generator's state after it."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(draws, keys)), rng.bit_generator.state


# ---------------------------------------------------------------------------------- readings


def jacobian_norm(weights):
    """Give the Frobenius norm of the softmax's Jacobian without building the matrix.

    ``diag(a) - a a^T`` has ``a_i (1 - a_i)`` on its diagonal and ``-a_i a_j`` beside it. What
    stands beside it is summed without the largest weight first: one of almost 1 would hide the
    others.

    Parameters
    ----------
    weights : (..., n) array

    Returns
    -------
    (...) array

    Examples
    --------
    >>> float(jacobian_norm([0.5, 0.5]))
    0.5
    """
    weights = np.asarray(weights, dtype=float)
    largest = weights.argmax(axis=-1)[..., None]
    diagonal = (weights * (1 - weights)) ** 2
    others = weights**2
    np.put_along_axis(others, largest, 0, axis=-1)
    rest = others.sum(axis=-1)
    # Twice the largest with each other one, then those among themselves, a_i a_j and a_j a_i.
    pairs = 2 * np.take_along_axis(weights, largest, -1)[..., 0] ** 2 * rest
    pairs += rest**2 - (others**2).sum(axis=-1)
    return np.sqrt(diagonal.sum(axis=-1) + pairs)


def readings(scores):
    """Take the means over draws of entropy (bits), largest weight and Jacobian norm.

    Parameters
    ----------
    scores : (draws, keys) array
        Divided already, or not.

    Returns
    -------
    dict of float
        ``"entropy"``, ``"largest weight"`` and ``"Jacobian norm"``.
    """
    weights = softmax(scores)
    return {
        "entropy": float(entropy(weights).mean()),
        "largest weight": float(weights.max(axis=-1).mean()),
        "Jacobian norm": float(jacobian_norm(weights).mean()),
    }


def small_sample_factor(n):
    """Give the mean of the population standard deviation of n standard normal numbers.

    ``sqrt(2 / n) Gamma(n / 2) / Gamma((n - 1) / 2)``: below 1, since the deviations are taken
    from the sample's own mean, and since a root is lower on average than at the average.

    Raises
    ------
    ValueError
        If n is below 1.

    Examples
    --------
    >>> round(small_sample_factor(8), 4), small_sample_factor(1)
    (0.9027, 0.0)
    """
    if n < 1:
        raise ValueError(f"a standard deviation needs at least one number; got n = {n}")
    if n == 1:
        return 0.0
    return math.sqrt(2 / n) * math.exp(math.lgamma(n / 2) - math.lgamma((n - 1) / 2))


def mean_norm(d_k):
    """Give the mean norm of a vector of d_k standard normal entries.

    ``sqrt(2) Gamma((d_k + 1) / 2) / Gamma(d_k / 2)``: a little below sqrt(d_k).

    Examples
    --------
    >>> round(mean_norm(4), 4), round(mean_norm(1024), 4)
    (1.88, 31.9922)
    """
    return math.sqrt(2) * math.exp(math.lgamma((d_k + 1) / 2) - math.lgamma(d_k / 2))


# ------------------------------------------------------------------------------------ tables


def scale_table(widths=WIDTHS, keys=KEYS, draws=DRAWS, seed=SEED):
    """Tabulate what the dot product's growth does to the weights, with the divisor and without.

    Parameters
    ----------
    widths : sequence of int
        One row for each d_k; one generator is carried through them in order.
    keys, draws, seed : int

    Returns
    -------
    list of dict
        ``"spread"`` is the mean over draws of the standard deviation of a draw's scores,
        ``"pooled"`` that of all scores together; the readings are means over draws.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for d_k in widths:
        scores = draw_scores(rng, d_k, keys, draws)
        row = {"d_k": d_k, "sqrt(d_k)": math.sqrt(d_k)}
        row |= {"spread": float(scores.std(axis=-1).mean()), "pooled": float(scores.std())}
        raw, scaled = readings(scores), readings(scores / math.sqrt(d_k))
        for name in raw:
            row |= {f"{name} unscaled": raw[name], f"{name} scaled": scaled[name]}
        rows.append(row)
    return rows


def divisor_table(widths=WIDTHS, divisors=DIVISORS, keys=KEYS, draws=DRAWS, seed=SEED):
    """Tabulate the mean entropy in bits under several divisors, for the scores of `scale_table`.

    Parameters
    ----------
    widths : sequence of int
    divisors : dict of str to callable
        Each gives a divisor for a d_k.
    keys, draws, seed : int

    Returns
    -------
    list of dict
        ``"width"``, and the entropy under each divisor by its name.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for d_k in widths:
        scores = draw_scores(rng, d_k, keys, draws)
        row = {"width": d_k}
        for name, divisor in divisors.items():
            row[name] = readings(scores / divisor(d_k))["entropy"]
        rows.append(row)
    return rows


def distance_table(widths=WIDTHS, keys=KEYS, draws=DRAWS, seed=SEED):
    """Tabulate the score ``-|q - k|^2``: its size, and the entropy under three divisors.

    Returns
    -------
    list of dict
        ``"pooled"`` beside sqrt(8 d_k); ``"within a draw"``, the root of the mean variance
        among one query's keys, beside sqrt(6 d_k); entropies in bits.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for d_k in widths:
        scores = draw_scores(rng, d_k, keys, draws, distance_score)
        # Each draw's variance about its own mean, n - 1 in place of n: unbiased.
        variance = scores.var(axis=-1, ddof=1).mean() if keys > 1 else 0.0
        rows.append(
            {
                "d_k": d_k,
                "sqrt(8 d_k)": math.sqrt(8 * d_k),
                "pooled": float(scores.std()),
                "sqrt(6 d_k)": math.sqrt(6 * d_k),
                "within a draw": math.sqrt(variance),
                "entropy, nothing": readings(scores)["entropy"],
                "entropy, sqrt(d_k)": readings(scores / math.sqrt(d_k))["entropy"],
                "entropy, sqrt(8 d_k)": readings(scores / math.sqrt(8 * d_k))["entropy"],
            }
        )
    return rows
