"""Exercises of the chapter on position."""

import numpy as np

from worked_examples.attention import scaled_dot_product_attention
from worked_examples.exercises.checking import Check, Mistake
from worked_examples.positions import (
    alibi_bias,
    alibi_slopes,
    angles,
    rotary,
    sinusoidal_encoding,
    with_positions,
)

__all__ = ["check_alibi", "check_equivariance", "check_rotary", "check_sinusoids"]

# ----------------------------------------------------------------------------- equivariance


def _attention(X):
    return scaled_dot_product_attention(X, X, X)[0]


def _with_sinusoids(X):
    return _attention(with_positions(X))


def _causal(X):
    return scaled_dot_product_attention(X, X, X, causal=True)[0]


def _layer_inputs():
    rng = np.random.default_rng(0)
    layers = (_causal, _with_sinusoids, np.tanh, _attention)
    return [(layer, rng.normal(size=(5, 4)), np.array([2, 0, 3, 4, 1])) for layer in layers]


def _gap(layer, X, order):
    return np.abs(layer(X[order]) - layer(X)[order]).max()


check_equivariance = Check(
    "check_equivariance",
    correct=_gap,
    inputs=_layer_inputs,
    mistakes=(
        Mistake(
            lambda layer, X, order: np.abs(layer(X[order]) - layer(X)).max(),
            "This asks whether the output stays as it is, which is invariance. Permute the rows "
            "of one output alike before you compare.",
        ),
        Mistake(
            lambda layer, X, order: np.abs(layer(X[order])[order] - layer(X)).max(),
            "The output is permuted a second time by the same order. To undo an order, index "
            "with its inverse, np.argsort(order); or permute layer(X) instead.",
        ),
        Mistake(
            lambda layer, X, order: (layer(X[order]) - layer(X)[order]).max(),
            "Differences below 0 are lost: take the absolute value before the largest.",
        ),
        Mistake(
            lambda layer, X, order: np.abs(layer(X[order]) - layer(X)[order]).mean(),
            "This is the mean difference; the largest is asked for.",
        ),
        Mistake(
            lambda layer, X, order: np.abs(layer(X[:, order[:4] % 4]) - layer(X)).max(),
            "This permutes the features. Positions are rows: X[order].",
        ),
    ),
    praise="Attention commutes with the permutation; sinusoids and a causal mask end that.",
)

# -------------------------------------------------------------------------------- sinusoids


def _batch_inputs():
    rng = np.random.default_rng(1)
    shapes = [((3, 3, 6), 10_000.0), ((2, 5, 4), 100.0), ((1, 1, 2), 10.0), ((4, 7, 8), 10_000.0)]
    return [(rng.normal(size=shape), base) for shape, base in shapes]


def _encoded(phase):
    return np.stack([np.sin(phase), np.cos(phase)], axis=-1).reshape(*phase.shape[:-1], -1)


def _along_batch(X, base):
    return X + sinusoidal_encoding(X.shape[0], X.shape[-1], base)[:, None, :]


def _in_blocks(X, base):
    phase = np.arange(X.shape[1])[:, None] * angles(X.shape[2], base)
    return X + np.concatenate([np.sin(phase), np.cos(phase)], axis=-1)


