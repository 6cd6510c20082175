"""What every reader returns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .._checks import Array
from .encoding import Encoding

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Dataset:
    r"""Rows, targets, and how they were read.

    Attributes
    ----------
    X : C-order array or CSR array of shape (n, d)
    y : array of shape (n,) or None
        Float64 numbers, or strings. None when the file holds no target.
    encoding : Encoding
        How the columns came about.
    name : str
        The file.
    bad_lines : int
        Broken lines that were skipped.
    unknown : int
        Entries left out because the model that the data are read for does not know their feature or category.
    notes : tuple of str
        Sentences for the user.

    Examples
    --------
    >>> from io import BytesIO
    >>> from dualfree.io import read_data
    >>> data = read_data(BytesIO(b"1 1:2\n0 2:3\n"), format="libsvm")
    >>> data.X.shape, data.y
    ((2, 2), array([1., 0.]))
    >>> data.fingerprint()[:12]
    'c5f278582e8e'
    """

    X: Any
    y: Array | None
    encoding: Encoding
    name: str
    bad_lines: int = 0
    unknown: int = 0
    notes: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """Return a SHA-256 digest of the rows and targets, in order.

        The same numbers give the same digest whatever file and memory layout they come from.
        """
        digest = hashlib.sha256(f"{self.X.shape[0]} {self.X.shape[1]}".encode())
        for start in range(0, self.X.shape[0], _BLOCK):
            block = scipy.sparse.csr_array(self.X[start : start + _BLOCK])
            block.sum_duplicates()
            block.eliminate_zeros()
            digest.update(np.diff(block.indptr).astype("<i8").tobytes())
            digest.update(block.indices.astype("<i8").tobytes())
            digest.update(block.data.astype("<f8").tobytes())
        if self.y is not None and self.y.dtype.kind == "f":
            digest.update(self.y.astype("<f8").tobytes())
        elif self.y is not None:
            for label in self.y.tolist():
                digest.update(repr(label).encode())
        return digest.hexdigest()
