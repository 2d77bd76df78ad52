"""The view of one untrained head that reads a series: series, map, and weight by lag."""

import numpy as np

from worked_examples.series import (
    draw_series,
    lag_profile,
    matching_lags,
    next_step_query,
    pairs,
    season_share,
    tied_map,
    uniform_map,
)
from worked_examples.views.markup import BLUE, RED, number, paragraph, svg, table

__all__ = ["HEADS", "LENGTH", "reader"]

LENGTH = 28
HEADS = ("tied: what is like now", "set by hand: what is like then")
_WIDTH = 340


def reader(*, period, noise, trend, horizon, head):
    """Show what one head of two columns makes of a series of 28 positions.

    Parameters
    ----------
    period : int
        Of the cosine in the series.
    noise, trend : float
        Standard deviation of the noise, and rise from the first value to the last.
    horizon : int
        How many steps ahead the wanted value lies; 0 is now.
    head : str
        One of HEADS: queries that are the embedding, or queries turned by the horizon.

    Returns
    -------
    str
        HTML: the series, the weight by lag, the map with the matching lags in orange-red, and
        shares.
    """
    L = LENGTH
    y = draw_series(L + 1, period=period, noise=noise, trend=trend)
    W_Q = next_step_query(period, horizon) if head == HEADS[1] else None
    A = tied_map(pairs(y), W_Q)
    matching = matching_lags(L, period, horizon)
    lag = np.arange(L)[:, None] - np.arange(L)
    accent = matching[lag.clip(0)]
    profile, uniform = lag_profile(A), lag_profile(uniform_map(L))
    rows = [
        (f"{name}, lags {_listed(np.flatnonzero(lags))}",
         season_share(A, period, ahead), season_share(uniform_map(L), period, ahead))
        for name, ahead, lags in (
            ("season of now", 0, matching_lags(L, period)),
            ("season of the wanted value", horizon, matching),
        )
    ]  # fmt: skip
    return (
        _line(y[1:], f"Series of {L} values with period {period}")
        + _profile(profile, uniform, matching)
        + _map(A, accent)
        + table(("share of the weight", "this head", "uniform"), rows if horizon else rows[:1])
        + paragraph(
            "Map: a row a query, a column a key, strong colour for much weight. "
            "Orange-red: lags that match the value "
            f"{horizon} {'step' if horizon == 1 else 'steps'} ahead. "
            f"The newest position itself, lag 0, gets {number(profile[0], 2)} on average. "
            f"Dashes: uniform weights."
        )
    )  # fmt: skip


def _listed(lags):
    texts = [str(lag) for lag in lags]
    return ", ".join(texts if len(texts) <= 4 else [*texts[:3], "…"]) or "none"


def _line(y, title):
    """Draw the series as a line with a dot a value, between its least and its largest."""
    height, low, high = 110, float(y.min()), float(y.max())
    span = (high - low) or 1.0
    x = 34 + (_WIDTH - 44) * np.arange(len(y)) / max(len(y) - 1, 1)
    at = 12 + (height - 24) * (high - y) / span
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, at, strict=True))
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{BLUE}"/>'
        for a, b in zip(x, at, strict=True)
    )
    return svg(
        _WIDTH, height,
        f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>{dots}'
        f'<text x="0" y="16">{number(high, 1)}</text>'
        f'<text x="0" y="{height - 6}">{number(low, 1)}</text>', title,
    )  # fmt: skip


def _map(A, accent):
    """Draw the visible part of the map; its strongest cell, early rows apart, is full."""
    L, cell = len(A), 10
    shares = (A / max(A[L // 4 :].max(), 1e-9)).clip(0, 1)
    marks = [
        f'<rect x="{cell * j}" y="{cell * i}" width="{cell - 1}" height="{cell - 1}" '
        f'fill="{RED if accent[i, j] else BLUE}" fill-opacity="{0.06 + 0.94 * shares[i, j]:.2f}"/>'
        for i in range(L)
        for j in range(i + 1)
    ]
    return svg(cell * L, cell * L, "".join(marks), f"Weights of {L} queries on {L} keys")


def _profile(profile, uniform, matching):
    """Draw the mean weight at each lag, matching lags in orange-red, uniform weights as dashes."""
    base, span = 130, 112
    step = _WIDTH / len(profile)
    scale = span / max(profile.max(), uniform.max())
    marks = []
    for k, (weight, even) in enumerate(zip(profile, uniform, strict=True)):
        color = RED if matching[k] else BLUE
        marks.append(
            f'<rect x="{k * step + 0.5:.1f}" y="{base - scale * weight:.1f}" '
            f'width="{step - 1:.1f}" height="{scale * weight:.1f}" fill="{color}"/>'
            f'<line x1="{k * step:.1f}" x2="{(k + 1) * step:.1f}" y1="{base - scale * even:.1f}" '
            f'y2="{base - scale * even:.1f}" stroke="currentColor" stroke-dasharray="3 2"/>'
        )
    marks.append(
        f'<line x1="0" y1="{base}" x2="{_WIDTH}" y2="{base}" stroke="currentColor"/>'
        f'<text x="0" y="{base + 17}">lag 0</text>'
        f'<text x="{_WIDTH / 2}" y="{base + 17}" text-anchor="middle">mean weight by lag</text>'
        f'<text x="{_WIDTH}" y="{base + 17}" text-anchor="end">lag {len(profile) - 1}</text>'
    )
    return svg(_WIDTH, base + 24, "".join(marks), "Mean weight at each lag")
