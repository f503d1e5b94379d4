# SPDX-License-Identifier: Apache-2.0
"""fit by capture: a model whose forward and backward pass run under a plan, while the program around them stays as it is.

A call of the model in training runs the plan up to the point where the outputs are complete; `backward` runs the rest.
In between the program computes its loss as always. The plan runs on a thread of its own, which waits meanwhile. What
is not captured (evaluation, a call while another one still waits for its backward pass) runs as it would without.

With an optimizer, the plan has weights and optimizer states, too, and `backward` makes the updates. The program's
`optimizer.step()` finds them done. Whoever wants weights or states meanwhile gets them back first (doors.py).
"""
import contextlib
import gc
import queue
import threading
import weakref
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from .. import planning
from ..errors import NoRoom
from .devices import device_of
from .doors import Doors, UsedUp
from .forward import ForwardBackward, autocast_now, autocast_type, trace_model
from .graph import to_json
from .kernels import fitted
from .learning import default_store, learn
from .optimizers import state_types
from .python_state import plain_state, unchanged
from .recording import NotCapturable
from .session import Session, facts_of, fast_for, overhead, placement, planning_options
from .state import Blank, Nothing, move_in, move_out
from .verdict import NotCopied, parse_memory, readable, verdict_line

_WASTE = 0.1  # of gradients and states, for the holes that the C library has between them
_LOSS_COPIES = 3  # of an output that the loss depends on: what the loss and its gradient take beside it


class Abandoned(Exception):
    """The program never asked for the backward pass of this call."""


class _Untraced(Exception):
    """The model cannot be captured; the cause is what was raised."""


@dataclass
class _Form:
    """What is captured for one form of inputs."""

    captured: ForwardBackward
    plan: object = None
    session: Session = None  # None while weights and states are the model's


