# SPDX-License-Identifier: Apache-2.0
"""Makes PyTorch's operations leave their results where a plan wants them (include/terrace/placement.h).

An operation allocates its results and its scratch in the same order every time. `record` finds that order out, and
`Places` says for a kernel which allocation is a result and where in the kernel's workspace the others go.
"""
import ctypes
from dataclasses import dataclass

import torch

_ROOM = 65536  # events of one kernel
_SET_ALLOCATOR = "_ZN3c1015SetCPUAllocatorEPNS_9AllocatorEh"
_ALIGNMENT = 64
# Whose headers were read: c10::Allocator of 2.6 and of 2.14 is the same, so it is taken to be so in between.
_KNOWN_VERSIONS = {(1, 13), *((2, minor) for minor in range(6, 15))}


class _Event(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


@dataclass(frozen=True)
class Places:
    """Of each allocation of a kernel: its bytes, and the number of the result it is or its offset in the workspace.

    What is neither a result nor scratch has neither number nor offset, and is left to the C library.
    """

    allocations: tuple = ()  # of (bytes, output, offset)
    workspace: int = 0

    def addresses(self, outputs, workspace):
        """Where each allocation goes, given the addresses of the outputs and of the workspace, as arrays."""
        sizes = [size for size, _, _ in self.allocations]
        placed = [_place(output, offset, outputs, workspace) for _, output, offset in self.allocations]
        return (ctypes.c_uint64 * len(sizes))(*sizes), (ctypes.c_uint64 * len(placed))(*placed), len(sizes)


def _place(output, offset, outputs, workspace):
    if output is not None:
        return outputs[output]
    return 0 if offset is None else workspace + offset


class Placement:
    """PyTorch's allocator of processor memory, of which a process has one."""

    _one = None

    @classmethod
    def installed(cls, library):
        """The process's placement; None where this PyTorch has no such allocator."""
        if cls._one is None and (function := _set_allocator()) is not None:
            cls._one = cls(library, function)
        return cls._one

    def __init__(self, library, set_allocator):
        words = ctypes.POINTER(ctypes.c_uint64)
        library.terrace_placement_begin.argtypes = [words, words, ctypes.c_size_t]
        library.terrace_placement_begin.restype = None
        library.terrace_placement_end.restype = ctypes.c_size_t
        library.terrace_placement_record_begin.argtypes = [ctypes.POINTER(_Event), ctypes.c_size_t]
        library.terrace_placement_record_begin.restype = None
        library.terrace_placement_record_end.restype = ctypes.c_size_t
        self.begin, self.end = library.terrace_placement_begin, library.terrace_placement_end
        self._library = library
        self._events = (_Event * _ROOM)()
        install = library.terrace_placement_install if _version() < (2,) else library.terrace_placement_install_later
        if install(ctypes.cast(set_allocator, ctypes.c_void_p)) != 0:
            raise OSError("PyTorch's allocator cannot be replaced")

    def record(self, work):
        """What `work()` returns, and its allocations in their order: (address, bytes), or (address, 0) for an end."""
        self._library.terrace_placement_record_begin(self._events, _ROOM)
        try:
            result = work()
        finally:
            count = self._library.terrace_placement_record_end()
        if count > _ROOM:
            return result, None
        return result, [(self._events[i].address, self._events[i].bytes) for i in range(count)]


def _set_allocator():
    """None where the virtual functions of c10::Allocator are not those that the library declares."""
    if _version() not in _KNOWN_VERSIONS:
        return None
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            paths = {line.split()[-1] for line in maps if "/libc10.so" in line}
        return getattr(ctypes.CDLL(paths.pop()), _SET_ALLOCATOR)
    except (OSError, KeyError, AttributeError):
        return None


def _version():
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def places_of(events, outputs):
    """Places for a recorded order. `outputs`: (address, bytes) of each result that is to be placed, or None."""
    if events is None:
        return Places()
    role, passing = _results(events, outputs), _passing(events)
    free, live, allocations, top = [], {}, [], 0  # free: (offset, bytes) holes below top
    for index, (address, size) in enumerate(events):
        if size == 0:
            if address in live:
                free = _merged([*free, live.pop(address)])
        elif index in role:
            allocations.append((size, role[index], 0))
        elif index not in passing:
            allocations.append((size, None, None))
        else:
            offset, taken, top, free = _first_fit(-(-size // _ALIGNMENT) * _ALIGNMENT, top, free)
            live[address] = (offset, taken)
            allocations.append((size, None, offset))
    return Places(tuple(allocations), top)


def _results(events, outputs):
    """Which events are the allocations that results lie in: the last of each address."""
    last = {address: index for index, (address, size) in enumerate(events) if size}
    role = {}
    for number, wanted in enumerate(outputs):
        if wanted is not None and wanted[0] in last and events[last[wanted[0]]][1] == wanted[1]:
            role[last[wanted[0]]] = number
    return role


def _passing(events):
    """Which allocations end before the kernel does; what stays behind is no scratch."""
    began, passing = {}, set()
    for index, (address, size) in enumerate(events):
        if size:
            began[address] = index
        elif address in began:
            passing.add(began.pop(address))
    return passing


def _first_fit(size, top, free):
    for place, (offset, room) in enumerate(free):
        if room >= size:
            rest = [(offset + size, room - size)] if room > size else []
            return offset, size, top, [*free[:place], *rest, *free[place + 1 :]]
    return top, size, top + size, free


def _merged(holes):
    merged = []
    for offset, room in sorted(holes):
        if merged and merged[-1][0] + merged[-1][1] == offset:
            merged[-1] = (merged[-1][0], merged[-1][1] + room)
        else:
            merged.append((offset, room))
    return merged
