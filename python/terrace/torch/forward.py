# SPDX-License-Identifier: Apache-2.0
"""A model's forward and backward pass as one graph, with the user's program in the middle.

Parameters and buffers stay where the model has them. Between the passes stands the kernel Outside, which hands the
outputs to the program and receives the gradients of its loss; behind each gradient of a parameter stands a kernel that
delivers it. All of these run once and in order, for they share a token.

With an optimizer, parameters and its states are tensors of the graph, and behind the gradient of each parameter that it has
stands the update, so nobody else gets the gradient.
"""
import contextlib
from dataclasses import dataclass, field

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from .devices import device_of
from .graph import Builder, Kernel, StepGraph, on_tensor
from .kernels import Work
from .optimizers import Update, add_updates, group_places
from .recording import NotCapturable, Recorder
from .trace import faked, input_like, keeps_fakes, layers, learned_parameters, mode_of

_OF_MODEL = ("buffer", "constant")  # roles of what the model keeps


@dataclass
class Exchange:
    """Where a kernel of the graph meets the program: `hand(windows of reads, windows of writes)` is called."""

    reads: list
    writes: list = field(default_factory=list)
    hand: object = None
    learnable = False
    started = True

    def signature(self):
        return "{}"

    def on_tensors(self, number):
        self.reads = [on_tensor(view, number) for view in self.reads]
        self.writes = [on_tensor(view, number) for view in self.writes]

    def work(self, window):
        reads, writes = [window(view) for view in self.reads], [window(view) for view in self.writes]
        return Work(lambda: self.hand(reads, writes) or [], [])


@dataclass
class ForwardBackward:
    """A captured model: its graph, and where the program meets it."""

    graph: StepGraph
    names: list  # of the tensors that are given for every step
    inputs: list  # and views of them
    outside: Exchange
    deliveries: list  # of the tensors that want a gradient, in the order of `wanting`; None: it has none, or is updated
    structure: object  # of the outputs
    leaves: list  # outputs, of which tensors are None
    differentiable: list  # whether each output that is a tensor has a gradient

    def updates(self):
        return [kernel.call for kernel in self.graph.kernels if isinstance(kernel.call, Update)]


