"""Pack the built site into one archive, for a room without a network.

    python -m tools.offline [FOLDER]   what `make zip` does, into _build

The same bytes from the same site: names in order, one date, fixed rights.
"""

import argparse
import sys
import tomllib
import zipfile
from pathlib import Path

from tools import serve

ROOT = Path(__file__).resolve().parents[1]
NAME = "self-attention-worked"
DATE = (2000, 1, 1, 0, 0, 0)
# What is compressed already only costs time.
PACKED = {".whl", ".zip", ".packed", ".woff", ".woff2", ".png"}
README = """\
Self-Attention, Worked, {version}: the whole site, for use without a network

1. Unpack this archive.
2. In the folder with this file, run
       python -m http.server
   with any Python 3.11 or newer (on Windows: py -m http.server).
3. Open http://localhost:8000 in a browser.

Everything works: pages, search, sliders, and each chapter in the browser ("Open in the browser",
the triangle above its text). Others in the room reach it at http://THIS-MACHINE:8000 if its
firewall lets them. If the sliders stay at rest, the machine gives script files a wrong type, as
some Windows machines do. Then run
       python serve.py .

A page opened straight from the disk (file://) shows text, formulas, figures and results, its links
lead on, and the search finds pages. Browsers do not let such a page start Python: its sliders rest
where the shown result was computed, and chapters do not open for editing.
"""


def version(root):
    """Return the book's version."""
    with open(root / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]["version"]


def pack(site, number, target):
    """Write the archive.

    Parameters
    ----------
    site : Path
        The built site.
    number : str
        The version, which the folder in the archive carries as well.
    target : Path
    """
    files = {
        path.relative_to(site).as_posix(): path.read_bytes
        for path in site.rglob("*")
        if path.is_file() and path.name != ".buildinfo"
    }
    files["README.txt"] = README.format(version=number).encode
    files["serve.py"] = Path(serve.__file__).read_bytes
    half = target.with_name(f".{target.name}")
    with zipfile.ZipFile(half, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{NAME}-{number}/{name}", DATE)
            entry.external_attr = 0o644 << 16
            kind = zipfile.ZIP_STORED if Path(name).suffix in PACKED else zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name](), kind, 6)
    half.replace(target)


def main(arguments=None):
    """Pack _build/html, and say where the archive is and how large."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "_build")
    options = parser.parse_args(arguments)
    site = ROOT / "_build" / "html"
    if not (site / "index.html").is_file():
        print("There is no built site: run `make book` first.", file=sys.stderr)
        return 1
    number = version(ROOT)
    target = options.folder / f"{NAME}-{number}.zip"
    try:
        pack(site, number, target)
    except OSError as fault:
        print(
            f"{options.folder} cannot take the archive ({fault.strerror}): "
            "python -m tools.offline FOLDER names another folder.",
            file=sys.stderr,
        )
        return 1
    print(f"{target}  {target.stat().st_size / 1e6:.0f} MB")
    for folder in ("_runtime", "lite"):
        if not (site / folder).is_dir():
            print(f"It has no {folder}/: what needs Python in the browser will rest.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
