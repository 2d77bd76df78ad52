"""A sentence that the reader types, on the built site in a real browser: numbers and faults."""

import base64
import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from conftest import ROOT, SITE, built_pages, hosted, settle
from playwright.sync_api import expect
from sphinx_ext import policy
from test_live import EXPLORERS, Host, Live, pieces
from tools import eight_bits as tool

from worked_examples import eight_bits, explorers, minilm
from worked_examples.own_sentence import NAME, OwnSentence
from worked_examples.sentences import SHOWN, Model

PATIENCE = 60_000  # ms
PAGES = [page for page in built_pages() if 'data-typed="' in (SITE / page).read_text("utf-8")]
CHAPTER = next((page for page in PAGES if 'data-file="' in (SITE / page).read_text("utf-8")), None)
BOX = f"#{NAME}-text"
LONG = " ".join(" ".join(f"the {n} dogs barked and" for n in range(26)).split()[:126])
MODEL_FILE = tool.NAME


@pytest.fixture(scope="module", autouse=True)
def offered():
    """Without the model the site has no button: then, and only then, there is nothing to test."""
    assert PAGES, "no page offers a box for a sentence"
    if CHAPTER is None:
        assert tool.laid_out(ROOT) is None, "the model is there and no page offers it"
        pytest.skip("the site was built without the trained model's file")


@pytest.fixture(scope="module")
def model():
    """Give the very model that the site serves, as the host reads it."""
    ready = tool.laid_out(ROOT)
    return Model(*eight_bits.unpack((SITE / "_model" / ready["path"]).read_bytes()))


class Slow(Host):
    """A host that can also send half of a file and then wait."""

    def do_GET(self):
        if self.site.faults.get(self.path.rpartition("/")[2]) != "half":
            return super().do_GET()
        with open(self.translate_path(self.path), "rb") as file:
            data = file.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()
        self.site.released.wait(30)
        self.close_connection = True


@pytest.fixture
def host():
    with hosted(Slow) as site:
        yield site


class Typed(Live):
    """The page with the box, and what a reader does there."""

    def __init__(self, context, address, chapter=None):
        super().__init__(context, address, chapter or CHAPTER)
        self.page.goto(f"{address}/{self.chapter}#{NAME}-title")
        self.box = self.page.locator(BOX)
        self.part = self.page.locator(f"[data-typed={NAME}]")
        self.button = self.part.locator(".typed-offer button")
        self.result = self.part.locator(".explorer-result")
        self.note = self.part.locator(".typed-note")
        self.is_in("rest")

    def is_in(self, state):
        expect(self.part).to_have_attribute("data-state", state, timeout=PATIENCE)
        return self

    def load(self):
        self.button.click()
        return self.is_in("live")

    def type(self, text):
        """Type a text, let it be read, and wait for what comes of it."""
        self.box.fill(text)
        self.box.press("Enter")
        return self.is_in("live")

    def shows(self, wanted):
        """Wait until the result is this HTML, but for the last digit of its numbers."""
        wanted = pieces(wanted)
        expect(self.result).to_contain_text(wanted[0], timeout=PATIENCE)
        shown = pieces(self.result.inner_html())
        assert len(shown) == len(wanted)
        for one, other in zip(shown, wanted, strict=True):
            if one != other:
                assert abs(float(one) - float(other)) < 0.0101, (one, other)


@pytest.fixture
def typed(browser):
    contexts = []

    def open_page(address, **options):
        contexts.append(
            browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        )
        return Typed(contexts[-1], address)

    yield open_page
    for context in contexts:
        context.close()


# --- the numbers ---------------------------------------------------------------------------------

# The page's own scripts and files, started once more beside its worker, for the bare arrays.
BARE = """async ([runtime, file, texts]) => {
  const { FILES, RUNTIME } = await import(`${runtime}manifest.js`);
  const { openFiles } = await import(`${runtime}files.js`);
  const { start } = await import(`${runtime}start.js`);
  const bytes = new Uint8Array(await (await fetch(file)).arrayBuffer());
  const options = { base: runtime, again: false, onLoaded() {} };
  const live = await start(RUNTIME, false, openFiles(FILES, options), runtime);
  live.take(bytes);
  return texts.map((text) => {
    const reading = live.OWN.model.read(text).get(1);
    return ["maps", "layers"].map((name) => {
      const array = reading[name].getBuffer("f32");
      const data = new Uint8Array(array.data.slice().buffer);
      let characters = "";
      for (let i = 0; i < data.length; i += 8192)
        characters += String.fromCharCode(...data.subarray(i, i + 8192));
      return [array.shape, btoa(characters)];
    });
  });
}"""


def arrays(answer):
    return [
        np.frombuffer(base64.b64decode(data), np.float32).reshape(shape) for shape, data in answer
    ]


