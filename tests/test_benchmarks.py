"""The benchmarks measure what they say: counts, turns, devices, and a machine that is busy."""

import json
import subprocess
import sys
from pathlib import Path

import benchmarks.__main__ as command
import numpy as np
import pytest
import torch
from benchmarks import build, kernels, machine, options
from benchmarks import command as starts
from benchmarks import explorers as recomputed
from tools import runtime

from worked_examples import explorers
from worked_examples.attention import scaled_dot_product_attention
from worked_examples.fast import fast_attention


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
def test_every_kernel_computes_the_same(causal, device):
    """cpu:0 stands for a GPU: what runs there is the library's, and its name says where."""
    Q, K, V = np.random.default_rng(0).normal(size=(3, 2, 33, 64)).astype(np.float32)
    exact, _ = scaled_dot_product_attention(*(X.astype(float) for X in (Q, K, V)), causal=causal)
    functions = kernels.calls(Q, K, V, causal, device)
    layers = [name for name in functions if name.startswith("MultiheadAttention")]
    assert len(layers) == 1
    with torch.inference_mode():
        assert functions.pop(layers[0])().shape == (1, 33, 128)
        for call in functions.values():
            np.testing.assert_allclose(np.asarray(call()), exact, atol=2e-6)
    assert all(("cpu:0" in name) == (device != "cpu") for name in functions)
    assert len(functions) == (6 if device == "cpu" else 2)


def test_turns_alternate_and_wait_for_the_device():
    calls = []
    functions = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = kernels.seconds_in_turn(functions, 3, lambda: calls.append("waited"), settle=0)
    assert calls == ["a", "waited", "b", "waited"] * 4  # the first turn is not measured
    assert {name: len(taken) for name, taken in times.items()} == {"a": 3, "b": 3}


def test_a_short_function_settles_and_is_called_often(monkeypatch):
    """By a clock of its own: what another's threads disturb at first does not count."""
    now, calls = [0.0], []

    def short():
        calls.append("short")
        now[0] += 0.005 if calls[-5:] == ["short"] * 5 else 0.02

    def long():
        calls.append("long")
        now[0] += 0.5

    monkeypatch.setattr(kernels.time, "perf_counter", lambda: now[0])
    times = kernels.seconds_in_turn({"short": short, "long": long}, 4, settle=0.06)
    np.testing.assert_allclose(times["short"], 0.005)
    np.testing.assert_allclose(times["long"], 0.5)
    assert calls.count("long") == 5


def test_every_idea_can_be_undone_and_comes_back():
    """What is patched must exist, and the result stays; 800 positions are enough for threads."""

    def state():
        return [
            getattr(module, name)
            for undone in kernels.UNDONE.values()
            for module, changed in undone.items()
            for name in changed
        ]

    before = state()
    Q, K, V = np.random.default_rng(0).normal(size=(3, 1, 800, 64)).astype(np.float32)
    plain, _ = scaled_dot_product_attention(Q, K, V)
    for undone in kernels.UNDONE.values():
        with kernels.changed(undone):
            np.testing.assert_allclose(fast_attention(Q, K, V, fused=False), plain, atol=1e-5)
    rows = kernels.ideas([(40, 2)], 1)
    assert [(row["causal"], row["undone"]) for row in rows] == [
        (causal, name) for causal in (False, True) for name in kernels.UNDONE
    ]
    assert rows[0]["times as long"] == 1
    assert state() == before


def test_work_is_what_the_setting_needs():
    assert kernels.work(1024, 8, False) == 8 * 1024**2 * 128
    assert kernels.work(3, 1, True) == 6 * 128
    rates = [{"rate": "multiply-adds, numpy", "G a second": x} for x in (1.0, 2.0)]
    assert kernels.floor_seconds(rates, 1024, 1, False) == pytest.approx(1024**2 * 128 / 2e9)


def test_times_slopes_and_plot_with_a_gpu(monkeypatch, tmp_path):
    waited = []
    monkeypatch.setattr(kernels, "gpu", lambda: ("cpu:0", lambda: waited.append(1), "pretended"))
    monkeypatch.setattr(kernels, "PLOTS", tmp_path)
    rates = [{"rate": "multiply-adds, numpy", "G a second": 50.0}]
    rows = kernels.times([(32, 1), (64, 1)], 1, rates)
    assert {row["kernel"] for row in rows} >= {"fast", "library, fused (cpu:0)"}
    assert waited
    assert all(row["times library"] == 1 for row in rows if row["kernel"] == "library, fused")
    assert {row["lengths"] for row in kernels.slopes(rows)} == {"32-64"}
    assert kernels.plot(rows, rates).read_text("utf-8").count("products alone") >= 1


