"""Exact attention over a sequence that several ranks hold together, forward and backward.

Queries stay where they are. Keys and values travel around the ring, and every rank merges what
passes with the online softmax. For the gradients they travel once more, and the gradients of a
block of keys and values travel with it, growing at each rank, until they are home.
"""

import math
from typing import NamedTuple

import torch
from torch.autograd.function import once_differentiable

from worked_examples.attention import _length, _scale
from worked_examples.ring import local
from worked_examples.ring.orders import ORDERS, rows_of
from worked_examples.ring.travel import Ring

__all__ = ["ring_attention"]

_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class _Plan(NamedTuple):
    """What both trips need to know and what is no tensor of the graph."""

    ring: Ring
    shapes: list  # of each rank: those of its K, its V and, if there is one, its mask
    order: str | None  # how positions were dealt, if there is a causal mask
    options: dict  # scale, rows, columns

    def at(self, owner):
        """Give the positions of this rank's queries and of the owner's keys."""
        if self.order is None:
            return None
        lengths = [own[0][1] for own in self.shapes]
        return tuple(rows_of(lengths, rank, self.order) for rank in (self.ring.rank, owner))


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, real, plan):
        state = local.nothing_yet(Q, V.shape[-1])
        for owner, (k, v, *mask) in plan.ring.blocks(_packed(K, V, real), plan.shapes):
            plan.ring.account.pairs += local.absorb(
                state, Q, k, v, real=_mask(mask), at=plan.at(owner), **plan.options
            )
        output, log_total = local.finish(state)
        output = output.to(Q.dtype)
        ctx.save_for_backward(Q, K, V, real, output, log_total)
        ctx.plan = plan
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, dO):
        Q, K, V, real, output, log_total = ctx.saved_tensors
        ring, plan, dtype = ctx.plan.ring, ctx.plan, log_total.dtype
        dots = (dO.to(dtype) * output).sum(-1, keepdim=True)
        dQ = torch.zeros_like(Q, dtype=dtype)
        # Three sets of them: one grows, one is being sent, one arrives.
        beside = 3 * _most_bytes(plan.shapes, dtype) if ring.n > 1 else 0
        under_way, sum_so_far = None, None
        for owner, (k, v, *mask) in ring.blocks(_packed(K, V, real), plan.shapes, beside):
            mine = [k.new_zeros(k.shape, dtype=dtype), v.new_zeros(v.shape, dtype=dtype)]
            local.gradients(
                dO, Q, k, v, log_total, dots, dQ, *mine,
                real=_mask(mask), at=plan.at(owner), **plan.options,
            )  # fmt: skip
            if under_way is not None:  # what the ranks before have added for this block
                under_way.wait()
                for total, arrived in zip(mine, sum_so_far, strict=True):
                    total.add_(arrived)
            if ring.n == 1:
                sum_so_far = mine
                continue
            following = plan.shapes[(owner - 1) % ring.n][:2]  # the block that comes next
            sum_so_far = [mine[0].new_empty(shape) for shape in following]
            under_way = ring.hand_on(mine, sum_so_far, "gradients", tag=3)
        if under_way is not None:  # the last hop brings this rank's own ones home
            under_way.wait()
        dK, dV = sum_so_far
        return dQ.to(Q.dtype), dK.to(K.dtype), dV.to(V.dtype), None, None


def ring_attention(Q, K, V, *, real=None, causal=False, order="striped", scale=None, group=None,
                   timeout=None, rows=256, columns=1024, account=None):  # fmt: skip
    """Compute attention over a sequence that several ranks hold together.

    Every rank of the group calls it with its own rows, at the same time, and gets the output of its
    own rows: what `scaled_dot_product_attention` of the whole sequence has there. A backward pass
    is a second trip, so every rank has to make that as well. Without a process group, one process
    is a ring of one.

    Parameters
    ----------
    Q : (..., m, d_k) tensor
    K : (..., n, d_k) tensor
    V : (..., n, d_v) tensor
        This rank's rows. Leading axes, widths and dtypes are the same for all ranks; m and n may
        differ from rank to rank. Half precision is added up in float32.
    real : (..., n) tensor of bool, optional
        False where a key is padding; such a key and its value change nothing. If one rank has it,
        all must. A query that finds no real key gets zeros.
    causal : bool, default False
        Hide what comes later in the whole sequence. Then keys are at the queries' positions,
        m = n, and the rows are dealt in `order`. What is hidden must still be finite.
    order : {"striped", "zigzag", "contiguous"}
        How `deal` dealt the rows. It matters with a causal mask alone. Contiguous rows may be
        cut anywhere.
    scale : float, optional
        What the scores are multiplied by; by default 1 / sqrt(d_k).
    group : torch.distributed.ProcessGroup, optional
        By default all ranks.
    timeout : float, optional
        Seconds to wait for a neighbour at each step; by default as long as the group does. It has
        to be longer than the slowest rank computes a step.
    rows, columns : int
        How many queries and how many keys a tile has: each leading index holds rows * columns
        scores at a time.
    account : Account, optional
        Is told pairs, seconds and bytes.

    Returns
    -------
    (..., m, d_v) tensor

    Raises
    ------
    ValueError
        On every rank, if on one of them shapes do not fit, or if they differ where they must not.
        The message shows them.
    LostRankError
        If a neighbour is gone or too late. With NCCL the library's own watchdog may end the
        process first.

    References
    ----------
    Liu, Zaharia and Abbeel (2023), for the ring; Brandon et al. (2023), for stripes; Dao et al.
    (2022), for the gradients.

    Examples
    --------
    One process holds the whole sequence:

    >>> X = torch.eye(3, dtype=torch.float64)
    >>> print(ring_attention(X, X, X, causal=True).numpy().round(2))
    [[1.   0.   0.  ]
     [0.36 0.64 0.  ]
     [0.26 0.26 0.47]]
    """
    ring = Ring(group, timeout, account)
    everyone = ring.exchange(_facts(Q, K, V, real, causal, order, scale, rows, columns))
    _agree(everyone)
    b = Q.shape[:-2].numel()
    flat = [X.reshape(b, *X.shape[-2:]) for X in (Q, K, V)]  # all leading axes in one
    if real is not None:
        real = real.expand(K.shape[:-1]).reshape(flat[1].shape[:-1])
        # Weights of padding are 0, but 0 times NaN would be NaN.
        flat[1:] = [X.masked_fill(~real[..., None], 0) for X in flat[1:]]
    shapes = []
    for other in everyone:
        n, d_k, d_v = other["K"][-2], other["K"][-1], other["V"][-1]
        shapes.append([(b, n, d_k), (b, n, d_v), *([(b, n)] if real is not None else [])])
    options = {name: everyone[ring.rank][name] for name in ("scale", "rows", "columns")}
    plan = _Plan(ring, shapes, order if causal else None, options)
    return _RingAttention.apply(*flat, real, plan).reshape(*Q.shape[:-1], V.shape[-1])


