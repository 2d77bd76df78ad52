"""A chapter opened alone in Colab, for real: an empty folder, a chapter, and the network's part.

Colab is stood in for by an environment that holds what Colab holds (numpy, torch, ... of this
machine, ipywidgets 7.7.1, a `google.colab`) and not the book's package; the published repository
by a bare clone of this working tree, reached by its file:// address.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import notebooks as tool  # noqa: E402
import repository  # noqa: E402

CHAPTERS = [path.relative_to(ROOT).as_posix() for path in tool.notebooks(ROOT)]
# What Colab has in another version than requirements.txt, and that version.
COLAB_HOLDS = ["ipywidgets==7.7.1", "ipython-genutils==0.2.0"]
WIDGET = "application/vnd.jupyter.widget-view+json"

# Put at the chapter's end: moves every control as a reader would, to each of its ends.
MOVE_CONTROLS = """\
import ipywidgets as _w
_all = list(_w.Widget.widgets.values())
def _values(widget):
    if isinstance(widget, (_w.IntSlider, _w.FloatSlider)):
        return [widget.min, (widget.min + widget.max) // 2, widget.max]
    if isinstance(widget, (_w.SelectionSlider, _w.Dropdown, _w.ToggleButtons, _w.RadioButtons)):
        return [value for _, value in widget._options_full]
    return [True, False] if isinstance(widget, _w.Checkbox) else []
def _texts():
    return [widget.value for widget in _all if isinstance(widget, _w.HTML)]
_controls = [widget for widget in _all if _values(widget)]
_starts = [widget.value for widget in _controls]
_dead = set(_controls)
for _end in (None, 0, 1, -1):  # where the others stand: at their start, or all at one value
    for _control in _controls:
        for _other, _start in zip(_controls, _starts):
            _other.value = _start if _end is None else _values(_other)[_end]
        for _control.value in _values(_control):
            _seen = {*_texts()} if _control.value == _values(_control)[0] else _seen
            if not _seen.issuperset(_texts()):
                _dead.discard(_control)
            assert not [text for text in _texts() if 'role="alert"' in text], _control.description
assert not _dead, f"nothing changes when these move: {[control.description for control in _dead]}"
print(f"moved {len(_controls)} controls")"""


# --- the stand-ins ---------------------------------------------------------------------------


def run(command, **options):
    """Run a command; what it printed, or an error that shows it."""
    ran = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    assert ran.returncode == 0, f"{' '.join(map(str, command))}\n{ran.stdout}"
    return ran.stdout


def environment(**more):
    """Give this process's environment less what would let the book's package be found."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "WORKED_EXAMPLES", "VIRTUAL_ENV", "MPLBACKEND", "GIT_"))
    }
    return kept | more


def git(*arguments, cwd):
    """Run git as somebody else: no setting, signature or hook of this machine's user."""
    names = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        names |= {f"GIT_{role}_NAME": "Reader", f"GIT_{role}_EMAIL": "reader@example.org"}
    return run(["git", *arguments], cwd=cwd, env=environment(**names))


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """Publish this working tree as a bare repository on disk; give the tree that was published.

    The tree holds what git would commit here now, with the address set as a maintainer sets it.
    """
    home = tmp_path_factory.mktemp("published")
    tree, bare = home / "tree", home / "book.git"
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    run([sys.executable, tree / "tools" / "repository.py", "set", bare.as_uri()])
    git("init", "--quiet", "--initial-branch=main", cwd=tree)
    git("add", "--all", cwd=tree)
    git("commit", "--quiet", "--message=The book", cwd=tree)
    git("clone", "--quiet", "--bare", tree, bare, cwd=home)
    return tree


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """Give the folders that hold what Colab holds, those that count first in front."""
    home = tmp_path_factory.mktemp("packages")
    colab, rest = home / "colab", home / "rest"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", colab]
    ran = subprocess.run([*command, *COLAB_HOLDS], capture_output=True, text=True)
    if ran.returncode:
        pytest.fail(
            f"The package index gave no {' or '.join(COLAB_HOLDS)}, which Colab holds, so nothing "
            f"was tested about Colab: this test needs the network.\n{ran.stderr}"
        )
    (colab / "google" / "colab").mkdir(parents=True)
    (colab / "google" / "colab" / "__init__.py").write_text('"""A stand-in."""\n')
    rest.mkdir()
    hidden = ("worked_examples", "__editable__", "__pycache__", "ipywidgets", "ipython_genutils")
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(site).iterdir():
            if not entry.name.startswith(hidden) and entry.suffix not in (".pth", ".egg-link"):
                (rest / entry.name).symlink_to(entry)
    return colab, rest


