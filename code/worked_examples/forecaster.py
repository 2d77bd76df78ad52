"""A head that learns to forecast: untied, given positions, trained by gradient, in torch.

Series share a period and nothing else (`series.draw_seasons`): each repeats a pattern of its own
with noise on it. The head reads L values and forecasts, at every position, the next one. It has
its own W_Q, W_K and W_V, and learns about position in one of two ways: a vector for each
position, added to what stands there, or a bias for each lag, added to the scores. Several heads
are trained side by side, one a seed; they never meet.
"""

import math
from typing import NamedTuple

import numpy as np
import torch

from worked_examples.series import draw_seasons, map_distance, season_share
from worked_examples.training import one_thread, train_by_adam

__all__ = [
    "BATCH",
    "POSITIONS",
    "SEEDS",
    "STEPS",
    "Trained",
    "alike_pair",
    "errors_on",
    "exchange",
    "forecast",
    "held_out",
    "mean_maps",
    "pair_table",
    "reading_table",
    "seen_series",
    "train",
]

POSITIONS = ("vectors", "bias")
SEEDS = (0, 1, 2, 3, 4, 5, 6, 7)
STEPS, BATCH = 300, 32


class Trained(NamedTuple):
    """Several heads of one kind, trained from several seeds, and what they are measured on.

    Attributes
    ----------
    parameters : dict of torch.Tensor
        Each with one leading dimension for the seeds.
    seeds : tuple of int
    period : int
    new : (n, L + 1) array
        Series that no head was trained on.
    errors : (seeds,) array
        Root mean square error of each head on these, where a whole period lies behind.
    """

    parameters: dict
    seeds: tuple
    period: int
    new: np.ndarray
    errors: np.ndarray


# ---------------------------------------------------------------------------------- the data


def seen_series(seed, *, period=7, noise=0.5, L=28, steps=STEPS):
    """Draw the series that a head of this seed is trained on.

    Returns
    -------
    (steps * BATCH, L + 1) array
    """
    rng = np.random.default_rng(1000 + seed)
    return draw_seasons(steps * BATCH, L + 1, period=period, noise=noise, rng=rng)


def held_out(*, period=7, noise=0.5, L=28, n=500):
    """Draw series that no head is trained on (seed 999).

    Returns
    -------
    (n, L + 1) array
    """
    return draw_seasons(n, L + 1, period=period, noise=noise, rng=np.random.default_rng(999))


# ---------------------------------------------------------------------------------- the head


def _new_parameters(positions, seeds, L, d):
    shapes = {"embedding": (1, d), "query": (d, d), "key": (d, d), "value": (d, d),
              "readout": (d, 1), "vectors": (L, d)}  # fmt: skip
    drawn = {name: [] for name in shapes}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for name, shape in shapes.items():
            size = 1 if name in ("embedding", "vectors") else 1 / math.sqrt(d)
            drawn[name].append(size * rng.normal(size=shape))
    if positions == "bias":
        del drawn["vectors"]
        drawn["bias"] = np.zeros((len(seeds), L))
    # float64: the same steps on every machine, so that the chapter can state what came out.
    return {name: torch.tensor(np.array(arrays)).requires_grad_() for name, arrays in drawn.items()}


def forecast(parameters, y, *, maps=None, hidden=()):
    """Forecast the next value at every position, with the heads of all seeds at once.

    Parameters
    ----------
    parameters : dict of torch.Tensor
    y : (B, L) tensor, or (seeds, B, L) for series of each head's own
    maps : (L, L) or (seeds, L, L) tensor, optional
        Weights to use in place of the heads' own.
    hidden : sequence of int, optional
        Lags that no query may look at. A query that may see nothing gets zero weights.

    Returns
    -------
    forecasts : (seeds, B, L) tensor
    weights : (seeds, B, L, L) tensor
        With B = 1 where they come from `maps`.
    """
    p = {name: tensor[:, None] for name, tensor in parameters.items()}  # (seeds, 1, ...)
    L = y.shape[-1]
    X = y[..., None] * p["embedding"]  # (seeds, B, L, d)
    if "vectors" in p:
        X = X + p["vectors"]
    V = X @ p["value"]
    A = _weights(p, X, hidden) if maps is None else maps.expand(len(V), L, L)[:, None]
    return (A @ V @ p["readout"])[..., 0], A


def _weights(p, X, hidden):
    L, d = X.shape[-2:]
    lag = torch.arange(L)[:, None] - torch.arange(L)
    S = (X @ p["query"]) @ (X @ p["key"]).mT / math.sqrt(d)  # (seeds, B, L, L)
    if "bias" in p:
        S = S + p["bias"][..., lag.clamp(min=0)]
    unseen = (lag < 0) | torch.isin(lag, torch.tensor(hidden, dtype=torch.int64))
    A = S.masked_fill(unseen, -math.inf).softmax(-1)
    return A.nan_to_num(0) if hidden else A


# ----------------------------------------------------------------------------------- training


