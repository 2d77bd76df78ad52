"""The chapter on the causal mask: its numbers, its leak test, its trained models, its view."""

import inspect
import math
import re

import numpy as np
import pytest
import torch
from torch.nn import functional

from worked_examples import explorers, leak, masking
from worked_examples.attention import causal_mask, key_padding_mask, scaled_dot_product_attention
from worked_examples.figures import masking as figures
from worked_examples.views.markup import RED

# ------------------------------------------------------------------------------- orderings


def test_the_scores():
    assert masking.SCORES == (2.0, 1.0, 0.5, 1.5)
    np.testing.assert_array_equal(masking.same_scores(), [[2, 1, 0.5, 1.5]] * 4)


@pytest.mark.parametrize(
    ("order", "sums"),
    [
        ("mask first", ["1.0000", "1.0000", "1.0000", "1.0000"]),
        ("softmax first", ["0.4551", "0.6225", "0.7240", "1.0000"]),
        ("multiply scores", ["1.0000", "1.0000", "1.0000", "1.0000"]),
    ],
)
def test_row_sums(order, sums):
    assert [f"{row['sum']:.4f}" for row in masking.ordering_table(order)] == sums


def test_the_table_names_rows_and_keys_from_zero():
    table = masking.ordering_table("mask first")
    assert [row["query"] for row in table] == ["row 0", "row 1", "row 2", "row 3"]
    assert list(table[0]) == ["query", "key 0", "key 1", "key 2", "key 3", "sum"]


def by_hand(scores, i):
    """Give row i of the causal weights, a term at a time."""
    terms = [math.exp(score) for score in scores[: i + 1]]
    return [term / sum(terms) for term in terms] + [0.0] * (len(scores) - i - 1)


@pytest.mark.parametrize("scores", [masking.SCORES, (3.0,), (-1.0, 0.0), tuple(range(-9, 10))])
def test_masked_first_by_hand(scores):
    for i, row in enumerate(masking.ordering_table("mask first", scores)):
        weights = [row[f"key {j}"] for j in range(len(scores))]
        assert weights == pytest.approx(by_hand(scores, i), abs=1e-15)
        assert weights[i + 1 :] == [0.0] * (len(scores) - i - 1)


def test_a_score_of_zero_is_seen():
    row = masking.ordering_table("multiply scores")[0]
    hidden = 3 / (math.exp(2) + 3)
    assert row["key 1"] + row["key 2"] + row["key 3"] == pytest.approx(hidden, abs=1e-15)


def test_no_other_ordering():
    with pytest.raises(ValueError, match="'mask last'"):
        masking.ordering_table("mask last")


def test_dividing_afterwards_is_right_until_a_hidden_score_is_large():
    S, seen = np.random.default_rng(0).normal(size=(3, 6, 6)), causal_mask(6)
    right = masking.mask_first(S, seen)
    np.testing.assert_allclose(masking.renormalise(S, seen), right, atol=1e-14)
    S[..., -1] = 1000
    assert np.isnan(masking.renormalise(S, seen)[:, :-1]).all()
    np.testing.assert_array_equal(masking.mask_first(S, seen)[:, :-1], right[:, :-1])


def test_a_plain_softmax_has_no_answer_for_an_empty_row():
    S = np.array([[1.0, -np.inf], [-np.inf, -np.inf]])
    np.testing.assert_array_equal(masking.plain_softmax(S), [[1, 0], [np.nan, np.nan]])
    np.testing.assert_array_equal(masking.mask_first(S, np.isfinite(S)), [[1, 0], [0, 0]])


# ----------------------------------------------------------------------------------- leaks


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 8), (9, 1), (16, 64)])
@pytest.mark.parametrize("name", masking.MODELS)
def test_the_leaky_models_are_found_and_the_honest_one_passes(name, size):
    X = np.random.default_rng(1).normal(size=size)
    honest = name == "the book's kernel"
    expected = [] if honest else list(range(size[0] - 1))
    assert masking.leaks(masking.MODELS[name], X) == expected


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("the book's kernel", np.tri(5)),
        ("off by one", np.tri(5, k=1)),
        ("mask transposed", np.tri(5).T),
        ("mask inverted", np.tri(5).T),  # an output moves with its own query, too
        ("softmax first", np.ones((5, 5))),
        ("mean taken off", np.ones((5, 5))),
    ],
)
def test_influence_is_the_mask_of_the_model(name, seen):
    X = np.random.default_rng(0).normal(size=(5, 8))
    moved = masking.influence(masking.MODELS[name], X)
    if name == "mask inverted":
        moved = moved | np.eye(5, dtype=bool)  # but the last row sees nothing at all
    np.testing.assert_array_equal(moved, seen > 0)


