# SPDX-License-Identifier: Apache-2.0
"""A plan of a joint graph (joint.py) as two graphs for torch.compile: the forward pass with what it saves, and the
backward pass, in which what was not saved is computed again or brought back from slower memory.

The joint graph is written once more in the order of the plan, a node as often as the plan runs it, with transfers in
between (moving.py). PyTorch's own tools then cut it in two: what the first part makes and the second part uses is saved.
"""
import operator

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from .joint import OUTSIDE, changes_operands, is_view
from .moving import operations


def steps_of(plan, joint):
    """What the plan does, before and behind `outside`: ("run", kernel), ("send" or "bring", tensors, ticket), ("wait", ticket).
    Without a plan every kernel runs once."""
    steps = [("run", kernel) for kernel in joint.kernels]
    if plan is not None:
        record, kernels = plan.record, {kernel.name: kernel for kernel in joint.kernels}
        names = [kernel["name"] for kernel in record["graph"]["kernels"]]
        numbers = {name: number for number, (name, _, _) in enumerate(joint.tensors)}
        tensors = [numbers.get(tensor["name"]) for tensor in record["graph"]["tensors"]]
        steps = []
        for what, *rest in record["plan"]["instructions"]:
            if what == "run":
                steps.append(("run", kernels[names[rest[0]]]))
            elif what == "copy":
                moved = [tensors[each] for each in rest[0] if tensors[each] is not None]
                steps.append(("bring" if rest[2] == 0 else "send", moved, rest[3]))
            elif what == "wait":
                steps.append(("wait", rest[0]))
    middle = next(place for place, step in enumerate(steps) if step[0] == "run" and step[1].name == OUTSIDE)
    return steps[:middle], steps[middle + 1 :]


class Rewritten:
    """The joint graph in the order of a plan. `folder` is where tensors go that leave memory."""

    def __init__(self, joint, forward, backward, folder=None):
        self.joint, self.graph, self._folder = joint, torch.fx.Graph(), folder or ""
        self._made = {}  # of a node: its newest copy
        self._windows = {}  # of a view: (copies of its operands, its copy)
        self._away = {}  # of a tensor: its newest handle
        self._leaving = {}  # of a tensor: the copy that was sent last
        self._tickets = {}  # of a transfer: what it does with which tensors
        self._first = set()  # copies of the forward pass
        for node in joint.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self._made[node] = self.graph.node_copy(node, self._value)
        self._write(forward)
        outputs = [self._output(each) for each in joint.forward_outputs]
        self._first = set(self.graph.nodes)
        self._windows.clear()
        self._write(backward)
        outputs += [self._output(each) for each in joint.backward_outputs]
        runs = [{step[1].name for step in steps if step[0] == "run"} for steps in (forward, backward)]
        self.recomputed = len(runs[0] & runs[1])
        self._finish(outputs)

    def _write(self, steps):
        for what, *rest in steps:
            if what == "run":
                self._run(rest[0].node)
            elif what == "wait":
                self._wait(*self._tickets.pop(rest[0], ("", [])))
            else:
                self._tickets[rest[1]] = what, rest[0]
                for tensor in rest[0]:
                    self._move(what, tensor)

    def _move(self, what, tensor):
        owner = self.joint.owners[tensor]
        value, call = owner.meta["val"], operations()
        if what == "send":
            self._leaving[tensor] = self._made[owner]
            made = self.graph.call_function(call.send.default, (self._made[owner], list(value.shape), list(value.stride()), self._folder))
        else:
            made = self.graph.call_function(call.bring.default, (self._away[tensor],))
        self._away[tensor] = self._with_value(made, value)

    def _wait(self, what, tensors):
        for tensor in tensors:
            owner, call = self.joint.owners[tensor], operations()
            value = owner.meta["val"]
            if what == "send":
                made = self.graph.call_function(call.sent.default, (self._away[tensor], self._leaving.pop(tensor)))
                self._away[tensor] = self._with_value(made, value)
            else:
                form = (list(value.shape), list(value.stride()), value.dtype, value.device)
                self._made[owner] = self.graph.call_function(call.brought.default, (self._away[tensor], *form))
                self._made[owner].meta["val"] = value

    def _with_value(self, node, like):
        """A handle has one number; `like` is a fake tensor of the same step."""
        with like.fake_mode:
            node.meta["val"] = torch.empty(1, dtype=torch.int64)
        return node

    def _run(self, node):
        self._made[node] = self.graph.node_copy(node, self._value)
        for user in node.users:
            if user.target is operator.getitem:
                self._made[user] = self.graph.node_copy(user, self._value)

    def _value(self, node):
        """The newest copy; a view is made anew where its operand was."""
        if not _is_remade(node):
            return self._made[node]
        operands = [self._value(each) for each in node.all_input_nodes]
        kept = self._windows.get(node)
        if kept is None or kept[0] != operands:
            self._windows[node] = operands, self.graph.node_copy(node, self._value)
        return self._windows[node][1]

    def _output(self, given):
        return self._value(given) if isinstance(given, torch.fx.Node) else given

    def _finish(self, outputs):
        old = next(node for node in self.joint.graph.nodes if node.op == "output")
        _, structure = tree_flatten(old.args)
        made = self.graph.output(tree_unflatten(outputs, structure)[0])
        made.meta = dict(old.meta)
        self.graph.lint()

    def changes_before(self):
        """Names of what the forward pass does to memory of the program, such as to running statistics."""
        return {node.name for node in self._first if changes_operands(node)}

    def saved(self):
        """What the backward pass uses of what is there before it: parameters, inputs, and tensors of the forward pass."""
        output = next(node for node in self.graph.nodes if node.op == "output")
        behind = [node for node in self.graph.nodes if node not in self._first and node is not output]
        used = [each for node in behind for each in node.all_input_nodes]
        leaves = tree_flatten(output.args)[0][len(self.joint.forward_outputs) :]
        used += [each for each in leaves if isinstance(each, torch.fx.Node)]
        return [each for each in dict.fromkeys(used) if each in self._first and _can_be_saved(each)]


def _can_be_saved(node):
    return node.op != "get_attr" and not (node.op == "placeholder" and ("tangents" in str(node.target) or "bwd_" in str(node.target)))


def _is_remade(node):
    """Views, and parts of views, cost nothing: they are made where they are used."""
    if node.target is operator.getitem:
        return _is_remade(node.args[0])
    return node.op == "call_function" and is_view(node)


def cut(module, rewritten, outputs_of_forward):
    """The modules of the forward and of the backward pass, and the nodes that are saved between them."""
    from torch._functorch import partitioners

    joint = torch.fx.GraphModule(module, rewritten.graph)
    saved = rewritten.saved()
    forward, backward = partitioners._extract_fwd_bwd_modules(joint, saved, saved_sym_nodes=[], num_fwd_outputs=outputs_of_forward)
    _leave_out(backward, rewritten.changes_before())
    return forward, backward, saved


def _leave_out(module, names):
    """PyTorch copies into the backward pass all that can be computed from what is saved, and removes what nobody uses but what
    changes memory: where a batch norm runs again, the forward pass would change its statistics a second time there."""
    for node in reversed(module.graph.nodes):
        if node.op == "call_function" and node.name in names:
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    module.recompile()
