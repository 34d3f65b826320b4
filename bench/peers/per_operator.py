#!/usr/bin/env python3
"""per_operator.py - times operators of each kind at a small, a medium and a large size. On the CPU
Duet is compared with a direct call of the vendor's library, on the GPU with PyTorch (eager). All
run in one process, in turns. Results are first compared with those of NumPy, or of PyTorch in
double.

    per_operator.py MODULE [--gpu] [--quick] [--only FAMILY[,FAMILY]] [--json FILE]"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for NumPy's own copy: its threads would disturb the measurement
try:
    import numpy as np
except ImportError:
    sys.exit("per_operator.py: NumPy is needed to check results")
del os.environ["OPENBLAS_NUM_THREADS"]

SIZES = ("small", "medium", "large")
LEAST_BLOCK = 4e-3  # seconds
LIMIT = {"cpu": 1.1, "gpu": 1.0}  # ratios of Duet's time to the peer's above this are marked


# ---- the cases in NumPy, for reference, and in PyTorch ----


def windows(x, pad):
    return np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))), (3, 3), axis=(2, 3)
    )


def conv(x, w):
    return np.tensordot(windows(x, 1), w, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def filter_grad(x, dy):
    return np.tensordot(dy, windows(x, 1), axes=((0, 2, 3), (0, 2, 3))).transpose(0, 1, 2, 3)


def pooled(x, by):
    n, c, h, w = x.shape
    return by(x.reshape(n, c, h // 2, 2, w // 2, 2), axis=(3, 5))


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normed(x, g, b):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b


def symmetric(a):
    return np.tril(a) + np.tril(a, -1).T


def gelu(x):
    from math import erf

    return x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2


NUMPY = {
    "add": np.add,
    "add f16": np.add,
    "add i32": np.add,
    "less": np.less,
    "gelu": gelu,
    "sum": np.sum,
    "sum of rows": lambda x: x.sum(1),
    "sum of columns": lambda x: x.sum(0),
    "var of rows": lambda x: x.var(1),
    "argmax of rows": lambda x: x.argmax(1),
    "transpose": lambda x: x.T,
    "matmul": np.matmul,
    "matmul f64": np.matmul,
    "matrix by vector": np.matmul,
    "batched matmul": np.matmul,
    "conv2d": conv,
    "conv2d_input_grad": lambda dy, w: conv(dy, w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)),
    "conv2d_filter_grad": filter_grad,
    "max_pool2d": lambda x: pooled(x, np.max),
    "avg_pool2d": lambda x: pooled(x, np.mean),
    "softmax": soft,
    "layer_norm": normed,
    "fft": lambda x: np.fft.fft(x, axis=1),
    "rfft2": np.fft.rfft2,
    "solve": np.linalg.solve,
    "inv": np.linalg.inv,
    "cholesky": lambda a: np.linalg.cholesky(symmetric(a)),
    "qr": lambda a: np.abs(np.linalg.qr(a)[1]),
    "eigvalsh": np.linalg.eigvalsh,
    "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
    "cumsum": np.cumsum,
    "sort": np.sort,
    "histogram": lambda x: np.histogram(x, 256, (-1, 1))[0],
    "top_k": lambda x: -np.sort(-x, 1)[:, :10],
    "take": lambda x, i: x[i],
}
NUMPY_SEES = {"qr": np.abs}  # applied to results before they are compared
BARE_SEES = {
    "cholesky": np.tril,
    "qr": None,
}  # applied to results of bare calls; None: not comparable, as it is of the transpose
TOLERANCE = {
    "sum": 1e-3,
    "cumsum": 1e-3,
    "sum of rows": 1e-4,
    "sum of columns": 1e-4,
    "add f16": 1e-3,
    "histogram": 1e-3,
    "argmax of rows": 1e-3,
}


def torch_calls(t):
    f = t.nn.functional
    return {
        "add": t.add,
        "add f16": t.add,
        "add i32": t.add,
        "less": t.lt,
        "gelu": f.gelu,
        "sum": t.sum,
        "sum of rows": lambda x: x.sum(1),
        "sum of columns": lambda x: x.sum(0),
        "var of rows": lambda x: x.var(1, correction=0),
        "argmax of rows": lambda x: x.argmax(1),
        "transpose": lambda x: x.t().contiguous(),
        "matmul": t.matmul,
        "matmul f64": t.matmul,
        "matrix by vector": t.mv,
        "batched matmul": t.bmm,
        "conv2d": lambda x, w: f.conv2d(x, w, padding=1),
        "conv2d_input_grad": lambda dy, w: t.nn.grad.conv2d_input(
            (dy.shape[0], w.shape[1], *dy.shape[2:]), w, dy, padding=1
        ),
        "conv2d_filter_grad": lambda x, dy: t.nn.grad.conv2d_weight(
            x, (dy.shape[1], x.shape[1], 3, 3), dy, padding=1
        ),
        "max_pool2d": lambda x: f.max_pool2d(x, 2),
        "avg_pool2d": lambda x: f.avg_pool2d(x, 2),
        "softmax": lambda x: t.softmax(x, -1),
        "layer_norm": lambda x, g, b: f.layer_norm(x, x.shape[-1:], g, b, 1e-5),
        "fft": lambda x: t.fft.fft(x, dim=1),
        "rfft2": t.fft.rfft2,
        "solve": t.linalg.solve,
        "inv": t.linalg.inv,
        "cholesky": t.linalg.cholesky,
        "qr": lambda a: t.linalg.qr(a)[1],
        "eigvalsh": t.linalg.eigvalsh,
        "svdvals": t.linalg.svdvals,
        "cumsum": lambda x: t.cumsum(x, 0),
        "sort": lambda x: t.sort(x)[0],
        "histogram": lambda x: t.histc(x, 256, -1, 1),
        "top_k": lambda x: t.topk(x, 10, 1)[0],
        "take": lambda x, i: t.index_select(x, 0, i),
        "uniform": t.rand_like,
        "normal": t.randn_like,
    }


# ---- Duet, through the module ----


class Module:
    def __init__(self, path):
        c = self.c = ctypes.CDLL(path)
        for name in ("case_family", "case_name", "case_vendor", "case_error"):
            getattr(c, name).restype = ctypes.c_char_p
        c.trial_open.restype = c.trial_data.restype = ctypes.c_void_p
        c.trial_run.restype = c.trial_bare.restype = ctypes.c_double
        c.trial_close.argtypes = [ctypes.c_void_p]
        c.trial_run.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        c.trial_bare.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p)]
        c.trial_data.argtypes = [ctypes.c_void_p, ctypes.c_int] + [ctypes.c_void_p] * 3

    def rows(self):
        text = lambda s: s.decode() if s else None
        return [
            (text(self.c.case_family(i)), text(self.c.case_name(i)), text(self.c.case_vendor(i)))
            for i in range(self.c.case_count())
        ]

    def open(self, row, size, gpu):
        t = self.c.trial_open(row, size, int(gpu))
        if not t:
            raise RuntimeError(self.c.case_error().decode())
        return t

    def array(self, trial, k, names):
        """Returns a copy of operand k, or of the result if k is 3. None: there is no such operand."""
        dtype, rank, size = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int64 * 8)()
        p = self.c.trial_data(trial, k, ctypes.byref(dtype), ctypes.byref(rank), size)
        if not p:
            return None
        return self.copy(p, names[dtype.value], list(size[: rank.value]))

    @staticmethod
    def copy(p, dtype, shape):
        n = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.frombuffer(ctypes.string_at(p, n), dtype).reshape(shape).copy()

    def operands(self, trial, names):
        return [a for a in (self.array(trial, k, names) for k in range(3)) if a is not None]


# ---- one case ----


def error_of(is_, should):
    wide = complex if np.iscomplexobj(should) else float
    a, b = np.asarray(is_).astype(wide), np.asarray(should).astype(wide)
    if a.shape != b.shape:
        return float("inf")
    norm = np.linalg.norm(b.ravel())
    return float(np.linalg.norm((a - b).ravel()) / (norm if norm else 1))


def check(case, what, is_, should):
    error = error_of(is_, should)
    if not error <= TOLERANCE.get(case, 2e-5):
        raise RuntimeError(f"{what}: wrong result, relative error {error:.2g}")
    return error


def timed(run):
    """Returns the number of calls in a block that takes at least LEAST_BLOCK seconds."""
    calls, took = 1, run(1)
    while took < LEAST_BLOCK and calls < 1 << 20:
        calls = max(2 * calls, int(calls * LEAST_BLOCK / max(took, 1e-7)))
        took = run(calls)
    return calls


def race(runs, blocks):
    """Returns the microseconds of a call of each, as medians over blocks that run in turns."""
    calls = [timed(r) for r in runs]
    times = [[r(n) / n for r, n in zip(runs, calls)] for _ in range(blocks)]
    return [1e6 * statistics.median(column) for column in zip(*times)]


def duet_run(module, trial):
    def run(calls):
        took = module.c.trial_run(trial, calls)
        if took < 0:
            raise RuntimeError(module.c.case_error().decode())
        return took

    return run


def on_cpu(module, trial, case, vendor, names):
    """Returns a function that runs the vendor's call, or None, and the error of Duet's result."""
    y = module.array(trial, 3, names)
    error = None
    if case in NUMPY:
        x = [
            a.astype(np.complex128 if np.iscomplexobj(a) else a.dtype if a.dtype.kind == "i" else np.float64)
            for a in module.operands(trial, names)
        ]
        want = NUMPY[case](*x)
        error = check(case, "Duet", NUMPY_SEES.get(case, lambda a: a)(y), want)
    if vendor is None:
        return None, error
    out = ctypes.c_void_p()
    bare = lambda calls: module.c.trial_bare(trial, calls, ctypes.byref(out))
    if bare(1) < 0:
        return None, error
    sees = BARE_SEES.get(case, lambda a: a)
    if sees:
        check(case, vendor, sees(Module.copy(out.value, y.dtype, list(y.shape))), want)
    return bare, error


def on_gpu(module, trial, case, names, torch, calls):
    x = [torch.from_numpy(a).cuda() for a in module.operands(trial, names)]
    call = calls[case]
    error = None
    if case in NUMPY:
        sees = NUMPY_SEES.get(case, lambda a: a)
        want = call(
            *[
                a.to(torch.complex128) if a.is_complex() else a.double() if a.is_floating_point() else a
                for a in x
            ]
        )
        error = check(case, "Duet", sees(module.array(trial, 3, names)), sees(want.cpu().numpy()))
        del want
    call(*x)
    torch.cuda.synchronize()

    def run(n):
        start = time.perf_counter()
        for _ in range(n):
            call(*x)
        torch.cuda.synchronize()
        return time.perf_counter() - start

    return run, error


def measure(module, row, size, gpu, names, torch, calls, blocks):
    family, case, vendor = row[1:]
    trial = module.open(row[0], size, gpu)
    try:
        peer, error = (
            on_gpu(module, trial, case, names, torch, calls)
            if gpu
            else on_cpu(module, trial, case, vendor, names)
        )
        times = race([duet_run(module, trial)] + ([peer] if peer else []), blocks)
    finally:
        module.c.trial_close(trial)
    name = f"PyTorch {torch.__version__} eager" if gpu else vendor if peer else None
    return {
        "family": family,
        "case": case,
        "size": SIZES[size],
        "machine": "gpu" if gpu else "cpu",
        "us": times[0],
        "error": error,
        "peer": name,
        "peer_us": times[1] if peer else None,
        "ratio": times[0] / times[1] if peer else None,
    }


def line(r):
    peer = f"{r['peer_us']:12.2f} {r['ratio']:7.3f}  {r['peer']}" if r["ratio"] else f"{'-':>12} {'-':>7}"
    return f"{r['case']:20} {r['size']:7} {r['us']:12.2f} {peer}" + (
        "  above the limit" if r["ratio"] and r["ratio"] > LIMIT[r["machine"]] else ""
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--json")
    a = parser.parse_args()
    torch = calls = None
    if a.gpu:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        calls = torch_calls(torch)
    module = Module(a.module)
    names = {
        module.c.type_number(s.encode()): t
        for s, t in {
            "f32": np.float32,
            "f64": np.float64,
            "i64": np.int64,
            "f16": np.float16,
            "i32": np.int32,
            "bool": np.bool_,
            "c64": np.complex64,
        }.items()
    }
    results, failed = [], 0
    print(f"{'case':20} {'size':7} {'us':>12} {'peer us':>12} {'ratio':>7}")
    for i, (family, case, vendor) in enumerate(module.rows()):
        for size in range(2 if a.quick else 3):
            if a.only and family not in a.only.split(","):
                continue
            try:
                results.append(
                    measure(
                        module,
                        (i, family, case, vendor),
                        size,
                        a.gpu,
                        names,
                        torch,
                        calls,
                        3 if a.quick else 9,
                    )
                )
                print(line(results[-1]), flush=True)
            except RuntimeError as e:
                failed += 1
                print(f"{case:20} {SIZES[size]:7} {e}", flush=True)
    if a.json:
        module.c.write_environment(a.json.encode())
        with open(a.json) as f:
            environment = json.load(f)
        with open(a.json, "w") as f:
            json.dump({**environment, "results": results}, f, indent=1)
    sys.exit(1 if failed else 0)


main()
