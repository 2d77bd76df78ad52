"""Kernels of attention over length, heads and causality: time, work a second, memory, slopes.

    python -m benchmarks kernels [--quick] [--json FILE]

Every kernel of one setting is called in turn, over several rounds: a machine's speed changes, and
the turns share the change. A short one is called many times in its turn. Medians and quartiles are
those of the turns. Work is the multiply-adds that the setting needs, h L^2 (d_k + d_v), or
half of it with a causal mask; what a kernel computes beyond that counts as time. Beside it stand
the machine's own rates, measured in the same run. Memory is the growth of a fresh process's largest
resident size, less the output (Linux).
"""

import argparse
import math
import statistics
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from functools import lru_cache, partial
from itertools import product
from unittest.mock import patch

import numpy as np
import torch
from torch.nn import functional

from benchmarks.machine import PLOTS, environment, forget_peak, processors, resident_peak
from worked_examples import fast, plan, sharing
from worked_examples.attention import scaled_dot_product_attention
from worked_examples.blocked import blocked_attention
from worked_examples.fast import fast_attention
from worked_examples.fused import fused_kernel
from worked_examples.measuring import slope
from worked_examples.plan import ROWS_FUSED
from worked_examples.sharing import one_blas_thread

WIDTH = 64
TARGETS = {("fast", False): 1.6, ("fast", True): 1.3,
           ("fast, numba", False): 1.15, ("fast, numba", True): 1.0}  # fmt: skip
MEMORY_TARGET_MIB = 25
# A kernel that keeps its scores gets no setting that would need more. None that takes long gets a
# longer one, but for those with a target, and what they are compared with.
BASE = "library, fused"
MOST_BYTES, MOST_SECONDS = 3 * 2**30, 6.0
KEEPS_SCORES = {"plain": 3, "library, eager": 3}
SETTINGS = [
    (1024, 1), (1024, 8), (2048, 1), (4096, 1), (4096, 8), (8192, 1), (16384, 1), (16384, 8),
]  # fmt: skip
QUICK = [(512, 1), (1024, 1), (1024, 8), (2048, 1)]


# ------------------------------------------------------------------------------ what is called


def _eager(Q, K, V, causal):
    scores = Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return scores.softmax(-1) @ V


def _layer(Q, causal):
    """Give nn.MultiheadAttention over as many heads; its four projections are timed with it."""
    h, L, d_k = Q.shape
    layer = torch.nn.MultiheadAttention(h * d_k, h, batch_first=True, device=Q.device).eval()
    X = Q.transpose(0, 1).reshape(1, L, h * d_k)
    mask = torch.ones(L, L, dtype=torch.bool, device=Q.device).triu(1) if causal else None
    options = {"need_weights": False, "attn_mask": mask, "is_causal": causal}
    return lambda: layer(X, X, X, **options)[0]


def calls(Q, K, V, causal, device="cpu"):
    """Return every kernel as a function without arguments, on (h, L, d_k) arrays, by name."""
    on = [torch.from_numpy(X).to(device) for X in (Q, K, V)]
    library = {
        "library, fused": lambda: functional.scaled_dot_product_attention(
            *(X[None] for X in on), is_causal=causal
        )[0],
        "library, eager": lambda: _eager(*on, causal),
        "MultiheadAttention": _layer(on[0], causal),
    }
    if device != "cpu":
        return {f"{name} ({device})": call for name, call in library.items()}
    numba = {} if fused_kernel() is None else {
        "fast, numba": lambda: fast_attention(Q, K, V, causal=causal, fused=True)
    }  # fmt: skip
    return {
        "library, fused": library.pop("library, fused"),
        "fast": lambda: fast_attention(Q, K, V, causal=causal, fused=False),
        **numba,
        "blocked": lambda: blocked_attention(Q, K, V, causal=causal),
        "plain": lambda: scaled_dot_product_attention(Q, K, V, causal=causal)[0],
        **library,
    }


