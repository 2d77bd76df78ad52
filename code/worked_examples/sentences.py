"""What a trained model does with a few sentences: its maps by measured traits, and interventions.

The maps of the sentences in SHOWN are computed from queries and keys in a small file that the
package carries, rounded to float16; so are the tables of what happens when the model is changed.
`measure` makes all of it from the model's own file, and ``tools/model.py record`` writes it.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from worked_examples import minilm, weights, wordpiece
from worked_examples.attention import entropy, scaled_dot_product_attention

__all__ = [
    "CHASES",
    "DISAGREE",
    "LIKE",
    "SHOWN",
    "SHUFFLES",
    "STEPS",
    "TEXTS",
    "TRAITS",
    "VARIANTS",
    "Model",
    "destinations",
    "effect",
    "least_first",
    "measure",
    "open_model",
    "recorded",
    "shown_maps",
    "shuffled",
    "traits",
    "vector",
]

# Whose queries and keys the package carries.
SHOWN = (
    "The dog barked at the truck because it was loud.",
    "The dog barked at the truck because it was scared.",
    "A puppy was barking.",
)
# The first two say the like, and the third does not.
LIKE = ("The dog barked.", "A puppy was barking.", "The truck is red.")
# The first two hold the same words; the first and the third say the like.
CHASES = ("The dog chased the cat.", "The cat chased the dog.", "The dog ran after the cat.")
# Ordinary sentences, each about twenty tokens, over which traits and changes are averaged.
TEXTS = (
    "In the morning the old man walked slowly to the harbour, where his boat was waiting.",
    "When the rain stopped, the children ran outside to play in the wet grass behind the school.",
    "She opened the letter, read it twice, and put it back into the drawer without a word.",
    "The committee will publish its report next week, although several members have asked for "
    "more time.",
    "Water boils at a lower temperature on a mountain because the pressure of the air is lower "
    "there.",
)
# What *it* means changes with the last word, or with who barks at whom.
VARIANTS = (
    *(f"The dog barked at the truck because it was {word}." for word in
      ("loud", "red", "scared", "hungry")),
    "The truck honked at the dog because it was scared.",
    "The truck honked at the dog because it was loud.",
)  # fmt: skip
# Two heads of the last layer, and what each looks at from *it*.
DISAGREE = ((5, 5), (5, 11))
SEPARATORS = ("[CLS]", "[SEP]")
TRAITS = ("entropy", "previous", "next", "same", "separators", "distance")
SHUFFLES = 10
STEPS = range(0, minilm.LAYERS * minilm.HEADS + 1, 6)

_FILE = Path(__file__).parent / "data" / "sentences.npz"


class Model(NamedTuple):
    """A model's arrays and vocabulary, as `weights.load` returns them."""

    arrays: dict
    vocabulary: dict

    def read(self, text, **options):
        """Read a text: its tokens, and what `minilm.read` gives for them.

        Returns
        -------
        tokens : list of str
        reading : minilm.Reading
        """
        tokens, numbers = wordpiece.encode(text, self.vocabulary)
        return tokens, minilm.read(numbers, self.arrays, **options)


def open_model():
    """Get the model's files and read them, or say in one line why that cannot be.

    Returns
    -------
    Model or None
    """
    try:
        return Model(*weights.load())
    except weights.Unavailable as fault:
        print(f"Without the model's file: {fault}.")
        return None


def vector(model, text, **options):
    """Give a text's vector of length 1; options are those of `minilm.read`."""
    return minilm.sentence_vector(model.read(text, **options)[1].rows)


# ------------------------------------------------------------------------------- reading maps