def test_the_smallest_leak_is_a_leak():
    X = np.random.default_rng(0).normal(size=(4, 3))
    book = masking.MODELS["the book's kernel"]
    assert masking.leaks(lambda X: book(X) + 1e-15 * X[-1], X) == [0, 1, 2]


def test_nan_that_stays_is_no_leak_and_nan_that_comes_is_one():
    X = np.ones((3, 2))
    assert masking.leaks(lambda X: np.full_like(X, np.nan), X) == []
    assert masking.leaks(lambda X: np.where(X[-1] == 1, X, np.nan), X) == [0, 1]


def test_token_numbers_need_something_to_change_to():
    tokens = np.array([3, 1, 2])
    with pytest.raises(ValueError, match="int64"):
        masking.leaks(np.cumsum, tokens)
    assert masking.leaks(np.cumsum, tokens, other=tokens + 1) == []
    assert masking.leaks(lambda t: np.cumsum(t[::-1])[::-1], tokens, other=tokens + 1) == [0, 1]


def test_another_sequence_has_to_be_as_long():
    with pytest.raises(ValueError, match=r"\(3, 2\); got \(2, 2\)"):
        masking.influence(np.cumsum, np.ones((3, 2)), other=np.ones((2, 2)))


def test_the_input_stays_as_it_was():
    X = np.ones((3, 2))
    masking.influence(lambda X: np.multiply(X, 2, out=X), X)
    np.testing.assert_array_equal(X, np.ones((3, 2)))


# --------------------------------------------------------------------------------- padding


def test_shapes_of_the_masks():
    padding, causal, both = masking.mask_shapes([4, 2], 4)
    assert list(padding.values()) == ["padding", "(2, 4)", "(2, 1, 4)", "(2, 1, 1, 4)"]
    assert list(causal.values()) == ["causal", "(4, 4)", "(4, 4)", "(4, 4)"]
    assert list(both.values()) == ["both", "", "(2, 4, 4)", "(2, 1, 4, 4)"]


def test_a_forgotten_axis_goes_unnoticed_where_there_are_as_many_sequences_as_positions():
    real = key_padding_mask([3, 2, 1], 3)
    X = np.random.default_rng(0).normal(size=(3, 3, 2))
    _, wrong = scaled_dot_product_attention(X, X, X, mask=real, causal=True)
    _, right = scaled_dot_product_attention(X, X, X, mask=real[:, None, :], causal=True)
    assert (wrong[0] > 0).sum(axis=-1).tolist() == [1, 2, 1]
    assert (right[0] > 0).sum(axis=-1).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="broadcast"):
        scaled_dot_product_attention(X[:2], X[:2], X[:2], mask=real[:2], causal=True)


# ------------------------------------------------------------------- the library's conventions

EYE = torch.eye(3)
MAY_LOOK = torch.ones(3, 3, dtype=torch.bool).tril()
NOBODY = torch.zeros(3, 3, dtype=torch.bool)


def identity_layer():
    layer = torch.nn.MultiheadAttention(3, 1, bias=False, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.copy_(EYE.repeat(3, 1))
        layer.out_proj.weight.copy_(EYE)
    return layer


@pytest.mark.parametrize(("mask", "row"), [(MAY_LOOK, [1, 0, 0]), (~MAY_LOOK, [0, 0.5, 0.5])])
def test_true_means_may_look_in_the_function_and_may_not_in_the_layer(mask, row):
    function = functional.scaled_dot_product_attention(EYE, EYE, EYE, attn_mask=mask)[0]
    layer, _ = identity_layer()(EYE, EYE, EYE, attn_mask=~mask)
    _, ours = scaled_dot_product_attention(*[EYE.numpy()] * 3, mask=mask.numpy())
    for weights in (function.numpy(), layer[0].detach().numpy(), ours[0]):
        np.testing.assert_allclose(weights, row, atol=1e-7)


def test_nothing_to_see_is_zero_in_the_function_and_nan_in_the_layer():
    function = functional.scaled_dot_product_attention(EYE, EYE, EYE, attn_mask=NOBODY)
    layer, _ = identity_layer()(*[EYE[None]] * 3, key_padding_mask=torch.ones(1, 3).bool())
    no_weights, _ = identity_layer()(
        *[EYE[None]] * 3, key_padding_mask=torch.ones(1, 3).bool(), need_weights=False
    )
    assert (function == 0).all()
    assert layer.isnan().all()
    assert (no_weights == 0).all()


def test_is_causal_starts_at_the_first_key_and_ours_ends_at_the_last():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(n, 3)) for n in (2, 4, 4))
    tensors = (torch.from_numpy(x) for x in (q, k, v))
    library = functional.scaled_dot_product_attention(*tensors, is_causal=True).numpy()
    start, _ = scaled_dot_product_attention(q, k, v, mask=np.tri(2, 4, dtype=bool))
    end, _ = scaled_dot_product_attention(q, k, v, causal=True)
    np.testing.assert_allclose(library, start, atol=1e-14)
    assert np.abs(library - end).max() > 1e-3


