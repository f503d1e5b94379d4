# SPDX-License-Identifier: Apache-2.0
"""Trains torchvision's resnet50 in a fifth of the memory that its steps take: python3 examples/torch_resnet50.py"""
import torch, torchvision
import terrace.torch

model = torchvision.models.resnet50()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loss_of = torch.nn.functional.cross_entropy
step = terrace.torch.Step(model, loss_of, optimizer, memory="20%", verbose=True)
images, labels = torch.randn(32, 3, 224, 224), torch.randint(0, 1000, (32,))
for number in range(5):
    loss = step(images, labels)
    print(f"step {number}: loss {loss.item():.4f}", flush=True)
step.close()  # the model has its weights again
