"""The numbers of the chapter on the rest of the block, and its kernels against torch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from worked_examples import block, costs, depth
from worked_examples.attention import AttentionParameters, causal_mask, multi_head_attention
from worked_examples.block import (
    BlockParameters,
    FeedForwardParameters,
    NormParameters,
    feed_forward,
    gelu,
    initial_parameters,
    layer_norm,
    parameters_from_torch,
    relu,
    residual,
    transformer_block,
)
from worked_examples.figures import block as drawings
from worked_examples.views.block import parameters as parameters_view

# --------------------------------------------------------------------------------- activations


def test_gelu_is_the_exact_one():
    x = np.concatenate([np.linspace(-40, 40, 4001), [-1e300, 1e300, 0.0, -0.0]])
    theirs = torch.nn.functional.gelu(torch.tensor(x)).numpy()
    assert (abs(gelu(x) - theirs) <= 1e-14 * np.maximum(1, abs(x))).all()
    rough = torch.nn.functional.gelu(torch.tensor(x), approximate="tanh").numpy()
    assert abs(gelu(x) - rough)[:4001].max() > 1e-4  # the approximation would be seen


@pytest.mark.parametrize(
    ("x", "value"), [(-1, -0.1587), (0, 0), (1, 0.8413), (-0.7518, -0.1700), (3, 2.9960)]
)
def test_gelu_by_the_normal_distribution(x, value):
    assert gelu(x) == pytest.approx(x * (1 + math.erf(x / math.sqrt(2))) / 2, abs=1e-15)
    assert gelu(x).round(4) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("function", [relu, gelu])
def test_activations_keep_shape_and_dtype(function):
    for shape in [(), (3,), (2, 0), (2, 3, 4)]:
        assert function(np.ones(shape, np.float32)).shape == shape
        assert function(np.ones(shape, np.float32)).dtype == np.float32
    assert np.isnan(function(np.array([np.nan, 1.0]))).tolist() == [True, False]


# ---------------------------------------------------------------------------- layer normalisation


def test_layer_norm_by_hand():
    assert block.ROW == (9, 1, 3, 3)
    assert layer_norm(block.ROW).round(4).tolist() == [1.6667, -1.0, -0.3333, -0.3333]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(5,), (3, 8), (2, 3, 16), (2, 2, 3, 1)])
@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.3])
def test_layer_norm_against_torch(shape, eps, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(3, 5, size=shape).astype(dtype)
    scale, shift = rng.normal(size=(2, shape[-1])).astype(dtype)
    ours = layer_norm(X, scale, shift, eps=eps)
    theirs = torch.nn.functional.layer_norm(
        torch.tensor(X), shape[-1:], torch.tensor(scale), torch.tensor(shift), eps
    ).numpy()
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-5)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20), st.floats(0.5, 100))
@settings(max_examples=60, deadline=None)
def test_layer_norm_forgets_where_a_row_was(row, factor):
    row = np.array(row)
    if row.std() < 1:
        return
    normal = layer_norm(row, eps=1e-12)
    assert normal.mean() == pytest.approx(0, abs=1e-9)
    assert normal.var() == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(layer_norm(factor * row + 7, eps=1e-12), normal, atol=1e-6)


def test_layer_norm_treats_each_position_alone():
    X = np.random.default_rng(0).normal(size=(2, 5, 8))
    whole = layer_norm(X)
    np.testing.assert_array_equal(whole[1, 3], layer_norm(X[1, 3]))
    np.testing.assert_array_equal(layer_norm(X[:, ::-1]), whole[:, ::-1])


def test_layer_norm_of_odd_rows():
    assert layer_norm([5.0, 5.0], 2.0, [1.0, 3.0]).tolist() == [1, 3]  # equal numbers: the shift
    assert layer_norm([[7]], 2, 0.5).tolist() == [[0.5]]  # width 1
    hurt = layer_norm([[1.0, np.nan], [np.inf, 0.0], [1.0, 3.0]])
    assert np.isnan(hurt).tolist() == [[True, True], [True, True], [False, False]]
    assert layer_norm(np.array([6e4, -6e4], np.float16)).tolist() == [1, -1]  # 6e4 squared fits not
    assert layer_norm(np.zeros((0, 3))).shape == (0, 3)


# ------------------------------------------------------------------------------------ feed-forward


def drawn(d=8, H=32, seed=0, biases=True):
    """Draw a block's parameters with everything in it that can be learned."""
    rng = np.random.default_rng(seed)
    plain = initial_parameters(d, H, rng)
    if not biases:
        return plain
    return BlockParameters(
        plain.attention._replace(
            **{name: rng.normal(size=d) for name in ("b_Q", "b_K", "b_V", "b_O")}
        ),
        plain.feed_forward._replace(b_1=rng.normal(size=H), b_2=rng.normal(size=d)),
        NormParameters(rng.normal(1, 0.2, d), rng.normal(size=d)),
        NormParameters(rng.normal(1, 0.2, d), rng.normal(size=d)),
    )


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_feed_forward_against_one_position_and_one_unit_at_a_time(activation):
    parameters = drawn().feed_forward
    X = np.random.default_rng(1).normal(size=(2, 3, 8))
    bend = {"relu": lambda s: max(s, 0), "gelu": lambda s: s * (1 + math.erf(s / 2**0.5)) / 2}
    expected = np.zeros_like(X)
    for place in np.ndindex(2, 3):
        expected[place] = parameters.b_2
        for unit in range(32):
            total = X[place] @ parameters.W_1[:, unit] + parameters.b_1[unit]
            expected[place] += bend[activation](total) * parameters.W_2[unit]
    np.testing.assert_allclose(
        feed_forward(X, parameters, activation=activation), expected, atol=1e-12
    )


