"""Experimenting stays free: a reader changes an input that a chapter invites to change.

Each case replaces one `name = ...` of a chapter and runs all of it as a reader does, with
WORKED_EXAMPLES_STRICT unset. Nothing may raise, and where a number of the prose is no longer the
reader's, one quiet line says so.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from chapter_runner import code_cells, run_cells, with_inputs

ROOT = Path(__file__).resolve().parents[1]
BOOK_PRINTED = re.compile(r"[Tt]he book printed .+ yours is ")


class Experiment(NamedTuple):
    """What a reader changes in which chapter, and whether a number of the prose changes."""

    chapter: str  # a glob in book/ that one notebook matches
    what: str
    inputs: dict  # {name: the new right side of its assignment}
    changes_a_number: bool = True


BOTTLENECK, WHOLE = "01_*.ipynb", "10_*.ipynb"
LOOKUP, SCALING, MASK = "02_*.ipynb", "03_*.ipynb", "04_*.ipynb"
HEADS = "05_*.ipynb"
BLOCK = "06_*.ipynb"
POSITION, QUICK = "07_*.ipynb", {"seeds, steps": "(0,), 2"}
COST = "08_*.ipynb"
SERIES = "09_*.ipynb"
TRAINED = "11_*.ipynb"
ONE_KEY = "{'is': [0.4, 0.5, 0.6]}"
HUNDRED_KEYS = "{f'word {i}': [i / 50, 1 - i / 50, 0.5] for i in range(100)}"
WIDE_KEYS = "{f'word {i}': np.cos(np.arange(4096) * i) for i in range(5)}"
# The same call gives the same answer, so each is made once a process.
TRAINING = [
    "worked_examples.reader.train_reader",
    "worked_examples.retrieval.search",
    "worked_examples.retrieval.train",
    "worked_examples.leak.study",
    "worked_examples.measuring.compare_lengths",
    "worked_examples.measuring.ideas",
    "worked_examples.measuring.loop_and_product",
    "worked_examples.forecaster.train",
    "worked_examples.ring.launch.launch",
]
TWO_WAYS = "{'a': [1, 0, 0], 'b': [-1, 0, 0], 'c': [0, 0, 0]}"

EXPERIMENTS = [
    Experiment(BOTTLENECK, "a state of one number", {"n, radius": "1, 0.9"}),
    Experiment(BOTTLENECK, "a wide state that forgets", {"n, radius": "64, 0.1"}, False),
    Experiment(BOTTLENECK, "L 1 and 64", {"lengths": "(1, 64)", "L, radii": "1, (0.5, 0.9, 1.1)"}),
    Experiment(BOTTLENECK, "another wish", {"s": "np.array([-1.0, 1.0])"}),
    Experiment(
        WHOLE, "one head, one layer", {"vocabulary, d, h, H, layers": "10, 4, 1, 1, 1"}, False
    ),
    Experiment(WHOLE, "16 heads", {"vocabulary, d, h, H, layers": "64, 32, 16, 8, 2"}, False),
    Experiment(WHOLE, "one token", {"tokens": "np.array([3])"}, False),
    Experiment(WHOLE, "64 tokens", {"tokens": "np.arange(64) % 11"}, False),
    Experiment(WHOLE, "length 2, one seed", {"length, seeds": "2, (5,)"}),
    Experiment(LOOKUP, "query", {"query": "np.array([5.0, -2.0, 0.0])"}),
    Experiment(LOOKUP, "zero query", {"query": "np.array([0, 0, 0])"}),
    Experiment(LOOKUP, "long query", {"query": "np.array([1e4, 0, -1e4])"}),
    Experiment(LOOKUP, "one key", {"keys": ONE_KEY}),
    Experiment(LOOKUP, "100 keys", {"keys": HUNDRED_KEYS}),
    Experiment(LOOKUP, "opposite keys and zero", {"keys": TWO_WAYS}),
    Experiment(LOOKUP, "d_k 4096", {"keys": WIDE_KEYS, "query": "np.ones(4096)"}),
    Experiment(LOOKUP, "d_k 1", {"keys": "{'a': [1], 'b': [2]}", "query": "np.array([3])"}),
    Experiment(LOOKUP, "one word", {"words": ONE_KEY}),
    Experiment(LOOKUP, "100 words", {"words": HUNDRED_KEYS}),
    Experiment(LOOKUP, "one question", {"asked": "{'one thing': (0, 10, 0)}"}),
    Experiment(LOOKUP, "all sizes 1", {"L, d, d_k, d_v": "1, 1, 1, 1"}, False),
    Experiment(LOOKUP, "L 64, d_k 4096", {"L, d, d_k, d_v": "64, 8, 4096, 3"}, False),
    Experiment(SCALING, "d_k 1", {"d_k": "1"}),
    Experiment(SCALING, "d_k 4096", {"d_k": "4096"}),
    Experiment(SCALING, "one key", {"keys": "1"}),
    Experiment(SCALING, "two keys", {"keys": "2"}),
    Experiment(SCALING, "100 keys", {"keys": "100"}),
    Experiment(SCALING, "one width", {"widths": "(64,)"}),
    Experiment(SCALING, "widths from 1 to 4096", {"widths": "(4096, 1, 2)"}),
    Experiment(MASK, "one position", {"scores": "np.array([0.3])"}),
    Experiment(MASK, "64 positions", {"scores": "np.linspace(-3, 3, 64)"}),
    Experiment(MASK, "whole numbers", {"scores": "np.array([3, 0, -2, 1])"}),
    Experiment(MASK, "L 1", {"L, d": "1, 8"}),
    Experiment(MASK, "L 64, d 1", {"L, d": "64, 1"}),
    Experiment(MASK, "no padding", {"lengths": "[3, 3, 3]"}),
    Experiment(MASK, "one sequence", {"lengths": "[1]"}),
    Experiment(MASK, "64 positions of padding", {"lengths": "[1, 64, 7, 0]"}),
    Experiment(MASK, "nothing cached", {"cached, new": "0, 3"}),
    Experiment(MASK, "one new token", {"cached, new": "63, 1"}),
    Experiment(MASK, "one seed", {"seeds": "(5,)"}),
    Experiment(
        HEADS,
        "L 1, one head",
        {"d, h, L": "16, 1, 1", "levels": "[3]", "swings": "[1]", "counts": "(1,)", "seed": "4"},
    ),
    Experiment(
        HEADS,
        "L 64, heads of width 1",
        {"d, h, L": "16, 16, 64", "levels": "list(range(64))", "swings": "[1, 0, -1, 0] * 16"},
    ),
    Experiment(BLOCK, "L 1", {"L, d, h, H": "1, 16, 4, 64"}),
    Experiment(BLOCK, "L 64, 16 heads", {"L, d, h, H": "64, 256, 16, 8"}),
    Experiment(BLOCK, "all sizes 1", {"L, d, h, H": "1, 1, 1, 1"}),
    Experiment(BLOCK, "a slope that takes all away", {"slope": "-1.0"}),
    Experiment(BLOCK, "one layer", {"layers": "1"}),
    Experiment(BLOCK, "row of one feature", {"row": "np.array([5])"}),
    Experiment(BLOCK, "row of whole numbers, all equal", {"row": "np.array([2, 2, 2])"}),
    Experiment(BLOCK, "row of 4096 features", {"row": "np.arange(4096) % 7"}),
    Experiment(BLOCK, "large eps", {"eps": "1.0"}),
    Experiment(BLOCK, "one seed", {"seeds": "(5,)"}),
    Experiment(BLOCK, "other heights", {"heights": "(1, 2)"}),
    Experiment(
        BLOCK,
        "a large model",
        {"sizes": '{"vocabulary": 256_000, "d": 12_288, "layers": 96, "h": 96, "H": 49_152}'},
    ),
    Experiment(
        BLOCK, "a model of 1", {"sizes": '{"vocabulary": 1, "d": 1, "layers": 1, "h": 1, "H": 1}'}
    ),
    Experiment(
        POSITION,
        "sizes 1",
        QUICK
        | {"L, d, h": "1, 1, 1", "L": "1", "B, L": "1, 1", "L, pairs": "1, 1", "d, base": "2, 10"}
        | {
            "positions_drawn, features": "1, 2",
            "built_for": "1",
            "size": "1",
            "k, starts": "1, (0,)",
        },
    ),
    Experiment(
        POSITION,
        "sizes 64 and wider",
        QUICK
        | {"L, d, h": "64, 64, 8", "L": "64", "B, L": "9, 64", "L, pairs": "64, 2048"}
        | {"d, base": "64, 1e6", "positions_drawn, features": "300, 512", "size": "64", "m": "3.0"},
    ),
    Experiment(COST, "all sizes 1", {"L, d, h, H": "1, 1, 1, 1"}),
    Experiment(COST, "a large layer", {"L, d, h, H": "64, 4096, 100, 16384"}),
    Experiment(COST, "one length", {"lengths": "(1,)", "loop_lengths": "(1,)"}),
    Experiment(COST, "two lengths, the longer first", {"lengths": "(128, 64)"}),
    Experiment(COST, "one score", {"scores": "np.array([-3])"}),
    Experiment(COST, "100 scores, whole numbers", {"scores": "np.arange(100) * 1000"}),
    Experiment(COST, "cut at the end", {"cut": "4"}),
    Experiment(COST, "one position", {"positions": "1"}),
    Experiment(COST, "positions that no block divides", {"positions": "61"}),
    Experiment(COST, "window of 1", {"w": "1"}),
    Experiment(COST, "window of 100", {"w": "100"}),
    Experiment(COST, "hardly any memory", {"decay": "0.01"}, False),
    Experiment(COST, "one token decoded, 16 heads", {"L_d, d_d, h_d": "1, 16, 16"}, False),
    Experiment(COST, "64 tokens decoded, one head", {"L_d, d_d, h_d": "64, 4, 1"}, False),
    Experiment(COST, "one process", {"processes": "1"}),
    Experiment(COST, "more processes than positions", {"processes": "100"}),
    Experiment(SERIES, "L 1, period 1", {"L, period": "1, 1", "span, season": "1, 1"}),
    Experiment(
        SERIES, "L 64, a period longer than it", {"L, period": "3, 4", "span, season": "64, 90"}
    ),
    Experiment(
        SERIES,
        "periods of 4, no noise",
        {"L, period": "64, 4", "span, season": "30, 4", "noise": "0.0"},
    ),
    Experiment(SERIES, "one seed", {"seeds": "(3,)"}),
    Experiment(SERIES, "one value read", {"seeds": "(0, 5)", "cycle, window": "1, 1"}),
    Experiment(SERIES, "64 values read", {"seeds": "(0, 1)", "cycle, window": "12, 64"}),
    Experiment(
        TRAINED, "a short sentence, another head", {"sentence": "2", "layer, head": "5, 11"}
    ),
    Experiment(TRAINED, "the second sentence", {"sentence": "1"}),
    Experiment(TRAINED, "the first head, the last", {"layer, head": "5, 0"}),
    Experiment(TRAINED, "other words", {"known": "set()"}, False),
]


def name(case):
    return f"{case.chapter.split('_')[0]} {case.what}"


@pytest.mark.parametrize("case", EXPERIMENTS, ids=name)
def test_a_reader_may_change_it(case):
    chapters = list(ROOT.glob(f"book/{case.chapter}"))
    assert len(chapters) == 1, f"{case.chapter} names {len(chapters)} chapters"
    cells = with_inputs(code_cells(chapters[0]), case.inputs)
    results = run_cells(cells, chapters[0].parent, strict=False, remember=TRAINING)
    stopped = results[-1]["error"]
    assert not stopped, f"{stopped}, in the cell:\n{cells[len(results) - 1]}"
    noted = [line for result in results for line in BOOK_PRINTED.findall(result["text"])]
    assert bool(noted) == case.changes_a_number


# --- the parts that the test above stands on -------------------------------------------------

CELLS = ["keys = [\n    1,\n    2,\n]\nsize = len(keys)", "%matplotlib inline", "keys == size"]


def test_an_input_is_replaced_whole():
    changed = with_inputs(CELLS, {"keys": "[]"})
    assert changed == ["keys = []\nsize = len(keys)", *CELLS[1:]]


@pytest.mark.parametrize("name", ["gone", "key", "keys == size"])
def test_an_input_that_is_not_there_fails(name):
    with pytest.raises(AssertionError, match="stands 0 times"):
        with_inputs(CELLS, {name: "1"})


def test_an_input_with_two_places_fails():
    with pytest.raises(AssertionError, match="stands 2 times"):
        with_inputs([*CELLS, "keys = 3"], {"keys": "1"})


def test_a_claim_that_no_longer_holds_is_a_line_for_a_reader_and_an_error_for_us(tmp_path):
    cells = ["from worked_examples.claims import claim", "n = 2", "claim(2, n)"]
    changed = with_inputs(cells, {"n": "3"})
    assert not any(BOOK_PRINTED.search(r["text"]) for r in run_cells(cells, tmp_path, strict=False))
    assert BOOK_PRINTED.search(run_cells(changed, tmp_path, strict=False)[-1]["text"])
    assert "AssertionError" in run_cells(changed, tmp_path, strict=True)[-1]["error"]
