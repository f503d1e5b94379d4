# SPDX-License-Identifier: Apache-2.0
"""Step: a whole training step, captured once and run under a plan, in as much memory as it is given.

    step = terrace.torch.Step(model, loss_fn, optimizer, memory="8GiB")
    for x, y in data:
        loss = step(x, y)

While steps run, weights, statistics and optimizer states lie where the plan has them, and the model's own tensors are
stand-ins. `state_dict` gives them at any time, and `close` puts them back into the model and the optimizer.
"""
from .. import planning
from .devices import device_of, require_fittable
from .graph import to_json
from .kernels import fitted, window
from .learning import default_store, learn
from .python_state import unchanged
from .session import Session, facts_of, fast_for, overhead, placement, planning_options
from .state import Blank, move_in, move_out
from .trace import trace
from .verdict import say, verdict_line


class Step:
    """One thread at a time.

    `loss(output, target)` and `autocast` as for `trace`. `memory` is what the whole process may take (`8GiB`), or a share of
    what the step's tensors take at their peak (`20%`). `disk` is a folder for what does not fit, by default ~/.cache/terrace;
    `planner` is one of terrace.planners(); `machine` is as for terrace.plan. `same_bits` checks all that kernels find
    (same_bits.py). With `verbose` one line before the first step says what will happen.
    """

    def __init__(self, model, loss, optimizer, memory, planner=None, disk=None, autocast=None, machine=None, store=None,
                 same_bits=False, verbose=False):
        require_fittable(model)
        self.model, self.loss, self.optimizer, self.autocast = model, loss, optimizer, autocast
        self.device = device_of(model)
        self.memory, self.planning = memory, planning_options(self.device, planner, disk, machine)
        self.session, self._disk, self._same_bits, self._verbose = None, disk, same_bits, verbose
        self._store = store or default_store()
        self._captured = {}  # graphs with their plans, by the form of a batch

    def __call__(self, *batch):
        """Trains on a batch; returns the loss. Where it raises within a step, weights and states are lost."""
        self._require_whole()
        self._use(batch)
        graph = self.session.graph
        for number, given in enumerate(batch):
            self.session.write_tensor(f"input{number}", fitted(given, graph.inputs[number]))
        self.device.finish()  # of what the kernels will find
        self.session.step()
        return window(self.session.read_tensor(graph.loss.storage), graph.loss)

    def state_dict(self):
        """The state dictionaries of the model and the optimizer at this moment: {"model", "optimizer"}."""
        self.close()
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state):
        if self.session is not None and self.session.broken:
            self.session.executor.close()
            graph, self.session = self.session.graph, None
            move_in(graph, Blank(graph))
        self.close()
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def close(self):
        """Puts everything back into the model and the optimizer; the next call takes it again."""
        self._require_whole()
        if self.session is not None:
            graph, state, self.session = self.session.graph, self.session.close(self._disk), None
            move_in(graph, state)

    def _require_whole(self):
        if self.session is not None and self.session.broken:
            raise RuntimeError("a step failed before its end, so weights and optimizer states are undefined: load_state_dict a saved one")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None or self.session is None or not self.session.broken:
            self.close()

    def report(self):
        """What runs and what the last step did: the plan's record and summary, and the executor's result."""
        plan = self.session.plan
        facts = facts_of(plan, self.session.graph, "step", folder=self._disk, device=self.device)
        return {"facts": facts, "verdict": verdict_line(facts), "record": plan.record, "summary": plan.summary, "last": self.session.executor.result()}

    def _use(self, batch):
        form = tuple((given.dtype, tuple(given.shape), given.stride()) for given in batch)
        if form not in self._captured:
            self.close()
            self._captured[form] = self._capture(batch)
        graph, _ = self._captured[form]
        if self.session is not None and self.session.graph is not graph:
            self.close()
        if self.session is None:
            self._open(form)

    def _capture(self, batch):
        with unchanged(self.model, self.loss):
            return trace(self.model, batch, self.loss, self.optimizer, autocast=self.autocast), None

    def _open(self, form):
        graph, plan = self._captured[form]
        state = move_out(graph, self._disk)
        try:
            if plan is None:
                learn(graph, placement(self.device), self._store, self.device)  # now that weights and states are not in memory
                plan = planning.plan(to_json(graph), fast=fast_for(self.memory, overhead(graph, self.device), "give more"), **self.planning)
                self._captured[form] = graph, plan
                if self._verbose:
                    say(verdict_line(facts_of(plan, graph, "step", folder=self._disk, device=self.device)))
            self.session = Session(graph, plan, state, self._same_bits, self.device)
        except BaseException:
            move_in(graph, state)
            raise
