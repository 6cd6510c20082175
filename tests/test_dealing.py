"""Who visits what: every visit is somebody's, rows that are alike stay together, and all threads have about as much to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dualfree as df
from dualfree import team
from dualfree._jit import kernel
from dualfree.solvers import dealing
from dualfree.solvers.adaptive import Adaptive
from dualfree.solvers.dealing import ONE_EACH, Dealing, Visits
from dualfree.solvers.prox_sdca import Permutations
from dualfree.team import Team
from dualfree.workers import Workers

NEIGHBOURS = np.empty(0, dtype=np.uint32)


@kernel
def _own_visits(own: int, plan: Any) -> int:
    return int(dealing.own_visits(own, plan))


def _documents(n: int, d: int, words: int, *, dtype: Any = np.float64) -> scipy.sparse.csr_matrix:
    """Rows of a few words each, with values that make one of them the heaviest."""
    rng = np.random.default_rng(0)
    indices = np.concatenate([np.sort(rng.choice(d, size=words, replace=False)) for _ in range(n)])
    values = rng.uniform(0.1, 1.0, size=n * words) * rng.choice([-1.0, 1.0], size=n * words)
    return scipy.sparse.csr_matrix((values.astype(dtype), indices, words * np.arange(n + 1)), shape=(n, d))


def _team(X: Any, size: int) -> Team:
    """As many threads, however small the data are."""
    shared = Team(df.Problem(X, np.where(np.arange(X.shape[0]) % 3, 1.0, -1.0), loss="logistic", lam=1e-4), 1)
    shared._share(shared.problem, size)
    shared._workers = Workers(size)
    return shared


@pytest.mark.parametrize("run", [0, 1, 4])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_visit_is_dealt_once_and_a_row_has_one_owner(size: int, alike: bool, counted: bool, run: int) -> None:
    rng = np.random.default_rng(0)
    if counted:
        which, counts = np.arange(7, 300, dtype=np.int32), rng.integers(0, 9, size=300).astype(np.int32)
        counts[:7] = 5  # of rows that are not asked for
        expected = np.repeat(which, counts[which])
    else:
        which, counts = rng.integers(300, size=2000).astype(np.int32), ONE_EACH
        expected = np.sort(which)
    dealt = np.full((2, size, expected.size + 16), -1, dtype=np.int32)
    with _team(_documents(300, 50, 5), size) as shared:
        deals = Dealing(shared)
        if alike:
            deals.by_likeness()
            assert deals.groups.size == 300
        for seed in (np.uint64(5), np.uint64(6)):
            owners = deals.owners(Visits(which, counts, expected.size, run), seed)
            plan = (which, counts, run, deals.groups, owners, seed, dealt)
            parts = [dealt[0, k, : _own_visits(k, plan)].copy() for k in range(size)]
            assert np.array_equal(np.sort(np.concatenate(parts)), expected)
            own_rows: list[set[int]] = [set(own.tolist()) for own in parts]
            for k in range(size):
                for other in range(k):
                    assert not own_rows[k] & own_rows[other]
            assert min(len(own) for own in own_rows) > 0
            if not counted and run == 0:  # as they come
                assert all(np.array_equal(own, which[np.isin(which, own)]) for own in parts)


def test_threads_shuffle_their_own_visits() -> None:
    """In another order each time, in runs of neighbours, and not all threads alike."""
    which, dealt = np.arange(4000, dtype=np.uint32), np.empty((2, 2, 4016), dtype=np.uint32)
    found = []
    for seed in (np.uint64(1), np.uint64(2)):
        owners = np.tile(np.array([0, 1], dtype=np.uint16), 200)
        for own in range(2):
            count = _own_visits(own, (which, ONE_EACH, 4, NEIGHBOURS, owners, seed, dealt))
            found.append(dealt[0, own, :count].astype(int))
    for one in found:
        neighbours = np.diff(one) == 1
        assert 0.6 < neighbours.mean() < 0.85  # three of four, less where a block ends
        assert abs(np.corrcoef(one, np.arange(one.size))[0, 1]) < 0.1
    places = [np.argsort(one) for one in found]  # of a thread's first row, second, …
    for k in range(4):
        for other in range(k):
            assert (places[k] == places[other]).mean() < 0.05


@pytest.mark.parametrize("size", [2, 3, 30])
def test_neighbouring_blocks_go_to_different_threads(size: int) -> None:
    """So all threads have as much to do; and which one has which changes from time to time."""
    owners = [
        dealing.deal_neighbours(16 * size * 20, size, np.uint64(seed))[: size * 20].reshape(20, size)
        for seed in range(9)
    ]
    for dealt in owners:
        assert (np.sort(dealt, axis=1) == np.arange(size)).all()
    assert len(np.unique(np.stack(owners).reshape(-1, size)[:, 0])) == size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [2, 3])
def test_rows_with_the_same_heaviest_column_are_in_one_group(size: int, dtype: Any) -> None:
    """As far as they go into one: groups have 64 rows, the last one fewer."""
    X = _documents(1000, 37, 7, dtype=dtype)
    X.data[7 * 500 : 7 * 501] = 0.0  # a row of stored zeros, and one without entries
    X.indptr[902:] -= 7
    X = scipy.sparse.csr_matrix((X.data[:-7], X.indices[:-7], X.indptr), shape=X.shape)
    X.sort_indices()
    with _team(X, size) as shared:
        deals = Dealing(shared)
        deals.by_likeness()
        groups = deals.groups
    assert np.array_equal(np.bincount(groups), [64] * 15 + [40])
    heaviest = np.array([X.indices[row][np.argmax(np.abs(X.data[row]))] if X.indptr[i] < X.indptr[i + 1] else 0
                         for i, row in enumerate(map(slice, X.indptr[:-1], X.indptr[1:]))])  # fmt: skip
    for column in range(37):  # in the order of their columns, one after the other
        inside = groups[heaviest == column]
        if inside.size:
            assert inside.max() - inside.min() <= inside.size // 64 + 1
            assert inside.min() >= groups[heaviest < column].max(initial=0)


def test_groups_are_shared_out_by_what_there_is_to_do() -> None:
    """By visits and entries; which thread has which group changes from time to time, and every pair of groups is together."""
    X = _documents(64 * 40, 500, 9)
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 20, size=X.shape[0]).astype(np.int32)
    with _team(X, 2) as shared:
        deals = Dealing(shared)
        deals.by_likeness()
        visits = Visits(np.arange(X.shape[0], dtype=np.uint32), counts, int(counts.sum()), 4)
        owners = np.stack([deals.owners(visits, np.uint64(seed))[:40] for seed in range(200)])
        again = deals.owners(visits, np.uint64(0))[:40]
    assert np.array_equal(owners[0], again)  # the same seed, the same owners
    loads = np.bincount(deals.groups, weights=counts.astype(float))
    shares = (owners == 0) @ loads / loads.sum()
    assert np.abs(shares - 0.5).max() < 0.03
    assert np.abs(owners.mean(axis=0) - 0.5).max() < 0.15
    together = (owners[:, :, None] == owners[:, None, :]).mean(axis=0)[~np.eye(40, dtype=bool)]
    assert together.min() > 0.3
    assert together.max() < 0.7


def test_dense_rows_and_rows_of_ones_are_dealt_out_as_neighbours() -> None:
    ones = _documents(300, 50, 5)
    ones.data[:] = 1.0
    for X in (ones, np.random.default_rng(0).normal(size=(300, 5))):
        with _team(X, 2) as shared:
            deals = Dealing(shared)
            deals.by_likeness()
            assert deals.groups.size == 0


def test_only_methods_that_take_long_look_for_likeness(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look takes a third of an epoch. The weights stay those of α, and a seed gives the same bits."""
    monkeypatch.setattr(team, "_LEAST_ENTRIES", 1)
    X = _documents(900, 3000, 20)
    found = []
    for _ in range(2):
        problem = df.Problem(X, np.where(np.arange(900) % 3, 1.0, -1.0), loss="squared_hinge", lam=1e-5)
        permutations = Permutations(problem, np.random.default_rng(0))
        with Team(problem, 2) as permutations.team:
            permutations.start(np.zeros(900), 0.0)
            _make_epoch(permutations)
            assert permutations.together is not None
            assert permutations.together.dealing.groups.size == 0
            adaptive = Adaptive(problem, np.random.default_rng(1))
            adaptive.team = permutations.team
            adaptive.take_over(permutations)
            for _ in range(3):
                _make_epoch(adaptive)
            assert permutations.together.dealing.groups.size == 900
        w = problem.weights_of(adaptive.alpha)
        assert np.linalg.norm(w - adaptive.w) <= adaptive.drift
        found.append(w)
    assert np.array_equal(found[0], found[1])


def _make_epoch(steps: Any) -> None:
    steps.begin_epoch()
    steps.visit(steps.problem.n)
    steps.end_epoch()
