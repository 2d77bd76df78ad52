"""The built site, every page of it: links, requests, console, accessibility, explorers."""

import gzip
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from conftest import ROOT, SITE, built_pages, settle
from fontTools.ttLib import TTFont
from playwright.sync_api import expect
from sphinx_ext import styles

PAGES = built_pages()
CHAPTERS = [page for page in PAGES if re.match(r"book/\d\d_", page)]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
WIDTHS = (1280, 390)
# axe's rules whose outcome depends on colours: all others see the same page in both schemes.
COLOUR_RULES = ("color-contrast", "link-in-text-block")
# What an unfinished removal of require.js, the widgets' manager or thebe would leave behind.
UNWANTED = ("require.js", "require.min.js", "html-manager", "thebe", "jupyter.widget")

every_page = pytest.mark.parametrize("page", PAGES)
every_chapter = pytest.mark.parametrize("page", CHAPTERS)


@cache
def soup(page):
    return BeautifulSoup((SITE / page).read_text("utf-8"), "html.parser")


@cache
def anchors(page):
    """Return every place of a page that a link can lead to."""
    marked = soup(page).select("[id], [name]")
    return {element.get(key) for element in marked for key in ("id", "name")}


def name(element):
    return str(element)[:200]


# --- the files as they lie there ---------------------------------------------------------------


def test_every_chapter_has_its_page():
    assert NOTEBOOKS
    assert [Path(page).stem for page in CHAPTERS] == NOTEBOOKS


def dead_links(page, folder=SITE):
    """List the links of a page that lead to no file of the site, or to no place in it."""
    dead = []
    for link in soup(page).select("[href], [src]"):
        target = link.get("href") or link.get("src")
        if urlsplit(target).scheme:
            continue
        path, anchor = urldefrag(unquote(target))
        path = path.partition("?")[0]
        file = (folder / page).parent / path if path else folder / page
        if not file.is_file():
            dead.append(name(link))
        elif anchor and file.suffix == ".html":
            places = anchors(file.resolve().relative_to(folder).as_posix())
            dead += [name(link)] if anchor not in places else []
    return dead


@every_page
def test_no_internal_link_is_dead(page):
    assert dead_links(page) == []


@every_page
def test_nothing_of_another_host_is_part_of_the_page(page):
    parts = soup(page).select("script[src], link[href], img[src], iframe[src]")
    parts += soup(page).select("source[src], video[src]")
    addresses = [urlsplit(part.get("src") or part.get("href")) for part in parts]
    assert [address.geturl() for address in addresses if address.scheme or address.netloc] == []


@every_page
def test_no_page_carries_widgets_or_what_loads_them(page):
    text = (SITE / page).read_text("utf-8").lower()
    assert [word for word in UNWANTED if word in text] == []


@every_page
def test_every_image_says_what_it_shows(page):
    images = soup(page).select("img")
    assert [name(image) for image in images if not image.get("alt", "").strip()] == []
    pictures = soup(page).select("svg[role=img]")
    assert [name(svg) for svg in pictures if not svg.get("aria-label", "").strip()] == []


@every_page
def test_every_figure_of_a_cell_has_a_caption(page):
    bare = []
    for image in soup(page).select(".cell_output img"):
        figure = image.find_parent("figure")
        caption = figure and figure.select_one("figcaption .caption-text")
        if not caption or len(caption.get_text().split()) < 4:
            bare.append(name(image))
    assert bare == []


@every_chapter
def test_a_chapter_has_a_figure_and_an_explorer(page):
    assert soup(page).select(".cell_output figure img[src$='.svg']")
    assert soup(page).select("section.explorer[data-explorer]")


@every_chapter
def test_an_explorer_has_native_controls_with_labels_and_a_result(page):
    for explorer in soup(page).select("section.explorer"):
        controls = explorer.select("fieldset input, fieldset select")
        assert any(control.get("type") == "range" for control in controls)
        for control in controls:
            label = control.get("aria-label") or explorer.select_one(
                f"label[for='{control['id']}']"
            )
            assert label if isinstance(label, str) else label.get_text(strip=True)
        # Until a script has come, a control does nothing, and must not look alive.
        assert explorer.select_one("fieldset").has_attr("disabled")
        assert "Jupyter" in explorer.select_one(".explorer-note").get_text()
        assert explorer.select_one(".explorer-said[role=status]").get_text() == ""
        result = explorer.select_one(".explorer-result")
        assert result.select_one("table td")
        assert result.select_one("svg[role=img]")


