"""Exercises of the chapter on the bottleneck."""

import numpy as np

from worked_examples.attention import softmax
from worked_examples.exercises.checking import Check, Mistake
from worked_examples.recurrence import (
    AdditiveParameters,
    EncoderParameters,
    additive_attention,
    encode,
)

__all__ = ["check_additive", "check_encoder", "check_paths"]


def _encoder_inputs():
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=(L, d)), rng.normal(size=(n, n)), rng.normal(size=(n, d)))
        for L, d, n in ((4, 2, 3), (1, 3, 3), (6, 1, 2))
    ]


def _no_memory(X, W, U):
    return np.tanh(X @ U.T)


def _linear(X, W, U):
    return encode(X, EncoderParameters(W, U), activation=lambda x: x)


def _starts_with_input(X, W, U):
    states, state = [], U @ X[0]
    for x in X:
        state = np.tanh(W @ state + U @ x)
        states.append(state)
    return np.array(states)


check_encoder = Check(
    "check_encoder",
    correct=lambda X, W, U: encode(X, EncoderParameters(W, U)),
    inputs=_encoder_inputs,
    mistakes=(
        Mistake(
            _no_memory,
            "Each state depends on its own input alone: the step before it, W @ h, is missing.",
        ),
        Mistake(_linear, "The numbers are those of a linear encoder: the tanh is missing."),
        Mistake(
            lambda X, W, U: encode(X, EncoderParameters(W.T, U)),
            "W is transposed: the new state is W @ h, row i of W giving component i.",
        ),
        Mistake(
            lambda X, W, U: encode(X, EncoderParameters(W, U))[-1],
            "That is the last state, and it is right. Return all L of them, one row a step.",
        ),
        Mistake(
            lambda X, W, U: encode(X[::-1], EncoderParameters(W, U))[::-1],
            "The sequence is read from its end. Start with row 0.",
        ),
        Mistake(_starts_with_input, "The state before the first step, h_0, is zero."),
    ),
    praise="All the states agree, also for a sequence of one step.",
)


def _additive_inputs():
    rng = np.random.default_rng(1)
    return [
        (
            rng.normal(size=d_s),
            rng.normal(size=(L, n)),
            rng.normal(size=(m, d_s)),
            rng.normal(size=(m, n)),
            rng.normal(size=m),
        )
        for L, n, d_s, m in ((5, 4, 3, 6), (1, 2, 2, 3), (3, 3, 3, 3))
    ]


def _additive(s, H, W, U, v):
    return additive_attention(s, H, AdditiveParameters(W, U, v))


def _scored(s, H, W, U, v, activation=np.tanh):
    return activation(W @ s + H @ U.T) @ v


check_additive = Check(
    "check_additive",
    correct=_additive,
    inputs=_additive_inputs,
    mistakes=(
        Mistake(
            lambda s, H, W, U, v: (_scored(s, H, W, U, v) @ H, _scored(s, H, W, U, v)),
            "These are scores, which do not sum to 1. The softmax makes them weights.",
        ),
        Mistake(
            lambda *a: (
                softmax(_scored(*a, activation=lambda x: x)) @ a[1],
                softmax(_scored(*a, activation=lambda x: x)),
            ),
            "The tanh is missing: without it the decoder's state shifts every score alike, and "
            "the weights do not depend on it.",
        ),
        Mistake(
            lambda *a: (_additive(*a)[1] @ a[1] / len(a[1]), _additive(*a)[1]),
            "The context is divided by L. Weights sum to 1 already.",
        ),
        Mistake(
            lambda *a: _additive(*a)[::-1],
            "Both results are right, in the wrong order: context first, then weights.",
        ),
        Mistake(
            lambda *a: _additive(*a)[0],
            "The context is right. Return the weights as well: context, weights.",
        ),
    ),
    praise="Context and weights agree. This was attention, three years before the transformer.",
)

check_paths = Check(
    "check_paths",
    correct=lambda L: (L - 1, L, 1, L * L),
    inputs=lambda: [(2,), (7,), (64,)],
    mistakes=(
        Mistake(
            lambda L: (L, L, 1, L * L),
            "From position 1 to position L there are L - 1 steps, not L.",
        ),
        Mistake(
            lambda L: (L - 1, L, 1, L * (L - 1) // 2),
            "Self-attention without a mask scores every ordered pair, each position with itself "
            "included.",
        ),
        Mistake(
            lambda L: (L - 1, L, L, L * L),
            "In self-attention no position waits for another: one step for all of them.",
        ),
    ),
    praise="Path, steps and pairs are right: the last one is the price of the other two.",
)
