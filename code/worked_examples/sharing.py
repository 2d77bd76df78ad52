"""How threads share a call of `fast_attention`: their work, their memory, numpy's own threads.

A task costs its caller some 40 microseconds, most of them to wake who sleeps. With an executor's
futures it is some 60, and the other thread begins and ends later: in all a twentieth of the time of
attention over a thousand positions.
"""

import math
import os
import threading
from contextlib import contextmanager, suppress
from functools import cache
from queue import SimpleQueue

import numpy as np

__all__ = [
    "default_threads", "on_a_line", "one_blas_thread", "part_of_a_call", "space", "together",
]  # fmt: skip

LINE = 64  # bytes; a vector of AVX-512, and a line of nearly every processor's cache
KEPT = 2**23  # bytes; a thread keeps no array for its next call that is larger


# ------------------------------------------------------------------------------------- work


class _Task:
    """What another thread is to do, once, unless it is taken back before it has begun."""

    def __init__(self, function):
        self.function, self.error = function, None
        self.begun, self.running = threading.Lock(), threading.Lock()
        self.running.acquire()

    def run(self):
        if self.begun.acquire(blocking=False):
            function, self.function = self.function, None
            try:
                with part_of_a_call():
                    function()
            except BaseException as error:  # the caller's to raise
                self.error = error
            finally:
                del function  # before the caller goes on: it may know much
                self.running.release()
                del self  # or its error would know it, by this frame, and both stay for long

    def end(self):
        """Take it back, or wait for its end; give its error, or None."""
        if not self.begun.acquire(blocking=False):
            self.running.acquire()
        return self.error


_tasks, _helpers = SimpleQueue(), []


def _help(tasks):
    while True:
        tasks.get().run()


def _offered(function, count):
    tasks = [_Task(function) for _ in range(count)]
    for task in tasks:
        _tasks.put(task)
    return tasks


def together(function, threads):
    """Call a function in up to so many threads at a time, this one among them, and wait for all.

    The others stay and wait for the next call: a thread takes as long to start as attention over
    256 positions. One that has not begun when this one is through does not begin any more.

    Parameters
    ----------
    function : callable
        Takes no argument. It shall end soon once it has raised an error in one of the threads.
    threads : int

    Raises
    ------
    BaseException
        What the function raised; this thread's own, if there are several.
    """
    with suppress(RuntimeError):  # while Python ends, or in a browser, no thread starts
        while len(_helpers) < threads - 1:
            helper = threading.Thread(target=_help, args=(_tasks,), name="attention", daemon=True)
            helper.start()
            _helpers.append(helper)
    tasks = _offered(function, min(threads - 1, len(_helpers)))
    try:
        function()
    finally:
        errors = [task.end() for task in tasks]
    error = next((error for error in errors if error is not None), None)
    try:
        if error is not None:
            raise error
    finally:
        del error, errors, tasks  # which know the error, as it knows this frame


def default_threads(compiled=None):
    """Give how many threads a call has: one a processor, if numpy's own can be held back.

    Parameters
    ----------
    compiled : Fused, optional
        As in `one_blas_thread`.

    Returns
    -------
    int
    """
    with one_loads:
        if _blas(compiled) is None:
            return 1
    here = getattr(os, "sched_getaffinity", None)
    return len(here(0)) if here else os.cpu_count() or 1


# ---------------------------------------------------------------------- numpy's own threads


@cache
def _blas(compiled=None):
    """Give the libraries of matrix products that threadpoolctl knows, or None without it.

    Finding them takes long; so does its own limit, which looks at each of them again. The compiled
    function's are another library's, which is not there before.
    """
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas").lib_controllers


_limiting = threading.RLock()  # a call within a call goes on
# Compiling, and looking for libraries, each hold a lock of the system's while Python waits for its
# own: two threads that did both at a time could wait for each other for ever.
one_loads = threading.RLock()


@contextmanager
def one_blas_thread(compiled=None):
    """Hold matrix products at one thread each; the setting is one for all, so calls take turns.

    Parameters
    ----------
    compiled : Fused, optional
        The compiled functions, if they are used: their library is held as well.
    """
    with one_loads:
        libraries = _blas(compiled)
    with _limiting:
        before = [(library, library.get_num_threads()) for library in libraries or ()]
        try:
            for library, count in before:
                if count != 1:
                    library.set_num_threads(1)
            yield
        finally:
            for library, count in before:
                if count != 1:
                    library.set_num_threads(count)


# ----------------------------------------------------------------------------------- memory


class _Held(threading.local):
    """A thread's memory by name, kept for its next call: new memory costs a fault a page."""

    def __init__(self):
        self.by_name, self.calls = {}, 0


_held = _Held()


@contextmanager
def part_of_a_call():
    """Lend a thread its memory for its part in a call, and let it pass over floating-point errors.

    A call within a call, as of a signal's handler, has memory of its own.
    """
    before, _held.calls = _held.by_name, _held.calls + 1
    if _held.calls > 1:
        _held.by_name = {}
    try:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            yield
    finally:
        _held.by_name, _held.calls = before, _held.calls - 1
        if not _held.calls:
            for name in [name for name, array in before.items() if array.nbytes > KEPT]:
                del before[name]


def space(name, shape, dtype):
    """Give this thread's memory of a name as an array, whatever it held.

    Parameters
    ----------
    name : str
    shape : tuple of int
    dtype : dtype

    Returns
    -------
    array
        The next of that name and dtype is the same memory, unless it is larger.
    """
    size = math.prod(shape)
    array = _held.by_name.get((name, dtype))
    if array is None or len(array) < size:
        array = _held.by_name[name, dtype] = on_a_line(size, dtype)
    return array[:size].reshape(shape)


def on_a_line(size, dtype):
    """Make an empty array that starts where a line of the processor's cache does.

    Parameters
    ----------
    size : int
    dtype : dtype

    Returns
    -------
    (size,) array
    """
    array = np.empty(size + LINE // dtype.itemsize, dtype=dtype)
    start = -array.ctypes.data % LINE // dtype.itemsize
    return array[start : start + size]


# ------------------------------------------------------------------------------------- forks


def _start_anew():
    """Forget in a forked process what only its parent has: threads, and who holds a lock."""
    global _limiting, one_loads, _tasks
    _limiting, one_loads, _tasks = threading.RLock(), threading.RLock(), SimpleQueue()
    _helpers.clear()
    _held.calls = 0


if hasattr(os, "register_at_fork"):
    # A fork waits for who compiles: the compiler's own lock would stay locked in the child.
    os.register_at_fork(
        before=lambda: one_loads.acquire(),
        after_in_parent=lambda: one_loads.release(),
        after_in_child=_start_anew,
    )
