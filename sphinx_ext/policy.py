"""Give every page a strict Content-Security-Policy, which it carries itself.

A static host often cannot be told to send headers, so the policy stands in a meta element, with the
sum of each inline script of that page. A host that can send headers may send `HEADER` as well, for
every file, and `EMBED_HEADER` for those in embed/: then the worker is bound by it too.
"""

import base64
import hashlib
import html
import re

# What a page may load: its own site's files, and nothing from elsewhere. Scripts run from files, or
# with a sum that the policy names; WebAssembly may be compiled, strings may not become code.
# KaTeX and pandas write style attributes, which no sum can name in every browser.
_DIRECTIVES = {
    "default-src": "'none'",
    "script-src": "'self' 'wasm-unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "frame-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
}
# The search reads other pages, whose buttons its own page must then allow; and what marks its finds
# adds a link of this kind to take the marks away.
_THEME_HANDLERS = (
    "toggleFullScreen()",
    "window.print()",
    "javascript:SphinxHighlight.hideSearchWords()",
)
_INLINE = re.compile(r"<script\b(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.S)
_HANDLER = re.compile(r'<[^>]*\son[a-z]+="([^"]*)"')


# What Jupyter's own pages need beyond that: it compiles schemas to functions, draws icons and
# figures from data, and starts Python's worker.
_JUPYTER = {
    "script-src": "'self' 'unsafe-eval'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' data: blob:",
    "worker-src": "'self' blob:",
    "manifest-src": "'self'",
    "media-src": "'self' data: blob:",
}


def policy(scripts=(), handlers=(), more=()):
    """Return the policy that allows these inline scripts and event handlers, given as text.

    >>> policy().split("; ")[:2]
    ["default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'"]
    """
    directives = _DIRECTIVES | dict(more)
    allowed = sorted({_sum(text) for text in (*scripts, *handlers)})
    if handlers:
        allowed.insert(0, "'unsafe-hashes'")
    directives["script-src"] = " ".join([directives["script-src"], *allowed])
    return "; ".join(f"{name} {value}" for name, value in directives.items())


def _sum(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


# For a host that sends headers. It cannot name each page's inline scripts, and leaves those to the
# pages' own policies: where there are two, a page has to meet both.
HEADER = policy().replace("'wasm-unsafe-eval'", "'wasm-unsafe-eval' 'unsafe-inline'")
# The pages in embed/ are there to be framed; no other is.
EMBED_HEADER = HEADER
HEADER += "; frame-ancestors 'none'"


def guard(page):
    """Return a finished page with its policy, before anything that it loads."""
    handlers = [html.unescape(text) for text in _HANDLER.findall(page)]
    return _guard(page, policy(_INLINE.findall(page), handlers + list(_THEME_HANDLERS)))


def guard_jupyter(page):
    """Return a page of JupyterLite with its policy."""
    return _guard(page, policy(_INLINE.findall(page), more=_JUPYTER))


def _guard(page, text):
    content = html.escape(text, quote=True).replace("&#x27;", "'")
    tag = f'<meta http-equiv="Content-Security-Policy" content="{content}">'
    return re.sub(r"<head>", lambda found: f"{found.group()}\n    {tag}", page, count=1)


def wrap_templates(app):
    """Guard each page after the other concerns have changed it."""
    if app.builder.name != "html":
        return
    render = app.builder.templates.render
    app.builder.templates.render = lambda *args: guard(render(*args))


def setup(app):
    """Come last of those that change a finished page."""
    app.connect("builder-inited", wrap_templates, priority=900)
