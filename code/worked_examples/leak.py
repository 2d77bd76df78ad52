"""What a leak costs: one small head trained with the causal mask and without, in torch.

Both learn to predict the next token of the same Markov chain, whose conditional entropy is the
least that an honest model can reach. The one without the mask can read the answer off its own
input while it is trained, and cannot once it is deployed, where the next token does not exist.
Losses are in bits a token.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from worked_examples.training import one_thread, train_by_adam

__all__ = [
    "TOKENS",
    "Run",
    "conditional_entropy",
    "deployed_bits",
    "draw_tokens",
    "loss_table",
    "markov_chain",
    "next_token_bits",
    "predict",
    "study",
    "train",
]

TOKENS = 8  # in the vocabulary, so a guess costs log2 8 = 3 bits


class Run(NamedTuple):
    """One training run, losses in bits a token.

    Attributes
    ----------
    curve : (steps,) array
        The loss of every step's batch.
    held_out : float
        The loss on new sequences, measured as in training: whole sequences at once.
    deployed : float
        The loss on the same sequences, fed one prefix after the other.
    parameters : dict of torch.Tensor
        The trained model.
    """

    curve: np.ndarray
    held_out: float
    deployed: float
    parameters: dict


# ---------------------------------------------------------------------------------- the data


def markov_chain(tokens=TOKENS, seed=0):
    """Draw a Markov chain: from each token, the probabilities of the next.

    Returns
    -------
    (tokens, tokens) array
        Rows sum to 1; each is drawn from a Dirichlet distribution with parameter 0.3, which
        makes some successors likely and most of them rare.
    """
    return np.random.default_rng(seed).dirichlet(np.full(tokens, 0.3), size=tokens)


def _stationary(chain):
    """Give the share of time that the chain spends on each token: pi with pi P = pi."""
    equations = np.vstack([chain.T - np.eye(len(chain)), np.ones(len(chain))])
    right = np.append(np.zeros(len(chain)), 1.0)
    return np.linalg.lstsq(equations, right, rcond=None)[0]


def conditional_entropy(chain):
    """Measure in bits what is left to guess about the next token when this one is known.

    ``-sum over i of pi_i sum over j of P_ij log2 P_ij``, with pi the stationary distribution:
    no predictor that sees the past alone has a lower expected loss.

    Parameters
    ----------
    chain : (n, n) array

    Returns
    -------
    float

    Examples
    --------
    >>> round(conditional_entropy(np.array([[0.5, 0.5], [0.5, 0.5]])), 4)
    1.0
    """
    bits = -(chain * np.log2(np.where(chain > 0, chain, 1))).sum(axis=-1)
    return float(_stationary(chain) @ bits)


def draw_tokens(chain, B, L, rng):
    """Draw B sequences of L tokens, the first from the stationary distribution.

    Returns
    -------
    (B, L) array of int
    """
    edges = chain.cumsum(axis=-1)[:, :-1]  # a draw in [0, 1) passes 0 to n - 1 of them
    tokens = np.empty((B, L), dtype=int)
    tokens[:, 0] = np.searchsorted(_stationary(chain).cumsum()[:-1], rng.random(B))
    for t in range(1, L):
        tokens[:, t] = (rng.random((B, 1)) > edges[tokens[:, t - 1]]).sum(axis=-1)
    return tokens


# --------------------------------------------------------------------------------- the model


def _new_parameters(tokens, L, d, rng):
    shapes = {
        "embedding": (tokens, d),
        "position": (L, d),
        "query": (d, d),
        "key": (d, d),
        "value": (d, d),
        "readout": (d, tokens),
    }
    drawn = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    for name in ("query", "key", "value", "readout"):
        drawn[name] /= math.sqrt(d)
    return {name: torch.tensor(array, dtype=torch.float32) for name, array in drawn.items()}


def predict(parameters, tokens, *, causal):
    """Score the next token at every position: embed, attend with one head, read out.

    Parameters
    ----------
    parameters : dict of torch.Tensor
    tokens : (B, L) tensor of int
    causal : bool

    Returns
    -------
    (B, L, ``|V|``) tensor
    """
    X = parameters["embedding"][tokens] + parameters["position"][: tokens.shape[1]]
    Q, K, V = (X @ parameters[name] for name in ("query", "key", "value"))  # (B, L, d)
    attended = F.scaled_dot_product_attention(Q, K, V, is_causal=causal)
    return attended @ parameters["readout"]  # (B, L, d) @ (d, |V|)


def next_token_bits(parameters, tokens, *, causal):
    """Give the mean loss in bits with position i made to predict token i + 1.

    The whole sequences go in at once, as in training, so the answers are among the inputs.
    """
    guesses = predict(parameters, tokens, causal=causal)[:, :-1]  # the last has no next token
    return F.cross_entropy(guesses.flatten(0, 1), tokens[:, 1:].flatten()) / math.log(2)


def deployed_bits(parameters, tokens, *, causal):
    """Give the mean loss in bits with each prefix fed alone, and its last row's guess taken.

    The model runs as it was trained, with its mask or without; there is no future to hide.
    """
    losses = [
        F.cross_entropy(predict(parameters, tokens[:, :n], causal=causal)[:, -1], tokens[:, n])
        for n in range(1, tokens.shape[1])
    ]
    return torch.stack(losses).mean() / math.log(2)


# ----------------------------------------------------------------------------------- training


def train(chain, *, causal, seed, steps=200, B=32, L=12, d=16, rate=0.02):
    """Train the model on new sequences at every step, and measure it on 500 more.

    Parameters
    ----------
    chain : (n, n) array
    causal : bool
        With the causal mask, or without a mask.
    seed : int
        Of the parameters and of the sequences; with it everything is repeated exactly.
    steps, B, L, d : int
        Steps of Adam, sequences a step, tokens a sequence, width of the head.
    rate : float

    Returns
    -------
    Run
    """
    rng = np.random.default_rng(seed)
    parameters = _new_parameters(len(chain), L, d, rng)
    for tensor in parameters.values():
        tensor.requires_grad_()
    with one_thread():
        batches = torch.from_numpy(draw_tokens(chain, steps * B, L, rng)).split(B)
        curve = train_by_adam(
            parameters, batches, partial(next_token_bits, parameters, causal=causal), rate
        )
        parameters = {name: tensor.detach() for name, tensor in parameters.items()}
        tokens = torch.from_numpy(draw_tokens(chain, 500, L, rng))
        held_out = next_token_bits(parameters, tokens, causal=causal).item()
        deployed = deployed_bits(parameters, tokens, causal=causal).item()
    return Run(curve.double().numpy(), held_out, deployed, parameters)


def study(chain, seeds=(0, 1, 2), **options):
    """Train with the mask and without, once for each seed.

    Returns
    -------
    dict of list of Run
        Under "with the mask" and "without", in the order of the seeds.
    """
    return {
        name: [train(chain, causal=causal, seed=seed, **options) for seed in seeds]
        for name, causal in (("with the mask", True), ("without", False))
    }


def loss_table(runs):
    """List least, mean and most of each loss over the seeds, in bits a token.

    Parameters
    ----------
    runs : dict of list of Run

    Returns
    -------
    list of dict
        One row a model and loss; the training loss is the mean of a run's last 20 steps.
    """
    rows = []
    for name, several in runs.items():
        measured = {
            "training": [run.curve[-20:].mean() for run in several],
            "held out": [run.held_out for run in several],
            "deployed": [run.deployed for run in several],
        }
        rows += [
            {"model": name, "loss": loss, "least": min(v), "mean": np.mean(v), "most": max(v)}
            for loss, v in measured.items()
        ]
    return rows
