"""The theorem and the lemma, measured along real runs.

The theorem: E[D⁺] ≤ (1 − θ) D for the potential D = (1/n) Σ a_i (α_i − α_i*)² + g ‖w − w*‖² and θ ≤ Θ(κ, p). Two checks:

- exactly, at many points of a run: E[D⁺] is summed over all n choices of the coordinate, no sampling involved;
- over whole runs: D_T / Π(1 − θ_t) is a supermartingale, so its mean over seeds is at most D_0.

The lemma: p* maximises Θ(κ, ·). At p* the ratio c_i |κ_i| / p_i is the same for all rows (the KKT conditions), and no other
p tried has a larger Θ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._checks import Array
from .._optional import require
from .._threads import one_blas_thread
from .._version import __version__
from ..io import written_in_place
from ..problem import Problem
from ..sampling import optimal_probabilities, theta
from ..sampling.adaptive import lemma_scales, potential_scales, safe_ratios
from ..solvers import solve
from ..solvers.adfsdca import AdfSdca
from ..solvers.dfsdca import DfSdca
from .data import PaperData

_CHECKS_PER_EPOCH = 4
_OTHER_P = 10


def optimum(problem: Problem) -> tuple[Array, Array]:
    """Return (w*, α*), as exactly as floating point allows."""
    w = solve(problem, tol=1e-14, max_epochs=3000, random_state=0).w
    return w, -problem.residuals(w, np.zeros(problem.n))


class Potential:
    """D(α, w) of the theorem and the exact expectation of its next value."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.w_star, self.alpha_star = optimum(problem)
        self.a, _ = lemma_scales(problem)
        _, factor, _ = potential_scales(problem)
        self.g = factor * problem.n * problem.lam**2

    def __call__(self, alpha: Array, w: Array) -> float:
        """Return D(α, w)."""
        off = w - self.w_star
        return float(np.mean(self.a * (alpha - self.alpha_star) ** 2) + self.g * (off @ off))

    def expected_next(self, alpha: Array, w: Array, kappa: Array, p: Array, step: float) -> float:
        """Return E[D⁺] over the choice of i ~ p, for α_i −= (θ/p_i) κ_i with θ = `step`."""
        n, lam = self.problem.n, self.problem.lam
        chosen = p > 0
        ratio = np.zeros(n)
        ratio[chosen] = step / p[chosen]
        delta = ratio * kappa
        change_a = self.a * (delta**2 - 2.0 * delta * (alpha - self.alpha_star)) / n
        toward = self.problem.margins(w - self.w_star)
        reach = delta / (n * lam)
        change_b = self.g * (reach**2 * self.problem.row_norms_squared - 2.0 * reach * toward)
        return self(alpha, w) + float(p @ (change_a + change_b))


def measure(data: PaperData, loss: str, seed: int, epochs: int, folder: Path) -> Any:
    """Return the checks of one data set, loss and seed at λ = 1/n; stored, and read again the next time."""
    pandas = require("pandas", "report")
    file = folder / f"{data.name}_{loss}_seed{seed}_{epochs}_{data.fingerprint()[:10]}_{__version__}.parquet"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        problem = Problem(data.X, data.y, loss=loss, lam=1.0 / data.X.shape[0])
        potential = Potential(problem)
        with one_blas_thread():
            rows = [*_uniform(problem, potential, seed, epochs), *_adaptive(problem, potential, seed, epochs)]
        frame = pandas.DataFrame(rows)
        for name, value in (("seed", seed), ("loss", loss), ("synthetic", data.synthetic), ("data_label", data.label)):
            frame.insert(0, name, value)
        frame.insert(0, "data", data.name)
        with written_in_place(file) as temporary:
            frame.to_parquet(temporary, index=False)
    return pandas.read_parquet(file)


def _uniform(problem: Problem, potential: Potential, seed: int, epochs: int) -> list[dict[str, Any]]:
    solver = DfSdca(problem, np.random.default_rng(seed))
    solver.start(np.zeros(problem.n), 0.0)
    n = problem.n
    p = np.full(n, 1.0 / n)
    step = solver.ratio / n
    rows = []
    for position, count in _stops(n, epochs):
        solver.visit(count)
        row = _row(problem, potential, solver, p, step, position / n)
        rows.append({"solver": "dfsdca", "log_bound": position * np.log1p(-step), **row})
    return rows


def _adaptive(problem: Problem, potential: Potential, seed: int, epochs: int) -> list[dict[str, Any]]:
    solver = AdfSdca(problem, np.random.default_rng(seed))
    solver.start(np.zeros(problem.n), 0.0)
    n, log_bound, rows = problem.n, 0.0, []
    for position, count in _stops(n, epochs):
        if (position - count) % n == 0:
            solver.begin_epoch()
        for _ in range(count):
            if solver.weights[-1] > 0:
                log_bound += np.log1p(-min(solver.squares[-1] / solver.weights[-1] ** 2, 1.0 - 1e-16))  # Θ*
            solver.visit(1)
        kappa = problem.residuals(solver.w, solver.alpha)
        p = optimal_probabilities(problem, kappa)
        row = _row(problem, potential, solver, p, theta(problem, kappa, p), position / n)
        rows.append({"solver": "adfsdca", "log_bound": log_bound, **row, **_lemma(problem, kappa, p, seed)})
    return rows


def _stops(n: int, epochs: int) -> list[tuple[int, int]]:
    """Return (position, visits since the stop before), the start included; the last stop of an epoch is its end."""
    marks = sorted(
        {0} | {e * n + (k * n) // _CHECKS_PER_EPOCH for e in range(epochs) for k in range(1, _CHECKS_PER_EPOCH + 1)}
    )
    return [(mark, mark - before) for before, mark in zip([0, *marks[:-1]], marks, strict=True)]


def _row(problem: Problem, potential: Potential, solver: Any, p: Array, step: float, epoch: float) -> dict[str, Any]:
    kappa = problem.residuals(solver.w, solver.alpha)
    now = potential(solver.alpha, solver.w)
    start = potential(np.zeros(problem.n), np.zeros(problem.d))
    after = potential.expected_next(solver.alpha, solver.w, kappa, p, step)
    chosen = p > 0
    return {
        "epoch": epoch,
        "potential": now / start,
        # Below the precision of w* and α* the quotient says nothing.
        "one_step": after / ((1.0 - step) * now) if now > 1e-18 * start else np.nan,
        "theta": step,
        "theta_uniform": theta(problem, kappa, np.full(problem.n, 1.0 / problem.n)),
        "second_moment": float(np.sum(kappa[chosen] ** 2 / p[chosen])) / problem.n**2,
        "suboptimality": problem.primal(solver.w) - problem.primal(potential.w_star),
    }


def _lemma(problem: Problem, kappa: Array, p: Array, seed: int) -> dict[str, float]:
    """Return the KKT residual of p* and the largest Θ(κ, p)/Θ(κ, p*) over other p."""
    _, c = lemma_scales(problem)
    support = p > 0
    if support.sum() < 2:
        return {"kkt": np.nan, "best_other": np.nan}
    quotient = c[support] * np.abs(kappa[support]) / p[support]
    rng = np.random.default_rng(seed)
    others = [np.full(problem.n, 1.0 / problem.n), 1.0 / safe_ratios(problem)]
    others += [p * np.exp(size * rng.normal(size=p.size)) for size in np.logspace(-3, 0.5, _OTHER_P)]
    best = theta(problem, kappa, p)
    return {
        "kkt": float(quotient.max() / quotient.min() - 1.0),
        "best_other": max(theta(problem, kappa, other / other.sum()) for other in others) / best,
    }
