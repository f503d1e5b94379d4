# SPDX-License-Identifier: Apache-2.0
"""fit by hooks: the same losses and weights to the bit, within the memory that was given."""
import gc
import json
import sys
import tempfile
import unittest
import unittest.mock

try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)

import terrace
import terrace.torch
from terrace.torch import verdict
from terrace.torch.step_graph import SAVED, WANTED, Event, Seen, graph_of, least_of

torch.set_num_threads(1)


class Deep(torch.nn.Module):
    """Layers whose activations are large and whose weights are small; `skip` leaves out a part, as dynamic models do."""

    def __init__(self, layers=10, channels=8):
        super().__init__()
        self.first = torch.nn.Conv2d(3, channels, 3, padding=1)
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Conv2d(channels, channels, 3, padding=1), torch.nn.BatchNorm2d(channels), torch.nn.ReLU())
            for _ in range(layers))
        self.head = torch.nn.Linear(channels, 10)
        self.skip = 0

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers[self.skip:]:
            x = x + layer(x)
        return self.head(x.mean((2, 3)))


def trained(steps, prepare=lambda model, folder: model, skips=(), accumulate=1):
    """(losses, weights) of a run with fixed seeds, and the model."""
    torch.manual_seed(1)
    model = Deep()
    batches = [(torch.randn(8, 3, 48, 48), torch.randint(0, 10, (8,))) for _ in range(2)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with tempfile.TemporaryDirectory() as folder:
        model = prepare(model, folder)
        losses = []
        for step in range(steps):
            model.skip = skips[step] if step < len(skips) else 0
            optimizer.zero_grad()
            for part in range(accumulate):
                x, y = batches[(step + part) % 2]
                loss = torch.nn.functional.cross_entropy(model(x), y)
                loss.backward()
                losses.append(loss.item())
            optimizer.step()
    return losses, [parameter.detach().clone() for parameter in model.parameters()], model


def fitted(memory, **options):
    options = {"verbose": False, "way": "hooks", **options}
    return lambda model, folder: terrace.torch.fit(model, memory, disk=folder, same_bits=True, **options)


def assert_same(test, one, other):
    test.assertEqual(one[0], other[0])
    for a, b in zip(one[1], other[1]):
        test.assertTrue(torch.equal(a, b))


class Fit(unittest.TestCase):
    def test_a_share_of_memory_gives_the_same_bits_by_a_verified_plan(self):
        plain = trained(4)
        fit = trained(4, fitted("55%", planner="prefetch"))
        assert_same(self, plain, fit)
        report = terrace.torch.report(fit[2])
        self.assertEqual(report["way"], "hooks")
        self.assertEqual(report["as_planned"], 2)  # the first was watched, the last has not ended
        self.assertGreater(report["written_bytes"], 0)
        self.assertGreater(report["read_bytes"], 0)
        self.assertLess(report["facts"]["budget_bytes"], report["facts"]["peak_bytes"])
        self.assertIn("verified", report["verdict"])
        record = report["record"]
        self.assertLessEqual(record["plan"]["budget"][0], report["facts"]["budget_bytes"])
        self.assertTrue(terrace.torch.hooks.planning.Plan(json.dumps(record), {}).verified)

    def test_other_planners_and_accumulated_gradients(self):
        plain = trained(3, accumulate=2)
        for planner in ("lru", "best"):
            assert_same(self, plain, trained(3, fitted("60%", planner=planner), accumulate=2))


class OddSteps(unittest.TestCase):
    """Steps that differ from those before, never come or outlive the next one."""

    def test_a_step_that_does_not_go_as_planned_is_carried_out_and_planned_anew(self):
        skips = [0, 0, 5, 5, 5, 0, 0, 0]
        plain = trained(8, skips=skips)
        fit = trained(8, fitted("85%", planner="prefetch"), skips=skips)
        assert_same(self, plain, fit)
        report = terrace.torch.report(fit[2])
        self.assertGreater(report["as_planned"], 1)
        self.assertLess(report["as_planned"], report["steps"])

    def test_everything_fits_and_nothing_is_moved(self):
        fit = trained(3, fitted("20GiB"))
        assert_same(self, trained(3), fit)
        report = terrace.torch.report(fit[2])
        self.assertEqual(report["written_bytes"], 0)
        self.assertIn("everything fits", report["verdict"])

    def test_a_graph_that_outlives_its_step_is_still_right(self):
        def run(prepare):
            torch.manual_seed(2)
            with tempfile.TemporaryDirectory() as folder:
                model = prepare(Deep(), folder)
                x, y = torch.randn(8, 3, 48, 48), torch.randint(0, 10, (8,))
                kept = None
                for step in range(5):
                    loss = torch.nn.functional.cross_entropy(model(x), y)
                    loss.backward(retain_graph=step == 2)
                    if step == 2:
                        kept = loss
                kept.backward()
                return [parameter.grad.clone() for parameter in model.parameters()]

        for a, b in zip(run(lambda model, folder: model), run(fitted("80%", planner="prefetch"))):
            self.assertTrue(torch.equal(a, b))

    def test_evaluation_without_gradients_saves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            model = terrace.torch.fit(Deep(), "50%", disk=folder, verbose=False, way="hooks")
            with torch.no_grad():
                model(torch.randn(2, 3, 16, 16))
            self.assertEqual(terrace.torch.report(model)["steps"], 0)
            terrace.torch.unfit(model)
            with self.assertRaises(terrace.InvalidRequest):
                terrace.torch.report(model)

    def test_memory_of_saved_tensors_goes_when_the_graph_goes(self):
        with tempfile.TemporaryDirectory() as folder:
            model = terrace.torch.fit(Deep(), "50%", disk=folder, verbose=False, way="hooks")
            model(torch.randn(8, 3, 48, 48))  # without a backward pass
            gc.collect()
            model.__dict__["_terrace_fitted"]._purge(wait=True)
            self.assertEqual(model.__dict__["_terrace_fitted"].by_number, {})


class ChangedInPlace(unittest.TestCase):
    """As without hooks: an error, never a wrong gradient."""

    def run_case(self, shape, model):
        x = torch.ones(shape, requires_grad=True)
        b = model(x * 2)
        c = b * b
        with torch.no_grad():
            b.add_(100)
        return c, x

    def test_small_and_large_tensors_in_memory_and_on_disk(self):
        for shape in ((4,), (300, 300)):
            for memory in ("50%", "20GiB"):
                with tempfile.TemporaryDirectory() as folder:
                    model = terrace.torch.fit(torch.nn.Identity(), memory, disk=folder, verbose=False, way="hooks")
                    c, _ = self.run_case(shape, model)
                    others = [c]
                    for _ in range(5):
                        others.append(others[-1] * 1.5 * c)  # so that what was saved first has left memory
                    with self.assertRaises(RuntimeError) as raised:
                        others[-1].sum().backward()
                    self.assertIn("modified by an inplace operation", str(raised.exception))


class BadInput(unittest.TestCase):
    def test_one_sentence_each(self):
        model = Deep()
        wrong = [
            (lambda: terrace.torch.fit(model, "lots"), terrace.InvalidRequest, "lots"),
            (lambda: terrace.torch.fit(model, "0%"), terrace.InvalidRequest, "0%"),
            (lambda: terrace.torch.fit(model, "20"), terrace.InvalidRequest, "8GiB"),
            (lambda: terrace.torch.fit(lambda x: x, "20%"), terrace.InvalidRequest, "function"),
            (lambda: terrace.torch.fit(model, "20%", disk="/proc/nowhere"), terrace.InvalidRequest, "/proc/nowhere"),
        ]
        two = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2, device="meta")])
        wrong.append((lambda: terrace.torch.fit(two, "20%"), terrace.InvalidRequest, "cpu and meta"))
        for call, kind, words in wrong:
            with self.assertRaises(kind) as raised:
                call()
            self.assertIn(words, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))

    def test_less_than_the_least_names_the_operation_and_the_bytes(self):
        with self.assertRaises(terrace.NoRoom) as raised:
            trained(3, fitted("2%"))
        self.assertRegex(str(raised.exception), "needs .* is given, .* missing: give at least")
        with self.assertRaises(terrace.NoRoom) as raised:
            trained(3, fitted("20MiB"))
        self.assertRegex(str(raised.exception), "memory=20MiB is less than the .* that the process takes beside the model: give more")

    def test_a_full_disk_stops_with_path_and_bytes(self):
        import terrace.torch.spill as spill
        with unittest.mock.patch.object(spill, "SLAB", 1 << 60), self.assertRaises(terrace.Error) as raised:
            trained(2, fitted("50%"))
        self.assertIn("spill", str(raised.exception))


