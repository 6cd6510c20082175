"""The battery that every loss and every solver passes, for those who write one of their own, too.

    check_loss(MyLoss())         value, derivative, constants, conjugate, dual step, weights, pickling
    check_solver("my-solver")    convergence, certificates, weights, intercepts, seeds, warm starts

Each raises an AssertionError whose sentence says what is wrong and where.
"""

from __future__ import annotations

import math
import pickle
import sys
from typing import Any

import numpy as np
import scipy.sparse
from numba.core.errors import NumbaError

from ._checks import Array
from ._jit import kernel
from .losses import Loss, get_loss
from .losses.calls import (
    loss_curvature,
    loss_derivative,
    loss_dual_bounds,
    loss_dual_step,
    loss_fenchel_young,
    loss_value,
)
from .problem import Problem
from .result import Result
from .solvers import SOLVERS, Solver, solve
from .solvers.driver import Run
from .status import Status

__all__ = ["check_loss", "check_solver"]

_EPS = 2.0**-52
_FAR = 1e4
_RATIOS = (0.0, 1e-6, 1.0, 21.0, 1e6)


def _require(condition: Any, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


# --- losses -----------------------------------------------------------------------------------------------------------


def check_loss(loss: str | Loss) -> None:
    """Check a loss: its functions against each other, its constants, and its behaviour inside the engine.

    - φ' against a numeric derivative of φ; φ'' against one of φ', where it is defined;
    - the smoothness and Lipschitz constants, and convexity, unless the loss is only average-convex;
    - finite values at margins of ±1e4;
    - Fenchel–Young: φ(z) + φ*(−a) + a z ≥ 0, and = 0 at a = −φ'(z), where there is a conjugate;
    - the ends of the dual domain;
    - the exact dual step against a numeric maximiser;
    - sample weights: a row of weight 2 is two rows, a row of weight 0 is none;
    - a pickled copy is the same loss.

    Functions that the loss does not define are not asked for.

    Parameters
    ----------
    loss : str or Loss
        The loss; an instance, or the name of a built-in one.

    Raises
    ------
    AssertionError
        With a sentence that says which property fails, and where.

    Examples
    --------
    >>> import dualfree as df
    >>> from dualfree.testing import check_loss
    >>> check_loss("huber")
    >>> class Wrong(df.Loss):
    ...     name = "wrong"
    ...     smoothness = 1.0
    ...     @staticmethod
    ...     def value(z, y):
    ...         return 0.5 * (z - y) ** 2
    ...     @staticmethod
    ...     def derivative(z, y):
    ...         return 2.0 * (z - y)
    >>> check_loss(Wrong())
    Traceback (most recent call last):
        ...
    AssertionError: Wrong(): derivative(-40, -1.5) is -77, the slope of value there is -38.5.
    """
    table = _LossTable(get_loss(loss))
    table.check_derivative()
    table.check_constants()
    table.check_curvature()
    table.check_far_margins()
    if table.loss.convex:
        if table.has_conjugate:
            table.check_fenchel_young()
            table.check_domain()
        table.check_dual_step()
    _check_weights(table.loss)
    _check_pickle(table.loss)


class _LossTable:
    """A loss, evaluated by the compiled functions that the engine uses."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.smoothness = float(loss.smoothness)
        self.has_conjugate = loss.has("conjugate") or loss.has("fenchel_young")
        if loss.task == "classification":
            self.targets = np.array([-1.0, 1.0])
        else:
            self.targets = np.array([-1.5, 0.0, 0.3, 4.0])
        near = np.array([0.0, 1e-3, 0.4, 0.9, 1.0, 1.1, 2.0, 3.7, 5.0, 12.0, 40.0])
        self.margins = np.unique(np.concatenate([-near, near]))

    def __call__(self, function: str, z: Any, y: float, a: Any = 0.0, q: float = 0.0) -> Array:
        """Evaluate one function for all pairs of z and a (broadcast)."""
        z, a = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(a, dtype=np.float64))
        columns = _PRIMAL if function in _PRIMAL else _DUAL
        out = np.empty((z.size, len(columns)))
        try:
            if columns is _PRIMAL:
                _evaluate_primal(self.loss.compiled, z.ravel(), float(y), out)
            else:
                _evaluate_dual(self.loss.compiled, z.ravel(), float(y), a.ravel(), q, out)
        except NumbaError as error:
            reason = " ".join(str(error).split())[:200]
            raise AssertionError(f"{self.loss!r} cannot be compiled: {reason}") from error
        return out[:, columns.index(function)].reshape(z.shape)

    def _fail(self, bad: Array, sentence: str, *columns: Array) -> None:
        """Raise the sentence, filled with the numbers of the first place that is bad."""
        if bad.any():
            k = int(np.argmax(bad))
            raise AssertionError(f"{self.loss!r}: " + sentence.format(*(f"{column[k]:.6g}" for column in columns)))

    def check_derivative(self) -> None:
        """φ' against a difference quotient; at a kink of φ' or φ the quotient lies between the slopes on either side."""
        for y in self.targets:
            z = self.margins
            h = 1e-5 * (1.0 + np.abs(z))
            ahead, behind = self("value", z + h, y), self("value", z - h, y)
            slope = self("derivative", z, y)
            quotient = (ahead - behind) / (2.0 * h)
            blur = 8.0 * _EPS * (np.abs(ahead) + np.abs(behind)) / h + 1e-9 * np.abs(slope)
            beside = np.stack([self("derivative", z - h, y), slope, self("derivative", z + h, y)])
            bad = ~((quotient >= beside.min(axis=0) - blur) & (quotient <= beside.max(axis=0) + blur))
            sentence = "derivative({}, {}) is {}, the slope of value there is {}."
            self._fail(bad, sentence, z, np.full(z.size, y), slope, quotient)

    def check_constants(self) -> None:
        """|φ'(z) − φ'(z')| ≤ L̃ |z − z'|, |φ'| ≤ lipschitz, and φ' does not decrease."""
        for y in self.targets:
            z = np.sort(np.concatenate([self.margins, np.linspace(-3.0, 3.0, 601)]))
            slope = self("derivative", z, y)
            change, distance = np.diff(slope), np.diff(z)
            noise = 8.0 * _EPS * np.abs(slope[1:])
            at = np.full(distance.size, y)
            if math.isfinite(self.smoothness):
                bad = np.abs(change) > self.smoothness * distance * (1.0 + 1e-9) + noise
                sentence = (
                    f"smoothness is {self.smoothness:g}, but derivative(·, {{}}) changes by {{}} from {{}} to {{}}."
                )
                self._fail(bad, sentence, at, change, z[:-1], z[1:])
            bad = np.abs(slope) > self.loss.lipschitz * (1.0 + 4.0 * _EPS)
            self._fail(bad, "lipschitz is " + f"{self.loss.lipschitz:g}, but derivative({{}}, ·) is {{}}.", z, slope)
            if self.loss.convex:
                sentence = "derivative(·, {}) decreases from {} to {}: not convex. Set convex = False."
                self._fail(change < -noise, sentence, at, z[:-1], z[1:])

    def check_curvature(self) -> None:
        """φ'' between the difference quotients of φ' on either side."""
        if not self.loss.has("curvature") or not math.isfinite(self.smoothness):
            return
        for y in self.targets:
            z = self.margins
            h = 1e-5 * (1.0 + np.abs(z))
            here = self("derivative", z, y)
            behind, ahead = self("derivative", z - h, y), self("derivative", z + h, y)
            quotients = np.stack([(here - behind) / h, (ahead - here) / h])
            curvature = self("curvature", z, y)
            blur = 16.0 * _EPS * np.abs(here) / h + 1e-4 * np.abs(curvature) + 1e-9 * self.smoothness
            low, high = quotients.min(axis=0) - blur, quotients.max(axis=0) + blur
            bad = ~((curvature >= low) & (curvature <= high))
            at = np.full(z.size, y)
            sentence = "curvature({}, {}) is {}, the slope of derivative there is between {} and {}."
            self._fail(bad, sentence, z, at, curvature, low, high)

    def check_far_margins(self) -> None:
        """Nothing overflows or turns into NaN at margins of ±1e4."""
        wanted = ["value", "derivative"] + (["curvature"] if self.loss.has("curvature") else [])
        for y in self.targets:
            z = np.array([-_FAR, _FAR])
            for function in wanted:
                found = self(function, z, y)
                self._fail(~np.isfinite(found), f"{function}({{}}, {{}}) is {{}}.", z, np.full(2, y), found)
            if self.loss.convex:
                a = -self("derivative", z, y)
                step = self("dual_step", z, y, a, 1.0)
                self._fail(~np.isfinite(step), "dual_step({}, {}, {}, 1) is {}.", z, np.full(2, y), a, step)
                if self.has_conjugate:
                    excess = self("fenchel_young", z, y, a)
                    size = np.abs(self("value", z, y)) + np.abs(a * z)
                    bad = ~(np.abs(excess) <= 1e-12 * (1.0 + size))
                    sentence = "φ(z) + φ*(−a) + a z at z = {}, a = −φ'(z) is {}, not 0."
                    self._fail(bad, sentence, z, excess)

    # --- the dual side ----------------------------------------------------------------------------------------------

    def _dual_points(self, y: float) -> Array:
        """Points of the dual domain: its ends, points between, and −φ' at the margins."""
        low, high = self._bounds(y)
        left, right = max(low, -20.0), min(high, 20.0)
        inner = left + (right - left) * np.linspace(0.0, 1.0, 9)
        return np.unique(np.concatenate([inner, -self("derivative", self.margins, y)]))

    def _bounds(self, y: float) -> tuple[float, float]:
        return float(self("low", 0.0, y)), float(self("high", 0.0, y))

    def check_fenchel_young(self) -> None:
        """φ(z) + φ*(−a) + a z ≥ 0, = 0 at a = −φ'(z), and the sum of its parts."""
        for y in self.targets:
            z, a = (grid.ravel() for grid in np.meshgrid(self.margins, self._dual_points(y), indexing="ij"))
            at = np.full(z.size, y)
            total, error = self("fenchel_young", z, y, a), self("fenchel_young_error", z, y, a)
            self._fail(np.isnan(total), "φ(z) + φ*(−a) + a z is not a number at z = {}, y = {}, a = {}.", z, at, a)
            self._fail(total + error < 0.0, "φ(z) + φ*(−a) + a z is negative at z = {}, y = {}, a = {}.", z, at, a)
            touching = -self("derivative", z, y)
            zero = self("fenchel_young", z, y, touching)
            size = 1.0 + np.abs(self("value", z, y)) + np.abs(touching * z)
            sentence = "φ(z) + φ*(−a) + a z at z = {}, y = {} and a = −φ'(z) = {} is {}, not 0."
            self._fail(~(zero <= 1e-12 * size), sentence, z, at, touching, zero)
            if self.loss.has("conjugate"):
                conjugate = self._conjugate(a, y)
                parts = self("value", z, y) + conjugate + a * z
                size = 1.0 + np.abs(self("value", z, y)) + np.abs(conjugate) + np.abs(a * z)
                bad = parts < -1e-12 * size
                self._fail(bad, "value + conjugate + a z is negative at z = {}, y = {}, a = {}: {}.", z, at, a, parts)
                bad = ~(np.abs(parts - total) <= 1e-12 * size)
                sentence = "fenchel_young({}, {}, {}) is {}, but value + conjugate + a z is {}."
                self._fail(bad, sentence, z, at, a, total, parts)

    def _conjugate(self, a: Array, y: float) -> Array:
        kind, params = type(self.loss), self.loss.params
        return np.array([kind.conjugate(float(entry), float(y), *params) for entry in a])  # type: ignore[attr-defined]

    def check_domain(self) -> None:
        """−φ'(z) lies inside dual_bounds, and φ* is finite between its ends."""
        for y in self.targets:
            low, high = self._bounds(y)
            _require(low < high, f"{self.loss!r}: dual_bounds({y:g}) is ({low:g}, {high:g}), an empty interval.")
            z = np.concatenate([self.margins, [-_FAR, _FAR]])
            a = -self("derivative", z, y)
            bad = ~((a >= low) & (a <= high))
            sentence = f"−derivative({{}}, {y:g}) = {{}} lies outside dual_bounds({y:g}) = ({low:g}, {high:g})."
            self._fail(bad, sentence, z, a)
            left, right = max(low, -20.0), min(high, 20.0)
            inside = left + (right - left) * np.linspace(0.01, 0.99, 9)
            found = self("fenchel_young", 0.0, y, inside)
            self._fail(~np.isfinite(found), f"φ*(−a) is not finite at a = {{}}, inside dual_bounds({y:g}).", inside)

    def check_dual_step(self) -> None:
        """The step minimises φ*(−u) + u z + q (u − a)²/2 over u, the dual along one coordinate.

        Equivalently u = −φ'(z + q (u − a)) for a smooth loss.
        """
        for y in self.targets:
            low, high = self._bounds(y)
            for q in _RATIOS:
                z, a = (grid.ravel() for grid in np.meshgrid(self.margins, self._dual_points(y), indexing="ij"))
                at, ratio = np.full(z.size, y), np.full(z.size, q)
                step = self("dual_step", z, y, a, q)
                self._fail(~np.isfinite(step), "dual_step({}, {}, {}, {}) is not finite.", z, at, a, ratio)
                bad = ~((step >= low) & (step <= high))
                sentence = "dual_step({}, {}, {}, {}) is {}, outside dual_bounds."
                self._fail(bad, sentence, z, at, a, ratio, step)
                if self.has_conjugate:
                    self._compare_with_maximiser(z, y, a, q, step)
                if math.isfinite(self.smoothness):
                    new = z + q * (step - a)
                    miss = np.abs(step + self("derivative", new, y))
                    # what rounding of z + q (u − a) does to φ'
                    blur = 64.0 * _EPS * (1.0 + np.abs(z) + q * (np.abs(step) + np.abs(a)) + abs(y))
                    bad = miss > 1e-9 * (1.0 + np.abs(step)) + self.smoothness * blur
                    sentence = "u = dual_step({}, {}, {}, {}) is {}, but −φ'(z + q (u − a)) differs by {}."
                    self._fail(bad, sentence, z, at, a, ratio, step, miss)

    def _compare_with_maximiser(self, z: Array, y: float, a: Array, q: float, step: Array) -> None:
        def objective(u: Array) -> Array:
            return self("fenchel_young", z, y, u) + 0.5 * q * (u - a) ** 2

        low, high = self._bounds(y)
        slope = -self("derivative", z, y)
        left = np.maximum(low, np.minimum(a, slope) - 1.0)  # the step lies between a and −φ'(z)
        right = np.minimum(high, np.maximum(a, slope) + 1.0)
        for _ in range(60):
            third = (right - left) / 3.0
            better = objective(left + third) <= objective(right - third)
            left, right = np.where(better, left, left + third), np.where(better, right - third, right)
        best = objective(0.5 * (left + right))
        found = objective(step)
        scale = 1.0 + np.abs(best) + q * (np.abs(a) + np.abs(step)) * np.abs(step - a)
        sentence = "dual_step({}, {}, {}, {}) gives a dual lower than the best by {}."
        bad = ~(found - best <= 1e-9 * scale)
        self._fail(bad, sentence, z, np.full(z.size, y), a, np.full(z.size, q), found - best)


_PRIMAL = ("value", "derivative", "curvature")
_DUAL = ("low", "high", "dual_step", "fenchel_young", "fenchel_young_error")


@kernel
def _evaluate_primal(loss: Any, z: Any, y: float, out: Any) -> None:
    for i in range(z.size):
        out[i, 0] = loss_value(loss, z[i], y)
        out[i, 1] = loss_derivative(loss, z[i], y)
        out[i, 2] = loss_curvature(loss, z[i], y)


@kernel
def _evaluate_dual(loss: Any, z: Any, y: float, a: Any, q: float, out: Any) -> None:
    for i in range(z.size):
        out[i, 0], out[i, 1] = loss_dual_bounds(loss, y)
        out[i, 2] = loss_dual_step(loss, z[i], y, a[i], q)
        out[i, 3], out[i, 4] = loss_fenchel_young(loss, z[i], y, a[i])


def _small_data(task: str, seed: int, n: int = 24, d: int = 3) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    signal = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) + 0.3
    return X, np.where(signal > 0.3, 1.0, -1.0) if task == "classification" else signal


def _check_weights(loss: Loss) -> None:
    """A row of weight k is k rows; a row of weight 0 is none. λ n is the same on both sides."""
    X, y = _small_data(loss.task, seed=3)
    weights = np.arange(y.size) % 3.0
    repeated = np.repeat(np.arange(y.size), weights.astype(np.int64))
    rng = np.random.default_rng(4)
    w, lam = rng.normal(size=X.shape[1]), 0.1
    for fit_intercept in (False, True):
        weighted = Problem(X, y, loss, lam, sample_weight=weights, fit_intercept=fit_intercept)
        plain = Problem(X[repeated], y[repeated], loss, lam * y.size / repeated.size, fit_intercept=fit_intercept)
        factor = repeated.size / y.size
        one, other = weighted.primal(w), factor * plain.primal(w)
        _require(abs(one - other) <= 1e-12 * (1.0 + abs(one)), f"{loss!r}: sample weights change P as copies do not.")
        near = np.allclose(weighted.gradient(w), factor * plain.gradient(w), rtol=1e-10, atol=1e-12)
        _require(near, f"{loss!r}: sample weights change ∇P as copies do not.")
        if not loss.convex:
            continue  # whether the average is convex depends on the data
        left, right = (solve(p, "prox-sdca", 1e-8, max_epochs=20_000, random_state=0) for p in (weighted, plain))
        for result in (left, right):
            _require(
                result.status in (Status.CONVERGED, Status.STALLED),
                f"{loss!r} was not solved to 1e-8 on a small problem: {result.message}",
            )
        apart = float(np.linalg.norm(left.w - right.w))
        most = left.certificate.distance_bound + right.certificate.distance_bound
        _require(apart <= most, f"{loss!r}: weights and copies of rows have optima {apart:.2e} apart.")
        _require(not left.alpha[weights == 0].any(), f"{loss!r}: a row of weight 0 has α ≠ 0.")


def _check_pickle(loss: Loss) -> None:
    kind = type(loss)
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not kind:
        return  # defined inside a function or a session: pickle cannot name it
    copy = pickle.loads(pickle.dumps(loss))
    _require(copy == loss and copy.params == loss.params, f"{loss!r}: a pickled copy differs.")


# --- solvers ----------------------------------------------------------------------------------------------------------


def check_solver(solver: str | type[Solver], **options: Any) -> None:
    """Check a solver: it converges, its certificates hold, and it respects weights, intercepts, seeds and warm starts.

    Parameters
    ----------
    solver : str or subclass of Solver
        The solver; a name in ``dualfree.SOLVERS`` or a class.
    **options
        Options of the solver.

    Raises
    ------
    AssertionError
        With a sentence that says which property fails, and on which problem.

    Examples
    --------
    >>> from dualfree.testing import check_solver
    >>> check_solver("prox-sdca", order="uniform")
    """
    kind = SOLVERS[solver] if isinstance(solver, str) else solver
    battery = _SolverBattery(kind, options)
    battery.check_options()
    losses = ["squared", "logistic", "squared_hinge"] + ([] if kind.needs_smooth or options else ["hinge"])
    for loss in losses:
        for fit_intercept in (False, True):
            for sparse in (False, True):
                battery.check_problem(_solver_problem(loss, fit_intercept, sparse))


def _solver_problem(loss: str, fit_intercept: bool, sparse: bool) -> Problem:
    """Rows of many lengths, one of them empty, one of weight zero, two of them equal."""
    X, y = _small_data(get_loss(loss).task, seed=7, n=30, d=4)
    X *= np.linspace(0.5, 2.0, y.size)[:, None]
    X[np.random.default_rng(8).random(X.shape) < 0.3] = 0.0
    X[5], X[7] = 0.0, X[6]
    weights = np.linspace(0.2, 2.0, y.size)
    weights[3] = 0.0
    matrix = scipy.sparse.csr_matrix(X) if sparse else X
    return Problem(matrix, y, loss, 0.05, sample_weight=weights, fit_intercept=fit_intercept)


def _ridge_optimum(problem: Problem) -> float:
    """P* of a squared-loss problem from the normal equations."""
    X = problem.X.toarray() if scipy.sparse.issparse(problem.X) else problem.X
    X = np.column_stack([X, np.ones(problem.n)]) if problem.fit_intercept else X
    s, y = problem.sample_weight, problem.y
    penalty = np.full(X.shape[1], problem.lam * problem.n)
    penalty[problem.d :] = 0.0
    point = np.linalg.solve(X.T @ (s[:, None] * X) + np.diag(penalty), X.T @ (s * y))
    return problem.primal(point[: problem.d], float(point[-1]) if problem.fit_intercept else 0.0)


class _SolverBattery:
    def __init__(self, kind: type[Solver], options: dict[str, Any]) -> None:
        self.kind, self.options = kind, options

    def _run(self, problem: Problem, seed: int, start: Result | None = None, tol: float = 1e-9) -> Result:
        self.kind.check(problem, self.options)
        instance = self.kind(problem, np.random.default_rng(seed), **self.options)
        run = Run(problem, instance, tol=tol, max_epochs=20_000, max_time=None, callback=None, evaluate_every=None)
        if start is None:
            return run.go(np.zeros(problem.n), 0.0)
        return run.go(start.alpha.copy(), start.intercept, start.w)

    def check_options(self) -> None:
        """An option that the solver does not take is refused."""
        problem = _solver_problem("squared", False, False)
        try:
            self.kind.check(problem, {"no_such_option": 1})
        except TypeError:
            return
        raise AssertionError(f"{self.kind.name}: an unknown option is accepted.")

    def check_problem(self, problem: Problem) -> None:
        """All properties on one problem."""
        who = f"{self.kind.name} on {problem!r}"
        X = problem.X.copy()
        result = self._run(problem, seed=0)
        certificate = result.certificate
        _require(result.status is Status.CONVERGED, f"{who} did not converge: {result.message}")
        _require(certificate.relative_gap <= 1e-9, f"{who} says converged at a gap of {certificate.relative_gap:.1e}.")
        unchanged = abs(X - problem.X).max() == 0.0
        _require(unchanged, f"{who} changed the data.")

        near = problem.weights_of(result.alpha)
        miss = float(np.linalg.norm(result.w - near))
        close = miss <= max(1e-10 * float(np.linalg.norm(near)), certificate.distance_bound)
        _require(close, f"{who}: w differs from w(α) by {miss:.1e}.")
        _require(not result.alpha[problem.sample_weight == 0].any(), f"{who}: a row of weight 0 has α ≠ 0.")
        _require(np.isfinite(problem.dual(result.alpha)), f"{who}: α lies outside the dual domain.")

        if problem.loss.name == "squared":
            best = _ridge_optimum(problem)
            above = problem.primal(result.w, result.intercept) - best
            slack = 1e-13 * problem.at_zero
            _require(above <= certificate.gap + slack, f"{who}: the gap is smaller than P(w) − P* = {above:.2e}.")
            _require(certificate.dual <= best + slack, f"{who}: the dual bound {certificate.dual!r} is above P*.")

        again, other = self._run(problem, seed=0), self._run(problem, seed=1)
        same = np.array_equal(again.w, result.w) and np.array_equal(again.alpha, result.alpha)
        _require(same, f"{who}: the same seed gives different bits.")
        overlap = other.certificate.dual <= certificate.primal and certificate.dual <= other.certificate.primal
        _require(overlap, f"{who}: another seed leads to another optimum.")
        warm = self._run(problem, seed=2, start=result)
        _require(warm.n_epochs <= 1, f"{who}: a warm start from its own result needs {warm.n_epochs} epochs.")
