"""Where the book is published: how a build finds it out, and every link that follows from it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from conftest import ROOT, SITE, built_pages
from sphinx_ext.repository import feedback_link, launchers, plain
from tools import address as published
from tools.address import Address
from tools.serve import served

SETTING = '[tool.book]\nrepository = "{}"\nbranch = "{}"\n'
NOTEBOOKS = sorted(path.stem for path in (ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
HOSTS = ("colab.research.google.com", "mybinder.org", "www.kaggle.com", "vscode.dev", "github.com")


def git(folder, *arguments):
    names = {
        f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = os.environ | names | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", "-C", folder, *arguments],
        check=True, capture_output=True, text=True, env=environment,
    ).stdout  # fmt: skip


@pytest.fixture
def root(tmp_path):
    """A folder of the book whose setting is empty."""
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(SETTING.format("", "main"))
    return folder


@pytest.fixture
def checkout(root):
    """Make a checkout whose origin, by its name, is at an address."""

    def checkout(origin, follows=None, there=("main",), default="main"):
        git(root, "init", "--quiet", "--initial-branch=work")
        git(root, "add", ".")
        git(root, "commit", "--quiet", "--message=x")
        git(root, "remote", "add", "origin", origin)
        for branch in there:
            git(root, "update-ref", f"refs/remotes/origin/{branch}", "HEAD")
        if default:
            git(root, "symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{default}")
        if follows:
            git(root, "config", "branch.work.remote", "origin")
            git(root, "config", "branch.work.merge", f"refs/heads/{follows}")
        return root

    return checkout


# --- which address -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("https://github.com/o/n", "https://github.com/o/n"),
        ("https://github.com/o/n.git", "https://github.com/o/n"),
        ("https://github.com/o/n.js/", "https://github.com/o/n.js"),
        ("https://x-access-token:abc@github.com/o/n", "https://github.com/o/n"),
        ("https://www.github.com/o/n", "https://github.com/o/n"),
        ("git@github.com:o/n.git", "https://github.com/o/n"),
        ("ssh://git@github.com/o/n.git", "https://github.com/o/n"),
        ("ssh://git@github.com:22/o/n", "https://github.com/o/n"),
        ("git://github.com/o/n.git", "https://github.com/o/n"),
        ("", ""),
        ("https://example.org/o/n", ""),
        ("https://gitlab.com/o/n.git", ""),
        ("git@example.org:o/n.git", ""),
        ("/home/someone/book", ""),
        ("../book", ""),
        ("file:///somewhere/github.com/n.git", ""),
        ("https://github.com/o", ""),
        ("https://github.com/o/n/tree/main", ""),
        ("https://github.com.example.org/o/n", ""),
    ],
)
def test_only_an_address_on_github_makes_links(text, page):
    assert published.github_url(text) == page


ACTIONS = {"GITHUB_REPOSITORY": "fork/book", "GITHUB_SERVER_URL": "https://github.com"}


@pytest.mark.parametrize(
    ("more", "branch"),
    [
        ({"GITHUB_REF_NAME": "main"}, "main"),
        ({"GITHUB_REF_NAME": "release/2"}, "release/2"),
        ({"GITHUB_REF_NAME": "12/merge", "GITHUB_BASE_REF": "dev"}, "dev"),
        ({"GITHUB_REF_NAME": "main", "GITHUB_BASE_REF": ""}, "main"),
        ({}, "stable"),
    ],
)
def test_in_actions_the_running_repository_is_the_address(checkout, more, branch):
    folder = checkout("https://github.com/origin/book")
    (folder / "pyproject.toml").write_text(SETTING.format("https://github.com/set/book", "stable"))
    assert published.find(folder, ACTIONS | more) == Address("https://github.com/fork/book", branch)


def test_in_actions_of_another_server_there_are_no_links(root):
    server = ACTIONS | {"GITHUB_SERVER_URL": "https://git.example.org"}
    assert published.find(root, server).url == ""


@pytest.mark.parametrize("name", ["book", "owner/", "a/b/c", "https://github.com/o/n", "o/n e"])
def test_a_name_that_is_no_repository_gets_one_sentence(root, name):
    found = published.find(root, ACTIONS | {"GITHUB_REPOSITORY": name})
    assert found.url == ""
    assert found.fault == (
        f"GITHUB_REPOSITORY is {name!r}, which is no repository: set it to OWNER/NAME, or unset it."
    )


def test_a_checkout_follows_its_origin_before_the_setting(checkout):
    folder = checkout("git@github.com:fork/book.git", follows="dev", there=("main", "dev"))
    (folder / "pyproject.toml").write_text(SETTING.format("https://github.com/set/book", "stable"))
    assert published.find(folder, {}) == Address("https://github.com/fork/book", "dev")


@pytest.mark.parametrize(
    ("there", "default", "branch"),
    [
        (("trunk",), "trunk", "trunk"),
        (("trunk",), None, "trunk"),
        (("dev", "main"), None, "main"),
        (("dev", "master"), None, "master"),
        ((), None, "main"),
    ],
)
def test_a_branch_that_was_never_pushed_links_to_the_main_one(checkout, there, default, branch):
    folder = checkout("https://github.com/fork/book", there=there, default=default)
    assert published.find(folder, {}) == Address("https://github.com/fork/book", branch)


def test_a_detached_head_links_to_the_main_branch(checkout):
    folder = checkout("ssh://git@github.com/fork/book.js.git", follows="dev", there=("dev", "main"))
    git(folder, "checkout", "--quiet", "--detach")
    assert published.find(folder, {}) == Address("https://github.com/fork/book.js", "main")


def test_without_git_the_setting_counts(checkout, monkeypatch):
    folder = checkout("https://github.com/fork/book")
    (folder / "pyproject.toml").write_text(SETTING.format("https://github.com/set/book", "stable"))
    monkeypatch.setenv("PATH", "")
    assert published.find(folder, {}) == Address("https://github.com/set/book", "stable")


def test_a_branch_that_has_gone_gets_one_sentence_and_links_to_the_main_one(checkout):
    folder = checkout("https://github.com/fork/book", follows="gone")
    assert published.find(folder, {}) == Address(
        "https://github.com/fork/book",
        "main",
        "The branch 'gone' has gone from https://github.com/fork/book, so links lead to 'main': "
        "check out a branch that is there, or push this one.",
    )


@pytest.mark.parametrize("origin", ["/srv/book.git", "https://gitlab.com/o/n", "git@x.org:o/n"])
def test_where_the_origin_is_elsewhere_the_setting_counts(checkout, origin):
    folder = checkout(origin)
    assert published.find(folder, {}) == Address()
    (folder / "pyproject.toml").write_text(SETTING.format("https://github.com/set/book", "stable"))
    assert published.find(folder, {}) == Address("https://github.com/set/book", "stable")


def test_a_copy_inside_another_repository_does_not_take_its_origin(checkout):
    copy = checkout("https://github.com/fork/book") / "copy"
    copy.mkdir()
    (copy / "pyproject.toml").write_text(SETTING.format("", "main"))
    assert published.find(copy, {}) == Address()


def test_a_setting_that_is_no_address_gets_one_sentence(root):
    (root / "pyproject.toml").write_text(SETTING.format("github.com/o/n", "main"))
    found = published.find(root, {})
    assert found.url == ""
    assert found.fault == (
        "pyproject.toml has repository = 'github.com/o/n', which is no repository's address: "
        "run `make repository URL=https://github.com/OWNER/NAME`."
    )


def test_a_chapter_that_is_not_pushed_yet_is_known(checkout):
    folder = checkout("https://github.com/fork/book")
    here = published.find(folder, {})
    assert published.lacking(folder, here, ["pyproject.toml", "book/new.ipynb"]) == {
        "book/new.ipynb"
    }
    unknown = here._replace(branch="elsewhere")
    assert published.lacking(folder, unknown, ["book/new.ipynb"]) == set()


# --- which links -------------------------------------------------------------------------------


def test_each_launcher_gets_the_repository_the_branch_and_the_file():
    found = launchers(Address("https://github.com/o/n", "rel/2#x"), "book/03_a b.ipynb")
    links = {name: link for name, _, link in found}
    file = "o/n/blob/rel/2%23x/book/03_a%20b.ipynb"
    assert links.pop("Colab") == f"https://colab.research.google.com/github/{file}"
    assert links.pop("VS Code") == f"https://vscode.dev/github/{file}"
    assert links.pop("GitHub") == f"https://github.com/{file}"
    binder = urlsplit(links.pop("Binder"))
    assert (binder.netloc, binder.path) == ("mybinder.org", "/v2/gh/o/n/rel%2F2%23x")
    assert parse_qs(binder.query) == {"labpath": ["book/03_a b.ipynb"]}
    kaggle = urlsplit(links.pop("Kaggle"))
    assert parse_qs(kaggle.query) == {"src": [f"https://github.com/{file}"]}
    assert links == {}


def test_the_feedback_link_fills_in_title_and_page():
    title = plain("<span>2. </span>Queries &amp; keys")
    link = urlsplit(feedback_link(Address("https://github.com/o/n"), title, "book/02_a"))
    assert link.path == "/o/n/issues/new"
    fields = parse_qs(link.query)
    assert fields["title"] == ["2. Queries & keys: "]
    assert fields["body"][0].startswith("Page: book/02_a\n")


# --- on the pages ------------------------------------------------------------------------------


def outside(page):
    """Give the links of a page's own bar that leave the site."""
    bar = page.select_one(".article-header-buttons")
    links = bar.select("a[href^=http]") if bar else []
    return [link["href"] for link in links]


