"""Which row next: the paper's adaptive probabilities (`adaptive`) and draws from changing weights (`sum_tree`)."""

from .adaptive import lemma_scales, optimal_probabilities, safe_ratios, smallest_safe_ratio, theta
from .sum_tree import SumTree

__all__ = ["SumTree", "lemma_scales", "optimal_probabilities", "safe_ratios", "smallest_safe_ratio", "theta"]
