"""The explorers of the built site in a real browser: their numbers, and what can go wrong."""

import json
import re
import shutil
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from conftest import SITE, built_pages, hosted, settle
from playwright.sync_api import expect
from sphinx_ext import policy
from tools import runtime
from tools.browser import settings
from tools.serve import Quiet, served

from worked_examples import explorers
from worked_examples.controls import Choice, Slider, Steps, Switch

PATIENCE = 60_000  # ms; a start takes seconds on a machine that is busy with other tests
EXPLORERS = {
    page: re.findall(r'data-explorer="(\w+)"', (SITE / page).read_text("utf-8"))
    for page in built_pages()
}
CHAPTERS = [page for page, names in EXPLORERS.items() if names]
FIRST = CHAPTERS[0] if CHAPTERS else None
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)

# Counts what moves under the reader's eyes, and the questions that the page puts to its worker.
WATCH = """
window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });
window.asked = [];
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message) {
  if (message.ask) window.asked.push(message.ask);
  return post.call(this, message);
};
"""


def folder():
    """Return the folder with the runtime that the built site serves."""
    return next((SITE / "_runtime").iterdir())


class Live:
    """A page with explorers, and what it asked for and said."""

    def __init__(self, context, site, chapter):
        self.site, self.chapter = site, chapter
        self.requests, self.messages = [], []
        self.page = context.new_page()
        self.page.add_init_script(WATCH)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.messages.append(f"{message.type}: {message.text}")

    def open(self, name=None):
        """Open the page where an explorer stands, the first one if none is named."""
        name = name or EXPLORERS[self.chapter][0]
        self.page.goto(f"{self.site}/{self.chapter}#{name}-title")
        return self

    def state(self, state):
        """Wait until every explorer says that it is in this state."""
        for section in self.page.locator("section.explorer").all():
            expect(section).to_have_attribute("data-state", state, timeout=PATIENCE)
        return self

    def section(self, name):
        return self.page.locator(f"section.explorer[data-explorer={name}]")

    def control(self, name, control):
        return self.page.locator(f"#{name}-{control}")

    def focus(self, name, control):
        """Go to a control, as soon as the page's script has let it be used."""
        element = self.control(name, control)
        expect(element).to_be_enabled(timeout=PATIENCE)
        element.focus()

    def shows(self, name, **values):
        """Wait until the explorer shows what the host computes for these values."""
        wanted = pieces(explorers.ALL[name].result(**values))
        result = self.section(name).locator(".explorer-result")
        self.page.wait_for_function(
            "([name, text]) => text === document.querySelector("
            "`[data-explorer=${name}] .explorer-result`).textContent.replace(/\\s/g, '')",
            arg=[name, re.sub(r"\s", "", "".join(wanted))],
            timeout=PATIENCE,
        )
        assert pieces(result.inner_html()) == wanted

    def note(self, name=None):
        return self.section(name or EXPLORERS[self.chapter][0]).locator(".explorer-note")


def pieces(html):
    """Return the texts of a result, in their order: its names and its numbers."""
    return list(BeautifulSoup(html, "html.parser").stripped_strings)


@pytest.fixture
def live(browser):
    """Open chapters in fresh contexts: nothing is cached, no worker left from another test."""
    contexts = []

    def open_chapter(site, chapter=FIRST, context=None, **options):
        if context is None:
            context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
            contexts.append(context)
        return Live(context, site, chapter)

    yield open_chapter
    for context in contexts:
        context.close()


# --- the numbers ---------------------------------------------------------------------------------


def keys_and_values(control):
    """Yield keys, and the value at which each leaves a control that stands at its default."""
    value = control.default
    if isinstance(control, Slider):
        up = control.default + control.step <= control.maximum
        value = control.check(control.default + (control.step if up else -control.step))
        yield ("ArrowRight" if up else "ArrowLeft"), value
        yield "End", control.maximum
        yield "Home", control.minimum
    elif isinstance(control, Steps):
        place = control.values.index(control.default)
        up = place + 1 < len(control.values)
        yield ("ArrowRight" if up else "ArrowLeft"), control.values[place + (1 if up else -1)]
        yield "End", control.values[-1]
        yield "Home", control.values[0]
    elif isinstance(control, Choice):
        for option in control.options[control.options.index(control.default) + 1 :]:
            yield "ArrowDown", option
        for option in reversed(control.options[:-1]):
            yield "ArrowUp", option
    elif isinstance(control, Switch):
        yield "Space", not control.default
        yield "Space", control.default


