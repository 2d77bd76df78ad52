"""Every notebook of the book, found by glob: its file, a whole run, and its exercises."""

import ast
import doctest
import json
import os
import sys
from pathlib import Path

import nbformat
import pytest
from chapter_runner import code_cells, exercises, read_cells, run_cells
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import notebooks as tool  # noqa: E402
import repository  # noqa: E402

CHAPTERS = tool.notebooks(ROOT)
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)

MOST_LINES = 15
# The set-up cell is folded everywhere, and has to say what to do when something is missing.
MOST_SET_UP_LINES = 37


def test_there_are_chapters():
    assert CHAPTERS, "no notebook in book/: the tests below would test nothing"


# --- the file --------------------------------------------------------------------------------


@each_chapter
def test_is_a_valid_notebook_of_format_4_5(path):
    notebook = json.loads(path.read_text("utf-8"))
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)


@each_chapter
def test_holds_no_outputs_counts_or_widget_state(path):
    assert tool.faults(path) == [], "python tools/notebooks.py strip"


@each_chapter
def test_opens_with_a_heading_and_then_the_set_up_cell(path):
    assert read_cells(path)[0][1].startswith("# ")
    first = next(
        cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"
    )
    assert "".join(first["source"]) == repository.first_cell(repository.read(ROOT))
    assert first["metadata"] == repository.CELL_METADATA


@each_chapter
def test_describes_itself_to_search_engines(path):
    metadata = json.loads(path.read_text("utf-8"))["metadata"]
    description = metadata.get("description", "")
    assert 50 <= len(description) <= 160, "the notebook's metadata: description"


@each_chapter
def test_has_short_cells(path):
    long = {
        source.splitlines()[0]: lines
        for kind, source, tags in read_cells(path)
        if kind == "code" and "hide-input" not in tags
        if (lines := sum(bool(line.strip()) for line in source.splitlines())) > MOST_LINES
    }
    assert not long, f"cells of more than {MOST_LINES} lines: longer code belongs in a module"


def test_the_set_up_cell_is_short():
    for url in ("", "https://github.com/owner/name"):
        cell = repository.first_cell(repository.Repository(url))
        assert sum(bool(line) for line in cell.splitlines()) <= MOST_SET_UP_LINES
        assert max(len(line) for line in cell.splitlines()) <= 100
        ast.parse(cell)


# --- a whole run -----------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _fonts():
    """Let matplotlib build its list of fonts, which it announces on stderr, before any chapter."""
    import matplotlib.font_manager  # noqa: F401


@each_chapter
def test_runs_from_top_to_bottom(path, tmp_path):
    """As the build runs it: a false number in the prose is an error here."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}})
    environment = os.environ | {"WORKED_EXAMPLES_STRICT": "1", "IPYTHONDIR": str(tmp_path)}
    client.execute(env=environment)  # raises, with the cell's traceback, where a cell does
    said = [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == "stderr"
    ]
    assert said == []


# --- exercises -------------------------------------------------------------------------------


@each_chapter
def test_exercises_accept_their_solution_and_not_their_stub(path):
    found = exercises(path)
    assert found, "a chapter ends with exercises: a cell that begins ### Exercise: TITLE"
    sources, asked = [], []
    todo = {number: (heading, call, answer) for number, heading, call, answer in found}
    for number, source in enumerate(code_cells(path)):
        sources.append(source)
        if number in todo:
            heading, call, answer = todo[number]
            asked.append((heading, len(sources) - 1, len(sources) + 1))
            sources += [answer, call, source]  # the stub again, so that what follows is as it was
    results = run_cells(sources, path.parent, strict=True)
    assert [result["error"] for result in results if result["error"]] == []
    for heading, stub, answer in asked:
        verdicts = results[stub]["verdict"], results[answer]["verdict"]
        assert all(verdicts), f"{heading}: the check returns no verdict"
        assert verdicts[0]["passed"] is False, f"{heading}: the empty stub passes"
        assert verdicts[0]["message"], f"{heading}: the stub gets no hint"
        assert verdicts[1]["passed"] is True, f"{heading}: {verdicts[1]['message']}"


# --- the tool --------------------------------------------------------------------------------


def dirty():
    """Give a notebook as an editor leaves it after a run, and its file's text."""
    cell = {
        "cell_type": "code",
        "id": "kept",
        "execution_count": 7,
        "metadata": {"tags": ["hide-input"], "scrolled": True, "mystnb": {"image": {"alt": "x"}}},
        "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}],
        "source": "x = 'ü'\nprint(x)",
    }
    text = {"cell_type": "markdown", "id": "kept", "metadata": {}, "source": ["# Title"]}
    metadata = {
        "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}},
        "kernelspec": {
            "name": "python3",
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
        },
        "language_info": {"name": "python", "version": "3.12.1"},
        "description": "kept",
    }
    return {"metadata": metadata, "nbformat": 4, "nbformat_minor": 5, "cells": [cell, text]}


