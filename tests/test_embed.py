"""Explorers and figures on other people's pages: their addresses, and a page that frames them."""

import json
import re
from functools import cache
from html import unescape
from statistics import median
from urllib.parse import urldefrag

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from conftest import ROOT, SITE
from sphinx_ext import embed
from tools.serve import served

from worked_examples.explorers import ALL

FOLDER = SITE / embed.PLACE
FILES = sorted(path.name for path in FOLDER.glob("*.html"))
EXPLORERS = [name for name in FILES if not name.startswith("fig-")]
NOTEBOOKS = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))


@cache
def soup(path):
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def figures():
    """Give the name of each figure that a chapter's file declares."""
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            figure = cell["metadata"].get("mystnb", {}).get("figure", {})
            if figure:
                yield figure["name"]


def test_every_figure_and_every_explorer_of_a_chapter_has_an_address():
    assert [name for name in figures() if not (FOLDER / f"{name}.html").is_file()] == []
    assert [name for name in figures() if not (FOLDER / f"{name}.svg").is_file()] == []
    shown = {
        section["data-explorer"]
        for path in NOTEBOOKS
        for section in soup(SITE / f"book/{path.stem}.html").select("section.explorer")
    }
    assert {name.removesuffix(".html") for name in EXPLORERS} == shown
    assert shown <= set(ALL)