def traits(A, tokens):
    """Describe heads by what can be measured in their maps.

    Parameters
    ----------
    A : (..., L, L) array
        Weights.
    tokens : (L,) sequence of str

    Returns
    -------
    (..., 6) array
        In the order of TRAITS: the mean entropy of a row in bits; the mean weight on the token
        before, over the rows that have one; on the token after, likewise; on the same token, the
        position itself or another that holds it; on [CLS] and [SEP] together; and the mean
        distance in tokens between a query and what it looks at. 0 where no row has such a token.

    Examples
    --------
    >>> print(traits(np.eye(3)[[0, 0, 1]], ["[CLS]", "dog", "[SEP]"]).round(2))
    [0.   1.   0.   0.33 0.67 0.67]
    """
    A, tokens = np.asarray(A), np.asarray(tokens)
    L = len(tokens)
    steps = abs(np.subtract.outer(np.arange(L), np.arange(L)))
    same, separator = tokens[:, None] == tokens, np.isin(tokens, SEPARATORS)
    beside = max(L - 1, 1)
    columns = (
        entropy(A).mean(axis=-1),
        np.diagonal(A, -1, -2, -1).sum(axis=-1) / beside,
        np.diagonal(A, 1, -2, -1).sum(axis=-1) / beside,
        (A * same).sum(axis=(-2, -1)) / L,
        A[..., separator].sum(axis=(-2, -1)) / L,
        (A * steps).sum(axis=(-2, -1)) / L,
    )
    return np.stack(columns, axis=-1)


def destinations(A, tokens):
    """Share out each head's weight among kinds of keys, each key counted once.

    Parameters
    ----------
    A : (..., L, L) array
    tokens : (L,) sequence of str

    Returns
    -------
    (..., 5) array
        Mean weight on the token before, the token after, the same token, [CLS] and [SEP], and
        all others; a key of several kinds counts for the first of them. They sum to 1.

    Examples
    --------
    >>> print(destinations(np.eye(3)[[0, 0, 1]], ["[CLS]", "dog", "[SEP]"]).round(2))
    [0.67 0.   0.33 0.   0.  ]
    """
    A, tokens = np.asarray(A), np.asarray(tokens)
    L = len(tokens)
    steps = np.subtract.outer(np.arange(L), np.arange(L))
    kinds = [
        steps == 1,
        steps == -1,
        tokens[:, None] == tokens,
        np.broadcast_to(np.isin(tokens, SEPARATORS), (L, L)),
        np.ones((L, L), dtype=bool),
    ]
    first = np.argmax(kinds, axis=0)
    return np.stack([(A * (first == k)).sum(axis=(-2, -1)) / L for k in range(5)], axis=-1)


# ------------------------------------------------------------------------------- interventions


def shuffled(L, seed):
    """Draw positions for L tokens: those between the first and the last change places."""
    middle = np.random.default_rng(seed).permutation(np.arange(1, L - 1))
    return np.concatenate([[0], middle, [L - 1]])[:L]


def least_first(effects):
    """Give (layer, head) pairs, those whose absence changes least first."""
    return [divmod(int(i), effects.shape[1]) for i in np.argsort(effects, axis=None)]


def _near(model, base, texts=TEXTS, **options):
    """Give the cosine of each text's vector, with the model changed, to what it was."""
    return np.array([vector(model, t, **options) @ b for t, b in zip(texts, base, strict=True)])


def _by_position(model, text, seed, head=(0, 2)):
    """Shuffle positions; give a head's weight on the position one lower, and on one row up."""
    tokens = model.read(text)[0]
    positions = shuffled(len(tokens), seed)
    A = model.read(text, positions=positions)[1].maps[head]
    place = np.argsort(positions)
    lower = [A[place[p], place[p - 1]] for p in range(1, len(tokens))]
    return np.mean(lower), np.diagonal(A, -1).mean()


def effect(model, base, heads):
    """Measure how far the vectors of TEXTS turn when some heads are switched off.

    Parameters
    ----------
    model : Model
    base : (5, 384) array
        The vectors of the whole model.
    heads : sequence of (layer, head) pairs

    Returns
    -------
    float
        1 minus the mean cosine to what they were.
    """
    return 1 - _near(model, base, without=heads).mean()


