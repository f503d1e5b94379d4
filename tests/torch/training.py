# SPDX-License-Identifier: Apache-2.0
"""Builds the reference models, loads their weights by name, and trains them step by step."""
import inspect

import torch
from torch.overrides import TorchFunctionMode

from margins import Watch
from models import MODELS
import safetensors_io

# State that PyTorch keeps and nobody else has: a count that is unused at a fixed momentum.
HIDDEN = "num_batches_tracked"


def describe(name, config):
    """The names and shapes that weights files hold, without paying for the model's memory."""
    with OnMeta():
        state = visible_state(build(name, config))
    learned = {key: list(value.shape) for key, value in state.items() if isinstance(value, torch.nn.Parameter)}
    buffers = {key: list(value.shape) for key, value in state.items() if key not in learned}
    return {"parameters": learned, "buffers": buffers}


def train(name, config, weights, inputs, optimizer, result):
    """One training step per file of inputs; answers the losses and margins (margins.py), writes the final state."""
    model = build(name, config)
    load(model, safetensors_io.read(weights))
    step = step_of(model, lambda parameters: make_optimizer(parameters, **optimizer))
    losses, margins = [], []
    for path in inputs:
        batch = safetensors_io.read(path)
        if set(batch) != set(model.inputs):
            raise ValueError(f"{path} holds {sorted(batch)}: model {name} takes {sorted(model.inputs)}")
        with Watch() as watch:
            losses.append(step(**batch))
        margins.append(watch.least)
    safetensors_io.write(result, visible_state(model))
    return {"loss": losses, "margin": margins}


def build(name, config):
    if name not in MODELS:
        raise ValueError(f"there is no model '{name}': the models are {' '.join(MODELS)}")
    try:
        inspect.signature(MODELS[name]).bind(**config)
    except TypeError as error:
        raise ValueError(f"model {name}: {error}; it takes {inspect.signature(MODELS[name])}") from error
    return MODELS[name](**config).train()


def visible_state(model):
    """Parameters and running statistics under their names; parameters stay parameters."""
    state = model.state_dict(keep_vars=True)
    return {name: value for name, value in state.items() if HIDDEN not in name}


def load(model, weights):
    """Fills the model's state; names and shapes must be exactly its own."""
    extra = {name for name in weights if HIDDEN in name}
    state = visible_state(model)
    missing, unexpected = sorted(set(state) - set(weights)), sorted(set(weights) - set(state) - extra)
    misshapen = [
        f"{name} is {list(weights[name].shape)} and should be {list(value.shape)}"
        for name, value in state.items()
        if name in weights and weights[name].shape != value.shape
    ]
    if missing or unexpected or misshapen:
        raise ValueError(f"weights do not fit: missing {missing}, unexpected {unexpected}, of wrong shape {misshapen}")
    with torch.no_grad():
        for name, value in state.items():
            value.copy_(weights[name])


def make_optimizer(parameters, name, learning_rate, momentum=0.0, weight_decay=0.0, betas=(0.9, 0.999), epsilon=1e-8):
    """weight_decay is added to the gradient; of adamw to the step."""
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    if name == "sgd":
        return torch.optim.SGD(learned, learning_rate, momentum=momentum, weight_decay=weight_decay)
    if name == "adam":
        return torch.optim.Adam(learned, learning_rate, tuple(betas), epsilon, weight_decay)
    if name == "adamw":
        return torch.optim.AdamW(learned, learning_rate, tuple(betas), epsilon, weight_decay)
    raise ValueError(f"there is no optimizer '{name}': use sgd, adam or adamw")


def step_of(model, make_optimizer_of):
    """The function of one training step, from named inputs to the loss as a number (or numbers)."""
    if hasattr(model, "train_step"):
        return model.train_step(make_optimizer_of)
    optimizer = make_optimizer_of(model.parameters())

    def step(**batch):
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(**batch)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


class OnMeta(TorchFunctionMode):
    """Inside, new tensors have shapes but no memory."""

    FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.tensor)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in self.FACTORIES:
            kwargs["device"] = "meta"
        return function(*args, **kwargs)
