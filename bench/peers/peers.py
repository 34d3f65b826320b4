#!/usr/bin/env python3
"""peers.py - runs the five benchmarks in PyTorch, JAX and Eigen, and the tests of duet-vectors in
PyTorch (eager and compiled), JAX and CuPy. The input data are those of Duet. Results are checked
before they are timed.

With --merge FILE it runs the cases that duet-bench or duet-vectors has written to FILE, checks that
the results agree, and adds its own to the file. Peers that cannot be imported are skipped; nothing
is installed."""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import common
    import vectors
except ImportError as e:
    sys.exit(f"peers.py: {e}; without NumPy no peer can be compared")

QUICK = {
    "saxpy": [100, 10**4, 10**6],
    "sgemm": [10, 100, 500],
    "complex": [10, 100, 500],
    "dense": [1, 16, 256],
    "cnn": [1, 16, 256],
}
FULL = {
    "saxpy": [10**k for k in range(2, 9)],
    "sgemm": [10, 20, 50, 100, 200, 300, 500, 700, 1000, 1500, 2000],
    "dense": [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4096, 16384],
}
FULL["complex"], FULL["cnn"] = FULL["sgemm"], FULL["dense"]


# The math mode of Duet in the merged file, and the relative error that a mode may add, as in
# math_modes.c. Split is as accurate as f32, so its peers are strict. No peer rounds f32 operands to
# bf16 on a GPU, so for that mode peers use TF32.
math_mode = "strict"
MODE_ERROR = {"strict": 0, "split": 0, "tf32": 2**-9, "bf16": 2**-6}


def is_tf32():
    return math_mode in ("tf32", "bf16")


# ---- peers. make(bench, arrays) gives call() -> result, wait(), and host(result) -> NumPy ----


class Torch:
    """Eager mode in float32. TF32 is off for products and convolutions, unless Duet uses it or
    bf16."""

    def __init__(self, machine, threads):
        import torch

        self.torch, self.device = torch, torch.device("cuda" if machine == "gpu" else "cpu")
        if machine == "gpu" and not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = is_tf32()
        torch.backends.cudnn.allow_tf32 = is_tf32()
        self.name = f"PyTorch {torch.__version__} eager" + (" TF32" if is_tf32() else "")

    def has(self, bench):
        return True

    def formula(self, bench):
        if bench not in vectors.TESTS:
            return getattr(self, bench)
        return lambda *t: vectors.TESTS[bench][1](self, *t)

    def make(self, bench, arrays):
        t = [self.torch.from_numpy(a.copy()).to(self.device) for a in arrays]
        f = self.formula(bench)
        return lambda: f(*t)

    def wait(self, _):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def host(self, y):
        return y.cpu().numpy()

    # the functions of vectors.py
    def exp(self, x):
        return self.torch.exp(x)

    def log(self, x):
        return self.torch.log(x)

    def sqrt(self, x):
        return self.torch.sqrt(x)

    def sigmoid(self, x):
        return self.torch.sigmoid(x)

    def cdf(self, x):
        return self.torch.special.ndtr(x)

    def norm(self, x):
        return self.torch.linalg.vector_norm(x)

    def sum(self, x):
        return self.torch.sum(x)

    def argmax(self, x):
        return self.torch.argmax(x)

    def softmax(self, x):
        return self.torch.softmax(x, -1)

    def saxpy(self, x, y):
        return y.add_(x, alpha=float(np.float32(3.3)))

    def sgemm(self, a, b):
        return a @ b

    def complex(self, x, y):
        return (x @ (x * 1.2 + y)) @ (-1.2 * y - x)

    def dense(self, x, w1, b1, w2, b2, w3, b3):
        t = self.torch
        for w, b in (w1, b1), (w2, b2), (w3, b3):
            x = t.sigmoid(t.addmm(b, x, w))
        return x

    def cnn(self, x, k1, b1, k2, b2, w3, b3, w4, b4):
        t, f = self.torch, self.torch.nn.functional
        for k, b in (k1, b1), (k2, b2):
            x = f.max_pool2d(f.relu(f.conv2d(x, k, b, padding=1)), 2)
        x = f.relu(t.addmm(b3, x.flatten(1), w3))
        return f.softmax(t.addmm(b4, x, w4), 1)


