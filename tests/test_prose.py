"""A number typed in a chapter's prose is one that a cell of that chapter prints or checks.

Prose says 28.591, and some cell prints it, claims it, or takes it as an input: then it cannot go
stale unseen. A number that merely stands somewhere in the code, as in ``x * 28.591``, does not
count. Not asked for: whole numbers below 10, years, formulas' own integers, and what an author
lists as a definition in the cell's metadata, `"definitions": ["4096"]`.
"""

import ast
import json
import re
from pathlib import Path

import pytest
from chapter_runner import code_cells, run_cells

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))
NUMBER = re.compile(
    r"(?<![\w.,^_{-])-?\d{1,3}(?:,\d{3})+(?![\d])|(?<![\w.^_{])-?\d+(?:\.\d+)?(?![\w])"
)
NOT_PROSE = (
    re.compile(r"```.*?```", re.S),
    re.compile(r"`[^`]*`"),
    re.compile(r"\]\([^)]*\)"),  # where a link leads
    re.compile(r"<[^>]+>"),
)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.S)
YEAR = re.compile(r"(?:1[89]|20)\d\d")


def numbers_in_prose(markdown):
    """Return the numbers, as they are written, that a cell has to vouch for."""
    for pattern in NOT_PROSE:
        markdown = pattern.sub(" ", markdown)
    formulas = " ".join(FORMULA.findall(markdown))
    decimals = [text for text in NUMBER.findall(formulas) if "." in text]
    plain = NUMBER.findall(FORMULA.sub(" ", markdown))
    wanted = [t for t in plain if "." in t or abs(int(t.replace(",", ""))) >= 10]
    return [text for text in wanted + decimals if not YEAR.fullmatch(text)]


def vouched(text, known):
    """Tell whether a known number rounds to the one that is written."""
    decimals = len(text.partition(".")[2])
    value = float(text.replace(",", ""))
    return any(abs(x - value) <= 0.5 * 10**-decimals * (decimals > 0) + 1e-12 for x in known)


def stated(source):
    """Collect the numbers that a cell claims or takes as an input.

    Inputs are what is assigned as it stands, `d_k = 64`, what a call is given as it stands,
    `f(64, steps=[1, 2])`, and what a loop runs over. Of a claim, everything counts: it is checked
    when the cell runs.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if getattr(node.func, "id", None) != "claim":
                given = [value for value in given if is_literal(value)]
        elif isinstance(node, ast.Assign) and is_literal(node.value):
            given = [node.value]
        elif isinstance(node, ast.For | ast.comprehension) and is_literal(node.iter):
            given = [node.iter]
        else:
            continue
        parts = (part for value in given for part in ast.walk(value))
        found |= {part.value for part in parts if isinstance(part, ast.Constant)}
    numbers = {float(x) for x in found if isinstance(x, int | float)}
    numbers |= {-x for x in numbers}
    return numbers | read_numbers(" ".join(x for x in found if isinstance(x, str)))


def is_literal(node):
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def read_numbers(text):
    """Collect the numbers of a text, with and without their signs."""
    found = re.findall(r"\d[\d,]*\d|\d", text) + re.findall(r"-?\d+\.\d+(?:e[+-]?\d+)?", text)
    return {float(number.replace(",", "")) for number in found} | {
        -float(number) for number in re.findall(r"\d+\.\d+", text)
    }


def numbers_of_cells(path):
    """Collect what the cells of a chapter print, claim and take as inputs."""
    sources = code_cells(path)
    results = run_cells(sources, path.parent, strict=True)
    printed = read_numbers("\n".join(result["text"] for result in results))
    return printed.union(*(stated(source) for source in sources))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_number_in_prose_is_computed(path):
    known = numbers_of_cells(path)
    loose = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            excepted = cell["metadata"].get("definitions", [])
            loose += [
                text
                for text in numbers_in_prose("".join(cell["source"]))
                if text not in excepted and not vouched(text, known)
            ]
    assert not loose, f"typed, and neither printed nor claimed by a cell: {loose}"


@pytest.mark.parametrize(
    ("markdown", "numbers"),
    [
        ("The weight is 0.3611, not 12.", ["0.3611", "12"]),
        ("At 67,108,864 scores.", ["67,108,864"]),
        ("Vaswani et al. (2017), in `x = 99`, [step 3](#fig-12).", []),
        ("$d_k = 64$ and $0.5 \\cdot x_{12}$", ["0.5"]),
        ("```python\nx = 77\n```", []),
        ("-1.5 bits, 16 times", ["-1.5", "16"]),
        ("key_10 and h3", []),
    ],
)
def test_numbers_are_found(markdown, numbers):
    assert numbers_in_prose(markdown) == numbers


@pytest.mark.parametrize(
    ("text", "known", "answer"),
    [
        ("1.756", {1.75649}, True),
        ("1.757", {1.75649}, False),
        ("16", {16.0}, True),
        ("16", {16.3}, False),
        ("67,108,864", {67108864.0}, True),
        ("0.25", set(), False),
    ],
)
def test_a_number_is_vouched_for_if_one_rounds_to_it(text, known, answer):
    assert vouched(text, known) is answer


@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        ("d_k = 64", {64}),
        ("L, d = 8, -16", {8, 16}),
        ("claim(1.756, spread)", {1.756}),
        ("claim(['67,108,864'], x[1])", {67108864, 1}),
        ("f(200, seeds=(0, 4))", {200, 0, 4}),
        ("for p in (2, 1000): pass", {2, 1000}),
        ("x = 0.41 * y + 12", set()),
        ("x = [0.41, y]", set()),
    ],
)
def test_only_inputs_and_claims_of_the_code_vouch(source, numbers):
    assert {abs(x) for x in stated(source)} - {67, 108, 864} == numbers
