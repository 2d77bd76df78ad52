"""The Chromium that tests and screenshots use: one on PATH, or else Playwright's own.

Run as a program it makes sure that there is one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


def on_path():
    """Return the path of an installed Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def settings():
    """Return how the browser is started."""
    # No call of its own to its maker's servers: what a page asks for is all that is seen.
    options = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--no-sandbox")  # Chromium refuses to start for root otherwise.
    return {"executable_path": on_path(), "args": options}


@contextmanager
def launched():
    """Give a headless browser, and close it afterwards."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**settings())
        yield browser
        browser.close()


@contextmanager
def new_profile():
    """Give a headless browser with a new profile on disk, whose cache lives as a reader's does."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(folder, **settings())
        yield context
        context.close()


def main():
    """Install Playwright's Chromium where no other is found."""
    path = on_path()
    if path is None:
        print("No Chromium or Chrome on PATH: installing Playwright's.", flush=True)
        return subprocess.call([sys.executable, "-m", "playwright", "install", "chromium"])
    print(f"The tests use {path}.", flush=True)
    return 0


def wait_for_kernel(page):
    """Wait until a notebook of JupyterLite has its kernel: a cell run before is not run at all.

    The notebook says *idle* at first, before it knows of any.
    """
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
    if not page.workers:
        page.wait_for_event("worker")


if __name__ == "__main__":
    sys.exit(main())