def exact(view, name, control):
    """Return the field beside a slider."""
    beside = view.control(name, control.name).locator("xpath=..").locator(".explorer-exact")
    assert beside.count() == 1
    return beside


def exact_value(view, name, control):
    """Return what the field beside a slider shows."""
    shown = exact(view, name, control).input_value()
    return control.values[int(shown)] if isinstance(control, Steps) else control.check(shown)


@every_chapter
def test_every_control_moves_the_numbers_as_python_does(live, site, chapter):
    view = live(site, chapter).open().state("live")
    view.page.evaluate("window.shifts = 0")
    for name in EXPLORERS[chapter]:
        values = {}
        for control in explorers.ALL[name].controls:
            element = view.control(name, control.name)
            element.focus()
            place = element.bounding_box()
            for key, value in keys_and_values(control):
                view.page.keyboard.press(key)
                values[control.name] = value
                view.shows(name, **values)
                if isinstance(control, (Slider, Steps)):
                    reading = control.reading(value)
                    assert element.get_attribute("aria-valuetext") == reading
                    assert exact_value(view, name, control) == value
            assert element.bounding_box() == place  # nothing moves under a finger
    assert view.page.evaluate("window.shifts") == 0
    assert [url for url in view.requests if not url.startswith(f"{site}/")] == []
    assert view.messages == []
    assert len(view.page.workers) == 1


@every_chapter
def test_coming_alive_moves_nothing_and_breaks_no_rule(live, site, chapter):
    view = live(site, chapter)
    for width in (1280, 390):
        view.page.emulate_media(color_scheme="light")
        view.page.set_viewport_size({"width": width, "height": 900})
        view.page.goto("about:blank")
        view.open()
        view.page.evaluate("document.fonts.ready.then(() => { window.shifts = 0; })")
        view.state("live")
        assert view.page.evaluate("window.shifts") == 0
        assert broken_rules(view.page) == []
        view.page.emulate_media(color_scheme="dark")
        expect(view.page.locator("html")).to_have_attribute("data-theme", "dark", timeout=PATIENCE)
        assert broken_rules(view.page) == []
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not view.page.evaluate(wide)


def broken_rules(page):
    """Name axe's rules that an explorer breaks."""
    settle(page)
    found = Axe().run(page, {"include": [["section.explorer"]]}).response
    assert len(found["passes"]) > 5
    return [rule["id"] for rule in found["violations"]]


def positions(control):
    """Return what a range's value can be on the page, and the reading of each."""
    if isinstance(control, Steps):
        return [(str(i), control.reading(value)) for i, value in enumerate(control.values)]
    count = round((control.maximum - control.minimum) / control.step)
    steps = [control.minimum + i * control.step for i in range(count + 1)]
    values = [control.check(min(step, control.maximum)) for step in steps]
    return [(str(value), control.reading(value)) for value in values]


def test_the_script_reads_every_position_as_python_does(live, site):
    page = live(site).open().page
    url = f"{site}/_runtime/{folder().name}/values.js"
    declared = [c for e in explorers.ALL.values() for c in e.controls]
    declared += [Steps("s", "s", (0.5, 1.0, 2), 1.0, unit="%"), Slider("t", "t", 0, 90, 10, 0, "°")]
    for control in declared:
        if not isinstance(control, (Slider, Steps)):
            continue
        wanted = positions(control)
        read = page.evaluate(
            """async ([url, html, values]) => {
                 const { readingOf } = await import(url);
                 const box = document.createElement("div");
                 box.innerHTML = html;
                 const input = box.querySelector("input");
                 return values.map((value) => { input.value = value; return readingOf(input); });
               }""",
            [url, control.html("x", control.default), [value for value, _ in wanted]],
        )
        assert read == [reading for _, reading in wanted]


def test_a_typed_number_is_taken_exactly(live, site):
    view, name = live(site).open().state("live"), EXPLORERS[FIRST][0]
    slider = first_slider(name)
    field = exact(view, name, slider)
    value = slider.check(slider.minimum + slider.step)
    field.fill(slider.reading(value))
    assert slider.check(view.control(name, slider.name).input_value()) == value
    view.shows(name, **{slider.name: value})
    # While it is typed, a number out of range moves nothing: it may be half of another.
    field.fill(str(slider.maximum + slider.step))
    view.shows(name, **{slider.name: value})
    field.press("Enter")
    view.shows(name, **{slider.name: slider.maximum})
    assert exact_value(view, name, slider) == slider.maximum
    said = f"{slider.label} takes a number from {slider.minimum} to {slider.maximum}"
    assert said in view.note().text_content()
    assert said in view.section(name).locator("[role=status]").text_content()
    view.control(name, slider.name).press("Home")
    view.shows(name, **{slider.name: slider.minimum})
    assert view.note().text_content().startswith("Live")
    field.fill("")
    field.press("Tab")
    assert exact_value(view, name, slider) == slider.minimum
    assert view.messages == []


