# SPDX-License-Identifier: Apache-2.0
"""Operations by which a compiled step sends tensors to slower memory and brings them back: a disk behind the computer's
memory, the computer's pinned memory behind a GPU's. For torch.compile they are opaque.

    handle = send(tensor, size, stride, folder)     starts a transfer
    handle = sent(handle, tensor)                   it is complete, and the tensor's memory can go
    handle = bring(handle)                          starts the way back
    tensor = brought(handle, size, stride, ..)      it is complete

`sent` takes the tensor so that no compiler uses its memory for something else while it is being read. A handle is a tensor of
one number. What was sent is there for as long as a handle of it lives.
"""
import itertools
import weakref

import torch

from .. import memory as tiers
from .spill import Spill
from .storages import aligned_bytes

_entries = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_spills = {}  # by folder


class _OnDisk:
    """The bytes of a tensor of the computer's memory in a file that has no name."""

    def __init__(self, tensor, folder):
        self.number, self.bytes = next(_numbers), tensor.numel() * tensor.element_size()
        if folder not in _spills:
            _spills[folder] = Spill(folder or None)
        self.slab, self.offset = _spills[folder].place(self.bytes)
        self.reading = self.memory = None
        self.writing = self.slab.tiers.start([(tiers.HOST, tensor.data_ptr(), 0, self.offset, self.bytes)], keep=tensor)

    def finish_sending(self):
        if self.writing is not None:
            writing, self.writing = self.writing, None
            writing.wait()

    def start_bringing(self):
        self.finish_sending()
        self.memory = aligned_bytes(self.bytes)
        self.reading = self.slab.tiers.start([(0, self.offset, tiers.HOST, self.memory.data_ptr(), self.bytes)], tiers.NORMAL, keep=self.memory)

    def take(self, dtype, device):
        if self.reading is None:
            self.start_bringing()
        reading, self.reading, memory, self.memory = self.reading, None, self.memory, None
        reading.wait()
        return memory[: self.bytes].view(dtype)

    def __del__(self):
        slab = getattr(self, "slab", None)
        if slab is not None:
            self.writing = self.reading = None  # forgetting a transfer waits for it
            slab.give_back()


class _Pinned:
    """The bytes of a tensor of a GPU in the computer's memory, by streams of their own."""

    _streams = {}

    def __init__(self, tensor, _):
        self.number, self.bytes = next(_numbers), tensor.numel() * tensor.element_size()
        out, _ = self._streams_of(tensor.device)
        self.host = torch.empty(self.bytes, dtype=torch.uint8, pin_memory=True)
        self.tensor, self.event, self.memory = tensor, torch.cuda.Event(), None
        out.wait_stream(torch.cuda.current_stream(tensor.device))
        with torch.cuda.stream(out):
            self.host.copy_(_flat(tensor), non_blocking=True)
            self.event.record(out)

    @classmethod
    def _streams_of(cls, device):
        if device not in cls._streams:
            cls._streams[device] = torch.cuda.Stream(device), torch.cuda.Stream(device)
        return cls._streams[device]

    def finish_sending(self):
        if self.tensor is not None:
            torch.cuda.current_stream(self.tensor.device).wait_event(self.event)
            self.device, self.tensor = self.tensor.device, None

    def start_bringing(self):
        self.finish_sending()
        _, back = self._streams_of(self.device)
        back.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(back):
            self.memory = torch.empty(self.bytes, dtype=torch.uint8, device=self.device)
            self.memory.copy_(self.host, non_blocking=True)
            self.event.record(back)

    def take(self, dtype, device):
        if self.memory is None:
            self.start_bringing()
        memory, self.memory = self.memory, None
        stream = torch.cuda.current_stream(self.device)
        stream.wait_event(self.event)
        memory.record_stream(stream)
        return memory.view(dtype)


class _Owner(bytearray):
    """The bytes of a handle, which keep what the handle stands for."""

    entry = None


def _handle(entry):
    owner = _Owner(entry.number.to_bytes(8, "little"))
    owner.entry = entry
    return torch.frombuffer(owner, dtype=torch.int64)


def _entry(handle):
    entry = _entries.get(int(handle.item()))
    if entry is None:
        raise RuntimeError("a tensor that was sent to slower memory is gone: this backward pass has run already")
    return entry


def _flat(tensor):
    """Its elements in the order in which they lie in memory."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def _send(tensor, size, stride, folder):
    if tuple(tensor.stride()) != tuple(stride) or tensor.storage_offset():
        tensor = torch.empty_strided(size, stride, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
    entry = (_OnDisk if tensor.device.type == "cpu" else _Pinned)(tensor.detach(), folder)
    _entries[entry.number] = entry
    return _handle(entry)


def _sent(handle, _):
    entry = _entry(handle)
    entry.finish_sending()
    return _handle(entry)


def _bring(handle):
    entry = _entry(handle)
    entry.start_bringing()
    return _handle(entry)


def _brought(handle, size, stride, dtype, device):
    return _entry(handle).take(dtype, device).as_strided(size, stride)


_SCHEMAS = {
    "send": ("(Tensor tensor, SymInt[] size, SymInt[] stride, str folder) -> Tensor", _send),
    "sent": ("(Tensor handle, Tensor tensor) -> Tensor", _sent),
    "bring": ("(Tensor handle) -> Tensor", _bring),
    "brought": ("(Tensor handle, SymInt[] size, SymInt[] stride, ScalarType dtype, Device device) -> Tensor", _brought),
}
_library = None


def operations():
    """torch.ops.terrace, with the operations defined."""
    global _library
    if _library is None:
        _library = torch.library.Library("terrace", "DEF")
        for name, (schema, function) in _SCHEMAS.items():
            _library.define(name + schema)
            _library.impl(name, function, "CompositeExplicitAutograd")
            fake = _fake_brought if name == "brought" else _fake_handle
            torch.library.register_fake(f"terrace::{name}", fake, lib=_library)
    return torch.ops.terrace


def _fake_handle(*_):
    return torch.empty(1, dtype=torch.int64)


def _fake_brought(handle, size, stride, dtype, device):
    return torch.empty_strided(size, stride, dtype=dtype, device=device)
