# SPDX-License-Identifier: Apache-2.0
"""Trains torchvision's resnet50 in a fifth of the memory that it takes: python3 examples/torch_resnet50.py"""
import torch, torchvision
import terrace.torch

model = torchvision.models.resnet50()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
model = terrace.torch.fit(model, memory="20%", optimizer=optimizer)
images, labels = torch.randn(32, 3, 224, 224), torch.randint(0, 1000, (32,))
for number in range(5):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"step {number}: loss {loss.item():.4f}", flush=True)
