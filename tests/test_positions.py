"""Position: encodings, biases and rotations against their definitions and against each other."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from worked_examples import positions
from worked_examples.attention import (
    AttentionParameters,
    attention_gradients,
    causal_mask,
    multi_head_attention,
    multi_head_attention_by_loop,
    scaled_dot_product_attention,
)
from worked_examples.positions import (
    alibi_bias,
    alibi_slopes,
    angles,
    first_rise,
    offset_similarity,
    offsets,
    relative_bias,
    rotary,
    shift_rotation,
    sinusoidal_encoding,
    with_positions,
)

WIDTHS = [2, 4, 6, 8, 10, 64, 512]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# ---------------------------------------------------------------------------- equivariance


@pytest.mark.parametrize("seed", range(5))
def test_permuted_rows_give_permuted_outputs_and_weights(seed):
    X = normal(2, 7, 8, seed=seed)
    parameters = AttentionParameters(*normal(4, 8, 8, seed=seed + 50))
    order = np.random.default_rng(seed).permutation(7)
    output, weights = multi_head_attention(X, parameters, 2)
    turned, turned_weights = multi_head_attention(X[:, order], parameters, 2)
    np.testing.assert_allclose(turned, output[:, order], rtol=0, atol=1e-12)
    followed = weights[:, :, order][..., order]  # every weight moves in row and in column
    np.testing.assert_allclose(turned_weights, followed, rtol=0, atol=1e-12)
    assert np.abs(turned - output).max() > 0.01  # equivariant, not invariant


@pytest.mark.parametrize("layer", ["sinusoids", "causal", "ALiBi", "rotary"])
def test_position_and_a_causal_mask_end_the_equivariance(layer):
    X, order = normal(6, 4), np.array([3, 0, 5, 1, 4, 2])

    def outputs(X):
        Q = rotary(X) if layer == "rotary" else with_positions(X) if layer == "sinusoids" else X
        bias = alibi_bias(0.5, 6) if layer == "ALiBi" else None
        return scaled_dot_product_attention(Q, Q, X, causal=layer == "causal", bias=bias)[0]

    assert np.abs(outputs(X[order]) - outputs(X)[order]).max() > 0.01


def test_a_causal_mask_alone_tells_the_position():
    first, rest = np.array([5.0, 1.0]), np.array([5.0, 0.0])
    X = np.array([first, *[rest] * 9])  # alike but for the first
    output, _ = scaled_dot_product_attention(np.zeros((10, 1)), np.zeros((10, 1)), X, causal=True)
    np.testing.assert_allclose(output[:, 1], 1 / np.arange(1, 11), rtol=1e-14)
    without, _ = scaled_dot_product_attention(np.zeros((10, 1)), np.zeros((10, 1)), X)
    np.testing.assert_allclose(without, np.tile(without[:1], (10, 1)), rtol=0, atol=1e-15)


# ------------------------------------------------------------------------------- sinusoids


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("base", [10.0, 10_000.0])
def test_sinusoids_entry_by_entry(d, base):
    PE = sinusoidal_encoding(11, d, base)
    assert PE.shape == (11, d)
    for pos in range(11):
        for i in range(d // 2):
            angle = pos / base ** (2 * i / d)
            assert PE[pos, 2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert PE[pos, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)


@pytest.mark.parametrize(
    ("pos", "row"),
    [
        (0, [0, 1, 0, 1]),
        (1, [0.8415, 0.5403, 0.0100, 1.0000]),
        (2, [0.9093, -0.4161, 0.0200, 0.9998]),
        (3, [0.1411, -0.9900, 0.0300, 0.9996]),
    ],
)
def test_the_chapters_encodings(pos, row):
    assert sinusoidal_encoding(4, 4)[pos].round(4).tolist() == row
    table = positions.encoding_table()[pos]
    assert [round(table[f"feature {j}"], 4) for j in range(4)] == row


@pytest.mark.parametrize("d", WIDTHS)
def test_dot_products_depend_on_the_offset_alone(d):
    PE = sinusoidal_encoding(60, d)
    products = PE @ PE.T
    for k in range(60):
        along = np.diagonal(products, k)
        np.testing.assert_allclose(along, d / 2 * offset_similarity(k, d), rtol=0, atol=1e-10)


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("k", [-3, 0, 1, 7, 0.5])
def test_a_shift_is_one_rotation(d, k):
    R = shift_rotation(k, d)
    np.testing.assert_allclose(R @ R.T, np.eye(d), atol=1e-14)
    np.testing.assert_allclose(shift_rotation(-k, d), R.T, atol=1e-15)
    if isinstance(k, int):
        PE = sinusoidal_encoding(30, d)
        np.testing.assert_allclose(PE[5:20] @ R.T, PE[5 + k : 20 + k], atol=1e-12)


@pytest.mark.parametrize(
    ("d", "k", "cosine"),
    [(4, 3, 0.0048), (8, 3, 0.4912), (16, 3, 0.6929), (32, 4, 0.7288), (64, 5, 0.7345),
     (128, 11, 0.6616), (256, 24, 0.5869), (512, 43, 0.5264)],
)  # fmt: skip
def test_where_further_stops_meaning_less_alike(d, k, cosine):
    assert first_rise(d) == k
    likeness = sinusoidal_encoding(k + 2, d) @ sinusoidal_encoding(k + 2, d)[0] / (d / 2)
    assert (np.diff(likeness[: k + 1]) <= 0).all()
    assert likeness[k + 1] > likeness[k]
    assert round(float(likeness[k]), 4) == cosine
    row = next(row for row in positions.monotone_table() if row["d"] == d)
    assert list(row.values()) == [d, k, pytest.approx(cosine, abs=5e-5)]


def test_a_search_that_finds_no_rise_says_how_far_it_went():
    assert first_rise(2, base=10.0, longest=2) == 2
    assert first_rise(2, longest=1000) == 3


def test_the_similarity_table():
    rows = {row["offset"]: row for row in positions.similarity_table()}
    assert rows[0] == {"offset": 0, "d = 8": 1, "d = 64": 1, "d = 512": 1}
    assert rows[64]["d = 8"] == pytest.approx(0.7963, abs=5e-5)
    assert rows[8]["d = 8"] > rows[4]["d = 8"]  # further and more alike
    assert rows[128]["d = 512"] == pytest.approx(0.4059, abs=5e-5)


@pytest.mark.parametrize("shape", [(3, 3, 6), (2, 5, 4), (2, 3, 4, 8), (5, 2), (1, 1, 2)])
def test_positions_run_along_the_last_axis_but_one(shape):
    added = with_positions(np.zeros(shape))
    assert added.shape == shape
    rows = added.reshape(-1, *shape[-2:])
    for one in rows:
        np.testing.assert_array_equal(one, rows[0])  # two sequences: the same
    for i in range(shape[-2] - 1):
        assert (rows[0, i] != rows[0, i + 1]).any()  # two positions: different
    np.testing.assert_array_equal(rows[0], sinusoidal_encoding(*shape[-2:]))


@pytest.mark.parametrize(
    ("dtype", "result"), [(np.float32, np.float32), (np.float16, np.float16), (int, float)]
)
def test_adding_positions_keeps_the_dtype(dtype, result):
    assert with_positions(np.ones((3, 4), dtype)).dtype == result


@pytest.mark.parametrize("L", [1, 2])
def test_one_position_has_an_encoding(L):
    np.testing.assert_array_equal(sinusoidal_encoding(L, 6)[0], [0, 1, 0, 1, 0, 1])


def test_no_two_positions_of_a_book_are_alike():
    PE = sinusoidal_encoding(2000, 32)
    apart = 2 * (16 - PE @ PE.T) + 4 * np.eye(2000)
    assert apart.min() > 0.5


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: sinusoidal_encoding(4, 5), "even.*5"),
        (lambda: sinusoidal_encoding(4, 1), "even.*1"),
        (lambda: sinusoidal_encoding(4, 0), "0"),
        (lambda: sinusoidal_encoding(0, 4), "L must.*0"),
        (lambda: sinusoidal_encoding(-2, 4), "L must.*-2"),
        (lambda: sinusoidal_encoding(2.5, 4), "2.5"),
        (lambda: sinusoidal_encoding(4, 4, base=0), "base.*0"),
        (lambda: sinusoidal_encoding(4, 4, base=-10), "base.*-10"),
        (lambda: sinusoidal_encoding(4, 4, base=math.nan), "base.*nan"),
        (lambda: sinusoidal_encoding(4, 4, base=math.inf), "base.*inf"),
        (lambda: sinusoidal_encoding(4, 4, base="ten"), "base.*ten"),
        (lambda: with_positions(np.zeros(4)), r"\(4,\)"),
        (lambda: with_positions(np.zeros((2, 3, 7))), "even.*7"),
        (lambda: shift_rotation(math.nan, 4), "shift.*nan"),
        (lambda: rotary(np.zeros((3, 5))), "even.*5"),
        (lambda: rotary(np.zeros(4)), r"\(4,\)"),
        (lambda: rotary(np.zeros((3, 4)), [0, 1]), r"3 rows.*\(2,\)"),
        (lambda: rotary(np.zeros((3, 4)), 5), r"3 rows.*\(\)"),
        (lambda: rotary(np.zeros((3, 4)), pairing="both"), "both"),
        (lambda: rotary(np.zeros((3, 4)), base=0), "base.*0"),
        (lambda: rotary(np.array([["a", "b"]])), "real numbers"),
        (lambda: relative_bias([0.0, 1.0], 3), r"\(2,\)"),
        (lambda: relative_bias(0.0, 3), r"\(\)"),
        (lambda: relative_bias([0.0], 0), "L_q.*0"),
        (lambda: alibi_slopes(0), "heads.*0"),
        (lambda: alibi_slopes(-1), "heads.*-1"),
        (lambda: alibi_slopes(2.5), "heads.*2.5"),
        (lambda: alibi_bias(math.nan, 3), "nan"),
        (lambda: alibi_bias([0.5, math.inf], 3), "inf"),
        (lambda: alibi_bias(0.5, 3, 0), "L_k.*0"),
        (lambda: offsets(3, 1.5), "1.5"),
    ],
)
def test_bad_input_is_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


# ------------------------------------------------------------------- position in the scores


@pytest.mark.parametrize(("L_q", "L_k"), [(1, 1), (1, 5), (2, 4), (4, 4), (5, 3)])
def test_offsets_are_aligned_as_the_causal_mask_is(L_q, L_k):
    np.testing.assert_array_equal(offsets(L_q, L_k) <= 0, causal_mask(L_q, L_k))
    np.testing.assert_array_equal(offsets(L_q, L_k), offsets(L_k + L_q)[-L_q:, -L_k:])
    assert offsets(L_q, L_k)[-1, -1] == 0


def test_a_relative_bias_reads_its_table_and_goes_on_with_its_ends():
    table = np.array([3.0, 2.0, 1.0, -1.0, -2.0])  # for offsets -2 to 2
    B = relative_bias(table, 5)
    for i in range(5):
        for j in range(5):
            assert B[i, j] == table[min(max(j - i, -2), 2) + 2]
    heads = normal(3, 5)
    np.testing.assert_array_equal(relative_bias(heads, 2, 6)[1], relative_bias(heads[1], 2, 6))


@pytest.mark.parametrize(
    ("h", "slopes"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (8, [2.0**-i for i in range(1, 9)]),
        (16, [2 ** (-i / 2) for i in range(1, 17)]),
        (3, [2**-4, 2**-8, 2**-2]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
        (12, [2.0**-i for i in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_alibi_slopes_are_those_of_the_paper(h, slopes):
    assert alibi_slopes(h) == pytest.approx(slopes, rel=1e-14)


@pytest.mark.parametrize("h", range(1, 70))
def test_alibi_slopes_differ_from_head_to_head(h):
    assert len(set(alibi_slopes(h))) == h
    assert alibi_slopes(h).min() == pytest.approx(2**-8)


def test_alibi_costs_distance_whatever_the_lengths():
    bias = alibi_bias(alibi_slopes(4), 2, 5)
    assert bias.shape == (4, 2, 5)
    np.testing.assert_allclose(bias[0], -0.25 * np.abs([[-3, -2, -1, 0, 1], [-4, -3, -2, -1, 0]]))
    assert not np.signbit(bias[0, 1, 4])  # 0, not -0
    np.testing.assert_allclose(bias, alibi_bias(alibi_slopes(4), 5)[:, -2:])


def test_the_slopes_table_has_a_column_for_each_number_of_heads():
    rows = positions.slopes_table((2, 3))
    assert [list(row.values()) for row in rows] == [
        [0, 2**-4, 2**-4], [1, 2**-8, 2**-8], [2, "", 2**-2]
    ]  # fmt: skip


# ---------------------------------------------------------------------------------- rotary


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(1, 6), st.integers(1, 16), st.integers(-50, 50),
    st.sampled_from(positions.PAIRINGS), st.sampled_from([10.0, 1e4]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_rotated_scores_depend_on_the_offset_alone(L, pairs, shift, pairing, base, seed):
    Q, K = normal(2, L, 2 * pairs, seed=seed)
    here = np.arange(L)

    def scores(at):
        return rotary(Q, at, base, pairing) @ rotary(K, at, base, pairing).T

    np.testing.assert_allclose(scores(here + shift), scores(here), rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.diagonal(scores(here)), (Q * K).sum(axis=1), atol=1e-10)
    lengths = np.linalg.norm(rotary(Q, here, base, pairing), axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(Q, axis=1), rtol=1e-12)


def test_rotary_is_a_product_of_complex_numbers():
    X = normal(2, 3, 7, 8)
    ours = rotary(X)
    turned = (X[..., ::2] + 1j * X[..., 1::2]) * np.exp(1j * np.outer(np.arange(7), angles(8)))
    np.testing.assert_allclose(ours[..., ::2], turned.real, atol=1e-14)
    np.testing.assert_allclose(ours[..., 1::2], turned.imag, atol=1e-14)


def test_the_two_pairings_are_one_rotation_with_columns_reordered():
    X = normal(5, 8)
    halves = np.r_[0:8:2, 1:8:2]  # where the interleaved columns stand among the halves
    reordered = rotary(X[:, halves], pairing="halves")
    np.testing.assert_allclose(reordered, rotary(X)[:, halves], atol=1e-15)
    assert np.abs(rotary(X, pairing="halves") - rotary(X)).max() > 0.1


def test_rotary_takes_positions_of_each_sequence():
    X = normal(2, 3, 4)
    at = np.array([[0, 1, 2], [5, 6, 7]])
    both = rotary(X, at)
    np.testing.assert_array_equal(both[1], rotary(X[1], [5, 6, 7]))
    assert rotary(X.astype(np.float32)).dtype == np.float32
    assert rotary(np.ones((1, 2), int)).tolist() == [[1.0, 1.0]]


def test_a_rotated_cache_serves_a_later_query():
    Q, K = normal(2, 9, 6)
    whole = rotary(Q) @ rotary(K).T
    last = rotary(Q[-1:], [8]) @ rotary(K).T
    np.testing.assert_allclose(last, whole[-1:], atol=1e-14)


# ------------------------------------------------------------- the bias, through the kernels


@st.composite
def biased(draw):
    """Q, K, V with a bias of some shape that broadcasts, a mask or none."""
    batch = draw(st.sampled_from([(), (2,), (2, 3)]))
    L_q, L_k, d_k, d_v = (draw(st.integers(1, 6)) for _ in range(4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Q, K, V = (rng.normal(size=(*batch, *s)) for s in ((L_q, d_k), (L_k, d_k), (L_k, d_v)))
    shapes = [(L_q, L_k), (1, L_k), (L_q, 1), (), (*batch, L_q, L_k), (1,) * len(batch) + (1, L_k)]
    bias = 5 * rng.normal(size=draw(st.sampled_from(shapes)))
    mask = rng.random((L_q, L_k)) < 0.6 if draw(st.booleans()) else np.ones((L_q, L_k), bool)
    mask[np.arange(L_q), rng.integers(L_k, size=L_q)] = True
    return Q, K, V, bias, mask


@settings(max_examples=200, deadline=None, derandomize=True)
@given(biased())
def test_a_bias_is_torchs_float_mask(case):
    Q, K, V, bias, mask = case
    output, weights = scaled_dot_product_attention(Q, K, V, mask=mask, bias=bias)
    added = np.where(mask, np.broadcast_to(bias, weights.shape), -np.inf)
    leaves = [torch.from_numpy(x).requires_grad_() for x in (Q, K, V)]
    theirs = functional.scaled_dot_product_attention(*leaves, attn_mask=torch.from_numpy(added))
    np.testing.assert_allclose(output, theirs.detach().numpy(), rtol=1e-12, atol=1e-12)
    assert (weights[~np.broadcast_to(mask, weights.shape)] == 0).all()
    theirs.backward(torch.ones_like(theirs))
    ours = attention_gradients(Q, K, V, np.ones_like(output), mask=mask, bias=bias)
    for gradient, leaf in zip(ours, leaves, strict=True):
        np.testing.assert_allclose(gradient, leaf.grad.numpy(), rtol=1e-9, atol=1e-10)


def test_a_bias_is_added_after_the_scaling():
    Q, K, bias = normal(3, 4), normal(5, 4, seed=1), normal(3, 5, seed=2)
    _, weights = scaled_dot_product_attention(Q, K, K, bias=bias)
    powers = np.exp(Q @ K.T / 2 + bias)
    np.testing.assert_allclose(weights, powers / powers.sum(axis=1, keepdims=True), rtol=1e-12)


def test_no_bias_and_a_bias_of_zeros_are_one():
    X = normal(4, 3)
    plain = scaled_dot_product_attention(X, X, X, causal=True)
    zeros = scaled_dot_product_attention(X, X, X, causal=True, bias=np.zeros((4, 4)))
    np.testing.assert_array_equal(plain[0], zeros[0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("bias_dtype", [np.float64, np.float32, int])
def test_a_bias_does_not_change_the_dtype(dtype, bias_dtype):
    X = normal(4, 2).astype(dtype)
    bias = np.arange(16).reshape(4, 4).astype(bias_dtype)
    output, weights = scaled_dot_product_attention(X, X, X, bias=bias)
    assert output.dtype == weights.dtype == dtype


@pytest.mark.parametrize("form", ["mask", "causal"])
def test_whatever_a_bias_holds_at_a_hidden_position_changes_nothing(form):
    X, seen = normal(4, 3), causal_mask(4)
    bias = alibi_bias(0.5, 4)
    options = {"mask": seen} if form == "mask" else {"causal": True}
    right, weights = scaled_dot_product_attention(X, X, X, bias=bias, **options)
    junk = np.where(seen, bias, np.nan)
    with np.errstate(all="raise"):
        output, same = scaled_dot_product_attention(X, X, X, bias=junk, **options)
    np.testing.assert_array_equal(output, right)
    np.testing.assert_array_equal(same, weights)
    gradients = attention_gradients(X, X, X, X, bias=junk, **options)
    for one, other in zip(
        gradients, attention_gradients(X, X, X, X, bias=bias, **options), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_nan_in_a_bias_spoils_the_rows_that_see_it_and_no_other():
    X, bias = normal(3, 2), np.zeros((3, 3))
    bias[1, 0] = np.nan
    output, _ = scaled_dot_product_attention(X, X, X, bias=bias)
    np.testing.assert_array_equal(np.isnan(output).all(axis=1), [False, True, False])
    with pytest.raises(ValueError, match="bias holds NaN"):
        attention_gradients(X, X, X, X, bias=bias)


@pytest.mark.parametrize(
    ("bias", "shown"),
    [
        (np.full((3, 3), -np.inf), "finite.*mask"),
        (np.full((3, 3), np.inf), "finite"),
        (np.ones((3, 3), bool), "bool.*mask"),
        (np.ones((3, 4)), r"\(3, 3\).*\(3, 4\)"),
        (np.ones((2, 3, 3)), r"\(3, 3\).*\(2, 3, 3\)"),
        (np.array([["a"]]), "real numbers"),
        (np.ones((3, 3), complex), "complex"),
    ],
)
def test_a_bad_bias_is_named(bias, shown):
    X = normal(3, 2)
    with pytest.raises(ValueError, match=shown):
        scaled_dot_product_attention(X, X, X, bias=bias)
    with pytest.raises(ValueError, match=shown):
        attention_gradients(X, X, X, X, bias=bias)


def test_a_bias_too_large_for_the_dtype_is_named():
    X = normal(3, 2).astype(np.float32)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="float32"):
        scaled_dot_product_attention(X, X, X, bias=np.full((3, 3), 1e300))


@pytest.mark.parametrize(
    "shape", [(), (5, 5), (1, 5), (1, 5, 5), (4, 5, 5), (2, 4, 5, 5), (2, 1, 5, 5)]
)
def test_heads_take_a_bias_each_or_share_one(shape):
    X, bias = normal(2, 5, 8), normal(*shape, seed=1)
    parameters = AttentionParameters(*normal(4, 8, 8, seed=2))
    output, weights = multi_head_attention(X, parameters, 4, causal=True, bias=bias)
    looped, theirs = multi_head_attention_by_loop(X, parameters, 4, causal=True, bias=bias)
    np.testing.assert_allclose(output, looped, atol=1e-13)
    np.testing.assert_allclose(weights, theirs, atol=1e-14)
    full = np.broadcast_to(bias, (2, 4, 5, 5))
    Q, K, V = (
        np.swapaxes((X @ W).reshape(2, 5, 4, 2), 1, 2) for W in parameters[:3]
    )  # (2, 4, 5, 2)
    added = torch.from_numpy(np.where(causal_mask(5), full, -np.inf))
    heads = functional.scaled_dot_product_attention(
        *map(torch.from_numpy, (Q, K, V)), attn_mask=added
    )
    joined = np.swapaxes(heads.numpy(), 1, 2).reshape(2, 5, 8) @ parameters.W_O
    np.testing.assert_allclose(output, joined, atol=1e-12)


@pytest.mark.parametrize("attend", [multi_head_attention, multi_head_attention_by_loop])
def test_a_bias_for_another_number_of_heads_is_named(attend):
    parameters = AttentionParameters(*normal(4, 8, 8))
    with pytest.raises(ValueError, match=r"bias.*\(3, 5, 5\)"):
        attend(normal(5, 8), parameters, 4, bias=np.zeros((3, 5, 5)))


# --------------------------------------------------------------------------------- what came


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: positions.with_positions([["a", "b"]]), "real numbers.*<U1"),
        (lambda: positions.with_positions(np.ones((2, 2), complex)), "real numbers.*complex"),
        (lambda: positions.with_positions([[1, 2], [3]]), r"X.*\[3\]"),
        (lambda: positions.rotary([[1, 2], [3]]), r"X.*\[3\]"),
        (lambda: positions.rotary(np.ones((2, 3, 4)), np.ones((3, 3))), r"\(2, 3, 4\).*\(3, 3\)"),
        (lambda: positions.rotary(np.ones((3, 4)), ["a", 1, 2]), "positions.*real numbers"),
        (lambda: positions.rotary(np.ones((3, 4)), [[0], [1, 2]]), r"positions.*\[1, 2\]"),
        (lambda: positions.angles(4, 10**400), "base.*got 1000"),
        (lambda: positions.shift_rotation("a", 4), "shift.*'a'"),
        (lambda: positions.relative_bias([[1], [1, 2]], 3), r"table.*\[1, 2\]"),
        (lambda: positions.alibi_bias("x", 3), "slopes.*x"),
        (lambda: positions.alibi_bias([[1], [1, 2]], 3), r"slopes.*\[1, 2\]"),
        (lambda: positions.alibi_bias(1j, 3), "slopes.*1j"),
        (lambda: positions.offset_similarity(1j, 4), "offsets.*1j"),
    ],
)
def test_what_came_is_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


@pytest.mark.filterwarnings("error")
def test_rotating_padding_and_extremes_leaves_no_warning():
    X = np.ones((3, 4))
    X[2] = np.inf
    turned = positions.rotary(X)
    np.testing.assert_array_equal(turned[:2], positions.rotary(X[:2]))
    assert np.isnan(turned[2]).any()
    assert np.isinf(positions.rotary(np.full((2, 2), 65504, dtype=np.float16))).any()
    assert np.isnan(positions.rotary(np.ones((1, 2)), [np.inf])).all()
