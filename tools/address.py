"""Find out where the book is published: from the build's surroundings, else from its one setting.

A fork's own build then makes the fork's own links, with no file edited. In this order:

1. GitHub Actions says it: GITHUB_REPOSITORY, with GITHUB_SERVER_URL and the branch;
2. the remote `origin` of this checkout, where it is on github.com;
3. pyproject.toml, [tool.book].

Needs the standard library, and git where it is there.
"""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

GITHUB = "https://github.com"
REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w.-]*[\w-]")
# As git and browsers write it: https, ssh, git, and the short form for ssh.
_ADDRESS = re.compile(
    r"(?:(?:https?|git|ssh)://(?:[^@/\s]+@)?(?:www\.)?github\.com(?::\d+)?/|[\w.-]+@github\.com:)"
    r"([\w.-]+)/([\w.-]+?)(?:\.git)?/?"
)
_WEB = re.compile(r"https?://[^\s/?#\"<>]+(/[^\s?#\"<>]*)?")


class Address(NamedTuple):
    """A repository on github.com ("" while none is known), a branch, and what went wrong."""

    url: str = ""
    branch: str = "main"
    fault: str = ""

    def file(self, path, kind="blob"):
        """Return the address of a file, given by its path from the repository's root.

        >>> Address("https://github.com/o/n", "a#b").file("book/x.ipynb")
        'https://github.com/o/n/blob/a%23b/book/x.ipynb'
        """
        return f"{self.url}/{kind}/{quote(self.branch)}/{quote(path)}"


def github_url(address):
    """Return the page of a repository on github.com, and "" for any other address.

    >>> github_url("git@github.com:someone/book.git")
    'https://github.com/someone/book'
    >>> github_url("ssh://git@github.com/someone/book")
    'https://github.com/someone/book'
    >>> github_url("https://example.org/someone/book")
    ''
    """
    found = _ADDRESS.fullmatch(address.strip())
    return "{}/{}/{}".format(GITHUB, *found.groups()) if found else ""


def settings(root):
    """Return the table [tool.book] of `root`/pyproject.toml."""
    with open(root / "pyproject.toml", "rb") as file:
        return tomllib.load(file).get("tool", {}).get("book", {})


def find(root, environment=os.environ):
    """Return the address of the book at `root`.

    Parameters
    ----------
    root : Path
    environment : mapping
        Where GitHub Actions leaves what it knows.
    """
    book = settings(root)
    wanted = book.get("branch", "main")
    return (
        _of_actions(environment, wanted)
        or _of_origin(root, wanted)
        or _of_setting(book.get("repository", ""), wanted)
    )


def site(address, environment=os.environ):
    """Return where the book's pages are published, with a slash at its end; "" while unknown.

    BOOK_SITE says so, or else GitHub Pages' own rule. From there Pages leads to a domain of the
    owner's, should there be one.

    >>> site(Address("https://github.com/Owner/name"), {})
    'https://owner.github.io/name/'
    >>> site(Address("https://github.com/owner/owner.github.io"), {})
    'https://owner.github.io/'
    """
    named = "" if site_fault(environment) else environment.get("BOOK_SITE", "").strip()
    if named or not address.url:
        return named and named.rstrip("/") + "/"
    owner, name = address.url.removeprefix(f"{GITHUB}/").split("/")
    host = f"{owner.lower()}.github.io"
    return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"


def site_fault(environment=os.environ):
    """Return what is wrong with BOOK_SITE, which then does not count, or ""."""
    named = environment.get("BOOK_SITE", "").strip()
    if not named or _WEB.fullmatch(named):
        return ""
    return (
        f"BOOK_SITE is {named!r}, which is no site's address: set it to https://..., or unset it."
    )


def _of_actions(environment, wanted):
    name = environment.get("GITHUB_REPOSITORY", "").strip()
    if not name:
        return None
    if environment.get("GITHUB_SERVER_URL", GITHUB).rstrip("/") != GITHUB:
        return Address()  # A server that no launcher can reach.
    if not REPOSITORY.fullmatch(name):
        fault = f"GITHUB_REPOSITORY is {name!r}, which is no repository: set it to OWNER/NAME"
        return Address(fault=f"{fault}, or unset it.")
    # A pull request's own branch may be in another repository, and goes when it is merged.
    branch = environment.get("GITHUB_BASE_REF") or environment.get("GITHUB_REF_NAME") or wanted
    return Address(f"{GITHUB}/{name}", branch)


def _of_origin(root, wanted):
    # In a copy without a .git of its own, git would answer for the folder around it.
    url = github_url(_git(root, "remote", "get-url", "origin")) if (root / ".git").exists() else ""
    if not url:
        return None
    here = _git(root, "symbolic-ref", "--short", "HEAD")
    followed = _git(root, "config", f"branch.{here}.merge").removeprefix("refs/heads/")
    if _git(root, "config", f"branch.{here}.remote") != "origin":
        followed = ""
    main = _git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    main = main.removeprefix("origin/") or _likely_main(root, wanted)
    if not followed:
        return Address(url, main)
    if _git(root, "rev-parse", "--verify", "--quiet", f"refs/remotes/origin/{followed}"):
        return Address(url, followed)
    fault = f"The branch {followed!r} has gone from {url}, so links lead to {main!r}"
    return Address(url, main, f"{fault}: check out a branch that is there, or push this one.")


def _likely_main(root, wanted):
    """Return the branch that links can lead to where git has not noted which is the main one."""
    prefix = "refs/remotes/origin/"
    listed = _git(root, "for-each-ref", "--format=%(refname)", prefix).splitlines()
    known = [name.removeprefix(prefix) for name in listed]
    likely = [name for name in (wanted, "main", "master") if name in known]
    return (likely or known or [wanted])[0]


def _of_setting(text, wanted):
    url = github_url(text)
    if url or not text or re.match(r"\w+://", text):
        return Address(url, wanted)
    fault = f"pyproject.toml has repository = {text!r}, which is no repository's address"
    return Address("", wanted, f"{fault}: run `make repository URL={GITHUB}/OWNER/NAME`.")


def lacking(root, address, paths):
    """Return those of the paths that the published branch lacks, as far as this checkout knows.

    A link to a chapter that is not pushed yet would be dead.
    """
    if not address.url or not (root / ".git").exists():
        return set()
    branch = f"refs/remotes/origin/{address.branch}"
    listed = _git(root, "ls-tree", "-r", "-z", "--name-only", branch, "--", *paths)
    return set(paths) - set(listed.split("\0")) if listed else set()


def _git(root, *arguments):
    """Return what git prints, and "" where there is no git or no answer."""
    command = ["git", "-C", str(Path(root)), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
