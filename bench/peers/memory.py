#!/usr/bin/env python3
"""memory.py - measures memory and time of the gradients of a deep network, with and without checkpoints,
and compares them with jax.checkpoint. Duet also runs within memory limits, where it chooses which values to
recompute. The network has layers of equal size with tanh; a result of a layer is four times as large as its
weights, because XLA keeps results in the memory of the gradients where they fit. The gradients are first
compared with JAX's in float64.

    memory.py MODULE [--gpu] [--layers 50] [--batch 4096] [--width 1024] [--json FILE]"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import numpy as np
except ImportError:
    sys.exit("memory.py: NumPy is needed to make the data")

EVERY = (0, 5, 7, 10)
TOLERANCE = 1e-4
TURNS = 5


class Duet:
    def __init__(self, path, a, every, arrays):
        self.c = c = ctypes.CDLL(path)
        c.deep_open.restype = ctypes.c_void_p
        c.deep_open.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
        c.deep_error.restype = ctypes.c_char_p
        c.deep_set.argtypes = c.deep_get.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        c.deep_run.argtypes = [ctypes.c_void_p, ctypes.c_int]
        c.deep_limit.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        c.deep_temporaries.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int)]
        c.deep_close.argtypes = [ctypes.c_void_p]
        self.n = c.deep_open(a.layers, every, a.batch, a.width, a.gpu)
        if not self.n:
            self.stop()
        self.layers, self.width = a.layers, a.width
        for k, array in zip([0, 1, *range(3, 3 + a.layers)], arrays):
            self.check(not c.deep_set(self.n, k, array.ctypes.data_as(ctypes.c_void_p)))

    def stop(self):
        sys.exit("memory.py: " + self.c.deep_error().decode())

    def check(self, failed):
        if failed:
            self.stop()

    def run(self, times):
        self.check(self.c.deep_run(self.n, times))

    def temporaries(self):
        bytes_, again = ctypes.c_uint64(), ctypes.c_int()
        self.check(self.c.deep_temporaries(self.n, ctypes.byref(bytes_), ctypes.byref(again)))
        return bytes_.value, again.value

    def gradients(self):
        found = []
        for k in range(self.layers):
            a = np.empty((self.width, self.width), np.float32)
            self.check(not self.c.deep_get(self.n, 3 + self.layers + k, a.ctypes.data_as(ctypes.c_void_p)))
            found.append(a)
        return found


def jax_gradients(jax, every, x, target):
    """A function of the weights: the loss and its gradients. `every` layers: one jax.checkpoint."""
    tanh = jax.numpy.tanh

    def part(y, w):
        for each in w:
            y = tanh(y @ each)
        return y

    def loss(w):
        y, step = x, every or len(w)
        for k in range(0, len(w), step):
            y = (jax.checkpoint(part) if every else part)(y, w[k : k + step])
        return ((y - target) ** 2).mean()

    return jax.jit(jax.value_and_grad(loss))


def check(name, got, wanted):
    for k, (a, b) in enumerate(zip(got, wanted)):
        error = np.linalg.norm(a - b) / np.linalg.norm(b)
        if not error <= TOLERANCE:
            sys.exit(f"memory.py: {name}: the gradient of layer {k + 1} has an error of {error:.2e}")


def timed(runs):
    for run in runs.values():
        run()
    times = {name: [] for name in runs}
    for turn in range(TURNS):
        for name in list(runs) if turn % 2 else reversed(list(runs)):
            start = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("module")
    p.add_argument("--gpu", action="store_true")
    p.add_argument("--layers", type=int, default=50)
    p.add_argument("--batch", type=int, default=4096)
    p.add_argument("--width", type=int, default=1024)
    p.add_argument("--json")
    a = p.parse_args()
    a.gpu = int(a.gpu)
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((a.batch, a.width), np.float32), rng.standard_normal((a.batch, a.width), np.float32)]
    arrays += [
        (rng.standard_normal((a.width, a.width)) / np.sqrt(a.width)).astype(np.float32) for _ in range(a.layers)
    ]
    rows, runs = {}, {}

    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    jax.config.update("jax_enable_x64", True)
    put = lambda array: jax.device_put(array, jax.devices("cuda" if a.gpu else "cpu")[0])
    exact = [array.astype(np.float64) for array in arrays]
    wanted = [np.asarray(g) for g in jax_gradients(jax, 7, *map(put, exact[:2]))([put(w) for w in exact[2:]])[1]]
    x, target, *weights = map(put, arrays)
    for every in EVERY:
        name = f"JAX, checkpoints every {every}" if every else "JAX"
        made = jax_gradients(jax, every, x, target).lower(weights).compile()
        check(name, [np.asarray(g) for g in made(weights)[1]], wanted)
        rows[name] = {"temporaries": made.memory_analysis().temp_size_in_bytes}
        runs[name] = lambda made=made: jax.block_until_ready(made(weights))
    value = a.batch * a.width * 4
    for limit in (25 * value, 15 * value, 10 * value, 8 * value):
        name = f"Duet, limit of {limit // value} results"
        duet = Duet(a.module, a, 0, arrays)  # alone, because the limit holds for all matrices
        duet.run(1)
        duet.check(duet.c.deep_limit(duet.n, limit))
        duet.run(1)
        check(name, duet.gradients(), wanted)
        temporaries, again = duet.temporaries()
        seconds = timed({name: lambda: duet.run(1)})[name]
        rows[name] = {"temporaries": temporaries, "steps_again": again, "seconds": seconds}
        duet.check(duet.c.deep_limit(duet.n, 0))
        duet.c.deep_close(duet.n)
    for every in EVERY:
        name = f"Duet, checkpoints every {every}" if every else "Duet"
        duet = Duet(a.module, a, every, arrays)
        duet.run(1)
        check(name, duet.gradients(), wanted)
        temporaries, again = duet.temporaries()
        rows[name] = {"temporaries": temporaries, "steps_again": again}
        runs[name] = lambda duet=duet: duet.run(1)
    for name, t in timed(runs).items():
        rows[name]["seconds"] = t
    for name, row in rows.items():
        print(f"{name:36} {row['temporaries'] / value:8.2f} results {row['seconds'] * 1e3:10.2f} ms")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"layers": a.layers, "batch": a.batch, "width": a.width, "rows": rows}, f, indent=1)


main()
