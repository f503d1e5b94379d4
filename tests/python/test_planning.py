# SPDX-License-Identifier: Apache-2.0
"""The package without PyTorch: plans, verdicts, simulation, advice, transfers, and plans carried out."""
import ctypes
import json
import os
import tempfile
import unittest

import terrace
from support import machine, most_runs, random_graph
from terrace import memory


class Planning(unittest.TestCase):
    def test_a_file_a_text_and_a_dictionary_give_the_same_plan(self):
        graph = random_graph(1)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(graph, file)
            file.flush()
            plans = [terrace.plan(given, fast="60%", machine="numa-sentinel", planner="prefetch")
                     for given in (graph, json.dumps(graph), file.name)]
        self.assertEqual(plans[0].record_text, plans[1].record_text)
        self.assertEqual(plans[0].record_text, plans[2].record_text)
        self.assertTrue(plans[0].verified)
        self.assertGreaterEqual(plans[0].predicted_seconds, plans[0].bound_seconds)

    def test_a_saved_plan_is_the_same_after_loading(self):
        plan = terrace.plan(random_graph(2), fast="50%", machine="numa-sentinel", planner="prefetch")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")
            plan.save(path)
            again = terrace.load(path)
        self.assertEqual(plan.record_text, again.record_text)
        self.assertAlmostEqual(plan.predicted_seconds, again.simulate()["predicted_step_seconds"])
        self.assertAlmostEqual(plan.slowdown, again.slowdown)

    def test_a_loaded_plan_knows_its_slowdown(self):
        graph = random_graph(4)
        for kernel in graph["kernels"]:
            kernel["variants"] = [{"name": "", "time": 1e-7}]
        with tempfile.TemporaryDirectory() as folder:
            plan = terrace.plan(graph, fast="60%", machine=machine(os.path.join(folder, "spill")), planner="lru")
            plan.save(os.path.join(folder, "r.json"))
            again = terrace.load(os.path.join(folder, "r.json"))
        self.assertGreater(plan.slowdown, 1.5)
        self.assertAlmostEqual(plan.slowdown, again.slowdown)

    def test_a_result_takes_no_room_before_it_is_made(self):
        tensors = [{"name": name, "bytes": mebibytes << 20} for name, mebibytes in (("large", 8), ("small", 1), ("result", 8))]
        steps = [("make", [], ["large"]), ("shrink", ["large"], ["small"]), ("grow", ["small"], ["result"])]
        kernels = [{"name": name, "operation": "mix", "inputs": inputs, "outputs": outputs, "variants": [{"name": "", "time": 0.001}]}
                   for name, inputs, outputs in steps]  # fmt: skip
        graph = {"format": "terrace-graph", "version": 1, "tensors": tensors, "kernels": kernels, "results": ["result"]}
        with tempfile.TemporaryDirectory() as folder:
            plan = terrace.plan(graph, fast="10MiB", machine=machine(os.path.join(folder, "spill")))
        self.assertNotIn("copy", [words[0] for words in plan.record["plan"]["instructions"]])
        self.assertEqual(most_runs(plan), 1)

    def test_a_plan_simulated_elsewhere(self):
        again = terrace.plan(random_graph(2), fast="50%", machine="numa-sentinel", planner="prefetch")
        self.assertGreater(again.simulate("optane-autotm")["predicted_step_seconds"], 0)

    def test_a_plan_with_an_instruction_left_out_is_not_safe(self):
        plan = terrace.plan(random_graph(3), fast="50%", machine="numa-sentinel", planner="lru")
        record = plan.record
        runs = [i for i, instruction in enumerate(record["plan"]["instructions"]) if instruction[0] == "run"]
        del record["plan"]["instructions"][runs[0]]
        with self.assertRaises(terrace.InvalidRequest) as raised:  # a record's fingerprints notice it first
            terrace.Plan(json.dumps(record), plan.summary).verdict()
        self.assertIn("fingerprint", str(raised.exception))

    def test_what_is_wrong_is_said_in_one_sentence(self):
        graph = random_graph(4)
        wrong = [
            (dict(machine="nowhere"), terrace.InvalidRequest, "nowhere"),
            (dict(machine="numa-sentinel", planner="bset"), terrace.InvalidRequest, "best"),
            (dict(machine="numa-sentinel", fast="much"), terrace.InvalidRequest, "much"),
            (dict(machine="numa-sentinel", budget=[1]), terrace.InvalidRequest, "tiers"),
            (dict(machine=machine("/tmp/x"), fast="64"), terrace.NoRoom, "missing"),
        ]
        for options, kind, words in wrong:
            with self.assertRaises(kind) as raised:
                terrace.plan(graph, **options)
            self.assertIn(words, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))
        with self.assertRaises(terrace.InvalidRequest) as raised:
            terrace.check_graph({"format": "terrace-graph", "version": 1, "tensors": [], "kernels": [{"name": "k"}]})
        self.assertIn("kernels[0]", str(raised.exception))
        with self.assertRaises(FileNotFoundError):
            terrace.plan("/nowhere/g.json")

    def test_what_progress_raises_ends_the_work(self):
        class Enough(Exception):
            pass

        def tell(what):
            raise Enough(what)

        with self.assertRaises(Enough):
            terrace.plan(random_graph(5), machine="numa-sentinel", progress=tell)

    def test_advice_and_lists(self):
        advice = terrace.advise(random_graph(6), machine="numa-sentinel", slowdown=0.2, planner="prefetch")
        self.assertLessEqual(advice["least"]["slowdown"], 0.2)
        self.assertIn("best", [planner["name"] for planner in terrace.planners()])
        self.assertIn("h200-pcie5", [preset["name"] for preset in terrace.machines()])
        self.assertEqual(terrace.machine("numa-sentinel")["name"], "numa-sentinel")


