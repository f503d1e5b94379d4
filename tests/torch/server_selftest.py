#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the reference server against plain formulas, published sizes and torchvision, over its own pipe.

  server_selftest.py [SHARE SHARES]    every check, or of so many shares that one

Ends with 77 where PyTorch is missing, which ctest counts as skipped.
"""
import json
import os
import runpy
import sys
import tempfile
import time
import traceback

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the server
try:
    import torch
    import torchvision  # noqa: F401 (the models need it)
except ImportError as error:
    print(f"skipped: {error}: install python3-torch and python3-torchvision")
    sys.exit(77)

import numpy as np

import ops
import safetensors_io
import selftest_formulas as formulas
import training
import selftest_twins as twins
from selftest_cases import MODEL_CASES, OP_CASES, SIZES

# Adds the same to all scores of a row, which softmax does not see: its gradient is rounding noise or zero.
NO_EFFECT = "self.key.bias"

FOLDER = os.path.dirname(os.path.abspath(__file__))


def serve(requests, answers):
    """Is the server from here on: it reads and writes these pipes, and never returns."""
    status = 1
    try:
        os.dup2(requests, 0)
        os.dup2(answers, 1)
        sys.stdin, sys.stdout = open(0), open(1, "w")
        runpy.run_path(os.path.join(FOLDER, "server.py"), run_name="__main__")
        sys.stdout.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


class Server:
    """The server as its users see it: a process, lines and files. It is forked, because PyTorch is loaded here already."""

    def __init__(self, folder):
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(ask)
            os.close(answered)
            serve(asked, answer)
        os.close(asked)
        os.close(answer)
        self.requests, self.answers = open(ask, "w"), open(answered)
        self.folder = folder

    def ask(self, line):
        self.requests.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        self.requests.flush()
        return json.loads(self.answers.readline())

    def put(self, name, tensors):
        path = os.path.join(self.folder, name)
        safetensors_io.write(path, tensors)
        return path

    def run(self, op, attributes, tensors):
        result = os.path.join(self.folder, "out.safetensors")
        request = {"op": op, "attributes": attributes, "tensors": self.put("in.safetensors", tensors), "result": result}
        reply = self.ask(request)
        assert "error" not in reply, (op, reply)
        written = safetensors_io.read(result)
        assert list(written) == reply["written"], op
        return written

    def train(self, model, config, weights, batches, optimizer):
        inputs = [self.put(f"step{i}.safetensors", batch) for i, batch in enumerate(batches)]
        result = os.path.join(self.folder, "final.safetensors")
        request = {"model": model, "config": config, "weights": self.put("weights.safetensors", weights)}
        reply = self.ask({**request, "inputs": inputs, "optimizer": optimizer, "result": result})
        return reply, None if "error" in reply else safetensors_io.read(result)

    def close(self):
        self.requests.close()
        assert os.waitpid(self.process, 0)[1] == 0


def every_op_follows_its_formula(server):
    assert {op for op, _, _ in OP_CASES} == set(ops.OPS), "every op has a case"
    for op, attributes, inputs in OP_CASES:
        arrays = [tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy() for tensor in inputs]
        expected = getattr(formulas, op)(*arrays, **attributes)
        state = ops.STATE.get(op, ())
        grads = [torch.randn(output.shape) for output in expected[: 1 if state else None]]
        tensors = {f"input{i}": tensor for i, tensor in enumerate(inputs)}
        tensors.update({f"grad{i}": grad for i, grad in enumerate(grads)})
        result = server.run(op, attributes, tensors)
        for i, output in enumerate(expected):
            assert np.allclose(result.pop(f"output{i}").numpy(), output, 1e-4, 1e-5), (op, attributes, i)
        for i, array in enumerate(arrays):
            if inputs[i].is_floating_point() and i not in state:
                gradient = result.pop(f"gradient_of_input{i}")
                assert gradient.shape == inputs[i].shape, (op, i)
                check_slope(op, attributes, arrays, i, grads, gradient)
        assert not result, (op, list(result))


def check_slope(op, attributes, arrays, i, grads, gradient):
    """The formula's slope in a random direction is the gradient's."""
    direction = np.random.default_rng(7).standard_normal(arrays[i].shape)

    def weighted(step):
        moved = [*arrays[:i], arrays[i] + step * direction, *arrays[i + 1 :]]
        outputs = getattr(formulas, op)(*moved, **attributes)
        return sum((grad.numpy() * output).sum() for grad, output in zip(grads, outputs))

    slope = (weighted(1e-6) - weighted(-1e-6)) / 2e-6
    found = (gradient.numpy() * direction).sum()
    assert abs(slope - found) <= 1e-3 * max(1, abs(slope)), (op, attributes, i, slope, found)


def outputs_alone_without_grads(server):
    assert list(server.run("relu", {}, {"input0": torch.randn(3)})) == ["output0"]


def published_sizes(server):
    for name, config, parameters in SIZES:
        shapes = server.ask({"describe": name, "config": config})["parameters"]
        assert sum(int(np.prod(shape)) for shape in shapes.values()) == parameters, (name, config)


def every_model_trains_by_momentum(server):
    every_model_trains(server, {"name": "sgd", "learning_rate": 0.05, "momentum": 0.9})


def every_model_trains_by_adam(server):
    every_model_trains(server, {"name": "adam", "learning_rate": 1e-3})


def every_model_trains(server, optimizer):
    assert {name for name, _, _ in MODEL_CASES} == set(training.MODELS), "every model has a case"
    for name, config, batch in MODEL_CASES:
        weights = random_weights(server.ask({"describe": name, "config": config}))
        reply, final = server.train(name, config, weights, 6 * [batch], optimizer)
        assert "error" not in reply, (name, reply)
        losses = np.array(reply["loss"])
        assert len(losses) == 6 and np.isfinite(losses).all(), (name, losses)
        assert name == "dcgan" or losses[-1] < losses[0], (name, losses)
        assert set(final) == set(weights), name
        still = [key for key in final if torch.equal(final[key], weights[key]) and not key.endswith(NO_EFFECT)]
        assert not still, (name, still)


def random_weights(description):
    """Of a scale that trains: small matrices, scales near one, unit running variances."""
    torch.manual_seed(3)
    weights = {}
    for name, shape in {**description["parameters"], **description["buffers"]}.items():
        fan = max(1, int(np.prod(shape[1:])))
        value = torch.randn(shape) * (fan**-0.5 if len(shape) > 1 else 0.05)
        weights[name] = value + 1 if len(shape) == 1 and name.endswith(("weight", "running_var")) else value
    return weights


def optimizers_follow_their_formulas(server):
    """Softmax regression by hand: two steps of each optimizer."""
    torch.manual_seed(5)
    x, label, w = torch.randn(8, 4), torch.randint(0, 3, (8,)), torch.randn(3, 4)
    batch = {"image": x, "label": label}
    sgd = {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}
    adam = {"name": "adam", "learning_rate": 0.1, "weight_decay": 0.01}
    start = {"fc1.weight": w, "fc1.bias": torch.zeros(3)}
    for optimizer in (sgd, adam, {**adam, "name": "adamw"}):
        _, final = server.train("mlp", {"sizes": [4, 3]}, start, 2 * [batch], optimizer)
        assert np.allclose(final["fc1.weight"].numpy(), regressed(x, label, w, optimizer["name"]), 1e-4, 1e-5), optimizer


def regressed(x, label, w, name):
    x, w, b = x.double().numpy(), w.double().numpy(), np.zeros(3)
    first, second = [0, 0], [0, 0]
    added, apart = (0, 0.01) if name == "adamw" else (0.01, 0)
    for step in (1, 2):
        wrong = (formulas.softmax(x @ w.T + b, scale=1, causal=False)[0] - np.eye(3)[label.numpy()]) / len(x)
        moves = []
        for i, gradient in enumerate((wrong.T @ x + added * w, wrong.sum(0) + added * b)):
            if name == "sgd":
                first[i] = 0.9 * first[i] + gradient
                moves.append(0.1 * first[i])
            else:
                first[i] = 0.9 * first[i] + 0.1 * gradient
                second[i] = 0.999 * second[i] + 0.001 * gradient**2
                moves.append(0.1 * first[i] / (1 - 0.9**step) / (np.sqrt(second[i] / (1 - 0.999**step)) + 1e-8))
        w, b = w * (1 - 0.1 * apart) - moves[0], b * (1 - 0.1 * apart) - moves[1]
    return w


def mistakes_are_answered(server):
    """Each with a sentence that names the mistake, and the server goes on."""
    weights = {"fc1.weight": torch.zeros(3, 4), "fc1.bias": torch.zeros(3)}
    batch = {"image": torch.zeros(1, 4), "label": torch.zeros(1, dtype=torch.int64)}
    sgd = {"name": "sgd", "learning_rate": 0.1}

    def train_error(weights, batch, optimizer):
        return server.train("mlp", {"sizes": [4, 3]}, weights, [batch], optimizer)[0]["error"]

    assert "fc1.bias" in train_error({"fc1.weight": weights["fc1.weight"]}, batch, sgd)
    assert "stranger" in train_error({**weights, "stranger": torch.zeros(1)}, batch, sgd)
    assert "[3, 5]" in train_error({**weights, "fc1.weight": torch.zeros(3, 5)}, batch, sgd)
    assert "tokens" in train_error(weights, {**batch, "tokens": torch.zeros(1)}, sgd)
    assert "rmsprop" in train_error(weights, batch, {**sgd, "name": "rmsprop"})
    path = server.put("x.safetensors", {"input0": torch.zeros(2), "grad0": torch.zeros(3)})
    op = {"op": "relu", "attributes": {}, "tensors": path, "result": path + ".out"}
    assert "grad0" in server.ask(op)["error"]
    assert "slope" in server.ask({**op, "op": "leaky_relu"})["error"]
    assert "swish" in server.ask({**op, "op": "swish"})["error"]
    assert "nowhere" in server.ask({**op, "tensors": "nowhere"})["error"]
    assert "tensor" in server.ask({"op": "relu", "tensor": path, "result": path})["error"]
    for nonsense in ("{", "5", "[]", "{}"):
        assert server.ask(nonsense)["error"]


def graphs_are_their_operations(server):
    """Two uses of one tensor, a view, a fused relu, replaced statistics and weighted losses."""
    x, w = torch.randn(3, 4), torch.randn(3, 4)
    state = {"gamma": torch.rand(4), "beta": torch.randn(4), "mean": torch.zeros(4), "var": torch.ones(4)}
    norm = ["gamma", "beta", "mean", "var"]
    steps = [
        {"op": "add", "attributes": {"relu": True}, "inputs": [["x", [3, 4]], ["w", [3, 4]]], "outputs": ["y"]},
        {"op": "mul", "attributes": {}, "inputs": [["y", [12]], ["x", [12]]], "outputs": ["z"]},
        {"op": "batch_norm", "attributes": {"momentum": 1.0}, "inputs": [["z", [3, 4, 1, 1]], *([n, [4]] for n in norm)],
         "outputs": ["n", "mean", None]},
        {"op": "binary_cross_entropy", "attributes": {"target": 1.0}, "inputs": [["z", [12]]], "outputs": ["a"]},
        {"op": "binary_cross_entropy", "attributes": {"target": 0.0}, "inputs": [["n", [12]]], "outputs": ["b"]},
    ]  # fmt: skip
    result = os.path.join(server.folder, "graph.safetensors")
    request = {"graph": steps, "losses": {"a": 2.0, "b": 1.0}, "learned": ["x", "w"], "results": ["y", "mean", "a"]}
    files = {"tensors": server.put("in.safetensors", {"x": x, "w": w, **state}), "result": result}
    reply = server.ask({**request, **files})
    found = safetensors_io.read(result)
    x.requires_grad_(), w.requires_grad_()
    y = (x + w).relu()
    z = y * x
    n = torch.nn.functional.batch_norm(z, None, None, state["gamma"], state["beta"], training=True)
    judge = torch.nn.functional.binary_cross_entropy_with_logits
    a = judge(z, torch.ones(3, 4))
    (2 * a + judge(n, torch.zeros(3, 4))).backward()
    expected = {"y": y, "mean": z.mean(0), "a": a.reshape(1), "gradient of x": x.grad, "gradient of w": w.grad}
    assert set(found) == set(expected), found.keys()
    assert all(torch.allclose(found[name], value, 1e-5, 1e-6) for name, value in expected.items())
    assert np.isclose(reply["margin"], ((x + w).abs().min() / (x + w).abs().max()).item())


def margins_see_ties_of_pools(server):
    x = torch.tensor([[[[1.0, 3.0, 0.0, 0.0, 2.0]]]])
    step = {"op": "max_pool2d", "attributes": {"kernel": [1, 2], "stride": [1, 2]}, "inputs": [["x", [1, 1, 1, 5]]]}
    result = os.path.join(server.folder, "pool.safetensors")
    request = {"graph": [{**step, "outputs": ["y"]}], "losses": {}, "learned": [], "results": ["y"], "result": result}
    reply = server.ask({**request, "tensors": server.put("in.safetensors", {"x": x})})
    assert np.isclose(reply["margin"], 2 / 3), reply


def files_keep_what_they_are_given(server):
    octets = torch.tensor([0, 255], dtype=torch.uint8)
    tensors = {"f": torch.randn(2, 3), "i": torch.tensor([-100, 7]), "u": octets}
    tensors.update({"empty": torch.empty(0, 2), "scalar": torch.tensor(1.5)})
    back = safetensors_io.read(server.put("kept.safetensors", tensors))
    assert list(back) == list(tensors) and all(torch.equal(back[name], tensor) for name, tensor in tensors.items())


def main():
    share, shares = map(int, sys.argv[1:]) if len(sys.argv) > 1 else (0, 1)
    torch.manual_seed(1)
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        own = (
            files_keep_what_they_are_given, every_op_follows_its_formula, outputs_alone_without_grads, published_sizes,
            every_model_trains_by_momentum, every_model_trains_by_adam, optimizers_follow_their_formulas,
            mistakes_are_answered, graphs_are_their_operations,
            margins_see_ties_of_pools,
        )  # fmt: skip
        for check in (own + twins.CHECKS)[share::shares]:
            started = time.monotonic()
            check(server)
            print(f"ok {check.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
        server.close()


if __name__ == "__main__":
    main()
