"""A published transformer, run by the kernels of this book: all-MiniLM-L6-v2.

A BERT encoder (Devlin et al. 2019), made small by distillation (Wang et al. 2020) and trained so
that sentences which mean the same get similar vectors (Reimers and Gurevych 2019): six post-norm
blocks of width 384, twelve heads of 32, hidden width 1536, learned positions. Nothing of the
mathematics is here: this module gives the published arrays to `block.transformer_block`.
"""

from typing import NamedTuple

import numpy as np

from worked_examples.attention import AttentionParameters, projected_heads
from worked_examples.block import (
    BlockParameters,
    FeedForwardParameters,
    NormParameters,
    layer_norm,
    transformer_block,
)

__all__ = ["HEADS", "LAYERS", "LONGEST", "Reading", "block_parameters", "read", "sentence_vector"]

LAYERS, HEADS, LONGEST = 6, 12, 512  # LONGEST: the positions that it has vectors for
EPS = 1e-12


class Reading(NamedTuple):
    """What the model computed for one sequence of L tokens.

    Attributes
    ----------
    layers : (LAYERS + 1, L, 384) array
        The rows that enter the first block, then what each block returned.
    maps : (LAYERS, HEADS, L, L) array
        The weights of every head.
    queries : (LAYERS, HEADS, L, 32) array, or None
        If they were asked for.
    keys : (LAYERS, HEADS, L, 32) array, or None
        If they were asked for.
    """

    layers: np.ndarray
    maps: np.ndarray
    queries: np.ndarray | None = None
    keys: np.ndarray | None = None

    @property
    def rows(self):
        """The last block's output, (L, 384)."""
        return self.layers[-1]


def block_parameters(arrays, layer):
    """Gather one block's parameters from the published arrays, and turn them for ``x @ W``.

    Parameters
    ----------
    arrays : dict of str to array
        Matrices stand there as (columns, rows).
    layer : int

    Returns
    -------
    BlockParameters
        Its matrices are views of the arrays, transposed: nothing is copied.
    """

    def part(name, *kinds):
        return [arrays[f"encoder.layer.{layer}.{name}.{kind}"].T for kind in kinds]

    def matrices(*names):
        weights, biases = zip(*(part(name, "weight", "bias") for name in names), strict=True)
        return *weights, *biases

    attention = (f"attention.{name}" for name in ("self.query", "self.key", "self.value"))
    return BlockParameters(
        AttentionParameters(*matrices(*attention, "attention.output.dense")),
        FeedForwardParameters(*matrices("intermediate.dense", "output.dense")),
        NormParameters(*part("attention.output.LayerNorm", "weight", "bias")),
        NormParameters(*part("output.LayerNorm", "weight", "bias")),
    )


def read(numbers, arrays, *, positions=None, without=(), scale=None, keep_heads=False):
    """Run the model on one sequence of tokens.

    Parameters
    ----------
    numbers : (L,) sequence of int
        Tokens' places in the vocabulary, as `wordpiece.encode` gives them; 1 to 512 of them.
    arrays : dict of str to array
        The published arrays under their names. What holds the vectors of words need not be an
        array: it is asked for ``words[numbers]`` alone.
    positions : (L,) sequence of int, optional
        Which position's vector each token gets; by default 0, 1, 2 ...
    without : iterable of (layer, head) pairs
        Heads that are switched off, counted from 0.
    scale : float, optional
        What scores are multiplied by; by default 1 / sqrt(32), as in training.
    keep_heads : bool
        Whether to return queries and keys too.

    Returns
    -------
    Reading

    Raises
    ------
    ValueError
        If there is no token or there are more than 512, or a number, a position, a layer or a
        head does not exist.
    """
    words = arrays["embeddings.word_embeddings.weight"]
    numbers = _places("token", numbers, words.shape[0])
    L = len(numbers)
    if not 1 <= L <= LONGEST:
        raise ValueError(f"the model reads 1 to {LONGEST} tokens; got {L}")
    positions = _places("position", range(L) if positions is None else positions, LONGEST)
    if len(positions) != L:
        raise ValueError(f"the model needs one position a token; got {len(positions)} for {L}")
    kept = np.ones((LAYERS, HEADS), dtype=bool)
    for layer, head in without:
        kept[_places("layer", [layer], LAYERS), _places("head", [head], HEADS)] = False
    rows = words[numbers] + arrays["embeddings.position_embeddings.weight"][positions]
    rows = rows + arrays["embeddings.token_type_embeddings.weight"][0]
    norm = (arrays[f"embeddings.LayerNorm.{kind}"] for kind in ("weight", "bias"))
    layers, maps, heads = [layer_norm(rows, *norm, eps=EPS)], [], []
    for layer in range(LAYERS):
        parameters = block_parameters(arrays, layer)
        if keep_heads:
            heads.append(projected_heads(layers[-1], parameters.attention, HEADS)[:2])
        options = {"scale": scale, "kept": kept[layer], "activation": "gelu", "eps": EPS}
        rows, weights = transformer_block(layers[-1], parameters, HEADS, **options)
        layers.append(rows)
        maps.append(weights)
    queries, keys = map(np.stack, zip(*heads, strict=True)) if heads else (None, None)
    return Reading(np.stack(layers), np.stack(maps), queries, keys)


def sentence_vector(rows):
    """Average a sequence's rows and bring the result to length 1.

    The cosine of two sentences is then the dot product of their vectors (Reimers and Gurevych
    2019, section 3, for the mean).

    Parameters
    ----------
    rows : (L, d) array

    Returns
    -------
    (d,) array

    Examples
    --------
    >>> print(sentence_vector(np.array([[3.0, 0.0], [3.0, 8.0]])))
    [0.6 0.8]
    """
    mean = np.asarray(rows).mean(axis=0)
    return mean / np.linalg.norm(mean)


def _places(name, numbers, count):
    """Check that whole numbers name one of so many things."""
    numbers = np.asarray(numbers)
    whole = numbers.size == 0 or numbers.dtype.kind in "iu"
    if numbers.ndim != 1 or not whole or ((numbers < 0) | (numbers >= count)).any():
        raise ValueError(f"each {name} must be a whole number from 0 to {count - 1}; got {numbers}")
    return numbers.astype(int)
