"""Measure each choice in how a page starts Python, in headless Chromium: with it and without.

    python -m benchmarks.options [NAME ...] [--rounds N] [--json FILE]

Needs a built site with its JupyterLite, and Node.js. Each option is a copy of the site with another
runtime: it is opened cold, in a new browser, and then its second chapter, in turns with the others
and with a bare page that loads nothing but Pyodide and numpy. So a table holds for one run, and its
ratios say what pays. A minute a round; `NAME ...` measures only these options, the bare page and
what the site ships.
"""

import argparse
import gzip
import json
import re
import shutil
import statistics
import sys
import tempfile
import zipfile
from contextlib import ExitStack
from pathlib import Path

from tools import runtime
from tools.browser import new_profile
from tools.serve import Quiet, served

from benchmarks.live import BARE, SITE, chapters, time_to_live
from benchmarks.machine import describe, load, warning
from benchmarks.tables import print_tables, spread

ROOT = Path(__file__).resolve().parents[1]
# What the pages never import of numpy.
NEVER = re.compile(r"/(tests|testing|f2py|typing|distutils|_pyinstaller|doc)/|\.(pyi|pxd|h|c)$")


# --- the options: each changes a copy of the runtime's folder ------------------------------------


def as_shipped(folder):
    """The snapshot of Python with numpy and our modules, its files fetched and compiled at once."""


def change(path, *pairs):
    """Replace texts in a script; a script that no longer has one of them is an error."""
    text = path.read_text("utf-8")
    for old, new in pairs:
        if text.count(old) != 1:
            raise ValueError(f"{path.name} has {old!r} {text.count(old)} times, not once")
        text = text.replace(old, new)
    path.unlink()  # a link to the site's own
    path.write_text(text, "utf-8")


def put(path, data):
    """Write a file in place of a link."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def describe_files(folder, **settings):
    """Write manifest.js again for the files that are there now."""
    text = (folder / "manifest.js").read_text("utf-8")
    known = json.loads(text.partition("RUNTIME = ")[2].partition(";\n")[0]) | settings
    files = {p.name: runtime.describe(p) for p in folder.iterdir() if p.name != "manifest.js"}
    written = f"export const RUNTIME = {json.dumps(known)};\nexport const FILES = "
    put(folder / "manifest.js", f"{written}{json.dumps(files)};\n".encode())


def plain(folder):
    """No snapshot: Pyodide starts from its parts, then numpy, then our package."""
    describe_files(folder, snapshot=None)


def compiled(folder):
    """No snapshot; the library and numpy compiled to .pyc, as JupyterLite's are."""
    made = next((SITE / "lite").glob("python-*"))
    for name in ("python_stdlib.zip", runtime.NUMPY):
        put(folder / name, (made / name).read_bytes())
    describe_files(folder, snapshot=None)


def trimmed(folder):
    """No snapshot; numpy's wheel without what is never imported."""
    whole = (folder / runtime.NUMPY).read_bytes()
    put(folder / runtime.NUMPY, cut(whole))
    describe_files(folder, snapshot=None)


def cut(wheel):
    """Return a wheel without the files that the pages never import."""
    with tempfile.TemporaryFile() as file:
        file.write(wheel)
        with zipfile.ZipFile(file) as whole:
            names = [name for name in whole.namelist() if not NEVER.search(name)]
            return runtime.archive({name: whole.read(name) for name in names})


def compiled_and_trimmed(folder):
    """No snapshot; compiled, and numpy without what is never imported."""
    compiled(folder)
    put(folder / runtime.NUMPY, cut((folder / runtime.NUMPY).read_bytes()))
    describe_files(folder, snapshot=None)


