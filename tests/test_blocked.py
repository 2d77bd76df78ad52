"""The blocked kernel gives what the plain one gives, and does not hold its matrix."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worked_examples.attention import (
    causal_mask,
    key_padding_mask,
    scaled_dot_product_attention,
)
from worked_examples.blocked import (
    Partial,
    blocked_attention,
    finish,
    merge,
    nothing,
    partial_attention,
    ring_attention_in_turn,
    ring_schedule,
)
from worked_examples.fast import fast_attention
from worked_examples.measuring import peak_bytes

# What the kernel to be read and the fast one promise alike; test_fast.py has what is its own.
BOTH = pytest.mark.parametrize("kernel", [blocked_attention, fast_attention])

PRECISION = {np.float64: 1e-13, np.float32: 2e-6}


def draw(rng, dtype, *shape):
    return rng.normal(size=shape).astype(dtype)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(*[st.integers(1, 40)] * 2, *[st.integers(1, 9)] * 2),
    blocks=st.tuples(*[st.integers(1, 45)] * 2),
    batch=st.sampled_from([(), (2,), (2, 3)]),
    dtype=st.sampled_from([np.float64, np.float32]),
    masks=st.sampled_from(["none", "full", "keys", "queries", "heads", "nothing"]),
    causal=st.booleans(),
    biases=st.sampled_from(["none", "full", "keys", "queries", "number"]),
    size=st.sampled_from([1.0, 1.0, 5.0]),
)
def test_it_equals_the_plain_kernel(seed, sizes, blocks, batch, dtype, masks, causal, biases, size):
    rng = np.random.default_rng(seed)
    L_q, L_k, d_k, d_v = sizes
    Q, K, V = (draw(rng, dtype, *batch, *shape) for shape in ((L_q, d_k), (L_k, d_k), (L_k, d_v)))
    mask = {
        "none": None,
        "full": rng.random((L_q, L_k)) < 0.6,
        "keys": rng.random(L_k) < 0.5,
        "queries": rng.random((L_q, 1)) < 0.5,
        "heads": rng.random((*batch, L_q, L_k)) < 0.3,
        "nothing": np.zeros((1, 1), dtype=bool),
    }[masks]
    bias = {
        "none": None,
        "full": rng.normal(size=(*batch, L_q, L_k)),
        "keys": rng.normal(size=L_k),
        "queries": rng.normal(size=(L_q, 1)),
        "number": 1,
    }[biases]
    options = {"mask": mask, "causal": causal, "scale": size / d_k**0.5, "bias": bias}
    plain, _ = scaled_dot_product_attention(Q, K, V, **options)
    ours = blocked_attention(Q, K, V, rows=blocks[0], columns=blocks[1], **options)
    assert ours.dtype == plain.dtype == dtype
    assert ours.shape == plain.shape
    # Relative to the values that are averaged; scores five times as large are as much less exact.
    assert np.abs(ours - plain).max() <= PRECISION[dtype] * size * max(1, np.abs(V).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("blocks", [(1, 1), (2, 3), (128, 512)])
def test_scores_near_a_thousand(dtype, blocks):
    Q = np.array([[1.0], [-1.0]], dtype=dtype)
    K = np.array([[1e3], [999], [-1e3], [0]], dtype=dtype)
    V = np.array([[1.0], [2.0], [3.0], [4.0]], dtype=dtype)
    with np.errstate(all="raise", under="ignore"):
        ours = blocked_attention(Q, K, V, rows=blocks[0], columns=blocks[1])
    exact, _ = scaled_dot_product_attention(*(X.astype(float) for X in (Q, K, V)))
    np.testing.assert_allclose(ours.astype(float), exact, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("junk", [1e30, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_nothing(junk, causal):
    X = draw(np.random.default_rng(0), float, 5, 4)
    padded = np.vstack([X, np.full((3, 4), junk)])
    alone, _ = scaled_dot_product_attention(X, X, X, causal=causal)
    mask = key_padding_mask(5, 8)[None, :]
    for columns in (1, 3, 8):
        with np.errstate(all="raise"):
            ours = blocked_attention(
                padded, padded, padded, mask=mask, causal=causal, rows=2, columns=columns
            )
        np.testing.assert_allclose(ours[:5], alone, rtol=1e-13)


def test_visible_infinities_and_nan_are_passed_on_as_the_plain_kernel_does():
    V = np.array([[1.0, np.inf, 2.0], [1.0, 2.0, np.nan], [1.0, -np.inf, 3.0]])
    mask = np.tri(3, dtype=bool)
    plain, _ = scaled_dot_product_attention(np.ones((3, 1)), np.ones((3, 1)), V, mask=mask)
    for columns in (1, 2, 3):
        ours = blocked_attention(np.ones((3, 1)), np.ones((3, 1)), V, mask=mask, columns=columns)
        np.testing.assert_array_equal(ours, plain)


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_a_visible_nan_among_the_keys_makes_the_row_nan(columns):
    K = np.ones((5, 1))
    K[3] = np.nan
    ours = blocked_attention(np.ones((5, 1)), K, np.ones((5, 2)), causal=True, columns=columns)
    np.testing.assert_array_equal(np.isnan(ours[:, 0]), [False, False, False, True, True])


def test_rows_that_see_nothing_are_zero_at_first_too():
    X = draw(np.random.default_rng(1), float, 6, 2)
    ours = blocked_attention(X, X[:3], X[:3], causal=True, rows=2, columns=1)
    np.testing.assert_array_equal(ours[:3], 0)
    mask = np.ones((6, 6), dtype=bool)
    mask[4] = False
    mask[2, :3] = False  # its first block of keys is hidden: a start at -inf would give NaN
    ours = blocked_attention(X, X, X, mask=mask, rows=2, columns=3)
    np.testing.assert_array_equal(ours[4], 0)
    assert np.isfinite(ours).all()


@BOTH
def test_the_last_query_sees_the_last_key(kernel):
    Q, K = draw(np.random.default_rng(2), float, 2, 3), draw(np.random.default_rng(3), float, 7, 3)
    ours = kernel(Q, K, K, causal=True, rows=1, columns=2)
    by_mask, _ = scaled_dot_product_attention(Q, K, K, mask=causal_mask(2, 7))
    np.testing.assert_allclose(ours, by_mask, rtol=1e-13)


@BOTH
def test_integers_become_float64_and_inputs_stay(kernel):
    X = np.array([[1, 0], [0, 2]])
    before = X.copy()
    assert kernel(X, X, X, columns=1).dtype == np.float64
    np.testing.assert_array_equal(X, before)


@BOTH
@pytest.mark.parametrize(
    ("shapes", "options", "shown"),
    [
        (((0, 2), (3, 2), (3, 2)), {}, r"\(0, 2\)"),
        (((2, 2), (0, 2), (0, 2)), {}, r"at least 1; .*\(0, 2\)"),
        (((2, 2), (3, 4), (3, 2)), {}, r"\(2, 2\).*\(3, 4\)"),
        (((2, 2), (3, 2), (4, 2)), {}, r"\(4, 2\)"),
        (((2, 2), (3, 2), (3, 2)), {"rows": 0}, "rows .* got 0"),
        (((2, 2), (3, 2), (3, 2)), {"columns": 1.5}, "columns .* got 1.5"),
        (((2, 2), (3, 2), (3, 2)), {"mask": np.ones((2, 4), bool)}, r"\(2, 3\); got \(2, 4\)"),
        (((2, 2), (3, 2), (3, 2)), {"mask": np.ones((2, 3))}, "boolean"),
        (((2, 2), (3, 2), (3, 2)), {"scale": np.nan}, "got nan"),
        (((2, 2), (3, 2), (3, 2)), {"bias": np.ones((2, 2))}, r"\(2, 3\); got \(2, 2\)"),
        (((2, 2), (3, 2), (3, 2)), {"bias": -np.inf}, "must be finite"),
    ],
)
def test_what_cannot_be_is_named(kernel, shapes, options, shown):
    with pytest.raises(ValueError, match=shown):
        kernel(*map(np.ones, shapes), **options)


def test_memory_does_not_hold_the_matrix():
    """Over the output, the blocked kernel takes no more at four times the length."""
    taken = {}
    for L in (1024, 4096):
        X = np.ones((L, 16), dtype=np.float32)
        blocked_attention(X, X, X)
        output = X.nbytes
        taken[L] = peak_bytes(lambda X=X: blocked_attention(X, X, X)) - output
        assert taken[L] < L * L
    assert taken[4096] < 1.2 * taken[1024]
    X = np.ones((1024, 16), dtype=np.float32)
    assert peak_bytes(lambda: scaled_dot_product_attention(X, X, X)) > 4 * 1024**2


# ------------------------------------------------------------------------------------- merging


def parts_of(scores, values, cuts):
    edges = [0, *cuts, len(scores)]
    return [
        partial_attention([[1.0]], scores[a:b, None], values[a:b], scale=1.0)
        for a, b in itertools.pairwise(edges)
    ]


def test_two_blocks_by_hand():
    """Scores 1, 3 | 2, 5 with values 10, 20 | 30, 40."""
    scores, values = np.array([1.0, 3.0, 2.0, 5.0]), np.array([[10.0], [20.0], [30.0], [40.0]])
    one, other = parts_of(scores, values, [2])
    assert [float(x.item()) for x in one] == pytest.approx([3, 1.1353, 21.3534], abs=5e-5)
    assert [float(x.item()) for x in other] == pytest.approx([5, 1.0498, 41.4936], abs=5e-5)
    both = merge(one, other)
    assert [float(x.item()) for x in both] == pytest.approx([5, 1.2034, 44.3835], abs=5e-5)
    weights = np.exp(scores) / np.exp(scores).sum()
    assert finish(both).item() == pytest.approx(weights @ values[:, 0], rel=1e-14)


@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1.0, 1e3]))
@settings(max_examples=40, deadline=None)
def test_the_order_of_merging_does_not_matter(seed, size):
    rng = np.random.default_rng(seed)
    scores, values = size * rng.normal(size=9), rng.normal(size=(9, 2))
    a, b, c = parts_of(scores, values, [2, 5])
    whole = partial_attention([[1.0]], scores[:, None], values, scale=1.0)
    for merged in (merge(merge(a, b), c), merge(a, merge(b, c)), merge(c, merge(a, b))):
        for part, right in zip(merged, whole, strict=True):
            np.testing.assert_allclose(part, right, rtol=1e-12, atol=1e-12)


def test_nothing_changes_nothing():
    part = partial_attention([[1.0]], [[-5.0]], [[2.0, 3.0]])
    for merged in (merge(nothing((1,), 2), part), merge(part, nothing((1,), 2))):
        for came, right in zip(merged, part, strict=True):
            np.testing.assert_array_equal(came, right)
    empty = nothing((1,), 2)
    assert isinstance(merge(empty, empty), Partial)
    np.testing.assert_array_equal(finish(merge(empty, empty)), 0)


# ---------------------------------------------------------------------------------------- ring


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_every_process_meets_every_block_once_and_hands_on(n):
    schedule = ring_schedule(n)
    assert schedule[0].tolist() == list(range(n))
    for rank in range(n):
        assert sorted(schedule[:, rank]) == list(range(n))
    for step in range(n - 1):
        assert schedule[step + 1].tolist() == np.roll(schedule[step], 1).tolist()


@pytest.mark.parametrize(("L", "n"), [(1, 1), (8, 4), (10, 3), (7, 7)])
def test_the_ring_equals_one_process(L, n):
    X = draw(np.random.default_rng(L), float, L, 3)
    plain, _ = scaled_dot_product_attention(X, X, X)
    np.testing.assert_allclose(ring_attention_in_turn(X, X, X, n), plain, rtol=1e-13)


@pytest.mark.parametrize(("n", "shown"), [(0, "got 0"), (5, "5 processes, 4 positions")])
def test_a_ring_of_none_or_too_many_is_refused(n, shown):
    with pytest.raises(ValueError, match=shown):
        ring_attention_in_turn(*[np.ones((4, 2))] * 3, n)
