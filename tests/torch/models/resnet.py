# SPDX-License-Identifier: Apache-2.0
"""Residual networks (He et al. 2015), with the names of torchvision.

Names: conv1.weight, bn1.*, layerS.B.convK.weight, layerS.B.bnK.*, layerS.0.downsample.0.weight,
layerS.0.downsample.1.*, fc.weight, fc.bias. A bottleneck's stride is in its 3x3 convolution, as in torchvision.
"""
from torch import nn

from .classifier import Classifier, average


class Basic(nn.Module):
    expansion = 1

    def __init__(self, fan_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(fan_in, width, stride)

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu_()
        y = self.bn2(self.conv2(y))
        return y.add_(self.downsample(x)).relu_()


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, fan_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(fan_in, 4 * width, stride)

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu_()
        y = self.bn2(self.conv2(y)).relu_()
        y = self.bn3(self.conv3(y))
        return y.add_(self.downsample(x)).relu_()


def shortcut(fan_in, fan_out, stride):
    """A projection where the shape changes, else the identity."""
    if stride == 1 and fan_in == fan_out:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(fan_in, fan_out, 1, stride, bias=False), nn.BatchNorm2d(fan_out))


class ResNet(Classifier):
    """layers: blocks per stage; width: channels of the first stage, doubled by each further one.

    small_input: the stem for CIFAR (3x3 convolution, stride 1, no pool). resnet32 of the paper is
    block basic, layers [5, 5, 5], width 16, small_input, with projections as shortcuts.
    """

    BLOCKS = {"basic": Basic, "bottleneck": Bottleneck}

    def __init__(self, block, layers, classes, width=64, small_input=False, input_channels=3):
        super().__init__()
        self.conv1 = nn.Conv2d(input_channels, width, **stem(small_input), bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool = nn.Identity() if small_input else nn.MaxPool2d(3, 2, 1)
        self.stages = len(layers)
        kind, fan_in = self.BLOCKS[block], width
        for i, count in enumerate(layers):
            blocks = []
            for j in range(count):
                blocks.append(kind(fan_in, width << i, 2 if i > 0 and j == 0 else 1))
                fan_in = kind.expansion * (width << i)
            self.add_module(f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(fan_in, classes)

    def forward(self, x):
        x = self.pool(self.bn1(self.conv1(x)).relu_())
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(average(x))


def stem(small_input):
    if small_input:
        return {"kernel_size": 3, "padding": 1}
    return {"kernel_size": 7, "stride": 2, "padding": 3}
