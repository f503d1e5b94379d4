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
import warnings
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
from terrace.torch.state import is_stand_in
from torch_models import (
    CAPTURED, Averaging, Branching, ConvNet, Counting, Drawing, Dropped, Failing, Keeping, Overwriting, Replacing, Steered,
    TwoHeads, batch,
)  # fmt: skip

LOSS = torch.nn.functional.cross_entropy
STORE = Store()


class Twins:
    def __init__(self, test, kind, memory="70%", planner="prefetch", rate=1e9, optimizer=None):
        torch.manual_seed(3)
        self.test, self.plain = test, kind()
        self.fitted = copy.deepcopy(self.plain)
        folder = tempfile.mkdtemp()
        test.addCleanup(shutil.rmtree, folder)
        on = machine(os.path.join(folder, "spill"), "16MiB", "16MiB", rate)
        make, options = optimizer or (torch.optim.Adam, {"lr": 0.01})
        self.optimizers = [make(model.parameters(), **options) for model in (self.plain, self.fitted)]
        inside = self.optimizers[1] if optimizer else None
        self.capture = Capture(self.fitted, memory, planner, machine=on, store=STORE, optimizer=inside)
        test.addCleanup(self.capture.remove)

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

    def compare_states(self):
        """Of the models and of the optimizers."""
        for (name, left), right in zip(self.plain.state_dict().items(), self.fitted.state_dict().values()):
            self.test.assertTrue(torch.equal(left, right), name)
        theirs, ours = (optimizer.state_dict() for optimizer in self.optimizers)
        self.test.assertEqual(theirs["param_groups"], ours["param_groups"])
        self.test.assertEqual(theirs["state"].keys(), ours["state"].keys())
        for parameter, values in theirs["state"].items():
            for name, value in values.items():
                self.test.assertTrue(torch.equal(torch.as_tensor(value), torch.as_tensor(ours["state"][parameter][name])), name)

    def compare(self):
        self.compare_states()
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
                if runs == 1:  # on so slow a disk the other recomputes all
                    self.assertGreater(sum(form["last"]["moved_bytes"].values()), 0)
                (form_now,) = twins.capture._forms.values()
                self.assertGreaterEqual(most_runs(form_now.plan), runs)
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

    def test_a_pytorch_whose_allocator_is_not_replaced(self):
        """Results are copied to their places, as with other versions than 1.13."""
        none = mock.Mock(return_value=None)
        with mock.patch("terrace.torch.capture.placement", none), mock.patch("terrace.torch.session.placement", none):
            twins = Twins(self, ConvNet)
            twins.capture._store = Store()
            twins.train(2)
        (form,) = twins.capture._forms.values()
        self.assertGreater(form.session.kernels.copied_bytes, 0)
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


SGD = (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01})
ADAM = (torch.optim.Adam, {"lr": 0.01})
ADAMW = (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True})


class WithOptimizer:
    """fit with an optimizer: weights and states move, and the program stays as it is."""

    def twins(self, kind=ConvNet, optimizer=ADAM, memory="70%", **options):
        return Twins(self, kind, memory, optimizer=optimizer, **options)


class OptimizerInside(WithOptimizer, unittest.TestCase):
    def test_models(self):
        for kind in CAPTURED:
            with self.subTest(kind.__name__):
                twins = self.twins(kind, memory="90%")
                twins.train(2)
                self.assertEqual((twins.capture.steps, twins.capture.plain_calls), (2, 0))
                self.assertTrue(all(is_stand_in(each) for each in twins.fitted.parameters() if each.numel() > 1))
                twins.compare_states()
                self.assertFalse(any(is_stand_in(each) for each in twins.fitted.parameters()))

    def test_optimizers_and_planners(self):
        for optimizer, planner, rate in ((SGD, "prefetch", 1e9), (ADAMW, "best", 1e6)):
            with self.subTest(planner):
                twins = self.twins(optimizer=optimizer, planner=planner, rate=rate, memory="60%")
                twins.train(2)
                (form,) = twins.capture.report()["forms"]
                self.assertGreater(sum(form["last"]["moved_bytes"].values()), 0)
                twins.compare_states()


