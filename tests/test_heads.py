"""The numbers of the chapter on heads, and the small model whose heads it reads."""

import numpy as np
import pytest
import torch

from worked_examples import heads, small_model
from worked_examples.attention import (
    AttentionParameters,
    causal_mask,
    multi_head_attention,
    split_heads,
)
from worked_examples.figures import heads as drawings
from worked_examples.views.heads import split

VALUES = np.stack([heads.LEVELS, heads.SWINGS], axis=-1).astype(float)

# ------------------------------------------------------------------- two relations, one softmax


@pytest.mark.parametrize(
    ("share", "level", "swing", "error"),
    [
        (1.0, 17.0, 0.0, 4.0),
        (0.75, 16.25, 1.0, 3.0923),
        (0.5, 15.5, 2.0, 2.5),
        (0.36, 15.08, 2.56, 2.4),
        (0.0, 14.0, 4.0, 3.0),
    ],
)
def test_one_row_blends(share, level, swing, error):
    (row,) = heads.blend_table(shares=[share])
    assert row["level"] == pytest.approx(level)
    assert row["swing"] == pytest.approx(swing)
    assert row["error"] == pytest.approx(error, abs=5e-5)


def test_no_row_of_weights_does_better():
    best = heads.nearest_average(VALUES, (17, 4))
    assert best == pytest.approx([0, 0, 0, 0, 0.64, 0, 0, 0.36], abs=1e-9)
    error = np.linalg.norm(best @ VALUES - (17, 4))
    assert error == pytest.approx(2.4, abs=1e-12)
    others = np.random.default_rng(0).dirichlet(np.full(8, 0.3), size=20_000)
    assert np.linalg.norm(others @ VALUES - (17, 4), axis=-1).min() >= error


def test_a_point_inside_is_reached():
    best = heads.nearest_average(VALUES, (13.5, 1.0))
    assert best @ VALUES == pytest.approx([13.5, 1.0], abs=1e-6)
    assert best.min() >= 0
    assert best.sum() == pytest.approx(1)


def test_the_same_matrices_blend_as_one_head_and_not_as_two():
    X, parameters = heads.relation_inputs(), heads.relation_parameters()
    one, row = multi_head_attention(X, parameters, 1, causal=True)
    two, rows = multi_head_attention(X, parameters, 2, causal=True)
    assert one[-1] == pytest.approx([15.5, 2.0], abs=1e-3)
    assert two[-1] == pytest.approx([17.0, 4.0], abs=1e-3)
    assert row[0, -1, [4, 7]] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert rows[0, -1, 7] == pytest.approx(1, abs=1e-3)
    assert rows[1, -1, [0, 4]].sum() == pytest.approx(1, abs=1e-3)


def test_over_a_series_the_best_single_pattern_loses_and_two_heads_do_not():
    table = {row["weights"]: row for row in heads.pattern_table()}
    assert table["matching only"]["both"] == pytest.approx(1.70, abs=5e-3)
    assert table["best single head"]["both"] == pytest.approx(1.56, abs=5e-3)
    assert table["two heads"]["most"] == pytest.approx(0, abs=1e-9)


def test_the_search_beats_random_patterns_and_every_pair_of_lags():
    series = heads.draw_series(seed=3)
    best = heads.best_pattern(series)
    found = np.hypot(*best.errors)
    rng = np.random.default_rng(0)
    others = [*rng.dirichlet(np.full(12, 0.3), size=300)]
    for share in np.linspace(0, 1, 21):
        others.append(share * np.eye(12)[0] + (1 - share) * np.eye(12)[3])
    assert found <= min(np.hypot(*heads.pattern_error(series, other)) for other in others) + 1e-6
    assert best.weights.min() >= 0
    assert best.weights.sum() == pytest.approx(1)


# --------------------------------------------------------------------------- what a layer costs


def test_parameters_do_not_depend_on_the_number_of_heads_and_the_weights_do():
    table = heads.heads_table()
    assert [row["heads"] for row in table] == [1, 2, 4, 8, 16, 32]
    assert {row["parameters"] for row in table} == {4 * 512 * 512} == {1_048_576}
    assert {row["multiply-adds"] for row in table} == {2_147_483_648}
    assert [row["weights (MiB)"] for row in table] == [4, 8, 16, 32, 64, 128]


@pytest.mark.parametrize("h", [1, 2, 8])
def test_parameters_are_those_of_the_library(h):
    layer = torch.nn.MultiheadAttention(16, h, bias=False)
    assert heads.layer_costs(16, h, 5)["parameters"] == sum(p.numel() for p in layer.parameters())


