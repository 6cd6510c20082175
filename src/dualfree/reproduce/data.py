"""The paper's data: looked for in a folder, otherwise downloaded, otherwise made up and labelled as such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import Array
from ..io import DataError, Dataset, Encoding, read_data
from .download import DownloadError, Progress, download
from .synthetic import like_mushrooms, like_rcv1

_COLLECTION = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


@dataclass(frozen=True, slots=True)
class _Known:
    """Where a data set of the paper can come from."""

    file: str
    checksum: str
    names: tuple[str, ...]
    stand_ins: tuple[str, ...]
    make: Callable[[], tuple[Any, Array]]


KNOWN = {
    "mushrooms": _Known(
        "mushrooms",
        "sha256:f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
        ("mushrooms",),
        (),
        like_mushrooms,
    ),
    "rcv1": _Known(
        "rcv1_train.binary.bz2",
        "md5:1aeda848408e621468c0fe6944d9382f",
        ("rcv1_train.binary", "rcv1_train", "rcv1"),
        ("rcv1_subsets",),
        like_rcv1,
    ),
}
_SUFFIXES = ("", ".npz", ".svm", ".libsvm", ".txt", ".bz2", ".gz", ".xz", ".svm.bz2", ".svm.gz", ".svm.xz")


@dataclass(frozen=True, slots=True)
class PaperData:
    """A data set with its history.

    Attributes
    ----------
    name : str
        What the plan calls it: "mushrooms", "rcv1" or a name of the user's.
    label : str
        What figures and rows call it; it says so where the data are synthetic, stand in for others, or are a part.
    X : matrix of shape (n, d)
    y : array of shape (n,)
        ±1 for two classes.
    origin : str
        "file", "stand-in", "download" or "synthetic".
    where : str
        The file or address they come from.
    """

    name: str
    label: str
    X: Any
    y: Array
    origin: str
    where: str

    @property
    def synthetic(self) -> bool:
        """Whether the data are made up."""
        return self.origin == "synthetic"

    def fingerprint(self) -> str:
        """Return a digest of rows and targets."""
        return Dataset(self.X, self.y, Encoding(self.X.shape[1], self.X.dtype.name), self.label).fingerprint()

    def part(self, rows: int | None) -> PaperData:
        """Return `rows` rows, drawn once and for all with a fixed seed; all where there are not more."""
        n = self.X.shape[0]
        if rows is None or rows >= n:
            return self
        chosen = np.sort(np.random.default_rng(20150621).permutation(n)[:rows])
        return replace(self, label=f"{self.label}, {rows:,} of {n:,} rows", X=self.X[chosen], y=self.y[chosen])


def find(
    name: str,
    data_dir: Path | None,
    store: Path,
    allow_download: bool = True,
    progress: Progress | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> PaperData:
    """Return a data set of the paper.

    Parameters
    ----------
    name : str
        "mushrooms" or "rcv1".
    data_dir : Path or None
        Looked into first, for LIBSVM text or .npz, under the names of the LIBSVM collection.
    store : Path
        Downloads go here, and are found here again.
    allow_download : bool, default=True
        Whether the network may be used.
    progress : callable, optional
        Hears of a download.
    note : callable, optional
        Hears, in a sentence, why a data set had to be made up.

    Returns
    -------
    PaperData
    """
    known = KNOWN[name]
    folders = [folder for folder in (data_dir, store) if folder is not None and folder.is_dir()]
    for candidates, origin in ((known.names, "file"), (known.stand_ins, "stand-in")):
        file = _first_file(folders, candidates)
        if file is not None:
            label = name if origin == "file" else f"{file.name.split('.')[0]} (stands in for {name})"
            return _read(name, label, file, origin)
    if allow_download:
        try:
            file = download(_COLLECTION + known.file, store / known.file, known.checksum, progress)
            return replace(_read(name, name, file, "download"), where=_COLLECTION + known.file)
        except DownloadError as error:
            note(f"{error} Synthetic data in the shape of {name} are used instead, and labelled as synthetic.")
    else:
        note(f"{name} was not found; synthetic data in its shape are used instead, and labelled as synthetic.")
    X, y = known.make()
    return PaperData(name, f"synthetic, shaped like {name}", X, y, "synthetic", "made up from a fixed seed")


def _first_file(folders: list[Path], names: tuple[str, ...]) -> Path | None:
    for folder in folders:
        for stem in names:
            for suffix in _SUFFIXES:
                if (folder / (stem + suffix)).is_file():
                    return folder / (stem + suffix)
    return None


def _read(name: str, label: str, file: Path, origin: str) -> PaperData:
    data = read_data(file)
    return PaperData(name, label, data.X, signs(data), origin, file.name)


def signs(data: Dataset) -> Array:
    """Return the target as ±1; the paper's problems have two classes."""
    if data.y is None:
        raise DataError(data.name, "it holds no target.")
    classes = np.unique(data.y)
    if len(classes) != 2:
        raise DataError(data.name, f"two classes are needed, it has {len(classes)}.")
    return np.where(data.y == classes[1], 1.0, -1.0)