class Compiled(Torch):
    """torch.compile, for each size separately. The forward passes use its mode of least overhead,
    with CUDA graphs."""

    def __init__(self, machine, threads):
        super().__init__(machine, threads)
        self.name = f"PyTorch {self.torch.__version__} compiled" + (" TF32" if is_tf32() else "")

    def has(self, bench):
        return bench in vectors.TESTS or bench in ("dense", "cnn")

    def formula(self, bench):
        self.torch.compiler.reset()
        mode = None if bench in vectors.TESTS else "reduce-overhead"
        return self.torch.compile(super().formula(bench), dynamic=False, mode=mode)


class Jax:
    """Compiled by XLA, in its highest precision, or in TF32 if Duet uses it or bf16."""

    def __init__(self, machine, threads):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        import jax.scipy.special

        jax.config.update("jax_default_matmul_precision", "tensorfloat32" if is_tf32() else "highest")
        self.jax, self.np = jax, jax.numpy
        self.device = jax.devices("cuda" if machine == "gpu" else "cpu")[0]
        self.name = f"JAX {jax.__version__} jit" + (" TF32" if is_tf32() else "")
        self.exp, self.log, self.sqrt, self.sum = jax.numpy.exp, jax.numpy.log, jax.numpy.sqrt, jax.numpy.sum
        self.norm, self.argmax = jax.numpy.linalg.norm, jax.numpy.argmax
        self.sigmoid, self.softmax, self.cdf = jax.nn.sigmoid, jax.nn.softmax, jax.scipy.special.ndtr

    def has(self, bench):
        return True

    def make(self, bench, arrays):
        a = [self.jax.device_put(x, self.device) for x in arrays]
        f = self.jax.jit(
            (lambda *t: vectors.TESTS[bench][1](self, *t)) if bench in vectors.TESTS else getattr(self, bench)
        )
        return lambda: f(*a)

    def wait(self, y):
        self.jax.block_until_ready(y)

    def host(self, y):
        return np.asarray(y)

    def saxpy(self, x, y):
        return np.float32(3.3) * x + y

    def sgemm(self, a, b):
        return a @ b

    def complex(self, x, y):
        return (x @ (x * np.float32(1.2) + y)) @ (np.float32(-1.2) * y - x)

    def dense(self, x, w1, b1, w2, b2, w3, b3):
        for w, b in (w1, b1), (w2, b2), (w3, b3):
            x = self.jax.nn.sigmoid(x @ w + b)
        return x

    def cnn(self, x, k1, b1, k2, b2, w3, b3, w4, b4):
        lax = self.jax.lax
        for k, b in (k1, b1), (k2, b2):
            x = lax.conv_general_dilated(
                x, k, (1, 1), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW")
            )
            x = self.np.maximum(x + b[:, None, None], 0)
            x = lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        x = self.np.maximum(x.reshape(x.shape[0], -1) @ w3 + b3, 0)
        return self.jax.nn.softmax(x @ w4 + b4)


class Cupy:
    """CuPy on the GPU: element-wise formulas in one kernel of cupy.fuse, and reductions by its own
    functions."""

    def __init__(self, machine, threads):
        import cupy
        import cupyx.scipy.special

        self.cupy, self.name = cupy, f"CuPy {cupy.__version__} fuse"
        self.exp, self.log, self.sqrt, self.sum = cupy.exp, cupy.log, cupy.sqrt, cupy.sum
        self.norm, self.argmax, self.cdf = cupy.linalg.norm, cupy.argmax, cupyx.scipy.special.ndtr

    def has(self, bench):
        return bench in vectors.TESTS and bench != "softmax"

    def sigmoid(self, x):
        return 1 / (1 + self.cupy.exp(-x))

    def make(self, bench, arrays):
        def run(*t):
            return vectors.TESTS[bench][1](self, *t)

        a = [self.cupy.asarray(x) for x in arrays]
        reduces = bench in vectors.ONE_NUMBER + ("normalise",)
        f = run if reduces else self.cupy.fuse(kernel_name=f"fused_{bench}")(run)
        return lambda: f(*a)

    def wait(self, _):
        self.cupy.cuda.Device().synchronize()

    def host(self, y):
        return self.cupy.asnumpy(y)


# ---- results, then times ----


def relative(got, wanted):
    return float(np.linalg.norm(got - wanted) / (np.linalg.norm(wanted) or 1))


