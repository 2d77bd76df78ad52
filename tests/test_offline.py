"""The archive for a room without a network: what is in it, and that it works as it says."""

import re
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT, SITE
from playwright.sync_api import expect
from test_lite import FAILED, Notebook
from test_live import EXPLORERS, FIRST, Live, move_and_compare
from tools import offline


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    assert offline.main([str(folder)]) == 0
    (path,) = folder.glob("*.zip")
    return path


@pytest.fixture(scope="module")
def unpacked(archive):
    zipfile.ZipFile(archive).extractall(archive.parent)
    return archive.with_suffix("")


@pytest.fixture(scope="module")
def room(unpacked):
    """Serve the unpacked archive with the command that its README names."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(
        command, cwd=unpacked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        yield "http://127.0.0.1:" + re.search(r"port (\d+)", server.stdout.readline())[1]
        server.terminate()


@pytest.fixture
def context(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context
    context.close()


def test_it_holds_the_site_and_says_how_to_use_it(archive, unpacked):
    assert archive.name == f"self-attention-worked-{offline.version(ROOT)}.zip"
    site = {path.relative_to(SITE) for path in SITE.rglob("*") if path.is_file()}
    there = {path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()}
    assert {path.as_posix() for path in there - site} == {"README.txt", "serve.py"}
    assert {path.as_posix() for path in site - there} == {".buildinfo"}
    assert "python -m http.server" in (unpacked / "README.txt").read_text()


def test_the_same_site_gives_the_same_bytes(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    for name in ("b.html", "a.html"):
        (site / name).write_text(name)
        offline.pack(site, "1", tmp_path / f"{name}.zip")
    (site / "c.html").write_text("c")
    (site / "c.html").unlink()
    offline.pack(site, "1", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "a.html.zip").read_bytes()
    names = zipfile.ZipFile(tmp_path / "again.zip").namelist()
    assert names == sorted(names)


def test_a_folder_that_cannot_take_it_gets_one_sentence(tmp_path, capsys):
    assert offline.main([str(tmp_path / "none")]) == 1
    said = capsys.readouterr().err
    assert said == (
        f"{tmp_path / 'none'} cannot take the archive (No such file or directory): "
        "python -m tools.offline FOLDER names another folder.\n"
    )


def test_a_slider_works(room, context):
    view = Live(context, room, FIRST).open()
    move_and_compare(view)
    assert [url for url in view.requests if not url.startswith(f"{room}/")] == []
    assert view.messages == []


def test_a_chapter_runs(room, context):
    notebook = Notebook(context, room).open("03_scaling")
    imports = notebook.cell("import numpy as np")
    imports.click()
    notebook.run(imports)
    assert notebook.page.locator(FAILED).count() == 0
    assert notebook.elsewhere() == []
    assert notebook.missing == []


def test_a_page_from_the_disk_shows_all_and_its_controls_rest(unpacked, context):
    page = context.new_page()
    page.goto((unpacked / FIRST).as_uri())
    section = page.locator(f"section.explorer[data-explorer={EXPLORERS[FIRST][0]}]")
    section.scroll_into_view_if_needed()
    assert section.locator(".explorer-result table td").count() > 0
    assert section.locator("fieldset :is(input, select):enabled").count() == 0
    assert "Opened from the disk" in section.locator(".explorer-note").text_content()
    sizes = page.locator(".cell_output figure img").evaluate_all(
        "images => Promise.all(images.map(i => i.decode().then(() => i.naturalWidth)))"
    )
    assert sizes
    assert all(sizes)
    page.goto((unpacked / "search.html").as_uri() + "?q=entropy")
    expect(page.locator("#search-results li a").first).to_be_visible()
