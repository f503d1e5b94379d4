# SPDX-License-Identifier: Apache-2.0
"""What a traced graph says of a step."""
import json
import os
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    sys.exit(77)

import terrace
import terrace.torch
from terrace.torch.__main__ import main
from terrace.torch.graph import to_json
from torch_models import CAPTURED, ConvNet, Dropped, SharedNorm, batch

LOSS = torch.nn.functional.cross_entropy


def traced(kind, optimizer=True):
    model = kind()
    update = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) if optimizer else None
    return model, json.loads(to_json(terrace.torch.trace(model, batch(), LOSS, update)))


def kernels_of(graph, operation):
    return [kernel for kernel in graph["kernels"] if kernel["operation"] == operation]


class Graphs(unittest.TestCase):
    def test_the_library_accepts_them(self):
        for kind in CAPTURED:
            with self.subTest(kind.__name__):
                _, graph = traced(kind)
                self.assertEqual(terrace.check_graph(graph)["kernels"], len(graph["kernels"]))

    def test_what_outlives_steps_is_persistent(self):
        model, graph = traced(ConvNet)
        persistent = {tensor["name"]: tensor["kind"] for tensor in graph["tensors"] if tensor["persistent"]}
        for name, _ in model.named_parameters():
            self.assertEqual(persistent[name], "weight")
            self.assertEqual(persistent[f"{name}.momentum_buffer"], "optimizer_state")
        for name, _ in model.named_buffers():
            self.assertEqual(persistent[name], "statistics")

    def test_views_are_no_kernels(self):
        _, graph = traced(Dropped)
        operations = {kernel["operation"].split("::")[1] for kernel in graph["kernels"]}
        self.assertFalse(operations & {"view", "slice", "t", "detach", "split", "chunk", "_reshape_alias", "empty_like"})

    def test_random_kernels_share_a_token(self):
        _, graph = traced(Dropped)
        (token,) = [tensor["name"] for tensor in graph["tensors"] if tensor["kind"] == "token"]
        drawn = kernels_of(graph, "aten::bernoulli_")
        self.assertEqual(len(drawn), 3)
        for kernel in drawn:
            self.assertIn(token, kernel["inputs"])
            self.assertIn(token, kernel["outputs"])

    def test_statistics_change_once_at_the_end(self):
        """So a batch norm may be recomputed; a second use in the step reads what the first has made."""
        _, graph = traced(SharedNorm)
        first, second = kernels_of(graph, "aten::native_batch_norm")
        self.assertIn("norm.running_mean", first["inputs"])
        self.assertNotIn("norm.running_mean", first["outputs"])
        self.assertIn("norm.running_mean.new", set(first["outputs"]) & set(second["inputs"]))
        writers = [kernel for kernel in graph["kernels"] if "norm.running_mean" in kernel["outputs"]]
        self.assertEqual([writer["phase"] for writer in writers], ["update"])

    def test_an_update_follows_its_gradient_at_once(self):
        """So gradients do not all live at the same time."""
        _, graph = traced(ConvNet)
        phases = [kernel["phase"] for kernel in graph["kernels"]]
        self.assertLess(phases.index("update"), len(phases) - 1 - phases[::-1].index("backward"))

    def test_products_are_counted(self):
        _, graph = traced(ConvNet)
        convolution = kernels_of(graph, "aten::convolution")[0]
        self.assertEqual(convolution["flops"], 2 * 8 * 16 * 8 * 8 * 3 * 9)

    def test_gradients_of_a_convolutions_image_and_weights_are_two_kernels(self):
        model, graph = traced(ConvNet)
        convolutions = sum(isinstance(module, torch.nn.Conv2d) for module in model.modules())
        backward = kernels_of(graph, "aten::convolution_backward")
        self.assertEqual(len(backward), 2 * convolutions - 1)  # nobody wants the gradient of the batch
        weights = [kernel for kernel in backward if "[false,true," in kernel["attributes"]["call"]]
        self.assertEqual(len(weights), convolutions)
        for kernel in backward:
            if kernel not in weights:  # it has the gradient of its result and the weight, and needs no image
                self.assertEqual(len(kernel["inputs"]), 2)

    def test_tracing_leaves_the_model_alone(self):
        model = ConvNet()
        before = {name: value.clone() for name, value in model.state_dict().items()}
        terrace.torch.trace(model, batch(), LOSS)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "g.json")

    def trace(self, function, *options):
        return main(["trace", function, "--batch", "8", "--input", "3x8x8", "-o", self.path, *options])

    def test_writes_a_graph_that_can_be_planned_for_any_machine(self):
        self.assertEqual(self.trace("torch_models:ConvNet", "--optimizer", "adam"), 0)
        plan = terrace.plan(self.path, fast="70%", machine="h200-pcie5", planner="prefetch")
        self.assertTrue(plan.verified)

    def test_says_why_it_refuses(self):
        for function, reason in (
            ("torch_models:Branching", "depends on the numbers"),
            ("torch_models:Nothing", "torch_models has no Nothing"),
            ("nowhere:net", "cannot import nowhere"),
            ("torch_models", "is no MODULE:FUNCTION"),
            ("torch_models:batch", "no model of PyTorch"),
        ):
            with self.subTest(function):
                said = sys.stderr = tempfile.TemporaryFile("w+")
                try:
                    self.assertEqual(self.trace(function), 1)
                finally:
                    sys.stderr = sys.__stderr__
                said.seek(0)
                self.assertIn(reason, said.read())
                said.close()


if __name__ == "__main__":
    unittest.main()
