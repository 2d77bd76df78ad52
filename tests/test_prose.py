"""A number typed in a chapter's prose is one that a cell of that chapter prints or checks.

Prose says 28.591, and some cell prints it, or states it in its code, as `claim` does: then it
cannot go stale unseen. Not asked for: whole numbers below 10, years, formulas' own integers, and
what an author lists as a definition in the cell's metadata, `"definitions": ["4096"]`.
"""

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


def numbers_of_cells(path):
    """Collect every number in the code of a chapter and in what its cells print."""
    sources = code_cells(path)
    results = run_cells(sources, path.parent, strict=True)
    text = "\n".join([*sources, *(result["text"] for result in results)])
    found = re.findall(r"\d[\d,]*\d|\d", text) + re.findall(r"-?\d+\.\d+(?:e[+-]?\d+)?", text)
    return {float(number.replace(",", "")) for number in found} | {
        -float(number) for number in re.findall(r"\d+\.\d+", text)
    }


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
