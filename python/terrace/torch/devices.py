# SPDX-License-Identifier: Apache-2.0
"""Where a model's tensors lie and its kernels run: the computer's memory, or a GPU's.

On a GPU the executor issues kernels to a queue of its own, which PyTorch knows as an external stream. The program and the
plan take turns: whoever hands over first waits until the GPU has done what it was given, so neither sees memory that
the other still works on, and memory that one of them frees is not in use when the other takes it.
"""
import ctypes
import mmap
import os
import time

import torch

from ..errors import InvalidRequest, Unsupported
from . import process_memory

_PAGE = 4096
_PINNED_SHARE = 0.5  # of the memory that the computer has free, for what leaves a GPU
_ROUNDS = 5  # a kernel of a GPU is timed so often at once
_FRAGMENTS = 1.25  # PyTorch's allocator takes memory in pieces, of which it cannot use all


def require_fittable(model):
    if not isinstance(model, torch.nn.Module):
        raise InvalidRequest(f"fit takes a torch.nn.Module and was given a {type(model).__name__}")
    devices = sorted({str(each.device) for each in [*model.parameters(), *model.buffers()]})
    if len(devices) > 1:
        raise InvalidRequest(f"the model lies on {' and '.join(devices)}, and fit works on one device: move it to one of them")
    if devices and devices[0].startswith("cuda") and "TERRACE_TRY_CUDA" in os.environ:
        return
    if devices and not devices[0].startswith("cpu"):
        raise Unsupported(
            f"the model lies on {devices[0]}, and fit was tried out in the computer's memory alone; a CUDA device is used where "
            "TERRACE_TRY_CUDA is set"
        )


def require_host(model):
    if device_of(model) is not HOST:
        raise Unsupported("hooks move tensors in the computer's memory, and this model lies on a GPU: fit it by capture")


def device_of(model):
    found = {each.device for each in [*model.parameters(), *model.buffers()]}
    device = found.pop() if found else torch.device("cpu")
    return Cuda(device) if device.type == "cuda" else HOST


class Host:
    """The computer's memory."""

    device = torch.device("cpu")

    def bytes_at(self, address, count, dtype=torch.uint8):
        """A tensor on memory that somebody else owns."""
        return torch.frombuffer((ctypes.c_char * count).from_address(address), dtype=dtype)

    def scratch(self, count):
        """Memory full of zeros, which are indices that offend no operation: what holds it, and its address."""
        memory = mmap.mmap(-1, max(count, _PAGE))
        return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def timed(self, run):
        """Seconds of a run, and the bytes that it takes for a while beside PyTorch's allocator."""
        before = process_memory.heap()
        run()
        hidden = max(process_memory.heap() - before, 0)
        began = time.perf_counter()
        run()
        return time.perf_counter() - began, hidden

    def taken(self, hidden):
        """What the process takes beside a plan's tensors, where a kernel takes so much beside its operands."""
        process_memory.trim()
        return process_memory.resident() + hidden

    def tiers(self):
        """Options of planning: the machine, and what lies behind memory where the user names nothing."""
        return {"machine": "this", "slow": None}

    def key(self):
        return f"{torch.get_num_threads()} threads"

    def finish(self):
        """Returns when everything that this thread has asked of the device is done."""

    def use_queue(self, queue):
        """What this thread runs from here on is issued there."""

    def keep(self, issue):
        """Runs `issue`, after which kernels are issued again and again with what they allocate now; returns who holds that."""
        issue()
        return ()

    def bytes_kept(self, holder):
        return 0

    def random_state(self):
        return torch.get_rng_state()

    def set_random_state(self, state):
        torch.set_rng_state(state)


HOST = Host()


class Cuda(Host):
    """A GPU's memory. `memory=` then means what PyTorch's allocator and the plan have there; CUDA's own context, some hundred
    MiB, comes on top, as it does without a plan."""

    def __init__(self, device):
        self.device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        self._queue = None
        self._timing = None  # a stream for kernels that are timed

    def bytes_at(self, address, count, dtype=torch.uint8):
        return torch.as_tensor(_OnDevice(address, count), device=self.device).view(dtype)

    def scratch(self, count):
        memory = torch.zeros(max(count, 1), dtype=torch.uint8, device=self.device)
        return memory, memory.data_ptr()

    def timed(self, run):
        torch.cuda.synchronize(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        run()
        hidden = torch.cuda.max_memory_allocated(self.device) - before
        self._timing = self._timing or torch.cuda.Stream(self.device)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(self.device)
        with torch.cuda.stream(self._timing):
            rounds = _rounds_of(run)
            rounds()
            begin.record()
            rounds()
            end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1000 / _ROUNDS, hidden

    def taken(self, hidden):
        torch.cuda.empty_cache()
        return torch.cuda.memory_allocated(self.device) + int(_FRAGMENTS * hidden)

    def tiers(self):
        total = torch.cuda.mem_get_info(self.device)[1]
        pinned = int(_PINNED_SHARE * _available_memory())
        return {"machine": f"cuda:{self.device.index}:{total}B", "slow": [f"pinned:{pinned}B"]}

    def key(self):
        return torch.cuda.get_device_name(self.device)

    def finish(self):
        torch.cuda.current_stream(self.device).synchronize()

    def use_queue(self, queue):
        if queue != self._queue:
            torch.cuda.set_stream(torch.cuda.ExternalStream(queue, device=self.device))
            self._queue = queue

    def keep(self, issue):
        if not hasattr(torch.cuda, "MemPool"):
            raise Unsupported("this PyTorch has no pools of memory: 2.5 has")
        # What products of matrices use in passing must be allocated anew, or it would be gone when somebody clears it.
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool, self.device):
            issue()
        torch._C._cuda_clearCublasWorkspaces()
        return pool

    def bytes_kept(self, holder):
        return sum(segment["total_size"] for segment in holder.snapshot())

    def random_state(self):
        return torch.get_rng_state(), torch.cuda.get_rng_state(self.device)

    def set_random_state(self, state):
        torch.set_rng_state(state[0])
        torch.cuda.set_rng_state(state[1], self.device)


def _rounds_of(run):
    """What runs a kernel some times in the way in which a device runs those that it keeps: without PyTorch in between."""

    def one_by_one():
        for _ in range(_ROUNDS):
            run()

    run()
    torch.cuda.current_stream().synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        graph.capture_begin(capture_error_mode="relaxed")
        try:
            one_by_one()
        finally:
            graph.capture_end()
    except (RuntimeError, TypeError):  # it cannot be kept, or this PyTorch is too old
        return one_by_one
    return graph.replay


class _OnDevice:
    """Memory of a GPU in the form in which libraries show it to each other."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "|u1", "data": (address, False), "strides": None, "version": 3,
        }  # fmt: skip


def _available_memory():
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return 0
