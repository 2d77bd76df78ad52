"""JupyterLite beside the built site: a chapter opened, run, moved, edited, and put back."""

import gzip
import json
import re
import time
import types
import zipfile

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, SITE
from playwright.sync_api import expect
from sphinx_ext import lite as serving
from tools import lite, notebooks, runtime
from tools.browser import wait_for_kernel
from tools.serve import Quiet, served

from worked_examples import explorers
from worked_examples.controls import Slider

PATIENCE = 180_000  # ms; Python takes seconds to start, and more on a machine that is busy
LITE = SITE / "lite"
CHAPTER = "02_queries_keys_values"
EXPLORER = explorers.SELECT
CELLS = [
    cell
    for cell in json.loads((ROOT / f"book/{CHAPTER}.ipynb").read_text("utf-8"))["cells"]
    if cell["cell_type"] == "code"
]
# The set-up cell is folded, so its number does not show.
PROMPT = ".jp-InputPrompt:not(.jp-Placeholder-prompt)"
NUMBER = f"[...document.querySelectorAll('.jp-CodeCell {PROMPT}')]"
# Notes all that the line at the foot of the page has shown.
WATCH = """window.seen = [];
new MutationObserver(() => {
  const foot = document.getElementById("python-progress");
  if (!foot) return;
  const [shown, said] = [...foot.querySelectorAll("p")].map(p => p.textContent);
  const { value, max } = foot.querySelector("progress");
  window.seen.push({ state: foot.dataset.state, shown, said, value, max });
}).observe(document, { subtree: true, childList: true, attributes: true });"""
FAILED = "[data-mime-type='application/vnd.jupyter.error'], [data-mime-type*=stderr]"


class Notebook:
    """A chapter in JupyterLite, and what it asked for and said."""

    def __init__(self, context, site):
        self.site, self.page = site, context.new_page()
        self.requests, self.messages, self.missing = [], [], []
        self.page.set_default_timeout(PATIENCE)
        self.page.add_init_script(WATCH)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.on("response", self._check)

    def _note(self, message):
        if message.type == "error":
            self.messages.append(f"{message.text} {message.location['url']}")

    def _check(self, response):
        if response.status >= 400:
            self.missing.append(response.url)

    def open(self, chapter=CHAPTER):
        self.page.goto(f"{self.site}/lite/{lite.START}?path=book/{chapter}.ipynb")
        wait_for_kernel(self.page)
        return self

    def run_all(self):
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        self.page.wait_for_function(f"{NUMBER}.every(e => /\\[\\d+\\]/.test(e.textContent))")

    def run(self, cell):
        """Run a cell that has the focus, and wait until it has its number."""
        before = cell.locator(PROMPT).text_content()
        self.page.keyboard.press("Shift+Enter")
        prompt = cell.locator(PROMPT)
        expect(prompt).not_to_have_text(before, timeout=PATIENCE)
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=PATIENCE)

    def cell(self, text):
        return self.page.locator(".jp-CodeCell").filter(has_text=text).first

    def type_into(self, cell, text):
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def elsewhere(self):
        """List what was asked of another host than the site's."""
        inside = (f"{self.site}/", "data:", f"blob:{self.site.split('/some')[0]}/")
        return [url for url in self.requests if not url.startswith(inside)]


