"""Measure the site's explorers in headless Chromium: how soon they are live, how fast they answer.

    python -m benchmarks live

Needs a built site. A bare page that loads nothing but Pyodide and numpy, from the same files, is
measured in turns with the chapters: a machine's speed changes, so the ratio is what counts.
"""

import gzip
import re
import statistics
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tools.browser import launched, new_profile
from tools.serve import Quiet, served

from benchmarks.tables import spread

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
FRAME_MS = 16.7
TARGETS = {"cold": 0.7, "second chapter": 0.4}
WIRE_TARGET_KB = 350
PATIENCE_MS = 60_000
COMPRESSIBLE = {".html", ".css", ".js", ".mjs", ".json", ".svg", ".wasm"}

BARE = """<!doctype html><title>bare</title><script type="module">
import { loadPyodide } from "{runtime}pyodide.mjs";
const pyodide = await loadPyodide({ indexURL: new URL("{runtime}", location).href });
await pyodide.loadPackage("numpy", { messageCallback: () => {} });
pyodide.runPython("import numpy");
window.liveAt = performance.now();
</script>"""

# Notes when the page became live, by its own clock, which starts when it is opened.
WATCH = """new MutationObserver(() => {
  if (!window.liveAt && document.querySelector('[data-state="live"]')) {
    window.liveAt = performance.now();
  }
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-state"] });"""


def chapters():
    """Return each page with an explorer, and the names of its explorers."""
    found = {}
    for path in sorted((SITE / "book").glob("*.html")):
        names = re.findall(r'data-explorer="(\w+)"', path.read_text("utf-8"))
        if names:
            found[f"book/{path.name}"] = names
    return found


class NoSnapshot(Quiet):
    """A host that has lost the snapshot: pages start Python the plain way."""

    def do_GET(self):
        if self.path.endswith("snapshot.packed"):
            self.send_error(404)
        else:
            super().do_GET()


@contextmanager
def site_with_bare_page(handler=Quiet):
    """Serve the site from a folder of links that has the bare page beside it."""
    with tempfile.TemporaryDirectory() as folder:
        for path in SITE.iterdir():
            (Path(folder) / path.name).symlink_to(path)
        runtime = next((SITE / "_runtime").iterdir()).name
        page = BARE.replace("{runtime}", f"./_runtime/{runtime}/")
        (Path(folder) / "bare.html").write_text(page, "utf-8")
        with served(folder, handler) as address:
            yield address


def time_to_live(context, address):
    """Return the milliseconds from opening a page to its being live."""
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_function("() => window.liveAt", timeout=PATIENCE_MS)
    taken = page.evaluate("window.liveAt")
    page.close()
    return taken


def starts(rounds):
    """Measure bare page and chapters in turns, each pair in a browser of its own."""
    pages = [f"{page}#{names[0]}-title" for page, names in chapters().items()]
    first, second = pages[0], pages[1 % len(pages)]
    names = ("bare", "bare again", "cold", "second chapter", "cold, plain", "second, plain")
    times = {name: [] for name in names}
    with site_with_bare_page() as site, site_with_bare_page(NoSnapshot) as plain_site:
        for _ in range(rounds):
            for pair, addresses in (
                (names[0:2], [f"{site}/bare.html"] * 2),
                (names[2:4], [f"{site}/{first}", f"{site}/{second}"]),
                (names[4:6], [f"{plain_site}/{first}", f"{plain_site}/{second}"]),
            ):
                with new_profile() as context:
                    for name, address in zip(pair, addresses, strict=True):
                        times[name].append(time_to_live(context, address))
    rows = []
    for name, measured in times.items():
        ratios = [own / bare for own, bare in zip(measured, times["bare"], strict=True)]
        rows.append(
            {"page": name, **spread(measured, "ms"), "times bare": statistics.median(ratios),
             "target": TARGETS.get(name, "")}
        )  # fmt: skip
    return rows