def bound(bench, n):
    return (
        vectors.bound(bench, n)
        if bench in vectors.TESTS
        else max(common.bound(bench, n), MODE_ERROR[math_mode])
    )


def check(bench, n, arrays, y):
    """Compares some rows with the results in double, and computes norm and probe of all elements."""
    pick, wanted = vectors.want(bench, arrays) if bench in vectors.TESTS else common.want(bench, arrays)
    error = relative(np.atleast_1d(y)[pick].astype(np.float64), wanted)
    norm, probe = vectors.summary(bench, y) if bench in vectors.TESTS else common.summary(y)
    return {"ok": bool(error <= bound(bench, n)), "error": error, "norm": norm, "probe": probe}


def timed(call, wait, quick):
    """Returns the microseconds of a call: the median over blocks of calls, each of which waits for
    its last result."""
    warm, target, rounds = (0.01, 0.005, 5) if quick else (0.06, 0.02, 9)
    calls, start = 1, time.perf_counter()
    while True:
        t = time.perf_counter()
        for _ in range(calls):
            y = call()
        wait(y)
        took = time.perf_counter() - t
        if took >= target / 2 and time.perf_counter() - start >= warm:
            break
        calls *= 2 if took < target / 2 else 1
    calls = max(1, round(calls * target / took))
    times = []
    for _ in range(rounds):
        t = time.perf_counter()
        for _ in range(calls):
            y = call()
        wait(y)
        times.append(1e6 * (time.perf_counter() - t) / calls)
    return statistics.median(times)


def run_python(peer, bench, n, arrays, quick):
    """A peer that fails counts as wrong, and the others still run."""
    try:
        return run_peer(peer, bench, n, arrays, quick)
    except Exception as e:
        print(f"peers.py: {peer.name}, {bench}: {str(e).splitlines()[:1]}", file=sys.stderr)
        return {"ok": False, "error": math.nan, "norm": math.nan, "probe": math.nan, "us": None}


def run_peer(peer, bench, n, arrays, quick):
    call = peer.make(bench, arrays)
    start = time.perf_counter()
    y = call()
    peer.wait(y)
    first = 1e6 * (time.perf_counter() - start)
    r = check(bench, n, arrays, peer.host(y[0] if isinstance(y, tuple) else y))
    del y
    return {**r, "first_us": first, "us": timed(call, peer.wait, quick) if r["ok"] else None}


class Eigen:
    """peer-eigen creates the same data, writes the result of one call to a file, and prints the
    time of a call."""

    def __init__(self, path, threads):
        self.path, self.threads = path, threads
        self.name = (
            "Eigen " + subprocess.run([path], capture_output=True, text=True, check=True).stdout.strip()
        )

    def run(self, bench, n, arrays, seed, quick):
        env = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result")
            args = [self.path, bench, str(n), str(seed), path, "quick" if quick else "full"]
            us = float(subprocess.run(args, capture_output=True, text=True, check=True, env=env).stdout)
            r = check(bench, n, arrays, np.fromfile(path, np.float32).reshape(common.result_shape(bench, n)))
        return {**r, "us": us if r["ok"] else None}


def agrees(bench, n, a, b):
    """Whether two summaries belong to the same result. Each may have the allowed error."""
    allowed = 4 * bound(bench, n) * max(abs(a["norm"]), abs(b["norm"]))
    return all(abs(a[k] - b[k]) <= allowed for k in ("norm", "probe"))


# ---- the run ----


def find_peers(machines, threads, names):
    for cls in Torch, Compiled, Jax, Cupy:
        for machine in machines:
            if cls.__name__.lower() not in names or (cls is Cupy and machine == "cpu"):
                continue
            try:
                yield machine, cls(machine, threads)
            except Exception as e:  # a failing import or driver, or a missing device
                print(
                    f"peers.py: no {cls.__name__} on {machine}: "
                    + (str(e).splitlines()[0] if str(e) else type(e).__name__),
                    file=sys.stderr,
                )


def report(r):
    ratio = f"{r['ratio']:8.3f}" if r.get("ratio") else f"{'-':>8}"
    us = f"{r['us']:12.2f}" if r["us"] else f"{'-':>12}"
    flag = "" if r["ok"] else "  WRONG"
    if r.get("agrees") is False:
        flag += "  DISAGREES WITH DUET"
    print(
        f"{r['bench']:13} {r['size']:>10} {r['machine']:4} {us} {ratio}  "
        f"{r['peer']:<26} {r['error']:9.1e}{flag}",
        flush=True,
    )


