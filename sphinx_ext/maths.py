"""Set the mathematics while the site is built, with the Node.js that came from PyPI."""

import html
import re
import socket
import subprocess
import time

from docutils import nodes
from sphinx.util import logging
from sphinxcontrib import katex
from tools import runtime

LOGGER = logging.getLogger(__name__)
# Node's first start on a busy machine can take longer than the five seconds of the default.
PATIENCE = 60.0
# Letters of LaTeX up to which a formula is short: a longer one may have to break on a phone.
SHORT = 40


def start_server(rundir, timeout):
    """Start KaTeX's server and connect to it, as soon as it listens.

    The original connects when the socket's file exists, which is a moment too early: about one
    build in twenty then ended with a refused connection.
    """
    path = rundir / "katex.sock"
    process = subprocess.Popen(
        katex.KaTeXServer.build_command(socket=path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=rundir,
    )
    give_up = time.monotonic() + timeout
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
            return process, connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if process.poll() is not None or time.monotonic() > give_up:
                process.kill()
                raise katex.KaTeXServer.timeout_error(timeout) from None
            time.sleep(0.01)


def render(latex, options=None):
    """Set one formula; one that KaTeX cannot set is a warning that quotes it."""
    try:
        return _render(latex, options)
    except katex.KaTeXError as error:
        LOGGER.warning("KaTeX cannot set %r: %s", latex, error)
        return f"<code>{html.escape(latex)}</code>"


def hold_punctuation(app, doctree, docname):
    """Keep a short formula and the comma or full stop behind it on one line."""
    for formula in list(doctree.findall(nodes.math)):
        behind = formula.next_node(descend=False, siblings=True)
        mark = (
            re.match(r"[,.;:!?)\]]+", behind.astext()) if isinstance(behind, nodes.Text) else None
        )
        if mark and len(formula.astext()) <= SHORT:
            parent, place = formula.parent, formula.parent.index(formula)
            held = nodes.inline("", "", formula, nodes.Text(mark.group()), classes=["unbroken"])
            rest = nodes.Text(behind.astext()[mark.end() :])
            parent[place : place + 2] = [held, rest]


def use_node(app):
    """Hand Node.js to sphinxcontrib-katex, or say what is missing."""
    node = runtime.node()
    if node is None:
        LOGGER.warning("no Node.js to set the mathematics with: pip install -r requirements.txt")
        return
    katex.NODEJS_BINARY = node


def setup(app):
    """Make a formula with a mistake a warning, where the default prints it in red."""
    katex.KATEX_DEFAULT_OPTIONS["throwOnError"] = True
    katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = PATIENCE
    katex.KaTeXServer.start_server_process = staticmethod(start_server)
    katex.render_latex = render
    app.connect("builder-inited", use_node, priority=100)
    app.connect("doctree-resolved", hold_punctuation)


_render = katex.render_latex
