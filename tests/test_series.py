"""The numbers of the chapter on a time series: tied maps, what is read from them, trained heads."""

import math

import numpy as np
import pytest
import torch

from worked_examples import forecaster, series
from worked_examples.attention import scaled_dot_product_attention
from worked_examples.figures import series as drawings
from worked_examples.views.series import HEADS, reader

# ------------------------------------------------------------------------------- the tied map

TO_TWO_DECIMALS = [
    "1.00",
    "0.33 0.67",
    "0.14 0.28 0.58",
    "0.22 0.11 0.22 0.45",
    "0.31 0.15 0.08 0.15 0.31",
    "0.13 0.27 0.13 0.07 0.13 0.27",
    "0.06 0.12 0.25 0.12 0.06 0.12 0.25",
    "0.11 0.05 0.11 0.22 0.11 0.05 0.11 0.22",
]


@pytest.mark.parametrize(("i", "row"), list(enumerate(TO_TWO_DECIMALS)))
def test_the_map_of_period_four_to_two_decimals(i, row):
    A = series.tied_map(series.circle(8, 4))
    assert " ".join(f"{weight:.2f}" for weight in A[i, : i + 1]) == row
    assert not A[i, i + 1 :].any()


@pytest.mark.parametrize("period", [1, 2, 4, 7, 30])
@pytest.mark.parametrize("L", [1, 8, 31])
def test_positions_a_period_apart_get_equal_weight(L, period):
    A = series.tied_map(series.circle(L, period))
    for i in range(L):
        for j in range(i + 1 - period):
            assert A[i, j] == pytest.approx(A[i, j + period], rel=1e-9)


def test_the_tied_map_is_the_library_s():
    X = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = torch.eye(9, dtype=torch.float64)  # so that the output is the weights
    theirs = torch.nn.functional.scaled_dot_product_attention(X, X, values, is_causal=True)
    assert series.tied_map(X.numpy()) == pytest.approx(theirs.numpy(), abs=1e-12)


def test_a_cosine_and_its_predecessor_have_the_map_of_the_circle():
    pairs = series.pairs(series.draw_series(9, period=4))
    circle = series.circle(8, 4)
    assert series.tied_map(pairs) == pytest.approx(series.tied_map(circle), abs=1e-12)


@pytest.mark.parametrize("horizon", [0, 1, 3, 40])
def test_a_turned_query_asks_for_what_comes(horizon):
    X = series.pairs(series.draw_series(60, period=7))
    asked = X @ series.next_step_query(7, horizon)
    assert asked[: len(X) - horizon] == pytest.approx(X[horizon:], abs=1e-9)


# -------------------------------------------------------------------------------- reading a map


def test_the_lag_profile_is_the_loop():
    rng = np.random.default_rng(0)
    A = series.tied_map(rng.normal(size=(9, 2)))
    for k, mean in enumerate(series.lag_profile(A)):
        assert mean == pytest.approx(np.mean([A[i, i - k] for i in range(k, 9)]))


def test_the_season_s_share_is_the_loop():
    A = series.tied_map(np.random.default_rng(1).normal(size=(12, 2)))
    for period, horizon in ((4, 0), (4, 1), (5, 7), (1, 0), (3, 3)):
        shares = []
        for i in range(12):
            back = [i + horizon - j for j in range(i + 1)]
            matching = [n > 0 and n % period == 0 for n in back]
            if any(matching):
                shares.append(A[i, : i + 1][matching].sum())
        assert series.season_share(A, period, horizon) == pytest.approx(np.mean(shares))


def test_the_chapter_s_readings():
    A = series.tied_map(series.circle(8, 4))
    assert series.lag_profile(A)[4] == pytest.approx(0.2637, abs=5e-5)
    assert series.season_share(A, 4) == pytest.approx(0.2637, abs=5e-5)
    assert series.season_share(series.uniform_map(8), 4) == pytest.approx(0.1586, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "times"),
    [("period 4", 1.7232), ("period 7", 1.6961), ("trend and season", 0.1656),
     ("its differences", 1.5366), ("white noise", 0.6559), ("random walk", 0.5576)],
)  # fmt: skip
def test_the_study_of_six_series(name, times):
    table = {row["series"]: row for row in series.share_table()}
    assert table[name]["times"] == pytest.approx(times, abs=5e-5)


