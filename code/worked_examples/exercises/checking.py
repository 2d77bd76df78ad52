"""How a reader's function is checked: against a correct one, and against the classic mistakes.

A check runs the reader's function on a few inputs and compares what comes back with what the
book's kernel gives. Where they differ, it looks for a known mistake that would give the reader's
numbers, and answers with its hint. It never raises for what the reader wrote.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Check", "Mistake", "Verdict"]


@dataclass(frozen=True)
class Verdict:
    """Whether a function passed, and one sentence about it."""

    passed: bool
    message: str

    def __repr__(self):
        return f"{'Passed.' if self.passed else 'Not yet.'} {self.message}"


@dataclass(frozen=True)
class Mistake:
    """A wrong function that people really write, and the hint that leads out of it."""

    function: Callable
    hint: str


@dataclass(frozen=True)
class Check:
    """Check a reader's function; call it with the function.

    Parameters
    ----------
    name : str
        The name under which the chapter calls it.
    correct : callable
        Gives the right answer: an array, or a tuple of arrays.
    inputs : callable
        Takes nothing and returns a list of argument tuples, made anew for each check.
    mistakes : sequence of Mistake
        Tried in order on the input that failed.
    praise : str
        What passing shows, in a sentence.
    tolerance : float, default 1e-9
        Largest difference allowed, relative to 1 or to the right number, whichever is larger.
    """

    name: str
    correct: Callable
    inputs: Callable
    mistakes: tuple = field(default=())
    praise: str = "Every case agrees with the book's kernel."
    tolerance: float = 1e-9

    def __call__(self, function):
        """Run the function on every input and return a Verdict."""
        if not callable(function):
            return Verdict(False, f"This needs a function; got {type(function).__name__}.")
        for arguments in self.inputs():
            complaint = self._complaint(function, arguments)
            if complaint:
                return Verdict(False, complaint)
        return Verdict(True, self.praise)

    def _complaint(self, function, arguments):
        """Say what is wrong for these arguments, or nothing."""
        given = copy.deepcopy(arguments)
        try:
            answer = function(*given)
        except NotImplementedError:
            return "The function is still to be written."
        except Exception as error:
            return f"With {_describe(arguments)} it raised {type(error).__name__}: {error}"
        if answer is None or answer is Ellipsis:
            return "The function returned nothing yet; end it with a return."
        if not _same(arguments, given, 0):
            return f"With {_describe(arguments)} it changed its own input; work on a copy."
        right = self.correct(*copy.deepcopy(arguments))
        if _same(right, answer, self.tolerance):
            return None
        for mistake in self.mistakes:
            if _same(_attempt(mistake.function, arguments), answer, self.tolerance):
                return mistake.hint
        return f"With {_describe(arguments)}: {_difference(right, answer)}"


def _attempt(function, arguments):
    try:
        with np.errstate(all="ignore"):
            return function(*copy.deepcopy(arguments))
    except Exception:  # a mistake need not be defined for every input
        return None


def _parts(value):
    return value if isinstance(value, tuple) else (value,)


def _numbers(value):
    """Give the value as an array of floats, or None if it is no such thing."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None


def _same(right, answer, tolerance):
    right, answer = _parts(right), _parts(answer)
    if len(right) != len(answer):
        return False
    for expected, came in zip(right, answer, strict=True):
        if callable(expected) or isinstance(expected, (str, type(None))):
            if expected is not came and not (isinstance(came, str) and expected == came):
                return False
            continue
        expected, came = _numbers(expected), _numbers(came)
        if expected is None or came is None or expected.shape != came.shape:
            return False
        with np.errstate(invalid="ignore"):
            margin = tolerance * np.maximum(1, np.abs(expected))
            close = (np.abs(expected - came) <= margin) | (expected == came)
        if not (close | (np.isnan(expected) & np.isnan(came))).all():
            return False
    return True


def _describe(arguments):
    """Name the arguments by shape, and short ones by value."""
    names = []
    for argument in arguments:
        array = _numbers(argument)
        if array is None:
            names.append(type(argument).__name__ if callable(argument) else repr(argument))
        elif array.ndim == 0:
            names.append(f"{argument!r}")
        else:
            names.append(f"shape {array.shape}")
    return "arguments " + ", ".join(names)


def _difference(right, answer):
    right, answer = _parts(right), _parts(answer)
    if len(right) != len(answer):
        return f"{len(right)} results are wanted; {len(answer)} came."
    for i, (expected, came) in enumerate(zip(right, answer, strict=True)):
        where = f"result {i + 1}" if len(right) > 1 else "the result"
        expected, numbers = np.asarray(expected, dtype=float), _numbers(came)
        if numbers is None:
            return f"{where} should be numbers; got {type(came).__name__}."
        if numbers.shape != expected.shape:
            return f"{where} has shape {numbers.shape}; {expected.shape} is wanted."
        wrong = ~np.isclose(numbers, expected, rtol=0, atol=1e-9, equal_nan=True)
        if wrong.any():
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            place = f" at {index}" if index else ""
            return f"{where}{place} is {numbers[index]:.6g}; {expected[index]:.6g} is right."
    return "the numbers are close, but not within the tolerance."
