# SPDX-License-Identifier: Apache-2.0
"""trace: a training step of any model as a graph, without running it and without memory for its tensors."""
import contextlib

import torch

from . import _compat
from .graph import build
from .optimizers import add_updates
from .recording import NotCapturable, Recorder


def trace(model, batch, loss=None, optimizer=None, name="", autocast=None):
    """The graph of one training step (`StepGraph`; `graph.to_json` writes it).

    `batch` is a tuple of tensors, of which only shapes and types matter. `loss(output, target)` is given what the model
    makes of all but the last of them, and the last; without `loss` the model returns the loss of the whole batch.
    `optimizer` is one of torch.optim over the model's parameters; without it the graph ends with the gradients.
    `autocast` is a context such as `torch.autocast("cpu", torch.bfloat16)` for the forward pass.
    Raises NotCapturable where the step is no fixed list of operations.
    """
    return trace_step(model, batch, loss, optimizer, name, autocast)


def trace_step(model, batch, loss, optimizer, name, autocast):
    recorder, learned = Recorder(mode_of(model)), learned_parameters(model)
    with faked(model, recorder) as fakes:
        lasting = list(recorder.adopted)
        batch = tuple(input_like(recorder, f"input{number}", given) for number, given in enumerate(batch))
        with recorder.fake, recorder, layers(model, recorder):
            with autocast or contextlib.nullcontext():
                value = _loss_of(model, batch, loss)
            recorder.phase, recorder.layer = "backward", ""
            gradients = _gradients(value, [fakes[id(parameter)] for _, parameter in learned])
        if keeps_fakes(model, fakes):
            raise NotCapturable("the forward pass keeps a tensor in an attribute of a module")
        views = [recorder.view_of(gradient) if gradient is not None else None for gradient in gradients]
        of_parameters = [recorder.view_of(fakes[id(parameter)]) for _, parameter in learned]
        value = recorder.view_of(value.detach())
        inputs = [recorder.view_of(given) for given in batch]
    lasting += [(real, view) for real, view in recorder.adopted if recorder.storages[view.storage].role == "constant"]
    found = [(*named, *both) for named, *both in zip(learned, of_parameters, views) if both[1] is not None]
    gradients = [] if optimizer is not None else [gradient for *_, gradient in found]
    kept = [value, *inputs, *(view for _, view in lasting)]
    kept += [view for *_, parameter, gradient in found for view in (parameter, gradient)]
    graph, kept = build(recorder, name or type(model).__name__, [value, *gradients], kept)
    graph.loss, graph.inputs = kept[0], kept[1 : 1 + len(inputs)]
    graph.reals = list(zip((real for real, _ in lasting), kept[1 + len(inputs) :]))
    if optimizer is not None:
        pairs = kept[len(kept) - 2 * len(found) :]
        add_updates(graph, optimizer, [(*named[:2], *pairs[2 * i : 2 * i + 2]) for i, named in enumerate(found)])
    return graph


def input_like(recorder, name, given, role="input"):
    """A fake for a tensor of this form that is given for every step, densely stored."""
    with recorder.fake, torch.no_grad():
        made = torch.empty_strided(given.shape, given.stride(), dtype=given.dtype, device=given.device)
        if _compat.bytes_of_storage(made) != made.numel() * made.element_size():
            made = torch.empty(given.shape, dtype=given.dtype, device=given.device)
    return recorder.adopt(made, role, name).requires_grad_(given.requires_grad and role == "input")


def mode_of(model):
    """The mode of a model that was made without memory, else a new one."""
    fakes = (parameter for parameter in model.parameters() if isinstance(parameter, _compat.FakeTensor))
    return next((fake.fake_mode for fake in fakes), None) or _compat.fake_mode()


def learned_parameters(model):
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]


def _loss_of(model, batch, loss):
    value = model(*batch) if loss is None else loss(model(*batch[:-1]), batch[-1])
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise NotCapturable("the step's loss is not one number: give `loss`, or a model that returns its loss")
    if not value.requires_grad:
        raise NotCapturable("the loss does not depend on any parameter that is to be learned")
    return value


def _gradients(loss, parameters):
    return torch.autograd.grad(loss, parameters, allow_unused=True)


@contextlib.contextmanager
def faked(model, recorder):
    """While entered, the model has fake parameters and buffers. Gives those, by the identity of the real ones."""
    fakes, replaced = {}, []

    def replace(own, key, value):
        replaced.append((own, key, own[key]))
        own[key] = value

    try:
        for prefix, module in model.named_modules():
            for role, own in (("parameter", module._parameters), ("buffer", module._buffers)):
                for name, real in own.items():
                    if real is None:
                        continue
                    if id(real) not in fakes:
                        fakes[id(real)] = recorder.adopt(real, role, f"{prefix}.{name}" if prefix else name)
                    replace(own, name, fakes[id(real)])
        for module in model.modules():
            for own, key, real in _references(module):
                if id(real) in fakes:
                    replace(own, key, fakes[id(real)])
        yield fakes
        if any(own.get(key) is not fakes[id(real)] for own, key, real in replaced if isinstance(own, dict)):
            raise NotCapturable("the forward pass puts another tensor in the place of a parameter or buffer")
    finally:
        for own, key, real in reversed(replaced):
            own[key] = real


def keeps_fakes(model, fakes):
    """Whether a module refers to a tensor that tracing has made."""
    own = {id(fake) for fake in fakes.values()}
    found = (value for module in model.modules() for _, _, value in _references(module))
    return any(isinstance(value, _compat.FakeTensor) and id(value) not in own for value in found)


def _references(module):
    """Tensors that a module refers to beside its parameters and buffers, as recurrent layers do."""
    for name, value in list(vars(module).items()):
        if isinstance(value, torch.Tensor):
            yield vars(module), name, value
        elif isinstance(value, list):
            yield from ((value, place, item) for place, item in enumerate(value) if isinstance(item, torch.Tensor))


@contextlib.contextmanager
def layers(model, recorder):
    """While entered, the recorder knows which module is being called."""
    names = {module: name for name, module in model.named_modules()}
    stack = []

    def enter(module, _):
        stack.append(recorder.layer)
        recorder.layer = names.get(module, recorder.layer)

    def leave(module, *_):
        recorder.layer = stack.pop() if stack else ""

    handles = [module.register_forward_pre_hook(enter) for module in names]
    handles += [module.register_forward_hook(leave) for module in names]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
