"""How threads share a call."""

import threading

import pytest

from worked_examples import sharing


@pytest.fixture
def fresh(monkeypatch):
    """No helper is there yet."""
    monkeypatch.setattr(sharing, "_helpers", [])
    monkeypatch.setattr(sharing, "_tasks", sharing.SimpleQueue())


def test_every_thread_has_a_part():
    both = threading.Barrier(3, timeout=30)
    names = []

    def work():
        both.wait()  # none passes alone
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


def test_without_threads_the_caller_does_it_all(monkeypatch, fresh):
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


def test_a_helper_does_not_keep_the_process():
    sharing.together(lambda: None, 2)
    assert all(helper.daemon for helper in sharing._helpers)
