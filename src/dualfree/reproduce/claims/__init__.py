"""The paper's claims, one by one, with measured numbers and a verdict."""

from .cost import cost_claim
from .heuristic import capped_plus_claim, printed_plus_claim
from .residuals import residual_claim
from .speed import outperforms, speed_rows
from .theorem import theorem_claims
from .verdicts import HOLDS, UNTESTED, Claim

__all__ = [
    "HOLDS",
    "UNTESTED",
    "Claim",
    "capped_plus_claim",
    "cost_claim",
    "outperforms",
    "printed_plus_claim",
    "residual_claim",
    "speed_rows",
    "theorem_claims",
]