def gpu():
    """Return the device that torch would use beside the processor, and how to wait for it."""
    if torch.cuda.is_available():
        return "cuda", torch.cuda.synchronize, torch.cuda.get_device_name()
    if torch.backends.mps.is_available():
        return "mps", torch.mps.synchronize, "Apple GPU"
    return None


def seconds_in_turn(functions, rounds, synchronize=None, settle=0.06):
    """Call functions in turn, and return every one's seconds, the median of each of its turns.

    In its turn a function is called for so many seconds unmeasured, then for as long measured: a
    library's idle threads go on looking for work for a while, and would take a processor from
    what is called next. A function that takes longer than that is called once. With a GPU the
    time is that until it has finished.
    """

    def call(function):
        start = time.perf_counter()
        function()
        if synchronize is not None:
            synchronize()
        return time.perf_counter() - start

    latest = {name: call(function) for name, function in functions.items()}  # compiles too
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            spent = 0.0
            while latest[name] < settle and spent < settle:
                spent += call(function)
            taken = [call(function)]
            while sum(taken) < settle:
                taken.append(call(function))
            latest[name] = statistics.median(taken)
            times[name].append(latest[name])
    return times


# ------------------------------------------------------------------------- what each idea pays


def _planned_otherwise():
    """Give `planned` a cache of its own: the plans that are kept were made with other settings."""
    return {"planned": lru_cache(plan.planned.__wrapped__)}


def _by_executor(function, threads):
    """Call a function in so many threads, which start for this call and end with it."""
    with ThreadPoolExecutor(max(threads - 1, 1)) as pool:
        others = [pool.submit(function) for _ in range(threads - 1)]
        function()
    for other in others:
        other.result()


UNDONE = {
    "as it is": {},
    "a maximum for every tile": {fast: {"_seem_small": lambda *_: False,
                                        "_are_small": lambda *_: False}},
    "powers of e, not of 2": {fast: {"_has_quick_exp2": lambda _: False}},
    "one product a tile": {plan: {"PRODUCT": 10**12, "PART": 10**6}, fast: _planned_otherwise()},
    "rows from anywhere": {sharing: {"LINE": 4, "_held": sharing._Held()}},
    "new memory every time": {sharing: {"KEPT": 0, "_held": sharing._Held()}},
    "a group of rows a tile": {plan: {"_stacked": lambda *_: (1, 1)}, fast: _planned_otherwise()},
    "a block a turn": {plan: {"TURN": 0}, fast: _planned_otherwise()},
    "a total of its own": {fast: {"_with_ones": lambda V: V}},
    "threads started anew": {fast: {"together": _by_executor}},
    "numpy's own threads as well": {fast: {"one_blas_thread": nullcontext}},
}  # fmt: skip


@contextmanager
def changed(undone):
    """Let modules have other values under some names."""
    with ExitStack() as stack:
        for module, values in undone.items():
            stack.enter_context(patch.multiple(module, **values))
        yield


def ideas(settings, rounds):
    """Time the fast kernel, numpy alone, with one of its ideas undone at a time."""
    rng = np.random.default_rng(0)
    rows = []
    for (L, h), causal in product(settings, (False, True)):
        Q, K, V = rng.normal(size=(3, h, L, WIDTH)).astype(np.float32)

        def call(undone, inputs=(Q, K, V), causal=causal):
            with changed(undone):
                return fast_attention(*inputs, causal=causal, fused=False)

        measured = seconds_in_turn(
            {name: partial(call, undone) for name, undone in UNDONE.items()}, rounds
        )
        base = statistics.median(measured["as it is"])
        rows += [
            {"L": L, "heads": h, "causal": causal, "undone": name,
             "times as long": statistics.median(taken) / base}
            for name, taken in measured.items()
        ]  # fmt: skip
    return rows


# ----------------------------------------------------------------------------------- the floor


