# SPDX-License-Identifier: Apache-2.0
"""same_bits of a captured step: whatever the plan did with a tensor, a kernel finds the bits that its writer left.

Every operand of every kernel is compared by a checksum with what was there after the kernel that wrote it, and a kernel
that is run again within a step must make what it made before. The check reads all operands once more, so steps are
slower with it.
"""
import ctypes
import zlib

from ..errors import LibraryBug
from .graph import Call


class SameBits:
    """The checksums of a session's tensors. One thread at a time."""

    def __init__(self, graph):
        self.graph = graph
        self._left = {}  # by tensor: the checksum of what its last writer left
        self._made = {}  # by kernel: the checksums of what it made in this step

    def begin_step(self):
        self._made.clear()

    def given(self, tensor, checksum):
        """The tensor was written between steps; None where nobody knows its bits."""
        self._left[tensor] = checksum

    def before(self, number, addresses):
        kernel = self.graph.kernels[number]
        for tensor, address in zip(kernel.inputs, addresses):
            found, left = self._checksum(tensor, address), self._left.get(tensor)
            if left is not None and found != left:
                raise LibraryBug(f"{kernel.name} found other bits in {self.graph.tensors[tensor].name} than were left there")

    def after(self, number, addresses):
        kernel = self.graph.kernels[number]
        made = {}
        for tensor, address in zip(kernel.outputs, addresses[len(kernel.inputs) :]):
            self._left[tensor] = made[tensor] = self._checksum(tensor, address)
        before = self._made.setdefault(number, made)
        for tensor in self._complete(kernel):
            if made[tensor] != before[tensor]:
                raise LibraryBug(f"{kernel.name} made other bits of {self.graph.tensors[tensor].name} when it was run again")

    def _complete(self, kernel):
        """Outputs of which the kernel writes every byte: gaps between elements hold anything."""
        if not isinstance(kernel.call, Call):
            return []
        views = [view for view in kernel.call.outputs if view and view.storage >= 0]
        return [view.storage for view in views if view.bytes() == self.graph.tensors[view.storage].bytes]

    def _checksum(self, tensor, address):
        return checksum(address, self.graph.tensors[tensor].bytes)


def checksum(address, count, begin=0):
    return zlib.crc32((ctypes.c_char * count).from_address(address), begin) if count else begin
