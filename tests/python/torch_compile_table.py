# SPDX-License-Identifier: Apache-2.0
"""torch.compile within budgets of memory: peak of tensors and time of a step, beside torch.compile alone and its own budget.

    scripts/suite-check trixie tests/python/torch_compile_table.py [--model gpt2] [--rounds 5]

Contenders take turns; times are medians with the least and the most. The peak is what PyTorch's allocator had given out at
once during a step, weights not included. `same` compares the gradients of the second step with torch.compile's alone, bit by bit.
"""
import argparse
import os
import statistics
import sys
import time

import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))

from test_torch_compile import most_bytes
from terrace.torch import compiled

SHARES = ("80%", "60%", "40%")


def gpt2():
    from models import Gpt2

    torch.manual_seed(1)
    tokens = torch.randint(0, 500, (8, 128))
    return Gpt2(500, 128, 128, 3, 4), tokens, tokens.roll(1, 1)


def resnet18():
    import torchvision

    torch.manual_seed(1)
    return torchvision.models.resnet18(num_classes=10), torch.randn(16, 3, 64, 64), torch.randint(0, 10, (16,))


MODELS = {"gpt2": gpt2, "resnet18": resnet18}


class Contender:
    def __init__(self, name, make, told=None, **options):
        self.name, self.told, self.seconds = name, told, []
        torch._dynamo.reset()
        model, self.x, self.y = make()
        self.model = torch.compile(model, **options)
        for _ in range(2):
            self.step()
        self.gradients = [each.grad.clone() for each in self.model.parameters() if each.grad is not None]
        self.peak = most_bytes(self.step)

    def step(self):
        self.model.zero_grad(set_to_none=True)
        output = self.model(self.x)
        torch.nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]), self.y.reshape(-1)).backward()

    def timed(self):
        began = time.perf_counter()
        self.step()
        self.seconds.append(time.perf_counter() - began)


def contenders(make, kernels):
    base = {"inductor": "inductor", "eager": "aot_eager"}[kernels]
    made = [Contender(f"torch.compile ({base})", make, backend=base)]
    if kernels == "inductor":
        for budget in (0.5, 0.0):
            with torch._functorch.config.patch(activation_memory_budget=budget):
                made.append(Contender(f"its activation_memory_budget {budget}", make, backend=base))
    for share in SHARES:
        told = []
        options = {"memory": share, "kernels": kernels, "move": False, "tell": lambda line, facts, told=told: told.append(facts)}
        try:
            made.append(Contender(f"terrace, {share}", make, told, backend=compiled.backend, options=options))
        except Exception as refused:
            print(f"| terrace, {share} | refused: {str(refused).splitlines()[1][:150]} |", flush=True)
    return made


def row(each, first):
    seconds = sorted(each.seconds)
    same = all(torch.equal(a, b) for a, b in zip(each.gradients, first.gradients))
    close = all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(each.gradients, first.gradients))
    budget = f"{each.told[0]['budget_bytes'] / 2**20:.1f}" if each.told else ""
    again = each.told[0]["recomputed"] if each.told else ""
    time_of = f"{statistics.median(seconds):.3f} ({seconds[0]:.3f} to {seconds[-1]:.3f})"
    return f"| {each.name} | {budget} | {each.peak / 2**20:.1f} | {again} | {time_of} | {'yes' if same else 'close' if close else 'NO'} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--kernels", choices=("inductor", "eager"), default="inductor")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    made = contenders(MODELS[options.model], options.kernels)
    for _ in range(options.rounds):
        for each in made:
            each.timed()
    print(f"{options.model}, PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
    print("| contender | budget of the graph, MiB | peak of a step, MiB | operations run again | seconds | same bits |\n|---|---|---|---|---|---|")
    for each in made:
        print(row(each, made[0]), flush=True)


if __name__ == "__main__":
    main()
