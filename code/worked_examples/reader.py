"""A decoder that may look at every encoder state: additive attention trained to read on request.

The encoder is drawn and stays as it is. Each step brings a number x_t and a tag of that position;
the decoder's state is the tag of the position that it wants to read. Trained are the score
network and one linear read-out, with torch.
"""

from typing import NamedTuple

import numpy as np
import torch

from worked_examples.recurrence import (
    AdditiveParameters,
    additive_attention,
    draw_encoder,
    encode,
)
from worked_examples.training import one_thread

__all__ = ["HIDDEN", "STEPS", "TAG", "WIDTH", "Reader", "read", "tagged_inputs", "train_reader"]

WIDTH, TAG, HIDDEN = 32, 16, 32  # of the encoder's state, of a tag, of the score network
STEPS, BATCH, RATE = 300, 24, 0.02


class Reader(NamedTuple):
    """What `train_reader` gives back.

    Attributes
    ----------
    encoder : EncoderParameters
    scores : AdditiveParameters
    readout : (n + 1,) array
        Weights of the context's components, and a constant.
    tags : (L, TAG) array
        One a position.
    losses : (STEPS,) array
        Mean squared error of each step; 1 is guessing the mean.
    """

    encoder: tuple
    scores: AdditiveParameters
    readout: np.ndarray
    tags: np.ndarray
    losses: np.ndarray


def tagged_inputs(x, tags):
    """Put each number beside its position's tag.

    Parameters
    ----------
    x : (N, L) array
    tags : (L, TAG) array

    Returns
    -------
    (N, L, 1 + TAG) array
    """
    x = np.asarray(x, dtype=float)
    return np.concatenate([x[..., None], np.broadcast_to(tags, (*x.shape, tags.shape[1]))], axis=-1)


def train_reader(L, seed=0, steps=STEPS):
    """Train additive attention to return x_t when its state is the tag of t.

    Parameters
    ----------
    L : int
        Length of the sequences.
    seed : int
        Of the tags, the encoder, the start and the batches.
    steps : int
        Of Adam.

    Returns
    -------
    Reader
    """
    rng = np.random.default_rng(seed)
    tags = rng.normal(size=(L, TAG))
    encoder = draw_encoder(WIDTH, 1 + TAG, 0.5, seed)
    shapes = [(HIDDEN, TAG), (HIDDEN, WIDTH), (HIDDEN,), (WIDTH + 1,)]
    leaves = [
        torch.tensor(rng.normal(size=shape) / np.sqrt(shape[-1]), requires_grad=True)
        for shape in shapes
    ]
    W, U, v, readout = leaves
    optimiser = torch.optim.Adam(leaves, lr=RATE)
    asked = torch.from_numpy(tags)
    losses = []
    with one_thread():
        for _ in range(steps):
            x = rng.normal(size=(BATCH, L))
            H = torch.from_numpy(encode(tagged_inputs(x, tags), encoder))
            # Every position asks once: (L, 1, m) + (N, 1, L, m) -> (N, L, L, m)
            hidden = torch.tanh((asked @ W.T)[:, None, :] + (H @ U.T)[:, None])
            context = torch.softmax(hidden @ v, dim=-1) @ H  # (N, L, L) @ (N, L, n) -> (N, L, n)
            loss = ((context @ readout[:-1] + readout[-1] - torch.from_numpy(x)) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    W, U, v, readout = (leaf.detach().numpy() for leaf in leaves)
    return Reader(encoder, AdditiveParameters(W, U, v), readout, tags, np.array(losses))


def read(reader, x):
    """Ask a trained reader for every position of new sequences.

    Parameters
    ----------
    reader : Reader
    x : (N, L) array

    Returns
    -------
    r2 : (L,) array
        R^2 of each position.
    weights : (L, L) array
        For the first sequence: row t is where the reader looked for x_t.
    """
    H = encode(tagged_inputs(x, reader.tags), reader.encoder)
    context, weights = additive_attention(reader.tags, H[:, None], reader.scores)
    answer = context @ reader.readout[:-1] + reader.readout[-1]
    return 1 - ((answer - x) ** 2).mean(axis=0) / x.var(axis=0), weights[0]
