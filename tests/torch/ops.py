# SPDX-License-Identifier: Apache-2.0
"""Every operation the tests compare: operands as positional arguments, attributes as keywords.

An operation takes tensors and returns a tuple of tensors, computed by autograd's own functions so that gradients
come from PyTorch too. `run` feeds one and differentiates it.
"""
import inspect

import torch
import torch.nn.functional as F


def conv2d(x, weight, bias=None, *, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    _check_kernel(weight, kernel)
    return (F.conv2d(x, weight, bias, tuple(stride), tuple(padding), tuple(dilation), groups),)


def conv_transpose2d(x, weight, bias=None, *, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    """weight is [in, out/groups, kh, kw]."""
    _check_kernel(weight, kernel)
    return (F.conv_transpose2d(x, weight, bias, tuple(stride), tuple(padding), (0, 0), groups, tuple(dilation)),)


def linear(x, weight, bias=None):
    return (F.linear(x, weight, bias),)


def matmul(a, b, *, transpose_a=False, transpose_b=False, scale=1.0):
    a = a.transpose(-2, -1) if transpose_a else a
    b = b.transpose(-2, -1) if transpose_b else b
    return (scale * torch.matmul(a, b),)


def max_pool2d(x, *, kernel, stride, padding=(0, 0), include_padding=False):
    """include_padding means nothing to a maximum; it is taken so that both pools share their attributes."""
    return (F.max_pool2d(x, tuple(kernel), tuple(stride), tuple(padding)),)


def avg_pool2d(x, *, kernel, stride, padding=(0, 0), include_padding=False):
    return (F.avg_pool2d(x, tuple(kernel), tuple(stride), tuple(padding), count_include_pad=include_padding),)


def batch_norm(x, gamma, beta, running_mean, running_var, *, epsilon=1e-5, momentum=0.1, relu=False):
    """Training mode. momentum is the weight of the batch's statistics; the running variance takes the unbiased one."""
    mean, var = running_mean.detach().clone(), running_var.detach().clone()
    y = F.batch_norm(x, mean, var, gamma, beta, training=True, momentum=momentum, eps=epsilon)
    return (F.relu(y) if relu else y, mean, var)


def batch_norm_inference(x, gamma, beta, running_mean, running_var, *, epsilon=1e-5, momentum=0.1, relu=False):
    """With the running statistics as they are; momentum is taken so that both share their attributes."""
    y = F.batch_norm(x, running_mean, running_var, gamma, beta, training=False, eps=epsilon)
    return (F.relu(y) if relu else y,)


def layer_norm(x, gamma, beta, *, epsilon=1e-5):
    return (F.layer_norm(x, x.shape[-1:], gamma, beta, epsilon),)


def softmax(x, *, scale=1.0, causal=False):
    """Over the last axis of scale * x; causal hides the columns right of the diagonal."""
    x = scale * x
    if causal:
        hidden = torch.ones(x.shape[-2:], dtype=torch.bool).triu(1)
        x = x.masked_fill(hidden, float("-inf"))
    return (F.softmax(x, dim=-1),)


def relu(x):
    return (F.relu(x),)


def leaky_relu(x, *, slope):
    return (F.leaky_relu(x, slope),)


def gelu(x, *, approximate="none"):
    return (F.gelu(x, approximate=approximate),)


def tanh(x):
    return (torch.tanh(x),)


def sigmoid(x):
    return (torch.sigmoid(x),)


def add(a, b, *, relu=False):
    return (F.relu(a + b) if relu else a + b,)


def mul(a, b):
    return (a * b,)


def concat(*parts, axis):
    return (torch.cat(parts, dim=axis),)


def split_heads(x, *, parts, heads):
    """[B, S, parts * heads * D] -> parts times [B, heads, S, D]; in x the part is the slowest index."""
    batch, length, width = x.shape
    pieces = x.view(batch, length, parts, heads, width // (parts * heads))
    return tuple(pieces[:, :, part].transpose(1, 2).contiguous() for part in range(parts))


def merge_heads(*pieces, parts, heads):
    """The inverse of split_heads."""
    batch, found, length, depth = pieces[0].shape
    if len(pieces) != parts or found != heads:
        raise ValueError(f"merge_heads of {parts} parts and {heads} heads got {len(pieces)} inputs of {found} heads")
    return (torch.stack([piece.transpose(1, 2) for piece in pieces], dim=2).reshape(batch, length, -1),)


def embedding(table, indices):
    return (F.embedding(indices.long(), table),)


def lstm(x, weight_ih, weight_hh, bias, *, hidden):
    """x is [T, B, I]; zero initial state; gates in the order i, f, g, o; one bias (the recurrent one is zero)."""
    start = x.new_zeros(1, x.shape[1], hidden)
    weights = [weight_ih, weight_hh, bias, torch.zeros_like(bias)]
    outputs, _, _ = torch.lstm(x, (start, start), weights, True, 1, 0.0, True, False, False)
    return (outputs,)


def cross_entropy(logits, labels):
    """Mean over the labels that are not -100."""
    return (F.cross_entropy(logits, labels.long(), ignore_index=-100).reshape(1),)


def binary_cross_entropy(logits, *, target):
    return (F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target)).reshape(1),)


OPS = {
    function.__name__: function
    for function in (
        conv2d, conv_transpose2d, linear, matmul, max_pool2d, avg_pool2d, batch_norm, batch_norm_inference, layer_norm, softmax, relu,
        leaky_relu, gelu, tanh, sigmoid, add, mul, concat, split_heads, merge_heads, embedding, lstm, cross_entropy,
        binary_cross_entropy,
    )
}  # fmt: skip

# Operands that are state: they are replaced, not learned.
STATE = {"batch_norm": {3, 4}, "batch_norm_inference": {3, 4}}


def run(name, attributes, tensors):
    """input0.. and grad0.. -> output0.. and gradient_of_input0..; without any grad there are outputs alone.

    An output without a grad counts as unused. Gradients are written for floating inputs that are learned.
    """
    inputs, grads = _numbered(tensors, "input"), _numbered(tensors, "grad", gaps=True)
    strangers = set(tensors) - {f"input{i}" for i in inputs} - {f"grad{i}" for i in grads}
    if strangers:
        raise ValueError(f"op {name}: tensors are named inputN or gradN, not {sorted(strangers)}")
    learned = [i for i, tensor in inputs.items() if tensor.is_floating_point() and i not in STATE.get(name, ())]
    for i in learned:
        inputs[i].requires_grad_()
    outputs = call(name, list(inputs.values()), attributes)
    result = {f"output{i}": output for i, output in enumerate(outputs)}
    if grads:
        result.update(_differentiate(name, outputs, grads, {i: inputs[i] for i in learned}))
    return result


def call(name, inputs, attributes):
    """The outputs of one operation."""
    if name not in OPS:
        raise ValueError(f"there is no op '{name}': the ops are {' '.join(OPS)}")
    try:
        inspect.signature(OPS[name]).bind(*inputs, **attributes)
    except TypeError as error:
        raise ValueError(f"op {name} with {len(inputs)} inputs: {error}") from error
    return OPS[name](*inputs, **attributes)


def _differentiate(name, outputs, grads, learned):
    for i, grad in grads.items():
        if i >= len(outputs) or not outputs[i].requires_grad or grad.shape != outputs[i].shape:
            shapes = [list(output.shape) for output in outputs if output.requires_grad]
            raise ValueError(f"op {name}: grad{i} of shape {list(grad.shape)} does not fit the outputs {shapes}")
    torch.autograd.backward([outputs[i] for i in grads], list(grads.values()))
    return {f"gradient_of_input{i}": torch.zeros_like(x) if x.grad is None else x.grad for i, x in learned.items()}


def _numbered(tensors, prefix, gaps=False):
    """Number -> tensor, in order, of the tensors named prefix and a number."""
    endings = [name[len(prefix) :] for name in tensors if name.startswith(prefix)]
    numbers = sorted(int(ending) for ending in endings if ending.isdigit())
    if not gaps and numbers != list(range(len(numbers))):
        raise ValueError(f"{prefix}s are numbered {numbers}: they must count from 0 without gaps")
    return {number: tensors[f"{prefix}{number}"] for number in numbers}


def _check_kernel(weight, kernel):
    if list(weight.shape[2:]) != list(kernel):
        raise ValueError(f"kernel is {list(kernel)} but weight has shape {list(weight.shape)}")