class Capture(NotCopied):
    """Captures a model, whose `forward` it replaces until `remove`.

    `tell(line)` is given the verdict before the first step. Where the model cannot be captured, `otherwise(why)` is called
    to fit it in another way, if there is one, in the midst of the model's call.
    """

    def __init__(self, model, memory, planner=None, disk=None, machine=None, store=None, tell=None, otherwise=None,
                 same_bits=False, optimizer=None):
        parse_memory(memory)
        self.device = device_of(model)
        self.model, self.memory, self.tell, self.otherwise, self.optimizer = model, memory, tell, otherwise, optimizer
        self.planning = planning_options(self.device, planner, disk, machine)
        self.facts, self._disk, self._same_bits = None, disk, same_bits
        self.steps, self.plain_calls = 0, 0
        self.used = None  # which outputs losses depend on, once that is known
        self._updated = False  # backward has made updates that the program has not asked for yet
        self._store = store or default_store()
        self._forward, self._users = model.forward, model.__dict__.get("forward")
        self._forms = {}
        self._running = None  # _Step of a call whose backward pass has not come
        self._worker = _Worker()
        self._doors = Doors(model, optimizer, self.settle, self._stepped) if optimizer is not None else None
        model.__dict__["forward"] = self._call

    def remove(self):
        """The model is as it was before."""
        self.settle()
        self._close()
        self._uncover()
        if self._doors is not None:
            self._doors.remove()
        self._worker.end()

    def settle(self, overwritten=False):
        """Weights and optimizer states are the model's and the optimizer's again, until the next captured call.

        `overwritten`: what they are does not matter.
        """
        if self.optimizer is None:
            return
        self._abandon()
        for form in self._forms.values():
            if form.session is None:
                continue
            if not form.session.broken:
                state = form.session.close(self._disk)
            elif overwritten:
                form.session.executor.close()
                state = Blank(form.captured.graph)
            else:
                raise RuntimeError("a step failed before its end, so weights and optimizer states are undefined: load saved ones")
            form.session = None
            move_in(form.captured.graph, state)

    def _close(self):
        self._abandon()
        for form in self._forms.values():
            if form.session is not None:
                form.session.executor.close()
        self._forms.clear()

    def _uncover(self):
        """The forward that the model had: its class's, or one of its own."""
        self.model.__dict__.pop("forward", None)
        if self._users is not None:
            self.model.__dict__["forward"] = self._users

    def report(self):
        """What runs: the way, the number of captured steps and plain calls, and of each form of inputs plan and last step."""
        forms = [
            {
                "summary": form.plan.summary,
                "last": form.session.executor.result() if form.session else None,
                "bundle_bytes": form.session.bundle_bytes() if form.session else 0,
                "unbundled": form.session.unbundled if form.session else None,
                "record": form.plan.record,
            }
            for form in self._forms.values()
        ]
        figures = {"steps": self.steps, "plain_calls": self.plain_calls}
        line = verdict_line(self.facts) if self.facts else None
        return {"way": "capture", "verdict": line, "facts": self.facts, "figures": figures, "forms": forms}

    def _call(self, *args, **kwargs):
        if self._updated:
            raise RuntimeError(
                "backward() has updated the weights and optimizer.step() did not follow: with fit(.., optimizer=..) every backward pass "
                "is a step. Where gradients are accumulated, leave optimizer= out"
            )
        if not (self.model.training and torch.is_grad_enabled()) or self._waits():
            return self._plain(args, kwargs)
        try:
            form = self._form(args, kwargs)
        except _Untraced as untraced:
            if self.otherwise is None:
                raise untraced.__cause__
            self.remove()
            self.otherwise(str(untraced))
            return self._forward(*args, **kwargs)
        given = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        outputs = list(_Function.apply(self, form, (args, kwargs), len(parameters), *parameters, *given))
        made = [outputs.pop(0) if leaf is None else leaf for leaf in form.captured.leaves]
        return tree_unflatten(made, form.captured.structure)

    def _plain(self, args, kwargs):
        if self.optimizer is not None:
            if self._waits():
                raise RuntimeError(
                    "the model was called again before the backward pass of its last call, which has the weights: leave optimizer= of "
                    "fit out"
                )
            self.settle()
        self.plain_calls += 1
        return self._forward(*args, **kwargs)

    def _waits(self):
        """Whether a call before still waits for its backward pass."""
        return self._running is not None and not self._running.over and self._running.ticket() is not None

    def _key(self, args, kwargs):
        leaves, form = tree_flatten((args, kwargs))
        tensors = tuple(
            (leaf.dtype, tuple(leaf.shape), leaf.stride(), leaf.requires_grad) if isinstance(leaf, torch.Tensor) else repr(leaf)
            for leaf in leaves
        )
        wanting = tuple(parameter.requires_grad for parameter in self.model.parameters())
        modes = autocast_type(self.device.device.type), torch.are_deterministic_algorithms_enabled()
        return tensors, repr(form), wanting, tuple(self.used or ()), modes, plain_state(self.model), self._owned()

    def _owned(self):
        """Which tensors the plan has in place of the model."""
        if self.optimizer is None:
            return ()
        updated = [each for group in self.optimizer.param_groups for each in group["params"]]
        return tuple(map(id, [*self.model.parameters(), *updated]))

    def _form(self, args, kwargs):
        """What is captured for inputs of this form, with a session that is open."""
        key = self._key(args, kwargs)
        if key not in self._forms:
            self.settle()
            self._close()  # one arena at a time
            self._forms[key] = self._captured(args, kwargs)
        elif self._forms[key].session is None:
            self._open(self._forms[key])
        return self._forms[key]

    def _captured(self, args, kwargs):
        self._uncover()
        try:
            with _as_untraced(), unchanged(self.model):
                form = _Form(trace_model(self.model, args, kwargs, self.used, self.optimizer))
            self._open(form)
        finally:
            self.model.__dict__["forward"] = self._call
        return form

    def _open(self, form):
        """Hands weights and states to a session."""
        graph = form.captured.graph
        state = Nothing() if self.optimizer is None else move_out(graph, self._disk)
        try:
            form.plan = form.plan or self._planned(form.captured)
            form.session = Session(graph, form.plan, state, self._same_bits, self.device)
        except BaseException:
            if self.optimizer is not None:
                move_in(graph, state)
            raise

    def _planned(self, captured):
        graph = captured.graph
        with _as_untraced():
            learn(graph, placement(self.device), self._store, self.device)
        cure = "give more"
        if self.optimizer is None:
            cure += ", or give fit the optimizer, too (optimizer=), so that weights and its states move as well"
        taken = overhead(graph, self.device) + self._still_to_come(captured)
        fast = fast_for(self.memory, taken, cure)
        try:
            plan = planning.plan(to_json(graph), fast=fast, **self.planning)
        except NoRoom as refused:
            if "of fast memory" not in str(refused):  # it is the disk that is too small
                raise
            raise NoRoom(f"{refused}; the process takes {readable(taken)} beside it: {cure}") from None
        why = "" if self.optimizer is None else "weights and optimizer states are in the plan"
        self._tell(facts_of(plan, graph, "capture", why, self._disk, self.device))
        return plan

    def _tell(self, facts):
        if self.tell and self.facts is None:
            self.tell(verdict_line(facts))
        self.facts = facts

    def _still_to_come(self, captured):
        """Bytes of gradients, optimizer states and the loss, which the program will take."""
        outside = captured.outside
        loss = sum(view.bytes() for view in outside.reads) + _LOSS_COPIES * sum(view.bytes() for view in outside.writes)
        updated = {id(update.real) for update in captured.updates()}
        parameters = [each for each in self.model.parameters() if each.requires_grad and id(each) not in updated]
        missing = sum(_bytes(parameter) for parameter in parameters if parameter.grad is None)
        # A captured backward pass hands over all gradients at once, beside those that they are added to.
        handed = sum(_bytes(parameter) for parameter in parameters)
        stays = missing + states_to_come(parameters)
        return stays + int(_WASTE * stays) + handed + loss

    def begin(self, form, call, ticket, given):
        """Runs the forward pass on the tensors of a call; returns the outputs."""
        self._abandon()
        captured, session = form.captured, form.session
        if session.broken and captured.graph.reals:
            raise RuntimeError("a step failed before its end, so weights and optimizer states are undefined: load saved ones")
        _find_moved(self.model, session)
        for name, tensor, view in zip(captured.names, given, captured.inputs):
            session.write_tensor(name, fitted(tensor, view))
        self.device.finish()  # of what the kernels will find
        again = _Again(self.model, call, given, self.device) if self._may_be_run_again(captured) else None
        self._running = _Step(captured, session, self._worker, ticket, again)
        try:
            return self._running.outputs()
        except BaseException:
            self._abandon()
            raise

    def _may_be_run_again(self, captured):
        """An update cannot be taken back where the loss turns out not to depend on an output."""
        return self.optimizer is not None and self.used is None and len(captured.outside.writes) > 1

    def finish(self, ticket, tangents):
        """Runs the backward pass; returns the gradients."""
        running = self._running
        if running is None or running.over or running.ticket() is not ticket:
            raise RuntimeError(
                "Trying to backward through a captured step a second time: its tensors are gone. Call the model again, or fit it "
                "by hooks"
            )
        try:
            ready = self._ready(running.captured, tangents)
            if self.used is not None and running.again is not None:
                running = self._run_again(running.again, ticket)
                ready = [tangent for tangent in ready if tangent is not None]
            gradients = running.gradients(ready)
        except BaseException:
            self._abandon()
            raise
        self._running = None
        self.steps += 1
        self._note_updates(running.captured)
        return gradients

    def _run_again(self, again, ticket):
        """The step from its beginning, captured for the outputs that the loss depends on."""
        self._abandon()
        with torch.enable_grad(), again.autocast:
            form = self._form(*again.call)
        again.restore(self.model)
        with torch.no_grad():
            self.begin(form, again.call, ticket, again.given)
        return self._running

    def _note_updates(self, captured):
        for update in captured.updates():
            update.real.grad = UsedUp(update.real)
            self._updated = True

    def _stepped(self):
        """The optimizer's step is asked for; returns whether its updates of this model are made."""
        done, self._updated = self._updated, False
        if done:
            for group in self.optimizer.param_groups:
                for parameter in group["params"]:
                    if isinstance(parameter.grad, UsedUp):
                        parameter.grad = None
        return done

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


