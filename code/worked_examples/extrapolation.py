"""What each way of giving position does past the length it was trained on: small heads, in torch.

One causal attention layer, embedding in front and read-out behind, is trained on short sequences
of random tokens and then run on longer ones. There are two tasks. *Two back*: name the token two
places before this one, which takes an exact offset. *Last flag*: of the tokens, half are flags;
at each of the others, name the flag seen last, which takes the nearest of many. The models are
alike but for position.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from worked_examples.positions import alibi_bias, alibi_slopes, angles, sinusoidal_encoding
from worked_examples.training import one_thread, train_by_adam

__all__ = ["BACK", "FLAGS", "METHODS", "TASKS", "TOKENS", "Run", "draw", "length_table", "predict",
           "study", "train"]  # fmt: skip

TOKENS = 8  # in the vocabulary: a guess is right one time in eight
FLAGS = 4  # tokens 0 to 3 are flags, so a guess of the last flag is right one time in four
BACK = 2
TASKS = ("two back", "last flag")
METHODS = ("none", "sinusoids", "learned vectors", "learned bias", "ALiBi", "rotary")
NO_TARGET = -100  # what cross_entropy leaves out


class Run(NamedTuple):
    """Several trainings of one method on one task, one a seed.

    Attributes
    ----------
    loss : (S,) array
        Of the last batch, in bits a target.
    accuracy : (S, longest) array
        Share of right answers at each position of new, longer sequences; NaN where the task
        asks for none.
    windowed : (S, longest) array
        The same with each query made to see the nearest L keys only, as many as in training.
    """

    loss: np.ndarray
    accuracy: np.ndarray
    windowed: np.ndarray


def draw(task, n, L, rng):
    """Draw n sequences of random tokens, and what the task asks for at each position.

    Parameters
    ----------
    task : {"two back", "last flag"}
    n, L : int
    rng : numpy.random.Generator

    Returns
    -------
    tokens : (n, L) array of int
    targets : (n, L) array of int
        -100 where nothing is asked: no such token yet or, for the last flag, a flag stands here.

    Raises
    ------
    ValueError
        If there is no such task.
    """
    tokens = rng.integers(TOKENS, size=(n, L))
    targets = np.full((n, L), NO_TARGET)
    if task == "two back":
        targets[:, BACK:] = tokens[:, :-BACK]
    elif task == "last flag":
        last = np.maximum.accumulate(np.where(tokens < FLAGS, np.arange(L), -1), axis=1)
        found = np.take_along_axis(tokens, np.maximum(last, 0), axis=1)
        asked = (last >= 0) & (tokens >= FLAGS)  # a flag itself needs no look back
        targets = np.where(asked, found, NO_TARGET)
    else:
        raise ValueError(f"task is one of {', '.join(TASKS)}; got {task!r}")
    return tokens, targets


# --------------------------------------------------------------------------------- the model


def _new_parameters(method, L, d, h, seed):
    rng = np.random.default_rng(seed)
    shapes = {"embedding": (TOKENS, d), "query": (d, d), "key": (d, d), "value": (d, d),
              "readout": (d, TOKENS)}  # fmt: skip
    drawn = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    for name in ("query", "key", "value", "readout"):
        drawn[name] /= math.sqrt(d)
    if method == "learned vectors":
        drawn["position"] = rng.normal(size=(L, d))
    if method == "learned bias":
        drawn["bias"] = np.zeros((h, L))  # for the distances 0 to L - 1 of a causal head
    return {name: torch.tensor(array, dtype=torch.float32) for name, array in drawn.items()}


def _rotated(X, base=10000.0):
    """Turn pairs of features, interleaved, as `positions.rotary` does in numpy."""
    L, d = X.shape[-2:]
    turn = torch.arange(L)[:, None] * torch.from_numpy(angles(d, base))  # (L, d/2)
    cos, sin = turn.cos().to(X.dtype), turn.sin().to(X.dtype)
    a, b = X[..., ::2], X[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


def _added_to_scores(parameters, method, B, L, h, window):
    """Give the causal mask in its additive form, and the method's bias on top."""
    distance = torch.arange(L)[:, None] - torch.arange(L)
    hidden = (distance < 0) | (distance >= (window or L))
    added = torch.zeros(L, L).masked_fill(hidden, -math.inf)
    if method == "ALiBi":
        return added + torch.from_numpy(alibi_bias(alibi_slopes(h), L)).float()
    if method == "learned bias":
        known = parameters["bias"].shape[-1]
        bias = parameters["bias"][..., distance.clamp(0, known - 1)]  # (S, h, L, L)
        return added + bias.repeat_interleave(B, dim=0)  # (S B, h, L, L): alike over a batch
    return added


