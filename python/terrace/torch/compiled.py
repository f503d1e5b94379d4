# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="terrace", options={"memory": "8GiB"}): compiled kernels within a budget of memory.

torch.compile makes one joint graph of the forward and the backward pass and asks a partitioner what is saved between
them. Here a plan says so: what is saved, what is computed again, how often and when, and what leaves memory meanwhile.
Inductor makes the kernels; where it cannot, as without a C++ compiler, they are PyTorch's own. Needs PyTorch 2.

`memory` is what PyTorch's tensors may take on the device at once, weights, gradients and optimizer states included, or
a share (`40%`) of what the compiled graph's tensors would take with everything saved.
"""
import contextlib
import gc
import json
import shutil
from unittest import mock

import torch

from .. import planning
from ..errors import InvalidRequest, NoRoom
from .capture import states_to_come
from .devices import HOST, Cuda
from .folders import cache_folder
from .joint import Joint, NotPlanned
from .partition import Rewritten, cut, steps_of
from .session import planning_options
from .verdict import parse_memory, readable, say, verdict_line

_OPTIONS = {"memory", "planner", "kernels", "move", "disk", "verbose", "tell", "machine"}
_ALIGNMENT = {"cpu": 64, "cuda": 512}  # of PyTorch's allocators, which place what is planned here
_NO_LINK = 1e3  # bytes per second of a link that no plan will use


def backend(module, inputs, *, options=None, **_):
    """The compiled function of a graph of torch.compile."""
    options = _checked(options)
    part = _Part(options, inputs)
    if options.get("kernels") != "eager" and (why := _no_inductor(inputs)) is None:
        return _by_inductor(module, inputs, part)
    part.kernels = "PyTorch's own kernels" + ("" if options.get("kernels") == "eager" else f", for {why}")
    return _by_eager(module, inputs, part)


def _checked(options):
    options = dict(options or {})
    if unknown := sorted(set(options) - _OPTIONS):
        raise InvalidRequest(f"options of backend='terrace' are memory, planner, kernels, move, disk and verbose, and {unknown[0]!r} is none of them")
    if "memory" not in options:
        raise InvalidRequest("backend='terrace' wants options={'memory': ..}: an amount such as '8GiB', or a share such as '40%'")
    if options.get("kernels") not in (None, "inductor", "eager"):
        raise InvalidRequest(f"kernels={options['kernels']!r} is neither 'inductor' nor 'eager'")
    parse_memory(options["memory"])
    return options


class _Part:
    """One graph of torch.compile: what is planned for it, and the line that says so."""

    def __init__(self, options, inputs):
        self.options, self.kernels = options, "kernels by Inductor"
        devices = [each.device for each in inputs if isinstance(each, torch.Tensor)]
        self.device = next((each for each in devices if each.type != "cpu"), torch.device("cpu"))

    def partition(self, module, inputs, *, num_fwd_outputs, **others):
        """Takes the place of PyTorch's partitioner."""
        from torch._functorch import partitioners
        from torch._functorch.compile_utils import fx_graph_cse

        module.graph.eliminate_dead_code()
        module.graph = fx_graph_cse(module.graph)
        module.recompile()
        try:
            joint = Joint(module, num_fwd_outputs)
            plan = self._planned(joint)
        except NotPlanned as why:
            self._tell(f"terrace: nothing is planned and PyTorch's own partitioner is used, for {why}", {"why": str(why)})
            return partitioners.min_cut_rematerialization_partition(module, inputs, num_fwd_outputs=num_fwd_outputs, **others)
        rewritten = Rewritten(joint, *steps_of(plan, joint), self.options.get("disk"))
        forward, backward, saved = cut(module, rewritten, num_fwd_outputs)
        facts = {
            **(_facts(plan) if plan else _facts_without(joint)), "way": "torch.compile", "kernels": self.kernels,
            "folder": (self.options.get("disk") or cache_folder()) if self.device.type == "cpu" else None,
            "saved_bytes": sum(_bytes(node) for node in saved if node.op != "placeholder"), "recomputed": rewritten.recomputed,
        }  # fmt: skip
        facts["why"] = f"{self.kernels}; {readable(facts['saved_bytes'])} are saved for backward, {facts['recomputed']} operations run again"
        self._tell(verdict_line(facts), facts)
        return forward, backward

    def _planned(self, joint):
        """The plan; None where everything fits, so that none is needed."""
        limit, share = parse_memory(self.options["memory"])
        graph, peak = json.dumps(joint.to_json("compiled step")), joint.peak()
        taken = 0 if limit is None else taken_on(self.device)
        budget = int(share * peak) if limit is None else limit - taken
        if budget >= peak:
            return None
        if budget <= 0:
            raise NoRoom(
                f"memory={self.options['memory']} is less than the {readable(taken)} that weights, inputs, optimizer states and "
                "other tensors take beside the compiled graph: give more"
            )
        try:
            plan = planning.plan(graph, fast=str(budget), planner=self.options.get("planner", "best"), **self._where())
        except NoRoom as refused:
            raise NoRoom(f"{refused}; other tensors take {readable(taken)} beside it: give more") from None
        if not self.options.get("move", True) and any(words[0] == "copy" for words in plan.record["plan"]["instructions"]):
            raise NoRoom(
                f"no way was found to compute in {readable(budget)} what takes {readable(peak)} with everything saved, and other "
                f"tensors take {readable(taken)} beside it: give more"
            )
        return plan

    def _where(self):
        """Options of planning: the machine, and what lies behind the device's memory."""
        if "machine" in self.options:
            return {"machine": self.options["machine"]}
        device = HOST if self.device.type == "cpu" else Cuda(self.device)
        moves = self.options.get("move", True)
        given = planning_options(device, None, self.options.get("disk") if moves else None)
        machine = planning.machine(given["machine"], given["slow"])
        machine["tiers"][0]["granularity"] = _ALIGNMENT[self.device.type]
        return {"machine": machine if moves else _with_nothing_behind(machine)}

    def _tell(self, line, facts):
        if "tell" in self.options:
            self.options["tell"](line, facts)
        elif self.options.get("verbose", True):
            say(line)


