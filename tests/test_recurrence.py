"""The recurrent encoder, its memory and its gradient, and additive attention."""

import numpy as np
import pytest
import torch

from worked_examples import reader
from worked_examples.recurrence import (
    AdditiveParameters,
    EncoderParameters,
    additive_attention,
    draw_encoder,
    encode,
    gradient_norms,
    linear_recall,
    path_table,
    recall,
    recall_table,
)


@pytest.mark.parametrize(("L", "d", "n"), [(1, 1, 1), (5, 3, 4), (12, 2, 7)])
def test_the_encoder_agrees_with_the_library(L, d, n):
    W, U = draw_encoder(n, d, 0.9, seed=1)
    X = np.random.default_rng(0).normal(size=(3, L, d))
    layer = torch.nn.RNN(d, n, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_hh_l0.copy_(torch.from_numpy(W))
        layer.weight_ih_l0.copy_(torch.from_numpy(U))
        theirs, _ = layer(torch.from_numpy(X))
    np.testing.assert_allclose(encode(X, EncoderParameters(W, U)), theirs.numpy(), atol=1e-12)


@pytest.mark.parametrize("radius", [0.0, 0.5, 0.99, 1.2])
def test_the_spectral_radius_is_what_was_asked_for(radius):
    W, _ = draw_encoder(20, 1, radius)
    assert np.abs(np.linalg.eigvals(W)).max() == pytest.approx(radius, abs=1e-12)


def test_the_gradient_agrees_with_autograd():
    parameters = draw_encoder(6, 2, 0.9, seed=3)
    X = np.random.default_rng(2).normal(size=(7, 2))

    def last_state(x):
        h = torch.zeros(6, dtype=torch.float64)
        for x_t in x:
            h = torch.tanh(
                torch.from_numpy(parameters.W) @ h + torch.from_numpy(parameters.U) @ x_t
            )
        return h

    jacobian = torch.autograd.functional.jacobian(last_state, torch.from_numpy(X)).numpy()
    theirs = np.sqrt((jacobian**2).sum(axis=(0, 2)))  # (n, L, d) -> (L,)
    np.testing.assert_allclose(gradient_norms(X, parameters), theirs, rtol=1e-10)


@pytest.mark.parametrize(("radius", "factor"), [(0.5, 0.5), (0.9, 0.9)])
def test_the_gradient_shrinks_by_about_the_radius_a_step(radius, factor):
    x = 0.1 * np.random.default_rng(1).normal(size=(50, 1))
    norms = gradient_norms(x, draw_encoder(32, 1, radius))
    assert (norms[0] / norms[25]) ** (1 / 25) == pytest.approx(factor, rel=0.05)


def test_the_formula_for_recall_is_what_regression_measures():
    L, n = 20, 6
    parameters = draw_encoder(n, 1, 0.9, seed=0)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40_000, L))
    states = encode(X[..., None], parameters, activation=lambda x: x)[:, -1]
    states = states + 0.1 * rng.normal(size=states.shape)
    # The spread of a measured R^2 over 20,000 sequences is below 0.01.
    np.testing.assert_allclose(recall(states, X), linear_recall(L, n, 0.9, noise=0.1), atol=0.02)


@pytest.mark.parametrize("n", [1, 4, 16])
@pytest.mark.parametrize("L", [1, 8, 64])
@pytest.mark.parametrize("radius", [0.1, 0.9, 1.2])
def test_a_state_of_n_numbers_recalls_less_than_n(n, L, radius):
    r2 = linear_recall(L, n, radius)
    assert (r2 > -1e-9).all()
    assert (r2 < 1 + 1e-9).all()
    assert r2.sum() <= min(n, L) + 1e-6


def test_early_positions_go_first():
    first, middle, last = (
        [row[key] for row in recall_table()] for key in ("first", "middle", "last")
    )
    assert first[0] > 0.9
    assert first[-1] < 0.01
    assert min(last) > 0.99
    assert middle[0] > middle[-1]


