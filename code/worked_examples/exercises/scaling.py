"""Exercises of the chapter on the divisor."""

import math

import numpy as np

from worked_examples.attention import softmax, softmax_jacobian
from worked_examples.exercises.checking import Check, Mistake

__all__ = ["check_bilinear_weights", "check_gradient_norms", "check_scaled_weights"]

# ------------------------------------------------------------------------- scaled weights


def _sequence_inputs():
    rng = np.random.default_rng(0)
    # No size is the root of another, and no root of a d_k is one of the constants below.
    return [
        (rng.normal(size=(L, d)), rng.normal(size=(d, d_k)), rng.normal(size=(d, d_k)))
        for L, d, d_k in [(3, 10, 6), (5, 7, 12), (1, 3, 5), (2, 6, 1)]
    ]


def _weights(divisor, rows=softmax):
    """Make the function with this divisor in it, a function of (L, d, d_k)."""

    def function(X, W_Q, W_K):
        return rows((X @ W_Q) @ (X @ W_K).T / divisor(len(X), *W_Q.shape))

    return function


def _root(L, d, d_k):
    return math.sqrt(d_k)


def _of_all(scores):
    return softmax(scores.ravel()).reshape(scores.shape)


check_scaled_weights = Check(
    "check_scaled_weights",
    correct=_weights(_root),
    inputs=_sequence_inputs,
    mistakes=(
        Mistake(
            _weights(lambda L, d, d_k: 1),
            "There is no divisor: these scores grow with the root of d_k.",
        ),
        Mistake(
            _weights(lambda L, d, d_k: d_k),
            "The divisor is d_k, the variance of the scores. Their size is its square root.",
        ),
        Mistake(
            _weights(lambda L, d, d_k: math.sqrt(d)),
            "The divisor is the root of the embedding's width d. A score is a sum over d_k "
            "terms, so the width of the keys decides.",
        ),
        Mistake(
            _weights(lambda L, d, d_k: d),
            "The divisor is the embedding's width d. It should be the root of the keys' width d_k.",
        ),
        Mistake(
            _weights(lambda L, d, d_k: math.sqrt(L)),
            "The divisor is the root of the number of keys. It should be that of their width.",
        ),
        Mistake(
            _weights(lambda L, d, d_k: 2),
            "The divisor is 2 for every width. That is right where d_k is 4, and nowhere else.",
        ),
        Mistake(
            _weights(lambda L, d, d_k: 8),
            "The divisor is 8 for every width. That is right where d_k is 64, and nowhere else.",
        ),
        Mistake(
            _weights(lambda L, d, d_k: 16),
            "The divisor is 16 for every width. That is right where d_k is 256, and nowhere else.",
        ),
        Mistake(
            _weights(_root, lambda scores: softmax(scores.T).T),
            "The softmax runs down the columns. A row is one query, and each row sums to 1.",
        ),
        Mistake(
            _weights(_root, _of_all),
            "The softmax shares one unit of weight among the whole matrix. Each row gets its own.",
        ),
        Mistake(
            _weights(_root, lambda scores: scores),
            "These are the scaled scores. The softmax of each row makes them weights.",
        ),
        Mistake(
            lambda X, W_Q, W_K: _weights(lambda *_: 1)(X, W_Q, W_K) / math.sqrt(W_Q.shape[1]),
            "The weights are divided, and no longer sum to 1. Divide the scores instead.",
        ),
        Mistake(
            lambda X, W_Q, W_K: _weights(_root)(X, W_K, W_Q),
            "Queries and keys are swapped: row i belongs to query i.",
        ),
    ),
    praise="The divisor follows the keys' width, whatever the length and the embedding's width.",
)

# ------------------------------------------------------------------------- gradient norms


def _norms(scores, d_k, norm=np.linalg.norm, jacobian=softmax_jacobian):
    """Give the norm without the divisor and with it."""
    return tuple(
        norm(jacobian(softmax(np.asarray(scores) / divisor))) for divisor in (1, math.sqrt(d_k))
    )


def _no_indicator(weights):
    return np.outer(weights, 1 - weights)