# In the page: one input event, and the time until the result has changed.
MOVE = """([id, value]) => new Promise((resolve, reject) => {
  const control = document.getElementById(id);
  const result = control.closest("section").querySelector(".explorer-result");
  const begun = performance.now();
  const observer = new MutationObserver(() => {
    observer.disconnect();
    resolve(performance.now() - begun);
  });
  observer.observe(result, { childList: true });
  setTimeout(() => reject(new Error("no result")), 10000);
  control.value = value;
  control.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def answers(moves):
    """Measure, for every explorer, from an input event to the new numbers on the page."""
    rows = []
    with served(SITE) as site, launched() as browser:
        for address, names in chapters().items():
            page = browser.new_page()
            page.add_init_script(WATCH)
            page.goto(f"{site}/{address}#{names[0]}-title")
            page.wait_for_function("() => window.liveAt", timeout=PATIENCE_MS)
            for name in names:
                rows.append({"explorer": name, **_answer_times(page, name, moves)})
            page.close()
    return rows


def _answer_times(page, name, moves):
    ranges = page.locator(f"[data-explorer={name}] input[type=range]").evaluate_all(
        "controls => controls.map(c => [c.id, Number(c.min), Number(c.max), Number(c.step)])"
    )
    times = []
    for move in range(moves):
        identity, low, high, step = ranges[move % len(ranges)]
        steps = round((high - low) / step)
        value = low + step * ((7 * move + 1) % (steps + 1))
        times.append(page.evaluate(MOVE, [identity, str(value)]))
    within = sum(time <= FRAME_MS for time in times) / len(times)
    return {"moves": moves, **spread(times, "ms"), "95th ms": sorted(times)[int(0.95 * moves)],
            "share within a frame": within}  # fmt: skip


def wire():
    """Count what each chapter asks for before the runtime, compressed as hosts compress it."""
    rows = []
    with served(SITE) as site, launched() as browser:
        for address in chapters():
            page = browser.new_page()
            asked = set()
            page.on("request", lambda request, asked=asked: asked.add(request.url))
            # An explorer is far down and the page does not move: Python is not asked for.
            page.goto(f"{site}/{address}", wait_until="networkidle")
            sizes = [_size(site, url) for url in asked if "/_runtime/" not in url or "start" in url]
            page.close()
            rows.append({"page": address, "files": len(sizes), "KB": sum(sizes) / 1e3,
                         "target KB": WIRE_TARGET_KB})  # fmt: skip
    return rows


def runtime_wire():
    """Count what the two ways of starting fetch, as they lie and compressed."""
    folder = next((SITE / "_runtime").iterdir())
    plain = {"python_stdlib.zip", *(path.name for path in folder.glob("numpy-*.whl")),
             *(path.name for path in folder.glob("worked_examples-*.zip"))}  # fmt: skip
    snapshot = {"snapshot.packed", "empty.zip", *(p.name for p in folder.glob("*.wasm"))}
    snapshot -= {"pyodide.asm.wasm"}
    rows = []
    for name, left_out in (("snapshot", plain), ("plain", snapshot)):
        files = [path for path in folder.iterdir() if path.name not in left_out]
        rows.append(
            {"start": name, "files": len(files), "MB": sum(p.stat().st_size for p in files) / 1e6,
             "compressed MB": sum(map(_compressed, files)) / 1e6}
        )  # fmt: skip
    return rows


def _size(site, url):
    return _compressed(SITE / url.removeprefix(site + "/").partition("#")[0].partition("?")[0])


def _compressed(path):
    data = path.read_bytes()
    return len(gzip.compress(data, 6)) if path.suffix in COMPRESSIBLE else len(data)


def measure(quick=False, rounds=None, moves=None):
    """Return the tables of this section."""
    return {
        "from opening a page to live": starts(rounds or (2 if quick else 5)),
        "from an input event to the new numbers": answers(moves or (40 if quick else 200)),
        "a chapter before the runtime, compressed": wire(),
        "the runtime over the wire": runtime_wire(),
    }
