# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a fitted model: one clear sentence, and nothing is lost."""
import copy
import ctypes
import glob
import os
import pickle
import shutil
import signal
import subprocess
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
from support import machine
from terrace.torch import process_memory
from terrace.torch.capture import Capture
from terrace.torch.learning import Store
from terrace.torch.state import is_stand_in
from terrace.torch.trace import trace
from torch_models import Branching, ConvNet, Steered, batch

LOSS = torch.nn.functional.cross_entropy
STORE = Store()


class Fitted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        torch.manual_seed(5)

    def on(self, slow="16MiB", rate=1e9):
        return machine(os.path.join(self.folder, "spill"), "16MiB", slow, rate)

    def capture(self, model, memory="70%", planner="prefetch", rate=1e9, **options):
        made = Capture(model, memory, planner, machine=self.on(rate=rate), store=STORE, **options)
        self.addCleanup(made.remove)
        self.made = [made]
        return made

    def step(self, model, memory="70%", planner="prefetch", rate=1e9, **options):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        made = terrace.torch.Step(model, LOSS, optimizer, memory, planner, machine=self.on(rate=rate), store=STORE, **options)
        self.addCleanup(lambda: made.session is not None and made.session.broken or made.close())
        return made


class Models(Fitted):
    def test_on_two_devices_is_refused_by_name(self):
        two = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2, device="meta")])
        with self.assertRaisesRegex(terrace.InvalidRequest, "cpu and meta.*move it to one of them"):
            terrace.torch.fit(two, "20%")
        optimizer = torch.optim.SGD(two.parameters(), lr=0.1)
        with self.assertRaisesRegex(terrace.InvalidRequest, "cpu and meta.*move it to one of them"):
            terrace.torch.Step(two, LOSS, optimizer, "20%")

    def test_a_loss_with_side_effects_is_refused_by_step_and_free_beside_fit(self):
        """A captured loss runs once, when it is traced: what else it does would not be repeated."""
        kept = []

        def loss_that_keeps(output, target):
            kept.append(output)
            return LOSS(output, target)

        model = ConvNet()
        with self.assertRaisesRegex(terrace.torch.NotCapturable, "the loss changes kept"):
            self._step_with(model, loss_that_keeps)(*batch())
        kept.clear()
        self.capture(model)
        for number in range(2):
            loss_that_keeps(model(batch()[0]), batch()[1]).backward()
            self.assertEqual(len(kept), number + 1)

    def test_one_that_looks_at_its_numbers_is_said_to_be_run_by_hooks(self):
        model, told = Branching(), []
        with mock.patch("terrace.torch.say", told.append):
            terrace.torch.fit(model, "90%", disk=self.folder)
            self.addCleanup(terrace.torch.unfit, model)
            for _ in range(2):
                LOSS(model(batch()[0]), batch()[1]).backward()
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "nothing is moved; by hooks .*depends on the numbers")

    def test_a_copy_of_a_fitted_model_is_refused_by_name(self):
        for way in ("capture", "hooks"):
            model = terrace.torch.fit(ConvNet(), "90%", disk=self.folder, way=way)
            self.addCleanup(terrace.torch.unfit, model)
            for copied in (copy.deepcopy, pickle.dumps):
                with self.subTest(way), self.assertRaisesRegex(TypeError, "take its state_dict.*unfit"):
                    copied(model)

    def _step_with(self, model, loss):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return terrace.torch.Step(model, loss, optimizer, "100%", "prefetch", machine=self.on(), store=STORE)

    def test_a_tensor_that_outlives_its_step_keeps_its_numbers(self):
        plain = ConvNet()
        fitted = copy.deepcopy(plain)
        self.capture(fitted)
        outputs = []
        for model in (plain, fitted):
            kept = model(batch()[0])
            LOSS(kept, batch()[1]).backward()
            gradients = [parameter.grad for parameter in model.parameters()]
            before = [gradient.clone() for gradient in gradients]
            model.zero_grad(set_to_none=True)
            LOSS(model(batch(1)[0]), batch(1)[1]).backward()  # the next step uses the same memory
            outputs.append(kept)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(gradients, before)))
        self.assertTrue(torch.equal(*outputs))

    def test_a_loss_of_step_outlives_it(self):
        step = self.step(ConvNet())
        first = step(*batch(0))
        value = first.item()
        step(*batch(1))
        self.assertEqual(first.item(), value)


