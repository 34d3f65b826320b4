#!/usr/bin/env python3
"""train.py - times a training step of two networks beside PyTorch and JAX: cross-entropy, its gradients, and
gradient descent with momentum. The networks are 784-1000-1000-10 and the convolutional one of docs/results.md.
Duet runs the step as statements (with automatic replay on the GPU) and as a recording. PyTorch runs it eagerly,
compiled, and as a CUDA graph; JAX compiled. All run in one process, in turns. The weights after two steps are
first compared with those of PyTorch in double.

    train.py MODULE [--gpu] [--batches N,N] [--networks dense,cnn] [--without compiled] [--json FILE]"""

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
    sys.exit("train.py: NumPy is needed to make the data")

MOMENTUM, RATE = 0.9, 0.05
TOLERANCE = 1e-4  # relative, of the change of each weight matrix in two steps
TURNS, LEAST_BLOCK = 7, 0.05  # seconds


class Duet:
    def __init__(self, path, network, batch, gpu):
        self.c = c = ctypes.CDLL(path)
        c.train_open.restype = ctypes.c_void_p
        c.train_open.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_int]
        c.train_error.restype = ctypes.c_char_p
        for f in (c.train_set, c.train_get, c.train_shape):
            f.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        c.train_run.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        c.train_close.argtypes = c.train_explain.argtypes = [ctypes.c_void_p]
        self.t = c.train_open(network.encode(), batch, gpu)
        if not self.t:
            sys.exit("train.py: " + c.train_error().decode())

    def shapes(self):
        found = []
        while True:
            size = (ctypes.c_int64 * 8)()
            rank = self.c.train_shape(self.t, len(found), size)
            if rank < 0:
                return found
            found.append(tuple(size[:rank]))

    def set(self, k, a):
        a = np.ascontiguousarray(a, np.float32)
        self.check(not self.c.train_set(self.t, k, a.ctypes.data_as(ctypes.c_void_p)))

    def get(self, k, shape):
        a = np.empty(shape, np.float32)
        self.check(not self.c.train_get(self.t, k, a.ctypes.data_as(ctypes.c_void_p)))
        return a

    def run(self, steps, how):
        self.check(self.c.train_run(self.t, steps, how))

    def launches(self, how):
        """The kernels and CUDA graphs that a step launches."""
        counts = []
        for _ in range(2):
            kernels, graphs = ctypes.c_uint64(), ctypes.c_uint64()
            self.c.train_launches(ctypes.byref(kernels), ctypes.byref(graphs))
            counts.append((kernels.value, graphs.value))
            self.run(100, how)
        return [(b - a) / 100 for a, b in zip(*counts)]

    def check(self, status):
        if status:
            sys.exit("train.py: " + self.c.train_error().decode())

    def close(self):
        self.c.train_close(self.t)


# ---- the peers: step(n) runs n steps and waits ----


def torch_loss(torch, network, w, x, target):
    f = torch.nn.functional
    k = 0
    if network == "cnn":
        for k in (0, 2):
            x = f.max_pool2d(f.relu(f.conv2d(x, w[k], w[k + 1], padding=1)), 2)
        x, k = x.flatten(1), 4
    while k + 2 < len(w):
        x = f.relu(torch.addmm(w[k + 1], x, w[k]))
        k += 2
    return f.cross_entropy(torch.addmm(w[k + 1], x, w[k]), target)


