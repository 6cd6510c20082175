"""Every example in a docstring runs, and every public name of the engine has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import Any

import pytest

import dualfree
import dualfree.distributed
import dualfree.losses
import dualfree.sampling
import dualfree.testing

MODULES = [
    name for _, name, _ in pkgutil.walk_packages(dualfree.__path__, "dualfree.") if not name.endswith("__main__")
]


# The whole reproduction once more, which has tests of its own.
LONG = {"dualfree.reproduce.paper"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in MODULES]
)
def test_examples_run(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def public_names() -> list[Any]:
    names = []
    for module in (
        dualfree,
        dualfree.distributed,
        dualfree.losses,
        dualfree.sampling,
        dualfree.solvers,
        dualfree.testing,
    ):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                names.append(pytest.param(thing, id=f"{module.__name__}.{name}"))
    return names


@pytest.mark.parametrize("thing", public_names())
def test_public_names_have_an_example(thing: Any) -> None:
    assert thing.__doc__, "no docstring"
    assert "Examples\n" in thing.__doc__, "no example"
    assert ">>>" in thing.__doc__
