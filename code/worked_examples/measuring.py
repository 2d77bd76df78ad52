"""What kernels take on this machine: seconds, and bytes at their peak.

Times depend on the machine and on what else it does; of several rounds the fastest is kept, as
another program can only make one slower. Bytes that numpy takes are counted by tracemalloc, and do
not depend on the machine.
"""

import math
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch.nn import functional

from worked_examples.attention import causal_mask, scaled_dot_product_attention
from worked_examples.blocked import blocked_attention
from worked_examples.fast import fast_attention
from worked_examples.plan import PART, ROWS
from worked_examples.sharing import on_a_line
from worked_examples.training import one_thread

__all__ = [
    "KERNELS",
    "compare_lengths",
    "device",
    "fastest_seconds",
    "floor_seconds",
    "ideas",
    "loop_and_product",
    "peak_bytes",
    "slope",
]


def _library(Q, K, V):
    parts = (torch.from_numpy(X)[None, None] for X in (Q, K, V))
    return functional.scaled_dot_product_attention(*parts)[0, 0].numpy()


LONGER = 8  # times; so much longer queries have scores that do not seem small

KERNELS = {
    "plain": lambda Q, K, V: scaled_dot_product_attention(Q, K, V)[0],
    "blocked": blocked_attention,
    "fast": lambda Q, K, V: fast_attention(Q, K, V, threads=1, fused=False),
    "library": _library,
}


def fastest_seconds(functions, rounds=5):
    """Time functions in turn, over several rounds, and keep the fastest of each.

    Parameters
    ----------
    functions : dict of str to callable
        Without arguments. Each is called once before, unmeasured.
    rounds : int

    Returns
    -------
    dict of str to float
        Seconds.
    """
    for function in functions.values():
        function()
    best = dict.fromkeys(functions, math.inf)
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def peak_bytes(function):
    """Measure the most that numpy has taken at one time while a function ran.

    Parameters
    ----------
    function : callable
        Without arguments; its result counts too. It runs in a thread of its own: memory that a
        thread keeps for its next call would otherwise count for the first call alone.

    Returns
    -------
    int
    """
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        with ThreadPoolExecutor(1) as fresh:
            fresh.submit(int).result()  # the thread itself does not count
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            result = fresh.submit(function).result()
            _, most = tracemalloc.get_traced_memory()
        del result
        return most - before
    finally:
        if not tracing:
            tracemalloc.stop()


def _library_bytes(function):
    """Add up all that torch's allocator hands out while a function runs; NaN if it cannot say."""
    try:
        from torch.autograd.profiler_legacy import profile

        with profile(profile_memory=True) as record:
            function()
        events = record.function_events
        return sum(max(event.self_cpu_memory_usage, 0) for event in events) or math.nan
    except (ImportError, AttributeError, RuntimeError):
        return math.nan


def compare_lengths(lengths, d_k=64, rounds=5, seed=0):
    """Measure each kernel over several lengths, one head, float32, on one thread.

    Parameters
    ----------
    lengths : sequence of int
    d_k : int
    rounds : int
    seed : int
        Of ``numpy.random.default_rng``, for Q, K and V.

    Returns
    -------
    list of dict
        One row a length and kernel: `L`, `kernel`, `seconds`, `bytes` (over the inputs, the output
        included; for the library, all that its allocator hands out), and `apart`, the largest
        difference of the output from the plain kernel's in float64.
    """
    rng = np.random.default_rng(seed)
    rows = []
    with one_thread():
        for L in lengths:
            exact_inputs = rng.normal(size=(3, L, d_k))
            inputs = exact_inputs.astype(np.float32)
            exact = KERNELS["plain"](*inputs.astype(float))
            calls = {name: _call(kernel, inputs) for name, kernel in KERNELS.items()}
            seconds = fastest_seconds(calls, rounds)
            for name, call in calls.items():
                count = _library_bytes if name == "library" else peak_bytes
                rows.append({
                    "L": L, "kernel": name, "seconds": seconds[name], "bytes": count(call),
                    "apart": float(np.abs(call() - exact).max()),
                })  # fmt: skip
    return rows


def device():
    """Say what these measurements ran on.

    Returns
    -------
    str
        The kernels take numpy's arrays, so it is the processor, also where torch has a GPU.
    """
    ran = "one thread of the processor"
    if torch.cuda.is_available():
        return f"{ran}; the GPU, {torch.cuda.get_device_name()}, had nothing to do"
    return ran