class Torch:
    def __init__(self, network, arrays, gpu, kind):
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        self.torch, self.gpu = torch, gpu
        self.name = f"PyTorch {torch.__version__} {kind}"
        put = lambda a: torch.tensor(a, device="cuda" if gpu else "cpu")
        x, target = put(arrays[0]), put(arrays[1])
        self.w = [put(a).requires_grad_() for a in arrays[2:]]
        self.optimiser = torch.optim.SGD(self.w, RATE, MOMENTUM, **({"fused": True} if gpu else {}))
        loss = lambda w, x, target: torch_loss(torch, network, w, x, target)
        if kind == "compiled":
            torch.compiler.reset()
            loss = torch.compile(loss, dynamic=False, mode="reduce-overhead" if gpu else None)
        self.once = lambda: self.one(loss, x, target)
        if kind == "graph":
            self.capture()

    def one(self, loss, x, target):
        self.optimiser.zero_grad(set_to_none=True)
        loss(self.w, x, target).backward()
        self.optimiser.step()

    def capture(self):
        torch = self.torch
        before = [w.detach().clone() for w in self.w]
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                self.once()
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.once()
        with torch.no_grad():
            for w, a in zip(self.w, before):
                w.copy_(a)
                self.optimiser.state[w]["momentum_buffer"].zero_()
        self.once = graph.replay

    def step(self, n):
        for _ in range(n):
            self.once()
        if self.gpu:
            self.torch.cuda.synchronize()

    def weights(self):
        return [w.detach().cpu().numpy() for w in self.w]


class Jax:
    def __init__(self, network, arrays, gpu):
        import jax

        jax.config.update("jax_default_matmul_precision", "highest")
        self.jax = jax
        self.name = f"JAX {jax.__version__} jit"
        device = jax.devices("cuda" if gpu else "cpu")[0]
        put = lambda a: jax.device_put(a, device)
        x, target, self.w = put(arrays[0]), put(arrays[1]), [put(a) for a in arrays[2:]]
        self.v = [put(np.zeros_like(a)) for a in arrays[2:]]
        np_, lax = jax.numpy, jax.lax

        def loss(w, x, target):
            k = 0
            if network == "cnn":
                for k in (0, 2):
                    x = lax.conv_general_dilated(
                        x, w[k], (1, 1), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW")
                    )
                    x = np_.maximum(x + w[k + 1][:, None, None], 0)
                    x = lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
                x, k = x.reshape(x.shape[0], -1), 4
            while k + 2 < len(w):
                x = np_.maximum(x @ w[k] + w[k + 1], 0)
                k += 2
            return -(target * jax.nn.log_softmax(x @ w[k] + w[k + 1])).sum() / x.shape[0]

        def one(w, v, x, target):
            value, d = jax.value_and_grad(loss)(w, x, target)
            v = [MOMENTUM * a + b for a, b in zip(v, d)]
            return [a - RATE * b for a, b in zip(w, v)], v, value

        self.one = jax.jit(one, donate_argnums=(0, 1))
        self.x, self.target = x, target

    def step(self, n):
        for _ in range(n):
            self.w, self.v, _ = self.one(self.w, self.v, self.x, self.target)
        self.jax.block_until_ready(self.w)

    def weights(self):
        return [np.asarray(w) for w in self.w]


# ---- one cell ----


def data(shapes, network):
    """The input, the target as rows of one 1, and weights of the size that keeps signals."""
    rng = np.random.default_rng(1)
    count = (len(shapes) - 3) // 2
    arrays = [rng.standard_normal(shapes[0], np.float32), np.eye(10, dtype=np.float32)[rng.integers(0, 10, shapes[0][0])]]
    for s in shapes[2 : 2 + count]:
        fan = int(np.prod(s[1:])) if len(s) == 4 else s[0]
        arrays.append((rng.standard_normal(s) * (np.sqrt(2 / fan) if len(s) > 1 else 0.01)).astype(np.float32))
    return arrays


def reference(network, arrays):
    """The weights after two steps, by PyTorch in double."""
    import torch

    x, target = torch.tensor(arrays[0]).double(), torch.tensor(arrays[1]).double()
    w = [torch.tensor(a).double().requires_grad_() for a in arrays[2:]]
    optimiser = torch.optim.SGD(w, RATE, MOMENTUM)
    for _ in range(2):
        optimiser.zero_grad()
        torch_loss(torch, network, w, x, target).backward()
        optimiser.step()
    return [a.detach().numpy() for a in w]