@pytest.fixture
def colab(tmp_path, packages):
    """Start a fresh runtime: an environment of its own, and an empty folder to work in."""
    (tmp_path / "content").mkdir()
    runtime = Runtime(tmp_path)
    run([sys.executable, "-m", "venv", "--without-pip", runtime.home], env=environment())
    lines = "".join(f"{folder}\n" for folder in packages)
    (runtime.site / "what_colab_holds.pth").write_text(lines)
    # As in Colab, its own package is loaded before the first cell is run.
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("import google.colab\n")
    spec = tmp_path / "kernels" / "colab"
    spec.mkdir(parents=True)
    argv = [str(runtime.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    described = {"argv": argv, "display_name": "Colab", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(described))
    return runtime


class Runtime:
    """A machine of Colab's, just given to a reader."""

    def __init__(self, root):
        self.root, self.home, self.content = root, root / "runtime", root / "content"
        self.python = self.home / "bin" / "python"
        self.environment = environment(IPYTHONDIR=str(root / "ipython"))

    @property
    def site(self):
        return next((self.home / "lib").glob("python*/site-packages"))

    def packages(self):
        """Give {name: version} of all that pip finds."""
        command = [self.python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"]
        listed = subprocess.run(
            list(map(str, command)), env=self.environment, capture_output=True, check=True
        ).stdout
        return {
            package["name"].lower().replace("_", "-"): package["version"]
            for package in json.loads(listed)
        }

    def ask(self, code, folder=None):
        """Run code in a fresh interpreter; give its exit status and all that it said."""
        ran = subprocess.run(
            [str(self.python), "-c", code],
            cwd=folder or self.content,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return ran.returncode, ran.stdout

    def execute(self, notebook):
        """Run all of a notebook in a kernel of this runtime, in the empty folder."""
        specs = KernelSpecManager(kernel_dirs=[str(self.root / "kernels")])
        specs.ensure_native_kernel = False
        kernel = AsyncKernelManager(kernel_spec_manager=specs, kernel_name="colab")
        resources = {"metadata": {"path": str(self.content)}}
        client = NotebookClient(notebook, km=kernel, resources=resources, timeout=300)
        client.execute(env=self.environment, cleanup_kc=True)  # ends the kernel, too


# --- a chapter, from the first cell to the last ----------------------------------------------


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: Path(chapter).stem)
def test_a_chapter_alone_runs_and_installs_nothing_but_the_book(colab, published, chapter):
    shutil.copy(published / chapter, colab.content)
    status, said = colab.ask("import worked_examples")
    assert status, "worked_examples is there beforehand, so nothing would be tested"
    assert "No module named 'worked_examples'" in said
    before, files = colab.packages(), set(colab.site.iterdir())
    assert before["ipywidgets"] == "7.7.1"

    notebook = nbformat.read(colab.content / Path(chapter).name, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(MOVE_CONTROLS))
    colab.execute(notebook)  # raises, with the cell's traceback, where a cell does

    after, new = colab.packages(), set(colab.site.iterdir()) - files
    assert set(after) - set(before) == {"worked-examples"}
    assert {name: after[name] for name in before} == before
    assert {path.name.split("-")[0] for path in new} == {"worked_examples"}
    assert os.listdir(colab.content) == [Path(chapter).name]

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(output.get("text", "") for output in outputs)
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert "he book printed" not in printed, "a number of the prose comes out differently there"
    explorers = [output.data for output in outputs if WIDGET in output.get("data", {})]
    assert explorers, "no explorer was shown as a widget"
    state = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    for data in explorers:
        assert "text/html" not in data, "Colab may show the HTML, which does nothing there"
        assert data[WIDGET]["model_id"] in state
    assert "moved 0 controls" not in printed
    assert "moved " in printed


# --- the first cell where something is missing -----------------------------------------------


def last_line(colab, cell, **more):
    """Run a cell that is to fail in this runtime; return the last line that it prints."""
    colab.environment.update(more)
    status, said = colab.ask(cell)
    assert status
    return said.splitlines()[-1]


def filled_in(cell, book):
    """Return the cell as it is with something written into its field."""
    assert 'BOOK = ""' in cell
    return cell.replace('BOOK = ""', f"BOOK = {book!r}")


UNSET = repository.first_cell(repository.Repository())
MISSING = "ImportError: The book's code is missing, and {}, then run this cell again."


def test_without_an_address_the_cell_says_so(colab):
    assert last_line(colab, UNSET) == MISSING.format(
        "the address of its repository is not known: write it into BOOK"
    )


def test_without_a_network_the_cell_says_so(colab):
    address = "https://127.0.0.1:9/owner/name"
    cell = repository.first_cell(repository.Repository(address))
    assert last_line(colab, cell) == MISSING.format(
        f"{address}@main does not answer: check the network (Kaggle: Settings)"
    )


@pytest.mark.parametrize("address", ["file:///no/such/book.git", "owner/name", "not an address"])
def test_where_there_is_no_repository_the_cell_says_so(colab, address):
    for place, cell in (
        (address, filled_in(UNSET, address)),
        (f"{address}@main", repository.first_cell(repository.Repository(address))),
    ):
        assert last_line(colab, cell) == MISSING.format(
            f"{place} is no repository to be read: write one's address into BOOK"
        )


def test_where_the_branch_has_gone_the_cell_says_so(colab, published):
    address = (published.parent / "book.git").as_uri()
    cell = repository.first_cell(repository.Repository(address, "gone"))
    assert last_line(colab, cell) == MISSING.format(
        f"{address}@gone names a branch that has gone: write the address alone into BOOK"
    )


def test_where_git_is_missing_the_cell_says_so(colab, published):
    cell = repository.first_cell(repository.Repository((published.parent / "book.git").as_uri()))
    assert last_line(colab, cell, PATH="/nowhere") == MISSING.format(
        "pip has no git to fetch it with: install git"
    )


def test_any_other_fault_of_pips_is_named(colab, published):
    other = published.parent / "other"
    other.mkdir()
    (other / "pyproject.toml").write_text('[project]\nname="x"\nversion="1"\nrequires-python=">=4"')
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=x"]):
        git(*words, cwd=other)
    said = last_line(colab, filled_in(UNSET, other.as_uri()))
    assert re.fullmatch(
        r"ImportError: [^\n]*, and pip fails \(.*not in '>=4'.*\): mend that, then .*", said
    )


# --- the first cell in a fork ----------------------------------------------------------------

# A stand-in for pip: prints what it was to install.
SHOW_PIP = """\
import subprocess
def run(command, **options):
    print(command[-1])
    return subprocess.CompletedProcess(command, 0, "", "")
subprocess.run = run
"""
UPSTREAM = repository.first_cell(repository.Repository("https://github.com/first/book"))


class Sessions(BaseHTTPRequestHandler):
    """Answers as the notebook server of a runtime of Colab's does."""

    def do_GET(self):
        place = quote(f"https://github.com/{self.server.place}", safe="")
        answer = json.dumps([{"name": "x.ipynb", "path": f"fileId={place}", "type": "notebook"}])
        self.send_response(200 if self.path == "/api/sessions" else 404)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def opened_from(colab):
    """Let the runtime say from which place on GitHub it took its chapter."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sessions)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def opened_from(place):
        server.place = place
        colab.environment |= {
            "COLAB_JUPYTER_IP": "127.0.0.1",
            "KMP_TARGET_PORT": str(server.server_port),
        }

    yield opened_from
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("cell", [UNSET, UPSTREAM], ids=["unset", "of the first repository"])
@pytest.mark.parametrize("branch", ["main", "release/2"])
def test_in_a_fork_the_cell_takes_the_forks_code(colab, opened_from, cell, branch):
    opened_from(f"someone/fork.js/blob/{branch}/book/03_scaling.ipynb")
    status, said = colab.ask(SHOW_PIP + cell)
    assert (status, said.strip()) == (0, f"git+https://github.com/someone/fork.js@{branch}")


def test_what_was_written_into_the_field_comes_first(colab, opened_from):
    opened_from("someone/fork/blob/main/book/03_scaling.ipynb")
    cell = filled_in(UPSTREAM, " https://github.com/another/fork ")
    assert colab.ask(SHOW_PIP + cell) == (0, "git+https://github.com/another/fork\n")


def test_a_chapter_saved_in_drive_takes_the_committed_address(colab, opened_from):
    opened_from("")
    assert colab.ask(SHOW_PIP + UPSTREAM) == (0, "git+https://github.com/first/book@main\n")


def test_where_colabs_server_does_not_answer_the_committed_address_serves(colab):
    colab.environment |= {"COLAB_JUPYTER_IP": "127.0.0.1", "KMP_TARGET_PORT": "9"}
    assert colab.ask(SHOW_PIP + UPSTREAM) == (0, "git+https://github.com/first/book@main\n")


NO_PIP = """\
import subprocess
def run(*_, **__):
    raise AssertionError("the cell called pip")
subprocess.run = run
"""
ADDRESSES = ["", "file:///no/such/book.git"]


@pytest.mark.parametrize("address", ADDRESSES, ids=["unset", "set"])
def test_where_the_package_imports_the_cell_does_nothing(colab, address):
    (colab.site / "worked_examples.py").write_text("")
    cell = repository.first_cell(repository.Repository(address))
    check = "\nimport sys; before = list(sys.path)\n{}\nassert sys.path == before"
    assert colab.ask(NO_PIP + check.format(cell)) == (0, "")


@pytest.mark.parametrize("address", ADDRESSES, ids=["unset", "set"])
@pytest.mark.parametrize("place", ["book", "book/deep/er", "."])
def test_inside_a_copy_of_the_book_the_cell_takes_its_code(colab, address, place):
    home = colab.content / "copy" / "code" / "worked_examples"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("")
    folder = colab.content / "copy" / place
    folder.mkdir(parents=True, exist_ok=True)
    cell = repository.first_cell(repository.Repository(address))
    check = f"\nimport worked_examples\nassert worked_examples.__file__.startswith({str(home)!r})"
    assert colab.ask(NO_PIP + cell + check, folder) == (0, "")
