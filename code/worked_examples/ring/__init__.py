"""Attention past one machine: each rank holds a part of the sequence, and keys go around a ring.

`orders` deals a sequence out and gathers it, `local` is what one rank computes, `travel` is what
moves and what is said when a rank is lost, and `function` puts them together, forward and backward.
``python -m worked_examples.ring`` is the command line, started by torchrun for more than one rank.
"""

from worked_examples.ring.function import ring_attention
from worked_examples.ring.orders import (
    ORDERS,
    deal,
    gather_sequence,
    held_positions,
    pairs_of_ranks,
)
from worked_examples.ring.travel import Account, LostRankError

__all__ = [
    "ORDERS",
    "Account",
    "LostRankError",
    "deal",
    "gather_sequence",
    "held_positions",
    "pairs_of_ranks",
    "ring_attention",
]
