#!/usr/bin/env python3
"""charts.py - draws charts from the JSON files of the benchmarks.

    duet-bench        for each benchmark time against size on the CPU and the GPU, with peers as thin lines
    duet-vectors      for each test bandwidth against size; time against the number of operators
    duet-expressions  ratio to the fastest compiled loop against size
    duet-place        for each benchmark auto, CPU and GPU; for all benchmarks rate against size
    duet-calls        host time of a call
    duet-distributed  efficiency on several GPUs, and the time of peers (bench/peers/distributed.py)"""

import argparse
import json
import os
import statistics
import sys

from table import distributed_rows

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError as e:
    sys.exit(f"charts.py: {e}; the charts need matplotlib")

# name: title, label of the x axis; in the order of figures 3 to 7 of the paper
CHARTS = {
    "saxpy": ("saxpy: y = 3.3 x + y", "elements"),
    "sgemm": ("sgemm: C = A B", "rows and columns"),
    "complex": ("complex expression: C = X (1.2 X + Y) (-1.2 Y - X)", "rows and columns"),
    "dense": ("dense network 784-1000-1000-10, forward", "batch"),
    "cnn": ("convolutional network on 3x32x32, forward", "batch"),
}
BANDWIDTH = {
    "add": "a = b + c",
    "axpby": "a = 0.12 b + 7.54 c",
    "wiemann3": "a = (b - (a + 3.75 c) + c - 0.24 b) / 27.51 + a - 0.25 b",
    "normalise": "a = a / norm(a)",
    "sigmoid": "sigmoid",
    "black_scholes": "Black-Scholes, call and put",
    "sum": "sum",
    "norm": "norm",
    "argmax": "argmax",
    "softmax": "softmax of rows of 1000",
}
COLOURS = {"cpu": "#1f5fa8", "gpu": "#d1661f"}
INTERPRETER = ("Duet's interpreter", "Duet's machine")  # the second is its name in older files
DASHES = ["--", "-.", ":", (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1))]


def lines(documents, bench):
    """Returns {(machine, label, is Duet): {size: us}}. If several files have a point, the last one
    counts."""
    found = {}
    for d in documents:
        for r in d["results"]:
            if r.get("bench") != bench or not r.get("us"):
                continue
            found.setdefault((r["machine"], "Duet", True), {})[r["size"]] = r["us"]
            if r.get("peer_us"):
                found.setdefault((r["machine"], r["peer"], False), {})[r["size"]] = r["peer_us"]
        for r in d.get("peers", []):
            if r["bench"] == bench and r.get("us"):
                found.setdefault((r["machine"], r["peer"], False), {})[r["size"]] = r["us"]
    return dict(sorted(found.items(), key=lambda k: (not k[0][2], k[0][0], k[0][1])))


def hardware(documents):
    """Returns the names of the processors in one line."""
    parts = []
    for d in documents:
        if "place" in d:  # from duet-distributed or its peers; the peers' list of GPUs has driver versions
            gpu = d.get("gpu", "?")
            name = gpu if isinstance(gpu, str) else gpu[0].split(",")[0] if gpu else "?"
            parts.append(f"GPU: {name}" if d["place"] == "gpu" else "CPU: " + d.get("cpu", "?"))
            continue
        if any(r.get("machine", "cpu") == "cpu" for r in d["results"]):
            parts.append(f"CPU: {d.get('cpu', '?')}, {d.get('threads', '?')} threads")
        if any(r.get("machine") == "gpu" or r.get("gpu_us") for r in d["results"]):
            parts.append(f"GPU: {d.get('gpu', '?')}")
    return "; ".join(dict.fromkeys(parts))


def style(axes, machine, label, ours, points, peers):
    """Draws one line: thick for Duet, thin and dashed for a peer."""
    x = sorted(points)
    dashes = "-" if ours else peers.setdefault(label, DASHES[len(peers) % len(DASHES)])
    axes.plot(
        x,
        [points[n] for n in x],
        linestyle=dashes,
        color=COLOURS[machine],
        label=f"{label}, {machine.upper()}",
        linewidth=2.4 if ours else 0.9,
        marker="o" if ours else None,
        markersize=4,
    )


