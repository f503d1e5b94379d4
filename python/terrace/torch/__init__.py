# SPDX-License-Identifier: Apache-2.0
"""PyTorch models in less memory.

    import terrace.torch
    model = terrace.torch.fit(model, memory="8GiB")      # or "20%"; the rest of the script stays as it is

`fit(model, memory=.., optimizer=optimizer)` moves weights and optimizer states, too. Or, with the loss inside as well:

    step = terrace.torch.Step(model, loss_fn, optimizer, memory="8GiB")
    loss = step(x, y)

`trace` writes a training step down as a graph without running it, for `terrace plan`, `compare` and `advise`.
"""
import torch

from ..errors import InvalidRequest
from .capture import Capture
from .devices import HOST, device_of, require_fittable, require_host
from .hooks import Hooks
from .recording import NotCapturable
from .step import Step
from .trace import trace
from .verdict import say

__all__ = ["NotCapturable", "Step", "fit", "report", "trace", "unfit"]

_FITTED = "_terrace_fitted"


def fit(model, memory, *, optimizer=None, planner="best", disk=None, same_bits=False, verbose=True, way="auto"):
    """Makes training steps of the model stay within `memory`: bytes, an amount such as '8GiB' (of the process, all that
    it takes included) or a share such as '20%' of what a step has in use. Returns the model.

    Before the first step one line says what will happen (`verbose`). The forward and backward pass are captured and run
    under a plan; a model that cannot be captured is fitted by hooks on what it saves for backward. `way` is 'capture' or
    'hooks' where only one will do. `disk` is a folder for what does not fit, by default ~/.cache/terrace. `same_bits`
    checks that every kernel finds the bits that were left for it.

    With `optimizer`, one of torch.optim, weights and its states move, too, and a parameter is updated within backward(), as
    soon as its gradient is complete; `optimizer.step()` finds that done. Gradients cannot be read or accumulated then.
    """
    require_fittable(model)
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidRequest(f"optimizer= takes one of torch.optim and was given a {type(optimizer).__name__}")
    if way not in ("auto", "capture", "hooks"):
        raise InvalidRequest(f"way={way!r} is none of 'auto', 'capture' and 'hooks'")
    unfit(model)
    tell = say if verbose else None

    def by_hooks(why):
        model.__dict__[_FITTED] = Hooks(model, memory, planner, disk, same_bits, tell, why)
        return model.__dict__[_FITTED]

    if way == "hooks":
        require_host(model)
        by_hooks("as asked")
    else:
        # A model that turns out not to be captured is being called already, so the hooks' first step begins by hand.
        otherwise = None if way == "capture" or device_of(model) is not HOST else lambda why: by_hooks(why).begin()
        model.__dict__[_FITTED] = Capture(
            model, memory, planner, disk, tell=tell, otherwise=otherwise, same_bits=same_bits, optimizer=optimizer
        )
    return model


def unfit(model):
    """Undoes fit."""
    fitted = model.__dict__.pop(_FITTED, None)
    if fitted is not None:
        fitted.remove()
    return model


def report(model):
    """What was decided for a fitted model and how its steps went: way, verdict, facts, record, figures."""
    if _FITTED not in model.__dict__:
        raise InvalidRequest("the model was not fitted: call terrace.torch.fit(model, memory=...) first")
    return model.__dict__[_FITTED].report()
