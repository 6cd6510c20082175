"""What is run: every run of a plan, written down before the first one starts.

One run is data × loss × λ × method × seed. The paper does not say which λ, which s (`shrink`) and, for the heuristic,
which θ it used; the plan therefore holds several λ and a study of s, of the step and of θ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._checks import near_match, real_number
from .._version import __version__
from ..solvers import SOLVERS

PAPER_DATA = ("mushrooms", "rcv1")
PAPER_LOSSES = ("squared", "logistic")
SHRINKS = (1.5, 2.0, 10.0, 100.0)
THETA_FACTORS = (0.1, 0.01, 0.001)
RESIDUAL_EPOCHS = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Method:
    """A solver with its options.

    Attributes
    ----------
    solver : str
        A name in ``dualfree.SOLVERS``.
    options : tuple of (name, value)
        Options of the solver.
    theta_factor : float
        Only for adfSDCA+ as printed: θ is this many times the lemma's Θ*. The paper does not say which θ it used.
    """

    solver: str
    options: tuple[tuple[str, Any], ...] = ()
    theta_factor: float = 1.0

    @property
    def key(self) -> str:
        """A name that is unique among methods and fit for a file name."""
        parts = [self.solver] + [f"{name}={value}" for name, value in self.options]
        if self.theta_factor != 1.0:
            parts.append(f"theta={self.theta_factor:g}")
        return ":".join(parts)

    @classmethod
    def parse(cls, text: str) -> Method:
        """Read ``solver`` or ``solver:option=value:option=value``.

        Examples
        --------
        >>> from dualfree.reproduce.plan import Method
        >>> Method.parse("adfsdca+:step=safe:shrink=2")
        Method(solver='adfsdca+', options=(('step', 'safe'), ('shrink', 2.0)), theta_factor=1.0)
        """
        solver, *options = text.strip().split(":")
        if solver not in SOLVERS:
            known = ", ".join(SOLVERS)
            raise ValueError(f"solver {solver!r} is unknown.{near_match(solver, SOLVERS)} Known: {known}.")
        pairs: list[tuple[str, Any]] = []
        for option in options:
            name, equals, written = option.partition("=")
            takes = SOLVERS[solver].option_names()
            if not equals or not written or name not in takes:
                can = f"It takes {', '.join(takes)}." if takes else "It takes no options."
                raise ValueError(f"{option!r} in {text!r} is not an option of {solver!r}, written name=value. {can}")
            try:
                pairs.append((name, float(written)))
            except ValueError:
                pairs.append((name, written))
        return cls(solver, tuple(pairs))


DFSDCA = Method("dfsdca")
ADFSDCA = Method("adfsdca")
PLUS_SAFE = Method("adfsdca+", (("step", "safe"),))
PLUS_EXACT = Method("adfsdca+", (("step", "exact"),))
PLUS_PRINTED = Method("adfsdca+", (("step", "paper"),))
PROX_UNIFORM = Method("prox-sdca", (("order", "uniform"),))
PROX_PERMUTATION = Method("prox-sdca", (("order", "permutation"),))
FIGURE_1 = (DFSDCA, ADFSDCA, PLUS_SAFE, PLUS_EXACT, PROX_UNIFORM, PROX_PERMUTATION)


@dataclass(frozen=True, slots=True)
class Strength:
    """λ, as a number or as a multiple of 1/n.

    Examples
    --------
    >>> from dualfree.reproduce.plan import Strength
    >>> Strength.parse("0.1/n").lam(n=1000)
    0.0001
    >>> str(Strength.parse("10/n")), str(Strength.parse("1e-4"))
    ('10/n', '0.0001')
    """

    value: float
    per_row: bool = True

    def lam(self, n: int) -> float:
        """Return λ for n rows."""
        return self.value / n if self.per_row else self.value

    def __str__(self) -> str:
        return f"{self.value:g}/n" if self.per_row else f"{self.value:g}"

    @classmethod
    def parse(cls, text: str | float) -> Strength:
        """Read ``0.1/n`` or a number."""
        written = str(text).strip()
        per_row = written.endswith("/n")
        try:
            value = float(written.removesuffix("/n"))
        except ValueError:
            raise ValueError(f"λ must be a number or a multiple of 1/n such as 0.1/n, got {text!r}.") from None
        return cls(real_number("λ", value, low=0.0, strict=True), per_row)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: data × loss × λ × method × seed.

    Attributes
    ----------
    study : str
        What it serves: "figure 1" or "sensitivity".
    data, loss : str
    strength : Strength
        λ.
    method : Method
    seed : int
    epochs : int
        The most epochs.
    tol : float
        The relative gap at which the run ends.
    """

    study: str
    data: str
    loss: str
    strength: Strength
    method: Method
    seed: int
    epochs: int
    tol: float

    def file_stem(self, fingerprint: str) -> str:
        """Return a readable name that changes with anything the outcome depends on."""
        content = json.dumps([asdict(self), fingerprint, __version__], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        readable = f"{self.data}_{self.loss}_{self.strength}_{self.method.key}_seed{self.seed}"
        return "".join(c if c.isalnum() or c in "._+-=" else "-" for c in readable) + f"_{digest}"

    @property
    def title(self) -> str:
        """The run in a few words, for a progress line."""
        return f"{self.data}, {self.loss}, λ = {self.strength}, {self.method.key}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs of a mode and their limits.

    Attributes
    ----------
    mode : str
        "quick" or "full".
    rows : int or None
        Rows drawn from each data set; None takes all.
    theory_rows : int
        Rows for the check of the theorem, which looks at every single iteration.
    theory_epochs : int
        Epochs of that check.
    theory_seeds : int
        Runs of that check: the theorem is about an expectation.
    seeds : int
        Seeds of each run.
    epochs : int
        The most epochs.
    slow_epochs : dict
        Fewer epochs for adfSDCA on a data set: each of its iterations updates the residuals of nearly all rows.
    tol : float
        The relative gap at which a run ends.
    strengths : tuple of Strength
        The λ.
    """

    mode: str
    rows: int | None
    theory_rows: int
    theory_epochs: int
    theory_seeds: int
    seeds: int
    epochs: int
    slow_epochs: tuple[tuple[str, int], ...] = ()
    tol: float = 1e-8
    strengths: tuple[Strength, ...] = (Strength(10.0), Strength(1.0), Strength(0.1))

    @classmethod
    def of(cls, mode: str, seeds: int | None = None) -> Plan:
        """Return the plan of a mode."""
        if mode == "quick":
            return cls(mode, 1500, 300, 5, 8, seeds or 3, 20)
        return cls(mode, None, 1000, 10, 20, seeds or 3, 40, (("mushrooms", 30), ("rcv1", 8)))

    def runs(self) -> list[Run]:
        """Return every run; the slow ones last, so that an interrupted plan has most of its runs."""
        runs = [*self._figure_1(), *self._sensitivity()]
        return sorted(runs, key=lambda run: run.method == ADFSDCA)

    def _figure_1(self) -> Iterator[Run]:
        slow = dict(self.slow_epochs)
        for data in PAPER_DATA:
            for loss in PAPER_LOSSES:
                for strength in self.strengths:
                    for method in FIGURE_1:
                        epochs = slow.get(data, self.epochs) if method == ADFSDCA else self.epochs
                        for seed in range(self.seeds):
                            yield Run("figure 1", data, loss, strength, method, seed, epochs, self.tol)

    def _sensitivity(self) -> Iterator[Run]:
        methods = [
            Method("adfsdca+", (("step", step), ("shrink", shrink)))
            for step in ("safe", "exact", "paper")
            for shrink in SHRINKS
        ]
        methods += [
            Method("adfsdca+", (("step", "paper"), ("shrink", shrink)), factor)
            for shrink in (1.5, 10.0)
            for factor in THETA_FACTORS
        ]
        for data in PAPER_DATA:
            for loss in PAPER_LOSSES:
                for strength in self.strengths:
                    for method in methods:
                        yield Run("sensitivity", data, loss, strength, method, 0, self.epochs, self.tol)


def comparison(
    data: str,
    losses: Sequence[str],
    strengths: Sequence[Strength],
    methods: Sequence[Method],
    seeds: int,
    epochs: int,
    tol: float,
) -> list[Run]:
    """Return the runs of a comparison on the user's own data."""
    return [
        Run("figure 1", data, loss, strength, method, seed, epochs, tol)
        for loss in losses
        for strength in strengths
        for method in methods
        for seed in range(seeds)
    ]
