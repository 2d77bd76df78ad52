"""The chapter on the divisor: its numbers, its kernels against other ways, its training."""

import math
import re

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from worked_examples import explorers, retrieval, scaling
from worked_examples.attention import entropy, softmax, softmax_jacobian
from worked_examples.figures import scaling as drawings
from worked_examples.views import scaling as views


@pytest.fixture(scope="module")
def table():
    return scaling.scale_table()


# --- the numbers of the chapter --------------------------------------------------------------

COLUMNS = {
    "d_k": ("4", "16", "64", "256", "1024"),
    "sqrt(d_k)": ("2", "4", "8", "16", "32"),
    "spread": ("1.756", "3.568", "7.202", "14.483", "28.591"),
    "pooled": ("2.038", "4.010", "8.055", "16.229", "31.675"),
    "entropy unscaled": ("1.7771", "0.9743", "0.5058", "0.2512", "0.1333"),
    "entropy scaled": ("2.4764", "2.4970", "2.4844", "2.4555", "2.4894"),
    "largest weight unscaled": ("0.5492", "0.7488", "0.8577", "0.9282", "0.9611"),
    "largest weight scaled": ("0.3591", "0.3556", "0.3579", "0.3684", "0.3598"),
    "Jacobian norm unscaled": ("0.3379", "0.2506", "0.1666", "0.0932", "0.0549"),
    "Jacobian norm scaled": ("0.3597", "0.3633", "0.3655", "0.3628", "0.3654"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_table_has_the_books_numbers(table, name):
    for row, printed in zip(table, COLUMNS[name], strict=True):
        decimals = len(printed.partition(".")[2])
        assert f"{row[name]:.{decimals}f}" == printed
    assert list(table[0]) == list(COLUMNS)[:4] + [
        f"{reading} {kind}"
        for reading in ("entropy", "largest weight", "Jacobian norm")
        for kind in ("unscaled", "scaled")
    ]


def test_table_is_the_plain_loop_of_the_text(table):
    """One generator, the query before its keys; the readings by their definitions."""
    rng = np.random.default_rng(0)
    for row in table:
        draws = []
        for _ in range(200):
            q = rng.normal(size=row["d_k"])
            draws.append(rng.normal(size=(8, row["d_k"])) @ q)
        scores = np.array(draws)
        assert row["spread"] == pytest.approx(np.mean([np.std(draw) for draw in draws]))
        assert row["pooled"] == pytest.approx(np.std(scores))
        for kind, divisor in (("unscaled", 1), ("scaled", math.sqrt(row["d_k"]))):
            weights = [softmax(draw / divisor) for draw in draws]
            norms = [np.linalg.norm(np.diag(a) - np.outer(a, a)) for a in weights]
            assert row[f"entropy {kind}"] == pytest.approx(np.mean([entropy(a) for a in weights]))
            assert row[f"largest weight {kind}"] == pytest.approx(
                np.mean([max(a) for a in weights])
            )
            assert row[f"Jacobian norm {kind}"] == pytest.approx(np.mean(norms))


def test_a_draw_reads_low_by_both_factors(table):
    """Small samples, and queries whose mean norm is below sqrt(d_k); the rest is chance."""
    assert f"{scaling.small_sample_factor(8):.4f}" == "0.9027"
    assert f"{scaling.mean_norm(4):.4f}" == "1.8800"
    for row in table:
        expected = scaling.small_sample_factor(8) * scaling.mean_norm(row["d_k"])
        error = math.sqrt((row["d_k"] * 7 / 8 - expected**2) / 200)
        assert abs(row["spread"] - expected) < 1.1 * error
    first = scaling.small_sample_factor(8) * scaling.mean_norm(4)
    assert f"{first:.4f}" == "1.6971"


DIVIDED = {
    "nothing": (1.7771, 0.9743, 0.5058, 0.2512, 0.1333),
    "2": (2.4764, 1.7657, 0.9775, 0.4977, 0.2382),
    "16": (2.9897, 2.9609, 2.8500, 2.4555, 1.7228),
    "d_k": (2.8407, 2.9609, 2.9902, 2.9975, 2.9994),
    "√(8 d_k)": (2.9182, 2.9230, 2.9230, 2.9200, 2.9247),
    "√d_k": (2.4764, 2.4970, 2.4844, 2.4555, 2.4894),
}


def test_other_divisors_have_the_books_numbers():
    rows = scaling.divisor_table()
    assert list(rows[0]) == ["width", *DIVIDED]
    for name, printed in DIVIDED.items():
        assert [row[name] for row in rows] == pytest.approx(printed, abs=5.1e-5)


def test_distances_have_the_books_numbers():
    rows = scaling.distance_table()
    printed = {
        "pooled": (5.52, 11.65, 22.33, 44.86, 90.14),
        "entropy, nothing": (1.291, 0.502, 0.154, 0.057, 0.047),
        "entropy, sqrt(d_k)": (1.978, 1.713, 1.548, 1.433, 1.503),
        "entropy, sqrt(8 d_k)": (2.719, 2.661, 2.617, 2.582, 2.603),
    }
    for name, numbers in printed.items():
        assert [row[name] for row in rows] == pytest.approx(numbers, abs=5.1e-3)


# --- kernels against other ways --------------------------------------------------------------


@pytest.mark.parametrize("d_k", [1, 2, 3, 4, 16, 250])
def test_mean_norm_is_the_integral_over_the_chi_density(d_k):
    r, step = np.linspace(1e-9, math.sqrt(d_k) + 12, 400_001, retstep=True)
    log_density = (d_k - 1) * np.log(r) - r**2 / 2
    log_density -= (d_k / 2 - 1) * math.log(2) + math.lgamma(d_k / 2)
    assert scaling.mean_norm(d_k) == pytest.approx((r * np.exp(log_density)).sum() * step, rel=1e-5)


@pytest.mark.parametrize("n", [2, 3, 8, 100, 4096])
def test_small_sample_factor_is_a_chi_mean(n):
    """The deviations of n numbers have n - 1 degrees of freedom."""
    expected = scaling.mean_norm(n - 1) / math.sqrt(n)
    assert scaling.small_sample_factor(n) == pytest.approx(expected, rel=1e-12)


def test_small_sample_factor_where_there_is_no_spread():
    assert scaling.small_sample_factor(1) == 0
    with pytest.raises(ValueError, match="n = 0"):
        scaling.small_sample_factor(0)


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_jacobian_norm_is_the_matrix_norm(n):
    weights = softmax(np.random.default_rng(n).normal(size=(4, 6, n)) * 3)
    norms = np.linalg.norm(softmax_jacobian(weights), axis=(-2, -1))
    np.testing.assert_allclose(scaling.jacobian_norm(weights), norms, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("small", [1e-3, 1e-9, 1e-15, 1e-100])
def test_jacobian_norm_of_a_saturated_softmax(small):
    """Of two weights it is twice their product; 1 - (1 - small)^2 would have lost it."""
    assert scaling.jacobian_norm([small, 1 - small]) == pytest.approx(2 * small, rel=2e-3)


def test_softmax_jacobian_is_torchs():
    scores = np.random.default_rng(0).normal(size=6) * 2
    theirs = torch.autograd.functional.jacobian(
        lambda s: torch.softmax(s, dim=0), torch.from_numpy(scores)
    )
    np.testing.assert_allclose(softmax_jacobian(softmax(scores)), theirs.numpy(), atol=1e-15)


@pytest.mark.parametrize("d_k", [1, 4, 64])
@pytest.mark.parametrize("keys", [1, 2, 8])
def test_shortcut_has_the_distribution_of_the_direct_draws(d_k, keys):
    """Means over 4,000 draws agree within 4.5 standard errors of their difference."""
    draws = 4000
    direct = scaling.draw_scores(np.random.default_rng(1), d_k, keys, draws)
    short = scaling.sample_scores(d_k, keys, draws)
    for measure in (
        lambda s: (s**2).mean(axis=-1),  # size
        lambda s: (s**4).mean(axis=-1) / d_k**2,  # tails
        lambda s: s.std(axis=-1),  # what one softmax sees
        lambda s: entropy(softmax(s)),
        lambda s: scaling.jacobian_norm(softmax(s)),
    ):
        a, b = measure(direct), measure(short)
        error = math.sqrt((a.var() + b.var()) / draws)
        assert abs(a.mean() - b.mean()) <= 4.5 * error


def test_shortcut_at_width_4096_with_100_keys():
    scores = scaling.sample_scores(4096, 100)
    assert scores.shape == (200, 100)
    assert scores.std() == pytest.approx(64, rel=0.02)


def test_one_slider_changes_one_thing():
    wide = scaling.sample_scores(64, 100)
    np.testing.assert_array_equal(scaling.sample_scores(64, 8), wide[:, :8])
    narrow = scaling.sample_scores(4, 100)
    stretched = wide / narrow  # one factor a draw
    np.testing.assert_allclose(stretched, np.broadcast_to(stretched[:, :1], wide.shape))


def test_distance_score_is_the_loop():
    rng = np.random.default_rng(0)
    q, K = rng.normal(size=5), rng.normal(size=(3, 5))
    loop = [-sum((k[i] - q[i]) ** 2 for i in range(5)) for k in K]
    np.testing.assert_allclose(scaling.distance_score(q, K), loop)


@pytest.mark.parametrize("d_k", [1, 16, 256])
def test_distances_grow_as_derived(d_k):
    """Of many draws; each has a share of 2 d_k in common, which a softmax does not see."""
    scores = scaling.draw_scores(np.random.default_rng(2), d_k, 8, 20_000, scaling.distance_score)
    assert scores.var() == pytest.approx(8 * d_k, rel=0.06)
    assert scores.var(axis=-1, ddof=1).mean() == pytest.approx(6 * d_k, rel=0.06)


@pytest.mark.parametrize("function", ["scale_table", "divisor_table", "distance_table"])
@pytest.mark.parametrize("keys", [1, 2, 100])
def test_tables_of_any_sizes_are_finite(function, keys):
    rows = getattr(scaling, function)((1, 2, 4096), keys=keys, draws=3)
    assert np.isfinite([list(row.values()) for row in rows]).all()


# --- the head that learns to retrieve --------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.125])
def test_gradients_of_the_head_are_torchs(scale, fresh):
    rng = np.random.default_rng(3)
    batch = retrieval.draw_batch(rng, 7, tags=9, pairs=4, fresh=fresh)
    W = retrieval.draw_start(rng, 5, tags=9)
    loss, *ours = retrieval.loss_and_gradients(*W, batch, scale)
    X, T, V, wanted = map(torch.from_numpy, batch)
    W_Q, W_K = (torch.from_numpy(w).requires_grad_() for w in W)
    scores = (X @ W_Q) @ (T @ W_K).transpose(-1, -2) * scale
    theirs = ((torch.softmax(scores, dim=-1) @ V - wanted) ** 2).mean()
    theirs.backward()
    assert loss == pytest.approx(theirs.item(), rel=1e-12)
    for mine, parameter in zip(ours, (W_Q, W_K), strict=True):
        np.testing.assert_allclose(mine, parameter.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_a_batch_asks_for_one_of_the_tags_shown():
    X, T, V, wanted = retrieval.draw_batch(np.random.default_rng(0), 50)
    assert (T.sum(axis=-1) == 1).all()  # one-hot
    assert (T.sum(axis=1) <= 1).all()  # and no tag twice
    asked = (T @ X[:, 0, :, None])[..., 0].argmax(axis=-1)
    np.testing.assert_array_equal(V[np.arange(50), asked], wanted[:, 0])
    noise = X[:, 0] - T[np.arange(50), asked]
    assert noise.std() == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("pairs", [0, 33])
def test_a_batch_needs_as_many_tags_as_it_shows(pairs):
    with pytest.raises(ValueError, match=str(pairs)):
        retrieval.draw_batch(np.random.default_rng(0), pairs=pairs)


def test_both_heads_start_alike_and_see_the_same():
    """With a step of 0 the first test differs by the divisor alone, and nothing moves."""
    for scale in (1.0, 0.125):
        head = retrieval.train(scale, 0.0, 4, steps=20)
        rng = np.random.default_rng(4)
        retrieval.draw_batch(rng, 256)
        np.testing.assert_array_equal(head[1:], retrieval.draw_start(rng))
        assert head.losses.shape == (3,)
        assert (head.losses == head.losses[0]).all()


def test_adam_is_torchs():
    rng = np.random.default_rng(5)
    ours = [rng.normal(size=(4, 3)) for _ in range(2)]
    theirs = [torch.from_numpy(w.copy()).requires_grad_() for w in ours]
    optimizer, rule = torch.optim.Adam(theirs, lr=0.01), retrieval._Adam()
    for _ in range(5):
        gradients = [rng.normal(size=(4, 3)) for _ in range(2)]
        ours = [w - 0.01 * change for w, change in zip(ours, rule(gradients), strict=True)]
        for w, gradient in zip(theirs, gradients, strict=True):
            w.grad = torch.from_numpy(gradient)
        optimizer.step()
    for mine, w in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, w.detach().numpy(), rtol=1e-12)


def test_the_divisor_is_a_smaller_start_and_a_smaller_step():
    divided = retrieval.train(1 / 8, 64.0, 0, steps=60)
    small = retrieval.train(1.0, 8.0, 0, size=64**-0.25, steps=60)
    np.testing.assert_allclose(small.losses, divided.losses, rtol=1e-9)


@pytest.mark.parametrize("step", [4.0, 8.0, 16.0])
def test_without_the_divisor_confident_mistakes_stay(step):
    """At the steps among which its best one lies, over two of the book's seeds."""
    for seed in retrieval.SEEDS[:2]:
        plain = retrieval.train(1.0, step, seed)
        divided = retrieval.train(1 / 8, 64.0, seed)
        assert plain.losses[-1] > 50 * divided.losses[-1]
        stuck = retrieval.misses(1.0, seed, plain)
        assert stuck["share"] > 0.02
        assert stuck["weight"] > 0.99
        assert stuck["Jacobian norm"] < 0.01
        learned = retrieval.misses(1 / 8, seed, divided)
        assert learned["share"] == 0
        assert math.isnan(learned["weight"])


def test_search_gives_the_mean_last_loss_of_each_step():
    found = retrieval.search(0.125, (1.0, 4.0), seeds=(0, 1), steps=10)
    assert list(found) == [1.0, 4.0]
    assert found[4.0] == pytest.approx(
        np.mean([retrieval.train(0.125, 4.0, seed, steps=10).losses[-1] for seed in (0, 1)])
    )


# --- view, explorer, figures -----------------------------------------------------------------


@pytest.mark.parametrize("d_k", explorers.SCALING.controls[0].values)
@pytest.mark.parametrize("keys", [1, 2, 8, 33, 100])
def test_view_takes_every_setting(d_k, keys):
    for divide in (False, True):
        html = explorers.SCALING.result(d_k=d_k, keys=keys, divide=divide)
        assert html == views.divisor(d_k=d_k, keys=keys, divide=divide)
        assert html.count("<svg") == 2
        assert "nan" not in html
        assert "undefined" not in html


def test_view_shows_the_readings():
    weights = softmax(scaling.sample_scores(256, 8) / 16)
    html = views.divisor(d_k=256, keys=8, divide=True)
    for reading in (
        entropy(weights).mean(),
        weights.max(axis=-1).mean(),
        scaling.jacobian_norm(weights).mean(),
        3.0,
        1 / 8,
        math.sqrt(7) / 8,
    ):
        assert f"<td>{reading:.4f}</td>" in html


@pytest.mark.parametrize("size", [0.3, 8.0, 400.0])
def test_histogram_counts_every_score_once(size):
    scores = np.random.default_rng(0).normal(size=(50, 8)) * size
    heights = [
        float(x) for x in re.findall(r'<rect [^>]* height="([\d.]+)"', views._histogram(scores))
    ]
    edges = [-np.inf, *range(-16, 17), np.inf]
    counts = np.array(heights) / 220 * scores.size
    np.testing.assert_allclose(counts, np.histogram(scores, edges)[0], atol=0.1)


ROWS = {
    "growth": lambda widths, keys: (scaling.scale_table(widths, keys=keys, draws=2),),
    "saturation": lambda widths, keys: (
        scaling.scale_table(widths, keys=keys, draws=2),
        math.log2(keys),
    ),
    "divisors": lambda widths, keys: (
        scaling.divisor_table(widths, keys=keys, draws=2),
        math.log2(keys),
    ),
    "two_rows": lambda widths, keys: ({"a": np.full(keys, 1 / keys), "b": np.eye(keys)[0]},),
    "losses": lambda widths, keys: ({"a": np.ones((5, keys + 1)), "b": np.ones((1, keys + 1))}, 10),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("widths", "keys"), [((4, 16, 64), 8), ((1,), 1), ((2, 4096), 100)])
def test_figures_draw_any_sizes(name, widths, keys, tmp_path):
    figure = getattr(drawings, name)(*ROWS[name](widths, keys))
    assert isinstance(figure, Figure)
    assert figure.get_figwidth() <= 5
    figure.savefig(tmp_path / "figure.svg")
    assert all(axes.get_xlabel() for axes in figure.axes)


def test_labels_are_moved_apart_and_no_further():
    assert drawings._apart([0.0, 2.0, 2.05, 0.01], 0.1) == pytest.approx([0.0, 2.0, 2.1, 0.1])
