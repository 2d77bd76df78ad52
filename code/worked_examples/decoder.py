"""A whole decoder from the book's own kernels: tokens in, a score for every next token out.

Embedding, positions, pre-norm blocks under a causal mask, a last norm, and the embedding once
more to score the vocabulary. Symbols as in `block`: ``|V|`` tokens, d width, H hidden width, and
h heads.
"""

import operator
from typing import NamedTuple

import numpy as np

from worked_examples.block import (
    BlockParameters,
    NormParameters,
    initial_parameters,
    layer_norm,
    transformer_block,
)
from worked_examples.positions import sinusoidal_encoding

__all__ = ["DecoderParameters", "decoder", "draw_decoder", "generate", "influence"]


class DecoderParameters(NamedTuple):
    """What a decoder learns.

    Attributes
    ----------
    embedding : (``|V|``, d) array
        One row a token, used at both ends.
    blocks : tuple of BlockParameters
    norm : NormParameters
        Of the norm after the last block.
    """

    embedding: np.ndarray
    blocks: tuple[BlockParameters, ...]
    norm: NormParameters = NormParameters()


def draw_decoder(vocabulary, d, H, layers, seed=0):
    """Draw a decoder as it is before training.

    Parameters
    ----------
    vocabulary, d, H, layers : int
        Tokens, width, hidden width, number of blocks.
    seed : int
        Of ``numpy.random.default_rng``.

    Returns
    -------
    DecoderParameters

    Raises
    ------
    ValueError
        If a size is below 1.
    """
    if min(vocabulary, d, H, layers) < 1:
        sizes = (vocabulary, d, H, layers)
        raise ValueError(f"every size of a decoder must be at least 1; got {sizes}")
    rng = np.random.default_rng(seed)
    embedding = rng.normal(size=(vocabulary, d))
    return DecoderParameters(embedding, tuple(initial_parameters(d, H, rng) for _ in range(layers)))


def decoder(tokens, parameters, h):
    """Score every token of the vocabulary as the next one, after each prefix.

    Parameters
    ----------
    tokens : (..., L) array of int
    parameters : DecoderParameters
        Of an even width d, as the positions are sinusoids.
    h : int
        Number of heads.

    Returns
    -------
    logits : (..., L, ``|V|``) array
        Row i scores what follows token i, and depends on the tokens up to i alone.
    weights : list of (..., h, L, L) arrays
        The attention's, one array a block.

    Raises
    ------
    ValueError
        If there is no token, or one is not in the vocabulary; or from the kernels.

    Examples
    --------
    >>> logits, weights = decoder([1, 2, 0], draw_decoder(5, 8, 16, layers=2), h=2)
    >>> logits.shape, len(weights), weights[0].shape
    ((3, 5), 2, (2, 3, 3))
    """
    tokens = _tokens(tokens, len(parameters.embedding))
    X = parameters.embedding[tokens]  # (..., L) -> (..., L, d)
    X = X + sinusoidal_encoding(*X.shape[-2:])
    weights = []
    for block in parameters.blocks:
        X, A = transformer_block(X, block, h, norm="pre", causal=True)
        weights.append(A)
    return layer_norm(X, *parameters.norm) @ parameters.embedding.T, weights


def generate(tokens, steps, logits_after):
    """Append the best-scored token, again and again.

    Parameters
    ----------
    tokens : sequence of int
        What is there already, at least one token.
    steps : int
        How many tokens to append.
    logits_after : callable
        Takes a list of tokens and returns logits (L, ``|V|``).

    Returns
    -------
    list of int
        The old tokens and the new ones.

    Examples
    --------
    >>> generate([2], 3, lambda tokens: np.roll(np.eye(4), 1, axis=1)[tokens])
    [2, 3, 0, 1]
    """
    tokens = [operator.index(token) for token in tokens]
    for _ in range(steps):
        tokens.append(int(np.argmax(logits_after(tokens)[-1])))
    return tokens


def influence(forward, X, directions=4, step=1e-5, seed=0):
    """Measure how strongly the last row of a model's output depends on each row of its input.

    Parameters
    ----------
    forward : callable
        From (L, d) to (L, n).
    X : (L, d) array
    directions : int
        Random directions of length 1 in which each row is nudged, both ways.
    step : float
    seed : int
        Of the directions.

    Returns
    -------
    (L,) array
        Root mean square of the slopes, one number a row.
    """
    rng = np.random.default_rng(seed)
    nudges = rng.normal(size=(directions, X.shape[1]))
    nudges *= step / np.linalg.norm(nudges, axis=1, keepdims=True)
    slopes = np.empty((len(X), directions))
    for t in range(len(X)):
        for k, nudge in enumerate(nudges):
            moved = np.zeros_like(X)
            moved[t] = nudge
            change = forward(X + moved)[-1] - forward(X - moved)[-1]
            slopes[t, k] = np.linalg.norm(change) / (2 * step)
    return np.sqrt((slopes**2).mean(axis=1))


def _tokens(tokens, vocabulary):
    tokens = np.asarray(tokens)
    if tokens.dtype.kind not in "iu" or tokens.ndim == 0 or tokens.size == 0:
        raise ValueError(f"tokens must be whole numbers, at least one; got {tokens!r}")
    if tokens.min() < 0 or tokens.max() >= vocabulary:
        raise ValueError(
            f"tokens must lie between 0 and {vocabulary - 1}; got {tokens.min()} to {tokens.max()}"
        )
    return tokens
