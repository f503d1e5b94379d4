# SPDX-License-Identifier: Apache-2.0
"""Updates of an optimizer of torch.optim as kernels, one for each parameter.

A kernel calls the optimizer's own `step` with one parameter alone, so the arithmetic, and every bit, is PyTorch's, and
learning rates may change between steps. State of a parameter's shape (momentum) is a tensor of the graph; what else the
optimizer keeps (a count of steps) stays here. An update runs as soon as its gradient is complete and nothing reads the
old parameter any more, so gradients do not all live at once.
"""
import json
from dataclasses import dataclass, field, replace

import torch

from .graph import TYPES, Kernel, Tensor
from .kernels import Work, fitted, storage_bytes, window
from .recording import View

_PROBE_SHAPE = (2, 3)  # no state that is not of the parameter's shape has this one


@dataclass
class Update:
    """The update of one parameter."""

    optimizer: torch.optim.Optimizer
    place: int  # of the parameter's group: loading a state dictionary makes new groups
    real: torch.Tensor  # the parameter as the optimizer knows it
    parameter: View
    gradient: View
    states: dict  # name -> View
    others: dict = field(default_factory=dict)  # state that is no tensor of the graph
    started: bool = False
    skipped: bool = False  # the step was given up: it runs to its end and updates nothing

    @property
    def group(self):
        return self.optimizer.param_groups[self.place]

    def signature(self):
        options = {name: value for name, value in self.group.items() if isinstance(value, (bool, str, type(None)))}
        numbers = {name: bool(value) for name, value in self.group.items() if isinstance(value, (int, float))}
        shape = {"size": list(self.parameter.size), "type": str(self.parameter.dtype)}
        return json.dumps({**shape, "options": {**numbers, **options}}, separators=(",", ":"))

    def take_state(self, graph):
        """Of the optimizer's state of the parameter, the bytes of tensors by name; the rest is kept here, too."""
        state = self.optimizer.state.get(self.real, {})
        self.started = bool(state)
        self.others = {name: value for name, value in state.items() if name not in self.states}
        given = [(view, state[name]) for name, view in self.states.items() if name in state]
        return [(graph.tensors[view.storage].name, storage_bytes(fitted(value, view))) for view, value in given]

    def drop_state(self):
        """The optimizer's state of the parameter leaves it."""
        self.optimizer.state.pop(self.real, None)

    def give_state(self, graph, parked):
        """The reverse: `parked.tensor(name)` has the bytes."""
        if self.started:
            shaped = {
                name: window(parked.tensor(graph.tensors[view.storage].name).to(self.real.device), view)
                for name, view in self.states.items()
            }
            self.optimizer.state[self.real] = {**self.others, **shaped}

    def rehearsed(self):
        return replace(self, others={}, started=False)

    def work(self, window):
        """The update on the memory that `window` gives for each view."""
        parameter, gradient = window(self.parameter), window(self.gradient)
        states = {name: window(view) for name, view in self.states.items()}
        return Work(lambda: self._updated(parameter, gradient, states), list(states.values()))

    def _updated(self, parameter, gradient, states):
        """Updates the parameter in place; returns its states, which the first time are new."""
        if self.skipped:
            return []
        state = {**self.others, **(states if self.started else {})}
        new = step_alone(self.optimizer, self.group, parameter, gradient, state)
        self.others = {name: value for name, value in new.items() if name not in states}
        self.started = True
        return [new.get(name) for name in states]


def step_alone(optimizer, group, parameter, gradient, state):
    """The optimizer's step on one parameter; returns the parameter's state after it."""
    proxy = torch.nn.Parameter(parameter)
    proxy.grad = gradient
    groups, states = optimizer.param_groups, optimizer.state
    try:
        optimizer.param_groups = [{**group, "params": [proxy]}]
        optimizer.state = type(states)(dict, {proxy: state})
        type(optimizer).step(optimizer)  # the object's own may be a scheduler's, or ours
        return dict(optimizer.state[proxy])
    finally:
        optimizer.param_groups, optimizer.state = groups, states


def state_types(optimizer, group, dtype):
    """Names and types of the states that have the parameter's shape, found by a step on a tiny one."""
    probe = torch.ones(_PROBE_SHAPE, dtype=dtype)
    state = step_alone(optimizer, group, probe, torch.ones_like(probe), {})
    shaped = {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
    return {name: value.dtype for name, value in shaped.items() if tuple(value.shape) == _PROBE_SHAPE}


def add_updates(graph, optimizer, parameters):
    """Adds a kernel for each of `parameters`: (name, real parameter, its view, its gradient's view)."""
    places = group_places(optimizer)
    for name, real, view, gradient in parameters:
        if id(real) in places:
            _add_update(graph, optimizer, places[id(real)], name, real, view, gradient)


def group_places(optimizer):
    """The place of a parameter's group, by the parameter's identity."""
    return {id(each): place for place, group in enumerate(optimizer.param_groups) for each in group["params"]}


def _add_update(graph, optimizer, place, name, real, view, gradient):
    update = Update(optimizer, place, real, view, gradient, {})
    for state, dtype in state_types(optimizer, update.group, view.dtype).items():
        update.states[state] = _add_state(graph, f"{name}.{state}", view, dtype)
    kernel = Kernel(f"{name}.update", f"torch.optim::{type(optimizer).__name__}", update, phase="update")
    kernel.outputs = list(dict.fromkeys([view.storage, *(state.storage for state in update.states.values())]))
    kernel.inputs = list(dict.fromkeys([*kernel.outputs, gradient.storage]))
    kernel.flops = 10 * view.elements()
    graph.kernels.insert(_first_place(graph, view.storage, gradient.storage), kernel)


def _add_state(graph, name, like, dtype):
    contiguous = torch.empty(like.size, dtype=dtype, device="meta").stride()
    stride = like.stride if _is_dense(like) else contiguous
    view = View(len(graph.tensors), dtype, like.size, tuple(stride), 0)
    graph.tensors.append(
        Tensor(name, view.bytes(), "optimizer_state", True, view if dtype in TYPES and len(like.size) <= 6 else None)
    )
    return view


def _is_dense(view):
    return view.end() - view.offset * torch.empty((), dtype=view.dtype).element_size() == view.bytes()


def _first_place(graph, parameter, gradient):
    """Behind every kernel that uses the parameter or makes its gradient."""
    last = 0
    for place, kernel in enumerate(graph.kernels):
        if parameter in kernel.inputs or gradient in kernel.outputs:
            last = place + 1
    return last
