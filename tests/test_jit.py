"""How kernels and their pieces are compiled."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualfree
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


def _slices_that_take_arrays(function: ast.FunctionDef) -> list[str]:
    """Assignments to slices in a function, but for those of a number."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign):
            pairs = [(node.target, node.value)]
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and isinstance(node.value, ast.Tuple)
        ):
            pairs = list(zip(node.targets[0].elts, node.value.elts, strict=True))
        elif isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        else:
            continue
        found += [
            f"{function.name}: {ast.unparse(node)}"
            for target, value in pairs
            if isinstance(target, ast.Subscript)
            and any(isinstance(part, ast.Slice) for part in ast.walk(target.slice))
            and not isinstance(value, ast.Constant)
        ]
    return found


def test_no_kernel_assigns_an_array_to_a_slice() -> None:
    # Numba would compile all that a message of two shapes needs, too: `vector_math.copy_into` says how long that takes.
    kernels, found = 0, []
    for path in Path(dualfree.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            marks = {mark.split("(")[0] for mark in map(ast.unparse, node.decorator_list)}
            if marks & {"kernel", "device", "scalar", "overload"}:
                kernels += 1
                found += _slices_that_take_arrays(node)
    assert kernels > 100
    assert found == []
