# SPDX-License-Identifier: Apache-2.0
"""From a recording to a graph: kernels over tensors, as docs/formats/graph.md describes it.

A storage becomes a tensor, a call becomes a kernel whose operands are storages. How a kernel sees them (type, extents,
strides) stays in its call, which is written into the kernel's attributes.
"""
import dataclasses
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_map

from .recording import Call, View, hidden_statistics
from .placement import Places
from .work import flops_of

TYPES = {
    torch.float32: "f32", torch.bfloat16: "bf16", torch.int32: "i32", torch.uint8: "u8",
    torch.float16: "f16", torch.float64: "f64", torch.int64: "i64",
}  # fmt: skip
KINDS = {"parameter": "weight", "buffer": "statistics", "constant": "statistics", "input": "input", "tangent": "gradient"}


@dataclass
class Tensor:
    """A storage of the step."""

    name: str
    bytes: int
    kind: str = "activation"
    persistent: bool = False
    view: View = None  # of all of it, where it has a shape


@dataclass
class Kernel:
    name: str
    operation: str
    call: Any  # Call, or what else its runner understands
    inputs: list = field(default_factory=list)  # tensors
    outputs: list = field(default_factory=list)
    phase: str = "forward"
    layer: str = ""
    flops: int = 0
    # Tensors that are changed in place by the operation but not by the kernel: (as it was, as it becomes).
    renewed: list = field(default_factory=list)
    learnt: Any = None  # how long it takes and what it allocates (learning.py)

    def repeats(self):
        """Whether every run allocates as the one before did."""
        return isinstance(self.call, Call) or self.call.started

    def is_same_every_time(self):
        """Whether a device may issue it again without asking the operation: it draws no numbers and meets nobody."""
        return isinstance(self.call, Call) and not self.call.random

    def rehearsed(self):
        """The same kernel, to be run without consequences for the step."""
        return self if isinstance(self.call, Call) else dataclasses.replace(self, call=self.call.rehearsed())

    def places(self):
        if self.learnt is None:
            return Places()
        return self.learnt.places if self.repeats() else self.learnt.first_places


@dataclass
class StepGraph:
    """Views of kernels name tensors by their numbers; negative ones name memory of the model, which is no part of it."""

    name: str
    tensors: list
    kernels: list
    results: list
    reals: list = field(default_factory=list)  # of what outlives steps: the model's tensors with their views
    inputs: list = field(default_factory=list)  # views of the batch
    loss: View = None
    outside: dict = field(default_factory=dict)  # of a negative number: the model's tensor
    outside_names: dict = field(default_factory=dict)  # and its name in the model

    def unordered(self):
        """Operations that may give other bits when they are run again, and how many kernels of each there are."""
        return dict(Counter(each.operation for each in self.kernels if isinstance(each.call, Call) and each.call.unordered))

    def bytes_of(self, kind):
        return sum(tensor.bytes for tensor in self.tensors if tensor.kind == kind)


def build(recorder, name, results, kept=()):
    """The graph of everything recorded; `results` are views that are kept to the end of the step.

    Returns the graph and `kept`, views of storages, as views of its tensors; what these need is not left out.
    """
    builder = Builder(recorder)
    builder.add(recorder.calls)
    builder.renew_statistics("update")
    return builder.finish(name, results, kept)


