#!/usr/bin/env python3
"""scale_model.py TOP [LIBRARY] - tests tools/scale_model.py: the times of one GPU are the measured ones,
times do not decrease with the bytes, no efficiency exceeds 1, and all collective operations respect the
limits of the links. With LIBRARY, the bytes that a group of the CPU sends are those of the model. Reports in
TAP."""
import contextlib
import ctypes
import importlib.util
import io
import json
import math
import pathlib
import re
import sys
import tempfile

top = pathlib.Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("scale_model", top / "tools/scale_model.py")
model = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(model)

NEAR = 1e-9  # relative difference
points = 0
p, m = model.parameters(), model.measure()
rows = model.all_rows(p, m)


def report(bad, text):
    """bad: what does not hold."""
    global points
    points += 1
    print("not ok" if bad else "ok", points, "-", text)
    for line in list(bad)[:10]:
        print("#", line)


def differ(a, b):
    return abs(a - b) > NEAR * max(abs(a), abs(b))


# ---- one GPU ----


def measured_cases():
    """(time of the model, measured time) of cases and sizes that were measured."""
    results = top / "bench/results"
    for r in json.loads((results / "h200.json").read_text())["results"]:
        us = min(r["us"], r["replay_us"])
        if r["bench"] == "saxpy":
            yield model.saxpy(p, m, 1, r["size"]).compute, us
        if r["bench"] == "sgemm":
            yield model.matmul_rows(p, m, 1, r["size"]).compute, us
    for r in json.loads((results / "h200-vectors.json").read_text())["results"]:
        if r["bench"] == "sum":
            yield model.sum_all(p, m, 1, r["size"]).compute, r["us"]
    yield model.cnn(p, m, 1, 4096).compute, 4551.740750002864  # h200-train.json


def test_one_gpu():
    report([f"{a} s, measured {us} us" for a, us in measured_cases() if differ(a, us * 1e-6)],
           "one GPU takes the measured time")
    alone = [r for r in rows if r["ranks"] == 1]
    report([r for r in alone if r["communication"] or r["host"] or r["bytes"] or differ(r["efficiency"], 1)],
           "one GPU sends nothing, and its efficiency is 1")


# ---- collective operations ----


def groups():
    return [model.ranks_of(p, ranks, stride) for ranks in model.RANKS[1:] for stride in (1, 2, 8)]


def least_seconds(g, count):
    """Of an all-reduce: each rank sends 2 (P-1)/P of the array, over its links."""
    return 2 * (g.ranks - 1) / g.ranks * count / model.ring_rate(p, g)


def test_limits():
    counts = [4, 4096, 10**6, 10**9]
    report([(g, n) for g in groups() for n in counts if model.all_reduce(p, g, n) < least_seconds(g, n)],
           "an all-reduce takes at least 2 (P-1)/P N / rate")
    report([(g, n) for g in groups() for n in counts
            if model.all_gather(p, g, n) < least_seconds(g, n) / 2 * (1 - NEAR)],
           "an all-gather takes at least (P-1)/P N / rate")
    report([(g, n) for g in groups() for n in counts
            if model.all_reduce(p, g, n) > model.all_gather(p, g, n) + model.reduce_scatter(p, g, n)],
           "an all-reduce takes at most as long as a reduce-scatter and an all-gather")
    big = 10**12
    report([g for g in groups() if model.all_reduce(p, g, big) > 1.02 * least_seconds(g, big)],
           "large all-reduces reach the rate of the links")
    report([g for g in groups() if g.nodes > 1 and g.near == 1 and model.ring_rate(p, g) > p["network_rate"]],
           "a GPU alone on its node uses one adapter")


def test_grids():
    grids = {n: model.grid(p, n, 4e9) for n in model.RANKS + [3, 6, 7]}
    bad = [n for n, of in grids.items() if of and math.prod(of) != n]
    bad += [n for n in (1, 2, 3, 7) if grids[n]] + [n for n in (6, 8, 1024, 4096) if not grids[n]]
    report(bad, "all ranks form a grid")
    chosen = [n for n in model.RANKS if grids[n]]
    report([n for n in chosen
            if model.matmul_2d(p, m, n, 32768).moved >= model.matmul_rows(p, m, n, 32768).moved],
           "a product in blocks moves fewer bytes than one by rows")
    sizes = (16384, 32768, 65536, 131072)
    report([(n, size) for n in model.RANKS for size in sizes if model.matmul_2d(p, m, n, size).communication >
            1.1 * model.matmul_row_panels(p, m, n, size).communication],
           "a product in blocks hardly takes longer than one by rows")


