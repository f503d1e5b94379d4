# SPDX-License-Identifier: Apache-2.0
"""What this process takes of the computer's memory, and how its allocator is made to keep what it has.

resident   bytes of pages that this process holds: what a limit counts
in use     bytes that were asked of the C allocator and not given back: the tensors, above all
"""
import ctypes
import os

_PAGE = os.sysconf("SC_PAGE_SIZE")
_libc = ctypes.CDLL(None)


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


_has_mallinfo = hasattr(_libc, "mallinfo2")
if _has_mallinfo:
    _libc.mallinfo2.restype = _Mallinfo2

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -3, -4, -8


def resident():
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


def peak_resident():
    """The most since reset_peak, or since the process began where that is refused."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def reset_peak():
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass  # then the peak is that of the process


def in_use():
    if not _has_mallinfo:
        return resident()
    info = _libc.mallinfo2()
    return info.uordblks + info.hblkhd


def trim():
    """Gives free pages of the allocator back to the system."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


_MMAP_THRESHOLDS = (1 << 30, 32 << 20)  # older C libraries refuse the first: a thread's heap has 64 MiB at most there


def keep_freed_memory():
    """Freed tensors stay with the process, up to the largest threshold that the C library takes: else every one is given
    back and faulted in again, page by page. Returns whether the C library agreed."""
    kept = any(_set(_M_MMAP_THRESHOLD, threshold) for threshold in _MMAP_THRESHOLDS)
    return kept and _set(_M_TRIM_THRESHOLD, 2**31 - 1) and _set(_M_TOP_PAD, 1 << 24)


def keep_all_freed_memory():
    """The same for tensors of any size. For programs whose large tensors lie elsewhere, so that the heap stays small."""
    return keep_freed_memory() and _set(_M_MMAP_MAX, 0) and _set(_M_ARENA_MAX, 1)


def _set(option, value):
    """Whether the C library has the option and takes the value."""
    return bool(hasattr(_libc, "mallopt") and _libc.mallopt(option, value))


def heap():
    """Bytes that the C library has taken for its heap, in use or not."""
    return _libc.mallinfo2().arena if _has_mallinfo else 0
