# SPDX-License-Identifier: Apache-2.0
"""What the self-test asks: every op with small random operands, every model in a small size, and published sizes."""
import torch

torch.manual_seed(11)
r = torch.randn


def integers(top, *shape):
    return torch.randint(0, top, shape)


CONV = {"kernel": [3, 2], "stride": [2, 1], "padding": [1, 0], "dilation": [1, 2], "groups": 1}
POOL = {"kernel": [3, 2], "stride": [2, 1], "padding": [1, 0]}

# (op, attributes, operands)
OP_CASES = [
    ("conv2d", CONV, [r(2, 4, 7, 8), r(6, 4, 3, 2), r(6)]),
    ("conv2d", {**CONV, "groups": 2}, [r(2, 4, 7, 8), r(6, 2, 3, 2)]),
    ("conv_transpose2d", CONV, [r(2, 4, 5, 6), r(4, 6, 3, 2), r(6)]),
    ("conv_transpose2d", {**CONV, "groups": 2}, [r(2, 4, 5, 6), r(4, 3, 3, 2)]),
    ("linear", {}, [r(5, 4), r(3, 4), r(3)]),
    ("linear", {}, [r(5, 4), r(3, 4)]),
    ("matmul", {"transpose_a": False, "transpose_b": True, "scale": 0.5}, [r(2, 3, 4), r(2, 5, 4)]),
    ("matmul", {"transpose_a": True, "transpose_b": False, "scale": 1.0}, [r(2, 4, 3), r(2, 4, 5)]),
    ("max_pool2d", POOL, [r(2, 3, 7, 8)]),
    ("avg_pool2d", {**POOL, "include_padding": True}, [r(2, 3, 7, 8)]),
    ("avg_pool2d", {**POOL, "include_padding": False}, [r(2, 3, 7, 8)]),
    ("batch_norm", {"epsilon": 1e-3, "momentum": 0.1, "relu": False}, [r(4, 3, 5, 5), r(3), r(3), r(3), r(3).abs()]),
    ("batch_norm", {"epsilon": 1e-5, "momentum": 0.3, "relu": True}, [r(4, 3, 5, 5), r(3), r(3), r(3), r(3).abs()]),
    ("batch_norm_inference", {"epsilon": 1e-3, "momentum": 0.1, "relu": True}, [r(4, 3, 5, 5), r(3), r(3), r(3), r(3).abs()]),
    ("layer_norm", {"epsilon": 1e-5}, [r(5, 8), r(8), r(8)]),
    ("softmax", {"scale": 0.3, "causal": True}, [r(2, 3, 4, 4)]),
    ("softmax", {"scale": 1.0, "causal": False}, [r(3, 5)]),
    ("relu", {}, [r(3, 5)]),
    ("leaky_relu", {"slope": 0.2}, [r(3, 5)]),
    ("gelu", {"approximate": "tanh"}, [r(3, 5)]),
    ("gelu", {"approximate": "none"}, [r(3, 5)]),
    ("tanh", {}, [r(3, 5)]),
    ("sigmoid", {}, [r(3, 5)]),
    ("add", {"relu": True}, [r(3, 5), r(3, 5)]),
    ("add", {"relu": False}, [r(3, 5), r(3, 5)]),
    ("mul", {}, [r(3, 5), r(3, 5)]),
    ("concat", {"axis": 1}, [r(2, 3, 4), r(2, 1, 4), r(2, 2, 4)]),
    ("split_heads", {"parts": 3, "heads": 2}, [r(2, 5, 24)]),
    ("merge_heads", {"parts": 1, "heads": 2}, [r(2, 2, 5, 4)]),
    ("merge_heads", {"parts": 3, "heads": 2}, [r(2, 2, 5, 4), r(2, 2, 5, 4), r(2, 2, 5, 4)]),
    ("embedding", {}, [r(7, 4), integers(7, 2, 5)]),
    ("lstm", {"hidden": 4}, [r(5, 2, 3), r(16, 3), r(16, 4), r(16)]),
    ("cross_entropy", {}, [r(4, 6), torch.tensor([2, -100, 0, 5])]),
    ("binary_cross_entropy", {"target": 1.0}, [r(6)]),
    ("binary_cross_entropy", {"target": 0.0}, [r(6, 1)]),
]


def images(side, channels=3):
    return {"image": r(4, channels, side, side), "label": integers(5, 4)}


def sentences(*shape):
    return {"tokens": integers(20, *shape), "target": integers(20, *shape)}


def masked(*shape):
    """Only the first two places of each sentence are asked for."""
    batch = sentences(*shape)
    batch["target"][:, 2:] = -100
    return batch


TEXT = {"vocab": 20, "positions": 6, "hidden": 8, "layers": 2, "heads": 2}

# (model, config, one batch)
MODEL_CASES = [
    ("mlp", {"sizes": [12, 8, 8, 5]}, {"image": r(4, 3, 2, 2), "label": integers(5, 4)}),
    ("convnet", {"channels": [4, 8], "classes": 5}, images(8)),
    ("convnet", {"channels": [4, 8], "classes": 5, "image": [8, 8], "input_channels": 1}, images(8, 1)),
    ("resnet", {"block": "basic", "layers": [1, 2, 1], "classes": 5, "width": 4, "small_input": True}, images(8)),
    ("resnet", {"block": "bottleneck", "layers": [2, 1], "classes": 5, "width": 4}, images(32)),
    ("vgg", {"layers": [4, "M", 8, 8, "M"], "classifier": [16, 16], "classes": 5, "pool": 2}, images(8)),
    ("densenet", {"growth": 4, "blocks": [2, 2], "initial": 8, "classes": 5}, images(32)),
    ("mobilenet", {"width": 0.125, "classes": 5}, images(64)),
    ("inception4", {"divisor": 16, "blocks": [1, 1, 1], "classes": 5}, images(95)),
    ("lstm", {"vocab": 20, "hidden": 8, "layers": 2}, sentences(6, 4)),
    ("bert", {**TEXT, "intermediate": 16, "token_types": 1}, masked(4, 6)),
    ("gpt2", TEXT, sentences(4, 6)),
    ("dcgan", {"latent": 6, "width": 4, "channels": 3, "image": 16}, {"image": r(4, 3, 16, 16), "noise": r(4, 6)}),
    ("dcgan", {"latent": 6, "width": 4}, {"image": r(4, 3, 64, 64), "noise": r(4, 6, 1, 1)}),
]

VGG16 = [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"]
BERT_LARGE = {"vocab": 30522, "positions": 512, "hidden": 1024, "layers": 24, "heads": 16, "intermediate": 4096}

# (model, config, parameters as published)
SIZES = [
    ("resnet", {"block": "bottleneck", "layers": [3, 4, 6, 3], "classes": 1000}, 25_557_032),
    ("resnet", {"block": "basic", "layers": [2, 2, 2, 2], "classes": 10}, 11_181_642),
    ("vgg", {"layers": VGG16, "classifier": [4096, 4096], "classes": 1000}, 138_357_544),
    ("densenet", {"growth": 32, "blocks": [6, 12, 24, 16], "initial": 64, "classes": 1000}, 7_978_856),
    ("mobilenet", {}, 4_231_976),
    ("inception4", {"classes": 1000}, 42_679_816),
    ("gpt2", {"vocab": 50257, "positions": 1024, "hidden": 768, "layers": 12, "heads": 12}, 124_439_808),
    ("bert", BERT_LARGE, 335_174_458),
    ("dcgan", {"latent": 100, "width": 64}, 3_576_704 + 2_765_568),
]
