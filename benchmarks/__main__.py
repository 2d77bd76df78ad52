"""Print how fast the explorers answer and the command line starts, as tables or JSON.

    python -m benchmarks [--json] [--rounds N]

Timings of one run compare with each other and with nothing else: a machine's speed changes from
minute to minute. So what is compared is measured in turns, and medians are printed with their
quartiles, beside the load that the machine had.
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.tables import print_table
from worked_examples import explorers
from worked_examples.controls import Choice, Slider, Steps

ROOT = Path(__file__).resolve().parents[1]
RECOMPUTE_TARGET_MS = 5.0
START_TARGET_RATIO = 1.3


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


def starts(rounds):
    """Time whole processes in turns: bare numpy, and each flag of the command line."""
    script = str(ROOT / "code" / "worked_examples" / "attention.py")
    commands = {"python -c 'import numpy'": ["-c", "import numpy"]}
    for flag in ("--one", "--select", "--scale", "--mask"):
        commands[f"attention.py {flag}"] = [script, flag]
    # As a reader without these variables has it: they slow a current OpenBLAS down.
    dropped = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE"}
    environment = {k: v for k, v in os.environ.items() if k not in dropped}
    times = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, arguments in commands.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments],
                check=True, stdout=subprocess.DEVNULL, env=environment,
            )  # fmt: skip
            if turn:  # the first turn only fills the disk's cache
                times[name].append(1e3 * (time.perf_counter() - start))
    bare = statistics.median(times["python -c 'import numpy'"])
    rows = []
    for name, measured in times.items():
        low, middle, high = np.percentile(measured, [25, 50, 75])
        rows.append(
            {"process": name, "median ms": middle, "quartiles ms": f"{low:.0f}-{high:.0f}",
             "times bare numpy": middle / bare}
        )  # fmt: skip
    return rows


def main():
    """Measure, and print the machine, its load and the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each (15)")
    options = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    machine = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "processors": os.cpu_count(),
        "load at the start": round(load, 2),
    }
    tables = {
        "recompute of the explorers": recomputes(options.rounds),
        "start of the command line": starts(options.rounds),
    }
    if options.json:
        print(json.dumps({"machine": machine, **tables}, indent=2))
        return
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    if load > 0.5:
        print("The machine was not idle: read the ratios, not the times.")
    for title, rows in tables.items():
        print(f"\n{title}")
        print_table(rows)
    slowest = max(row["slowest setting ms"] for row in tables["recompute of the explorers"])
    ratio = tables["start of the command line"][1]["times bare numpy"]
    print(f"\nslowest recompute {slowest:.2f} ms (target below {RECOMPUTE_TARGET_MS:g})")
    print(f"--one takes {ratio:.2f} times bare numpy (target at most {START_TARGET_RATIO:g})")


if __name__ == "__main__":
    main()
