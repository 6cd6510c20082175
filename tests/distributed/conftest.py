"""One small cluster for all tests: two workers in this process, with everything between them sent over TCP."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tcp://",
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as connected,
    ):
        yield connected
