"""The fast kernel gives what the plain one gives, in little memory, with its helpers or without."""

import gc
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from worked_examples import fast, plan, sharing
from worked_examples.attention import (
    key_padding_mask,
    scaled_dot_product_attention,
)
from worked_examples.fast import fast_attention
from worked_examples.fused import fused_kernel
from worked_examples.measuring import peak_bytes

PRECISION = {np.float64: 1e-13, np.float32: 2e-6}
PATHS = pytest.mark.parametrize("fused", [False, True], ids=["numpy", "numba"])


def draw(rng, dtype, *shape):
    return rng.normal(size=shape).astype(dtype)


def masks(rng, kind, batch, L_q, L_k):
    return {
        "none": lambda: None,
        "full": lambda: rng.random((L_q, L_k)) < 0.6,
        "keys": lambda: rng.random(L_k) < 0.5,
        "queries": lambda: rng.random((L_q, 1)) < 0.5,
        "heads": lambda: rng.random((*batch, L_q, L_k)) < 0.3,
        "nothing": lambda: np.zeros((1, 1), dtype=bool),
    }[kind]()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(*[st.integers(1, 40)] * 2, *[st.integers(1, 9)] * 2),
    tile=st.tuples(*[st.integers(1, 45)] * 2),
    batch=st.sampled_from([(), (2,), (2, 3)]),
    dtype=st.sampled_from([np.float64, np.float32]),
    kind=st.sampled_from(["none", "full", "keys", "queries", "heads", "nothing"]),
    causal=st.booleans(),
    biased=st.booleans(),
    fused=st.booleans(),
    size=st.sampled_from([1.0, 1.0, 5.0]),
)
def test_it_equals_the_plain_kernel(
    seed, sizes, tile, batch, dtype, kind, causal, biased, fused, size
):
    rng = np.random.default_rng(seed)
    L_q, L_k, d_k, d_v = sizes
    Q, K, V = (draw(rng, dtype, *batch, *shape) for shape in ((L_q, d_k), (L_k, d_k), (L_k, d_v)))
    options = {
        "mask": masks(rng, kind, batch, L_q, L_k), "causal": causal, "scale": size / d_k**0.5,
        "bias": rng.normal(size=(L_q, L_k)) if biased else None,
    }  # fmt: skip
    plain, _ = scaled_dot_product_attention(Q, K, V, **options)
    ours = fast_attention(Q, K, V, rows=tile[0], columns=tile[1], fused=fused, **options)
    assert ours.dtype == plain.dtype == dtype
    assert ours.shape == plain.shape
    # Relative to the values that are averaged; scores five times as large are as much less exact.
    assert np.abs(ours - plain).max() <= PRECISION[dtype] * size * max(1, np.abs(V).max())


@PATHS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("batch", "L_q", "L_k"),
    [((), 255, 255), ((), 256, 256), ((), 257, 257), ((), 1025, 1025), ((2,), 700, 700),
     ((2, 4), 300, 300), ((40,), 33, 33), ((), 1, 2000), ((), 2000, 1), ((), 1300, 513),
     ((), 513, 1300)],
)  # fmt: skip
def test_at_the_sizes_where_its_ways_part(batch, L_q, L_k, causal, dtype, fused):
    """The last row of a tile and the first of the next, with the pool and without, in groups."""
    rng = np.random.default_rng(L_q)
    Q, K, V = (draw(rng, dtype, *batch, L, 16) for L in (L_q, L_k, L_k))
    mask = rng.random((L_q, L_k)) < 0.7
    for options in ({}, {"mask": mask, "bias": rng.normal(size=(L_q, 1))}):
        plain, _ = scaled_dot_product_attention(Q, K, V, causal=causal, **options)
        ours = fast_attention(Q, K, V, causal=causal, threads=3, fused=fused, **options)
        assert np.abs(ours - plain).max() <= PRECISION[dtype] * max(1, np.abs(V).max())


@PATHS
def test_leading_dimensions_broadcast(fused):
    rng = np.random.default_rng(0)
    Q, K, V = draw(rng, np.float32, 3, 1, 9, 4), draw(rng, np.float32, 2, 8, 4), draw(
        rng, np.float32, 5, 1, 1, 8, 2
    )  # fmt: skip
    mask = rng.random((2, 1, 8)) < 0.7
    plain, _ = scaled_dot_product_attention(Q, K, V, mask=mask)
    ours = fast_attention(Q, K, V, mask=mask, fused=fused, rows=4, columns=3)
    assert ours.shape == plain.shape == (5, 3, 2, 9, 2)
    np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-6)


@PATHS
@pytest.mark.parametrize("causal", [False, True])
def test_leading_dimensions_are_one_axis_where_they_can_be(causal, fused, monkeypatch):
    rng = np.random.default_rng(25)
    X = draw(rng, np.float32, 5, 4, 3, 70, 8)
    one, mask = draw(rng, np.float32, 70, 8), rng.random((5, 4, 3, 70, 70)) < 0.8
    asked, plans = [], fast.planned

    def planned(heads, *rest):
        asked.append(heads)
        return plans.__wrapped__(heads, *rest)

    planned.__wrapped__ = planned
    monkeypatch.setattr(fast, "planned", planned)
    for Q, K, V, seen, heads in (
        (X, X, X, None, (60,)), (X, one, one, mask, (60,)), (one, X, X, mask[0, 0, 0], (60,)),
        (X, X[:, :1], X, None, (5, 4, 3)), (X[:, ::2], X[:, 1::2], one, None, (5, 2, 3)),
        (X, X, X[:1], None, (5, 4, 3)), (X[:, :1], X[:, :1], X[:, :1], None, (5, 1, 3)),
    ):  # fmt: skip
        plain, _ = scaled_dot_product_attention(Q, K, V, mask=seen, causal=causal)
        ours = fast_attention(Q, K, V, mask=seen, causal=causal, fused=fused)
        assert ours.shape == plain.shape
        assert np.abs(ours - plain).max() <= 2e-6 * np.abs(X).max()
        assert asked.pop() == heads


