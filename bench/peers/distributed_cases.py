"""distributed_cases.py - the cases of distributed.py: sizes, operands, results by NumPy, and how they are
timed. The sizes are those of bench/suites/distributed_cases.c."""

import statistics
import time

import numpy as np

RATE, BLOCK = 0.05, 0.02  # of gradient descent; the seconds of a block of calls
CHECK, CPU, QUICK, FULL = range(4)
DENSE = [(784, 500), (500, 500), (500, 10)]
CNN = [(16, 3, 3, 3), (32, 16, 3, 3), (2048, 1000), (1000, 10)]
VECTOR = (200 * 1000, 20000 * 1000, 100000 * 1000, 1000000 * 1000)
OTHERS = lambda c: (c.parts - 1) / c.parts
NETWORKS = ("dense_train", "dense_forward", "cnn_train")

# (case, mode): sizes for comparison, on the CPU, quick, full; unit; work of a call in these units
CASES = {
    ("saxpy", "strong"): (VECTOR, "GB/s", lambda c: 12e-9 * c.n),
    ("saxpy", "weak"): (VECTOR, "GB/s", lambda c: 12e-9 * c.n),
    ("sum", "strong"): (VECTOR, "GB/s", lambda c: 4e-9 * c.n),
    ("sum", "weak"): (VECTOR, "GB/s", lambda c: 4e-9 * c.n),
    ("matmul", "strong"): ((96, 768, 8192, 16384), "GFLOP/s", lambda c: 2e-9 * c.n * c.base**2),
    ("matmul", "weak"): ((96, 512, 4096, 16384), "GFLOP/s", lambda c: 2e-9 * c.n * c.base**2),
    ("dense_train", "weak"): ((96, 1024, 16384, 16384), "items/s", lambda c: c.n),
    ("dense_train", "strong"): ((96, 2048, 16384, 16384), "items/s", lambda c: c.n),
    ("dense_forward", "weak"): ((96, 1024, 16384, 16384), "items/s", lambda c: c.n),
    ("cnn_train", "weak"): ((48, 64, 4096, 4096), "items/s", lambda c: c.n),
    ("all_gather", "collective"): ((96, 2048, 8192, 16384), "GB/s", lambda c: 4e-9 * c.n**2 * OTHERS(c)),
    ("all_reduce", "collective"): ((9216, 1 << 20, 1 << 25, 1 << 27), "GB/s", lambda c: 8e-9 * c.n * OTHERS(c)),
    ("all_to_all", "collective"): ((96, 2048, 8192, 16384), "GB/s", lambda c: 4e-9 * c.n**2 * OTHERS(c) / c.parts),
    ("map", "overhead"): ((64,) * 4, "calls/s", lambda c: 1),
    ("matmul", "overhead"): ((64,) * 4, "calls/s", lambda c: 1),
    ("sum", "overhead"): ((64,) * 4, "calls/s", lambda c: 1),
    ("fft", "strong"): ((96, 1024, 8192, 16384), "GFLOP/s", lambda c: 1e-8 * c.n**2 * np.log2(c.n)),
    ("matmul_contracted", "strong"): ((1024, 8192, 65536, 131072), "GFLOP/s", lambda c: 2e-9 / 256 * c.n**3),
    ("matmul_large", "strong"): ((128, 1024, 16384, 32768), "GFLOP/s", lambda c: 2e-9 * c.n * c.base**2),
}


