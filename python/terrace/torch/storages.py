# SPDX-License-Identifier: Apache-2.0
"""Storages and versions of tensors, alike in every PyTorch from 1.13 on."""
import torch
from torch.multiprocessing.reductions import StorageWeakRef


def storage_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def key_of(tensor):
    """Of the memory behind a tensor; another storage may have the same when this one is gone (`weak`)."""
    return storage_of(tensor)._cdata


def weak(tensor):
    """A reference that does not keep the storage; `expired()` says whether it is gone."""
    return StorageWeakRef(storage_of(tensor))


def version_witness(tensor):
    """A tensor without memory that shares the version counter: its `_version` tells of changes in place for as long as
    anybody makes any."""
    witness = tensor.detach()
    witness.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return witness


def is_plain(tensor):
    """Whether its elements lie in a storage that can be copied as bytes."""
    if tensor.is_conj() or tensor.is_neg():  # the storage has other numbers than the tensor
        return False
    return tensor.layout == torch.strided and not tensor.is_quantized and tensor.device.type == "cpu"


class Form:
    """How a tensor lies in its storage, so that it can be made again over a copy of the bytes."""

    __slots__ = ("dtype", "size", "stride", "offset")

    def __init__(self, tensor):
        self.dtype = tensor.dtype
        self.size, self.stride = tensor.size(), tensor.stride()
        self.offset = tensor.storage_offset()

    def over(self, memory):
        """`memory`: bytes of the whole storage, aligned for any type."""
        return torch.as_strided(typed(memory, self.dtype), self.size, self.stride, self._offset(memory))

    def _offset(self, memory):
        return memory.storage_offset() // torch.empty(0, dtype=self.dtype).element_size() + self.offset


def typed(memory, dtype):
    if dtype == torch.uint8:
        return memory
    return memory.view(dtype)


PAGE = 4096


def aligned_bytes(count):
    """Fresh memory whose address a disk can use without a copy, and whose length any type divides."""
    padded = (count + 15) // 16 * 16
    whole = torch.empty(padded + PAGE, dtype=torch.uint8)
    skip = -whole.data_ptr() % PAGE
    return whole[skip:skip + padded]
