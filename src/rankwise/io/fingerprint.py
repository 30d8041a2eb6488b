"""A short digest of everything that decides a run, so that a checkpoint of another run is not used by mistake."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def fingerprint(settings: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> str:
    """Compute a short digest of settings and arrays.

    Equal settings and arrays give equal digests. Checkpoints use it to recognise the run they belong to.

    Parameters
    ----------
    settings : dict
        Plain data that JSON can hold.
    arrays : sequence of ndarray
        Arrays of numbers or strings.

    Returns
    -------
    str
        The digest: 16 hexadecimal digits.

    See Also
    --------
    write_model : Write a model file.

    Examples
    --------
    >>> fingerprint({"C": 1.0}, [np.zeros(2)]) == fingerprint({"C": 2.0}, [np.zeros(2)])
    False
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for part in arrays:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]
