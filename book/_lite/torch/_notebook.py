"""In a notebook: a cell that needs torch says so and shows what it gave when the book was built."""

import ast
import builtins
import gzip
import json
import types
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path

from torch._parts import NeedsTorch

RECORDED = Path(__file__).with_name("recorded.json.gz")
NEEDS = "This cell needs torch, which the browser does not have."
BELOW = "Below is what it gave when the book was built."
EDITED = "Below is what the published cell, which yours differs from, gave when the book was built."
NOTHING = "The published one shows no result either."
# How much of an edited cell has to be the published one's.
ALIKE = 0.5


def watch(shell):
    """Let a notebook's shell answer what torch's absence leads to.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell or None
    """
    if shell is None:
        return
    missing = set()

    def answer(shell, kind, error, traceback, tb_offset=None):
        if not _is_consequence(error, missing):
            shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
            return
        source = shell.history_manager.input_hist_raw[-1]
        missing.update(_forget(shell, source, _line(shell, traceback)))
        _show(source, shell.history_manager.input_hist_raw)

    shell.set_custom_exc((Exception,), answer)


def _is_consequence(error, missing):
    """Whether an error, or what led to it, is that torch or what it makes is missing."""
    while error is not None:
        if isinstance(error, NeedsTorch):
            return True
        if isinstance(error, NameError) and error.name in missing:
            return True
        error = error.__cause__ or error.__context__
    return False


def _line(shell, traceback):
    """Return the line of the cell at which it stopped."""
    while traceback is not None:
        if traceback.tb_frame.f_globals is shell.user_ns:
            return traceback.tb_lineno
        traceback = traceback.tb_next
    return 1


def _forget(shell, source, line):
    """Take away the names that the rest of a cell would have bound or changed; return them.

    What they held before is something else, which later cells must not take for the result.
    """
    bound, changed = _Names(), set()
    for statement in ast.parse(shell.transform_cell(source)).body:
        if statement.end_lineno >= line:
            bound.visit(statement)
    for name in bound.changed:
        value = shell.user_ns.get(name)
        if not isinstance(value, types.ModuleType) and not callable(value):
            changed.add(name)
    for name in bound.stored | changed:
        shell.user_ns.pop(name, None)
    return {n for n in bound.stored | changed | bound.imported if not hasattr(builtins, n)}


class _Names(ast.NodeVisitor):
    """Collects the names that statements bind or change in their own scope."""

    def __init__(self):
        self.stored, self.changed, self.imported = set(), set(), set()

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.stored.add(node.id)

    def visit_Import(self, node):
        for alias in node.names:
            self.imported.add(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import

    def _visit_place(self, node):
        if not isinstance(node.ctx, ast.Load):
            self._change(node)
        self.generic_visit(node)

    visit_Attribute = visit_Subscript = _visit_place

    def visit_Expr(self, node):
        """Take a call that stands by itself, such as `rows.append(...)`, for a change."""
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            self._change(call.func)
        self.generic_visit(node)

    def _change(self, node):
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        if isinstance(node, ast.Name):
            self.changed.add(node.id)

    def _visit_definition(self, node):
        self.stored.add(node.name)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_definition

    def _skip(self, node):
        """Leave out what has names of its own."""

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _skip


def _show(source, history):
    """Show the line and, if there is one, the recorded result."""
    from IPython.display import clear_output, display

    cell, edited = _published(source, history)
    outputs = cell["outputs"] if cell else []
    line = f"{NEEDS} {EDITED if edited else BELOW}" if outputs else NEEDS
    if cell and not outputs:
        line = f"{NEEDS} {NOTHING}"
    clear_output()  # what the cell had written before it stopped comes again below
    display({"text/plain": line, "text/markdown": f"*{line}*"}, raw=True)
    for output in outputs:
        display(output, raw=True)


def _published(source, history):
    """Return the published cell, and whether the reader's differs from it."""
    chapters = json.loads(gzip.decompress(RECORDED.read_bytes()))
    by_source = {
        name: {_plain(cell["source"]): cell for cell in cells} for name, cells in chapters.items()
    }
    run = Counter(_plain(text) for text in history)
    near = sorted(chapters, key=lambda name: -sum(run[text] for text in by_source[name]))
    for name in near:
        if _plain(source) in by_source[name]:
            return by_source[name][_plain(source)], False
    ratios = {
        text: SequenceMatcher(None, text, _plain(source), autojunk=False).ratio()
        for text in (by_source[near[0]] if near else ())
    }
    best = max(ratios, key=ratios.get, default=None)
    if best is None or ratios[best] < ALIKE:
        return None, True
    return by_source[near[0]][best], True


def _plain(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
