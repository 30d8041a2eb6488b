"""Losses by key: an operator that PyTorch compiles takes strings, not objects."""

from __future__ import annotations

from weakref import WeakValueDictionary

from rankwise.metrics.loss import Loss
from rankwise.metrics.registry import LossLike, as_loss

# Loss objects, while they are alive. Losses given by name need no entry.
_OWN: WeakValueDictionary[str, Loss] = WeakValueDictionary()


def key_of(loss: LossLike) -> str:
    """The key of a loss: its name, or one made for the object; raises if it is not a loss."""
    if isinstance(loss, str):
        return loss
    from rankwise.torch.constant import constant_key  # imports PyTorch's compiler, which takes seconds

    key: str = constant_key(loss)
    return key


def register(loss: LossLike) -> str:
    """Make a key for a loss object."""
    found = as_loss(loss)
    key = f"#{id(found)}"
    _OWN[key] = found
    return key


def loss_of(key: str) -> Loss:
    """The loss with that key."""
    if not key.startswith("#"):
        return as_loss(key)
    loss = _OWN.get(key)
    if loss is None:
        raise RuntimeError(
            "the loss object of this call has been deleted; keep a reference to it as long as it is used"
        )
    return loss
