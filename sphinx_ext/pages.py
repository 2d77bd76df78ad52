"""Mend the theme's HTML: accessibility, order of loading, a description for each page."""

import html
import re
from pathlib import Path

from docutils import nodes

from sphinx_ext import contents

# Inline scripts that follow it set its fields, so it alone must run at once.
NOT_DEFERRED = "documentation_options.js"
DESCRIPTION_LENGTH = 160


def defer_scripts(page):
    """Let the page's text appear before its scripts run.

    >>> defer_scripts('<script src="a.js"></script><script>let a = 1;</script>')
    '<script defer src="a.js"></script><script>let a = 1;</script>'
    """

    def add(match):
        tag = match.group()
        waits = re.search(r"\s(defer|async)\b", tag) or NOT_DEFERRED in tag
        return tag if waits else tag.replace("<script", "<script defer", 1)

    return re.sub(r"<script\b[^>]*\bsrc=[^>]*>", add, page)


# A heading of a table without a word in it.
EMPTY = r"<th\b[^>]*>(?:\s|&nbsp;|<p></p>)*</th>"
# What axe finds in the theme's and the tools' HTML, and what ought to stand there.
MENDED = (
    # pandas gives the name of an index a row of its own, empty but for that name.
    (
        re.compile(
            rf"{EMPTY}(?P<names>(?:\s*<th\b[^>]*>[^<]+</th>)+\s*</tr>)"
            rf"\s*<tr\b[^>]*>\s*<th\b[^>]*>(?P<index>[^<]+)</th>(?:\s*{EMPTY})+\s*</tr>"
        ),
        r"<th>\g<index></th>\g<names>",
    ),
    # The corner of a table is a heading without a word, from pandas and from Markdown.
    (re.compile(EMPTY), "<td></td>"),
    # The role of an entry is for use inside a role that docutils does not set around it.
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
    # Without a role the title and the search stand outside every landmark.
    (
        re.compile(r'<div id="pst-primary-sidebar"'),
        '<div id="pst-primary-sidebar" role="region" aria-label="The book"',
    ),
    # At the first visit the theme's colours would come with its script: the page is painted, and
    # has to be painted again.
    (
        re.compile(r'(dataset\.theme = localStorage\.getItem\("theme"\) \|\| )"auto";'),
        r'\1(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");',
    ),
)


# Scripts that the theme puts on every page: a stand-in for its icons, which are a font here; orders
# to fetch scripts before the text, which need not wait for them.
UNUSED = re.compile(
    r'\s*<script\b[^>]*/fontawesome\.js[^>]*></script>|\s*<link rel="preload" as="script"[^>]*>'
)
# The index of all words and what looks into it: for a search while one types, which is off.
SEARCH = re.compile(
    r"\s*<script\b[^>]*(?:_static/searchtools|_static/language_data|searchindex)\.js[^>]*></script>"
)
SEARCH_PAGE = 'id="search-results"'
# Ours changes what Sphinx's shows of a page.
SEARCH_TOOLS = re.compile(r'<script\b[^>]*\bsrc="(?P<there>[^"]*)searchtools\.js[^>]*></script>')


def leave_out_scripts(page):
    """Take away the scripts that a page loads and does not use; let ours follow the search's.

    >>> leave_out_scripts('<p>a</p><script src="searchindex.js"></script>')
    '<p>a</p>'
    """
    page = UNUSED.sub("", page)
    if SEARCH_PAGE in page:
        return SEARCH_TOOLS.sub(r'\g<0>\n  <script src="\g<there>searching.js"></script>', page)
    return SEARCH.sub("", page)


def mend(page):
    """Return a finished page with its accessibility mended and its scripts few and deferred."""
    for found, better in MENDED:
        page = found.sub(better, page)
    return defer_scripts(leave_out_scripts(page))


def wrap_templates(app):
    """Mend each page where the templates have made it: later ones change nothing more."""
    if app.builder.format != "html":
        return
    render = app.builder.templates.render
    app.builder.templates.render = lambda *args: mend(render(*args))


def first_paragraph(doctree, length=DESCRIPTION_LENGTH):
    """Return the opening words of a page, cut at a word."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > length:
            text = text[: length - 1].rsplit(" ", 1)[0] + "…"
        return text
    return ""


def describe(app, pagename, templatename, context, doctree):
    """Give a chapter the description of its notebook, and another page its own first words."""
    metatags = context.get("metatags", "")
    if 'name="description"' in metatags:
        return
    notebook = Path(app.srcdir, f"{pagename}.ipynb")
    words = contents.read(notebook)[0].get("description", "") if notebook.is_file() else ""
    words = words or (first_paragraph(doctree) if doctree is not None else "")
    words = words or f"{context.get('title', '')}: {app.config.html_title}".strip(": ")
    tag = f'<meta name="description" content="{html.escape(words)}" />'
    context["metatags"] = f"{metatags}\n  {tag}"


def setup(app):
    """Register the hooks."""
    app.connect("builder-inited", wrap_templates)
    app.connect("html-page-context", describe)
