"""How `fast_attention` cuts a call: who computes which queries, and what makes a tile or a product.

All of it follows from shapes and settings, so that a plan is kept for the next such call.
"""

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

__all__ = ["Block", "Plan", "planned"]

TILE = 3_400_000  # numbers of a tile: its scores, and what they make with the values, at most
ROWS, ROWS_FUSED = 64, 192  # queries of a product; of a compiled block, at most
MOST_ROWS = 1024  # whoever asks for more: a mask of the future grows with their square
GROUPS = 4  # of one head in a block, at most; with `causal` each scores what the last may see
ALONE = 2**18  # scores; up to here threads would take longer to start than they save
ALONE_FUSED = 2**17  # the same where they need not wait for each other
TURN = 2**20  # scores; blocks of fewer share a turn
SHARED = 2**20  # scores of a group; heads with fewer share a compiled block
PRODUCT = 10**6  # multiply-adds; OpenBLAS copies the factors of more (on processors with AVX-512)
PART = 128  # keys; longer sums would be rounded too often for the last digits


class Block(NamedTuple):
    """The queries of some heads that are computed together."""

    heads: tuple  # their place in arrays: indices, and a slice at the end
    queries: slice
    stack: tuple  # how many heads, and how many groups of each
    sees: int  # how many keys the first query may see with `causal`; less than 1 is none
    end: int  # how many keys are of use

    @property
    def place(self):
        """Where the queries are in arrays."""
        return (*self.heads, self.queries)

    @property
    def rows(self):
        """How many queries a group has."""
        return (self.queries.stop - self.queries.start) // self.stack[1]


class Plan(NamedTuple):
    """How a call is cut."""

    rows: int  # queries of a group
    columns: int  # keys of a tile, at most
    part: int  # keys of a product
    alone: bool  # too little for more than one thread
    turns: tuple  # of tuples of blocks: what a thread takes at a time, the longest first


@lru_cache(32)
def planned(heads, L_q, L_k, d_k, d_v, causal, threads, rows, columns, compiled):
    """Plan a call.

    Parameters
    ----------
    heads : tuple of int
        Leading dimensions of the output, one at least.
    L_q, L_k, d_k, d_v : int
        Lengths and widths.
    causal : bool
    threads : int
    rows : int or None
    columns : int
        As in `fast_attention`.
    compiled : bool
        Whether a block is one compiled function.

    Returns
    -------
    Plan
    """
    count = math.prod(heads)
    alone = count * L_q * L_k // (1 + causal) <= (ALONE_FUSED if compiled else ALONE)
    threads = 1 if alone else threads
    if rows is None:
        rows = _fair(L_q, count, threads) if compiled else ROWS
    rows, columns = min(rows, L_q, MOST_ROWS), min(columns, L_k)
    part = PRODUCT // (rows * max(d_k, d_v + 1)) // 16 * 16
    part = min(max(part, 16), PART, columns)
    if not compiled:
        part = _without_rest(part, L_k)
        columns = min(columns, TILE // (rows * (part + d_v + 1)) * part)
    columns = max(columns // part, 1) * part
    scores = rows * min(L_k, columns)
    if compiled:
        most, fit = 1, SHARED // scores
    else:
        most, fit = GROUPS, TILE // (scores + scores // part * (d_v + 1))
    groups, each = _stacked(heads, L_q // rows, threads * (1 + causal), most, max(1, fit))
    places = [
        (*index, slice(first, min(first + each, heads[-1])))
        for index in product(*map(range, heads[:-1]))
        for first in range(0, heads[-1], each)
    ]

    def blocks(first, stop, groups):
        sees, last = (query + L_k - L_q + 1 for query in (first, stop - 1))
        end = min(max(last, 0), L_k) if causal else L_k
        for at in places:
            yield Block(at, slice(first, stop), (at[-1].stop - at[-1].start, groups), sees, end)

    whole, found = L_q // rows, []
    for first in range(0, whole, groups)[::-1]:  # with `causal` the last are the longest
        after = min(first + groups, whole)
        found += blocks(first * rows, after * rows, after - first)
    turns = _dealt(found, threads, TURN // max(rows * L_k * groups * each, 1))
    if whole * rows < L_q:
        turns += ([block] for block in blocks(whole * rows, L_q, 1))
    return Plan(rows, columns, part, alone, tuple(map(tuple, turns)))


def _fair(L_q, heads, threads):
    """Give so many rows to a compiled block that every thread has as many blocks."""
    least = -(-L_q // ROWS_FUSED)
    every = range(least, least + threads)
    blocks = next((n for n in every if n * heads % threads == 0), least)
    return -(-L_q // (16 * blocks)) * 16


def _without_rest(most, L_k):
    """Give `most` keys, or down to half as many if L_k is a multiple of those, and they of 4."""
    return next((n for n in (most, *range(most // 4 * 4, most // 2, -4)) if L_k % n == 0), most)


def _stacked(heads, whole, shares, most, fit):
    """Say how many groups, and of how many heads, make a block.

    As many as fit into a tile, but no more than one of so many shares. Where blocks are few, their
    count is a multiple of that.
    """
    h, all_groups = heads[-1], math.prod(heads) * whole
    blocks = max(-(-all_groups // (shares * min(fit, most))), 1) * shares
    groups = max(min(whole, -(-all_groups // blocks)), 1)
    each = max(1, min(h, fit // groups, all_groups // shares // groups))

    def count(each):
        return -(-h // each) * -(-whole // groups) * math.prod(heads[:-1])

    if count(each) < 4 * shares:
        each = next((n for n in range(each, 0, -1) if count(n) % shares == 0), each)
    return groups, -(-h // -(-h // each)) if h else 1  # of 8 heads not 5 and 3, but 4 and 4


def _dealt(blocks, threads, most):
    """Deal blocks, the longest first, into turns of at most so many, as long as one another.

    Every thread gets as many turns, if there are enough blocks.
    """
    count = min(-(-len(blocks) // (max(most, 1) * threads)) * threads, len(blocks))
    turns = [[] for _ in range(count)]
    for first in range(0, len(blocks), max(count, 1)):
        turns.reverse()  # who got the longest before gets the shortest now
        for turn, block in zip(turns, blocks[first : first + count], strict=False):
            turn.append(block)
    return turns
