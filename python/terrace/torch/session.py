# SPDX-License-Identifier: Apache-2.0
"""A captured step on open tiers: its graph under a verified plan, with PyTorch's operations as kernels."""
import contextlib
import gc
import os

import torch

from .. import _library, memory
from ..errors import InvalidRequest, NoRoom, Unsupported
from . import process_memory
from .devices import HOST
from .folders import cache_folder
from .kernels import Kernels, address_and_bytes, storage_bytes
from .placement import Placement
from .same_bits import SameBits, checksum
from .state import PIECE, Parked
from .verdict import parse_memory, readable

# What planning and an executor take beside their tiers, measured with resnet50 (675 kernels) and gpt2 (692).
_EXECUTOR_BYTES = 24 << 20  # staging of transfers, threads, the planner's own memory
_KERNEL_BYTES = 48 << 10  # of a kernel: its texts, instructions, windows and closures
_PRODUCT_BYTES = 32 << 20  # of a thread of OpenBLAS: its buffer, as far as operands of products fill it
_PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}


def placement(device=HOST):
    """PyTorch's allocator under our control; None where this PyTorch has none that can be replaced."""
    return None if device is not HOST else Placement.installed(_library.library)


def fast_for(memory, taken, cure):
    """How much of the fastest tier is left of `memory` where the process takes so much beside; `cure` ends the refusal."""
    limit, share = parse_memory(memory)
    if share is not None:
        return f"{100 * share:g}%"
    if taken >= limit:
        raise NoRoom(f"memory={memory} is less than the {readable(taken)} that the process takes beside the step's tensors: {cure}")
    return str(limit - taken)


def slow_tiers(folder):
    """Tiers behind memory: a file in this folder, as large as its disk has room; None stands for the default."""
    if folder is None:
        return None
    try:
        os.makedirs(folder, exist_ok=True)
        room = os.statvfs(folder)
    except OSError as error:
        raise InvalidRequest(f"disk={folder!r} cannot be used ({error.strerror}): name a folder that can be written to") from None
    return [f"file:{os.path.join(folder, 'spill')}:{room.f_bavail * room.f_frsize // 2}B"]


def planning_options(device, planner, disk=None, machine=None):
    """Of planning.plan: for `machine`, or the computer's own with a folder of a disk behind it."""
    if machine is not None:
        return {"planner": planner, "machine": machine}
    own = device.tiers()
    return {"planner": planner, **own, "slow": [*(own["slow"] or []), *(slow_tiers(disk) or [])] or None}


def facts_of(plan, graph, way, why="", folder=None, device=HOST):
    """What a verdict says of a plan (verdict.py)."""
    if device is HOST:
        folder = folder or cache_folder()
    summary = plan.summary
    on_disk = sum(list(summary["planned_bytes"].values())[1:])  # the fastest tier is the first
    fast_only = summary["fast_only_seconds"] or summary["predicted_step_seconds"]
    return {
        "peak_bytes": summary["graph_peak_bytes"], "budget_bytes": summary["budget_bytes"], "slow_bytes": on_disk,
        "folder": folder, "planner": summary["planner"], "slowdown": summary["predicted_step_seconds"] / fast_only,
        "bound": summary["bound_seconds"] / fast_only, "way": way, "why": why,
        "unordered": graph.unordered(),
    }  # fmt: skip


def overhead(graph, device=HOST):
    """What the process takes on the device beside the tensors of the graph while a step runs."""
    hidden = max((kernel.learnt.hidden for kernel in graph.kernels if kernel.learnt), default=0)
    gc.collect()  # tracing leaves cycles, which would count for ever
    if device is not HOST:
        return device.taken(hidden)
    return device.taken(hidden) + _EXECUTOR_BYTES + len(graph.kernels) * _KERNEL_BYTES + _product_buffers(graph)


def _product_buffers(graph):
    """Bytes that the largest product of matrices has its library take for itself, and keep."""
    operands = [sum(view.bytes() for view in each.call.operands()) for each in graph.kernels if each.operation in _PRODUCTS]
    return min(max(operands, default=0), torch.get_num_threads() * _PRODUCT_BYTES)


