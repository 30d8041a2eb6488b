"""The public names of the library: what `__all__` lists in its packages, and the members of public classes."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator

# A page of docs/api and the module whose names it lists.
PAGES = {
    "boosting": "rankwise.boosting",
    "dask": "rankwise.dask",
    "detection": "rankwise_lab.detection",
    "functional": "rankwise.torch.functional",
    "inference": "rankwise.inference",
    "io": "rankwise.io",
    "latent": "rankwise.latent",
    "layerwise": "rankwise_lab.layerwise",
    "linear": "rankwise.linear",
    "metrics": "rankwise.metrics",
    "rankwise": "rankwise",
    "torch": "rankwise.torch",
}
_NEEDS = {"rankwise.torch": "torch", "rankwise.dask": "distributed", "rankwise_lab.layerwise": "torch"}
_MADE_BY_SKLEARN = re.compile(r"set_\w+_request|get_metadata_routing")


def is_missing(module: str) -> str | None:
    """The package that a module needs and that is not installed."""
    needed = [name for start, name in _NEEDS.items() if module.startswith(start)]
    return next((name for name in needed if importlib.util.find_spec(name) is None), None)


def documented() -> Iterator[str]:
    """Dotted names of public classes, functions and of the members that our own classes give them, each once."""
    seen = set()
    # `rankwise` first: what it has is known by that name.
    for module in sorted(PAGES.values(), key=lambda name: name != "rankwise"):
        if is_missing(module):
            continue
        namespace = importlib.import_module(module)
        for name in namespace.__all__:
            thing = getattr(namespace, name)
            if not (inspect.isclass(thing) or inspect.isroutine(thing)) or thing in seen:
                continue
            seen.add(thing)
            yield f"{module}.{name}"
            for member in _members(thing) if inspect.isclass(thing) else ():
                yield f"{module}.{name}.{member}"


def _members(owner: type) -> Iterator[str]:
    """Methods and properties that begin with a letter, of the class or of a base of ours."""
    fields = set(getattr(owner, "__dataclass_fields__", ())) | set(getattr(owner, "_fields", ()))
    for name in dir(owner):
        if name.startswith("_") or name in fields or _MADE_BY_SKLEARN.fullmatch(name):
            continue
        base = next(base for base in owner.__mro__ if name in vars(base))
        thing = vars(base)[name]
        kinds = (property, classmethod, staticmethod)
        if base.__module__.startswith("rankwise") and (inspect.isfunction(thing) or isinstance(thing, kinds)):
            yield name