class Builder:
    """Makes a graph of a recording, call by call. Storages of roles in `outside` are memory of the model."""

    def __init__(self, recorder, outside=()):
        self.recorder = recorder
        self.tensors = []
        self.kernels = []
        self.of_storage = {}
        self.latest = {}  # of a statistic: the tensor that holds its newest value
        self.written = set()
        self.tokens = {}
        self.names = {}
        for storage in range(len(recorder.storages)):
            self._declare(storage, outside)
        self._changing = {storage for call in recorder.calls for storage in _changed(call) if self.of_storage[storage] < 0}

    def add(self, calls):
        for call in calls:
            for part in parts_of(call):
                self._add(part)

    def finish(self, name, results, kept):
        graph = StepGraph(name, self.tensors, self.kernels, [self.of_storage[view.storage] for view in results])
        kept = [on_tensor(view, self.of_storage) for view in kept]
        number = drop_unused(graph, {view.storage for view in kept})
        adopted = ((real, self.of_storage[view.storage]) for real, view in self.recorder.adopted)
        graph.outside = {place: real for real, place in adopted if place < 0}
        graph.outside_names = {place: self.recorder.storages[-1 - place].name for place in graph.outside}
        return graph, [on_tensor(view, number) for view in kept]

    def _declare(self, index, outside):
        storage = self.recorder.storages[index]
        if storage.role != "made":
            self.written.add(index)
        if storage.role in outside:
            self.of_storage[index] = -1 - index
            return
        kind = KINDS.get(storage.role, "activation")
        persistent = storage.role in ("parameter", "buffer", "constant")
        self.of_storage[index] = len(self.tensors)
        self.tensors.append(
            Tensor(self._unique(storage.name or "made"), storage.bytes, kind, persistent, _whole(storage))
        )

    def _unique(self, name):
        self.names[name] = self.names.get(name, 0) + 1
        return name if self.names[name] == 1 and name != "made" else f"{name}#{self.names[name]}"

    def _add(self, call):
        short = call.name().split("::")[1]
        kernel = Kernel(self._unique(f"{call.layer}.{short}" if call.layer else short), call.name(), call)
        kernel.phase, kernel.layer, kernel.flops = call.phase, call.layer, flops_of(call)
        renewed = {view.storage for view in hidden_statistics(call.operation, call.args)}
        changed = _changed(call)
        made = {view.storage for view in call.outputs if view}
        for view in call.operands():
            if view.storage not in made:
                self._read(kernel, view.storage, changed)
        for storage in [*changed, *(view.storage for view in call.outputs if view)]:
            self.written.add(storage)
            _add_once(kernel.outputs, self.of_storage[storage])
        for storage in sorted(renewed):
            self._renew(kernel, storage)
        if call.random:
            self.use_token(kernel, "random generator")
        if call.unordered:
            self.use_token(kernel, "order of sums")
        if any(view.storage in self._changing for view in call.operands()):
            self.use_token(kernel, "model")
        self._name_outputs(kernel, call)
        kernel.call = on_tensors(call, {**self.of_storage, **self.latest})
        self.kernels.append(kernel)

    def _read(self, kernel, storage, changed):
        # What nobody has written yet means nothing: an operation that fills new memory only writes it.
        if storage in self.written or storage not in changed:
            _add_once(kernel.inputs, self.latest.get(storage, self.of_storage[storage]))

    def _renew(self, kernel, storage):
        """The operation works on a copy of the statistic, so that the kernel may be run again within the step."""
        before = self.latest.get(storage, self.of_storage[storage])
        old = self.recorder.storages[storage]
        self.latest[storage] = len(self.tensors)
        self.tensors.append(Tensor(self._unique(f"{old.name}.new"), old.bytes, "statistics", False, _whole(old)))
        kernel.renewed.append((before, self.latest[storage]))
        kernel.outputs.append(self.latest[storage])

    def renew_statistics(self, phase):
        """Each statistic takes its new value once."""
        for storage, newest in self.latest.items():
            old, count = self.of_storage[storage], self.tensors[newest].bytes
            target, source = (View(tensor, torch.uint8, (count,), (1,), 0) for tensor in (old, newest))
            call = Call(torch.ops.aten.copy_.default, (target, source), {}, [], [target], phase)
            name = f"{self.recorder.storages[storage].name}.renew"
            kernel = Kernel(name, call.name(), call, [newest], [old] if old >= 0 else [], phase)
            if old < 0:
                self.use_token(kernel, "model")
            self.kernels.append(kernel)

    def use_token(self, kernel, state):
        """The kernel uses state outside of tensors: it runs once, in the order of all that use it."""
        if state not in self.tokens:
            self.tokens[state] = len(self.tensors)
            self.tensors.append(Tensor(state, 0, "token", True))
        kernel.inputs.append(self.tokens[state])
        kernel.outputs.append(self.tokens[state])

    def _name_outputs(self, kernel, call):
        for view in call.outputs:
            made = self.tensors[self.of_storage[view.storage]] if view else None
            if made and made.name.startswith("made#"):
                made.name = self._unique(f"{kernel.name}.out")


def parts_of(call):
    """The backward pass of a convolution as one call for the gradient of its image and one for those of its weights. PyTorch computes
    them one after the other in any case, and neither needs the operands and the scratch of the other."""
    if call.name() != "aten::convolution_backward":
        return [call]
    gradient, image, *others, wanted = call.args
    parts = [(_stand_in(image, call.outputs[0]), [wanted[0], False, False]), (image, [False, *wanted[1:]])]
    return [
        dataclasses.replace(
            call, args=(gradient, of, *others, mask), outputs=[view if has else None for view, has in zip(call.outputs, mask)]
        )
        for of, mask in parts
        if any(mask)
    ]


def _stand_in(image, gradient):
    """The gradient of an image depends on the image's shape and not on its numbers: memory that holds none yet will do."""
    same = gradient is not None and (gradient.dtype, gradient.size, gradient.stride) == (image.dtype, image.size, image.stride)
    return gradient if same else image


def _changed(call):
    """Storages that the kernel of a call changes in place; statistics that are renewed are none of them."""
    renewed = {view.storage for view in hidden_statistics(call.operation, call.args)}
    return [view.storage for view in call.written if view.storage not in renewed]


def _add_once(tensors, tensor):
    if tensor >= 0 and tensor not in tensors:
        tensors.append(tensor)


def _whole(storage):
    """The first view of a storage where it covers all of it and our format has its type."""
    view = storage.view
    fits = view is not None and view.dtype in TYPES and view.bytes() == storage.bytes and len(view.size) <= 6
    return view if fits and view.bytes() > 0 else None