def finish(figure, axes, documents, path, title, xlabel, ylabel, scale=("log", "log")):
    axes.set(xscale=scale[0], yscale=scale[1], xlabel=xlabel, ylabel=ylabel)
    axes.set_title(title, fontsize=11)
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(fontsize=7.5)
    figure.text(0.005, -0.005, hardware(documents), ha="left", va="top", fontsize=5.5, color="#555555")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def chart(documents, bench, path):
    found = lines(documents, bench)
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    peers = {}
    for (machine, label, ours), points in found.items():
        style(axes, machine, label, ours, points, peers)
    title, unit = CHARTS[bench]
    finish(figure, axes, documents, path, title, unit, "time of a call, microseconds")
    return True


PLACES = {"auto": ("auto", "#2a7a3b"), "cpu": ("CPU", COLOURS["cpu"]), "gpu": ("GPU", COLOURS["gpu"])}
STARTS = {"host": "data on the host", "device": "data on the GPU", "half": "half on each"}
MODES = {"once": "one call", "loop": "call in a loop"}


def place_points(documents, case):
    """Returns {(mode, start, place): {size: us}}. If several files have a point, the last one
    counts."""
    found = {}
    for d in documents:
        for r in d["results"]:
            if r.get("bench") != "place" or r["case"] != case:
                continue
            for place in PLACES:
                if r.get(f"{place}_us"):
                    found.setdefault((r["mode"], r["start"], place), {})[r["size"]] = r[f"{place}_us"]
    return found


def place_chart(documents, case, path):
    """Draws lines for auto, CPU and GPU, in a panel for each start and mode."""
    found = place_points(documents, case)
    if not found:
        return False
    title, unit = CHARTS[case]
    starts = [s for s in STARTS if any(k[1] == s for k in found)]
    figure, panels = plt.subplots(
        2,
        len(starts),
        figsize=(1 + 3.4 * len(starts), 6.4),
        layout="constrained",
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for row, (mode, what) in enumerate(MODES.items()):
        for axes, start in zip(panels[row], starts):
            for place, (label, colour) in PLACES.items():
                points = found.get((mode, start, place), {})
                axes.plot(
                    sorted(points),
                    [points[n] for n in sorted(points)],
                    label=label,
                    color=colour,
                    marker="o",
                    markersize=3,
                    linewidth=2.4 if place == "auto" else 1.2,
                    zorder=1 if place == "auto" else 2,
                )
            axes.set(xscale="log", yscale="log", title=f"{STARTS[start]}: {what}")
            axes.title.set_size(9)
            axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
        panels[row][0].set_ylabel("microseconds")
    figure.supxlabel(unit, fontsize=10)
    panels[0][0].legend(fontsize=7.5)
    figure.suptitle(title, fontsize=11)
    figure.text(0.005, -0.005, hardware(documents), ha="left", va="top", fontsize=5.5, color="#555555")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return True


def rate_of(documents, case):
    """Returns {size: work} and the unit of the rate, from results of duet-place."""
    rows = [
        r
        for d in documents
        for r in d["results"]
        if r.get("bench") == "place" and r["case"] == case and r.get("work")
    ]
    return {r["size"]: r["work"] for r in rows}, rows[0]["unit"] if rows else ""


def placement_chart(documents, path):
    """Draws the figures of the paper: a panel for each benchmark, rate against size, for loops over
    data that start on the host."""
    cases = [c for c in CHARTS if rate_of(documents, c)[0]]
    if not cases:
        return False
    figure, panels = plt.subplots(
        1, len(cases), figsize=(3.1 * len(cases), 3.4), layout="constrained", squeeze=False
    )
    for axes, case in zip(panels[0], cases):
        found, (work, unit) = place_points(documents, case), rate_of(documents, case)
        for place, (label, colour) in PLACES.items():
            points = {n: work[n] / us / 1e3 for n, us in found.get(("loop", "host", place), {}).items()}
            axes.plot(
                sorted(points),
                [points[n] for n in sorted(points)],
                label=label,
                color=colour,
                marker="o",
                markersize=3,
                linewidth=3.2 if place == "auto" else 1.2,
                alpha=0.6 if place == "auto" else 1,
            )
        axes.set(xscale="log", yscale="log", xlabel=CHARTS[case][1], ylabel=unit)
        axes.set_title(CHARTS[case][0].split(":")[0].split(" on ")[0], fontsize=8.5)
        axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    panels[0][0].legend(fontsize=7)
    figure.text(0.005, -0.005, hardware(documents), ha="left", va="top", fontsize=5.5, color="#555555")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return True


def overhead_chart(documents, path):
    """Draws the host's time of a call, from results of duet-calls: those of the GPU if there are
    any, else of the CPU."""
    rows = [
        r
        for d in documents
        for r in d["results"]
        if r.get("bench") == "calls"
        and r.get("ns")
        and "batch 1, " not in r["what"]
        and "above" not in r["what"]
    ]
    machine = "gpu" if any(r["machine"] == "gpu" for r in rows) else "cpu"
    found = {r["what"]: r["ns"] for r in rows if r["machine"] == machine}
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7, 1 + 0.24 * len(found)), layout="constrained")
    names = list(found)[::-1]
    colours = ["#999999" if "bare" in n or "loop" in n else COLOURS[machine] for n in names]
    axes.barh(range(len(names)), [found[n] for n in names], color=colours, height=0.7)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_title(f"host time of a call, {machine.upper()}; grey: without Duet", fontsize=10)
    axes.set(xlabel="nanoseconds")
    axes.grid(True, axis="x", linewidth=0.4, alpha=0.6)
    figure.text(0.005, -0.005, hardware(documents), ha="left", va="top", fontsize=5.5, color="#555555")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return True


