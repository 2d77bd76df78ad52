"""Attention over a ring of processes: equal to one process, there and back, and never a hang.

`ring_processes.py` starts the ranks; each test reads what they wrote down.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from worked_examples import costs
from worked_examples.ring import (
    ORDERS,
    deal,
    gather_sequence,
    held_positions,
    pairs_of_ranks,
    ring_attention,
)
from worked_examples.ring.__main__ import main
from worked_examples.ring.launch import launch

ROOT = Path(__file__).resolve().parents[1]
PROCESSES = ROOT / "tests" / "ring_processes.py"
# One thread a rank, as torchrun has it; and loopback even where a host's name leads elsewhere.
ENVIRONMENT = {
    **os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "code"),
    "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
}  # fmt: skip
TYPES = {"torch.float64": 1e-12, "torch.float32": 2e-6}
NAMES = ("output", "dQ", "dK", "dV")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """Play every scenario once, and give what rank r of n wrote, and how it ended."""
    folder = tmp_path_factory.mktemp("ring")
    scenarios = [
        "equal:2", "equal:4", "odd:2", "odd:4", "memory:1", "memory:2", "memory:4",
        "travel:2", "travel:4",
        "killed:2", "killed:4", "killed-backward:4", "still:2", "still:4",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(PROCESSES), str(folder), *scenarios],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    statuses = json.loads((folder / "statuses.json").read_text())

    def look_up(name, n):
        files = [folder / f"{name}-{n}-{rank}.json" for rank in range(n)]
        told = [json.loads(file.read_text()) if file.is_file() else None for file in files]
        return told, statuses[f"{name}:{n}"], done.stderr

    return look_up


def finished(ranks, name, n):
    told, statuses, errors = ranks(name, n)
    assert statuses == [0] * n, errors
    return told


# ---------------------------------------------------------------------------- who holds what


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("L", "n"), [(1, 1), (7, 1), (2, 2), (8, 4), (9, 4), (13, 5), (100, 7)])
def test_every_position_is_held_once_and_shares_differ_by_little(order, L, n):
    held = [held_positions(L, rank, n, order) for rank in range(n)]
    assert sorted(torch.cat(held).tolist()) == list(range(L))
    for rows in held:
        assert rows.tolist() == sorted(rows.tolist())
        assert rows.dtype == torch.int64
    lengths = [len(rows) for rows in held]
    assert min(lengths) >= 1
    assert max(lengths) - min(lengths) <= (2 if order == "zigzag" else 1)


@pytest.mark.parametrize(
    ("order", "pairs"),
    [
        ("contiguous", [10, 26, 42, 58]), ("striped", [28, 32, 36, 40]), ("zigzag", [34] * 4),
    ],
)  # fmt: skip
def test_pairs_of_ranks(order, pairs):
    """Counted from the mask itself."""
    mask = torch.ones(16, 16).tril()
    assert pairs_of_ranks(16, 4, order) == pairs
    assert [int(mask[held_positions(16, r, 4, order)].sum()) for r in range(4)] == pairs


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((3, 0, 4), "4 ranks for 3 positions"),
        ((0, 0, 1), "at least 1; got 0"),
        ((4, 2, 2), "from 0 to 1; got 2"),
        ((4, 0, 2, "sorted"), "contiguous, striped, zigzag; got 'sorted'"),
    ],
)
def test_what_cannot_be_held_is_named(arguments, shown):
    with pytest.raises(ValueError, match=shown):
        held_positions(*arguments)


def test_without_a_group_one_rank_holds_everything():
    X = torch.arange(10.0).reshape(5, 2)
    for order in ORDERS:
        assert torch.equal(deal(X, order=order), X[held_positions(5, 0, 1, order)])
        assert torch.equal(gather_sequence(deal(X, order=order), order=order), X)


# -------------------------------------------------------------------------------- equality


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("causal", [False, True])
def test_output_and_gradients_are_those_of_one_process(ranks, n, dtype, order, causal):
    wanted = {"dtype": dtype, "order": order, "causal": causal}
    for rank, rows in enumerate(finished(ranks, "equal", n)):
        rows = [row for row in rows if all(row[name] == x for name, x in wanted.items())]
        assert len(rows) == 4  # two lengths; small tiles, and leading axes
        for row in rows:
            for name, apart in zip(NAMES, row["apart"], strict=True):
                assert apart <= TYPES[dtype], f"rank {rank}, {name}: {row}"


@pytest.mark.parametrize("n", [2, 4])
def test_rows_may_be_cut_anywhere(ranks, n):
    """One rank has a single row; of four, the last has none."""
    for told in finished(ranks, "odd", n):
        assert max(told["any cut"]) <= 1e-12
        assert told["L_q != L_k"] <= 1e-12
        assert told["gathered"] == [True] * len(ORDERS)


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_nothing_and_nothing_to_see_gives_zeros(ranks, n, causal):
    for told in finished(ranks, "odd", n):
        assert max(told[f"padding, causal {causal}"]) <= 1e-12  # NaN there would fail as well
        assert told[f"nothing to see, causal {causal}"] == 0


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("size", "bound"), [(20, 1e-5), (600, 1e-9)])
def test_large_scores(ranks, n, order, size, bound):
    for told in finished(ranks, "odd", n):
        assert max(told[f"large scores {size} {order}"]) <= bound


@pytest.mark.parametrize("n", [2, 4])
def test_half_precision_is_added_up_in_single(ranks, n):
    for told in finished(ranks, "odd", n):
        assert max(told["bfloat16"]) <= 2**-7  # its spacing at 1


@pytest.mark.parametrize("n", [2, 4])
def test_some_of_the_ranks_can_be_a_ring(ranks, n):
    for told in finished(ranks, "odd", n)[-2:]:
        assert told["some ranks"] <= 1e-12


REFUSED = {
    "widths": "rank {last}: Q (..., m, d_k)",
    "dtype": "agree on dtype; rank 0 has torch.float32, rank {last} has torch.float64",
    "leading": "agree on leading axes; rank 0 has (2,), rank {last} has (1,)",
    "numbers": "rank {last}: Q, K and V must be (..., L, d) tensors of floats; got (2, 4, 3) int64",
    "causal": "agree on causal; rank 0 has False, rank {last} has True",
    "order": "rank {last}: order must be one of contiguous, striped, zigzag; got 'mixed'",
    "lengths": "it holds 4",
    "mask": "agree on a mask of padding; rank 0 has False, rank {last} has True",
    "mask type": "real must be a tensor of bool; got (4,) float32",
    "rows": "rows must be a whole number of at least 1; got 0",
    "no keys": "there must be a key; all ranks have none",
}


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("case", REFUSED)
def test_what_one_rank_cannot_take_all_refuse(ranks, n, case):
    for told in finished(ranks, "odd", n):
        assert REFUSED[case].format(last=n - 1) in told["refused"][case]


# ------------------------------------------------------------------------------- one process


@pytest.mark.parametrize("causal", [False, True])
def test_a_ring_of_one_is_the_library(causal):
    draw = torch.Generator().manual_seed(0)
    ours = [torch.randn(2, 3, 37, 5, generator=draw, dtype=torch.float64, requires_grad=True)
            for _ in range(3)]  # fmt: skip
    library = [X.detach().clone().requires_grad_() for X in ours]
    one = ring_attention(*ours, causal=causal, scale=0.3, rows=8, columns=10)
    other = functional.scaled_dot_product_attention(*library, is_causal=causal, scale=0.3)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-13)
    for result in (one, other):
        (result**2).sum().backward()
    for X, Y in zip(ours, library, strict=True):
        torch.testing.assert_close(X.grad, Y.grad, rtol=0, atol=1e-12)


def test_gradients_by_differences():
    draw = torch.Generator().manual_seed(1)
    X = [torch.randn(1, 5, 2, generator=draw, dtype=torch.float64, requires_grad=True)
         for _ in range(3)]  # fmt: skip
    real = torch.tensor([True, True, False, True, True])
    assert torch.autograd.gradcheck(
        lambda Q, K, V: ring_attention(Q, K, V, real=real, causal=True, rows=2, columns=2), X
    )


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_above_zero(timeout):
    with pytest.raises(ValueError, match="above 0"):
        ring_attention(*[torch.ones(2, 2)] * 3, timeout=timeout)


@pytest.mark.parametrize("n", [2, 4])
def test_the_next_block_travels_while_one_is_computed(ranks, n):
    """It lies there before the work on the one before has ended, and before anyone waits for it."""
    for told in finished(ranks, "travel", n):
        assert told == [{"there": True, "waits": step} for step in range(n - 1)]


# ------------------------------------------------------------------------------------ memory


@pytest.mark.parametrize("backward", [False, True])
def test_memory_of_a_rank_falls_as_ranks_grow(ranks, backward):
    """Bytes of all tensors alive at once, counted; what does not grow with L is subtracted."""
    taken = {}
    for n in (1, 2, 4):
        told = finished(ranks, "memory", n)
        what = "both" if backward else "forward"
        grown = [row["512"][what] - row["256"][what] for row in told]
        formula = [costs.ring_bytes(L, n, 16, backward=backward) for L in (256, 512)]
        assert max(grown) == pytest.approx(formula[1] - formula[0], rel=0.1)
        taken[n] = max(row["512"][what] for row in told)
        assert taken[n] < 512 * 512 * 4 / n  # its scores
    assert taken[4] < 0.67 * taken[1]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_account(ranks, n):
    """Keys and values go n - 1 hops on each of two trips, their gradients n on the second."""
    for rank, told in enumerate(finished(ranks, "memory", n)):
        for L in (256, 512):
            row = told[str(L)]
            block = L // n * 2 * 16 * 4
            hops = 2 * (n - 1) + (n if n > 1 else 0)
            assert row["account"]["sent_bytes"] == hops * block
            sets = min(2, n - 1) + (3 if n > 1 else 0)
            assert row["account"]["buffer_bytes"] == sets * block
            # Tiles that the mask cuts through are scored whole.
            assert row["pairs"] <= row["account"]["pairs"] <= row["pairs"] + 32 * L
            assert row["pairs"] == pairs_of_ranks(L, n)[rank]


# ------------------------------------------------------------------------------- a lost rank


@pytest.mark.parametrize(("name", "n"), [("killed", 2), ("killed", 4), ("killed-backward", 4)])
def test_a_killed_rank_ends_the_others_with_its_name(ranks, name, n):
    told, statuses, errors = ranks(name, n)
    assert statuses == [0] * (n - 1) + [-9], errors  # the others caught their error, and ended
    assert told[-1] is None
    for rank, row in enumerate(told[:-1]):
        assert row["kind"] == "LostRankError"
        assert row["said"].startswith(f"rank {rank} of {n} lost rank ")
    # Its neighbours name it; who is further away hears nothing from a neighbour that gave up.
    for neighbour in {0, n - 2}:
        assert f"lost rank {n - 1} while" in told[neighbour]["said"]
        if name == "killed":
            assert "keys and values, step" in told[neighbour]["said"]


@pytest.mark.parametrize("n", [2, 4])
def test_a_rank_that_stands_still_does_not_hold_the_others(ranks, n):
    told, statuses, errors = ranks("still", n)
    assert statuses == [0] * (n - 1) + [None], errors  # it had to be ended from outside
    for rank, row in enumerate(told[:-1]):
        assert row["kind"] == "LostRankError"
        assert row["said"].startswith(f"rank {rank} of {n} lost rank ")
    assert f"lost rank {n - 1} while" in told[0]["said"]


# ------------------------------------------------------------------------------ command line


def test_the_command_as_its_users_start_it():
    report = launch(
        2, "--length", "301", "--heads", "2", "--width", "8", "--causal", "--dtype", "float64",
        "--backward", "--check", "--device", "cpu", timeout=120,
    )  # fmt: skip
    assert [row["positions"] for row in report["ranks"]] == [151, 150]
    assert [row["rank"] for row in report["ranks"]] == [0, 1]
    assert {row["device"] for row in report["ranks"]} == {"cpu"}
    for row, pairs in zip(report["ranks"], pairs_of_ranks(301, 2), strict=True):
        assert pairs <= row["pairs"] <= 301 * row["positions"]
        assert row["computing_seconds"] > 0
        assert row["waiting_seconds"] > 0
    assert report["total"]["pairs"] == sum(row["pairs"] for row in report["ranks"])
    assert report["total"]["apart"] < 1e-12
    assert report["causal"] is True
    assert report["order"] == "striped"


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_the_command_measures_the_memory_of_a_rank():
    """Its rows of Q, K, V and the output, what arrives, and the tiles that it works on."""
    report = launch(2, "--length", "32768", "--device", "cpu", timeout=120)
    needed = costs.ring_bytes(32768, 2, 64)
    for row in report["ranks"]:
        assert 0.8 * needed < row["peak_bytes"] < 3 * needed
    assert report["total"]["peak_bytes"] == max(row["peak_bytes"] for row in report["ranks"])


def test_a_command_that_fails_says_what_it_said():
    with pytest.raises(RuntimeError, match="invalid choice: 'sorted'"):
        launch(1, "--order", "sorted", timeout=120)


def test_the_command_without_torchrun_is_a_ring_of_one(capsys, monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert main(["--length", "40", "--width", "4", "--check", "--device", "cpu"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "40 positions, 1 heads of width 4, float32, striped"
    assert said[2].split()[:3] == ["0", "40", "1600"]
    assert float(said[-1].removeprefix("apart from one process by ")) < 1e-6


@pytest.mark.parametrize(
    ("flags", "environment", "said"),
    [
        (["--length", "0"], {}, "at least 1; got 0"),
        (["--heads", "-1"], {}, "at least 1; got -1"),
        (["--length", "many"], {}, "invalid .* value: 'many'"),
        (["--order", "sorted"], {}, "invalid choice: 'sorted'"),
        (["--timeout", "0"], {}, "above 0; got 0"),
        (["--length", "3"], {"RANK": "0", "WORLD_SIZE": "4"}, "4 ranks for --length 3"),
        (["--length", "3"], {"RANK": "1", "WORLD_SIZE": "4"}, r"\A\Z"),  # said once, by rank 0
        (["--length", "0"], {"RANK": "1", "WORLD_SIZE": "4"}, r"\A\Z"),
    ],
)
def test_arguments_that_cannot_be(flags, environment, said, capsys, monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as end:
        main(flags)
    assert end.value.code == 2
    assert re.search(said, capsys.readouterr().err)
