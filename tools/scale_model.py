#!/usr/bin/env python3
"""scale_model.py - estimates the time of computations on groups of 1 to 4096 GPUs. docs/scale.md explains it.

The model has three parts: measured times of one GPU (bench/results/h200*.json), formulas for the time
of communication, and the number of statements and collective calls of Duet. ASSUMED has every other
number, with its source. bench/results/links.json, if it exists, replaces some of them:
{"network_rate": 4.6e10, ...}.

    scale_model.py [OPTIONS]                  prints tables
    scale_model.py --json                     prints the same as JSON
    scale_model.py --assumptions              prints all numbers that are not measured, and those that are
    scale_model.py --chart FILE.svg           draws efficiency against GPUs; needs matplotlib
    scale_model.py --check FILE.json          compares the model with measured times
    scale_model.py --update docs/scale.md     updates the tables of the page: each is between a comment
                                              that has its options and a comment "end" """

import argparse
import contextlib
import io
import json
import math
import re
import sys
from collections import namedtuple
from pathlib import Path

GIB, MIB = 2**30, 2**20
RESULTS = Path(__file__).resolve().parent.parent / "bench" / "results"
RANKS = [2**k for k in range(13)]

# name: (value, unit, source). Lists have a value for each protocol of NCCL: LL, LL128, Simple.
ASSUMED = {
    "node_gpus": (8, "GPUs", "node with an NVSwitch (HGX H200)"),
    "nvlink_nominal": (450e9, "bytes/s", "NVLink 4, each direction of a GPU; NVIDIA's data sheet"),
    "nvlink_efficiency": (0.82, "", "370 GB/s in NCCL's rings: github.com/NVIDIA/nccl-tests/issues/212"),
    "network_nominal": (50e9, "bytes/s", "InfiniBand NDR, 400 Gbit/s, one adapter for each GPU"),
    "network_efficiency": (0.93, "", "46 to 48 GB/s: github.com/NVIDIA/nccl-tests/issues/290"),
    "base_ring": ([6.6e-6, 14e-6, 8.4e-6], "s", "NCCL, src/graph/tuning.cc: baseLat"),
    "base_tree": ([6.8e-6, 14e-6, 0], "s", "as base_ring"),
    "hop_ring_nvlink": ([0.6e-6, 1.9e-6, 3.4e-6], "s", "NCCL, src/graph/tuning.cc: hwLat"),
    "hop_ring_network": ([2.7e-6, 4.0e-6, 14e-6], "s", "as hop_ring_nvlink"),
    "hop_tree_nvlink": ([0.6e-6, 1.25e-6, 28e-6], "s", "as hop_ring_nvlink"),
    "hop_tree_network": ([5.0e-6, 8.5e-6, 28e-6], "s", "as hop_ring_nvlink"),
    "protocol_rate": ([0.25, 0.92, 1], "", "share of the rate; NCCL, src/graph/tuning.cc"),
    "tree_rate": (0.92, "", "share of the rate of a ring; NCCL, src/graph/tuning.cc"),
    "message": (1e-6, "s", "assumed: for each other rank in an exchange by ncclSend and ncclRecv"),
    "call": (60e-6, "s", "host time of a call of NCCL outside of a CUDA graph; measured on an H200"),
    "statement": (10e-6, "s", "assumed: host time of a statement; 5.5 us on one GPU (h200-calls.json)"),
    "gradient": (170e-6, "s", "additional host time of a statement with a gradient; from training by statements "
                              "with 8192 images on each of two GPUs (h200-distributed-2.json)"),
    "agree_near": (1e-6, "s", "assumed: a round of communicator_agree between threads of a process"),
    "agree_far": (3e-6, "s", "assumed: such a round between processes, by MPI"),
    "join_inputs": (16, "", "operands of an element-wise step: PROGRAM_INPUTS in src/core/program.h"),
    "backward": (2 / 3, "", "share of a training step with which the all-reduce of gradients can overlap"),
    "memory": (139.8 * GIB, "bytes", "of a GPU: duet_info in bench/results/h200.json"),
}
REPLACED = {"nvlink_rate": ("nvlink_nominal", "nvlink_efficiency"),
            "network_rate": ("network_nominal", "network_efficiency")}


# ---- parameters ----


def read_json(path):
    with open(path) as file:
        return json.load(file)


def parameters(links=None, options=None):
    """Returns {name: value}. links: measured values, by name. Texts in it, such as a date, are ignored."""
    p = {name: row[0] for name, row in ASSUMED.items()}
    p.update(overlap=0.0, graph=None, pairs=False)  # graph None: as the case is
    for rate, (nominal, efficiency) in REPLACED.items():
        p[rate] = p[nominal] * p[efficiency]
    measured = {name: value for name, value in (links or {}).items() if not isinstance(value, str)}
    unknown = sorted(set(measured) - set(p))
    if unknown:
        raise ValueError("links.json: unknown names: " + ", ".join(unknown))
    p.update(measured)
    p.update(options or {})
    return p


# ---- measured times of one GPU: tables of (work, seconds) ----


def bench_table(document, bench, work):
    """The faster of a call and a replay, for each size."""
    found = {}
    for r in document["results"]:
        if r.get("bench") == bench and r.get("machine") == "gpu":
            best = min(r[key] for key in ("us", "replay_us") if r.get(key))
            found[work(r["size"])] = best * 1e-6
    return sorted(found.items())


