"""How a reader's function is checked: against a correct one, and against the classic mistakes.

A check runs the reader's function on a few inputs and compares what comes back with what the
book's kernel gives. Where they differ, it looks for a known mistake that would give the reader's
numbers, and answers with its hint. It never raises for what the reader wrote; an interrupt, as of
a loop without end, gets through.
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
        Unless it is 0, answers in float32 may differ by 1e-5.
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
        for passed, arguments in enumerate(self.inputs()):
            complaint = self._complaint(function, arguments, passed)
            if complaint:
                return Verdict(False, complaint)
        return Verdict(True, self.praise)

    def _complaint(self, function, arguments, passed):
        """Say what is wrong for these arguments, or nothing; so many cases were right before."""
        given = copy.deepcopy(arguments)
        try:
            answer = function(*given)
        except NotImplementedError:
            return "The function is still to be written."
        except (Exception, SystemExit) as error:  # an interrupt stays the reader's own
            return f"With {_describe(arguments)} it raised {type(error).__name__}: {error}"
        if answer is None or answer is Ellipsis:
            if passed:
                return f"With {_describe(arguments)} it returned nothing."
            return "The function returned nothing yet; end it with a return."
        if not _same(arguments, given, 0):
            return f"With {_describe(arguments)} it changed its own input; work on a copy."
        right = self.correct(*copy.deepcopy(arguments))
        if _same(right, answer, self.tolerance):
            return None
        for mistake in self.mistakes:
            if _same(_attempt(mistake.function, arguments), answer, self.tolerance):
                return mistake.hint
        return f"With {_describe(arguments)}: {_difference(right, answer, self.tolerance)}"


def _attempt(function, arguments):
    try:
        with np.errstate(all="ignore"):
            return function(*copy.deepcopy(arguments))
    except Exception:  # a mistake need not be defined for every input
        return None


def _numbers(value):
    """Give the value as an array of numbers, or None if it is no such thing."""
    try:
        value = value.detach() if hasattr(value, "detach") else value  # torch's, with gradients
        array = np.asarray(value)
        if array.dtype.kind not in "biufO":
            return None
        return array if array.dtype.kind == "f" else array.astype(float)
    except Exception:  # anything at all may come back from a reader's function
        return None


def _aligned(right, answer):
    """Give both as tuples of results: several may come as a list, rows of one as a tuple."""
    if isinstance(right, tuple):
        return right, tuple(answer) if isinstance(answer, (tuple, list)) else (answer,)
    if isinstance(answer, tuple):
        rows = _numbers(answer)
        if rows is None or rows.shape != np.shape(right):
            return (right,), answer
    return (right,), (answer,)


def _apart(expected, came, tolerance):
    """Say of each number whether it is too far from the one that is expected."""
    if tolerance and came.dtype == np.float32:  # whose rounding is no mistake
        tolerance = max(tolerance, 1e-5)
    with np.errstate(invalid="ignore"):
        margin = tolerance * np.maximum(1, np.abs(expected))
        near = np.isfinite(expected) & (np.abs(expected - came) <= margin)
    return ~(near | (expected == came) | (np.isnan(expected) & np.isnan(came)))


def _same(right, answer, tolerance):
    right, answer = _aligned(right, answer)
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
        if _apart(expected, came, tolerance).any():
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


def _difference(right, answer, tolerance):
    right, answer = _aligned(right, answer)
    if len(right) != len(answer):
        wanted = "1 result is" if len(right) == 1 else f"{len(right)} results are"
        return f"{wanted} wanted; {len(answer)} came."
    for i, (expected, came) in enumerate(zip(right, answer, strict=True)):
        where = f"result {i + 1}" if len(right) > 1 else "the result"
        if isinstance(expected, str):
            if not isinstance(came, str) or came != expected:
                return f"{where} is {came!r}; {expected!r} is right."
            continue
        expected, numbers = np.asarray(expected, dtype=float), _numbers(came)
        if numbers is None:
            return f"{where} should be numbers; got {type(came).__name__}."
        if numbers.shape != expected.shape:
            return f"{where} has shape {numbers.shape}; {expected.shape} is wanted."
        wrong = _apart(expected, numbers, tolerance)
        if wrong.any():
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            place = f" at {index}" if index else ""
            came, right = float(numbers[index]), float(expected[index])
            digits = 6 if f"{came:.6g}" != f"{right:.6g}" else 17
            return f"{where}{place} is {came:.{digits}g}; {right:.{digits}g} is right."
    return "the result is not what is wanted."
