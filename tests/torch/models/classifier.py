# SPDX-License-Identifier: Apache-2.0
"""What all image classifiers share: their inputs and their loss."""
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    """Takes "image" [N, C, H, W] and "label" [N]; the loss is the mean cross entropy."""

    inputs = ("image", "label")

    def loss(self, image, label):
        return F.cross_entropy(self(image), label)


def average(x):
    """[N, C, H, W] -> [N, C]."""
    return x.mean((2, 3))
