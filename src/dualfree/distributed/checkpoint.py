"""Checkpoints: a small file on the client from which a later call goes on.

It holds w, b and the round, O(d) numbers. α is not in it: it has n entries, lives on the workers and is rebuilt from w as
α̂ = −s φ'(Xw + b), after which w is set to w(α̂). The file is written beside its place and moved there, so that it is always a
whole one, also when the client is killed in the middle.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import Array
from ..io.atomic import written_in_place
from .spec import Spec

FORMAT = 1
# Writing takes at most about this part of the time.
_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Saved:
    """A point on the way."""

    w: Array
    b: float
    round: int


class Checkpoint:
    """The file, and what it must agree with."""

    def __init__(self, path: str | os.PathLike[str], spec: Spec) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint {self.path} cannot be written: there is no folder {self.path.parent}.")
        self.problem: dict[str, Any] = {
            "loss": repr(spec.loss),
            "lam": spec.lam,
            "fit_intercept": spec.fit_intercept,
            "rows": spec.n,
            "columns": spec.d,
            "partitions": spec.partitions,
            "positive class": repr(spec.positive),
            "P(0)": spec.at_zero,
        }
        self.not_before = 0.0

    def load(self) -> Saved | None:
        """Return the point in the file, or None where there is no file yet."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                w = np.asarray(file["w"], dtype=np.float64)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise ValueError(f"checkpoint {self.path} is not a checkpoint of dualfree: {error}") from error
        if header.get("format") != FORMAT:
            raise ValueError(
                f"checkpoint {self.path} has format {header.get('format')!r}, this version of dualfree reads {FORMAT}."
            )
        for name, value in self.problem.items():
            if header["problem"].get(name) != value:
                raise ValueError(
                    f"checkpoint {self.path} belongs to another problem: its {name} is {header['problem'].get(name)!r}, "
                    f"here it is {value!r}. Remove the file or name another one."
                )
        return Saved(w, float(header["intercept"]), int(header["round"]))

    def save(self, point: Saved, *, at_once: bool = False) -> None:
        """Write the point, unless the last time was a moment ago."""
        began = time.monotonic()
        if began < self.not_before and not at_once:
            return
        header = {"format": FORMAT, "problem": self.problem, "intercept": point.b, "round": point.round}
        with written_in_place(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), w=point.w)
        now = time.monotonic()
        self.not_before = now + (now - began) / _SHARE
