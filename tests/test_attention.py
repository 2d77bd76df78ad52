"""The kernels against torch and against definitions, over shapes, dtypes and masks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from worked_examples import attention
from worked_examples.attention import (
    AttentionParameters,
    additive_mask,
    attention_gradients,
    causal_mask,
    entropy,
    key_padding_mask,
    merge_heads,
    multi_head_attention,
    multi_head_attention_by_loop,
    scaled_dot_product_attention,
    softmax,
    softmax_jacobian,
    split_heads,
)

EYE = np.eye(4)
sizes = st.integers(1, 7)
batches = st.sampled_from([(), (2,), (2, 3), (1, 2, 2)])


@st.composite
def operands(draw):
    """Q, K, V of any lengths, widths and leading dimensions, with a mask or none."""
    batch = draw(batches)
    L_q, L_k, d_k, d_v = (draw(sizes) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.sampled_from([0.1, 1.0, 30.0]))
    Q = rng.normal(size=(*batch, L_q, d_k)) * size
    K = rng.normal(size=(*batch, L_k, d_k)) * size
    V = rng.normal(size=(*batch, L_k, d_v))
    shape = draw(st.sampled_from([None, (L_q, L_k), (1, L_k), (*batch, L_q, L_k)]))
    mask = None if shape is None else rng.random(shape) < 0.6
    return Q, K, V, mask, draw(st.booleans())


@settings(max_examples=300, deadline=None, derandomize=True)
@given(operands())
def test_agrees_with_torch_in_float64(case):
    Q, K, V, mask, causal = case
    output, weights = scaled_dot_product_attention(Q, K, V, mask=mask, causal=causal)
    seen = np.ones((Q.shape[-2], K.shape[-2]), dtype=bool)
    if causal:
        seen = causal_mask(*seen.shape)
    if mask is not None:
        seen = seen & mask
    theirs = functional.scaled_dot_product_attention(
        *map(torch.from_numpy, (Q, K, V)), attn_mask=torch.from_numpy(seen)
    )
    np.testing.assert_allclose(output, theirs.numpy(), rtol=1e-12, atol=1e-12)
    hidden = ~np.broadcast_to(seen, weights.shape)
    assert (weights[hidden] == 0).all()
    sums = weights.sum(axis=-1)
    np.testing.assert_allclose(sums, np.broadcast_to(seen.any(axis=-1), sums.shape), atol=1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(operands())
def test_gradients_agree_with_autograd(case):
    Q, K, V, mask, causal = case
    seen = np.ones((Q.shape[-2], K.shape[-2]), dtype=bool) if mask is None else mask
    if causal:
        seen = seen & causal_mask(Q.shape[-2], K.shape[-2])
    seen = seen | ~seen.any(axis=-1, keepdims=True)  # torch's gradient of an empty row is NaN
    G = np.random.default_rng(0).normal(size=(*Q.shape[:-1], V.shape[-1]))
    ours = attention_gradients(Q, K, V, G, mask=seen)
    leaves = [torch.from_numpy(x).requires_grad_() for x in (Q, K, V)]
    theirs = functional.scaled_dot_product_attention(*leaves, attn_mask=torch.from_numpy(seen))
    theirs.backward(torch.from_numpy(G))
    for mine, leaf in zip(ours, leaves, strict=True):
        np.testing.assert_allclose(mine, leaf.grad.numpy(), rtol=1e-9, atol=1e-10)


def test_gradients_agree_with_finite_differences():
    rng = np.random.default_rng(1)
    Q, K, V, G = (rng.normal(size=s) for s in [(3, 4), (5, 4), (5, 2), (3, 2)])
    arguments = [Q, K, V]
    gradients = attention_gradients(*arguments, G, causal=True)
    for which, gradient in enumerate(gradients):
        for index in np.ndindex(gradient.shape):
            loss = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in arguments]
                moved[which][index] += step
                loss.append((scaled_dot_product_attention(*moved, causal=True)[0] * G).sum())
            assert gradient[index] == pytest.approx((loss[0] - loss[1]) / 2e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("dtype", "result", "tolerance"),
    [
        (np.float64, np.float64, 1e-12),
        (np.float32, np.float32, 1e-5),
        (np.float16, np.float16, 2e-2),
        (np.int64, np.float64, 1e-12),
        (np.int8, np.float64, 1e-12),
        (bool, np.float64, 1e-12),
    ],
)
@pytest.mark.parametrize("causal", [False, True])
def test_dtypes(dtype, result, tolerance, causal):
    rng = np.random.default_rng(2)
    Q, K, V = ((4 * rng.normal(size=s)).astype(dtype) for s in [(2, 6, 8), (2, 6, 8), (2, 6, 3)])
    output, weights = scaled_dot_product_attention(Q, K, V, causal=causal)
    assert output.dtype == weights.dtype == result
    exact = scaled_dot_product_attention(*(x.astype(float) for x in (Q, K, V)), causal=causal)
    np.testing.assert_allclose(output.astype(float), exact[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(weights.astype(float), exact[1], rtol=tolerance, atol=tolerance)


def test_mixed_dtypes_take_the_wider():
    Q, K, V = np.ones((2, 2), np.float32), np.ones((2, 2), np.float16), np.ones((2, 2))
    assert scaled_dot_product_attention(Q, K, K)[0].dtype == np.float32
    assert scaled_dot_product_attention(Q, K, V)[0].dtype == np.float64


def test_leading_dimensions_broadcast():
    rng = np.random.default_rng(3)
    Q, K, V = rng.normal(size=(4, 1, 5, 2)), rng.normal(size=(3, 6, 2)), rng.normal(size=(6, 7))
    output, weights = scaled_dot_product_attention(Q, K, V)
    assert output.shape == (4, 3, 5, 7)
    assert weights.shape == (4, 3, 5, 6)
    alone = scaled_dot_product_attention(Q[2, 0], K[1], V)
    np.testing.assert_allclose(output[2, 1], alone[0], atol=1e-14)


def test_scale_replaces_the_divisor():
    Q = np.eye(3)
    default = scaled_dot_product_attention(Q, Q, Q)[1]
    same = scaled_dot_product_attention(Q, Q, Q, scale=1 / math.sqrt(3))[1]
    np.testing.assert_array_equal(default, same)
    assert scaled_dot_product_attention(Q, Q, Q, scale=0)[1] == pytest.approx(1 / 3)
    narrow = scaled_dot_product_attention(*[Q.astype(np.float32)] * 3, scale=np.float64(0.5))
    assert narrow[0].dtype == np.float32  # a numpy scale must not widen the arrays


# ------------------------------------------------------------------------- softmax, entropy


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=20))
def test_softmax_agrees_with_torch(scores):
    theirs = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=-1).numpy()
    np.testing.assert_allclose(softmax(scores), theirs, rtol=1e-12, atol=1e-300)


def test_softmax_of_nothing_to_see_is_zero_and_of_nan_is_nan():
    result = softmax([[-np.inf, -np.inf], [0, -np.inf], [np.nan, 0], [np.inf, 0]])
    np.testing.assert_array_equal(result[:2], [[0, 0], [1, 0]])
    assert np.isnan(result[2]).all()
    assert np.isnan(result[3, 0])


@pytest.mark.parametrize(
    ("weights", "bits"),
    [
        ([1.0, 0.0], 0),
        ([0.5, 0.5], 1),
        ([0.25] * 4, 2),
        ([1 / 3] * 3, math.log2(3)),
        ([0.0, 0.0], 0),
        ([0.9, 0.1], 0.4689955935892812),
        ([1], 0),
    ],
)
def test_entropy(weights, bits):
    value = entropy(weights)
    assert value == pytest.approx(bits, abs=1e-14)
    assert math.copysign(1, value) == 1  # a certain head reads 0 bits, not -0


def test_entropy_keeps_leading_dimensions_and_passes_nan_on():
    result = entropy([[[1.0, 0.0], [0.5, 0.5]], [[np.nan, 1], [0, 1]]])
    np.testing.assert_array_equal(result, [[0, 1], [np.nan, 0]])


@pytest.mark.parametrize(
    ("weights", "shown"), [([0.5, 0.6], "1.1"), ([1.5, -0.5], "-0.5"), ([0.4551, 0], "0.4551")]
)
def test_entropy_of_what_is_no_distribution_is_refused(weights, shown):
    with pytest.raises(ValueError, match=shown):
        entropy(weights)


def test_jacobian_is_the_derivative_of_the_softmax():
    scores = np.array([[0.3, -1.2, 2.0], [0.0, 0.0, 5.0]])
    jacobian = softmax_jacobian(softmax(scores))
    for j in range(3):
        step = np.zeros(3)
        step[j] = 1e-6
        slope = (softmax(scores + step) - softmax(scores - step)) / 2e-6
        np.testing.assert_allclose(jacobian[..., j], slope, atol=1e-9)


# ------------------------------------------------------------------------------------ masks


@pytest.mark.parametrize("L_q", [1, 2, 3, 7])
@pytest.mark.parametrize("L_k", [None, 1, 2, 5])
def test_causal_mask_by_its_definition(L_q, L_k):
    keys = L_q if L_k is None else L_k
    rows = [[j - i <= keys - L_q for j in range(keys)] for i in range(L_q)]
    np.testing.assert_array_equal(causal_mask(L_q, L_k), rows)
    assert causal_mask(L_q, L_k).dtype == bool


def test_padding_mask_by_its_definition():
    np.testing.assert_array_equal(key_padding_mask([0, 2, 3], 3), [[0, 0, 0], [1, 1, 0], [1, 1, 1]])
    np.testing.assert_array_equal(key_padding_mask(2, 3), [1, 1, 0])
    assert key_padding_mask([[1], [2]], 4).shape == (2, 1, 4)


def test_additive_mask_gives_the_same_weights():
    rng = np.random.default_rng(4)
    Q, K, V = (rng.normal(size=(5, 3)) for _ in range(3))
    mask = rng.random((5, 5)) < 0.5
    mask[:, 0] = True
    added = softmax(Q @ K.T / math.sqrt(3) + additive_mask(mask))
    np.testing.assert_allclose(
        scaled_dot_product_attention(Q, K, V, mask=mask)[1], added, rtol=0, atol=1e-15
    )


# --------------------------------------------------------------------------------- bad input

X = np.ones((3, 4))


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: scaled_dot_product_attention(X, np.ones((3, 5)), X), r"\(3, 4\).*\(3, 5\)"),
        (lambda: scaled_dot_product_attention(X, X, np.ones((2, 4))), r"\(3, 4\).*\(2, 4\)"),
        (lambda: scaled_dot_product_attention(X[0], X, X), r"Q \(4,\)"),
        (lambda: scaled_dot_product_attention(1.0, X, X), r"Q \(\)"),
        (lambda: scaled_dot_product_attention(X[:0], X, X), r"Q \(0, 4\)"),
        (lambda: scaled_dot_product_attention(X, X[:0], X[:0]), r"K \(0, 4\)"),
        (lambda: scaled_dot_product_attention(X[:, :0], X[:, :0], X), r"Q \(3, 0\)"),
        (lambda: scaled_dot_product_attention(X, X, X[:, :0]), r"V \(3, 0\)"),
        (
            lambda: scaled_dot_product_attention(np.ones((2, 3, 4)), np.ones((3, 3, 4)), X),
            r"\(2, 3, 4\).*\(3, 3, 4\)",
        ),
        (lambda: scaled_dot_product_attention(X + 1j, X, X), "complex128"),
        (lambda: scaled_dot_product_attention(np.array([["a"]]), X, X), "<U1"),
        (lambda: scaled_dot_product_attention(X, X, X, mask=np.ones((3, 3))), "float64"),
        (lambda: scaled_dot_product_attention(X, X, X, mask=np.ones((3, 2), bool)), r"\(3, 2\)"),
        (
            lambda: scaled_dot_product_attention(X, X, X, mask=np.ones((2, 3, 3), bool)),
            r"\(2, 3, 3\)",
        ),
        (lambda: scaled_dot_product_attention(X, X, X, scale=math.nan), "nan"),
        (lambda: scaled_dot_product_attention(X, X, X, scale="wide"), "wide"),
        (lambda: attention_gradients(X, X, X, X[:2]), r"\(2, 4\)"),
        (lambda: attention_gradients(X, X, X * np.nan, X), "V holds NaN"),
        (lambda: softmax(1.0), r"\(\)"),
        (lambda: softmax(np.ones((2, 0))), r"\(2, 0\)"),
        (lambda: softmax(["a"]), "<U1"),
        (lambda: softmax([None]), "object"),
        (lambda: entropy([]), r"\(0,\)"),
        (lambda: causal_mask(0), "got 0"),
        (lambda: causal_mask(2, 0), "got 0"),
        (lambda: causal_mask(2.5), "got 2.5"),
        (lambda: causal_mask(-1), "got -1"),
        (lambda: key_padding_mask([5], 4), r"\[5\]"),
        (lambda: key_padding_mask([-1], 4), r"\[-1\]"),
        (lambda: key_padding_mask([1.5], 4), "1.5"),
        (lambda: key_padding_mask([1], 0), "got 0"),
        (lambda: additive_mask([1, 0]), "int64"),
        (lambda: softmax([[1, 2], [3]]), r"scores.*got \[\[1, 2\], \[3\]\]"),
        (lambda: entropy([[1, 2], [3]]), r"weights.*\[3\]"),
        (lambda: additive_mask([[True], [True, False]]), r"mask.*\[True\]"),
        (lambda: key_padding_mask([[1], [2, 3]], 3), r"lengths.*\[2, 3\]"),
        (lambda: scaled_dot_product_attention([[1, 2], [3]], EYE, EYE), r"Q.*\[3\]"),
        (lambda: scaled_dot_product_attention(EYE, EYE, EYE, bias=[[1], [2, 3]]), r"bias.*\[1\]"),
        (lambda: scaled_dot_product_attention(EYE, EYE, EYE, scale=10**400), "scale.*got 1000"),
        (lambda: split_heads([[1, 2], [3]], 1), r"X.*\[3\]"),
        (lambda: merge_heads([[[1, 2], [3]]]), r"X.*\[3\]"),
        (lambda: scaled_dot_product_attention(EYE, EYE, EYE, causal="no"), "causal.*got str 'no'"),
        (
            lambda: scaled_dot_product_attention(X, X, X, causal=causal_mask(3)),
            "causal.*got an array",
        ),
        (
            lambda: multi_head_attention(EYE, (EYE, EYE, EYE, EYE), 1),
            "AttentionParameters; got tuple",
        ),
    ],
)
def test_bad_input_is_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


@pytest.mark.filterwarnings("error")
def test_extremes_leave_no_warning():
    assert np.isnan(entropy([[np.inf, -np.inf + np.nan], [0.5, np.nan]])).all()
    with pytest.raises(ValueError, match="negative"):
        entropy([np.inf, -np.inf])
    assert np.isnan(softmax_jacobian([np.inf, 0.0])).any()
    assert np.isneginf(softmax_jacobian([1e300, 1e300])).any()
    huge = np.full((2, 2), 1e200)
    assert np.isnan(attention_gradients(huge, huge, huge, huge)[0]).all()
    wide = np.full((2, 4), 6e4, dtype=np.float16)
    parameters = AttentionParameters(*[np.ones((4, 4), dtype=np.float16)] * 4)
    for kernel in (multi_head_attention, multi_head_attention_by_loop):
        output, _ = kernel(wide, parameters, 2)
        assert np.isposinf(output).all()
        assert output.dtype == np.float16


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("content", [1e30, 1e308, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_padding_changes_nothing_behind_the_projections(content, dtype):
    parameters = AttentionParameters(*np.random.default_rng(0).normal(size=(4, 4, 4)).astype(dtype))
    X = np.random.default_rng(1).normal(size=(3, 4)).astype(dtype)
    with np.errstate(over="ignore"):
        padding = np.full((2, 4), content).astype(dtype)
    real = np.arange(5) < 3
    for kernel in (multi_head_attention, multi_head_attention_by_loop):
        alone = kernel(X, parameters, 2)[0]
        padded = kernel(np.vstack([X, padding]), parameters, 2, mask=real)[0]
        np.testing.assert_allclose(padded[:3], alone, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_everything_public_is_documented_with_an_example():
    functions = [name for name in attention.__all__ if name.islower()]
    for name in functions:
        text = getattr(attention, name).__doc__
        assert "Raises" in text, name
        assert ">>>" in text, name


# ------------------------------------------------------------------------------------ heads


def drawn(d, d_context, heads_width, values_width, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(d, heads_width), (d_context, heads_width), (d_context, values_width),
              (values_width, d), heads_width, heads_width, values_width, d]  # fmt: skip
    return AttentionParameters(*(rng.normal(size=shape) for shape in shapes))


def library_layer(parameters, h, dtype=torch.float64):
    """Copy the parameters into torch's layer, whose in_proj stacks Q, K and V by rows."""
    p = AttentionParameters(*(torch.tensor(a, dtype=dtype) for a in parameters))
    d, d_context = p.W_Q.shape[0], p.W_K.shape[0]
    layer = torch.nn.MultiheadAttention(
        d, h, kdim=d_context, vdim=d_context, batch_first=True, dtype=dtype
    )
    with torch.no_grad():
        if d == d_context:
            layer.in_proj_weight.copy_(torch.cat([p.W_Q.T, p.W_K.T, p.W_V.T]))
        else:
            layer.q_proj_weight.copy_(p.W_Q.T)
            layer.k_proj_weight.copy_(p.W_K.T)
            layer.v_proj_weight.copy_(p.W_V.T)
        layer.in_proj_bias.copy_(torch.cat([p.b_Q, p.b_K, p.b_V]))
        layer.out_proj.weight.copy_(p.W_O.T)
        layer.out_proj.bias.copy_(p.b_O)
    return layer


