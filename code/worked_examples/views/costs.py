"""View of what a length costs: multiply-adds, memory, and the recurrence beside them."""

import math

from worked_examples import costs
from worked_examples.views.markup import (
    BLUE,
    RED,
    byte_size,
    escape,
    paragraph,
    scaled,
    svg,
    table,
)

__all__ = ["length"]

_LONGEST = 20  # powers of two on the picture's axis


def length(*, L, d, h, layers, number_bytes):
    """Count what one sequence costs in a model whose feed-forward parts are 4 d wide.

    Parameters
    ----------
    L, d, h, layers, number_bytes : int
        Whole numbers of at least 1. Where h does not divide d there is no such model, and a
        sentence says so.

    Returns
    -------
    str
        HTML: multiply-adds of one layer against the length, tables of work and of memory, and a
        sentence.
    """
    picture = _picture(L, d)
    if d % h:
        near = sorted((n for n in range(1, d + 1) if d % n == 0), key=lambda n: (abs(n - h), n))
        return picture + paragraph(
            f"A width of {d} cannot be cut into {h} heads: {d} / {h} is {d / h:.2f}. "
            f"Nearest that can: {' and '.join(map(str, sorted(near[:2])))}."
        )
    pairs, rest, recurrent = (layers * count for count in _work(L, d))
    kept = costs.score_bytes(L, h, layers, number_bytes)
    one = costs.score_bytes(L, 1, 1, number_bytes)
    cache = costs.cache_bytes(L, d, layers, number_bytes)
    state = layers * d * number_bytes
    return (
        picture
        + table(
            ("multiply-adds", "count", "to the RNN's"),
            [
                ("scores and averages", scaled(pairs), _times(pairs, recurrent)),
                ("rest of the block", scaled(rest), _times(rest, recurrent)),
                ("RNN of this width", scaled(recurrent), "1"),
            ],
            caption=f"work, layers: {layers}",
        )
        + table(
            ("memory", "numbers", "bytes"),
            [
                ("scores, one head, one layer", scaled(L * L), byte_size(one)),
                (f"scores, heads: {h}, layers: {layers}", scaled(kept // number_bytes),
                 byte_size(kept)),
                ("key-value cache", scaled(cache // number_bytes), byte_size(cache)),
                ("state of the RNN", scaled(layers * d), byte_size(state)),
            ],
            caption="memory, where it is all kept",
        )
        + paragraph(
            f"Pairs a head and layer: {scaled(L * L)}. Steps that wait for one another in a "
            f"layer: 1 for attention, {scaled(L)} for the RNN. " + _compare(L, d)
        )
    )  # fmt: skip


def _work(L, d):
    """Count scores and averages, the rest of the block, and the recurrence, of one layer."""
    return (
        costs.score_multiply_adds(L, d) + costs.average_multiply_adds(L, d),
        costs.projection_multiply_adds(L, d) + costs.feed_forward_multiply_adds(L, d, 4 * d),
        costs.recurrent_multiply_adds(L, d),
    )


def _times(count, other):
    return f"{count / other:,.4g}"


def _compare(L, d):
    whole = costs.overtaking_lengths(d, 4 * d)["the rest of the block"]
    if whole < L:
        return f"Above L = {whole:,}, as here, scores and averages are most of the work."
    if whole == L:
        return "At this length, scores and averages are half of the work."
    return f"Below L = {whole:,}, as here, scores and averages are the smaller part of the work."


def _picture(L, d):
    """Draw the three counts of one layer over all lengths, both axes logarithmic."""
    width, height, left, bottom = 340, 220, 8, 196
    lengths = [2**i for i in range(_LONGEST + 1)]
    curves = list(zip(*(_work(n, d) for n in lengths), strict=True))
    here = _work(L, d)
    low = math.log2(min(map(min, curves)))
    high = math.log2(max(map(max, curves)))

    def x(n):
        return left + (width - 2 * left) * math.log2(n) / _LONGEST

    def y(count):
        return bottom - (bottom - 10) * (math.log2(count) - low) / (high - low)

    marks = [
        f'<line x1="{left}" y1="{bottom}" x2="{width - left}" y2="{bottom}" '
        'stroke="currentColor"/>',
        f'<line x1="{x(L):.1f}" y1="10" x2="{x(L):.1f}" y2="{bottom}" stroke="currentColor" '
        'stroke-dasharray="3 3" stroke-opacity="0.6"/>',
    ]
    drawn = (
        ("scores and averages", RED, "", 18, curves[0], -8, "end"),
        ("rest of the block", BLUE, "", 9, curves[1], -10, "end"),
        ("RNN", "currentColor", ' stroke-dasharray="6 3"', 10, curves[2], 16, "start"),
    )
    for (name, color, dashes, at, curve, shift, anchor), now in zip(drawn, here, strict=True):
        points = " ".join(
            f"{x(n):.1f},{y(count):.1f}" for n, count in zip(lengths, curve, strict=True)
        )
        marks.append(
            f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"{dashes}/>'
            f'<circle cx="{x(L):.1f}" cy="{y(now):.1f}" r="4" '
            f'fill="{color}"/>'
            f'<text x="{x(lengths[at]) + (shift if anchor == "end" else 4):.1f}" '
            f'y="{y(curve[at]) + (shift if anchor == "start" else 0):.1f}" '
            f'text-anchor="{anchor}">{escape(name)}</text>'
        )
    marks.append(
        f'<text x="{left}" y="14">multiply-adds of a layer</text>'
        f'<text x="{left}" y="{bottom + 17}">1</text>'
        f'<text x="{width / 2}" y="{bottom + 17}" text-anchor="middle">length</text>'
        f'<text x="{width - left}" y="{bottom + 17}" text-anchor="end">{2**_LONGEST:,}</text>'
    )
    return svg(
        width, height, "".join(marks),
        f"Multiply-adds of one layer of width {d} against the length, on log axes: scores and "
        f"averages rise twice as steeply as the rest; here L = {L}",
    )  # fmt: skip
