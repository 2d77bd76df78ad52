"""The view of a layer's width cut into heads: what stays, and what grows."""

from worked_examples.heads import layer_costs
from worked_examples.views.markup import BLUE, RED, byte_size, paragraph, svg, table

__all__ = ["split"]

_NUMBER_BYTES = {"float32": 4, "float16": 2}


def split(*, d, h, L, kind):
    """Show a layer of width d cut into h heads, and compare its costs with those of one head.

    Parameters
    ----------
    d : int
        Width of the layer.
    h : int
        Number of heads; where it does not divide d, the view says which numbers near it do.
    L : int
        Length of the sequence.
    kind : {"float32", "float16"}
        How a weight is stored.

    Returns
    -------
    str
        HTML: the width cut into parts and one square of weights a head, and a table.
    """
    number_bytes = _NUMBER_BYTES[kind]
    if d % h:
        lower = max(n for n in range(1, h) if d % n == 0)
        upper = min((n for n in range(h + 1, d + 1) if d % n == 0), default=None)
        near = f"{lower}" if upper is None else f"{lower} and {upper}"
        return _picture(d, h, f"{d} columns do not fit {h} heads") + paragraph(
            f"{d} columns cannot be shared equally among {h} heads: {d} / {h} = {d / h:.2f}. "
            f"Near it, {near} would do."
        )
    one, several = (layer_costs(d, n, L, L, number_bytes) for n in (1, h))
    rows = [
        ("width of a head d_k", one["d_k"], several["d_k"]),
        ("parameters 4 d²", one["parameters"], several["parameters"]),
        ("multiply-adds", _work(one), _work(several)),
        ("weights h L²", one["weights"], several["weights"]),
        (
            f"their memory, {kind}",
            byte_size(one["weight bytes"]),
            byte_size(several["weight bytes"]),
        ),
    ]
    return (
        _picture(d, h, f"{d} columns cut into {h} of {d // h}, and {h} matrices of weights")
        + table(("quantity", "one head", "1 head" if h == 1 else f"{h} heads"), rows, wide=True)
        + paragraph(
            f"The parameters do not move. The weights take {h} times what one head takes."
            if h > 1
            else "One head as wide as the layer."
        )
    )


def _work(costs):
    return costs["projections"] + costs["scores and averages"]


def _picture(d, h, title):
    """Draw the columns as a bar in parts, and under it one square of L by L weights a head."""
    width, fits = 320, d % h == 0
    part = width / h
    marks = [
        f'<text x="0" y="14">{d} columns</text>',
        *(
            f'<rect x="{i * part:.2f}" y="22" width="{part - min(1, part / 4):.2f}" height="26" '
            f'fill="{BLUE if fits else RED}" fill-opacity="{0.85 if i % 2 == 0 else 0.5}"/>'
            for i in range(h)
        ),
    ]
    if not fits:
        return svg(width, 56, "".join(marks), title)
    per_row = 16
    side = 18
    marks.append(f'<text x="0" y="70">weights, L × L {"each" if h > 1 else ""}</text>')
    marks += [
        f'<rect x="{i % per_row * 20}" y="{78 + i // per_row * 20}" width="{side}" '
        f'height="{side}" fill="{RED}" fill-opacity="0.75"/>'
        for i in range(h)
    ]
    return svg(width, 80 + 20 * -(-h // per_row), "".join(marks), title)
