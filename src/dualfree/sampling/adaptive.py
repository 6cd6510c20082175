"""The paper's adaptive probabilities: Θ(κ, p) and the lemma that maximises it.

The theorem bounds the expected potential (1/n) Σ a_i (α_i − α_i*)² + g ‖w − w*‖² after one step by (1 − θ) times its value
for every

    θ ≤ Θ(κ, p) = Σ a_i κ_i² / Σ (a_i + g v_i/(nλ²)) κ_i² / p_i,

and the lemma gives the best p: p_i ∝ c_i |κ_i| with c_i² = a_i + g v_i/(nλ²), Θ* = Σ a_i κ_i² / (Σ c_i |κ_i|)².

- Convex losses: a_i = 1/L_i, g = λ. (The paper has one L and multiplies by it: a = 1, g = γ = λ L.)
- Average-convex losses: a_i = 1, g = γ = (1/n) Σ L_i² v_i.

The safe ratio r_i = a_i/c_i² is what Θ/p_i becomes for p_i ∝ 1/r_i; a step α_i −= r_i κ_i never leaves the dual domain.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._checks import Array
from .._jit import device, kernel
from ..problem import Problem


@device
def lemma_pair(s: float, v: float, scales: tuple[float, float, bool]) -> tuple[float, float]:
    """Return (a_i, c_i) of one row from its weight and squared norm; `scales` comes from `potential_scales`.

    Both are 0 where the weight is zero: such a row has κ_i = 0 and takes no part.
    """
    smoothness, factor, convex = scales
    if s == 0.0:
        return 0.0, 0.0
    a = 1.0 / (s * smoothness) if convex else 1.0
    c_squared = a + factor * v
    return a, np.sqrt(c_squared) if c_squared > 0.0 else 1.0  # an empty row under a loss that is not smooth


@kernel
def _pairs(s: Any, v: Any, extra: float, scales: Any) -> Any:
    a, c = np.empty(s.size), np.empty(s.size)
    for i in range(s.size):
        a[i], c[i] = lemma_pair(s[i], v[i] + extra, scales)
    return a, c


@kernel
def _smallest_ratio(s: Any, v: Any, extra: float, scales: Any) -> float:
    smallest = 1.0
    for i in range(s.size):
        a, c = lemma_pair(s[i], v[i] + extra, scales)
        if s[i] > 0.0:
            smallest = min(smallest, a / (c * c))
    return smallest


def potential_scales(problem: Problem, extra: float = 0.0) -> tuple[float, float, bool]:
    """Return (L̃, g/(nλ²), convex): with a row's weight and norm they give its a_i and c_i (`lemma_pair`).

    `extra` is added to every v_i: the constant column that stands for an intercept.
    """
    nlam = problem.n * problem.lam
    smoothness = float(problem.loss.smoothness)
    if problem.loss.convex:
        return smoothness, 1.0 / nlam, True
    weighted = problem.sample_weight * smoothness
    gamma = float(np.mean(weighted**2 * (problem.row_norms_squared + extra)))
    return smoothness, gamma / nlam / problem.lam, False


def lemma_scales(problem: Problem, extra: float = 0.0) -> tuple[Array, Array]:
    """Return (a, c): the a_i of the potential and the c_i of the lemma's p_i ∝ c_i |κ_i|.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.sampling import lemma_scales
    >>> problem = df.Problem(np.diag([1.0, 2.0]), [1.0, 1.0], loss="squared", lam=0.5)
    >>> a, c = lemma_scales(problem)
    >>> a, c**2
    (array([1., 1.]), array([2., 5.]))
    """
    a, c = _pairs(problem.sample_weight, problem.row_norms_squared, extra, potential_scales(problem, extra))
    return a, c


def safe_ratios(problem: Problem, extra: float = 0.0) -> Array:
    """Return r_i = a_i/c_i² = nλ/(nλ + L_i v_i); 0 where the weight is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.sampling import safe_ratios
    >>> safe_ratios(df.Problem(np.diag([1.0, 2.0]), [1.0, 1.0], loss="squared", lam=0.5))
    array([0.5, 0.2])
    """
    a, c = lemma_scales(problem, extra)
    return np.divide(a, c * c, out=np.zeros(problem.n), where=a > 0)


def smallest_safe_ratio(problem: Problem, extra: float = 0.0) -> float:
    """Return min r_i over the rows with a positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.sampling import smallest_safe_ratio
    >>> round(smallest_safe_ratio(df.Problem(np.diag([1.0, 2.0]), [1.0, 1.0], loss="squared", lam=0.5)), 9)
    0.2
    """
    scales = potential_scales(problem, extra)
    return float(_smallest_ratio(problem.sample_weight, problem.row_norms_squared, extra, scales))


def theta(problem: Problem, kappa: Array, p: Array) -> float:
    """Return Θ(κ, p), the largest θ for which the theorem promises progress.

    Parameters
    ----------
    problem : Problem
        The problem; its loss, weights, norms and λ enter.
    kappa : array of shape (n,)
        The dual residuals.
    p : array of shape (n,)
        Probabilities, coherent with κ: positive wherever κ is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.sampling import optimal_probabilities, theta
    >>> problem = df.Problem(np.diag([1.0, 2.0]), [1.0, 1.0], loss="squared", lam=0.5)
    >>> kappa = np.array([1.0, 1.0])
    >>> p = optimal_probabilities(problem, kappa)
    >>> theta(problem, kappa, p) > theta(problem, kappa, np.array([0.5, 0.5]))
    True
    """
    a, c = lemma_scales(problem)
    support = (kappa != 0) & (a > 0)
    if not support.any():
        return 1.0
    if np.any(p[support] <= 0):
        return 0.0  # not coherent with κ
    top = math.fsum(a[support] * kappa[support] ** 2)
    return top / math.fsum((c[support] * kappa[support]) ** 2 / p[support])


def optimal_probabilities(problem: Problem, kappa: Array) -> Array:
    """Return the lemma's p*(κ) ∝ c_i |κ_i|; zero wherever κ_i is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.sampling import optimal_probabilities
    >>> problem = df.Problem(np.eye(3), [1.0, 1.0, 1.0], loss="squared", lam=1.0)
    >>> optimal_probabilities(problem, np.array([0.0, 1.0, 3.0]))
    array([0.  , 0.25, 0.75])
    """
    _, c = lemma_scales(problem)
    weights = c * np.abs(kappa)
    total = weights.sum()
    return np.asarray(weights / total) if total > 0 else weights