@pytest.fixture(scope="module")
def context(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context
    context.close()


@pytest.fixture(scope="module")
def run(context, site):
    """Give the chapter with every cell run."""
    notebook = Notebook(context, site).open()
    notebook.run_all()
    return notebook


# --- in the browser ------------------------------------------------------------------------------


def test_every_cell_runs_and_none_fails(run):
    prompts = run.page.evaluate(f"{NUMBER}.map(e => e.textContent)")
    assert prompts == [f"[{i + 1}]:" for i in range(1, len(CELLS))]
    assert [element.text_content() for element in run.page.locator(FAILED).all()] == []
    assert "1.5811 bits of a possible 1.5850" in run.cell("most = np.log2").text_content()
    assert run.cell("drawings.averages").locator("img, svg").count() >= 1
    assert "animal" in run.cell("pd.DataFrame.from_dict(words").locator("table").text_content()


def test_while_python_starts_the_page_says_how_far_it_is(run):
    seen = run.page.evaluate("window.seen")
    loading = [line for line in seen if line["state"] == "loading" and line["shown"]]
    values = [line["value"] for line in loading]
    assert values == sorted(values)
    assert len(set(values)) > 20
    whole = loading[0]["max"]
    assert (values[0], values[-1]) == (0, whole)  # what was announced is what arrived
    assert 20e6 < whole < 80e6
    for line in loading:
        share = f"{line['value'] / 1e6:.0f} of {whole / 1e6:.0f} MB"
        share = share if line["value"] < whole else f"all {whole / 1e6:.0f} MB are here"
        assert line["shown"] == f"Python is starting: {share}"
    said = list(dict.fromkeys(line["said"] for line in seen if line["said"]))
    # From the first moment on: Jupyter drops a cell that is run before there is a kernel.
    waiting = "Wait a moment: until Python starts, no cell runs."
    assert [line["state"] for line in seen if line["shown"] == waiting][0] == "waiting"
    assert said == [waiting, "Python is starting.", "Python is starting: half of it is here.",
                    "Python is starting: all of it is here.", "Python is ready."]  # fmt: skip
    assert seen[-1]["state"] == "ready"
    # It leaves some seconds later.
    expect(run.page.locator("#python-progress")).to_have_count(0, timeout=20_000)


def test_a_cell_that_needs_torch_says_so_and_shows_what_the_build_got(run):
    text = run.cell("import torch").locator(".jp-OutputArea").text_content()
    assert "needs torch, which the browser does not have. Below is what it gave" in text
    assert re.search(r"apart from the loop by \de-\d\d, from the library by \de-\d\d", text)


def test_a_slider_moves_by_key_and_its_numbers_are_the_hosts(run):
    slider = next(c for c in EXPLORER.controls if isinstance(c, Slider))
    output = run.cell("explorers.SELECT").locator(".jp-OutputArea")
    handle = output.locator(".noUi-handle").first
    handle.scroll_into_view_if_needed()
    handle.focus()
    for key, value in (("ArrowUp", slider.default + slider.step), ("ArrowDown", slider.default)):
        run.page.keyboard.press(key)
        html = EXPLORER.result(**{slider.name: slider.check(value)})
        wanted = re.sub(r"\s", "", "".join(BeautifulSoup(html, "html.parser").stripped_strings))
        # Each answer replaces the element, so it is looked for anew each time.
        deadline, shown = time.monotonic() + PATIENCE / 1000, None
        while shown != wanted:
            assert time.monotonic() < deadline, f"shows {shown}, not {wanted}"
            shown = re.sub(r"\s", "", output.locator(".explorer-result").text_content())
            run.page.wait_for_timeout(50)
    assert handle.evaluate("element => element === document.activeElement")


def test_an_edited_cell_gives_its_own_result(run):
    cell = run.cell('facts = {"dog"')
    run.type_into(cell, "edited = sum(range(11))\nedited")
    edited = run.cell("edited = sum")
    run.run(edited)
    assert edited.locator(".jp-OutputArea-output").text_content().strip() == "55"


def test_an_edited_cell_that_needs_torch_says_whose_result_it_shows(run):
    cell = run.cell("import torch")
    text = "".join(next(c for c in CELLS if "import torch" in "".join(c["source"]))["source"])
    run.type_into(cell, text.replace("apart", "distance"))
    run.run(run.cell("import torch"))
    said = run.cell("import torch").locator(".jp-OutputArea").text_content()
    assert "what the published cell, which yours differs from, gave" in said


def test_nothing_was_asked_of_another_host_or_of_a_file_that_is_not_there(run):
    assert len(run.requests) > 50
    assert run.elsewhere() == []
    assert run.missing == []
    assert run.messages == []


def test_a_saved_edit_opens_again_until_the_reader_starts_again(run, context, site):
    run.page.keyboard.press("Control+s")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("dialog", lambda dialog: dialog.accept())
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    chapter = f"{site}/lite/{lite.START}?path=book/{CHAPTER}.ipynb"
    page.goto(chapter)
    page.get_by_text("edited = sum(range(11))").wait_for()
    run.page.close()
    button = BeautifulSoup((SITE / f"book/{CHAPTER}.html").read_text("utf-8"), "html.parser")
    way_back = button.select_one(".dropdown-lite-buttons a[href*='reset.html']")["href"]
    page.goto(f"{site}/book/{way_back}")
    expect(page.locator("#said")).to_contain_text("keeps your copy of book/02")
    page.locator("#forget").click()
    expect(page.locator("#said")).to_contain_text("the published chapter opens")
    page.locator("#open").click()
    page.get_by_text('facts = {"dog": "an animal"').wait_for()
    assert page.get_by_text("edited = sum(range(11))").count() == 0
    assert errors == []


@pytest.mark.parametrize("path", ["", "?path=book/none.ipynb", "?path=../../x"])
def test_the_way_back_does_nothing_where_there_is_nothing(browser, site, path):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site}/lite/reset.html{path}")
    expect(page.locator("#said")).to_have_text(
        re.compile("names no chapter" if "none" not in path else "keeps no copy")
    )
    assert not page.locator("#forget").is_visible()
    assert page.evaluate("indexedDB.databases()") == []
    context.close()