def train_table(document, network, work):
    """The fastest of all runs on the GPU, for each batch."""
    found = {}
    for run in document["runs"]:
        for cell in run["cells"] if run["machine"] == "gpu" else []:
            if cell["network"] == network:
                best = min(s for name, s in cell["seconds"].items() if name.startswith("Duet"))
                at = work(cell["batch"])
                found[at] = min(best, found.get(at, best))
    return sorted(found.items())


def entry(document, **like):
    return next(r for r in document["results"] if all(r.get(k) == v for k, v in like.items()))


def large_products(folder):
    """Products of duet-distributed on one GPU: they are larger than those of duet-bench."""
    found = {}
    for r in read_json(folder / "h200-distributed-2.json")["results"]:
        if r["case"] in ("matmul", "matmul_large") and r["mode"] == "strong" and r["ranks"] == 1:
            work = 2.0 * r["size"]**3
            found[work] = min(r["seconds"], found.get(work, r["seconds"]))
    return sorted(found.items())


def measure(folder=RESULTS, math_mode="strict"):
    """Reads the results of one GPU."""
    main, calls = read_json(folder / "h200.json"), read_json(folder / "h200-calls.json")
    train, families = read_json(folder / "h200-train.json"), read_json(folder / "h200-families.json")
    suffix = {"strict": "1"}.get(math_mode, math_mode)
    forward = bench_table(read_json(folder / f"h200-forward-{suffix}.json"), "dense", WIDE.forward)
    large, points = entry(families, case="rfft2", size="large")["us"] * 1e-6, 4096 * 4096 / 2 * 2
    return {
        "saxpy": bench_table(main, "saxpy", float),
        "sum": bench_table(read_json(folder / "h200-vectors.json"), "sum", float),
        "product": (bench_table(main, "sgemm", lambda n: 2.0 * n**3) + large_products(folder)
                    if math_mode == "strict" else forward),
        "forward": forward,
        "train": train_table(train, "dense", WIDE.training),
        "cnn": train_table(train, "cnn", float),
        "point": large / points,
        "fft": entry(families, case="rfft2", size="small")["us"] * 1e-6,
        "launch": entry(calls, what="bare launch, 1024 bytes")["ns"] * 1e-9,
        "replay": entry(calls, what="three statements, replayed", machine="gpu")["ns"] * 1e-9,
        "copy": 12e8 / dict(bench_table(main, "saxpy", float))[1e8],
    }


def seconds_of(table, work):
    """Interpolates between measured points. Less work than the smallest point takes as long as that point;
    more work than the largest takes proportionally longer."""
    if work <= table[0][0]:
        return table[0][1]
    if work >= table[-1][0]:
        return table[-1][1] * work / table[-1][0]
    at = next(k for k in range(1, len(table)) if work <= table[k][0])
    (x0, y0), (x1, y1) = table[at - 1], table[at]
    part = math.log(work / x0) / math.log(x1 / x0)
    return math.exp(math.log(y0) + part * math.log(y1 / y0))


# ---- collective operations ----

# ranks: all; near: those on one node; nodes: the number of nodes
Ranks = namedtuple("Ranks", "ranks near nodes")


