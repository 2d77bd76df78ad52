"""How fast attention cuts a call."""

import math

import numpy as np
import pytest

from worked_examples import plan

SHAPES = [((1,), 1000, 900), ((1,), 1024, 1024), ((8,), 130, 2500), ((3, 2), 64, 10),
          ((70,), 640, 70), ((1,), 5, 1), ((2, 0), 90, 80), ((3,), 900, 300)]  # fmt: skip


def planned(heads, L_q, L_k, threads, causal, compiled=False, d=4, rows=None):
    return plan.planned.__wrapped__(heads, L_q, L_k, d, d, causal, threads, rows, 2304, compiled)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("heads", "L_q", "L_k"), SHAPES)
def test_blocks_cover_each_query_once_and_fit(
    heads, L_q, L_k, threads, causal, compiled, monkeypatch
):
    """None of them is more than a thread's fair share."""
    monkeypatch.setattr(plan, "TILE", 2**19)
    found = planned(heads, L_q, L_k, threads, causal, compiled)
    counted, d = np.zeros((*heads, L_q), dtype=int), 4
    for turn in found.turns:
        assert len({block.rows for block in turn}) == 1
        for block in turn:
            counted[block.place] += 1
            scores = found.rows * min(found.columns, L_k)
            size = math.prod(block.stack)
            assert counted[block.place].shape[0] == block.stack[0]
            room = scores if compiled else scores + scores // found.part * (d + 1)
            assert size == 1 or size * room <= (plan.SHARED if compiled else 2**19)
            if not found.alone:
                assert size <= max(1, math.ceil(math.prod(heads) * (L_q // found.rows) / threads))
    np.testing.assert_array_equal(counted, 1)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("L_q", "L_k"), [(300, 300), (300, 100), (100, 300), (1, 70)])
def test_a_block_knows_what_its_queries_see(L_q, L_k, causal):
    seen = np.tri(L_q, L_k, L_k - L_q, dtype=bool) if causal else np.ones((L_q, L_k), dtype=bool)
    for turn in planned((1,), L_q, L_k, 2, causal).turns:
        for block in turn:
            rows = seen[block.queries].sum(axis=1)
            assert block.end == rows[-1]
            if causal:
                assert max(block.sees, 0) == rows[0]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize(("heads", "L"), [(1, 1024), (1, 2048), (1, 4096), (8, 1024), (2, 768)])
def test_threads_have_as_much_to_do(heads, L, threads, causal):
    """Also with `causal`, where one block is longer than another: long and short ones pair up."""
    done = [0] * threads
    for turn in planned((heads,), L, L, threads, causal, d=64).turns:
        who = done.index(min(done))  # who is through takes the next
        done[who] += sum(math.prod(block.stack) * block.end for block in turn)
    assert max(done) <= 1.2 * min(done)


def test_the_longest_block_comes_first():
    turns = planned((1,), 16384, 16384, 2, True, d=64).turns
    ends = [turn[0].end for turn in turns]
    assert all(len(turn) == 1 for turn in turns)
    assert ends == sorted(ends, reverse=True)


@pytest.mark.parametrize(
    ("L_q", "heads", "threads", "rows"),
    [(1024, 1, 2, 176), (1024, 1, 16, 64), (1024, 8, 16, 176), (20, 1000, 2, 32), (20, 1, 2, 16),
     (192, 1, 1, 192), (193, 1, 1, 112), (2048, 3, 2, 176), (100, 0, 2, 112)],
)  # fmt: skip
def test_every_thread_has_as_many_compiled_blocks(L_q, heads, threads, rows):
    assert plan._fair(L_q, heads, threads) == rows


@pytest.mark.parametrize(
    ("heads", "causal", "blocks", "turns"),
    [(1, False, [(1, 4)] * 4, [2, 2]), (1, True, [(1, 4)] * 4, [2, 2]),
     (8, False, [(8, 4)] * 4, [1] * 4), (5, False, [(5, 4)] * 4, [1] * 4)],
)  # fmt: skip
def test_small_blocks_share_a_turn(heads, causal, blocks, turns):
    found = planned((heads,), 1024, 1024, 2, causal, d=64).turns
    assert [block.stack for turn in found for block in turn] == blocks
    assert [len(turn) for turn in found] == turns


def test_heads_are_stacked_evenly(monkeypatch):
    monkeypatch.setattr(plan, "TILE", 5 * 64 * (64 + 65))  # room for five heads
    stacks = [b.stack for turn in planned((8,), 64, 64, 1, False, d=64).turns for b in turn]
    assert stacks == [(4, 1), (4, 1)]


def test_a_turn_has_no_more_scores_than_it_may_unless_one_block_has():
    for L_k in (500, 5000, 100_000):
        for turn in planned((1,), 3000, L_k, 2, False, rows=8).turns:
            scores = [math.prod(block.stack) * block.rows * L_k for block in turn]
            assert len(turn) == 1 or sum(scores) <= plan.TURN


@pytest.mark.parametrize(
    ("most", "L_k", "part"), [(128, 1024, 128), (128, 1000, 100), (128, 127, 128), (16, 90, 16)]
)
def test_parts_of_keys_have_no_rest_where_that_can_be(most, L_k, part):
    assert plan._without_rest(most, L_k) == part


@pytest.mark.parametrize(
    ("count", "threads", "most", "sizes"),
    [(4, 2, 4, [2, 2]), (4, 2, 1, [1] * 4), (5, 2, 4, [3, 2]), (1, 2, 4, [1]), (0, 2, 4, []),
     (16, 2, 3, [3, 3, 3, 3, 2, 2])],
)  # fmt: skip
def test_blocks_are_dealt(count, threads, most, sizes):
    turns = plan._dealt(list(range(count)), threads, most)
    assert sorted(map(len, turns), reverse=True) == sizes
    assert sorted(sum(turns, [])) == list(range(count))
