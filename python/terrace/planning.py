# SPDX-License-Identifier: Apache-2.0
"""Plans of a graph's step: made, verified, simulated anywhere, and advice about memory."""
import json
import os

from ._library import Text, Watching, call_for_json, call_for_text, encoded, library
from .errors import InvalidRequest


def _text_of(graph):
    """The JSON text of a graph that is a file, a text or a dictionary."""
    if isinstance(graph, dict):
        return json.dumps(graph)
    if isinstance(graph, str) and graph.lstrip().startswith("{"):
        return graph
    with open(os.fspath(graph), encoding="utf-8") as file:
        return file.read()


def _options_of(**given):
    return json.dumps({name: value for name, value in given.items() if value is not None})


class Plan:
    """A plan that the verifier has accepted, with the graph, machine and profile it was made for."""

    def __init__(self, record, summary):
        self.record_text = record
        self.summary = summary

    @property
    def record(self):
        """The record as a dictionary: graph, machine, profile, budget, plan (docs/formats/record.md). It is made anew each
        time, for it takes many times the memory of its text."""
        return json.loads(self.record_text)

    @property
    def verified(self):
        """Whether the verifier accepts the plan; asked anew."""
        return self.verdict()["safe"]

    @property
    def predicted_seconds(self):
        return self.summary["predicted_step_seconds"]

    @property
    def bound_seconds(self):
        """No plan for this graph, machine and budget is faster."""
        return self.summary["bound_seconds"]

    @property
    def slowdown(self):
        """Of a step, against everything in fast memory: 1.0 is as fast."""
        return self.predicted_seconds / self.summary["fast_only_seconds"]

    def verdict(self):
        return call_for_json(library.terrace_verify, encoded(self.record_text))

    def simulate(self, machine=None):
        """How long a step would take on its own machine or another: a name, a file or a dictionary."""
        other = json.dumps(machine) if isinstance(machine, dict) else machine
        return call_for_json(library.terrace_simulate, encoded(self.record_text), encoded(other), None)

    def save(self, path):
        """Writes a record, which `terrace verify`, `simulate`, `compare` and `report` take alone."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.record_text)

    def __repr__(self):
        return (
            f"<terrace.Plan by {self.summary['planner']} for {self.summary['model']} on {self.summary['machine']}: "
            f"{self.predicted_seconds:.4g} s a step, bound {self.bound_seconds:.4g} s>"
        )


def plan(graph, fast=None, machine=None, slow=None, planner=None, budget=None, seconds=None, progress=None):
    """Plans a step of a graph (a file, a text or a dictionary of docs/formats/graph.md).

    `fast` is how much of the fastest tier it may take (`2GiB`, `20%` of the graph's peak), or `budget` a list of bytes for
    each tier; `machine` a preset's name, a file, a dictionary, or `this`; `slow` a list of tier specs for `this`;
    `seconds` limits planners that search. `progress(what)` is told what is done and may raise to end it.
    """
    watching = Watching(progress)
    record, summary = Text(), Text()
    options = _options_of(fast=fast, machine=machine, slow=slow, planner=planner, budget=budget, seconds=seconds)
    watching.check(
        library.terrace_plan(
            encoded(_text_of(graph)), encoded(options), watching.pointer(), record.place(), summary.place()
        )
    )
    return Plan(record.take(), json.loads(summary.take()))


def load(path):
    """The plan in a record's file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    record = json.loads(text)
    if record.get("format") != "terrace-record" or "plan" not in record:
        raise InvalidRequest(f"{path} is no record with a plan: make one with terrace.plan or `terrace plan -o`")
    seconds = record["plan"]["prediction"]
    simulated = call_for_json(library.terrace_simulate, encoded(text), None, None)
    summary = {
        "model": record["model"],
        "machine": record["machine"]["name"],
        "planner": record["plan"]["planner"],
        "predicted_step_seconds": seconds["step"],
        "bound_seconds": seconds["bound"],
        "moved_bytes": simulated["moved_bytes"],
        "fast_only_seconds": _fast_only_seconds(record["profile"]),
    }
    return Plan(text, summary)


def _fast_only_seconds(profile):
    """Of a step with all operands of all kernels in the fastest tier, each in its fastest variant."""
    total = 0.0
    for kernel in profile["kernels"]:
        total += min(time for variant in kernel["times"] for tiers, time in variant if not any(tiers))
    return total


def advise(graph, slowdown=None, fast=None, machine=None, slow=None, planner=None, prices=None, progress=None):
    """How little fast memory will do for a slowdown (0.05 is 5%), what more is worth, and the curve of both."""
    watching = Watching(progress)
    options = _options_of(slowdown=slowdown, fast=fast, machine=machine, slow=slow, planner=planner, prices=prices)
    text = Text()
    watching.check(
        library.terrace_advise(encoded(_text_of(graph)), encoded(options), watching.pointer(), text.place())
    )
    return json.loads(text.take())


def check_graph(graph):
    """What a graph is like: kernels, tensors, peak_bytes. Raises where it is none, with the place."""
    return call_for_json(library.terrace_graph_check, encoded(_text_of(graph)))


def planners():
    return call_for_json(library.terrace_planners)


def machines():
    return call_for_json(library.terrace_machines)


def machine(name="this", slow=None):
    """A machine as a dictionary: a preset, a file, or this computer, which is measured once."""
    specs = None if slow is None else json.dumps(slow)
    return json.loads(call_for_text(library.terrace_machine, encoded(name), encoded(specs), None))
