# SPDX-License-Identifier: Apache-2.0
"""How far data stays away from where a gradient jumps: relu at zero, and the two largest in a window of a max pool.

Closer than rounding, two correct implementations may take different sides, and their gradients then differ visibly.
"""
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode


class Watch(TorchFunctionMode):
    """Inside, every relu and max pool is watched; `least` is the smallest distance, as a share of the magnitude."""

    def __init__(self):
        super().__init__()
        self.least = 1.0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in ("relu", "relu_", "leaky_relu"):
            self.least = min(self.least, distance_from_zero(args[0]))
        elif name == "max_pool2d":
            self.least = min(self.least, distance_of_winners(*args, **kwargs))
        return function(*args, **kwargs)


@torch.no_grad()
def distance_from_zero(x):
    """What is zero exactly is a channel that nothing reaches: zero for everybody."""
    sizes = x.abs()
    sizes = sizes[sizes > 0]
    return (sizes.min() / sizes.max()).item() if sizes.numel() else 1.0


@torch.no_grad()
def distance_of_winners(x, kernel, stride, padding=0, **rest):
    """Between the largest two of each window; equal ones are zeros that a relu made, and have no gradient."""
    height, width = pair(padding)
    windows = F.pad(x, (width, width, height, height), value=float("-inf"))
    for axis, size, step in zip((2, 3), pair(kernel), pair(stride)):
        windows = windows.unfold(axis, size, step)
    windows = windows.flatten(4)
    if windows.shape[-1] < 2:
        return 1.0
    first, second = windows.topk(2).values.unbind(-1)
    gaps = (first - second)[first > second]
    return (gaps.min() / x.abs().max()).item() if gaps.numel() else 1.0


def pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)
