"""Where Python for the browser comes from, and what becomes of the book without it."""

import gzip
import io
import types
import zipfile

import pytest
from conftest import ROOT
from sphinx_ext import runtime as serving
from tools import runtime

import worked_examples.pinned
from worked_examples.explorer import NOTE

DATA = {"a.wasm": b"the core", "b.whl": b"a wheel"}


@pytest.fixture
def pinned(monkeypatch):
    """Pin two small files, and let no source be asked but those that the test sets."""
    sums = {name: runtime._sum(data) for name, data in DATA.items()}
    monkeypatch.setattr(runtime, "SUMS", sums)

    def unreachable(names):
        raise runtime.Unavailable("cannot be reached")
        yield

    def sources(releases=unreachable, carrier=unreachable):
        monkeypatch.setattr(runtime, "SOURCES", (releases, carrier))

    sources()
    return sources


def giving(data):
    """Make a source that has these files, and notes what it is asked for."""

    def source(names):
        source.asked.append(list(names))
        for name in names:
            yield name, io.BytesIO(data[name]), len(data[name])

    source.asked = []
    return source


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_cache_comes_first(tmp_path, pinned):
    for name, data in DATA.items():
        (tmp_path / name).write_bytes(data)
    runtime.obtain(tmp_path)
    assert contents(tmp_path) == DATA


def test_then_the_releases_then_the_carrier(tmp_path, pinned):
    releases, carrier = giving(DATA), giving(DATA)
    pinned(releases, carrier)
    runtime.obtain(tmp_path)
    assert (releases.asked, carrier.asked) == ([["a.wasm", "b.whl"]], [])
    (tmp_path / "b.whl").unlink()
    pinned(carrier=carrier)
    runtime.obtain(tmp_path)
    assert carrier.asked == [["b.whl"]]
    assert contents(tmp_path) == DATA


def test_a_damaged_file_in_the_cache_is_fetched_again(tmp_path, pinned):
    (tmp_path / "a.wasm").write_bytes(b"the corf")
    pinned(giving(DATA))
    runtime.obtain(tmp_path)
    assert contents(tmp_path) == DATA


def test_other_bytes_are_refused_wherever_they_come_from(tmp_path, pinned):
    pinned(giving(DATA | {"b.whl": b"a whale"}), giving(DATA | {"b.whl": b"a wheek"}))
    with pytest.raises(runtime.Unavailable, match="b.whl could not be had"):
        runtime.obtain(tmp_path)
    assert contents(tmp_path) == {"a.wasm": DATA["a.wasm"]}


def test_with_nothing_to_be_had_the_error_says_what_each_source_said(tmp_path, pinned):
    with pytest.raises(runtime.Unavailable, match="a.wasm, b.whl .*: cannot be reached; cannot"):
        runtime.obtain(tmp_path)


def test_a_folder_that_cannot_be_made_is_named_and_nothing_is_fetched(tmp_path, pinned):
    carrier = giving(DATA)
    pinned(carrier)
    (tmp_path / "file").write_text("")
    with pytest.raises(runtime.Unavailable, match=r"file/x cannot be made \(Not a directory\)$"):
        runtime.obtain(tmp_path / "file" / "x")
    assert carrier.asked == []


def test_of_many_absent_files_the_first_are_named(tmp_path, pinned, monkeypatch):
    monkeypatch.setattr(runtime, "SUMS", runtime.SUMS | dict.fromkeys("cde", "0"))
    with pytest.raises(runtime.Unavailable, match=r"^a.wasm, b.whl and 3 more could not be had: "):
        runtime.obtain(tmp_path)


def test_a_content_network_out_of_reach_is_left_at_once():
    source = worked_examples.pinned.from_address("http://127.0.0.1:9/", "the release")
    with pytest.raises(runtime.Unavailable, match="the release cannot be reached"):
        list(source(["a.wasm"]))


def test_the_command_goes_on_without_the_files(tmp_path, pinned, monkeypatch, capsys):
    monkeypatch.setattr(runtime, "ROOT", tmp_path)
    monkeypatch.setenv("WORKED_EXAMPLES_RUNTIME", str(tmp_path / "cache"))
    stale = tmp_path / "_build" / "runtime" / "old"
    stale.mkdir(parents=True)
    assert runtime.main([]) == 0
    assert "controls will stay at rest" in capsys.readouterr().out
    assert not stale.exists()


def page(book_runtime):
    context = {"body": f'<section data-explorer="x"><p>{NOTE}</p></section>'}
    context["pathto"] = lambda address, resource: f"../{address}"
    app = types.SimpleNamespace(config=types.SimpleNamespace(book_runtime=book_runtime))
    serving.start_explorers(app, "book/x", "page.html", context, None)
    return context["body"]


def test_a_page_without_the_runtime_says_why_and_where_its_controls_work():
    body = page("")
    assert "built without Python for the browser" in body
    assert "Jupyter or Colab" in body
    assert NOTE not in body
    assert "<script" not in body


def test_a_page_with_the_runtime_gets_the_starter():
    assert '<script defer src="../_runtime/k/starter.js">' in page("k")


def test_another_version_of_anything_served_gets_another_name(tmp_path):
    for name in ("code/worked_examples/a.py", "book/_live/b.js"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("one")
    keys = {runtime.key(tmp_path)}
    (tmp_path / "code/worked_examples/a.py").write_text("two")
    keys.add(runtime.key(tmp_path))
    (tmp_path / "book/_live/b.js").write_text("two")
    keys.add(runtime.key(tmp_path))
    assert len(keys) == 3


def test_our_package_is_the_same_bytes_each_time():
    assert runtime.our_package(ROOT) == runtime.our_package(ROOT)


def test_pages_get_the_data_that_the_package_reads():
    with zipfile.ZipFile(io.BytesIO(runtime.our_package(ROOT))) as archive:
        name = "worked_examples/data/sentences.npz"
        assert archive.read(name) == (ROOT / "code" / name).read_bytes()


def test_the_same_files_give_the_same_snapshot(tmp_path):
    served = runtime.laid_out(runtime.ROOT)
    assert served, "no runtime laid out: run `make book` first"
    for name in (*runtime.SUMS, "pyodide-lock.json"):
        (tmp_path / name).symlink_to(served / name)
    runtime.add_snapshot(runtime.ROOT, tmp_path)
    again = (tmp_path / "snapshot.packed").read_bytes()
    assert again == (served / "snapshot.packed").read_bytes()


def test_the_snapshot_ends_where_pythons_memory_does():
    memory = gzip.decompress((runtime.laid_out(runtime.ROOT) / "snapshot.packed").read_bytes())
    assert len(memory) - len(memory.rstrip(b"\0")) < 2e6
