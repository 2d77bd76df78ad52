"""Make JupyterLite, in which every chapter opens in the reader's browser, beside the book.

    python tools/lite.py   what `make book` does before the pages: compile, build, in _build/lite

Jupyter's own files come from the packages jupyterlite-core and jupyterlite-pyodide-kernel. Python
is the explorers' Pyodide, from the same files; its packages are those of pyodide-lock.json, with
their Python compiled beforehand. What belongs to one build of the book (the chapters, our package,
what torch's cells gave) is added when Sphinx has finished, by `assemble`.
"""

import argparse
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from tools import notebooks, runtime

ROOT = Path(__file__).resolve().parents[1]
NAME = "Self-Attention, Worked"
# Where files lie below lite/.
START = "notebooks/index.html"
WORKER = "worker.js"
KERNEL = "@jupyterlite/pyodide-kernel-extension"
WIDGETS = "@jupyter-widgets/jupyterlab-manager"
# Pyodide looks for packages from its own folder, _runtime/KEY/.
FROM_RUNTIME = "../../lite/"
# Of this machine's packages, which the browser gets as they are.
PURE = {"comm": [], "ipywidgets": ["comm", "ipython", "traitlets"]}
PLUMBING = ("ipykernel", "piplite", "pyodide_kernel")
NEEDED = ("jupyterlite-core", "jupyterlite-pyodide-kernel", "jupyterlab-widgets", *PURE)
# What chapters import, and what the kernel would look for elsewhere, loaded while Python starts.
LOADED = ["numpy", "pandas", "matplotlib", "ipython", "jedi", "micropip", "ssl", "sqlite3"]
LOADED += [*PLUMBING, *PURE, "worked-examples"]
DATE = "2000-01-01T00:00:00Z"

say = print


# --- before the pages ----------------------------------------------------------------------------


def key(root):
    """Return a name for what is made before the pages, or None where a package is missing."""
    digest = hashlib.sha256(json.dumps([runtime.PINNED, runtime.LOCK]).encode())
    for path in (root / "tools" / "lite.py", root / "tools" / "lite.mjs"):
        digest.update(path.read_bytes())
    try:
        digest.update(json.dumps([metadata.version(name) for name in NEEDED]).encode())
    except metadata.PackageNotFoundError:
        return None
    digest.update(str(runtime.node() is not None).encode())
    return digest.hexdigest()[:16]


def made(root):
    """Return the folder that is ready for `assemble`, or None."""
    folder = root / "_build" / "lite" / (key(root) or "none")
    ready = (folder / "lock.json").is_file() and runtime.laid_out(root)
    return folder if ready else None


