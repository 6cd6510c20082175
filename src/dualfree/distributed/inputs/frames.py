"""Dask dataframes: Parquet and whatever else dask reads into them."""

from __future__ import annotations

from typing import Any

from ..._checks import near_match
from ..partitions import Partitions
from .blocks import check_columns, delayed_blocks, is_lazy, make_block


def from_dataframe(X: Any, y: Any, sample_weight: Any = None) -> Partitions:
    """Make a partition of each partition of a dask dataframe.

    Parameters
    ----------
    X : dask dataframe
        Columns of numbers. Those that `y` and `sample_weight` name are no features.
    y : str or dask series
        The name of the target column, or the targets.
    sample_weight : str or dask series, optional
        The name of the column of weights s_i ≥ 0, or the weights.

    Returns
    -------
    Partitions

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from dualfree.distributed import from_dataframe
    >>> frame = dd.from_pandas(pd.DataFrame({"age": [1.0, 2.0, 3.0], "sick": [0, 0, 1]}), npartitions=2)
    >>> from_dataframe(frame, "sick")
    Partitions(2 blocks, 1 columns)
    """
    features = feature_names(X, y, sample_weight)
    check_columns(X[features])
    # One frame for everything: dask may cut two that it optimises apart in different places.
    frame, target = _with_column(X, "y", y)
    weight = None
    if sample_weight is not None:
        frame, weight = _with_column(frame, "sample_weight", sample_weight)
    frame = frame[[*features, target, *([] if weight is None else [weight])]]
    arguments = [(f"Partition {k}", features, target, weight, part) for k, part in enumerate(frame.to_delayed())]
    return Partitions(delayed_blocks(_split_frame, arguments), n_features=len(features))


def feature_names(X: Any, y: Any, sample_weight: Any = None) -> list[Any]:
    """Return the columns of a frame that are features: those that neither `y` nor `sample_weight` names."""
    named = {"y": y, "sample_weight": sample_weight}
    for argument, name in named.items():
        if isinstance(name, str) and name not in X.columns:
            known = [str(column) for column in X.columns]
            raise ValueError(f"{argument} names the column {name!r}, which X does not have.{near_match(name, known)}")
    others = [name for name in named.values() if isinstance(name, str)]
    return [column for column in X.columns if column not in others]


def _with_column(X: Any, argument: str, values: Any) -> tuple[Any, str]:
    """Return the frame with `values` as a column, and the name of that column; or the frame as it is, if they name one."""
    if isinstance(values, str):
        return X, values
    if not is_lazy(values) or not hasattr(values, "npartitions") or getattr(values, "ndim", 0) != 1:
        raise TypeError(
            f"{argument} must be the name of a column or a dask series when X is a dask dataframe, "
            f"got {type(values).__name__}."
        )
    if values.npartitions != X.npartitions:
        raise ValueError(
            f"X and {argument} are cut differently: {X.npartitions} and {values.npartitions} partitions. Take {argument} "
            "from the same frame as X, or repartition it."
        )
    name = f"dualfree {argument}"
    try:
        return X.assign(**{name: values}), name
    except ValueError as error:
        raise ValueError(f"X and {argument} cannot be put side by side: {error}") from None


def _split_frame(where: str, features: list[Any], target: str, weight: str | None, frame: Any) -> Any:
    return make_block(where, frame[features], frame[target], None if weight is None else frame[weight])