def test_what_takes_long_is_left_out_but_not_what_has_a_target(monkeypatch):
    monkeypatch.setattr(kernels, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(kernels, "gpu", lambda: None)
    rates = [{"rate": "multiply-adds, numpy", "G a second": 50.0}]
    with torch.inference_mode():
        rows = kernels.times([(32, 1), (64, 1)], 1, rates)
    first, *later = [
        {row["kernel"] for row in rows if (row["L"], row["causal"]) == key}
        for key in [(32, False), (32, True), (64, False), (64, True)]
    ]
    assert first > {"blocked", "plain"}
    assert later == [{"library, fused", "fast", "fast, numba"}] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_a_peak_is_that_of_the_kernel():
    """The plain kernel holds three matrices of scores at once."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.kernels", "plain", "2048"],
        check=True, capture_output=True, text=True, env=machine.environment(),
    )  # fmt: skip
    assert 2.5 < float(ran.stdout) / (4 * 2048**2 / 2**20) < 4


def test_every_explorer_is_computed_again_over_its_settings():
    tables = recomputed.measure(rounds=1)
    rows = tables["recompute of the explorers"]
    assert [row["explorer"] for row in rows] == list(explorers.ALL)
    for row, explorer in zip(rows, explorers.ALL.values(), strict=True):
        assert row["settings"] >= 2 + min(64, 2 ** len(explorer.controls))  # all corners
        assert 0 < row["median ms"] <= row["slowest setting ms"]
    slowest = max(row["slowest setting ms"] for row in rows)
    assert tables["slowest"][0]["slowest recompute ms"] == slowest


def test_the_command_line_is_timed_beside_a_bare_numpy(monkeypatch):
    ran = []
    monkeypatch.setattr(starts.subprocess, "run", lambda command, **how: ran.append(command[1:]))
    (rows,) = starts.measure(rounds=2).values()
    assert ran[0] == ["-c", "import numpy"]
    assert [command[1] for command in ran[1:5]] == ["--one", "--select", "--scale", "--mask"]
    assert ran == ran[:5] * 3  # the first turn is not measured
    assert rows[0]["times bare numpy"] == 1
    assert [row["target"] for row in rows] == ["", starts.START_TARGET_RATIO, "", "", ""]


def test_the_book_is_built_cold_and_warm_in_a_copy(monkeypatch):
    found = []

    def run(command, cwd, env, **rest):
        html = Path(cwd) / "_build" / "html"
        found.append((html.is_dir(), (Path(cwd) / "_config.yml").is_file(), env["PYTHONPATH"]))
        html.mkdir(parents=True, exist_ok=True)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(build.subprocess, "run", run)
    (rows,) = build.measure().values()
    cold, warm = found
    assert (cold[:2], warm[:2]) == ((False, True), (True, True))
    assert not cold[2].startswith(str(machine.ROOT))  # it runs the copy's code
    assert [row["build"].split(":")[0] for row in rows] == ["cold", "warm"]


def test_a_build_that_fails_says_what_it_said(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="no such chapter")
    monkeypatch.setattr(build.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RuntimeError, match="no such chapter"):
        build.build("anywhere")


def test_misleading_settings_are_left_out(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    assert "OPENBLAS_CORETYPE" not in machine.environment()
    assert machine.environment()["PATH"]


@pytest.mark.parametrize(("before", "after", "warns"), [(0.1, 2.0, False), (1.5, 2.0, True)])
def test_a_busy_machine_is_told(before, after, warns, monkeypatch):
    monkeypatch.setattr(machine, "processors", lambda: 2)
    assert (machine.warning(before, after) is not None) == warns


def test_the_command_prints_and_writes_its_sections(monkeypatch, capsys, tmp_path):
    class Section:
        @staticmethod
        def measure(quick, rounds):
            return {"a table": [{"quick": quick, "rounds": rounds}]}

    asked = []
    monkeypatch.setattr(
        command.importlib, "import_module", lambda name: asked.append(name) or Section
    )
    file = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick", "--json", str(file)])
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.delenv("OPENBLAS_L2_SIZE", raising=False)
    command.main()
    assert "benchmarks.build" not in asked
    assert asked[0] == "benchmarks.kernels"
    printed = capsys.readouterr().out
    assert "a table" in printed
    assert "load before" in printed
    record = json.loads(file.read_text("utf-8"))
    assert record["sections"]["kernels"] == {"a table": [{"quick": True, "rounds": None}]}
    monkeypatch.setattr(sys, "argv", ["benchmarks", "kernel"])
    with pytest.raises(SystemExit):
        command.main()


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("no snapshot", set()),
        ("no snapshot, numpy trimmed", {runtime.NUMPY}),
        ("snapshot not packed", {"snapshot.packed", "start.js"}),
        ("files in sequence", {"start.js"}),
        ("code not cached", {"start.js"}),
    ],
)
def test_an_option_of_the_start_changes_what_it_names(site, tmp_path, name, changed):
    """And its manifest is true: else the page would start another way, and be timed so."""
    options.copy_site(tmp_path, options.OPTIONS[name])
    folder = next((tmp_path / "_runtime").iterdir())
    own = {path.name for path in folder.iterdir() if not path.is_symlink()}
    assert own == {"manifest.js", *changed}
    text = (folder / "manifest.js").read_text("utf-8")
    assert ('"snapshot": null' in text) == name.startswith("no snapshot")
    files = json.loads(text.partition("export const FILES = ")[2].rstrip().rstrip(";"))
    assert all(runtime.describe(folder / file) == said for file, said in files.items())
    assert options.NEVER.search("numpy/_core/tests/test_api.py")
    assert not options.NEVER.search("numpy/_core/numeric.py")
