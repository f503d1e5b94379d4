# SPDX-License-Identifier: Apache-2.0
"""DCGAN (Radford et al. 2016), in the shape of the PyTorch example."""
import torch
import torch.nn.functional as F
from torch import nn


class Generator(nn.Module):
    def __init__(self, latent, width, channels, doublings):
        super().__init__()
        layers, fan_in = [], latent
        for i in range(doublings, -1, -1):
            stride, padding = (2, 1) if layers else (1, 0)
            layers.append(nn.ConvTranspose2d(fan_in, width << i, 4, stride, padding, bias=False))
            layers += [nn.BatchNorm2d(width << i), nn.ReLU(inplace=True)]
            fan_in = width << i
        layers += [nn.ConvTranspose2d(width, channels, 4, 2, 1, bias=False), nn.Tanh()]
        self.main = nn.Sequential(*layers)

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    """Answers logits: the sigmoid is part of the loss."""

    def __init__(self, width, channels, doublings):
        super().__init__()
        layers = [nn.Conv2d(channels, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for _ in range(doublings):
            layers.append(nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False))
            width *= 2
            layers += [nn.BatchNorm2d(width), nn.LeakyReLU(0.2, inplace=True)]
        layers.append(nn.Conv2d(width, 1, 4, 1, 0, bias=False))
        self.main = nn.Sequential(*layers)

    def forward(self, image):
        return self.main(image).flatten()


class Dcgan(nn.Module):
    """Takes "image" [N, channels, image, image] and "noise" [N, latent] or [N, latent, 1, 1].

    Names: generator.main.0.weight, generator.main.1.*, generator.main.3.weight, ...; discriminator.main.0.weight,
    discriminator.main.2.weight, discriminator.main.3.*, ...: indices count activations too. image is a power of two,
    at least 8; the paper's is 64.
    """

    inputs = ("image", "noise")

    def __init__(self, latent, width, channels=3, image=64):
        super().__init__()
        doublings = image.bit_length() - 4
        if image < 8 or image & (image - 1):
            raise ValueError(f"dcgan makes images whose side is a power of two from 8 on, not {image}")
        self.generator = Generator(latent, width, channels, doublings)
        self.discriminator = Discriminator(width, channels, doublings)

    def train_step(self, make_optimizer):
        """The function of one training step: both updates, answering [discriminator's loss, generator's loss]."""
        judges, makes = make_optimizer(self.discriminator.parameters()), make_optimizer(self.generator.parameters())

        def step(image, noise):
            fake = self.generator(noise.view(*noise.shape[:2], 1, 1))
            judges.zero_grad(set_to_none=True)
            real_loss = judged(self.discriminator(image), 1.0)
            real_loss.backward()
            fake_loss = judged(self.discriminator(fake.detach()), 0.0)
            fake_loss.backward()
            judges.step()
            makes.zero_grad(set_to_none=True)
            made_loss = judged(self.discriminator(fake), 1.0)
            made_loss.backward()
            makes.step()
            return [(real_loss + fake_loss).item(), made_loss.item()]

        return step


def judged(logits, target):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))
