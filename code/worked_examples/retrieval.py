"""A small head that learns to retrieve: trained with and without the divisor.

There is a vocabulary of M tags. One example shows a few of them, each with a value, and asks
with a noisy copy of one: the right output is that tag's value. The head learns W^Q and W^K, so
that the query of a tag meets its own key and no other.

=======  ==============================================================================
M        tags in the vocabulary, each a one-hot row of width M
B        examples in a batch
n        pairs of a tag and a value that an example shows
X        what is asked, (B, 1, M): a tag's row and noise
T        the tags shown, (B, n, M)
V        their values, (B, n, d_v)
W_Q      (M, d_k): row i is the query of tag i
W_K      (M, d_k): row i is its key
=======  ==============================================================================
"""

import math
from typing import NamedTuple

import numpy as np

from worked_examples.attention import (
    attention_gradients,
    scaled_dot_product_attention,
    softmax_jacobian,
)

__all__ = [
    "EVERY",
    "PAIRS",
    "SEARCH_SEEDS",
    "SEEDS",
    "STEPS",
    "STEP_SIZES",
    "TAGS",
    "WIDTH",
    "Batch",
    "Trained",
    "draw_batch",
    "draw_start",
    "loss_and_gradients",
    "misses",
    "search",
    "train",
    "train_all",
]

TAGS, PAIRS, WIDTH, VALUE_WIDTH = 32, 8, 64, 4
BATCH, TEST_EXAMPLES, NOISE = 32, 256, 0.1
STEPS, EVERY = 200, 10
SEEDS = (0, 1, 2, 3, 4)
# The step size is chosen on seeds of its own, for each head from the same list.
SEARCH_SEEDS = (10, 11)
STEP_SIZES = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class Batch(NamedTuple):
    """Examples: queries X (B, 1, M), tags T (B, n, M), values V (B, n, d_v), wanted (B, 1, d_v)."""

    X: np.ndarray
    T: np.ndarray
    V: np.ndarray
    wanted: np.ndarray


class Trained(NamedTuple):
    """A head after training, and its losses on the test: before it, and after every tenth step."""

    losses: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray


def draw_batch(rng, examples=BATCH, *, tags=TAGS, pairs=PAIRS, fresh=False):
    """Draw examples, each of so many different tags, one of which is asked for.

    Parameters
    ----------
    rng : numpy.random.Generator
    examples, tags, pairs : int
        B, M and n.
    fresh : bool, default False
        Make up new tags for every example, vectors of norm 1 or so in all directions,
        instead of taking them from a vocabulary.

    Returns
    -------
    Batch

    Raises
    ------
    ValueError
        If an example needs more tags than there are.
    """
    if not 1 <= pairs <= tags:
        raise ValueError(f"an example shows 1 to {tags} different tags; got {pairs}")
    if fresh:
        T = rng.normal(size=(examples, pairs, tags)) / math.sqrt(tags)
    else:
        shown = np.argsort(rng.random((examples, tags)), axis=1)[:, :pairs]  # no tag twice
        T = np.eye(tags)[shown]
    V = rng.normal(size=(examples, pairs, VALUE_WIDTH))
    asked = np.arange(examples), rng.integers(pairs, size=examples)
    noise = NOISE * rng.normal(size=(examples, tags))
    X = T[asked] + (noise / math.sqrt(tags) if fresh else noise)
    return Batch(X[:, None], T, V, V[asked][:, None])


def draw_start(rng, d_k=WIDTH, *, tags=TAGS):
    """Draw W_Q and W_K with unit-variance entries, so that queries and keys have them too."""
    return rng.normal(size=(tags, d_k)), rng.normal(size=(tags, d_k))


def loss_and_gradients(W_Q, W_K, batch, scale):
    """Give the mean squared error of the retrieved values, and its gradients by W_Q and W_K.

    Parameters
    ----------
    W_Q, W_K : (M, d_k) array
    batch : Batch
    scale : float
        What the scores are multiplied by: 1 / sqrt(d_k), or 1 for no divisor.

    Returns
    -------
    loss : float
    W_Q_gradient, W_K_gradient : (M, d_k) arrays
    """
    X, T, V, wanted = batch
    Q, K = X @ W_Q, T @ W_K  # (B, 1, M) @ (M, d_k), (B, n, M) @ (M, d_k)
    error = scaled_dot_product_attention(Q, K, V, scale=scale)[0] - wanted
    Q_gradient, K_gradient, _ = attention_gradients(Q, K, V, 2 * error / error.size, scale=scale)
    return float((error**2).mean()), _by_weights(X, Q_gradient), _by_weights(T, K_gradient)


