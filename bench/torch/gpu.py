#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of one network on a GPU in less and less memory: PyTorch as it is, with checkpoints, with tensors saved in the
computer's memory, and fitted. Needs PyTorch 2 with CUDA.

  scripts/torch-check bench/torch/gpu.py --network resnet50 --batch 128 --shares 60,40,20 [--steps 10] [--record FILE]

Contenders run one after the other in turns of one step, after five steps each, in processes of their own; each prints
median, least and most milliseconds of a step and the peak of PyTorch's allocator together with the plan's memory, both of
the last step. The last line is one JSON object. Losses of fitted models must be those of PyTorch to the bit. FILE gets the
captured step with the GPU's times, packed, as tests/records wants it (docs/formats/record.md).
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import time

WARM_UP = 5


def resnet50(batch):
    import torch

    try:
        import torchvision
    except ImportError:
        sys.exit("gpu.py: resnet50 is torchvision's, which this Python has not: install it, or take --network gpt2-medium")

    model = torchvision.models.resnet50()
    return model, (torch.randn(batch, 3, 224, 224),), torch.randint(0, 1000, (batch,)), None


def gpt2_medium(batch, length=1024, width=1024, layers=24, heads=16, words=50257):
    import torch
    import torch.utils.checkpoint
    from torch.nn import functional

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.behind = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.attend, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = (each.view(*x.shape[:2], heads, -1).transpose(1, 2) for each in self.attend(self.before(x)).chunk(3, -1))
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
            return x + self.down(functional.gelu(self.up(self.behind(x))))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = torch.nn.Embedding(words, width), torch.nn.Embedding(length, width)
            self.layers = torch.nn.ModuleList(Layer() for _ in range(layers))
            self.last, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, words, bias=False)
            self.checkpointed = False

        def forward(self, tokens):
            x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
            for layer in self.layers:
                if self.checkpointed:
                    x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
                else:
                    x = layer(x)
            return self.head(self.last(x)).flatten(0, 1)

    model = Model()
    return model, (torch.randint(0, words, (batch, length)),), torch.randint(0, words, (batch * length,)), "checkpointed"


NETWORKS = {"resnet50": resnet50, "gpt2-medium": gpt2_medium}


def is_share(way):
    """Whether a contender is a fitted model, named by its memory."""
    return way.endswith("%") or way.endswith("iB")


def write_record(record, path):
    """What was planned, without the plan: planners make that anew."""
    record = {key: value for key, value in record.items() if key not in ("plan", "result")}
    record["fingerprints"].pop("plan", None)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(record, file, separators=(",", ":"))


def contender(options):
    """Obeys lines on standard input: `step` does one, the end of the input ends it."""
    import torch

    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = options.deterministic
    model, inputs, label, checkpoints = NETWORKS[options.network](options.batch)
    model, label = model.cuda(), label.cuda()
    inputs = tuple(each.cuda() for each in inputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    planned, facts = 0, {}
    if options.way == "checkpoint":
        setattr(model, checkpoints, True)
    if is_share(options.way):
        os.environ["TERRACE_TRY_CUDA"] = "1"
        import terrace.torch

        terrace.torch.fit(model, memory=options.way)
    saved = torch.autograd.graph.save_on_cpu(pin_memory=True) if options.way == "save_on_cpu" else None

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            output = model(*inputs)
            loss = torch.nn.functional.cross_entropy(output, label)
        loss.backward()
        optimizer.step()
        return loss.item()

    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        torch.cuda.synchronize()
        # The first steps of a fitted model learn, and take other memory than those that count.
        torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter()
        if saved is None:
            loss = step()
        else:
            with saved:
                loss = step()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        if is_share(options.way):
            (form,) = terrace.torch.report(model)["forms"]
            planned = next(iter(form["summary"]["planned_bytes"].values())) + form["bundle_bytes"]
            facts = {key: form["summary"][key] for key in ("predicted_step_seconds", "bound_seconds", "budget_bytes")}
            facts["unbundled"] = form["unbundled"]
            if options.record and not os.path.exists(options.record):
                write_record(form["record"], options.record)
        peak = torch.cuda.max_memory_allocated() + planned
        print(json.dumps({"ms": 1000 * seconds, "loss": loss, "peak": peak, **facts}), flush=True)


class Process:
    def __init__(self, options, way):
        self.way, self.times, self.said = way, [], {}
        command = [sys.executable, "-B", __file__, "--network", options.network, "--batch", str(options.batch), "--way", way]
        command += ["--record", options.record] if options.record else []
        command += ["--deterministic"] if options.deterministic else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ended = not self.process.stdout.readline()

    def step(self, counts):
        if self.ended:
            return
        try:
            self.process.stdin.write("step\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            self.ended = True
            return
        self.said = json.loads(line)
        if counts:
            self.times.append(self.said["ms"])

    def row(self):
        if self.ended or not self.times:
            return {"way": self.way, "ended": True}
        return {
            "way": self.way, "ms": statistics.median(self.times), "spread": [min(self.times), max(self.times)],
            "peak_gib": self.said["peak"] / 2**30, "loss": self.said["loss"],
            **{key: self.said[key] for key in ("predicted_step_seconds", "bound_seconds", "budget_bytes", "unbundled") if key in self.said},
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description="one network on a GPU in less and less memory")
    parser.add_argument("--network", default="resnet50", choices=NETWORKS)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--shares", default="60,40,20", help="of what a step takes, in percent")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--deterministic", action="store_true", help="cuDNN's deterministic algorithms, so that losses must be equal")
    parser.add_argument("--record", help="a file for the captured step with the GPU's times")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        return contender(options)
    ways = ["plain", "save_on_cpu", *(f"{share}%" for share in options.shares.split(","))]
    if options.network == "gpt2-medium":
        ways.insert(1, "checkpoint")
    processes = [Process(options, way) for way in ways]
    for number in range(WARM_UP + options.steps):
        for each in processes:
            each.step(number >= WARM_UP)
    rows = [each.row() for each in processes]
    plain = rows[0]
    if "ended" in plain:
        print(f"gpu.py: {options.network} did not run at all without a plan: see above", file=sys.stderr)
        return 1
    for row in rows:
        if "ended" in row:
            print(f"{row['way']:12} ended before its time")
            continue
        print(f"{row['way']:12} {row['ms']:8.1f} ms ({row['spread'][0]:.1f} to {row['spread'][1]:.1f}), {row['peak_gib']:.2f} GiB, "
              f"{row['ms'] / plain['ms']:.2f} of plain" + ("" if row["loss"] == plain["loss"] else f", another loss: {row['loss']}"))
    print(json.dumps({"network": options.network, "batch": options.batch, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