class Transfers(unittest.TestCase):
    def test_bytes_come_back_from_a_disk(self):
        with tempfile.TemporaryDirectory() as folder, memory.Tiers([f"file:{folder}/spill:1MiB,buffered"]) as tiers:
            source, target = bytearray(os.urandom(100_001)), bytearray(100_001)
            out = tiers.start([(memory.HOST, memory.address_of(source), 0, 8192, len(source))], keep=source)
            out.wait()
            self.assertTrue(out.done())
            back = tiers.start([(0, 8192, memory.HOST, memory.address_of(target), len(target))], memory.NORMAL, target)
            back.wait()
            self.assertEqual(source, target)
            self.assertEqual(tiers.traffic(memory.HOST, 0)["bytes"], len(source))

    def test_a_disk_that_fails_is_an_exception_with_the_path(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "spill")
            with memory.Tiers([f"file:{path}:8MiB,buffered,pool,keep"]) as tiers:
                os.truncate(path, 4096)  # reading beyond the end gives fewer bytes than were written
                target = bytearray(1 << 20)
                reading = tiers.start([(0, 1 << 20, memory.HOST, memory.address_of(target), 1 << 20)])
                with self.assertRaises(terrace.SystemFailed) as raised:
                    reading.wait()
                self.assertIn(path, str(raised.exception))
                del reading

    def test_a_full_disk_is_met_when_a_tier_is_opened(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(terrace.Error) as raised:
            memory.Tiers([f"file:{folder}/spill:1000TiB,buffered"])
        self.assertIn("spill", str(raised.exception))


def mixed(kernel, sources, count):
    """What a kernel makes of its inputs: bytes that depend on all of them."""
    salt = sum(source[0] * 31 + source[-1] * 7 + len(source) for source in sources) + kernel * 13
    return bytes((salt + i * (kernel + 3)) % 251 for i in range(min(count, 256))).ljust(count, b"\x05")


class Executed(unittest.TestCase):
    """A random step under a plan ends with the bytes of the same step without limits."""

    def reference(self, graph, start, steps):
        values = dict(start)
        for _ in range(steps):
            values["x"] = start["x"]
            for i, kernel in enumerate(graph["kernels"]):
                (output,) = kernel["outputs"]
                sizes = {tensor["name"]: 4 * tensor["shape"][0] for tensor in graph["tensors"]}
                values[output] = mixed(i, [values[name] for name in kernel["inputs"]], sizes[output])
        return values

    def planned(self, seed, folder):
        graph = random_graph(seed)
        # A token keeps the kernels in the graph's order, so that their numbers are those of the reference.
        graph["tensors"].append({"name": "order", "shape": [0], "kind": "token"})
        for kernel in graph["kernels"]:
            kernel["inputs"].append("order")
            kernel["outputs"].append("order")
        plan = terrace.plan(graph, machine=machine(f"{folder}/spill"), fast="70%", planner="prefetch")
        return random_graph(seed), plan

    def names(self, plan):
        return [tensor["name"] for tensor in plan.record["graph"]["tensors"]]

    def start_of(self, graph):
        return {
            tensor["name"]: bytes((i * 7 + len(tensor["name"])) % 256 for i in range(4 * tensor["shape"][0]))
            for tensor in graph["tensors"] if tensor.get("kind") in ("input", "weight")
        }

    def test_in_memory_of_the_library(self):
        for seed in range(3):
            with tempfile.TemporaryDirectory() as folder:
                graph, plan = self.planned(seed, folder)
                names, start = self.names(plan), self.start_of(graph)

                def run(kernel, variant, operands):
                    given = operands[: len(graph["kernels"][kernel]["inputs"])]
                    sources = [ctypes.string_at(address, count) for address, count in given]
                    target = operands[len(given) + 1]  # behind the token
                    ctypes.memmove(target[0], mixed(kernel, sources, target[1]), target[1])

                executor = memory.Executor(plan.record_text, run)
                for name in ("w0", "w1", "w2"):
                    executor.write(names.index(name), start[name], len(start[name]))
                for _ in range(2):
                    executor.write(names.index("x"), start["x"], len(start["x"]))
                    executor.step()
                expected = self.reference(graph, start, 2)
                for name in ("w0", "w1", "w2", graph["results"][0]):
                    got = ctypes.create_string_buffer(len(expected[name]))
                    executor.read(names.index(name), got, len(expected[name]))
                    self.assertEqual(got.raw, expected[name], (seed, name))
                executor.close()

    def test_in_memory_of_the_caller_within_the_budget(self):
        moved = 0
        for seed in range(6):
            with tempfile.TemporaryDirectory() as folder:
                graph, plan = self.planned(seed, folder)
                names, start = self.names(plan), self.start_of(graph)
                sizes = {tensor["name"]: 4 * tensor["shape"][0] for tensor in graph["tensors"]}
                live, most = {}, 0

                def alloc(tensor, count, filled):
                    nonlocal most
                    self.assertNotIn(tensor, live)
                    live[tensor] = ctypes.create_string_buffer(max(count, 1))
                    most = max(most, sum(sizes.get(names[each], 0) for each in live))
                    return ctypes.addressof(live[tensor])

                def run(kernel, variant):
                    wanted = graph["kernels"][kernel]
                    sources = [live[names.index(name)].raw for name in wanted["inputs"]]
                    (output,) = wanted["outputs"]
                    live[names.index(output)].raw = mixed(kernel, sources, sizes[output])

                executor = memory.Executor(
                    plan.record_text, run, alloc, lambda tensor: live.pop(tensor) and None,
                    lambda tensor: ctypes.addressof(live[tensor]))
                in_fast = {names[tensor] for tensor, tier, _ in plan.record["plan"]["start"] if tier == 0}
                for name in start:
                    if name in in_fast:
                        live[names.index(name)] = ctypes.create_string_buffer(start[name], len(start[name]))
                    if name in in_fast and name not in {names[t] for t, tier, _ in plan.record["plan"]["start"] if tier}:
                        continue
                    executor.write(names.index(name), start[name], len(start[name]))
                live.setdefault(names.index("order"), ctypes.create_string_buffer(1))
                executor.step()
                moved += sum(executor.result()["moved_bytes"].values())
                expected = self.reference(graph, start, 1)
                result = graph["results"][0]
                self.assertEqual(live[names.index(result)].raw, expected[result])
                for name in ("w0", "w1", "w2"):
                    if name in in_fast:
                        self.assertEqual(live[names.index(name)].raw, expected[name], (seed, name))
                self.assertLessEqual(most, plan.record["budget"][0])
                executor.close()
        self.assertGreater(moved, 0)

    def test_what_a_kernel_raises_is_raised_by_the_step(self):
        with tempfile.TemporaryDirectory() as folder:
            _, plan = self.planned(1, folder)

            def run(kernel, variant, operands):
                raise KeyError("lost")

            executor = memory.Executor(plan.record_text, run)
            with self.assertRaises(KeyError):
                executor.step()


if __name__ == "__main__":
    unittest.main()