@pytest.mark.parametrize(
    ("L", "period", "horizon", "lags"),
    [
        (8, 4, 0, [4]),
        (8, 4, 1, [3, 7]),
        (8, 4, 4, [0, 4]),
        (8, 4, 8, [0, 4]),  # a horizon as long as the series
        (8, 4, 100, [0, 4]),
        (3, 4, 0, []),
        (3, 1, 0, [1, 2]),
        (1, 1, 0, []),
        (1, 1, 1, [0]),
    ],
)
def test_matching_lags(L, period, horizon, lags):
    assert np.flatnonzero(series.matching_lags(L, period, horizon)).tolist() == lags


def test_distance_of_maps():
    A, B = np.eye(3), np.roll(np.eye(3), 1, axis=1)
    assert series.map_distance(A, B) == 1
    assert series.map_distance(A, A) == 0
    assert series.map_distance(np.stack([A, B]), A).tolist() == [0, 1]


# ------------------------------------------------------------------------------------- edges


def test_the_shortest_series():
    assert series.tied_map(series.pairs([2.0, 3.0])).tolist() == [[1.0]]
    assert series.tied_map(series.circle(1, 1)).tolist() == [[1.0]]
    assert series.draw_series(1, trend=9).tolist() == [1.0]
    assert series.lag_profile([[1.0]]).tolist() == [1.0]
    assert math.isnan(series.season_share([[1.0]], 1))


@pytest.mark.parametrize("period", [1, 4])
def test_a_season_of_one_value_is_a_constant(period):
    y = series.draw_seasons(3, 9, period=period, noise=0, rng=np.random.default_rng(0))
    assert (y[:, period:] == y[:, :-period]).all()


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: series.circle(0, 4), "L must be a whole number of at least 1; got 0"),
        (lambda: series.circle(8, 0), "period must be a finite number above 0; got 0"),
        (lambda: series.circle(8, math.nan), "got nan"),
        (lambda: series.draw_series(8, noise=-1), "noise not negative"),
        (lambda: series.draw_series(8, trend=math.inf), "sizes must be finite"),
        (lambda: series.draw_series(2.5), "got 2.5"),
        (lambda: series.pairs([1.0]), "two values at least; got 1"),
        (lambda: series.pairs([1.0, math.nan, 2.0]), "got nan at 1"),
        (lambda: series.tied_map([[1.0, 2.0], [math.inf, 0.0]]), r"got inf at \(1, 0\)"),
        (lambda: series.tied_map([1.0, 2.0]), r"2 axes, at least one; got float64 \(2,\)"),
        (lambda: series.tied_map(np.ones((0, 2))), r"got float64 \(0, 2\)"),
        (lambda: series.lag_profile(np.ones((2, 3))), r"as many queries as keys; got \(2, 3\)"),
        (lambda: series.matching_lags(4, 0), "period must be a whole number"),
        (lambda: series.matching_lags(4, 2, -1), "at least 0; got -1"),
        (lambda: series.season_share([[math.nan]], 1), "got nan"),
        (lambda: series.seasonal_naive([1, 2, 3], 4), r"season of 4 values is needed"),
        (lambda: series.seasonal_naive([1, math.nan], 2), "got nan at 1"),
        (lambda: series.seasonal_naive([1, 2, 3], 2, 0), "horizon must be a whole number"),
        (lambda: forecaster.train("rotary"), "got 'rotary'"),
        (lambda: forecaster.train(period=29), "between 1 and L = 28; got 29"),
        (lambda: forecaster.train(period=0), "got 0"),
        (lambda: forecaster.train(seeds=()), "got none"),
    ],
)
def test_what_makes_no_sense_is_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


# ---------------------------------------------------------------------------------- baselines


