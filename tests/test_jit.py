"""How kernels and their pieces are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualfree._jit import device, kernel, scalar


@device(reassociate=True)
def _squares(x: Any) -> float:
    total = 0.0
    for value in x:
        total += value * value
    return total


@scalar
def _half(x: float) -> float:
    return 0.5 * x


def test_a_piece_is_part_of_kernels_and_nothing_else() -> None:
    """Numba would end the process when Python calls what has no entry."""

    def half_of_squares(x: Any) -> float:
        return float(_half(_squares(x)))

    assert kernel(half_of_squares, keep=False)(np.array([1.0, 3.0])) == 5.0
    assert _half(3.0) == 1.5
    with pytest.raises(TypeError, match="_squares is a piece of kernels; mark it as a kernel or scalar"):
        _squares(np.ones(2))