def core_snapshot(folder):
    """A snapshot of Python alone; numpy and our package are loaded after it."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        shutil.copytree(ROOT / "book" / "_live", root / "book" / "_live")
        (root / "tools").mkdir()
        script = root / "tools" / "snapshot.mjs"
        shutil.copyfile(ROOT / "tools" / "snapshot.mjs", script)
        ours = "sys.path.insert(0, ${JSON.stringify(OURS)})\n"
        change(script, (f"{ours}from worked_examples import live\nlive.rehearse()\n", ""))
        places = [folder, root / "numpy", root / "code", root]
        for place in ("numpy/numpy", "code"):
            (root / place).mkdir(parents=True)
        done = runtime.run_snapshot(runtime.node(), places, [], script)
        if done.returncode:
            raise RuntimeError(f"snapshot.mjs: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        memory = (root / "snapshot.bin").read_bytes()
    put(folder / "snapshot.packed", gzip.compress(memory, 6, mtime=0))
    change(
        folder / "start.js",
        ('[...CORE, "python_stdlib.zip",', '[...CORE, "snapshot.packed", "python_stdlib.zip",'),
        ("await loadPyodide(settings);", "await loadPyodide({ ...settings, _loadSnapshot: "
         'files.get("snapshot.packed").then(unpack) });'),
    )  # fmt: skip
    describe_files(folder, snapshot=None)


def without_the_model(folder):
    """The snapshot without what only the chapter on a trained model needs."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        shutil.copytree(ROOT / "code", root / "code")
        package = root / "code" / "worked_examples"
        text = (package / "explorers.py").read_text("utf-8")
        text = re.sub(r"\nTRAINED = Explorer\(.*?\n\)\n", "\n", text, flags=re.DOTALL)
        text = text.replace("from worked_examples.views import sentences as sentences_views\n", "")
        text = text.replace("masking, minilm, scaling", "masking, scaling")
        (package / "explorers.py").write_text(text, "utf-8")
        change(
            package / "live.py",
            ("from worked_examples import eight_bits, own_sentence\n", ""),
            ("from worked_examples.sentences import Model\n", ""),
            ("OWN = own_sentence.OwnSentence()\n", ""),
            ('    OWN.result("", 0, 0)\n', ""),
            ("    if name == own_sentence.NAME:\n        return OWN.result(**values)\n", ""),
        )
        (folder / "snapshot.packed").unlink()
        (folder / "empty.zip").unlink()
        for path in folder.glob("*.wasm"):
            if path.name not in runtime.SUMS:
                path.unlink()
        described = runtime.add_snapshot(root, folder)
    describe_files(folder, snapshot=described)


def unpacked(folder):
    """The snapshot as it lies in memory: nothing to unpack, four times as much to send."""
    packed = folder / "snapshot.packed"
    put(packed, gzip.decompress(packed.read_bytes()))
    change(folder / "start.js", (".then(unpack)", ".then((response) => response.arrayBuffer())"))
    describe_files(folder)


def in_sequence(folder):
    """The snapshot; its parts are asked for when Pyodide's scripts have run, not at once."""
    change(
        folder / "start.js",
        ("  files.begin(filesFor(runtime, plain));\n", ""),
        ("plain ? null : partsOf(runtime.snapshot, files);", "!plain;"),
        ("runtime.snapshot, parts);", "runtime.snapshot, partsOf(runtime.snapshot, files));"),
    )
    describe_files(folder)


def compiled_anew(folder):
    """The snapshot; machine code is never taken from the browser's cache."""
    change(
        folder / "start.js",
        ("WebAssembly.compileStreaming(files.get(name))",
         "files.get(name).then((r) => r.arrayBuffer()).then((b) => WebAssembly.compile(b))"),
    )  # fmt: skip
    describe_files(folder)


class NothingKept(Quiet):
    """A host that forbids browsers to keep anything."""

    def end_headers(self):
        self.found = False  # so that the plain host does not allow it
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


OPTIONS = {
    "as shipped": as_shipped,
    "no snapshot": plain,
    "no snapshot, .pyc": compiled,
    "no snapshot, numpy trimmed": trimmed,
    "no snapshot, .pyc, numpy trimmed": compiled_and_trimmed,
    "snapshot of Python alone": core_snapshot,
    "snapshot without the trained model": without_the_model,
    "snapshot not packed": unpacked,
    "files in sequence": in_sequence,
    "code not cached": compiled_anew,
    "nothing cached": as_shipped,
}


