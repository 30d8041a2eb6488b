"""Read samples and models, write scores and models. Files are checked when read and written whole or not at all."""

from rankwise.io.datasets import read_data, write_data
from rankwise.io.files import open_atomic, write_bytes
from rankwise.io.models import ModelFile, ModelFileError, fingerprint, read_model, write_model
from rankwise.io.tables import Dataset

__all__ = [
    "Dataset",
    "ModelFile",
    "ModelFileError",
    "fingerprint",
    "open_atomic",
    "read_data",
    "read_model",
    "write_bytes",
    "write_data",
    "write_model",
]