def wrong(name, got, wanted, before):
    """What is wrong with the weights `got`, or None."""
    for k, (a, b, c) in enumerate(zip(got, wanted, before)):
        error = np.linalg.norm(a - b) / np.linalg.norm(b - c)
        if not error <= TOLERANCE:
            return f"{name}: parameter {k} has an error of {error:.2e} of its change"
    return None


def contenders(path, network, batch, gpu, without):
    duet = Duet(path, network, batch, gpu)
    arrays = data(duet.shapes(), network)
    count = len(arrays) - 2

    def restart():
        for k, a in enumerate(arrays):
            duet.set(k, a)
        for k in range(count):
            duet.set(2 + count + k, np.zeros_like(arrays[2 + k]))

    runs, weights = {}, {}
    wanted = reference(network, arrays)
    for how, name in enumerate(("Duet", "Duet, recorded")):
        restart()
        duet.run(2, how)
        got = [duet.get(2 + k, arrays[2 + k].shape) for k in range(count)]
        if problem := wrong(name, got, wanted, arrays[2:]):
            sys.exit(f"train.py: {problem}")
        runs[name] = lambda n, how=how: duet.run(n, how)
    peers = [lambda kind=kind: Torch(network, arrays, gpu, kind) for kind in ("eager", "compiled", "graph")]
    for kind, make in [*zip(("eager", "compiled", "graph"), peers), ("jax", lambda: Jax(network, arrays, gpu))]:
        if kind in without or (kind == "graph" and not gpu):
            continue
        try:
            peer = make()
            peer.step(2)
        except ImportError:
            continue
        except Exception as e:  # a peer that does not work here, or is wrong, is reported and not compared
            print(f"{kind}: {type(e).__name__}: {str(e).splitlines()[0]}")
            continue
        if problem := wrong(peer.name, peer.weights(), wanted, arrays[2:]):
            print(problem)
            continue
        runs[peer.name] = peer.step
    return duet, runs


def measure(runs):
    steps = {}
    for name, run in runs.items():
        run(10)
        n = 1
        while True:
            start = time.perf_counter()
            run(n)
            if time.perf_counter() - start >= LEAST_BLOCK:
                break
            n *= 2
        steps[name] = n
    times = {name: [] for name in runs}
    for turn in range(TURNS):
        for name in list(runs) if turn % 2 else reversed(list(runs)):
            start = time.perf_counter()
            runs[name](steps[name])
            times[name].append((time.perf_counter() - start) / steps[name])
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("module")
    p.add_argument("--gpu", action="store_true")
    p.add_argument("--batches", default="64,256,1024,4096")
    p.add_argument("--networks", default="dense,cnn")
    p.add_argument("--without", default="")
    p.add_argument("--explain", action="store_true")
    p.add_argument("--json")
    a = p.parse_args()
    found = []
    for network in a.networks.split(","):
        for batch in map(int, a.batches.split(",")):
            duet, runs = contenders(a.module, network, batch, int(a.gpu), a.without.split(","))
            if a.explain:
                duet.c.train_explain(duet.t)
            times = measure(runs)
            if a.gpu:
                print("kernels and graphs a step: %g %g, recorded: %g %g" % (*duet.launches(0), *duet.launches(1)))
            duet.close()
            best = min([t for name, t in times.items() if not name.startswith("Duet")], default=float("nan"))
            own = min(t for name, t in times.items() if name.startswith("Duet"))
            found.append({"network": network, "batch": batch, "seconds": times, "ratio": own / best})
            print(f"{network} {batch}: Duet / best peer {own / best:.3f}")
            for name, t in times.items():
                print(f"    {name:32} {t * 1e6:10.1f} us")
            sys.stdout.flush()
            if a.json:
                with open(a.json, "w") as f:
                    json.dump({"machine": "gpu" if a.gpu else "cpu", "cells": found}, f, indent=1)


main()
