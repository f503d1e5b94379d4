# SPDX-License-Identifier: Apache-2.0
"""fit by capture: a model whose forward and backward pass run under a plan, while the program around them stays as it is.

A call of the model in training runs the plan up to the point where the outputs are complete; `backward` runs the rest.
In between the program computes its loss as always. The plan runs on a thread of its own, which waits meanwhile. What
is not captured (evaluation, a call while another one still waits for its backward pass) runs as it would without.
"""
import gc
import queue
import threading
import weakref

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from .. import planning
from ..errors import NoRoom
from .forward import autocast_type, trace_model
from .graph import to_json
from .kernels import fitted
from .learning import default_store, learn
from .optimizers import state_types
from .python_state import plain_state, unchanged
from .recording import NotCapturable
from .session import Nothing, Session, facts_of, fast_for, overhead, placement, slow_tiers
from .verdict import parse_memory, readable, verdict_line

_WASTE = 0.1  # of gradients and states, for the holes that the C library has between them
_OUTSIDE_COPIES = 4  # of the outputs: what a loss and its gradient take beside the step


class Abandoned(Exception):
    """The program never asked for the backward pass of this call."""


class _Untraced(Exception):
    """The model cannot be captured; the cause is what was raised."""


class Capture:
    """Captures a model, whose `forward` it replaces until `remove`.

    `tell(line)` is given the verdict before the first step. Where the model cannot be captured, `otherwise(why)` is called
    to fit it in another way, if there is one, in the midst of the model's call.
    """

    def __init__(self, model, memory, planner=None, disk=None, machine="this", store=None, tell=None, otherwise=None,
                 same_bits=False):
        parse_memory(memory)
        self.model, self.memory, self.tell, self.otherwise = model, memory, tell, otherwise
        self.planning = {"planner": planner, "slow": slow_tiers(disk), "machine": machine}
        self.facts, self._disk, self._same_bits = None, disk, same_bits
        self.steps, self.plain_calls = 0, 0
        self.used = None  # which outputs losses depend on, once that is known
        self._store = store or default_store()
        self._forward, self._users = model.forward, model.__dict__.get("forward")
        self._captured = {}
        self._running = None  # _Step of a call whose backward pass has not come
        self._worker = _Worker()
        model.__dict__["forward"] = self._call

    def remove(self):
        """The model is as it was before."""
        self._abandon()
        self._uncover()
        for _, session in self._captured.values():
            session.executor.close()
        self._captured.clear()
        self._worker.end()

    def _uncover(self):
        """The forward that the model had: its class's, or one of its own."""
        self.model.__dict__.pop("forward", None)
        if self._users is not None:
            self.model.__dict__["forward"] = self._users

    def report(self):
        """What runs: the way, the number of captured steps and plain calls, and of each form of inputs plan and last step."""
        forms = [{"summary": session.plan.summary, "last": session.executor.result()} for _, session in self._captured.values()]
        figures = {"steps": self.steps, "plain_calls": self.plain_calls}
        line = verdict_line(self.facts) if self.facts else None
        return {"way": "capture", "verdict": line, "facts": self.facts, "figures": figures, "forms": forms}

    def _call(self, *args, **kwargs):
        if not (self.model.training and torch.is_grad_enabled()) or self._waits():
            self.plain_calls += 1
            return self._forward(*args, **kwargs)
        leaves, form = tree_flatten((args, kwargs))
        given = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        try:
            captured, session = self._session(args, kwargs, self._key(leaves, form))
        except _Untraced as untraced:
            if self.otherwise is None:
                raise untraced.__cause__
            self.remove()
            self.otherwise(str(untraced))
            return self._forward(*args, **kwargs)
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        outputs = list(_Function.apply(self, captured, session, len(parameters), *parameters, *given))
        made = [outputs.pop(0) if leaf is None else leaf for leaf in captured.leaves]
        return tree_unflatten(made, captured.structure)

    def _waits(self):
        """Whether a call before still waits for its backward pass."""
        return self._running is not None and not self._running.over and self._running.ticket() is not None

    def _key(self, leaves, form):
        tensors = tuple(
            (leaf.dtype, tuple(leaf.shape), leaf.stride(), leaf.requires_grad) if isinstance(leaf, torch.Tensor) else repr(leaf)
            for leaf in leaves
        )
        wanting = tuple(parameter.requires_grad for parameter in self.model.parameters())
        return tensors, repr(form), wanting, tuple(self.used or ()), autocast_type(), torch.are_deterministic_algorithms_enabled(), plain_state(self.model)

    def _session(self, args, kwargs, key):
        if key not in self._captured:
            self._abandon()
            for _, session in self._captured.values():  # one arena at a time
                session.executor.close()
            self._captured.clear()
            self._captured[key] = self._open(args, kwargs)
        return self._captured[key]

    def _open(self, args, kwargs):
        self._uncover()
        try:
            with unchanged(self.model):
                captured = trace_model(self.model, args, kwargs, self.used)
            learn(captured.graph, placement(), self._store)
        except NotCapturable as why:
            raise _Untraced(str(why)) from why
        except Exception as failure:
            raise _Untraced(f"tracing failed: {type(failure).__name__}: {failure}") from failure
        finally:
            self.model.__dict__["forward"] = self._call
        graph = captured.graph
        cure = "give more, or use terrace.torch.Step, which moves weights and optimizer states, too"
        taken = overhead(graph) + self._still_to_come(captured)
        fast = fast_for(self.memory, taken, cure)
        try:
            plan = planning.plan(to_json(graph), fast=fast, **self.planning)
        except NoRoom as refused:
            raise NoRoom(f"{refused}; the process takes {readable(taken)} beside it, weights and gradients included: {cure}") from None
        self._tell(facts_of(plan, graph, "capture", folder=self._disk))
        return captured, Session(graph, plan, Nothing(), self._same_bits)

    def _tell(self, facts):
        if self.tell and self.facts is None:
            self.tell(verdict_line(facts))
        self.facts = facts

    def _still_to_come(self, captured):
        """Bytes of gradients, optimizer states and the loss, which the program will take."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        missing = sum(_bytes(parameter) for parameter in parameters if parameter.grad is None)
        # A captured backward pass hands over all gradients at once, beside those that they are added to.
        handed = sum(_bytes(parameter) for parameter in parameters)
        outputs = sum(view.bytes() for view in captured.outside.reads)
        stays = missing + states_to_come(parameters)
        return stays + int(_WASTE * stays) + handed + _OUTSIDE_COPIES * outputs

    def begin(self, captured, session, ticket, given):
        """Runs the forward pass; returns the outputs."""
        self._abandon()
        _find_moved(self.model, session)
        for name, tensor, view in zip(captured.names, given, captured.inputs):
            session.write_tensor(name, fitted(tensor, view))
        self._running = _Step(captured, session, self._worker, ticket)
        try:
            return self._running.outputs()
        except BaseException:
            self._abandon()
            raise

    def finish(self, ticket, tangents):
        """Runs the backward pass; returns the gradients."""
        running = self._running
        if running is None or running.over or running.ticket() is not ticket:
            raise RuntimeError(
                "Trying to backward through a captured step a second time: its tensors are gone. Call the model again, or fit it "
                "by hooks"
            )
        try:
            gradients = running.gradients(self._ready(running.captured, tangents))
        except BaseException:
            self._abandon()
            raise
        self._running = None
        self.steps += 1
        return gradients

    def _ready(self, captured, tangents):
        """Gradients of the outputs that were followed. One that the loss does not depend on is zero this once, and
        is left out of what is captured next."""
        followed = [tangent for tangent, has in zip(tangents, captured.differentiable) if has]
        if len(followed) == len(captured.outside.writes) and any(tangent is None for tangent in followed):
            self.used = [tangent is not None for tangent in followed]
        elif len(followed) != len(captured.outside.writes):
            if any(tangent is not None and not follows for tangent, follows in zip(followed, self.used)):
                self.used = None
                raise RuntimeError(
                    "the loss depends on an output of the model that earlier losses did not depend on: fit the model with way='hooks'"
                )
            followed = [tangent for tangent, follows in zip(followed, self.used) if follows]
        return followed

    def _abandon(self):
        if self._running is not None:
            self._running.abandon()
            self._running = None


def _find_moved(model, session):
    """The model's own tensors as they are now: programs replace them, as `to` does."""
    own = dict(model.named_buffers())
    own.update(model.named_parameters())
    outside = session.graph.outside
    outside.update({place: own[name] for place, name in session.graph.outside_names.items() if name in own})
    session.forget_moved()