def median_lines(documents, bench):
    """Does what lines() does for the results of duet-vectors, with medians over all files. Also
    returns the bytes that have to be moved. The time of the copy is scaled to the same number of
    bytes."""
    found, moved = {}, {}
    for d in documents:
        for r in d["results"]:
            if r.get("bench") != bench or not r.get("us") or "copy_us" not in r:
                continue
            at = (r["machine"], r["size"])
            moved[at] = r["rate"] * r["us"] * 1e3
            found.setdefault((r["machine"], "Duet", True), {}).setdefault(r["size"], []).append(r["us"])
            copied = 8 * r["size"] * (1000 if bench == "softmax" else 1)
            for label, us in ("copy", r["copy_us"] * moved[at] / copied), (
                "handwritten kernel",
                r.get("hand_us"),
            ):
                if us:
                    found.setdefault((r["machine"], label, False), {}).setdefault(r["size"], []).append(us)
        for r in d.get("peers", []):
            if r["bench"] == bench and r.get("us"):
                found.setdefault((r["machine"], r["peer"], False), {}).setdefault(r["size"], []).append(
                    r["us"]
                )
    medians = {k: {n: statistics.median(us) for n, us in v.items()} for k, v in found.items()}
    return dict(sorted(medians.items(), key=lambda k: (not k[0][2], k[0][0], k[0][1]))), moved


def bandwidth_chart(documents, bench, path):
    """Draws the bandwidth: bytes that have to be moved, divided by the time."""
    found, moved = median_lines(documents, bench)
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    peers = {}
    for (machine, label, ours), points in found.items():
        rate = {n: moved[machine, n] / us / 1e3 for n, us in points.items() if (machine, n) in moved}
        style(axes, machine, label, ours, rate, peers)
    finish(
        figure, axes, documents, path, BANDWIDTH[bench], "rows" if bench == "softmax" else "elements", "GB/s"
    )
    return True


def operators_chart(documents, path):
    """Draws time against the number of operators, at the largest size for which all lengths were
    measured."""
    lengths, by_length = (2, 8, 16, 24, 28, 32, 40, 64), {}
    for n in lengths:
        by_length[n] = median_lines(documents, f"ops{n}")[0]
    sizes = [
        set.intersection(*[set(points) for points in found.values()]) for found in by_length.values() if found
    ]
    if not sizes or not set.intersection(*sizes):
        return False
    size = max(set.intersection(*sizes))
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    peers, found = {}, {}
    for n, at in by_length.items():
        for k, points in at.items():
            if size in points:
                found.setdefault(k, {})[n] = points[size]
    for (machine, label, ours), points in found.items():
        style(axes, machine, label, ours, points, peers)
    finish(
        figure,
        axes,
        documents,
        path,
        f"programs of operators over 3 inputs of {size:.3g} elements",
        "operators",
        "time of a call, microseconds",
        ("linear", "log"),
    )
    return True


def expressions_chart(documents, path):
    """Draws geometric means of the ratios to the fastest compiled loop, for results that overwrite
    no input."""
    found = {}
    for d in documents:
        for r in d["results"]:
            if r.get("bench") == "expressions" and not r["in_place"] and r.get("geomean"):
                found.setdefault(r["contender"], {})[r["size"]] = r["geomean"]
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for k, (label, points) in enumerate(found.items()):
        sizes, ours = sorted(points), label.startswith("Duet")
        axes.plot(
            sizes,
            [points[n] for n in sizes],
            linestyle="-" if label in INTERPRETER else DASHES[k % len(DASHES)],
            color=COLOURS["cpu"] if ours else "#777777",
            linewidth=2.4 if label in INTERPRETER else 1.0,
            label=label,
        )
    finish(
        figure,
        axes,
        documents,
        path,
        "random expressions on one thread",
        "elements",
        "time / time of the fastest compiled loop, geometric mean",
    )
    return True