@pytest.mark.parametrize("h", [1, 2, 4, 16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=["f64", "f32"]
)
def test_heads_agree_with_the_library(h, causal, dtype, tolerance):
    parameters = AttentionParameters(*(a / 4 for a in drawn(16, 16, 16, 16)))
    X = np.random.default_rng(1).normal(size=(2, 5, 16))
    layer = library_layer(parameters, h, dtype)
    x = torch.tensor(X, dtype=dtype)
    hidden = ~torch.from_numpy(causal_mask(5)) if causal else None  # True hides, there
    with torch.no_grad():
        theirs, A = layer(x, x, x, attn_mask=hidden, average_attn_weights=False)
    narrow = AttentionParameters(*(a.astype(x.numpy().dtype) for a in parameters))
    output, weights = multi_head_attention(x.numpy(), narrow, h, causal=causal)
    np.testing.assert_allclose(output, theirs.numpy(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(weights, A.numpy(), rtol=0, atol=tolerance)
    assert output.dtype == weights.dtype == x.numpy().dtype


def test_cross_attention_with_padding_agrees_with_the_library():
    parameters = AttentionParameters(*(a / 3 for a in drawn(8, 6, 8, 8)))
    rng = np.random.default_rng(2)
    X, context = rng.normal(size=(3, 4, 8)), rng.normal(size=(3, 7, 6))
    real = key_padding_mask([7, 2, 5], 7)
    x, c = torch.from_numpy(X), torch.from_numpy(context)
    with torch.no_grad():
        theirs, _ = library_layer(parameters, 2)(x, c, c, key_padding_mask=~torch.from_numpy(real))
    output, weights = multi_head_attention(
        X, parameters, 2, context=context, mask=real[:, None, None, :]
    )
    np.testing.assert_allclose(output, theirs.numpy(), rtol=0, atol=1e-12)
    assert weights.shape == (3, 2, 4, 7)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    batches, st.integers(1, 5), st.integers(1, 6), sizes, sizes, sizes, st.booleans(), st.booleans()
)
def test_heads_equal_their_loop(batch, h, width, L_q, L_k, d, causal, cross):
    rng = np.random.default_rng(L_q + 7 * L_k)
    parameters = drawn(d, d + 1 if cross else d, h * width, 2 * h)
    X = rng.normal(size=(*batch, L_q, d))
    context = rng.normal(size=(*batch, L_k, d + 1)) if cross else None
    options = {"context": context, "causal": causal}
    batched = multi_head_attention(X, parameters, h, **options)
    looped = multi_head_attention_by_loop(X, parameters, h, **options)
    for one, other in zip(batched, looped, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 4), (2, 4, 4), (1, 4, 4), (3, 1, 1, 4), (3, 2, 4, 4), (4,)])