def test_a_listed_value_can_be_chosen(live, site):
    chapter, name, steps = next(
        (page, name, control)
        for page, names in EXPLORERS.items()
        for name in names
        for control in explorers.ALL[name].controls
        if isinstance(control, Steps)
    )
    view = live(site, chapter).open(name).state("live")
    exact(view, name, steps).select_option(str(steps.values[-1]))
    view.shows(name, **{steps.name: steps.values[-1]})
    assert view.control(name, steps.name).input_value() == str(len(steps.values) - 1)


@every_chapter
def test_reset_puts_every_control_back(live, site, chapter):
    view = live(site, chapter).open().state("live")
    for name in EXPLORERS[chapter]:
        reset = view.section(name).locator(".explorer-reset")
        expect(reset).to_have_attribute("aria-disabled", "true")
        for control in explorers.ALL[name].controls:
            element = view.control(name, control.name)
            element.focus()
            view.page.keyboard.press(next(keys_and_values(control))[0])
        expect(reset).to_have_attribute("aria-disabled", "false")
        reset.focus()
        view.page.keyboard.press("Enter")
        view.shows(name)
        expect(reset).to_have_attribute("aria-disabled", "true")
        expect(reset).to_be_focused()
        said = view.section(name).locator("[role=status]")
        expect(said).to_contain_text("back at their defaults")
        for control in explorers.ALL[name].controls:
            if isinstance(control, (Slider, Steps)):
                assert exact_value(view, name, control) == control.default


# Gives the tables and pictures of explorers that are wider than their place.
CUT = """() => [...document.querySelectorAll(".explorer-result, .explorer-scroll")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML.slice(0, 200))"""


@every_chapter
@pytest.mark.parametrize("width", [390, 1280])
def test_no_result_is_cut(live, site, chapter, width):
    """The views' HTML for many settings, put into the page: Python on the host is the same."""
    view = live(site, chapter)
    view.page.set_viewport_size({"width": width, "height": 900})
    view.open()
    view.page.evaluate("document.fonts.ready.then(() => true)")
    for name in EXPLORERS[chapter]:
        explorer = explorers.ALL[name]
        settings = [{}] + [{c.name: end} for c in explorer.controls for end in c.ends()]
        settings += [{c.name: c.ends()[i] for c in explorer.controls} for i in (0, -1)]
        for setting in settings:
            view.section(name).locator(".explorer-result").evaluate(
                "(result, html) => { result.innerHTML = html; }", explorer.result(**setting)
            )
            assert view.page.evaluate(CUT) == [], setting


@every_chapter
def test_controls_and_what_they_change_are_in_sight_together(live, site, chapter):
    view = live(site, chapter)
    view.page.set_viewport_size({"width": 1280, "height": 720})
    view.open()
    for name in EXPLORERS[chapter]:
        section = view.section(name)
        for target in section.locator(".explorer-result :is(table, svg)").all():
            target.evaluate("e => e.scrollIntoView({ block: 'end' })")
            shown, field = target.bounding_box(), section.locator("fieldset").bounding_box()
            assert field["y"] >= 0
            assert shown["y"] + shown["height"] <= 721
            # What is taller than the rest of the window is seen at its lower end.
            assert field["y"] + field["height"] <= shown["y"] + shown["height"]
        starts = section.locator("input[type=range]").evaluate_all(
            "all => all.map((e) => [e.closest('.explorer-group'), e.getBoundingClientRect().x])"
            ".map(([group, x], _, pairs) => pairs.find(([g]) => g === group)[1] - x)"
        )
        assert set(starts) <= {0}


# --- when Python is loaded, and what becomes of moves ---------------------------------------------


def runtime_files(view):
    """Return the names of the heavy files that a page has asked for."""
    names = [url.rpartition("/")[2] for url in view.requests if "/_runtime/" in url]
    return [name for name in names if not name.endswith(".js") or name == "pyodide.asm.js"]


