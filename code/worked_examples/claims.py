"""Tie a number that prose states to the cell that computes it.

A chapter says "the spread grows to 28.591"; the cell beside it calls ``claim(28.591, spread)``.
While the two agree, nothing happens. In the book's build and tests, where
``WORKED_EXAMPLES_STRICT`` is 1, a difference is an error, so no false sentence is published.
For a reader who has changed an input it is one quiet line and no exception: the sentence above
is then about the book's numbers, not the reader's.
"""

import os
from decimal import Decimal

import numpy as np

__all__ = ["claim"]


def claim(printed, computed, *, decimals=None):
    """Say so if a computed number does not round to the one that the prose prints.

    Parameters
    ----------
    printed : number, str, or nested sequence of them
        What stands in the text. Text keeps its trailing zeros: ``"0.3200"``.
    computed : number or array
        What the cell computed; of the same shape as `printed`.
    decimals : int, optional
        Decimals that the text shows. By default those of `printed` as it is written; of
        several numbers, the most that one of them has.

    Raises
    ------
    AssertionError
        If they differ and the environment variable ``WORKED_EXAMPLES_STRICT`` is 1.

    Examples
    --------
    >>> claim(1.756, 1.75649)
    >>> claim(["0.3200", 0.13, 0.44], [0.32, 0.13, 0.44])

    Where they differ, a reader sees ``The book printed 1.756, yours is 1.201.``
    """
    texts = np.char.replace(np.array(printed, dtype=str), ",", "")  # "67,108,864"
    numbers = texts.astype(float)
    if decimals is None:
        decimals = max((_decimals(text) for text in texts.flat), default=0)
    computed = _array(computed)
    if _agree(numbers, computed, decimals):
        return
    difference = (
        f"The book printed {_show(numbers, decimals)}, yours is {_show(computed, decimals)}."
    )
    if os.environ.get("WORKED_EXAMPLES_STRICT") == "1":
        raise AssertionError(difference)
    print(difference)


def _decimals(text):
    exponent = Decimal(text).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _array(computed):
    """Give what the cell computed as an array of numbers, or as it is written if it is none."""
    computed = computed.detach() if hasattr(computed, "detach") else computed  # torch's
    try:
        array = np.asarray(computed)
        whole = array.dtype == object and all(isinstance(number, int) for number in array.flat)
        return array.astype(float) if whole else array  # object: some integer fits no int64
    except (ValueError, OverflowError):  # rows of several lengths; an integer past every float
        return np.asarray(str(computed))


def _agree(printed, computed, decimals):
    if printed.shape != computed.shape or computed.dtype.kind not in "biuf":
        return False
    # Half a unit of the last place, and room for the binary form of a number that ends in 5.
    tolerance = 0.5 * 10.0**-decimals + 1e-12 * np.abs(printed)
    with np.errstate(invalid="ignore"):
        close = np.abs(computed - printed) <= tolerance
    return bool(np.where(np.isinf(printed), printed == computed, close).all())


def _show(numbers, decimals):
    """Write numbers on one line, at most the first eight of them."""
    numbers = np.asarray(numbers)
    if numbers.dtype.kind not in "biuf":
        return str(numbers)[:60]
    short = f".{decimals}f" if decimals < 7 else ".3g"  # a tolerance, and not what the text shows
    parts = [
        f"{number:{short}}" if abs(number) < 1e16 else f"{number:g}" for number in numbers.flat[:8]
    ]
    if numbers.ndim == 0:
        return parts[0]
    rest = ", ..." if numbers.size > 8 else ""
    return f"({', '.join(parts)}{rest})"
