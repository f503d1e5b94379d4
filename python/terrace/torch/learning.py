# SPDX-License-Identifier: Apache-2.0
"""What is learnt of a kernel by running it: how long it takes and what it allocates.

Kernels that do the same work on other tensors are alike and learnt once; what was learnt is kept in the user's cache
folder for this PyTorch and number of threads.
"""
import contextlib
import json
import os
from dataclasses import asdict, dataclass

import torch

from . import process_memory
from .devices import HOST
from .folders import cache_folder
from .graph import signature
from .kernels import Kernels, window
from .placement import Places, places_of
from .recording import NotCapturable

_PAGE = 4096


@dataclass(frozen=True)
class Learnt:
    seconds: float
    places: Places = Places()
    first_places: Places = Places()  # of the first run, where that makes what later ones change
    hidden: int = 0  # bytes that it takes from the C library for a while, beside PyTorch's allocator

    def workspace(self):
        return max(self.places.workspace, self.first_places.workspace)


def learn(graph, placement=None, store=None, device=HOST):
    """Sets `learnt` of every kernel, running one of each kind that is not in the store.

    Takes memory for the operands of one kernel at a time, and gives it back. Freed memory is kept by the process from
    here on.
    """
    store = store if store is not None else Store()
    process_memory.keep_all_freed_memory()
    generator = device.random_state()
    try:
        with torch.no_grad():
            for kernel in graph.kernels:
                kernel.learnt = _learnt(graph, kernel, placement, store, device)
    finally:
        device.set_random_state(generator)
    store.save()


def _learnt(graph, kernel, placement, store, device):
    if not getattr(kernel.call, "learnable", True):
        return Learnt(0.0)
    key = f"torch {torch.__version__}, {device.key()}: {kernel.operation} {signature(kernel)}"
    known = store.get(key)
    if known is None:
        known = _Lesson(graph, kernel, placement, device).learnt()
        store.put(key, known)
    return known


class _Lesson:
    """One kernel on memory of its own."""

    def __init__(self, graph, kernel, placement, device):
        self.kernel, self.placement, self.device = kernel.rehearsed(), placement, device
        self.kernels = Kernels(graph, placement, device)
        self.kernels.outside = _OfItsOwn(device.device)
        tensors = [*kernel.inputs, *kernel.outputs]
        self.memory = _Scratch({tensor: graph.tensors[tensor].bytes for tensor in tensors}, device)
        self.addresses = [self.memory.addresses[tensor] for tensor in tensors]
        _fill(self.kernels, self.kernel, self.memory)

    def learnt(self):
        first = Places() if self.kernel.repeats() else self._places()
        self.kernel.learnt = Learnt(0.0, self._places(), first)
        with _Workspace(self.kernel.learnt.workspace(), self.device) as workspace:
            seconds, hidden = self.device.timed(self.kernels.prepared(self.kernel, [*self.addresses, workspace]))
        return Learnt(seconds, self.kernel.learnt.places, first, hidden)

    def _places(self):
        work = self.kernels.work(self.kernel, self.addresses)
        if self.placement is None:
            results = work.compute()
            self._check(results, work.targets)
            work.finish(results)
            return Places()
        results, events = self.placement.record(work.compute)
        self._check(results, work.targets)
        wanted = [_storage_of(result, target) for result, target in zip(results, work.targets)]
        del results
        process_memory.trim()  # else the next run has its operands beside what this one allocated
        return places_of(events, wanted)

    def _check(self, results, targets):
        """What follows was traced with results as PyTorch predicts them, so the prediction must be true."""
        for result, target in zip(results, targets):
            if target is None or result is None or (result.dtype, result.shape) == (target.dtype, target.shape):
                continue
            raise NotCapturable(
                f"{self.kernel.name}: {self.kernel.operation} gives {tuple(result.shape)} of {result.dtype} where this PyTorch "
                f"predicts {tuple(target.shape)} of {target.dtype}"
            )


def _storage_of(result, target):
    """Where a result's storage lies and its bytes; None where it could not take the target's place."""
    if target is None or result is None or not _same_form(result, target):
        return None
    offset = result.storage_offset() * result.element_size()
    return result.data_ptr() - offset, _storage_bytes(result)


def _storage_bytes(tensor):
    return tensor.untyped_storage().nbytes() if hasattr(tensor, "untyped_storage") else tensor.storage().nbytes()


def _same_form(result, target):
    """Whether the result, made at the target's memory, is the target."""
    strides = zip(result.size(), result.stride(), target.stride())
    same = all(extent == 1 or left == right for extent, left, right in strides)
    return same and result.storage_offset() == target.storage_offset()


class _OfItsOwn:
    """Memory in place of the model's, which a lesson leaves alone."""

    def __init__(self, device):
        self.made, self.device = {}, device

    def __call__(self, view):
        if view.storage not in self.made:
            self.made[view.storage] = torch.zeros(view.end(), dtype=torch.uint8, device=self.device)
            made = window(self.made[view.storage], view)
            return made.fill_(1) if view.dtype.is_floating_point else made
        return window(self.made[view.storage], view)


def _fill(kernels, kernel, memory):
    """Numbers that mean nothing and offend no operation: ones, and zeros for indices."""
    call = kernel.call
    for view in call.operands() if hasattr(call, "operands") else []:
        if view.storage >= 0 and view.dtype.is_floating_point:
            kernels.window(view, memory.addresses[view.storage]).fill_(1)


class _Scratch:
    """Memory for tensors of these sizes, given back when it is dropped."""

    def __init__(self, sizes, device):
        offsets, total = {}, 0
        for tensor, size in sizes.items():
            offsets[tensor] = total
            total += -(-max(size, 1) // _PAGE) * _PAGE
        self.memory, base = device.scratch(total)
        self.addresses = {tensor: base + offset for tensor, offset in offsets.items()}


class _Workspace:
    def __init__(self, count, device):
        self.scratch = _Scratch({0: count}, device)

    def __enter__(self):
        return self.scratch.addresses[0]

    def __exit__(self, *_):
        self.scratch = None


class Store:
    """What was learnt, by signature, in a file; without a path it lasts as long as the process."""

    def __init__(self, path=None):
        self.path = path
        self.changed = False
        self.known = _read(path) if path and os.path.exists(path) else {}

    def get(self, key):
        return self.known.get(key)

    def put(self, key, learnt):
        self.known[key] = learnt
        self.changed = True

    def save(self):
        if not self.path or not self.changed:
            return
        draft = f"{self.path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(draft, "w", encoding="utf-8") as file:
                json.dump({key: asdict(learnt) for key, learnt in self.known.items()}, file)
            os.replace(draft, self.path)
            self.changed = False
        except OSError:  # a cache that cannot be written is no loss
            with contextlib.suppress(OSError):
                os.unlink(draft)


def default_store():
    """The file in the user's cache folder."""
    return Store(os.path.join(cache_folder(), "torch-kernels.json"))


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        return {key: _learnt_from(kept) for key, kept in content.items()}
    except (OSError, ValueError, KeyError, TypeError):  # a damaged cache is no loss
        return {}


def _learnt_from(kept):
    places, first = (
        Places(tuple(tuple(allocation) for allocation in part["allocations"]), part["workspace"])
        for part in (kept["places"], kept["first_places"])
    )
    return Learnt(kept["seconds"], places, first, kept["hidden"])
