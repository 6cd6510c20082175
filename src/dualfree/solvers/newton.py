"""Newton's method: the second phase of `auto` where the problem is badly conditioned.

The Hessian is (1/n) Σ s_i φ''(z_i) x_i x_iᵀ + λ I. Where d is small it is formed, at a cost of Σ nnz_i², and factorised
(Cholesky, d³/3): a handful of steps end at the optimum, however badly the problem is conditioned. Where d is large the
direction comes from conjugate gradients with the Hessian's diagonal as preconditioner, a pass over the data for each
product, only as exactly as the step deserves (truncated Newton).

In between, where the Hessian fits in memory but costs as much as several products, one serves many steps: its factor is the
preconditioner with which conjugate gradients solve the next ones, in two to five products. It is formed anew where they would
take as long as that, or where the step before was not a full one, so that the curvatures have changed. Where it costs as
much as dozens of products, the first steps are tried with the diagonal alone.

One epoch here is one Newton step: a direction Δ, and a search for the root of the slope of P along it, which costs O(n) a
trial because X·Δ is formed once. The intercept is one more variable, without a penalty.

The dual point comes with the step. Newton's equation H Δ = −∇P says that

    α⁺_i = −s_i (φ'(z_i) + φ''(z_i) x_i·Δ)    has    w(α⁺) = w + Δ = w⁺,

so the gap at w⁺ is Σ FY(z⁺_i, α⁺_i)/n alone, and that is of fourth order in Δ. The gradient bound ‖∇P‖²/(2λ) at the same point
is worse by up to the condition number; with it, a run at small λ would have to go on for steps after it has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from .._checks import Array
from ..certificate import Shape
from ..losses import Logistic, Squared
from ..moments import Moments
from ..problem import Problem, loss_sum, slopes_into
from ..rows import Kind
from ..team import Team
from . import hessian as hessians
from . import small_step
from .base import AT_ROUNDING, Solver
from .cholesky import Factor
from .exactness import Exactness
from .hessian import (
    curvature_sum,
    derivatives,
    derivatives_and_diagonal,
    factorised,
    plain,
)
from .line_search import TINY, full_step_is_short, least_on_ray, move_along, root_of_slope, slope_along
from .linear_cg import LinearCg
from .margins_on_the_way import MarginsOnTheWay
from .sample import Sample, curved_at_zero, look_size, part_of, sample_size, tells_weights

CG_STEPS = 500
# A tolerance that P itself may meet, in P(0); by how much P may be overrated.
_LOOSE, _ABOUT = 1e-3, 1.5
_ON_RAY = 0.02  # of P(0): what the beginning may miss of the least on its ray
_FIRST = 2  # products, after which the rate is looked at
# Products with the Hessian: where it and its factorisation cost more than so many, the factor is kept for other steps.
WORTH = {Kind.DENSE: 3, Kind.ONES: 10, Kind.VALUES: 4}
# Where they cost more than so many, they are the last resort.
DEAR = {Kind.DENSE: 25, Kind.ONES: 25, Kind.VALUES: 10}
# Threads that gain less by sharing all rows than one does by a short cut (only curvatures that change; Xᵀy and XᵀX alone).
FEW_THREADS = 2
_QUICK_SOLUTION = 5e5  # nanoseconds: a step in two calls takes less than the interpreter would for products
# The most steps on the part of the rows to begin with. What a sample of n rows says of d weights it says by chance below about
# d/n of P(0); a step that expects to gain less than this part of that is the last one.
_SAMPLE_STEPS, _BY_CHANCE = 12, 0.2
_SHORT = 0.1  # of a step
# Nanoseconds, as in `auto.py`: a step that is quicker needs no sample; one that takes longer is a call of its own, so that
# Ctrl-C and max_time are heard; a pass in the order of the rows, for an entry; a step, for a row.
_WORTH_A_SAMPLE, _WORTH_A_CALL, PER_ENTRY_IN_ORDER, _PER_STEP_ROW = 1e6, 2e7, 1.0, 25.0
# Products of a step by conjugate gradients, about: with the Hessian's diagonal as preconditioner, and with a Hessian, which
# serves so many steps.
_TRUNCATED, _PRECONDITIONED, _STEPS = 20, 4, 4


class Newton(Solver):
    """Newton steps with a line search; not offered by name, `auto` turns to it."""

    name = "newton"
    needs_convex = True
    trusts_dual = True
    may_be_worse_than_none = True
    decrement: float = np.inf
    """What the last step was to gain of P by its quadratic model."""

    refuses: Callable[[float, float], bool] | None = None
    """Whether a step that has made two products should end there: told what each of them took from the logarithm of the
    energy, and what the two are to gain of P by its quadratic model."""
    refused: bool = False
    """Whether the last step ended so, and was not made."""

    sample: Sample | None = None
    """A look at some rows, where it has been taken already."""

    spent_on_short_steps: float = 0.0
    """About how many nanoseconds went into steps that had to end long before their ends."""

    serves_others: bool = False
    """Whether this is a part of the rows, whose factor all of them will use."""

    @staticmethod
    def suits(problem: Shape) -> bool:
        """Whether the loss is smooth and says its curvature."""
        return bool(problem.loss.convex and np.isfinite(problem.loss.smoothness) and problem.loss.has("curvature"))

    @staticmethod
    def direct(problem: Shape) -> bool:
        """Whether the Hessian fits in memory."""
        return hessians.fits(problem)

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin on the ray through w(α), or through the weights given, where P is least."""
        super().start(alpha, intercept)
        if self.given_w is not None:
            self.w = self.given_w
        self._margins: Array | None = None
        self.exactness = Exactness(self.problem)
        self.products = 0  # with the diagonal as preconditioner
        self.primal = self.problem.at_zero  # about P: half of the slope is what a step to the least point gains
        self.unsolved: Array | float = 0.0  # what is left of Newton's equation, −∇P − H Δ
        in_products = hessians.in_products(self.problem) if self.direct(self.problem) else np.inf
        self.dear = in_products > DEAR[self.problem.kind]
        keep = in_products > WORTH[self.problem.kind]
        may_be_quick = not self.dear and not self.serves_others
        quick = not keep or (may_be_quick and hessians.solution_cost(self.problem) < _QUICK_SOLUTION)
        may_keep_curvatures = small_step.may_keep_curvatures(self.problem)
        alone = self.team.size <= (FEW_THREADS if may_keep_curvatures else 1)
        # of least squares one thread forms XᵀX alone, and several share the general step
        shares = alone or not isinstance(self.problem.loss, Squared)
        self.is_small = quick and shares and small_step.suits(self.problem)
        self.keeps_factor = keep and not self.is_small
        keeps = self.is_small and alone and may_keep_curvatures
        self.team_of_steps = Team(self.problem) if keeps and self.team.size > 1 else self.team
        size = self.problem.d + self.problem.fit_intercept
        self.last_curvatures = (
            (np.zeros(self.problem.n), np.zeros((size, size))) if keeps else (np.empty(0), np.empty((0, 0)))
        )
        self.factor: Factor | None = None
        self.full_price = self.most_products = int(min(in_products, CG_STEPS))
        size = sample_size(self.problem)
        afresh = not self.w.any() and not intercept
        known = curved_at_zero(self.problem)
        cost = step_cost(self.problem)
        self.is_quick, self.makes_several = cost <= _WORTH_A_SAMPLE, cost <= _WORTH_A_CALL
        tells = tells_weights(self.problem, size, self.dear)  # steps without a Hessian are the cheap ones
        self.begins_on_sample = afresh and tells and not (self.is_quick and known)
        too_long = False
        if afresh and not self.begins_on_sample:
            if self.sample is None and not known:
                self._look()
            if self.sample is not None:
                self.w, intercept, self.sample = self.sample.steps.w, self.sample.steps.intercept, None
                too_long = isinstance(self.problem.loss, Logistic)
        self._go_to(self.w, intercept, too_long)

    def _go_to(self, w: Array, intercept: float, too_long: bool = False) -> None:
        """Set w to the best point of the ray through a given one.

        Weights that know a few rows by heart are `too_long`: their length says nothing of all rows. With flat parts of the
        loss it does: it tells which rows are there.
        """
        problem = self.problem
        self.w, self.intercept = np.zeros(problem.d), 0.0
        if self._margins is not None:
            self._margins[:] = 0.0
        if w.any() or intercept:
            self.team.margins_into(w, self.alpha)
            self._move(np.zeros(1), w, intercept, too_long=too_long)
            self.rows_touched += problem.n

    @property
    def margins(self) -> Array:
        """X w. Made when first asked for: one step of least squares needs none."""
        if self._margins is None:
            self._margins = np.zeros(self.problem.n)
        return self._margins

    def _look(self) -> None:
        """Find out by two epochs on some rows which ones are on flat or straight parts of the loss."""
        self.sample = Sample(self.problem, self.rng, look_size(self.problem))
        self.rows_touched += self.sample.steps.rows_touched

    def _solve_sample(self) -> None:
        """Solve the problem on a part of the rows, about as exactly as a part can know the answer, and begin from there.

        Early steps far from the optimum need no exact derivatives. A few on an eighth of the rows leave two or three on all.
        Those may begin on a part in turn.
        """
        problem = self.problem
        if self.sample is None and not isinstance(problem.loss, Logistic):
            self._look()
        part = part_of(problem, sample_size(problem), self.rng)
        steps = Newton(part, self.rng)
        steps.team, steps.serves_others = self.team.on(part), self.keeps_factor
        if self.sample is not None:
            steps.given_w = self.sample.steps.w
        steps.start(np.zeros(part.n), 0.0 if self.sample is None else self.sample.steps.intercept)
        enough = _BY_CHANCE * part.d / part.n * part.at_zero
        for _ in range(_SAMPLE_STEPS):
            steps.visit(part.n)
            if not steps.decrement > enough:
                break
        self.rows_touched += steps.rows_touched
        self.sample = None  # it holds a vector of length n
        self._go_to(steps.w, steps.intercept)
        self.factor = steps.factor
        self.dear = self.dear or steps.dear  # a part that needed no Hessian says that all will need none

    @property
    def visits_per_call(self) -> int:
        """One call is one Newton step."""
        return self.problem.n

    def visit(self, count: int) -> None:
        """Make one Newton step."""
        if self.begins_on_sample:
            self.begins_on_sample = False
            self._solve_sample()
        if self.dual_follows:
            self._form_dual()
        problem, b = self.problem, self.intercept
        n, d = problem.n, problem.d
        self.epochs_made = 1

        # α is not needed again before the step is made: one vector of length n serves as slopes, curvatures and X·Δ
        direct = not self.dear and self.factor is None
        if direct and self.is_small:
            self._small_steps()
            return
        if direct or self.factor is not None:
            gradient, total = derivatives(self.team, self.margins, b, self.alpha, direct)
        else:
            gradient, self.diagonal = derivatives_and_diagonal(self.team, self.margins, b, self.alpha)
        gradient /= n
        gradient[:d] += problem.lam * self.w
        on_the_way = None if direct else self.on_the_way
        direction = None if on_the_way is None else self._conjugate_gradients(self.alpha, gradient, on_the_way)
        spent = 0.0 if direct else self.exactness.made * hessians.product_cost(problem)
        if self.refused:
            self.rows_touched += 2 * n
            return
        if direction is None:
            self.factor = None  # two of them need not be in memory at the same time
            if not direct:
                total = curvature_sum(self.team, self.alpha)
            self.factor = factorised(total, problem, self.team)
            spent += hessians.solution_cost(problem)
            self.exactness.forget()
            direction, self.unsolved, self.dear, on_the_way = -self.factor.divided(gradient), 0.0, False, None
        step_b = float(direction[d]) if problem.fit_intercept else 0.0
        step_w = np.ascontiguousarray(direction[:d])
        if direct and isinstance(problem.loss, Squared) and not self.w.any():
            self._arrive(step_w, step_b)
        else:
            slope = float(gradient @ direction)
            self.decrement = -0.5 * slope
            if on_the_way is not None and on_the_way.is_known:
                self.alpha, on_the_way.total = on_the_way.total, self.alpha
                self.rows_touched -= n
            else:
                self.team.margins_into(step_w, self.alpha)
            share = self._move(gradient, step_w, step_b, slope)
            if share < _SHORT:
                self.spent_on_short_steps += spent + _passes_cost(problem)
            if not self.keeps_factor or share != 1.0:
                self.factor = None  # curvatures that have changed too much
        self.rows_touched += 4 * n

    @cached_property
    def on_the_way(self) -> MarginsOnTheWay:
        """What products with the Hessian say of X Δ."""
        return MarginsOnTheWay(self.team)

    @cached_property
    def _room(self) -> tuple[Array, ...]:
        return small_step.room_for(self.team_of_steps, self.problem.d + self.problem.fit_intercept)

    def _small_steps(self) -> None:
        """Make a step with a new Hessian, or several, in one call."""
        self.unsolved = 0.0
        if isinstance(self.problem.loss, Squared) and not self.w.any():
            self._arrive_at_once()
        else:
            self._make_small_steps()
        self.rows_touched += 4 * self.problem.n * self.epochs_made

    def _arrive_at_once(self) -> None:
        """The squared loss: one step ends at the optimum."""
        problem, size = self.problem, self.problem.d + self.problem.fit_intercept
        if plain(problem) and problem.is_dense and self.intercept == 0.0:
            gradient, direction, products = np.empty(size), np.empty(size), np.empty((size, size))
            sums = small_step.normal_equations(problem.rows[0], problem.y, problem.lam, gradient, products, direction)
            self.moments = Moments(gradient, products, *sums)
        else:
            direction = self._room[2]
            if self.team_of_steps.lead(small_step.newton_direction, *self._given_to_steps()):
                raise MemoryError("There was not enough memory for a step.")
        self._arrive(direction[: problem.d], float(direction[-1]) if problem.fit_intercept else 0.0)

    def _make_small_steps(self) -> None:
        problem = self.problem
        data, is_plain, *rest = self._given_to_steps()
        failed, self.epochs_made, self.intercept, slope, self.primal, gap = self.team_of_steps.lead(
            small_step.newton_steps,
            data,
            is_plain,
            isinstance(problem.loss, Squared),
            full_step_is_short(problem.loss, self.w, self.intercept),
            *rest,
            self.primal,
            max(self.target / self.optimism, AT_ROUNDING * problem.at_zero),
            _ABOUT * self.target if self._is_loose() else -np.inf,
            self.epochs_allowed if self.makes_several else 1,
        )
        if failed:
            raise MemoryError("A thread had not enough memory.")
        self.decrement = -0.5 * slope
        self._take_estimate(gap)

    def _given_to_steps(self) -> tuple[Any, ...]:
        problem = self.problem
        data = problem.rows, problem.loss.compiled, problem.y, problem.sample_weight, problem.row_norms_squared
        point = self.margins, self.w, self.alpha
        return data, plain(problem), problem.lam, point, self.intercept, self._room, self.last_curvatures

    def _arrive(self, step_w: Array, step_b: float) -> None:
        """The squared loss: P is its own quadratic model, a full step ends at the optimum, and α = −s φ' there.

        Only the first step is made like this. A second one is there to take away rounding errors, and margins and α that are
        changed by a little keep more digits than those formed afresh.
        """
        self.w += step_w
        self.intercept += step_b
        self.gap_estimate = 0.0
        self.dual_follows = True

    def _form_dual(self) -> None:
        """Set the margins, and α = −s φ' there."""
        problem = self.problem
        self.dual_follows = False
        self.team.margins_into(self.w, self.margins)
        slopes_into(problem.loss.compiled, self.margins, self.intercept, problem.y, problem.sample_weight, self.alpha)
        np.negative(self.alpha, out=self.alpha)

    def _move(
        self, gradient: Array, step_w: Array, step_b: float, at_zero: float | None = None, too_long: bool = False
    ) -> float:
        """Go along (step_w, step_b), whose X·step_w is in α, to where P is about least; set α and the estimate of the gap.

        `at_zero` is the slope of P at its beginning; without it, this is no step but a ray from zero, which may be `too_long`.
        Return which part of it was gone.
        """
        problem = self.problem
        loss, lam, n = problem.loss.compiled, problem.lam, problem.n
        bend, pull = lam * float(step_w @ step_w), lam * float(self.w @ step_w)

        def there(t: float) -> tuple[Any, ...]:
            line = (self.margins, self.alpha, t, self.intercept, step_b)
            return loss, *line, problem.y, problem.sample_weight

        def slope(t: float) -> float:
            return float(self.team.say(slope_along, *there(t))[0] / n + pull + t * bend)

        is_quadratic = isinstance(problem.loss, Squared) and self.direct(problem)  # P is its own model
        if is_quadratic:
            t, at_zero = 1.0, slope(0.0) if at_zero is None else at_zero
        elif at_zero is None:
            at_zero = slope(0.0)
            enough = _ON_RAY * abs(problem.at_zero)
            t = least_on_ray(slope, at_zero, enough) if too_long else root_of_slope(slope, at_zero)
        else:
            t = root_of_slope(slope, at_zero, full_step_is_short(problem.loss, self.w, self.intercept))
        self.w += t * step_w
        self.primal += 0.5 * t * at_zero
        terms, cut = map(float, self.team.say(move_along, *there(t), problem.row_norms_squared)[:2])
        self.intercept += t * step_b
        self._estimate(terms, cut, (1.0 - t) * gradient - t * self.unsolved)
        self.exactness.learn(self.decrement, terms / n + cut / (2.0 * lam * n * n), t)
        return t

    def _estimate(self, terms: float, cut: float, left_over: Array) -> None:
        """Set the estimate of the gap from what `move_along` returned and what the step has left of the gradient.

        A step that was cut short, a direction that is not exact, or an α⁺ that was moved into its domain leaves about that much
        of λ (w⁺ − w(α⁺)).
        """
        problem = self.problem
        n, lam = problem.n, problem.lam
        left = math.sqrt(float(left_over @ left_over)) + math.sqrt(cut) / n
        self._take_estimate(terms / n + left * left / (2.0 * lam))

    def _take_estimate(self, gap: float) -> None:
        if gap > self.target >= self.primal / _ABOUT and self._is_loose():
            gap = min(gap, self._gap_without_dual())
        self.gap_estimate = gap

    def _is_loose(self) -> bool:
        return self.target >= _LOOSE * self.problem.at_zero

    def _gap_without_dual(self) -> float:
        """Far from the optimum α may be worse than none: losses are not negative, so P itself bounds the gap."""
        problem = self.problem
        if problem.loss.builtin_id is None:
            return math.inf
        losses = loss_sum(problem.loss.compiled, self.margins, self.intercept, problem.y, problem.sample_weight)
        self.primal = float(losses) / problem.n + 0.5 * problem.lam * float(self.w @ self.w)
        return self.primal

    def end_epoch(self) -> None:
        """Nothing: the intercept moved with the step."""

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return (α, w, b)."""
        if self.dual_follows:
            self._form_dual()
        return self.alpha, self.w, self.intercept

    def _conjugate_gradients(self, curvatures: Array, gradient: Array, on_the_way: MarginsOnTheWay) -> Array | None:
        """Solve H x = −gradient, as exactly as this step deserves. None, should the Hessian itself be cheaper."""
        problem = self.problem
        on_budget = self.most_products < self.full_price and self.factor is None  # that of a trial
        if self.direct(problem) and not on_budget and self._has_paid_for_a_hessian():
            return None
        solution = LinearCg(np.zeros(gradient.size), -gradient, self._preconditioner())
        exactness, first = self.exactness, solution.energy
        exactness.begin(first, self.target / self.optimism, diagonal=self.factor is None)
        on_the_way.made = 0
        if self.factor is not None and exactness.products_to_tol() > self.most_products:
            return None
        while not exactness.is_reached(solution):
            if exactness.made == self.most_products or self._is_slow(solution):
                break
            solution.step(lambda vector: on_the_way.product(curvatures, vector))
            on_the_way.went(solution.length)
            exactness.count(solution)
            self.rows_touched += problem.n
            if exactness.made == _FIRST and self.refuses is not None:
                rate = math.log(max(first, TINY) / max(solution.energy, TINY)) / _FIRST
                self.refused = self.refuses(rate, solution.gained)
                if self.refused:
                    break
        if self.factor is None:
            self.products += exactness.made
        else:
            exactness.end(solution)
        if self.direct(problem) and not on_budget and not exactness.is_fair(solution):
            return None
        self.unsolved = solution.residual
        return solution.point

    def _has_paid_for_a_hessian(self) -> bool:
        """Whether truncated steps have cost as much; with flat parts of the loss, one Hessian may not serve the next step."""
        dear = self.factor is None and isinstance(self.problem.loss, Logistic)
        return dear and self.products > self.most_products and not self.exactness.next_is_last(self.gap_estimate)

    def _preconditioner(self) -> Callable[[Array], Array]:
        """Division by the Hessian of another step, or by the diagonal of this one."""
        if self.factor is not None:
            return self.factor.divided
        return lambda vector: vector / self.diagonal

    def _is_slow(self, solution: LinearCg) -> bool:
        """Whether products with the Hessian of another step as preconditioner would be too many at the present rate."""
        exactness = self.exactness
        made, first = exactness.made, exactness.first
        if self.factor is None or made < 2:
            return False
        gained, wanted = first / solution.energy, first / max(exactness.enough, TINY)
        return not math.log(gained) * self.most_products > made * math.log(wanted)


def step_cost(problem: Problem) -> float:
    """About how many nanoseconds a Newton step takes, besides what the interpreter does."""
    solution, product = hessians.solution_cost(problem), hessians.product_cost(problem)
    system = min(solution, _TRUNCATED * product)
    if solution > WORTH[problem.kind] * product:  # one Hessian serves all steps
        system = min(system, solution / _STEPS + _PRECONDITIONED * product)
    return _passes_cost(problem) + system


def _passes_cost(problem: Problem) -> float:
    return 3.0 * PER_ENTRY_IN_ORDER * problem.nnz + _PER_STEP_ROW * problem.n
