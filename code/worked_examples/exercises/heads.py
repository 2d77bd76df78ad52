"""Exercises of the chapter on heads."""

import numpy as np

from worked_examples.attention import (
    AttentionParameters,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    split_heads,
)
from worked_examples.exercises.checking import Check, Mistake

__all__ = ["check_count", "check_merge_heads", "check_multi_head", "check_split_heads"]


def _numbered(*shape):
    return np.arange(np.prod(shape), dtype=float).reshape(shape)


check_split_heads = Check(
    "check_split_heads",
    correct=split_heads,
    inputs=lambda: [(_numbered(4, 6), 2), (_numbered(5, 6), 3), (_numbered(4, 4), 4),
                    (_numbered(2, 3), 1)],
    mistakes=(
        Mistake(
            lambda X, h: X.reshape(h, len(X), -1),
            "The reshape alone hands head 0 the first rows, not the first columns: positions and "
            "heads are mixed. Reshape to (L, h, d_k) first, then swap two axes.",
        ),
        Mistake(
            lambda X, h: X.reshape(len(X), h, -1),
            "The columns are cut rightly, but the shape is (L, h, d_k): positions would attend "
            "within themselves. The heads' axis belongs in front.",
        ),
        Mistake(
            lambda X, h: X.reshape(len(X), h, -1).transpose(1, 2, 0),
            "Heads come first, but each head is turned on its side: rows are positions.",
        ),
        Mistake(
            lambda X, h: X.reshape(len(X), -1, h).transpose(2, 0, 1),
            "The columns are dealt out in turn, like cards. Head 0 takes the first d/h columns, "
            "side by side.",
        ),
        Mistake(
            lambda X, h: np.stack(np.split(X, h)),
            "This cuts the rows. A head sees every position, and a part of the columns.",
        ),
    ),
    praise="Each head holds all positions and its own columns, and nothing was computed.",
)  # fmt: skip


check_merge_heads = Check(
    "check_merge_heads",
    correct=merge_heads,
    inputs=lambda: [(_numbered(2, 3, 2),), (_numbered(3, 5, 2),), (_numbered(4, 1, 3),)],
    mistakes=(
        Mistake(
            lambda heads: heads.reshape(heads.shape[1], -1),
            "The reshape alone puts rows of one head beside each other. Swap heads and positions "
            "first, so that a position's parts are neighbours.",
        ),
        Mistake(
            lambda heads: heads.sum(axis=0),
            "The heads are added up. They stand side by side, h d_v wide; W_O does the adding.",
        ),
        Mistake(
            lambda heads: heads.mean(axis=0),
            "The heads are averaged. They stand side by side, h d_v wide.",
        ),
        Mistake(
            lambda heads: heads.reshape(-1, heads.shape[2]),
            "The heads lie below each other. A position has one row: join the columns.",
        ),
        Mistake(
            lambda heads: heads.transpose(1, 2, 0).reshape(heads.shape[1], -1),
            "The columns of the heads alternate. All of head 0 comes first, then all of head 1.",
        ),
    ),
    praise="Merging undoes splitting, for every number of heads.",
)


def _layer_inputs():
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=(L, d)), *rng.normal(size=(4, d, d)), h)
        for L, d, h in ((3, 4, 2), (5, 6, 3), (4, 8, 4), (1, 2, 1))
    ]


def _layer(X, W_Q, W_K, W_V, W_O, h):
    return multi_head_attention(X, AttentionParameters(W_Q, W_K, W_V, W_O), h)[0]


def _heads(X, W_Q, W_K, W_V, h, scale=None):
    parts = (split_heads(X @ W, h) for W in (W_Q, W_K, W_V))
    return scaled_dot_product_attention(*parts, scale=scale)[0]


def _cut_inputs(X, W_Q, W_K, W_V, W_O, h):
    """Cut X instead of the projections: head i never sees the other columns."""
    d_k = X.shape[1] // h
    parts = [slice(i * d_k, (i + 1) * d_k) for i in range(h)]
    heads = [
        scaled_dot_product_attention(*(X[:, part] @ W[part, part] for W in (W_Q, W_K, W_V)))[0]
        for part in parts
    ]
    return np.concatenate(heads, axis=1) @ W_O


check_multi_head = Check(
    "check_multi_head",
    correct=_layer,
    inputs=_layer_inputs,
    mistakes=(
        Mistake(
            lambda X, W_Q, W_K, W_V, W_O, h: merge_heads(_heads(X, W_Q, W_K, W_V, h)),
            "The heads are right and side by side. W_O is missing, which mixes them.",
        ),
        Mistake(
            lambda X, W_Q, W_K, W_V, W_O, h: (
                merge_heads(_heads(X, W_Q, W_K, W_V, h, scale=X.shape[1] ** -0.5)) @ W_O
            ),
            "The scores are divided by the root of d. A head's keys have the width d_k = d / h.",
        ),
        Mistake(
            lambda X, W_Q, W_K, W_V, W_O, h: _layer(X, W_Q, W_K, W_V, W_O, 1),
            "This is one head of the full width: one softmax for all columns. Cut Q, K and V "
            "first.",
        ),
        Mistake(
            lambda X, W_Q, W_K, W_V, W_O, h: np.tile(_heads(X, W_Q, W_K, W_V, h)[0], (1, h)) @ W_O,
            "Every head uses the first columns. Head i has columns i d_k to (i + 1) d_k.",
        ),
        Mistake(
            lambda X, W_Q, W_K, W_V, W_O, h: _heads(X, W_Q, W_K, W_V, h).reshape(len(X), -1) @ W_O,
            "The heads are right, but the reshape that joins them mixes positions: swap heads and "
            "positions first, or concatenate along the columns.",
        ),
        Mistake(
            _cut_inputs,
            "This cuts X, so a head sees a part of each position. Project all of X, then cut.",
        ),
    ),
    praise="Head by head, and equal to the batched kernel.",
)


def _count(d, h):
    return 4 * d * d + 4 * d if d % h == 0 else 0


check_count = Check(
    "check_count",
    correct=_count,
    inputs=lambda: [(512, 8), (512, 1), (16, 4), (10, 4), (12, 8)],
    mistakes=(
        Mistake(
            lambda d, h: h * (4 * d * d + 4 * d),
            "This grows with h. A head has d / h columns of each matrix, so all heads together "
            "have d.",
        ),
        Mistake(lambda d, h: 4 * d * d, "The matrices are all there. The four biases are missing."),
        Mistake(
            lambda d, h: 3 * d * d + 3 * d,
            "These are the projections of queries, keys and values. W_O and its bias are missing.",
        ),
        Mistake(
            lambda d, h: 3 * d * d // h + 3 * d // h + d * d + d,
            "Queries, keys and values are counted for one head only. There are h.",
        ),
        Mistake(
            lambda d, h: 4 * d * d + 4 * d,
            "Right where h divides d. Where it does not, there is no such layer: return 0.",
        ),
    ),
    praise="The same for every number of heads that d allows, and 0 where there is no such layer.",
)