@contextlib.contextmanager
def _as_untraced():
    """What is raised says that the model cannot be captured."""
    try:
        yield
    except NotCapturable as why:
        raise _Untraced(str(why)) from why
    except Exception as failure:
        raise _Untraced(f"tracing failed: {type(failure).__name__}: {failure}") from failure


class _Again:
    """What a call needs to be run once more: its arguments, and the model's buffers and the generator as they were."""

    def __init__(self, model, call, given, device):
        self.call, self.given, self.autocast = call, given, autocast_now(device.device.type)
        self._buffers = [buffer.clone() for buffer in model.buffers()]
        self._device, self._generator = device, device.random_state()

    def restore(self, model):
        with torch.no_grad():
            for buffer, before in zip(model.buffers(), self._buffers):
                buffer.copy_(before)
        self._device.set_random_state(self._generator)


class _Ticket:
    """Lives as long as a backward pass can still come."""


class _Step:
    """One step of the plan on the worker's thread, which works on it until `over`."""

    def __init__(self, captured, session, worker, ticket, again=None):
        self.captured, self.ticket, self.again = captured, weakref.ref(ticket), again
        self._skip_updates(False)
        self._finish = session.device.finish
        self._to_program, self._to_plan = queue.SimpleQueue(), queue.SimpleQueue()
        self._gradients = [None] * len(captured.deliveries)
        captured.outside.hand = self._outside
        for number, delivery in enumerate(captured.deliveries):
            if delivery is not None:
                delivery.hand = self._receiver(number)
        self._start, self.over = lambda: worker.start(session.step, self._ended), True

    def _outside(self, outputs, tangents):
        handed = [output.clone() for output in outputs]
        self._finish()
        self._to_program.put(handed)
        del handed  # the program's alone: when it drops them, no backward pass will come
        given = self._to_plan.get()
        if given is None:
            if not self.captured.graph.reals:
                raise Abandoned()
            self._skip_updates(True)  # the plan has moved weights, which are in their places only at its end
            given = [None] * len(tangents)
        for target, tangent in zip(tangents, given):
            target.zero_() if tangent is None else target.copy_(tangent)

    def _skip_updates(self, skipped):
        for update in self.captured.updates():
            update.skipped = skipped

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
        self._finish()
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
    def forward(ctx, capture, form, call, parameters, *tensors):
        ctx.capture, ctx.ticket = capture, _Ticket()
        ctx.wanting = [i for i, tensor in enumerate(tensors) if tensor.requires_grad]
        ctx.count = len(tensors)
        ctx.save_for_backward(*tensors[:parameters])  # PyTorch notices changes in place
        outputs = capture.begin(form, call, ctx.ticket, tensors[parameters:])
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(o for o, has in zip(outputs, form.captured.differentiable) if not has))
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
