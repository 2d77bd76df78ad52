"""What several test files share: the built site, a server for it, a browser."""

import os
import sys
import threading
import types
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
# Pages and notebooks are looked up from here, wherever pytest was started.
sys.path.insert(0, str(ROOT))
# As in the build: a number in the text that disagrees with its cell is a failure.
os.environ.setdefault("WORKED_EXAMPLES_STRICT", "1")

from tools.browser import launched  # noqa: E402
from tools.serve import served  # noqa: E402


def built_pages():
    """Name every page of the built site, less JupyterLite's and those for other people's pages."""
    apart = ("_static", "embed", "lite")
    pages = (path.relative_to(SITE) for path in SITE.rglob("*.html"))
    return sorted(page.as_posix() for page in pages if page.parts[0] not in apart)


@pytest.fixture(scope="session")
def site():
    """Give the address of the built site, served on this machine alone."""
    assert (SITE / "index.html").is_file(), "no built site: run `make book` first"
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def trained():
    """Give the trained model's arrays and vocabulary; without its files the test is skipped."""
    from worked_examples import weights

    try:
        return weights.load()
    except weights.Unavailable as fault:
        pytest.skip(str(fault))


# Asked at every frame, as a transition begins with the one after its cause. An endless spinner
# does not count, nor does what is paused: its end would never come.
STILL = """() => {
  const moves = (a) => a.playState === "running" && a.effect.getTiming().iterations < Infinity;
  window.stillFrames = document.getAnimations().some(moves) ? 0 : window.stillFrames + 1;
  return window.stillFrames > 2;
}"""


def settle(page):
    """Wait until nothing moves: half-way between two colours, contrast is that of neither."""
    page.evaluate("window.stillFrames = 0")
    page.wait_for_function(STILL, timeout=120_000)


@contextmanager
def hosted(handler):
    """Serve the site from a host whose faults a test sets; its handler finds them as `site`."""
    site = types.SimpleNamespace(
        faults={}, headers={}, prefix="", seen=[], released=threading.Event()
    )
    with served(SITE, type("Host", (handler,), {"site": site})) as address:
        site.address = address
        yield site
        site.released.set()
