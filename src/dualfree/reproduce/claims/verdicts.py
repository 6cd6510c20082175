"""Verdicts in words, and the rules by which they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

HOLDS = "holds"
MOSTLY = "holds mostly"
PARTLY = "holds in part"
NOT = "does not hold"
UNTESTED = "not tested"

WIN = 1.05
"""A factor between 1/1.05 and 1.05 is a tie."""
MOST = 0.75
"""From this share of the comparisons on, something holds mostly."""
AXIS_NAMES = {"epoch": "epochs", "passes": "passes", "seconds": "seconds"}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper, what was measured, and the verdict.

    Attributes
    ----------
    id : str
        A short name.
    claim : str
        What the paper says.
    where : str
        Where it says so.
    verdict : str
    sentence : str
        The verdict explained, with numbers.
    rule : str
        When the verdict would have been "holds".
    measured : dict
        The numbers of the sentence.
    rows : list of dict
        The numbers behind them, one row for each problem or comparison; each says which data, and whether synthetic.
    """

    id: str
    claim: str
    where: str
    verdict: str
    sentence: str
    rule: str
    measured: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def tally(factors: Sequence[float]) -> dict[str, Any]:
    """Count wins, ties and losses of factors (above 1: the claim's side needs less), with their median."""
    values = np.asarray(factors, dtype=np.float64)
    wins, losses = int((values > WIN).sum()), int((values < 1.0 / WIN).sum())
    median = float(np.median(values)) if values.size else None
    return {"wins": wins, "ties": values.size - wins - losses, "losses": losses, "median_factor": median}


def axis_verdict(count: Mapping[str, Any]) -> str:
    """Return the verdict on one axis: holds without a loss, mostly from 75 % of wins on."""
    total = count["wins"] + count["ties"] + count["losses"]
    if total == 0:
        return UNTESTED
    if count["losses"] == 0 and count["wins"] > 0:
        return HOLDS
    if count["wins"] >= MOST * total:
        return MOSTLY
    return NOT if count["wins"] < (1.0 - MOST) * total else PARTLY


def over_axes(verdicts: Mapping[str, str]) -> str:
    """Join the verdicts of epochs, passes and seconds into one phrase."""
    if set(verdicts.values()) == {UNTESTED}:
        return UNTESTED
    if len(set(verdicts.values())) == 1:
        return next(iter(verdicts.values()))
    good = [AXIS_NAMES[a] for a, v in verdicts.items() if v == HOLDS]
    mostly = [AXIS_NAMES[a] for a, v in verdicts.items() if v == MOSTLY]
    partly = [AXIS_NAMES[a] for a, v in verdicts.items() if v == PARTLY]
    bad = [AXIS_NAMES[a] for a, v in verdicts.items() if v == NOT]
    if good == ["epochs"] and not mostly and not partly:
        return "holds in epochs only"
    if mostly == ["epochs"] and not good and not partly:
        return "holds mostly in epochs only"
    parts = [
        f"{word} in {' and '.join(names)}"
        for word, names in ((HOLDS, good), (MOSTLY, mostly), (PARTLY, partly), ("not", bad))
        if names
    ]
    return ", ".join(parts)


def in_words(count: Mapping[str, Any]) -> str:
    """Return a tally as text."""
    total = count["wins"] + count["ties"] + count["losses"]
    median = "" if count["median_factor"] is None else f", median factor {count['median_factor']:.2g}"
    return f"{count['wins']} of {total} won, {count['losses']} lost{median}"
