# SPDX-License-Identifier: Apache-2.0
"""VGG (Simonyan and Zisserman 2014), with the names of torchvision."""
from torch import nn

from .classifier import Classifier


class Vgg(Classifier):
    """layers: channels of a 3x3 convolution with bias and ReLU, or "M" for a max pool 2.

    Names: features.N.weight and .bias, where N counts convolutions, ReLUs and pools; classifier.0, .3, .6, ... with
    ReLU and dropout between them. What the features leave is averaged to pool x pool (nothing happens where it is
    that size already), then flattened. For vgg16: classifier [4096, 4096], pool 7.
    """

    def __init__(self, layers, classifier, classes, pool=7, dropout=0.0, input_channels=3):
        super().__init__()
        self.features = nn.Sequential(*features(layers, input_channels))
        self.avgpool = nn.AdaptiveAvgPool2d(pool)
        channels = [layer for layer in layers if layer != "M"][-1]
        self.classifier = nn.Sequential(*head([channels * pool * pool, *classifier], classes, dropout))

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def features(layers, fan_in):
    for layer in layers:
        if layer == "M":
            yield nn.MaxPool2d(2)
        else:
            yield nn.Conv2d(fan_in, layer, 3, padding=1)
            yield nn.ReLU(inplace=True)
            fan_in = layer


def head(sizes, classes, dropout):
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        yield from (nn.Linear(fan_in, fan_out), nn.ReLU(inplace=True), nn.Dropout(dropout))
    yield nn.Linear(sizes[-1], classes)
