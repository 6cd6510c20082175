"""Where the paper is silent or has slips: what is assumed here, and where its effect is measured."""

from __future__ import annotations

SILENT = (
    "λ is not given. Three are run: 10/n, 1/n and 0.1/n; every comparison is made at each of them.",
    "s, by which adfSDCA+ divides p_i, is not given. 10 in figure 1; 1.5, 2, 10 and 100 in the sensitivity figure.",
    "θ of adfSDCA+ is not given. The lemma's Θ* of the epoch's first residuals; 0.1, 0.01 and 0.001 times that are tried "
    "with the printed step.",
    "θ of dfSDCA is not given. The lower bound min_i r_i/n of Θ(κ, 1/n), which needs no residuals. Where all rows have the "
    "same norm, as in both data sets of the paper, it equals Θ(κ, 1/n) for every κ, so nothing hangs on it.",
    "The starting point is not given. α = 0, w = 0.",
    "The data, loss and λ of the residual densities are not given. All are measured; the figures show λ = 1/n.",
    "Whether adfSDCA+ visits row i with the residual of the scan or with the present one is left open. The present one is "
    "used: it is the residual that line 13 needs, and costs nothing extra.",
)
SLIPS = (
    "The quadratic loss is printed without its square, ½(wᵀx − y); ½(wᵀx − y)² is used.",
    "γ is printed as λL with L the smoothness of φ_i(x_iᵀ·), which already holds ‖x_i‖²; v_i = ‖x_i‖² is then counted "
    "twice. L is taken as the smoothness of φ alone.",
    "In equation (4) the residual is printed at w⁽ᵗ⁾ inside E[w⁽ᵗ⁾]; it is the one at w⁽ᵗ⁻¹⁾.",
    "In the appendix the first term of B⁽ᵗ⁺¹⁾ − B⁽ᵗ⁾ lacks its minus sign; E[κ_i/p_i] = n∇P lacks the factor x_i.",
    "rcv1 has 47,236 features in the LIBSVM collection; the paper says 47,237.",
    "Algorithm 1 with heuristic = True diverges as printed; see the verdict on it.",
)
MEASURED = (
    "The gap is a certified one: α is projected onto the dual domain, w = w(α) is summed afresh, and rounding is added. It "
    "is the smaller of P(w) − D(α) and ‖∇P(w)‖²/(2λ), which is the gap at α = −φ'(Xw). The traces hold P(w) − D(α) as well "
    "(pair_gap).",
    "One epoch is n coordinate updates, as the paper counts. Passes count every row whose entries are touched, residual "
    "scans and residual updates included, divided by n. Seconds are those of solving, without certificates and without "
    "compilation.",
    "With the squared loss and rows of equal norm dfSDCA takes exactly the step of Prox-SDCA with uniform sampling: with "
    "the same seed the two curves coincide.",
    "The densities are those of the projected point (w(α), α).",
)
