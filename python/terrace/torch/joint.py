# SPDX-License-Identifier: Apache-2.0
"""The joint forward and backward graph of torch.compile as a graph of ours.

A node that makes memory is a kernel, and what it makes are tensors. A node that is only another window on memory (a
view) is no kernel. Parameters and inputs stay where the program has them and are no tensors of the graph. Between the
passes stands the kernel `outside`, in which the program has the outputs and gives their gradients.

required    a node that an output of the forward pass depends on
backward    a node that depends on the gradient of an output
unclaimed   all others: the backward pass alone wants them, and they can be made as soon as the forward pass has their operands
"""
import contextlib
import operator
from dataclasses import dataclass, field

import torch
from torch.utils._pytree import tree_flatten

from . import _compat

OUTSIDE = "outside"
_LOSS_COPIES = 3  # of an output that the loss depends on: what the loss and its gradient take beside it
# Return an operand's memory though their schemas do not say so.
_HIDDEN_VIEWS = {"aten::_unsafe_view", "aten::_reshape_alias", "aten::lift_fresh", "prims::view_of"}
# Read statistics that the step changes, but what the backward pass wants of them does not depend on these. Value: the place of the
# argument that says so where they do that in training alone.
_IGNORE_STATISTICS = {"aten::_native_batch_norm_legit_functional": 5, "aten::_batch_norm_with_update_functional": None}


class NotPlanned(Exception):
    """The graph cannot be planned; the text says why."""


@dataclass
class Kernel:
    name: str
    node: object  # of the joint graph; None for `outside`
    inputs: list = field(default_factory=list)  # tensors
    outputs: list = field(default_factory=list)
    ordered: bool = False  # runs once, in the order of all such kernels
    workspace: int = 0


class Joint:
    """The kernels of a joint graph in their order, and its tensors: (name, bytes, kind)."""

    def __init__(self, module, outputs_of_forward):
        self.graph = module.graph
        leaves = tree_flatten(next(node.args for node in self.graph.nodes if node.op == "output"))[0]
        self.forward_outputs, self.backward_outputs = leaves[:outputs_of_forward], leaves[outputs_of_forward:]
        self.tensors, self.kernels = [], []
        self.bases = {}  # of a node: tensors whose memory its value lies in
        self.owners = {}  # of a tensor: the node whose value it is
        self._nodes = [node for node in self.graph.nodes if node.op == "call_function"]
        self._places = {node: place for place, node in enumerate(self.graph.nodes)}
        self._changed = {node.args[0] for node in self._nodes if changes_operands(node)}
        self.backward = self._depending_on_gradients()
        if any(_is_symbolic(node.meta.get("val")) for node in self.graph.nodes):
            raise NotPlanned("sizes of its tensors are not fixed: compile with dynamic=False")
        forward, backward = self._order()
        for node in forward:
            self._add(node)
        self._add_outside()
        for node in backward:
            self._add(node)

    def _depending_on_gradients(self):
        found = set()
        for node in self.graph.nodes:
            if is_gradient(node) or must_be_in_backward(node) or any(each in found for each in node.all_input_nodes):
                found.add(node)
        return found

    def _order(self):
        """Nodes before and behind `outside`."""
        required = self._required()
        place, end, forward, backward = {}, len(self._places), [], []
        for node in self._nodes:
            if node in self.backward:
                backward.append(node)
                continue
            if node in required:
                place[node] = self._places[node]
                forward.append(node)
                continue
            place[node] = max((place.get(each, -1) for each in node.all_input_nodes), default=-1)
            worthwhile = 0 <= place[node] < end and (_is_window(node) or _is_smaller(node))
            (forward if worthwhile else backward).append(node)
            if not worthwhile:
                place[node] = end  # what depends on it comes late, too
        return sorted(forward, key=lambda node: (place[node], self._places[node])), backward

    def _required(self):
        wanted = [each for each in self.forward_outputs if isinstance(each, torch.fx.Node)]
        wanted += [node for node in self._nodes if node not in self.backward and node.is_impure()]
        required = set()
        while wanted:
            node = wanted.pop()
            if node not in required:
                required.add(node)
                wanted += node.all_input_nodes
        return required

    def _add(self, node):
        if node.target is operator.getitem:
            of = self.bases[node.args[0]]
            single = node.args[0].target is not operator.getitem and not is_view(node.args[0])
            self.bases[node] = [of[node.args[1]]] if single and len(of) > node.args[1] else of
            if single:
                self.owners[self.bases[node][0]] = node
            return
        operands = self._operands(node)
        if is_view(node):
            self.bases[node] = operands
            return
        kernel = Kernel(node.name, node, [each for each in dict.fromkeys(operands) if each is not None])
        made = node.meta.get("val")
        values = list(made) if isinstance(made, (list, tuple)) else [made]
        kernel.outputs = [self._tensor(f"{node.name}.{place}" if place else node.name, value) for place, value in enumerate(values)]
        self.bases[node] = list(kernel.outputs)
        if isinstance(made, torch.Tensor):
            self.owners[kernel.outputs[0]] = node
        kernel.outputs = [each for each in kernel.outputs if each is not None]
        kernel.ordered = self._runs_once(node)
        self.kernels.append(kernel)

    def _operands(self, node):
        found = []
        for each in node.all_input_nodes:
            found += self.bases.get(each, [])
        return found

    def _tensor(self, name, value, kind="activation"):
        """The number of a new tensor; None for what has no memory of its own."""
        if not isinstance(value, torch.Tensor):
            return None
        self.tensors.append((name, max(_bytes(value), 1), kind))
        return len(self.tensors) - 1

    def _runs_once(self, node):
        if node.is_impure() or changes_operands(node) or not isinstance(node.target, torch._ops.OpOverload):
            return True
        name = node.target._schema.name
        if _compat.draws_random_numbers(node.target) or name.endswith(("inductor_seed", "inductor_seeds")):
            return True
        return not _ignores_statistics(node) and any(each in self._changed for each in node.all_input_nodes)

    def _add_outside(self):
        kernel = Kernel(OUTSIDE, None, ordered=True)
        for output in self.forward_outputs:
            kernel.inputs += [each for each in self.bases.get(output, []) if each is not None] if isinstance(output, torch.fx.Node) else []
        kernel.inputs = list(dict.fromkeys(kernel.inputs))
        for node in self.graph.nodes:
            if is_gradient(node):
                tensor = self._tensor(node.name, node.meta.get("val"), "gradient")
                self.bases[node] = [tensor]
                self.owners[tensor] = node
                kernel.outputs += [] if tensor is None else [tensor]
        kernel.workspace = _LOSS_COPIES * sum(self.tensors[each][1] for each in kernel.outputs)
        self.kernels.append(kernel)

    def results(self):
        """Tensors that the program gets: outputs and gradients of parameters."""
        nodes = [each for each in [*self.forward_outputs, *self.backward_outputs] if isinstance(each, torch.fx.Node)]
        return list(dict.fromkeys(each for node in nodes for each in self.bases.get(node, []) if each is not None))

    def peak(self):
        """Bytes at once at most, where everything is kept until its last use."""
        last = {tensor: place for place, kernel in enumerate(self.kernels) for tensor in [*kernel.inputs, *kernel.outputs]}
        last.update(dict.fromkeys(self.results(), len(self.kernels)))
        live, most = 0, 0
        for place, kernel in enumerate(self.kernels):
            live += sum(self.tensors[each][1] for each in kernel.outputs)
            most = max(most, live + kernel.workspace)
            used = {*kernel.inputs, *kernel.outputs}
            live -= sum(self.tensors[each][1] for each in used if last[each] == place)
        return most

    def to_json(self, name):
        """The graph in the form of docs/formats/graph.md; kernels and tensors keep their order."""
        names = [each for each, _, _ in self.tensors]
        tensors = [{"name": each, "bytes": count, "kind": kind} for each, count, kind in self.tensors]
        tensors += [{"name": "order", "shape": [0], "kind": "token"}]
        tensors += [{"name": f"{each.name}.workspace", "bytes": each.workspace, "kind": "workspace"} for each in self.kernels if each.workspace]
        made = [self._kernel_json(kernel, names) for kernel in self.kernels]
        results = [names[each] for each in self.results()]
        return {"format": "terrace-graph", "version": 1, "name": name, "tensors": tensors, "kernels": made, "results": results}

    def _kernel_json(self, kernel, names):
        order = ["order"] if kernel.ordered else []
        made = {
            "name": kernel.name, "operation": kernel.name if kernel.node is None else str(kernel.node.target),
            "inputs": [names[each] for each in kernel.inputs] + order, "outputs": [names[each] for each in kernel.outputs] + order,
            "flops": _flops(kernel.node), "phase": "backward" if kernel.node in self.backward else "forward",
        }  # fmt: skip
        if kernel.workspace:
            made |= {"workspace": f"{kernel.name}.workspace", "variants": [{"name": "", "workspace": kernel.workspace}]}
        return made


