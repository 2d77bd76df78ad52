"""Exercises of the chapter on the causal mask."""

import numpy as np

from worked_examples.attention import causal_mask, key_padding_mask, softmax
from worked_examples.exercises.checking import Check, Mistake
from worked_examples.masking import (
    mask_first,
    multiply_scores,
    plain_softmax,
    renormalise,
    same_scores,
    softmax_first,
)

__all__ = ["check_both_masks", "check_cache_mask", "check_causal_weights"]

# ------------------------------------------------------------------------ scores to weights


def _scores():
    rng = np.random.default_rng(0)
    huge = rng.normal(size=(4, 4))
    huge[1, 3] = 1000.0
    low = rng.normal(size=(3, 3)) - 600  # exp of it is still above 0
    several = rng.normal(size=(2, 3, 5, 5))
    return [(same_scores(),), (rng.normal(size=(6, 6)),), (several,), (huge,), (low,)]


def _with(weigh, seen):
    """Make causal weights with another way to hide, or another mask, in them."""
    return lambda S: weigh(S, seen(S.shape[-1]))


def _hide(S, seen):
    return plain_softmax(np.where(seen, S, -np.inf))


_FUTURE_SEEN = (
    "Row 0 sees the future and not itself: the mask is inverted. Hide a score where the causal "
    "mask is False."
)

check_causal_weights = Check(
    "check_causal_weights",
    correct=lambda S: mask_first(S, causal_mask(S.shape[-1])),
    inputs=_scores,
    mistakes=(
        Mistake(
            lambda S: softmax(np.where(causal_mask(S.shape[-1]), S, -100)),
            "Right while scores are ordinary. Here they lie near -600, and a hidden -100 is the "
            "largest of all. Only -inf is below every score.",
        ),
        Mistake(
            _with(softmax_first, causal_mask),
            "Rows sum to less than 1, row 0 to 0.4551: the mask came after the softmax. Hide the "
            "scores, then take the softmax.",
        ),
        Mistake(
            _with(multiply_scores, causal_mask),
            "The future still has weight: a score of 0 is an ordinary score, and exp(0) = 1. "
            "Hide with -inf.",
        ),
        Mistake(lambda S: softmax(S), "Nothing is hidden: these are the weights without a mask."),
        Mistake(_with(mask_first, lambda L: ~causal_mask(L)), _FUTURE_SEEN),
        Mistake(_with(_hide, lambda L: ~causal_mask(L)), _FUTURE_SEEN),
        Mistake(
            _with(mask_first, lambda L: np.tri(L, k=1, dtype=bool)),
            "Row 0 sees position 1, which is its own answer: the diagonal is off by one.",
        ),
        Mistake(
            _with(_hide, lambda L: np.tri(L, k=-1, dtype=bool)),
            "A position may look at itself; row 0 has nothing left to see.",
        ),
        Mistake(
            _with(mask_first, lambda L: np.tri(L, k=-1, dtype=bool)),
            "A position may look at itself; row 0 is left with no weight at all.",
        ),
        Mistake(
            _with(mask_first, lambda L: causal_mask(L).T),
            "Row 0 sees everything and the last row itself alone: the mask is transposed. A row "
            "is a query.",
        ),
        Mistake(
            _with(renormalise, causal_mask),
            "Right for small scores. Here a hidden score of 1000 takes all the weight before it is "
            "hidden, and 0 / 0 is left. Hide first.",
        ),
    ),
    praise="The past alone has weight, rows sum to 1, and a huge score ahead changes nothing.",
)

# -------------------------------------------------------------------------------- two masks


def _both(lengths, L):
    return key_padding_mask(lengths, L)[:, None, :] & causal_mask(L)  # (B, 1, L) & (L, L)


def _real(lengths, L):
    return key_padding_mask(lengths, L)


check_both_masks = Check(
    "check_both_masks",
    correct=_both,
    # As many sequences as positions first: there a missing axis goes unnoticed by numpy.
    inputs=lambda: [([1, 3, 2], 3), ([5, 2], 5), ([4], 4), ([0, 2], 3)],
    mistakes=(
        Mistake(
            lambda lengths, L: _real(lengths, L) & causal_mask(L),
            "The result has no axis for the sequences: with as many sequences as positions, "
            "(B, L) lies along the queries and nothing complains. Give the padding the shape "
            "(B, 1, L).",
        ),
        Mistake(
            lambda lengths, L: _real(lengths, L)[:, :, None] & causal_mask(L),
            "The padding silences queries instead of hiding keys: (B, L, 1) says which rows may "
            "look. Keys are the last axis, so it has to be (B, 1, L).",
        ),
        Mistake(
            lambda lengths, L: _real(lengths, L)[:, None, :] | causal_mask(L),
            "A key is let through if either mask lets it. It has to pass both: and, not or.",
        ),
        Mistake(
            lambda lengths, L: ~_real(lengths, L)[:, None, :] & causal_mask(L),
            "This lets through the padding and hides what is real: the padding mask is inverted.",
        ),
        Mistake(
            lambda lengths, L: ~_both(lengths, L),
            "This is True where a query may not look, as nn.MultiheadAttention has it. Here True "
            "means may look.",
        ),
        Mistake(
            lambda lengths, L: _real(lengths, L)[:, None, :] & np.ones((L, L), dtype=bool),
            "The padding is hidden and the future is not.",
        ),
        Mistake(
            lambda lengths, L: np.tile(causal_mask(L), (len(lengths), 1, 1)),
            "The future is hidden and the padding is not.",
        ),
        Mistake(
            lambda lengths, L: _both(lengths, L)[:, None],
            "Right, with an axis for the heads. Leave it out: (B, L, L).",
        ),
    ),
    praise="One mask a sequence, (B, L, L); with [:, None] in front it serves every head.",
)

# -------------------------------------------------------------------------------- alignment

check_cache_mask = Check(
    "check_cache_mask",
    correct=causal_mask,
    inputs=lambda: [(3, 5), (2, 4), (1, 5), (3, 3), (4, 2)],
    mistakes=(
        Mistake(
            lambda L_q, L_k: np.tri(L_q, L_k, dtype=bool),
            "Aligned to the start: with 2 queries and 4 keys, query 0 sees key 0 only, as torch's "
            "is_causal has it. The last query has to see the last key.",
        ),
        Mistake(
            lambda L_q, L_k: np.tri(L_q, L_k, k=L_q - L_k, dtype=bool),
            "The offset has the wrong sign: there are L_k - L_q keys before the first query.",
        ),
        Mistake(
            lambda L_q, L_k: np.tri(L_q, L_k, k=L_k - L_q - 1, dtype=bool),
            "A query does not see its own position: the offset is one too small.",
        ),
        Mistake(
            lambda L_q, L_k: np.tri(L_q, L_k, k=L_k - L_q + 1, dtype=bool),
            "A query sees the position after its own: the offset is one too large.",
        ),
        Mistake(
            lambda L_q, L_k: ~causal_mask(L_q, L_k),
            "This is True where a query may not look. Here True means may look.",
        ),
        Mistake(
            lambda L_q, L_k: np.ones((L_q, L_k), dtype=bool),
            "Nothing is hidden: the first query sees the last key, which is in its future.",
        ),
    ),
    praise="The last query sees the last key, whatever is in the cache.",
)
