"""sparse_gpu.py [--seconds S] [--json FILE] - products with sparse matrices on the GPU: Duet beside cuSPARSE, which
CuPy's cupyx.cusparse calls with matrices that exist, and beside PyTorch. Results are compared first. Each time
is that of 20 calls one after the other, so that kernels hide what the calls of Python take; the table has
medians in microseconds a call, and the ratios Duet / peer. Matrices are those of sparse.py, but larger. Needs
CuPy, PyTorch, SciPy and the package duet."""

import argparse
import json
import statistics
import time

import cupy as cp
import numpy as np
import torch
from cupyx import cusparse
from cupyx.scipy.sparse import csr_matrix

import duet
from sparse import banded, blocks, power_law, stencil, uniform

CALLS, COLUMNS = 20, 32


def matrices(rng):
    return {
        'bands of 3': lambda: banded(6_000_000, 1),
        'bands of 21': lambda: banded(1_000_000, 10),
        'stencil of 5 points': lambda: stencil(2000),
        'random, 8 in a row': lambda: uniform(2_000_000, 2_000_000, 8, rng),
        'random, 64 in a row': lambda: uniform(300_000, 300_000, 64, rng),
        'power law': lambda: power_law(2_000_000, 8, rng),
        'blocks of 16': lambda: blocks(480_000, 16, rng),
        'few long rows': lambda: uniform(256, 1_000_000, 60_000, rng),
        'tall': lambda: uniform(5_000_000, 10_000, 3, rng),
        'wide': lambda: uniform(10_000, 5_000_000, 1500, rng),
    }


def together(f):
    """Seconds of one of CALLS calls."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        f()
    duet.synchronize()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / CALLS


def compare(calls, seconds):
    times, end = [[] for _ in calls], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for f, t in zip(calls, times):
            t.append(together(f))
    return [statistics.median(t) * 1e6 for t in times]


def cases(a, kind, rng):
    """(name, Duet's, CuPy's, PyTorch's): functions without arguments."""
    m, n = a.shape
    s = duet.sparse.from_scipy(a)
    c = csr_matrix(a)
    t = torch.sparse_csr_tensor(*(torch.tensor(x) for x in (a.indptr, a.indices, a.data)), a.shape).cuda()
    x, wide = (rng.normal(size=size).astype(kind) for size in ((n,), (n, COLUMNS)))
    dx, cx, tx = duet.asarray(x), cp.asarray(x), torch.tensor(x).cuda()
    dw, cw, tw = duet.asarray(wide), cp.asfortranarray(cp.asarray(wide)), torch.tensor(wide).cuda()
    cy, cz = cp.zeros(m, kind), cp.zeros((m, COLUMNS), kind, order='F')
    yield 'S x', lambda: (s @ dx).evaluate(), lambda: cusparse.spmv(c, cx, cy), lambda: t @ tx
    yield 'S X', lambda: (s @ dw).evaluate(), lambda: cusparse.spmm(c, cw, cz), lambda: t @ tw


def check(name, a, calls):
    d, c, t = (f() for f in calls)
    d, c, t = np.asarray(d), cp.asnumpy(c), t.cpu().numpy()
    limit = 1e-4 if a.dtype == np.float32 else 1e-11
    for peer, y in ('cuSPARSE', c), ('PyTorch', t):
        error = np.max(np.abs(d - y)) / (1 + np.max(np.abs(d)))
        if not error <= limit:
            raise SystemExit(f'{name}: Duet and {peer} differ by {error}')


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--seconds', type=float, default=0.4)
    p.add_argument('--json')
    options = p.parse_args()
    rng, rows = np.random.default_rng(1), []
    print(f'{torch.cuda.get_device_name()}, CuPy {cp.__version__}, PyTorch {torch.__version__}\n')
    print('| matrix | type | product | Duet, us | cuSPARSE | PyTorch | / cuSPARSE | / PyTorch |\n|---' + '|---' * 7 + '|')
    for name, make in matrices(rng).items():
        a = make().tocsr()
        a.sum_duplicates()
        for kind in np.float32, np.float64:
            b = a.astype(kind)
            b.indices, b.indptr = b.indices.astype(np.int32), b.indptr.astype(np.int32)
            for case, *calls in cases(b, kind, rng):
                check(f'{name}, {case}', b, calls)
                u, v, w = compare(calls, options.seconds)
                rows.append({'matrix': name, 'elements': int(a.nnz), 'type': kind.__name__, 'product': case,
                             'duet_us': u, 'cusparse_us': v, 'torch_us': w})
                print(f'| {name} | {kind.__name__} | {case} | {u:.1f} | {v:.1f} | {w:.1f} | {u / v:.2f} | {u / w:.2f} |',
                      flush=True)
    if options.json:
        with open(options.json, 'w') as f:
            about = {'machine': torch.cuda.get_device_name(), 'torch': torch.__version__, 'cupy': cp.__version__}
            json.dump({**about, 'rows': rows}, f, indent=1)


main()
