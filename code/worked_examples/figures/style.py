"""One look for every figure of the book, and its palette."""

import math

import matplotlib
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "RED",
    "draw_map",
    "new_figure",
    "new_panels",
    "use_book_style",
]

# Okabe and Ito's palette, told apart by every kind of colour vision. Orange is too light for
# thin lines on white; use it for areas.
BLUE, RED, GREEN = "#0072b2", "#d55e00", "#009e73"
PURPLE, ORANGE, GREY = "#aa4499", "#e69f00", "#6e6e6e"

_STYLE = {
    # On a phone a figure is some 360 pixels wide, which is what 5 inches are at 72 to the inch:
    # type of 11 points stays 11 pixels high there.
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.labelsize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    # White, not transparent: dark notebooks show black type on it; the site blends it away.
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # The same figure gives the same file: no random identifiers.
    "svg.hashsalt": "self-attention-worked",
}


def use_book_style():
    """Set the book's look, and show figures as SVG in this notebook."""
    matplotlib.rcParams.update(_STYLE)
    from IPython import get_ipython

    if get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", metadata={"Date": None})


def new_figure(width=5.0, height=3.2, columns=1, rows=1, **options):
    """Make a figure outside pyplot, so that a cell shows it once, by returning it.

    Parameters
    ----------
    width, height : float
        Inches; 5 wide is a phone's screen.
    columns, rows : int
        How many axes.
    **options
        For `matplotlib.figure.Figure.subplots`, as ``sharey=True``.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes or array of them
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, **options)


def new_panels(count, row_height, columns=2):
    """Make a figure of small axes, row by row; those of the last row that are not needed are off.

    Parameters
    ----------
    count : int
        How many axes.
    row_height : float
        Inches.
    columns : int
        At most so many in a row.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : (rows, columns) array of matplotlib.axes.Axes
    """
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure, axes = new_figure(5.0, 0.2 + rows * row_height, columns, rows, squeeze=False)
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    return figure, axes


def draw_map(axis, A, title, *, darkest=1.0, ticks=4):
    """Draw a matrix of weights as squares, a row a query and a column a key, darker for more.

    Squares and no raster, so that the picture stays sharp at any size.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    A : (L_q, L_k) array
        Weights, not negative.
    title : str
    darkest : float
        The weight that is drawn in full colour, as are all above it.
    ticks : int
        At most so many a side.
    """
    L_q, L_k = A.shape
    shares = (A / darkest).clip(0, 1)
    cells = np.argwhere(shares > 0.01)
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    squares = cells[:, None, ::-1] + corners  # (cells, 4, 2): x is the key, y the query
    colors = [to_rgba(BLUE, float(shares[i, j])) for i, j in cells]
    axis.add_collection(PolyCollection(squares, facecolors=colors, edgecolors="none"))
    axis.set(xlim=(0, L_k), ylim=(L_q, 0), aspect="equal")
    for kind, count in (("x", L_k), ("y", L_q)):
        at = range(0, count, math.ceil(count / ticks))
        getattr(axis, f"set_{kind}ticks")([k + 0.5 for k in at], map(str, at))
    for spine in axis.spines.values():
        spine.set_visible(True)
        spine.set_color(GREY)
    axis.set_title(title, fontsize=10)
