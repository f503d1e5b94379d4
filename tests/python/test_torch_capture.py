# SPDX-License-Identifier: Apache-2.0
"""A fitted model in a program that does not change: eager's losses, gradients and weights to the bit."""
import copy
import os
import random
import shutil
import sys
import tempfile
import threading
import unittest
from unittest import mock

try:
    import torch
except ImportError:
    sys.exit(77)

import terrace.torch
from support import machine, most_runs
from terrace.torch.capture import Capture, _Step
from terrace.torch.forward import trace_model
from terrace.torch.graph import Call
from terrace.torch.learning import Store
from terrace.torch.recording import NotCapturable
from torch_models import (
    CAPTURED, Averaging, Branching, ConvNet, Counting, Drawing, Dropped, Failing, Keeping, Overwriting, Replacing, Steered,
    TwoHeads, batch,
)  # fmt: skip

LOSS = torch.nn.functional.cross_entropy
STORE = Store()


class Twins:
    def __init__(self, test, kind, memory="70%", planner="prefetch", rate=1e9):
        torch.manual_seed(3)
        self.test, self.plain = test, kind()
        self.fitted = copy.deepcopy(self.plain)
        folder = tempfile.mkdtemp()
        test.addCleanup(shutil.rmtree, folder)
        on = machine(os.path.join(folder, "spill"), "16MiB", "16MiB", rate)
        self.capture = Capture(self.fitted, memory, planner, machine=on, store=STORE)
        test.addCleanup(self.capture.remove)
        self.optimizers = [torch.optim.Adam(model.parameters(), lr=0.01) for model in (self.plain, self.fitted)]

    def both(self, work):
        """Does the same with both models; their numbers must be the same."""
        results = []
        for model, optimizer in zip((self.plain, self.fitted), self.optimizers):
            torch.manual_seed(11)
            results.append(work(model, optimizer))
        self.test.assertEqual(*results)

    def train(self, steps):
        for number in range(steps):
            x, y = batch(number)

            def step(model, optimizer):
                optimizer.zero_grad(set_to_none=True)
                loss = LOSS(model(x), y)
                loss.backward()
                optimizer.step()
                return loss.item()

            self.both(step)

    def compare(self):
        for (name, left), right in zip(self.plain.state_dict().items(), self.fitted.state_dict().values()):
            self.test.assertTrue(torch.equal(left, right), name)
        for (name, left), right in zip(self.plain.named_parameters(), self.fitted.parameters()):
            if left.grad is None:
                self.test.assertIsNone(right.grad, name)
            else:
                self.test.assertTrue(torch.equal(left.grad, right.grad), name)


class Plans(unittest.TestCase):
    def test_models(self):
        for kind in CAPTURED:
            with self.subTest(kind.__name__):
                twins = Twins(self, kind, memory="90%")
                twins.train(3)
                self.assertEqual((twins.capture.steps, twins.capture.plain_calls), (3, 0))
                twins.compare()

    def test_planners_that_move_and_recompute(self):
        for planner, rate, runs in (("prefetch", 1e9, 1), ("best", 1e6, 2)):
            with self.subTest(planner):
                twins = Twins(self, ConvNet, planner=planner, rate=rate)
                twins.train(2)
                (form,) = twins.capture.report()["forms"]
                self.assertGreater(sum(form["last"]["moved_bytes"].values()), 0)
                ((_, session),) = twins.capture._captured.values()
                self.assertGreaterEqual(most_runs(session.plan), runs)
                twins.compare()


class SameBits(unittest.TestCase):
    def test_gradients_accumulate(self):
        twins = Twins(self, ConvNet)

        def accumulate(model, optimizer):
            losses = []
            for number in range(3):
                x, y = batch(number)
                loss = LOSS(model(x), y) / 3
                loss.backward()
                losses.append(loss.item())
            optimizer.step()
            return losses

        twins.both(accumulate)
        twins.compare()

    def test_evaluation_and_calls_without_backward(self):
        twins = Twins(self, Dropped)
        x, y = batch()
        twins.both(lambda model, _: model(x).sum().item())  # its backward pass never comes
        twins.train(1)
        twins.both(lambda model, _: model.eval()(x).sum().item())
        twins.both(lambda model, _: model.train() and None)
        twins.train(1)
        self.assertEqual(twins.capture.steps, 2)
        twins.compare()

    def test_two_calls_before_backward(self):
        twins = Twins(self, ConvNet)
        (x, y), (other, wanted) = batch(0), batch(1)

        def both(model, optimizer):
            loss = LOSS(model(x), y) + LOSS(model(other), wanted)
            loss.backward()
            return loss.item()

        twins.both(both)
        twins.compare()
        self.assertEqual((twins.capture.steps, twins.capture.plain_calls), (1, 1))

    def test_autocast(self):
        twins = Twins(self, ConvNet)
        x, y = batch()

        def step(model, optimizer):
            with torch.autocast("cpu", torch.bfloat16):
                loss = LOSS(model(x), y)
            loss.backward()
            return loss.item()

        twins.both(step)
        twins.compare()

    def test_weights_that_are_loaded_between_steps(self):
        twins = Twins(self, ConvNet)
        twins.train(1)
        state = copy.deepcopy(twins.plain.state_dict())
        twins.train(1)
        twins.both(lambda model, _: model.load_state_dict(copy.deepcopy(state)) and None)
        twins.both(lambda model, _: model.double().float() and None)  # every parameter lies elsewhere
        twins.train(2)
        twins.compare()

    def test_a_layer_that_is_frozen_between_steps(self):
        twins = Twins(self, Steered, memory="100%")
        twins.train(1)
        twins.both(lambda model, _: model.drop.eval() and None)
        twins.train(1)
        twins.compare()

    def test_attributes_that_steer_the_forward_pass(self):
        twins = Twins(self, Steered, memory="100%")
        twins.train(1)
        for model in (twins.plain, twins.fitted):
            model.drop.p, model.scale = 0.7, 3.0
        twins.train(1)
        twins.compare()

    def test_a_buffer_that_is_read_and_changed(self):
        twins = Twins(self, Averaging, memory="100%")
        twins.train(2)
        twins.compare()

    def test_readers_of_a_changing_buffer_run_once(self):
        graph = trace_model(Averaging(), batch()[:1], {}).graph
        readers = [kernel for kernel in graph.kernels if isinstance(kernel.call, Call) and _reads(kernel, graph, "mean")]
        self.assertEqual([kernel.operation for kernel in readers], ["aten::mul", "aten::mul_"])
        for kernel in readers:
            self.assertIn("model", [graph.tensors[tensor].name for tensor in kernel.outputs])


