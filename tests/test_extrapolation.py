"""The trained heads on longer sequences: the data, the parts, and what came out in the chapter."""

import numpy as np
import pytest
import torch

from worked_examples import extrapolation
from worked_examples.extrapolation import BACK, FLAGS, METHODS, TASKS, TOKENS
from worked_examples.positions import rotary


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("L", [1, 2, 3, 20])
def test_the_targets_are_what_the_task_says(task, L):
    tokens, targets = extrapolation.draw(task, 30, L, np.random.default_rng(0))
    assert tokens.shape == targets.shape == (30, L)
    assert tokens.min() >= 0
    assert tokens.max() < TOKENS
    for row, wanted in zip(tokens.tolist(), targets.tolist(), strict=True):
        for t in range(L):
            if task == "two back":
                right = row[t - BACK] if t >= BACK else -100
            else:
                flags = [token for token in row[:t] if token < FLAGS]
                right = flags[-1] if flags and row[t] >= FLAGS else -100
            assert wanted[t] == right


def parameters(method, S=2, L=6, d=8, h=2):
    drawn = [extrapolation._new_parameters(method, L, d, h, seed) for seed in range(S)]
    return {name: torch.stack([one[name] for one in drawn]) for name in drawn[0]}


@pytest.mark.parametrize("method", METHODS)
def test_no_position_sees_what_comes_later(method):
    model = parameters(method)
    tokens = torch.from_numpy(np.random.default_rng(1).integers(TOKENS, size=(2, 3, 12)))
    whole = extrapolation.predict(model, tokens, method, 2)
    short = extrapolation.predict(model, tokens[..., :7], method, 2)
    torch.testing.assert_close(whole[..., :7, :], short, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_each_model_uses_its_own_parameters(method):
    model = parameters(method)
    tokens = torch.from_numpy(np.random.default_rng(2).integers(TOKENS, size=(2, 3, 9)))
    together = extrapolation.predict(model, tokens, method, 2)
    for seed in (0, 1):
        own = {name: tensor[seed : seed + 1] for name, tensor in model.items()}
        alone = extrapolation.predict(own, tokens[seed : seed + 1], method, 2)
        torch.testing.assert_close(together[seed], alone[0], rtol=1e-5, atol=1e-5)


def test_torch_rotates_as_numpy_does():
    X = np.random.default_rng(3).normal(size=(2, 3, 9, 8))
    ours = extrapolation._rotated(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(ours, rotary(X), atol=1e-12)


def test_a_training_is_repeated_by_its_seed_and_stands_alone():
    options = {"steps": 5, "longest": 20}
    one = extrapolation.train("two back", "learned vectors", (0, 1), **options)
    again = extrapolation.train("two back", "learned vectors", (0, 1), **options)
    np.testing.assert_array_equal(one.accuracy, again.accuracy)
    alone = extrapolation.train("two back", "learned vectors", (1,), **options)
    np.testing.assert_allclose(alone.loss[0], one.loss[1], rtol=1e-3)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: extrapolation.train("two back", "magic"), "magic"),
        (lambda: extrapolation.train("three back", "none", steps=1), "three back"),
        (lambda: extrapolation.train("two back", "none", L=2), "L = 2"),
        (lambda: extrapolation.train("two back", "none", longest=1), "longest = 1"),
    ],
)
def test_bad_input_is_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


@pytest.fixture(scope="module")
def studies():
    return {task: extrapolation.study(task) for task in TASKS}


def mean(studies, task, method, a, b):
    return float(np.nanmean(studies[task][method].accuracy[:, a:b]))


@pytest.mark.parametrize(
    ("task", "method", "a", "b", "least", "most"),
    [
        ("two back", "none", 0, 16, 0.25, 0.45),
        ("two back", "sinusoids", 0, 16, 0.98, 1),
        ("two back", "sinusoids", 16, 32, 0.3, 0.6),
        ("two back", "learned vectors", 0, 16, 0.98, 1),
        ("two back", "learned vectors", 16, 128, 0.08, 0.18),
        ("two back", "learned bias", 16, 32, 0.95, 1),
        ("two back", "learned bias", 64, 128, 0.6, 0.9),
        ("two back", "ALiBi", 0, 16, 0.3, 0.45),
        ("two back", "ALiBi", 64, 128, 0.3, 0.45),
        ("two back", "rotary", 16, 32, 0.95, 1),
        ("two back", "rotary", 64, 128, 0.08, 0.2),
        ("last flag", "none", 64, 128, 0.2, 0.35),
        ("last flag", "sinusoids", 64, 128, 0.18, 0.35),
        ("last flag", "learned vectors", 0, 16, 0.9, 1),
        ("last flag", "learned vectors", 64, 128, 0.18, 0.33),
        ("last flag", "learned bias", 64, 128, 0.7, 0.95),
        ("last flag", "ALiBi", 0, 16, 0.8, 0.95),
        ("last flag", "ALiBi", 64, 128, 0.72, 0.92),
        ("last flag", "rotary", 16, 32, 0.95, 1),
        ("last flag", "rotary", 64, 128, 0.18, 0.4),
    ],
)
def test_what_came_out(studies, task, method, a, b, least, most):
    assert least <= mean(studies, task, method, a, b) <= most


def test_the_table_shows_mean_least_and_most(studies):
    rows = extrapolation.length_table(studies["two back"])
    assert [row["position"] for row in rows] == list(METHODS)
    row = rows[1]
    for a, b in ((0, 16), (16, 32), (32, 64), (64, 128)):
        name = f"{a}-{b - 1}"
        assert row[f"{name} least"] <= row[name] <= row[f"{name} most"]
    assert row["64-127"] == pytest.approx(mean(studies, "two back", "sinusoids", 64, 128), abs=1e-6)
