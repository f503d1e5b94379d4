# SPDX-License-Identifier: Apache-2.0
"""fit by hooks: tensors that PyTorch saves for backward leave memory and come back, by a plan made from the first step.

The first step is carried out as it comes: when memory nears the limit the oldest saved tensors are written to disk, and
they are read when backward wants them. What happened becomes a graph (step_graph), a planner's plan for it is verified,
and the steps that follow carry it out: writes run behind the forward pass, reads run ahead of the backward pass. A step
that does not go as planned is carried out as it comes again, and planned anew.

Each storage and version is kept once, however often it is saved; weights are never moved. The kernels are PyTorch's own
on the same bytes, so results are the same to the bit. A tensor that is changed in place after it was saved raises
PyTorch's own error, as it does without hooks.
"""
import atexit
import ctypes
import re
import threading
import time
import zlib

import torch

from .. import memory as tiers
from .. import planning
from ..errors import LibraryBug, NoRoom
from . import process_memory, verdict
from .spill import Spill
from .step_graph import SAVED, WANTED, Event, Seen, graph_of, least_of, machine_of
from .storages import Form, aligned_bytes, is_plain, key_of, storage_of, version_witness, weak

SMALL = 64 << 10  # storages below this stay where they are: half of all saved tensors, and next to no bytes
OUTSTANDING = 256 << 20  # bytes being written at once while no limit is known yet
START_WRITING, MUST_DROP = 0.75, 0.9  # shares of the budget
TRANSIENT = 3  # an operation takes up to so many tensors of the largest size for itself: results, other layouts
PLAN_SECONDS = 5


class Changed(RuntimeError):
    """What PyTorch raises where a tensor was changed in place after it was saved."""

    def __init__(self, dtype, size, version, expected):
        name = str(dtype).replace("torch.", "").capitalize()
        kind = {"Float32": "Float", "Float64": "Double", "Float16": "Half", "Int64": "Long"}.get(name, name)
        super().__init__(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[torch.{kind}Tensor {list(size)}] is at version {version}; expected version {expected} instead. Hint: enable "
            "anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True).")