def test_feed_forward_sees_each_position_alone():
    parameters = drawn().feed_forward
    X = np.random.default_rng(1).normal(size=(6, 8))
    order = np.random.default_rng(2).permutation(6)
    whole = feed_forward(X, parameters)
    np.testing.assert_allclose(feed_forward(X[order], parameters), whole[order], atol=1e-12)
    X[2] = np.nan
    hurt = feed_forward(X, parameters)
    assert np.isnan(hurt[2]).all()
    np.testing.assert_allclose(np.delete(hurt, 2, 0), np.delete(whole, 2, 0), atol=1e-12)


# --------------------------------------------------------------------------------------- the block


def library_layer(d=8, h=2, H=32, *, norm, activation, dtype, bias=True, eps=1e-5):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        d, h, H, dropout=0.0, activation=activation, batch_first=True,
        norm_first=norm == "pre", dtype=dtype, bias=bias, layer_norm_eps=eps,
    )  # fmt: skip
    with torch.no_grad():  # no number may be 0 or 1, or a mix-up would go unseen
        for parameter in layer.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return layer


MASKS = {
    "no mask": {},
    "causal": {"causal": True},
    "padded": {"mask": (np.arange(5) < np.array([5, 3])[:, None])[:, None, None]},
    "both": {"causal": True, "mask": (np.arange(5) < np.array([5, 3])[:, None])[:, None, None]},
}


def for_torch(causal=False, mask=None):
    """Turn our masks round: torch's are True where a query may not look."""
    given = {}
    if causal:
        given["src_mask"] = torch.tensor(~causal_mask(5))
    if mask is not None:
        given["src_key_padding_mask"] = torch.tensor(~mask[:, 0, 0])
    return given


