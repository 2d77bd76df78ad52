"""The machine that measures: what it is, how busy it is, and an environment that readers have.

No numpy here: `as_readers_have_it` must act before numpy's products choose their code.
"""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLOTS = ROOT / "_build" / "benchmarks"
# They make a current OpenBLAS take the code of another processor, or of other cache sizes.
MISLEADING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def environment():
    """Return this process's environment without what slows numpy's products down."""
    kept = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    kept["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "code")])
    return kept


def as_readers_have_it():
    """Start this command anew if its environment would mislead numpy; else do nothing."""
    if any(name in os.environ for name in MISLEADING):
        arguments = [sys.executable, "-m", "benchmarks", *sys.argv[1:]]
        os.execve(sys.executable, arguments, environment())


def processors():
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load():
    """Return how many processes wanted a processor in the last minute; NaN where nobody counts."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def describe():
    """Return the machine and the versions that matter, by name."""
    found = {"processor": _model(), "processors": processors(), "python": platform.python_version()}
    for package in ("numpy", "torch", "numba", "scipy", "threadpoolctl"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _model():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def warning(before, after):
    """Return a warning if others used the machine before, or after less than was measured.

    What was measured itself keeps every processor busy; more than that were others.
    """
    if before > 0.5 or after > processors() + 0.5:
        return (
            f"WARNING: the machine was not idle (load {before:.1f} before, {after:.1f} after): "
            "read the ratios of one run, not the times."
        )
    return None


def forget_peak():
    """Let `resident_peak` count from here on, from what is held now (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def resident_peak():
    """Return the bytes of memory that this process has held at most (Linux).

    Not getrusage's number: that one starts with what the parent process held.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024
