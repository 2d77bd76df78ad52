"""Cut the trained model to 8 bits for the page on which readers type a sentence of their own.

    python tools/eight_bits.py    what `make book` does: cut, measure what that costs, lay out

The file lies in _build/model/SUM/, from where the site serves it as _model/SUM/. It is made from
the model's own file (worked_examples/weights.py); without that the page has no button.
"""

import base64
import hashlib
import itertools
import json
import shutil
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "code"))

from worked_examples import eight_bits, minilm, sentences, weights, wordpiece  # noqa: E402

NAME = "all-MiniLM-L6-v2-8-bits.safetensors"
# What the file and the figures are made from, beside the model itself.
SOURCES = (
    "attention", "block", "eight_bits", "minilm", "own_sentence", "sentences", "weights",
    "wordpiece",
)  # fmt: skip
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 126)  # words of the drawn texts; 126 make 128 tokens


def key(root):
    """Return a hash of all that goes into the layout."""
    digest = hashlib.sha256(json.dumps(weights.FILES).encode() + Path(__file__).read_bytes())
    for name in SOURCES:
        source = root / "code" / "worked_examples" / f"{name}.py"
        if source.is_file():  # a site may be built without the package beside it
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def laid_out(root):
    """Return what `lay_out` has described, or None.

    Returns
    -------
    dict or None
        ``path`` in the site, ``size`` in bytes, ``integrity``, and ``cost``, what `cost` returned.
    """
    description = root / "_build" / "model" / f"{key(root)}.json"
    return json.loads(description.read_text("utf-8")) if description.is_file() else None


def lay_out(root):
    """Make the folder that the site serves as _model/.

    Raises
    ------
    weights.Unavailable
        If the model cannot be had.
    """
    ready = laid_out(root)
    if ready:
        return ready
    arrays, vocabulary = weights.load()
    lines = (weights.cache_folder() / "vocab.txt").read_text("utf-8")
    data = eight_bits.pack(arrays, lines)
    whole = root / "_build" / "model"
    shutil.rmtree(whole, ignore_errors=True)
    folder = whole / hashlib.sha256(data).hexdigest()[:16]
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(data)
    ready = {"path": f"{folder.name}/{NAME}", **described(data)}
    ready["cost"] = cost(texts(vocabulary), arrays, *eight_bits.unpack(data))
    (whole / f"{key(root)}.json").write_text(json.dumps(ready, indent=1), "utf-8")
    return ready


def described(data):
    """Return what the page needs to know of the file, to check it."""
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    return {"size": len(data), "integrity": f"sha256-{digest}"}


# --- what 8 bits cost ---------------------------------------------------------------------------


def texts(vocabulary):
    """Give the texts over which the cost is measured: the chapter's, and words drawn at random.

    Returns
    -------
    list of str
    """
    groups = (sentences.SHOWN, sentences.LIKE, sentences.CHASES, sentences.TEXTS,
              sentences.VARIANTS)  # fmt: skip
    chapter = dict.fromkeys(itertools.chain(*groups))
    words = sorted(word for word in vocabulary if word.isascii() and word.isalpha())
    rng = np.random.default_rng(0)
    return [*chapter, *(" ".join(rng.choice(words, n)) for n in 2 * LENGTHS)]


def cost(texts, arrays, cut, vocabulary):
    """Compare the model with itself in 8 bits.

    Parameters
    ----------
    texts : list of str
    arrays, cut : dict of str to array
        The model's own, and what is left of them.
    vocabulary : dict of str to int

    Returns
    -------
    dict
        ``texts``: how many. ``weight``, ``mean weight``: the largest and the mean difference of
        a weight in a map. ``layers``: for the rows that enter the first block and for each
        block's, the largest distance from what they were, as a share of their length. ``cosine``:
        the largest difference of the cosine of two texts' vectors.
    """
    largest, means, layers, vectors = [], [], [], []
    for text in texts:
        numbers = wordpiece.encode(text, vocabulary)[1]
        one, other = minilm.read(numbers, arrays), minilm.read(numbers, cut)
        off = abs(one.maps - other.maps)
        largest.append(off.max())
        means.append(off.mean())
        apart = np.linalg.norm(one.layers - other.layers, axis=(1, 2))
        layers.append(apart / np.linalg.norm(one.layers, axis=(1, 2)))
        vectors.append([minilm.sentence_vector(reading.rows) for reading in (one, other)])
    one, other = np.swapaxes(vectors, 0, 1)
    return {
        "texts": len(texts),
        "weight": float(max(largest)),
        "mean weight": float(np.mean(means)),
        "layers": np.max(layers, axis=0).tolist(),
        "cosine": float(abs(one @ one.T - other @ other.T).max()),
    }


def main():
    """Lay out, or say in one line why there is nothing."""
    try:
        ready = lay_out(ROOT)
    except weights.Unavailable as fault:
        print(f"The page will have no model to load: {fault}.", flush=True)
        shutil.rmtree(ROOT / "_build" / "model", ignore_errors=True)
        return 0
    print(f"The trained model for the page: {ready['size'] / 1e6:.1f} MB in 8 bits.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
