# SPDX-License-Identifier: Apache-2.0
"""What was seen of a step, as a graph that planners take: one kernel for each interval between two events.

event      a tensor was saved for backward, or is wanted back
entry      the memory behind saved tensors: one for each storage and version
others     what is in use beside entries: weights, gradients, what operations take for themselves

All kernels share a token, so no plan reorders or repeats them: the program runs as it does, and only entries move.
"""
from dataclasses import dataclass, field

SAVED, WANTED = 0, 1


@dataclass
class Event:
    kind: int
    entry: int  # by order of first saving
    bytes: int
    name: str  # where in the model
    seconds: float = 0.0  # of the program since the event before
    others: int = 0  # bytes in use beside entries, at the event
    most: int = 0  # the same at any moment since the event before; operations take and give back


@dataclass
class Seen:
    """All events of a step, and what came behind the last."""

    events: list = field(default_factory=list)
    seconds: float = 0.0
    others: int = 0

    def signature(self):
        return [(event.kind, event.entry, event.bytes) for event in self.events]

    def sizes(self):
        return {event.entry: event.bytes for event in self.events}

    def peak(self):
        """Bytes in use at most, if no entry ever leaves memory before it was wanted for the last time."""
        last = {event.entry: i for i, event in enumerate(self.events) if event.kind == WANTED}
        sizes, live, most = self.sizes(), set(), 0
        for i, event in enumerate(self.events):
            live.add(event.entry)
            most = max(most, max(event.others, event.most) + sum(sizes[entry] for entry in live))
            live = {entry for entry in live if last.get(entry, len(self.events)) > i}
        return most


def _kernel(index, name, seconds, inputs, outputs, workspace):
    kernel = {
        "name": f"{index}: {name}", "operation": "interval", "inputs": ["order", "others", *inputs], "outputs": ["order", *outputs],
        "variants": [{"name": "", "time": seconds, "workspace": 1 if workspace else 0}],
    }
    if workspace:
        kernel["workspace"] = workspace
    return kernel


def graph_of(seen):
    """Kernel i is the interval that ends with event i; the last has no event behind it."""
    events = seen.events
    sizes = seen.sizes()
    floor = min([event.others for event in events] + [seen.others])
    tensors = [{"name": "order", "shape": [0], "kind": "token"},
               {"name": "others", "bytes": max(floor, 1), "kind": "statistics", "persistent": True}]
    tensors += [{"name": f"entry{entry}", "bytes": count} for entry, count in sizes.items()]
    kernels, made = [], set()
    for i in range(len(events) + 1):
        ends = events[i] if i < len(events) else None
        begins = events[i - 1] if i > 0 else None
        inputs, outputs = [], []
        # An operation that saves a tensor has it in memory, and so have those that come next.
        if begins is not None:
            inputs.append(f"entry{begins.entry}")
        if ends is not None and ends.kind == SAVED:
            name = f"entry{ends.entry}"
            if ends.entry not in made:
                outputs.append(name)
                made.add(ends.entry)
            elif name not in inputs:
                inputs.append(name)
        beside = max(begins.others if begins else 0, max(ends.others, ends.most) if ends else seen.others) - floor
        workspace = f"beside{i}" if beside > 0 else None
        if workspace:
            tensors.append({"name": workspace, "bytes": beside, "kind": "workspace"})
        at = ends or begins
        label = "an empty step" if at is None else ("before saving at " if at.kind == SAVED else "backward of ") + at.name
        kernels.append(_kernel(i, label, max(ends.seconds if ends else seen.seconds, 1e-9), inputs, outputs, workspace))
    return {"format": "terrace-graph", "version": 1, "name": "training step", "tensors": tensors, "kernels": kernels}


def least_of(graph):
    """(bytes, name) of the kernel whose operands take most at once: no plan needs less."""
    sizes = {tensor["name"]: tensor.get("bytes", 0) for tensor in graph["tensors"]}
    def taken(kernel):
        operands = {*kernel["inputs"], *kernel["outputs"], kernel.get("workspace", "order")}
        return sum(sizes[name] for name in operands)
    most = max(graph["kernels"], key=taken)
    return taken(most), most["name"].partition(": ")[2]


def machine_of(budget, disk, out_rate, in_rate, spec):
    """Memory and a disk of these rates, in bytes per second. How much kernels and transfers slow each other down was
    measured elsewhere and is assumed here."""
    def link(from_, to, rate):
        return {"from": from_, "to": to, "rates": [{"size": 1 << 16, "rate": rate / 4}, {"size": 1 << 22, "rate": rate}],
                "both_ways": 0.6, "compute_loss": 0.15}

    return {
        "format": "terrace-machine", "version": 1, "name": "this process", "source": "measured while the first step ran",
        "compute": {"name": "PyTorch", "threads": 1, "flops_per_second": 1e9},
        "tiers": [
            {"name": "memory", "capacity": budget, "read": 1e10, "write": 1e10},
            {"name": "disk", "capacity": disk, "addressable": False, "read": in_rate, "write": out_rate, "granularity": 4096,
             "spec": spec},
        ],
        "links": [link("memory", "disk", out_rate), link("disk", "memory", in_rate)],
    }