class Words(unittest.TestCase):
    def test_amounts(self):
        self.assertEqual(verdict.parse_memory("2GiB"), (2 << 30, None))
        self.assertEqual(verdict.parse_memory("1.5 GB"), (1_500_000_000, None))
        self.assertEqual(verdict.parse_memory(4096), (4096, None))
        self.assertEqual(verdict.parse_memory("20%"), (None, 0.2))

    def test_the_verdict_says_which_of_three_things_happens(self):
        facts = {"peak_bytes": 2 << 30, "budget_bytes": 1 << 30, "slow_bytes": 1 << 20, "folder": "/x", "planner": "best",
                 "slowdown": 1.25, "bound": 1.1, "way": "hooks", "why": "", "no_plan": None}
        self.assertEqual(verdict.verdict_line(facts),
                         "terrace: 2.00 GiB -> 1.00 GiB of memory, 1.00 MiB on disk in /x; plan by best verified, 1.25x of full "
                         "speed's time predicted, bound 1.10x; by hooks")
        self.assertIn("on demand", verdict.verdict_line({**facts, "planner": None, "no_plan": "k needs more"}))
        self.assertIn("everything fits", verdict.verdict_line({**facts, "planner": None, "slow_bytes": 0}))

    def test_a_step_as_a_graph(self):
        events = [Event(SAVED, 0, 1000, "a", 0.1, 50), Event(SAVED, 1, 2000, "b", 0.1, 70), Event(SAVED, 0, 1000, "c", 0.1, 60),
                  Event(WANTED, 1, 2000, "b", 0.1, 90), Event(WANTED, 0, 1000, "a", 0.1, 80)]
        seen = Seen(events, 0.1, 50)
        self.assertEqual(seen.peak(), 3090)
        graph = graph_of(seen)
        self.assertEqual(terrace.check_graph(graph)["kernels"], 6)
        self.assertGreaterEqual(terrace.check_graph(graph)["peak_bytes"], 3090)
        # The interval between saving `a` and `b` has both entries, and what is beside them.
        self.assertEqual(least_of(graph), (3070, "before saving at b"))


if __name__ == "__main__":
    unittest.main()
