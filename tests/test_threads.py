"""The limit on BLAS threads is lifted when the last of several overlapping contexts ends, whatever their order."""

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

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
