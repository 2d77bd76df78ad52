"""Which positions of a sequence each rank holds, and how to deal a sequence out and gather it.

With a causal mask a late position scores more pairs than an early one. Held in a row
("contiguous"), the last rank has the most work and the others wait for it. Dealt out one by one,
as cards ("striped"), or folded, an early piece and a late one each ("zigzag"), all have nearly
the same.
"""

import torch
import torch.distributed as dist

from worked_examples.attention import _length

__all__ = ["ORDERS", "deal", "gather_sequence", "held_positions", "pairs_of_ranks"]

ORDERS = ("contiguous", "striped", "zigzag")


def held_positions(L, rank, n, order="striped"):
    """List the positions that one rank of n holds, in ascending order.

    Parameters
    ----------
    L : int
        Length of the whole sequence, at least n.
    rank, n : int
        Which rank, of how many.
    order : {"contiguous", "striped", "zigzag"}
        In a row; every n-th; or piece `rank` and piece ``2 n - 1 - rank`` of 2 n pieces. Where L
        cannot be divided evenly, the earlier pieces are longer by one.

    Returns
    -------
    (m,) tensor of int64

    Raises
    ------
    ValueError
        If there are more ranks than positions, or no such rank or order.

    References
    ----------
    Brandon et al. (2023), for stripes.

    Examples
    --------
    >>> for order in ORDERS:
    ...     print(order, [held_positions(8, rank, 2, order).tolist() for rank in range(2)])
    contiguous [[0, 1, 2, 3], [4, 5, 6, 7]]
    striped [[0, 2, 4, 6], [1, 3, 5, 7]]
    zigzag [[0, 1, 6, 7], [2, 3, 4, 5]]
    """
    L, n = _length("the length", L), _length("the number of ranks", n)
    if n > L:
        raise ValueError(f"each rank needs a position; got {n} ranks for {L} positions")
    if not 0 <= rank < n:
        raise ValueError(f"ranks go from 0 to {n - 1}; got {rank}")
    if order == "striped":
        return torch.arange(rank, L, n)
    if order == "contiguous":
        return _piece(L, rank, n)
    if order == "zigzag":
        return torch.cat((_piece(L, rank, 2 * n), _piece(L, 2 * n - 1 - rank, 2 * n)))
    raise ValueError(f"order must be one of {', '.join(ORDERS)}; got {order!r}")


def pairs_of_ranks(L, n, order="striped"):
    """Count the pairs that a causal mask leaves to each rank: position i sees i + 1 others.

    Parameters
    ----------
    L, n : int
        Length, and number of ranks.
    order : str
        As in `held_positions`.

    Returns
    -------
    list of int

    Examples
    --------
    >>> for order in ORDERS:
    ...     print(order, pairs_of_ranks(16, 4, order))
    contiguous [10, 26, 42, 58]
    striped [28, 32, 36, 40]
    zigzag [34, 34, 34, 34]
    """
    return [int((held_positions(L, rank, n, order) + 1).sum()) for rank in range(n)]


def deal(X, *, order="striped", group=None):
    """Cut out of a whole sequence the rows that this rank holds.

    Parameters
    ----------
    X : (..., L, d) tensor
    order : str
        As in `held_positions`.
    group : torch.distributed.ProcessGroup, optional
        By default all ranks; without a process group, one rank, which holds everything.

    Returns
    -------
    (..., m, d) tensor

    Examples
    --------
    >>> deal(torch.ones(5, 2)).shape
    torch.Size([5, 2])
    """
    rank, n = place(group)
    return X[..., held_positions(X.shape[-2], rank, n, order).to(X.device), :]


def gather_sequence(X, *, order="striped", group=None):
    """Put the rows of all ranks back in order, on every rank. No gradient passes through.

    Parameters
    ----------
    X : (..., m, d) tensor
        This rank's rows, as `deal` gives them.
    order : str
        As they were dealt.
    group : torch.distributed.ProcessGroup, optional

    Returns
    -------
    (..., L, d) tensor

    Raises
    ------
    ValueError
        If a rank holds another number of rows than the order gives it.

    Examples
    --------
    >>> gather_sequence(torch.ones(5, 2)).shape
    torch.Size([5, 2])
    """
    rank, n = place(group)
    X = X.detach()
    lengths = [X.shape[-2]]
    if n > 1:
        lengths = [None] * n
        dist.all_gather_object(lengths, X.shape[-2], group=group)
    held = [rows_of(lengths, other, order) for other in range(n)]
    if n == 1:
        return X.clone()
    # Collectives want blocks of one size.
    padded = X.new_zeros((*X.shape[:-2], max(lengths), X.shape[-1]))
    padded[..., : lengths[rank], :] = X
    parts = [torch.empty_like(padded) for _ in range(n)]
    dist.all_gather(parts, padded, group=group)
    whole = X.new_empty((*X.shape[:-2], sum(lengths), X.shape[-1]))
    for part, length, rows in zip(parts, lengths, held, strict=True):
        whole[..., rows.to(X.device), :] = part[..., :length, :]
    return whole


# ---------------------------------------------------------------------------------- helpers


def place(group=None):
    """Give this process's rank in the group, and how many there are: 0 of 1 outside of any."""
    if not (dist.is_available() and dist.is_initialized()):
        return 0, 1
    return dist.get_rank(group), dist.get_world_size(group)


def rows_of(lengths, rank, order):
    """Give a rank's positions from all ranks' lengths; refuse what the order would not give."""
    L, n = sum(lengths), len(lengths)
    if order == "contiguous":  # any cut will do
        start = sum(lengths[:rank])
        return torch.arange(start, start + lengths[rank])
    held = held_positions(L, rank, n, order)
    if len(held) != lengths[rank]:
        raise ValueError(
            f"{L} positions over {n} ranks, {order}, give rank {rank} {len(held)} of them; "
            f"it holds {lengths[rank]}"
        )
    return held


def _piece(L, i, n):
    """Cut L positions into n pieces, the first ones longer by one if need be, and give the i-th."""
    start, stop = (j * (L // n) + min(j, L % n) for j in (i, i + 1))
    return torch.arange(start, stop)