class Kept:
    """A saved tensor that stays where it is."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor):
        self.tensor, self.version = tensor.detach(), tensor._version

    def value(self):
        if self.tensor._version != self.version:
            raise Changed(self.tensor.dtype, self.tensor.size(), self.tensor._version, self.version)
        return self.tensor


class Entry:
    """The bytes behind saved tensors: in memory, on their way, or on disk."""

    def __init__(self, number, tensor, name):
        self.number = number
        self.name = name  # where in the model it was saved first
        self.bytes = storage_of(tensor).nbytes()
        self.tensor = tensor.detach()  # None: it has left memory
        self.memory = None  # what was read back, instead of the tensor
        self.version = tensor._version
        self.witness = version_witness(tensor)
        self.weak = weak(tensor)
        self.key = key_of(tensor)
        self.handles = 0
        self.slab = self.offset = None
        self.on_disk = False  # complete there
        self.writing = self.reading = None
        self.checksum = None

    def in_memory(self):
        return self.tensor is not None or (self.memory is not None and self.reading is None)

    def held(self):
        return self.bytes if self.tensor is not None or self.memory is not None else 0

    def address(self):
        return storage_of(self.tensor).data_ptr() if self.tensor is not None else self.memory.data_ptr()

    def is_of(self, tensor):
        return not self.weak.expired() and self.version == tensor._version


class Handle:
    """What autograd keeps instead of a saved tensor."""

    __slots__ = ("entry", "form", "hooks")

    def __init__(self, entry, form, hooks):
        self.entry, self.form, self.hooks = entry, form, hooks
        entry.handles += 1

    def __del__(self):
        self.entry.handles -= 1
        if self.entry.handles == 0:
            self.hooks.forget(self.entry)


class Planned:
    """A verified plan as the hooks carry it out: what to do between two events."""

    def __init__(self, plan, signature):
        self.plan, self.signature = plan, signature
        record = plan.record
        names = [tensor["name"] for tensor in record["graph"]["tensors"]]
        self.disk_bytes = record["plan"]["budget"][1]
        self.actions = [[]]
        offsets = {}
        entry = lambda tensor: int(names[tensor][5:]) if names[tensor].startswith("entry") else None
        for what, *rest in record["plan"]["instructions"]:
            if what == "run":
                self.actions.append([])
            elif what == "wait":
                self.actions[-1].append(("wait", rest[0]))
            elif what == "alloc" and rest[1] == 1:
                offsets[rest[0]] = rest[2]
            elif what == "free" and rest[1] == 0 and entry(rest[0]) is not None:
                self.actions[-1].append(("free", entry(rest[0])))
            elif what == "copy":
                moved = [(entry(tensor), offsets.get(tensor)) for tensor in rest[0] if entry(tensor) is not None]
                self.actions[-1].append(("out" if rest[2] == 1 else "in", moved, rest[3]))


class _Active(threading.local):
    """Whose step this thread runs. PyTorch's hooks are set once for a thread and stay: the state of a thread is restored
    when a backward pass ends, so they cannot be taken away within one, and what is computed behind the model before it, as
    the loss, must be seen, too."""

    hooks = None
    is_set = False

    def set(self, hooks):
        self.hooks = hooks
        if not self.is_set:
            torch._C._autograd._push_saved_tensors_default_hooks(_pack, _unpack)
            self.is_set = True

    def clear(self, hooks=None):
        """Where they are those of `hooks`, or any."""
        if hooks is None or self.hooks is hooks:
            self.hooks = None
            if self.is_set:
                self.is_set = False
                torch._C._autograd._pop_saved_tensors_default_hooks()


_active = _Active()
atexit.register(_active.clear)


def _pack(tensor):
    return _active.hooks.pack(tensor) if _active.hooks is not None else Kept(tensor)


def _unpack(kept):
    return kept.value() if isinstance(kept, Kept) else kept.hooks.unpack(kept)


class Hooks(verdict.NotCopied):
    """One model's saved tensors. One thread runs steps at a time."""

    def __init__(self, model, memory, planner="best", disk=None, same_bits=False, tell=None, why=""):
        self.limit, self.share = verdict.parse_memory(memory)
        self.model, self.planner, self.same_bits, self.tell, self.why = model, planner, same_bits, tell, why
        self.spill = Spill(disk)
        process_memory.keep_freed_memory()
        process_memory.reset_peak()
        weights = sum({key_of(each): storage_of(each).nbytes() for each in self._own_tensors()}.values())
        self.base = max(0, process_memory.in_use() - weights)  # of the allocator's bytes, what is not the model's
        self.outside = max(0, process_memory.resident() - weights)  # of the process: code, the interpreter, data
        if self.limit is not None and self.limit <= self.outside:
            raise NoRoom(f"memory={memory} is less than the {verdict.readable(self.outside)} that the process takes beside the model: give more")
        self.spare = 0.08  # share of the limit kept for what the allocator wastes
        self.step = 0
        self.entries = {}  # by key of the storage
        self.by_number = {}
        self.order = []  # numbers, oldest first, of entries that may be written
        self.tickets = {}
        self.leaving = []  # transfers of entries that nobody wants any more
        self.planned = None
        self.plans = {}  # by signature
        self.following = None
        self.seen = Seen()
        self.backward_began = True
        self.weights = set()
        self.where = ""
        self.failure = None
        self.clock = time.perf_counter()
        self.facts = None
        self.largest = 0  # bytes of a storage that was saved
        self.statistics = {"steps": 0, "as_planned": 0, "waited_seconds": 0.0, "written_bytes": 0, "read_bytes": 0}
        self._handles = [model.register_forward_pre_hook(self.begin), model.register_forward_hook(self._raise_failure)]
        self._handles += [module.register_forward_pre_hook(self._at(name)) for name, module in model.named_modules() if name]

    def _own_tensors(self):
        return [each for each in [*self.model.parameters(), *self.model.buffers()] if is_plain(each)]

    def used(self):
        """Bytes in use that the model's training takes."""
        return max(0, process_memory.in_use() - self.base)

    # ---- steps ----

    def _at(self, name):
        def note(*_):
            self._raise_failure()
            self.where = name

        return note

    def begin(self, *_):
        """Before the model's forward pass."""
        if not torch.is_grad_enabled():
            return
        if self.backward_began:
            self._end_step()
            self._begin_step()
        elif self.facts is None and not self.seen.events:  # the model saves nothing that is worth moving
            self._tell(self._facts(self.used(), self.used() if self.limit is None else self.budget()))
        _active.set(self)

    def _begin_step(self):
        self.step += 1
        self.backward_began = False
        self.weights = {key_of(each) for each in self._own_tensors()}
        self.seen, self.position = Seen(), 0
        self.tickets.clear()
        # What outlives its step lies on disk where a plan would write.
        self.following = self.planned if not self.by_number else None
        self.by_number = {entry.number: entry for entry in self.entries.values()} if self.entries else {}
        self.next_number = 0 if not self.by_number else max(self.by_number) + 1
        self.first_number = self.next_number
        self.order = []
        self.clock = time.perf_counter()
        if self.following:
            self.spill.plan_for(self.following.disk_bytes)
            self._act(0)

    def _end_step(self):
        if self.step == 0:
            return
        self._purge(wait=True)
        self.entries = {key: entry for key, entry in self.entries.items() if entry.handles > 0}
        self.by_number = {entry.number: entry for entry in self.by_number.values() if entry.handles > 0}
        self.statistics["steps"] += 1
        if self.following is not None:
            self.statistics["as_planned"] += 1
            self._shrink_where_needed()
        elif self.seen is not None and self.seen.events:
            self.seen.seconds, self.seen.others = 1e-3, self.seen.events[-1].others
            self._plan()

    def _shrink_where_needed(self):
        """The allocator wasted more than was spared: plan again for less."""
        peak = process_memory.peak_resident()
        if self.limit is None or not peak or peak <= self.limit or self.spare > 0.5:
            return
        self.spare += (peak - self.limit) / self.limit + 0.01
        self.plans.clear()
        self.planned = None
        process_memory.trim()
        process_memory.reset_peak()

    # ---- planning ----

    def budget(self):
        """Bytes in use that a step may have; None where that is not known yet."""
        if self.limit is None:
            return None if self.facts is None else self.facts["budget_bytes"]
        return max(1, int(self.limit * (1 - self.spare)) - self.outside)

    def _plan(self):
        seen, peak = self.seen, self.seen.peak()
        budget = int(peak * self.share) if self.limit is None else self.budget()
        signature = tuple(seen.signature())
        facts = self._facts(peak, budget)
        if signature in self.plans:
            self.planned = self.plans[signature]
            return
        if peak > budget:
            try:
                self.planned = self.plans[signature] = Planned(self._made_plan(seen, budget), list(signature))
                summary = self.planned.plan.summary
                facts.update(slow_bytes=self.planned.disk_bytes, planner=summary["planner"],
                             slowdown=self.planned.plan.slowdown,
                             bound=summary["bound_seconds"] / summary["fast_only_seconds"])
            except NoRoom as refused:
                if self.limit is None:
                    raise
                self._require_least(seen)
                facts["no_plan"] = str(refused)
        process_memory.reset_peak()
        self._tell(facts)

    def _facts(self, peak, budget):
        """Of a step that needs no plan."""
        return {"peak_bytes": peak, "budget_bytes": budget, "slow_bytes": 0, "folder": self.spill.folder, "planner": None,
                "slowdown": 1.0, "bound": 1.0, "way": "hooks", "why": self.why, "no_plan": None}

    def _tell(self, facts):
        first, self.facts = self.facts is None, facts
        if self.tell and first:
            self.tell(verdict.verdict_line(facts))

    def _require_least(self, seen):
        """Carrying out as it comes is for budgets that are only a little too small for a plan."""
        least, name = least_of(graph_of(seen))
        missing = least + self.outside - self.limit
        if missing > 0:
            wanted = int((least + self.outside) * 1.1) >> 20
            raise NoRoom(f"the step {name} needs {verdict.readable(least)} of memory at once beside the {verdict.readable(self.outside)} "
                         f"of the process, and memory= gives {verdict.readable(self.limit)}, {verdict.readable(missing)} are missing: "
                         f"give at least '{wanted + 1}MiB', or take a smaller batch")

    def _made_plan(self, seen, budget):
        disk = 2 * sum(seen.sizes().values()) + (1 << 20)
        (out_bytes, out_busy), (in_bytes, in_busy) = self.spill.traffic()
        out_rate = out_bytes / out_busy if out_busy > 0 and out_bytes > 1 << 20 else 1e9
        in_rate = in_bytes / in_busy if in_busy > 0 and in_bytes > 1 << 20 else out_rate
        machine = machine_of(budget, disk, out_rate, in_rate, self.spill.spec(disk))
        try:
            return planning.plan(graph_of(seen), machine=machine, planner=self.planner, seconds=PLAN_SECONDS)
        except NoRoom as refused:  # intervals are never worked on in parts, so why not does not matter
            raise NoRoom(re.sub(r" \([^()]* was not split: .*\)$", "", str(refused))) from None

    # ---- what autograd calls ----

    def pack(self, tensor):
        """PyTorch would hide what is raised here in an error of its own: it is raised before the next module instead."""
        if self.backward_began:  # of a step: whatever is saved now belongs to another
            return Kept(tensor)
        try:
            return self._packed(tensor)
        except Exception as failure:
            self.failure = failure
            self.backward_began = True
            return Kept(tensor)

    def _raise_failure(self, *_):
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    def _packed(self, tensor):
        if not is_plain(tensor) or storage_of(tensor).nbytes() < SMALL or key_of(tensor) in self.weights:
            return Kept(tensor)
        entry = self.entries.get(key_of(tensor))
        if entry is None or not entry.is_of(tensor):
            entry = Entry(self.next_number, tensor, self.where)
            self.next_number += 1
            self.entries[entry.key] = entry
            self.by_number[entry.number] = entry
            self.order.append(entry.number)
        handle = Handle(entry, Form(tensor), self)
        self._event(SAVED, entry)
        return handle

    def unpack(self, handle):
        self.backward_began = True
        entry = handle.entry
        if entry.witness._version != entry.version:
            raise Changed(handle.form.dtype, handle.form.size, entry.witness._version, entry.version)
        self._event(WANTED, entry)
        self._bring(entry)
        if entry.tensor is not None:
            whole = entry.tensor
            return torch.as_strided(whole, handle.form.size, handle.form.stride, handle.form.offset) \
                if whole.dtype == handle.form.dtype else handle.form.over(_bytes_of(whole))
        return handle.form.over(entry.memory)

    def forget(self, entry):
        """Nobody wants the entry any more."""
        if self.entries.get(entry.key) is entry:
            del self.entries[entry.key]
        if self.by_number.get(entry.number) is entry:
            del self.by_number[entry.number]
        entry.tensor = entry.memory = None
        for transfer in (entry.writing, entry.reading):
            if transfer is not None:
                self.leaving.append((transfer, entry.slab))
                break
        else:
            if entry.slab is not None and entry.slab is not self.spill.planned:
                entry.slab.give_back()

    def _purge(self, wait=False):
        """Transfers of forgotten entries: their space is free when they have ended."""
        still = []
        for transfer, slab in self.leaving:
            if wait or transfer.done():
                transfer.close()
                if slab is not None and slab is not self.spill.planned:
                    slab.give_back()
            else:
                still.append((transfer, slab))
        self.leaving = still

    # ---- events ----

    def _event(self, kind, entry):
        now = time.perf_counter()
        number = entry.number - self.first_number
        if self.following is not None:
            self._follow(kind, entry, number)
        else:
            self._take_down(kind, entry, number, now - self.clock)
        if self.leaving:
            self._purge()
        self.clock = time.perf_counter()

    def _take_down(self, kind, entry, number, seconds):
        used, most = self.used(), process_memory.peak_resident() - self.outside
        held = sum(each.held() for each in self.by_number.values())
        if number >= 0 and self.seen is not None:
            self.seen.events.append(Event(kind, number, entry.bytes, entry.name, seconds, max(0, used - held), max(0, most - held)))
        self.largest = max(self.largest, entry.bytes)
        self._make_room(used + (0 if entry.held() else entry.bytes), entry)
        # Without free pages in between, what is resident until the next event is what operations take.
        process_memory.trim()
        process_memory.reset_peak()

    def _follow(self, kind, entry, number):
        i, signature = self.position, self.following.signature
        if i >= len(signature) or signature[i] != (kind, number, entry.bytes):
            # From here on as it comes; the next step is taken down and planned.
            self.following = self.planned = self.seen = None
            self._make_room(self.used(), entry)
            return
        self.position += 1
        self._act(i + 1)
        if self.limit is not None and process_memory.resident() + self.largest > self.limit * 0.97:
            process_memory.trim()  # what the allocator has between tensors
            if process_memory.resident() > self.limit * 0.97:
                self._make_room(self.used(), entry)

    def _act(self, interval):
        for what, *rest in self.following.actions[interval]:
            if what == "out":
                self._start_planned(rest[0], rest[1], self._write)
            elif what == "in":
                self._start_planned(rest[0], rest[1], self._read)
            elif what == "wait":
                for entry in self.tickets.pop(rest[0], ()):
                    self._settle(entry)
            else:
                entry = self.by_number.get(rest[0] + self.first_number)
                if entry is not None and entry.on_disk:
                    self._drop(entry)

    def _start_planned(self, moved, ticket, start):
        entries = []
        for number, offset in moved:
            entry = self.by_number.get(number + self.first_number)
            if entry is None:
                continue  # it was forgotten before its time
            if start == self._write:
                if entry.on_disk or entry.writing or not entry.in_memory():
                    continue
                entry.slab, entry.offset = self.spill.planned, offset
            elif entry.held():
                continue
            start(entry)
            entries.append(entry)
        self.tickets[ticket] = entries

    # ---- room ----

    def _make_room(self, used, current):
        budget = self.budget()
        if budget is None:
            return self._write_behind(current)
        start = min(budget * START_WRITING, budget - (TRANSIENT + 1) * self.largest)
        if used > start:
            excess = used - start - sum(e.bytes for e in self.by_number.values() if e.writing)
            for number in list(self.order):
                if excess <= 0:
                    break
                entry = self.by_number.get(number)
                if entry is not None and entry is not current and self._writable(entry):
                    self._write(entry)
                    excess -= entry.bytes
        while used > min(budget * MUST_DROP, budget - TRANSIENT * self.largest) and self._drop_one(current):
            used = self.used() + (0 if current.held() else current.bytes)
        if used > budget and self.limit is not None and process_memory.resident() > self.limit:
            process_memory.trim()
            resident = process_memory.resident()
            if resident > self.limit:
                raise NoRoom(
                    f"{self.where or 'the step'} needs {verdict.readable(resident)} of memory at once with every saved tensor on "
                    f"disk, and memory= gives {verdict.readable(self.limit)}, {verdict.readable(resident - self.limit)} are "
                    f"missing: give at least '{(resident * 21 // 20 >> 20) + 1}MiB', or take a smaller batch")

    def _write_behind(self, current):
        """Without a limit everything goes, so that taking down needs least."""
        for number in list(self.order):
            entry = self.by_number.get(number)
            if entry is None or not self._writable(entry):
                self.order.remove(number)
            elif entry is not current:
                self._write(entry)
        while sum(e.bytes for e in self.by_number.values() if e.writing) > OUTSTANDING and self._drop_one(current):
            pass

    @staticmethod
    def _writable(entry):
        return entry.in_memory() and not entry.on_disk and entry.writing is None

    def _drop_one(self, current):
        """The oldest that is written, or about to be, leaves memory."""
        for entry in list(self.by_number.values()):
            if entry is current or not entry.held() or entry.reading:
                continue
            if entry.writing:
                self._settle(entry)
            if entry.on_disk:
                self._drop(entry)
                return True
        for entry in list(self.by_number.values()):
            if entry is not current and self._writable(entry):
                self._write(entry)
                self._settle(entry)
                self._drop(entry)
                return True
        return False

    # ---- bytes ----

    def _write(self, entry):
        if entry.slab is None:
            entry.slab, entry.offset = self.spill.place(entry.bytes)
        if self.same_bits:
            entry.checksum = _checksum(entry.address(), entry.bytes)
        move = (tiers.HOST, entry.address(), 0, entry.offset, entry.bytes)
        entry.writing = entry.slab.tiers.start([move], keep=(entry.tensor, entry.memory))
        self.statistics["written_bytes"] += entry.bytes

    def _read(self, entry):
        entry.memory = aligned_bytes(entry.bytes)
        move = (0, entry.offset, tiers.HOST, entry.memory.data_ptr(), entry.bytes)
        entry.reading = entry.slab.tiers.start([move], tiers.NORMAL, keep=entry.memory)
        self.statistics["read_bytes"] += entry.bytes

    def _settle(self, entry):
        """Waits for the entry's transfer."""
        began = time.perf_counter()
        if entry.writing is not None:
            transfer, entry.writing = entry.writing, None
            transfer.wait()
            transfer.close()
            entry.on_disk = True
        if entry.reading is not None:
            transfer, entry.reading = entry.reading, None
            transfer.wait()
            transfer.close()
            if self.same_bits and _checksum(entry.memory.data_ptr(), entry.bytes) != entry.checksum:
                raise LibraryBug(f"a saved tensor of {entry.bytes} bytes came back from {self.spill.folder} with other bits")
        self.statistics["waited_seconds"] += time.perf_counter() - began

    def _drop(self, entry):
        entry.tensor = entry.memory = None
        if self.entries.get(entry.key) is entry and entry.weak.expired():
            del self.entries[entry.key]

    def _bring(self, entry):
        if not entry.held():
            self._read(entry)
        if entry.reading:
            self._settle(entry)
        if self.following is None:
            self._read_ahead(entry)

    def _read_ahead(self, entry):
        """Backward wants what was saved before this next, as a rule."""
        budget = self.budget()
        used = self.used()
        older = [each for number, each in self.by_number.items() if number < entry.number]
        for each in older[:-4:-1]:
            if each.held() or not each.on_disk or (budget is not None and used + each.bytes > budget * MUST_DROP):
                break
            self._read(each)
            used += each.bytes

    # ---- for users ----

    def report(self):
        plan = self.planned.plan if self.planned else None
        return {"way": "hooks", "verdict": verdict.verdict_line(self.facts) if self.facts else None, "facts": self.facts,
                "record": plan.record if plan else None, "peak_resident_bytes": process_memory.peak_resident(),
                **self.statistics}

    def remove(self):
        _active.clear(self)
        for handle in self._handles:
            handle.remove()


def _bytes_of(tensor):
    """All bytes of the storage behind a tensor."""
    storage = storage_of(tensor)
    return torch.empty(0, dtype=tensor.dtype).set_(storage if not hasattr(storage, "_storage") else storage).view(torch.uint8)


def _checksum(address, count):
    return zlib.crc32((ctypes.c_char * count).from_address(address))