def trace_model(model, args, kwargs, used=None, optimizer=None):
    """Captures model(*args, **kwargs) and its backward pass, with the updates of an optimizer where one is given.

    `used` says for each output with a gradient whether the loss depends on it; without it, on all of them.
    """
    recorder, learned = Recorder(mode_of(model)), learned_parameters(model)
    given, form = tree_flatten((args, kwargs))
    autocast = autocast_now(device_of(model).device.type)
    with faked(model, recorder) as fakes:
        fake = [input_like(recorder, f"input{i}", leaf) if isinstance(leaf, torch.Tensor) else leaf for i, leaf in enumerate(given)]
        fake_args, fake_kwargs = tree_unflatten(fake, form)
        with recorder.fake, recorder, layers(model, recorder):
            with autocast:
                leaves, structure = tree_flatten(model(*fake_args, **fake_kwargs))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            differentiable = [leaf.requires_grad for leaf in tensors]
            followed = _followed(tensors, used)
            middle = len(recorder.calls)
            recorder.phase, recorder.layer = "backward", ""
            tangents = [input_like(recorder, f"tangent{i}", leaf, "tangent") for i, leaf in enumerate(followed)]
            wanting = [fakes[id(parameter)] for _, parameter in learned]
            wanting += [leaf for leaf in fake if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
            gradients = torch.autograd.grad(followed, wanting, tangents, allow_unused=True)
        if keeps_fakes(model, fakes):
            raise NotCapturable("the forward pass keeps a tensor in an attribute of a module")
        if any(recorder.storages[view.storage].role == "input" for call in recorder.calls[:middle] for view in call.written):
            raise NotCapturable("the model changes its input in place")
        views = _Views(recorder, tensors, tangents, gradients, [leaf for leaf in fake if isinstance(leaf, torch.Tensor)])
        owned = _Owned(recorder, optimizer, learned, [recorder.view_of(fakes[id(each)]) for _, each in learned], views.gradients)
    kinds = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    return _build(type(model).__name__, recorder, middle, views, owned, structure, kinds, differentiable)


def _followed(tensors, used):
    found = [leaf for leaf in tensors if leaf.requires_grad]
    if used is not None:
        found = [leaf for leaf, follows in zip(found, used) if follows]
    if not found:
        raise NotCapturable("no output of the model depends on a parameter that is to be learned")
    return found


class _Views:
    def __init__(self, recorder, outputs, tangents, gradients, inputs):
        self.outputs, self.tangents, self.inputs = (
            [recorder.view_of(tensor.detach()) for tensor in tensors] for tensors in (outputs, tangents, inputs)
        )
        self.gradients = [None if gradient is None else recorder.view_of(gradient) for gradient in gradients]


class _Owned:
    """What the graph takes from the model with an optimizer: all parameters, and the updates of the optimizer's."""

    def __init__(self, recorder, optimizer, learned, parameters, gradients):
        self.optimizer, self.reals, self.updated = optimizer, [], {}
        if optimizer is None:
            return
        self.reals = [(real, view) for real, view in recorder.adopted if recorder.storages[view.storage].role == "parameter"]
        places = group_places(optimizer)
        for number, (name, real) in enumerate(learned):
            if id(real) in places and gradients[number] is not None:
                self.updated[number] = (name, real, parameters[number], gradients[number])

    def views(self):
        return [view for _, view in self.reals] + [view for *_, weight, gradient in self.updated.values() for view in (weight, gradient)]

    def add_to(self, graph, views):
        """`views` as before, on tensors of the graph."""
        graph.reals = list(zip((real for real, _ in self.reals), views))
        pairs = views[len(self.reals) :]
        if self.optimizer is not None:
            named = [(name, real) for name, real, *_ in self.updated.values()]
            add_updates(graph, self.optimizer, [(*each, *pairs[2 * i : 2 * i + 2]) for i, each in enumerate(named)])


def _build(name, recorder, middle, views, owned, structure, leaves, differentiable):
    builder = Builder(recorder, _OF_MODEL if owned.optimizer is not None else ("parameter", *_OF_MODEL))
    builder.add(recorder.calls[:middle])
    builder.renew_statistics("forward")
    builder.latest.clear()
    outside = _exchange(builder, "outside", "forward", views.outputs, views.tangents)
    builder.add(recorder.calls[middle:])
    deliveries = []
    for number, gradient in enumerate(views.gradients):
        given = gradient is not None and number not in owned.updated
        deliveries.append(_exchange(builder, f"deliver{number}", "backward", [gradient]) if given else None)
    graph, kept = builder.finish(name, [], [*views.inputs, *owned.views()])
    inputs = kept[: len(views.inputs)]
    deliver_early(graph)
    owned.add_to(graph, kept[len(inputs) :])
    names = [graph.tensors[view.storage].name for view in inputs]
    return ForwardBackward(graph, names, inputs, outside, deliveries, structure, leaves, differentiable)


def _exchange(builder, name, phase, reads, writes=()):
    number = builder.of_storage
    call = Exchange([on_tensor(view, number) for view in reads], [on_tensor(view, number) for view in writes])
    kernel = Kernel(name, f"terrace::{name.rstrip('0123456789')}", call, phase=phase)
    kernel.inputs = list(dict.fromkeys(view.storage for view in call.reads if view.storage >= 0))
    kernel.outputs = list(dict.fromkeys(view.storage for view in call.writes if view.storage >= 0))
    builder.use_token(kernel, "program")
    builder.kernels.append(kernel)
    return call


def deliver_early(graph):
    """Moves every delivery behind the kernel that completes its gradient, so gradients do not all live at once."""
    deliveries = [kernel for kernel in graph.kernels if kernel.operation == "terrace::deliver"]
    graph.kernels = [kernel for kernel in graph.kernels if kernel.operation != "terrace::deliver"]
    behind = {}
    outside = next(place for place, kernel in enumerate(graph.kernels) if kernel.operation == "terrace::outside")
    last = {tensor: place for place, kernel in enumerate(graph.kernels) for tensor in kernel.outputs}
    for kernel in deliveries:
        places = [last.get(view.storage, outside) for view in kernel.call.reads]
        behind.setdefault(max(outside, *places), []).append(kernel)
    ordered = []
    for place, kernel in enumerate(graph.kernels):
        ordered += [kernel, *behind.get(place, [])]
    graph.kernels = ordered


def autocast_type(device="cpu"):
    """The type of the autocast that the program has entered for a kind of device; None without one."""
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    if device == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def autocast_now(device="cpu"):
    dtype = autocast_type(device)
    return torch.autocast(device, dtype) if dtype is not None else contextlib.nullcontext()