def _reads(kernel, graph, name):
    return any(graph.outside_names.get(view.storage) == name for view in kernel.call.operands())


class Fallback(unittest.TestCase):
    def fit(self, model):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.addCleanup(terrace.torch.unfit, model)
        return terrace.torch.fit(model, "90%", disk=folder, verbose=False)

    def test_to_hooks_within_the_call(self):
        x, y = batch()
        for kind, why in ((Branching, "depends on the numbers"), (Failing, "tracing failed: AttributeError")):
            with self.subTest(kind.__name__):
                model, calls = self.fit(kind()), []
                model.register_forward_hook(lambda *_: calls.append(1))
                for number in range(2):
                    LOSS(model(x), y).backward()
                    self.assertEqual(len(calls), number + 1)
                    self.assertEqual(model._terrace_fitted.step, 1, "the first call is a step of the hooks' own")
                self.assertEqual(terrace.torch.report(model)["way"], "hooks")
                self.assertIn(why, model._terrace_fitted.why)

    def test_a_forward_of_the_models_own_is_kept(self):
        model = Steered()
        own = model.forward = lambda x: Steered.forward(model, x) * 2
        terrace.torch.unfit(self.fit(model))
        self.assertIs(model.__dict__["forward"], own)


class Refusals(unittest.TestCase):
    def test_a_model_that_changes_what_it_has_or_is_given(self):
        for kind, reason in ((Replacing, "puts another tensor"), (Keeping, "keeps a tensor"), (Overwriting, "input in place")):
            twins = Twins(self, kind, memory="100%")
            with self.subTest(kind.__name__), self.assertRaisesRegex(NotCapturable, reason):
                twins.fitted(batch()[0])
            self.assertFalse(hasattr(twins.fitted, "last"))
            self.assertTrue(all(type(buffer) is torch.Tensor for buffer in twins.fitted.buffers()))

    def test_a_model_that_changes_its_attributes_or_draws_from_python(self):
        for kind in (Counting, Drawing):
            twins = Twins(self, kind)
            before = random.getstate()
            with self.subTest(kind.__name__), self.assertRaisesRegex(NotCapturable, "changes attributes"):
                twins.fitted(batch()[0])
            self.assertEqual(random.getstate(), before)
            self.assertEqual(twins.fitted.calls, 0)

    def test_a_second_backward_pass(self):
        twins = Twins(self, ConvNet)
        x, y = batch()
        loss = LOSS(twins.fitted(x), y)
        loss.backward(retain_graph=True)
        with self.assertRaisesRegex(RuntimeError, "second time"):
            loss.backward()

    def test_a_model_that_looks_at_its_numbers(self):
        with self.assertRaisesRegex(NotCapturable, "depends on the numbers"):
            Twins(self, Branching).train(1)

    def test_second_derivatives(self):
        twins = Twins(self, ConvNet)
        x, y = batch()
        with self.assertRaisesRegex(RuntimeError, "no second derivatives"):
            torch.autograd.grad(LOSS(twins.fitted(x), y), list(twins.fitted.parameters()), create_graph=True)

    def test_a_loss_on_an_output_that_was_not_used(self):
        twins = Twins(self, TwoHeads, memory="100%")
        x, y = batch()
        for _ in range(2):
            LOSS(twins.fitted(x)[0], y).backward()
        with self.assertRaisesRegex(RuntimeError, "earlier losses did not depend on"):
            LOSS(twins.fitted(x)[1], y).backward()

    def test_a_parameter_that_changes_before_backward(self):
        twins = Twins(self, ConvNet)
        x, y = batch()
        loss = LOSS(twins.fitted(x), y)
        with torch.no_grad():
            twins.fitted.head.weight.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_a_failed_forward_pass_is_over(self):
        twins = Twins(self, ConvNet)
        x, _ = batch()

        def failing(*_):
            raise ValueError("once")

        for then in (lambda: twins.fitted(x), twins.capture.remove):
            with mock.patch.object(_Step, "_outside", failing), self.assertRaisesRegex(ValueError, "once"):
                twins.fitted(x)
            thread = threading.Thread(target=then, daemon=True)
            thread.start()
            thread.join(10)
            self.assertFalse(thread.is_alive(), "it waits for ever")

    def test_removed(self):
        twins = Twins(self, ConvNet)
        twins.train(1)
        twins.capture.remove()
        self.assertNotIn("forward", vars(twins.fitted))
        twins.train(1)
        twins.compare()


if __name__ == "__main__":
    unittest.main()
