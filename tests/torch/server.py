#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch as the reference of the tests: reads one JSON request per line, answers one JSON object per line.

Tensors travel in safetensors files that the requests name. Requests:
  {"op": NAME, "attributes": {...}, "tensors": FILE, "result": FILE}            one operation and its gradients (ops.py)
      -> {"written": [names]}
  {"model": NAME, "config": {...}, "weights": FILE, "inputs": [FILE, ...],
   "optimizer": {"name": "sgd" or "adam", "learning_rate": ..., ...}, "result": FILE}      training steps (training.py)
      -> {"loss": [one per step], "margin": [how far from a jump of a gradient the data stayed, per step]}
  {"graph": [step, ...], "losses": {name: weight}, "learned": [names], "results": [names], "tensors": FILE,
   "result": FILE}                                             operations one after the other, differentiated (graph.py)
      -> {"margin": ...}
  {"describe": NAME, "config": {...}} -> {"parameters": {name: shape}, "buffers": {name: shape}}
What goes wrong is answered as {"error": "..."}; the server lives until its input ends. It needs Debian's
python3-torch and python3-torchvision, hence the interpreter above.
"""
import json
import os
import sys

# Tests share their machine: threads that wait should not spin. Read once, when torch brings its threads along.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import torch

import graph
import ops
import safetensors_io
import training


def answer(request):
    for kind, handler in HANDLERS.items():
        if kind in request:
            return handler(request)
    raise ValueError(f"a request has one of the keys {', '.join(HANDLERS)}; this one has {sorted(request)}")


def answer_op(request):
    fields = fields_of(request, {"op", "attributes", "tensors", "result"}, optional={"attributes"})
    result = ops.run(fields["op"], fields.get("attributes", {}), safetensors_io.read(fields["tensors"]))
    safetensors_io.write(fields["result"], result)
    return {"written": list(result)}


def answer_model(request):
    fields = fields_of(request, {"model", "config", "weights", "inputs", "optimizer", "result"})
    return training.train(fields.pop("model"), **fields)


def answer_graph(request):
    fields = fields_of(request, {"graph", "losses", "learned", "results", "tensors", "result"})
    tensors = safetensors_io.read(fields["tensors"])
    result, margin = graph.run(fields["graph"], fields["losses"], fields["learned"], fields["results"], tensors)
    safetensors_io.write(fields["result"], result)
    return {"margin": margin}


def answer_describe(request):
    fields = fields_of(request, {"describe", "config"})
    return training.describe(fields["describe"], fields["config"])


HANDLERS = {"op": answer_op, "model": answer_model, "graph": answer_graph, "describe": answer_describe}


def fields_of(request, names, optional=frozenset()):
    missing, unexpected = sorted(names - optional - set(request)), sorted(set(request) - names)
    if missing or unexpected:
        raise ValueError(f"the request misses {missing} and has unexpected {unexpected}")
    return dict(request)


def serve(requests, answers):
    for line in requests:
        if not line.strip():
            continue
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # whatever it is, the caller should read it and the server should live on
            reply = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


def main():
    # Answers have the original standard output to themselves: what a library prints there goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(2)
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
