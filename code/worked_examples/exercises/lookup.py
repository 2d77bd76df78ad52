"""Exercises of the chapter on queries, keys and values."""

import numpy as np

from worked_examples.attention import entropy, scaled_dot_product_attention, softmax
from worked_examples.exercises.checking import Check, Mistake
from worked_examples.lookup import KEYS, QUERY, lookup

__all__ = ["check_entropy", "check_one_query", "check_self_attention"]


def _exp_rows(scores):
    return np.exp(scores) / np.exp(scores).sum()


def _query_inputs():
    rng = np.random.default_rng(0)
    keys = np.array(list(KEYS.values()))
    return [
        (np.array(QUERY), keys, rng.normal(size=(3, 2))),
        (rng.normal(size=5), rng.normal(size=(4, 5)), rng.normal(size=(4, 3))),
        (rng.normal(size=2), rng.normal(size=(1, 2)), rng.normal(size=(1, 6))),
    ]


def _for_query(divisor):
    """Make the one-query function with another divisor in it."""
    return lambda query, keys, values: softmax(keys @ query / divisor(query, keys)) @ values


check_one_query = Check(
    "check_one_query",
    correct=lambda query, keys, values: lookup(query, keys, values).output,
    inputs=_query_inputs,
    mistakes=(
        Mistake(
            _for_query(lambda query, keys: 1),
            "These are the weights of unscaled scores: divide by the square root of the width d_k.",
        ),
        Mistake(
            _for_query(lambda query, keys: query.size),
            "The scores are divided by d_k itself; its square root is wanted.",
        ),
        Mistake(
            _for_query(lambda query, keys: len(keys) ** 0.5),
            "The divisor is the root of the number of keys; it should be that of their width.",
        ),
        Mistake(
            lambda query, keys, values: keys @ query / query.size**0.5 @ values,
            "The values are summed under scores. Scores become weights by the softmax.",
        ),
        Mistake(
            lambda query, keys, values: softmax(keys @ query / query.size**0.5) @ keys,
            "This averages the keys. Keys are matched; what is averaged is the values.",
        ),
        Mistake(
            lambda query, keys, values: softmax(keys @ query / query.size**0.5),
            "These are the weights, and they are right. The output is the values' average.",
        ),
        Mistake(
            lambda query, keys, values: values[np.argmax(keys @ query)],
            "This returns the best match alone, a hard lookup. Average all the values.",
        ),
    ),
    praise="Four steps: score, scale, softmax, average. That is attention for one query.",
)


def _matrix_inputs():
    rng = np.random.default_rng(1)
    shapes = [(3, 3, 3, 2), (5, 6, 4, 3), (1, 2, 3, 4)]
    return [
        (
            rng.normal(size=(L, d)),
            rng.normal(size=(d, d_k)),
            rng.normal(size=(d, d_k)),
            rng.normal(size=(d, d_v)),
        )
        for L, d, d_k, d_v in shapes
    ]


def _self_attention(X, W_Q, W_K, W_V):
    return scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)


def _by_columns(X, W_Q, W_K, W_V):
    scores = X @ W_Q @ (X @ W_K).T / W_K.shape[1] ** 0.5
    weights = softmax(scores.T).T
    return weights @ X @ W_V, weights


def _swapped(X, W_Q, W_K, W_V):
    return scaled_dot_product_attention(X @ W_K, X @ W_Q, X @ W_V)


def _embedding_divisor(X, W_Q, W_K, W_V):
    return scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V, scale=X.shape[1] ** -0.5)


def _no_divisor(X, W_Q, W_K, W_V):
    return scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V, scale=1)


def _raw_values(X, W_Q, W_K, W_V):
    return scaled_dot_product_attention(X @ W_Q, X @ W_K, X)


check_self_attention = Check(
    "check_self_attention",
    correct=_self_attention,
    inputs=_matrix_inputs,
    mistakes=(
        Mistake(
            _by_columns,
            "The softmax runs down the columns. Each row is one query's choice, so each row "
            "has to sum to 1.",
        ),
        Mistake(_swapped, "Queries and keys are swapped: row i of the scores belongs to query i."),
        Mistake(
            _embedding_divisor,
            "The divisor is the root of the embedding's width d; it should be that of d_k.",
        ),
        Mistake(_no_divisor, "The scores are not divided by the square root of d_k."),
        Mistake(_raw_values, "The values are X itself. A position hands over its value, X @ W_V."),
        Mistake(
            lambda *arguments: _self_attention(*arguments)[0],
            "The output is right. Return the weights as well: output, weights.",
        ),
        Mistake(
            lambda *arguments: _self_attention(*arguments)[::-1],
            "Both results are right, in the wrong order: output first, then weights.",
        ),
    ),
    praise="Output and weights agree with the kernel for every shape, widths apart included.",
)


def _plain_entropy(weights, logarithm=np.log2):
    with np.errstate(all="ignore"):
        return -np.sum(weights * logarithm(weights))


check_entropy = Check(
    "check_entropy",
    correct=lambda weights: entropy(weights),
    inputs=lambda: [
        (np.array([0.5, 0.25, 0.25]),),
        (np.full(3, 1 / 3),),
        (np.array([0.0, 1.0, 0.0]),),
        (np.array([0.7, 0.3, 0.0]),),
    ],
    mistakes=(
        Mistake(
            _plain_entropy,
            "A weight of 0 gives 0 * log2(0), which numpy makes NaN. It should add nothing.",
        ),
        Mistake(
            lambda weights: _plain_entropy(weights, np.log),
            "That is the natural logarithm, so the unit is nats. For bits, use log2.",
        ),
        Mistake(
            lambda weights: -_plain_entropy(weights), "The sign is missing: bits are positive."
        ),
        Mistake(
            lambda weights: _plain_entropy(weights) / np.log2(len(weights)),
            "This is a share of the most possible. Leave it in bits.",
        ),
    ),
    praise="Right, also where a weight is exactly 0.",
)
