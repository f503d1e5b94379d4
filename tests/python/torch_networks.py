#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of torchvision and our own, each traced and trained by fit beside PyTorch alone, bit for bit.

    python3 tests/python/torch_networks.py -o docs/results/torch_networks.md --rows build/torch_networks.json [NAME...]

writes the table; rows that the second file has are not made again. Every network has a process of its own. It is given half of
what its step takes. Where one operation alone needs more than that, the batch is too small to say anything, and is grown; where
that does not help, fit is given the optimizer, too, so that weights and momentum move as well.
"""
import argparse
import json
import os
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(FOLDER, "..", "torch"))

import torch

TORCHVISION = """alexnet convnext_tiny densenet121 densenet169 efficientnet_b0 efficientnet_b1 efficientnet_v2_s googlenet
inception_v3 mnasnet0_5 mnasnet1_0 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_x_800mf
regnet_y_400mf regnet_y_800mf resnet18 resnet34 resnet50 resnet101 resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0
shufflenet_v2_x1_5 squeezenet1_0 squeezenet1_1 swin_t swin_v2_t vgg11 vgg11_bn vgg13 vgg16 vit_b_16 vit_b_32
wide_resnet50_2 r3d_18 mc3_18 mvit_v1_b""".split()
OURS = ["gpt2", "bert", "lstm"]
SIDES = {"alexnet": 224, "inception_v3": 299, "vit_b_16": 224, "vit_b_32": 224, "r3d_18": 32, "mc3_18": 32, "mvit_v1_b": 224}
VIDEO = {"r3d_18": 8, "mc3_18": 8, "mvit_v1_b": 16}  # images of a sample
BATCHES = (2, 8, 32, 128)
BATCHES_WITH_OPTIMIZER = (128, 320, 384)  # in smaller ones the update of alexnet's or VGG's largest weight needs more than half
SHARE = "50%"
STEPS = 2
SECONDS = 1800  # one network may take so long


def first_of(output):
    return output[0] if isinstance(output, tuple) else output


def image_loss(output, target):
    return torch.nn.functional.cross_entropy(first_of(output), target)


def token_loss(output, target):
    return torch.nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))


def network(name, samples=BATCHES[0]):
    """(model, inputs, target, loss), always the same for as many samples."""
    torch.manual_seed(1)
    if name in OURS:
        from models import Bert, Gpt2, Lstm

        made = {"gpt2": lambda: Gpt2(50, 64, 64, 2, 4, dropout=0.1), "bert": lambda: Bert(50, 64, 64, 2, 4, 128),
                "lstm": lambda: Lstm(50, 64, 2, dropout=0.2)}[name]()  # fmt: skip
        tokens, target = (torch.randint(0, 50, (2 * samples, 48)) for _ in range(2))
        return made.train(), tokens, target, token_loss
    import torchvision

    model = torchvision.models.get_model(name).train()
    return model, torch.randn(samples, *form_of(name)), torch.randint(0, 400 if name in VIDEO else 1000, (samples,)), image_loss


def form_of(name):
    """Of one sample."""
    side = SIDES.get(name, 64)
    return (3, VIDEO[name], side, side) if name in VIDEO else (3, side, side)


def trained(model, x, y, loss_of, fit=lambda optimizer: None):
    """Losses of the steps, gradients of the last one, the state after it, and the optimizer's. `fit` comes before the first step."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), []
    fit(optimizer)
    for number in range(STEPS):
        torch.manual_seed(number)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    gradients, states = [parameter.grad for parameter in model.parameters()], optimizer.state_dict()["state"]
    return losses, gradients, list(model.state_dict().values()), [states[place]["momentum_buffer"] for place in sorted(states)]


def same(left, right):
    return len(left) == len(right) and all(
        (a is None and b is None) or (a is not None and b is not None and torch.equal(a, b)) for a, b in zip(left, right)
    )


def fitted_run(name, samples, planner, moves_weights, options):
    """What trained() gives of the fitted network, and its report."""
    import terrace.torch

    model, x, y, loss_of = network(name, samples)

    def fit(optimizer):
        more = {"optimizer": optimizer} if moves_weights else {}
        terrace.torch.fit(model, SHARE, planner=planner, verbose=False, **more, **options)

    results = trained(model, x, y, loss_of, fit)
    report = terrace.torch.report(model)
    terrace.torch.unfit(model)
    return results, report


def row_of(name, planner="best", **options):
    """One row of the table."""
    row = {"name": name, "kernels": kernels_of(name)}
    samples, moves_weights, (results, report) = in_half(name, planner, options)
    facts = report["facts"] or {}
    row |= {"moves_weights": moves_weights, "way": report["way"], "why": facts.get("why", ""), "samples": samples, "unordered": facts.get("unordered", {})}
    row |= {"peak": facts.get("peak_bytes", 0), "slowdown": facts.get("slowdown", 1.0), "disk": facts.get("slow_bytes", 0)}
    model, x, y, loss_of = network(name, samples)
    plain = trained(model, x, y, loss_of)
    # A step whose weights move hands out no gradients; momentum is made of them.
    gradients = 3 if moves_weights else 1
    row["same"] = [results[0] == plain[0], same(results[gradients], plain[gradients]), same(results[2], plain[2])]
    return row


