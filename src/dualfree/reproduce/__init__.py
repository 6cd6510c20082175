"""The paper, reproduced: its figures, its claims with verdicts, and the same comparison on other data."""

from .comparison import Comparison, compare
from .paper import Reproduction, reproduce

__all__ = ["Comparison", "Reproduction", "compare", "reproduce"]