# ------------------------------------------------------------------------------ a leak's cost

CHAIN = leak.markov_chain()


def test_conditional_entropy():
    stationary = np.linalg.matrix_power(CHAIN, 1000)[0]
    bits = [-sum(p * math.log2(p) for p in row if p > 0) for row in CHAIN]
    assert leak.conditional_entropy(CHAIN) == pytest.approx(stationary @ bits, abs=1e-12)
    assert f"{leak.conditional_entropy(CHAIN):.4f}" == "2.0547"


def test_a_chain_that_cannot_be_guessed_and_one_that_need_not():
    assert leak.conditional_entropy(np.full((4, 4), 0.25)) == pytest.approx(2, abs=1e-12)
    assert leak.conditional_entropy(np.roll(np.eye(4), 1, axis=1)) == pytest.approx(0, abs=1e-12)


def test_drawn_tokens_follow_the_chain():
    tokens = leak.draw_tokens(CHAIN, 4000, 12, np.random.default_rng(0))
    pairs = np.zeros_like(CHAIN)
    np.add.at(pairs, (tokens[:, :-1], tokens[:, 1:]), 1)
    shares = pairs / pairs.sum(axis=1, keepdims=True)
    assert np.abs(shares - CHAIN).max() < 0.03
    first, last = (np.bincount(tokens[:, t], minlength=8) / 4000 for t in (0, -1))
    assert np.abs(first - last).max() < 0.03


@pytest.fixture(scope="module")
def runs():
    return leak.study(CHAIN, seeds=(0, 1, 2))


def test_the_peeking_model_is_wonderful_in_training_and_worse_than_a_guess_deployed(runs):
    entropy, guess = leak.conditional_entropy(CHAIN), math.log2(leak.TOKENS)
    for run in runs["with the mask"]:
        for loss in (run.curve[-20:].mean(), run.held_out, run.deployed):
            assert entropy - 0.05 < loss < entropy + 0.15
    for run in runs["without"]:
        assert run.curve[-20:].mean() < 0.01
        assert run.held_out < 0.01
        assert run.deployed > 10 > guess


def test_one_masked_pass_is_every_prefix_at_once(runs):
    for run in runs["with the mask"]:
        assert run.held_out == pytest.approx(run.deployed, abs=1e-5)


@pytest.mark.parametrize(("name", "causal"), [("with the mask", True), ("without", False)])
def test_the_leak_test_tells_the_trained_models_apart(runs, name, causal):
    parameters = runs[name][0].parameters
    tokens = leak.draw_tokens(CHAIN, 1, 12, np.random.default_rng(3))[0]

    def model(tokens):
        return leak.predict(parameters, torch.from_numpy(tokens[None]), causal=causal)[0].numpy()

    found = masking.leaks(model, tokens, other=(tokens + 1) % leak.TOKENS)
    assert found == ([] if causal else list(range(11)))


def test_the_loss_is_the_mean_surprise_about_the_next_token():
    parameters = leak._new_parameters(8, 5, 4, np.random.default_rng(0))
    tokens = torch.tensor([[0, 3, 2, 7, 1], [4, 4, 5, 6, 0]])
    chances = torch.softmax(leak.predict(parameters, tokens, causal=True), dim=-1)
    surprise = [-math.log2(chances[b, i, tokens[b, i + 1]]) for b in (0, 1) for i in range(4)]
    loss = leak.next_token_bits(parameters, tokens, causal=True)
    assert loss.item() == pytest.approx(sum(surprise) / 8, abs=1e-5)