def is_gradient(node):
    return node.op == "placeholder" and "tangents" in str(node.target)


def must_be_in_backward(node):
    tag = node.meta.get("partitioner_tag")
    return tag == "must_be_in_backward" or node.op == "placeholder" and "bwd_" in str(node.target)


def is_view(node):
    """Whether the node's value lies in the memory of its first operand."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    if schema.name in _HIDDEN_VIEWS:
        return True
    return any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns)


def _is_window(node):
    return node.target is operator.getitem or is_view(node)


def changes_operands(node):
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _ignores_statistics(node):
    name = node.target._schema.name
    training = _IGNORE_STATISTICS.get(name)
    return name in _IGNORE_STATISTICS and (training is None or node.args[training] is True)


def _is_symbolic(value):
    if isinstance(value, torch.Tensor):
        return any(isinstance(extent, torch.SymInt) for extent in value.shape)
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _bytes(value):
    return value.numel() * value.element_size()


def _bytes_of(node):
    return sum(_bytes(leaf) for leaf in tree_flatten(node.meta.get("val"))[0] if isinstance(leaf, torch.Tensor))


def _is_smaller(node):
    """Whether it pays to keep what the node makes in place of its largest operand."""
    return _bytes_of(node) < max((_bytes_of(each) for each in node.all_input_nodes), default=0)


def _flops(node):
    if node is None or not isinstance(node.target, torch._ops.OpOverload):
        return 0
    from torch.utils.flop_counter import flop_registry

    made = node.meta.get("val")
    count = flop_registry.get(node.target.overloadpacket)
    if count is not None:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: each.meta.get("val"))
        with contextlib.suppress(Exception):  # a formula of PyTorch's that does not know these operands
            return int(count(*args, **kwargs, out_val=made))
    return sum(leaf.numel() for leaf in tree_flatten(made)[0] if isinstance(leaf, torch.Tensor))