@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=["f64", "f32"]
)
def test_the_block_agrees_with_the_library(norm, activation, masks, dtype, tolerance):
    layer = library_layer(norm=norm, activation=activation, dtype=dtype)
    X = torch.tensor(np.random.default_rng(0).normal(size=(2, 5, 8)), dtype=dtype)
    theirs = layer(X, **for_torch(**masks)).detach().numpy()
    parameters = parameters_from_torch(layer)
    ours, weights = transformer_block(
        X.numpy(), parameters, 2, norm=norm, activation=activation, **masks
    )
    assert ours.dtype == weights.dtype == X.numpy().dtype
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
    # The conventions matter: the other order, or the mask the other way round, is far off.
    other = {"post": "pre", "pre": "post"}[norm]
    wrong = transformer_block(X.numpy(), parameters, 2, norm=other, activation=activation, **masks)
    assert abs(wrong[0] - theirs).max() > 0.1
    if "causal" in masks:
        wrong = layer(X, src_mask=torch.tensor(causal_mask(5))).detach().numpy()
        assert not np.allclose(wrong, ours, atol=0.01)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_block_agrees_without_biases_and_with_another_eps(norm):
    layer = library_layer(norm=norm, activation="gelu", dtype=torch.float64, bias=False, eps=1e-12)
    X = np.random.default_rng(0).normal(size=(2, 5, 8))
    ours = transformer_block(
        X, parameters_from_torch(layer), 2, norm=norm, activation="gelu", eps=1e-12
    )[0]
    np.testing.assert_allclose(ours, layer(torch.tensor(X)).detach().numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_code_does_what_the_picture_shows(norm):
    """Walk the steps that the figure draws, one after the other."""
    parameters, h = drawn(), 2
    X = start = np.random.default_rng(3).normal(size=(5, 8))
    aside = None
    parts = {
        "attention": lambda X: multi_head_attention(X, parameters.attention, h)[0],
        "feed-forward": lambda X: feed_forward(X, parameters.feed_forward),
        "norm 1": lambda X: layer_norm(X, *parameters.norm_1),
        "norm 2": lambda X: layer_norm(X, *parameters.norm_2),
    }
    for step in block.ORDERS[norm]:
        if step == "branch":
            aside = X
        else:
            X = X + aside if step == "add" else parts[step](X)
    np.testing.assert_allclose(transformer_block(start, parameters, h, norm=norm)[0], X, atol=1e-13)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_picture_has_a_box_a_part_and_a_path_a_branch(norm):
    axis = drawings.wiring({norm: block.ORDERS[norm]}).axes[0]
    texts = {text.get_text(): text.get_position()[1] for text in axis.texts}
    parts = [step for step in block.ORDERS[norm] if step not in ("branch", "add")]
    assert sorted(parts, key=texts.get) == parts  # from the bottom up, in the order of the steps
    assert sum(len(line.get_xdata()) == 4 for line in axis.lines) == 2


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_changes_no_real_position(norm):
    parameters, X = drawn(), np.random.default_rng(0).normal(size=(4, 8))
    alone = transformer_block(X, parameters, 2, norm=norm)[0]
    for filler in (0.0, 1e30, np.nan):
        padded = np.vstack([X, np.full((3, 8), filler)])
        together = transformer_block(padded, parameters, 2, norm=norm, mask=np.arange(7) < 4)[0]
        np.testing.assert_allclose(together[:4], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_causal_block_does_not_see_the_future(norm):
    parameters, X = drawn(), np.random.default_rng(0).normal(size=(5, 8))
    before = transformer_block(X, parameters, 2, norm=norm, causal=True)[0]
    X[3:] += 5
    after = transformer_block(X, parameters, 2, norm=norm, causal=True)[0]
    np.testing.assert_array_equal(after[:3], before[:3])
    assert (after[3:] != before[3:]).all()


def test_sizes_that_are_small_or_odd():
    for d, h in ((1, 1), (3, 3), (6, 3)):
        parameters = drawn(d, 5)
        for shape in ((1, d), (2, 3, 1, d)):
            output, weights = transformer_block(np.ones(shape, int), parameters, h, norm="pre")
            assert output.shape == shape
            assert weights.shape == (*shape[:-2], h, shape[-2], shape[-2])
            assert output.dtype == float
    narrow = drawn(biases=False)
    narrow = BlockParameters(*(type(p)(*(np.float32(a) for a in p)) for p in narrow))
    for norm in ("post", "pre"):
        output = transformer_block(np.eye(8, dtype=np.float32), narrow, 2, norm=norm)[0]
        assert output.dtype == np.float32


EIGHT = np.ones((3, 8))
WRONG_FEED = FeedForwardParameters(np.ones((8, 4)), np.ones((5, 8)))


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: layer_norm(3.0), r"\(\)"),
        (lambda: layer_norm(np.ones((3, 0))), r"\(3, 0\)"),
        (lambda: layer_norm(EIGHT, np.ones(3)), r"scale.*\(8,\).*\(3,\)"),
        (lambda: layer_norm(EIGHT, 1, np.ones((3, 8))), r"shift.*\(3, 8\)"),
        (lambda: layer_norm(EIGHT, eps=0), "eps.*got 0"),
        (lambda: layer_norm(EIGHT, eps=math.nan), "eps.*got nan"),
        (lambda: layer_norm(["a"]), "X must hold real numbers"),
        (lambda: layer_norm(EIGHT, 1j), "scale must hold real numbers"),
        (lambda: feed_forward(np.ones((3, 7)), drawn().feed_forward), r"X \(3, 7\).*W_1 \(8, 32\)"),
        (lambda: feed_forward(EIGHT, WRONG_FEED), r"W_1 \(8, 4\), W_2 \(5, 8\)"),
        (lambda: feed_forward(1.0, drawn().feed_forward), r"X \(\)"),
        (
            lambda: feed_forward(EIGHT, drawn().feed_forward._replace(b_1=np.ones(8))),
            r"b_1.*\(32,\).*\(8,\)",
        ),
        (lambda: feed_forward(EIGHT, drawn().feed_forward, activation="tanh"), "'gelu'.*'tanh'"),
        (lambda: layer_norm(EIGHT, eps=None), "eps.*got None"),
        (lambda: layer_norm(EIGHT, eps="x"), "eps.*got 'x'"),
        (lambda: layer_norm([[1, 2], [3]]), r"X.*\[3\]"),
        (lambda: residual([[1], [2, 3]], EIGHT), r"X.*\[2, 3\]"),
        (lambda: residual(["a"], ["b"]), "real numbers"),
        (lambda: residual(EIGHT, np.ones((1, 8))), r"\(3, 8\) and \(1, 8\)"),
        (lambda: transformer_block(EIGHT, drawn(), 2, norm="middle"), "'post' or 'pre'.*'middle'"),
        (lambda: transformer_block(EIGHT, drawn(), 2, norm=["post"]), "'post' or 'pre'"),
        (lambda: transformer_block(EIGHT, drawn(), 3), "8 and 3"),
        (lambda: transformer_block(EIGHT, drawn(), 0), "got 0"),
        (lambda: transformer_block(np.ones((3, 7)), drawn(), 2), r"\(3, 7\)"),
        (
            lambda: transformer_block(
                EIGHT, drawn()._replace(attention=AttentionParameters(*[np.ones((8, 8))] * 3,
                                                                      np.ones((8, 4)))), 2),
            r"\(3, 8\) and \(3, 4\)",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("content", [1e300, np.inf, np.nan])
def test_padding_leaves_no_warning_and_no_trace(norm, content):
    X = np.random.default_rng(1).normal(size=(5, 8))
    X[3:] = content
    padded, _ = transformer_block(X, drawn(), 2, norm=norm, mask=np.arange(5) < 3)
    alone, _ = transformer_block(X[:3], drawn(), 2, norm=norm)
    np.testing.assert_allclose(padded[:3], alone, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_float16_that_overflows_becomes_infinite_in_silence():
    wide = np.full((2, 2), 6e4, dtype=np.float16)
    parameters = FeedForwardParameters(*[np.ones((2, 2), dtype=np.float16)] * 2)
    assert np.isposinf(feed_forward(wide, parameters)).all()


# ---------------------------------------------------------------------------------------- counting

SIZES = (50_000, 512, 6, 8, 2048)


def test_the_count_of_the_syllabus():
    assert tuple(costs.SIZES.values()) == SIZES
    layer = {row["part"]: row["parameters"] for row in costs.layer_table()}
    model = {row["part"]: row["parameters"] for row in costs.model_table()}
    assert layer == {
        "attention": 1_048_576,
        "feed-forward": 2_097_152,
        "biases": 4_608,
        "layer norms": 2_048,
        "one layer": 3_152_384,
    }
    assert model == {
        "embeddings": 25_600_000,
        "layers, matrices alone": 18_874_368,
        "layers, biases and norms too": 18_914_304,
        "model": 44_514_304,
    }
    shares = [row["share"] for row in costs.layer_table()]
    assert shares[1] == pytest.approx(2 / 3, abs=0.0015)
    assert sum(shares[:-1]) == pytest.approx(1, abs=1e-12)


def held_by_torch(d, h, H, **options):
    with torch.device("meta"):  # shapes without numbers: nothing to draw
        layer = torch.nn.TransformerEncoderLayer(d, h, H, **options)
    return sum(parameter.numel() for parameter in layer.parameters())


@pytest.mark.parametrize(
    ("d", "h", "H"), [(512, 8, 2048), (512, 1, 2048), (384, 12, 1536), (6, 3, 5), (1, 1, 1)]
)
def test_the_count_is_what_torch_holds(d, h, H):
    assert costs.layer_parameters(d, h, H) == held_by_torch(d, h, H)
    # Without biases torch's norms keep their scales alone.
    matrices = costs.layer_parameters(d, h, H, biases_and_norms=False)
    assert matrices == held_by_torch(d, h, H, bias=False) - 2 * d


def test_the_count_is_what_our_own_block_holds():
    parameters = drawn(8, 32)
    assert sum(a.size for part in parameters for a in part) == costs.layer_parameters(8, 2, 32)


def test_numpy_integers_do_not_overflow_a_count():
    d = np.int32(50_000)
    assert costs.attention_parameters(d, np.int32(8)) == 4 * 50_000**2
    assert costs.feed_forward_parameters(d, d) == 2 * 50_000**2


def test_heads_are_free():
    counts = {costs.layer_parameters(512, h, 2048) for h in (1, 2, 4, 8, 16, 512)}
    assert counts == {3_152_384}


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: costs.attention_parameters(10, 4), "d = 10 and h = 4"),
        (lambda: costs.attention_parameters(10, 0), "h must.*got 0"),
        (lambda: costs.layer_parameters(512, 8, 0), "H must.*got 0"),
        (lambda: costs.layer_parameters(512.0, 8, 2048), "d must.*got 512.0"),
        (lambda: costs.layer_parameters(512, 8, math.nan), "H must.*got nan"),
        (lambda: costs.stack_parameters(-1, 512, 8, 2048), "layers must.*got -1"),
        (lambda: costs.model_table(vocabulary=0), "vocabulary must.*got 0"),
        (lambda: costs.model_table(h=7), "d = 512 and h = 7"),
        (lambda: costs.layer_table(d=None), "d must.*got None"),
    ],
)
def test_sizes_that_are_none_are_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