def test_nothing_is_loaded_while_no_explorer_is_near(live, site):
    view = live(site)
    view.page.goto(f"{site}/{FIRST}", wait_until="networkidle")
    top = view.page.locator("section.explorer").first.bounding_box()["y"]
    view.page.set_viewport_size({"width": 1280, "height": max(200, int(top / 3))})
    view.page.goto("about:blank")
    view.requests.clear()
    view.page.goto(f"{site}/{FIRST}", wait_until="networkidle")
    expect(view.section(EXPLORERS[FIRST][0])).to_have_attribute("data-state", "waiting")
    view.page.wait_for_timeout(1000)
    assert runtime_files(view) == []
    view.page.locator("section.explorer").first.scroll_into_view_if_needed()
    view.state("live")
    assert "snapshot.packed" in runtime_files(view)


def test_with_reduced_data_a_touch_comes_first(live, site):
    view = live(site)
    view.page.add_init_script(
        "Object.defineProperty(navigator, 'connection', { value: { saveData: true } })"
    )
    name = EXPLORERS[FIRST][0]
    view.open()
    expect(view.section(name)).to_have_attribute("data-state", "waiting")
    view.page.wait_for_timeout(1000)
    assert runtime_files(view) == []
    view.section(name).locator("input").first.focus()
    view.state("live")


class Host(Quiet):
    """A host on which files can be missing, broken, held back or served elsewhere.

    `site.faults` maps a file's name to what happens to it; `site.prefix` is where the site begins.
    """

    site = None

    def translate_path(self, path):
        if not path.startswith(self.site.prefix + "/"):
            return str(SITE / "not there")
        return super().translate_path(path[len(self.site.prefix) :])

    def do_GET(self):
        name = self.path.partition("?")[0].rpartition("/")[2]
        self.site.seen.append(name)
        fault = self.site.faults.get(name) or self.site.faults.get("*" if _heavy(name) else "")
        if fault == "held":
            self.site.released.wait(30)
            fault = self.site.faults.get("*", "")
        if fault == "missing":
            return self.send_error(404)
        elif fault == "unplugged":
            return self.close_connection
        elif fault in ("truncated", "altered"):
            return self._send_broken(fault)
        return super().do_GET()

    def _send_broken(self, fault):
        path = self.translate_path(self.path)
        with open(path, "rb") as file:
            data = file.read()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        middle = len(data) // 2
        rest = bytes([data[middle] ^ 1]) + data[middle + 1 :] if fault == "altered" else b""
        self.wfile.write(data[:middle] + rest)
        self.close_connection = True

    def end_headers(self):
        for name, value in self.site.headers.items():
            self.send_header(name, value)
        super().end_headers()


def _heavy(name):
    return name.startswith(("pyodide", "snapshot", "python_stdlib", "numpy")) or ".wasm" in name


@pytest.fixture
def host():
    """Serve the site from a host whose faults the test sets."""
    with hosted(Host) as site:
        yield site


def first_slider(name):
    return next(c for c in explorers.ALL[name].controls if isinstance(c, Slider))


def test_moves_made_early_are_kept_and_only_the_newest_is_computed(live, host):
    host.faults["pyodide.asm.wasm"] = "held"
    view, name = live(host.address).open(), EXPLORERS[FIRST][0]
    slider = first_slider(name)
    expect(view.section(name)).to_have_attribute("data-state", "loading")
    view.focus(name, slider.name)
    for _ in range(3):
        view.page.keyboard.press("ArrowLeft")
    value = slider.check(slider.default - 3 * slider.step)
    assert exact_value(view, name, slider) == value
    assert re.fullmatch(r"Python is loading: \d+ %", view.note().text_content())
    host.released.set()
    view.shows(name, **{slider.name: value})
    assert [ask["values"][slider.name] for ask in view.page.evaluate("window.asked")] == [value]


def test_of_many_moves_at_once_the_first_and_the_newest_are_computed(live, site):
    view, name = live(site).open().state("live"), EXPLORERS[FIRST][0]
    slider = first_slider(name)
    view.control(name, slider.name).evaluate(
        """(input, values) => { for (const value of values) {
             input.value = value; input.dispatchEvent(new Event("input", { bubbles: true }));
           } }""",
        [str(slider.minimum + step * slider.step) for step in range(9)],
    )
    newest = slider.check(slider.minimum + 8 * slider.step)
    view.shows(name, **{slider.name: newest})
    asked = [ask["values"][slider.name] for ask in view.page.evaluate("window.asked")]
    assert asked == [slider.minimum, newest]