class OptimizerAround(WithOptimizer, unittest.TestCase):
    def test_states_go_in_and_out_between_steps(self):
        twins = self.twins(Dropped)
        twins.train(2)
        states = [copy.deepcopy(each.state_dict()) for each in (twins.plain, twins.optimizers[0])]
        twins.train(1)
        for owner, state in ((twins.fitted, states[0]), (twins.plain, states[0])):
            owner.load_state_dict(copy.deepcopy(state))
        for optimizer in twins.optimizers:
            optimizer.load_state_dict(copy.deepcopy(states[1]))
            optimizer.param_groups[0]["lr"] = 0.003  # loading made another group
        twins.train(2)
        twins.both(lambda model, _: model.double().float() and None)
        twins.train(1)
        twins.compare_states()

    def test_a_scheduler(self):
        twins = self.twins(optimizer=SGD)
        schedulers = [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5) for optimizer in twins.optimizers]
        for _ in range(3):
            twins.train(1)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for scheduler in schedulers:
                    scheduler.step()
        twins.compare_states()

    def test_evaluation_training_in_evaluation_and_calls_without_backward(self):
        twins = self.twins()
        x, y = batch()
        twins.train(1)
        twins.both(lambda model, _: model(x).sum().item())  # its backward pass never comes
        twins.train(1)
        twins.both(lambda model, _: model.eval()(x).sum().item())
        twins.train(1)  # as PyTorch has it, with fixed statistics
        self.assertEqual((twins.capture.steps, twins.capture.plain_calls), (2, 2))
        twins.both(lambda model, _: model.train() and None)
        twins.train(1)
        twins.compare_states()

    def test_a_closure(self):
        twins = self.twins()
        x, y = batch()

        def step(model, optimizer):
            def closure():
                optimizer.zero_grad()
                loss = LOSS(model(x), y)
                loss.backward()
                return loss

            return optimizer.step(closure).item()

        twins.both(step)
        twins.both(step)
        twins.compare_states()

    def test_a_loss_that_does_not_depend_on_all_outputs(self):
        twins = self.twins(TwoHeads, memory="100%")
        x, y = batch()

        def step(model, optimizer):
            optimizer.zero_grad()
            loss = LOSS(model(x)[0], y)
            loss.backward()
            optimizer.step()
            return loss.item()

        twins.both(step)
        twins.both(step)
        twins.compare_states()
        self.assertEqual(twins.capture.steps, 2)

    def test_parameters_that_the_optimizer_has_not(self):
        torch.manual_seed(3)
        plain = ConvNet()
        fitted = copy.deepcopy(plain)
        results = []
        for model in (plain, fitted):
            model.first.weight.requires_grad_(False)
            optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
            if model is fitted:
                self.addCleanup(self._capture(model, optimizer).remove)
            for number in range(2):
                LOSS(model(batch(number)[0]), batch(number)[1]).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            results.append((model.state_dict(), [model.norm.weight.grad, model.convolutions[1].weight.grad]))
        for left, right in zip(*([*state.values(), *gradients] for state, gradients in results)):
            self.assertTrue(torch.equal(left, right))

    def _capture(self, model, optimizer, memory="100%"):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        on = machine(os.path.join(folder, "spill"), "16MiB", "16MiB")
        return Capture(model, memory, "prefetch", machine=on, store=STORE, optimizer=optimizer)


class OptimizerRefusals(WithOptimizer, unittest.TestCase):
    def test_gradients_that_are_read_clipped_or_accumulated_are_refused(self):
        twins = self.twins()
        (x, y), model = batch(), twins.fitted
        LOSS(model(x), y).backward()
        for use in (lambda: model.head.weight.grad.norm(), lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)):
            with self.assertRaisesRegex(RuntimeError, "the gradient is gone.*leave optimizer= out"):
                use()
        with self.assertRaisesRegex(RuntimeError, "optimizer.step.. did not follow"):
            model(x)
        twins.optimizers[1].step()
        LOSS(model(x), y).backward()

    def test_a_second_call_before_backward_is_refused(self):
        twins = self.twins()
        kept = twins.fitted(batch()[0])
        with self.assertRaisesRegex(RuntimeError, "called again before the backward pass"):
            twins.fitted(batch()[0])
        del kept

    def test_a_step_that_fails_hands_nothing_back(self):
        twins = self.twins()
        twins.train(1)
        states = [copy.deepcopy(each.state_dict()) for each in (twins.fitted, twins.optimizers[1])]
        loss = LOSS(twins.fitted(batch(1)[0]), batch(1)[1])
        (form,) = twins.capture._forms.values()

        def failing(*_):
            raise ValueError("once")

        with mock.patch.object(form.session.kernels, "run", failing), self.assertRaisesRegex(ValueError, "once"):
            loss.backward()
        for refused in (twins.fitted.state_dict, lambda: twins.fitted(batch()[0]), twins.optimizers[1].step):
            with self.assertRaisesRegex(RuntimeError, "a step failed before its end"):
                refused()
        twins.fitted.load_state_dict(states[0])
        twins.optimizers[1].load_state_dict(states[1])
        twins.train(1)
        twins.compare_states()

    def test_the_end_leaves_everything_as_it_was(self):
        twins = self.twins()
        twins.train(2)
        twins.capture.remove()
        for owner in (*twins.fitted.modules(), twins.optimizers[1]):
            for name in ("forward", "state_dict", "load_state_dict", "_apply", "step"):
                self.assertNotIn(name, vars(owner))
        twins.train(1)
        twins.compare()


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
            thread.join(60)
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