def drop_unused(graph, wanted):
    """Leaves out kernels that nobody needs, and tensors that no kernel uses and that do not outlive the step.

    Returns the new numbers of tensors.
    """
    needed = set(graph.results) | wanted | {i for i, tensor in enumerate(graph.tensors) if tensor.persistent}
    kept = []
    for kernel in reversed(graph.kernels):
        if needed.intersection(kernel.outputs):
            kept.append(kernel)
            needed.update(kernel.inputs)
    graph.kernels = kept[::-1]
    used = set(graph.results) | wanted
    for kernel in graph.kernels:
        used.update(kernel.inputs, kernel.outputs)
    keep = [i for i, tensor in enumerate(graph.tensors) if i in used or tensor.persistent or tensor.kind == "input"]
    return renumber(graph, keep)


def renumber(graph, keep):
    """Keeps these tensors alone, in this order. Returns the new number of each old one."""
    number = {old: new for new, old in enumerate(keep)}
    graph.tensors = [graph.tensors[old] for old in keep]
    graph.results = [number[old] for old in graph.results]
    for kernel in graph.kernels:
        kernel.inputs = [number[old] for old in kernel.inputs]
        kernel.outputs = [number[old] for old in kernel.outputs]
        kernel.renewed = [(number[old] if old >= 0 else old, number[new]) for old, new in kernel.renewed]
        if isinstance(kernel.call, Call):
            kernel.call = on_tensors(kernel.call, number)
        elif hasattr(kernel.call, "on_tensors"):
            kernel.call.on_tensors(number)
    return number


def on_tensors(call, number):
    """The same call with views whose storages have other numbers."""

    def renumbered(leaf):
        return on_tensor(leaf, number) if isinstance(leaf, View) else leaf

    args, kwargs, outputs, written = tree_map(renumbered, (call.args, call.kwargs, call.outputs, call.written))
    return dataclasses.replace(call, args=args, kwargs=kwargs, outputs=outputs, written=written)


def on_tensor(view, number):
    """The view with its storage's number in place of the storage; negative ones are the model's and stay."""
    return view if view.storage < 0 else dataclasses.replace(view, storage=number[view.storage])


def signature(kernel):
    """The kernel's call as text: alike for kernels that do the same work on other tensors."""
    if not isinstance(kernel.call, Call):
        return kernel.call.signature()
    places = {tensor: place for place, tensor in reversed(list(enumerate([*kernel.inputs, *kernel.outputs])))}

    def plain(value):
        if isinstance(value, View):
            shape = {"size": list(value.size), "stride": list(value.stride), "offset": value.offset}
            place = places.setdefault(value.storage, len(places)) if value.storage < 0 else places[value.storage]
            return {"operand": place, "type": str(value.dtype), **shape}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items()}
        return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)

    call = kernel.call
    renewed = [places[new] for _, new in kernel.renewed]
    content = {"args": call.args, "kwargs": call.kwargs, "outputs": call.outputs, "renewed": renewed}
    return json.dumps(plain(content), separators=(",", ":"))


def to_json(graph):
    """The text of the graph (docs/formats/graph.md)."""
    layers = list(dict.fromkeys(kernel.layer or "all" for kernel in graph.kernels)) or ["all"]
    content = {
        "format": "terrace-graph",
        "version": 1,
        "name": graph.name,
        "layers": layers,
        "tensors": [_tensor_json(tensor) for tensor in graph.tensors]
        + [_workspace_json(kernel) for kernel in graph.kernels if kernel.learnt and kernel.learnt.workspace()],
        "kernels": [_kernel_json(kernel, graph, layers) for kernel in graph.kernels],
        "results": [graph.tensors[tensor].name for tensor in graph.results],
    }
    return json.dumps(content, separators=(",", ":"))


def _tensor_json(tensor):
    form = {"name": tensor.name, "kind": tensor.kind, "persistent": tensor.persistent}
    if tensor.view is None:
        return {**form, "bytes": tensor.bytes} if tensor.bytes else {**form, "shape": [0]}
    return {**form, "shape": list(tensor.view.size), "type": TYPES[tensor.view.dtype]}


def _kernel_json(kernel, graph, layers):
    form = {
        "name": kernel.name,
        "operation": kernel.operation,
        "attributes": {"call": signature(kernel)},
        "inputs": [graph.tensors[tensor].name for tensor in kernel.inputs],
        "outputs": [graph.tensors[tensor].name for tensor in kernel.outputs],
        "flops": kernel.flops,
        "layer": layers.index(kernel.layer or "all"),
        "phase": kernel.phase,
    }
    if kernel.learnt is not None:
        form["variants"] = [{"time": kernel.learnt.seconds, "workspace": kernel.learnt.workspace()}]
        if kernel.learnt.workspace():
            form["workspace"] = workspace_name(kernel)
    return form


def workspace_name(kernel):
    return f"{kernel.name}.workspace"


def _workspace_json(kernel):
    return {"name": workspace_name(kernel), "kind": "workspace", "bytes": kernel.learnt.workspace()}
