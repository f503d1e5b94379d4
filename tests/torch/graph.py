# SPDX-License-Identifier: Apache-2.0
"""Whole graphs: operations one after the other over named tensors, differentiated by autograd.

A step is {"op", "attributes", "inputs": [[name, shape], ...], "outputs": [name or null, ...]}; an input is seen in the
shape given, and an output without a name is dropped. Writing to a name again replaces it, as running statistics are.
"""
import torch

from margins import Watch
import ops


def run(steps, losses, learned, results, tensors):
    """Answers the values of `results`, and `gradient of NAME` for each learned tensor, of the weighted sum of losses.

    losses maps names to weights. Beside the tensors comes the margin (margins.py).
    """
    values = dict(tensors)
    leaves = {name: values[name].requires_grad_() for name in learned}
    with Watch() as watch:
        for step in steps:
            execute(step, values)
    answer = {name: values[name] for name in results}
    if losses:
        sum(weight * values[name].sum() for name, weight in losses.items()).backward()
        answer.update({f"gradient of {name}": gradient(leaf) for name, leaf in leaves.items()})
    return answer, watch.least


def execute(step, values):
    inputs = [values[name].reshape(shape) for name, shape in step["inputs"]]
    outputs = ops.call(step["op"], inputs, step["attributes"])
    values.update({name: output for name, output in zip(step["outputs"], outputs) if name is not None})


def gradient(leaf):
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