# --- measuring -----------------------------------------------------------------------------------


def copy_site(folder, option):
    """Make a site of links, beside a bare page, whose runtime is an option's."""
    for path in SITE.iterdir():
        if path.name != "_runtime":
            (folder / path.name).symlink_to(path)
    source = next((SITE / "_runtime").iterdir())
    target = folder / "_runtime" / source.name
    target.mkdir(parents=True)
    for path in source.iterdir():
        (target / path.name).symlink_to(path)
    option(target)
    bare = BARE.replace("{runtime}", f"./_runtime/{source.name}/")
    (folder / "bare.html").write_text(bare, "utf-8")


class Counting(Quiet):
    """Count what the runtime's folder sends."""

    sent = []  # bytes, one entry a file: threads may append at once

    def do_GET(self):
        if "/_runtime/" in self.path:
            path = Path(self.translate_path(self.path))
            self.sent.append(path.stat().st_size if path.is_file() else 0)
        super().do_GET()


def counting(*parents):
    """Return a handler of its own, since each host counts for itself."""
    return type("Host", (Counting, *parents), {"sent": []})


def measure(names, rounds):
    """Return one row an option: how soon a page is live, cold and at the second chapter."""
    pages = [f"{page}#{found[0]}-title" for page, found in chapters().items()][:2]
    with ExitStack() as stack:
        hosts = {}
        for name in names:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            copy_site(folder, OPTIONS[name])
            handler = counting(*([NothingKept] if name == "nothing cached" else []))
            address = stack.enter_context(served(folder, handler))
            hosts[name] = [f"{address}/{page}" for page in pages], handler
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        copy_site(folder, as_shipped)
        bare = counting()
        address = stack.enter_context(served(folder, bare))
        hosts = {"bare page": ([f"{address}/bare.html"] * 2, bare), **hosts}
        times = {name: ([], []) for name in hosts}
        sent = {}
        for _ in range(rounds):
            for name, (addresses, handler) in hosts.items():
                with new_profile() as context:
                    handler.sent.clear()
                    times[name][0].append(time_to_live(context, addresses[0]))
                    sent[name] = sum(handler.sent)
                    times[name][1].append(time_to_live(context, addresses[1]))
    return [row(name, times[name], times["bare page"], sent[name]) for name in hosts]


def row(name, times, bare, sent):
    """Return what is said of one option; ratios are those of the same round."""
    said = {"option": name, "MB sent": sent / 1e6}
    for kind, own, other in zip(("cold", "second"), times, (bare[0], bare[0]), strict=True):
        ratios = [a / b for a, b in zip(own, other, strict=True)]
        said |= {f"{kind} {key}": value for key, value in spread(own, "ms").items()}
        said[f"{kind} times bare"] = statistics.median(ratios)
    return said


def main():
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.options", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(OPTIONS))
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there as well")
    options = parser.parse_args()
    if unknown := set(options.names) - set(OPTIONS):
        parser.error(f"no such option: {', '.join(sorted(unknown))}; there are {list(OPTIONS)}")
    names = ["as shipped", *options.names] if options.names else list(OPTIONS)
    before = load()
    rows = measure(list(dict.fromkeys(names)), options.rounds)
    after = load()
    print(", ".join(f"{name} {value}" for name, value in describe().items()))
    print(f"load before {before:.2f}, after {after:.2f}")
    print_tables({"from opening a page to live": rows})
    for name in names:
        print(f"{name}: {OPTIONS[name].__doc__}")
    if warned := warning(before, after):
        print(warned)
    if options.json:
        record = {"machine": describe(), "load before": before, "load after": after, "rows": rows}
        options.json.write_text(json.dumps(record, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
