# SPDX-License-Identifier: Apache-2.0
"""What a training step does, recorded with tensors that have shapes and no memory.

A storage is a piece of memory; a View is a strided window on it, as an operation sees it; a Call is one operation with
views in place of its tensors. Operations that only make another window on the same storage, or memory that nothing is
written to yet, leave no call.
"""
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from torch.utils._pytree import tree_flatten, tree_map

from . import _compat


class NotCapturable(Exception):
    """The step cannot be written down as a fixed list of operations; the text says why."""


@dataclass(frozen=True)
class View:
    storage: int
    dtype: torch.dtype
    size: tuple
    stride: tuple
    offset: int  # in elements

    def elements(self):
        count = 1
        for extent in self.size:
            count *= extent
        return count

    def bytes(self):
        return self.elements() * element_bytes(self.dtype)

    def end(self):
        """How many bytes from the beginning of its storage the window reaches."""
        if 0 in self.size:
            return 0
        last = self.offset + sum((extent - 1) * step for extent, step in zip(self.size, self.stride))
        return (last + 1) * element_bytes(self.dtype)


@dataclass
class Storage:
    bytes: int
    role: str = "made"  # or parameter, buffer, input, constant
    name: str = ""
    view: Optional[View] = None  # as it was first seen


@dataclass
class Call:
    operation: Any  # an ATen overload
    args: tuple
    kwargs: dict
    outputs: list  # views of new storages; None where a result is no tensor or lies in an operand's storage
    written: list = field(default_factory=list)  # views of storages that are changed in place
    phase: str = "forward"
    layer: str = ""
    random: bool = False
    unordered: bool = False  # sums in an order that nobody fixes, so another run may give other bits

    def name(self):
        return self.operation._schema.name

    def operands(self):
        return [leaf for leaf in tree_flatten((self.args, self.kwargs))[0] if isinstance(leaf, View)]


def element_bytes(dtype):
    return torch.empty((), dtype=dtype).element_size()


# Make memory without writing it.
_UNWRITTEN = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}
# Change operands that their schemas do not mark: running statistics, in training.
_HIDDEN_STATISTICS = {"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"}


class Recorder(_compat.TorchDispatchMode):
    """Records every operation that is dispatched while it is entered, after its FakeTensorMode."""

    def __init__(self, fake):
        super().__init__()
        self.fake = fake
        self.storages = []
        self.calls = []
        self.adopted = []  # real tensors with the views that stand for them
        self.phase = "forward"
        self.layer = ""
        self._by_key = {}
        self._alive = []  # a key is reused when its storage dies, so all are kept
        self._unwritten = set()

    def adopt(self, real, role, name):
        """A fake tensor in place of a real one that outlives the step, or is given for it."""
        with torch.no_grad():
            fake = real if isinstance(real, _compat.FakeTensor) else self.fake.from_tensor(real)
        view = self._view(fake)
        storage = self.storages[view.storage]
        if storage.role == "made":
            storage.role, storage.name = role, name
        self.adopted.append((real, view))
        return fake

    def view_of(self, fake):
        return self._view(fake)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func._schema.name.startswith("prim::"):
            return func(*args, **kwargs)
        if func._schema.name in ("aten::lift_fresh", "aten::lift_fresh_copy", "aten::lift"):
            return self._fake_of(args[0])
        args, kwargs = tree_map(self._fake_of, args), tree_map(self._fake_of, kwargs)
        before = tree_map(self._as_view, args), tree_map(self._as_view, kwargs)
        try:
            result = _compat.result_without_running(func, args)
            if result is None:
                result = func(*args, **kwargs)
        except (_compat.DataDependentOutputException, _compat.DynamicOutputShapeException) as error:
            raise NotCapturable(
                f"{self._place()}{func} gives a result whose form depends on the numbers in a tensor: "
                "such a model is run by hooks"
            ) from error
        self._note(func, *before, result, _compat.sums_in_any_order(func, args, kwargs))
        return result

    def _place(self):
        return f"in {self.layer}, " if self.layer else ""

    def _fake_of(self, leaf):
        if not isinstance(leaf, torch.Tensor) or isinstance(leaf, _compat.FakeTensor):
            return leaf
        if leaf.requires_grad:
            raise NotCapturable(
                f"{self._place()}a tensor of shape {tuple(leaf.shape)} that wants a gradient is no parameter of the model"
            )
        return self.adopt(leaf, "constant", f"constant{len(self.storages)}")

    def _as_view(self, leaf):
        return self._view(leaf) if isinstance(leaf, torch.Tensor) else leaf

    def _view(self, tensor):
        if tensor.layout != torch.strided:
            raise NotCapturable(f"{self._place()}a tensor has the layout {tensor.layout}; strided ones are captured")
        key = _compat.storage_key(tensor)
        if key not in self._by_key:
            self._by_key[key] = len(self.storages)
            self.storages.append(Storage(bytes=_compat.bytes_of_storage(tensor)))
            self._alive.append(tensor.detach())
        view = View(self._by_key[key], tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())
        storage = self.storages[view.storage]
        storage.view = storage.view or view
        return view

    def _note(self, func, args, kwargs, result, unordered):
        known = len(self.storages)
        name = func._schema.name.split("::")[1]
        outputs = [self._as_view(leaf) for leaf in tree_flatten(result)[0]]
        fresh = [leaf if isinstance(leaf, View) and leaf.storage >= known else None for leaf in outputs]
        written = [view for view in written_operands(func, args, kwargs) if view.bytes() > 0]
        if name in _UNWRITTEN:
            self._unwritten.update(view.storage for view in fresh if view)
        if name in _UNWRITTEN or not (written or any(fresh)):
            return
        random = _compat.draws_random_numbers(func)
        self.calls.append(Call(func, args, kwargs, fresh, written, self.phase, self.layer, random, unordered))

    def is_unwritten(self, storage):
        """Its memory was made by an operation that writes nothing."""
        return storage in self._unwritten


def written_operands(func, args, kwargs):
    """Views of the operands that the operation changes in place."""
    found = []
    for place, argument in enumerate(func._schema.arguments):
        value = kwargs.get(argument.name) if argument.name in kwargs else (args[place] if place < len(args) else None)
        if argument.alias_info is not None and argument.alias_info.is_write:
            found += [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, View)]
    return found + hidden_statistics(func, args)


def hidden_statistics(func, args):
    """Running statistics that a batch norm changes though its schema does not say so."""
    if func._schema.name.split("::")[1] not in _HIDDEN_STATISTICS or not args[5]:
        return []
    return [view for view in args[3:5] if isinstance(view, View)]