def _by_weights(inputs, gradient):
    """Add up over examples and rows: (M, B n) @ (B n, d_k) -> (M, d_k)."""
    return inputs.reshape(-1, inputs.shape[-1]).T @ gradient.reshape(-1, gradient.shape[-1])


def train(scale, step, seed, *, d_k=WIDTH, steps=STEPS, size=1.0, adam=False, fresh=False):
    """Train one head on fresh examples, and test it every ten steps on 256 others.

    Parameters
    ----------
    scale : float
        What the scores are multiplied by.
    step : float
        Step size.
    seed : int
        Draws the test, the start and every example: equal seeds see equal numbers.
    d_k, steps : int
    size : float, default 1
        Standard deviation of the entries of W_Q and W_K at the start.
    adam : bool, default False
        Take Adam's steps (Kingma and Ba, 2015) instead of plain gradient descent's.
    fresh : bool, default False
        New tags for every example, as `draw_batch` says.

    Returns
    -------
    Trained
    """
    rng = np.random.default_rng(seed)
    test = draw_batch(rng, TEST_EXAMPLES, fresh=fresh)
    W = [size * start for start in draw_start(rng, d_k)]
    rule = _Adam() if adam else _plain
    losses = [_loss(*W, test, scale)]
    for t in range(1, steps + 1):
        gradients = loss_and_gradients(*W, draw_batch(rng, fresh=fresh), scale)[1:]
        W = [w - step * change for w, change in zip(W, rule(gradients), strict=True)]
        if t % EVERY == 0:
            losses.append(_loss(*W, test, scale))
    return Trained(np.array(losses), *W)


def train_all(scale, step, seeds=SEEDS, **options):
    """Train one head a seed and give their losses, (seeds, steps // 10 + 1)."""
    return np.array([train(scale, step, seed, **options).losses for seed in seeds])


def search(scale, step_sizes=STEP_SIZES, seeds=SEARCH_SEEDS, **options):
    """Give the last loss for each step size: {step: mean over the seeds}."""
    return {
        step: float(train_all(scale, step, seeds, **options)[:, -1].mean()) for step in step_sizes
    }


def misses(scale, seed, head):
    """Look at the test questions that a head gets wrong.

    Parameters
    ----------
    scale : float
    seed : int
        The one that it was trained with.
    head : Trained

    Returns
    -------
    dict
        ``share``: how many give some other tag the largest weight; ``weight``: the median of
        that weight; ``Jacobian norm``: the median Frobenius norm of their softmax's Jacobian.
        NaN for the last two where the head misses none.
    """
    X, T, V, _ = draw_batch(np.random.default_rng(seed), TEST_EXAMPLES)
    Q, K = X @ head.W_Q, T @ head.W_K
    weights = scaled_dot_product_attention(Q, K, V, scale=scale)[1][:, 0]  # (B, n)
    right = (T @ X[:, 0, :, None])[..., 0].argmax(axis=-1)  # no noise of 0.1 hides a 1
    wrong = weights.argmax(axis=-1) != right
    if not wrong.any():
        return {"share": 0.0, "weight": math.nan, "Jacobian norm": math.nan}
    norms = np.linalg.norm(softmax_jacobian(weights[wrong]), axis=(-2, -1))
    return {
        "share": float(wrong.mean()),
        "weight": float(np.median(weights[wrong].max(axis=-1))),
        "Jacobian norm": float(np.median(norms)),
    }


def _loss(W_Q, W_K, batch, scale):
    X, T, V, wanted = batch
    output = scaled_dot_product_attention(X @ W_Q, T @ W_K, V, scale=scale)[0]
    return float(((output - wanted) ** 2).mean())


def _plain(gradients):
    return gradients


class _Adam:
    """Divide each entry's running mean by the root of its running mean square."""

    def __init__(self):
        self.t, self.mean, self.square = 0, [0.0, 0.0], [0.0, 0.0]

    def __call__(self, gradients):
        self.t += 1
        for i, gradient in enumerate(gradients):
            self.mean[i] = 0.9 * self.mean[i] + 0.1 * gradient
            self.square[i] = 0.999 * self.square[i] + 0.001 * gradient**2
        return [
            (mean / (1 - 0.9**self.t)) / (np.sqrt(square / (1 - 0.999**self.t)) + 1e-8)
            for mean, square in zip(self.mean, self.square, strict=True)
        ]
