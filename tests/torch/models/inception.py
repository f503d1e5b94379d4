# SPDX-License-Identifier: Apache-2.0
"""Inception v4 (Szegedy et al. 2016), with timm's names for inception_v4.

A block is written as its branches: a list of (channels, kernel, stride, padding) convolutions, or a pool. Every
convolution is followed by a batch norm (epsilon 0.001) and a ReLU. Pools average what lies inside the image alone.

Names: features.N for N in 0..2 (stem), 3..5 (mixed), then 4 blocks A, reduction A, 7 blocks B, reduction B, 3 blocks C;
each convolution is X.conv.weight and X.bn.*, where X is features.N (stem), features.N.conv (mixed 3 and 5),
features.N.branchK (a branch of one convolution), features.N.branchK.J (J counts pools too), and in blocks C also
features.N.branch1_0 branch1_1a branch1_1b branch2_0 branch2_1 branch2_2 branch2_3a branch2_3b; last_linear.
"""
import torch
from torch import nn

from .classifier import Classifier, average


class Conv(nn.Module):
    def __init__(self, fan_in, fan_out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(fan_in, fan_out, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(fan_out, eps=0.001)

    def forward(self, x):
        return self.bn(self.conv(x)).relu_()


def same(channels, height, width):
    return (channels, (height, width), 1, (height // 2, width // 2))


def valid(channels, kernel, stride=1):
    return (channels, kernel, stride, 0)


class Builder:
    """Makes convolutions with all channel counts divided, which all are multiples of 32."""

    def __init__(self, divisor):
        self.divisor = divisor

    def conv(self, fan_in, row):
        return Conv(fan_in // self.divisor, row[0] // self.divisor, *row[1:])

    def chain(self, fan_in, rows):
        """Modules of one branch; "average" stands for the pool before a 1x1 convolution."""
        modules = []
        for row in rows:
            if row == "average":
                modules.append(nn.AvgPool2d(3, 1, 1, count_include_pad=False))
            else:
                modules.append(self.conv(fan_in, row))
                fan_in = row[0]
        return modules

    def branch(self, fan_in, rows):
        modules = self.chain(fan_in, rows)
        return modules[0] if len(modules) == 1 else nn.Sequential(*modules)


class Parallel(nn.Module):
    """Branches on one input, concatenated in the order of their names given."""

    def __init__(self, **branches):
        super().__init__()
        for name, branch in branches.items():
            self.add_module(name, branch)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.children()], 1)


def parallel(builder, fan_in, branches, pool=False):
    modules = {f"branch{i}": builder.branch(fan_in, rows) for i, rows in enumerate(branches)}
    if pool:
        modules[f"branch{len(branches)}"] = nn.MaxPool2d(3, 2)
    return Parallel(**modules)


def block_a(builder):
    return parallel(builder, 384, [
        [valid(96, 1)],
        [valid(64, 1), same(96, 3, 3)],
        [valid(64, 1), same(96, 3, 3), same(96, 3, 3)],
        ["average", valid(96, 1)],
    ])  # fmt: skip


def reduction_a(builder):
    return parallel(builder, 384, [[valid(384, 3, 2)], [valid(192, 1), same(224, 3, 3), valid(256, 3, 2)]], pool=True)


def block_b(builder):
    return parallel(builder, 1024, [
        [valid(384, 1)],
        [valid(192, 1), same(224, 1, 7), same(256, 7, 1)],
        [valid(192, 1), same(192, 7, 1), same(224, 1, 7), same(224, 7, 1), same(256, 1, 7)],
        ["average", valid(128, 1)],
    ])  # fmt: skip


def reduction_b(builder):
    return parallel(builder, 1024, [
        [valid(192, 1), valid(192, 3, 2)],
        [valid(256, 1), same(256, 1, 7), same(320, 7, 1), valid(320, 3, 2)],
    ], pool=True)  # fmt: skip


class BlockC(nn.Module):
    """Its two middle branches fork at the end, which is why they are not chains."""

    def __init__(self, builder):
        super().__init__()
        self.branch0 = builder.conv(1536, valid(256, 1))
        self.branch1_0 = builder.conv(1536, valid(384, 1))
        self.branch1_1a = builder.conv(384, same(256, 1, 3))
        self.branch1_1b = builder.conv(384, same(256, 3, 1))
        self.branch2_0 = builder.conv(1536, valid(384, 1))
        self.branch2_1 = builder.conv(384, same(448, 3, 1))
        self.branch2_2 = builder.conv(448, same(512, 1, 3))
        self.branch2_3a = builder.conv(512, same(256, 1, 3))
        self.branch2_3b = builder.conv(512, same(256, 3, 1))
        self.branch3 = builder.branch(1536, ["average", valid(256, 1)])

    def forward(self, x):
        y = self.branch1_0(x)
        z = self.branch2_2(self.branch2_1(self.branch2_0(x)))
        forks = [self.branch1_1a(y), self.branch1_1b(y), self.branch2_3a(z), self.branch2_3b(z)]
        return torch.cat([self.branch0(x), *forks, self.branch3(x)], 1)


class Inception4(Classifier):
    """divisor divides every channel count (1, 2, 4, 8, 16 or 32); blocks: how many blocks A, B and C.

    Images of 75x75 are the smallest that reach the end.
    """

    def __init__(self, classes, divisor=1, blocks=(4, 7, 3), input_channels=3):
        super().__init__()
        builder = Builder(divisor)
        stem = [Conv(input_channels, 32 // divisor, 3, 2, 0), *builder.chain(32, [valid(32, 3), same(64, 3, 3)])]
        mixed = [
            Parallel(maxpool=nn.MaxPool2d(3, 2), conv=builder.conv(64, valid(96, 3, 2))),
            parallel(builder, 160, [
                [valid(64, 1), valid(96, 3)],
                [valid(64, 1), same(64, 1, 7), same(64, 7, 1), valid(96, 3)],
            ]),
            Parallel(conv=builder.conv(192, valid(192, 3, 2)), maxpool=nn.MaxPool2d(3, 2)),
        ]  # fmt: skip
        body = [block_a(builder) for _ in range(blocks[0])] + [reduction_a(builder)]
        body += [block_b(builder) for _ in range(blocks[1])] + [reduction_b(builder)]
        body += [BlockC(builder) for _ in range(blocks[2])]
        self.features = nn.Sequential(*stem, *mixed, *body)
        self.last_linear = nn.Linear(1536 // divisor, classes)

    def forward(self, x):
        return self.last_linear(average(self.features(x)))