def make(root, core):
    """Compile the packages, and build Jupyter's own part.

    Parameters
    ----------
    root : Path
    core : Path
        The folder with all that is pinned, as `runtime.obtain` fills it.
    """
    ready = made(root)
    if ready:
        return ready
    started = time.monotonic()
    whole = root / "_build" / "lite"
    shutil.rmtree(whole, ignore_errors=True)
    folder = whole / "unfinished"
    plain, wheels = whole / "plain", folder / "python"
    for place in (plain, wheels):
        place.mkdir(parents=True)
    extensions = labextensions()
    lock = collect(core, extensions[0], plain)
    (plain / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")
    compile_packages(root, plain, wheels)
    for entry in lock["packages"].values():
        entry["sha256"] = _sum((wheels / entry["file_name"]).read_bytes())
    build_app(extensions, whole, folder / "app")
    shutil.rmtree(plain)
    (folder / "lock.json").write_text(json.dumps(lock), "utf-8")
    say(f"  JupyterLite, made in {time.monotonic() - started:.0f} s", flush=True)
    return folder.rename(whole / key(root))


def labextensions():
    """Return the folders of the two extensions: the kernel's and the widgets'."""
    return [Path(sys.prefix, "share/jupyter/labextensions", name) for name in (KERNEL, WIDGETS)]


def collect(core, kernel, folder):
    """Gather every package in one folder; return Pyodide's list of them."""
    lock = json.loads(json.dumps(runtime.LOCK))
    for name in runtime.PACKAGES:
        shutil.copyfile(core / name, folder / name)
    for name in PLUMBING:
        wheel = next((kernel / "static" / "pypi").glob(f"{name}-*.whl"))
        shutil.copyfile(wheel, folder / wheel.name)
        lock["packages"][_normal(name)] = entry(name, wheel.name, ["comm"])
    for name, depends in PURE.items():
        file_name = f"{name}-{metadata.version(name)}-py3-none-any.whl"
        (folder / file_name).write_bytes(installed_wheel(name))
        lock["packages"][name] = entry(name, file_name, depends)
    lock["packages"]["piplite"]["depends"] = ["micropip"]
    lock["packages"]["pyodide-kernel"]["depends"] = ["comm", "ipython", "ipykernel"]
    lock["packages"]["ipykernel"]["depends"] = ["comm"]
    return lock


def entry(name, file_name, depends, imports=None, data=b""):
    """Return a package's entry in Pyodide's list."""
    return {
        "name": name, "version": file_name.split("-")[1], "file_name": file_name,
        "install_dir": "site", "sha256": _sum(data), "package_type": "package",
        "imports": imports or [name], "depends": depends, "unvendored_tests": False,
    }  # fmt: skip


def _normal(name):
    return name.replace("_", "-")


def _sum(data):
    return hashlib.sha256(data).hexdigest()


def installed_wheel(name):
    """Return a wheel made of what this environment has installed, less its data files."""
    distribution = metadata.distribution(name)
    files = {}
    for file in sorted(distribution.files, key=str):
        own = file.parts[0] == name or file.parts[0].endswith(".dist-info")
        if own and file.suffix != ".pyc" and "tests" not in file.parts:
            files[file.as_posix()] = Path(distribution.locate_file(file)).read_bytes()
    return runtime.archive(files)


def compile_packages(root, plain, wheels):
    """Put each package, and the standard library, into a folder with its Python compiled."""
    program, core = runtime.node(), runtime.laid_out(root)
    if program is None:
        say("No Node.js: chapters in JupyterLite will start more slowly.", flush=True)
        for path in [*plain.iterdir(), core / "python_stdlib.zip"]:
            shutil.copyfile(path, wheels / path.name)
        return
    command = [program, Path(__file__).with_name("lite.mjs"), core, plain, wheels]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tools/lite.mjs: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    for path in plain.glob("*.zip"):
        shutil.copyfile(path, wheels / path.name)


def build_app(extensions, scratch, out):
    """Let jupyterlite-core lay out Jupyter's own files."""
    settings = {
        "apps": ["lab", "notebooks", "tree"],
        "federated_extensions": [str(path) for path in extensions],
        "ignore_sys_prefix": ["federated_extensions"],
        "no_libarchive": True,
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
    }
    place = scratch / "settings"
    place.mkdir()
    text = json.dumps({"LiteBuildConfig": settings})
    (place / "jupyter_lite_config.json").write_text(text, "utf-8")
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--output-dir", out]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place)
    if done.returncode:
        raise RuntimeError(f"jupyter lite build: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    shutil.rmtree(place)


# --- after the pages -----------------------------------------------------------------------------


def assemble(root, folder, results, target):
    """Lay out all that the site serves as lite/.

    Parameters
    ----------
    root : Path
        The book, whose runtime is laid out and will be served beside `target`.
    folder : Path
        What `make` has made.
    results : Path
        jupyter-cache's folder with the chapters' results.
    target : Path
        Replaced as a whole.
    """
    new = target.with_name(f".{target.name}")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(folder / "app", new, copy_function=_link)
    python = f"python-{folder.name}"
    shutil.copytree(folder / "python", new / python, copy_function=_link)
    lock = add_package(root, folder, results, new / python)
    settle(root, new, python, lock)
    for path in (root / "book" / "_lite").glob("*.*"):
        if path.suffix in (".html", ".css", ".js") and path.name != WORKER:
            shutil.copyfile(path, new / path.name)
    add_contents(root, new)
    for page in new.glob("*.html"):
        page.write_text(_finished(page, "../"), "utf-8")
    for page in new.glob("*/index.html"):
        page.write_text(_finished(page, "../../"), "utf-8")
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)


def _link(source, target):
    """Link the large files that never change where the disk allows it."""
    if Path(source).suffix in (".html", ".json"):
        shutil.copyfile(source, target)
        return
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def add_package(root, folder, results, python):
    """Add our package and the list of all packages; return the list's name."""
    files = {}
    for folder_of, package in ((root / "code", "worked_examples"), (root / "book/_lite", "torch")):
        for path in sorted((folder_of / package).rglob("*.*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[path.relative_to(folder_of).as_posix()] = path.read_bytes()
    files["torch/recorded.json.gz"] = gzip.compress(recorded(root, results), 9, mtime=0)
    # A build tag from the content: browsers keep files by name.
    tag = f"0{_sum(json.dumps({n: _sum(d) for n, d in files.items()}).encode())[:12]}"
    info = "worked_examples-0.1.0.dist-info"
    files[f"{info}/METADATA"] = b"Metadata-Version: 2.1\nName: worked-examples\nVersion: 0.1.0\n"
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in sorted(files)).encode()
    data, name = runtime.archive(files), f"worked_examples-0.1.0-{tag}-py3-none-any.whl"
    (python / name).write_bytes(data)
    lock = json.loads((folder / "lock.json").read_text("utf-8"))
    ours = entry("worked-examples", name, ["numpy"], ["worked_examples", "torch"], data)
    lock["packages"]["worked-examples"] = ours
    for package in lock["packages"].values():
        package["file_name"] = f"{FROM_RUNTIME}{python.name}/{package['file_name']}"
    text = json.dumps(lock)
    name = f"pyodide-lock-{_sum(text.encode())[:12]}.json"
    (python / name).write_text(text, "utf-8")
    return name


def recorded(root, results):
    """Return, as JSON, what the published cells of every chapter gave.

    Parameters
    ----------
    root : Path
    results : Path
        jupyter-cache's folder, in which the build has put them.
    """
    import nbformat
    from jupyter_cache import get_cache

    cache, chapters = get_cache(str(results)), {}
    for path in notebooks.notebooks(root):
        notebook = nbformat.read(path, 4)
        with suppress(KeyError):  # not executed, as in a book whose build stopped
            _, notebook = cache.merge_match_into_notebook(notebook)
        chapters[path.stem] = [
            {"source": cell["source"], "outputs": list(_shown(cell["outputs"]))}
            for cell in notebook["cells"]
            if cell["cell_type"] == "code"
        ]
    return json.dumps(chapters, sort_keys=True).encode()


# Of several forms of a result, those that a notebook shows; the rest would only weigh.
FORMS = ("image/svg+xml", "text/html", "text/latex", "text/markdown", "text/plain")


def _shown(outputs):
    for output in outputs:
        if output["output_type"] == "stream":
            yield {"text/plain": "".join(output["text"])}
        elif output["output_type"] in ("display_data", "execute_result"):
            data = output["data"]
            if "application/vnd.jupyter.widget-view+json" in data:
                continue
            form = next((form for form in FORMS if form in data), None)
            if form:
                yield {form: "".join(data[form])}


def settle(root, new, python, lock):
    """Write the settings of this build."""
    path = new / "jupyter-lite.json"
    whole = json.loads(path.read_text("utf-8"))
    own = json.loads((root / "book" / "_lite" / "settings.json").read_text("utf-8"))
    settings = whole["jupyter-config-data"]
    plugins = settings.setdefault("litePluginSettings", {})
    settings |= own
    text = (root / "book" / "_lite" / WORKER).read_bytes()
    worker = f"worker-{_sum(text)[:12]}.js"
    (new / python / worker).write_bytes(text)
    settings["litePluginSettings"] = plugins | {
        f"{KERNEL}:kernel": {
            **plugins.get(f"{KERNEL}:kernel", {}),
            "pyodideUrl": f"./{python}/{worker}",
            "disablePyPIFallback": True,
            "loadPyodideOptions": {
                "runtimeURL": f"../_runtime/{runtime.laid_out(root).name}/",
                "sizes": sizes(runtime.laid_out(root), new / python, lock),
                "lockFileURL": f"{python}/{lock}",
                "stdLibURL": f"{python}/python_stdlib.zip",
                "packages": LOADED,
                # The trained model is too large to serve: its chapter takes what the package has.
                "env": {"WORKED_EXAMPLES_OFFLINE": "1"},
            },
        }
    }
    path.write_text(json.dumps(whole, indent=1), "utf-8")


def sizes(core, python, lock):
    """Return {file: bytes} of all that Python fetches while it starts."""
    packages = json.loads((python / lock).read_text("utf-8"))["packages"]
    wanted, left = set(), [_normal(name) for name in LOADED]
    while left:
        name = left.pop()
        if name not in wanted:
            wanted.add(name)
            left += map(_normal, packages[name]["depends"])
    files = [python / packages[name]["file_name"].rpartition("/")[2] for name in wanted]
    files += [core / "pyodide.asm.wasm", python / "python_stdlib.zip", python / lock]
    return {path.name: path.stat().st_size for path in sorted(files)}


def add_contents(root, new):
    """Add the chapters as they are published, and the lists in which Jupyter finds them."""
    items = []
    for path in notebooks.notebooks(root):
        place = new / "files" / "book" / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        size = path.stat().st_size
        items.append(_described(f"book/{path.name}", "notebook", size=size))
    book = _described("book", "directory")
    for place, item in (("", _described("", "directory")), ("book", book)):
        listing = new / "api" / "contents" / place / "all.json"
        listing.parent.mkdir(parents=True, exist_ok=True)
        item = item | {"content": items if place else [book], "format": "json"}
        listing.write_text(json.dumps(item), "utf-8")


def _described(path, kind, **more):
    item = {"name": path.rpartition("/")[2], "path": path, "type": kind, "writable": True}
    item |= {"created": DATE, "last_modified": DATE, "content": None, "format": None}
    return item | {"mimetype": None} | more


def _finished(page, up):
    """Return a page of Jupyter's with the book's name, its icon, and a policy it can live with."""
    from sphinx_ext import policy

    here = up.removeprefix("../")
    icon = f'<link rel="icon" href="{up}_static/favicon.svg" />\n  '
    text = page.read_text("utf-8").replace("</head>", f"{icon}</head>", 1)
    if here:
        # Before Jupyter's own scripts, which start Python.
        progress = f'<link rel="stylesheet" href="{here}progress.css" />\n    '
        progress += f'<script src="{here}progress.js"></script>\n    '
        text = text.replace("<title>", f"{progress}<title>", 1)
    text = re.sub("<title>Jupyter.*?</title>", f"<title>{NAME}</title>", text)
    return policy.guard_jupyter(text)


# --- command line --------------------------------------------------------------------------------


def main(arguments=None):
    """Make what can be made before the pages; say in one line if there will be none."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args(arguments)
    core = runtime.cache_folder()
    reason = None
    if key(ROOT) is None or not all(path.is_dir() for path in labextensions()):
        reason = f"it needs {', '.join(NEEDED)}"
    elif runtime.laid_out(ROOT) is None or runtime.missing(core, runtime.PACKAGES):
        reason = "its packages are not there"
    if reason:
        say(f"Chapters will not open in the browser: {reason}.", flush=True)
        shutil.rmtree(ROOT / "_build" / "lite", ignore_errors=True)
        return 0
    make(ROOT, core)
    return 0


if __name__ == "__main__":
    sys.exit(main())
