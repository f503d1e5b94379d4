# SPDX-License-Identifier: Apache-2.0
"""Small networks for first tests: a perceptron and a plain convolutional network."""
from torch import nn

from .classifier import Classifier, average


class Mlp(Classifier):
    """Linear layers with ReLU between them. "image" is flattened to [N, sizes[0]].

    Names: fc1.weight, fc1.bias, fc2.weight, ...
    """

    def __init__(self, sizes):
        super().__init__()
        self.layers = len(sizes) - 1
        for i, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:]), 1):
            self.add_module(f"fc{i}", nn.Linear(fan_in, fan_out))

    def forward(self, image):
        x = image.flatten(1)
        for i in range(1, self.layers):
            x = getattr(self, f"fc{i}")(x).relu_()
        return getattr(self, f"fc{self.layers}")(x)


class ConvNet(Classifier):
    """Stages of convolution 3x3, batch norm, ReLU and max pool 2, then one linear layer.

    Names: conv1.weight, bn1.*, conv2.weight, ..., fc.weight, fc.bias; convolutions have no bias.
    image [H, W] given: fc sees all that is left of the image, channel by channel. Without: its average per channel.
    """

    def __init__(self, channels, classes, image=None, input_channels=3):
        super().__init__()
        self.stages = len(channels)
        for i, (fan_in, fan_out) in enumerate(zip([input_channels, *channels], channels), 1):
            self.add_module(f"conv{i}", nn.Conv2d(fan_in, fan_out, 3, padding=1, bias=False))
            self.add_module(f"bn{i}", nn.BatchNorm2d(fan_out))
        self.pool = nn.MaxPool2d(2)
        self.flat = image is not None
        pixels = (image[0] >> self.stages) * (image[1] >> self.stages) if self.flat else 1
        self.fc = nn.Linear(channels[-1] * pixels, classes)

    def forward(self, x):
        for i in range(1, self.stages + 1):
            x = self.pool(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)).relu_())
        return self.fc(x.flatten(1) if self.flat else average(x))
