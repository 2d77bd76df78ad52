"""Mistakes that users met elsewhere, as small inputs: none of them may be possible here."""

import ast
from pathlib import Path

import numpy as np
import pytest

from worked_examples.attention import (
    causal_mask,
    key_padding_mask,
    scaled_dot_product_attention,
    softmax,
)

IDENTITY = np.eye(3)
TESTS = sorted(Path(__file__).parent.rglob("test_*.py"))


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("d_k", [1, 3, 16, 100])
def test_scores_are_divided_by_the_root_of_the_key_width(d_k):
    Q, K, V = normal(4, d_k), normal(6, d_k, seed=1), normal(6, 5, seed=2)
    _, weights = scaled_dot_product_attention(Q, K, V)
    by_hand = np.exp(Q @ K.T / d_k**0.5)
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights, by_hand, rtol=1e-12)


def test_true_means_may_look():
    _, weights = scaled_dot_product_attention(*[IDENTITY] * 3, mask=causal_mask(3))
    np.testing.assert_array_equal(weights[0], [1, 0, 0])
    _, causal = scaled_dot_product_attention(*[IDENTITY] * 3, causal=True)
    np.testing.assert_array_equal(weights, causal)


def test_rows_sum_to_one_whatever_is_hidden():
    mask = np.random.default_rng(5).random((4, 7, 7)) < 0.4
    mask[..., 0] = True
    _, weights = scaled_dot_product_attention(*[normal(4, 7, 3)] * 3, mask=mask)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-14)
    assert (weights[~mask] == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_row_with_nothing_to_see_is_zero(dtype):
    X = normal(1, 3, 2).astype(dtype)
    mask = np.array([[[False, True, True]]])  # the first position is padding
    output, weights = scaled_dot_product_attention(X, X, X, mask=mask, causal=True)
    np.testing.assert_array_equal(weights[0, 0], 0)
    np.testing.assert_array_equal(output[0, 0], 0)
    assert np.isfinite(output).all()
    assert np.isfinite(weights).all()


def test_more_queries_than_keys_leave_the_first_with_nothing():
    output, weights = scaled_dot_product_attention(
        normal(5, 2), normal(3, 2), normal(3, 2), causal=True
    )
    np.testing.assert_array_equal(output[:2], 0)
    np.testing.assert_allclose(weights.sum(axis=-1), [0, 0, 1, 1, 1])


@pytest.mark.parametrize("junk", [1e30, -1e30, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_padding_changes_nothing(junk, k, causal, dtype):
    L = 5
    X = normal(L, 4).astype(dtype)
    padded = np.vstack([X, np.full((k, 4), junk, dtype=dtype)])
    alone, _ = scaled_dot_product_attention(X, X, X, causal=causal)
    mask = key_padding_mask(L, L + k)[None, :]
    with np.errstate(all="raise"):  # not even a warning
        output, weights = scaled_dot_product_attention(
            padded, padded, padded, mask=mask, causal=causal
        )
    np.testing.assert_allclose(output[:L], alone, rtol=1e-6 if dtype == np.float32 else 1e-14)
    np.testing.assert_array_equal(weights[:L, L:], 0)


def test_a_visible_infinity_is_passed_on_and_a_hidden_one_is_not():
    V = np.array([[1.0, np.inf, 2.0], [1.0, 2.0, np.nan], [1.0, -np.inf, 3.0]])
    mask = np.array([[True, False, False], [True, True, False], [True, True, True]])
    output, _ = scaled_dot_product_attention(np.ones((3, 1)), np.ones((3, 1)), V, mask=mask)
    assert output[:, 0] == pytest.approx([1, 1, 1])
    np.testing.assert_array_equal(output[:, 1], [np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(np.isnan(output[:, 2]), [False, True, True])


def test_two_queries_four_keys_are_aligned_at_the_end():
    np.testing.assert_array_equal(causal_mask(2, 4), [[1, 1, 1, 0], [1, 1, 1, 1]])
    Q, K = normal(2, 3), normal(4, 3, seed=1)
    _, weights = scaled_dot_product_attention(Q, K, K, causal=True)
    np.testing.assert_array_equal(weights > 0, causal_mask(2, 4))


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e3), (np.float16, 1e4)])
def test_large_scores_do_not_overflow(dtype, size):
    Q = np.array([[1.0], [-1.0]], dtype=dtype)
    K = np.array([[size], [size * 0.999], [-size]], dtype=dtype)
    V = np.array([[1.0], [2.0], [3.0]], dtype=dtype)
    with np.errstate(all="raise", under="ignore"):
        output, weights = scaled_dot_product_attention(Q, K, V)
    exact = scaled_dot_product_attention(*(x.astype(float) for x in (Q, K, V)))
    precision = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(weights.astype(float), exact[1], atol=precision)
    np.testing.assert_allclose(output.astype(float), exact[0], rtol=precision)


def test_products_that_pass_the_range_of_float16():
    Q = K = np.full((2, 4), 300, dtype=np.float16)  # 300 * 300 * 4 > 65504
    output, weights = scaled_dot_product_attention(Q, K, np.eye(2, dtype=np.float16))
    np.testing.assert_array_equal(weights, 0.5)
    np.testing.assert_array_equal(output, 0.5)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 3, 1, 4)])
def test_length_one(shape):
    X = normal(*shape)
    output, weights = scaled_dot_product_attention(X, X, X, causal=True)
    np.testing.assert_array_equal(weights, 1)
    np.testing.assert_array_equal(output, X)


def test_integers_give_floats():
    output, weights = scaled_dot_product_attention([[1, 0]], [[1, 0], [0, 1]], [[1, 2], [3, 4]])
    assert output.dtype == weights.dtype == np.float64
    assert output == pytest.approx(weights @ [[1, 2], [3, 4]])


def test_inputs_are_left_as_they_were():
    X = normal(3, 4, 2)
    mask = np.random.default_rng(0).random((4, 4)) < 0.5
    before = X.copy(), mask.copy()
    scaled_dot_product_attention(X, X, X, mask=mask, causal=True)
    softmax(X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(mask, before[1])


def _functions(path):
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _asserts(function, helpers):
    """Tell whether a function asserts, or calls one of these that do."""
    text = ast.unparse(function)
    called = {
        getattr(node.func, "attr", getattr(node.func, "id", None))
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    }
    own = any(word in text for word in ("assert", "pytest.raises", "expect("))  # Playwright's
    return own or bool(called & helpers)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_every_test_asserts(path):
    """A comparison that nothing asserts passes whatever it compares (case 11)."""
    functions, helpers = _functions(path), set()
    while more := {f.name for f in functions if _asserts(f, helpers)} - helpers:
        helpers |= more
    for function in functions:
        if function.name.startswith("test_"):
            assert function.name in helpers, f"{function.name} asserts nothing"
        for node in ast.walk(function):
            bare = isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare)
            assert not bare, f"line {node.lineno} compares and asserts nothing"
