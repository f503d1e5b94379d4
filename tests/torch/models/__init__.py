# SPDX-License-Identifier: Apache-2.0
"""The reference models. Each is built from a config, knows the names of its inputs, and says its loss."""
from .bert import Bert
from .dcgan import Dcgan
from .densenet import DenseNet
from .gpt2 import Gpt2
from .inception import Inception4
from .lstm import Lstm
from .mobilenet import MobileNet
from .resnet import ResNet
from .simple import ConvNet, Mlp
from .vgg import Vgg

MODELS = {
    "bert": Bert,
    "convnet": ConvNet,
    "dcgan": Dcgan,
    "densenet": DenseNet,
    "gpt2": Gpt2,
    "inception4": Inception4,
    "lstm": Lstm,
    "mlp": Mlp,
    "mobilenet": MobileNet,
    "resnet": ResNet,
    "vgg": Vgg,
}
