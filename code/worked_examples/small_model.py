"""A small model whose heads nobody assigns their jobs: trained, looked at, taken apart, in torch.

Tokens follow two rules. Half of the time the next token counts on from the newest one; the other
half it repeats the token of one period ago. A model that knows both rules is left with one choice
out of two; a head that finds both tokens and mixes them up is left with more. The model is one
attention layer with causal heads and nothing else: embed, attend, read out. Losses are in bits a
token.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from worked_examples.attention import entropy
from worked_examples.training import one_thread, train_by_adam

__all__ = [
    "PERIOD",
    "SEEDS",
    "TOKENS",
    "Trained",
    "attend",
    "draw_tokens",
    "head_tables",
    "least_bits",
    "loss_table",
    "mean_maps",
    "removal_costs",
    "train",
]

TOKENS = 8  # in the vocabulary, so a guess costs log2 8 = 3 bits
PERIOD = 4
SEEDS = (0, 1, 2, 3, 4)


class Trained(NamedTuple):
    """Several models of one kind, trained from several seeds, with what they were measured on.

    Attributes
    ----------
    h : int
        Number of heads.
    parameters : dict of torch.Tensor
        Each with one leading dimension for the seeds.
    tokens : (n, L) tensor of int
        Sequences that no model was trained on.
    bits : (seeds,) array
        Each model's loss on these.
    """

    h: int
    parameters: dict
    tokens: torch.Tensor
    bits: np.ndarray


# ---------------------------------------------------------------------------------- the data


def draw_tokens(B, L, rng):
    """Draw B sequences of L tokens by the two rules, each rule half of the time.

    Returns
    -------
    (B, L) array of int
        The first PERIOD tokens are free; then token t is ``tokens[t - 1] + 1`` (modulo TOKENS) or
        ``tokens[t - PERIOD]``.

    Examples
    --------
    >>> draw_tokens(1, 12, np.random.default_rng(0)).tolist()
    [[6, 5, 4, 2, 6, 5, 4, 2, 6, 7, 4, 5]]
    """
    tokens = rng.integers(TOKENS, size=(B, L))
    for t in range(PERIOD, L):
        counts_on = (tokens[:, t - 1] + 1) % TOKENS
        tokens[:, t] = np.where(rng.random(B) < 0.5, counts_on, tokens[:, t - PERIOD])
    return tokens


def least_bits(tokens):
    """Give the least mean loss that knowledge of the rules allows on these sequences, in bits.

    It is 1 bit where the rules name two tokens and 0 where they name the same one.

    Parameters
    ----------
    tokens : (n, L) array of int

    Returns
    -------
    float

    Examples
    --------
    >>> least_bits(np.array([[0, 1, 2, 3, 4, 1], [3, 0, 0, 2, 3, 0]]))
    0.75
    """
    tokens = np.asarray(tokens)
    counts_on = (tokens[:, PERIOD - 1 : -1] + 1) % TOKENS
    return float(np.mean(counts_on != tokens[:, :-PERIOD]))


# --------------------------------------------------------------------------------- the model


def _new_parameters(seeds, L, d):
    shapes = {
        "embedding": (TOKENS, d), "position": (L, d), "query": (d, d), "key": (d, d),
        "value": (d, d), "output": (d, d), "readout": (d, TOKENS),
    }  # fmt: skip
    drawn = {name: [] for name in shapes}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for name, shape in shapes.items():
            size = 1 if name in ("embedding", "position") else 1 / math.sqrt(d)
            drawn[name].append(size * rng.normal(size=shape))
    return {
        name: torch.tensor(np.array(arrays), dtype=torch.float32, requires_grad=True)
        for name, arrays in drawn.items()
    }


def attend(parameters, tokens, h, *, removed=None):
    """Score the next token at every position with the models of all seeds at once.

    Parameters
    ----------
    parameters : dict of torch.Tensor
    tokens : (B, L) tensor of int, or (seeds, B, L) for sequences of each model's own
    h : int
    removed : int, optional
        A head whose output is set to 0.

    Returns
    -------
    scores : (seeds, B, L, TOKENS) tensor
    weights : (seeds, B, h, L, L) tensor
    """
    p = {name: tensor[:, None] for name, tensor in parameters.items()}  # (seeds, 1, ...)
    L = tokens.shape[-1]
    one_hot = F.one_hot(tokens, TOKENS).to(p["embedding"].dtype)
    X = one_hot @ p["embedding"] + p["position"][..., :L, :]  # (seeds, B, L, d)
    Q, K, V = ((X @ p[name]).unflatten(-1, (h, -1)).transpose(-2, -3)
               for name in ("query", "key", "value"))  # fmt: skip
    S = Q @ K.mT / math.sqrt(Q.shape[-1])  # (seeds, B, h, L, L)
    future = torch.ones(L, L, dtype=torch.bool).triu(1)
    A = S.masked_fill(future, -math.inf).softmax(-1)
    heads = A @ V  # (seeds, B, h, L, d_k)
    if removed is not None:
        heads = heads * (torch.arange(h) != removed)[:, None, None]
    joined = heads.transpose(-2, -3).flatten(-2)  # (seeds, B, L, d)
    return joined @ p["output"] @ p["readout"], A


def _bits(parameters, tokens, h, **options):
    """Give each seed's mean loss in bits, where a whole period stands before the token."""
    scores, _ = attend(parameters, tokens, h, **options)
    scores = scores[..., PERIOD - 1 : -1, :]
    wanted = tokens[..., PERIOD:].expand(scores.shape[:-1])
    losses = F.cross_entropy(scores.flatten(0, -2), wanted.flatten(), reduction="none")
    return losses.reshape(len(scores), -1).mean(-1) / math.log(2)


