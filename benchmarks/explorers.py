"""How fast the explorers' views are computed again, in Python.

python -m benchmarks explorers
"""

import itertools
import statistics
import time

from worked_examples import explorers
from worked_examples.controls import Choice, Slider, Steps

RECOMPUTE_TARGET_MS = 5.0


def settings(explorer, most=64):
    """Yield settings of an explorer, the corners of its controls first."""
    ends = []
    for control in explorer.controls:
        if isinstance(control, Slider):
            ends.append((control.minimum, control.maximum))
        elif isinstance(control, Steps):
            ends.append((control.values[0], control.values[-1]))
        else:
            ends.append(control.options if isinstance(control, Choice) else (False, True))
    names = [control.name for control in explorer.controls]
    corners = itertools.islice(itertools.product(*ends), most)
    yield {}
    yield {name: pair[-1] for name, pair in zip(names, ends, strict=True)}
    yield from (dict(zip(names, corner, strict=True)) for corner in corners)


def recomputes(rounds):
    """Time every explorer's recompute over its settings; the slowest setting counts too."""
    rows = []
    for name, explorer in explorers.ALL.items():
        medians = []
        for setting in settings(explorer):
            times = []
            for _ in range(rounds):
                start = time.perf_counter()
                explorer.result(**setting)
                times.append(1e3 * (time.perf_counter() - start))
            medians.append(statistics.median(times))
        rows.append(
            {
                "explorer": name,
                "settings": len(medians),
                "median ms": statistics.median(medians),
                "slowest setting ms": max(medians),
                "target ms": RECOMPUTE_TARGET_MS,
            }
        )
    return rows


def measure(quick=False, rounds=None):
    """Return the tables of this section."""
    rows = recomputes(rounds or (3 if quick else 15))
    slowest = max(row["slowest setting ms"] for row in rows)
    return {
        "recompute of the explorers": rows,
        "slowest": [{"slowest recompute ms": slowest, "target below ms": RECOMPUTE_TARGET_MS}],
    }
