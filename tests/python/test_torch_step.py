# SPDX-License-Identifier: Apache-2.0
"""A captured step gives eager's losses, weights and optimizer states to the bit, whatever the plan does."""
import copy
import os
import sys
import tempfile
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    sys.exit(77)

import terrace
import terrace.torch
from support import machine, most_runs
from terrace.torch.learning import Store
from terrace.torch.state import is_stand_in
from torch_models import CAPTURED, Branching, ConvNet, Dropped, batch

LOSS = torch.nn.functional.cross_entropy
SGD = (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01})
ADAM = (torch.optim.Adam, {"lr": 0.01})
ADAMW = (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True})
STORE = Store()


class Twins:
    """The same model under plain PyTorch and captured."""

    def __init__(self, test, kind, optimizer=SGD, memory="60%", planner="prefetch", autocast=None, rate=1e9):
        torch.manual_seed(7)
        self.test, self.model, self.autocast = test, kind(), autocast
        self.twin = copy.deepcopy(self.model)
        make, options = optimizer
        self.optimizer, self.twin_optimizer = (make(m.parameters(), **options) for m in (self.model, self.twin))
        folder = tempfile.mkdtemp()
        test.addCleanup(__import__("shutil").rmtree, folder)
        on = machine(os.path.join(folder, "spill"), "16MiB", "16MiB", rate)
        self.step = terrace.torch.Step(
            self.twin, LOSS, self.twin_optimizer, memory, planner=planner, machine=on, store=STORE, autocast=autocast
        )
        test.addCleanup(self.step.close)

    def train(self, steps, samples=8):
        for number in range(steps):
            x, y = batch(number, samples)
            torch.manual_seed(number)
            self.optimizer.zero_grad(set_to_none=True)
            with self.autocast or torch.autocast("cpu", enabled=False):
                loss = LOSS(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            torch.manual_seed(number)
            self.test.assertEqual(loss.item(), self.step(x, y).item(), f"step {number}")

    def compare(self):
        state = self.step.state_dict()
        for name, value in self.model.state_dict().items():
            self.test.assertTrue(torch.equal(value, state["model"][name]), name)
        theirs, ours = self.optimizer.state_dict()["state"], state["optimizer"]["state"]
        self.test.assertEqual(theirs.keys(), ours.keys())
        for parameter, values in theirs.items():
            for name, value in values.items():
                self.test.assertTrue(torch.equal(torch.as_tensor(value), torch.as_tensor(ours[parameter][name])), name)


class Models(unittest.TestCase):
    def test_models_in_little_memory(self):
        for kind in CAPTURED:
            with self.subTest(kind.__name__):
                twins = Twins(self, kind, memory="80%", planner="best")
                twins.train(2)
                self.assertEqual(twins.step.session.kernels.copied_bytes, 0, "results were made where they belong")
                twins.compare()


class Planners(unittest.TestCase):
    def test_planners_that_move_and_recompute(self):
        for planner, rate, runs in (("prefetch", 1e9, 1), ("lru", 1e9, 1), ("sentinel", 1e9, 1), ("best", 1e6, 2)):
            with self.subTest(planner):
                twins = Twins(self, ConvNet, planner=planner, rate=rate)
                twins.train(2)
                self.assertGreater(sum(twins.step.report()["last"]["moved_bytes"].values()), 0)
                self.assertGreaterEqual(most_runs(twins.step.session.plan), runs)
                twins.compare()


class SameBits(unittest.TestCase):
    def test_optimizers(self):
        for optimizer in (ADAM, ADAMW):
            with self.subTest(optimizer[0].__name__):
                twins = Twins(self, ConvNet, optimizer)
                twins.train(3)
                twins.compare()

    def test_autocast(self):
        twins = Twins(self, ConvNet, autocast=torch.autocast("cpu", torch.bfloat16))
        twins.train(2)
        twins.compare()

    def test_state_goes_in_and_out_between_steps(self):
        twins = Twins(self, Dropped, ADAM)
        twins.train(2)
        state = copy.deepcopy(twins.step.state_dict())
        twins.train(1)
        twins.step.load_state_dict(state)
        twins.model.load_state_dict(state["model"])
        twins.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        twins.train(2)
        twins.compare()

    def test_a_batch_of_another_size(self):
        twins = Twins(self, ConvNet)
        twins.train(2)
        twins.train(1, samples=5)
        twins.train(1)
        twins.compare()

    def test_a_learning_rate_that_changes(self):
        twins = Twins(self, ConvNet)
        twins.train(1)
        for optimizer in (twins.optimizer, twins.twin_optimizer):
            optimizer.param_groups[0]["lr"] = 0.01
        twins.train(2)
        twins.compare()


class Refusals(unittest.TestCase):
    def test_a_model_that_looks_at_its_numbers(self):
        with self.assertRaisesRegex(terrace.torch.NotCapturable, "depends on the numbers"):
            Twins(self, Branching).train(1)

    def test_a_step_that_failed_hands_nothing_back(self):
        twins = Twins(self, ConvNet, ADAM)
        twins.train(1)
        state = copy.deepcopy(twins.step.state_dict())
        twins.train(1)

        def failing(*_):
            raise ValueError("once")

        with mock.patch.object(twins.step.session.kernels, "run", failing), self.assertRaisesRegex(ValueError, "once"):
            twins.step(*batch())
        for refused in (twins.step.state_dict, twins.step.close, lambda: twins.step(*batch())):
            with self.assertRaisesRegex(RuntimeError, "a step failed before its end"):
                refused()
        twins.step.load_state_dict(state)
        twins.model.load_state_dict(state["model"])
        twins.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        twins.train(2)
        twins.compare()

    def test_state_stays_where_it_cannot_be_parked(self):
        twins = Twins(self, ConvNet, ADAM)
        twins.train(1)
        with mock.patch("terrace.torch.state.Parked.__init__", side_effect=OSError("full")), self.assertRaises(OSError):
            twins.step.close()
        twins.step.close()
        with mock.patch("terrace.torch.state.Parked.__init__", side_effect=OSError("full")), self.assertRaises(OSError):
            twins.step(*batch())
        self.assertTrue(all(twins.twin_optimizer.state[parameter] for parameter in twins.twin.parameters()))
        twins.train(1)
        twins.compare()

    def test_less_than_the_least(self):
        twins = Twins(self, ConvNet, memory="1%")
        with self.assertRaises(terrace.NoRoom):
            twins.step(*batch())
        self.assertFalse(any(is_stand_in(parameter) for parameter in twins.twin.parameters()), "the model is as it was")

    def test_less_than_the_process(self):
        twins = Twins(self, ConvNet, memory="1MiB")
        with self.assertRaisesRegex(terrace.NoRoom, "beside the step.s tensors"):
            twins.step(*batch())


if __name__ == "__main__":
    unittest.main()
