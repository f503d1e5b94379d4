# SPDX-License-Identifier: Apache-2.0
"""Graphs and machines that several tests use."""
import random


def machine(disk, fast="64MiB", slow="64MiB", rate=1e9):
    """Memory and a file behind it, both of which can be opened here; plans are made for transfers at this rate."""
    rates = [{"size": 65536, "rate": rate}]
    return {
        "format": "terrace-machine", "version": 1, "name": "test",
        "compute": {"name": "test", "threads": 1, "flops_per_second": 1e9},
        "tiers": [
            {"name": "dram", "capacity": fast, "read": 1e10, "write": 1e10, "spec": f"dram:{fast}"},
            {"name": "disk", "capacity": slow, "addressable": False, "read": 1e9, "write": 1e9, "granularity": 4096,
             "spec": f"file:{disk}:{slow},buffered"},
        ],
        "links": [{"from": "dram", "to": "disk", "rates": rates}, {"from": "disk", "to": "dram", "rates": rates}],
    }


def most_runs(plan):
    """How often the kernel runs that a plan runs most often: more than once where it recomputes."""
    runs = [words[1] for words in plan.record["plan"]["instructions"] if words[0] == "run"]
    return max(map(runs.count, runs))


def random_graph(seed, kernels=24):
    """Kernels that each read up to two earlier tensors and write a new one; weights that are updated at the end."""
    draw = random.Random(seed)
    tensors = [{"name": "x", "shape": [draw.randrange(1, 4000)], "kind": "input"}]
    tensors += [{"name": f"w{i}", "shape": [draw.randrange(1, 4000)], "kind": "weight"} for i in range(3)]
    steps = []
    for i in range(kernels):
        sources = draw.sample([tensor["name"] for tensor in tensors], k=min(len(tensors), draw.randrange(1, 3)))
        tensors.append({"name": f"t{i}", "shape": [draw.randrange(1, 4000)]})
        steps.append({"name": f"k{i}", "operation": "mix", "inputs": sources, "outputs": [f"t{i}"],
                      "variants": [{"name": "", "time": 0.001}]})
    for i in range(3):
        source = f"t{draw.randrange(kernels)}"
        steps.append({"name": f"u{i}", "operation": "mix", "inputs": [f"w{i}", source], "outputs": [f"w{i}"],
                      "phase": "update", "variants": [{"name": "", "time": 0.001}]})
    last = f"t{kernels - 1}"
    return {"format": "terrace-graph", "version": 1, "name": f"random {seed}", "tensors": tensors, "kernels": steps,
            "results": [last]}
