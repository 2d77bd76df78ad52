"""Every check passes the right function, and rejects each classic mistake with its own hint."""

import numpy as np
import pytest

from worked_examples import exercises
from worked_examples.exercises.checking import Check, Mistake, Verdict

CHECKS = {name: check for name, check in vars(exercises).items() if isinstance(check, Check)}
MISTAKES = [
    pytest.param(check, mistake, id=f"{name}-{i}")
    for name, check in CHECKS.items()
    for i, mistake in enumerate(check.mistakes)
]


def test_every_chapter_has_its_checks():
    assert len(CHECKS) >= 9
    for name, check in CHECKS.items():
        assert check.name == name
        assert len(check.mistakes) >= 2, name


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_right_function_passes(check):
    verdict = check(check.correct)
    assert verdict.passed, verdict
    assert verdict.message == check.praise


@pytest.mark.parametrize(("check", "mistake"), MISTAKES)
def test_a_classic_mistake_is_rejected_with_its_hint(check, mistake):
    with np.errstate(all="ignore"):
        verdict = check(mistake.function)
    assert not verdict.passed
    assert verdict.message == mistake.hint


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (lambda *_: None, "returned nothing"),
        (lambda *_: ..., "returned nothing"),
        (lambda: 1, "TypeError"),
        (lambda *_: 1 / 0, "ZeroDivisionError"),
        (lambda *_: "text", ""),
        (lambda *_: np.full((2, 9, 7), 0.5), ""),
        (lambda *_: (1, 2, 3, 4), ""),
        (lambda *_: np.nan, ""),
        (5, "needs a function"),
    ],
)
def test_anything_else_gets_an_answer_and_no_exception(check, function, shown):
    verdict = check(function)
    assert not verdict.passed
    assert shown in verdict.message
    assert repr(verdict).startswith("Not yet. ")


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_small_error_is_an_error(check):
    def off(*arguments):
        result = check.correct(*arguments)
        if isinstance(result, tuple):
            return tuple(np.asarray(part, float) + 1e-3 for part in result)
        return np.asarray(result, float) + 1e-3

    assert not check(off).passed


def _pair(function, **options):
    return Check("pair", function, lambda: [(np.array([1.0, 2.0]),)], **options)


def test_a_function_may_not_change_its_input():
    def doubled(x):
        x *= 2
        return x

    verdict = _pair(lambda x: 2 * x)(doubled)
    assert not verdict.passed
    assert "changed its own input" in verdict.message


def test_a_difference_is_shown_with_its_place():
    verdict = _pair(lambda x: 2 * x)(lambda x: x + [1, 2.5])
    assert "at (1,) is 4.5; 4 is right" in verdict.message


def test_lists_are_answers_too():
    assert _pair(lambda x: 2 * x)(lambda x: [2, 4]).passed


def test_a_mistake_that_raises_is_no_match():
    check = _pair(lambda x: 2 * x, mistakes=(Mistake(lambda x: x[9], "never"),))
    assert "never" not in check(lambda x: x).message


def test_verdicts_read_as_a_sentence():
    assert repr(Verdict(True, "Good.")) == "Passed. Good."
