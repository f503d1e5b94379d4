# SPDX-License-Identifier: Apache-2.0
"""What outlives steps, out of the model and the optimizer and back: weights, statistics and optimizer states.

While a session has them, the model's tensors are stand-ins of the same shapes.
"""
import contextlib
import mmap
import os
import tempfile

import torch

from ..errors import SystemFailed
from . import process_memory
from .folders import cache_folder
from .kernels import storage_bytes, window
from .optimizers import Update
from .verdict import readable

PIECE = 8 << 20  # state moves in pieces of so many bytes


class Parked:
    """Bytes by name that wait in a file without a name, so that they are not in memory twice."""

    def __init__(self, named_pieces, folder=None):
        folder = folder or cache_folder()
        self._where, end = {}, 0
        try:
            os.makedirs(folder, exist_ok=True)
            self._file = tempfile.TemporaryFile(prefix="terrace-", dir=folder)
            for name, pieces in named_pieces:
                self._file.seek(end)
                count = sum(self._file.write(piece) for piece in pieces)
                self._where[name] = (end, count)
                end += -(-count // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
            self._file.flush()
        except OSError as error:
            raise SystemFailed(
                f"weights and states cannot be kept in {folder} ({error.strerror}, after {readable(end)}): free room there, or name "
                "another folder by disk=", error.errno
            ) from None

    def __del__(self):
        if hasattr(self, "_file"):
            with contextlib.suppress(OSError):  # what a full disk did not take is written once more
                self._file.close()

    def pieces(self, name):
        """The bytes of that name, piece by piece; None where there are none."""
        offset, count = self._where.get(name, (0, 0))
        return self._pieces(offset, count) if count else None

    def _pieces(self, offset, count):
        for begin in range(offset, offset + count, PIECE):
            piece = bytearray(min(PIECE, offset + count - begin))
            self._file.seek(begin)
            self._file.readinto(piece)
            yield piece

    def tensor(self, name):
        """The bytes of that name as a tensor; none where there are none.

        The file is mapped: what is only read takes memory that the system may have back at any time.
        """
        offset, count = self._where.get(name, (0, 0))
        if not count:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(mmap.mmap(self._file.fileno(), count, access=mmap.ACCESS_COPY, offset=offset), dtype=torch.uint8)


class Nothing:
    """The state of a step that has none: zeros."""

    def pieces(self, name):
        return None


class Blank:
    """Zeros in place of a state that is lost, until another one is loaded."""

    def __init__(self, graph):
        self._bytes = {tensor.name: tensor.bytes for tensor in graph.tensors}

    def tensor(self, name):
        return torch.zeros(self._bytes[name], dtype=torch.uint8)


def move_out(graph, folder=None):
    """Takes the bytes of all that outlives steps out of the model and the optimizer."""
    reals = {view.storage: real for real, view in graph.reals}
    updates = [kernel.call for kernel in graph.kernels if isinstance(kernel.call, Update)]
    named = [(graph.tensors[tensor].name, [_buffer(storage_bytes(real.detach()))]) for tensor, real in reals.items()]
    for update in updates:
        named += [(name, [_buffer(data)]) for name, data in update.take_state(graph)]
    parked = Parked(named, folder)
    del named
    for update in updates:
        update.drop_state()
    for real, _ in graph.reals:
        real.data = _stand_in(real)
    process_memory.trim()
    return parked


def move_in(graph, state):
    """The reverse of move_out."""
    storages = {}
    for real, view in graph.reals:
        if view.storage not in storages:
            storages[view.storage] = state.tensor(graph.tensors[view.storage].name).to(real.device)
        real.data = window(storages[view.storage], view)
    for kernel in graph.kernels:
        if isinstance(kernel.call, Update):
            kernel.call.give_state(graph, state)


def _stand_in(real):
    """As large as the tensor and without its memory: who reads it finds that it is no number."""
    nothing = float("nan") if real.is_floating_point() or real.is_complex() else 0
    return torch.full((), nothing, dtype=real.dtype, device=real.device).expand(real.shape)


def is_stand_in(tensor):
    return tensor.numel() > 1 and not any(tensor.stride())


def _buffer(data):
    return memoryview(data.cpu().numpy())