@pytest.mark.parametrize("n", [4, 9, 10, 12])
@pytest.mark.parametrize("horizon", [1, 3, 4, 5, 40])
def test_rules_that_know_the_season_are_right_without_noise(n, horizon):
    y = series.draw_seasons(5, n + 40, period=4, noise=0, rng=np.random.default_rng(n))
    naive = series.seasonal_naive(y[:, :n], 4, horizon)
    assert naive == pytest.approx(y[:, n - 1 + horizon])
    assert series.seasonal_mean(y[:, :n], 4) == pytest.approx(y[:, n])


@pytest.mark.parametrize(
    ("rule", "error"),
    [("last value", 1.5655), ("seasonal naive", 0.6985), ("mean of the season", 0.6271),
     ("autoregression", 0.6086), ("always 0", 1.1043)],
)  # fmt: skip
def test_the_baselines_of_the_chapter(rule, error):
    errors = series.baseline_errors(forecaster.seen_series(0), forecaster.held_out(), 7)
    assert errors[rule] == pytest.approx(error, abs=5e-5)


@pytest.mark.parametrize(("period", "noise"), [(7, 0.5), (3, 1.0), (5, 0.0)])
def test_the_best_forecast_has_the_error_that_probability_gives(period, noise):
    """A pattern known from m values of it has variance noise^2 / (m + noise^2) left."""
    y = series.draw_seasons(20_000, 29, period=period, noise=noise, rng=np.random.default_rng(8))
    m = np.arange(period, 29) // period
    expected = np.sqrt(np.mean(noise**2 + noise**2 / (m + noise**2)))
    assert series.shrunk_mean_error(y, period, noise) == pytest.approx(expected, rel=0.01)


def test_no_rule_of_the_chapter_beats_the_best_forecast_on_its_series():
    errors = series.baseline_errors(forecaster.seen_series(0), forecaster.held_out(), 7)
    best = series.shrunk_mean_error(forecaster.held_out(), 7, 0.5)
    assert 0.607 < best < min(errors.values()) < best + 0.001


# ------------------------------------------------------------------------------ trained heads


@pytest.fixture(scope="module", params=forecaster.POSITIONS)
def few_steps(request):
    return forecaster.train(request.param, seeds=(3, 8), steps=3)


def test_the_head_is_the_book_s_kernel(few_steps):
    y = few_steps.new[:2, :-1]
    forecasts, weights = forecaster.forecast(few_steps.parameters, torch.from_numpy(y))
    lag = np.arange(28)[:, None] - np.arange(28)
    for s in range(2):
        p = {name: tensor[s].numpy() for name, tensor in few_steps.parameters.items()}
        X = y[..., None] * p["embedding"] + p.get("vectors", 0)
        if "bias" in p:  # a bias to the scores: two more columns cannot hold it, so by hand
            S = X @ p["query"] @ np.swapaxes(X @ p["key"], 1, 2) / 4 + p["bias"][lag.clip(0)]
            A = np.exp(np.where(lag >= 0, S, -np.inf))
            A = A / A.sum(axis=-1, keepdims=True)
        else:
            A = scaled_dot_product_attention(X @ p["query"], X @ p["key"], X, causal=True)[1]
        assert weights[s].numpy() == pytest.approx(A, abs=1e-12)
        out = A @ (X @ p["value"]) @ p["readout"]
        assert forecasts[s].numpy() == pytest.approx(out[..., 0], abs=1e-12)


def test_a_forecast_does_not_see_what_it_forecasts(few_steps):
    y = torch.from_numpy(few_steps.new[:3, :-1])
    later = y.clone()
    later[:, 10:] += 5
    before, after = (forecaster.forecast(few_steps.parameters, x)[0] for x in (y, later))
    assert torch.equal(before[..., :10], after[..., :10])
    assert not torch.equal(before[..., 10:], after[..., 10:])


def test_heads_trained_together_are_those_trained_alone(few_steps):
    kind = "bias" if "bias" in few_steps.parameters else "vectors"
    alone = forecaster.train(kind, seeds=(8,), steps=3)
    assert few_steps.errors[1] == pytest.approx(alone.errors[0], abs=1e-9)


