# SPDX-License-Identifier: Apache-2.0
"""The reference models beside other implementations of the same networks: torchvision's and PyTorch's own layers."""
import torch
import torchvision
from torch import nn

import training
from selftest_cases import SIZES, TEXT


def torchvision_has_the_same_names(server):
    models = torchvision.models
    twins = {"resnet": models.resnet50, "vgg": models.vgg16, "densenet": models.densenet121}
    for name, config, _ in SIZES:
        if name in twins and config["classes"] == 1000:
            with training.OnMeta():
                state = training.visible_state(twins[name]())
            described = server.ask({"describe": name, "config": config})
            shapes = {key: list(value.shape) for key, value in state.items()}
            assert {**described["parameters"], **described["buffers"]} == shapes, name


def torchvision_gives_the_same_answers(server):
    models, image = torchvision.models, torch.randn(2, 3, 64, 64)
    for block, theirs in (("basic", models.resnet.BasicBlock), ("bottleneck", models.resnet.Bottleneck)):
        theirs = models.ResNet(theirs, [1, 2, 1, 1], 10)
        ours = training.build("resnet", {"block": block, "layers": [1, 2, 1, 1], "classes": 10})
        state = theirs.state_dict()
        training.load(ours, {key: value.clone() for key, value in state.items()})
        assert torch.allclose(ours(image), theirs(image), 1e-4, 1e-4), block
        assert all(torch.allclose(value, state[key], 1e-4, 1e-5) for key, value in training.visible_state(ours).items())
    layers = [8, "M", 16, 16, "M"]
    ours = training.build("vgg", {"layers": layers, "classifier": [8], "classes": 10})
    theirs = models.vgg.make_layers(layers)
    ours.features.load_state_dict(theirs.state_dict())
    assert torch.allclose(ours.features(image), theirs(image), 1e-5, 1e-5)


def inception_has_the_published_kernels(server):
    """Names and shapes of timm's inception_v4 where turning or swapping a convolution would keep all counts."""
    shapes = server.ask({"describe": "inception4", "config": {"classes": 1000}})["parameters"]
    kernels = {
        "3.conv": [96, 64, 3, 3], "4.branch1.1": [64, 64, 1, 7], "4.branch1.2": [64, 64, 7, 1], "5.conv": [192, 192, 3, 3],
        "6.branch2.2": [96, 96, 3, 3], "6.branch3.1": [96, 384, 1, 1], "10.branch0": [384, 384, 3, 3],
        "10.branch1.2": [256, 224, 3, 3], "11.branch1.1": [224, 192, 1, 7], "11.branch1.2": [256, 224, 7, 1],
        "11.branch2.1": [192, 192, 7, 1], "11.branch2.2": [224, 192, 1, 7], "11.branch2.3": [224, 224, 7, 1],
        "17.branch2.4": [256, 224, 1, 7], "18.branch0.1": [192, 192, 3, 3], "18.branch1.1": [256, 256, 1, 7],
        "18.branch1.2": [320, 256, 7, 1], "18.branch1.3": [320, 320, 3, 3], "19.branch1_1a": [256, 384, 1, 3],
        "19.branch1_1b": [256, 384, 3, 1], "21.branch2_1": [448, 384, 3, 1], "21.branch2_2": [512, 448, 1, 3],
        "21.branch2_3a": [256, 512, 1, 3], "21.branch2_3b": [256, 512, 3, 1], "21.branch3.1": [256, 1536, 1, 1],
    }  # fmt: skip
    for name, shape in kernels.items():
        assert shapes[f"features.{name}.conv.weight"] == shape, name


def gpt2_block_is_a_transformer_layer(server):
    """Norm first, gelu by tanh, and a mask over what comes later."""
    model = training.build("gpt2", TEXT)
    ours, twin = model.h[0], transformer_layer(32, lambda x: nn.functional.gelu(x, approximate="tanh"), norm_first=True)
    copy_all(twin.self_attn.in_proj_weight, ours.attn.c_attn.weight, twin.self_attn.in_proj_bias, ours.attn.c_attn.bias)
    copy_layers((twin.self_attn.out_proj, ours.attn.c_proj), (twin.linear1, ours.mlp.c_fc), (twin.linear2, ours.mlp.c_proj))
    shake_norms((twin.norm1, ours.ln_1), (twin.norm2, ours.ln_2))
    x, hidden = torch.randn(3, 6, 8), torch.ones(6, 6, dtype=torch.bool).triu(1)
    assert torch.allclose(ours(x, model.mask), twin(x, hidden), 1e-4, 1e-5)


def bert_layer_is_a_transformer_layer(server):
    """Norm last, exact gelu, everything sees everything."""
    model = training.build("bert", {**TEXT, "intermediate": 16})
    ours, twin = model.encoder["layer"][0], transformer_layer(16, "gelu", norm_first=False)
    queries = ours.attention.self
    parts = (queries.query, queries.key, queries.value)
    copy_all(twin.self_attn.in_proj_weight, torch.cat([part.weight for part in parts]))
    copy_all(twin.self_attn.in_proj_bias, torch.cat([part.bias for part in parts]))
    copy_layers((twin.self_attn.out_proj, ours.attention.output.dense), (twin.linear1, ours.intermediate.dense))
    copy_layers((twin.linear2, ours.output.dense))
    shake_norms((twin.norm1, ours.attention.output.LayerNorm), (twin.norm2, ours.output.LayerNorm))
    x = torch.randn(3, 6, 8)
    assert torch.allclose(ours(x), twin(x), 1e-4, 1e-5)


def transformer_layer(intermediate, activation, norm_first):
    epsilon = 1e-5 if norm_first else 1e-12
    return nn.TransformerEncoderLayer(8, 2, intermediate, 0.0, activation, epsilon, batch_first=True, norm_first=norm_first)


def copy_all(*pairs):
    """Of each two tensors, the first takes the second's values."""
    with torch.no_grad():
        for to, source in zip(pairs[::2], pairs[1::2]):
            to.copy_(source)


def copy_layers(*pairs):
    for to, source in pairs:
        copy_all(to.weight, source.weight, to.bias, source.bias)


def shake_norms(*pairs):
    """Fresh norms are all alike: random ones tell their places apart."""
    for to, source in pairs:
        copy_all(source.weight, torch.randn(8), source.bias, torch.randn(8))
        copy_layers((to, source))


CHECKS = (
    torchvision_has_the_same_names, torchvision_gives_the_same_answers, inception_has_the_published_kernels,
    gpt2_block_is_a_transformer_layer, bert_layer_is_a_transformer_layer,
)  # fmt: skip
