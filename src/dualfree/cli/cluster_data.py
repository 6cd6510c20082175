"""Training data that the workers of a cluster read; the client learns their sizes and classes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from .._checks import Array
from .._optional import require
from ..distributed.inputs import from_dataframe, read_libsvm_files
from ..distributed.inputs.files import matching_files
from ..distributed.inputs.survey import Survey, survey
from ..distributed.inputs.waiting import make_resident
from ..io import Column, DataError, Encoding
from ..io.readers import guess_format
from ..io.streams import open_source

TIMEOUT = 300.0
_KINDS = ("libsvm", "parquet")

Read = tuple[list[Any], Encoding, int]
"""Blocks on the workers, how their columns came about, and the broken lines that were skipped."""


@dataclass(frozen=True, slots=True)
class ClusterData:
    """Rows on a cluster.

    Attributes
    ----------
    name : str
        The files, as they were given.
    blocks : list of Future
        The partitions.
    found : Survey
        Sizes, and the classes as the workers see them.
    classes : array or None
        The classes as a model file holds them: numbers or text.
    encoding : Encoding
        How the columns came about.
    bad_lines : int
        Broken lines that were skipped.
    """

    name: str
    blocks: list[Any]
    found: Survey
    classes: Array | None
    encoding: Encoding
    bad_lines: int


def read_on_cluster(client: Any, data: str, classification: bool, options: dict[str, Any]) -> ClusterData:
    """Have the workers read DATA: LIBSVM text or Parquet, a file, a pattern, or a folder of Parquet files."""
    if data == "-":
        raise click.UsageError("standard input cannot be read on a cluster; name files that the workers can open.")
    files = matching_files(data)
    kind = options["file_format"] or ("parquet" if os.path.isdir(files[0]) else _guess(files[0]))
    if kind not in _KINDS:
        raise click.UsageError(f"on a cluster, DATA is LIBSVM text or Parquet; {kind} is read on one machine only.")
    read = _read_libsvm if kind == "libsvm" else _read_parquet
    blocks, encoding, bad_lines = read(client, data, files, options)
    found = survey(client, blocks, "classification" if classification else "regression", TIMEOUT)
    return ClusterData(data, blocks, found, _plain_classes(data, found.classes), encoding, bad_lines)


def _guess(path: str) -> str:
    with open_source(path) as source:
        return guess_format(source)


def _read_libsvm(client: Any, data: str, files: list[str], options: dict[str, Any]) -> Read:
    for option in ("target", "ignore"):
        if options[option]:
            raise click.UsageError(f"--{option} names a column of a table; {data} is LIBSVM text.")
    read = read_libsvm_files(
        files,
        n_features=options["features"],
        index_base=None if options["index_base"] == "auto" else int(options["index_base"]),
        max_features=options["max_features"],
        dtype=np.float32 if options["float32"] else np.float64,
        skip_bad_lines=options["skip_bad_lines"],
        client=client,
        timeout=TIMEOUT,
    )
    encoding = Encoding(read.n_features, "float32" if options["float32"] else "float64", index_base=read.index_base)
    return list(read.partitions.blocks), encoding, read.bad_lines


def _read_parquet(client: Any, data: str, files: list[str], options: dict[str, Any]) -> Read:
    if options["skip_bad_lines"]:
        raise click.UsageError("--skip-bad-lines is for text; rows of Parquet files are not skipped on a cluster.")
    frames = require("dask.dataframe", "dask")
    arrow = require("pyarrow", "cli")
    try:
        frame = frames.read_parquet(files[0] if os.path.isdir(files[0]) else files, index=False)
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        raise DataError(data, f"this is not readable as Parquet ({reason}).") from None
    target, names = options["target"], [str(name) for name in frame.columns]
    if target is None:
        listed = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        raise DataError(data, f"say which column is the target with --target; it has {listed}.")
    for name in options["ignore"]:
        if name not in names:
            raise DataError(data, f"there is no column {name!r} (--ignore).")
    frame = frame[[name for name in names if name not in options["ignore"]]]
    features = [name for name in frame.columns if name != target]
    if len(features) > options["max_features"]:
        raise DataError(data, f"it has {len(features)} features, the limit is {options['max_features']}.")
    if options["float32"]:
        frame = frame.astype(dict.fromkeys(features, "float32"))
    blocks = make_resident(client, from_dataframe(frame, target).blocks)
    encoding = Encoding(
        len(features),
        "float32" if options["float32"] else "float64",
        columns=tuple(Column(name) for name in features),
        target=target,
    )
    return blocks, encoding, 0


def _plain_classes(name: str, classes: Array | None) -> Array | None:
    """Return classes as model files hold them and as the readers of new data will see them: float64 or text."""
    if classes is None:
        return None
    if classes.dtype.kind == "b":
        return np.array(["false", "true"])
    if classes.dtype.kind in "US" and all(_is_number(label) for label in classes.tolist()):
        raise DataError(name, "the target holds numbers as text; convert the column to numbers first.")
    return classes if classes.dtype.kind in "US" else classes.astype(np.float64)


def _is_number(label: str) -> bool:
    try:
        return bool(np.isfinite(float(label)))
    except ValueError:
        return False
