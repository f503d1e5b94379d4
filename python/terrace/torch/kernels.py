# SPDX-License-Identifier: Apache-2.0
"""Runs a graph's kernels on memory at given addresses: every operand is a window on memory that somebody else owns.

What a kernel needs is prepared once for each set of addresses, since a plan uses the same ones in every step. Where the
order of an operation's allocations was learnt (placement.py), its results are made where they belong; all others are
copied there.
"""
import torch
from torch.utils._pytree import tree_flatten, tree_map

from . import _compat
from .devices import HOST
from .graph import Call
from .recording import View


class Work:
    """One kernel on given memory: `compute` returns its results, each of which belongs into the target beside it."""

    def __init__(self, compute, targets):
        self.compute = compute
        self.targets = targets

    def finish(self, results):
        """Puts results into their places; returns how many bytes had to be copied."""
        copied = 0
        for result, target in zip(results, self.targets):
            if target is not None and result is not None and result.data_ptr() != target.data_ptr():
                target.copy_(result)
                copied += target.numel() * target.element_size()
        return copied


class Kernels:
    """The kernels of a graph. One thread at a time."""

    def __init__(self, graph, placement=None, device=HOST):
        self.graph = graph
        self.placement = placement
        self.device = device
        self.copied_bytes = 0  # of results that an operation did not leave where they belong
        self._prepared = {}
        self._memory = {}

    def run(self, kernel, addresses):
        """Runs the kernel of this number with inputs, outputs and workspace, in this order, at these addresses."""
        key = (kernel, *addresses)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self.prepared(self.graph.kernels[kernel], addresses)
            if self.graph.kernels[kernel].repeats():
                self._prepared[key] = prepared
        prepared()

    def work(self, kernel, addresses):
        """The kernel on this memory."""
        at = dict(zip([*kernel.inputs, *kernel.outputs], addresses))

        def window(view):
            return self.window(view, at[view.storage]) if view.storage >= 0 else self.outside(view)

        if not isinstance(kernel.call, Call):
            return kernel.call.work(window)
        args, kwargs = tree_map(lambda leaf: window(leaf) if isinstance(leaf, View) else leaf, (kernel.call.args, kernel.call.kwargs))
        renewed = [self._bytes_of_both(old, new, at) for old, new in kernel.renewed]
        operation = kernel.call.operation

        def compute():
            for new, old in renewed:
                new.copy_(old)
            with _compat.mode_of_gradients(operation):
                return tree_flatten(operation(*args, **kwargs))[0]

        return Work(compute, [window(view) if view else None for view in kernel.call.outputs])

    def window(self, view, address):
        """A tensor on the bytes of a tensor of the graph that begin there."""
        if view.elements() == 0:
            return torch.empty_strided(view.size, view.stride, dtype=view.dtype, device=self.device.device)
        return self._bytes_at(address, view.end(), view.dtype).as_strided(view.size, view.stride, view.offset)

    def outside(self, view):
        """A window on memory of the model."""
        return window(storage_bytes(self.graph.outside[view.storage].detach()), view)

    def forget(self):
        """Whatever was prepared on memory that is another now."""
        self._prepared.clear()

    def _bytes_at(self, address, count, dtype):
        key = (address, count, dtype)
        if key not in self._memory:
            self._memory[key] = self.device.bytes_at(address, count, dtype)
        return self._memory[key]

    def _bytes_of_both(self, old, new, at):
        count = self.graph.tensors[new].bytes
        whole = View(old, torch.uint8, (count,), (1,), 0)
        source = self._bytes_at(at[old], count, torch.uint8) if old >= 0 else self.outside(whole)
        return self._bytes_at(at[new], count, torch.uint8), source

    def prepared(self, kernel, addresses):
        """What runs a kernel with inputs, outputs and workspace, in this order, at these addresses."""
        work, places = self.work(kernel, addresses), kernel.places()
        if self.placement is None or not places.allocations:
            return lambda: self._count(work.finish(work.compute()))
        operands = len(kernel.inputs) + len(kernel.outputs)
        results = [target.data_ptr() - _offset_bytes(target) if target is not None else 0 for target in work.targets]
        where = places.addresses(results, addresses[operands] if operands < len(addresses) else 0)
        begin, end = self.placement.begin, self.placement.end

        def run():
            begin(*where)
            try:
                results = work.compute()
            finally:
                end()
            self._count(work.finish(results))

        return run

    def _count(self, copied):
        self.copied_bytes += copied


def address_and_bytes(tensor):
    """Of a tensor's whole storage."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr(), storage.nbytes()


def storage_bytes(tensor):
    """All bytes of a tensor's storage, as a tensor on the same memory."""
    address, count = address_and_bytes(tensor)
    if count == 0:
        return torch.empty(0, dtype=torch.uint8, device=tensor.device)
    if tensor.device.type != "cpu":
        return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    made = HOST.bytes_at(address, count)
    made.owner = tensor  # keeps the memory alive
    return made


def window(bytes_of_storage, view):
    """The tensor that a view is on the bytes of its storage."""
    if view.elements() == 0:
        return torch.empty_strided(view.size, view.stride, dtype=view.dtype, device=bytes_of_storage.device)
    return bytes_of_storage.view(view.dtype).as_strided(view.size, view.stride, view.offset)


def fitted(tensor, view):
    """The tensor with exactly the storage that the view describes: itself, or a copy."""
    same = tensor.stride() == view.stride and tensor.storage_offset() == view.offset
    if same and address_and_bytes(tensor)[1] == view.end():
        return tensor.detach()
    made = torch.empty(view.end(), dtype=torch.uint8, device=tensor.device)
    window(made, view).copy_(tensor.detach())
    return made


def _offset_bytes(tensor):
    return tensor.storage_offset() * tensor.element_size()