@every_chapter
def test_an_explorer_stands_once_on_a_page(page):
    seen = [explorer["data-explorer"] for explorer in soup(page).select("section.explorer")]
    assert len(seen) == len(set(seen))


@every_chapter
def test_a_chapter_leads_from_its_title_to_each_explorer(page):
    links = soup(page).select("article h1 + .to-explorers a")
    titles = soup(page).select(".explorer-title")
    assert [(a["href"], a.get_text()) for a in links] == [
        (f"#{title['id']}", title.get_text()) for title in titles
    ]


@every_page
def test_ids_are_unique(page):
    seen = [element["id"] for element in soup(page).select("[id]") if not in_picture(element)]
    assert sorted(i for i in set(seen) if seen.count(i) > 1) == []


def in_picture(element):
    return element.find_parent("svg") is not None


@every_page
def test_a_page_describes_itself(page):
    descriptions = soup(page).select("meta[name=description]")
    assert len(descriptions) == 1
    assert 10 <= len(descriptions[0]["content"]) <= 200


def test_descriptions_differ():
    texts = [soup(page).select_one("meta[name=description]")["content"] for page in PAGES]
    assert len(set(texts)) == len(texts)


@every_page
def test_a_page_reserves_the_places_of_its_figures(page):
    figures = soup(page).select("img[src$='.svg']")
    assert [name(i) for i in figures if not (i.get("width") and i.get("height"))] == []


@every_page
def test_a_page_has_one_style_sheet(page):
    assert len(soup(page).select("link[rel=stylesheet]")) == 1


@every_page
def test_only_the_search_loads_the_index(page):
    loads = bool(soup(page).select("script[src*='searchindex.js']"))
    assert loads == (page == "search.html")


@every_page
def test_scripts_wait_for_the_text(page):
    blocking = [
        script["src"]
        for script in soup(page).select("script[src]")
        if not (script.has_attr("defer") or script.has_attr("async"))
    ]
    assert [src for src in blocking if "documentation_options.js" not in src] == []


# --- in a browser ------------------------------------------------------------------------------


class View:
    """A page as loaded at one width and in one colour scheme, with all that was asked and said."""

    def __init__(self, browser, address, width, scheme):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        self.context.set_default_timeout(120_000)  # A busy machine is no failure.
        self.page = self.context.new_page()
        self.requests, self.messages, self.failures = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.on("requestfailed", lambda request: self.failures.append(request.url))
        self.page.on("response", self._check)
        self.page.goto(address)
        self.page.evaluate("document.fonts.ready.then(() => true)")

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.messages.append(f"{message.type}: {message.text}")

    def _check(self, response):
        if response.status >= 400:
            self.failures.append(f"{response.status} {response.url}")


@pytest.fixture
def look(browser, site):
    """Open pages at a width and in a colour scheme; close them at the end of the test."""
    opened = []

    def look(page, width=1280, scheme="light"):
        opened.append(View(browser, f"{site}/{page}", width, scheme))
        return opened[-1]

    yield look
    for view in opened:
        view.context.close()


@every_page
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_loads_cleanly_and_is_accessible(look, site, page, width):
    view = look(page, width, "light")
    assert theme(view) == "light"
    # Code has the same colours at every width, and each of its words costs axe time.
    leave_out = ["pre"] if width < max(WIDTHS) else []
    assert wider_than_window(view.page) == []
    assert violations(view.page, leave_out) == []
    # In the other scheme the same elements have other colours.
    view.page.emulate_media(color_scheme="dark")
    view.page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    assert violations(view.page, leave_out, rules=COLOUR_RULES) == []
    assert [url for url in view.requests if not url.startswith(f"{site}/")] == []
    assert view.messages == []
    assert view.failures == []


def theme(view):
    return view.page.evaluate("document.documentElement.dataset.theme")


# What a page may weigh before the runtime, compressed as hosts compress it.
MOST_BYTES = 350_000
# Gives those of some selectors that match something on this page. What a pointer or the keyboard is
# doing to an element is not asked.
MATCHED = """selectors => selectors.filter((selector) => {
  const plain = selector
    .replace(/::?(before|after|marker|placeholder|selection|first-line|first-letter|-[a-z-]+)/g, "")
    .replace(/:(hover|active|focus|focus-visible|focus-within|visited|target)(?![-\\w])/g, "");
  try { return document.querySelector(plain || "*"); } catch { return false; }
})"""
SELECTORS = """texts => {
  const found = [];
  const walk = (rules) => [...rules].forEach((rule) => {
    const sets = [...(rule.style ?? [])].some((name) => !name.startsWith("--"));
    if (rule.selectorText && sets) found.push(rule.selectorText);
    if (rule.cssRules) walk(rule.cssRules);
  });
  for (const text of texts) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    walk(sheet.cssRules);
  }
  return found;
}"""
ICONS = """() => [...document.querySelectorAll("*")].map((e) => getComputedStyle(e, "::before"))
  .filter((style) => style.fontFamily.includes("Font Awesome"))
  .map((style) => [style.fontWeight, style.content])"""