def test_the_loop_takes_the_masks_that_the_batch_takes(shape):
    rng = np.random.default_rng(0)
    X, parameters = rng.normal(size=(3, 4, 4)), drawn(4, 4, 4, 4)
    mask = rng.random(shape) < 0.6
    batched = multi_head_attention(X, parameters, 2, mask=mask)
    looped = multi_head_attention_by_loop(X, parameters, 2, mask=mask)
    for one, other in zip(batched, looped, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_mask_of_two_sequences_is_not_taken_for_one_of_two_heads_by_the_loop_alone():
    X = np.random.default_rng(0).normal(size=(2, 4, 4))
    mask = np.array([np.tri(4, dtype=bool), np.eye(4, dtype=bool)])
    by_loop = multi_head_attention_by_loop(X, SQUARE, 2, mask=mask)[1]
    np.testing.assert_allclose(by_loop, multi_head_attention(X, SQUARE, 2, mask=mask)[1])
    for kernel in (multi_head_attention, multi_head_attention_by_loop):
        with pytest.raises(ValueError, match=r"\(3, 4, 4\)"):
            kernel(X, SQUARE, 2, mask=np.ones((3, 4, 4), dtype=bool))


def test_splitting_and_merging_are_inverse():
    X = np.arange(24).reshape(2, 3, 4)
    assert split_heads(X, 2).shape == (2, 2, 3, 2)
    np.testing.assert_array_equal(split_heads(X, 2)[:, 1], X[..., 2:])
    np.testing.assert_array_equal(merge_heads(split_heads(X, 2)), X)
    assert np.shares_memory(split_heads(X, 2), X)


SQUARE = AttentionParameters(*[np.eye(4)] * 4)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: split_heads(np.ones((3, 10)), 4), "10 and 4"),
        (lambda: split_heads(np.ones((3, 4)), 0), "got 0"),
        (lambda: split_heads(np.ones((3, 4)), 1.5), "got 1.5"),
        (lambda: split_heads(np.ones(4), 2), r"\(4,\)"),
        (lambda: merge_heads(np.ones((3, 4))), r"\(3, 4\)"),
        (lambda: multi_head_attention(np.ones((3, 5)), SQUARE, 2), r"X \(3, 5\).*W_Q \(4, 4\)"),
        (lambda: multi_head_attention(np.ones((3, 4)), SQUARE, 3), "4 and 3"),
        (lambda: multi_head_attention_by_loop(np.ones((3, 4)), SQUARE, 0), "got 0"),
        (lambda: multi_head_attention(np.ones(4), SQUARE, 2), r"X \(4,\)"),
        (
            lambda: multi_head_attention(np.ones((3, 4)), SQUARE, 2, context=np.ones((0, 4))),
            r"\(2, 0, 2\)",
        ),
        (
            lambda: multi_head_attention(np.ones((3, 4)), SQUARE._replace(W_O=np.ones((5, 4))), 2),
            r"W_O \(5, 4\)",
        ),
        (lambda: multi_head_attention(EYE, SQUARE._replace(b_Q=np.ones(3)), 2), r"b_Q.*\(3,\)"),
        (lambda: multi_head_attention(EYE, SQUARE._replace(b_K=[[1]] * 4), 2), r"b_K.*\(4, 1\)"),
        (lambda: multi_head_attention(EYE, SQUARE._replace(b_V=[EYE]), 2), r"b_V.*\(1, 4, 4\)"),
        (lambda: multi_head_attention(EYE, SQUARE._replace(b_O=np.ones(5)), 2), r"b_O.*\(5,\)"),
    ],
)
def test_heads_that_do_not_fit_are_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


def test_float32_without_biases_stays_float32():
    identity = np.eye(4, dtype=np.float32)
    parameters = attention.AttentionParameters(*[identity] * 4)
    for kernel in (attention.multi_head_attention, attention.multi_head_attention_by_loop):
        output, weights = kernel(identity, parameters, 2)
        assert (output.dtype, weights.dtype) == (np.float32, np.float32)