def in_half(name, planner, options):
    """The smallest batch that can be trained in half of its memory, whether weights have to move for that, and how it went."""
    import terrace

    for samples, moves_weights in [*((each, False) for each in BATCHES), *((each, True) for each in BATCHES_WITH_OPTIMIZER)]:
        try:
            return samples, moves_weights, fitted_run(name, samples, planner, moves_weights, options)
        except terrace.NoRoom as refused:
            last = refused
    raise last


def kernels_of(name):
    """Of the traced step with its optimizer, or why it cannot be traced."""
    import terrace.torch

    model, x, y, loss_of = network(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    try:
        return len(terrace.torch.trace(model, (x, y), loss_of, optimizer).kernels)
    except terrace.torch.NotCapturable as why:
        return str(why)


def measured(name, deterministic):
    """The row, made by a process of its own."""
    command = [sys.executable, "-B", os.path.abspath(__file__), "--one", name] + ["--deterministic"] * deterministic
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1] if "done" in locals() else f"not done in {SECONDS} s"
        return {"name": name, "failed": last}


def whole_row(name):
    row = measured(name, False)
    if row.get("unordered") and not all(row["same"]):
        row["deterministic"] = measured(name, True).get("same", [False])
    return row


def line_of(row):
    if "failed" in row:
        return f"| {row['name']} | | failed: {row['failed']} | | | | | | |"
    kernels = row["kernels"] if isinstance(row["kernels"], int) else "refused"
    way = row["way"] + (f": {row['why']}" if row["why"] else "")
    if row.get("moves_weights"):
        way = f"{row['way']} with `optimizer=`"
    equal = ["yes" if each else "no" for each in row["same"]]
    if "deterministic" in row:
        fixed = "yes" if all(row["deterministic"]) else "no"
        equal = [each if each == "yes" else f"no; with deterministic algorithms {fixed}" for each in equal]
    unordered = ", ".join(f"{name} x {count}" for name, count in row["unordered"].items())
    memory = f"{row['samples']} | {SHARE} of {row['peak'] / 2**20:.0f} MiB"
    return f"| {row['name']} | {kernels} | {way} | {memory} | {' | '.join(equal)} | {unordered} |"


HEAD = """# Networks in half of their memory

`{command}` on {date}, PyTorch {torch}, {threads} threads, commit {commit}: each network trained for {steps} steps by
`terrace.torch.fit(model, memory="50%")` beside PyTorch alone, from the same seeds. That is half of what its step takes beside weights,
gradients and momentum. Batches are small; where one operation alone needs more than that half, the batch was
grown until none does. Where that did not help, `fit` was given the optimizer, too: then half of everything is meant, weights and momentum
included, and the momentum, which is made of the gradients, is compared in their place. Kernels are those of the traced step with its optimizer. The last
column names kernels that PyTorch itself does not run in a fixed order; where they gave other bits, the network was trained again with
`torch.use_deterministic_algorithms(True)`.

{counts}

| network | kernels traced | way | batch | memory | losses | gradients | weights | not deterministic |
|---|---|---|---|---|---|---|---|---|
"""


def table_of(rows, command):
    done = [row for row in rows if "failed" not in row]
    captured = sum(row["way"] == "capture" for row in done)
    equal = sum(all(row["same"]) or all(row.get("deterministic", [False])) for row in done)
    counts = (f"{len(rows)} networks: {captured} captured, {len(done) - captured} by hooks, {len(rows) - len(done)} failed; "
              f"{equal} equal to the bit.")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER).stdout.strip()
    head = HEAD.format(command=command, date=time.strftime("%Y-%m-%d"), torch=torch.__version__, threads=torch.get_num_threads(),
                       commit=commit, steps=STEPS, counts=counts)  # fmt: skip
    return head + "\n".join(line_of(row) for row in rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("-o", "--output", help="file of the table")
    parser.add_argument("--rows", help="file of the rows that were made, which grows")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--deterministic", action="store_true", help="run PyTorch with deterministic algorithms")
    options = parser.parse_args()
    if options.deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)
    if options.one:
        print(json.dumps(row_of(options.one)))
        return
    rows = kept_rows(options.rows)
    for name in options.names or [*TORCHVISION, *OURS]:
        if name in rows:
            continue
        rows[name] = whole_row(name)
        print(line_of(rows[name]), flush=True)
        if options.rows:
            with open(options.rows, "w", encoding="utf-8") as file:
                json.dump(rows, file)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            found = [rows[name] for name in [*TORCHVISION, *OURS] if name in rows]
            file.write(table_of(found, f"python3 tests/python/torch_networks.py -o {options.output}"))


def kept_rows(path):
    """By name, those of an earlier run that went well."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {name: row for name, row in json.load(file).items() if "failed" not in row}


if __name__ == "__main__":
    main()
