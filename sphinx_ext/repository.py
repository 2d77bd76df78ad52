"""Links to the published repository, on every page that has something to open there.

`tools/address.py` finds the address, so a fork's build makes the fork's links. While none is known,
or it is none that the launchers can open, the site has no such link at all.
"""

import html
import json
import re
from pathlib import Path
from urllib.parse import quote, urlencode

from tools import address as published
from tools import notebooks, repository

COLAB = "https://colab.research.google.com/github"
BINDER = "https://mybinder.org/v2/gh"
KAGGLE = "https://www.kaggle.com/kernels/welcome"
VS_CODE = "https://vscode.dev/github"


def find_address(app, config):
    """Ask for the address once a build, and tell the theme: pages change, chapters rest."""
    root = Path(app.srcdir)
    address = published.find(root)
    for fault in filter(None, (address.fault, published.site_fault())):
        print(fault, flush=True)
    config.book_address = (address.url, address.branch)
    chapters = [path.relative_to(root).as_posix() for path in notebooks.notebooks(root)]
    config.book_lacking = sorted(published.lacking(root, address, chapters))
    # A new dictionary: Sphinx compares the old one with the last build's.
    options = dict(config.html_theme_options)
    options.update(repository_url=address.url, repository_branch=address.branch)
    options["use_repository_button"] = bool(address.url)
    config.html_theme_options = options


def launchers(address, path):
    """Return [(name, what it opens, icon, link)] for a notebook's path from the root.

    Parameters
    ----------
    address : tools.address.Address
        With a `url` on github.com.
    path : str
    """
    name = address.url.removeprefix(f"{published.GITHUB}/")
    branch, file = quote(address.branch), quote(path)
    binder = f"{BINDER}/{name}/{quote(address.branch, safe='')}?{urlencode({'labpath': path})}"
    return [
        ("Colab", "_static/images/logo_colab.png", f"{COLAB}/{name}/blob/{branch}/{file}"),
        ("Binder", "_static/images/logo_binder.svg", binder),
        ("Kaggle", "fab fa-kaggle", f"{KAGGLE}?{urlencode({'src': address.file(path)})}"),
        ("VS Code", "fas fa-code", f"{VS_CODE}/{name}/blob/{branch}/{file}"),
        ("GitHub", "fab fa-github", address.file(path)),
    ]


def feedback_link(address, title, page):
    """Return the address of a new issue about a page, its title and page filled in."""
    body = f"Page: {page}\n\nWhat is wrong or unclear:\n"
    fields = {"title": f"{title}: ", "body": body}
    return f"{address.url}/issues/new?{urlencode(fields, quote_via=quote)}"


def add_buttons(app, pagename, templatename, context, doctree):
    """Add the launchers of a chapter, and to every page of the book a link for feedback."""
    address = published.Address(*app.config.book_address)
    if not address.url or doctree is None:
        return
    buttons = context["header_buttons"]
    path = f"{pagename}.ipynb"
    if Path(app.srcdir, path).is_file() and path not in app.config.book_lacking:
        group = _group(buttons, "launch-buttons", "Open this chapter elsewhere", "fas fa-rocket")
        for name, icon, link in launchers(address, path):
            tooltip = f"Open in {name}"
            group.append(
                {"type": "link", "text": name, "tooltip": tooltip, "icon": icon, "url": link}
            )
    link = feedback_link(address, plain(context.get("title", "")), pagename)
    buttons.append(
        {
            "type": "link",
            "text": "",
            "tooltip": "Say what is wrong or unclear on this page",
            "icon": "fas fa-comment",
            "url": link,
            "label": "feedback-button",
        }
    )


def plain(title):
    """Return a page's title without its HTML.

    >>> plain("<span>2. </span>Queries &amp; keys")
    '2. Queries & keys'
    """
    return html.unescape(re.sub(r"<[^>]+>", "", title)).strip()


def _group(buttons, label, tooltip, icon):
    """Return the list of a group's buttons; another concern may have opened the group."""
    for button in buttons:
        if button.get("label") == label:
            return button["buttons"]
    made = {"type": "group", "tooltip": tooltip, "icon": icon, "buttons": [], "label": label}
    buttons.append(made)
    return made["buttons"]


def address_downloads(app, exception):
    """Write the address into the chapters that the site offers for download.

    Opened far from any repository, such a file must know where its code is.
    """
    url, branch = app.config.book_address
    if exception is not None or app.builder.name != "html" or not url:
        return
    for path in Path(app.outdir, "_sources").rglob("*.ipynb"):
        notebook = json.loads(path.read_text("utf-8"))
        changed = repository.with_first_cell(notebook, repository.Repository(url, branch))
        if changed != notebook:
            path.write_text(notebooks.dumps(changed), "utf-8")


def setup(app):
    """Ask before the theme reads its options; add buttons after it has made its own."""
    app.add_config_value("book_address", ("", "main"), "html")
    app.add_config_value("book_lacking", [], "html")
    app.connect("config-inited", find_address)
    app.connect("html-page-context", add_buttons, priority=800)
    app.connect("build-finished", address_downloads)