def test_counts_are_those_of_the_products():
    d, h, L_q, L_k = 12, 3, 5, 7
    costs = heads.layer_costs(d, h, L_q, L_k, number_bytes=2)
    X, C = np.ones((L_q, d)), np.ones((L_k, d))
    _, A = multi_head_attention(X, AttentionParameters(*[np.eye(d)] * 4), h, context=C)
    assert costs["weights"] == A.size
    assert costs["weight bytes"] == 2 * A.size
    assert costs["scores and averages"] == 2 * A.size * split_heads(X, h).shape[-1]
    assert costs["projections"] == d * d * (2 * L_q + 2 * L_k)


def test_three_choices_and_their_costs():
    table = {(row["choice"], row["option"]): row for row in heads.choices_table()}
    assert table["source", "cross, L_k = 4096"]["multiply-adds"] == 6_979_321_856
    assert table["source", "cross, L_k = 4096"]["weights (MiB)"] == 128
    assert table["mask", "causal"]["seen"] == 8 * causal_mask(1024).sum() == 4_198_400
    assert table["mask", "causal"]["multiply-adds"] == table["mask", "none"]["multiply-adds"]


@pytest.mark.parametrize(
    ("sizes", "shown"),
    [((10, 4, 5), "10 and 4"), ((16, 0, 5), "h 0"), ((16, 4, 0), "L_q 0"), ((0, 1, 5), "d 0")],
)
def test_sizes_that_make_no_layer_are_named(sizes, shown):
    with pytest.raises(ValueError, match=shown):
        heads.layer_costs(*sizes)


def test_the_view_says_what_fits_where_heads_do_not():
    html = split(d=10, h=4, L=8, kind="float32")
    assert "10 / 4 = 2.50" in html
    assert "2 and 5 would do" in html
    assert "8 would do" in split(d=8, h=12, L=8, kind="float32")


# --------------------------------------------------------------------------------- small model


def test_tokens_follow_one_of_the_two_rules():
    tokens = small_model.draw_tokens(50, 20, np.random.default_rng(0))
    counts_on = tokens[:, 4:] == (tokens[:, 3:-1] + 1) % small_model.TOKENS
    repeats = tokens[:, 4:] == tokens[:, :-4]
    assert (counts_on | repeats).all()
    assert 0.4 < counts_on[counts_on != repeats].mean() < 0.6


def test_the_model_is_the_book_s_kernel():
    h, seeds = 4, (3, 8)
    model = small_model.train(h, seeds=seeds, steps=2)
    scores, weights = small_model.attend(model.parameters, model.tokens, h)
    for s in range(len(seeds)):
        p = {name: tensor[s].double().numpy() for name, tensor in model.parameters.items()}
        X = p["embedding"][model.tokens.numpy()] + p["position"]
        layer = AttentionParameters(p["query"], p["key"], p["value"], p["output"])
        output, A = multi_head_attention(X, layer, h, causal=True)
        np.testing.assert_allclose(weights[s].numpy(), A, atol=1e-4)
        np.testing.assert_allclose(scores[s].numpy(), output @ p["readout"], atol=1e-3)


def test_seeds_trained_together_are_those_trained_alone():
    together = small_model.train(2, seeds=(0, 1), steps=5)
    alone = small_model.train(2, seeds=(1,), steps=5)
    assert together.bits[1] == pytest.approx(alone.bits[0], abs=1e-4)


def test_one_head_blends_and_four_do_not():
    one, four = small_model.train(1, seeds=(0,)), small_model.train(4, seeds=(0,))
    least = small_model.least_bits(one.tokens)
    assert least == pytest.approx(0.7738, abs=5e-5)
    assert one.bits[0] > 1.4
    assert least < four.bits[0] < 0.9
    (table,) = small_model.head_tables(four)
    costs = small_model.removal_costs(four)
    assert [row["rise without it"] for row in table] == pytest.approx(costs[0].tolist())
    assert costs.max() > 1
    for row, A in zip(table, small_model.mean_maps(four)[0], strict=True):
        assert row["lag 0"] == pytest.approx(np.diagonal(A)[3:-1].mean())
        assert row["lag 3"] == pytest.approx(np.diagonal(A, -3)[:-1].mean())


def test_a_width_that_the_heads_do_not_divide_is_named():
    with pytest.raises(ValueError, match="32 and 5"):
        small_model.train(5)


# ------------------------------------------------------------------------------------- figures


@pytest.mark.parametrize("n", [1, 2, 8, 64])
def test_the_reach_is_drawn_for_any_number_of_positions(n):
    values = np.random.default_rng(n).normal(size=(n, 2))
    best = heads.nearest_average(values, (9, 9)) @ values
    figure = drawings.reach(values, (9, 9), best)
    corners = figure.axes[0].patches[1].get_xy()
    assert len(corners) >= min(n, 3)
    assert set(map(tuple, corners.round(9))) <= set(map(tuple, values.round(9)))