DISTRIBUTED = {"Duet": COLOURS["gpu"], "PyTorch": "#777777", "JAX": "#bbbbbb"}


def distributed_cases(documents):
    """Returns the largest number of ranks, and {(case, mode): {package: (seconds, efficiency)}} for it. Of several
    files the last one counts, and of statements and recordings the faster one."""
    rows, most = distributed_rows(documents)
    found, best = {}, {}
    for r in rows:
        if r["ranks"] == most and r["seconds"] is not None and r["efficiency"] is not None:
            package = r.get("peer", "Duet").split()[0]
            found[r["case"], r["mode"], package, r["recorded"]] = r["seconds"], r["efficiency"]
    for (case, mode, package, _), value in found.items():
        of = best.setdefault((case, mode), {})
        of[package] = min(of.get(package, value), value)
    return most, {k: v for k, v in best.items() if "Duet" in v}


def distributed_chart(documents, path):
    """Draws efficiency, and the time of peers divided by that of Duet, on the largest number of ranks."""
    most, found = distributed_cases(documents)
    if most < 2 or not found:
        return False
    names = list(found)[::-1]
    noun = "GPUs" if any(d.get("place") == "gpu" for d in documents) else "parts of the CPU"
    figure, axes = plt.subplots(1, 2, figsize=(9, 1.4 + 0.42 * len(names)), layout="constrained", sharey=True)
    for k, (package, colour) in enumerate(DISTRIBUTED.items()):
        at = [(i + 0.27 * (1 - k), found[n]) for i, n in enumerate(names) if package in found[n]]
        heights = [y for y, _ in at]
        if not at:
            continue
        axes[0].barh(heights, [of[package][1] for _, of in at], 0.25, color=colour, label=package)
        axes[1].barh(heights, [of[package][0] / of["Duet"][0] for _, of in at], 0.25, color=colour)
    axes[0].set_yticks(range(len(names)), [f"{case}, {mode}" for case, mode in names], fontsize=8)
    axes[0].set(xlabel=f"efficiency on {most} {noun}", xlim=(0, 1.1))
    axes[1].set(xlabel="time / time of Duet")
    axes[1].axvline(1, color="black", linewidth=0.6)
    for a in axes:
        a.grid(True, axis="x", linewidth=0.4, alpha=0.6)
    axes[1].legend(*axes[0].get_legend_handles_labels(), fontsize=7.5, loc="upper right")
    figure.suptitle(f"{most} {noun}", fontsize=11)
    figure.text(0.005, -0.005, hardware(documents), ha="left", va="top", fontsize=5.5, color="#555555")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument(
        "json", nargs="+", help="JSON files of the benchmarks; several machines and runs are allowed"
    )
    p.add_argument("-o", "--out", default=".", help="folder for the charts")
    p.add_argument("--format", choices=("svg", "png"), default="svg")
    args = p.parse_args()
    documents = []
    for path in args.json:
        with open(path) as f:
            documents.append(json.load(f))
    os.makedirs(args.out, exist_ok=True)
    drawn = 0
    for bench in CHARTS:
        path = os.path.join(args.out, f"{bench}.{args.format}")
        if chart(documents, bench, path):
            print(path)
            drawn += 1
    others = [(name, lambda p, name=name: bandwidth_chart(documents, name, p)) for name in BANDWIDTH]
    others += [(f"place-{case}", lambda p, case=case: place_chart(documents, case, p)) for case in CHARTS]
    others += [
        ("placement", lambda p: placement_chart(documents, p)),
        ("overhead", lambda p: overhead_chart(documents, p)),
    ]
    others += [
        ("operators", lambda p: operators_chart(documents, p)),
        ("expressions", lambda p: expressions_chart(documents, p)),
        ("distributed", lambda p: distributed_chart(documents, p)),
    ]
    for name, draw in others:
        path = os.path.join(args.out, f"{name}.{args.format}")
        if draw(path):
            print(path)
            drawn += 1
    sys.exit(0 if drawn else "charts.py: nothing to draw")


if __name__ == "__main__":
    main()