def floor_seconds(lengths, d_k=64, rounds=5, seed=0):
    """Measure what no kernel here can do without: its products and exponentials, at full rate.

    The rates are the best of several: one large matrix product, or many small ones as the fast
    kernel makes them; exp or exp2, in place, on numbers that fit into the cache.

    Parameters
    ----------
    lengths : sequence of int
    d_k : int
    rounds, seed : int

    Returns
    -------
    dict of str to list of float
        "products" and "products and exp": seconds a length, for one head.
    """
    rng = np.random.default_rng(seed)

    def draw(*shape):
        X = on_a_line(math.prod(shape), np.dtype(np.float32)).reshape(shape)
        X[...] = -rng.random(shape)
        return X

    n, x = 1024, draw(2**16)
    y, large, keys, queries = np.empty_like(x), draw(n, n), draw(8, PART, d_k), draw(d_k, ROWS)
    scores = draw(8, PART, ROWS)
    taken = fastest_seconds(
        {
            "large": lambda: large @ large,
            "small": lambda: np.matmul(keys, queries, out=scores),
            "exp": lambda: np.exp(x, out=y),
            "exp2": lambda: np.exp2(x, out=y),
        },
        4 * rounds,  # each is short, and a floor must not be missed
    )
    a_pair = 2 * d_k * min(taken["large"] / n**3, taken["small"] / (d_k * scores.size))
    a_power = min(taken["exp"], taken["exp2"]) / len(x)
    return {
        "products": [L * L * a_pair for L in lengths],
        "products and exp": [L * L * (a_pair + a_power) for L in lengths],
    }


def ideas(L=2048, d_k=64, rounds=5, seed=0):
    """Measure what each idea of the fast kernel is worth, one head, float32, on one thread.

    Blocks come with longer queries first, whose scores may be large. A row in brackets is no idea:
    the next one is to be compared with it.

    Parameters
    ----------
    L, d_k : int
    rounds, seed : int

    Returns
    -------
    list of dict
        A row a step, from the plain kernel on: `step`, `seconds`, and by how many `times` it is
        faster than the step before.
    """
    Q, K, V = np.random.default_rng(seed).normal(size=(3, L, d_k)).astype(np.float32)
    past = causal_mask(L)
    steps = {
        "plain kernel": lambda: KERNELS["plain"](Q, K, V),
        "one matrix, worked on in place": lambda: _in_place(Q, K, V),
        "blocks that fit into the cache": lambda: KERNELS["fast"](LONGER * Q, K, V),
        "no maximum, since no score is large": lambda: KERNELS["fast"](Q, K, V),
        "(a causal mask over all blocks)": lambda: fast_attention(
            Q, K, V, mask=past, threads=1, fused=False
        ),
        "no blocks of the future": lambda: fast_attention(
            Q, K, V, causal=True, threads=1, fused=False
        ),
    }
    seconds = fastest_seconds(steps, rounds)
    before = [seconds["plain kernel"], *seconds.values()]
    return [
        {"step": step, "seconds": taken, "times": earlier / taken}
        for (step, taken), earlier in zip(seconds.items(), before, strict=False)
    ]


def _in_place(Q, K, V):
    scores = (Q * np.float32(1 / math.sqrt(Q.shape[-1]))) @ K.T
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    return (scores @ V) / (scores @ np.ones((len(K), 1), dtype=scores.dtype))


def _call(kernel, inputs):
    return lambda: kernel(*inputs)


def slope(lengths, values):
    """Fit a straight line through the logarithms, and give its slope.

    A slope of 2 means four times as much at each doubling of the length, a slope of 1 twice as
    much, a slope of 0 no more.

    Parameters
    ----------
    lengths, values : sequences of numbers

    Returns
    -------
    float
        NaN where there are not two different lengths, or a value is not positive.

    Examples
    --------
    >>> round(slope([1, 2, 4], [3, 12, 48]), 9)
    2.0
    """
    x, y = np.asarray(lengths, dtype=float), np.asarray(values, dtype=float)
    if len(set(x)) < 2 or not ((x > 0) & (y > 0) & np.isfinite(y)).all():
        return math.nan
    return float(np.polyfit(np.log2(x), np.log2(y), 1)[0])


def loop_and_product(lengths, d=64, rounds=5, seed=0):
    """Time a recurrence of L steps beside one matrix product of as many multiply-adds.

    Parameters
    ----------
    lengths : sequence of int
    d : int
        Width of the state.
    rounds, seed : int

    Returns
    -------
    list of dict
        One row a length: `L`, `multiply-adds` of each, `loop` and `product` in seconds, and how
        many `times` the loop takes as long.
    """
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(d, d)) / np.sqrt(d)
    rows = []
    for L in lengths:
        X = rng.normal(size=(L, d))

        def loop(X=X):
            state = np.zeros(d)
            for x in X:  # a step needs the one before it
                state = np.tanh(state @ W + x)
            return state

        def product(X=X):
            return np.tanh(X @ W)

        seconds = fastest_seconds({"loop": loop, "product": product}, rounds)
        rows.append({
            "L": L, "multiply-adds": L * d * d, **seconds,
            "times": seconds["loop"] / max(seconds["product"], 1e-9),
        })  # fmt: skip
    return rows