def floor():
    """Measure what this machine can do: multiply-adds and exponentials a second."""
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 2048, 2048)).astype(np.float32)
    x = -rng.random((512, 512)).astype(np.float32)
    out = np.empty_like(x)
    tile = np.zeros((80, ROWS_FUSED), dtype=np.float32)  # what a compiled block has at a time
    each = np.zeros((3, ROWS_FUSED), dtype=np.float32)
    sizes = {"numba, softmax": tile.size}
    t_one, t_other, t_x = map(torch.from_numpy, (one, other, x))
    compiled = fused_kernel()
    threads = torch.get_num_threads()
    products = {"numpy": lambda: one @ other, "torch": lambda: t_one @ t_other}
    powers = {"numpy": lambda: np.exp(x, out=out), "torch": lambda: torch.exp(t_x)}
    if compiled is not None:
        powers["numba, softmax"] = lambda: compiled.powers(tile, *each)
    rows = []
    for count in sorted({1, processors()}):
        torch.set_num_threads(count)
        with one_blas_thread() if count == 1 else nullcontext():
            times = seconds_in_turn(products, 5)
            rows += [
                {"rate": f"multiply-adds, {name}", "threads": count,
                 "G a second": one.size * 2048 / statistics.median(taken) / 1e9}
                for name, taken in times.items()
            ]  # fmt: skip
            if count == 1:
                times = seconds_in_turn(powers, 15)
                rows += [
                    {"rate": f"exponentials, {name}", "threads": 1,
                     "G a second": sizes.get(name, x.size) / statistics.median(taken) / 1e9}
                    for name, taken in times.items()
                ]  # fmt: skip
    torch.set_num_threads(threads)
    return rows


def floor_seconds(rows, L, h, causal):
    """Return what products alone would take at numpy's rate on all processors."""
    peak = max(
        row["G a second"] for row in rows if row["rate"] == "multiply-adds, numpy"
    )  # fmt: skip
    return work(L, h, causal) / peak / 1e9


def work(L, h, causal):
    """Count the multiply-adds that a setting needs."""
    pairs = L * (L + 1) // 2 if causal else L * L
    return h * pairs * 2 * WIDTH


# ------------------------------------------------------------------------------------- time


def times(settings, rounds, rates):
    """Time every kernel over all settings; a row each, beside the library's fused kernel."""
    rng = np.random.default_rng(0)
    device = gpu()
    rows, slow = [], set()
    for L, h in settings:
        for causal in (False, True):
            inputs = rng.normal(size=(3, h, L, WIDTH)).astype(np.float32)
            functions = {
                name: call for name, call in calls(*inputs, causal).items()
                if name not in slow and KEEPS_SCORES.get(name, 0) * 4 * h * L * L < MOST_BYTES
            }  # fmt: skip
            measured = seconds_in_turn(functions, rounds)
            if device:
                name, synchronize, _ = device
                measured |= seconds_in_turn(calls(*inputs, causal, name), rounds, synchronize)
            base = statistics.median(measured[BASE])
            slow |= {
                name for name, taken in measured.items()
                if min(taken) * 4 > MOST_SECONDS and name != BASE and (name, causal) not in TARGETS
            }  # fmt: skip
            for name, taken in measured.items():
                low, middle, high = np.percentile(taken, [25, 50, 75])
                rate = work(L, h, causal) / middle / 1e9
                rows.append({
                    "L": L, "heads": h, "causal": causal, "kernel": name,
                    "median ms": float(1e3 * middle),
                    "quartiles ms": f"{1e3 * low:.1f}-{1e3 * high:.1f}",
                    "times library": float(middle / base),
                    "target": TARGETS.get((name, causal), ""),
                    "G multiply-adds/s": float(rate),
                    "share of peak": float(floor_seconds(rates, L, h, causal) / middle),
                })  # fmt: skip
    return rows


def slopes(rows):
    """Fit each kernel's slope of time over length, one head, dense: 2 is four times a doubling."""
    found = []
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        points = [(row["L"], row["median ms"]) for row in rows if row["kernel"] == kernel
                  and row["heads"] == 1 and not row["causal"]]  # fmt: skip
        if len(points) > 1:
            found.append({"kernel": kernel, "lengths": f"{points[0][0]}-{points[-1][0]}",
                          "slope": slope(*zip(*points, strict=True))})  # fmt: skip
    return found