def test_errors_are_those_of_the_forecasts(few_steps):
    y = few_steps.new
    forecasts, A = forecaster.forecast(few_steps.parameters, torch.from_numpy(y[:, :-1]))
    wrong = (forecasts.numpy() - y[:, 1:])[..., 6:]
    assert few_steps.errors == pytest.approx(np.sqrt((wrong**2).mean(axis=(1, 2))))
    assert forecaster.mean_maps(few_steps) == pytest.approx(A.numpy().mean(axis=1))


def test_hidden_lags_get_no_weight_and_never_nan(few_steps):
    y = torch.from_numpy(few_steps.new[:2, :-1])
    A = forecaster.forecast(few_steps.parameters, y, hidden=(0, 6))[1].numpy()
    assert not A[..., range(28), range(28)].any()
    assert not A[..., range(6, 28), range(22)].any()
    assert not A[..., 0, :].any()  # position 0 has nothing left to see
    assert A[..., 1:, :].sum(axis=-1) == pytest.approx(1)


def test_pairs_and_exchanges(few_steps):
    (row,) = forecaster.pair_table(few_steps)
    a, b = forecaster.mean_maps(few_steps)[:, 6:]
    assert (row["one"], row["other"]) == (3, 8)
    assert row["maps apart"] == pytest.approx(np.abs(a - b).sum(axis=1).mean() / 2)
    assert row["errors apart"] == pytest.approx(few_steps.errors.max() / few_steps.errors.min() - 1)
    assert forecaster.alike_pair(few_steps) == (0, 1)
    swapped = forecaster.exchange(few_steps)
    maps = forecaster.mean_maps(few_steps)
    assert swapped[0, 1] == pytest.approx(
        forecaster.errors_on(few_steps, few_steps.new, maps=maps[1])[0]
    )


def test_a_trained_head_finds_the_period():
    model = forecaster.train(seeds=(4, 6))
    rows = forecaster.reading_table(model)
    uniform = series.season_share(series.uniform_map(28), 7, 1)
    assert uniform == pytest.approx(0.1177, abs=5e-5)
    for row in rows:
        assert row["share"] > 0.9
        assert row["share, one step off"] < 0.05
        assert 0.60 < row["error"] < 0.67
        assert row["moves with the series"] < 0.05
    (pair,) = forecaster.pair_table(model)
    assert pair["errors apart"] < 0.01
    assert pair["maps apart"] > 0.3
    hidden = forecaster.errors_on(model, model.new, hidden=(6, 13, 20, 27))
    assert hidden.min() > 1.104  # worse than forecasting 0


# ---------------------------------------------------------------------------- view and figures


def test_the_view_marks_the_lags_that_match_and_says_the_shares():
    html = reader(period=7, noise=0.0, trend=0.0, horizon=1, head=HEADS[0])
    assert "season of the wanted value, lags 6, 13, 20, 27" in html
    A = series.tied_map(series.pairs(series.draw_series(29, period=7)))
    assert f"{series.season_share(A, 7, 1):.4f}" in html
    assert "undefined" not in html


def test_the_two_heads_agree_for_no_step_ahead():
    options = {"period": 5, "noise": 0.3, "trend": 1.0, "horizon": 0}
    assert reader(head=HEADS[0], **options) == reader(head=HEADS[1], **options)


@pytest.mark.parametrize("L", [1, 2, 21, 64])
def test_figures_of_any_length(L):
    study = series.study_series(L, 7)
    maps = {name: series.tied_map(series.pairs(y)) for name, y in study.items()}
    assert len(drawings.seasons(study).axes) == 6
    cells = drawings.maps(maps).axes[0].collections[0].get_paths()
    assert 1 <= len(cells) <= L * (L + 1) // 2
    bars = drawings.profiles(maps, [7] * 6).axes[5].patches
    heights = [bar.get_height() for bar in bars]
    uniform = series.lag_profile(series.uniform_map(L))
    expected = series.lag_profile(maps["random walk"]) / uniform
    assert heights == pytest.approx(expected.tolist())


def test_the_figure_of_seeds_names_the_matching_lags():
    profiles = np.full((3, 28), 1 / 28)
    figure = drawings.seeds({"one kind": profiles}, (5, 6, 7), series.matching_lags(28, 7, 1))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["6", "13", "20", "27"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["5", "6", "7"]
