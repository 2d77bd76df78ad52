"""What comes through many layers: gradients and rows in deep stacks, before any training, in torch.

Stacks of up to 24 blocks with and without residual paths, without norms, with post-norm and with
pre-norm. Several seeds run side by side, as one leading axis: (seeds, L, d). A pre-norm stack
ends with one more norm, as pre-norm models do. The blocks compute what
`block.transformer_block` does; a test compares them.
"""

import math

import numpy as np
import torch
from torch.nn import functional as F

from worked_examples.training import one_thread

__all__ = [
    "DEPTHS",
    "KINDS",
    "SEEDS",
    "Stack",
    "gradient_by_layer",
    "gradient_through",
    "likeness",
]

SEEDS = range(8)
DEPTHS = (1, 2, 4, 8, 12, 16, 20, 24)
L, d, H, HEADS = 8, 32, 128, 4

# Name to (where the norms stand, whether there are residual paths).
KINDS = {
    "neither": (None, False),
    "residual path alone": (None, True),
    "norm alone": ("post", False),
    "post-norm": ("post", True),
    "pre-norm": ("pre", True),
}


class Stack:
    """Blocks on top of each other, and what stands after each of them.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    layers : int, default 24
    seeds : sequence of int, default `SEEDS`
        Each seed draws its own input, parameters and direction of the loss.

    Attributes
    ----------
    X : (seeds, L, d) tensor
        The input, normal numbers.
    direction : (seeds, L, d) tensor
        The loss is the output's dot product with it, so it is the gradient at the output.
    parameters : list of dict of tensor
        W_Q, W_K, W_V, W_O, W_1 and W_2 of each layer, each with the seeds as first axis.
    after : list of (seeds, L, d) tensor
        What each layer hands on.
    """

    def __init__(self, kind, layers=DEPTHS[-1], seeds=SEEDS):
        self.norm, self.with_residual = KINDS[kind]
        draws = [_draw(seed, layers) for seed in seeds]
        self.X, self.direction = (
            torch.tensor(np.array([draw[i] for draw in draws]), requires_grad=i == 0)
            for i in (0, 1)
        )
        self.parameters = [_joined([draw[2][n] for draw in draws]) for n in range(layers)]
        self.after = []
        X = self.X
        for parameters in self.parameters:
            for part in (_attention, _feed_forward):
                X = self._path(X, part, parameters)
            self.after.append(X)

    def output(self, layers):
        """Give what a stack of so many layers returns, with its last norm if it is pre-norm."""
        X = self.after[layers - 1]
        return _normed(X) if self.norm == "pre" else X

    def _path(self, X, part, parameters):
        change = part(_normed(X) if self.norm == "pre" else X, parameters)
        X = X + change if self.with_residual else change
        return _normed(X) if self.norm == "post" else X


@one_thread()
def gradient_through(kind, depths=DEPTHS, seeds=SEEDS):
    """Measure how much of a gradient arrives at the input, for stacks of several depths.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    depths : sequence of int
    seeds : sequence of int

    Returns
    -------
    (depths, seeds) array
        The gradient's norm at the input over its norm at the output.
    """
    stack = Stack(kind, max(depths), seeds)
    arrived = [
        torch.autograd.grad(stack.output(n), stack.X, stack.direction, retain_graph=True)[0]
        for n in depths
    ]
    return _per_unit_sent(arrived, stack)


@one_thread()
def gradient_by_layer(kind, layers=DEPTHS[-1], seeds=SEEDS):
    """Measure the gradient that each layer's second feed-forward matrix receives.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    layers : int
    seeds : sequence of int

    Returns
    -------
    (layers, seeds) array
        The gradient's norm, per unit of gradient at the output; first layer first.
    """
    stack = Stack(kind, layers, seeds)
    matrices = [parameters["W_2"] for parameters in stack.parameters]
    received = torch.autograd.grad(stack.output(layers), matrices, stack.direction)
    return _per_unit_sent(received, stack)


@one_thread()
def likeness(kind, depths=DEPTHS, seeds=SEEDS):
    """Measure how alike the positions become: the mean cosine between two rows of one sequence.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    depths : sequence of int
    seeds : sequence of int

    Returns
    -------
    (depths, seeds) array
        0 for rows that have nothing in common, 1 for rows that all point one way.
    """
    with torch.no_grad():
        stack = Stack(kind, max(depths), seeds)
        unit = [F.normalize(stack.output(n), dim=-1) for n in depths]
        return np.array([((u.sum(1) ** 2).sum(-1) - L).numpy() / (L * (L - 1)) for u in unit])


# ------------------------------------------------------------------------------------ helpers


_SHAPES = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), (d, d)) | {"W_1": (d, H), "W_2": (H, d)}


def _draw(seed, layers):
    """Draw an input, a direction, and what `block.initial_parameters` draws for each layer."""
    rng = np.random.default_rng(seed)
    X, direction = rng.normal(size=(2, L, d))
    blocks = [
        {name: rng.normal(size=size) * math.sqrt(2 / sum(size)) for name, size in _SHAPES.items()}
        for _ in range(layers)
    ]
    return X, direction, blocks


def _joined(blocks):
    """Put the matrices of several seeds' blocks side by side, as tensors to differentiate by."""
    return {
        name: torch.tensor(np.array([block[name] for block in blocks]), requires_grad=True)
        for name in _SHAPES
    }


def _attention(X, p):
    def heads(Y):
        return Y.unflatten(-1, (HEADS, d // HEADS)).transpose(1, 2)  # -> (seeds, heads, L, d_k)

    Q, K, V = (heads(X @ p[name]) for name in ("W_Q", "W_K", "W_V"))
    output = F.scaled_dot_product_attention(Q, K, V)
    return output.transpose(1, 2).flatten(-2) @ p["W_O"]


def _feed_forward(X, p):
    return torch.relu(X @ p["W_1"]) @ p["W_2"]


def _normed(X):
    return F.layer_norm(X, X.shape[-1:])


def _per_unit_sent(gradients, stack):
    """Give the norm of each gradient over that of the gradient at the output, (n, seeds)."""
    sent = _size(stack.direction)
    return np.array([(_size(gradient) / sent).numpy() for gradient in gradients])


def _size(tensors):
    """Give the norm of each seed's array."""
    return tensors.detach().flatten(1).norm(dim=1)