def test_every_map_in_the_browser_is_the_host_s(browser, site, model, trained):
    texts = [SHOWN[0], "dog", "犬 ☃ \u0b95", "Déjà vu: 3.5 % of $20!", LONG]
    page = browser.new_page()
    page.goto(f"{site}/{CHAPTER}")
    runtime = f"{site}/_runtime/{next((SITE / '_runtime').iterdir()).name}/"
    ready = tool.laid_out(ROOT)
    found = page.evaluate(BARE, [runtime, f"{site}/_model/{ready['path']}", texts])
    page.close()
    bounds = ready["cost"]
    for text, answer in zip(texts, found, strict=True):
        maps, layers = arrays(answer)
        tokens, reading = model.read(text)
        assert maps.shape == (minilm.LAYERS, minilm.HEADS, len(tokens), len(tokens))
        assert abs(maps - reading.maps).max() < 1e-4
        assert abs(layers - reading.layers).max() < 1e-4
        published = Model(*trained).read(text)[1]
        assert abs(maps - published.maps).max() < 1.25 * bounds["weight"]
    assert len(tokens) == 128
    # The browser multiplies in another order: had it been the host, nothing would differ.
    assert abs(maps - reading.maps).max() > 0


def test_what_the_page_shows_is_what_the_host_computes(typed, site, model):
    own = OwnSentence(model)
    view = typed(site).load()
    view.shows(own.result(SHOWN[0], 0, 2))
    for text in ("A puppy was barking.", "dog", "犬 ☃", LONG):
        view.type(text)
        view.shows(own.result(text, 0, 2))
    view.page.locator(f"#{NAME}-layer").press("End")
    view.page.locator(f"#{NAME}-head").press("Home")
    expect(view.result).to_contain_text("127 [SEP]")
    expect(view.result.locator("svg")).to_have_attribute(
        "aria-label", re.compile("layer 5, head 0"), timeout=PATIENCE
    )
    view.shows(own.result(LONG, 5, 0))
    assert len(view.page.workers) == 1
    assert [url for url in view.requests if not url.startswith(f"{site}/")] == []
    assert view.messages == []


# --- loading -------------------------------------------------------------------------------------


def asked(view):
    return [url for url in view.requests if "/_model/" in url]


def test_nothing_is_loaded_before_the_click_and_once_only(typed, site):
    view = typed(site)
    view.page.locator(f"[data-explorer={EXPLORERS[CHAPTER][0]}] input").first.focus()
    view.state("live")
    assert asked(view) == []
    size = tool.laid_out(ROOT)["size"]
    assert f"({size / 1e6:.1f} MB)" in view.button.text_content()
    view.load()
    assert len(asked(view)) == 1
    view.page.goto("about:blank")
    again = Typed(view.page.context, site).load()
    assert asked(again) == []
    expect(again.result).to_contain_text("13 tokens")
    # What the browser has kept is checked before it is used.
    again.page.evaluate(
        """async () => { const kept = await caches.open((await caches.keys())[0]);
             const [{ url }] = await kept.keys();
             const file = new Uint8Array(await (await kept.match(url)).arrayBuffer());
             file[1e7] ^= 1;
             await kept.put(url, new Response(file)); }"""
    )
    again.page.goto("about:blank")
    third = Typed(view.page.context, site).load()
    assert len(asked(third)) == 1
    expect(third.result).to_contain_text("13 tokens")


