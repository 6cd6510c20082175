"""How methods look: one colour, one line and one marker each, the same in every figure.

The colours are Okabe and Ito's, which colour-blind readers can tell apart; line and marker tell apart what the colour
does not. The first, wide line under a dashed one shows where two methods coincide.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._optional import require
from ..io import written_in_place

AXES = {
    "epoch": "epochs (n coordinate updates each, as the paper counts)",
    "passes": "passes (rows touched / n)",
    "seconds": "seconds of solving",
}
SHORT_AXES = {"epoch": "epochs", "passes": "passes", "seconds": "seconds"}


@dataclass(frozen=True, slots=True)
class Look:
    """A method's name and its pen."""

    label: str
    colour: str
    line: str
    marker: str
    width: float = 1.6


_LOOKS = {
    "dfsdca": Look("dfSDCA", "#0072B2", "-", "o", 3.0),
    "adfsdca": Look("adfSDCA", "#D55E00", "-", "s"),
    "adfsdca+:step=safe": Look("adfSDCA+ (capped step)", "#CC79A7", "-", "^"),
    "adfsdca+:step=exact": Look("adfSDCA+ (exact step)", "#009E73", "-", "D"),
    "adfsdca+:step=paper": Look("adfSDCA+ (as printed)", "#999999", ":", "x"),
    "prox-sdca:order=uniform": Look("Prox-SDCA (uniform)", "#E69F00", "--", "v"),
    "prox-sdca:order=permutation": Look("Prox-SDCA (permutations)", "#000000", "-.", "P"),
    "importance": Look("importance sampling", "#56B4E9", "--", "<"),
    "auto": Look("auto", "#6A3D9A", "-", "*"),
}
_SAME = {"adfsdca+": "adfsdca+:step=exact", "prox-sdca": "prox-sdca:order=permutation"}


def look(key: str) -> Look:
    """Return the look of a method; options beyond the usual ones change the name, not the colour."""
    usual = _LOOKS.get(_SAME.get(key, key))
    if usual is not None:
        return usual
    near = max((k for k in _LOOKS if key.startswith(k)), key=len, default=None)
    near = near or _SAME.get(key.split(":")[0])
    base = _LOOKS[near] if near is not None else Look(key, "#777777", "-", ".")
    return Look(key.replace(":", ", "), base.colour, (0, (1, 1)), base.marker)  # type: ignore[arg-type]


def in_order(keys: Iterable[str]) -> list[str]:
    """Return methods in the order in which legends list them, each once."""
    names = list(_LOOKS)
    return sorted(
        dict.fromkeys(keys), key=lambda key: names.index(k) if (k := _SAME.get(key, key)) in names else len(names)
    )


def new_figure(width: float, height: float) -> Any:
    """Return a figure that belongs to no window."""
    return require("matplotlib.figure", "report").Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, folder: Path, name: str) -> str:
    """Write PNG and SVG; return the name."""
    matplotlib = require("matplotlib", "report")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout is found: it need not be sought again for each format
    for suffix in ("png", "svg"):
        # A fixed salt and no date: the same traces give the same bytes.
        with (
            matplotlib.rc_context({"svg.hashsalt": "dualfree"}),
            written_in_place(folder / f"{name}.{suffix}") as temporary,
        ):
            metadata = {"Date": None} if suffix == "svg" else None
            figure.savefig(os.fspath(temporary), format=suffix, dpi=150, metadata=metadata)
    return name
