# SPDX-License-Identifier: Apache-2.0
"""MobileNet v1 (Howard et al. 2017)."""
from torch import nn

from .classifier import Classifier, average

# Output channels and stride of each depthwise separable block at width 1.
BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + 5 * [(512, 1)] + [(1024, 2), (1024, 1)]


class Stem(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.conv = nn.Conv2d(fan_in, fan_out, 3, 2, 1, bias=False)
        self.bn = nn.BatchNorm2d(fan_out)

    def forward(self, x):
        return self.bn(self.conv(x)).relu_()


class Separable(nn.Module):
    def __init__(self, fan_in, fan_out, stride):
        super().__init__()
        self.depthwise = nn.Conv2d(fan_in, fan_in, 3, stride, 1, groups=fan_in, bias=False)
        self.depthwise_bn = nn.BatchNorm2d(fan_in)
        self.pointwise = nn.Conv2d(fan_in, fan_out, 1, bias=False)
        self.pointwise_bn = nn.BatchNorm2d(fan_out)

    def forward(self, x):
        x = self.depthwise_bn(self.depthwise(x)).relu_()
        return self.pointwise_bn(self.pointwise(x)).relu_()


class MobileNet(Classifier):
    """width multiplies every channel count (rounded down).

    Names: features.0.conv.weight, features.0.bn.*, then for N from 1 to 13 features.N.depthwise.weight,
    features.N.depthwise_bn.*, features.N.pointwise.weight, features.N.pointwise_bn.*; classifier.weight, classifier.bias.
    """

    def __init__(self, classes=1000, width=1.0, input_channels=3):
        super().__init__()
        fan_in = int(32 * width)
        stages = [Stem(input_channels, fan_in)]
        for channels, stride in BLOCKS:
            stages.append(Separable(fan_in, int(channels * width), stride))
            fan_in = int(channels * width)
        self.features = nn.Sequential(*stages)
        self.classifier = nn.Linear(fan_in, classes)

    def forward(self, x):
        return self.classifier(average(self.features(x)))
