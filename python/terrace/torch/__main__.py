# SPDX-License-Identifier: Apache-2.0
"""python3 -m terrace.torch trace MODULE:FUNCTION --batch N -o g.json"""
import argparse
import importlib
import os
import sys

import torch

from . import _compat
from .graph import to_json
from .recording import NotCapturable
from .trace import trace

DESCRIPTION = """Writes the graph of a training step: forward, backward and the optimizer's update. Nothing is run and
no tensor has memory, so it works for models of any size on any computer; `terrace plan`, `terrace compare` and
`terrace advise` take the file."""

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
LOSSES = {
    "cross-entropy": torch.nn.functional.cross_entropy,
    "mse": torch.nn.functional.mse_loss,
    "sum": lambda output, _: output.sum(),
    "model": None,
}
TYPES = {"float": torch.float32, "bfloat16": torch.bfloat16, "long": torch.int64, "int": torch.int32}


class Refused(Exception):
    pass


def function_named(text):
    """The function that `package.module:name` names, found from here, too."""
    module, _, name = text.partition(":")
    if not name:
        raise Refused(f"'{text}' is no MODULE:FUNCTION, such as torchvision.models:resnet50")
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise Refused(f"cannot import {module}: {error}") from error
    except AttributeError as error:
        raise Refused(f"{module} has no {name}") from error


def made(function):
    """The model, without memory where its constructor allows that."""
    mode = _compat.fake_mode()
    try:
        with mode:
            return function(), mode
    except Exception:  # a constructor that looks at numbers
        return function(), mode


def tensor_of(text, batch, mode):
    """A tensor such as `3x224x224` or `256:long`, behind a dimension of the batch."""
    shape, _, dtype = text.partition(":")
    if dtype and dtype not in TYPES:
        raise Refused(f"'{dtype}' is no type of a tensor: use {', '.join(TYPES)}")
    try:
        extents = [int(extent) for extent in shape.split("x") if extent]
    except ValueError as error:
        raise Refused(f"'{shape}' is no shape, such as 3x224x224") from error
    with mode:
        return torch.empty([batch, *extents], dtype=TYPES[dtype or "float"])


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m terrace.torch", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("trace", help="write the graph of a training step", description=DESCRIPTION)
    command.add_argument("function", metavar="MODULE:FUNCTION", help="called without arguments, gives the model")
    command.add_argument("--batch", type=int, required=True, help="samples per step")
    command.add_argument("--input", action="append", help="of one sample, such as 3x224x224 or 256:long; may be repeated")
    command.add_argument("--target", default=":long", help="of one sample: what the loss compares with")
    command.add_argument("--loss", default="cross-entropy", choices=LOSSES, help="`model`: the model returns its loss")
    command.add_argument("--optimizer", default="momentum", choices=[*OPTIMIZERS, "none"])
    command.add_argument("--autocast", action="store_true", help="the forward pass in bfloat16 where PyTorch does so")
    command.add_argument("-o", "--output", required=True, help="file of the graph")
    return parser.parse_args(arguments)


def run(options):
    if options.batch < 1:
        raise Refused(f"a batch of {options.batch} has no samples")
    model, mode = made(function_named(options.function))
    if not isinstance(model, torch.nn.Module):
        raise Refused(f"{options.function} gives no model of PyTorch but a {type(model).__name__}")
    batch = [tensor_of(text, options.batch, mode) for text in options.input or ["3x224x224"]]
    loss = LOSSES[options.loss]
    if loss is not None:
        batch.append(tensor_of(options.target, options.batch, mode))
    optimizer = None if options.optimizer == "none" else OPTIMIZERS[options.optimizer](model.parameters())
    autocast = torch.autocast("cpu", torch.bfloat16) if options.autocast else None
    graph = trace(model.train(), tuple(batch), loss, optimizer, options.function.partition(":")[2], autocast)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(to_json(graph))
    weights = graph.bytes_of("weight") / 2**20
    print(f"{options.output}: {len(graph.kernels)} kernels, {len(graph.tensors)} tensors, {weights:.1f} MiB of weights")


def main(arguments=None):
    options = options_of(arguments)
    try:
        run(options)
    except (NotCapturable, Refused, OSError) as refused:
        print(f"terrace.torch: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