def test_a_result_is_read_out_once_and_in_words(live, site):
    view, name = live(site).open().state("live"), EXPLORERS[FIRST][0]
    slider = first_slider(name)
    said = view.section(name).locator("[role=status]")
    assert said.text_content() == ""
    view.page.evaluate(
        """(name) => { window.spoken = [];
             const said = document.querySelector(`[data-explorer=${name}] [role=status]`);
             new MutationObserver(() => window.spoken.push(said.textContent))
               .observe(said, { childList: true, characterData: true, subtree: true }); }""",
        name,
    )
    view.page.clock.install(time=0)
    view.page.clock.pause_at(1000)
    view.focus(name, slider.name)
    for step in range(1, 4):
        view.page.keyboard.press("ArrowLeft")
        value = slider.check(slider.default - step * slider.step)
        view.shows(name, **{slider.name: value})
        view.page.clock.run_for(200)
    assert view.page.evaluate("window.spoken") == []
    view.page.clock.run_for(700)
    html = explorers.ALL[name].result(**{slider.name: value})
    words = [p.get_text() for p in BeautifulSoup(html, "html.parser").select("p")]
    assert view.page.evaluate("window.spoken") == [" ".join(words)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_control_shows_that_it_has_the_focus(live, site, scheme):
    """Of each kind that there is: a chapter may lack one."""
    seen = set()
    for chapter in CHAPTERS:
        kinds = {type(c) for name in EXPLORERS[chapter] for c in explorers.ALL[name].controls}
        if kinds <= seen:
            continue
        seen |= kinds
        view = live(site, chapter, color_scheme=scheme).open()
        for name in EXPLORERS[chapter]:
            view.focus(name, explorers.ALL[name].controls[0].name)
            reached = 0
            while view.page.evaluate(
                "name => document.activeElement.closest(`[data-explorer=${name}] form`) !== null",
                name,
            ):
                outline = view.page.evaluate(
                    "(({ outlineStyle, outlineWidth }) => [outlineStyle, outlineWidth])"
                    "(getComputedStyle(document.activeElement))"
                )
                assert outline == ["solid", "3px"], view.page.evaluate(
                    "document.activeElement.outerHTML"
                )
                view.page.keyboard.press("Tab")
                reached += 1
            assert reached > len(explorers.ALL[name].controls)
    assert seen == {Slider, Steps, Choice, Switch}


def test_focus_stays_and_is_seen(live, site):
    view, name = live(site).open().state("live"), EXPLORERS[FIRST][0]
    slider = first_slider(name)
    view.focus(name, slider.name)
    view.page.keyboard.press("ArrowLeft")
    view.shows(name, **{slider.name: slider.check(slider.default - slider.step)})
    focused = view.page.evaluate(
        "[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]"
    )
    assert focused == [f"{name}-{slider.name}", "solid"]


# --- faults --------------------------------------------------------------------------------------

BREAKAGES = ("missing", "truncated", "altered")


def move_and_compare(view, name=None):
    """Move one slider by one step, and wait for the numbers that the host computes."""
    name = name or EXPLORERS[view.chapter][0]
    slider = first_slider(name)
    key, value = next(keys_and_values(slider))
    view.focus(name, slider.name)
    view.page.keyboard.press(key)
    view.shows(name, **{slider.name: value})


@pytest.mark.parametrize("fault", BREAKAGES)
def test_a_broken_core_is_told_and_tried_again(live, host, fault):
    host.faults["pyodide.asm.wasm"] = fault
    view = live(host.address).open().state("failed")
    assert "pyodide.asm.wasm" in view.note().text_content()
    assert "Jupyter" in view.note().text_content()
    view.shows(EXPLORERS[FIRST][0])  # the result for the defaults is still there
    host.faults.clear()
    move_and_compare(view)
    view.state("live")


@pytest.mark.parametrize("fault", BREAKAGES)
@pytest.mark.parametrize("file", ["pyodide.mjs", "pyodide.asm.js"])
def test_a_broken_script_is_never_run(live, host, file, fault):
    host.faults[file] = fault
    view = live(host.address).open().state("failed")
    assert file in view.note().text_content()
    host.faults.clear()
    move_and_compare(view)


@pytest.mark.parametrize("fault", BREAKAGES)
@pytest.mark.parametrize("file", ["snapshot.packed", "multiarray_umath.wasm"])
def test_without_its_snapshot_python_starts_plainly(live, host, file, fault):
    host.faults[file] = fault
    view = live(host.address).open().state("live")
    assert "python_stdlib.zip" in host.seen
    move_and_compare(view)


@pytest.mark.parametrize("file", ["python_stdlib.zip", "numpy", "worked_examples"])
def test_a_plain_start_that_lacks_a_part_is_told_and_tried_again(live, host, file):
    whole = next(path.name for path in folder().iterdir() if path.name.startswith(file))
    host.faults |= {"snapshot.packed": "missing", whole: "altered"}
    view = live(host.address).open().state("failed")
    assert whole in view.note().text_content()
    host.faults.clear()
    move_and_compare(view)


def test_where_memory_lies_otherwise_python_starts_plainly(live, site):
    """A browser may place numpy's parts elsewhere than the snapshot has them."""
    view = live(site)
    manifest = (folder() / "manifest.js").read_text("utf-8")
    table = json.loads(re.search(r'"layout": ({.*?})', manifest)[1])["table"]
    other = manifest.replace(f'"table": {table}', f'"table": {table + 1}')
    view.page.context.route(
        "**/manifest.js", lambda route: route.fulfill(body=other, content_type="text/javascript")
    )
    view.open().state("live")
    assert "python_stdlib.zip" in runtime_files(view)
    move_and_compare(view)


def test_with_the_snapshot_each_file_comes_once_and_no_other(live, host):
    view = live(host.address)
    view.page.add_init_script(
        """window.notes = [];
           new MutationObserver(() => {
             const note = document.querySelector(".explorer-note");
             if (note) window.notes.push(note.textContent);
           }).observe(document, { childList: true, subtree: true, characterData: true });"""
    )
    view.open().state("live")
    assert not {"python_stdlib.zip", runtime.NUMPY} & set(host.seen)
    # `import` asks for scripts by itself, once they are known to be whole.
    parts = [name for name in host.seen if _heavy(name) and not name.endswith((".js", ".mjs"))]
    assert "snapshot.packed" in parts
    assert sorted(parts) == sorted(set(parts))
    shares = [int(said) for note in view.page.evaluate("window.notes")
              for said in re.findall(r"loading: (\d+) %", note)]  # fmt: skip
    assert shares == sorted(shares)
    assert shares[-1] == 100


def test_the_next_chapter_has_python_already(live, host, browser, tmp_path):
    # With a profile on disk, as readers have one: the memory of another keeps no large files.
    context = browser.browser_type.launch_persistent_context(tmp_path, **settings())
    live(host.address, CHAPTERS[0], context).open().state("live")
    assert "snapshot.packed" in host.seen
    host.seen.clear()
    live(host.address, CHAPTERS[1], context).open().state("live")
    context.close()
    assert CHAPTERS[1].rpartition("/")[2] in host.seen
    assert [name for name in host.seen if _heavy(name)] == []


def test_the_network_is_lost_half_way(live, host):
    host.faults["pyodide.asm.wasm"] = "held"
    view = live(host.address).open()
    expect(view.note()).to_have_text(re.compile(r": [1-9]\d* %"), timeout=PATIENCE)
    host.faults = {"*": "unplugged"}
    host.released.set()
    view.state("failed")
    assert "did not arrive whole" in view.note().text_content()
    host.faults = {}
    move_and_compare(view)
    view.state("live")


def test_without_a_network_the_page_says_so(live, host):
    host.faults["*"] = "unplugged"
    view = live(host.address).open().state("failed")
    assert "did not arrive" in view.note().text_content()
    host.faults.clear()
    move_and_compare(view)


def test_once_live_the_host_may_go_away(live, host):
    view = live(host.address).open().state("live")
    host.faults["*"] = "unplugged"
    view.page.context.set_offline(True)
    move_and_compare(view)


def test_a_killed_worker_is_replaced_at_the_next_move(live, site):
    view = live(site).open().state("live")
    view.page.workers[0].evaluate("self.close()")
    move_and_compare(view)


@pytest.mark.parametrize("fault", ["missing", "truncated"])
@pytest.mark.parametrize("file", ["page.js", "values.js"])
def test_a_broken_script_of_ours_leaves_the_controls_at_rest(live, host, file, fault):
    host.faults[file] = fault
    view = live(host.address).open()
    view.page.wait_for_load_state("networkidle")
    name = EXPLORERS[FIRST][0]
    assert view.section(name).locator("fieldset :is(input, select):enabled").count() == 0
    assert "Jupyter" in view.note().text_content()


def test_opened_from_the_disk_a_page_says_why_it_rests(live):
    view = live("")
    view.page.goto((SITE / FIRST).as_uri())
    for note in view.page.locator(".explorer-note").all():
        expect(note).to_contain_text("only on pages that come from a web server")
        expect(note).to_contain_text("make serve")
        expect(note).to_contain_text("python -m http.server")
    assert view.section(EXPLORERS[FIRST][0]).locator("fieldset :enabled").count() == 0


def test_a_missing_worker_is_told(live, host):
    host.faults["worker.js"] = "missing"
    view = live(host.address).open().state("failed")
    host.faults.clear()
    move_and_compare(view)


def test_a_value_out_of_range_is_told_and_the_next_move_works(live, site):
    view, name = live(site).open().state("live"), EXPLORERS[FIRST][0]
    slider = first_slider(name)
    element = view.control(name, slider.name)
    element.evaluate(
        """(input) => { input.max = "1e6"; input.value = "1e6";
             input.dispatchEvent(new Event("input", { bubbles: true })); }"""
    )
    alert = view.section(name).locator(".explorer-result [role=alert]")
    expect(alert).to_have_text(re.compile(f"ValueError: {slider.name} takes a number"))
    element.evaluate("(input, max) => { input.max = max; }", str(slider.maximum))
    element.focus()
    view.page.keyboard.press("Home")
    view.shows(name, **{slider.name: slider.minimum})
    assert view.messages == []


TRIAL = """
def _trial(*, x):
    while x == 3:
        pass
    if x == 1:
        raise RuntimeError("<no> such x")
    return f"<p>x is {x}</p>"


ALL["trial"] = Explorer("trial", "Trial", _trial, [Slider("x", "x", 0, 3, 1, 0)])
"""


@pytest.fixture
def trial(tmp_path, monkeypatch):
    """Serve one page with an explorer whose view fails, and no snapshot."""
    root = tmp_path / "root"
    for name in ("code", "book/_live"):
        shutil.copytree(runtime.ROOT / name, root / name)
    with (root / "code/worked_examples/explorers.py").open("a") as file:
        file.write(TRIAL)
    monkeypatch.setattr(runtime, "add_snapshot", lambda root, folder: None)
    served_folder = runtime.lay_out(root, folder())
    names = {"ALL": {}, "Explorer": explorers.Explorer, "Slider": Slider}
    exec(TRIAL, names)
    page = names["ALL"]["trial"].page()
    script = f'<script defer src="{served_folder.name}/starter.js"></script>'
    (served_folder.parent / "index.html").write_text(f"<!doctype html>{page}{script}")
    with served(served_folder.parent) as address:
        yield address


def test_an_exception_in_a_view_is_shown_and_the_next_move_works(live, trial):
    view = live(trial)
    view.page.goto(f"{trial}/index.html")
    view.state("live")
    result = view.page.locator(".explorer-result")
    view.page.locator("input[name=x]").focus()
    view.page.keyboard.press("ArrowRight")
    expect(result.locator("[role=alert]")).to_have_text("RuntimeError: <no> such x")
    view.page.keyboard.press("ArrowRight")
    expect(result).to_have_text("x is 2")


def test_a_view_without_an_end_is_given_up_and_the_next_move_works(live, trial):
    view = live(trial)
    view.page.goto(f"{trial}/index.html")
    view.state("live")
    view.page.locator("input[name=x]").focus()
    view.page.keyboard.press("End")
    view.state("failed")
    assert "gave no answer" in view.page.locator(".explorer-note").text_content()
    assert len(view.page.evaluate("window.asked")) == 2
    view.page.keyboard.press("ArrowLeft")
    expect(view.page.locator(".explorer-result")).to_have_text("x is 2", timeout=PATIENCE)


def test_two_explorers_share_one_worker(live, site):
    chapter = max(CHAPTERS, key=lambda page: len(EXPLORERS[page]))
    assert len(EXPLORERS[chapter]) >= 2
    view = live(site, chapter).open().state("live")
    for name in EXPLORERS[chapter]:
        move_and_compare(view, name)
    assert len(view.page.workers) == 1


def test_two_tabs_at_once(live, site):
    one = live(site).open()
    two = live(site, CHAPTERS[-1], one.page.context).open()
    for view in (two, one):
        move_and_compare(view)


def test_back_and_forward_keep_controls_and_result_together(live, site):
    view, name = live(site).open().state("live"), EXPLORERS[FIRST][0]
    move_and_compare(view)
    slider = first_slider(name)
    for travel in (lambda: view.page.goto(f"{site}/index.html"), view.page.go_back,
                   view.page.go_forward, view.page.go_back):  # fmt: skip
        travel()
    view.state("live")
    value = slider.check(view.control(name, slider.name).input_value())
    assert exact_value(view, name, slider) == value
    view.shows(name, **{slider.name: value})
    view.focus(name, slider.name)
    view.page.keyboard.press("Home")
    view.shows(name, **{slider.name: slider.minimum})


def test_a_control_that_the_browser_has_moved_back_is_caught_up_with(live, site):
    view, name = live(site), EXPLORERS[FIRST][0]
    slider = first_slider(name)
    view.page.add_init_script(
        "document.addEventListener('DOMContentLoaded', () => {"
        f"  document.getElementById('{name}-{slider.name}').value = '{slider.minimum}'; }})"
    )
    view.open()
    view.shows(name, **{slider.name: slider.minimum})
    assert exact_value(view, name, slider) == slider.minimum


def test_a_page_back_from_the_browsers_memory_catches_up(live, site):
    view, name = live(site).open().state("live"), EXPLORERS[FIRST][0]
    slider = first_slider(name)
    view.control(name, slider.name).evaluate(
        """(input, value) => {
             input.value = value;
             dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
           }""",
        str(slider.minimum),
    )
    view.shows(name, **{slider.name: slider.minimum})


def test_with_reduced_motion_nothing_moves_by_itself(live, site):
    view = live(site, reduced_motion="reduce").open().state("live")
    view.page.evaluate(
        """() => { window.motions = [];
             for (const kind of ["transitionrun", "animationstart"]) {
               addEventListener(kind, (e) => window.motions.push(e.target.outerHTML), true);
             } }"""
    )
    move_and_compare(view)
    assert view.page.evaluate("window.motions") == []
    assert view.page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


@every_chapter
def test_without_javascript_the_page_is_whole(live, site, chapter):
    view = live(site, chapter, java_script_enabled=False).open()
    for name in EXPLORERS[chapter]:
        section = view.section(name)
        assert section.locator("fieldset :is(input, select):enabled").count() == 0
        assert "JavaScript" in section.locator(".explorer-note").text_content()
        shown = section.locator(".explorer-result").inner_html()
        assert pieces(shown) == pieces(explorers.ALL[name].result())


def test_a_site_under_a_prefix(live, host):
    host.prefix = "/some/prefix"
    view = live(host.address + host.prefix).open().state("live")
    move_and_compare(view)
    outside = [url for url in view.requests if not url.startswith(host.address + host.prefix)]
    assert outside == []
    assert view.messages == []


# --- the policy ----------------------------------------------------------------------------------


def test_every_page_carries_a_policy_that_names_its_inline_scripts():
    for page in built_pages():
        html = BeautifulSoup((SITE / page).read_text("utf-8"), "html.parser")
        tags = html.select("meta[http-equiv='Content-Security-Policy']")
        assert len(tags) == 1
        scripts = re.search(r"script-src ([^;]*)", tags[0]["content"])[1].split()
        assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "data:", "blob:"} & set(scripts)
        inline = [s for s in html.select("script:not([src])") if s.string]
        wanted = {policy._sum(script.string) for script in inline}
        assert wanted <= set(scripts)


