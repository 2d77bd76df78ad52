"""Make the figures smaller, and let each page know their sizes before they are there.

Matplotlib writes six decimals of a point, each step of a line on a line of its own. A hundredth of
a point is less than any screen or printer shows.
"""

import re
from pathlib import Path

from sphinx_ext.styles import pages_of

SIZE = re.compile(r'<svg\b[^>]*?\swidth="([\d.]+)pt"[^>]*?\sheight="([\d.]+)pt"')
PX_PER_PT = 96 / 72
IMAGE = re.compile(r'<img\b(?![^>]*\swidth=)[^>]*\ssrc="([^"]+\.svg)"[^>]*?(?=\s*/?>)')

NOT_DRAWN = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->|<!DOCTYPE[^>]*>", re.S)
DECIMALS = 2
# Only what is measured in points: the glyphs are drawn large and scaled down, so they lose nothing;
# a scale itself stays as it is.
PLACES = re.compile(r'(\s(?:d|x|y|x1|y1|x2|y2|points)=")([^"]*)(")')
NUMBER = re.compile(r"-?\d+\.\d+")


def shrink(svg):
    r"""Return a picture without what is not drawn, its places to a hundredth of a point.

    >>> shrink('<path d="M 1.234567 2.000000 \nL 3.5 4 \n" style="a: b"/>')
    '<path d="M1.23 2L3.5 4" style="a: b"/>'
    """
    svg = PLACES.sub(lambda found: found[1] + _places(found[2]) + found[3], NOT_DRAWN.sub("", svg))
    return re.sub(r">\s+<", "><", svg).strip()


def _places(text):
    text = NUMBER.sub(lambda found: _short(float(found.group())), text)
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" ?([A-Za-z]) ?", r"\1", text)


def _short(value):
    """Write a number without needless digits.

    >>> _short(-0.001), _short(12.50), _short(3.0)
    ('0', '12.5', '3')
    """
    return f"{round(value, DECIMALS) + 0.0:.{DECIMALS}f}".rstrip("0").rstrip(".")


def size(svg):
    """Return a picture's width and height in CSS pixels, or None if it does not say them in points.

    >>> size('<svg width="36pt" height="7.2pt">')
    (48, 10)
    """
    found = SIZE.search(svg)
    return found and tuple(round(float(points) * PX_PER_PT) for points in found.groups())


def with_sizes(page, folder):
    """Return a page whose figures reserve their places; `folder` is the one it lies in."""

    def add(found):
        path = folder / found[1]
        measured = size(path.read_text("utf-8")) if path.is_file() else None
        if measured is None:
            return found.group()
        return f'{found.group()} width="{measured[0]}" height="{measured[1]}"'

    return IMAGE.sub(add, page)


def finish(app, exception):
    """Shrink what Sphinx has copied; what is small already comes out as it is."""
    if exception is not None or app.builder.name != "html":
        return
    for path in Path(app.outdir, "_images").glob("*.svg"):
        svg = path.read_text("utf-8")
        if (smaller := shrink(svg)) != svg:
            path.write_text(smaller, "utf-8")
    for path in pages_of(app):
        page = path.read_text("utf-8")
        if (sized := with_sizes(page, path.parent)) != page:
            path.write_text(sized, "utf-8")


def setup(app):
    """Run after the figures are copied and the pages are written."""
    app.connect("build-finished", finish)