def test_a_site_under_a_prefix(browser):
    class Host(Quiet):
        def translate_path(self, path):
            inside = path.startswith("/some/prefix/")
            return super().translate_path(path[len("/some/prefix") :] if inside else "/none")

    context = browser.new_context()
    with served(SITE, Host) as address:
        notebook = Notebook(context, f"{address}/some/prefix").open("05_heads")
        imports = notebook.cell("import numpy as np")
        imports.click()
        notebook.run(imports)
        expect(imports.locator(PROMPT)).to_have_text("[1]:")
        assert notebook.page.locator(FAILED).count() == 0
        assert notebook.elsewhere() == []
        assert notebook.missing == []
        context.close()


@pytest.mark.parametrize("lacking", ["pandas-", "pyodide.asm.wasm"])
def test_where_a_file_does_not_arrive_the_page_names_it_and_says_what_to_do(browser, lacking):
    class Host(Quiet):
        def do_GET(self):
            if self.path.rpartition("/")[2].startswith(lacking):
                self.send_error(404)
            else:
                super().do_GET()

    context = browser.new_context()
    with served(SITE, Host) as address:
        page = context.new_page()
        page.goto(f"{address}/lite/{lite.START}?path=book/{CHAPTER}.ipynb")
        said = page.locator("#python-progress [role=status]")
        expect(said).to_have_text(
            re.compile(rf"Python cannot start: the file {lacking}\S* did not arrive\. Reload"),
            timeout=PATIENCE,
        )
        assert page.locator("#python-progress p").first.is_visible()
        context.close()


# --- the files -----------------------------------------------------------------------------------


def test_every_chapter_is_there_as_it_is_published():
    listed = json.loads((LITE / "api/contents/book/all.json").read_text("utf-8"))["content"]
    chapters = notebooks.notebooks(ROOT)
    assert [item["path"] for item in listed] == [f"book/{path.name}" for path in chapters]
    for path in chapters:
        assert (LITE / "files/book" / path.name).read_bytes() == path.read_bytes()


def test_every_chapter_has_the_button_and_no_other_page():
    for page in SITE.glob("*.html"):
        assert "lite-buttons" not in page.read_text("utf-8")
    for path in notebooks.notebooks(ROOT):
        page = SITE / "book" / f"{path.stem}.html"
        html = BeautifulSoup(page.read_text("utf-8"), "html.parser")
        links = [a["href"] for a in html.select(".dropdown-lite-buttons a")]
        assert links[0] == f"../lite/{lite.START}?path=book/{path.name}"
        assert links[1] == f"../lite/reset.html?path=book/{path.name}"
        assert all((page.parent / link.partition("?")[0]).is_file() for link in links)


def test_pythons_packages_are_those_of_the_list():
    settings = json.loads((LITE / "jupyter-lite.json").read_text("utf-8"))["jupyter-config-data"]
    kernel = settings["litePluginSettings"][f"{lite.KERNEL}:kernel"]
    assert kernel["disablePyPIFallback"] is True
    assert (LITE / kernel["pyodideUrl"]).resolve().is_file()
    options = kernel["loadPyodideOptions"]
    assert (LITE / options["stdLibURL"]).is_file()
    packages = json.loads((LITE / options["lockFileURL"]).read_text("utf-8"))["packages"]
    core = (LITE / options["runtimeURL"]).resolve()
    assert (core / "pyodide.js").is_file()
    for package in packages.values():
        data = (core / package["file_name"]).resolve().read_bytes()
        assert lite._sum(data) == package["sha256"]
    assert {lite._normal(name) for name in options["packages"]} <= set(packages)
    assert "torch" in packages["worked-examples"]["imports"]


def test_every_page_with_a_notebook_shows_how_python_starts():
    for app in ("notebooks", "lab"):
        scripts = re.findall(
            r'<(?:script|link)[^>]*(?:src|href)="([^"]+)"', (LITE / app / "index.html").read_text()
        )
        place = [n for n, s in enumerate(scripts) if s.endswith("progress.js")]
        assert place, app
        assert (LITE / app / scripts[place[0]]).is_file()
        assert place[0] < next(n for n, s in enumerate(scripts) if "bundle.js" in s)


def test_the_core_of_python_is_served_once():
    assert list(LITE.rglob("pyodide.asm.*")) == []
    assert len(list((SITE / "_runtime").glob("*/pyodide.asm.wasm"))) == 1


def test_our_package_shows_its_source_and_the_others_are_compiled():
    (ours,) = LITE.glob("python-*/worked_examples-*.whl")
    names = zipfile.ZipFile(ours).namelist()
    assert {path.name for path in runtime.code_files(ROOT)} <= {n.rpartition("/")[2] for n in names}
    assert not [name for name in names if name.endswith(".pyc")]
    (pandas,) = LITE.glob("python-*/pandas-*.whl")
    names = zipfile.ZipFile(pandas).namelist()
    assert not [name for name in names if name.endswith(".py")]
    assert "pandas/__init__.pyc" in names


