"""`auto`, the default: begin with the method that the sizes favour, go on with whatever the run shows to be cheaper.

Phases, each warm-started from the point that the one before reached (`docs/auto.md` has the measurements):

- ``newton`` at once, where a few Newton steps cost less than a few epochs (few columns, little data), and one step for the
  squared loss. Where that is not clear, two epochs on a part of the rows decide (`sample.py`).
- ``conjugate-gradients`` at once, for the squared loss where the Hessian does not fit in memory; but not for sparse rows that
  are fewer than the columns.
- ``prox-sdca`` with permutations otherwise. Most of the way on easy problems.
- ``adaptive`` after that, where more than a few passes are left: a scan of the residuals an epoch, visits in proportion.
- ``newton`` with truncated steps, on trial (`trial.py`), where the Hessian does not fit in memory and the rows are short; at
  once with the logistic loss, where a look at a first step says that it is quick.
- ``newton`` or ``interior-point`` (losses with a corner: hinge, ε-insensitive) after that, where the epochs that are left,
  extrapolated from the gaps, would cost more. Should the interior-point method end before tol, rounding being in its
  way, Prox-SDCA goes on from its α.
- ``interior-point`` after ``newton``, for squared losses with flat parts, where Newton steps have to end early.

Average-convex losses have no exact steps; they are solved by ``importance`` sampling.

Every decision is a function of sizes and gaps, never of the clock, so a seed gives the same bits on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._checks import Array
from ..losses import Logistic, Squared
from ..problem import Problem
from ..rows import Kind
from . import hessian, small_step
from .adaptive import Adaptive
from .base import RandomNumbers, Solver
from .conjugate_gradients import ConjugateGradients
from .exact_steps import ExactSteps, mean_coupling
from .exactness import gap_within_digits
from .guesses import FEW_IF_UNEVEN, UNEVEN
from .importance import Importance
from .interior_point import InteriorPoint, InteriorPointOfSquares
from .newton import DEAR, FEW_THREADS, PER_ENTRY_IN_ORDER, Newton, step_cost
from .prox_sdca import Permutations
from .row_space_cg import RowSpaceCg
from .sample import Sample, curved_at_zero, look_size
from .trial import Trial

# How many steps each second-order method is expected to need from where it begins, and how many passes are many.
_NEWTON_STEPS, _INTERIOR_STEPS, _INTERIOR_PATIENCE = 4, 20, 6
# Steps on the interior path from a point of Newton's method, about; short Newton steps may cost this part of them first.
_STEPS_ON_PATH, _RENT = 10, 0.25
_STEPS_TO_SETTLE = 10  # with flat parts, until it is known which rows are on them
_STEPS_AFTER_TRIAL = 100  # the same, at worst: where some of them have not been enough
_FEW_EPOCHS = 8
_CLEARLY = (1.0, 10.0)  # Newton steps to epochs, by the predictions below: what is outside needs no second look
# The same, where there are too few rows to look at some of them; and where nobody knows how many steps there will be.
_IN_DOUBT, _IN_DOUBT_IF_GUESSED = 1.2, 0.8
_QUICK_STEP = 4.5e5  # nanoseconds
_HARD = 0.07  # the part of the gap that two epochs leave on a part of the rows
# Where c, the mean of L_i q_i, is no more than the first, coordinate steps take about so many times 1 + c epochs to divide the
# gap by e; that should be less than this part of what Newton steps would cost.
_WEAK, _EPOCHS_EACH, _SURELY = 1.25, 0.45, 0.9
_MANY_PASSES = 5
# log of what permutations divide the gap by for the cost of an epoch and a scan: adaptive visits would not do better
_FAST = 1.7
_DEAR_SCAN = 1.5  # an epoch and a scan, in epochs
_ALIKE = 0.28  # the square of the mean residual to the mean square
# By how much adaptive visits may beat permutations; where the gap is still a large part of P(0), by little.
_ADAPTIVE_GAIN, _LITTLE_GAIN, _FAR = 4.0, 1.5, 0.05
_DIRECT = DEAR | {Kind.VALUES: 6}  # products that a Hessian may cost for the squared loss, of which it needs but one
_SOON = 0.5  # of the products that a Hessian costs, before their rate is believed
_TOO_MANY_PASSES = 500
_CHEAP = (1.5, 3.0)  # products to an epoch: sparse rows, dense ones
_FORESEEN = 100  # the most passes that are believed to be left
# Coordinate steps are likely to be slow where L ‖x‖²/(λn) epochs cost as much as so many products with the Hessian. Conjugate
# gradients are quick from this rate on: what a product takes from the logarithm of the energy. Truncated steps are few where
# the first promises to gain up to this part of all that there is, were each label explained by a quadratic: P(0), or so much of
# it. With flat parts a look has to be cheap: an epoch has to cost so many products.
_SLOW, _QUICK, _EXPLAINED, _LOGISTIC_GAIN, _CHEAP_LOOK = 4.5, 1.6, 0.5, 0.72, 1.6
_TOO_MANY_FOR_CG = 60
_NEAR = 1e-4
_OPTIMISTIC = 10.0  # a gap that is so many times what was estimated proves the estimate wrong
_BEFORE = 1.5  # times the gap after an epoch and D's gain in it: the gap before, at least
_SETTLING = 4  # evaluations or estimates before the rate of a later phase is believed
# Nanoseconds on a 2023 server core; only their ratios matter. An epoch: for a row (more where the step needs an exponential)
# and for an entry. A scan: for a row. What the interpreter does for a Newton step and for an epoch: most of it, on small data.
PER_ROW, _PER_EXPONENTIAL, PER_ENTRY = 10.0, 45.0, 3.0
_PER_LONG_ROW, _PER_LONG_ENTRY = 43.0, 1.6  # the same for long rows
_PER_DENSE_ROW, _PER_DENSE_ENTRY = 26.0, 0.75  # and for dense ones
_PER_SCANNED_ROW, _PER_DENSE_ENTRY_IN_ORDER = 10.0, 0.6
_PER_STEP = 1.5e5
_PER_EPOCH = 8e4
_WORTH_THREADS = 3e7  # nanoseconds of one


def _go_on() -> None:
    """Change nothing."""


class Auto(Solver):
    """Choose the method from what the run shows."""

    name = "auto"
    needs_smooth = False

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        super().__init__(problem, rng)
        self.active: Solver = self._first_method()(problem, rng)
        self.phase = self.active.name
        self.history: list[tuple[float, float]] = []
        self.proved = 0  # what comes after so many gaps are estimates
        self.guessed = False  # whether the history has a gap that was not evaluated
        self.alike: bool | None = None  # whether rows matter alike, by the last evaluation
        self.since = 0  # where in the history the phase began
        self.trial: Trial | None = None  # of truncated Newton steps
        self.looks = False  # at a first truncated step, before the first epoch
        self.spent_looking = 0.0  # passes, where that step was not made
        self.settled = isinstance(self.active, (Importance, Newton, ConjugateGradients))
        self.may_follow_path = InteriorPointOfSquares.suits(problem)

    def start(self, alpha: Array, intercept: float) -> None:
        """Begin the first phase."""
        if not isinstance(self.problem.loss, Squared) and self.is_zero(alpha):
            self._look_at_sample()
        if isinstance(self.active, RowSpaceCg) and self.given_w is not None:
            if RowSpaceCg.stretch(self.problem, alpha, self.given_w):
                self.given_w = None
            else:
                self.active = ConjugateGradients(self.problem, self.rng)
        self.active.team, self.active.given_w, self.active.target = self.team, self.given_w, self.target
        self.active.begins_at_zero = self.begins_at_zero
        self.active.start(alpha, intercept)
        self.looks = self.given_w is None and self._truncated_steps_may_be_quick() and self.is_zero(alpha)

    def begin_epoch(self) -> None:
        """Pass on to the active method; before the first epoch, look whether it is the right one."""
        if self.looks:
            self.looks = False
            self._look_at_a_step()
        self.active.part_wanted = self.part_wanted
        self.active.begin_epoch()
        self._count()

    def visit(self, count: int) -> None:
        """Pass on to the active method."""
        self.active.epochs_allowed, self.active.enough_activity = self.epochs_allowed, self.enough_activity
        self.active.enough_guessed, self.active.optimism = self.enough_guessed, self.optimism
        self.active.visit(count)
        self._count()

    def _count(self) -> None:
        self.rows_touched += self.active.rows_touched
        self.active.rows_touched = 0.0

    def end_epoch(self) -> None:
        """Pass on to the active method; leave it, where it is on trial and fails or shows that another is cheaper."""
        self.active.end_epoch()
        self._count()
        trial = self.trial
        if trial is not None and self._on_trial and not trial.still_pays(self.rows_touched / self.problem.n):
            self._go_on_with(trial.before)
        if self._conjugate_gradients_are_slow():
            self._change(Newton)
            assert isinstance(self.active, Newton)
            self.active.dear = False
        if self.may_follow_path and self._steps_are_short():
            self.may_follow_path = self.settled = False
            self._change(InteriorPointOfSquares)

    def _conjugate_gradients_are_slow(self) -> bool:
        """Whether the products that are left would cost more than a Hessian, which ends at the optimum."""
        method, problem = self.active, self.problem
        if type(method) is not ConjugateGradients or not Newton.direct(problem) or method.gap_estimate <= method.target:
            return False
        price = hessian.in_products(problem)
        return method.made > _SOON * price and method.steps_left() > price

    def _steps_are_short(self) -> bool:
        """Whether Newton steps that had to end early have cost so much that a path with a known number of steps is cheaper."""
        if not isinstance(self.active, Newton) or self.active.spent_on_short_steps == 0.0:
            return False
        on_path = _STEPS_ON_PATH * hessian.full_solution_cost(self.problem)
        return self.active.spent_on_short_steps > _RENT * on_path

    @property
    def _on_trial(self) -> bool:
        return self.trial is not None and self.active is self.trial.newton

    @property
    def visits_per_call(self) -> int:
        """Pass on to the active method."""
        return self.active.visits_per_call

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Pass on to the active method."""
        return self.active.candidate()

    def renew(self, w: Array, error: float) -> None:
        """Pass on to the active method."""
        self.active.renew(w, error)

    def threads(self, most: int) -> int:
        """One, where least squares are one step of Newton's method, and few columns make that a short one."""
        problem = self.problem
        is_one_step = (
            isinstance(problem.loss, Squared) and isinstance(self.active, Newton) and small_step.suits(problem)
        )
        return 1 if is_one_step and (most <= FEW_THREADS or self._newton_cost < _WORTH_THREADS) else most

    # What the driver asks about the point that the active method has reached.
    w: Array = property(lambda self: self.active.w)  # type: ignore[assignment]
    intercept: float = property(lambda self: self.active.intercept)  # type: ignore[assignment]
    drift = property(lambda self: self.active.drift)
    activity = property(lambda self: self.active.activity)
    activity_before = property(lambda self: self.active.activity_before)
    guess = property(lambda self: self.active.guess)
    even: float = property(lambda self: self.active.even)  # type: ignore[assignment]
    epochs_made = property(lambda self: self.active.epochs_made)
    may_shorten = property(lambda self: self.active.may_shorten)
    gap_estimate = property(lambda self: self.active.gap_estimate)
    trusts_dual = property(lambda self: self.active.trusts_dual)
    may_be_worse_than_none = property(lambda self: self.active.may_be_worse_than_none)
    dual_follows = property(lambda self: self.active.dual_follows)
    moments = property(lambda self: self.active.moments)
    evaluate_each_epoch = property(lambda self: self.active.evaluate_each_epoch)

    # --- which method first -----------------------------------------------------------------------------------------

    def _first_method(self) -> type[Solver]:
        problem = self.problem
        if not problem.loss.convex:
            return Importance
        direct = self._newton_suits and self._hessian_fits
        if ConjugateGradients.suits(problem) and (problem.n > problem.d or problem.is_dense):
            if direct and hessian.in_products(problem) <= _DIRECT[problem.kind]:
                return Newton
            return self._kind_of_conjugate_gradients()
        if not direct:
            return Permutations
        limit = _IN_DOUBT_IF_GUESSED if self._number_of_steps_is_a_guess else _IN_DOUBT
        return Newton if self._newton_to_permutations < limit else Permutations

    def _look_at_sample(self) -> None:
        """Where neither Newton's method nor permutations are clearly cheaper, let two epochs on a part of the rows decide."""
        problem = self.problem
        if not (self._newton_suits and self._hessian_fits):
            return
        size = look_size(problem)
        if not _CLEARLY[0] < self._newton_to_permutations < _CLEARLY[1]:
            return
        if self._coordinate_steps_are_quick():
            self._begin_with(Permutations)
            return
        if curved_at_zero(problem) and (2 * size > problem.n or self._newton_cost < _QUICK_STEP):
            return  # not worth a look
        rng = self.rng
        sample = Sample(problem, rng, size)
        self.rows_touched += sample.steps.rows_touched
        if sample.gap > _HARD * max(1.0, self._newton_to_permutations):
            self._begin_with(Newton)
            assert isinstance(self.active, Newton)
            self.active.sample = sample
        else:
            self._begin_with(Permutations)

    def _coordinate_steps_are_quick(self) -> bool:
        """Whether rows are coupled so weakly that coordinate steps will surely be done before a few Newton steps are."""
        coupling = mean_coupling(self.problem, self.scale)
        if not (coupling <= _WEAK and self.target > 0.0):
            return False
        epochs = _EPOCHS_EACH * (1.0 + coupling) * math.log(self.problem.at_zero / self.target)
        return epochs < _SURELY * _FEW_EPOCHS * self._newton_to_permutations

    def _begin_with(self, kind: type[Solver]) -> None:
        """Replace the first method, which has not begun."""
        self.active = kind(self.problem, self.rng)
        self.phase = self.active.name
        self.settled = isinstance(self.active, Newton)

    def _truncated_steps_may_be_quick(self) -> bool:
        """Whether coordinate steps are likely to be slow, and a first truncated Newton step is worth a look.

        How slow they are, their `coupling` says. A Newton step tells how many products with the Hessian its system needs, and
        how much there is to gain: where that is nearly all of P, rows cease to matter one after the other, which makes for many
        Newton steps and few epochs.
        """
        problem = self.problem
        if not isinstance(self.active, Permutations) or not curved_at_zero(problem):
            return False
        epoch_in_products = self._epoch_cost / hessian.full_product_cost(problem)  # at zero all rows are curved
        slow = self.active.coupling * epoch_in_products > _SLOW
        cheap = isinstance(problem.loss, Logistic) or epoch_in_products > _CHEAP_LOOK
        return slow and cheap and problem.n > problem.d and self._truncated_steps_are_cheap

    def _look_at_a_step(self) -> None:
        """Begin a truncated Newton step at zero; if its first products promise well, make it, and have such steps on trial."""
        problem, before, passes = self.problem, self.active, self.rows_touched / self.problem.n
        newton = Newton(problem, self.rng)
        newton.team, newton.target = self.team, self.target
        much = _EXPLAINED * problem.at_zero * (_LOGISTIC_GAIN if isinstance(problem.loss, Logistic) else 1.0)
        newton.refuses = lambda rate, gain: rate < _QUICK and gain > much
        newton.start(np.zeros(problem.n), 0.0)
        newton.begins_on_sample = False
        newton.visit(problem.n)
        self.rows_touched += newton.rows_touched
        if newton.refused:
            self.spent_looking = newton.rows_touched / problem.n
            return
        newton.rows_touched, newton.refuses = 0.0, None
        self._go_on_with(newton)
        self.trial = Trial(newton, gap_within_digits(problem, self.target))
        self.trial.begin(before, passes, _FORESEEN / _LITTLE_GAIN * self._epoch_cost, problem.at_zero)

    @cached_property
    def _newton_to_permutations(self) -> float:
        """What a few Newton steps cost (one for the squared loss), relative to a few epochs."""
        steps = 1 if isinstance(self.problem.loss, Squared) else _NEWTON_STEPS
        return steps * self._newton_cost / (_FEW_EPOCHS * self._epoch_cost)

    # --- which method next ------------------------------------------------------------------------------------------

    def foresee(self, gap: float, target: float) -> None:
        """As `observe`, of an estimate; the next gap that is certified will tell whether to believe it."""
        self._weigh(gap, target)()

    def judges_by_guess(self, guess: float, target: float) -> bool:
        """Go on with permutations, or with adaptive visits; other methods take a certificate, which tells the gap for sure."""
        if not isinstance(self.active, Permutations):
            return False
        known = self.history.copy(), self.since, self.proved, self.guessed
        self.alike = self.even > _ALIKE
        change = self._weigh(guess, target)
        if change not in (_go_on, self._visit_adaptively):
            self.history, self.since, self.proved, self.guessed = known
            return False
        change()
        self._count()
        return True

    def observe(self, gap: float, target: float) -> None:
        """Extrapolate from the gaps of the last half of the run and change the method where another one is cheaper."""
        self.alike = None
        for k in range(len(self.history) - 1, self.proved - 1, -1):
            if _OPTIMISTIC * self.history[k][1] < gap:
                self._forget(k)
        self._weigh(gap, target)()
        self.proved = len(self.history)

    def _forget(self, k: int) -> None:
        del self.history[k]
        self.since -= self.since > k
        self.proved -= self.proved > k

    def _weigh(self, gap: float, target: float) -> Callable[[], None]:
        """Take a gap into the history; return what begins the method that is cheapest from here on, as far as it tells."""
        if isinstance(self.active, RowSpaceCg) and self.active.has_failed(gap):
            return partial(self._change, ConjugateGradients, afresh=True)
        if not 0.0 < gap < math.inf:
            return _go_on  # solved, or nothing is known
        passes = self.rows_touched / self.problem.n
        two_epochs = len(self.history) == 1 and passes - self.history[0][0] > 1.5  # besides a look
        if two_epochs and isinstance(self.active, Permutations) and self.active.rate > 0.0:
            # an epoch ago, which nobody evaluated: by what the rows had in it or, where that says less, by what D gained since
            before = max(gap / self.active.rate, _BEFORE * (gap + self.active.gain))
            self.history.append((passes - 1.0, before))
            self.guessed = True
        elif self.guessed and isinstance(self.active, Permutations):
            self._forget(1)  # now two are known
            self.guessed = False
        self.history.append((passes, gap))
        if self.settled or self._on_trial or not gap > target:
            return _go_on
        if self.part_wanted < 1.0:
            return _go_on  # an epoch that was to be the last, and short: rows that it left out are behind the others
        # The first gap of all says nothing of the rate (one epoch takes most of it away), nor do those of another phase.
        recent = self.history[max(1, self.since) :]
        if len(recent) < (2 if isinstance(self.active, Permutations) or self._is_far(gap) else _SETTLING):
            return _go_on
        # gaps go up and down; the best ones tell the trend
        passes_before = next((at for at, _ in recent[:-1] if at >= 0.5 * passes), recent[-2][0])
        gap_before = min(value for at, value in recent if at <= passes_before)
        gap = min(value for _, value in recent)
        rate = math.log(gap_before / gap) / (passes - passes_before) if passes > passes_before else 0.0
        left = math.log(gap / gap_within_digits(self.problem, target)) / rate if rate > 0 else math.inf
        return self._what_next(gap, passes, rate, left, target)

    def _what_next(self, gap: float, passes: float, rate: float, left: float, target: float) -> Callable[[], None]:
        """What begins the method that is cheapest where so many passes are left, at this rate."""
        if isinstance(self.active, InteriorPoint):
            gaps = [gap for _, gap in self.history[self.since :]]
            if min(gaps[-_INTERIOR_PATIENCE:]) > 0.9 * min(gaps[:-_INTERIOR_PATIENCE], default=math.inf):
                last = Newton if isinstance(self.active, InteriorPointOfSquares) else Permutations
                return partial(self._end_with, last)
        elif self._truncated_steps_are_a_guess and self._second_order_is_cheaper(left, passes, gap):
            if Trial.can_pay(self.problem, self._cost_in_all(left, passes, gap), self._spent_on_steps):
                return partial(self._try_truncated_steps, left, passes, gap)
            # it may have failed, but coordinate steps would take for ever
            if self.trial is not None and self._cost_of(left) > _STEPS_AFTER_TRIAL * self._newton_cost:
                return partial(self._settle_for, self.trial.newton)
        elif self._second_order_is_cheaper(left, passes, gap) or self._all_digits_are_wanted(gap, target):
            return partial(self._end_with, self._second_order(), afresh=self._is_far(gap))
        elif self._truncated_steps_may_pay(left, passes, gap):
            return partial(self._try_truncated_steps, left, passes, gap)
        elif isinstance(self.active, Permutations) and self._scans_may_pay(rate, left):
            return self._visit_adaptively
        return _go_on

    def _visit_adaptively(self) -> None:
        self._change(Adaptive)

    def _end_with(self, kind: type[Any], afresh: bool = False) -> None:
        """Change to a method that will not be left again, but for a first interior-point method, which may end too early."""
        has_ended = isinstance(self.active, InteriorPoint)
        self._change(kind, afresh)
        self.settled = has_ended or not isinstance(self.active, InteriorPoint)

    def _scans_may_pay(self, rate: float, left: float) -> bool:
        """Whether permutations are slow, or rows uneven; where a scan costs half of an epoch, two gaps have to say so.

        With the squared loss all rows matter alike: there adaptive visits save a tenth of the epochs, less than the scans cost.
        """
        if isinstance(self.problem.loss, Squared) or self._rows_matter_alike():
            return False
        if self.even < UNEVEN:
            return left > FEW_IF_UNEVEN
        if not left > _MANY_PASSES:
            return False
        with_scan = 1.0 + self._scan_cost / self._epoch_cost
        return rate * with_scan < _FAST and (with_scan < _DEAR_SCAN or not self.guessed)

    def _rows_matter_alike(self) -> bool:
        """Whether the residuals are so even that visits in proportion to them would be about one for each row."""
        if self.alike is None and self.residuals is not None:
            total, squares = float(self.residuals.sum()), float(np.einsum("i,i->", self.residuals, self.residuals))
            self.alike = total * total > _ALIKE * self.problem.n * squares
        return bool(self.alike)

    def _second_order(self) -> type[Solver]:
        if self._has_interior_path:
            return InteriorPoint
        return self._kind_of_conjugate_gradients() if self._by_conjugate_gradients else Newton

    def _kind_of_conjugate_gradients(self) -> type[ConjugateGradients]:
        return RowSpaceCg if RowSpaceCg.suits(self.problem) else ConjugateGradients

    @cached_property
    def _by_conjugate_gradients(self) -> bool:
        return ConjugateGradients.suits(self.problem) and not self._hessian_fits

    def _all_digits_are_wanted(self, gap: float, target: float) -> bool:
        """Whether tol is 0 and Newton's method, the only one that gets there, can take over from a point that is near."""
        return target <= 0.0 and self._newton_suits and self._hessian_fits and gap < _NEAR * self.problem.at_zero

    def _is_far(self, gap: float) -> bool:
        return gap > _FAR * self.problem.at_zero

    def _second_order_is_cheaper(self, left: float, passes: float, gap: float) -> bool:
        """Whether the passes that are left would cost more than the steps of a second-order method."""
        problem, cost = self.problem, self._cost_of(left)
        if self._has_interior_path:
            return cost > _INTERIOR_STEPS * self._newton_cost
        if not self._newton_suits:
            return False
        if self._by_conjugate_gradients:
            return left > _TOO_MANY_FOR_CG
        if not self._hessian_fits:
            return left > _TOO_MANY_PASSES and passes - self._spent_on_trial > _TOO_MANY_PASSES / 5
        steps = float(_NEWTON_STEPS if isinstance(problem.loss, Logistic) else _STEPS_TO_SETTLE)
        return cost > steps * self._gain(gap) * self._newton_cost

    def _change(self, kind: type[Any], afresh: bool = False) -> None:
        """Go on with another method from the point reached; or from zero, where that point is of no use."""
        old, new = self.active, kind(self.problem, self.rng)
        new.team, new.target = self.team, self.target
        if isinstance(new, ExactSteps) and isinstance(old, ExactSteps):
            new.take_over(old)
        else:  # not with the old α itself: should Ctrl-C come now, the point is still the old one
            new.given_w = old.w.copy() if isinstance(old, (Newton, ConjugateGradients)) and not afresh else None
            new.start(np.zeros(self.problem.n) if afresh else old.alpha.copy(), 0.0 if afresh else old.intercept)
        self._go_on_with(new)

    def _go_on_with(self, method: Solver) -> None:
        """Begin a phase: of a method that is ready, or that was left."""
        self.active, self.phase, self.since = method, method.name, len(self.history)

    def _gain(self, gap: float) -> float:
        """By how much adaptive visits may still save the day."""
        if not isinstance(self.active, Permutations):
            return 1.0
        return _LITTLE_GAIN if self._is_far(gap) else _ADAPTIVE_GAIN

    def _truncated_steps_may_pay(self, left: float, passes: float, gap: float) -> bool:
        """Whether truncated Newton steps, whose number nobody can foretell, should have a trial."""
        problem = self.problem
        if not isinstance(self.active, ExactSteps) or not self._truncated_steps_are_cheap:
            return False
        has_flat_parts = not isinstance(problem.loss, Logistic)
        if has_flat_parts and isinstance(self.active, Permutations) and not self._rows_matter_alike():
            return False  # adaptive visits may be all that is needed
        cost = self._cost_in_all(left, passes, gap)
        return not self._by_conjugate_gradients and Trial.is_cheap(problem, cost, self._spent_on_steps)

    @cached_property
    def _number_of_steps_is_a_guess(self) -> bool:
        """Whether Newton's steps would be truncated because a factorisation is dear, and nobody knows how many there will be.

        With flat parts of the loss each step may meet other rows.
        """
        problem = self.problem
        if isinstance(problem.loss, (Logistic, Squared)):
            return False
        direct = self._newton_suits and self._hessian_fits
        return direct and hessian.in_products(problem) > DEAR[problem.kind]

    @property
    def _truncated_steps_are_a_guess(self) -> bool:
        """The same, while coordinate steps are made."""
        return isinstance(self.active, ExactSteps) and self._number_of_steps_is_a_guess

    @cached_property
    def _truncated_steps_are_cheap(self) -> bool:
        """Whether the Hessian is too large to be formed, and a product with it costs less than an epoch."""
        problem = self.problem
        if not self._newton_suits or self._hessian_fits:
            return False
        return self._epoch_cost >= _CHEAP[problem.is_dense] * hessian.product_cost(problem)

    def _try_truncated_steps(self, left: float, passes: float, gap: float) -> None:
        before, cost = self.active, self._cost_in_all(left, passes, gap)
        if self.trial is None:
            self._change(Newton, afresh=self._is_far(gap))
            assert isinstance(self.active, Newton)
            self.trial = Trial(self.active, gap_within_digits(self.problem, self.target))
        else:
            self._go_on_with(self.trial.newton)
        self.trial.begin(before, passes, cost, gap)

    def _settle_for(self, newton: Newton) -> None:
        """Make steps for good that have been on trial, with a Hessian wherever conjugate gradients would cost as much."""
        self.trial = None
        newton.most_products = newton.full_price
        self._go_on_with(newton)
        self.settled = True

    def _cost_in_all(self, left: float, passes: float, gap: float) -> float:
        """What the coordinate steps have cost so far, and what they will."""
        return self._cost_of(passes - self._spent_on_trial + min(left, _FORESEEN) / self._gain(gap))

    @property
    def _spent_on_trial(self) -> float:
        return self.spent_looking + self._spent_on_steps

    @property
    def _spent_on_steps(self) -> float:
        return 0.0 if self.trial is None else self.trial.spent

    def _cost_of(self, passes: float) -> float:
        scans = self.active.part_of_scans if isinstance(self.active, Adaptive) else 0.0
        return passes * ((1.0 - scans) * self._epoch_cost + scans * self._scan_cost)

    @cached_property
    def _epoch_cost(self) -> float:
        problem = self.problem
        per_row = PER_ROW + (_PER_EXPONENTIAL if isinstance(problem.loss, Logistic) else 0.0)
        dense = (_PER_DENSE_ENTRY, _PER_DENSE_ROW)
        per_entry, per_long_row = dense if problem.is_dense else (_PER_LONG_ENTRY, _PER_LONG_ROW)
        entries = min(PER_ENTRY * problem.nnz, per_entry * problem.nnz + per_long_row * problem.n)
        return entries + per_row * problem.n + _PER_EPOCH

    @cached_property
    def _scan_cost(self) -> float:
        per_entry = _PER_DENSE_ENTRY_IN_ORDER if self.problem.is_dense else PER_ENTRY_IN_ORDER
        return per_entry * self.problem.nnz + _PER_SCANNED_ROW * self.problem.n

    # What does not change during a run; short epochs would take less time than to find it out after each.

    @cached_property
    def _newton_suits(self) -> bool:
        return Newton.suits(self.problem)

    @cached_property
    def _hessian_fits(self) -> bool:
        return Newton.direct(self.problem)

    @cached_property
    def _has_interior_path(self) -> bool:
        return InteriorPoint.suits(self.problem)

    @cached_property
    def _newton_cost(self) -> float:
        return step_cost(self.problem) + _PER_STEP
