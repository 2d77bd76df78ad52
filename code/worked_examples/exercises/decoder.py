"""Exercises of the last chapter: the whole layer, and the loop that writes."""

import numpy as np

from worked_examples.attention import (
    AttentionParameters,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    split_heads,
)
from worked_examples.decoder import generate
from worked_examples.exercises.checking import Check, Mistake

__all__ = ["check_generate", "check_whole_layer"]


def _layer_inputs():
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=(L, d)), *(rng.normal(size=(d, d)) for _ in range(4)), h)
        for L, d, h in ((5, 8, 2), (3, 6, 3), (1, 4, 4), (4, 4, 1))
    ]


def _layer(X, W_Q, W_K, W_V, W_O, h, **options):
    return multi_head_attention(X, AttentionParameters(W_Q, W_K, W_V, W_O), h, **options)[0]


def _causal(*arguments):
    return _layer(*arguments, causal=True)


def _with(change):
    """Make the layer with one step changed: `change` gets Q, K, V split into heads, and d."""

    def wrong(X, W_Q, W_K, W_V, W_O, h):
        parts = [split_heads(X @ W, h) for W in (W_Q, W_K, W_V)]
        return merge_heads(change(*parts, X.shape[1])) @ W_O

    return wrong


def _mixed_heads(X, W_Q, W_K, W_V, W_O, h):
    L, d = X.shape
    parts = [(X @ W).reshape(h, L, d // h) for W in (W_Q, W_K, W_V)]
    return merge_heads(scaled_dot_product_attention(*parts, causal=True)[0]) @ W_O


check_whole_layer = Check(
    "check_whole_layer",
    correct=_causal,
    inputs=_layer_inputs,
    mistakes=(
        Mistake(_layer, "Every position sees the future. Hide it before the softmax."),
        Mistake(
            lambda X, W_Q, W_K, W_V, W_O, h: _causal(X, W_Q, W_K, W_V, W_O, 1),
            "That is one head of the full width. Cut the columns of Q, K and V into h heads.",
        ),
        Mistake(
            _with(lambda Q, K, V, d: scaled_dot_product_attention(
                Q, K, V, causal=True, scale=d**-0.5)[0]),
            "The divisor is the root of d; each head's keys have width d / h.",
        ),
        Mistake(
            _with(lambda Q, K, V, d: scaled_dot_product_attention(
                Q, K, V, causal=True, scale=1)[0]),
            "The scores are not divided by the root of the heads' width.",
        ),
        Mistake(
            lambda X, W_Q, W_K, W_V, W_O, h: _causal(X, W_Q, W_K, W_V, np.eye(len(W_O)), h),
            "The heads stand side by side, and nothing mixes them yet: W_O is missing.",
        ),
        Mistake(
            _mixed_heads,
            "A reshape to (h, L, d/h) cuts rows apart. Reshape to (L, h, d/h), then swap the "
            "first two axes.",
        ),
    ),
    praise="A causal multi-head layer in your own lines, equal to the library's.",
)  # fmt: skip


def _table(tokens):
    """Give logits that depend on the last token and on how many there are."""
    tokens = np.asarray(tokens)
    scores = np.random.default_rng(7).normal(size=(5, 5))
    return scores[tokens] + 0.7 * np.eye(5)[(tokens + np.arange(len(tokens))) % 5]


def _generate_inputs():
    return [([0, 3, 1], 4, _table), ([2], 6, _table), ([4], 0, _table)]


def _loop(choose):
    def wrong(tokens, steps, logits_after):
        tokens = list(tokens)
        for _ in range(steps):
            tokens.append(int(choose(tokens, logits_after)))
        return tokens

    return wrong


check_generate = Check(
    "check_generate",
    correct=generate,
    inputs=_generate_inputs,
    mistakes=(
        Mistake(
            _loop(lambda tokens, logits: np.argmax(logits(tokens)[0])),
            "Row 0 scores what follows the first token. What comes next is in the last row.",
        ),
        Mistake(
            _loop(lambda tokens, logits: np.argmax(logits(tokens[-1:])[-1])),
            "Only the last token was fed. The model needs the whole prefix.",
        ),
        Mistake(
            _loop(lambda tokens, logits: np.argmin(logits(tokens)[-1])),
            "The worst-scored token was taken; the best is wanted.",
        ),
        Mistake(
            lambda tokens, steps, logits: generate(tokens, steps, logits)[len(tokens):],
            "Those are the new tokens alone. Return the old ones before them.",
        ),
    ),
    praise="Prefix in, best next token out, and round again: that is how text is written.",
)  # fmt: skip
