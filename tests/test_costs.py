"""The numbers of the chapter on what the length costs, and the ways out that it shows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worked_examples import costs, fast, heads, measuring
from worked_examples.attention import (
    AttentionParameters,
    multi_head_attention,
    scaled_dot_product_attention,
)
from worked_examples.cache import KeyValueCache, decode
from worked_examples.figures import costs as drawings
from worked_examples.linear import (
    State,
    elu_features,
    linear_attention,
    linear_attention_by_recurrence,
    linear_attention_by_weights,
    selection_table,
)
from worked_examples.lookup import SELECT_KEYS, SELECT_QUERIES
from worked_examples.views.costs import length
from worked_examples.views.markup import byte_size, scaled
from worked_examples.window import window_attention, window_mask, window_pairs, window_reach


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# ------------------------------------------------------------------------------------ counting


@pytest.mark.parametrize(
    ("count", "formula"),
    [
        (costs.score_multiply_adds, lambda L, d: L * L * d),
        (costs.average_multiply_adds, lambda L, d: L * L * d),
        (costs.projection_multiply_adds, lambda L, d: 4 * L * d * d),
        (lambda L, d: costs.feed_forward_multiply_adds(L, d, 3 * d), lambda L, d: 6 * L * d * d),
        (costs.recurrent_multiply_adds, lambda L, d: 2 * L * d * d),
    ],
)
@pytest.mark.parametrize(("L", "d"), [(1, 1), (7, 5), (1024, 512), (8192, 512)])
def test_multiply_adds(count, formula, L, d):
    assert count(L, d) == formula(L, d)


class Counting(np.ndarray):
    """An array that counts the multiply-adds of the matrix products it takes part in."""

    total = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [np.asarray(x) for x in inputs]
        if ufunc is np.matmul:
            a, b = plain
            batch = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
            Counting.total += batch * a.shape[-2] * a.shape[-1] * b.shape[-1]
        options.pop("out", None)
        result = getattr(ufunc, method)(*plain, **options)
        return result.view(Counting) if isinstance(result, np.ndarray) else result


@pytest.mark.parametrize(("L", "d", "h"), [(5, 12, 3), (9, 8, 1), (1, 4, 4)])
def test_the_kernel_does_as_many_as_are_counted(L, d, h, monkeypatch):
    import worked_examples.attention as attention

    unchanged = attention._as_floats
    monkeypatch.setattr(
        attention,
        "_as_floats",
        lambda **named: (
            [x.view(Counting) for x in unchanged(**named)[0]],
            unchanged(**named)[1],
        ),
    )
    Counting.total = 0
    multi_head_attention(normal(L, d), AttentionParameters(*[np.eye(d)] * 4), h)
    counted = costs.score_multiply_adds(L, d) + costs.average_multiply_adds(L, d)
    assert Counting.total == counted + costs.projection_multiply_adds(L, d)


def test_four_times_the_context_is_sixteen_times_the_attention():
    for row in costs.work_table(2048, 512, 2048):
        assert row["at 4 L"] == (16 if row["part"] in ("scores", "averages") else 4)
    growth = costs.growth_table()
    for one, next_one in zip(growth, growth[1:], strict=False):
        assert next_one["L"] == 4 * one["L"]
        assert next_one["scores and averages"] == 16 * one["scores and averages"]
        assert next_one["projections"] == 4 * one["projections"]
        assert next_one["recurrent layer"] == 4 * one["recurrent layer"]
    assert [round(row["share"], 4) for row in growth] == [0.04, 0.1429, 0.4, 0.7273]


@pytest.mark.parametrize(("d", "H"), [(512, 2048), (1, 1), (768, 3072), (3, 10)])
def test_where_scores_and_averages_overtake(d, H):
    at = costs.overtaking_lengths(d, H)
    assert list(at.values()) == [d, 2 * d, 2 * d + H]
    for L, others in (
        (at["a recurrent layer"], ["recurrent layer"]),
        (at["the projections"], ["projections"]),
        (at["the rest of the block"], ["projections", "feed-forward"]),
    ):
        before, there, after = costs.growth_table([max(L - 1, 1), L, L + 1], d, H)
        difference = [
            row["scores and averages"] - sum(row[name] for name in others)
            for row in (before, there, after)
        ]
        assert difference[1] == 0
        assert difference[2] > 0
        assert difference[0] < 0 or L == 1


def test_the_memory_wall():
    assert costs.scores(8192) == 67_108_864
    assert costs.score_bytes(8192) == 256 * 2**20
    table = costs.memory_table()
    for one, next_one in zip(table, table[1:], strict=False):
        assert next_one["one head (MiB)"] == 4 * one["one head (MiB)"]
        assert next_one["cache (MiB)"] == 2 * one["cache (MiB)"]
    assert costs.score_bytes(8192, 8, 6) == 12 * 2**30
    assert costs.cache_bytes(8192, 512, 6) == 192 * 2**20


def test_heads_count_with_the_same_functions():
    layer = heads.layer_costs(512, 8, 1024, 4096, number_bytes=2)
    assert layer["scores and averages"] == 2 * costs.score_multiply_adds(1024, 512, 4096)
    assert layer["projections"] == costs.projection_multiply_adds(1024, 512, 4096)
    assert layer["weight bytes"] == costs.score_bytes(1024, 8, 1, 2, 4096)


@pytest.mark.parametrize(("L", "d"), [(1, 3), (6, 4)])
def test_decoding_adds_up_step_by_step(L, d):
    cached = sum(4 * d * d + 2 * t * d for t in range(1, L + 1))
    again = sum(4 * t * d * d + 2 * t * t * d for t in range(1, L + 1))
    assert costs.decoding_multiply_adds(L, d) == cached
    assert costs.decoding_multiply_adds(L, d, cache=False) == again


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: costs.score_multiply_adds(0, 4), "L must .* got 0"),
        (lambda: costs.score_multiply_adds(4, 4, 0), "L_k must .* got 0"),
        (lambda: costs.projection_multiply_adds(4, 2.5), "d must .* got 2.5"),
        (lambda: costs.scores(4, h=0), "h must .* got 0"),
        (lambda: costs.score_bytes(4, number_bytes=0), "number_bytes must .* got 0"),
        (lambda: costs.cache_bytes(0, 4), "L must .* got 0"),
        (lambda: costs.cache_bytes(math.nan, 4), "L must .* got nan"),
        (lambda: costs.decoding_multiply_adds(-1, 4), "L must .* got -1"),
        (lambda: costs.overtaking_lengths(4, 0), "H must .* got 0"),
        (lambda: window_pairs(0, 3), "L must .* got 0"),
        (lambda: window_mask(3, 0), "w must .* got 0"),
        (lambda: window_reach(3, 0), "layers must .* got 0"),
    ],
)
def test_sizes_that_cannot_be_are_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


# -------------------------------------------------------------------------------------- window


@pytest.mark.parametrize(("L", "w"), [(1, 1), (6, 1), (6, 3), (6, 6), (5, 64), (64, 7)])
def test_a_window_equals_its_mask(L, w):
    Q, K, V = normal(3, 2, L, 4)
    right, weights = scaled_dot_product_attention(Q, K, V, mask=window_mask(L, w))
    np.testing.assert_allclose(window_attention(Q, K, V, w), right, rtol=1e-12, atol=1e-13)
    assert (weights[0] > 0).sum() == window_pairs(L, w) == window_mask(L, w).sum()


def test_a_window_needs_as_many_keys_as_queries():
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(4, 2\)"):
        window_attention(np.ones((3, 2)), np.ones((4, 2)), np.ones((4, 2)), 2)


@pytest.mark.parametrize(("w", "layers"), [(1, 3), (3, 1), (3, 4)])
def test_windows_reach_further_layer_by_layer(w, layers):
    L = 20
    X, other = 0.1 * normal(L, 3), 0.1 * normal(L, 3, seed=1)
    other[1:] = X[1:]
    for _ in range(layers):
        X, other = (Y + window_attention(Y, Y, Y, w) for Y in (X, other))
    last = int(np.flatnonzero(np.abs(X - other).max(axis=1) > 0).max())
    assert last == window_reach(w, layers)


# ---------------------------------------------------------------------------- linear attention


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(*[st.integers(1, 12)] * 3),
    decay=st.sampled_from([1.0, 0.9, 0.3]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_two_forms_are_equal(seed, sizes, decay, dtype):
    L, d_k, d_v = sizes
    rng = np.random.default_rng(seed)
    Q, K = rng.normal(size=(2, 2, L, d_k)).astype(dtype)
    V = rng.normal(size=(2, L, d_v)).astype(dtype)
    parallel, weights = linear_attention_by_weights(Q, K, V, causal=True, decay=decay)
    stepwise, state = linear_attention_by_recurrence(Q, K, V, decay=decay)
    assert parallel.dtype == stepwise.dtype == dtype
    precision = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(stepwise, parallel, rtol=0, atol=precision * 10)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=precision * 10)
    assert state.summed.shape == (2, d_k, d_v)  # whatever L was
    assert state.total.shape == (2, d_k)


def test_over_all_keys_the_products_may_change_order():
    Q, K, V = normal(5, 3), normal(9, 3, seed=1), normal(9, 2, seed=2)
    by_weights, _ = linear_attention_by_weights(Q, K, V)
    np.testing.assert_allclose(linear_attention(Q, K, V), by_weights, rtol=1e-12)


def test_a_recurrence_goes_on_where_it_ended():
    Q, K, V = normal(3, 8, 4)
    whole, end = linear_attention_by_recurrence(Q, K, V)
    first, state = linear_attention_by_recurrence(Q[:3], K[:3], V[:3])
    rest, last = linear_attention_by_recurrence(Q[3:], K[3:], V[3:], state=state)
    np.testing.assert_allclose(np.vstack([first, rest]), whole, rtol=1e-13)
    np.testing.assert_allclose(last.summed, end.summed)
    assert state.summed is not last.summed


def test_what_it_selects_by_hand():
    rows = selection_table(SELECT_QUERIES["an animal"], SELECT_KEYS)
    assert [row["features"] for row in rows] == pytest.approx([23, 14, 15])
    assert [row["linear"] for row in rows] == pytest.approx([0.4423, 0.2692, 0.2885], abs=5e-5)
    assert [row["softmax"] for row in rows] == pytest.approx([0.9848, 0.0055, 0.0097], abs=5e-5)


def test_features_are_positive_and_do_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        x = elu_features(np.array([-1e3, -1.0, 0.0, 1e3], dtype=np.float32))
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, [0, math.exp(-1), 1, 1001], rtol=1e-6)


def test_a_row_without_any_feature_is_zero():
    Q = K = np.full((2, 1), -1e6)
    V = np.ones((2, 1))
    for output in (
        linear_attention_by_weights(Q, K, V)[0],
        linear_attention(Q, K, V),
        linear_attention_by_recurrence(Q, K, V)[0],
    ):
        np.testing.assert_array_equal(output, 0)


def test_nan_stays_where_it_came_in():
    Q, K, V = normal(3, 4, 2)
    K[2, 0] = np.nan
    output, _ = linear_attention_by_recurrence(Q, K, V)
    np.testing.assert_array_equal(np.isnan(output).any(axis=1), [False, False, True, True])


X3 = np.ones((3, 2))


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: linear_attention(np.ones((0, 2)), X3, X3), r"\(0, 2\)"),
        (lambda: linear_attention(X3, np.ones((3, 5)), X3), r"\(3, 5\)"),
        (lambda: linear_attention_by_recurrence(X3[:2], X3, X3), r"Q \(2, 2\)"),
        (lambda: linear_attention_by_recurrence(X3, X3, X3, decay=0), "got 0"),
        (lambda: linear_attention_by_recurrence(X3, X3, X3, decay=math.nan), "got nan"),
        (lambda: linear_attention_by_weights(X3, X3, X3, decay=0.5), "be 1 if not causal"),
        (lambda: linear_attention(-X3, X3, X3, features=lambda x: x), "queries' is -1"),
        (
            lambda: linear_attention_by_recurrence(
                X3, X3, X3, state=State(np.ones((3, 3)), np.ones(3))
            ),
            r"\(3, 3\)",
        ),
    ],
)
def test_linear_attention_names_what_does_not_fit(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


# --------------------------------------------------------------------------------------- cache


@pytest.mark.parametrize("steps", [(1,) * 7, (4, 1, 2), (7,)])
@pytest.mark.parametrize("h", [1, 2])
def test_decoding_gives_the_rows_of_the_full_run(steps, h):
    rng = np.random.default_rng(0)
    d, L = 6, 7
    X = rng.normal(size=(L, d))
    parameters = AttentionParameters(*rng.normal(size=(4, d, d)), *rng.normal(size=(4, d)))
    full, _ = multi_head_attention(X, parameters, h, causal=True)
    cache, rows, start = KeyValueCache(L, h, d // h), [], 0
    for n in steps:
        rows.append(decode(X[start : start + n], parameters, h, cache))
        start += n
        assert cache.length == start
    np.testing.assert_allclose(np.vstack(rows), full, rtol=1e-12)
    assert cache.nbytes == costs.cache_bytes(L, d, number_bytes=8)
    assert cache.keys.shape == cache.values.shape == (h, L, d // h)


def test_a_full_cache_takes_nothing_more():
    cache = KeyValueCache(2, 1, 3)
    cache.append(np.ones((1, 2, 3)), np.ones((1, 2, 3)))
    with pytest.raises(ValueError, match="room for 2 positions; 2 are kept, 1 came"):
        cache.append(np.ones((1, 1, 3)), np.ones((1, 1, 3)))
    assert cache.length == 2


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: KeyValueCache(0, 1, 4), "capacity .* got 0"),
        (lambda: KeyValueCache(4, 0, 4), "h must .* got 0"),
        (lambda: KeyValueCache(4, 2, 3).append(np.ones((2, 1, 4)), np.ones((2, 1, 3))), "1, 4"),
        (lambda: KeyValueCache(4, 2, 3).append(np.ones((2, 0, 3)), np.ones((2, 0, 3))), "0, 3"),
        (lambda: KeyValueCache(4, 2, 3).append(1.0, 1.0), r"K \(\)"),
        (
            lambda: decode(
                np.ones((0, 2)), AttentionParameters(*[np.eye(2)] * 4), 1, KeyValueCache(3, 1, 2)
            ),
            r"one at least; got shape \(0, 2\)",
        ),
        (
            lambda: decode(
                np.ones((1, 2)), AttentionParameters(*[np.eye(2)] * 4), 2, KeyValueCache(3, 1, 2)
            ),
            "cannot take",
        ),
    ],
)
def test_a_cache_names_what_does_not_fit(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


# ----------------------------------------------------------------------------------- measuring


def test_slopes():
    assert measuring.slope([1, 2, 4, 8], [5, 20, 80, 320]) == pytest.approx(2)
    assert measuring.slope([10, 1000], [3, 3]) == pytest.approx(0)
    for lengths, values in (
        ([4], [1]),
        ([4, 4], [1, 2]),
        ([1, 2], [0, 1]),
        ([1, 2], [math.nan, 1]),
    ):
        assert math.isnan(measuring.slope(lengths, values))


def test_bytes_are_those_of_the_arrays():
    assert measuring.peak_bytes(lambda: np.ones(100_000)) == pytest.approx(800_000, rel=0.01)
    assert measuring.peak_bytes(lambda: np.ones(100_000).sum()) >= 800_000


def test_kernels_are_compared_at_each_length():
    rows = measuring.compare_lengths((64, 256), d_k=8, rounds=1)
    assert [(row["L"], row["kernel"]) for row in rows] == [
        (L, kernel) for L in (64, 256) for kernel in ("plain", "blocked", "fast", "library")
    ]
    for row in rows:
        assert row["seconds"] > 0
        assert row["apart"] < 1e-5
        assert row["bytes"] >= row["L"] * 8 * 4 or math.isnan(row["bytes"])
    assert rows[4]["bytes"] > 4 * 256**2


def test_the_floor_grows_with_the_pairs():
    floor = measuring.floor_seconds((10, 20), d_k=8, rounds=1)
    assert floor["products"][1] == pytest.approx(4 * floor["products"][0])
    assert floor["products and exp"][0] > floor["products"][0] > 0


def test_ideas_follow_one_another():
    rows = measuring.ideas(L=64, d_k=8, rounds=1)
    assert [row["step"].split()[0] for row in rows] == ["plain", "one", "blocks", "no", "(a", "no"]
    assert rows[0]["times"] == 1
    assert rows[2]["times"] == pytest.approx(rows[1]["seconds"] / rows[2]["seconds"])
    Q, K, V = np.random.default_rng(0).normal(size=(3, 9, 4)).astype(np.float32)
    plain = measuring.KERNELS["plain"](Q, K, V)
    for ours in (measuring._in_place(Q, K, V), measuring.KERNELS["fast"](Q, K, V)):
        np.testing.assert_allclose(ours, plain, rtol=1e-5)


def test_the_chapters_longer_queries_do_not_seem_small():
    Q, K, V = np.random.default_rng(0).normal(size=(3, 2048, 64)).astype(np.float32)
    assert fast._seem_small(Q, K, V, 1 / 8)
    assert not fast._seem_small(measuring.LONGER * Q, K, V, 1 / 8)


def test_blocks_of_longer_queries_alone_look_for_a_maximum(monkeypatch):
    looked = []

    def powers(*tile):
        largest = original(*tile)
        looked.append(largest is not None)
        return largest

    original = fast._powers
    monkeypatch.setattr(fast, "_powers", powers)
    measuring.ideas(L=64, rounds=1)
    assert looked == [True, False, False, False] * 2  # once unmeasured


def test_it_says_what_ran():
    assert measuring.device().startswith("one thread of the processor")


def test_a_loop_is_timed_beside_a_product():
    (row,) = measuring.loop_and_product((50,), d=8, rounds=1)
    assert row["multiply-adds"] == 50 * 64
    assert row["loop"] > 0
    assert row["times"] == pytest.approx(row["loop"] / row["product"])


# --------------------------------------------------------------------------- views and figures


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1 bytes"), (1024, "1 KiB"), (256 * 2**20, "256 MiB"), (1023.5 * 2**20, "1,023.5 MiB")],
)
def test_bytes_are_written_in_units(count, text):
    assert byte_size(count) == text


def test_counts_are_written_in_words():
    assert scaled(67_108_864) == "67.11 million"
    assert scaled(999_999) == "999,999"
    assert scaled(10**30).endswith(" quintillion")


def test_the_explorer_s_defaults_show_the_wall():
    html = length(L=8192, d=512, h=8, layers=6, number_bytes=4)
    for text in ("67.11 million", "256 MiB", "12 GiB", "192 MiB", "Above L = 3,072"):
        assert text in html
    assert "are half of the work" in length(L=96, d=16, h=1, layers=1, number_bytes=4)
    assert "Nearest that can: 4 and 8" in length(L=4, d=16, h=6, layers=1, number_bytes=4)


@pytest.mark.parametrize("lengths", [(128, 512, 2048), (1,), (1, 2)])
def test_figures_take_any_lengths(lengths):
    figure = drawings.work(
        costs.growth_table(lengths), costs.overtaking_lengths(512, 2048).values()
    )
    assert len(figure.axes[0].lines) >= 4
    rows = [
        {"L": L, "kernel": k, "seconds": L * 1e-3, "bytes": math.nan if k == "library" else L}
        for L in lengths
        for k in measuring.KERNELS
    ]
    slopes = {"seconds": {"plain": 2.0, "blocked": math.nan}, "bytes": {}}
    floor = [L * 1e-4 for L in lengths]
    texts = [text.get_text() for text in drawings.measured(rows, slopes, floor).axes[0].texts]
    assert "floor" in texts
    assert "plain, slope 2.0" in texts
    assert "blocked" in texts


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_the_ring_is_drawn_for_any_number_of_processes(n):
    texts = [text.get_text() for text in drawings.ring(n).axes[0].texts]
    assert texts.count("K, V 0") == n
    (mesh,) = drawings.ring(100).axes[0].collections
    assert mesh.get_array().size == 100 * 100


@pytest.mark.parametrize(("L", "n"), [(16, 4), (16, 1), (5, 8), (16, 100)])
def test_the_balance_shows_every_pair_once(L, n):
    for axes, owners in zip(
        drawings.balance(L, n).axes, (np.arange(L) * n // L, np.arange(L) % n), strict=True
    ):
        assert sum(patch.get_width() for patch in axes.patches) == L * (L + 1) / 2
        texts = [text.get_text() for text in axes.texts]
        assert len(texts) == min(n, 6)
        if L % n == 0:
            counts = [int((np.flatnonzero(owners == rank) + 1).sum()) for rank in range(n)]
            assert texts == [f"process {rank}: {count}" for rank, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("backward", "numbers"),
    [
        (False, {1: 4 * 8 + 2, 2: 6 * 8 + 2, 3: 8 * 8 + 2, 4: 8 * 8 + 2}),
        (True, {1: 8 * 8 + 2, 2: 14 * 8 + 2, 3: 16 * 8 + 2, 4: 16 * 8 + 2}),
    ],
)
def test_what_each_process_of_a_ring_holds(backward, numbers):
    """tests/test_ring.py counts the tensors of real rings against it."""
    for n, a_row in numbers.items():
        assert costs.ring_bytes(12, n, 8, backward=backward) == 12 // n * a_row * 4
    longest = costs.ring_bytes(10, 4, 8, 2, backward=backward)  # ten rows over four: 3, 3, 2, 2
    assert longest == 3 * numbers[4] * 2
    for sizes in ((0, 1, 1), (4, 0, 1), (4, 1, 1.5)):
        with pytest.raises(ValueError, match="at least 1"):
            costs.ring_bytes(*sizes)


def test_tiles_count_the_blocks_that_are_walked():
    texts = [text.get_text() for text in drawings.tiles(8, 8, 2, 2).axes[0].texts]
    assert max(int(text) for text in texts if text) == 10
    assert len(drawings.windows({"a": window_mask(5, 2)}).axes) == 1
