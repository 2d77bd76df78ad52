"""Save a picture of every page of the built site, at two widths, light and dark.

python tools/screenshots.py FOLDER [PAGE ...]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.browser import launched
from tools.serve import served

SITE = Path(__file__).resolve().parents[1] / "_build" / "html"
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")


def shoot(browser, base, pages, folder):
    """Save one full-page picture for each page, width and colour scheme."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            view = {"width": width, "height": 900}
            page = browser.new_page(viewport=view, color_scheme=scheme)
            for name in pages:
                page.goto(f"{base}/{name}", wait_until="networkidle")
                stem = name.removesuffix(".html").replace("/", "-")
                path = folder / f"{stem}-{width}-{scheme}.png"
                page.screenshot(path=path, full_page=True)
                print(path, flush=True)
            page.close()


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("pages", nargs="*", help="such as index.html; without any, all")
    parser.add_argument("--site", type=Path, default=SITE)
    arguments = parser.parse_args()
    everything = sorted(
        path.relative_to(arguments.site).as_posix()
        for path in arguments.site.rglob("*.html")
        if "_static" not in path.parts
    )
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with served(arguments.site) as base, launched() as browser:
        shoot(browser, base, arguments.pages or everything, arguments.folder)


if __name__ == "__main__":
    main()