def states_to_come(parameters):
    """Bytes of states that the optimizers of these parameters will make, as far as there are such optimizers."""
    wanted, total = {id(parameter) for parameter in parameters}, 0
    for optimizer in [each for each in gc.get_objects() if issubclass(type(each), torch.optim.Optimizer)]:
        for group in optimizer.param_groups:
            new = [each for each in group["params"] if id(each) in wanted and not optimizer.state.get(each)]
            if new:
                total += _states_of(optimizer, group, new[0].dtype) * sum(_bytes(each) for each in new)
    return total


def _states_of(optimizer, group, dtype):
    """How many states of the parameter's shape; as many as Adam's where the optimizer cannot be tried, as LBFGS."""
    try:
        return len(state_types(optimizer, group, dtype))
    except Exception:
        return 2


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


class _Ticket:
    """Lives as long as a backward pass can still come."""


class _Step:
    """One step of the plan on the worker's thread, which works on it until `over`."""

    def __init__(self, captured, session, worker, ticket):
        self.captured, self.ticket = captured, weakref.ref(ticket)
        self._to_program, self._to_plan = queue.SimpleQueue(), queue.SimpleQueue()
        self._gradients = [None] * len(captured.deliveries)
        captured.outside.hand = self._outside
        for number, delivery in enumerate(captured.deliveries):
            if delivery is not None:
                delivery.hand = self._receiver(number)
        self._start, self.over = lambda: worker.start(session.step, self._ended), True

    def _outside(self, outputs, tangents):
        self._to_program.put([output.clone() for output in outputs])
        given = self._to_plan.get()
        if given is None:
            raise Abandoned()
        for target, tangent in zip(tangents, given):
            target.zero_() if tangent is None else target.copy_(tangent)

    def _receiver(self, number):
        def receive(gradients, _):
            self._gradients[number] = gradients[0].clone()

        return receive

    def _ended(self, raised):
        self._to_program.put(raised)

    def outputs(self):
        self.over = False
        # Once only: a step that refers to itself would live, with all it holds, until garbage is collected.
        start, self._start = self._start, None
        start()
        return self._next()

    def gradients(self, tangents):
        self._to_plan.put(tangents)
        self._next()
        given, self._gradients = self._gradients, None  # they are the program's now
        return given

    def abandon(self):
        """Returns when the worker has ended the step."""
        if not self.over:
            self._to_plan.put(None)
        try:
            while not self.over:
                self._next()
        except Abandoned:
            pass

    def _next(self):
        said = self._to_program.get()
        self.over = said is None or isinstance(said, BaseException)
        if isinstance(said, BaseException):
            raise said
        return said