def measure(model, *, heads=True):
    """Compute everything that the small file holds, from the model's own.

    Parameters
    ----------
    model : Model
    heads : bool
        Whether to switch off heads too, which takes nine tenths of the time.

    Returns
    -------
    dict of str to array
        ``queries`` and ``keys``: float16, (layers, heads, positions of all of SHOWN, 32).
        ``tokens`` and ``lengths``: of SHOWN. ``rounding``: the largest difference that float16
        makes to a weight. ``like``, ``chases``: (3, 3) cosines. ``destinations`` (6, 12, 5) and
        ``traits`` (6, 12, 6): means over TEXTS. ``it``: for each of VARIANTS and each of the two
        heads in DISAGREE, the weights from *it* on *dog* and on *truck*. ``effects``: (6, 12),
        1 minus the cosine to what the vector was, without one head, mean of TEXTS. ``off``:
        (2, 13) cosines without the first n heads, n from STEPS, least effect first and greatest
        first.
        ``undivided``: (5,) cosines with the divisor left out. ``shuffled``: (5, SHUFFLES)
        cosines. ``follows``: (2,) weights of the previous-token head with positions shuffled.
    """
    found = {"tokens": [], "queries": [], "keys": [], "rounding": []}
    for text in SHOWN:
        tokens, reading = model.read(text, keep_heads=True)
        Q, K = reading.queries.astype(np.float16), reading.keys.astype(np.float16)
        found["rounding"].append(abs(_maps(Q, K) - reading.maps).max())
        for name, part in (("tokens", tokens), ("queries", Q), ("keys", K)):
            found[name].append(part)
    base = [vector(model, text) for text in TEXTS]
    result = {
        "lengths": np.array([len(tokens) for tokens in found["tokens"]]),
        "tokens": np.concatenate(found["tokens"]),
        "queries": np.concatenate(found["queries"], axis=2),
        "keys": np.concatenate(found["keys"], axis=2),
        "rounding": np.max(found["rounding"]),
    }
    for name, texts in (("like", LIKE), ("chases", CHASES)):
        vectors = np.stack([vector(model, text) for text in texts])
        result[name] = vectors @ vectors.T
    readings = [model.read(text) for text in TEXTS]
    for name, function in (("traits", traits), ("destinations", destinations)):
        result[name] = np.mean([function(r.maps, t) for t, r in readings], axis=0)
    result["it"] = np.array([_of_it(model, text) for text in VARIANTS])
    result["undivided"] = _near(model, base, scale=1.0)
    result["shuffled"] = np.array([
        [vector(model, t, positions=shuffled(len(read[0]), seed)) @ b for seed in range(SHUFFLES)]
        for t, read, b in zip(TEXTS, readings, base, strict=True)
    ])  # fmt: skip
    result["follows"] = np.array(_by_position(model, TEXTS[0], 0))
    if heads:
        pairs = [divmod(i, minilm.HEADS) for i in range(minilm.LAYERS * minilm.HEADS)]
        effects = np.reshape([effect(model, base, [p]) for p in pairs], (-1, minilm.HEADS))
        order = least_first(effects)
        result["effects"] = effects
        result["off"] = np.array([
            [1 - effect(model, base, first[:n]) for n in STEPS] for first in (order, order[::-1])
        ])  # fmt: skip
    return {
        name: part if part.dtype.kind in "UO" or part.dtype == np.float16 or part.dtype.kind == "i"
        else part.astype(np.float32)
        for name, part in ((name, np.asarray(part)) for name, part in result.items())
    }  # fmt: skip


def _of_it(model, text):
    tokens, reading = model.read(text)
    query, keys = tokens.index("it"), [tokens.index("dog"), tokens.index("truck")]
    return [reading.maps[layer, head, query, keys] for layer, head in DISAGREE]


# ------------------------------------------------------------------------------ the small file


@cache
def recorded():
    """Return what the package carries: the arrays that `measure` computed, by name.

    Returns
    -------
    dict of str to array
    """
    with np.load(_FILE, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def shown_maps(number, *, divide=True):
    """Compute all maps of one of the sentences in SHOWN, from its queries and keys.

    Parameters
    ----------
    number : int
        Which sentence.
    divide : bool
        Whether scores are divided by sqrt(32), as the model was trained.

    Returns
    -------
    tokens : list of str
    maps : (6, 12, L, L) array
    """
    held = recorded()
    end = int(held["lengths"][: number + 1].sum())
    rows = slice(end - int(held["lengths"][number]), end)
    maps = _maps(held["queries"][:, :, rows], held["keys"][:, :, rows], divide)
    return held["tokens"][rows].tolist(), maps


def _maps(Q, K, divide=True):
    """Give the weights of float16 queries and keys, in float32."""
    Q, K = Q.astype(np.float32), K.astype(np.float32)
    return scaled_dot_product_attention(Q, K, K, scale=None if divide else 1.0)[1]
