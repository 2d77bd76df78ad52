"""Links to the published repository, from its one address in pyproject.toml.

While that address is empty, or not one that Colab can open, the site has no such link at all.
"""

import re
import tomllib
from pathlib import Path

COLAB = "https://colab.research.google.com"
GITHUB = re.compile(r"(?:https://|git@)github\.com[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?/?")


def book_settings(root):
    """Return the table [tool.book] of `root`/pyproject.toml."""
    with open(root / "pyproject.toml", "rb") as file:
        return tomllib.load(file).get("tool", {}).get("book", {})


def github_url(address):
    """Return the page of a repository on github.com, and "" for any other address.

    >>> github_url("git@github.com:someone/book.git")
    'https://github.com/someone/book'
    >>> github_url("https://example.org/someone/book")
    ''
    """
    found = GITHUB.fullmatch(address.strip())
    return "https://github.com/{}/{}".format(*found.groups()) if found else ""


def add_links(app, config):
    """Set the theme's options for the repository and the launch buttons."""
    book = book_settings(Path(app.srcdir))
    url = github_url(book.get("repository", ""))
    # A new dictionary: Sphinx compares the old one with the last build's.
    options = dict(config.html_theme_options)
    options.update(repository_url=url, repository_branch=book.get("branch", "main"))
    options["use_repository_button"] = bool(url)
    options["launch_buttons"] = {"colab_url": COLAB} if url else {}
    config.html_theme_options = options


def setup(app):
    """Run before the theme reads its options."""
    app.connect("config-inited", add_links)
