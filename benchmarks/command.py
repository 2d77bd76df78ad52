"""How fast the command line starts, beside a Python that imports numpy and does nothing.

python -m benchmarks command
"""

import statistics
import subprocess
import sys
import time

import numpy as np

from benchmarks.machine import ROOT, environment

START_TARGET_RATIO = 1.3


def starts(rounds):
    """Time whole processes in turns: bare numpy, and each flag of the command line."""
    script = str(ROOT / "code" / "worked_examples" / "attention.py")
    commands = {"python -c 'import numpy'": ["-c", "import numpy"]}
    for flag in ("--one", "--select", "--scale", "--mask"):
        commands[f"attention.py {flag}"] = [script, flag]
    start_as = environment()
    start_as.pop("PYTHONDONTWRITEBYTECODE", None)  # readers' Python keeps what it has compiled
    times = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, arguments in commands.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments],
                check=True, stdout=subprocess.DEVNULL, env=start_as,
            )  # fmt: skip
            if turn:  # the first turn only fills the disk's cache
                times[name].append(1e3 * (time.perf_counter() - start))
    bare = statistics.median(times["python -c 'import numpy'"])
    rows = []
    for name, measured in times.items():
        low, middle, high = np.percentile(measured, [25, 50, 75])
        rows.append(
            {"process": name, "median ms": float(middle), "quartiles ms": f"{low:.0f}-{high:.0f}",
             "times bare numpy": float(middle / bare),
             "target": START_TARGET_RATIO if name.endswith("--one") else ""}
        )  # fmt: skip
    return rows


def measure(quick=False, rounds=None):
    """Return the tables of this section."""
    return {"start of the command line": starts(rounds or (5 if quick else 15))}