def test_progress_is_shown_and_the_box_comes_with_the_focus(typed, host):
    host.faults[MODEL_FILE] = "half"
    view = typed(host.address)
    view.button.focus()
    view.page.keyboard.press("Enter")
    size = tool.laid_out(ROOT)["size"]
    bar = view.part.locator("progress")
    expect(bar).to_have_attribute("value", str(size // 2), timeout=PATIENCE)
    assert bar.get_attribute("max") == str(size)
    loaded = f"{size // 2 / 1e6:.1f} of {size / 1e6:.1f} MB"
    assert view.part.locator(".typed-loaded").text_content() == loaded
    assert view.part.locator("[role=status]").text_content() == "The model is loading."
    view.page.keyboard.press("Enter")  # a second press begins nothing
    host.faults.clear()
    host.released.set()
    view.is_in("failed")
    assert len(asked(view)) == 1
    assert view.page.evaluate("document.activeElement.textContent").startswith("Load the model")
    view.page.keyboard.press("Enter")
    view.is_in("live")
    assert view.page.evaluate("document.activeElement.id") == f"{NAME}-text"
    expect(view.button).to_be_hidden()
    view.page.keyboard.press("ControlOrMeta+A")
    view.page.keyboard.type("A bird sang.")
    view.page.keyboard.press("Enter")
    expect(view.result).to_contain_text("6 tokens: [CLS] a bird sang . [SEP]", timeout=PATIENCE)


# --- faults --------------------------------------------------------------------------------------


FAULTS = {
    "missing": "the site does not have it (404)",
    "truncated": "it did not arrive whole",
    "altered": "what arrived is not the file that this page was built with",
    "unplugged": "it did not arrive whole; the network may be down",
}


def test_a_file_that_does_not_come_is_told_and_tried_again(typed, host):
    view = typed(host.address)
    for fault, words in FAULTS.items():
        host.faults[MODEL_FILE] = fault
        view.button.click()
        expect(view.note).to_contain_text(f"could not be loaded: {words}", timeout=PATIENCE)
        view.is_in("failed")
        assert view.part.locator("[role=status]").text_content() == view.note.text_content()
        kept = "caches.open('worked-examples-model').then((c) => c.keys())"
        assert view.page.evaluate(kept) == []
    host.faults.clear()
    view.load()
    expect(view.result).to_contain_text("13 tokens")


def test_a_network_that_falls_silent_is_given_up(typed, host):
    host.faults[MODEL_FILE] = "half"
    view = typed(host.address)
    view.state("live")
    view.page.clock.install()
    view.button.click()
    expect(view.part.locator(".typed-loaded")).to_contain_text("11.7 of")
    view.page.clock.run_for(21_000)
    view.is_in("failed")
    assert "did not arrive whole" in view.note.text_content()


BAD_TEXTS = {
    "": "There is no word here to read",
    "dog " * 127: "This text has 129 tokens",
    "dogs and " * 5000: "This text has 45,000 characters",
}


def test_a_text_that_cannot_be_read_stays_and_is_told(typed, site):
    view = typed(site).load()
    for text, words in BAD_TEXTS.items():
        view.type(text)
        expect(view.result.locator("[role=alert]")).to_contain_text(words)
        assert view.box.input_value() == text
    view.type("dog")
    expect(view.result).to_contain_text("3 tokens: [CLS] dog [SEP]")


def test_a_killed_worker_is_told_and_the_text_is_read_by_the_next(typed, site):
    view = typed(site).load()
    view.page.clock.install()
    view.page.workers[0].evaluate("self.close()")
    view.box.fill("A bird sang.")
    view.box.press("Enter")
    view.is_in("reading")
    view.page.clock.run_for(31_000)
    view.is_in("failed")
    assert view.note.text_content() == (
        "Python stopped: it gave no answer. Your text is still here. The button tries again."
    )
    assert view.box.input_value() == "A bird sang."
    view.part.locator("form button").click()
    expect(view.result).to_contain_text("6 tokens: [CLS] a bird", timeout=PATIENCE)
    assert len(asked(view)) == 1  # the model came from the browser's cache


def test_a_worker_that_died_over_an_explorer_is_given_the_model_again(typed, site):
    name = EXPLORERS[CHAPTER][0]
    view = typed(site).load()
    view.page.clock.install()
    view.page.workers[0].evaluate("self.close()")
    control = next(c for c in explorers.ALL[name].controls if c.name == "head")
    view.control(name, "head").press("ArrowRight")
    view.page.clock.run_for(6_000)
    Live.shows(view, name, head=control.default + 1)
    view.type("A bird sang.")
    expect(view.result).to_contain_text("6 tokens: [CLS] a bird", timeout=PATIENCE)


def test_a_site_under_a_prefix_and_the_policy_as_a_header(typed, host):
    host.prefix = "/some/prefix"
    host.headers["Content-Security-Policy"] = policy.HEADER
    view = typed(host.address + host.prefix).load()
    view.type(LONG)
    expect(view.result.locator("image")).to_have_count(1)
    assert [u for u in view.requests if not u.startswith(host.address + host.prefix)] == []
    assert view.messages == []


# --- the page ------------------------------------------------------------------------------------


def breaks_no_rule(view, *looks):
    for width, scheme in looks:
        view.page.set_viewport_size({"width": width, "height": 900})
        view.page.emulate_media(color_scheme=scheme)
        settle(view.page)
        found = Axe().run(view.page, {"include": [[f"[data-typed={NAME}]"]]}).response
        assert [rule["id"] for rule in found["violations"]] == []
        assert len(found["passes"]) > 5
        root = "document.documentElement"
        assert not view.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth")


def test_no_rule_of_accessibility_is_broken_at_any_width_or_colour(typed, site):
    view = typed(site)
    breaks_no_rule(view, (1280, "light"), (390, "dark"))
    view.load().type("")
    breaks_no_rule(view, (1280, "dark"), (390, "light"))
    view.type(" ".join(LONG.split()[:45]))  # more than can be named: an image, and rows that scroll
    breaks_no_rule(view, (1280, "light"), (390, "dark"))


def test_without_javascript_the_page_says_where_it_works(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/{CHAPTER}")
    part = page.locator(f"[data-typed={NAME}]")
    expect(part).to_contain_text("This needs JavaScript")
    assert part.locator(":is(button, textarea, input):visible").count() == 0
    context.close()


def test_what_is_served_is_what_the_page_names():
    ready = tool.laid_out(ROOT)
    page = BeautifulSoup((SITE / CHAPTER).read_text("utf-8"), "html.parser")
    section = page.select_one(f"[data-typed={NAME}]")
    path = (SITE / CHAPTER).parent / section["data-file"]
    assert path.resolve() == (SITE / "_model" / ready["path"]).resolve()
    assert path.stat().st_size == int(section["data-size"]) < 25e6
    assert tool.described(path.read_bytes())["integrity"] == section["data-integrity"]
    assert [folder.name for folder in (SITE / "_model").iterdir()] == [path.parent.name]
