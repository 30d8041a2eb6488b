"""Read samples and models, write scores and models. Files are checked when read and written whole or not at all."""

from rankwise.io.atomic import open_atomic, write_bytes
from rankwise.io.datasets import Dataset, read_data, write_data
from rankwise.io.fingerprint import fingerprint
from rankwise.io.models import ModelFile, ModelFileError, read_model, write_model

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
