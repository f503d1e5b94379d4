# SPDX-License-Identifier: Apache-2.0
"""The dumb interpreter of a record's plan: every tier is one buffer in memory and every copy happens at once."""
import ctypes


class PlainExecutor:
    """Runs plans with `run(kernel, addresses)`; numbers of kernels and tensors are the record's."""

    def __init__(self, record, run):
        plan, graph = record["plan"], record["graph"]
        self.run_kernel = run
        self.instructions = plan["instructions"]
        self.kernels = graph["kernels"]
        self.number = {tensor["name"]: i for i, tensor in enumerate(graph["tensors"])}
        self.bytes = [bytes_of(tensor) for tensor in graph["tensors"]]
        self.where = {(tensor, tier): offset for tensor, tier, offset in plan["start"]}
        regions = [(tensor, tier, offset) for tensor, tier, offset in plan["start"]]
        regions += [tuple(words[1:]) for words in self.instructions if words[0] == "alloc"]
        self.tiers = []
        for tier in range(len(plan["budget"])):
            ends = [offset + self.bytes[tensor] for tensor, at, offset in regions if at == tier]
            self.tiers.append(ctypes.create_string_buffer(max(ends, default=0) + 4096))

    def address(self, tensor, tier):
        base = -(-ctypes.addressof(self.tiers[tier]) // 4096) * 4096
        return base + self.where[tensor, tier]

    def write(self, tensor, data):
        for tier in range(len(self.tiers)):
            if (tensor, tier) in self.where:
                ctypes.memmove(self.address(tensor, tier), data, self.bytes[tensor])

    def read(self, tensor):
        tier = min(tier for at, tier in self.where if at == tensor)
        return ctypes.string_at(self.address(tensor, tier), self.bytes[tensor])

    def step(self):
        for words in self.instructions:
            getattr(self, "_" + words[0])(*words[1:])

    def _alloc(self, tensor, tier, offset):
        self.where[tensor, tier] = offset

    def _free(self, tensor, tier):
        del self.where[tensor, tier]

    def _copy(self, tensors, source, target, ticket):
        for tensor in tensors:
            ctypes.memmove(self.address(tensor, target), self.address(tensor, source), self.bytes[tensor])

    def _wait(self, ticket):
        pass

    def _run(self, kernel, variant, tiers):
        names = self.kernels[kernel].get("inputs", []) + self.kernels[kernel].get("outputs", [])
        numbers = [self.number[name if isinstance(name, str) else name["tensor"]] for name in names]
        self.run_kernel(kernel, [self.address(tensor, tier) for tensor, tier in zip(numbers, tiers)])


def bytes_of(tensor):
    if "bytes" in tensor:
        return tensor["bytes"]
    count = {"f32": 4, "bf16": 2, "i32": 4, "u8": 1, "f16": 2, "f64": 8, "i64": 8}[tensor.get("type", "f32")]
    for extent in tensor["shape"]:
        count *= extent
    return count