def _with_nothing_behind(machine):
    """The machine with a second tier that no plan will use."""
    rates = [{"size": 65536, "rate": _NO_LINK}]
    fast, nowhere = machine["tiers"][0], {"name": "nowhere", "capacity": 1 << 50, "read": _NO_LINK, "write": _NO_LINK, "addressable": False}
    links = [{"from": a, "to": b, "rates": rates} for a, b in ((fast["name"], "nowhere"), ("nowhere", fast["name"]))]
    return {**machine, "tiers": [fast, nowhere], "links": links}


def _facts(plan):
    """What a verdict says of a plan (verdict.py)."""
    summary = plan.summary
    fast_only = summary["fast_only_seconds"] or summary["predicted_step_seconds"]
    return {
        "peak_bytes": summary["graph_peak_bytes"], "budget_bytes": summary["budget_bytes"], "planner": summary["planner"],
        "slowdown": summary["predicted_step_seconds"] / fast_only, "bound": summary["bound_seconds"] / fast_only,
        "slow_bytes": sum(list(summary["planned_bytes"].values())[1:]),
    }  # fmt: skip


def _facts_without(joint):
    return {"peak_bytes": joint.peak(), "budget_bytes": joint.peak(), "planner": None, "no_plan": "", "slow_bytes": 0}


def _bytes(node):
    value = node.meta["val"]
    return value.numel() * value.element_size()


def taken_on(device):
    """Bytes of tensors that are on the device now or will be made by optimizers."""
    optimized = [each for each in gc.get_objects() if issubclass(type(each), torch.optim.Optimizer)]
    parameters = [each for optimizer in optimized for group in optimizer.param_groups for each in group["params"]]
    parameters = list({id(each): each for each in parameters if each.device.type == device.type}.values())
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device) + states_to_come(parameters)
    return live_bytes(device) + states_to_come(parameters)


def live_bytes(device):
    """Bytes of the storages of all tensors that Python knows."""
    storages = {}
    for each in gc.get_objects():
        if issubclass(type(each), torch.Tensor) and type(each) in (torch.Tensor, torch.nn.Parameter) and each.device.type == device.type:
            with contextlib.suppress(Exception):  # layouts without a storage
                storages[each.untyped_storage()._cdata] = each.untyped_storage().nbytes()
    return sum(storages.values())


def _no_inductor(inputs):
    """Why Inductor cannot make kernels for these inputs; None where it can."""
    kinds = {each.device.type for each in inputs if isinstance(each, torch.Tensor)} or {"cpu"}
    if kinds - {"cpu"}:
        with contextlib.suppress(ImportError):
            import triton  # noqa: F401

            return None
        return "there is no triton"
    return None if any(map(shutil.which, ("g++", "c++", "clang++"))) else "there is no C++ compiler"


def _by_inductor(module, inputs, part):
    from torch._inductor import compile_fx, config

    with contextlib.ExitStack() as stack:
        # A cached result was partitioned for another budget.
        stack.enter_context(torch._functorch.config.patch(enable_autograd_cache=False))
        if hasattr(config, "custom_partitioner_fn"):
            stack.enter_context(config.patch(custom_partitioner_fn=_custom_partitioner(part)))
        else:
            stack.enter_context(mock.patch.object(compile_fx, "min_cut_rematerialization_partition", part.partition))
        return compile_fx.compile_fx(module, inputs)


def _custom_partitioner(part):
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    class Partitioner(CustomPartitionerFn):
        def __call__(self, gm, joint_inputs, **kwargs):
            return part.partition(gm, joint_inputs, **kwargs)

        def uuid(self):
            return None  # nothing is cached

    return Partitioner()


def _by_eager(module, inputs, part):
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.debugging import boxed_nop

    compiled = aot_autograd(
        fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=part.partition, keep_inference_input_mutations=True
    )
    return compiled(module, inputs)


def register():
    """Makes backend="terrace" known, where this PyTorch has torch.compile."""
    if not hasattr(torch, "compile"):
        return
    from torch._dynamo.backends import registry

    if "terrace" not in registry._COMPILER_FNS:
        registry.register_backend(backend, name="terrace")