def test_the_view_shows_the_tables_and_says_when_there_is_no_such_model():
    names = ("vocabulary", "d", "layers", "h", "H")
    html = parameters_view(**dict(zip(names, SIZES, strict=True)))
    for count in ("25,600,000", "1,048,576", "2,097,152", "3,152,384", "18,914,304", "18,874,368"):
        assert count in html
    odd = parameters_view(vocabulary=50_000, d=512, layers=6, h=7, H=2048)
    assert "d = 512 cannot be cut into 7 heads of one width: 512 / 7 is 73.14" in odd
    assert "Nearest that can: 4 and 8." in odd


# ------------------------------------------------------------------------------------------- depth


@pytest.mark.parametrize(("kind", "norm"), [("post-norm", "post"), ("pre-norm", "pre")])
def test_the_stack_of_torch_is_our_block_on_top_of_itself(kind, norm):
    stack = depth.Stack(kind, 3, seeds=(4, 5))
    for i, seed in enumerate((4, 5)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2, depth.L, depth.d))[0]
        for n in range(3):
            parameters = initial_parameters(depth.d, depth.H, rng)
            X = transformer_block(X, parameters, depth.HEADS, norm=norm)[0]
            np.testing.assert_allclose(stack.after[n][i].detach().numpy(), X, atol=1e-10)


