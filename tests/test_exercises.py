"""Every check passes the right function, and rejects each classic mistake with its own hint."""

import sys

import numpy as np
import pytest
import torch

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


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_rounding_to_float32_is_no_mistake(check):
    def rounded(x):
        return np.asarray(x).astype(np.float32) if np.asarray(x).dtype.kind == "f" else x

    def function(*arguments):
        result = check.correct(*arguments)
        return tuple(map(rounded, result)) if isinstance(result, tuple) else rounded(result)

    assert check(function).passed


def test_float32_is_told_from_a_mistake():
    check = _pair(lambda x: 2 * x)
    assert not check(lambda x: (2 * x + 1e-4).astype(np.float32)).passed
    assert not check(lambda x: 2 * x + 1e-6).passed
    exact = _pair(lambda x: x / 3, tolerance=0.0)
    assert not exact(lambda x: (x / 3).astype(np.float32)).passed


def test_tensors_are_answers_with_and_without_gradients():
    check = _pair(lambda x: 2 * x)
    assert check(lambda x: 2 * torch.tensor(x)).passed
    assert check(lambda x: 2 * torch.tensor(x, requires_grad=True)).passed


def test_several_results_may_come_as_a_list_and_rows_as_a_tuple():
    assert _pair(lambda x: (x, 2 * x))(lambda x: [x, 2 * x]).passed
    assert _pair(lambda x: 2 * x)(lambda x: tuple(2 * x)).passed
    verdict = _pair(lambda x: 2 * x)(lambda x: (2 * x, x))
    assert "1 result is wanted; 2 came" in verdict.message
    assert "2 results are wanted; 1 came" in _pair(lambda x: (x, x))(lambda x: x).message


def test_a_difference_is_shown_where_six_digits_hide_it():
    message = _pair(lambda x: 2 * x)(lambda x: 2 * x + 2.0**-24).message
    assert "at (0,) is 2.0000000596046448; 2 is right" in message


def test_infinity_is_the_answer_where_infinity_is_right():
    check = _pair(lambda x: x * np.inf)
    assert check(lambda x: x * np.inf).passed
    assert not check(lambda x: x).passed
    assert not check(lambda x: x * -np.inf).passed


class _NoArray:
    def __array__(self, *_, **__):
        raise RuntimeError("no array")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (10**400, "should be numbers; got int"),
        (_NoArray(), "should be numbers; got _NoArray"),
        (np.array([2 + 1j, 4]), "should be numbers"),
        (["2.0", "4.0"], "should be numbers"),
    ],
)
def test_what_is_no_number_is_said_to_be_none(answer, shown):
    verdict = _pair(lambda x: 2 * x)(lambda x: answer)
    assert not verdict.passed
    assert shown in verdict.message


def test_an_exit_is_answered_and_an_interrupt_stops():
    assert "raised SystemExit: 3" in _pair(lambda x: 2 * x)(lambda x: sys.exit(3)).message

    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _pair(lambda x: 2 * x)(interrupted)


def test_a_mistake_that_raises_is_no_match():
    check = _pair(lambda x: 2 * x, mistakes=(Mistake(lambda x: x[9], "never"),))
    assert "never" not in check(lambda x: x).message


def test_verdicts_read_as_a_sentence():
    assert repr(Verdict(True, "Good.")) == "Passed. Good."