@pytest.fixture(scope="module")
def selectors(browser):
    """List the selectors that the whole style sheets have and the site's own one has not."""
    page = browser.new_page()
    sheets = list((SITE / "_static").rglob("*.css"))
    own = [path for path in sheets if path.name.startswith("site-")]
    assert len(own) == 1
    ours, theirs = (
        {
            one.strip()
            for text in page.evaluate(SELECTORS, [path.read_text("utf-8") for path in paths])
            for one in styles.split(text, ",")
        }
        for paths in (own, [path for path in sheets if path not in own])
    )
    page.close()
    assert len(theirs) > len(ours) > 500
    return sorted(theirs - ours)


@pytest.fixture(scope="module")
def glyphs():
    """Give the characters of each icon font by its weight, as the style sheet has them."""
    (sheet,) = (SITE / "_static/styles").glob("site-*.css")
    faces = re.findall(
        r"@font-face\{[^{}]*Awesome[^{}]*font-weight:(\d+)[^{}]*url\(([^()]*)\)",
        sheet.read_text("utf-8"),
    )
    found = {}
    for weight, address in faces:
        found.setdefault(weight, set()).update(TTFont(sheet.parent / address).getBestCmap())
    return found


@every_page
def test_a_page_is_light_and_lacks_nothing(look, site, selectors, glyphs, page):
    view = look(page)
    view.page.wait_for_load_state("networkidle")
    own = [url for url in view.requests if "/_runtime/" not in url or url.endswith("/starter.js")]
    sizes = {url: size_over_the_wire(url.removeprefix(f"{site}/")) for url in own}
    assert sum(sizes.values()) < MOST_BYTES, sizes
    assert view.page.evaluate(MATCHED, selectors) == []
    for weight, content in view.page.evaluate(ICONS):
        for icon in content.strip('"'):
            assert ord(icon) in glyphs[weight]


def size_over_the_wire(address):
    path = SITE / urldefrag(address)[0].partition("?")[0]
    path = path / "index.html" if path.is_dir() else path
    data = path.read_bytes()
    # Fonts are compressed in themselves, and hosts leave them as they are.
    return len(data if path.suffix in (".woff", ".woff2") else gzip.compress(data, 6))


def wider_than_window(page):
    """List what makes the whole page scroll sideways; what scrolls inside itself is fine."""
    return page.evaluate(
        """() => {
          const wide = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= wide) return [];
          const found = [...document.body.querySelectorAll("main *")]
            .filter(e => e.getBoundingClientRect().right > wide + 1)
            .map(e => e.outerHTML.slice(0, 120));
          return ["the page scrolls sideways", ...found.slice(0, 5)];
        }"""
    )


def violations(page, leave_out=(), rules=()):
    """Return each rule of axe that the page breaks, and where; it may be asked for some alone."""
    context = {"exclude": [[selector] for selector in leave_out]} if leave_out else None
    options = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    settle(page)
    found = Axe().run(page, context, options).response["violations"]
    return [f"{rule['id']}: {node['target']}" for rule in found for node in rule["nodes"]]


def test_the_rules_about_colours_are_all_of_them(look):
    page = look("index.html").page
    page.add_style_tag(content="main p { color: #999 !important; }")
    broken = violations(page, rules=COLOUR_RULES)
    assert {text.partition(":")[0] for text in broken} == {"color-contrast"}
    known = page.evaluate("axe.getRules(['cat.color']).filter(r => !r.tags.includes('wcag2aaa'))")
    assert {rule["ruleId"] for rule in known} == set(COLOUR_RULES)


def test_the_switch_turns_the_page_dark_and_keeps_it(look):
    view = look("index.html")
    button = view.page.locator("button.theme-switch-button").first
    background = "getComputedStyle(document.body).backgroundColor"
    seen = {view.page.evaluate(background)}
    for _ in range(2):
        button.click()
        seen.add(view.page.evaluate(background))
    assert len(seen) == 2
    for _ in range(2):
        if theme(view) != "dark":
            button.click()
    view.page.goto(view.page.url)
    assert theme(view) == "dark"
    assert view.messages == []


