# SPDX-License-Identifier: Apache-2.0
"""A captured model on a device: a fake one, whose adversary runs what was issued in any order that queues and events allow, and
who fails a step in which the order was left to chance."""
import copy
import os
import shutil
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    sys.exit(77)

import terrace
import terrace.torch
from support import most_runs
from terrace.torch.capture import Capture
from terrace.torch.devices import device_of
from test_torch_capture import LOSS, STORE, Twins
from torch_models import ConvNet, Dropped, batch


def device_machine(slow, rate=1e9):
    """A fake device before the computer's memory, or a disk."""
    rates = [{"size": 65536, "rate": rate}]
    granularity = 4096 if slow.startswith("file") else 256
    return {
        "format": "terrace-machine", "version": 1, "name": "test",
        "compute": {"name": "test", "threads": 1, "flops_per_second": 1e9},
        "tiers": [
            {"name": "device", "capacity": "16MiB", "read": 1e10, "write": 1e10, "granularity": granularity, "spec": "fake:16MiB,device"},
            {"name": "slow", "capacity": "16MiB", "addressable": False, "read": 1e9, "write": 1e9, "granularity": granularity, "spec": slow},
        ],
        "links": [{"from": "device", "to": "slow", "rates": rates}, {"from": "slow", "to": "device", "rates": rates}],
    }  # fmt: skip


class OnADevice(unittest.TestCase):
    def twins(self, kind, slow="dram:16MiB", planner="prefetch", rate=1e9, optimizer=None, memory="70%"):
        twins = Twins(self, kind, planner=planner, rate=rate, optimizer=optimizer)
        twins.capture.remove()
        twins.capture = Capture(
            twins.fitted, memory, planner, machine=device_machine(slow, rate), store=STORE,
            optimizer=twins.optimizers[1] if optimizer else None,
        )  # fmt: skip
        self.addCleanup(twins.capture.remove)
        return twins

    def test_steps_that_move_and_recompute_give_eagers_bits(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        for slow, planner, rate, runs in (
            ("dram:16MiB", "prefetch", 1e9, 1), (f"file:{folder}/spill:16MiB,buffered", "prefetch", 1e9, 1), ("dram:16MiB", "best", 1e6, 2),
        ):  # fmt: skip
            with self.subTest(f"{slow} {planner}"):
                twins = self.twins(ConvNet, slow, planner, rate)
                twins.train(3)
                twins.compare()
                self.assertEqual((twins.capture.steps, twins.capture.plain_calls), (3, 0))
                (form,) = twins.capture._forms.values()
                self.assertGreaterEqual(most_runs(form.plan), runs)
                if runs == 1:
                    self.assertGreater(sum(form.session.executor.result()["moved_bytes"].values()), 0)

    def test_random_numbers_are_drawn_once_and_in_order(self):
        twins = self.twins(Dropped, memory="90%")
        twins.train(3)
        twins.compare()

    def test_weights_and_states_move_too(self):
        twins = self.twins(ConvNet, optimizer=(torch.optim.Adam, {"lr": 0.01}))
        twins.train(3)
        twins.compare_states()

    def test_a_kernel_that_fails_ends_the_step_and_the_next_one_is_whole(self):
        twins = self.twins(ConvNet)
        twins.train(1)
        (form,) = twins.capture._forms.values()
        run, calls = form.session.kernels.run, []

        def fails_once(kernel, addresses):
            calls.append(kernel)
            if len(calls) == 3:
                raise RuntimeError("a kernel that fails")
            run(kernel, addresses)

        form.session.kernels.run = fails_once
        x, y = batch(1)
        with self.assertRaisesRegex(RuntimeError, "a kernel that fails"):
            LOSS(twins.fitted(x), y).backward()
        self.assertEqual(len(calls), 3)
        twins.optimizers[1].zero_grad(set_to_none=True)
        twins.capture.plain_calls = 0
        self.addCleanup(setattr, form.session.kernels, "run", run)
        twins.train(2)


@unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
class OnAGpu(unittest.TestCase):
    """Cuda: the same with PyTorch's kernels on its own device."""

    def test_steps_give_eagers_bits(self):
        os.environ["TERRACE_TRY_CUDA"] = "1"
        torch.backends.cudnn.deterministic = True
        for memory, optimized in (("70%", False), ("70%", True)):
            with self.subTest(f"{memory} {optimized}"):
                torch.manual_seed(3)
                plain = ConvNet().cuda()
                fitted = copy.deepcopy(plain)
                optimizers = [torch.optim.Adam(model.parameters(), lr=0.01) for model in (plain, fitted)]
                terrace.torch.fit(fitted, memory, optimizer=optimizers[1] if optimized else None, way="capture")
                self.addCleanup(terrace.torch.unfit, fitted)
                for number in range(3):
                    x, y = (each.cuda() for each in batch(number))
                    losses = []
                    for model, optimizer in zip((plain, fitted), optimizers):
                        optimizer.zero_grad(set_to_none=True)
                        loss = LOSS(model(x), y)
                        loss.backward()
                        optimizer.step()
                        losses.append(loss.item())
                    self.assertEqual(*losses)
                for (name, left), right in zip(plain.state_dict().items(), fitted.state_dict().values()):
                    self.assertTrue(torch.equal(left, right), name)


class Refusals(unittest.TestCase):
    def test_a_gpu_that_is_not_there_is_one_sentence(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        with self.assertRaises(terrace.Error) as raised:
            terrace.machine("cuda:0:1GiB", slow=["pinned:1GiB"])
        self.assertTrue(str(raised.exception).startswith("cuda:0:"), raised.exception)

    def test_a_model_in_memory_is_the_hosts(self):
        self.assertEqual(device_of(torch.nn.Linear(2, 2)).device.type, "cpu")
        self.assertEqual(device_of(torch.nn.ReLU()).device.type, "cpu")


if __name__ == "__main__":
    unittest.main()
