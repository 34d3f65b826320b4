"""stacks.py [--count N] [--seconds S] [--sizes 4,8,...] [--types f32,f64] [--json FILE] - times linear algebra
on stacks of N small matrices (10,000) in Duet and PyTorch, on the GPU where PyTorch finds one, otherwise on one
core. For each size and function, residuals of both results are checked first; then both are timed in turn, and
the table lists the medians in milliseconds and the ratio Duet / PyTorch. Needs PyTorch, and the package duet."""

import argparse
import json
import platform
import statistics
import time

import numpy as np
import torch

import duet

TYPES = {'f32': (np.float32, 2e-4), 'f64': (np.float64, 1e-11)}
GPU = torch.cuda.is_available()


def wait():
    duet.synchronize()
    if GPU:
        torch.cuda.synchronize()


def mT(x):
    return np.swapaxes(x, -1, -2)


def largest(x):
    return float(np.max(np.abs(x)))


# Each function: (name, Duet's, PyTorch's, the largest error of a result `r` for a well-conditioned matrix `a`,
# symmetric and positive definite, and a right-hand side `b`).
FUNCTIONS = [
    ('inv', lambda a, b: duet.linalg.inv(a), lambda a, b: torch.linalg.inv(a), lambda r, a, b: a @ r[0] - np.eye(a.shape[-1])),
    ('solve', duet.linalg.solve, torch.linalg.solve, lambda r, a, b: a @ r[0] - b),
    ('det', lambda a, b: duet.linalg.det(a), lambda a, b: torch.linalg.det(a), lambda r, a, b: r[0] / np.linalg.det(a.astype(np.float64)) - 1),
    ('cholesky', lambda a, b: duet.linalg.cholesky(a), lambda a, b: torch.linalg.cholesky(a), lambda r, a, b: r[0] @ mT(r[0]) - a),
    ('qr', lambda a, b: duet.linalg.qr(a), lambda a, b: torch.linalg.qr(a), lambda r, a, b: r[0] @ r[1] - a),
    ('svdvals', lambda a, b: duet.linalg.svdvals(a), lambda a, b: torch.linalg.svdvals(a), lambda r, a, b: r[0] - np.linalg.svd(a.astype(np.float64), compute_uv=False)),
    ('svd', lambda a, b: duet.linalg.svd(a), lambda a, b: torch.linalg.svd(a), lambda r, a, b: (r[0] * r[1][..., None, :]) @ r[2] - a),
    ('eigh', lambda a, b: duet.linalg.eigh(a), lambda a, b: torch.linalg.eigh(a), lambda r, a, b: (r[1] * r[0][..., None, :]) @ mT(r[1]) - a),
]  # fmt: skip


def results(r):
    r = r if isinstance(r, tuple) else (r,)
    return [np.asarray(x.cpu()) if isinstance(x, torch.Tensor) else np.asarray(x) for x in r]


def evaluated(f, a, b):
    r = f(a, b)
    for x in r if isinstance(r, tuple) else (r,):
        x.evaluate()
    wait()
    return r


def called(f, a, b):
    r = f(a, b)
    wait()
    return r


def medians(calls, seconds):
    """Medians of the times of calls that are made in turn."""
    times = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not times[0]:
        for call, list_ in zip(calls, times):
            start = time.perf_counter()
            call()
            list_.append(time.perf_counter() - start)
    return [statistics.median(t) * 1e3 for t in times]


def measure(options):
    rng = np.random.default_rng(0)
    torch.set_num_threads(1)
    rows = []
    for kind in options.types.split(','):
        dtype, limit = TYPES[kind]
        for n in map(int, options.sizes.split(',')):
            x = rng.normal(size=(options.count, n, n)) / np.sqrt(n)
            a = (x @ mT(x) + np.eye(n)).astype(dtype)
            b = rng.normal(size=(options.count, n, 2)).astype(dtype)
            ours = duet.asarray(a), duet.asarray(b)
            theirs = [torch.tensor(t, device='cuda' if GPU else 'cpu') for t in (a, b)]
            for name, f, g, error in FUNCTIONS:
                calls = [lambda f=f: evaluated(f, *ours), lambda g=g: called(g, *theirs)]
                errors = [largest(error(results(call()), a, b)) for call in calls]
                if not max(errors) <= limit * n:
                    rows.append({'type': kind, 'n': n, 'function': name, 'errors': errors})
                    print(f'{kind} {n} {name}: errors {errors}, limit {limit * n}', flush=True)
                    continue
                duet_ms, torch_ms = medians(calls, options.seconds)
                row = {'type': kind, 'n': n, 'function': name, 'duet_ms': duet_ms, 'torch_ms': torch_ms}
                rows.append({**row, 'errors': errors})
                ratio = duet_ms / torch_ms
                print(f'| {kind} | {n} | {name} | {duet_ms:.3f} | {torch_ms:.3f} | {ratio:.2f} |', flush=True)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--count', type=int, default=10_000)
    p.add_argument('--seconds', type=float, default=0.5)
    p.add_argument('--sizes', default='4,8,16,32,64')
    p.add_argument('--types', default='f32,f64')
    p.add_argument('--json')
    options = p.parse_args()
    where = torch.cuda.get_device_name() if GPU else platform.processor() or platform.machine()
    print(f'{options.count} matrices, {where}, PyTorch {torch.__version__}\n')
    print('| type | n | function | Duet, ms | PyTorch, ms | ratio |\n|---|---|---|---|---|---|', flush=True)
    rows = measure(options)
    if options.json:
        with open(options.json, 'w') as f:
            about = {'machine': where, 'torch': torch.__version__, 'numpy': np.__version__, 'count': options.count}
            json.dump({**about, 'rows': rows}, f, indent=1)


main()