def test_training_repeats_and_leaves_torch_as_it_was():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    first, second = (leak.train(CHAIN, causal=True, seed=7, steps=5) for _ in range(2))
    np.testing.assert_array_equal(first.curve, second.curve)
    assert (first.held_out, first.deployed) == (second.held_out, second.deployed)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_the_table_of_losses():
    run = leak.Run(np.arange(30.0), 5.0, 6.0, {})
    other = run._replace(held_out=7.0)
    table = leak.loss_table({"with the mask": [run, other]})
    assert table[0] == {
        "model": "with the mask", "loss": "training", "least": 19.5, "mean": 19.5, "most": 19.5,
    }  # fmt: skip
    assert [(row["loss"], row["mean"]) for row in table[1:]] == [("held out", 6), ("deployed", 6)]


# ---------------------------------------------------------------------- explorer and figures


def cells_of(html, column):
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', html)
    return [re.findall(r"<td>(.*?)</td>", row)[column] for row in rows]


@pytest.mark.parametrize(
    ("order", "sums"),
    [
        ("mask first", ["1.0000"] * 4),
        ("softmax first", ["0.4551", "0.6225", "0.7240", "1.0000"]),
        ("multiply scores", ["1.0000"] * 4),
    ],
)
def test_the_explorer_shows_the_tables_sums(order, sums):
    html = explorers.MASKING.result(order=order)
    assert cells_of(html, 3) == sums
    assert (f'fill="{RED}"' in html) == (order == "multiply scores")


@pytest.mark.parametrize(
    ("start", "end", "sees", "sums"),
    [
        (0, 0, "1234", "1111"),
        (0, 2, "1222", "1111"),
        (2, 0, "0012", "0011"),
        (1, 1, "0122", "0111"),
        (0, 4, "0000", "0000"),
        (4, 4, "0000", "0000"),
    ],
)
def test_the_explorer_hides_padding(start, end, sees, sums):
    html = explorers.MASKING.result(padded_start=start, padded_end=end)
    assert cells_of(html, 0) == list(sees)
    assert cells_of(html, 3) == [f"{float(s):.4f}" for s in sums]
    assert ("nothing to see" in html) == ("0" in sees)


@pytest.mark.parametrize("scores", [(-10,) * 4, (10,) * 4, (-10, 10, -10, 10), (0, 0, 0, 0)])
@pytest.mark.parametrize("order", masking.ORDERINGS)
def test_the_explorer_takes_whatever_its_controls_allow(order, scores):
    values = {f"score_{j}": score for j, score in enumerate(scores)} | {"order": order}
    for start in range(5):
        for end in range(5):
            html = explorers.MASKING.result(**values, padded_start=start, padded_end=end)
            assert html == explorers.MASKING.result(**values, padded_start=start, padded_end=end)
            assert "undefined" not in html
            assert "nan" not in html


@pytest.mark.parametrize("L", [1, 2, 5, 64])
def test_figures_of_any_length(L):
    scores = np.linspace(-1, 1, L)
    tables = {order: masking.ordering_table(order, scores) for order in masking.ORDERINGS}
    for figure in (figures.masks({"one": causal_mask(L)}), figures.row_sums(tables)):
        assert figure.get_figwidth() <= 5
        figure.draw_without_rendering()


def test_the_figure_of_sums_says_them():
    figure = figures.row_sums({"softmax first": masking.ordering_table("softmax first")})
    said = [text.get_text() for text in figure.axes[0].texts]
    assert said == ["0.4551", "0.6225", "0.7240", "1.0000"]


def test_the_figure_of_masks_fills_the_cells_that_may_look():
    wrong = {"one": np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)}
    figure = figures.masks({"one": np.tri(3, dtype=bool)}, wrong=wrong)
    figure.draw_without_rendering()
    colors = [tuple(color) for color in figure.axes[0].collections[0].get_facecolor()]
    filled, empty, bad = colors[0], colors[5], colors[1]
    assert len({filled, empty, bad}) == 3
    assert colors == [filled, bad, bad, filled, filled, empty, filled, filled, filled]


def test_every_function_says_what_it_does():
    for module in (masking, leak, figures):
        for name in module.__all__:
            assert inspect.getdoc(getattr(module, name)), name
