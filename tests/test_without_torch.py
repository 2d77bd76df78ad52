"""Every chapter as JupyterLite runs it, where there is no torch: nothing fails, every cell speaks.

The files are those that the built site serves: our package and what stands in for torch. A fresh
process runs the chapters, so that no torch is imported already.
"""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, SITE
from tools import notebooks

CHAPTERS = notebooks.notebooks(ROOT)
# How IPython clears a cell's output in a terminal.
CLEARED = "\x1b[2K\r"
NEEDS = "This cell needs torch, which the browser does not have."

RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
shell.history_manager.enabled = False
faults = []
shell._showtraceback = lambda kind, error, lines: faults.append(f"{kind.__name__}: {error}")
for chapter in json.load(sys.stdin):
    shell.reset()
    answers = []
    for source in chapter:
        with capture_output() as captured:
            shell.run_cell(source, store_history=True)
        answers.append({
            "written": captured.stdout, "warned": captured.stderr, "faults": faults[:],
            "shown": [dict(output.data) for output in captured.outputs],
        })
        faults.clear()
    print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Unpack what the site serves."""
    folder = tmp_path_factory.mktemp("served")
    (wheel,) = SITE.glob("lite/python-*/worked_examples-*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run(served, *chapters):
    """Run lists of cells, each list in a fresh namespace; return what each cell did."""
    environment = {k: v for k, v in os.environ.items() if k != "WORKED_EXAMPLES_STRICT"}
    environment |= {"PYTHONPATH": str(served), "MPLBACKEND": "agg", "WORKED_EXAMPLES_OFFLINE": "1"}
    # As chapter 8 asks for, which here is not the first to import numpy.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(chapters),
        capture_output=True,
        text=True,
        env=environment,
        cwd=served,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def cells_of(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def answers(served):
    """Run all chapters, once for all tests."""
    found = run(served, *map(cells_of, CHAPTERS))
    return {path.stem: answers for path, answers in zip(CHAPTERS, found, strict=True)}


@pytest.fixture(scope="module")
def recorded(served):
    import gzip

    return json.loads(gzip.decompress((served / "torch/recorded.json.gz").read_bytes()))


def said(answer):
    texts = [output.get("text/plain", "") for output in answer["shown"]]
    return next((text for text in texts if text.startswith(NEEDS)), None)


@pytest.mark.parametrize("chapter", [path.stem for path in CHAPTERS])
def test_nothing_fails_or_warns_or_claims_another_number(answers, chapter):
    for source, answer in zip(
        cells_of(ROOT / f"book/{chapter}.ipynb"), answers[chapter], strict=True
    ):
        assert (answer["faults"], answer["warned"]) == ([], ""), source
        assert "The book printed" not in answer["written"], source


@pytest.mark.parametrize("chapter", [path.stem for path in CHAPTERS])
def test_a_cell_that_needs_torch_shows_what_the_build_recorded(answers, recorded, chapter):
    for cell, answer in zip(recorded[chapter], answers[chapter], strict=True):
        line = said(answer)
        if line is None:
            continue
        assert answer["shown"][1:] == cell["outputs"]
        assert ("Below is what it gave" in line) == bool(cell["outputs"])
        assert ("no result either" in line) == (not cell["outputs"])


def test_the_cells_that_use_torch_are_among_them(answers):
    speaking = {name: sum(map(bool, map(said, found))) for name, found in answers.items()}
    assert speaking["03_scaling"] == 0  # numpy alone
    assert all(speaking[name] for name in ("01_bottleneck", "04_causal_mask", "10_why"))
    for path in CHAPTERS:
        for source, answer in zip(cells_of(path), answers[path.stem], strict=True):
            if "torch.manual_seed(" in source and "def " not in source:
                assert said(answer), source


SMALL = ["import torch\nx = 1\nrows = [1]", "x = 2\nx = torch.ones(3)\nrows.append(x)"]


def small(served, *cells):
    """Run a few cells after two that lack torch; return what the last ones did."""
    (answers,) = run(served, [*SMALL, *cells])
    assert said(answers[1])
    return answers[2:]


def test_what_a_stopped_cell_would_have_changed_is_gone(served):
    for name in ("x", "rows"):
        (answer,) = small(served, f"print({name})")
        assert said(answer)
        assert answer["written"].replace(CLEARED, "") == ""


def test_a_name_of_the_readers_own_lives(served):
    two = small(served, "x = 7", "print(x)")
    assert [said(answer) for answer in two] == [None, None]
    assert two[1]["written"] == "7\n"


def test_a_mistake_of_the_readers_stays_a_mistake(served):
    for source, fault in (("print(y)", "NameError"), ("1 / 0", "ZeroDivisionError")):
        (answer,) = small(served, source)
        assert said(answer) is None
        assert answer["faults"][0].startswith(fault)


def test_a_failure_inside_a_function_is_known_too(served):
    defined, called = small(served, "def f(y):\n    return y + x", "f(1)")
    assert said(defined) is None
    assert said(called)


def test_a_cell_that_is_in_no_chapter_says_just_that(served):
    (answer,) = small(served, "torch.zeros(2)")
    assert said(answer) == NEEDS


def test_an_edited_cell_is_told_whose_result_it_gets(served, recorded):
    cells = cells_of(ROOT / "book/01_bottleneck.ipynb")
    place = next(i for i, source in enumerate(cells) if "reader.train_reader(L" in source)
    edited = [*cells[:place], cells[place].replace("500", "600"), cells[place + 1] + "  # mine"]
    (answers,) = run(served, edited)
    assert "which yours differs from" in said(answers[-1])
    assert answers[-1]["shown"][1:] == recorded["01_bottleneck"][place + 1]["outputs"]


@pytest.mark.parametrize(
    "source",
    [
        "from torch.nn import functional as F",
        "import torch.distributed as dist",
        "class A(torch.nn.Module):\n    def __init__(self): super().__init__()",
        "def f(kind=torch.float64): return kind",
        "assert not isinstance(1.0, torch.Tensor)",
        "torch",
    ],
)
def test_naming_a_part_is_no_use_of_it(served, source):
    ((_, answer),) = run(served, ["import torch", source])
    assert (said(answer), answer["faults"]) == (None, [])


@pytest.mark.parametrize(
    "source",
    [
        "torch.ones(2)",
        "class A(torch.nn.Module): pass\nA()",
        "torch.float64 + 1",
        "with torch.no_grad(): pass",
        "print(torch.__version__)",
        "try:\n    torch.ones(2)\nexcept ImportError as e:\n    raise RuntimeError('no') from e",
    ],
)
def test_using_a_part_is_answered(served, source):
    ((_, answer),) = run(served, ["import torch", source])
    assert said(answer) == NEEDS
    assert answer["faults"] == []


def test_outside_a_notebook_it_is_an_import_error(served):
    code = "import torch\ntry: torch.ones(2)\nexcept ModuleNotFoundError as e: print(e.name, e)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(served)},
        capture_output=True,
        text=True,
        cwd=Path(served),
    )
    assert done.stdout.startswith("torch torch.ones needs torch"), done.stderr