# ----------------------------------------------------------------------------------- training


def train(h, *, seeds=SEEDS, steps=300, B=32, L=12, d=32, rate=0.02):
    """Train one model a seed, on new sequences at every step, and measure all on 200 more.

    The models never meet: they share an array's leading dimension and nothing else.

    Parameters
    ----------
    h : int
        Number of heads; d must be a multiple of it.
    seeds : sequence of int
        Of the parameters and of the sequences; with them everything is repeated exactly.
    steps, B, L, d : int
        Steps of Adam, sequences a step, tokens a sequence, width of the layer.
    rate : float

    Returns
    -------
    Trained

    Raises
    ------
    ValueError
        If h does not divide d.
    """
    if d % h:
        raise ValueError(f"the width must be a multiple of the number of heads; got {d} and {h}")
    parameters = _new_parameters(seeds, L, d)
    drawn = [draw_tokens(steps * B, L, np.random.default_rng(1000 + seed)) for seed in seeds]
    batches = torch.from_numpy(np.array(drawn)).split(B, dim=1)  # each (seeds, B, L)
    held_out = torch.from_numpy(draw_tokens(200, L, np.random.default_rng(999)))
    with one_thread():
        train_by_adam(
            parameters, batches, lambda tokens: _bits(parameters, tokens, h), rate, to_zero=True
        )
        parameters = {name: tensor.detach() for name, tensor in parameters.items()}
        bits = _bits(parameters, held_out, h).double().numpy()
    return Trained(h, parameters, held_out, bits)


# -------------------------------------------------------------------------- what the heads do


def loss_table(models):
    """List least, mean and most of the loss over the seeds, in bits a token.

    Parameters
    ----------
    models : sequence of Trained

    Returns
    -------
    list of dict
        One row a model.
    """
    return [
        {"heads": m.h, "least": m.bits.min(), "mean": m.bits.mean(), "most": m.bits.max()}
        for m in models
    ]


def _weights(model):
    return attend(model.parameters, model.tokens, model.h)[1].double().numpy()


def mean_maps(model):
    """Average each head's weights over the sequences that no model was trained on.

    Returns
    -------
    (seeds, h, L, L) array
    """
    return _weights(model).mean(axis=1)


def removal_costs(model):
    """Measure how far the loss rises when one head's output is set to 0 and the rest stay.

    Returns
    -------
    (seeds, h) array
        In bits a token.
    """
    removed = [
        _bits(model.parameters, model.tokens, model.h, removed=i).double().numpy()
        for i in range(model.h)
    ]
    return np.stack(removed, axis=-1) - model.bits[:, None]


def head_tables(model):
    """Read each head of each model: how it spreads, where it looks, what it is needed for.

    All readings are means over the positions at which the loss is counted.

    Parameters
    ----------
    model : Trained

    Returns
    -------
    list of list of dict
        One table a seed, one row a head: entropy in bits; mean distance in positions; mean weight
        on the newest token (lag 0), the one before it (lag 1) and the one that stood a period
        before the wanted one (lag PERIOD - 1); the rise of the loss without the head, in bits.
    """
    A = _weights(model)[..., PERIOD - 1 : -1, :]  # (seeds, n, h, queries, L)
    lag = np.arange(PERIOD - 1, A.shape[-1] - 1)[:, None] - np.arange(A.shape[-1])
    mean = A.mean(axis=1)  # (seeds, h, queries, L)
    readings = {
        "entropy": entropy(A).mean(axis=(1, 3)),
        "distance": (mean * lag).sum(axis=-1).mean(axis=-1),
        **{f"lag {k}": (mean * (lag == k)).sum(axis=-1).mean(axis=-1) for k in (0, 1, PERIOD - 1)},
        "rise without it": removal_costs(model),
    }
    return [
        [
            {"head": i, **{name: float(values[s, i]) for name, values in readings.items()}}
            for i in range(model.h)
        ]
        for s in range(len(model.bits))
    ]
