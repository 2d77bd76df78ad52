"""Run a chapter's cells one after the other, without a kernel: faster, and as a notebook would.

The cells share one IPython shell, as in a kernel, so magics, display() and a figure at a cell's
end work; only the messages to a front end are missing. The shell lives in a process of its own,
this file run as a script, which keeps the libraries loaded from one run to the next: torch,
matplotlib and pandas take seconds, a chapter's own cells well under one. Each run starts with an
empty namespace; a kernel of its own, once a chapter, is test_notebooks.py's concern.
"""

import ast
import atexit
import copy
import functools
import importlib
import json
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXERCISE = re.compile(r"#+ +Exercise\b")
CHECK = re.compile(r"([a-z_]+\.)?check_\w+\(")
SOLUTION = re.compile(r"<details>\s*<summary>.*?</summary>\s*\n(.*?)</details>", re.S)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


def read_cells(path):
    """Give (type, source, tags) of each cell of a notebook."""
    cells = json.loads(Path(path).read_text("utf-8"))["cells"]
    return [
        (cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags", []))
        for cell in cells
    ]


def code_cells(path):
    return [source for kind, source, _ in read_cells(path) if kind == "code"]


def run_cells(sources, folder, *, strict, remember=(), timeout=300):
    """Run the sources, each a cell, and give for each what came of it, up to the first error.

    `remember` names functions, as "package.module.function", whose results are kept: a later
    run that calls one with the same arguments, such as a training, gets a copy at once.

    Each result is {"text": all that was printed or shown, "stderr": ..., "error": the error's
    last line or None, "verdict": {"passed": ..., "message": ...} where the cell's value is one}.
    """
    process = _process()
    watch = threading.Timer(timeout, process.kill)
    watch.start()
    request = {"sources": sources, "folder": str(folder), "strict": strict}
    request["remember"] = list(remember)
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    watch.cancel()
    if not answer:
        _process.cache_clear()
        raise AssertionError(f"no answer: the cells ended their process, or took over {timeout} s")
    return json.loads(answer)


@functools.cache
def _process():
    """Start the process that runs cells; the next run uses it again."""
    environment = os.environ | {
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # as a kernel sets it
        "PYTHONPATH": str(ROOT / "code"),
        "OMP_NUM_THREADS": "1",  # the matrices are small, and other tests run at the same time
    }
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    atexit.register(process.kill)
    return process


def exercises(path):
    """Find the chapter's exercises.

    Each is (number of the stub's cell among the code cells, heading, the check's call,
    the solution's code).
    """
    cells = read_cells(path)
    found, code_number = [], -1
    for number, (kind, source, _) in enumerate(cells):
        code_number += kind == "code"
        if kind != "markdown" or not EXERCISE.match(source):
            continue
        heading = source.splitlines()[0].lstrip("# ")
        kinds = [kind for kind, _, _ in cells[number : number + 3]]
        assert kinds == ["markdown", "code", "markdown"], f"{heading}: text, stub, solution?"
        stub, answer = cells[number + 1][1], cells[number + 2][1]
        found.append(
            (code_number + 1, heading, check_call(stub, heading), solution(answer, heading))
        )
    return found


def check_call(stub, heading):
    """Give the stub's last statement, which has to be a call of a checker."""
    last = ast.parse(stub).body[-1]
    call = ast.get_source_segment(stub, last)
    assert CHECK.match(call), f"{heading}: the cell ends with {call!r}, not with its check"
    return call


def solution(text, heading):
    """Give the code of the folded solution."""
    folded = SOLUTION.search(text)
    assert folded, f"{heading}: no <details> with a <summary> below the stub"
    blocks = PYTHON.findall(folded[1])
    assert blocks, f"{heading}: no ```python block inside <details>"
    return "\n".join(blocks)


def with_inputs(sources, inputs):
    """Give the cells with `name = ...` replaced for each name of inputs, wherever it stands.

    A name may be several, as "L, d_k" for a line `L, d_k = 6, 4`.

    A name has to be assigned once in the chapter, at a cell's top level: an input that a reader
    is invited to change has one place.
    """
    sources = list(sources)
    for name, text in inputs.items():
        places = [
            (number, node)
            for number, source in enumerate(sources)
            for node in _statements(source)
            if isinstance(node, ast.Assign) and _targets(node) == name
        ]
        assert len(places) == 1, f"{name} = ... stands {len(places)} times in the chapter, not once"
        number, node = places[0]
        lines = sources[number].splitlines()
        lines[node.lineno - 1 : node.end_lineno] = [f"{name} = {text}"]
        sources[number] = "\n".join(lines)
    return sources


def _targets(assignment):
    return " = ".join(ast.unparse(target).strip("()") for target in assignment.targets)


def _statements(source):
    try:
        return ast.parse(source).body
    except SyntaxError:  # a cell with a magic in it
        return []


def _serve():
    """Answer each line of stdin, a request, with a line of results."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    # The results' own way out: what a cell's subprocess prints must not get between them.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[0] = ""  # as in a kernel: the chapter's folder, not this file's
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    for line in requests:
        request = json.loads(line)
        os.chdir(request["folder"])
        os.environ.pop("WORKED_EXAMPLES_STRICT", None)
        if request["strict"]:
            os.environ["WORKED_EXAMPLES_STRICT"] = "1"
        for name in request["remember"]:
            _remember(name)
        shell.reset()
        answers.write(json.dumps(_run(shell, request["sources"])) + "\n")
        answers.flush()


def _remember(name):
    """Let a module's function keep its results, once for the life of this process."""
    module_name, _, function_name = name.rpartition(".")
    module = importlib.import_module(module_name)
    function = getattr(module, function_name)
    if hasattr(function, "results"):
        return

    @functools.wraps(function)
    def remembering(*arguments, **named):
        key = pickle.dumps((arguments, named))
        if key not in remembering.results:
            remembering.results[key] = function(*arguments, **named)
        return copy.deepcopy(remembering.results[key])

    remembering.results = {}
    setattr(module, function_name, remembering)


def _run(shell, sources):
    from IPython.utils.capture import capture_output

    results = []
    for source in sources:
        with capture_output() as captured:
            ran = shell.run_cell(source, store_history=True)
        fault = ran.error_before_exec or ran.error_in_exec
        shown = [str(text) for output in captured.outputs for text in (output.data or {}).values()]
        value = ran.result if hasattr(ran.result, "passed") else None
        results.append(
            {
                "text": captured.stdout + "\n".join(shown),
                "stderr": captured.stderr,
                "error": f"{type(fault).__name__}: {fault}" if fault else None,
                "verdict": value and {"passed": value.passed, "message": value.message},
            }
        )
        if fault:
            break
    return results


if __name__ == "__main__":
    _serve()
