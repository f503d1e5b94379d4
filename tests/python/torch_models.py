# SPDX-License-Identifier: Apache-2.0
"""Small models that between them use what makes capturing hard."""
import random

import torch
from torch import nn
from torch.nn import functional


class ConvNet(nn.Module):
    """In-place activations, running statistics, a residual sum and pooling."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.convolutions = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in range(4))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = functional.relu(self.norm(self.first(x)), inplace=True)
        for convolution, norm in zip(self.convolutions, self.norms):
            x = functional.relu(x + norm(convolution(x)))
        return self.head(functional.adaptive_avg_pool2d(functional.max_pool2d(x, 2), 1).flatten(1))


class SharedNorm(nn.Module):
    """One set of statistics that is changed twice in a step, and a parameter that is used twice."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)
        self.norm = nn.BatchNorm1d(32)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.norm(self.layer(x.flatten(1)[:, :32]))
        return self.head(self.norm(self.layer(torch.tanh(x))))


class Dropped(nn.Module):
    """Random numbers in two places, views and a constant made while running."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(3))
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        x = x.flatten(1)[:, :48] * torch.tensor(0.5)
        for layer in self.layers:
            left, right = functional.dropout(torch.sigmoid(layer(x)), 0.3, self.training).chunk(2, dim=1)
            x = torch.cat([right, left], dim=1)
        return self.head(x)


class Attention(nn.Module):
    """Transformer layer and recurrent layer of PyTorch itself, with tied weights."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 24)
        self.block = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.1, batch_first=True)
        self.memory = nn.LSTM(24, 24, batch_first=True)
        self.head = nn.Linear(24, 32, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        tokens = (x.flatten(1)[:, :6].abs() * 7).long() % 32
        return self.head(self.memory(self.block(self.embedding(tokens)))[0][:, -1])[:, :10]


class Branching(nn.Module):
    """Looks at its numbers, so no fixed list of operations is its step."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        x = x.flatten(1)[:, :48]
        return self.head(x if x.sum() > 0 else -x)


class Steered(nn.Module):
    """Plain attributes decide what is computed."""

    def __init__(self):
        super().__init__()
        self.drop, self.head, self.scale, self.calls = nn.Dropout(0.2), nn.Linear(48, 10), 1.0, 0

    def forward(self, x):
        return self.head(self.drop(x.flatten(1)[:, :48]) * self.scale)


class TwoHeads(Steered):
    def __init__(self):
        super().__init__()
        self.other = nn.Linear(48, 10)

    def forward(self, x):
        return super().forward(x), self.other(x.flatten(1)[:, :48])


class Averaging(Steered):
    """A buffer that is read before it is changed in place, or replaced."""

    replaces = False

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.ones(48))

    def forward(self, x):
        made = super().forward((x.flatten(1)[:, :48] * self.mean).reshape(len(x), 48))
        if self.replaces:
            self.mean = self.mean * 0.9
        else:
            self.mean.mul_(0.9)
        return made


class Replacing(Averaging):
    replaces = True


class Keeping(Steered):
    def forward(self, x):
        self.last = super().forward(x)
        return self.last


class Overwriting(Steered):
    def forward(self, x):
        return super().forward(functional.relu(x, inplace=True))


class Failing(Steered):
    """Wants what fake tensors do not have."""

    def forward(self, x):
        return super().forward(x + (type(x) is not torch.Tensor and x.nothing_of_that_name))


class Counting(Steered):
    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class Drawing(Steered):
    def forward(self, x):
        return super().forward(x) * random.random()


CAPTURED = [ConvNet, SharedNorm, Dropped, Attention]


def batch(seed=0, samples=8):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(samples, 3, 8, 8, generator=generator), torch.randint(0, 10, (samples,), generator=generator)