class Session:
    """Steps of one graph. It holds the state that outlives steps, until `close` hands it over."""

    def __init__(self, graph, plan, state, same_bits=False, device=HOST):
        """`state.pieces(name)`: the bytes of a persistent tensor, piece by piece; what has none is zero."""
        self.graph, self.plan, self.device = graph, plan, device
        self.broken = False  # a step did not come to its end, and what outlives steps is undefined
        self.kernels = Kernels(graph, placement(device), device)
        self._outside = []  # where the model's own tensors lay when kernels were prepared
        self._has_run = False  # every kernel, with what is prepared for it at its first run
        self._bundled = None  # what holds the memory of kernels that the device keeps
        self.unbundled = None  # why the device keeps none
        planned = plan.record["graph"]
        by_name = {kernel.name: number for number, kernel in enumerate(graph.kernels)}
        self._kernels = [by_name[kernel["name"]] for kernel in planned["kernels"]]
        self._numbers = {tensor.name: number for number, tensor in enumerate(graph.tensors)}
        self._tensors = {tensor["name"]: number for number, tensor in enumerate(planned["tensors"])}
        del planned
        process_memory.trim()  # what planning took is not needed beside the tiers
        if same_bits and device is not HOST:
            raise Unsupported("same_bits=True looks at tensors in the computer's memory, and this model lies on a GPU: leave it out")
        self.check = SameBits(graph) if same_bits else None
        self.executor = memory.Executor(plan.record_text, self._run_checked if same_bits else self._run)
        for tensor in graph.tensors:
            if tensor.persistent and tensor.bytes:
                self._fill(tensor, state)

    def _run_checked(self, kernel, variant, operands):
        number, addresses = self._kernels[kernel], [address for address, _ in operands]
        self.check.before(number, addresses)
        self.kernels.run(number, addresses)
        self.check.after(number, addresses)

    def _run(self, kernel, variant, operands):
        self.device.use_queue(self.executor.queue())
        self.kernels.run(self._kernels[kernel], [address for address, _ in operands])

    def _fill(self, tensor, state):
        if tensor.name not in self._tensors:
            return
        begin, bits = 0, 0
        for piece in state.pieces(tensor.name) or _zeros(tensor.bytes):
            address = memory.address_of(piece)
            self.executor.write_part(self._tensors[tensor.name], begin, address, len(piece))
            begin, bits = begin + len(piece), checksum(address, len(piece), bits) if self.check else 0
        self._note_given(tensor.name, bits)

    def write_tensor(self, name, tensor):
        if name not in self._tensors or not tensor.numel():
            return
        if tensor.device.type != "cpu":
            target = self._window_of(self._tensors[name], address_and_bytes(tensor)[1])
            if target is not None:
                target.copy_(storage_bytes(tensor))
                return
            tensor = storage_bytes(tensor).cpu()
        self.executor.write(self._tensors[name], *address_and_bytes(tensor))
        self._note_given(name, checksum(*address_and_bytes(tensor)) if self.check else 0)

    def _window_of(self, number, count):
        """The bytes of a tensor where kernels would find it; None where they would not find it now."""
        address = self.executor.address(number)
        return self.device.bytes_at(address, count) if address else None

    def _note_given(self, name, bits):
        if self.check:
            self.check.given(self._numbers[name], bits)

    def pieces_of(self, number):
        """The bytes of a tensor that outlives steps, piece by piece; each is overwritten by the next."""
        tensor, piece = self.graph.tensors[number], bytearray(min(PIECE, self.graph.tensors[number].bytes))
        for begin in range(0, tensor.bytes, PIECE):
            count = min(PIECE, tensor.bytes - begin)
            self.executor.read_part(self._tensors[tensor.name], begin, memory.address_of(piece), count)
            yield memoryview(piece)[:count]

    def read_tensor(self, number):
        """A copy of the bytes of a tensor of the graph: one that outlives steps, or a result."""
        tensor = self.graph.tensors[number]
        made = torch.empty(tensor.bytes, dtype=torch.uint8)
        if tensor.bytes:
            self.executor.read(self._tensors[tensor.name], made.data_ptr(), tensor.bytes)
        return made.to(self.device.device)

    def forget_moved(self):
        """Prepares kernels anew where the model's own tensors lie elsewhere than before."""
        places = [real.data_ptr() for real in self.graph.outside.values()]
        if places != self._outside:
            self.kernels.forget()
            if self._bundled is not None:
                self.executor.bundle([])
            self._outside, self._has_run, self._bundled = places, False, None

    def step(self):
        self.broken = True
        if self.check:
            self.check.begin_step()
        with torch.no_grad(), without_autocast():
            if self._has_run and self._bundled is None and self.unbundled is None:
                self._bundle()
            self.executor.step()
        self.broken, self._has_run = False, True

    def _bundle(self):
        """Has a device issue many kernels at once, for PyTorch takes longer to issue a small one than a GPU to run it."""
        again = [place for place, number in enumerate(self._kernels) if self.graph.kernels[number].is_same_every_time()]
        try:
            self._bundled = self.device.keep(lambda: self.executor.bundle(again))
        except Exception as why:  # then each is issued on its own, as it was
            self.unbundled = str(why)

    def bundle_bytes(self):
        """What kernels that the device keeps have of its memory, beside the plan."""
        return self.device.bytes_kept(self._bundled) if self._bundled else 0

    def close(self, folder=None):
        """Ends the session; returns its state, in a file without a name. Where that fails, the session stays."""
        kept = ((i, tensor) for i, tensor in enumerate(self.graph.tensors) if tensor.persistent)
        parked = Parked(((tensor.name, self.pieces_of(i)) for i, tensor in kept), folder)
        self.executor.close()
        self._bundled = None
        return parked


def _zeros(count):
    """So many bytes of zeros, piece by piece."""
    piece = bytearray(min(PIECE, count))
    for begin in range(0, count, PIECE):
        rest = count - begin
        yield piece if rest >= len(piece) else bytearray(rest)


@contextlib.contextmanager
def without_autocast():
    """What is captured has its types already."""
    with torch.autocast("cpu", enabled=False):
        if not torch.cuda.is_available():
            yield
            return
        with torch.autocast("cuda", enabled=False):
            yield
