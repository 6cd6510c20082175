"""Multinomial (softmax) regression: problem, solver, certificate."""

from .certificate import MultinomialCertificate, certify_multinomial
from .problem import MultinomialProblem
from .solver import solve_multinomial

__all__ = ["MultinomialCertificate", "MultinomialProblem", "certify_multinomial", "solve_multinomial"]
