# SPDX-License-Identifier: Apache-2.0
"""Ways into a model and its optimizer that want weights and states where PyTorch has them.

While a plan has them, whoever reads, loads or converts them, or steps the optimizer, first has them put back. Gradients
that a captured step used up are stand-ins, which say so when they are read: clipping them would do nothing, unnoticed.
"""
import functools

import torch

# Of every module, so that a part of the model can be saved as well.
_OF_MODULES = (("state_dict", False), ("load_state_dict", True), ("_apply", False))
_OF_OPTIMIZER = (("state_dict", False), ("load_state_dict", True))


class Doors:
    """Guards a model and an optimizer until `remove`.

    `settle(overwritten)` puts weights and states back; `overwritten` where they are about to be replaced. `stepped()` is
    asked by the optimizer's step whether the captured step has made its updates already.
    """

    def __init__(self, model, optimizer, settle, stepped):
        self._replaced = []
        for module in model.modules():
            for name, overwritten in _OF_MODULES:
                self._guard(module, name, settle, overwritten)
        for name, overwritten in _OF_OPTIMIZER:
            self._guard(optimizer, name, settle, overwritten)
        self._replace(optimizer, "step", _step_of(optimizer, settle, stepped))

    def remove(self):
        for owner, name, users in reversed(self._replaced):
            owner.__dict__.pop(name)
            if users is not None:
                owner.__dict__[name] = users
        self._replaced.clear()

    def _guard(self, owner, name, settle, overwritten):
        original = getattr(owner, name)

        @functools.wraps(original)
        def guarded(*args, **kwargs):
            settle(overwritten)
            return original(*args, **kwargs)

        self._replace(owner, name, guarded)

    def _replace(self, owner, name, function):
        self._replaced.append((owner, name, owner.__dict__.get(name)))
        owner.__dict__[name] = function


def _step_of(optimizer, settle, stepped):
    """Parameters of the captured model have no gradients left, so the optimizer's own step passes over them."""
    original = optimizer.step

    @functools.wraps(getattr(original, "__func__", original))
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not stepped():
            settle(False)
        original()
        return loss

    return step.__get__(optimizer)  # schedulers look for the method's object


class UsedUp(torch.Tensor):
    """In place of a gradient: its parameter was updated as soon as it was complete."""

    @staticmethod
    def __new__(cls, parameter):
        return torch.Tensor._make_wrapper_subclass(cls, parameter.shape, dtype=parameter.dtype, device=parameter.device)

    def __repr__(self):
        return "<a gradient that was used up by the update within backward()>"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError(
            "the gradient is gone: with fit(.., optimizer=..) a parameter is updated within backward(). Where gradients are clipped, "
            "accumulated or read, leave optimizer= out"
        )