def test_recall_of_what_the_state_holds_exactly_and_of_noise():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    r2 = recall(X[:, :1], X)
    assert r2[0] == pytest.approx(1, abs=1e-4)
    assert abs(r2[1]) < 0.02


def test_additive_attention_by_its_definition():
    rng = np.random.default_rng(4)
    s, H = rng.normal(size=(2, 3)), rng.normal(size=(2, 5, 4))
    W, U, v = rng.normal(size=(6, 3)), rng.normal(size=(6, 4)), rng.normal(size=6)
    context, weights = additive_attention(s, H, AdditiveParameters(W, U, v))
    for b in range(2):
        e = np.array([v @ np.tanh(W @ s[b] + U @ h) for h in H[b]])
        alpha = np.exp(e) / np.exp(e).sum()
        np.testing.assert_allclose(weights[b], alpha, atol=1e-14)
        np.testing.assert_allclose(context[b], alpha @ H[b], atol=1e-14)


def test_a_trained_reader_reads_any_position():
    trained = reader.train_reader(12, seed=0, steps=200)
    x = np.random.default_rng(1).normal(size=(300, 12))
    r2, weights = reader.read(trained, x)
    assert trained.losses[-1] < 0.2 < trained.losses[0]
    assert r2.min() > 0.5
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights.argmax(axis=1) == np.arange(12)).mean() > 0.8


@pytest.mark.parametrize(
    ("L", "path", "pairs"), [(1, (0, 0), 1), (2, (1, 1), 4), (64, (63, 1), 4096)]
)
def test_paths_steps_and_pairs(L, path, pairs):
    recurrent, attention = path_table(L)
    assert (recurrent["longest path"], attention["longest path"]) == path
    assert (recurrent["sequential steps"], attention["sequential steps"]) == (L, 1)
    assert (recurrent["pairs scored"], attention["pairs scored"]) == (0, pairs)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: draw_encoder(0), "got 0, 1, 0.9"),
        (lambda: draw_encoder(3, radius=-1), "-1"),
        (lambda: draw_encoder(3, radius=np.nan), "nan"),
        (lambda: encode(np.ones((4, 2)), draw_encoder(3)), r"\(4, 2\).*width 1"),
        (lambda: encode(np.ones(4), draw_encoder(3)), r"\(4,\)"),
        (lambda: recall(np.ones((3, 2)), np.ones((5, 2))), r"\(3, 2\) and \(5, 2\)"),
        (lambda: path_table(0), "got 0"),
        (lambda: path_table(2.5), "got 2.5"),
        (lambda: path_table("a"), "got 'a'"),
        (lambda: draw_encoder(2.5), "got 2.5"),
        (
            lambda: encode(np.ones((4, 1)), EncoderParameters(np.ones((2, 3)), np.ones((2, 1)))),
            r"W \(2, 3\).*U \(2, 1\)",
        ),
        (
            lambda: additive_attention(
                np.ones(2),
                np.ones((3, 4)),
                AdditiveParameters(np.ones((5, 2)), np.ones((1, 4)), np.ones(5)),
            ),
            r"W \(5, 2\).*U \(1, 4\).*v \(5,\)",
        ),
        (
            lambda: additive_attention(
                np.ones(2),
                np.ones((3, 4)),
                AdditiveParameters(np.ones((5, 2)), np.ones((5, 4)), np.ones((5, 1))),
            ),
            r"v \(5, 1\)",
        ),
        (
            lambda: additive_attention(
                np.ones((2, 2)),
                np.ones((3, 3, 4)),
                AdditiveParameters(np.ones((5, 2)), np.ones((5, 4)), np.ones(5)),
            ),
            r"\(2, 2\).*\(3, 3, 4\)",
        ),
        (
            lambda: additive_attention(
                np.ones(2),
                np.ones((3, 4)),
                AdditiveParameters(np.ones((5, 2)), np.ones((5, 3)), np.ones(5)),
            ),
            r"\(3, 4\).*\(5, 3\)",
        ),
    ],
)
def test_bad_input_is_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()