@pytest.mark.parametrize("kind", depth.KINDS)
def test_the_gradient_is_the_slope(kind):
    """Nudge the input of one seed and see the loss move as the gradient says."""
    rng, layers = np.random.default_rng(7), 3
    measured = depth.gradient_through(kind, (layers,), (7,))[0, 0]
    X, direction = rng.normal(size=(2, depth.L, depth.d))
    blocks = [initial_parameters(depth.d, depth.H, rng) for _ in range(layers)]
    norm, path = depth.KINDS[kind]

    def loss(X):
        for p in blocks:
            for part in (
                lambda X, p=p: multi_head_attention(X, p.attention, depth.HEADS)[0],
                lambda X, p=p: feed_forward(X, p.feed_forward),
            ):
                change = part(layer_norm(X) if norm == "pre" else X)
                X = X + change if path else change
                X = layer_norm(X) if norm == "post" else X
        return ((layer_norm(X) if norm == "pre" else X) * direction).sum()

    slopes = np.empty(X.size)
    for i in range(X.size):
        nudge = np.zeros(X.size)
        nudge[i] = 1e-6
        nudge = nudge.reshape(X.shape)
        slopes[i] = (loss(X + nudge) - loss(X - nudge)) / 2e-6
    assert measured == pytest.approx(np.linalg.norm(slopes) / np.linalg.norm(direction), rel=1e-4)


def test_what_comes_through_24_layers():
    through = {kind: np.median(depth.gradient_through(kind), axis=1) for kind in depth.KINDS}
    assert through["neither"][-1] < 1e-6
    assert through["residual path alone"][-1] > 1e6
    for kind in ("norm alone", "post-norm", "pre-norm"):
        assert 0.1 < through[kind][-1] < 10
    alike = {kind: np.median(depth.likeness(kind), axis=1)[-1] for kind in depth.KINDS}
    assert alike["norm alone"] > 0.99
    assert alike["pre-norm"] < 0.95


def test_the_last_layers_gradient_shrinks_in_pre_norm_alone():
    last = {
        kind: [np.median(depth.gradient_by_layer(kind, n)[-1]) for n in (1, 24)]
        for kind in ("post-norm", "pre-norm")
    }
    assert last["post-norm"][1] == pytest.approx(last["post-norm"][0], rel=0.25)
    assert last["pre-norm"][0] / last["pre-norm"][1] == pytest.approx(24**0.5, rel=0.3)