# ---------------------------------------------------------------------------------- helpers


def _facts(Q, K, V, real, causal, order, scale, rows, columns):
    """Tell the other ranks what this one was given, or what is wrong with it.

    An error that one rank raised by itself would leave the others waiting.
    """
    try:
        for X in (Q, K, V):
            if not torch.is_tensor(X) or X.dtype not in _FLOATS or X.ndim < 2:
                raise ValueError(
                    f"Q, K and V must be (..., L, d) tensors of floats; got {_show(X)}"
                )
        fits = (Q.shape[:-2] == K.shape[:-2] == V.shape[:-2] and K.shape[-2] == V.shape[-2]
                and Q.shape[-1] == K.shape[-1] > 0 and V.shape[-1] > 0 and Q.shape[:-2].numel() > 0
                and Q.dtype == K.dtype == V.dtype and Q.device == K.device == V.device)  # fmt: skip
        if not fits:
            raise ValueError(
                "Q (..., m, d_k), K (..., n, d_k) and V (..., n, d_v) must have the same leading "
                f"axes, dtype and device; got {', '.join(map(_show, (Q, K, V)))}"
            )
        if causal and Q.shape[-2] != K.shape[-2]:
            raise ValueError(
                f"with a causal mask, keys stand where queries do; got {_show(Q)}, {_show(K)}"
            )
        if order not in ORDERS:
            raise ValueError(f"order must be one of {', '.join(ORDERS)}; got {order!r}")
        if real is not None:
            if not torch.is_tensor(real) or real.dtype != torch.bool:
                raise ValueError(f"real must be a tensor of bool; got {_show(real)}")
            try:
                real.expand(K.shape[:-1])
            except RuntimeError:
                raise ValueError(
                    f"real must fit {tuple(K.shape[:-1])}; got {tuple(real.shape)}"
                ) from None
        facts = {"Q": tuple(Q.shape), "K": tuple(K.shape), "V": tuple(V.shape)}
        facts["scale"] = _scale(scale, Q.shape[-1])
        facts["rows"], facts["columns"] = _length("rows", rows), _length("columns", columns)
        facts["same"] = {
            "leading axes": tuple(Q.shape[:-2]), "d_k": Q.shape[-1], "d_v": V.shape[-1],
            "dtype": str(Q.dtype), "causal": bool(causal), "order": order,
            "scale": facts["scale"], "a mask of padding": real is not None,
        }  # fmt: skip
        return facts
    except (ValueError, TypeError) as error:
        return {"error": str(error)}


def _agree(everyone):
    """Raise the same error on all ranks if what one was given cannot be."""
    for rank, facts in enumerate(everyone):
        if "error" in facts:
            raise ValueError(f"rank {rank}: {facts['error']}")
        for name, value in facts["same"].items():
            if value != everyone[0]["same"][name]:
                raise ValueError(
                    f"all ranks must agree on {name}; rank 0 has "
                    f"{everyone[0]['same'][name]}, rank {rank} has {value}"
                )
    if sum(facts["K"][-2] for facts in everyone) == 0:
        raise ValueError("there must be a key; all ranks have none")
    if everyone[0]["same"]["causal"]:
        lengths = [facts["K"][-2] for facts in everyone]
        for rank in range(len(everyone)):
            rows_of(lengths, rank, everyone[0]["same"]["order"])


def _show(X):
    if not torch.is_tensor(X):
        return type(X).__name__
    return f"{tuple(X.shape)} {str(X.dtype).removeprefix('torch.')}"


def _packed(K, V, real):
    """Make what is sent contiguous; a mask travels as bytes."""
    tensors = [K.detach().contiguous(), V.detach().contiguous()]
    return tensors if real is None else [*tensors, real.to(torch.uint8)]


def _mask(rest):
    return rest[0].bool() if rest else None


def _most_bytes(shapes, dtype):
    """Count the bytes of the largest block's gradients."""
    return max(sum(math.prod(shape) for shape in own[:2]) for own in shapes) * dtype.itemsize