class Memory(Fitted):
    def test_less_than_the_least_says_how_much_is_missing_and_leaves_the_model(self):
        model = ConvNet()
        self.capture(model, "1%")
        with self.assertRaisesRegex(terrace.NoRoom, "needs .* are missing: give at least .*optimizer="):
            model(batch()[0])
        self.made[-1].remove()
        self.capture(model, "1MiB")
        with self.assertRaisesRegex(terrace.NoRoom, "beside the step's tensors"):
            model(batch()[0])
        self.made[-1].remove()
        step = self.step(model, "1%")
        with self.assertRaisesRegex(terrace.NoRoom, "needs .* are missing: give at least"):
            step(*batch())
        self.assertFalse(any(is_stand_in(parameter) for parameter in model.parameters()))

    def test_less_than_the_process_by_hooks(self):
        with self.assertRaisesRegex(terrace.NoRoom, "memory=1MiB is less than .* beside the model: give more"):
            terrace.torch.fit(ConvNet(), "1MiB", disk=self.folder, way="hooks")

    def test_the_c_library_is_asked_for_what_it_grants(self):
        self.assertTrue(process_memory.keep_freed_memory())
        asked = []

        def old(option, value):  # the C library up to 2.34
            asked.append((option, value))
            return int(option != -3 or value <= 32 << 20)

        with mock.patch.object(process_memory, "_libc", mock.Mock(mallopt=old)):
            self.assertTrue(process_memory.keep_freed_memory())
        self.assertIn((-3, 32 << 20), asked)


class Disk(Fitted):
    def test_a_slow_tier_that_is_too_small_says_so(self):
        on = machine(os.path.join(self.folder, "spill"), "16MiB", "16KiB")
        made = Capture(ConvNet(), "60%", "prefetch", machine=on, store=STORE)
        self.addCleanup(made.remove)
        with self.assertRaises(terrace.NoRoom) as raised:
            made.model(batch()[0])
        self.assertNotIn("\n", str(raised.exception))

    @unittest.skipUnless(os.geteuid() == 0, "mounting a small disk needs root")
    def test_a_really_full_disk_names_the_file_and_loses_nothing(self):
        disk = os.path.join(self.folder, "disk")
        os.makedirs(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk], capture_output=True, text=True)
        if mounted.returncode:
            self.skipTest(mounted.stderr)
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        on = machine(os.path.join(disk, "spill"), "16MiB", "16MiB")
        model = ConvNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        step = terrace.torch.Step(model, LOSS, optimizer, "60%", "prefetch", machine=on, store=STORE)
        with self.assertRaisesRegex(terrace.NoRoom, "disk/spill.* short of the .* asked for; free that much"):
            step(*batch())
        step._disk = disk  # where the state waits
        subprocess.run(["dd", "if=/dev/zero", f"of={disk}/other", "bs=4096"], capture_output=True)  # until it is full
        with self.assertRaisesRegex(terrace.SystemFailed, "cannot be kept in .*disk .No space left.*disk="):
            step(*batch())
        self.assertEqual(list(before), list(model.state_dict()))
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_a_killed_process_leaves_no_file(self):
        code = f"""
import os, signal, sys
sys.path[:0] = {sys.path!r}
from test_torch_bad_input import *
on = machine({os.path.join(self.folder, 'spill')!r}, "16MiB", "16MiB")
model = ConvNet()
step = terrace.torch.Step(model, LOSS, torch.optim.SGD(model.parameters(), lr=0.1), "70%", "prefetch", machine=on, store=STORE)
step(*batch())
os.kill(os.getpid(), signal.SIGKILL)
"""
        environment = {**os.environ, "XDG_CACHE_HOME": self.folder}
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        left = [path for path in glob.glob(os.path.join(self.folder, "**"), recursive=True) if os.path.isfile(path)]
        self.assertEqual(left, [])


