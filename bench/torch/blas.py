#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how fast torch multiplies matrices here, in GFLOP/s, as {"gflops": N}: the best of ten. OpenBLAS chooses its
kernels by OPENBLAS_CORETYPE, or by a list of processors that ends years ago."""
import json
import time

import torch

N = 1536
a, b = torch.randn(N, N), torch.randn(N, N)
best = float("inf")
for _ in range(10):
    started = time.perf_counter()
    a @ b
    best = min(best, time.perf_counter() - started)
print(json.dumps({"gflops": 2 * N**3 / best / 1e9}))
