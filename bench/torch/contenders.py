# SPDX-License-Identifier: Apache-2.0
"""Ways to train a network in less memory than it takes, for rival.py.

plain           as it is
hooks           what a user writes in ten lines: every tensor saved for backward that is large and no weight goes to a raw file
                at once and is read when it is wanted, past the page cache, which is the fastest of such hooks
fit             terrace.torch.fit of the model, within --memory
fit-optimizer   the same of the model and its optimizer, so that weights and optimizer states move, too
step            terrace.torch.Step, within --memory: one call for the whole step
"""
import ctypes
import mmap
import os
import tempfile

import torch

SMALL = 64 << 10
BLOCK = 4096


class SynchronousHooks:
    """Writes and reads by O_DIRECT from one aligned buffer, each tensor in a place of its own in one file."""

    def __init__(self, folder, weights):
        self.file = os.open(os.path.join(folder, f"hooks-{os.getpid()}"), os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
        os.unlink(os.path.join(folder, f"hooks-{os.getpid()}"))
        self.weights = {weight.data_ptr() for weight in weights}
        self.end = 0
        self.buffer = mmap.mmap(-1, 256 << 20)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.buffer))

    def pack(self, tensor):
        count = tensor.numel() * tensor.element_size()
        if count < SMALL or tensor.data_ptr() in self.weights or count > len(self.buffer) or not tensor.is_floating_point():
            return tensor
        dense = tensor if tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last) else tensor.contiguous()
        ctypes.memmove(self.address, dense.data_ptr(), count)
        padded = (count + BLOCK - 1) // BLOCK * BLOCK
        offset, self.end = self.end, self.end + padded
        done = os.pwrite(self.file, memoryview(self.buffer)[:padded], offset)
        assert done == padded
        return offset, count, padded, tensor.dtype, dense.size(), dense.stride()

    def unpack(self, kept):
        if isinstance(kept, torch.Tensor):
            return kept
        offset, count, padded, dtype, size, stride = kept
        done = os.preadv(self.file, [memoryview(self.buffer)[:padded]], offset)
        assert done == padded
        tensor = torch.empty_strided(size, stride, dtype=dtype)
        ctypes.memmove(tensor.data_ptr(), self.address, count)
        return tensor

    def next_step(self):
        self.end = 0


class Plain:
    def __init__(self, training, options):
        self.training = training

    def loss(self):
        return self.training.loss()

    def step(self):
        """Trains on the batch once; returns the loss."""
        self.training.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        self.training.optimizer.step()
        return loss.item()

    def facts(self):
        return {}


class ByHooks(Plain):
    def __init__(self, training, options):
        super().__init__(training, options)
        self.hooks = SynchronousHooks(options.disk or tempfile.gettempdir(), training.network.parameters())

    def loss(self):
        self.hooks.next_step()
        with torch.autograd.graph.saved_tensors_hooks(self.hooks.pack, self.hooks.unpack):
            return self.training.loss()


class ByFit(Plain):
    def __init__(self, training, options):
        super().__init__(training, options)
        import terrace.torch
        self.terrace = terrace.torch
        terrace.torch.fit(training.network, options.memory, optimizer=self.optimizer_of(training), disk=options.disk)

    def optimizer_of(self, training):
        return None

    def facts(self):
        report = self.terrace.report(self.training.network)
        report.pop("record", None)
        return {"report": report}


class ByFitWithOptimizer(ByFit):
    def optimizer_of(self, training):
        return training.optimizer


class ByStep(Plain):
    def __init__(self, training, options):
        super().__init__(training, options)
        import terrace.torch
        given = training.network, training.criterion, training.optimizer, options.memory
        self.captured = terrace.torch.Step(*given, disk=options.disk)

    def step(self):
        return self.captured(*self.training.batch).item()

    def facts(self):
        report = self.captured.report()
        report.pop("record", None)
        return {"report": report}


WAYS = {"plain": Plain, "hooks": ByHooks, "fit": ByFit, "fit-optimizer": ByFitWithOptimizer, "step": ByStep}
