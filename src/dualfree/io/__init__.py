"""Data files in, model files out."""

from .errors import DataError
from .libsvm import LibsvmData, read_libsvm

__all__ = ["DataError", "LibsvmData", "read_libsvm"]
