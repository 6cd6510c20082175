"""The limit on BLAS threads is lifted when the last of several overlapping contexts ends, whatever their order."""

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

from dualfree import _threads
from dualfree._threads import one_blas_thread


def blas_threads():
    return {info["num_threads"] for info in ThreadpoolController().info() if info["user_api"] == "blas"}


def test_overlapping_contexts():
    np.dot(np.ones(2), np.ones(2))
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert blas_threads() == {1}
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


class Library:
    """A BLAS that hears of a change in some threads only."""

    def __init__(self):
        self.count, self.deaf, self.changes = 4, False, 0

    def get_num_threads(self):
        return self.count

    def set_num_threads(self, count):
        self.changes += 1
        if not self.deaf:
            self.count = count


def test_a_limit_that_could_not_be_lifted_is_lifted_later(monkeypatch):
    library = Library()
    monkeypatch.setattr(_threads, "_libraries", lambda: [library])
    with one_blas_thread():
        assert library.count == 1
        library.deaf = True  # the last one out is not in the main thread
    assert library.count == 1
    library.deaf = False
    with one_blas_thread():
        assert library.count == 1
    assert library.count == 4
    assert not _threads._owed


def test_nothing_is_changed_where_nothing_has_to_change(monkeypatch):
    library = Library()
    library.count = 1
    monkeypatch.setattr(_threads, "_libraries", lambda: [library])
    with one_blas_thread(), one_blas_thread():
        assert library.count == 1
    assert library.changes == 0