def test_strip_takes_away_what_a_run_leaves_and_nothing_else():
    clean = tool.strip(dirty())
    code, text = clean["cells"]
    assert (code["outputs"], code["execution_count"]) == ([], None)
    assert code["metadata"] == {"tags": ["hide-input"], "mystnb": {"image": {"alt": "x"}}}
    assert code["source"] == ["x = 'ü'\n", "print(x)"]
    assert code["id"] == "kept"
    assert text["id"] != "kept", "an id that came twice is replaced"
    assert set(clean["metadata"]) == {"kernelspec", "language_info", "description"}
    assert tool.strip(clean) == clean
    nbformat.validate(clean)


def test_strip_writes_what_jupyter_would_save(tmp_path):
    path = tmp_path / "chapter.ipynb"
    clean = tool.strip(dirty())
    nbformat.write(nbformat.from_dict(clean), path)
    assert path.read_text("utf-8") == tool.dumps(clean)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda n: n["cells"][0].update(outputs=[{}]), "cell 0: outputs"),
        (lambda n: n["cells"][0].update(execution_count=1), "cell 0: an execution count"),
        (lambda n: n["cells"][1]["metadata"].update(scrolled=True), "cell 1: metadata"),
        (lambda n: n["metadata"].update(widgets={}), "metadata that an editor or a run left"),
        (lambda n: n["metadata"].update(language_info={"version": "3"}), "kernel's name"),
        (lambda n: n["cells"][0].update(id="no good"), "kernel's name, cell ids"),
    ],
)
def test_check_names_what_is_wrong_and_strip_mends_it(tmp_path, capsys, change, fault):
    path = tmp_path / "chapter.ipynb"
    notebook = tool.strip(dirty())
    path.write_text(tool.dumps(notebook), "utf-8")
    assert tool.main(["check", str(path)]) == 0
    change(notebook)
    path.write_text(tool.dumps(notebook), "utf-8")
    assert tool.main(["check", str(path)]) == 1
    assert f"{path}: {fault}" in capsys.readouterr().err
    assert tool.main(["strip", str(path)]) == 0
    assert tool.main(["check", str(path)]) == 0


def test_a_file_that_is_no_notebook_gets_one_sentence(tmp_path):
    path = tmp_path / "chapter.ipynb"
    path.write_text("<<<<<<< HEAD\n")
    with pytest.raises(SystemExit, match=r"chapter\.ipynb cannot be read as a notebook"):
        tool.main(["check", str(path)])


@pytest.mark.parametrize("module", [tool, repository], ids=["notebooks", "repository"])
def test_examples_in_the_tools_docstrings(module):
    ran = doctest.testmod(module)
    assert ran.attempted
    assert not ran.failed


# --- the parts that the tests above stand on -------------------------------------------------


def test_runner_tells_output_errors_and_verdicts_apart(tmp_path):
    sources = [
        "import sys; from types import SimpleNamespace; print('printed')",
        "from IPython.display import Markdown, display\ndisplay(Markdown('shown'))",
        "sys.stderr.write('warned')\nSimpleNamespace(passed=False, message='hint')",
        "1 / 0",
        "print('not reached')",
    ]
    printed, shown, verdict, fault = run_cells(sources, tmp_path, strict=False)
    assert "printed" in printed["text"]
    assert "shown" in shown["text"]
    assert verdict["stderr"] == "warned"
    assert verdict["verdict"] == {"passed": False, "message": "hint"}
    assert fault["error"] == "ZeroDivisionError: division by zero"


def test_each_run_starts_with_nothing_and_in_its_folder(tmp_path):
    left = [
        "import os, pathlib\nleft = 1\nprint(pathlib.Path.cwd())",
        "print(os.environ.get('WORKED_EXAMPLES_STRICT'))",
    ]
    where, strict = run_cells(left, tmp_path, strict=True)
    assert where["text"].strip() == str(tmp_path)
    assert strict["text"].strip() == "1"
    assert "NameError" in run_cells(["left"], tmp_path, strict=False)[0]["error"]
    assert "None" in run_cells(["import os", left[1]], tmp_path, strict=False)[1]["text"]


def test_a_remembered_function_runs_once_for_the_same_arguments(tmp_path):
    (tmp_path / "slow.py").write_text(
        "calls = 0\ndef f(x):\n    global calls; calls += 1\n    return [x]"
    )
    cells = ["import slow", "slow.f(1).append(2)\nslow.f(2)", "print(slow.calls, slow.f(1))"]
    for calls in ("2 [1]", "2 [1]"):
        results = run_cells(cells, tmp_path, strict=False, remember=["slow.f"])
        assert results[-1]["text"].strip() == calls


def test_a_cell_that_ends_its_process_fails_and_the_next_run_works(tmp_path):
    with pytest.raises(AssertionError, match="no answer"):
        run_cells(["import os\nos._exit(1)"], tmp_path, strict=False)
    with pytest.raises(AssertionError, match="no answer"):
        run_cells(["while True: pass"], tmp_path, strict=False, timeout=3)
    assert run_cells(["print(1)"], tmp_path, strict=False)[0]["text"] == "1\n"