# ------------------------------------------------------------------------------------ memory


def peaks(quick=False):
    """Measure each kernel's peak memory in a fresh process of its own, one head, two threads."""
    lengths = (2048, 4096) if quick else (8192, 32768)
    names = ["library, fused", "fast", "blocked", "plain", "library, eager"]
    if fused_kernel() is not None:
        names.insert(2, "fast, numba")
    rows = []
    for L in lengths:
        for name in names:
            if KEEPS_SCORES.get(name, 0) * 4 * L * L > MOST_BYTES:
                continue
            ran = subprocess.run(
                [sys.executable, "-m", "benchmarks.kernels", name, str(L)],
                check=True, capture_output=True, text=True, env=environment(),
            )  # fmt: skip
            rows.append({
                "kernel": name, "L": L, "MiB over inputs and output": float(ran.stdout),
                "target": MEMORY_TARGET_MIB if name.startswith("fast") else "",
            })  # fmt: skip
    return rows


def peak_of_this_process(name, L):
    """Call one kernel once, and return by how many MiB this process grew beyond the output."""
    torch.set_num_threads(2)
    rng = np.random.default_rng(0)
    small = rng.normal(size=(3, 1, 32, WIDTH)).astype(np.float32)
    fast_attention(*small, fused=name.endswith("numba"))
    if name in ("fast", "fast, numba"):

        def call(Q, K, V):
            return fast_attention(Q, K, V, threads=2, fused=name.endswith("numba"))
    else:

        def call(Q, K, V):
            return calls(Q, K, V, False)[name]()

    call(*small)  # what a first call loads stays out of the count
    inputs = rng.normal(size=(3, 1, L, WIDTH)).astype(np.float32)
    forget_peak()
    before = resident_peak()
    call(*inputs)
    return (resident_peak() - before - inputs[0].nbytes) / 2**20


# ------------------------------------------------------------------------------------- all of it


def measure(quick=False, rounds=None):
    """Return the tables of this section."""
    warnings.filterwarnings("ignore", message=".*nested tensor.*")
    with torch.inference_mode():
        rates = floor()
        rounds = rounds or (3 if quick else 7)
        rows = times(QUICK if quick else SETTINGS, rounds, rates)
        undone = ideas(QUICK[:2] if quick else SETTINGS[1:4:2], rounds)
    found = gpu()
    where = [{"device": "processor", "runs": "all kernels"},
             {"device": found[2] if found else "no GPU that torch can use",
              "runs": "the library's kernels" if found else "nothing"}]  # fmt: skip
    tables = {
        "devices": where,
        "what this machine can do": rates,
        f"kernels, float32, d_k = {WIDTH}, on {processors()} processors": rows,
        "slope of time over length, one head, dense": slopes(rows),
        "fast kernel in numpy, one idea undone": undone,
    }
    if sys.platform == "linux":
        tables["peak memory, one head, two threads, fresh processes"] = peaks(quick)
    tables["plot"] = [{"file": str(plot(rows, rates))}]
    return tables


def plot(rows, rates):
    """Draw time against length on log axes, dense and causal, with the floor; return the file."""
    from worked_examples.figures import costs
    from worked_examples.figures.style import use_book_style

    use_book_style()
    PLOTS.mkdir(parents=True, exist_ok=True)
    figure = costs.kernels(
        [row for row in rows if row["heads"] == 1],
        lambda L, causal: floor_seconds(rates, L, 1, causal),
    )
    file = PLOTS / "kernels.svg"
    figure.savefig(file, metadata={"Date": None})
    return file


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print one kernel's peak memory in MiB.")
    parser.add_argument("kernel")
    parser.add_argument("L", type=int)
    options = parser.parse_args()
    print(peak_of_this_process(options.kernel, options.L))
