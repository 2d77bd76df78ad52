"""Lead from a chapter's title to what can be moved in it.

The keyboard passes a button at every cell on its way to the first control; a link goes there at
once, and says what there is to be found out.
"""

import re

EXPLORER = re.compile(r'<p class="explorer-title" id="([^"]+)">(.*?)</p>')


def lead(body):
    """Return a page's text with links to its explorers under its title.

    >>> lead('<h1>A</h1><p class="explorer-title" id="b-title">What if?</p>').split("</p>")[0]
    '<h1>A</h1><p class="to-explorers">Explore: <a href="#b-title">What if?</a>'
    """
    found = EXPLORER.findall(body)
    if not found:
        return body
    links = " ".join(f'<a href="#{anchor}">{title}</a>' for anchor, title in found)
    return body.replace("</h1>", f'</h1><p class="to-explorers">Explore: {links}</p>', 1)


def lead_there(app, pagename, templatename, context, doctree):
    """Put the links into a page that has an explorer."""
    if "body" in context:
        context["body"] = lead(context["body"])


def setup(app):
    """Register the hook."""
    app.connect("html-page-context", lead_there)
