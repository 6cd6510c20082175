"""Data files in, model files out."""

from .atomic import written_in_place
from .dataset import Dataset
from .encoding import Column, Encoding
from .errors import DataError
from .liblinear_file import export_liblinear
from .libsvm import MAX_FEATURES, LibsvmData, read_libsvm
from .model import Model, Objective, Outcome, Training, named_loss
from .model_file import load_model, save_model
from .onnx_file import export_onnx
from .readers import FORMATS, read_data

__all__ = [
    "FORMATS",
    "MAX_FEATURES",
    "Column",
    "DataError",
    "Dataset",
    "Encoding",
    "LibsvmData",
    "Model",
    "Objective",
    "Outcome",
    "Training",
    "export_liblinear",
    "export_onnx",
    "load_model",
    "named_loss",
    "read_data",
    "read_libsvm",
    "save_model",
    "written_in_place",
]
