"""What one rank computes: a block of queries meets a block of keys and values, tile by tile.

At no time are there more scores than one tile has, so a rank's memory grows with its share of the
sequence and no faster. All tensors have three axes here, (b, L, d), with all leading axes in one.
"""

import torch

__all__ = ["absorb", "finish", "gradients", "nothing_yet"]


def nothing_yet(Q, d_v):
    """Give the state before the first block: largest score, total and summed values, a row a query.

    The largest score starts at the lowest finite number, as `blocked.nothing` explains. Half
    precision is added up in float32.

    Parameters
    ----------
    Q : (b, L_q, d_k) tensor
    d_v : int

    Returns
    -------
    largest, total : (b, L_q, 1) tensors
    summed : (b, L_q, d_v) tensor
    """
    dtype = exact_enough(Q.dtype)
    largest = Q.new_full((*Q.shape[:2], 1), torch.finfo(dtype).min, dtype=dtype)
    return largest, torch.zeros_like(largest), Q.new_zeros((*Q.shape[:2], d_v), dtype=dtype)


def absorb(state, Q, K, V, *, scale, real=None, at=None, rows=256, columns=1024):
    """Merge one block of keys and values into the state, in place: the online softmax.

    Parameters
    ----------
    state : tuple of tensors
        From `nothing_yet`.
    Q, K, V : (b, L_q, d_k), (b, n, d_k) and (b, n, d_v) tensors
    scale : float
        What the scores are multiplied by.
    real : (b, n) tensor of bool, optional
        False where a key is padding.
    at : pair of int64 tensors, optional
        For a causal mask: the positions of the queries and of the keys, ascending.
    rows, columns : int
        How many queries and how many keys a tile has.

    Returns
    -------
    int
        Pairs scored, over one leading index.

    References
    ----------
    Milakov and Gimelshein (2018); Dao et al. (2022).
    """
    dtype, pairs = state[0].dtype, 0
    for block in _steps(Q.shape[1], rows):
        largest, total, summed = (part[:, block] for part in state)
        q = Q[:, block].to(dtype) * scale
        for keys, seen in _tiles(at, block, K.shape[1], columns, Q.device):
            scores = q @ K[:, keys].to(dtype).mT  # (b, rows, d_k) @ (b, d_k, columns)
            _hide(scores, seen, real, keys)
            most = torch.maximum(largest, scores.amax(-1, keepdim=True))
            powers = scores.sub_(most).exp_()
            shrink = largest.sub_(most).exp_()
            total.mul_(shrink).add_(powers.sum(-1, keepdim=True))
            summed.mul_(shrink).baddbmm_(powers, V[:, keys].to(dtype))
            largest.copy_(most)
            pairs += scores.shape[1] * scores.shape[2]
    return pairs


def finish(state):
    """Divide by the total, in place; a row that saw nothing becomes 0.

    Parameters
    ----------
    state : tuple of tensors
        Afterwards it is used up.

    Returns
    -------
    output : (b, L_q, d_v) tensor
    log_total : (b, L_q, 1) tensor
        log of the sum of exp(score), from which every weight can be computed again; infinite
        where a row saw nothing, so that its weights are 0.
    """
    largest, total, summed = state
    empty = total == 0
    summed.div_(total.masked_fill(empty, 1))
    return summed, largest.add_(total.log_()).masked_fill_(empty, torch.inf)


def gradients(dO, Q, K, V, log_total, dots, dQ, dK, dV, *, scale, real=None, at=None, rows=256,
              columns=1024):  # fmt: skip
    r"""Add what one block of keys and values gives to the gradients, in place.

    The weights P are computed again from the scores. With O the output, ``dots`` the row sums of
    ``dO * O`` and s the scale: ``dV = P^T dO``, ``dS = P * (dO V^T - dots)``, ``dQ = s dS K``,
    ``dK = s dS^T Q``.

    Parameters
    ----------
    dO : (b, L_q, d_v) tensor
        Gradient with respect to the output.
    Q, K, V, scale, real, at, rows, columns
        As in `absorb`.
    log_total : (b, L_q, 1) tensor
        From `finish`, when all blocks had been seen.
    dots : (b, L_q, 1) tensor
    dQ, dK, dV : tensors of the shapes of Q, K, V
        Are added to.

    References
    ----------
    Dao et al. (2022), appendix B.
    """
    dtype = dQ.dtype
    for block in _steps(Q.shape[1], rows):
        q, d = Q[:, block].to(dtype) * scale, dO[:, block].to(dtype)
        change = torch.zeros_like(q)
        for keys, seen in _tiles(at, block, K.shape[1], columns, Q.device):
            k, v = K[:, keys].to(dtype), V[:, keys].to(dtype)
            scores = q @ k.mT
            _hide(scores, seen, real, keys)
            P = scores.sub_(log_total[:, block]).exp_()
            dV[:, keys].baddbmm_(P.mT, d)
            dS = (d @ v.mT).sub_(dots[:, block]).mul_(P)
            change.baddbmm_(dS, k)
            dK[:, keys].baddbmm_(dS.mT, q)  # q brings the scale with it
        dQ[:, block].add_(change, alpha=scale)


# ---------------------------------------------------------------------------------- helpers


def exact_enough(dtype):
    """Give the type that sums are kept in: float32 for half precision, else the type itself."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _steps(length, size):
    return (slice(i, min(i + size, length)) for i in range(0, length, size))


def _tiles(at, block, length, columns, device):
    """Yield the tiles of a block of queries, and what may be seen in each: None means all of it."""
    if at is None:
        yield from ((keys, None) for keys in _steps(length, columns))
        return
    of_queries, of_keys = at[0][block], at[1]
    # Positions ascend, so beyond this key everything is later than the block's last query.
    end = int(torch.searchsorted(of_keys, of_queries[-1], right=True))
    for keys in _steps(end, columns):
        if of_keys[keys.stop - 1] <= of_queries[0]:
            yield keys, None
        else:
            here, there = of_queries.to(device), of_keys[keys].to(device)
            yield keys, there <= here[:, None]


def _hide(scores, seen, real, keys):
    if seen is not None:
        scores.masked_fill_(~seen, -torch.inf)
    if real is not None:
        scores.masked_fill_(~real[:, None, keys], -torch.inf)