@pytest.mark.parametrize("name", FILES)
def test_a_page_is_small_and_complete_and_names_its_chapter(name):
    page = soup(FOLDER / name)
    assert (FOLDER / name).stat().st_size < 60_000
    for part in page.select("[src], link[href]"):
        address = urldefrag(part.get("src") or part.get("href")).url
        assert not re.match(r"\w+:|//", address), address
        assert (FOLDER / address).is_file(), address
    (source,) = page.select(".source a")
    path, anchor = urldefrag(source["href"])
    assert source["target"] == "_blank"
    assert soup((FOLDER / path).resolve()).find(id=anchor), (
        "the link back leads to the thing itself"
    )
    assert "Self-Attention, Worked" in source.get_text()
    assert page.title.get_text()
    ids = [element["id"] for element in page.select("[id]") if not element.find_parent("svg")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", [name for name in FILES if name not in EXPLORERS])
def test_a_figure_keeps_its_words_and_its_caption(name):
    page = soup(FOLDER / name)
    picture = page.select_one("figure img")
    assert picture["src"] == name.replace(".html", ".svg")
    assert len(picture["alt"].split()) > 5
    assert re.match(r"Fig\. \d+\.\d+ \w", page.select_one("figcaption").get_text(strip=False))
    assert page.select("figcaption a") == []


def test_the_page_for_teachers_lists_all_and_its_examples_exist():
    page = soup(SITE / f"{embed.PAGE}.html")
    linked = {link["href"].rpartition("/")[2] for link in page.select("a[href*='/embed/']")}
    assert linked == set(FILES)
    text = unescape(page.get_text())
    named = re.findall(r"/embed/([\w-]+\.(?:html|svg))", text)
    assert len(named) >= 3
    assert [name for name in named if not (FOLDER / name).is_file()] == []
    assert page.select_one("iframe[title]")["src"] == "../embed/select.html"


# --- on a page of another site -----------------------------------------------------------------

LISTENER = re.search(r"```html\n<script>\n(.*?)</script>", (ROOT / "book/embedding.md").read_text(),
                     re.S)[1]  # fmt: skip
AROUND = """<!doctype html><html lang="en"><title>A course</title>
<link rel="icon" href="data:,"><h1>A course</h1>
<iframe src="{address}/embed/{name}" title="An explorer" width="100%" height="300"></iframe>
<script>{script}</script></html>"""


@pytest.fixture
def course(browser, site, tmp_path):
    """Open a page of another origin that frames something; give the page and the frame."""
    contexts = []
    with served(tmp_path) as elsewhere:

        def course(name, scheme="light", script=""):
            text = AROUND.format(address=site, name=name, script=script)
            (tmp_path / "index.html").write_text(text)
            contexts.append(browser.new_context(color_scheme=scheme))
            page = contexts[-1].new_page()
            page.set_default_timeout(120_000)
            page.messages, page.requests = [], []
            page.on("console", lambda message: page.messages.append((message.type, message.text)))
            page.on("request", lambda request: page.requests.append(request.url))
            page.goto(f"{elsewhere}/index.html")
            return page, page.frame_locator("iframe")

        yield course
        for context in contexts:
            context.close()


def test_a_slider_works_in_a_frame_of_another_origin(course, site):
    page, frame = course("scaling.html")
    before = frame.locator(".explorer-result").inner_html()
    frame.locator("section[data-state=live]").wait_for()
    frame.locator("input[type=range]").first.press("ArrowRight")
    result = frame.locator(".explorer-result")
    for _ in range(2400):
        if result.inner_html() != before:
            break
        page.wait_for_timeout(50)
    assert result.inner_html() != before
    assert frame.locator("input[type=range]").first.get_attribute("aria-valuetext") == "128"
    assert [text for kind, text in page.messages if kind in ("error", "warning")] == []
    origins = {"/".join(url.split("/")[:3]) for url in page.requests}
    assert len(origins) == 2
    assert site in origins


@pytest.mark.parametrize(
    ("names", "width", "height"),
    [(EXPLORERS, 1280, 640), (EXPLORERS, 390, 1000),
     ([name for name in FILES if name not in EXPLORERS], 1280, 600)],
    ids=["explorers", "explorers on a phone", "figures"],
)  # fmt: skip
def test_the_heights_that_the_page_for_teachers_says_are_enough_for_most(
    names, width, height, browser, site
):
    assert f"{height:,}" in soup(SITE / f"{embed.PAGE}.html").get_text()
    context = browser.new_context(viewport={"width": width, "height": 100})
    page = context.new_page()
    needed = []
    for name in names:
        page.goto(f"{site}/embed/{name}")
        needed.append(page.evaluate("document.documentElement.scrollHeight"))
    context.close()
    assert median(needed) <= height
    assert height < 1.5 * max(needed)  # and not far more than any needs


@pytest.mark.parametrize(
    ("scheme", "query", "theme"),
    [("light", "", "light"), ("dark", "", "dark"), ("dark", "?theme=light", "light"),
     ("light", "?theme=dark", "dark"), ("light", "?theme=<b>", "light")],
)  # fmt: skip
def test_a_frame_is_light_or_dark_as_asked_or_as_the_machine(course, scheme, query, theme):
    _, frame = course(f"fig-growth.html{query}", scheme)
    root = frame.locator("html")
    frame.locator("figure img").wait_for()
    assert root.get_attribute("data-theme") == theme
    dark = root.locator("body").evaluate(
        "e => getComputedStyle(e).backgroundColor.match(/\\d+/g).slice(0, 3).every(x => x < 128)"
    )
    assert dark == (theme == "dark")


def test_with_the_lines_to_copy_a_frame_takes_its_height(course):
    page, frame = course("select.html", script=LISTENER)
    frame.locator(".explorer-result").wait_for()
    page.wait_for_function("document.querySelector('iframe').height > 350")
    spare = frame.locator("html").evaluate("e => e.scrollHeight - innerHeight")
    assert spare <= 0
    height = page.locator("iframe").evaluate("e => e.clientHeight")
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("before => document.querySelector('iframe').height > before", arg=height)


@pytest.mark.parametrize("name", ["scaling.html", "fig-growth.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_accessible_and_fits_a_phone(browser, site, name, scheme):
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(f"{site}/embed/{name}")
    found = Axe().run(page).response["violations"]
    # A frame's own page has no heading: the page around it has.
    rules = {rule["id"] for rule in found} - {"page-has-heading-one"}
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    context.close()
    assert rules == set()
    assert not wide