def test_monotone():
    sizes = [2**k for k in range(2, 40)]
    for name in ("all_reduce", "all_gather", "all_to_all"):
        of = getattr(model, name)
        report([(g, n) for g in groups() for n in sizes if of(p, g, n) > of(p, g, 2 * n) * (1 + NEAR)],
               f"{name} does not take less time for more bytes")
    tables = {k: v for k, v in m.items() if isinstance(v, list)}
    report([(k, n) for k, v in tables.items() for n in sizes
            if model.seconds_of(v, n) > model.seconds_of(v, 2 * n) * (1 + 0.1)],
           "more work does not take less time, up to the noise of the measurements")
    slow = model.parameters({"network_rate": 1e9, "nvlink_rate": 2e9})
    worse = model.all_rows(slow, m)
    report([b for a, b in zip(rows, worse) if b["seconds"] < a["seconds"] * (1 - NEAR)],
           "slower links do not make a case faster")


def test_efficiency():
    report([r for r in rows if not 0 < r["efficiency"] <= 1 + NEAR], "efficiencies are from 0 to 1")
    hidden = model.all_rows(model.parameters(options={"overlap": 1.0}), m)
    report([b for a, b in zip(rows, hidden) if b["seconds"] > a["seconds"] * (1 + NEAR)],
           "overlap does not make a case slower")
    summing, many = ["sum", "train", "cnn"], [512, 4096]
    pairs = model.all_rows(model.parameters(options={"pairs": True}), m, summing, many)
    gathered = [r for r in rows if r["case"] in summing and r["ranks"] in many]
    report([b for a, b in zip(gathered, pairs) if b["communication"] > a["communication"]],
           "with many GPUs, sums by pairs of ranks are faster")
    report([b for b in hidden if b["seconds"] < b["compute"] * (1 - NEAR)],
           "with overlap a case takes at least the time of its computation")
    report([r for r in rows if r["seconds"] < max(r["compute"], r["communication"], r["host"]) * (1 - NEAR)],
           "without overlap it takes at least the time of each part")


# ---- bytes ----


