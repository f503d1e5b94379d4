#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch at its best: a training program that does one step whenever it is told to.

  rival.py --model resnet50 --batch 16 --layout channels_last --threads 2

It prints {"ready": true, "parameters": N}, then obeys lines on standard input:
  step     one training step -> {"seconds": S, "loss": L, "page_faults": F}
  memory   -> {"peak_rss_bytes": N}
  quit     ends (so does the end of the input)
Bad options end it with status 2 and one sentence. Steps are fp32 on synthetic data made once; the first ones are slower
(memory grows, oneDNN compiles its kernels), so leave out three.

A fair run needs an environment, which must be there before Python starts:
  a fast BLAS              Debian's python3-torch is content with libblas3, whose products run at 1.6 GFLOP/s. Install
                           libopenblas0-pthread; this program refuses to run without one.
  OPENBLAS_CORETYPE=SkylakeX        where OpenBLAS 0.3.21 does not know the processor (anything newer than Ice Lake), it
                           falls back to a kernel several times slower. Harmless on any processor with AVX-512.
  OPENBLAS_NUM_THREADS, OMP_NUM_THREADS   the value of --threads: OpenBLAS does not hear of torch.set_num_threads.
  MALLOC_MMAP_THRESHOLD_=1000000000000 MALLOC_TRIM_THRESHOLD_=1000000000000 MALLOC_TOP_PAD_=67108864
                           else glibc gives every large tensor back to the system and faults it in again each step.
                           It worked where page_faults falls to near zero after the first steps.
"""
import argparse
import json
import os
import resource
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "torch"))
sys.dont_write_bytecode = True

import torch
import torchvision
from torch.nn import functional

from contenders import WAYS
from models import Gpt2, Lstm, MobileNet

# Small, so that one batch seen again and again is not learned to the end: vanishing gradients are slow denormals.
LEARNING_RATE = 0.001
FAST_BLAS = ("openblas", "mkl", "blis", "atlas")


class Images:
    """A network on 224x224 images with 1000 classes, trained by SGD with momentum."""

    def __init__(self, network, options):
        layout = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
        self.network = network.to(memory_format=layout)
        self.image = torch.randn(options.batch, 3, 224, 224).to(memory_format=layout)
        self.label = torch.randint(0, 1000, (options.batch,))
        self.optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=0.9)

        self.batch, self.criterion = (self.image, self.label), functional.cross_entropy

    def loss(self):
        return functional.cross_entropy(self.network(self.image), self.label)


class WithLoss(torch.nn.Module):
    """A language model that returns its loss, as most implementations of them do."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, tokens, target):
        return self.network.loss(tokens, target)


class Tokens:
    """A language model of the reference's (tests/torch/models), on random tokens of the given shape."""

    def __init__(self, network, vocab, shape, optimizer):
        self.network = WithLoss(network)
        self.batch = tuple(torch.randint(0, vocab, shape) for _ in range(2))
        self.optimizer, self.criterion = optimizer, None

    def loss(self):
        return self.network(*self.batch)


def gpt2(options):
    """GPT-2 small, with its initial weights: PyTorch's own embeddings are too large for a tied head."""
    length = options.sequence or 256
    network = Gpt2(50257, max(1024, length), 768, 12, 12, options.dropout)
    for name, parameter in network.named_parameters():
        if name.endswith("weight") and ".ln_" not in name and not name.startswith("ln_"):
            torch.nn.init.normal_(parameter, std=0.02)
    return Tokens(network, 50257, (options.batch, length), torch.optim.Adam(network.parameters(), lr=1e-4))


def lstm(options):
    """The medium network of Zaremba et al. 2014."""
    network = Lstm(10000, 650, 2, options.dropout)
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    shape = (options.sequence or 35, options.batch)
    return Tokens(network, 10000, shape, torch.optim.SGD(learned, lr=LEARNING_RATE, momentum=0.9))


IMAGE_NETWORKS = {
    "resnet50": lambda options: torchvision.models.resnet50(),
    "resnet152": lambda options: torchvision.models.resnet152(),
    "vgg16": lambda options: torchvision.models.vgg16(dropout=options.dropout),
    "mobilenet": lambda options: MobileNet(),
}
TOKEN_NETWORKS = {"gpt2": gpt2, "lstm": lstm}


def training_of(options):
    torch.manual_seed(1)
    if options.model in IMAGE_NETWORKS:
        return Images(IMAGE_NETWORKS[options.model](options).train(), options)
    return TOKEN_NETWORKS[options.model](options)


def step(training):
    faults, started = page_faults(), time.perf_counter()
    value = training.way.step()
    return {"seconds": time.perf_counter() - started, "loss": value, "page_faults": page_faults() - faults}


def memory(training):
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("VmHWM:")]
    return {"peak_rss_bytes": 1024 * int(line.split()[1]), **training.way.facts()}


COMMANDS = {"step": step, "memory": memory}


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def has_fast_blas():
    with open("/proc/self/maps") as maps:
        return any(name in os.path.basename(line.split()[-1]) for line in maps for name in FAST_BLAS)


def parse_options():
    parser = argparse.ArgumentParser(description="PyTorch, one training step per line of input")
    parser.add_argument("--model", required=True, choices=[*IMAGE_NETWORKS, *TOKEN_NETWORKS])
    parser.add_argument("--batch", required=True, type=int)
    parser.add_argument("--layout", default="nchw", choices=["nchw", "channels_last"], help="of images and weights")
    parser.add_argument("--threads", default=2, type=int)
    parser.add_argument("--sequence", type=int, help="tokens per sample; 256 for gpt2 and 35 for lstm unless given")
    parser.add_argument("--dropout", default=0.0, type=float, help="of vgg16, gpt2 and lstm")
    parser.add_argument("--way", default="plain", choices=WAYS, help="to train in less memory: contenders.py")
    parser.add_argument("--memory", help="of our ways, such as 2GiB")
    parser.add_argument("--disk", help="the folder of --way hooks and of our ways")
    options = parser.parse_args()
    if options.way not in ("plain", "hooks") and not options.memory:
        parser.error(f"--way {options.way} wants --memory")
    if options.layout == "channels_last" and options.model in TOKEN_NETWORKS:
        parser.error(f"{options.model} has no images: leave --layout out")
    if options.sequence and options.model in IMAGE_NETWORKS:
        parser.error(f"{options.model} takes images: leave --sequence out")
    if not has_fast_blas():
        parser.error("torch runs on the reference BLAS, which no comparison should: install libopenblas0-pthread")
    return options


def say(reply):
    print(json.dumps(reply), flush=True)


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    training = training_of(options)
    training.way = WAYS[options.way](training, options)
    say({"ready": True, "parameters": sum(parameter.numel() for parameter in training.optimizer.param_groups[0]["params"])})
    for line in sys.stdin:
        command = line.strip()
        if command == "quit":
            return
        if command in COMMANDS:
            say(COMMANDS[command](training))
        elif command:
            say({"error": f"unknown command '{command}': use {', '.join(COMMANDS)} or quit"})


if __name__ == "__main__":
    main()
