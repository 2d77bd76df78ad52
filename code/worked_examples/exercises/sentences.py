"""Exercises of the chapter on a trained model."""

import numpy as np

from worked_examples.exercises.checking import Check, Mistake
from worked_examples.wordpiece import pieces

__all__ = ["check_cut_word", "check_previous_weight", "check_without_head"]


# -------------------------------------------------------------------------------- cut a word

_PIECES = frozenset(
    {"un", "una", "u", "f", "able", "##n", "##a", "##f", "##b", "##le", "##able", "##x"}
)


def _known(piece):
    return piece in _PIECES


def _greedy(word, known, *, mark="##", shortest=False, keep=False):
    found, start = [], 0
    while start < len(word):
        ends = range(start + 1, len(word) + 1) if shortest else range(len(word), start, -1)
        prefix = mark if start else ""
        end = next((end for end in ends if known(prefix + word[start:end])), None)
        if end is None:
            return (*found, "[UNK]") if keep else ("[UNK]",)
        found.append(prefix + word[start:end])
        start = end
    return tuple(found)


class _Vocabulary:
    """Let a function stand for a vocabulary."""

    def __init__(self, known):
        self.known = known

    def __contains__(self, piece):
        return self.known(piece)


check_cut_word = Check(
    "check_cut_word",
    correct=lambda word, known: tuple(pieces(word, _Vocabulary(known))),
    inputs=lambda: [("unaffable", _known), ("unafx", _known), ("unafz", _known), ("able", _known),
                    ("unable", _known), ("z", _known)],
    mistakes=(
        Mistake(
            lambda word, known: _greedy(word, known, mark=""),
            "A piece that does not begin the word is in the vocabulary under a name with ## in "
            "front: look it up so.",
        ),
        Mistake(
            lambda word, known: _greedy(word, known, shortest=True),
            "These are the shortest pieces. Try the whole rest of the word first, then one "
            "character less, and so on.",
        ),
        Mistake(
            lambda word, known: _greedy(word, known, keep=True),
            "If some part of a word is in no piece, the whole word is [UNK]: nothing of it is "
            "kept.",
        ),
    ),
    praise="Longest piece first, and all of the word or nothing.",
)  # fmt: skip


# -------------------------------------------------------------------------- a previous-token head


def _previous_weight(A):
    return np.diagonal(A, -1, -2, -1).mean(axis=-1)


def _maps(seed, *shape):
    powers = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return powers / powers.sum(axis=-1, keepdims=True)


check_previous_weight = Check(
    "check_previous_weight",
    correct=_previous_weight,
    inputs=lambda: [(_maps(0, 4, 4),), (_maps(1, 2, 3, 5, 5),), (_maps(2, 12, 2, 2),)],
    mistakes=(
        Mistake(
            lambda A: np.diagonal(A, -1, -2, -1).sum(axis=-1) / A.shape[-1],
            "Row 0 has no token before it: L - 1 rows have one, so divide by that.",
        ),
        Mistake(
            lambda A: np.diagonal(A, 1, -2, -1).mean(axis=-1),
            "This is the token after. Rows are queries: row i looks back at column i - 1.",
        ),
        Mistake(
            lambda A: np.diagonal(A, 0, -2, -1).mean(axis=-1),
            "This is the weight on the position itself.",
        ),
        Mistake(
            lambda A: np.diagonal(A, -1).mean(axis=-1),
            "np.diagonal takes the first two axes unless it is told otherwise; the map is in the "
            "last two.",
        ),
    ),
    praise="One number a head, over the rows that have a token before them.",
)


# ---------------------------------------------------------------------------- a head switched off


def _without_head(heads, W_O, b_O, off):
    kept = np.arange(len(heads)) != off
    joined = np.concatenate(list(heads * kept[:, None, None]), axis=-1)
    return joined @ W_O + b_O


def _layer(seed, h=3, L=4, d_v=2, d=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(h, L, d_v)), rng.normal(size=(h * d_v, d)), rng.normal(size=d)


def _mixed(heads, W_O, b_O):
    return np.concatenate(list(heads), axis=-1) @ W_O + b_O


def _scaled(heads, W_O, b_O, off):
    h = len(heads)
    return (_without_head(heads, W_O, b_O, off) - b_O) * h / (h - 1) + b_O


check_without_head = Check(
    "check_without_head",
    correct=_without_head,
    inputs=lambda: [(*_layer(0), 1), (*_layer(1, 2, 3, 4, 8), 0), (*_layer(2, 4, 1, 1, 4), 3)],
    mistakes=(
        Mistake(
            lambda heads, W_O, b_O, off: _mixed(heads, W_O, b_O),
            "The head is still there.",
        ),
        Mistake(
            lambda heads, W_O, b_O, off: _without_head(heads, W_O, 0 * b_O, off),
            "The bias b_O belongs to the layer, not to a head: it stays.",
        ),
        Mistake(
            _scaled,
            "The other heads are not made larger for the one that is gone: here nothing is "
            "averaged, and they keep their size.",
        ),
        Mistake(
            lambda heads, W_O, b_O, off: _mixed(
                np.where(np.arange(heads.shape[0])[:, None, None] == off,
                         heads.mean(axis=1, keepdims=True), heads), W_O, b_O),
            "This head still hands over the mean of its rows. Off means zeros.",
        ),
        Mistake(
            lambda heads, W_O, b_O, off: np.where(
                np.arange(W_O.shape[1]) // heads.shape[2] == off, 0, _mixed(heads, W_O, b_O)),
            "After W_O a column holds a mixture of all heads. Switch the head off before.",
        ),
    ),
    praise="Zeros before the mixing, and everything else as it was.",
)  # fmt: skip
