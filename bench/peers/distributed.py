#!/usr/bin/env python3
"""distributed.py - times the cases of duet-distributed in PyTorch (torch.distributed, DDP; NCCL or gloo; one
process for each GPU) and in JAX (jit with NamedSharding; one process), on 1, 2, 4, ... GPUs. The sizes are
those of bench/suites/distributed_cases.c. Results are first compared with NumPy, and the losses of trainings
with those of one device. "notes" say which cases could not be measured. A package that cannot be imported is
skipped.

    distributed.py [--ranks N] [--cpu] [--quick] [--only CASE,CASE] [--without torch,jax] [--seconds N]
                   [--json FILE]

--cpu: use gloo in PyTorch, and N devices of the CPU in JAX, to test the program."""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    from distributed_cases import NETWORKS, RATE, combine, each_case, factors, finish, measure, wanted, wrong
except ImportError as e:
    sys.exit(f"distributed.py: {e}; NumPy is needed to make the data")

# ---- PyTorch: this function runs in each process ----


def torch_case(torch, dist, c, rank, device):
    """Makes the operands. Returns run() -> this rank's part of the result, and the axis of the parts;
    None: each rank has all elements."""
    f = torch.nn.functional

    def operand(k):
        shape, axis = c.shapes()[k]
        u, v = (torch.from_numpy(a) for a in factors(shape, axis, k))
        local = list(shape)
        if axis is not None:
            u = u.chunk(c.parts, axis)[rank]
            local[axis] //= c.parts
        return combine(torch, u.to(device), v.to(device), local).contiguous()

    x = [operand(k) for k in range(len(c.shapes()))]

    def reduced(y):
        if c.parts > 1:
            dist.all_reduce(y)
        return y

    def exchanged(y):
        """From rows to columns."""
        if c.parts == 1:
            return y
        send = torch.stack(y.chunk(c.parts, 1)).contiguous()
        got = torch.empty_like(send)
        dist.all_to_all_single(torch.view_as_real(got) if got.is_complex() else got,
                               torch.view_as_real(send) if send.is_complex() else send)
        return got.reshape(-1, send.shape[2])

    def gathered(part):
        if c.parts == 1:
            return part
        got = torch.empty((c.parts * part.shape[0], part.shape[1]), device=device)
        dist.all_gather_into_tensor(got, part)
        return got

    if c.name in NETWORKS:
        w = torch.nn.ParameterList(torch.nn.Parameter(torch.from_numpy(a).to(device)) for a in c.layers())

        class Network(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = w

            def forward(self, h):
                k = 0
                while self.w[k].dim() == 4:
                    h, k = f.max_pool2d(f.relu(f.conv2d(h, self.w[k], self.w[k + 1], padding=1)), 2), k + 2
                h = h.flatten(1)
                while k + 2 < len(self.w):
                    h, k = f.relu(torch.addmm(self.w[k + 1], h, self.w[k])), k + 2
                return torch.addmm(self.w[k + 1], h, self.w[k])

        net = Network()
        if c.name == "dense_forward":
            return torch.no_grad()(lambda: net(x[0])), 0
        if c.parts > 1:
            net = torch.nn.parallel.DistributedDataParallel(net, device_ids=None if device == "cpu" else [rank])
        optimizer = torch.optim.SGD(net.parameters(), RATE)
        target = (x[1] + 1) / 10

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = f.cross_entropy(net(x[0]), target)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, "loss"
    if c.name == "fft":
        z = torch.complex(x[0], x[1])
        return lambda: torch.fft.fft(exchanged(torch.fft.fft(z, dim=1)), dim=0), 1
    if c.name == "matmul_contracted":
        return lambda: reduced(x[0] @ x[1]), None
    return {
        "saxpy": (lambda: x[1].add_(x[0], alpha=3.3), 0),
        "sum": (lambda: reduced(x[0].sum()), None),
        "map": (lambda: 2 * x[0], 0),
        "all_gather": ((lambda: gathered(x[0])) if c.parts > 1 else x[0].clone, None),
        "matmul_large": (lambda: x[0] @ gathered(x[1]), 0),
        "all_reduce": (lambda: reduced(x[0][0].clone()), None),
        "all_to_all": (lambda: exchanged(x[0]), 1),
    }.get(c.name, (lambda: x[0] @ x[1], 0))


def torch_process(rank, parts, options, port, path):
    import torch
    import torch.distributed as dist

    device = "cpu" if options.cpu else f"cuda:{rank}"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    if not options.cpu:
        torch.cuda.set_device(rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo" if options.cpu else "nccl", rank=rank, world_size=parts,
                            timeout=datetime.timedelta(seconds=60))
    wait = (lambda: None) if options.cpu else torch.cuda.synchronize

    def everywhere():
        wait()
        dist.barrier()

    def agree(x):
        t = torch.tensor([x], dtype=torch.float64, device=device)
        dist.broadcast(t, 0)
        return float(t)

    def whole(y, axis):
        y = y.contiguous()
        if axis is None or parts == 1:
            return y.cpu().numpy()
        if axis == "loss":
            y = y.double()
            dist.all_reduce(y)
            return y.cpu().numpy() / parts
        real = torch.view_as_real(y).contiguous() if y.is_complex() else y
        all_ = [torch.empty_like(real) for _ in range(parts)]
        dist.all_gather(all_, real)
        all_ = [torch.view_as_complex(a) if y.is_complex() else a for a in all_]
        return torch.cat(all_, axis).cpu().numpy()

    def one(c, small):
        run, axis = torch_case(torch, dist, small, rank, device)
        got, want = whole(run(), axis), wanted(small)
        if axis == "loss":
            got = whole(run(), axis)
        del run
        run, _ = torch_case(torch, dist, c, rank, device)
        seconds = measure(run, everywhere, agree, options.quick)
        return seconds, want is None or wrong(got, want), float(got) if axis == "loss" else None

    rows = each_case(f"PyTorch {torch.__version__}", parts, options, one, rank == 0,
                     lambda: options.cpu or torch.cuda.empty_cache())
    if rank == 0:
        with open(path, "w") as f:
            json.dump(rows, f)
    dist.destroy_process_group()


def run_torch(parts, options):
    import torch

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        torch.multiprocessing.spawn(torch_process, (parts, options, port, path), parts)
        with open(path) as f:
            return json.load(f)


# ---- JAX ----


def jax_case(jax, c, mesh):
    """Returns run() -> the result."""
    jnp, lax, P = jax.numpy, jax.lax, jax.sharding.PartitionSpec
    at = lambda axis: jax.sharding.NamedSharding(mesh, P() if axis is None else P(*[None] * axis, "r"))

    def operand(k):
        shape, axis = c.shapes()[k]
        u, v = factors(shape, axis, k)
        make = jax.jit(lambda u, v: combine(jnp, u, v, shape), out_shardings=at(axis))
        return make(jax.device_put(u, at(axis)), jax.device_put(v, at(None)))

    x = [operand(k) for k in range(len(c.shapes()))]
    jit = lambda f, axis=None, **o: jax.jit(f, out_shardings=at(axis), **o)
    if c.name in NETWORKS:
        w = [jax.device_put(a, at(None)) for a in c.layers()]

        def network(w, h):
            k = 0
            while w[k].ndim == 4:
                order = ("NCHW", "OIHW", "NCHW")
                h = lax.conv_general_dilated(h, w[k], (1, 1), ((1, 1), (1, 1)), dimension_numbers=order)
                h = jnp.maximum(h + w[k + 1][:, None, None], 0)
                h, k = lax.reduce_window(h, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), k + 2
            h = h.reshape(h.shape[0], -1)
            while k + 2 < len(w):
                h, k = jnp.maximum(h @ w[k] + w[k + 1], 0), k + 2
            return h @ w[k] + w[k + 1]

        if c.name == "dense_forward":
            forward = jit(network, 0)
            return lambda: forward(w, x[0])
        loss = lambda w, h, y: -((y + 1) / 10 * jax.nn.log_softmax(network(w, h))).sum() / c.n

        def one(w, h, y):
            value, d = jax.value_and_grad(loss)(w, h, y)
            return value, [a - RATE * b for a, b in zip(w, d)]

        one = jit(one, donate_argnums=0)

        def step():
            nonlocal w
            value, w = one(w, *x)
            return value

        return step
    if c.name == "saxpy":
        add = jit(lambda x, y: 3.3 * x + y, 0, donate_argnums=1)

        def saxpy():
            x[1] = add(*x)
            return x[1]

        return saxpy
    if c.name == "fft":
        z = jit(lax.complex, 0)(*x)
        shard_map = getattr(jax, "shard_map", None) or importlib.import_module("jax.experimental.shard_map").shard_map
        exchange = lambda a: lax.all_to_all(a, "r", split_axis=1, concat_axis=0, tiled=True)
        both = lambda a: jnp.fft.fft(exchange(jnp.fft.fft(a, axis=1)), axis=0)
        transform = jax.jit(shard_map(both, mesh=mesh, in_specs=P("r", None), out_specs=P(None, "r")))
        return lambda: transform(z)
    formula = {
        "sum": jit(jnp.sum),
        "map": jit(lambda x, _: 2 * x, 0),
        "matmul_contracted": jit(jnp.matmul),
        "all_gather": jit(lambda x: x + 0),
        "all_reduce": jit(lambda x: x.sum(0)),
        "all_to_all": jit(lambda x: x + 0, 1),
    }.get(c.name, jit(jnp.matmul, 0))
    if c.name == "sum":
        return lambda: formula(x[0])
    return lambda: formula(*x)


def run_jax(parts, options):
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    devices = jax.devices("cpu" if options.cpu else "cuda")[:parts]
    if len(devices) < parts:
        raise RuntimeError(f"JAX has {len(devices)} devices")
    mesh = jax.sharding.Mesh(np.array(devices), ("r",))

    def one(c, small):
        run = jax_case(jax, small, mesh)
        got, want = np.asarray(run()), wanted(small)
        if want is None:
            got = np.asarray(run())
        run = jax_case(jax, c, mesh)
        last = []

        def call():
            last[:] = [run()]
            if options.cpu:  # there, two calls with collectives at the same time wait for each other without end
                jax.block_until_ready(last)

        seconds = measure(call, lambda: jax.block_until_ready(last), lambda x: x, options.quick)
        return seconds, want is None or wrong(got, want), float(got) if want is None else None

    return each_case(f"JAX {jax.__version__}", parts, options, one, True, lambda: None)


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def gpu_count():
    return len([line for line in output("nvidia-smi", "-L").splitlines() if line.startswith("GPU ")])


def child(a):
    """Runs one package on a.ranks devices, and writes its rows."""
    try:
        found = {"torch": run_torch, "jax": run_jax}[a.child](a.ranks, a)
    except Exception as e:
        text = f"{a.child}, {a.ranks} ranks: {type(e).__name__}: {(str(e) or '?').splitlines()[0]}"
        found = {"rows": [], "notes": [text]}
    with open(a.json, "w") as f:
        json.dump(found, f)


def run_child(package, parts, a):
    """A child may crash or wait without end; then the others still run."""
    left = a.end - time.time()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        command = [sys.executable, os.path.abspath(__file__), "--child", package, "--ranks", str(parts), "--json", path]
        command += ["--only", a.only, "--seconds", str(left)] + ["--cpu"] * a.cpu + ["--quick"] * a.quick
        process = subprocess.Popen(command, start_new_session=True)
        try:
            why = f"ended with status {process.wait(max(left, 0) + 60)}"
        except subprocess.TimeoutExpired:
            why = "did not end in time"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if os.path.exists(path):
            with open(path) as f:
                return json.load(f)
        return {"rows": [], "notes": [f"{package}, {parts} ranks: {why}"]}


def write(path, a, rows, notes):
    place = os.path.dirname(os.path.abspath(__file__))
    query = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    commit = output("git", "-C", place, "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*")
    with open(path, "w") as f:
        facts = {
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "gpu": output(*query).splitlines(),
            "commit": commit or os.environ.get("DUET_COMMIT", ""),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "place": "cpu" if a.cpu else "gpu",
            "quick": a.quick,
        }
        json.dump({**facts, "results": rows, "notes": notes}, f, indent=1)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", type=int, default=0)
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("--without", default="")
    p.add_argument("--seconds", type=float, default=1e6)
    p.add_argument("--json")
    p.add_argument("--child", help=argparse.SUPPRESS)
    a = p.parse_args()
    a.end = time.time() + a.seconds
    return a


def choose_ranks(a):
    gpus = 0 if a.cpu else gpu_count()
    if not a.cpu and not gpus:
        sys.exit("distributed.py: nvidia-smi lists no GPU; --cpu tests the program without one")
    a.ranks = a.ranks or (2 if a.cpu else gpus)
    if not a.cpu and a.ranks > gpus:
        print(f"distributed.py: there {'is 1 GPU' if gpus == 1 else f'are {gpus} GPUs'}, not {a.ranks}", flush=True)
        a.ranks = gpus


def main():
    a = arguments()
    if a.child:
        return child(a)
    choose_ranks(a)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if a.cpu:
        flag = f"--xla_force_host_platform_device_count={a.ranks}"
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " " + flag
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    counts = [2**k for k in range(a.ranks.bit_length()) if 2**k < a.ranks] + [a.ranks]
    rows, notes, tried = [], [], False
    for package in ("torch", "jax"):
        if package in a.without.split(","):
            continue
        if not importlib.util.find_spec(package):
            notes.append(f"{package} is not installed")
            continue
        tried = True
        for parts in counts:
            found = run_child(package, parts, a)
            rows, notes = rows + found["rows"], notes + found["notes"]
    rows = finish(rows, notes, a.cpu)
    for text in notes:
        print("note:", text)
    if a.json:
        write(a.json, a, rows, notes)
    if any(": wrong:" in text for text in notes) or (tried and not rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
