"""Pack the built site as an e-book, beside the printed one: _build/pdf/self-attention-worked.epub.

A chapter is a file, mathematics is MathML, figures are pictures in SVG. Called by tools/pdf.py.
"""

import copy
import html
import re
import zipfile
from urllib.parse import quote

CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/book.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>
"""
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en"
xml:lang="en"><head><title>{title}</title><link rel="stylesheet" href="book.css" type="text/css"/>
</head><body>{body}</body></html>
"""
STYLE = """
body { line-height: 1.5; }
pre { background: #f6f6f6; color: #000; font-size: 0.8em; padding: 0.5em; white-space: pre-wrap; }
table { border-collapse: collapse; font-size: 0.85em; }
th, td { border-bottom: 1px solid #999; padding: 0.2em 0.6em; text-align: left; }
figure { margin: 1em 0; }
figure img { background: #fff; max-width: 100%; }
.explorer { border: 1px solid #999; padding: 0.5em 1em; }
.explorer-title { font-weight: bold; }
.eqno { float: right; }
nav ol { list-style: none; padding: 0; }
"""
# What a reader of HTML writes in small letters and XML in large and small ones.
SVG_NAMES = ("viewBox", "preserveAspectRatio", "clipPath", "clipPathUnits", "markerWidth",
             "markerHeight", "refX", "refY", "textLength", "linearGradient")  # fmt: skip


def xhtml(element):
    """Return the XML of what stands inside an element of the site."""
    for part in element.select(".katex-html, math annotation, style, button, script"):
        part.decompose()
    for table in element.select("table, table *"):
        for name in ("border", "align", "halign", "valign", "frame", "rules", "width"):
            table.attrs.pop(name, None)
    for part in element.select("[download]"):
        del part["download"]
    for svg in element.select("svg:not([xmlns])"):
        svg["xmlns"] = "http://www.w3.org/2000/svg"
    text = element.decode_contents(formatter="minimal")
    for name in SVG_NAMES:
        text = re.sub(rf"(?<=[ </]){name.lower()}(?=[ =>])", name, text)
    return text


def pack(book, site, target):
    """Write the e-book of a `tools.pdf.Book`; return how many files it has.

    Parameters
    ----------
    book : tools.pdf.Book
    site : Path
        The built site, where the pictures are.
    target : Path
    """
    files = {
        f"{anchor}.xhtml": (title, xhtml(copy.copy(part))) for anchor, title, part in book.parts
    }
    where = {
        place: name
        for name, (_, body) in files.items()
        for place in [name.removesuffix(".xhtml"), *re.findall(r'\bid="([^"]+)"', body)]
    }

    def turned(found):
        place = found[1]
        name = where[place]
        return f'href="{name}"' if name == f"{place}.xhtml" else f'href="{name}#{place}"'

    pictures = {}

    def pictured(found):
        pictures.setdefault(found[1], f"picture-{len(pictures)}.svg")
        return f'src="{pictures[found[1]]}"'

    pages = {}
    for name, (title, body) in files.items():
        body = re.sub(r'href="#([^"]+)"', turned, body)
        body = re.sub(r'src="([^"]+\.svg)"', pictured, body)
        pages[name] = PAGE.format(title=html.escape(title), body=body)
    items = "".join(
        f'<li><a href="{quote(name)}">{html.escape(title)}</a></li>'
        for name, (title, _) in files.items()
    )
    contents = f'<nav epub:type="toc"><h1>Contents</h1><ol>{items}</ol></nav>'
    pages["contents.xhtml"] = PAGE.format(title="Contents", body=contents)
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        entries = {"META-INF/container.xml": CONTAINER, "book/book.css": STYLE}
        entries["book/book.opf"] = _package(book.name, pages, pictures.values())
        entries |= {f"book/{name}": text for name, text in pages.items()}
        for path, name in pictures.items():
            # A space among a picture's letters is a path without a shape.
            picture = (site / path).read_text("utf-8")
            entries[f"book/{name}"] = re.sub(r"<path(?![^>]*\sd=)", '<path d=""', picture)
        # First and as it is: by it a reader knows the file.
        archive.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip", zipfile.ZIP_STORED)
        for name, text in entries.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return len(entries) + 1


def _package(name, pages, pictures):
    """Return the list of all files and their order."""
    items = ['<item id="css" href="book.css" media-type="text/css"/>']
    for number, (file, text) in enumerate(pages.items()):
        has = [word for word, tag in (("mathml", "<math"), ("svg", "<svg")) if tag in text]
        has += ["nav"] if file == "contents.xhtml" else []
        properties = f' properties="{" ".join(has)}"' if has else ""
        items.append(
            f'<item id="p{number}" href="{quote(file)}" '
            f'media-type="application/xhtml+xml"{properties}/>'
        )
    items += [f'<item id="{file[:-4]}" href="{file}" media-type="image/svg+xml"/>'
              for file in pictures]  # fmt: skip
    spine = "".join(f'<itemref idref="p{number}"/>' for number in range(len(pages)))
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<package xmlns="http://www.idpf.org/2007/opf" '
        'version="3.0" unique-identifier="id" xml:lang="en"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">urn:'
        f"self-attention-worked</dc:identifier><dc:title>{html.escape(name)}</dc:title>"
        f"<dc:language>en</dc:language><dc:creator>The authors of {html.escape(name)}</dc:creator>"
        "<dc:rights>CC BY 4.0</dc:rights>"
        '<meta property="dcterms:modified">2026-01-01T00:00:00Z</meta></metadata>'
        f"<manifest>{''.join(items)}</manifest><spine>{spine}</spine></package>"
    )
