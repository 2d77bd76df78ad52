"""What a reader does on a page: goes on, goes back, copies code, looks for a word from anywhere."""

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, SITE
from tools.pdf import order


@pytest.fixture
def page(browser, site):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.messages = []
    page.on("pageerror", lambda error: page.messages.append(str(error)))
    yield page
    context.close()
    assert page.messages == []


def follow(start, label):
    """Give the pages from one on, by the link at each one's foot."""
    seen, path = [], SITE / start
    while path not in seen:
        seen.append(path)
        soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
        link = soup.select_one(f".prev-next-footer a.{label}")
        if link is None:
            break
        path = (path.parent / link["href"]).resolve()
    return [path.relative_to(SITE).as_posix() for path in seen]


def test_next_leads_through_the_whole_book_and_previous_back():
    forth = follow("index.html", "right-next")
    back = follow(forth[-1], "left-prev")
    assert forth == back[::-1]
    listed = [*order(SITE)[0]]
    assert [name for name in forth if name in listed] == listed
    assert len(forth) == len(set(forth)) > len(list((ROOT / "book").glob("[0-9][0-9]_*.ipynb")))


def test_previous_and_next_work_with_a_click(page, site):
    page.goto(f"{site}/book/02_queries_keys_values.html")
    page.locator(".prev-next-footer a").last.click()
    page.wait_for_url("**/book/03_scaling.html")
    assert "square root" in page.title()
    page.locator(".prev-next-footer a").first.click()
    page.wait_for_url("**/book/02_queries_keys_values.html")
    assert "Queries, keys, values" in page.title()


def test_the_copy_button_copies_the_cell_and_nothing_else(page, site):
    page.goto(f"{site}/book/02_queries_keys_values.html")
    cell = page.locator("div.cell:not(.tag_hide-input) .cell_input").nth(1)
    code = cell.locator("pre").inner_text()
    cell.hover()
    button = cell.locator("button.copybtn")
    assert button.get_attribute("data-tooltip") or button.get_attribute("aria-label")
    button.click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 0)")
    assert page.evaluate("navigator.clipboard.readText()").strip() == code.strip()
    assert len(code.splitlines()) > 1


def test_the_search_of_a_chapter_finds_other_chapters(page, site):
    page.goto(f"{site}/book/09_series.html")
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[type=search]").fill("rotary")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=rotary*")
    found = page.locator("#search-results li a")
    found.first.wait_for()
    addresses = [link.get_attribute("href") for link in found.all()]
    assert any("07_positions.html" in address for address in addresses)
    assert not any("/embed/" in address for address in addresses)
    found.first.click()
    page.locator("article h1").wait_for()


def test_the_switch_of_the_colours_holds_from_page_to_page(page, site):
    page.goto(f"{site}/index.html")
    theme = "document.documentElement.dataset.theme"
    for _ in range(3):
        if page.evaluate(theme) == "dark":
            break
        page.locator("button.theme-switch-button").first.click()
    page.goto(f"{site}/book/04_causal_mask.html")
    assert page.evaluate(theme) == "dark"
