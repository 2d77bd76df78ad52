"""The trained model in a quarter of its size, for readers who run it on the page.

Each row of a matrix is written in whole numbers from -127 to 127 and one step, the row's own:
its largest entry divided by 127 (round to nearest, symmetric; Jacob et al. 2018, section 2, have
the general form). Biases and norms stay as they are; positions become float16. The file is laid
out as safetensors: any reader of that format opens it, and numpy alone is enough.
"""

import json
import math

import numpy as np

from worked_examples.wordpiece import vocabulary

__all__ = ["Rows", "cut", "pack", "unpack", "written_out"]

WORDS = "embeddings.word_embeddings.weight"
POSITIONS = "embeddings.position_embeddings.weight"
LARGEST = 127
_STEP = ".step"  # what a matrix's steps are called in the file: its own name, and this
_LINES = "vocab.txt"
_KINDS = {"F32": np.float32, "F16": np.float16, "I8": np.int8, "U8": np.uint8}
_NAMES = {np.dtype(kind): name for name, kind in _KINDS.items()}


class Rows:
    """A matrix of which rows are asked for by number, and only those are written out.

    Parameters
    ----------
    codes : (n, d) array of int8
    steps : (n,) array of float32

    Attributes
    ----------
    shape : tuple of int

    Examples
    --------
    >>> Rows(*cut([[1.0, 127.0], [0.0, 0.5]]))[[1, 0]].tolist()
    [[0.0, 0.5], [1.0, 127.0]]
    """

    def __init__(self, codes, steps):
        self._codes, self._steps, self.shape = codes, steps, codes.shape

    def __getitem__(self, numbers):
        return written_out(self._codes[numbers], self._steps[numbers])


def cut(matrix):
    """Write each row of a matrix in whole numbers and a step.

    Parameters
    ----------
    matrix : (n, d) array
        Finite numbers.

    Returns
    -------
    codes : (n, d) array of int8
        From -127 to 127.
    steps : (n,) array of float32
        Codes times steps differ from the matrix by half a step at most. 1 for a row of zeros.

    Raises
    ------
    ValueError
        If there are not two axes, or a number is not finite.

    Examples
    --------
    >>> cut([[0.0, 2.54]])
    (array([[  0, 127]], dtype=int8), array([0.02], dtype=float32))
    """
    matrix = np.asarray(matrix, dtype=np.float32)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise ValueError(f"a matrix of finite numbers is needed; got shape {matrix.shape}")
    steps = abs(matrix).max(axis=1, initial=0) / np.float32(LARGEST)
    steps[steps == 0] = 1
    return np.rint(matrix / steps[:, None]).astype(np.int8), steps


def written_out(codes, steps):
    """Give back float32 rows: codes times steps.

    Parameters
    ----------
    codes : (n, d) array of int8
    steps : (n,) array of float32

    Returns
    -------
    (n, d) array of float32
    """
    rows = codes.astype(np.float32)
    rows *= steps[:, None]
    return rows


def pack(arrays, lines):
    """Write a model and its vocabulary into one file.

    Parameters
    ----------
    arrays : dict of str to array
        As `weights.load` returns them; what `minilm.read` does not use is left out.
    lines : str
        The vocabulary's file: one piece a line.

    Returns
    -------
    bytes
        The same for the same arrays.
    """
    parts = {_LINES: np.frombuffer(lines.encode(), dtype=np.uint8)}
    for name, array in arrays.items():
        if name == POSITIONS:
            parts[name] = array.astype(np.float16)
        elif name == WORDS or (name.startswith("encoder.") and array.ndim == 2):
            parts[name], parts[name + _STEP] = cut(array)
        elif not name.startswith("pooler.") and array.dtype.kind == "f":
            parts[name] = array.astype(np.float32)
    # Wide numbers first: each array then begins where its kind can be read in place.
    order = sorted(parts, key=lambda name: (-parts[name].itemsize, name))
    header, end = {}, 0
    for name in order:
        start, end = end, end + parts[name].nbytes
        header[name] = {"dtype": _NAMES[parts[name].dtype], "shape": list(parts[name].shape),
                        "data_offsets": [start, end]}  # fmt: skip
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(parts[n].tobytes() for n in order)])


def unpack(data):
    r"""Read a file that `pack` wrote.

    Parameters
    ----------
    data : bytes-like
        It must live as long as the vectors of words are asked for: they are read from it.

    Returns
    -------
    arrays : dict of str to array
        float32, for `minilm.read`. The vectors of words are a `Rows`.
    vocabulary : dict of str to int

    Raises
    ------
    ValueError
        If this is no such file, or a part of it is missing.

    Examples
    --------
    >>> arrays, places = unpack(pack({"encoder.weight": np.eye(2)}, "[PAD]\ndog"))
    >>> arrays["encoder.weight"].tolist(), places
    ([[1.0, 0.0], [0.0, 1.0]], {'[PAD]': 0, 'dog': 1})
    """
    try:
        parts = _parts(memoryview(data))
        lines = parts.pop(_LINES).tobytes().decode()
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError("this is not the model's file in 8 bits, or not the whole of it") from None
    arrays = {}
    for name, part in parts.items():
        if name.endswith(_STEP):
            continue
        if part.dtype == np.int8:
            make = Rows if name == WORDS else written_out
            arrays[name] = make(part, parts[name + _STEP])
        else:
            arrays[name] = part.astype(np.float32)
    return arrays, vocabulary(lines)


def _parts(data):
    """Find the arrays in the file; nothing is copied."""
    begin = 8 + int.from_bytes(data[:8], "little")
    parts = {}
    for name, entry in json.loads(bytes(data[8:begin])).items():
        start, _ = entry["data_offsets"]
        flat = np.frombuffer(
            data, _KINDS[entry["dtype"]], math.prod(entry["shape"]), offset=begin + start
        )
        parts[name] = flat.reshape(entry["shape"])
    return parts