def case(r, peer, duet):
    """Compares a result with Duet's, adds the ratio of the times, and prints it."""
    r["peer"] = peer
    d = duet.get((r["bench"], r["size"], r["machine"]))
    if d and d.get("norm") is not None:
        r["agrees"] = agrees(r["bench"], r["size"], r, d)
        if d.get("us") and r["us"] and r["agrees"]:
            r["ratio"] = d["us"] / r["us"]
    report(r)
    return r


def plan(args, duet):
    """Returns benchmarks and sizes: those of the merged file, or of the lists. Tests of vectors are
    sorted by size, because tests of the same size share input data."""
    if duet:
        five, tests = list(common.TENSORS), list(vectors.TESTS)
        found = {(b, n) for b, n, _ in duet if b in five or b in tests}
        return sorted(
            found,
            key=lambda k: (
                (five.index(k[0]), k[1], 0) if k[0] in five else (len(five), k[1], tests.index(k[0]))
            ),
        )
    table = QUICK if args.quick else FULL
    names = args.bench.split(",") if args.bench else list(table)
    return [
        (b, n)
        for b in names
        for n in ([int(float(s)) for s in args.sizes.split(",")] if args.sizes else table[b])
    ]


def run(args, duet, seed):
    machines = sorted({m for _, _, m in duet}) or (
        ["cpu", "gpu"] if args.backend == "both" else [args.backend]
    )
    names = args.peers.split(",")
    peers = list(find_peers(machines, args.threads, names))
    eigen = None
    if "eigen" in names and "cpu" in machines and args.eigen and os.access(args.eigen, os.X_OK):
        eigen = Eigen(args.eigen, args.threads)
    if not peers and not eigen:
        print("peers.py: neither PyTorch, JAX, CuPy nor Eigen is installed", file=sys.stderr)
    results = []
    for bench, n in plan(args, duet):
        arrays = None
        if peers or eigen:
            arrays = (vectors if bench in vectors.TESTS else common).inputs(bench, n, seed)
        for machine, peer in peers:
            if not peer.has(bench) or (bench, n, machine) not in (duet or {(bench, n, machine)}):
                continue
            r = {
                "bench": bench,
                "size": n,
                "machine": machine,
                **run_python(peer, bench, n, arrays, args.quick),
            }
            results.append(case(r, peer.name, duet))
        if eigen and bench in common.TENSORS:
            r = {"bench": bench, "size": n, "machine": "cpu", **eigen.run(bench, n, arrays, seed, args.quick)}
            results.append(case(r, eigen.name, duet))
    return results


def options():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument(
        "--merge",
        metavar="FILE",
        help="run the cases of this JSON file of duet-bench and add the results to it",
    )
    p.add_argument("--backend", choices=("cpu", "gpu", "both"), default="both")
    p.add_argument("--bench", help="NAME[,NAME]")
    p.add_argument("--sizes", help="N[,N]")
    p.add_argument("--peers", default="torch,compiled,jax,cupy,eigen")
    p.add_argument(
        "--eigen",
        metavar="PROGRAM",
        default=shutil.which("peer-eigen") or os.path.join(here, "../../build-bench/bench/peer-eigen"),
    )
    p.add_argument("--threads", type=int, help="default: those of the merged file, else all")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--json", metavar="FILE")
    return p.parse_args()


def main():
    global math_mode
    args, merged, duet = options(), None, {}
    if args.merge:
        with open(args.merge) as f:
            merged = json.load(f)
        duet = {(r["bench"], r["size"], r["machine"]): r for r in merged["results"]}
        math_mode = merged.get("math", "strict")
    seed = merged["seed"] if merged else args.seed
    args.threads = args.threads or (merged or {}).get("threads") or os.cpu_count()
    print(f"{'bench':13} {'size':>10} {'on':4} {'us':>12} {'duet/it':>8}  {'peer':<26} {'error':>9}")
    results = run(args, duet, seed)
    out = args.json or args.merge
    if out:
        document = {**(merged or {"seed": seed, "results": []}), "peers": results}
        with open(out, "w") as f:
            json.dump(document, f, indent=1)
            f.write("\n")
    sys.exit(any(not r["ok"] or r.get("agrees") is False for r in results))


if __name__ == "__main__":
    main()
