"""How threads share a call."""

import gc
import threading
import weakref

import numpy as np
import pytest

from worked_examples import sharing


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No helper is there yet: one of an earlier test could take a task in another's place."""
    monkeypatch.setattr(sharing, "_helpers", [])
    monkeypatch.setattr(sharing, "_tasks", sharing.SimpleQueue())


def test_every_thread_has_a_part():
    all_three = threading.Barrier(3, timeout=30)
    names = []

    def work():
        all_three.wait()  # none passes alone
        names.append(threading.current_thread())

    for _ in range(3):
        sharing.together(work, 3)
    assert len(set(names)) == 3  # the same again
    assert names.count(threading.current_thread()) == 3


@pytest.mark.parametrize("threads", [1, 0])
def test_one_thread_is_this_one(threads):
    names = []
    sharing.together(lambda: names.append(threading.current_thread()), threads)
    assert names == [threading.current_thread()]


def test_who_has_not_begun_does_not_begin_any_more(monkeypatch):
    """A helper may be busy, as with the call that a signal's handler interrupts."""
    monkeypatch.setattr(sharing, "_tasks", waiting := sharing.SimpleQueue())
    monkeypatch.setattr(sharing, "_helpers", [object()])  # which never looks
    done = []
    sharing.together(lambda: done.append(1), 2)
    assert done == [1]
    waiting.get().run()
    assert done == [1]


def test_without_threads_the_caller_does_it_all(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done = []
    sharing.together(lambda: done.append(1), 4)
    assert done == [1]
    assert sharing._helpers == []


@pytest.mark.parametrize("where", ["in the caller", "in a helper", "in both"])
def test_an_error_is_raised_when_all_have_ended(where):
    caller, both, ended = threading.current_thread(), threading.Barrier(2, timeout=30), []

    def work():
        both.wait()
        own = threading.current_thread() is caller
        try:
            if where in ("in both", "in the caller" if own else "in a helper"):
                raise MemoryError("the caller's" if own else "a helper's")
        finally:
            ended.append(own)

    with pytest.raises(MemoryError) as found:
        sharing.together(work, 2)
    assert sorted(ended) == [False, True]
    assert str(found.value) == ("a helper's" if where == "in a helper" else "the caller's")
    sharing.together(both.wait, 2)  # the helper goes on


@pytest.mark.parametrize("where", ["in the caller", "in a helper"])
def test_an_error_leaves_nothing_for_the_garbage_collector(where):
    caller, both = threading.current_thread(), threading.Barrier(2, timeout=30)

    class Held:
        pass

    def fail():
        held = Held()  # what a frame knows, as a call's arrays
        seen.append(weakref.ref(held))
        both.wait()
        if (threading.current_thread() is caller) == (where == "in the caller"):
            raise MemoryError

    seen = []
    gc.collect()
    gc.disable()
    try:
        try:
            sharing.together(fail, 2)
        except MemoryError:
            seen.append(lambda: None)  # it was raised
        sharing.together(both.wait, 2)  # the helper has gone on
        assert [held() for held in seen] == [None, None, None]
    finally:
        gc.enable()


def test_a_helper_does_not_keep_the_process():
    sharing.together(lambda: None, 2)
    assert all(helper.daemon for helper in sharing._helpers)


# ----------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 3, 48, 10000])
def test_memory_starts_on_a_line_of_the_cache(size, dtype):
    for _ in range(4):
        array = sharing.on_a_line(size, np.dtype(dtype))
        assert array.ctypes.data % 64 == 0
        assert array.shape == (size,)


def test_a_thread_keeps_its_memory_but_not_what_is_large(monkeypatch):
    monkeypatch.setattr(sharing, "_held", sharing._Held())
    monkeypatch.setattr(sharing, "KEPT", 4000)
    float32 = np.dtype(np.float32)

    def ask(name="tile", shape=(5, 2), dtype=float32):
        with sharing.part_of_a_call():
            return sharing.space(name, shape, dtype)

    one = ask(shape=(10, 20))
    assert np.shares_memory(ask(), one)
    assert not np.shares_memory(ask("other"), one)
    assert not np.shares_memory(ask(dtype=np.dtype(np.float64)), one)
    larger = ask(shape=(10, 90))
    assert np.shares_memory(ask(), larger)
    with sharing.part_of_a_call():
        huge = sharing.space("tile", (10, 900), float32)
        assert np.shares_memory(sharing.space("tile", (5, 2), float32), huge)  # until it ends
        inner = ask()  # as a signal's handler would
        assert not np.shares_memory(inner, huge)
        assert np.shares_memory(sharing.space("tile", (5, 2), float32), huge)
    assert not np.shares_memory(ask(), huge)
    there = []
    thread = threading.Thread(target=lambda: there.append(ask()))
    thread.start()
    thread.join()
    assert not np.shares_memory(there[0], ask())


def test_a_helper_lets_go_of_what_is_large_when_its_part_ends(monkeypatch):
    monkeypatch.setattr(sharing, "KEPT", 4000)
    both = threading.Barrier(2, timeout=30)
    sizes = []

    def work():
        both.wait()  # each of two threads has a part
        sizes.append(sharing.space("large", (2000,), np.dtype(np.float32)).nbytes)

    def look():
        both.wait()
        sizes.append([array.nbytes for array in sharing._held.by_name.values()])

    with sharing.part_of_a_call():
        sharing.together(work, 2)
        sharing.together(look, 2)
    assert sizes[:2] == [8000, 8000]
    assert sum(8000 in kept for kept in sizes[2:]) == 1  # the caller's call has not ended
