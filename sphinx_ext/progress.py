"""Say in one line a page what the build is doing: reading it, executing it, writing it.

With `--quiet` Sphinx prints warnings alone, and a chapter may take half a minute.
"""

import functools
import time

from myst_nb.sphinx_ import NbMetadataCollector
from nbclient import NotebookClient

say = functools.partial(print, flush=True)


def count_pages(app, env, docnames):
    """Say how many pages have changed since the last build."""
    app.book_pages = {"started": time.time(), "left": sorted(docnames), "of": len(docnames)}
    if not docnames:
        say("No page's text, no code and no pin has changed: nothing to execute.")


def start_page(app, docname, source):
    """Name the page before it is read, and so before its cells run."""
    pages = app.book_pages
    number = pages["of"] - len(pages["left"]) + 1
    pages["left"] = pages["left"][1:]
    say(f"[{number}/{pages['of']}] {docname}", end=" ")


def finish_page(app, doctree):
    """Add whether the page was executed, and how long that took."""
    result = NbMetadataCollector.get_exec_data(app.env, app.env.docname)
    if not result:
        say("read")
    elif not result["succeeded"]:
        say("FAILED")
    elif result["mtime"] < app.book_pages["started"]:
        say("unchanged, with the results of an earlier build")
    else:
        say(f"executed in {result['runtime']:.1f} s")


def start_writing(app, env):
    """Say that what follows is the site itself."""
    if app.book_pages["of"]:
        say("Writing the site ...")


def start_kernel_quietly(self, **options):
    """Start a notebook's kernel without its warning that other machines could listen.

    It listens on this machine alone; a reader who builds the book need not wonder.
    """
    self.extra_arguments = [*self.extra_arguments, "--IPKernelApp.log_level=ERROR"]
    return _start_kernel(self, **options)


def setup(app):
    """Register the lines; the pages' numbers follow the order in which Sphinx reads them."""
    NotebookClient.async_start_new_kernel = start_kernel_quietly
    app.connect("env-before-read-docs", count_pages)
    app.connect("source-read", start_page)
    app.connect("doctree-read", finish_page)
    app.connect("env-updated", start_writing)


_start_kernel = NotebookClient.async_start_new_kernel
