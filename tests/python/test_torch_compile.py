# SPDX-License-Identifier: Apache-2.0
"""torch.compile with backend="terrace": what is saved and what is computed again comes from a plan. Needs PyTorch 2."""
import os
import shutil
import sys
import tempfile
import unittest
import warnings
from importlib.metadata import entry_points
from unittest import mock

try:
    import torch
except ImportError:
    sys.exit(77)
if not hasattr(torch, "compile"):
    sys.exit(77)

from support import machine
from terrace.torch import compiled, moving
from torch_models import ConvNet, Dropped

LOSS = torch.nn.functional.mse_loss
WIDTH, ROWS = 64, 512


def deep():
    """Layers whose activations take most of the memory."""
    torch.manual_seed(3)
    layers = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.LayerNorm(WIDTH)) for _ in range(6)]
    return torch.nn.Sequential(*layers)


def rows():
    torch.manual_seed(4)
    return torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)


def images():
    torch.manual_seed(4)
    return torch.randn(64, 3, 16, 16), torch.randn(64, 10)


def trained(model, x, y, steps=2):
    """Losses, gradients of the last step, and buffers."""
    losses = []
    for step in range(steps):
        torch.manual_seed(step)
        model.zero_grad(set_to_none=True)
        loss = LOSS(model(x), y)
        loss.backward()
        losses.append(loss.item())
    return losses, [each.grad for each in model.parameters()], list(model.buffers())


def most_bytes(work):
    """Of tensors that PyTorch allocates at once while it works, beside those that were there."""
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        work()
    now = most = 0
    for event in profile.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most


def same(left, right):
    return left[0] == right[0] and all(torch.equal(a, b) for ours, theirs in zip(left[1:], right[1:]) for a, b in zip(ours, theirs))


