# SPDX-License-Identifier: Apache-2.0
"""The operations once more, in plain numpy and double precision: what the reference itself is held against."""
import math

import numpy as np


def conv2d(x, weight, bias=None, *, kernel, stride, padding, dilation, groups):
    x = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    height, width = ((x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1))
    y = np.zeros((x.shape[0], weight.shape[0], height, width))
    per_in, per_out = weight.shape[1], weight.shape[0] // groups
    for o, i, u, v in np.ndindex(weight.shape):
        channel = (o // per_out) * per_in + i
        top, left = u * dilation[0], v * dilation[1]
        window = x[:, channel, top : top + height * stride[0] : stride[0], left : left + width * stride[1] : stride[1]]
        y[:, o] += weight[o, i, u, v] * window[:, :height, :width]
    return [y if bias is None else y + bias[:, None, None]]


def conv_transpose2d(x, weight, bias=None, *, kernel, stride, padding, dilation, groups):
    """Scatters what a convolution gathers, then cuts the padding off."""
    sides = [(x.shape[2 + i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 for i in (0, 1)]
    y = np.zeros((x.shape[0], weight.shape[1] * groups, *sides))
    per_in = weight.shape[0] // groups
    for i, o, u, v in np.ndindex(weight.shape):
        channel = (i // per_in) * weight.shape[1] + o
        rows = u * dilation[0] + stride[0] * np.arange(x.shape[2])
        columns = v * dilation[1] + stride[1] * np.arange(x.shape[3])
        y[:, channel, rows[:, None], columns] += weight[i, o, u, v] * x[:, i]
    y = y[:, :, padding[0] : sides[0] - padding[0], padding[1] : sides[1] - padding[1]]
    return [y if bias is None else y + bias[:, None, None]]


def linear(x, weight, bias=None):
    return [x @ weight.T + (0 if bias is None else bias)]


def matmul(a, b, *, transpose_a, transpose_b, scale):
    a = a.swapaxes(1, 2) if transpose_a else a
    b = b.swapaxes(1, 2) if transpose_b else b
    return [scale * np.einsum("bmk,bkn->bmn", a, b)]


def max_pool2d(x, *, kernel, stride, padding, include_padding=False):
    return [_pool(x, kernel, stride, padding, -np.inf, lambda window: window.max((2, 3)))]


def avg_pool2d(x, *, kernel, stride, padding, include_padding):
    if include_padding:
        return [_pool(x, kernel, stride, padding, 0, lambda window: window.mean((2, 3)))]
    return [_pool(x, kernel, stride, padding, np.nan, lambda window: np.nanmean(window, (2, 3)))]


def _pool(x, kernel, stride, padding, filler, reduce):
    x = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2], constant_values=filler)
    height, width = ((x.shape[2 + i] - kernel[i]) // stride[i] + 1 for i in (0, 1))
    y = np.zeros((*x.shape[:2], height, width))
    for r, c in np.ndindex(height, width):
        top, left = r * stride[0], c * stride[1]
        y[:, :, r, c] = reduce(x[:, :, top : top + kernel[0], left : left + kernel[1]])
    return y


def batch_norm(x, gamma, beta, running_mean, running_var, *, epsilon, momentum, relu):
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    count = x.size // x.shape[1]
    shaped = lambda v: v[:, None, None]
    y = shaped(gamma) * (x - shaped(mean)) / np.sqrt(shaped(var) + epsilon) + shaped(beta)
    mean = (1 - momentum) * running_mean + momentum * mean
    var = (1 - momentum) * running_var + momentum * var * count / (count - 1)
    return [np.maximum(y, 0) if relu else y, mean, var]


def batch_norm_inference(x, gamma, beta, running_mean, running_var, *, epsilon, momentum, relu):
    shaped = lambda v: v[:, None, None]
    y = shaped(gamma) * (x - shaped(running_mean)) / np.sqrt(shaped(running_var) + epsilon) + shaped(beta)
    return [np.maximum(y, 0) if relu else y]


def layer_norm(x, gamma, beta, *, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return [gamma * centred / np.sqrt(x.var(-1, keepdims=True) + epsilon) + beta]


def softmax(x, *, scale, causal):
    x = scale * x
    if causal:
        x = np.where(np.arange(x.shape[-1]) <= np.arange(x.shape[-2])[:, None], x, -np.inf)
    e = np.exp(x - x.max(-1, keepdims=True))
    return [e / e.sum(-1, keepdims=True)]


def relu(x):
    return [np.maximum(x, 0)]


def leaky_relu(x, *, slope):
    return [np.where(x > 0, x, slope * x)]


def gelu(x, *, approximate):
    if approximate == "tanh":
        return [0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))]
    return [0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))]


def tanh(x):
    return [np.tanh(x)]


def sigmoid(x):
    return [1 / (1 + np.exp(-x))]


def add(a, b, *, relu):
    return [np.maximum(a + b, 0) if relu else a + b]


def mul(a, b):
    return [a * b]


def concat(*parts, axis):
    return [np.concatenate(parts, axis)]


def split_heads(x, *, parts, heads):
    depth = x.shape[2] // (parts * heads)
    return [
        np.stack([x[:, :, (part * heads + head) * depth :][:, :, :depth] for head in range(heads)], 1)
        for part in range(parts)
    ]


def merge_heads(*pieces, parts, heads):
    return [np.concatenate([piece[:, head] for piece in pieces for head in range(heads)], -1)]


def embedding(table, indices):
    return [table[indices]]


def lstm(x, weight_ih, weight_hh, bias, *, hidden):
    h = c = np.zeros((x.shape[1], hidden))
    outputs = []
    for step in x:
        i, f, g, o = np.split(step @ weight_ih.T + h @ weight_hh.T + bias, 4, 1)
        c = sigmoid(f)[0] * c + sigmoid(i)[0] * np.tanh(g)
        h = sigmoid(o)[0] * np.tanh(c)
        outputs.append(h)
    return [np.stack(outputs)]


def cross_entropy(logits, labels):
    kept = labels != -100
    probabilities = softmax(logits, scale=1, causal=False)[0]
    return [-np.log(probabilities[kept, labels[kept]]).mean(keepdims=True)]


def binary_cross_entropy(logits, *, target):
    p = sigmoid(logits)[0]
    return [-(target * np.log(p) + (1 - target) * np.log(1 - p)).mean().reshape(1)]
