"""Rate pages of the built site with Lighthouse, on a phone's profile and on a desktop's.

    python -m benchmarks.lighthouse [PAGE ...] [--profile mobile|desktop] [--rounds N] [--json]

Without pages: all that the site's contents list, and the opening page. Needs a built site, Chromium
and the npm package lighthouse, which is looked for in this folder and on PATH; without it the
command says how to get it. The site is served as hosts serve it: compressed, with connections kept
open. Performance comes from simulated networks, but its processor is this machine's: read it on an
idle one.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tools.browser import on_path, settings
from tools.serve import Quiet, served

from benchmarks.tables import print_tables

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
VERSION = "12.8.2"
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
PROFILES = {"mobile": [], "desktop": ["--preset=desktop"]}
TARGETS = {"mobile": (90, 100, 100, 100), "desktop": (95, 100, 100, 100)}
COMPRESSIBLE = {".html", ".css", ".js", ".mjs", ".json", ".svg", ".wasm"}
SECONDS = 180


class Compressing(Quiet):
    """Serve as hosts do: text compressed, connections kept open, static files kept for an hour."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if path.suffix not in COMPRESSIBLE or not path.is_file():
            super().do_GET()
            return
        data = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@cache
def compressed(path):
    """Return a file's bytes as a host sends them."""
    return gzip.compress(path.read_bytes(), 6)


def program():
    """Return the command that starts Lighthouse, or None: of this folder first, then of PATH."""
    own = ROOT / "node_modules" / ".bin"
    found = shutil.which("lighthouse", path=os.pathsep.join([str(own), os.environ["PATH"]]))
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout.strip()
    return found if said == VERSION else None


def pages():
    """Return the opening page, every chapter and every page after them."""
    return ["index.html", *sorted(f"book/{path.name}" for path in (SITE / "book").glob("*.html"))]


def report(lighthouse, address, profile):
    """Return Lighthouse's report on one page."""
    flags = " ".join(["--headless=new", *settings()["args"]])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [lighthouse, address, "--quiet", "--output=json", f"--output-path={path}"]
        command += [f"--only-categories={','.join(CATEGORIES)}", f"--chrome-flags={flags}"]
        environment = os.environ | {"CHROME_PATH": on_path() or ""}
        done = subprocess.run(
            [*command, *PROFILES[profile]],
            env=environment, capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        if done.returncode or not path.is_file():
            raise RuntimeError(f"Lighthouse failed on {address}: {done.stderr[-500:]}")
        return json.loads(path.read_text("utf-8"))


def lost(result):
    """Name what cost points: audits that count in their category and did not pass."""
    counted = {
        audit["id"]
        for category in result["categories"].values()
        for audit in category["auditRefs"]
        if audit["weight"]
    }
    scores = {name: audit["score"] for name, audit in result["audits"].items()}
    return sorted(name for name in counted if scores.get(name) is not None and scores[name] < 0.9)


def rate(lighthouse, site, page, profile, rounds):
    """Return one row: the median scores of a page, and what cost points in any round."""
    reports = [report(lighthouse, f"{site}/{page}", profile) for _ in range(rounds)]
    row = {"page": page, "profile": profile}
    for name in CATEGORIES:
        scores = [100 * each["categories"][name]["score"] for each in reports]
        row[name] = round(statistics.median(scores))
    target = TARGETS[profile]
    met = all(row[name] >= wanted for name, wanted in zip(CATEGORIES, target, strict=True))
    costs = sorted(set().union(*map(lost, reports)))
    return row | {"target": "met" if met else "missed", "lost at": ", ".join(costs) or "-"}


def main():
    """Rate, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lighthouse", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="such as book/03_scaling.html")
    parser.add_argument("--profile", choices=PROFILES, help="one of the two; without it, both")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each page (1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    lighthouse = program()
    if lighthouse is None:
        sys.exit(f"Lighthouse {VERSION} is not here: npm install --no-save lighthouse@{VERSION}")
    profiles = [options.profile] if options.profile else list(PROFILES)
    load = os.getloadavg()[0]
    with served(SITE, Compressing) as site:
        rows = [
            rate(lighthouse, site, page, profile, options.rounds)
            for profile in profiles
            for page in options.pages or pages()
        ]
    if options.json:
        print(json.dumps({"load at the start": load, "ratings": rows}, indent=2))
    else:
        print(f"load at the start {load:.1f}, at the end {os.getloadavg()[0]:.1f}")
        print_tables({f"Lighthouse {VERSION}": rows})


if __name__ == "__main__":
    main()