@pytest.mark.parametrize("page", built_pages())
def test_without_an_address_there_is_no_launch_button(page):
    if published.find(ROOT).url:
        pytest.skip("the address is known")
    soup = BeautifulSoup((SITE / page).read_text(), "html.parser")
    assert outside(soup) == []
    # The theme's and Jupyter Book's own repositories are their fallbacks.
    assert "executablebooks/" not in "".join(a.get("href", "") for a in soup.select("a"))


@pytest.fixture(scope="module")
def fork(tmp_path_factory):
    """Build a copy of the book as a fork's Actions would, with the results that are kept already.

    Nothing is edited and nothing executed.
    """
    root = tmp_path_factory.mktemp("fork") / "book"
    ignored = shutil.ignore_patterns(".*", "_build", "node_modules", "__pycache__", "screenshots")
    shutil.copytree(ROOT, root, ignore=ignored)
    kept = ROOT / "_build" / ".jupyter_cache"
    if kept.is_dir():
        shutil.copytree(kept, root / "_build" / ".jupyter_cache")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", root, "-q", "-W"]
    actions = {"GITHUB_REPOSITORY": "someone/fork", "GITHUB_REF_NAME": "stable"}
    strict = {"WORKED_EXAMPLES_STRICT": "1", "NO_COLOR": "1", "GITHUB_BASE_REF": ""}
    done = subprocess.run(
        [*command, "--keep-going"],
        capture_output=True,
        text=True,
        env=os.environ | actions | strict | {"GITHUB_SERVER_URL": "https://github.com"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    assert "executed in" not in done.stdout
    return root / "_build" / "html"


def test_the_sites_own_address_follows_the_repository():
    here = Address("https://github.com/Someone/Book")
    assert published.site(here, {}) == "https://someone.github.io/Book/"
    assert published.site(here, {"BOOK_SITE": "https://book.example.org"}) == (
        "https://book.example.org/"
    )
    assert published.site(Address(), {}) == ""
    for wrong in ("nonsense", "https://", "https://x y", 'https://x.org/"><script>'):
        assert published.site(here, {"BOOK_SITE": wrong}) == "https://someone.github.io/Book/"
        said = published.site_fault({"BOOK_SITE": wrong})
        assert said.startswith(f"BOOK_SITE is {wrong!r}, which is no site's address: set it to")
    assert published.site_fault({"BOOK_SITE": "https://book.example.org/x"}) == ""


def test_a_forks_page_for_teachers_has_the_forks_address_in_its_code(fork):
    text = soup_of(fork, "book/embedding.html").get_text()
    assert 'src="https://someone.github.io/fork/embed/select.html"' in text
    assert "example.org" not in text


def soup_of(site, page):
    return BeautifulSoup((site / page).read_text(), "html.parser")


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_in_a_fork_each_chapter_opens_from_the_fork(fork, notebook):
    page = soup_of(fork, f"book/{notebook}.html")
    path = f"book/{notebook}.ipynb"
    assert (ROOT / path).is_file()
    links = {link for link in outside(page) if "/issues/" not in link}
    here = Address("https://github.com/someone/fork", "stable")
    assert links == {link for _, _, link in launchers(here, path)} | {here.url}
    assert sorted({urlsplit(link).netloc for link in links}) == sorted(HOSTS)
    titles = [link.get("title") for link in page.select(".article-header-buttons a[href^=http]")]
    assert all(titles)


@pytest.mark.parametrize("page", ["index.html", "book/notation.html", "search.html"])
def test_a_page_that_is_no_notebook_has_no_launcher(fork, page):
    links = outside(soup_of(fork, page))
    assert {urlsplit(link).netloc for link in links} <= {"github.com"}
    assert not any("/blob/" in link for link in links)


def test_every_page_of_the_book_has_a_link_for_feedback_about_it(fork):
    titles = []
    for path in [fork / "index.html", *sorted((fork / "book").glob("*.html"))]:
        page = BeautifulSoup(path.read_text(), "html.parser")
        (link,) = page.select("a.btn-feedback-button")
        fields = parse_qs(urlsplit(link["href"]).query)
        assert link["href"].startswith("https://github.com/someone/fork/issues/new?")
        # A chapter's title has its number in front.
        assert page.select_one("h1").find(string=True) in fields["title"][0]
        assert link["title"]
        titles.append(fields["title"][0])
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_chapter_downloaded_from_a_forks_site_knows_where_its_code_is(fork, notebook):
    page = soup_of(fork, f"book/{notebook}.html")
    button = page.select_one("a.btn-download-source-button")
    file = fork / "book" / unquote(button["href"])
    content = json.loads(file.read_text("utf-8"))
    texts = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
    assert '"https://github.com/someone/fork@stable"' in texts[0]
    committed = json.loads((ROOT / f"book/{notebook}.ipynb").read_text("utf-8"))
    assert [cell["source"] for cell in content["cells"] if "".join(cell["source"]) != texts[0]] == [
        cell["source"] for cell in committed["cells"] if cell["id"] != "find-the-book"
    ]


def test_the_menus_of_a_forks_chapter_open_and_are_accessible(browser, fork):
    with served(fork) as address:
        page = browser.new_page(color_scheme="dark")
        messages = []
        page.on("console", lambda message: messages.append((message.type, message.text)))
        page.on("response", lambda answer: messages.append(("error", answer.url))
                if answer.status >= 400 else None)  # fmt: skip
        page.goto(f"{address}/book/{NOTEBOOKS[0]}.html")
        for menu, entry in (("launch", "Colab"), ("download", ".ipynb")):
            group = page.locator(f".article-header-buttons .dropdown-{menu}-buttons")
            group.get_by_role("button").first.click()
            group.get_by_role("link", name=entry).wait_for(state="visible")
            found = Axe().run(page, ".article-header-buttons").response["violations"]
            assert [rule["id"] for rule in found] == []
            page.keyboard.press("Escape")
        page.close()
    assert [message for message in messages if message[0] in ("error", "warning")] == []
