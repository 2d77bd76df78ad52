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
# The same at every move.
_UNIFORM = uniform_map(LENGTH)
_EVEN = lag_profile(_UNIFORM)
# The map's visible cells, row by row: where they stand, their lags, and how each is drawn. A page
# shows few shapes sooner than many, so cells of one colour are one shape.
_ROW, _COLUMN = np.tril_indices(LENGTH)
_LAG = _ROW - _COLUMN
_CELL = 10
_SQUARES = [
    f"M{_CELL * j} {_CELL * i}h{_CELL - 1}v{_CELL - 1}h-{_CELL - 1}z"
    for i, j in zip(_ROW.tolist(), _COLUMN.tolist(), strict=True)
]
_SHADES = 32  # more than an eye tells apart


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
    profile = lag_profile(A)
    rows = [
        (f"{name}, lags {_listed(np.flatnonzero(lags))}",
         season_share(A, period, ahead), season_share(_UNIFORM, period, ahead))
        for name, ahead, lags in (
            ("season of now", 0, matching_lags(L, period)),
            ("season of the wanted value", horizon, matching),
        )
    ]  # fmt: skip
    return (
        _line(y[1:], f"Series of {L} values with period {period}")
        + _profile(profile, matching)
        + _map(A, matching)
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
    x = (34 + (_WIDTH - 44) * np.arange(len(y)) / max(len(y) - 1, 1)).tolist()
    at = (12 + (height - 24) * (high - y) / span).tolist()
    points = [f"{a:.1f} {b:.1f}" for a, b in zip(x, at, strict=True)]
    # A line of no length with round ends is a dot.
    dots = "".join(f"M{point}h0" for point in points)
    return svg(
        _WIDTH, height,
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>'
        f'<path d="{dots}" stroke="{BLUE}" stroke-width="5" stroke-linecap="round"/>'
        f'<text x="0" y="16">{number(high, 1)}</text>'
        f'<text x="0" y="{height - 6}">{number(low, 1)}</text>', title,
    )  # fmt: skip


def _map(A, matching):
    """Draw the visible part of the map; its strongest cell, early rows apart, is full."""
    L = LENGTH
    shares = (A[_ROW, _COLUMN] / max(A[L // 4 :].max(), 1e-9)).clip(0, 1)
    shades = np.rint(_SHADES * shares).astype(int)
    cells = {}
    for look, square in zip(
        zip(matching[_LAG].tolist(), shades.tolist(), strict=True), _SQUARES, strict=True
    ):
        cells.setdefault(look, []).append(square)
    marks = [
        f'<path d="{"".join(squares)}" fill="{RED if match else BLUE}" '
        f'fill-opacity="{0.06 + 0.94 * shade / _SHADES:.2f}"/>'
        for (match, shade), squares in cells.items()
    ]
    return svg(_CELL * L, _CELL * L, "".join(marks), f"Weights of {L} queries on {L} keys")


def _profile(profile, matching):
    """Draw the mean weight at each lag, matching lags in orange-red, uniform weights as dashes."""
    base, span = 130, 112
    step = _WIDTH / LENGTH
    scale = span / max(profile.max(), _EVEN.max())
    bars = {BLUE: "", RED: ""}
    for k, (height, match) in enumerate(
        zip((scale * profile).tolist(), matching.tolist(), strict=True)
    ):
        bars[RED if match else BLUE] += (
            f"M{k * step + 0.5:.1f} {base}v-{height:.1f}h{step - 1:.1f}v{height:.1f}z"
        )
    dashes = "".join(
        f"M{k * step:.1f} {base - height:.1f}h{step:.1f}"
        for k, height in enumerate((scale * _EVEN).tolist())
    )
    marks = "".join(f'<path d="{drawn}" fill="{color}"/>' for color, drawn in bars.items() if drawn)
    marks += (
        f'<path d="{dashes}" stroke="currentColor" stroke-dasharray="3 2"/>'
        f'<line x1="0" y1="{base}" x2="{_WIDTH}" y2="{base}" stroke="currentColor"/>'
        f'<text x="0" y="{base + 17}">lag 0</text>'
        f'<text x="{_WIDTH / 2}" y="{base + 17}" text-anchor="middle">mean weight by lag</text>'
        f'<text x="{_WIDTH}" y="{base + 17}" text-anchor="end">lag {LENGTH - 1}</text>'
    )
    return svg(_WIDTH, base + 24, marks, "Mean weight at each lag")
