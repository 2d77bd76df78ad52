"""The worked numbers of the chapter on queries, keys and values: lookups done softly.

One query among three keys that point the same way, then three queries among keys that do not.
"""

from typing import NamedTuple

import numpy as np

from worked_examples.attention import entropy, softmax

__all__ = [
    "KEYS",
    "QUERY",
    "SELECT_KEYS",
    "SELECT_QUERIES",
    "Steps",
    "lookup",
    "numerical_gradient",
    "one_query_table",
    "select_table",
]

# The query of *who*, and three words whose keys point much the same way.
QUERY = (0.1, 0.2, 0.3)
KEYS = {"is": (0.4, 0.5, 0.6), "the": (0.2, 0.1, 0.3), "best": (0.6, 0.7, 0.8)}

# Three words whose keys disagree, over the features (animal, vehicle, verb). Each row sums to
# 1, so a query that asks for the three alike scores every key alike.
SELECT_KEYS = {"dog": (0.9, 0.0, 0.1), "truck": (0.0, 0.9, 0.1), "barked": (0.1, 0.0, 0.9)}
SELECT_QUERIES = {"an animal": (10, 0, 0), "a verb": (0, 0, 10), "anything": (10, 10, 10)}


class Steps(NamedTuple):
    """The four steps of attention, and the reading of the third.

    Attributes
    ----------
    scores : (..., n) array
        Dot product of the query with each key.
    scaled : (..., n) array
        Scores over sqrt(d_k).
    weights : (..., n) array
        Their softmax.
    output : (..., d_v) array
        The values' average under these weights.
    entropy : (...) array
        Of the weights, in bits.
    """

    scores: np.ndarray
    scaled: np.ndarray
    weights: np.ndarray
    output: np.ndarray
    entropy: np.ndarray


def lookup(query, keys, values=None):
    """Run attention for one query or several, and keep every step.

    Parameters
    ----------
    query : (..., d_k) array
    keys : (n, d_k) array
    values : (n, d_v) array, optional
        By default the keys.

    Returns
    -------
    Steps

    Raises
    ------
    ValueError
        If the widths differ or there is no key; the message shows the shapes.

    Examples
    --------
    >>> lookup(QUERY, list(KEYS.values())).weights.round(4)
    array([0.3369, 0.3019, 0.3611])
    """
    query, keys = np.asarray(query, dtype=float), np.asarray(keys, dtype=float)
    values = keys if values is None else np.asarray(values, dtype=float)
    if keys.ndim != 2 or keys.size == 0 or query.shape[-1:] != keys.shape[-1:]:
        raise ValueError(f"query {query.shape} and keys {keys.shape} need one width, and a key")
    if values.ndim != 2 or len(values) != len(keys):
        raise ValueError(f"each key needs one value; got keys {keys.shape}, values {values.shape}")
    scores = query @ keys.T  # (..., d_k) @ (d_k, n) -> (..., n)
    scaled = scores / np.sqrt(keys.shape[-1])
    weights = softmax(scaled)
    return Steps(scores, scaled, weights, weights @ values, entropy(weights))


def one_query_table(query=QUERY, keys=KEYS):
    """List each key with its score, scaled score and weight for one query.

    Returns
    -------
    list of dict
        One row a key.
    """
    steps = lookup(query, list(keys.values()))
    return [
        {"key": word, "score": score, "scaled": scaled, "weight": weight}
        for word, score, scaled, weight in zip(keys, *steps[:3], strict=True)
    ]


def select_table(queries=SELECT_QUERIES, keys=SELECT_KEYS):
    """List each query with the weight that it gives to each key, and its entropy in bits.

    Returns
    -------
    list of dict
        One row a query.
    """
    steps = lookup(list(queries.values()), list(keys.values()))
    return [
        {"query": name, **dict(zip(keys, weights, strict=True)), "entropy": bits}
        for name, weights, bits in zip(queries, steps.weights, steps.entropy, strict=True)
    ]


def numerical_gradient(function, array, step=1e-5):
    """Measure a function's slope by each entry of an array, a nudge up and one down for each.

    Parameters
    ----------
    function : callable
        Takes an array of this shape, returns one number.
    array : (...) array
    step : float, default 1e-5
        Size of a nudge. The error of the slope is of the order of its square.

    Returns
    -------
    (...) array

    Examples
    --------
    >>> print(numerical_gradient(lambda x: (x**2).sum(), np.array([1.0, 3.0])).round(6))
    [2. 6.]
    """
    array = np.asarray(array, dtype=float)
    slope = np.empty_like(array)
    for index in np.ndindex(array.shape):
        nudge = np.zeros_like(array)
        nudge[index] = step
        slope[index] = (function(array + nudge) - function(array - nudge)) / (2 * step)
    return slope
