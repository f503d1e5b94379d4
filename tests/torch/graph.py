"""Whole graphs: operations one after the other over named tensors, differentiated by autograd.

A step is {"op", "attributes", "inputs": [[name, shape], ...], "outputs": [name or null, ...]}; an input is seen in the
shape given, and an output without a name is dropped. Writing to a name again replaces it, as running statistics are.
"""
import torch
import torch.nn.functional as F

import ops


def run(steps, losses, learned, results, tensors):
    """Answers the values of `results`, and `gradient of NAME` for each learned tensor, of the weighted sum of losses.

    losses maps names to weights. Beside the tensors comes the margin: how far the data stays away from where a
    gradient jumps, as a share of the tensors' magnitude. Two correct implementations may differ where it is tiny.
    """
    values, margins = dict(tensors), [1.0]
    for name in learned:
        values[name].requires_grad_()
    leaves = {name: values[name] for name in learned}
    for step in steps:
        _execute(step, values, margins)
    answer = {name: values[name] for name in results}
    if losses:
        sum(weight * values[name].sum() for name, weight in losses.items()).backward()
        answer.update({f"gradient of {name}": _gradient(leaf) for name, leaf in leaves.items()})
    return answer, min(margins)


def _execute(step, values, margins):
    op, attributes = step["op"], dict(step["attributes"])
    inputs = [values[name].reshape(shape) for name, shape in step["inputs"]]
    bends = attributes.pop("relu", False)
    outputs = list(ops.call(op, inputs, attributes))
    if op == "relu" or bends:
        margins.append(_distance_from_zero(inputs[0] if op == "relu" else outputs[0]))
    if op == "leaky_relu":
        margins.append(_distance_from_zero(inputs[0]))
    if op == "max_pool2d":
        margins.append(_distance_of_winners(inputs[0], **attributes))
    if bends:
        outputs[0] = F.relu(outputs[0])
    values.update({name: output for name, output in zip(step["outputs"], outputs) if name is not None})


def _gradient(leaf):
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


@torch.no_grad()
def _distance_from_zero(x):
    return (x.abs().min() / x.abs().max().clamp_min(1e-30)).item()


@torch.no_grad()
def _distance_of_winners(x, kernel, stride, padding=(0, 0), include_padding=False):
    """Between the largest two of each window; equal ones are zeros that a relu made, and have no gradient."""
    height, width = padding
    windows = F.pad(x, (width, width, height, height), value=float("-inf"))
    windows = windows.unfold(2, kernel[0], stride[0]).unfold(3, kernel[1], stride[1]).flatten(4)
    if windows.shape[-1] < 2:
        return 1.0
    first, second = windows.topk(2).values.unbind(-1)
    gaps = first - second
    return (gaps[gaps > 0].min() / x.abs().max()).item() if (gaps > 0).any() else 1.0