check_gradient_norms = Check(
    "check_gradient_norms",
    correct=_norms,
    inputs=lambda: [
        (np.array([3.0, 1.0, -2.0]), 9),
        (np.array([0.0, 0.5]), 3),
        (np.random.default_rng(0).normal(size=8) * 8, 64),
        (np.array([5.0]), 4),
    ],
    mistakes=(
        Mistake(
            lambda scores, d_k: _norms(scores, d_k)[::-1],
            "Both norms are right, in the wrong order: first without the divisor, then with it.",
        ),
        Mistake(
            lambda scores, d_k: _norms(scores, d_k, jacobian=lambda a: np.diag(a * (1 - a))),
            "Only the diagonal is there. Raising one score also lowers the other weights: "
            "-a_i a_j beside the diagonal.",
        ),
        Mistake(
            lambda scores, d_k: _norms(scores, d_k, jacobian=_no_indicator),
            "Each entry is a_i (1 - a_j). The 1 belongs on the diagonal alone: diag(a) - a a^T.",
        ),
        Mistake(
            lambda scores, d_k: _norms(scores, d_k, jacobian=lambda a: np.outer(a, a)),
            "This is a a^T alone. The Jacobian is diag(a) - a a^T.",
        ),
        Mistake(
            lambda scores, d_k: _norms(scores, d_k, norm=lambda J: np.linalg.norm(J, 2)),
            "This is the largest singular value. The Frobenius norm is the root of the sum of "
            "all squared entries: np.linalg.norm(J) with no second argument.",
        ),
        Mistake(
            lambda scores, d_k: _norms(scores, d_k, norm=lambda J: (J**2).sum()),
            "These are the squared norms; take the root.",
        ),
        Mistake(
            lambda scores, d_k: _norms(scores, d_k**2),
            "The second one divides by d_k; its square root is wanted.",
        ),
        Mistake(
            lambda scores, d_k: (_norms(scores, d_k)[0], _norms(scores, d_k)[1] / math.sqrt(d_k)),
            "The second one is the derivative by the raw scores. Here the softmax's own is asked "
            "for, by the numbers that it was given.",
        ),
    ),
    praise="Both norms are right: what the softmax passes back without the divisor, and with it.",
)

# -------------------------------------------------------------------------- another score


def _bilinear_inputs():
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=d_q), rng.normal(size=(d_q, d_k)), rng.normal(size=(n, d_k)))
        for n, d_q, d_k in [(3, 3, 5), (6, 7, 2), (4, 5, 5), (1, 2, 3), (2, 1, 1)]
    ]


def _bilinear(divisor, rows=softmax):
    """Make the function with this divisor in it, a function of d_q, d_k and the scores."""

    def function(q, B, K):
        scores = K @ (q @ B)
        return rows(scores / divisor(*B.shape, scores))

    return function


check_bilinear_weights = Check(
    "check_bilinear_weights",
    correct=_bilinear(lambda d_q, d_k, _: math.sqrt(d_q * d_k)),
    inputs=_bilinear_inputs,
    mistakes=(
        Mistake(_bilinear(lambda d_q, d_k, _: 1), "There is no divisor yet."),
        Mistake(
            _bilinear(lambda d_q, d_k, _: math.sqrt(d_k)),
            "sqrt(d_k) is the dot product's divisor. This score is a sum over i and over j: how "
            "many terms is that?",
        ),
        Mistake(
            _bilinear(lambda d_q, d_k, _: math.sqrt(d_q)),
            "This divisor counts the query's entries alone. The sum runs over i and over j.",
        ),
        Mistake(
            _bilinear(lambda d_q, d_k, _: math.sqrt(d_q + d_k)),
            "The terms are one for each pair (i, j), so d_q times d_k of them, not d_q plus d_k.",
        ),
        Mistake(
            _bilinear(lambda d_q, d_k, _: d_q * d_k),
            "That is the score's variance. Divide by its standard deviation.",
        ),
        Mistake(
            _bilinear(lambda d_q, d_k, scores: scores.std()),
            "This divides by the spread of the scores at hand, so that no query can ever be more "
            "decided than another. The divisor is a constant that the two widths give.",
        ),
        Mistake(
            _bilinear(lambda d_q, d_k, _: math.sqrt(d_q * d_k), lambda scores: scores),
            "The divisor is right. These are still scores: the softmax is missing.",
        ),
    ),
    praise="d_q times d_k terms of variance 1, so the divisor is the root of their product.",
)
