"""What a fixed-width state can keep of a sequence, and how far information has to travel."""

import numpy as np

from worked_examples.recurrence import linear_recall, path_table
from worked_examples.views.markup import BLUE, number, paragraph, svg, table

__all__ = ["bottleneck"]

READABLE = 0.5  # the R^2 from which on a position counts as readable, in the sentence


def bottleneck(*, L, width, radius):
    """Show how much of each position a linear encoder's last state still tells.

    Parameters
    ----------
    L : int
        Length of the sequence.
    width : int
        Of the encoder's state.
    radius : float
        Spectral radius of the matrix that carries the state on.

    Returns
    -------
    str
        HTML: the recall curve, and the table of paths and steps.
    """
    r2 = linear_recall(L, width, radius)
    readable = int((r2 > READABLE).sum())
    rows = [
        (row["layer"], row["longest path"], row["sequential steps"], row["pairs scored"])
        for row in path_table(L)
    ]
    return (
        _curve(r2, f"R squared of reading back each of {L} positions from the last state")
        + paragraph(
            f"All positions together add up to {number(r2.sum(), 2)} of at most {width}, the "
            f"width of the state; {readable} of {L} can be read with an R² above "
            f"{number(READABLE, 1)}. The first one has {number(max(r2[0], 0.0))}."
        )
        + table(("layer", "longest path", "sequential steps", "pairs scored"), rows)
    )


def _curve(r2, title):
    """Draw one column a position, from 0 to 1."""
    width, base, span = 340, 130, 110
    step = width / len(r2)
    marks = [
        f'<rect x="{step * t:.2f}" y="{base - span * value:.2f}" '
        f'width="{max(step - 1, 0.6 * step):.2f}" height="{span * value:.2f}" fill="{BLUE}"/>'
        for t, value in enumerate(np.clip(r2, 0, 1))
    ]
    marks.append(
        f'<line x1="0" y1="{base}" x2="{width}" y2="{base}" stroke="currentColor"/>'
        f'<line x1="0" y1="{base - span}" x2="{width}" y2="{base - span}" '
        f'stroke="currentColor" stroke-dasharray="2 4" stroke-opacity="0.5"/>'
        f'<text x="0" y="{base - span - 5}">R² = 1</text>'
        f'<text x="0" y="{base + 17}">position 1</text>'
        f'<text x="{width}" y="{base + 17}" text-anchor="end">position {len(r2)}</text>'
    )
    return svg(width, base + 24, "".join(marks), title)
