"""Dask dataframes: Parquet and whatever else dask reads into them."""

from __future__ import annotations

from typing import Any

from ..._checks import near_match
from ..partitions import Partitions
from .blocks import check_columns, delayed_blocks, make_block


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
    target, weight = _cut_like(X, "y", y), _cut_like(X, "sample_weight", sample_weight)
    named = [name for name in (target, weight) if isinstance(name, str)]
    frame = X[features + named]
    check_columns(frame[features])
    parts = [frame.to_delayed()] + [each.to_delayed() for each in (target, weight) if hasattr(each, "to_delayed")]
    plan = (features, target if isinstance(target, str) else None, weight if isinstance(weight, str) else None)
    arguments = [(f"Partition {k}", plan, *each) for k, each in enumerate(zip(*parts, strict=True))]
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


def _cut_like(X: Any, argument: str, values: Any) -> Any:
    """Return a column's name or a series whose partitions hold the rows of those of X."""
    if values is None and argument == "sample_weight":
        return None
    if isinstance(values, str):
        return values
    if not (hasattr(values, "npartitions") and hasattr(values, "to_delayed")):
        raise TypeError(
            f"{argument} must be the name of a column or a dask series when X is a dask dataframe, "
            f"got {type(values).__name__}."
        )
    same_divisions = not (
        X.known_divisions and getattr(values, "known_divisions", False) and X.divisions != values.divisions
    )
    if values.npartitions != X.npartitions or not same_divisions:
        raise ValueError(
            f"X and {argument} are cut differently: {X.npartitions} and {values.npartitions} partitions"
            f"{'' if same_divisions else ' with other divisions'}. Take {argument} from the same frame as X, or repartition it."
        )
    return values


def _split_frame(where: str, plan: tuple[list[Any], str | None, str | None], frame: Any, *series: Any) -> Any:
    features, target, weight = plan
    rest = list(series)
    y = frame[target] if target is not None else rest.pop(0)
    s = frame[weight] if weight is not None else rest.pop(0) if rest else None
    return make_block(where, frame[features], y, s)