class Bits(Fitted):
    """same_bits through capture: it passes where all is well and finds what is not."""

    def test_whole_steps_pass(self):
        for planner, rate in (("prefetch", 1e9), ("best", 1e6)):
            step = self.step(ConvNet(), planner=planner, rate=rate, same_bits=True)
            step(*batch(0))
            step(*batch(1))
            step.close()

    def test_fit_is_captured_with_it(self):
        model = ConvNet()
        capture = self.capture(model, same_bits=True)
        for number in range(2):
            LOSS(model(batch(number)[0]), batch(number)[1]).backward()
        self.assertEqual(capture.steps, 2)

    def test_a_tensor_that_changed_on_its_way_is_named(self):
        step = self.step(ConvNet(), memory="100%", same_bits=True)
        step(*batch())
        kernels, run = step.session.kernels, step.session.kernels.run
        spoiled = []

        def spoil(number, addresses):
            run(number, addresses)
            kernel = kernels.graph.kernels[number]
            if kernel.operation == "aten::relu" and not spoiled:  # an activation that the backward pass reads
                later = [each for each in kernels.graph.kernels[number + 1 :] if kernel.outputs[0] in each.inputs]
                self.assertTrue(later)
                spoiled.append(addresses[len(kernel.inputs)])
            elif spoiled and spoiled[-1] is not None:
                ctypes.c_char.from_address(spoiled[-1]).value = b"\x55"
                spoiled.append(None)

        with mock.patch.object(kernels, "run", spoil), self.assertRaisesRegex(terrace.errors.LibraryBug, "found other bits in"):
            step(*batch())

    def test_a_kernel_that_makes_something_else_again_is_named(self):
        step = self.step(ConvNet(), planner="best", rate=1e6, memory="60%", same_bits=True)
        step(*batch())
        kernels, run, seen = step.session.kernels, step.session.kernels.run, {}

        def spoil(number, addresses):
            run(number, addresses)
            kernel = kernels.graph.kernels[number]
            seen[number] = seen.get(number, 0) + 1
            if seen[number] == 2:
                ctypes.c_char.from_address(addresses[len(kernel.inputs)]).value = b"\x55"

        with mock.patch.object(kernels, "run", spoil), self.assertRaisesRegex(terrace.errors.LibraryBug, "when it was run again"):
            step(*batch())
        self.assertEqual(max(seen.values()), 2)


class Gathering(Steered):
    """Its backward pass adds to rows by index."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(6, 48))

    def forward(self, x):
        rows = (x.flatten(1)[:, :4].abs() * 5).long() % 6
        return super().forward((x.flatten(1)[:, :48] + self.table[rows].sum(1)).reshape(len(x), 48))


class Order(Fitted):
    def test_kernels_without_a_fixed_order_are_named_and_run_once(self):
        graph = trace(Gathering(), batch(), LOSS)
        self.assertEqual(sum(graph.unordered().values()), 1)
        (kernel,) = [each for each in graph.kernels if each.operation in graph.unordered()]
        self.assertIn("order of sums", [graph.tensors[tensor].name for tensor in kernel.outputs])
        model, told = Gathering(), []
        self.capture(model, "100%", tell=told.append)
        model(batch()[0])
        self.assertRegex(told[0], "not deterministic in PyTorch itself: aten::.*index_put")

    def test_none_is_named_with_deterministic_algorithms(self):
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.assertEqual(trace(Gathering(), batch(), LOSS).unordered(), {})

    def test_none_is_named_where_there_is_none(self):
        self.assertEqual(trace(ConvNet(), batch(), LOSS).unordered(), {})


if __name__ == "__main__":
    unittest.main()
