"""Tables and small SVG pictures as HTML text, for the views.

Pictures draw in ``currentColor`` and two accents that keep a contrast of 3 to 1 on white and on
near-black, so one picture serves light and dark pages.
"""

import math
from html import escape as _escape

import numpy as np

__all__ = ["BLUE", "RED", "bars", "byte_size", "columns", "escape", "heatmap", "number",
           "paragraph", "scaled", "svg", "table"]  # fmt: skip

# Okabe and Ito's blue, a shade lighter, and vermilion: told apart by every kind of colour vision.
BLUE, RED = "#2b86c5", "#d55e00"


def escape(text):
    """Write any object as text that is safe inside HTML and inside its attributes."""
    return _escape(str(text), quote=True)


def number(value, decimals=4):
    """Write a number with so many decimals; whole numbers stay whole, and -0 becomes 0.

    Examples
    --------
    >>> number(0.5), number(-1e-9), number(3), number(np.nan)
    ('0.5000', '0.0000', '3', 'undefined')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "-∞" if value < 0 else "∞"
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}"


_BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_WORDS = (" million", " billion", " trillion", " quadrillion", " quintillion")


def byte_size(count):
    """Write a number of bytes in the largest unit that leaves at least 1.

    Examples
    --------
    >>> byte_size(268_435_456), byte_size(1000)
    ('256 MiB', '1,000 bytes')
    """
    return _scaled(count, 1024, _BYTES, " ")


def scaled(count):
    """Write a count with its millions in words, so that large ones can be read.

    Examples
    --------
    >>> scaled(1_073_741_824), scaled(8192)
    ('1.074 billion', '8,192')
    """
    return f"{count:,.0f}" if count < 1e6 else _scaled(count / 1e6, 1000, _WORDS, "")


def _scaled(count, base, units, space):
    size, unit = float(count), 0
    while size >= base and unit < len(units) - 1:
        size, unit = size / base, unit + 1
    return f"{size:,.{4 if size < 1000 else 6}g}{space}{units[unit]}"


def paragraph(text):
    """Write one sentence or two under a picture."""
    return f"<p>{escape(text)}</p>"


def table(header, rows, *, caption=None, decimals=4, wide=None):
    """Write a table whose first column names its rows.

    Parameters
    ----------
    header : sequence of str
        One name a column.
    rows : sequence of sequences
        Text or numbers; the first entry of each names the row.
    caption : str, optional
    decimals : int, default 4
    wide : bool, optional
        Whether it needs the explorer's whole width, or may stand beside a picture; by default it
        needs that from four columns on.

    Returns
    -------
    str
        HTML.
    """
    wide = len(header) > 3 if wide is None else wide
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{escape(number(first, decimals))}</th>'
        + "".join(f"<td>{escape(number(entry, decimals))}</td>" for entry in rest)
        + "</tr>"
        for first, *rest in rows
    )
    caption = f"<caption>{escape(caption)}</caption>" if caption else ""
    place = "explorer-scroll explorer-wide" if wide else "explorer-scroll"
    return (
        f'<div class="{place}"><table class="explorer-table">{caption}'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def svg(width, height, body, title):
    """Wrap drawing elements into a picture that has a name for those who do not see it."""
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-size="13" fill="currentColor" '
        f'font-family="system-ui, sans-serif">{body}</svg>'
    )


def bars(labels, values, title, *, largest=1.0, color=BLUE, left=84):
    """Draw one horizontal bar a label, from 0 to `largest`, with its number behind it.

    The labels have `left` pixels, less 8.
    """
    span, row = 190, 24
    marks = [
        f'<line x1="{left}" y1="0" x2="{left}" y2="{row * len(labels)}" stroke="currentColor"/>'
    ]
    for i, (label, value) in enumerate(zip(labels, values, strict=True)):
        y = row * i
        share = 0.0 if not math.isfinite(value) else min(max(value / largest, 0.0), 1.0)
        marks.append(
            f'<text x="{left - 8}" y="{y + 16}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{left}" y="{y + 4}" width="{span * share:.1f}" height="{row - 8}" '
            f'fill="{color}"/>'
            f'<text x="{left + span * share + 6:.1f}" y="{y + 16}">{number(value)}</text>'
        )
    return svg(left + span + 66, row * len(labels), "".join(marks), title)


def columns(heights, low, high, title, *, axis="", color=BLUE, tallest=None):
    """Draw a histogram: one column a height, over an axis from `low` to `high`.

    Parameters
    ----------
    heights : sequence of float
    low, high : float or str
        What stands at the axis's ends.
    title : str
        Says the picture in words.
    axis : str, optional
        What the axis measures.
    color : str or sequence of str
        One for all columns, or one each.
    tallest : float, optional
        The height that fills the picture; by default the largest one, and 1 at least.

    Returns
    -------
    str
        SVG.
    """
    width, height, base = 340, 150, 120
    tallest = max([*heights, 1]) if tallest is None else tallest
    step = width / max(len(heights), 1)
    colors = [color] * len(heights) if isinstance(color, str) else color
    marks = [
        f'<rect x="{i * step + 0.5:.1f}" y="{base - 110 * h / tallest:.1f}" '
        f'width="{max(step - 1, 0.5):.1f}" height="{110 * h / tallest:.1f}" fill="{fill}"/>'
        for i, (h, fill) in enumerate(zip(heights, colors, strict=True))
    ]
    marks.append(
        f'<line x1="0" y1="{base}" x2="{width}" y2="{base}" stroke="currentColor"/>'
        f'<text x="0" y="{base + 17}">{number(low, 1)}</text>'
        f'<text x="{width / 2}" y="{base + 17}" text-anchor="middle">{escape(axis)}</text>'
        f'<text x="{width}" y="{base + 17}" text-anchor="end">{number(high, 1)}</text>'
    )
    return svg(width, height, "".join(marks), title)


def heatmap(
    matrix, row_names, column_names, title, *, largest=1.0, color=BLUE, decimals=2, accent=None
):
    """Draw a matrix as shaded cells, each with its number where the cells are large enough.

    Cells where the boolean matrix `accent` is True are red.
    """
    matrix = np.asarray(matrix, dtype=float)
    rows, cols = matrix.shape
    cell = min(52, max(4, 300 // max(cols, 1)))
    left, top = (64, 22) if cell >= 14 else (6, 6)
    marks = []
    for i in range(rows):
        for j in range(cols):
            value = matrix[i, j]
            share = 0.0 if not math.isfinite(value) else min(max(value / largest, 0.0), 1.0)
            x, y = left + cell * j, top + cell * i
            fill = RED if accent is not None and accent[i, j] else color
            marks.append(
                f'<rect x="{x}" y="{y}" width="{cell - 1}" height="{cell - 1}" fill="{fill}" '
                f'fill-opacity="{share * 0.75:.3f}" stroke="currentColor" stroke-opacity="0.25"/>'
            )
            if cell >= 34:
                marks.append(
                    f'<text x="{x + cell / 2}" y="{y + cell / 2 + 4}" text-anchor="middle" '
                    f'font-size="12">{number(value, decimals)}</text>'
                )
    if cell >= 14:
        marks += [
            f'<text x="{left - 6}" y="{top + cell * i + cell / 2 + 4}" text-anchor="end" '
            f'font-size="12">{escape(name)}</text>'
            for i, name in enumerate(row_names)
        ]
        marks += [
            f'<text x="{left + cell * j + cell / 2}" y="15" text-anchor="middle" '
            f'font-size="12">{escape(name)}</text>'
            for j, name in enumerate(column_names)
        ]
    return svg(left + cell * cols + 2, top + cell * rows + 2, "".join(marks), title)