def train(positions="vectors", *, period=7, noise=0.5, seeds=SEEDS, steps=STEPS, L=28, d=16,
          rate=0.02):  # fmt: skip
    """Train one head a seed to forecast one step ahead, on new series at every step.

    Parameters
    ----------
    positions : {"vectors", "bias"}
        A learned vector for each position, or a learned bias for each lag.
    period : int
        At most L.
    noise : float
        Standard deviation of the noise.
    seeds : sequence of int
        Of the parameters and of the series; with them everything is repeated exactly.
    steps, L, d : int
        Steps of Adam, 32 series each; values read; width of the head.
    rate : float
        Falls to 0 in a straight line.

    Returns
    -------
    Trained

    Raises
    ------
    ValueError
        If the positions are of no known kind, or not a period of values fits into L.
    """
    if positions not in POSITIONS:
        raise ValueError(f"positions must be one of {POSITIONS}; got {positions!r}")
    if not len(seeds):
        raise ValueError("a seed is needed for each head; got none")
    if not 1 <= period <= L:
        raise ValueError(f"a period must lie between 1 and L = {L}; got {period}")
    parameters = _new_parameters(positions, seeds, L, d)
    drawn = [seen_series(s, period=period, noise=noise, L=L, steps=steps) for s in seeds]
    batches = torch.from_numpy(np.array(drawn)).split(BATCH, dim=1)  # each (seeds, B, L + 1)
    with one_thread():
        train_by_adam(
            parameters, batches, lambda y: _square_errors(parameters, y, period), rate, to_zero=True
        )
    parameters = {name: tensor.detach() for name, tensor in parameters.items()}
    model = Trained(parameters, tuple(seeds), period, held_out(period=period, noise=noise, L=L), ())
    return model._replace(errors=errors_on(model, model.new))


def _square_errors(parameters, y, period, **options):
    """Give each seed's mean square error, wherever a whole period lies behind the position."""
    forecasts, _ = forecast(parameters, y[..., :-1], **options)
    return ((forecasts - y[..., 1:])[..., period - 1 :] ** 2).mean((-2, -1))


def errors_on(model, y, *, maps=None, hidden=()):
    """Measure each head's root mean square error on series, where a whole period lies behind.

    Parameters
    ----------
    model : Trained
    y : (n, L + 1) array
    maps : (L, L) or (seeds, L, L) array, optional
        Weights to use in place of the heads' own.
    hidden : sequence of int, optional
        Lags that no query may look at.

    Returns
    -------
    (seeds,) array
    """
    y = torch.from_numpy(np.asarray(y, dtype=float))
    maps = None if maps is None else torch.from_numpy(np.array(maps, dtype=float))
    with one_thread():
        errors = _square_errors(model.parameters, y, model.period, maps=maps, hidden=tuple(hidden))
    return errors.sqrt().numpy()


# ---------------------------------------------------------------------------- reading the heads


def _all_weights(model):
    with one_thread():
        return forecast(model.parameters, torch.from_numpy(model.new[:, :-1]))[1].numpy()


def mean_maps(model):
    """Average each head's weights over the series that no head was trained on.

    Returns
    -------
    (seeds, L, L) array
    """
    return _all_weights(model).mean(axis=1)


def reading_table(model):
    """Read each head: its error, and where its weight lies.

    Returns
    -------
    list of dict
        One row a seed: error; share of the weight on the lags that match the value to forecast,
        and on those that match the newest value; the lag with the largest mean weight in the last
        row; and how far the map of a single series lies from the mean map, on average.
    """
    A = _all_weights(model)
    M = A.mean(axis=1)
    rows = slice(model.period - 1, None)
    moved = map_distance(A[:, :, rows], M[:, None, rows]).mean(axis=1)
    return [
        {
            "seed": seed,
            "error": float(model.errors[s]),
            "share": season_share(M[s], model.period, 1),
            "share, one step off": season_share(M[s], model.period, 0),
            "largest lag": M.shape[-1] - 1 - int(M[s, -1].argmax()),
            "moves with the series": float(moved[s]),
        }
        for s, seed in enumerate(model.seeds)
    ]


def exchange(model):
    """Let each head forecast by each head's mean map, with its own values and read-out.

    Returns
    -------
    (seeds, seeds) array
        Root mean square errors; a row a head, a column a map.
    """
    return np.stack([errors_on(model, model.new, maps=A) for A in mean_maps(model)], axis=-1)


def pair_table(model):
    """Compare every two heads: how far their errors lie apart, and how far their maps.

    Returns
    -------
    list of dict
        One row a pair: the two seeds, the difference of their errors relative to the smaller, and
        the distance of their mean maps where a whole period lies behind.
    """
    M = mean_maps(model)[:, model.period - 1 :]
    rows = []
    for a, b in zip(*np.triu_indices(len(M), 1), strict=True):
        low, high = sorted(model.errors[[a, b]])
        rows.append(
            {
                "one": model.seeds[a],
                "other": model.seeds[b],
                "errors apart": float(high / low - 1),
                "maps apart": float(map_distance(M[a], M[b])),
            }
        )
    return rows


def alike_pair(model, within=0.01):
    """Find two heads whose errors are alike and whose maps are not.

    Parameters
    ----------
    model : Trained
    within : float, default 0.01
        How far apart the two errors may be, relative to the smaller.

    Returns
    -------
    tuple of int
        Which two of the heads: of the pairs within this, that with the farthest maps; if there is
        none, the pair with the nearest errors; of a single head, that head twice.
    """
    rows = pair_table(model)
    if not rows:
        return 0, 0
    alike = [row for row in rows if row["errors apart"] <= within]
    best = (
        max(alike, key=lambda row: row["maps apart"])
        if alike
        else min(rows, key=lambda row: row["errors apart"])
    )
    return model.seeds.index(best["one"]), model.seeds.index(best["other"])