def test_the_site_works_with_the_policy_as_a_header(live, host):
    host.headers["Content-Security-Policy"] = policy.HEADER
    view = live(host.address).open().state("live")
    move_and_compare(view)
    assert view.messages == []


def test_the_policy_stops_what_it_does_not_name(live, host):
    view = live(host.address).open()
    done = view.page.evaluate(
        """() => { const script = document.createElement("script");
             script.textContent = "window.intruder = true"; document.head.append(script);
             return Boolean(window.intruder); }"""
    )
    assert done is False
    assert any("Content Security Policy" in message for message in view.messages)


# --- the files -----------------------------------------------------------------------------------


def test_what_is_served_is_what_is_pinned():
    assert runtime.SUMS
    assert runtime.missing(folder()) == []


def test_the_manifest_describes_every_file():
    text = (folder() / "manifest.js").read_text("utf-8")
    files = json.loads(text.partition("export const FILES = ")[2].rstrip().rstrip(";"))
    assert set(files) | {"manifest.js"} == {path.name for path in folder().iterdir()}
    assert all(runtime.describe(folder() / name) == file for name, file in files.items())


def test_nothing_served_names_a_place_of_this_machine():
    import gzip

    memory = gzip.decompress((folder() / "snapshot.packed").read_bytes())
    places = {str(runtime.ROOT), sys.prefix, str(runtime.cache_folder())}
    assert [place for place in places if place.encode() in memory] == []


def test_pages_without_an_explorer_load_no_script_for_them():
    for page, names in EXPLORERS.items():
        assert ("_runtime/" in (SITE / page).read_text("utf-8")) == bool(names)


def test_the_starter_is_small():
    assert (folder() / "starter.js").stat().st_size < 700