def ranks_of(p, ranks, stride=1):
    """A communicator of every stride-th GPU."""
    near = max(1, min(ranks, int(p["node_gpus"]) // stride))
    return Ranks(ranks, near, math.ceil(ranks / near))


def ring_rate(p, g):
    """Each GPU of a node has an adapter, and rings use all of those of the communicator's GPUs."""
    return p["nvlink_rate"] if g.nodes == 1 else min(p["nvlink_rate"], g.near * p["network_rate"])


def ring(p, g, moved, turns):
    """turns: how often the parts go around. moved: bytes that a rank sends."""
    far = turns * (g.nodes - 1 if g.nodes > 1 else 0)
    near = turns * (g.ranks - 1) - far
    times = []
    for k, rate in enumerate(p["protocol_rate"]):
        hops = near * p["hop_ring_nvlink"][k] + far * p["hop_ring_network"][k]
        times.append(p["base_ring"][k] + hops + moved / (rate * ring_rate(p, g)))
    return min(times)


def tree(p, g, count):
    """Sums go up a tree and down again. Within a node the tree is a chain."""
    times = []
    for k, rate in enumerate(p["protocol_rate"]):
        hops = (g.near - 1) * p["hop_tree_nvlink"][k] + math.log2(g.nodes) * p["hop_tree_network"][k]
        times.append(p["base_tree"][k] + 2 * hops + 2 * count / (p["tree_rate"] * rate * ring_rate(p, g)))
    return min(times)


def all_reduce_bytes(ranks, count):
    return 2 * (ranks - 1) / ranks * count


def all_gather_bytes(ranks, count):
    return (ranks - 1) / ranks * count


def all_reduce(p, g, count):
    """count: bytes of the array."""
    if g.ranks == 1:
        return 0.0
    return min(ring(p, g, all_reduce_bytes(g.ranks, count), 2), tree(p, g, count))


def all_gather(p, g, count):
    """count: bytes of the gathered array."""
    return ring(p, g, all_gather_bytes(g.ranks, count), 1) if g.ranks > 1 else 0.0


def reduce_scatter(p, g, count):
    """count: bytes of the array before it is scattered."""
    return all_gather(p, g, count)


def exchange(p, g, near, far, messages):
    """Messages between pairs. near, far: bytes that a rank sends, or receives, within and between nodes."""
    if messages == 0:
        return 0.0
    return p["base_ring"][2] + messages * p["message"] + max(near / p["nvlink_rate"], far / p["network_rate"])


def all_to_all(p, g, own):
    """own: bytes of a rank's part, which it divides among all ranks."""
    far = own * (g.ranks - g.near) / g.ranks
    return exchange(p, g, own * (g.near - 1) / g.ranks, far, g.ranks - 1)


# ---- sums in the canonical order, as src/group/reductions.c and block_sums.c compute them ----

UNIT, FEW = 4096, MIB
LONG = 64 * UNIT  # longer parts of matrices begin at multiples of UNIT
# moved      bytes that boundaries between ranks move to whole blocks: the most that a rank sends or receives
# messages   to or from how many ranks
# total      partial sums of all ranks: of subtrees, or of blocks
# most       of one rank
# even       every rank has as many
# gathers    every rank gets all elements instead of partial sums
# turned     there are fewer blocks than ranks, and much to add: the ranks divide the results instead of the
#            elements, and then send each other the results
# bytes      the most that a rank sends
# blocks     partial sums are those of all blocks
Sum = namedtuple("Sum", "moved messages total most even gathers turned bytes blocks", defaults=[False])


def even_bounds(n, ranks):
    return [n // ranks * r + min(r, n % ranks) for r in range(ranks + 1)]


def matrix_bounds(n, ranks):
    bounds = even_bounds(n, ranks)
    return [b // UNIT * UNIT for b in bounds[:-1]] + [n] if n // ranks >= LONG else bounds


def block_bounds(n, ranks, unit):
    rows = UNIT // math.gcd(UNIT, unit)
    moved = [min(n, (b + rows // 2) // rows * rows) for b in matrix_bounds(n, ranks)]
    return moved[:-1] + [n]


def subtrees(first, end):
    """The number of complete subtrees of the canonical tree in the blocks first to end - 1."""
    count = 0
    while first < end:
        size = 1
        while first % (2 * size) == 0 and first + 2 * size <= end:
            size *= 2
        first += size
        count += 1
    return count


def common(a, b, r, k):
    """What rank r has of bounds a and rank k of bounds b."""
    return max(0, min(a[r + 1], b[k + 1]) - max(a[r], b[k]))


def peers_of(a, b, r):
    """How many ranks have by bounds b what rank r has by bounds a, without itself."""
    if a[r] >= a[r + 1]:
        return 0
    return sum(1 for k in range(len(b) - 1) if k != r and common(a, b, r, k))


def exact_sum(ranks, n, columns, unit=1, element=4):
    """The sum along the split axis, of n indices. unit: reduced elements of an index; columns: results;
    element: bytes."""
    row = unit * columns * element
    if n * unit < UNIT * ranks and n * row <= FEW:
        return Sum(0, 0, 0, 0, True, True, False, all_gather_bytes(ranks, n * row))
    if n * unit < UNIT * ranks and columns >= ranks:
        rows, least = math.ceil(n / ranks), columns // ranks
        moved = rows * unit * (columns - least) * element
        sent = moved + math.ceil(columns / ranks) * element * (ranks - 1)
        return Sum(moved, ranks - 1, 0, 0, True, False, True, sent)
    old, new = matrix_bounds(n, ranks), block_bounds(n, ranks, unit)
    moved, messages = 0, 0
    for r in range(ranks):
        kept = common(old, new, r, r)
        moved = max(moved, old[r + 1] - old[r] - kept, new[r + 1] - new[r] - kept)
    if moved:
        messages = max(max(peers_of(old, new, r), peers_of(new, old, r)) for r in busy(old, new, ranks))
    blocks = [math.ceil(b * unit / UNIT) for b in new]
    counts = [subtrees(blocks[r], blocks[r + 1]) for r in range(ranks)]
    own = max(counts) * columns * element
    even, sent = len(set(counts)) == 1, moved * row + own * (ranks - 1)
    return Sum(moved * row, messages, sum(counts), max(counts), even, False, False, sent)


def busy(old, new, ranks):
    """Ranks that may have the most messages; all others are like them."""
    sizes = {}
    for r in range(ranks):
        sizes.setdefault((old[r + 1] - old[r], new[r + 1] - new[r]), r)
    return sizes.values()


# Estimates by which Duet chooses between subtrees and blocks on GPUs: seconds of a reduction of few elements,
# and of a step that joins few sums
REDUCTION, JOIN = 5e-6, 3e-6


def shared_rate(p, ranks):
    """Bytes a second that all ranks receive, if they receive the same; Duet's estimate."""
    node = min(ranks, int(p["node_gpus"]))
    return NEAR_RATE if node == ranks else min(NEAR_RATE, node * FAR_RATE)


def join_steps(p, blocks):
    steps = 1
    while blocks > p["join_inputs"]:
        blocks, steps = math.ceil(blocks / p["join_inputs"]), steps + 1
    return steps


def block_launches(p, blocks):
    """Kernels that join the sums of blocks. If blocks are missing in a step before the last one, another kernel
    copies the sums beside a padding. Those that write the padding run during the gather."""
    steps = join_steps(p, blocks)
    return steps + (blocks % p["join_inputs"] ** (steps - 1) > 0)


def gpu_sum(p, ranks, n, columns, unit=1, element=4):
    """exact_sum on GPUs: they gather the sums of all blocks if Duet expects that to be faster."""
    s, row = exact_sum(ranks, n, columns, unit, element), columns * element
    if p["pairs"] or ranks == 1 or s.gathers or s.turned:
        return s
    bounds = [math.ceil(b * unit / UNIT) for b in block_bounds(n, ranks, unit)]
    by_subtrees = (s.most - 1) * REDUCTION + s.total / (p["join_inputs"] - 1) * JOIN
    by_subtrees += all_gather_bytes(ranks, s.total * row) / shared_rate(p, ranks)
    by_blocks = block_launches(p, bounds[-1]) * JOIN
    by_blocks += all_gather_bytes(ranks, bounds[-1] * row) / shared_rate(p, ranks)
    if by_blocks >= by_subtrees:
        return s
    counts = [b - a for a, b in zip(bounds, bounds[1:])]
    return s._replace(total=bounds[-1], most=max(counts), even=len(set(counts)) == 1,
                      bytes=s.moved + max(counts) * row * (ranks - 1), blocks=True)


def exact_sum_seconds(p, m, g, s, columns, element=4):
    """Returns (seconds, calls of NCCL), without the first reduction of a rank's own elements."""
    if g.ranks == 1:
        return 0.0, 0
    if s.gathers:
        return all_gather(p, g, s.bytes * g.ranks / (g.ranks - 1)), 1
    if s.turned:
        own = s.moved * g.ranks / (g.ranks - 1)
        return all_to_all(p, g, own) + all_gather(p, g, columns * element), 2
    near, far = (s.moved, 0) if g.nodes == 1 else (0, s.moved)
    seconds = exchange(p, g, near, far, s.messages)
    gathered = s.total * columns * element
    if p["pairs"]:
        rounds, own = math.ceil(math.log2(g.ranks)), s.most * columns * element
        near, far = (own, 0) if g.nodes == 1 else (0, own)
        joining = rounds * (exchange(p, g, near, far, 1) + m["launch"])
        return seconds + joining + s.most * m["launch"], rounds + (s.moved > 0)
    seconds += all_gather(p, g, gathered) if s.even else all_to_all(p, g, gathered)
    return seconds + sum_launches(p, s) * m["launch"], 1 + (s.moved > 0)


def sum_launches(p, s):
    """A kernel for each further subtree of a rank, one that puts their sums together, and those that join the
    sums of all ranks, each with join_inputs operands. The last rank may have one more block, an incomplete
    one."""
    if s.blocks:
        return 1 + block_launches(p, s.total)
    return s.most - 1 + (s.most > 1) + math.ceil((s.total - 1) / (p["join_inputs"] - 1))


# ---- networks ----


class Network:
    """layers: for each, the elements of its weights, those of its bias, and the elements of one image that
    the gradient of a bias element adds."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.layers = [(a * b, b, 1) for a, b in zip(sizes, sizes[1:])]

    def forward(self, batch):
        return 2.0 * batch * sum(weights for weights, _, _ in self.layers)

    def training(self, batch):
        """Products of the forward pass, and two for each layer backward; the input needs no gradient."""
        return 3 * self.forward(batch) - 2.0 * batch * self.layers[0][0]


WIDE = Network([784, 1000, 1000, 10])  # the network of bench/peers/train.py
DENSE = Network([784, 500, 500, 10])
CNN = Network([])
CNN.layers = [(16 * 27, 16, 32 * 32), (32 * 144, 32, 16 * 16), (2048 * 1000, 1000, 1), (1000 * 10, 10, 1)]


# ---- cases: a step on each of `ranks` GPUs ----

# compute, communication   seconds on the GPU
# hidden                   seconds of communication that could overlap with computation
# moved                    bytes that a rank sends
# statements, calls        of Duet, and of NCCL
# memory                   bytes on each GPU
# sums                     seconds of communication that sums in the canonical order take
# recorded                 a step is a recording; then host does not count
# host                     more seconds of the host for the statements
Step = namedtuple("Step", "compute communication hidden moved statements calls memory sums recorded host",
                  defaults=[0.0, False, 0.0])


def saxpy(p, m, ranks, n):
    return Step(seconds_of(m["saxpy"], n / ranks), 0, 0, 0, 1, 0, 8 * n / ranks)


def sum_all(p, m, ranks, n):
    g, s = ranks_of(p, ranks), gpu_sum(p, ranks, n, 1)
    seconds, calls = exact_sum_seconds(p, m, g, s, 1)
    moved = s.bytes if calls else 0
    return Step(seconds_of(m["sum"], n / ranks), seconds, 0, moved, 1, calls, 4 * n / ranks, seconds)


def forward(p, m, ranks, batch):
    own = batch / ranks
    memory = 4 * own * sum(DENSE.sizes) + DENSE.forward(1) * 2
    return Step(seconds_of(m["forward"], DENSE.forward(own)), 0, 0, 0, 1, 0, memory)


BUCKET = 4 * MIB  # arrays of up to so many bytes share a collective step, until they have as many together


def buckets(sizes):
    """The arrays that share steps: lists of bytes."""
    found, waiting = [[size] for size in sizes if size > BUCKET], []
    for size in sizes:
        if size <= BUCKET:
            waiting.append(size)
            if sum(waiting) >= BUCKET:
                found, waiting = found + [waiting], []
    return found + [waiting] * bool(waiting)


def added_together(p, m, g, sizes):
    """Arrays that share a step are copied into one array, and out of it."""
    copies = 2 * (m["launch"] + 2 * sum(sizes) / m["copy"]) if len(sizes) > 1 else 0
    return all_reduce(p, g, sum(sizes)) + copies


def may_wait(p, s, columns):
    return not (p["pairs"] or s.gathers or s.turned or s.blocks) and 4 * s.total * columns <= BUCKET


def sums_together(p, m, g, sums):
    """sums: (Sum, columns). Returns (seconds, calls of NCCL)."""
    seconds, calls, waiting = 0.0, 0, [x for x in sums if may_wait(p, *x)]
    for s, columns in sums:
        if (s, columns) not in waiting:
            more, count = exact_sum_seconds(p, m, g, s, columns)
            seconds, calls = seconds + more, calls + count
    if not waiting:
        return seconds, calls
    for s, _ in waiting:
        near, far = (s.moved, 0) if g.nodes == 1 else (0, s.moved)
        seconds += exchange(p, g, near, far, s.messages) + sum_launches(p, s) * m["launch"]
        calls += s.moved > 0
    gathered = sum(4 * s.total * columns for s, columns in waiting)
    even = all(s.even for s, _ in waiting)
    return seconds + (all_gather(p, g, gathered) if even else all_to_all(p, g, gathered)), calls + 1


def training(p, m, ranks, batch, network, compute, memory):
    """The gradients of weights are added by all-reduce; those of biases, and the loss, are sums in order."""
    statements = 1 + 2 * len(network.layers)
    if ranks == 1:
        return Step(compute, 0, 0, 0, statements, 0, memory, recorded=True)
    g, weights = ranks_of(p, ranks), [4 * w for w, _, _ in network.layers]
    together = buckets(weights)
    reduced = sum(added_together(p, m, g, sizes) for sizes in together)
    sums = [(gpu_sum(p, ranks, batch, columns, unit), columns)
            for columns, unit in [layer[1:] for layer in network.layers] + [(1, 10)]]
    ordered, calls = sums_together(p, m, g, sums)
    moved = sum(all_reduce_bytes(ranks, w) for w in weights) + sum(s.bytes for s, _ in sums)
    hidden = min(reduced, p["backward"] * compute)
    return Step(compute, reduced + ordered, hidden, moved, statements, calls + len(together), memory, ordered,
                True, statements * p["gradient"])


def train(p, m, ranks, batch):
    own = batch / ranks
    memory = 12 * own * sum(DENSE.sizes) + 12 * DENSE.forward(1) / 2
    return training(p, m, ranks, batch, DENSE, seconds_of(m["train"], DENSE.training(own)), memory)


def cnn(p, m, ranks, batch):
    own = batch / ranks
    memory = 12 * own * (3 * 1024 + 20 * 1024 + 10 * 1024 + 2048 + 1010) + 12 * 2.1e6
    return training(p, m, ranks, batch, CNN, seconds_of(m["cnn"], own), memory)


def matmul_rows(p, m, ranks, n):
    """Both operands are split by rows; all ranks get the second one as a whole. Duet does this with less than
    4 million elements."""
    g, all_of_it = ranks_of(p, ranks), 4.0 * n * n
    compute = seconds_of(m["product"], 2.0 * n**3 / ranks)
    moving = all_gather(p, g, all_of_it)
    memory = 3 * all_of_it / ranks + (all_of_it if ranks > 1 else 0)
    moved = all_gather_bytes(ranks, all_of_it)
    return Step(compute, moving, min(moving, compute), moved, 1, int(ranks > 1), memory)


# Estimates by which Duet chooses a grid, in src/group: bytes of the operands that a rank gathers at a time;
# bytes a second within a node, and between nodes; seconds of a call, for each message, and for each rank of a
# ring; the necessary advantage
PANEL, NEAR_RATE, FAR_RATE, MARGIN = 2.0**31, 100e9, 12.5e9, 1.1
LATENCY, MESSAGE, HOP = 40e-6, 1e-6, 2e-6


def grid_shares(rows, columns):
    """What a rank receives of the first operand, of the second, and of the result, as shares of each."""
    ranks = rows * columns
    return (columns - 1) / ranks, (ranks - 1) / ranks / columns, (columns - 1) / columns / ranks


def near_and_far(p, count, senders):
    """Bytes from the same node, and from others. Senders: consecutive ranks, of which one is the receiver."""
    near = count * (min(senders, int(p["node_gpus"])) - 1) / max(senders - 1, 1)
    return near, count - near


def grid_panels(rows, columns, all_of_it):
    return max(1, math.ceil((1 / rows + 1 / columns) * all_of_it / PANEL))


def expected_seconds(p, rows, columns, all_of_it):
    """Duet's estimate for the communication of a product on a grid."""
    panels = grid_panels(rows, columns, all_of_it)
    seconds = 0.0
    for share, senders, times in zip(grid_shares(rows, columns), (columns, rows * columns, columns),
                                     (panels, panels, 1)):
        near, far = near_and_far(p, all_of_it * share, senders)
        seconds += (LATENCY + MESSAGE * senders) * times + max(near / NEAR_RATE, far / FAR_RATE)
    return seconds


def grid(p, ranks, all_of_it):
    """The rows and columns of the grid that Duet chooses for a product of square matrices; None: no grid."""
    by_rows = all_gather_bytes(ranks, all_of_it) / shared_rate(p, ranks)
    by_rows += (LATENCY + HOP * ranks) * row_panels(p, ranks, all_of_it)
    grids = [(rows, ranks // rows) for rows in range(2, ranks // 2 + 1) if ranks % rows == 0]
    best = min(grids, key=lambda of: expected_seconds(p, *of, all_of_it), default=None)
    return best if best and MARGIN * expected_seconds(p, *best, all_of_it) < by_rows else None


def grid_exchange(p, count, senders):
    near, far = near_and_far(p, count, senders)
    return exchange(p, None, near, far, senders - 1)


def row_panels(p, ranks, all_of_it):
    """How many panels of the second operand Duet gathers, one after the other, if there is no grid."""
    if all_of_it < 16e6 or (ranks <= p["node_gpus"] and all_of_it <= 2 * PANEL):
        return 1
    return max(min(ranks, 8), math.ceil(all_of_it / PANEL))


def matmul_row_panels(p, m, ranks, n):
    """As matmul_rows, but a panel at a time. Two of them are in memory, the sum of the products, and a copy of
    the first operand."""
    whole, all_of_it = matmul_rows(p, m, ranks, n), 4.0 * n * n
    panels = row_panels(p, ranks, all_of_it)
    if panels == 1:
        return whole
    moving = panels * all_gather(p, ranks_of(p, ranks), all_of_it / panels)
    memory = 5 * all_of_it / ranks + 2 * all_of_it / panels
    return whole._replace(communication=moving, hidden=min(moving, whole.compute), calls=panels,
                          memory=memory)


def matmul_2d(p, m, ranks, n):
    """The operands and the result are split by rows. A rank computes a block of the result: it gathers rows
    of the first operand within its row of the grid, and columns of the second one from all ranks. The
    columns and the result are packed. Duet does this, by src/group/grid_product.c, if it expects it to be
    faster."""
    all_of_it = 4.0 * n * n
    found = grid(p, ranks, all_of_it)
    if not found:
        return matmul_row_panels(p, m, ranks, n)
    rows, columns = found
    compute = seconds_of(m["product"], 2.0 * n**3 / ranks)
    x, y, result = (all_of_it * share for share in grid_shares(rows, columns))
    gathered = all_of_it / rows + all_of_it / columns
    panels = grid_panels(rows, columns, all_of_it)
    moving = panels * (grid_exchange(p, x / panels, columns) + grid_exchange(p, y / panels, ranks))
    moving += grid_exchange(p, result, columns) + 2 * (y + result) / m["copy"]
    at_a_time = (gathered + all_of_it / columns) / panels * min(panels, 2)
    memory = 4 * all_of_it / ranks + at_a_time
    return Step(compute, moving, min(moving, compute), x + y + result, 1, 2 * panels + 1, memory)


def fft(p, m, ranks, points):
    """Transforms of rows, an all-to-all that splits by columns, transforms of columns. Messages are
    packed."""
    g, own = ranks_of(p, ranks), 8 * points / ranks
    compute = max(m["fft"], 2 * points / ranks * m["point"])
    moving = all_to_all(p, g, own) + (2 * own / m["copy"] if ranks > 1 else 0)
    return Step(compute, moving, 0, all_gather_bytes(ranks, own), 2, int(ranks > 1), 4 * own)


# scalings: ("weak", size of each GPU) or ("strong", size of all); power: of the size, in the work
Case = namedtuple("Case", "title step unit power scalings")
CASES = {
    "saxpy": Case("saxpy", saxpy, "elements", 1, [("weak", 10**9), ("strong", 10**9)]),
    "sum": Case("sum of all elements, exact order", sum_all, "elements", 1,
                [("weak", 10**9), ("strong", 10**9)]),
    "forward": Case("dense 784-500-500-10, forward", forward, "batch", 1,
                    [("weak", 16384), ("strong", 16384), ("strong", 131072)]),
    "train": Case("dense 784-500-500-10, training step", train, "batch", 1,
                  [("weak", 16384), ("strong", 16384), ("strong", 131072)]),
    "cnn": Case("convolutional network, training step", cnn, "batch", 1,
                [("weak", 4096), ("strong", 4096), ("strong", 131072)]),
    "matmul-rows": Case("product of square matrices, split by rows", matmul_rows, "rows", 3,
                        [("weak", 16384)] + [("strong", n) for n in (16384, 32768, 65536, 131072)]),
    "matmul-2d": Case("product of square matrices, split by rows, in blocks", matmul_2d, "rows", 3,
                      [("weak", 16384)] + [("strong", n) for n in (16384, 32768, 65536, 131072)]),
    "fft": Case("2-d FFT, 16384 rows of 16384 elements", fft, "elements", 1,
                [("weak", 2**28), ("strong", 2**28)]),
}
ALIASES = {"dense": "forward", "dense-forward": "forward", "dense-train": "train", "dense-training": "train",
           "cnn-train": "cnn", "cnn-training": "cnn", "matmul-large": "matmul-2d"}  # other names in results


# ---- times ----


def host_seconds(p, m, step, ranks):
    """The host of a rank queues statements and calls. Ranks agree before each call and after each
    statement, or before and after a replay."""
    if ranks == 1:
        return 0.0
    each = p["agree_near"] if ranks <= p["node_gpus"] else p["agree_far"]
    agree = math.ceil(math.log2(ranks)) * each
    if step.recorded if p["graph"] is None else p["graph"]:
        return m["replay"] + 2 * agree
    return step.statements * (p["statement"] + agree) + step.calls * (p["call"] + agree) + step.host


def total_size(case, mode, size, ranks):
    """Weak scaling of a product keeps the elements of each GPU: the rows grow with the square root."""
    if mode == "strong":
        return size
    return size * ranks if case.power == 1 else round(size * math.sqrt(ranks))


def estimate(p, m, name, mode, size, ranks):
    """Returns a row of a table."""
    case = CASES[name]
    total = total_size(case, mode, size, ranks)
    step, one = case.step(p, m, ranks, total), case.step(p, m, 1, size)
    device = step.compute + step.communication - p["overlap"] * step.hidden
    host = host_seconds(p, m, step, ranks)
    seconds = max(device, host)
    ideal = one.compute * (total / size) ** case.power / ranks
    return {"case": name, "mode": mode, "size": size, "ranks": ranks, "total": total, "seconds": seconds,
            "compute": step.compute, "communication": step.communication, "sums": step.sums, "host": host,
            "efficiency": ideal / seconds, "bytes": step.moved, "memory": step.memory,
            "fits": step.memory <= p["memory"], "limit": limit_of(step, device, host)}


def limit_of(step, device, host):
    if host > device:
        return "host"
    if step.communication <= step.compute:
        return "compute"
    return "exact sums" if step.sums > step.communication / 2 else "communication"


def all_rows(p, m, names=None, ranks=None):
    return [estimate(p, m, name, mode, size, r) for name in names or CASES
            for mode, size in CASES[name].scalings for r in ranks or RANKS]


# ---- output ----


def time_text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def bytes_text(count):
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def share_text(x):
    return f"{100 * x:.3g} %" if x >= 1e-3 else "< 0.1 %"


def print_table(rows):
    first, case = rows[0], CASES[rows[0]["case"]]
    of = "on each GPU" if first["mode"] == "weak" else "in all"
    print(f"{first['case']}: {case.title}; {first['mode']} scaling, {first['size']} {case.unit} {of}\n")
    print("| GPUs | time | compute | communication | of it exact sums | host | sent by a GPU "
          "| efficiency | limit |")
    print("|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        times = " | ".join(time_text(r[k]) for k in ("seconds", "compute", "communication", "sums", "host"))
        limit = r["limit"] if r["fits"] else f"does not fit: {r['memory'] / GIB:.0f} GiB"
        sent, share = bytes_text(r["bytes"]), share_text(r["efficiency"])
        print(f"| {r['ranks']} | {times} | {sent} | {share} | {limit} |")
    print()


def tables_of(rows):
    found = {}
    for r in rows:
        found.setdefault((r["case"], r["mode"], r["size"]), []).append(r)
    return list(found.values())


def print_summary(rows):
    """The efficiency at some numbers of GPUs, and the last number with at least half of it."""
    shown = [r for r in (8, 64, 512, 4096) if any(r == row["ranks"] for row in rows)]
    print("| case | scaling | size | 1 GPU | " + " | ".join(f"{r} GPUs" for r in shown) + " | 50 % up to |")
    print("|---|---|---|---|" + "---|" * (len(shown) + 1))
    for table in tables_of(rows):
        first, last = table[0], [r["ranks"] for r in table if r["efficiency"] >= 0.5]
        cells = [summary_cell(r) for r in table if r["ranks"] in shown]
        one = time_text(first["compute"]) + ("" if first["fits"] else " *")
        print(f"| {first['case']} | {first['mode']} | {first['size']} | {one} | " + " | ".join(cells)
              + f" | {max(last) if last else 'none'} |")


def summary_cell(r):
    return f"{time_text(r['seconds'])}, {share_text(r['efficiency'])}" + ("" if r["fits"] else " *")


def print_assumptions(p, m):
    print("| name | value | unit | source |\n|---|---|---|---|")
    for name, (value, unit, source) in ASSUMED.items():
        text = ", ".join(f"{v:.4g}" for v in p[name]) if isinstance(value, list) else f"{p[name]:.4g}"
        print(f"| {name} | {text} | {unit} | {source if p[name] == value else 'links.json'} |")
    for name in REPLACED:
        nominal, efficiency = (p[k] for k in REPLACED[name])
        same = math.isclose(p[name], nominal * efficiency)
        print(f"| {name} | {p[name]:.4g} | bytes/s | {'the product of the two' if same else 'links.json'} |")
    print("\n| measured | largest | seconds |\n|---|---|---|")
    for name, value in m.items():
        table = value if isinstance(value, list) else [("", value)]
        at = f"{table[-1][0]:.4g}" if table[-1][0] else ""
        print(f"| {name} | {at} | {table[-1][1]:.4g} |")


def draw(rows, path):
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError as e:
        sys.exit(f"scale_model.py: {e}; the chart needs matplotlib")
    matplotlib.rcParams["svg.hashsalt"] = "duet"
    figure, axes = plt.subplots(1, 2, figsize=(15, 5), sharey=True)
    for axis, mode in zip(axes, ("weak", "strong")):
        for k, table in enumerate(t for t in tables_of(rows) if t[0]["mode"] == mode):
            there = [r for r in table if r["fits"]]
            label = f"{table[0]['case']} {table[0]['size']}"
            x, y = [r["ranks"] for r in there], [100 * r["efficiency"] for r in there]
            axis.plot(x, y, ("-", "--")[k // 10], label=label)
        axis.set(xlabel="GPUs", title=f"{mode} scaling, modelled", ylim=(0, 105))
        axis.set_xscale("log", base=2)
        axis.grid(True, alpha=0.3)
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    axes[0].set_ylabel("efficiency, %")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)


# ---- comparison with measured times ----


def measured_rows(document):
    """duet-distributed gives the rows of a transform, the model all elements."""
    if isinstance(document, dict):
        document = document.get("rows") or document.get("results") or []
        document = [dict(r, size=r["size"] ** 2) if r.get("case") == "fft" else r for r in document]
    return [r for r in document if isinstance(r, dict) and r.get("seconds") and r.get("ranks")]


def size_of(row, name, mode):
    """Rows may name the size; else it is the first of the case."""
    for key in ("size", "batch", "elements", "n"):
        if row.get(key):
            return row[key]
    return next(size for scaling, size in CASES[name].scalings if scaling == mode)


def is_on_cpu(row):
    return "cpu" in (row.get("machine"), row.get("place"), row.get("device"))


def compare(p, m, row):
    """Returns the model's row for a measured one, or None."""
    name = str(row.get("case") or row.get("name") or "").replace("_", "-")
    name, mode = ALIASES.get(name, name), row.get("mode", "strong")
    if name not in CASES or mode not in ("weak", "strong") or is_on_cpu(row):
        return None
    p = dict(p, graph=bool(row["recorded"]) if "recorded" in row else p["graph"])
    return estimate(p, m, name, mode, size_of(row, name, mode), int(row["ranks"]))


def check(p, m, path):
    print("| case | scaling | size | how | GPUs | model | measured | model/measured |")
    print("|---|---|---|---|---|---|---|---|")
    for row in measured_rows(read_json(path)):
        r = compare(p, m, row)
        how = "replay" if row.get("recorded") else "statements"
        if not r:
            print(f"| {row.get('case') or row.get('name')} | not modelled | | {how} | {row['ranks']} | | "
                  f"{time_text(row['seconds'])} | |")
            continue
        print(f"| {r['case']} | {r['mode']} | {r['size']} | {how} | {r['ranks']} | {time_text(r['seconds'])} | "
              f"{time_text(row['seconds'])} | {r['seconds'] / row['seconds']:.2f} |")


# ---- the program ----


def updated(text):
    """The text of a page with new tables."""
    def table(match):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            run(read_options(match.group(2).split()))
        return f"{match.group(1)}\n{out.getvalue().strip()}\n<!-- end -->"

    return re.sub(r"(<!-- scale_model\.py (.*?) -->)\n.*?<!-- end -->", table, text, flags=re.DOTALL)


def read_options(arguments=None):
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--case", action="append", choices=CASES, help="only this case; may be repeated")
    parser.add_argument("--ranks", type=int, action="append", help="this number of GPUs; may be repeated")
    parser.add_argument("--math", default="strict", choices=["strict", "split", "tf32", "bf16"],
                        help="arithmetic of forward passes and products; training is measured in strict only")
    parser.add_argument("--overlap", type=float, default=0.0, metavar="SHARE",
                        help="share of communication that overlaps with computation, where that is possible; "
                        "0 is the default")
    parser.add_argument("--graph", action="store_true",
                        help="every case is a recording that launches one CUDA graph; by default only training is")
    parser.add_argument("--pairs", action="store_true",
                        help="pairs of ranks join sums, in log2(ranks) rounds; Duet gathers them")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the measured results")
    parser.add_argument("--links", type=Path, help="measured rates instead of RESULTS/links.json")
    parser.add_argument("--summary", action="store_true", help="one line for each case and scaling")
    parser.add_argument("--assumptions", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--chart", metavar="FILE")
    parser.add_argument("--check", metavar="FILE")
    parser.add_argument("--update", metavar="FILE", type=Path)
    return parser.parse_args(arguments)


def read_parameters(options):
    path = options.links or options.results / "links.json"
    links = read_json(path) if options.links or path.exists() else None
    return parameters(links, {"overlap": options.overlap, "graph": options.graph or None, "pairs": options.pairs})


def run(options):
    try:
        p, m = read_parameters(options), measure(options.results, options.math)
    except (OSError, ValueError, KeyError, StopIteration) as e:
        sys.exit(f"scale_model.py: {e!r}")
    if options.check:
        return check(p, m, options.check)
    if options.assumptions:
        return print_assumptions(p, m)
    rows = all_rows(p, m, options.case, options.ranks)
    if options.chart:
        return draw(rows, options.chart)
    if options.json:
        return print(json.dumps(rows, indent=1))
    if options.summary:
        return print_summary(rows)
    for table in tables_of(rows):
        print_table(table)


def main():
    options = read_options()
    if options.update:
        options.update.write_text(updated(options.update.read_text()))
    else:
        run(options)


if __name__ == "__main__":
    main()