def slow_subtrees(first, end):
    """Halves [0, 2^k) until the parts are inside of [first, end)."""
    def count(at, size):
        if at >= end or at + size <= first:
            return 0
        if first <= at and at + size <= end:
            return 1
        return count(at, size // 2) + count(at + size // 2, size // 2)
    return count(0, 1 << max(1, end.bit_length())) if end > first else 0


def test_sums():
    ends = [(a, b) for a in range(40) for b in range(a, 40)]
    report([(a, b) for a, b in ends if model.subtrees(a, b) != slow_subtrees(a, b)],
           "blocks are divided into complete subtrees")
    cases = [(r, n, u) for r in (2, 3, 8, 64) for n in (4096, 16384, 100003) for u in (1, 10, 1024)]
    report([c for c in cases if model.block_bounds(c[1], c[0], c[2])[-1] != c[1]
            or any(b * c[2] % 4096 for b in model.block_bounds(c[1], c[0], c[2])[:-1] if b != c[1])],
           "boundaries between ranks cut no block")
    s = model.exact_sum(8, 8 * 16384, 500)
    report([s] if s.moved or s.total != 8 or s.bytes != 7 * 2000 else [],
           "with whole blocks each rank sends one sum to each other rank")
    s = model.exact_sum(8, 16384, 4)
    report([s] if not s.gathers else [], "few elements are gathered")
    s = model.exact_sum(8, 16384, 504)
    report([s] if not s.turned or s.moved != 2048 * 504 * 4 * 7 / 8 else [],
           "with fewer blocks than ranks, the ranks divide the results")


def test_blocks():
    few, many = model.gpu_sum(p, 2, 10**9, 1), model.gpu_sum(p, 4096, 4096 * 10**9, 1)
    report([few] if not few.blocks or few.moved or few.total != 244141 or few.bytes != 4 * 122071 else [],
           "two GPUs gather the sums of all blocks of 10^9 elements")
    report([] if model.sum_launches(p, few) == 1 + 1 + 5 else [model.sum_launches(p, few)],
           "an incomplete block, the copy beside the padding, and five steps that join 16 sums each")
    others = [many, model.gpu_sum(p, 8, 8 * 16384, 500), model.gpu_sum(p, 2, 10**9, 10**4),
              model.gpu_sum(dict(p, pairs=True), 2, 10**9, 1)]
    report([s for s in others if s.blocks],
           "GPUs add subtrees if there are many blocks, one subtree on each rank, or many results")


class Counts(ctypes.Structure):
    names = re.search(r"typedef struct duet_counts \{(.*?)\} duet_counts;",
                      (top / "include/duet/duet.h").read_text(), re.DOTALL).group(1)
    names = re.sub(r"/\*.*?\*/", "", names, flags=re.DOTALL).replace("uint64_t", "")
    _fields_ = [(n, ctypes.c_uint64) for n in re.findall(r"\w+", names)]


class Expr(ctypes.Structure):
    _fields_ = [("serial", ctypes.c_uint64)]


class Assignment(ctypes.Structure):
    _fields_ = [("to", ctypes.c_void_p), ("value", Expr)]


F32 = 0


class Library:
    """Statements on a group of parts of the CPU."""

    def __init__(self, path, ranks):
        self.c, self.ranks = ctypes.CDLL(path), ranks
        pointer = ctypes.c_void_p
        sizes = ctypes.POINTER(ctypes.c_int64)
        for name in ("of_matrix", "sum", "sum_axis", "cumsum", "matmul", "transpose", "bias_add", "relu",
                     "cross_entropy_logits", "grad"):
            getattr(self.c, "duet_" + name).restype = Expr
        self.c.duet_grad.argtypes = [Expr, pointer]
        self.c.duet_of_matrix.argtypes = [pointer]
        self.c.duet_group_local.restype = self.c.duet_new_split_shape.restype = pointer
        self.c.duet_new_replicated_shape.restype = pointer
        self.c.duet_new_split_shape.argtypes = [pointer, ctypes.c_int, ctypes.c_int, ctypes.c_int, sizes]
        self.c.duet_new_replicated_shape.argtypes = [pointer, ctypes.c_int, ctypes.c_int, sizes]
        self.c.duet_error.restype = ctypes.c_char_p
        self.c.duet_stats.restype = Counts
        self.group = self.c.duet_group_local(ranks)

    def new(self, axis, *size):
        of = (ctypes.c_int64 * len(size))(*size)
        if axis < 0:
            return self.c.duet_new_replicated_shape(self.group, F32, len(size), of)
        return self.c.duet_new_split_shape(self.group, F32, axis, len(size), of)

    def of(self, m):
        return self.c.duet_of_matrix(m)

    def sent(self, *assignments):
        """The bytes that all ranks send."""
        before = self.c.duet_stats().exchange_bytes
        all_of_them = (Assignment * len(assignments))(*[Assignment(*a) for a in assignments])
        status = self.c.duet_set_all(all_of_them, len(assignments))
        if status:
            return self.c.duet_error().decode()
        return self.c.duet_stats().exchange_bytes - before


def expected_sum(ranks, n, columns, unit):
    """All ranks together, from the boundaries."""
    s = model.exact_sum(ranks, n, columns, unit)
    if s.gathers:
        return (ranks - 1) * n * unit * columns * 4
    if s.turned:
        rows, cut = model.even_bounds(n, ranks), model.even_bounds(columns, ranks)
        stay = sum((rows[r + 1] - rows[r]) * (cut[r + 1] - cut[r]) for r in range(ranks))
        return (n * columns - stay) * unit * 4 + (ranks - 1) * columns * 4
    old, new = model.even_bounds(n, ranks), model.block_bounds(n, ranks, unit)
    kept = sum(model.common(old, new, r, r) for r in range(ranks))
    return (n - kept) * unit * columns * 4 + (ranks - 1) * s.total * columns * 4


def library_cases(c):
    """(what, bytes sent, bytes of the model)"""
    for n, columns in ((4 * 8192, 64), (40000, 7), (16384, 500), (4096, 500), (1000, 3)):
        x, y = c.new(0, n, columns), c.new(-1, columns)
        sent = c.sent((y, c.c.duet_sum_axis(c.of(x), 0)))
        yield f"sum over axis 0 of {n} x {columns}", sent, expected_sum(c.ranks, n, columns, 1)
    for n, columns in ((100000, 10), (8192, 100)):
        x, y = c.new(0, n, columns), c.new(-1, 1)
        sent = c.sent((y, c.c.duet_sum(c.of(x))))
        yield f"sum of {n} x {columns}", sent, expected_sum(c.ranks, n, 1, columns)
    a, b, w = c.new(0, 4096, 80), c.new(0, 4096, 60), c.new(-1, 80, 60)
    sent = c.sent((w, c.c.duet_matmul(c.c.duet_transpose(c.of(a)), c.of(b))))
    yield "gradient of weights", sent, c.ranks * model.all_reduce_bytes(c.ranks, 4 * 80 * 60)
    x, y = c.new(0, 4096, 400), c.new(1, 4096, 400)
    sent = c.sent((y, c.c.duet_cumsum(c.of(x), 0)))
    yield "an all-to-all", sent, model.all_gather_bytes(c.ranks, 4 * 4096 * 400)
    a, b, out = c.new(0, 512, 512), c.new(0, 512, 512), c.new(0, 512, 512)
    sent = c.sent((out, c.c.duet_matmul(c.of(a), c.of(b))))
    yield "a product by rows", sent, c.ranks * model.matmul_rows(p, m, c.ranks, 512).moved
    a, b, out = c.new(0, 1024, 1024), c.new(0, 1024, 1024), c.new(0, 1024, 1024)
    sent = c.sent((out, c.c.duet_matmul(c.of(a), c.of(b))))
    rows, columns = {2: (2, 1), 4: (2, 2), 8: (4, 2)}[c.ranks]
    yield "a product in blocks", sent, c.ranks * sum(model.grid_shares(rows, columns)) * 4 * 1024**2


def gradients(c, network, batch):
    """The assignments of a training step: the loss, and its gradients."""
    call, sizes = c.c, network.sizes
    weights = [c.new(-1, *of) for a, b in zip(sizes, sizes[1:]) for of in ((a, b), (b,))]
    x, target = c.of(c.new(0, batch, sizes[0])), c.of(c.new(0, batch, sizes[-1]))
    for k in range(0, len(weights), 2):
        x = call.duet_bias_add(call.duet_matmul(x, c.of(weights[k])), c.of(weights[k + 1]))
        x = call.duet_relu(x) if k + 2 < len(weights) else x
    loss = call.duet_cross_entropy_logits(x, target)
    results = [c.new(-1, *of) for a, b in zip(sizes, sizes[1:]) for of in ((a, b), (b,))]
    grads = [(r, call.duet_grad(loss, w)) for r, w in zip(results, weights)]
    return [(c.new(-1, 1), loss)] + grads


def training_cases(c):
    network = model.Network([32, 24, 24, 10])
    sums = [(columns, unit) for _, columns, unit in network.layers] + [(1, network.sizes[-1])]
    for batch in (16384, 100000):
        wanted = sum(c.ranks * model.all_reduce_bytes(c.ranks, 4 * w) for w, _, _ in network.layers)
        wanted += sum(expected_sum(c.ranks, batch, columns, unit) for columns, unit in sums)
        yield f"a training step of {batch}", c.sent(*gradients(c, network, batch)), wanted


def test_library(path):
    for ranks in (2, 4, 8):
        c = Library(path, ranks)
        if not c.group:
            return report([c.c.duet_error().decode()], "a group of the CPU")
        for what, sent, wanted in [*library_cases(c), *training_cases(c)]:
            report([f"sent {sent}, model {wanted}"] if sent != wanted else [], f"{ranks} ranks, {what}")


# ---- the program ----


def output_of(*arguments):
    sys.argv[1:] = arguments
    with contextlib.redirect_stdout(io.StringIO()) as text:
        model.main()
    return text.getvalue()


def test_program():
    report([] if len(json.loads(output_of("--json"))) == len(rows) else ["rows"], "--json has all rows")
    page = (top / "docs/scale.md").read_text()
    report([] if model.updated(page) == page else ["call: tools/scale_model.py --update docs/scale.md"],
           "the tables of docs/scale.md are those of the model")
    report([n for n in model.ASSUMED if f"| {n} |" not in output_of("--assumptions")],
           "--assumptions has all numbers")
    with tempfile.TemporaryDirectory() as folder:
        results, links = pathlib.Path(folder, "rows.json"), pathlib.Path(folder, "links.json")
        seconds = next(r["seconds"] for r in rows if r["case"] == "saxpy" and r["ranks"] == 4) * 2
        results.write_text(json.dumps([{"case": "saxpy", "mode": "weak", "ranks": 4, "seconds": seconds},
                                       {"case": "another", "mode": "weak", "ranks": 4, "seconds": 1}]))
        text = output_of("--check", str(results))
        report([] if "| 0.50 |" in text and "another | not modelled" in text else [text],
               "--check prints the ratios")
        links.write_text(json.dumps({"nvlink_rate": 1e11, "date": "2026-12-01"}))
        text = output_of("--links", str(links), "--assumptions")
        report([] if "| nvlink_rate | 1e+11 | bytes/s | links.json |" in text else [text],
               "measured links replace assumed ones")


library = sys.argv[2] if len(sys.argv) > 2 else None
test_one_gpu()
test_limits()
test_grids()
test_monotone()
test_efficiency()
test_sums()
test_blocks()
if library:
    test_library(library)
test_program()
print(f"1..{points}")