@pytest.mark.parametrize("value", [np.nan, 1.0])
def test_a_call_leaves_nothing_for_the_garbage_collector(value):
    """A large score, a value that is no number: what was computed with goes at once."""
    Q, K, V = draw(np.random.default_rng(26), np.float32, 3, 2000, 16)
    Q[7] *= 1000
    V[3] *= np.float32(value)
    gc.collect()
    gc.disable()
    try:
        fast_attention(Q, K, V, threads=2, fused=False)
        assert not [X for X in gc.get_objects() if type(X) is fast._Call]
    finally:
        gc.enable()


@PATHS
def test_columns_that_lie_apart(fused):
    """Heads split from wide rows, and keys that stand as columns, are read as they lie."""
    X = draw(np.random.default_rng(1), np.float32, 300, 3, 16).swapaxes(0, 1)
    K = np.asfortranarray(X[0])
    plain, _ = scaled_dot_product_attention(X, K, X[::-1])
    ours = fast_attention(X, K, X[::-1], fused=fused)
    assert np.abs(ours - plain).max() <= 2e-6 * np.abs(X).max()


@PATHS
@pytest.mark.parametrize("size", [1e3, 6e3])
@pytest.mark.parametrize("causal", [False, True])
def test_large_scores(size, causal, fused):
    """As exact as the plain kernel: both are limited by how finely float32 tells such scores."""
    rng = np.random.default_rng(2)
    Q, K, V = (draw(rng, np.float32, 400, 16) for _ in range(3))
    Q *= np.float32(size / np.abs(Q @ K.T / 4).max())
    exact, _ = scaled_dot_product_attention(*(X.astype(float) for X in (Q, K, V)), causal=causal)
    plain, _ = scaled_dot_product_attention(Q, K, V, causal=causal)
    with np.errstate(all="raise", under="ignore"):
        ours = fast_attention(Q, K, V, causal=causal, columns=64, fused=fused)
    error, usual = np.abs(ours - exact).max(), np.abs(plain - exact).max()
    assert error <= max(4 * usual, 2e-6)
    assert error <= size * np.finfo(np.float32).eps * 8


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("tile", [(1, 1), (2, 3), (128, 512)])
def test_scores_near_a_thousand(dtype, tile):
    Q = np.array([[1.0], [-1.0]], dtype=dtype)
    K = np.array([[1e3], [999], [-1e3], [0]], dtype=dtype)
    V = np.array([[1.0], [2.0], [3.0], [4.0]], dtype=dtype)
    ours = fast_attention(Q, K, V, rows=tile[0], columns=tile[1])
    exact, _ = scaled_dot_product_attention(*(X.astype(float) for X in (Q, K, V)))
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours.astype(float), exact, rtol=4 * np.finfo(dtype).eps)