# Gives what is wider than its place, formulas apart, and whether a reader is told and gets there.
SCROLLERS = """() => [...document.querySelectorAll(".text_html, .pst-scrollable-table-container")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1)
  .map((e) => [getComputedStyle(e).maskImage !== "none", e.tabIndex, e.getAttribute("role"),
    Boolean(e.getAttribute("aria-label"))])"""


@every_chapter
def test_tables_fit_a_screen_and_show_where_they_scroll_on_a_phone(look, page):
    view = look(page)
    assert view.page.evaluate(SCROLLERS) == []
    view.page.set_viewport_size({"width": 390, "height": 900})
    view.page.wait_for_function(
        f"() => ({SCROLLERS})().every((found) => String(found) === 'true,0,region,true')"
    )


def test_a_scrolling_table_fades_on_the_sides_on_which_it_goes_on(look):
    view = look("book/05_heads.html", 390)
    name = view.page.locator(".goes-on-right[role=region]").first.get_attribute("aria-label")
    table = view.page.locator(f"[aria-label='{name}']")
    table.evaluate("e => { e.scrollLeft = 5; }")
    expect(table).to_have_class(re.compile("goes-on-left"))
    expect(table).to_have_class(re.compile("goes-on-right"))
    table.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    expect(table).not_to_have_class(re.compile("goes-on-right"))
    expect(table).to_have_class(re.compile("goes-on-left"))


# Gives, as printed, the titles and the cells, and whether a page may end within them.
PRINTED = """() => [...document.querySelectorAll("h1, div.cell")]
  .filter((e) => e.checkVisibility()).map((e) => [e.tagName, e.innerText.trim(),
    getComputedStyle(e).breakInside])"""


def test_a_printed_chapter_has_its_number_and_the_controls_values(look):
    view = look(CHAPTERS[1])
    view.page.emulate_media(media="print")
    found = view.page.evaluate(PRINTED)
    titles = [text for tag, text, _ in found if tag == "H1"]
    assert len(titles) == 1
    assert titles[0].startswith("2. ")
    cells = [inside for tag, _, inside in found if tag == "DIV"]
    assert set(cells) == {"avoid"}
    fields = view.page.locator(".explorer-exact")
    assert fields.count() > 3
    assert all(field.is_visible() for field in fields.all())
    assert not view.page.locator("input[type=range]").first.is_visible()


@every_chapter
def test_figures_are_light_on_a_dark_page(look, page):
    view = look(page, 1280, "dark")
    assert theme(view) == "dark"
    assert view.messages == []
    for image in view.page.locator(".cell_output figure img").all():
        style = image.evaluate(
            "e => [getComputedStyle(e).filter, getComputedStyle(e).backgroundColor]"
        )
        assert style == ["invert(1) hue-rotate(180deg)", "rgba(0, 0, 0, 0)"]


@pytest.mark.parametrize("word", ["padding", "entropy"])
def test_search_finds_a_word(look, word):
    view = look(f"search.html?q={word}")
    # Results come one after the other.
    found = view.page.locator('#search-results li a[href*="book/notation.html"]')
    expect(found.first).to_be_visible(timeout=30_000)
    assert view.messages == []


@pytest.mark.parametrize("word", ["entropy", "padding"])
def test_search_shows_the_words_around_what_it_found(look, word):
    view = look(f"search.html?q={word}")
    view.page.locator("#search-results li").first.wait_for()
    expect(view.page.locator("#search-results > p").first).to_contain_text("finished")
    chapters = view.page.locator("#search-results li:has(a[href*='book/0'])")
    summaries = [item.locator("p.context").inner_text() for item in chapters.all()]
    assert len(summaries) >= 2
    assert [text for text in summaries if word not in text.lower()] == []
    assert [text for text in summaries if ".ipynb" in text or "Contents" in text] == []


def test_the_marks_of_a_search_can_be_taken_away(look):
    view = look("search.html?q=padding")
    view.page.locator("#search-results li a").first.click()
    view.page.locator("span.highlighted").first.wait_for(state="attached")
    view.page.get_by_text("Hide Search Matches").click()
    view.page.locator("span.highlighted").first.wait_for(state="detached")
    assert view.messages == []


def test_search_opens_from_a_chapter(look):
    view = look(PAGES[0])
    view.page.keyboard.press("Control+k")
    view.page.locator("#pst-search-dialog input[type=search]").fill("softmax")
    view.page.keyboard.press("Enter")
    view.page.locator("#search-results li a").first.wait_for()
    assert view.messages == []
