"""How the columns of X come out of a file. A model remembers it, so that new data are read the same way."""

from __future__ import annotations

from dataclasses import dataclass

MISSING = "(missing)"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its name in the table.
    levels : tuple of (str or None), or None
        The categories, sorted, None standing for an empty cell; each becomes a column of zeros and ones.
        None for a column of numbers, which is used as it is.

    Examples
    --------
    >>> from dualfree.io import Column
    >>> Column("colour", ("blue", "red", None)).feature_names
    ('colour=blue', 'colour=red', 'colour=(missing)')
    >>> Column("age").feature_names
    ('age',)
    """

    name: str
    levels: tuple[str | None, ...] | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of X that this one becomes."""
        if self.levels is None:
            return (self.name,)
        return tuple(f"{self.name}={MISSING if level is None else level}" for level in self.levels)


@dataclass(frozen=True, slots=True)
class Encoding:
    """What a reader must know to turn another file into the same columns.

    Attributes
    ----------
    n_features : int
        Columns of X.
    dtype : str
        "float64" or "float32".
    index_base : int or None
        Of LIBSVM text: the index of the first feature, 0 or 1.
    columns : tuple of Column or None
        Of a table: its columns in order, without the target.
    target : str or None
        Of a table: the column that holds the target.

    Examples
    --------
    >>> from dualfree.io import Encoding
    >>> Encoding(3, "float64", index_base=1).feature_names
    ('1', '2', '3')
    """

    n_features: int
    dtype: str
    index_base: int | None = None
    columns: tuple[Column, ...] | None = None
    target: str | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each column of X; LIBSVM features are called by their index in the file."""
        if self.columns is not None:
            return tuple(name for column in self.columns for name in column.feature_names)
        return tuple(str(index) for index in range(self.index_base or 0, self.n_features + (self.index_base or 0)))