@PATHS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("junk", [1e30, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_nothing(junk, causal, dtype, fused):
    X = draw(np.random.default_rng(0), dtype, 5, 4)
    padded = np.vstack([X, np.full((3, 4), junk, dtype=dtype)])
    alone, _ = scaled_dot_product_attention(X, X, X, causal=causal)
    mask = key_padding_mask(5, 8)[None, :]
    for columns in (1, 3, 8):
        with np.errstate(all="raise"):
            ours = fast_attention(
                padded, padded, padded, mask=mask, causal=causal, rows=2, columns=columns,
                fused=fused,
            )  # fmt: skip
        np.testing.assert_allclose(ours[:5], alone, rtol=20 * np.finfo(dtype).eps)


@PATHS
@pytest.mark.parametrize("junk", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_the_future_may_hold_anything(junk, columns, fused):
    """No mask but `causal`: what is hidden by the diagonal may be neither number nor finite."""
    X = draw(np.random.default_rng(0), np.float32, 5, 1)
    K = X.copy()
    K[3] = junk
    plain, _ = scaled_dot_product_attention(X, K, X, causal=True)
    ours = fast_attention(X, K, X, causal=True, columns=columns, rows=2, fused=fused)
    np.testing.assert_allclose(ours, plain, rtol=1e-5)
    assert np.isfinite(ours[:3]).all()


@PATHS
def test_visible_infinities_and_nan_are_passed_on_as_the_plain_kernel_does(fused):
    V = np.array([[1.0, np.inf, 2.0], [1.0, 2.0, np.nan], [1.0, -np.inf, 3.0]], dtype=np.float32)
    Q = np.ones((3, 1), dtype=np.float32)
    for L, options in (
        (3, {}), (3, {"mask": np.tri(3, dtype=bool)}), (3, {"causal": True}),
        (2, {"causal": True}), (3, {"bias": np.arange(3.0)}),
    ):  # fmt: skip
        for rows in (1, 2):
            plain, _ = scaled_dot_product_attention(Q, Q[:L], V[:L], **options)
            ours = fast_attention(Q, Q[:L], V[:L], rows=rows, columns=2, fused=fused, **options)
            np.testing.assert_array_equal(ours, plain)


@PATHS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_see_nothing_are_zero(dtype, fused):
    X = draw(np.random.default_rng(1), dtype, 6, 2)
    ours = fast_attention(X, X[:3], X[:3], causal=True, rows=2, columns=1, fused=fused)
    np.testing.assert_array_equal(ours[:3], 0)
    assert (ours[3:] != 0).all()
    mask = np.ones((6, 6), dtype=bool)
    mask[4] = False
    mask[2, :3] = False  # its first tile is hidden: a start at -inf would give NaN
    ours = fast_attention(X, X, X, mask=mask, rows=2, columns=3, fused=fused)
    np.testing.assert_array_equal(ours[4], 0)
    plain, _ = scaled_dot_product_attention(X, X, X, mask=mask)
    np.testing.assert_allclose(ours, plain, rtol=1e-5)
    first_padded = np.array([False, True, True, True, True, True])
    ours = fast_attention(X, X, X, mask=first_padded, causal=True, rows=4, fused=fused)
    np.testing.assert_array_equal(ours[0], 0)


def test_a_number_of_threads_that_cannot_be_is_named():
    X = np.ones((2, 2))
    with pytest.raises(ValueError, match="threads .* got 0"):
        fast_attention(X, X, X, threads=0)


# -------------------------------------------------------------------------------------- memory


@PATHS
def test_memory_is_the_output_and_a_tile_a_thread(fused):
    """No matrix of scores, and none of what may be seen: over the output, nothing grows."""
    fused_kernel(fused)  # compiling takes more
    for L in (4096, 16384):
        X = np.ones((L, 16), dtype=np.float32)
        taken = peak_bytes(lambda X=X: fast_attention(X, X, X, causal=True, threads=2, fused=fused))
        most = (4 if fused else 8) * 2**20  # numpy's tiles are larger, and it copies the values
        assert taken - 2.1 * X.nbytes < most < L * L * 4


FRESH = """
import sys
from pathlib import Path

import numpy as np

from worked_examples.fast import fast_attention


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


fused = sys.argv[1] == "numba"
rng = np.random.default_rng(0)
fast_attention(*rng.normal(size=(3, 1024, 64)).astype(np.float32), threads=2, fused=fused)
Q, K, V = rng.normal(size=(3, 32768, 64)).astype(np.float32)
Path("/proc/self/clear_refs").write_text("5")  # count from here
before = peak()
output = fast_attention(Q, K, V, causal=True, threads=2, fused=fused)
print(peak() - before, output.nbytes / 2**20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
@pytest.mark.parametrize("path", ["numpy", "numba"])
def test_a_fresh_process_stays_small_at_32768(path):
    """The plain kernel would need 4 GiB for the scores alone."""
    ran = subprocess.run(
        [sys.executable, "-c", FRESH, path], capture_output=True, text=True, check=True
    )
    grown, output = map(float, ran.stdout.split())
    assert output <= grown + 1  # it was counted
    assert grown - output < 25


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(2, 7, 5), (3, 1)])
def test_values_get_a_column_of_ones(shape, dtype):
    V = draw(np.random.default_rng(5), dtype, *shape)
    ours = fast._with_ones(V)
    assert ours.dtype == dtype
    np.testing.assert_array_equal(ours[..., :-1], V)
    np.testing.assert_array_equal(ours[..., -1], 1)


def test_a_total_with_and_without_a_column_of_ones():
    """Few queries are not worth a copy of the values: their totals are a product of their own."""
    rng = np.random.default_rng(5)
    weights, values = rng.random((2, 3, 6, 4)), rng.normal(size=(2, 3, 6, 5))
    for V in (values, fast._with_ones(values)):
        output = np.full((2, 3, 6, 4), np.nan)
        fast._weigh(weights, V.swapaxes(-1, -2), output)
        np.testing.assert_allclose(
            output[..., :-1, :], values.swapaxes(-1, -2) @ weights, rtol=1e-14
        )
        np.testing.assert_allclose(output[..., -1, :], weights.sum(axis=-2), rtol=1e-14)


def test_the_measured_memory_has_what_a_thread_keeps():
    X = np.ones((1024, 16), dtype=np.float32)
    fast_attention(X, X, X, threads=1, fused=False)
    taken = peak_bytes(lambda: fast_attention(X, X, X, threads=1, fused=False))
    assert taken > 128 * 1024 * 4 + X.nbytes  # a tile, and the output


def test_what_a_call_gave_is_not_the_memory_that_is_kept():
    X = draw(np.random.default_rng(8), np.float32, 3, 40, 8)
    first = fast_attention(*X)
    before = first.copy()
    fast_attention(*-X)
    np.testing.assert_array_equal(first, before)


# ------------------------------------------------------------------------------------- helpers


@pytest.fixture
def forget():
    """Look for the optional packages again, before and after."""

    def clear():
        sharing._blas.cache_clear()
        fused_kernel.__globals__["_compiled"].cache_clear()

    clear()
    yield
    clear()


@pytest.fixture(scope="module")
def large():
    X = draw(np.random.default_rng(3), np.float32, 3, 1100, 16)
    return X, scaled_dot_product_attention(*X)[0]


@pytest.mark.parametrize("missing", ["numba", "scipy.linalg.cython_blas", "threadpoolctl"])
def test_without_a_helper_the_result_is_the_same(missing, monkeypatch, forget, large):
    X, plain = large
    monkeypatch.setitem(sys.modules, missing, None)  # importing it is an ImportError
    for threads in (None, 2):
        assert np.abs(fast_attention(*X, threads=threads) - plain).max() < 1e-5
    if missing != "threadpoolctl":
        assert fused_kernel() is None
        with pytest.raises(ImportError):
            fast_attention(*X, fused=True)
    else:
        assert sharing._blas() is None
        assert sharing.default_threads() == 1  # numpy's own threads cannot be held back


@PATHS
def test_small_sizes_start_no_threads(monkeypatch, fused):
    class Shared(Exception):
        pass

    def refuse(*what):
        raise Shared

    monkeypatch.setattr(fast, "together", refuse)
    X = np.ones((256, 8), dtype=np.float32)
    np.testing.assert_allclose(fast_attention(X, X, X, threads=4, fused=fused), 1, rtol=1e-6)
    # Compiled threads need not wait for each other, and half of the work is to be done if causal.
    least, causal = (363, 513) if fused else (513, 725)
    for L, options in ((least, {}), (causal, {"causal": True})):
        X = np.ones((L, 8), dtype=np.float32)
        with pytest.raises(Shared):
            fast_attention(X, X, X, threads=2, fused=fused, **options)
        fast_attention(X[1:], X[1:], X[1:], threads=2, fused=fused, **options)


def blas_threads():
    fused_kernel()  # brings a library of its own
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_numpys_threads_are_held_by_one_call_at_a_time_and_given_back(large):
    """Another thread's call waits: what ends first must not give back what the other needs."""
    before = blas_threads()
    X, plain = large
    results = []
    with sharing.one_blas_thread():
        other = threading.Thread(target=lambda: results.append(fast_attention(*X, threads=2)))
        other.start()
        other.join(0.2)
        assert other.is_alive()
        assert set(blas_threads()) == {1}
    other.join()
    assert np.abs(results[0] - plain).max() < 1e-5
    assert blas_threads() == before


@pytest.mark.parametrize("where", ["in the caller", "in another thread"])
def test_an_error_is_passed_on_and_numpys_threads_are_given_back(where, monkeypatch, large):
    before, caller = blas_threads(), threading.current_thread()
    begun, working = threading.Event(), []

    def fail(*tile):
        own = threading.current_thread() is caller
        if own == (where == "in the caller"):
            begun.set()
            raise MemoryError("no more")
        working.append(1)
        begun.wait(10)
        time.sleep(0.05)
        working.pop()

    monkeypatch.setattr(fast, "_powers", fail)
    for _ in range(5):
        with pytest.raises(MemoryError, match="no more"):
            fast_attention(*large[0], threads=2, fused=False)
        assert not working  # who still computes needs what is given back
        assert blas_threads() == before


FORKED = """
import os
import sys
import threading

import numpy as np

from worked_examples import fast, sharing

X = np.ones((1100, 16), dtype=np.float32)
fast.fast_attention(X, X, X, threads=3, fused=False)
begun, go_on = threading.Event(), threading.Event()


def hold():
    with sharing.one_blas_thread():
        begun.set()
        go_on.wait()


threading.Thread(target=hold).start()
begun.wait()
child = os.fork()
if not child:
    output = fast.fast_attention(X, X, X, threads=3, fused=False)
    os._exit(0 if np.abs(output - 1).max() < 1e-5 else 1)
go_on.set()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


COMPILING = """
import os
import sys
import threading

import numpy as np

from worked_examples import fast, fused

X = np.ones((300, 16), dtype=np.float32)
begun = threading.Event()
compiled = fused._compiled


def slow():
    begun.set()
    return compiled()


fused._compiled = slow
other = threading.Thread(target=lambda: fast.fast_attention(X, X, X, fused=True))
other.start()
begun.wait()
child = os.fork()
if not child:
    output = fast.fast_attention(X, X, X, fused=True)
    os._exit(0 if np.abs(output - 1).max() < 1e-5 else 1)
other.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_is_forked_while_another_thread_compiles_is_no_worse_for_it():
    """The compiler's own lock would stay locked in the child: the fork waits for it."""
    ran = subprocess.run([sys.executable, "-c", COMPILING], timeout=120, check=False)
    assert ran.returncode == 0


AT_THE_END = """
import atexit

import numpy as np

from worked_examples.fast import fast_attention

X = np.ones((1100, 16), dtype=np.float32)
atexit.register(lambda: print(fast_attention(X, X, X, threads=2).mean()))
"""


def test_it_computes_while_python_ends():
    ran = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("1.0\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_starts_threads_of_its_own():
    """The parent's are not there, nor is the one that held the lock: no use in waiting for them."""
    ran = subprocess.run([sys.executable, "-c", FORKED], timeout=120, check=False)
    assert ran.returncode == 0


def test_threads_are_kept(large):
    names = []
    for threads in (2, 2, 4):
        fast_attention(*large[0], threads=threads)
        names.append({t.name for t in threading.enumerate() if t.name.startswith("attention")})
    assert names[0]
    assert names[0] <= names[1] <= names[2]


def test_two_calls_at_once(large):
    X, plain = large
    before = blas_threads()
    results = [None] * 4

    def call(i):
        results[i] = fast_attention(*X, threads=2, fused=bool(i % 2))

    callers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for result in results:
        assert np.abs(result - plain).max() < 1e-5
    assert blas_threads() == before


def test_the_compiled_powers_of_hard_scores():
    """Beside numpy's: hidden, huge, tiny and undefined scores, and a query carried on."""
    rng = np.random.default_rng(4)
    tile = (rng.normal(size=(12, 37)) * 10.0 ** rng.integers(-3, 4, (12, 1))).astype(np.float32)
    tile[1] = -np.inf
    tile[2, :30] = -np.inf
    tile[3, 5] = np.nan
    tile[4, 6] = np.inf
    tile[5, 7] = -np.nan
    tile[6] = -(tile[6] ** 2) - 1
    tile[7] = 0.0
    tile[7, ::2] = -0.0
    tile[8] = np.linspace(-100, 0, 37)
    before = np.full((12, 1), np.finfo(np.float32).min, dtype=np.float32)
    before[9:] = 1.5
    ours = tile[None].swapaxes(-1, -2).copy()  # a row a key
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        new = fast._powers(ours, before.T[None], np.exp, False, [])
        shrink = np.exp(before.T - new)
        total = 2 * shrink + ours.sum(axis=1)
    compiled, largest = tile.T.copy(), before[:, 0].copy()
    part, factor = np.empty((2, 12), dtype=np.float32)
    fused_kernel(True).powers(compiled, part, largest, factor)
    # A query with a NaN or +inf is lost, and its total says so.
    spoilt = np.isin(np.arange(12), [3, 4, 5])
    for found in (total.ravel(), 2 * factor + part):
        np.testing.assert_array_equal(np.isnan(found), spoilt)
    for one, other in (
        (compiled, ours[0]), (factor, shrink.ravel()), (2 * factor + part, total.ravel())
    ):  # fmt: skip
        np.testing.assert_allclose(one[..., ~spoilt], other[..., ~spoilt], rtol=1e-6, atol=2e-31)
    assert (compiled[:, 1] == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_power_is_subnormal(dtype):
    """Processors may take many times as long for such numbers."""
    tiny = np.finfo(dtype).tiny
    tile = np.linspace(2 * np.log(tiny), 0, 1000).astype(dtype).reshape(1, 1, -1, 1)
    powers = tile.copy()
    assert fast._powers(powers, None, np.exp, False, []).item() == 0
    assert ((powers == 0) | (powers >= tiny)).all()
    np.testing.assert_allclose(powers, np.exp(tile), rtol=1e-5, atol=1e7 * tiny)
    assert 400 <= (powers == 0).sum() <= 650
    both = np.concatenate([tile, tile], axis=-1)
    both[..., 5, 1] = np.nan  # a query that is lost is no reason to be slow for the other
    with np.errstate(invalid="ignore"):
        fast._powers(both, None, np.exp, False, [])
    np.testing.assert_array_equal(both[..., :1], powers)
    assert np.isnan(both[..., 1]).all()


def test_the_compiled_exponential_is_exact_to_float32():
    x = np.linspace(-125, 32, 11 * 9091).astype(np.float32).reshape(11, -1)
    own, total = x.copy(), np.empty(x.shape[1], dtype=np.float32)
    fused_kernel(True).small_powers(own, total)
    exact = np.exp2(x.astype(float))
    assert (np.abs(own - exact) <= 2e-7 * exact).all()
    np.testing.assert_allclose(total, exact.sum(axis=0), rtol=1e-6)
    ends = np.array([[-np.inf, -1e30, -127, -126, 0, -0.0]], dtype=np.float32)
    fused_kernel(True).small_powers(ends, total[:6])
    np.testing.assert_array_equal(ends[0], [0, 0, 0, 2.0**-126, 1, 1])


@PATHS
@pytest.mark.parametrize(
    ("Q", "K", "V", "scale"),
    [
        ([0], [0, 0], [3e38, 3e38], 1.0),  # a sum of values would be infinite
        ([0], [0] * 300, [1e36] * 300, 1.0),
        ([3e38], [-0.5], [7], 2.0),  # a query times the scale would be
        ([1e35], [1e-35, 2e-35], [1, 2], 1e4),
        ([1e15], [1e-30, 2e-30], [1, 2], 1e24),
        ([1e-23], [1, -0.5, 0.3], [1, 2, 3], 1e15),  # the square of a query is none
        ([1e-23], [1, -0.5, 0.3], [1, 2, 3], -2e25),
        ([1], [1e-23, 0], [1, 2], 1e15),
        ([0], [1, 2], [1, 2], 1.7e308),
    ],
)
def test_at_the_ends_of_the_range(Q, K, V, scale, fused):
    Q, K, V = (np.array(X, dtype=np.float32)[:, None] for X in (Q, K, V))
    plain, _ = scaled_dot_product_attention(Q, K, V, scale=scale)
    ours = fast_attention(Q, K, V, scale=scale, fused=fused)
    np.testing.assert_allclose(ours, plain, rtol=1e-6)


def test_a_bias_beyond_the_range_is_named_and_nothing_else_is_said():
    X = np.ones((3, 2), dtype=np.float32)
    with np.errstate(all="raise"), pytest.raises(ValueError, match="bias"):
        fast_attention(X, X, X, bias=np.array([[1e39, 0, 0]]))


@PATHS
def test_what_is_there_once_is_copied_once(fused):
    """Keys that groups of heads share, as a view, with gaps between their rows."""
    fused_kernel(fused)
    X = draw(np.random.default_rng(11), np.float32, 2048, 4, 64)
    K = np.broadcast_to(X.swapaxes(0, 1)[:, None], (4, 16, 2048, 64))
    Q = draw(np.random.default_rng(12), np.float32, 4, 16, 1, 64)
    assert peak_bytes(lambda: fast_attention(Q, K, K, fused=fused)) < 4 * X.nbytes
    plain, _ = scaled_dot_product_attention(Q, K, K)
    assert np.abs(fast_attention(Q, K, K, fused=fused) - plain).max() < 1e-5


@PATHS
@pytest.mark.parametrize(
    ("Q", "K", "V"),
    [((0, 5, 4),) * 3, ((2, 0, 50, 4),) * 3, ((50, 4), (50, 4), (0, 50, 4))],
)
def test_no_heads_give_no_output(Q, K, V, fused):
    inputs = [np.zeros(shape, dtype=np.float32) for shape in (Q, K, V)]
    plain, _ = scaled_dot_product_attention(*inputs)
    assert fast_attention(*inputs, fused=fused).shape == plain.shape


def test_rows_that_are_too_many_take_no_more_memory():
    X = draw(np.random.default_rng(27), np.float32, 3000, 16)
    taken = peak_bytes(lambda: fast_attention(X, X, X, causal=True, rows=3000, fused=False))
    assert taken < 64 * 2**20  # a mask of all queries would have 36 MiB, and more while it is made
    plain, _ = scaled_dot_product_attention(X, X, X, causal=True)
    ours = fast_attention(X, X, X, causal=True, rows=3000, fused=False)
    assert np.abs(ours - plain).max() <= 4e-6 * np.abs(X).max()


def test_a_value_that_is_no_number_takes_no_more_memory_than_a_few_heads():
    rng = np.random.default_rng(28)
    Q, K, V = (draw(rng, np.float32, 16, n, 8) for n in (64, 20000, 20000))
    V[:, -1] = np.nan
    mask = np.arange(20000) < 19999
    taken = peak_bytes(lambda: fast_attention(Q, K, V, mask=mask, threads=1, fused=False))
    assert taken < 16 * 64 * 20000 * 4  # once the scores of all; the plain kernel has them thrice
    assert np.isfinite(fast_attention(Q, K, V, mask=mask, fused=False)).all()


def test_wide_values_take_no_more_memory_than_they_need():
    rng = np.random.default_rng(13)
    Q, K, V = (draw(rng, np.float32, 8, n, d) for n, d in ((64, 8), (2304, 8), (2304, 1500)))
    output, _ = scaled_dot_product_attention(Q, K, V)
    for threads in (1, 2):
        taken = peak_bytes(lambda n=threads: fast_attention(Q, K, V, threads=n, fused=False))
        assert taken - output.nbytes < threads * 36 * 2**20
    ours = fast_attention(Q, K, V, fused=False)
    assert np.abs(ours - output).max() < 2e-6 * np.abs(V).max()


def test_values_that_all_heads_share_get_their_ones_once():
    X = draw(np.random.default_rng(14), np.float32, 2048, 64)
    Q, K = (
        draw(np.random.default_rng(15), np.float32, 64, 128, 64),
        np.broadcast_to(X, (64, 2048, 64)),
    )
    taken = peak_bytes(lambda: fast_attention(Q, K, K, threads=1, fused=False))
    assert taken < Q.nbytes + 24 * 2**20 < K.nbytes  # as if there were one for each head
    plain, _ = scaled_dot_product_attention(Q, K, K)
    assert np.abs(fast_attention(Q, K, K, fused=False) - plain).max() < 1e-5


@PATHS
@pytest.mark.parametrize("L", [300, 1100])
def test_a_call_within_a_call(L, fused, monkeypatch):
    """As a signal's handler makes one: it neither waits for the outer one nor takes its memory."""
    rng = np.random.default_rng(16)
    outer, inner = draw(rng, np.float32, 3, L, 32), draw(rng, np.float32, 3, 1100, 16)
    wanted = [scaled_dot_product_attention(*X)[0] for X in (outer, inner)]
    caller, name = threading.current_thread(), "_fused" if fused else "_weigh"
    original, found = getattr(fast, name), []

    def interrupted(*what):
        if threading.current_thread() is caller and not found:
            found.append(None)
            found[0] = fast_attention(*inner, threads=2, fused=fused)
        return original(*what)

    monkeypatch.setattr(fast, name, interrupted)
    ours = fast_attention(*outer, threads=2, fused=fused)
    for one, other in zip((ours, *found), wanted, strict=True):
        assert np.abs(one - other).max() < 1e-5
    assert sharing._held.calls == 0


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no wider float")
def test_scores_that_float64_could_not_raise():
    Q = draw(np.random.default_rng(17), np.longdouble, 20, 4)
    plain, _ = scaled_dot_product_attention(Q, Q, Q, scale=20000.0)
    np.testing.assert_allclose(fast_attention(Q, Q, Q, scale=20000.0), plain, rtol=1e-12)


@PATHS
@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 3e38), (np.float64, 1.7e308)])
def test_a_scale_near_the_end_of_the_range(dtype, scale, fused):
    Z, V = np.zeros((4, 1), dtype=dtype), np.ones((4, 1), dtype=dtype)
    np.testing.assert_array_equal(fast_attention(Z, Z, V, scale=scale, fused=fused), 1)


def test_many_values_for_one_pair_of_queries_and_keys_have_threads(monkeypatch):
    started = []
    monkeypatch.setattr(fast, "together", lambda work, threads: started.append(threads))
    X, V = np.ones((300, 8), dtype=np.float32), np.ones((40, 300, 8), dtype=np.float32)
    fast_attention(X, X, V, threads=2, fused=False)
    assert started == [2]


def test_heads_of_few_scores_share_a_tile(monkeypatch):
    asked = []
    monkeypatch.setattr(fast, "fused_kernel", asked.append)
    for L in (63, 64):
        X = np.ones((L, 4), dtype=np.float32)
        fast_attention(X, X, X)
        fast_attention(X, X, X, fused=True)
    assert asked == [False, True, None, True]


@PATHS
def test_the_longest_row(fused):
    compiled = fused_kernel(fused)
    X = draw(np.random.default_rng(9), np.float32, 2, 70, 19)
    X[1, 33] *= 9
    exact = np.linalg.norm(X.astype(float), axis=-1).max()
    for same in (X, X[:, ::-1], X.swapaxes(0, 1), np.broadcast_to(X, (3, *X.shape))):
        assert fast._longest(same, compiled) == pytest.approx(exact, rel=1e-6)
    for bad in (np.nan, np.inf, -np.inf, 1e30):  # the last one's square is infinite
        X[0, 4, 2] = bad
        assert not np.isfinite(fast._longest(X, compiled))


def apart(X):
    """Give the same numbers, not side by side."""
    return np.stack([X, X], axis=-1)[..., 0]


def between_addresses(X):
    """Give the same numbers, none at an address that is a multiple of its size."""
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    raw[1:] = np.frombuffer(X.tobytes(), dtype=np.uint8)
    found = raw[1:].view(X.dtype).reshape(X.shape)
    assert found.flags.aligned == (X.itemsize == 1)
    return found


def locked(X):
    found = X.copy()
    found.flags.writeable = False
    return found


def of_wider_rows(X):
    return np.concatenate([X, X], axis=-1)[..., : X.shape[-1]]


@PATHS
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "lie", [apart, between_addresses, locked, of_wider_rows, np.asfortranarray]
)
def test_however_inputs_lie_in_memory(lie, causal, fused):
    rng = np.random.default_rng(10)
    Q, K, V, bias = (draw(rng, np.float32, 2, *s) for s in ((90, 7), (70, 7), (70, 5), (90, 70)))
    mask = rng.random((2, 90, 70)) < 0.7
    for options in ({}, {"mask": mask}, {"mask": mask, "bias": bias}):
        plain, _ = scaled_dot_product_attention(Q, K, V, causal=causal, **options)
        lying = {name: lie(X) for name, X in options.items()}
        ours = fast_attention(lie(Q), lie(K), lie(V), causal=causal, fused=fused, rows=40, **lying)
        assert np.abs(ours - plain).max() <= 2e-6 * np.abs(V).max()


# ------------------------------------------------------------------- without the largest score


LIMIT = {np.float32: 22.18, np.float64: 177.4}  # a quarter of what exponents reach


@PATHS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("part", [0.2, 0.999, 1.001, 3.0])
@pytest.mark.parametrize("value", [1e-36, 1e-12, 1.0, 1e12, 1e36])
def test_on_both_sides_of_small(part, value, dtype, fused):
    """Scores all near the lowest, or all near the highest: nothing may run out of range."""
    rng = np.random.default_rng(5)
    Q = np.abs(draw(rng, dtype, 90, 3)) + 1
    K = Q[:70] / np.linalg.norm(Q[:70], axis=-1, keepdims=True)
    Q /= np.linalg.norm(Q, axis=-1).max()
    V = draw(rng, dtype, 70, 2) * dtype(value)
    for sign in (1, -1):
        options = {"scale": sign * part * LIMIT[dtype], "mask": rng.random((90, 70)) < 0.9}
        exact, _ = scaled_dot_product_attention(*(X.astype(float) for X in (Q, K, V)), **options)
        with np.errstate(all="raise", under="ignore"):
            ours = fast_attention(Q, K, V, fused=fused, **options)
        error = np.abs(ours - exact).max() / np.abs(V).max()
        assert error <= PRECISION[dtype] * max(1, part * LIMIT[dtype] / 5)


@pytest.mark.parametrize(
    ("score", "value", "small"),
    [(22.1, 1.0, True), (-22.1, 1.0, True), (22.3, 1.0, False), (-22.3, 1.0, False),
     (0.0, 4e9, True), (0.0, 5e9, False), (0.0, 2.4e-10, True), (0.0, 2.2e-10, False),
     (0.0, 0.0, False), (np.nan, 1.0, False), (1.0, np.nan, False), (np.inf, 1.0, False),
     (1.0, np.inf, False)],
)  # fmt: skip
def test_what_is_small(score, value, small):
    assert fast._are_small(score, value, np.dtype(np.float32)) is small


@pytest.mark.parametrize(
    ("change", "small"),
    [({}, True), ({"scale": -1e3}, False), ({"bias": 1.0}, False), ({"scale": 0}, True)],
)
@pytest.mark.parametrize("where", ["nowhere", "Q", "K", "V"])
def test_a_maximum_is_looked_for_where_a_score_is_large(change, small, where, monkeypatch):
    inputs = dict(zip("QKV", draw(np.random.default_rng(6), np.float32, 3, 2, 40, 8), strict=True))
    if where != "nowhere":
        inputs[where][1, 7, 3] = -1e30 if where == "V" else np.nan
    asked = []

    def powers(*tile):
        largest = original(*tile)
        asked.append(largest is None)
        return largest

    original = fast._powers
    monkeypatch.setattr(fast, "_powers", powers)
    fast_attention(**inputs, fused=False, **change)
    assert asked[0] is small  # of a few queries and keys it seems so
    assert asked[-1] is (small and where == "nowhere")
    assert len(set(asked)) == len(asked)


@pytest.fixture
def counted(monkeypatch):
    """Count how often the numbers are all looked at, and the tiles with a maximum and without."""
    found = {"looks": 0, True: 0, False: 0}
    powers, allowed = fast._powers, fast._allowed

    def count(*tile):
        largest = powers(*tile)
        found[largest is not None] += 1
        return largest

    def look(*numbers):
        found["looks"] += 1
        return allowed(*numbers)

    monkeypatch.setattr(fast, "_powers", count)
    monkeypatch.setattr(fast, "_allowed", look)
    return found


@pytest.mark.parametrize("factor", [40.0, -40.0, np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_score_that_few_do_not_show(factor, dtype, counted):
    """One query is far longer than those that were looked at: its block is computed again."""
    Q, K, V = draw(np.random.default_rng(18), dtype, 3, 2, 700, 16)
    Q[1, 333] *= dtype(factor * (8 if dtype == np.float64 else 1))
    assert fast._seem_small(Q, K, V, 0.25)
    with np.errstate(all="raise", under="ignore"):
        ours = fast_attention(Q, K, V, threads=2, fused=False)
    with np.errstate(invalid="ignore"):
        plain, _ = scaled_dot_product_attention(Q, K, V)
    finite = np.isfinite(plain)
    assert np.isnan(ours[~finite]).all()
    error = np.abs(ours - plain)[finite].max()
    assert error <= PRECISION[dtype] * abs(min(factor, 40.0)) * np.abs(V).max()
    assert 1 <= counted["looks"] <= 2  # once a thread, at most
    assert counted[False] >= 1


def test_a_score_so_low_that_its_total_would_vanish(counted):
    """All that a query sees is far below 0: without the maximum its weights would be 0 / 0."""
    Q, K, V = draw(np.random.default_rng(19), np.float32, 3, 300, 4)
    K[:, 0], Q[:, 0] = 1, 0
    Q[123] = [-400, 0, 0, 0]
    assert fast._seem_small(Q, K, V, 0.5)
    plain, _ = scaled_dot_product_attention(Q, K, V)
    assert np.abs(fast_attention(Q, K, V, fused=False) - plain).max() <= 2e-6 * np.abs(V).max()
    assert counted[True] >= 1


def test_a_query_that_sees_nothing_is_no_reason_for_the_maximum(counted):
    """Its total is 0, but no score is large: what was computed without the maximum stays."""
    X = draw(np.random.default_rng(20), np.float32, 300, 4)
    ours = fast_attention(X, X, X, mask=np.arange(300)[:, None] > 0, fused=False)
    np.testing.assert_array_equal(ours[0], 0)
    assert counted["looks"] == 1
    assert counted[True] == 0


@PATHS
@pytest.mark.parametrize("value", [3e38, -1e30, np.nan, np.inf])
def test_values_that_would_run_out_of_range(value, fused):
    """Scores are small, and so are the values that were looked at; one other is not."""
    Q, K, V = draw(np.random.default_rng(21), np.float32, 3, 300, 4)
    V[222, 1] = value
    assert fast._seem_small(Q, K, V, 0.5)
    with np.errstate(invalid="ignore", over="ignore"):
        plain, _ = scaled_dot_product_attention(Q, K, V)
    ours = fast_attention(Q, K, V, fused=fused)
    np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-6)
    hidden = fast_attention(Q, K, V, mask=np.arange(300) != 222, fused=fused)
    assert np.isfinite(hidden).all()


def test_a_query_and_a_scale_that_leave_the_range_together():
    """The sample says nothing of it; then the plain kernel takes over."""
    Q, K, V = draw(np.random.default_rng(22), np.float32, 3, 300, 4)
    Q *= np.float32(1e-20)
    K *= np.float32(1e-12)
    Q[111] = 1e24
    assert fast._seem_small(Q, K, V, 1e15)
    with np.errstate(invalid="ignore", over="ignore"):
        plain, _ = scaled_dot_product_attention(Q, K, V, scale=1e15)
    assert np.isfinite(plain).all()
    ours = fast_attention(Q, K, V, scale=1e15, fused=False)
    np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-5)


def test_later_turns_know_what_one_has_found(counted):
    """One thread, several turns: the first is computed again, the others with the maximum."""
    Q, K, V = draw(np.random.default_rng(23), np.float32, 3, 2560, 4)
    Q[-130] *= 100  # in the first turn
    assert fast._seem_small(Q, K, V, 0.5)
    turns = plan.planned((1,), 2560, 2560, 4, 4, False, 1, None, 2304, False).turns
    tiles = [sum(-(-block.end // 2304) for block in turn) for turn in turns]
    assert len(turns) > 2
    ours = fast_attention(Q, K, V, threads=1, fused=False)
    assert (counted["looks"], counted[False], counted[True]) == (1, tiles[0], sum(tiles))
    exact, _ = scaled_dot_product_attention(*(X.astype(float) for X in (Q, K, V)))
    assert np.abs(ours - exact).max() <= 1e-5 * np.abs(V).max()


def test_a_mask_of_the_future_that_is_too_large_is_not_kept():
    X = draw(np.random.default_rng(24), np.float32, 2048, 4)
    fast._future.cache_clear()
    ours = fast_attention(X, X, X, causal=True, rows=1024, threads=1, fused=False)
    assert fast._future.cache_info().currsize == 0
    fast_attention(X, X, X, causal=True, rows=64, threads=1, fused=False)
    assert fast._future.cache_info().currsize == 1
    plain, _ = scaled_dot_product_attention(X, X, X, causal=True)
    assert np.abs(ours - plain).max() <= 4e-6 * np.abs(X).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers_of_two_or_of_e(dtype, monkeypatch):
    Q, K, V = draw(np.random.default_rng(7), dtype, 3, 200, 8)
    results = []
    for quick in (True, False):
        monkeypatch.setattr(fast, "_has_quick_exp2", lambda dtype, quick=quick: quick)
        results.append(fast_attention(Q, K, V, causal=True, fused=False))
    assert (results[0] != results[1]).any()  # two ways
    plain, _ = scaled_dot_product_attention(Q, K, V, causal=True)
    for ours in results:
        assert np.abs(ours - plain).max() <= PRECISION[dtype] * np.abs(V).max()


@pytest.mark.parametrize("numpys", ["both wide", "exp alone", "says nothing"])
def test_exp2_is_taken_where_numpy_has_it_as_wide_as_exp(numpys, monkeypatch):
    class introspect:
        @staticmethod
        def opt_func_info(names, dtype):
            other = "baseline" if numpys == "exp alone" else "X86_V4"
            return {"exp": {"ff": {"current": "X86_V4"}}, "exp2": {"ff": {"current": other}}}

    monkeypatch.setattr(np.lib, "introspect", introspect, raising=False)
    if numpys == "says nothing":
        monkeypatch.delattr(np.lib, "introspect")
    assert fast._has_quick_exp2.__wrapped__(np.dtype(np.float32)) == (numpys == "both wide")


@PATHS
@pytest.mark.parametrize("L", [256, 4096])
def test_equal_weights_are_summed_to_the_last_digits(L, fused):
    """Equal terms are rounded the same way each time: one long sum of them would drift."""
    V = np.ones((L, 64), dtype=np.float32)
    for score in np.linspace(-2, 2, 9):
        Q = np.full((8, 64), score / 8, dtype=np.float32)
        ours = fast_attention(Q, V, V, fused=fused)
        assert np.abs(ours - 1).max() <= 2e-6


@pytest.mark.parametrize(("n", "size"), [(1, 4), (4, 4), (11, 4), (12, 4), (3, 7)])
def test_parts_are_views_that_cover_all(n, size):
    keys, tile = np.zeros((2, 1, 3 * n, 5))[:, :, ::3], np.zeros((2, 3, n, 4))
    values, products = np.zeros((2, 1, 6, n)), np.zeros((2, 3, -(-n // size), 6, 4))
    for count, parts in enumerate(fast._in_parts(size, keys, tile, values, products), 1):
        k, s, v, p = parts
        assert k.shape[2] == s.shape[2] == v.shape[2] == p.shape[2]
        assert k.shape[3] == s.shape[3] == v.shape[4] <= size
        for part in parts:
            part += count
    for array in (keys, tile, values, products):
        assert set(np.unique(array)) == set(range(1, count + 1))


@PATHS
@pytest.mark.parametrize("width", [200, 700])
def test_wide_heads(width, fused):
    """Products of wide vectors take fewer keys at a time."""
    Q, K, V = draw(np.random.default_rng(8), np.float32, 3, 150, width)
    plain, _ = scaled_dot_product_attention(Q, K, V)
    assert np.abs(fast_attention(Q, K, V, fused=fused) - plain).max() <= 2e-6 * np.abs(V).max()
