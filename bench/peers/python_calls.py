"""python_calls.py [SECONDS] - times small Python programs in Duet, NumPy, JAX, PyTorch and CuPy, as far as
these are installed, and prints a table in Markdown, in microseconds: the fastest of many repetitions. Each
program waits for its result. `recorded` is duet.record, `jit` is jax.jit.

    element-wise    y = exp(-x * x) * x + 2 * x, of 16, 10^4 and 10^6 elements, f32
    dense forward   relu(x w + b) v + c for 64 x 784, 784 x 256, 256 x 10, f32
    training step   the same with the mean squared error, gradients and a step of gradient descent"""

import sys
import time

import numpy as np

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
RATE = 0.01


def fastest(f):
    f(), f()
    start = time.perf_counter()
    f()
    once = max(time.perf_counter() - start, 1e-7)
    inner = max(1, min(1000, int(2e-3 / once)))
    best, end = float('inf'), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(inner):
            f()
        best = min(best, (time.perf_counter() - start) / inner)
    return best * 1e6


def inputs():
    rng = np.random.default_rng(0)
    shapes = (64, 784), (784, 256), (256,), (256, 10), (10,), (64, 10)
    return [rng.normal(size=s).astype(np.float32) * 0.1 for s in shapes]


# Each function returns {program: function without arguments}. The vectors are `sizes`.
SIZES = 16, 10_000, 1_000_000


def vectors():
    return {n: np.linspace(0, 1, n, dtype=np.float32) for n in SIZES}


def numpy_programs():
    def chain(x):
        return np.exp(-x * x) * x + 2 * x

    def forward(x, w, b, v, c):
        return np.maximum(x @ w + b, 0) @ v + c

    def step(x, w, b, v, c, t):
        h = np.maximum(x @ w + b, 0)
        d = (h @ v + c - t) * np.float32(2 / t.size)
        dv, dc = h.T @ d, d.sum(0)
        dh = (d @ v.T) * (h > 0)
        dw, db = x.T @ dh, dh.sum(0)
        w -= RATE * dw
        b -= RATE * db
        v -= RATE * dv
        c -= RATE * dc

    x, w, b, v, c, t = inputs()
    programs = {f'element-wise, {n}': (lambda a=a: chain(a)) for n, a in vectors().items()}
    return {
        **programs,
        'dense forward': lambda: forward(x, w, b, v, c),
        'training step': lambda: step(x, w, b, v, c, t),
    }


def duet_programs(recorded):
    import duet

    def chain(x):
        return duet.exp(-x * x) * x + 2.0 * x

    def forward(x, w, b, v, c):
        return duet.relu(x @ w + b) @ v + c

    def step(x, t, w, b, v, c):
        loss = duet.mean((forward(x, w, b, v, c) - t) ** 2)
        for p, g in zip((w, b, v, c), duet.grad(loss, [w, b, v, c])):
            p -= RATE * g
        duet.evaluate(w, b, v, c)

    flat = [duet.asarray(a) for a in inputs()[:5]]
    x, w, b, v, c, t = [duet.asarray(a) for a in inputs()]
    w, b, v, c = (duet.variable(p) for p in (w, b, v, c))
    wait = duet.synchronize
    programs = {}
    for n, a in vectors().items():
        a = duet.asarray(a)
        if recorded:
            run = duet.record(chain, a)
            programs[f'element-wise, {n}'] = lambda run=run: (run(), wait())
        else:
            programs[f'element-wise, {n}'] = lambda a=a: (chain(a).evaluate(), wait())
    if recorded:
        ahead, train = duet.record(forward, *flat), duet.record(step, x, t, w, b, v, c)
        return {
            **programs,
            'dense forward': lambda: (ahead(), wait()),
            'training step': lambda: (train(), wait()),
        }
    return {
        **programs,
        'dense forward': lambda: (forward(*flat).evaluate(), wait()),
        'training step': lambda: (step(x, t, w, b, v, c), wait()),
    }


def jax_programs(jit):
    import jax
    import jax.numpy as jnp

    def chain(x):
        return jnp.exp(-x * x) * x + 2 * x

    def forward(p, x):
        return jax.nn.relu(x @ p[0] + p[1]) @ p[2] + p[3]

    def step(p, x, t):
        g = jax.grad(lambda p: jnp.mean((forward(p, x) - t) ** 2))(p)
        return [a - RATE * d for a, d in zip(p, g)]

    x, *p, t = [jnp.asarray(a) for a in inputs()]
    if jit:
        chain, forward, step = jax.jit(chain), jax.jit(forward), jax.jit(step)
    wait = jax.block_until_ready
    programs = {f'element-wise, {n}': (lambda a=jnp.asarray(a): wait(chain(a))) for n, a in vectors().items()}
    return {
        **programs,
        'dense forward': lambda: wait(forward(p, x)),
        'training step': lambda: wait(step(p, x, t)),
    }


def torch_programs():
    import torch

    torch.set_num_threads(1 if not torch.cuda.is_available() else torch.get_num_threads())
    where = 'cuda' if torch.cuda.is_available() else 'cpu'

    def chain(x):
        return torch.exp(-x * x) * x + 2 * x

    def forward(x, w, b, v, c):
        return torch.relu(x @ w + b) @ v + c

    def wait():
        if where == 'cuda':
            torch.cuda.synchronize()

    x, *p, t = [torch.tensor(a, device=where) for a in inputs()]
    trained = [q.clone().requires_grad_() for q in p]

    def step():
        loss = ((forward(x, *trained) - t) ** 2).mean()
        gradients = torch.autograd.grad(loss, trained)
        with torch.no_grad():
            for q, g in zip(trained, gradients):
                q -= RATE * g
        wait()

    programs = {
        f'element-wise, {n}': (lambda a=torch.tensor(a, device=where): (chain(a), wait()))
        for n, a in vectors().items()
    }
    return {**programs, 'dense forward': lambda: (forward(x, *p), wait()), 'training step': step}


def cupy_programs():
    import cupy as cp

    def chain(x):
        return cp.exp(-x * x) * x + 2 * x

    wait = cp.cuda.get_current_stream().synchronize
    x, w, b, v, c, t = [cp.asarray(a) for a in inputs()]

    def forward():
        cp.maximum(x @ w + b, 0) @ v + c
        wait()

    programs = {
        f'element-wise, {n}': (lambda a=cp.asarray(a): (chain(a), wait())) for n, a in vectors().items()
    }
    return {**programs, 'dense forward': forward}


LIBRARIES = {
    'Duet': lambda: duet_programs(False),
    'Duet, recorded': lambda: duet_programs(True),
    'NumPy': numpy_programs,
    'JAX': lambda: jax_programs(False),
    'JAX, jit': lambda: jax_programs(True),
    'PyTorch': torch_programs,
    'CuPy': cupy_programs,
}


def main():
    table, columns = {}, []
    for name, make in LIBRARIES.items():
        try:
            programs = make()
        except ImportError:
            continue
        columns.append(name)
        for program, f in programs.items():
            table.setdefault(program, {})[name] = fastest(f)
    print('| us | ' + ' | '.join(columns) + ' |\n|---|' + '---|' * len(columns))
    for program, row in table.items():
        print(f'| {program} | ' + ' | '.join(f'{row[c]:.1f}' if c in row else '' for c in columns) + ' |')


main()