def test_every_page_has_a_policy_that_names_no_other_host():
    pages = [*LITE.glob("*/index.html"), *LITE.glob("*.html")]
    assert len(pages) > 2
    for page in pages:
        html = BeautifulSoup(page.read_text("utf-8"), "html.parser")
        (tag,) = html.select("meta[http-equiv='Content-Security-Policy']")
        assert "default-src 'none'" in tag["content"]
        assert "'unsafe-inline'" not in re.search(r"script-src ([^;]*)", tag["content"])[1]
        assert not re.search(r"https?:|\*", tag["content"])


def test_what_torch_gave_is_there_for_every_chapter():
    (ours,) = LITE.glob("python-*/worked_examples-*.whl")
    with zipfile.ZipFile(ours) as wheel:
        chapters = json.loads(gzip.decompress(wheel.read("torch/recorded.json.gz")))
    assert sorted(chapters) == [path.stem for path in notebooks.notebooks(ROOT)]
    assert all(any(cell["outputs"] for cell in cells) for cells in chapters.values())


# --- without it ----------------------------------------------------------------------------------


def test_without_its_files_the_book_goes_on_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lite, "ROOT", tmp_path)
    monkeypatch.setattr(lite, "key", lambda root: "k")
    monkeypatch.setattr(lite, "labextensions", list)
    stale = tmp_path / "_build" / "lite" / "old"
    stale.mkdir(parents=True)
    assert lite.main([]) == 0
    assert "will not open in the browser" in capsys.readouterr().out
    assert not stale.exists()


def test_without_jupyterlite_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lite, "NEEDED", ("no-such-package",))
    assert lite.key(ROOT) is None
    monkeypatch.setattr(lite, "ROOT", tmp_path)
    monkeypatch.setattr(lite, "key", lambda root: None)
    assert lite.main([]) == 0
    assert "it needs no-such-package" in capsys.readouterr().out


def buttons(made, suffix=".ipynb"):
    context = {"header_buttons": [], "page_source_suffix": suffix}
    context["pathto"] = lambda address, resource: f"../{address}"
    app = types.SimpleNamespace(config=types.SimpleNamespace(book_lite=made))
    serving.add_button(app, "book/x", "page.html", context, None)
    return context["header_buttons"]


def test_without_it_no_page_has_a_button():
    assert buttons("") == []
    assert buttons("k", ".md") == []
    assert len(buttons("k")) == 1


def test_another_list_of_packages_leads_to_another_build(monkeypatch):
    before = lite.key(ROOT)
    assert before == lite.key(ROOT)
    monkeypatch.setattr(runtime, "LOCK", {"packages": {}})
    assert lite.key(ROOT) != before


def test_every_package_that_is_served_is_on_the_page_of_licences():
    page = (ROOT / "book/licences.md").read_text("utf-8").lower().replace("_", "-")
    (settings,) = LITE.glob("python-*/pyodide-lock-*.json")
    packages = set(json.loads(settings.read_text("utf-8"))["packages"]) - {"worked-examples"}
    assert len(packages) > 30
    assert [name for name in sorted(packages) if name not in page] == []


def test_versions_and_counts_on_the_page_of_licences_are_those_that_are_served():
    page = (ROOT / "book/licences.md").read_text("utf-8")
    stated = dict(re.findall(r"\[([^\]]+)\]\([^)]*\) (\d+(?:\.\d+)+\w?)", page))
    pins = dict(re.findall(r"(?m)^([\w.-]+)==([\w.]+)", (ROOT / "requirements.txt").read_text()))
    (settings,) = LITE.glob("python-*/pyodide-lock-*.json")
    served = json.loads(settings.read_text("utf-8"))
    inside = {name: package["version"] for name, package in served["packages"].items()}
    style = next((ROOT / "vendor/katex").glob("*.css")).read_text("utf-8")
    emscripten = served["info"]["platform"].removeprefix("emscripten_").replace("_", ".")
    assert stated == {
        "KaTeX": re.search(r'\.katex-version:+after\{content:"([\d.]+)"', style)[1],
        "Pyodide": served["info"]["version"], "CPython": served["info"]["python"],
        "Emscripten": emscripten, "NumPy": inside["numpy"],
        "JupyterLite": pins["jupyterlite-core"],
        "Pyodide kernel": pins["jupyterlite-pyodide-kernel"],
        "ipywidgets": pins["ipywidgets"], "pandas": inside["pandas"],
        "Matplotlib": inside["matplotlib"], "IPython": inside["ipython"],
        "OpenSSL": inside["openssl"],
    }  # fmt: skip
    carried = json.loads((LITE / "build/third-party-licenses.json").read_text("utf-8"))
    assert f"what those carry, {len(carried['packages'])} packages" in page
