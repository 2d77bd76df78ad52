"""Cut the icon fonts down to the icons that the site's style sheet names.

The whole fonts are half the weight of a page. Their licence (SIL OFL 1.1) allows a part of a font
under another name than the reserved one; who made it, and the licence, stay in the file.
"""

import hashlib
import io
import logging
import re

from fontTools import subset
from fontTools.ttLib import TTFont

FACE = re.compile(r"@font-face\{[^{}]*url\(([^()]*/fontawesome/[^()]*\.ttf)\)[^{}]*\}")
ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})")
OWN_NAME = "Book Icons"
# Of a font's names: family, unique, full, PostScript, typographic family.
NAMES = {1: OWN_NAME, 3: OWN_NAME, 4: OWN_NAME, 6: OWN_NAME.replace(" ", ""), 16: OWN_NAME}
PRIVATE = re.compile("[\ue000-\uf8ff]")
# It would tell the build of each table that it cuts.
logging.getLogger("fontTools").setLevel(logging.WARNING)


def code_points(sheet, elsewhere=""):
    r"""Return the characters that a sheet writes as escapes, and icons that stand as themselves.

    >>> sorted(map(hex, code_points('.a::before{content:"\\f03a"}')))
    ['0xf03a']
    """
    named = {int(digits, 16) for digits in ESCAPE.findall(sheet)}
    return named | {ord(icon) for icon in PRIVATE.findall(sheet + elsewhere)}


def part_of(path, points):
    """Return the part of a font that draws these code points, as WOFF; None if it has none."""
    font = TTFont(path, recalcTimestamp=False)
    points = points & set(font.getBestCmap())
    if not points:
        return None
    options = subset.Options(
        flavor="woff", hinting=False, layout_features=[], name_IDs=["*"], notdef_outline=True
    )
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=points)
    cutter.subset(font)
    for record in list(font["name"].names):
        if record.nameID in NAMES:
            record.string = NAMES[record.nameID]
    font.flavor = "woff"
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue()


def with_subsets(sheet, folder, elsewhere):
    """Return a sheet whose icon fonts are parts, which this writes into its folder.

    Parameters
    ----------
    sheet : str
        With the rules for the icons in use alone.
    folder : Path
        Where the sheet will lie.
    elsewhere : str
        Pages and scripts, in which an icon may stand as itself.

    Returns
    -------
    str
        A font of which nothing is used is not in it.
    """
    points = code_points(FACE.sub("", sheet), elsewhere)
    for old in folder.glob("icons-*.woff"):
        old.unlink()

    def replaced(found):
        data = part_of(folder / found[1], points)
        if data is None:
            return ""
        name = f"icons-{hashlib.sha256(data).hexdigest()[:12]}.woff"
        (folder / name).write_bytes(data)
        face = re.sub(r"src:[^;}]*", f'src:url({name}) format("woff")', found.group())
        return face

    return FACE.sub(replaced, sheet)