def _half_exponent(X, base):
    d = X.shape[2]
    return X + _encoded(np.arange(X.shape[1])[:, None] * base ** (-np.arange(d // 2) / d))


def _exponent_of_its_own(X, base):
    d = X.shape[2]
    phase = np.arange(X.shape[1])[:, None] * base ** (-np.arange(d) / d)
    return X + np.where(np.arange(d) % 2 == 0, np.sin(phase), np.cos(phase))


def _cosine_first(X, base):
    encoding = sinusoidal_encoding(*X.shape[1:], base)
    return X + encoding.reshape(X.shape[1], -1, 2)[..., ::-1].reshape(encoding.shape)


check_sinusoids = Check(
    "check_sinusoids",
    correct=with_positions,
    inputs=_batch_inputs,
    mistakes=(
        Mistake(
            _along_batch,
            "The encoding runs along the batch: all positions of one sequence got the same. "
            "Positions are the last axis but one.",
        ),
        Mistake(
            _in_blocks,
            "Sines stand in one block and cosines in another. Here they alternate: columns 2i "
            "and 2i + 1.",
        ),
        Mistake(
            _half_exponent,
            "The exponent is i / d; it should be 2i / d, so that angles fall to nearly 1 / base.",
        ),
        Mistake(
            _exponent_of_its_own,
            "Each column has an angle of its own. Columns 2i and 2i + 1 are a pair and share one: "
            "its exponent is 2i / d in both.",
        ),
        Mistake(
            lambda X, base: with_positions(X, np.e),
            "The base is that of np.exp alone; it should be the argument.",
        ),
        Mistake(
            lambda X, base: with_positions(X),
            "The base is 10000 whatever is asked for; use the argument.",
        ),
        Mistake(_cosine_first, "Sine and cosine are swapped: the even column holds the sine."),
        Mistake(
            lambda X, base: X + sinusoidal_encoding(X.shape[1] + 1, X.shape[2], base)[1:],
            "Positions are counted from 1 here; the first one is position 0.",
        ),
        Mistake(
            lambda X, base: X + sinusoidal_encoding(X.shape[1], X.shape[2], 1 / base),
            "The angles grow from pair to pair: divide the position by base^(2i / d).",
        ),
        Mistake(
            lambda X, base: with_positions(np.zeros_like(X), base),
            "This is the encoding, and it is right. Return the rows with it added.",
        ),
    ),
    praise="Every sequence got the same encodings, every position its own.",
)

# ----------------------------------------------------------------------------------- rotary


def _rotary_inputs():
    rng = np.random.default_rng(2)
    return [tuple(rng.normal(size=(3, L, d_k))) for L, d_k in ((5, 4), (3, 8), (1, 2))]


def _attend(Q, K, V):
    return scaled_dot_product_attention(Q, K, V)


def _rotated(Q, K, V):
    return _attend(rotary(Q), rotary(K), V)


check_rotary = Check(
    "check_rotary",
    correct=_rotated,
    inputs=_rotary_inputs,
    mistakes=(
        Mistake(
            lambda Q, K, V: _attend(rotary(Q), rotary(K), rotary(V)),
            "The values are rotated too. A value is handed over as it is: rotate Q and K alone.",
        ),
        Mistake(
            lambda Q, K, V: _attend(rotary(Q, base=1), rotary(K, base=1), V),
            "Every pair turns by the same angle. Pair i turns by position times 10000^(-2i / d_k).",
        ),
        Mistake(
            lambda Q, K, V: _attend(rotary(Q), rotary(K, -np.arange(len(K))), V),
            "Keys turn the other way, so scores depend on the sum of two positions. Turn both "
            "the same way: then the difference is left.",
        ),
        Mistake(
            lambda Q, K, V: _attend(*(rotary(x, -np.arange(len(x))) for x in (Q, K)), V),
            "Both turn clockwise. It would serve as well, but the formula has a cos t - b sin t "
            "first and a sin t + b cos t second.",
        ),
        Mistake(
            lambda Q, K, V: _attend(rotary(Q), K, V),
            "Only the queries are rotated, so scores depend on the query's position, not on the "
            "offset. Rotate the keys as well.",
        ),
        Mistake(
            lambda Q, K, V: _attend(*(rotary(x, pairing="halves") for x in (Q, K)), V),
            "These pairs are columns i and i + d_k/2, as some libraries have them. Here they are "
            "2i and 2i + 1.",
        ),
        Mistake(
            lambda Q, K, V: _attend(with_positions(Q), with_positions(K), V),
            "Sinusoids are added here. Rotary turns the pairs and adds nothing.",
        ),
        Mistake(_attend, "There is no rotation in these weights."),
        Mistake(
            lambda Q, K, V: _rotated(Q, K, V)[0],
            "The output is right. Return the weights as well: output, weights.",
        ),
    ),
    praise="Scores follow the offset, values stay as they are.",
)

# ------------------------------------------------------------------------------------ ALiBi


def _alibi(h, L_q, L_k):
    return alibi_bias(alibi_slopes(h), L_q, L_k)


def _aligned_at_the_start(h, L_q, L_k):
    distance = np.abs(np.arange(L_q)[:, None] - np.arange(L_k))
    return -alibi_slopes(h)[:, None, None] * distance


def _halving(h, L_q, L_k):
    return alibi_bias(0.5 ** np.arange(1, h + 1), L_q, L_k)


def _signed(h, L_q, L_k):
    ahead = np.arange(L_k) - np.arange(L_k - L_q, L_k)[:, None]
    return alibi_slopes(h)[:, None, None] * ahead


check_alibi = Check(
    "check_alibi",
    correct=_alibi,
    inputs=lambda: [(4, 2, 5), (8, 3, 3), (1, 1, 4), (2, 6, 6)],
    mistakes=(
        Mistake(
            lambda h, L_q, L_k: -_alibi(h, L_q, L_k),
            "The sign is turned: here a far key gains. Distance should cost.",
        ),
        Mistake(
            _aligned_at_the_start,
            "Query 0 stands at key 0 here. The last query stands at the last key: with fewer "
            "queries than keys, query i is at position i + L_k - L_q.",
        ),
        Mistake(
            _halving,
            "The slopes are 1/2, 1/4, 1/8 ... for every number of heads. For h heads the first "
            "is 2^(-8/h), and each is that times the one before.",
        ),
        Mistake(
            _signed,
            "Keys after the query gain. A causal mask would hide that, but the bias should cost "
            "distance on both sides.",
        ),
        Mistake(
            lambda h, L_q, L_k: alibi_bias(1, L_q, L_k),
            "This is one matrix. Each head has its own slope: (h, L_q, L_k).",
        ),
        Mistake(
            lambda h, L_q, L_k: np.moveaxis(_alibi(h, L_q, L_k), 0, -1),
            "The heads are the last axis; scores have them first: (h, L_q, L_k).",
        ),
    ),
    praise="Distance costs, each head at its own price, also with fewer queries than keys.",
)