class Case:
    """A case on `parts` ranks: its size in the table, and in total. Trainings are compared on the same total
    size."""

    def __init__(self, name, mode, level, parts):
        self.name, self.mode, self.parts = name, mode, parts
        sizes, self.unit, self.work = CASES[name, mode]
        self.base = sizes[level]
        is_total = mode != "weak" or (level == CHECK and name in NETWORKS)
        self.n = self.base if is_total else self.base * parts

    def shapes(self):
        """The operands: shape, and the axis along which they are split; None: replicated."""
        n, base = self.n, self.base
        if self.mode == "overhead":
            return [((n, 4), 0), ((4, 4), None)]
        if self.name in ("saxpy", "sum"):
            return [((n // 1000, 1000), 0)] * (2 if self.name == "saxpy" else 1)
        if self.name in ("matmul", "matmul_large"):
            return [((n, base), 0), ((base, base), None if self.name == "matmul" else 0)]
        if self.name == "matmul_contracted":
            return [((n // 16, n), 1), ((n, n // 16), 0)]
        if self.name == "all_reduce":
            return [((self.parts, n // 1024, 1024), 0)]
        if self.name in NETWORKS:
            return [((n, 3, 32, 32) if self.name == "cnn_train" else (n, 784), 0), ((n, 10), 0)]
        return [((n, n), 0)] * (2 if self.name == "fft" else 1)

    def check_divisible(self):
        for shape, axis in self.shapes():
            if axis is not None and shape[axis] % self.parts:
                raise ValueError(f"{shape[axis]} is not divisible by {self.parts}")

    def layers(self):
        """Weights and biases of the network."""
        rng = np.random.default_rng(5)
        found = []
        for s in CNN if self.name == "cnn_train" else DENSE:
            fan, out = (int(np.prod(s[1:])), s[0]) if len(s) == 4 else s
            found.append(rng.uniform(-1, 1, s).astype(np.float32) * np.float32(np.sqrt(3 / fan)))
            found.append(np.zeros(out, np.float32))
        return found


def factors(shape, axis, k):
    """The elements of operand k are 2 frac(u v) - 1, with a u for each index of the axis, and a v for the
    others."""
    rng = np.random.default_rng(10 + k)
    axis = axis or 0
    others = [1 if a == axis else n for a, n in enumerate(shape)]
    if np.prod(others) > 1 << 22:
        others = [1] * (len(shape) - 1) + [shape[-1]]
    u = rng.uniform(1, 32, [n if a == axis else 1 for a, n in enumerate(shape)])
    return u.astype(np.float32), rng.uniform(1, 32, others).astype(np.float32)


def combine(np_, u, v, shape):
    t = u * v
    return np_.broadcast_to(2 * (t - np_.floor(t)) - 1, shape)


def wanted(c):
    """The result by NumPy in double; None: it is compared with that of one device."""
    x = [combine(np, *factors(s, a, k), s).astype(np.float64) for k, (s, a) in enumerate(c.shapes())]
    if c.name in NETWORKS:
        if c.name != "dense_forward":
            return None
        h, w = x[0], c.layers()
        for k in range(0, len(w), 2):
            h = h @ w[k] + w[k + 1]
            h = np.maximum(h, 0) if k + 2 < len(w) else h
        return h
    if c.name == "saxpy":
        return 3.3 * x[0] + x[1]
    if c.name == "sum":
        return x[0].sum()
    if c.name == "map":
        return 2 * x[0]
    if c.name.startswith("matmul"):
        return x[0] @ x[1]
    if c.name == "fft":
        return np.fft.fft2(x[0] + 1j * x[1])
    return x[0].sum(0) if c.name == "all_reduce" else x[0]


def wrong(got, want, tolerance=1e-4):
    error = np.linalg.norm(np.ravel(got - want)) / np.linalg.norm(np.ravel(want))
    return None if error <= tolerance else f"the relative error is {error:.3g}"


def measure(run, wait, agree, quick):
    """The median time of a call. agree(x): the x of the first process."""
    run()
    wait()
    start = time.perf_counter()
    run()
    wait()
    takes = agree(time.perf_counter() - start)
    calls = max(1, int(BLOCK / max(takes, 1e-7)))
    times = []
    for _ in range(3 if quick or takes > 1 else 9):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        wait()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times)


# ---- all cases ----


def each_case(peer, parts, options, one, first, clean):
    """Runs the cases on `parts` ranks: one(case, small case) gives seconds, what is wrong, loss."""
    rows, notes = [], []
    level = (CHECK if options.quick else CPU) if options.cpu else QUICK if options.quick else FULL
    for name, mode in CASES:
        if options.only and name not in options.only.split(","):
            continue
        if time.time() > options.end:
            notes.append(f"{peer}: {name}, {mode}, {parts} ranks: not measured: no time left")
            continue
        c, small = Case(name, mode, level, parts), Case(name, mode, CHECK, parts)
        try:
            c.check_divisible()
            small.check_divisible()
            seconds, problem, loss = one(c, small)
        except Exception as e:  # a case that does not work here is reported
            why = f"{type(e).__name__}: {(str(e) or '?').splitlines()[0]}"
            notes.append(f"{peer}: {name}, {mode}, {parts} ranks: {why}")
            clean()
            continue
        clean()
        if problem not in (None, True):
            notes.append(f"{peer}: {name}, {mode}, {parts} ranks: wrong: {problem}")
            continue
        rows.append({"peer": peer, "case": name, "mode": mode, "ranks": parts, "recorded": False, "size": c.base,
                     "seconds": seconds, "bytes_sent": None, "rate": c.work(c) / seconds if c.work(c) else None,
                     "unit": c.unit, "efficiency": None, "checked": True, "loss": loss})
        if first:
            print(f"{peer:16} {name:18} {mode:10} {parts:2} ranks {1e6 * seconds:12.1f} us", flush=True)
    return {"rows": rows, "notes": notes if first else []}


def finish(rows, notes, cpu):
    """Compares losses with those of one device, and computes efficiencies."""
    good = []
    for r in rows:
        key = lambda q: (q["peer"], q["case"], q["mode"]) == (r["peer"], r["case"], r["mode"]) and q["ranks"] == 1
        one = next((q for q in rows if key(q)), None)
        if one and r["loss"] is not None and not abs(r["loss"] - one["loss"]) <= 1e-4 * abs(one["loss"]):
            notes.append(f"{r['peer']}: {r['case']}, {r['ranks']} ranks: wrong: loss {r['loss']}, not {one['loss']}")
            continue
        if one and r["mode"] in ("strong", "weak"):
            r["efficiency"] = r["rate"] / one["rate"] / (1 if cpu else r["ranks"])
        good.append(r)
    return [{k: v for k, v in r.items() if k != "loss"} for r in good]