def predict(parameters, tokens, method, h, window=None):
    """Score every token as the answer at every position.

    Past the length that was trained on, learned vectors go on with the last of them, and the
    learned bias with that of the largest distance; the other methods have a rule to go on by.

    Parameters
    ----------
    parameters : dict of tensor
        Each with a leading dimension S, one model a seed.
    tokens : (S, B, L) tensor of int
    method : str
        One of `METHODS`.
    h : int
        Number of heads.
    window : int, optional
        How many of the nearest keys a query sees, itself among them; by default all before it.

    Returns
    -------
    (S, B, L, TOKENS) tensor
    """
    S, B, L = tokens.shape
    X = parameters["embedding"][torch.arange(S)[:, None, None], tokens]  # (S, B, L, d)
    if method == "sinusoids":
        X = X + torch.from_numpy(sinusoidal_encoding(L, X.shape[-1])).float()
    if method == "learned vectors":
        known = parameters["position"].shape[-2]
        X = X + parameters["position"][:, None, torch.arange(L).clamp(max=known - 1)]
    rows = X.flatten(1, 2)  # (S, B L, d)
    Q, K, V = (
        (rows @ parameters[name]).view(S * B, L, h, -1).transpose(1, 2)  # (S B, h, L, d_k)
        for name in ("query", "key", "value")
    )
    if method == "rotary":
        Q, K = _rotated(Q), _rotated(K)
    added = _added_to_scores(parameters, method, B, L, h, window)
    heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=added)
    joined = heads.transpose(1, 2).reshape(S, B * L, -1)  # (S, B L, d)
    return (joined @ parameters["readout"]).view(S, B, L, TOKENS)


# ---------------------------------------------------------------------------------- training


def train(task, method, seeds=(0, 1, 2), *, L=16, longest=128, steps=160, B=16, d=32, h=4,
          rate=0.02):  # fmt: skip
    """Train one model a seed on sequences of L, and try them on sequences of `longest`.

    A causal model's answer at a position does not depend on what comes later, so one long test
    gives the accuracy at every shorter length too.

    Parameters
    ----------
    task, method : str
        Of `TASKS` and `METHODS`.
    seeds : sequence of int
        Each fixes a model's parameters and its data. The models are trained side by side, in
        one product, and know nothing of each other.
    L, longest : int
        Positions in training and in the test, more than 2 each.
    steps, B, d, h : int
        Steps of Adam, sequences a step, width, heads.
    rate : float

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If there is no such method or task, or a length is too short for the task.
    """
    if method not in METHODS:
        raise ValueError(f"method is one of {', '.join(METHODS)}; got {method!r}")
    if min(L, longest) <= BACK:
        raise ValueError(f"lengths must be more than {BACK}; got L = {L}, longest = {longest}")
    drawn = [_new_parameters(method, L, d, h, seed) for seed in seeds]
    parameters = {
        name: torch.stack([one[name] for one in drawn]).requires_grad_() for name in drawn[0]
    }
    rngs = [np.random.default_rng([seed, 1]) for seed in seeds]

    def losses_of(batch):
        tokens, targets = batch
        return _losses(predict(parameters, tokens, method, h), targets)

    with one_thread():
        drawn = (part.split(B, dim=1) for part in _drawn(task, steps * B, L, rngs))
        losses = train_by_adam(parameters, list(zip(*drawn, strict=True)), losses_of, rate)
        with torch.no_grad():
            tokens, targets = _drawn(task, 50, longest, rngs)
            accuracy, windowed = (
                _accuracy(predict(parameters, tokens, method, h, window), targets)
                for window in (None, L)
            )
    return Run(losses[-1].numpy() / math.log(2), accuracy, windowed)


def _drawn(task, n, L, rngs):
    pairs = [draw(task, n, L, rng) for rng in rngs]
    return tuple(torch.from_numpy(np.stack(arrays)) for arrays in zip(*pairs, strict=True))


def _accuracy(guesses, targets):
    """Give the share of right answers of each model at each position, (S, L)."""
    right = (guesses.argmax(dim=-1) == targets).sum(dim=1)
    asked = (targets != NO_TARGET).sum(dim=1)
    return torch.where(asked > 0, right / asked, torch.nan).numpy()


def _losses(guesses, targets):
    """Give each model's own mean loss, so that one does not pull at another."""
    return torch.stack(
        [
            F.cross_entropy(guess.flatten(0, 1), target.flatten(), ignore_index=NO_TARGET)
            for guess, target in zip(guesses, targets, strict=True)
        ]
    )


def study(task, methods=METHODS, seeds=(0, 1, 2), **options):
    """Train every method on a task.

    Returns
    -------
    dict of str to Run
        In the order of the methods.
    """
    return {method: train(task, method, seeds, **options) for method in methods}


def length_table(runs, edges=(0, 16, 32, 64, 128)):
    """List each method's accuracy over stretches of positions: mean, least and most of a seed.

    Parameters
    ----------
    runs : dict of str to Run
    edges : sequence of int
        A stretch goes from one edge to before the next.

    Returns
    -------
    list of dict
        One row a method, three columns a stretch.
    """
    rows = []
    for method, run in runs.items():
        row = {"position": method}
        for a, b in zip(edges[:-1], edges[1:], strict=True):
            each = np.nanmean(run.accuracy[:, a:b], axis=1)  # one number a seed
            name = f"{a}-{b - 1}"
            row |= {name: each.mean(), f"{name} least": each.min(), f"{name} most": each.max()}
        rows.append(row)
    return rows