class _Worker:
    """A thread that does one thing after another."""

    def __init__(self):
        self._work = queue.SimpleQueue()
        threading.Thread(target=self._loop, name="terrace plan", daemon=True).start()

    def start(self, work, ended):
        self._work.put((work, ended))

    def end(self):
        self._work.put(None)

    def _loop(self):
        while (given := self._work.get()) is not None:
            work, ended = given
            try:
                work()
                ended(None)
            except BaseException as raised:
                ended(raised)


class _Function(torch.autograd.Function):
    """The captured model as one operation of PyTorch's own differentiation."""

    @staticmethod
    def forward(ctx, capture, captured, session, parameters, *tensors):
        ctx.capture, ctx.ticket = capture, _Ticket()
        ctx.wanting = [i for i, tensor in enumerate(tensors) if tensor.requires_grad]
        ctx.count = len(tensors)
        ctx.save_for_backward(*tensors[:parameters])  # PyTorch notices changes in place
        outputs = capture.begin(captured, session, ctx.ticket, tensors[parameters:])
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(o for o, has in zip(outputs, captured.differentiable) if not has))
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *tangents):
        if torch.is_grad_enabled():
            raise RuntimeError("a captured step has no second derivatives: fit the model with way='hooks'")
        ctx.saved_tensors  # raises where a parameter was changed since the forward pass
        gradients = [None] * ctx.count
        for place, gradient in zip(ctx.wanting, ctx.capture.finish(ctx.ticket, tangents)):
            gradients[place] = gradient
        return (None, None, None, None, *gradients)
