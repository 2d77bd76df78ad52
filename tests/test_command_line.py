"""The command line, started as a reader starts it: by its path, from anywhere."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "code" / "worked_examples" / "attention.py"
FLAGS = (
    "--bottleneck",
    "--one",
    "--select",
    "--scale",
    "--mask",
    "--heads",
    "--params",
    "--positions",
    "--cost",
    "--series",
)


def run(*flags, cwd=None, status=0):
    # -I: no environment, no site of the user's, no current folder on the path.
    done = subprocess.run(
        [sys.executable, "-I", str(SCRIPT), *flags], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture(scope="module")
def everything():
    return run().stdout


@pytest.mark.parametrize(
    ("flag", "lines"),
    [
        (
            "--bottleneck",
            [
                "recurrence                63                64             0",
                "self-attention             1                 1          4096",
            ],
        ),
        (
            "--one",
            [
                "is    0.3200  0.1848  0.3369",
                "the   0.1300  0.0751  0.3019",
                "best  0.4400  0.2540  0.3611",
                "0.4118    0.4514    0.5816   1.5811         1.5850",
            ],
        ),
        ("--select", ["0.9848", "0.9807", "0.3333  0.3333  0.3333   1.5850"]),
        (
            "--scale",
            ["1.7560", "3.5684", "7.2019", "14.4827", "28.5907", "1.7771", "0.9743", "0.5058",
             "0.2512", "0.1333", "2.4764", "2.4970", "2.4844", "2.4555", "2.4894", "0.5492",
             "0.9611", "0.3591", "0.3379", "0.0549", "0.3597", "0.3654"],
        ),
        ("--mask", ["0.4551", "0.6225", "0.7240", "1.0000"]),
        (
            "--heads",
            [
                "0.3600  15.0800  2.5600  2.4000",
                "best single head  1.4891  0.4683  1.5644",
                "    8   64     1048576     2147483648        32.0000",
                "cross, L_k = 4096      1048576     6979321856       128.0000",
            ],
        ),
        (
            "--params",
            ["1048576  0.3326", "2097152  0.6653", "3152384  1.0000", "25600000", "18874368",
             "18914304"],
        ),
        (
            "--positions",
            [
                "1     0.8415     0.5403     0.0100     1.0000",
                "1  0.8838  0.9662   0.9731",
                "512                  43        0.5264",
                "0  0.2500  0.2500  0.5000",
                "5          0.1250  0.0156",
            ],
        ),
        (
            "--cost",
            [
                "scores               536870912  16.0000",
                "projections         1073741824   4.0000",
                "the projections        1024",
                " 8192   67108864        256.0000  12288.0000     192.0000",
            ],
        ),
        (
            "--series",
            [
                "7  0.1106  0.0545  0.1106  0.2243  0.1106  0.0545  0.1106  0.2243",
                "period 7          0.1752   0.1033  1.6961",
                "trend and season  0.0171   0.1033  0.1656",
            ],
        ),
    ],
)  # fmt: skip
def test_each_flag_prints_its_table(flag, lines, everything, tmp_path):
    text = run(flag, cwd=tmp_path).stdout
    for line in lines:
        assert line in text
    assert text.strip() in everything
    assert run(flag, cwd=tmp_path).stdout == text  # stable from run to run


def test_flags_combine_in_the_order_of_the_book():
    text = run("--select", "--one").stdout
    assert text.index("One query") < text.index("Three queries")


def test_json_holds_the_numbers_unrounded():
    tables = json.loads(run("--json").stdout)
    assert [f"--{name}" for name in tables] == list(FLAGS)
    weight = tables["one"][0]["rows"][0]["weight"]
    assert weight == pytest.approx(0.3369, abs=5e-5)
    assert weight != round(weight, 4)


def test_an_unknown_flag_is_refused_by_name():
    done = run("--everything", status=2)
    assert "unrecognized arguments: --everything" in done.stderr
    assert "usage:" in done.stderr


def test_help_names_every_flag():
    text = run("--help").stdout
    assert all(flag in text for flag in (*FLAGS, "--json"))


def test_a_reader_who_closes_the_pipe_sees_no_traceback():
    done = subprocess.run(
        f'"{sys.executable}" "{SCRIPT}" --scale --json | head -c 10',
        shell=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == ""


def test_numpy_is_all_that_it_loads():
    code = (
        "import sys, runpy; sys.argv = ['attention.py']\n"
        f"try: runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'matplotlib', 'pandas', 'torch', 'ipywidgets'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_runs_through_a_link(tmp_path):
    link = tmp_path / "attention.py"
    link.symlink_to(SCRIPT)
    # -S: numpy's folder is on the path, and no book that may be installed beside it by a link.
    start = (
        f"import runpy, sys; sys.path.append({str(Path(np.__file__).parents[1])!r}); "
        f"sys.argv = [{str(link)!r}, '--one']; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "0.3369" in done.stdout