class Compiled(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        self.told = []

    def compiled(self, model, memory, kernels="eager", **options):
        options = {"memory": memory, "kernels": kernels, "tell": lambda *told: self.told.append(told), **options}
        return torch.compile(model, backend=compiled.backend, options=options)

    def facts(self):
        self.assertEqual(len(self.told), 1, self.told)
        return self.told[0][1]


class Budgets(Compiled):
    def test_less_is_saved_and_the_bits_are_those_of_the_same_kernels(self):
        plain = torch.compile(deep(), backend="aot_eager")
        expected, whole = trained(plain, *rows()), most_bytes(lambda: trained(plain, *rows(), steps=1))
        for share, recomputes in (("100%", False), ("60%", True), ("45%", True)):
            with self.subTest(share):
                self.setUp()
                model = self.compiled(deep(), share, move=False)
                self.assertTrue(same(trained(model, *rows()), expected))
                facts = self.facts()
                self.assertEqual(facts["recomputed"] > 0, recomputes)
                most = most_bytes(lambda: trained(model, *rows(), steps=1))
                loss = 4 * ROWS * WIDTH * 4  # what the program's loss takes is in the plan as an estimate
                self.assertLess(most, facts["budget_bytes"] + loss)
                if recomputes:
                    self.assertLess(most, whole)

    def test_statistics_change_once_and_random_numbers_are_drawn_once(self):
        for model in (ConvNet, Dropped):
            with self.subTest(model.__name__):
                self.setUp()
                torch.manual_seed(1)
                plain = torch.compile(model(), backend="aot_eager")
                expected = trained(plain, *images())
                torch._dynamo.reset()
                torch.manual_seed(1)
                fitted = self.compiled(model(), "70%", move=False)
                self.assertTrue(same(trained(fitted, *images()), expected))
                self.assertGreater(self.facts()["recomputed"], 0)

    def test_an_amount_counts_weights_and_what_optimizers_will_keep(self):
        model = deep()
        optimizer = torch.optim.Adam(model.parameters())
        weights = sum(each.numel() * each.element_size() for each in model.parameters())
        taken = compiled.taken_on(torch.device("cpu"))
        self.assertGreaterEqual(taken, 3 * weights)
        del optimizer
        fitted = self.compiled(model, taken + (3 << 20))
        trained(fitted, *rows())
        self.assertLessEqual(self.facts()["budget_bytes"], 4 << 20)

    @unittest.skipUnless(entry_points(group="torch_dynamo_backends", name="terrace"), "the package is not installed")
    def test_an_installed_package_is_known_by_name(self):
        model = torch.compile(deep(), backend="terrace", options={"memory": "60%", "kernels": "eager", "verbose": False})
        self.assertEqual(len(trained(model, *rows())[0]), 2)

    def test_evaluation_is_compiled_without_a_plan(self):
        model = self.compiled(deep().eval(), "50%")
        with torch.no_grad():
            self.assertEqual(model(rows()[0]).shape, (ROWS, WIDTH))
        self.assertEqual(self.told, [])


class Moves(Compiled):
    """With a planner that computes nothing again, what does not fit goes to a disk."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def moving(self, kernels="eager", share="60%"):
        on = machine(os.path.join(self.folder, "planned"), "16MiB", "16MiB")
        return self.compiled(deep(), share, kernels, planner="prefetch", machine=on, disk=self.folder)

    def test_tensors_go_to_disk_and_come_back_with_the_same_bits(self):
        plain = torch.compile(deep(), backend="aot_eager")
        expected, whole = trained(plain, *rows()), most_bytes(lambda: trained(plain, *rows(), steps=1))
        torch._dynamo.reset()
        model = self.moving()
        self.assertTrue(same(trained(model, *rows()), expected))
        facts = self.facts()
        self.assertGreater(facts["slow_bytes"], 0)
        self.assertEqual(facts["recomputed"], 0)
        self.assertLess(most_bytes(lambda: trained(model, *rows(), steps=1)), whole)
        self.assertEqual(len(moving._entries), 0)
        self.assertEqual(os.listdir(self.folder), [])

    def test_two_calls_before_their_backward_passes_and_one_without(self):
        model, plain = self.moving(), deep()
        (x, y), losses = rows(), []
        model(x)  # what it has sent is dropped with its graph
        for half in (x, 2 * x):
            losses.append([LOSS(each(half), y) for each in (model, plain)])
        for ours, theirs in losses:
            ours.backward()
            theirs.backward()
        for ours, theirs in zip(model.parameters(), plain.parameters()):
            torch.testing.assert_close(ours.grad, theirs.grad)
        del losses, ours, theirs
        self.assertEqual(len(moving._entries), 0)

    def test_planned_alone_nothing_is_moved(self):
        model = self.compiled(deep(), "60%", move=False)
        trained(model, *rows())
        self.assertEqual(self.facts()["slow_bytes"], 0)


@unittest.skipUnless(shutil.which("g++"), "Inductor needs a C++ compiler")
class Inductor(Compiled):
    def test_its_kernels_run_within_the_plan(self):
        plain = torch.compile(deep(), backend="inductor")
        expected = trained(plain, *rows())
        model = self.compiled(deep(), "50%", kernels="inductor", move=False)
        losses, gradients, _ = trained(model, *rows())
        self.assertEqual(self.facts()["kernels"], "kernels by Inductor")
        self.assertGreater(self.facts()["recomputed"], 0)
        self.assertEqual(losses, expected[0])
        for ours, theirs in zip(gradients, expected[1]):
            torch.testing.assert_close(ours, theirs)

    def test_moved_tensors_pass_through_its_kernels(self):
        expected = trained(deep(), *rows())
        with tempfile.TemporaryDirectory() as folder:
            on = machine(os.path.join(folder, "planned"), "16MiB", "16MiB")
            model = self.compiled(deep(), "60%", "inductor", planner="prefetch", machine=on, disk=folder)
            _, gradients, _ = trained(model, *rows())
            self.assertGreater(self.facts()["slow_bytes"], 0)
            for ours, theirs in zip(gradients, expected[1]):
                torch.testing.assert_close(ours, theirs)


class Refusals(Compiled):
    def refused(self, memory="50%", x=None, **options):
        with warnings.catch_warnings(), self.assertRaises(Exception) as raised:
            warnings.simplefilter("ignore")
            trained(self.compiled(deep(), memory, **options), *(x or rows()))
        return str(raised.exception)

    def test_each_is_one_sentence(self):
        self.assertIn("memory='lots' is no amount of memory", self.refused("lots"))
        self.assertIn("'colour' is none of them", self.refused(colour="blue"))
        self.assertIn("is neither 'inductor' nor 'eager'", self.refused(kernels="mine"))
        self.assertIn("beside the compiled graph: give more", self.refused(1024))
        self.assertIn("are missing: give at least", self.refused("2%"))
        with self.assertRaisesRegex(Exception, "wants options={'memory'"):
            torch.compile(deep(), backend=compiled.backend)(rows()[0])

    def test_no_compiler_is_said(self):
        with mock.patch.object(compiled.shutil, "which", return_value=None):
            model = self.compiled(deep(), "60%", kernels=None)
            trained(model, *rows())
        self.assertIn("PyTorch's own kernels, for there is no C++ compiler", self.told[0][0])

    def test_sizes_that_are_not_fixed_are_left_to_pytorch(self):
        model = deep()
        fitted = torch.compile(model, backend=compiled.backend, dynamic=True, options={"memory": "50%", "kernels": "eager", "tell": lambda *told: self.told.append(told)})
        expected = trained(model, *rows())
        self.assertTrue(same(trained(fitted, *rows()), expected))
        self.assertIn("compile with dynamic=False", self.told[0][0])


if __name__ == "__main__":
    unittest.main()
