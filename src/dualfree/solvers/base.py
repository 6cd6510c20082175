"""What a solver is: the steps that the driver (`driver.py`) repeats.

The driver owns epochs, time, certificates and stopping; a solver owns its α and w and knows how to visit coordinates.

    start(alpha, intercept)      line 2–3 of Algorithm 1: take α, set w = w(α)
    begin_epoch()                before n visits
    visit(count)                 `count` coordinate updates; short enough that the driver can look at the clock
    end_epoch()                  after n visits

The intercept. b is the multiplier of Σ α = 0, so the method of multipliers finds it: every row gets a constant column of
value β (margins x_i·w + b + βω with ω = (β/(λn)) Σ α; v_i grows by β²), and after each epoch b ← b + βω. Kernels know only
`offset`, the sum b + βω, and `extra` = β².
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .._checks import Array, near_match
from ..moments import Moments
from ..problem import Problem
from ..team import Team

# β² as a part of the mean ‖x_i‖². Anything between 0.1 and 1 costs next to nothing; 10 is several times slower.
INTERCEPT_SHARE = 0.3

# One call of a kernel handles at most about this many stored entries, so that Ctrl-C and max_time are heard in time.
ENTRIES_PER_CALL = 1 << 24

# Random numbers are drawn in pieces of this size; they need not be kept for all n.
_DRAWS_PER_CALL = 1 << 16


class RandomSource:
    """A generator that is made when it is first asked for: making one takes as long as a Newton step on small data."""

    def __init__(self, seed: int | np.random.Generator | None) -> None:
        self.seed = seed

    @cached_property
    def generator(self) -> np.random.Generator:
        """The generator, one and the same for all who ask."""
        return np.random.default_rng(self.seed)


RandomNumbers: TypeAlias = np.random.Generator | RandomSource

# A gap at rounding level by the solver's own estimate, in P(0), is reason enough for a certificate, whatever tol is.
AT_ROUNDING = 1e-13


class Solver:
    """Base class of the solvers.

    Parameters
    ----------
    problem : Problem
        What to solve.
    rng : numpy.random.Generator
        The only source of randomness. (`auto` gets a `RandomSource`.)

    Examples
    --------
    A solver says how it visits rows. This one goes through them in their order, with the safe step:

    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.sampling import safe_ratios
    >>> class Cyclic(df.solvers.Solver):
    ...     name = "cyclic"
    ...     def begin_epoch(self):
    ...         self.position = 0
    ...     def visit(self, count):
    ...         p, ratios = self.problem, safe_ratios(self.problem, self.extra)
    ...         for i in range(self.position, self.position + count):
    ...             row = df.Problem(p.X[[i]], p.y[[i]], p.loss, p.lam)
    ...             kappa = row.residuals(self.w, self.alpha[[i]])[0]
    ...             self.alpha[i] -= ratios[i] * kappa
    ...             self.w -= self.scale * ratios[i] * kappa * p.X[i]
    ...         self.position += count
    ...         self.rows_touched += count
    >>> df.SOLVERS["cyclic"] = Cyclic
    >>> problem = df.Problem(np.eye(3), [1.0, 2.0, 3.0], loss="squared", lam=1.0)
    >>> df.solve(problem, "cyclic").status.name
    'CONVERGED'
    >>> del df.SOLVERS["cyclic"]
    """

    name: ClassVar[str] = ""
    needs_smooth: ClassVar[bool] = True
    needs_convex: ClassVar[bool] = False
    may_diverge: bool = False
    evaluate_each_epoch: bool = False
    """Whether an epoch is so dear, compared with a certificate, that each one should be followed by one."""

    trusts_dual: bool = False
    """Whether α is as good as w, so that the gradient bound, a pass over the data, is only worth its price at the end."""

    may_be_worse_than_none: bool = False
    """Whether α may say less of the optimum than α = 0, which says that P* ≥ 0."""

    epochs_allowed: int = 1
    """How many epochs the next call may make; a method whose epochs are shorter than a call of the interpreter makes some."""

    epochs_made: int = 1
    """How many it made."""

    enough_activity: float = np.inf
    """An epoch with no more activity than this is the last one of a call: the driver wants to evaluate."""

    enough_guessed: float = 0.0
    """The same of a guess, until there has been a certificate to compare activities with; 0 from then on."""

    may_shorten: bool = False
    """Whether an epoch may be shorter than n visits, where fewer are foretold to be enough."""

    part_wanted: float = 1.0
    """What part of the next epoch is wanted of a method that may shorten it."""

    residuals: Array | None = None
    """|κ_i| at the last evaluation."""

    gap_estimate: float | None = None
    """What the gap is about at this point, where the method knows; a certificate is then due when it says enough."""

    activity: float | None = None
    """What shrinks about as the gap does; the driver extrapolates with it."""

    activity_before: float | None = None
    """What it was an epoch ago, where the last call made several."""

    guess: float | None = None
    """What the gap is about, by what its rows were found to have in it on the way; good enough until there is a certificate."""

    even: float = 1.0
    """How even the residuals were that the last epoch met, where the method knows: 1 if all were alike, 1/n if one was all."""

    begins_at_zero: bool = False
    """Whether the α to begin with is known to be zero; to look at all of it takes as long as a pass over few columns."""

    given_w: Array | None = None
    """Weights to begin with, where they are not w(α); a method that keeps w and α apart begins there."""

    target: float = 0.0
    """The gap wanted, P(0) times tol; the driver says it before the start."""

    optimism: float = 1.0
    """By how much the method's own estimate of the gap was too small at the last certificate; the driver says it."""

    dual_follows: bool = False
    """Whether α is s (y − X w − b), the squared loss's at (w, b), and is yet to be formed: the certificate does it."""

    moments: Moments | None = None
    """XᵀX and Xᵀy, where the method has formed them."""

    drift: float | None = None
    """A bound on ‖w − w(α)‖, rounding included, where the method keeps one; it saves the pass that sums w(α) anew."""

    instead: ClassVar[str] = ""
    """What to use instead, for the message of a run that diverged."""

    def __init__(self, problem: Problem, rng: RandomNumbers) -> None:
        self.problem = problem
        self._random_numbers = rng
        self.rows_touched = 0.0
        self.scale = 1.0 / (problem.lam * problem.n)
        self.extra = 0.0
        if problem.fit_intercept:
            mean = float(problem.row_norms_squared.mean())
            self.extra = INTERCEPT_SHARE * mean if mean > 0 else 1.0
        self.phase = self.name

    @cached_property
    def rng(self) -> np.random.Generator:
        """The only source of randomness."""
        given = self._random_numbers
        return given.generator if isinstance(given, RandomSource) else given

    @cached_property
    def team(self) -> Team:
        """The threads to use: the caller's alone, unless the driver says otherwise."""
        return Team(self.problem)

    def threads(self, most: int) -> int:
        """How many threads are worth being started, at most so many."""
        return most

    @property
    def data(self) -> tuple[Any, ...]:
        """What every kernel takes first: rows, loss, y, s, v, 1/(λn) and β²."""
        p = self.problem
        return p.rows, p.loss.compiled, p.y, p.sample_weight, p.row_norms_squared, self.scale, self.extra

    @property
    def visits_per_call(self) -> int:
        """The most visits that one call of `visit` should make."""
        per_visit = max(1, self.problem.nnz // self.problem.n)
        return max(1, min(_DRAWS_PER_CALL, ENTRIES_PER_CALL // per_visit))

    def start(self, alpha: Array, intercept: float) -> None:
        """Take α as the starting point and set w = w(α)."""
        self.alpha = alpha
        self.w = np.zeros(self.problem.d) if self.is_zero(alpha) else self.problem.weights_of(alpha)
        self.intercept = intercept
        self.offset = np.zeros(1)
        self._set_offset()

    def is_zero(self, alpha: Array) -> bool:
        """Whether the α to begin with is zero."""
        return self.begins_at_zero or not alpha.any()

    def _set_offset(self) -> None:
        constant = self.extra * self.scale * self.alpha.sum() if self.extra else 0.0  # βω
        self.offset[0] = self.intercept + constant

    def begin_epoch(self) -> None:
        """Prepare n visits."""

    def visit(self, count: int) -> None:
        """Make `count` coordinate updates."""
        raise NotImplementedError

    def end_epoch(self) -> None:
        """Finish an epoch: the multiplier step of the intercept."""
        if self.problem.fit_intercept:
            self._set_offset()
            self.intercept = float(self.offset[0])  # b ← b + βω
            self._set_offset()

    def candidate(self) -> tuple[Array, Array | None, float | None]:
        """Return (α, w, b) for evaluation; w and b are None where they follow from α."""
        return self.alpha, None, None

    def renew(self, w: Array, error: float) -> None:
        """Take w(α) as it was just summed from α; the sum is off by at most `error` Σ |α_i| ‖x_i‖."""
        self.w[:] = w

    def foresee(self, gap: float, target: float) -> None:
        """As `observe`, of a gap that is estimated and not certified."""
        self.observe(gap, target)

    def judges_by_guess(self, guess: float, target: float) -> bool:
        """Judge the run by what the gap is about; return False where that needs a certificate."""
        return False

    def observe(self, gap: float, target: float) -> None:
        """Hear of an evaluation."""

    # --- what a solver takes ----------------------------------------------------------------------------------------

    @classmethod
    def option_names(cls) -> list[str]:
        """The options that this solver takes."""
        parameters: Callable[..., Any] = cls.__init__
        return [n for n, p in inspect.signature(parameters).parameters.items() if p.kind is p.KEYWORD_ONLY]

    @classmethod
    def check(cls, problem: Problem, options: dict[str, Any]) -> None:
        """Refuse, in a sentence, options that the solver does not take and problems that it cannot solve."""
        known = cls.option_names() if options else []
        for option in options:
            if option not in known:
                takes = f"It takes {', '.join(known)}." if known else "It takes no options."
                raise TypeError(f"solver {cls.name!r} takes no option {option!r}.{near_match(option, known)} {takes}")
        if cls.needs_convex and not problem.loss.convex:
            raise ValueError(
                f"solver {cls.name!r} needs a convex loss, and {problem.loss!r} is only average-convex. "
                "Use 'auto', 'dfsdca', 'importance' or 'adfsdca'."
            )
        if cls.needs_smooth and not np.isfinite(problem.loss.smoothness):
            raise ValueError(
                f"solver {cls.name!r} needs a smooth loss, and {problem.loss!r} is not. "
                "Use 'auto', 'prox-sdca' or 'adfsdca+', whose exact steps need no smoothness."
            )
