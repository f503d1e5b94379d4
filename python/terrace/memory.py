# SPDX-License-Identifier: Apache-2.0
"""Tiers, transfers between them and memory of this process, and plans carried out with callbacks as kernels."""
import ctypes
from ctypes import byref, c_char_p, c_uint32, c_void_p

from . import _library
from ._library import (
    ADDRESS, ALLOC, BACKGROUND, HOST, NORMAL, RELEASE, RUN, URGENT, Callbacks, Move, Traffic, check, encoded, library)


class Transfer:
    """Moves in progress. Forgetting one waits for it and drops its error: call wait() first."""

    def __init__(self, handle, keep):
        self._handle = handle
        self._keep = keep  # whatever owns the memory it uses

    def done(self):
        return self._handle is None or bool(library.terrace_transfer_done(self._handle))

    def wait(self):
        """Returns when it is complete; raises SystemFailed, naming tier, path and cause, where it failed."""
        if self._handle is None:
            return
        status = library.terrace_transfer_wait(self._handle)
        try:
            check(status)
        finally:
            self.close()
            self._keep = None

    def close(self):
        handle, self._handle = self._handle, None
        if handle:
            library.terrace_transfer_free(handle)

    def __del__(self):
        self.close()


class Tiers:
    """Open tiers, numbered in the order of their specs (`dram:64MiB`, `file:/data/spill:8GiB`)."""

    def __init__(self, specs):
        texts = (c_char_p * len(specs))(*(encoded(spec) for spec in specs))
        handle = c_void_p()
        check(library.terrace_tiers_open(texts, len(specs), byref(handle)))
        self._handle = handle

    def describe(self):
        return _library.call_for_json(library.terrace_tiers_describe, self._handle)

    def memory(self, tier):
        """The address of an addressable tier's bytes, else None."""
        return library.terrace_tiers_memory(self._handle, tier)

    def start(self, moves, priority=BACKGROUND, keep=None):
        """Starts moves, each (from_tier, from, to_tier, to, bytes); HOST is memory of this process, by address."""
        array = (Move * len(moves))(
            *(Move(from_tier, to_tier, from_, to, count) for from_tier, from_, to_tier, to, count in moves)
        )
        handle = c_void_p()
        check(library.terrace_transfer_start(self._handle, array, len(moves), priority, byref(handle)))
        return Transfer(handle, (self, keep))

    def traffic(self, from_tier, to_tier):
        counted = Traffic()
        check(library.terrace_tiers_traffic(self._handle, from_tier, to_tier, byref(counted)))
        return {"bytes": counted.bytes, "transfers": counted.transfers, "busy_seconds": counted.busy_seconds}

    def close(self):
        handle, self._handle = self._handle, None
        if handle:
            library.terrace_tiers_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()


class Executor:
    """A verified plan on open tiers, with Python functions as kernels.

    With `run` alone, kernels are called as run(kernel, variant, operands) with operands as pairs of address and bytes.
    With alloc(tensor, bytes, filled), release(tensor) and address(tensor), too, fast memory is the caller's, and kernels
    are called as run(kernel, variant): include/terrace/terrace.h says when each is called. What a function raises ends
    the step and is raised by step().
    """

    def __init__(self, record, run, alloc=None, release=None, address=None):
        own = alloc is not None
        self._raised = None
        functions = [
            RUN(self._guarded(self._run_own(run) if own else self._run_with(run), 1)),
            ALLOC(self._guarded(lambda _, tensor, count, filled: alloc(tensor, count, bool(filled)) or 0, 0)) if own else ALLOC(),
            RELEASE(self._guarded(lambda _, tensor: release(tensor) and 0 or 0, 1)) if own else RELEASE(),
            ADDRESS(self._guarded(lambda _, tensor: address(tensor) or 0, 0)) if own else ADDRESS(),
        ]
        self._callbacks = Callbacks(None, *functions)  # kept alive while the library may call them
        handle = c_void_p()
        check(library.terrace_executor_open(encoded(record), byref(self._callbacks), byref(handle)))
        self._handle = handle

    @staticmethod
    def _run_own(run):
        def called(_, kernel, variant, operands, count):
            run(kernel, variant)
            return 0

        return called

    @staticmethod
    def _run_with(run):
        def called(_, kernel, variant, operands, count):
            run(kernel, variant, [(operands[i].address, operands[i].bytes) for i in range(count)])
            return 0

        return called

    def _guarded(self, function, failed):
        """What the function raises is kept for step(), and the library is told to end it."""

        def called(*arguments):
            try:
                return function(*arguments)
            except BaseException as raised:
                self._raised = raised
                return failed

        return called

    def step(self):
        self._call(library.terrace_executor_step)

    def bundle(self, kernels):
        """Has a device keep these kernels, which do the same in every step, to issue many of them at once in all later steps.

        `run` is called for each of them now, in which nothing takes place. None of them: as before.
        """
        self._call(library.terrace_executor_bundle, (c_uint32 * len(kernels))(*kernels), len(kernels))

    def _call(self, function, *arguments):
        self._raised = None
        status = function(self._handle, *arguments)
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised
        check(status)

    def write(self, tensor, address, count):
        check(library.terrace_executor_write(self._handle, tensor, address, count))

    def read(self, tensor, address, count):
        check(library.terrace_executor_read(self._handle, tensor, address, count))

    def write_part(self, tensor, begin, address, count):
        """As write, of the bytes from `begin` on."""
        check(library.terrace_executor_write_part(self._handle, tensor, begin, address, count))

    def read_part(self, tensor, begin, address, count):
        check(library.terrace_executor_read_part(self._handle, tensor, begin, address, count))

    def address(self, tensor):
        """Where kernels would find the tensor between steps, in memory or on a device; None where they would not."""
        place = c_void_p()
        check(library.terrace_executor_address(self._handle, tensor, byref(place)))
        return place.value

    def queue(self):
        """Within a kernel: what it is to be issued to (a CUstream); None where it is computed at once."""
        return library.terrace_executor_queue(self._handle)

    def result(self):
        return _library.call_for_json(library.terrace_executor_result, self._handle)

    def close(self):
        handle, self._handle = self._handle, None
        if handle:
            library.terrace_executor_close(handle)

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()


def address_of(buffer):
    """Of the bytes of anything with a writable buffer."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
