"""The view of sinusoidal encodings: a map of them, and how alike they are some way apart."""

import numpy as np

from worked_examples.positions import angles, first_rise, offset_similarity, sinusoidal_encoding
from worked_examples.views.markup import BLUE, RED, escape, number, paragraph, svg, table

__all__ = ["sinusoids"]

LEVELS = 6  # of shade on each side of 0


def sinusoids(*, d, base, L, offset):
    """Show the encodings of L positions, and the similarity of two that stand `offset` apart.

    Parameters
    ----------
    d : int
        Width, even.
    base : float
    L : int
    offset : int

    Returns
    -------
    str
        HTML: a map (red below 0, blue above), the curve of the similarity with the offset
        marked, a table, and a sentence on how far the curve falls.
    """
    longest = max(L - 1, offset, 8)
    cosines = offset_similarity(np.arange(longest + 1), d, base)
    omega = angles(d, base)
    rise = first_rise(d, base, longest=2000)
    rows = [
        ("cosine at this offset", cosines[offset]),
        ("dot product at this offset", cosines[offset] * d / 2),
        ("first pair turns by (radians)", offset * omega[0]),
        ("last pair turns by (radians)", offset * omega[-1]),
        ("longest wave (positions)", f"{2 * np.pi / omega[-1]:,.0f}"),
    ]
    further = (
        f"Up to offset {rise} the cosine falls, and at {rise + 1} it rises again."
        if rise < 2000
        else "In the first 2,000 offsets the cosine never rises."
    )
    return (
        _map(sinusoidal_encoding(L, d, base))
        + _curve(cosines, offset)
        + table(("two positions", f"{offset} apart"), rows)
        + paragraph(further)
    )


def _map(encoding):
    """Draw encodings, positions to the right and features down, a path for each shade."""
    L, d = encoding.shape
    width, height, left, top = 300, 190, 36, 8
    x, y = width / L, height / d
    shade = np.rint(encoding.T * LEVELS).astype(int)  # (d, L)
    starts = np.ones(shade.shape, dtype=bool)
    starts[:, 1:] = shade[:, 1:] != shade[:, :-1]  # neighbours of one shade are one bar
    rows, columns = np.nonzero(starts)
    shades = shade[rows, columns]
    ends = np.append(columns[1:], L)
    ends[ends == 0] = L
    paths = {}
    bars = zip(shades.tolist(), rows.tolist(), columns.tolist(), ends.tolist(), strict=True)
    for level, row, start, end in bars:
        bar = f"M{start} {row}H{end}V{row + 1}H{start}z"
        paths.setdefault(level, []).append(bar)
    marks = [
        f'<path d="{"".join(bars)}" fill="{BLUE if level > 0 else RED}" '
        f'fill-opacity="{abs(level) / LEVELS:.2f}"/>'
        for level, bars in paths.items()
        if level
    ]
    body = (
        f'<g transform="translate({left} {top}) scale({x:.4f} {y:.4f})">{"".join(marks)}</g>'
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" '
        f'stroke="currentColor" stroke-opacity="0.4"/>'
        f'<text x="{left - 6}" y="{top + 10}" text-anchor="end">0</text>'
        f'<text x="{left - 6}" y="{top + height}" text-anchor="end">{d - 1}</text>'
        f'<text x="{left}" y="{top + height + 16}">0</text>'
        f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">{L - 1}</text>'
        f'<text x="{left + width / 2}" y="{top + height + 16}" text-anchor="middle">'
        f"{escape('position (features down)')}</text>"
    )
    title = f"Encodings of {L} positions in {d} features, blue above 0 and orange-red below"
    return svg(left + width + 4, top + height + 22, body, title)


def _curve(cosines, offset):
    """Draw the cosine against the offset, from -1 to 1, with one offset marked."""
    width, height, left, top = 300, 150, 36, 10
    x = left + width * np.arange(len(cosines)) / (len(cosines) - 1)
    y = top + height * (1 - cosines) / 2
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    middle = top + height / 2
    body = (
        f'<line x1="{left}" y1="{middle}" x2="{left + width}" y2="{middle}" '
        f'stroke="currentColor" stroke-opacity="0.4"/>'
        f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="2"/>'
        f'<circle cx="{x[offset]:.1f}" cy="{y[offset]:.1f}" r="5" fill="{RED}"/>'
        f'<text x="{left - 6}" y="{top + 8}" text-anchor="end">1</text>'
        f'<text x="{left - 6}" y="{middle + 4}" text-anchor="end">0</text>'
        f'<text x="{left - 6}" y="{top + height}" text-anchor="end">-1</text>'
        f'<text x="{left}" y="{top + height + 16}">0</text>'
        f'<text x="{left + width / 2}" y="{top + height + 16}" text-anchor="middle">offset</text>'
        f'<text x="{left + width}" y="{top + height + 16}" text-anchor="end">'
        f"{len(cosines) - 1}</text>"
    )
    title = f"Cosine of two encodings against their offset; {number(cosines[offset])} at {offset}"
    return svg(left + width + 4, top + height + 22, body, title)
