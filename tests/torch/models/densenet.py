# SPDX-License-Identifier: Apache-2.0
"""DenseNet-BC (Huang et al. 2017): torchvision's own, which can be built in any size."""
from torchvision.models import DenseNet as TorchvisionDenseNet

from .classifier import Classifier


class DenseNet(TorchvisionDenseNet, Classifier):
    """blocks: layers per dense block; initial: channels of the stem; 1x1 convolutions make 4 * growth channels.

    Names: features.conv0.weight, features.norm0.*, features.denseblockB.denselayerL.norm1.* conv1.weight norm2.*
    conv2.weight, features.transitionB.norm.* conv.weight, features.norm5.*, classifier.weight, classifier.bias.
    """

    def __init__(self, growth, blocks, initial, classes):
        super().__init__(growth, tuple(blocks), initial, bn_size=4, num_classes=classes)
