#!/usr/bin/env python3
"""charts.py - from the benchmarks' JSON. Of duet-bench one log-log chart a benchmark: time over size, CPU and GPU, peers as thinner
lines. Of duet-vectors one a test, bandwidth over size, and one of time over the number of operators. Of duet-expressions one of the
ratio to the best compiled loop over size. Of duet-place one a benchmark: auto, CPU and GPU;
and one of all, rates over sizes. Of duet-calls the host's time of a call."""

import argparse
import json
import os
import statistics
import sys

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError as e:
    sys.exit(f"charts.py: {e}; the charts need matplotlib")

# name: title, label of the x axis; in the order of the paper's figures 3 to 7
CHARTS = {
    "saxpy": ("saxpy: y = 3.3 x + y", "elements"),
    "sgemm": ("sgemm: C = A B", "rows and columns"),
    "complex": ("complex expression: C = X (1.2 X + Y) (-1.2 Y - X)", "rows and columns"),
    "dense": ("dense network 784-1000-1000-10, forward", "batch"),
    "cnn": ("convolutional network on 3x32x32, forward", "batch"),
}
BANDWIDTH = {
    "add": "a = b + c", "axpby": "a = 0.12 b + 7.54 c", "wiemann3": "a = (b - (a + 3.75 c) + c - 0.24 b) / 27.51 + a - 0.25 b",
    "normalise": "a = a / norm(a)", "sigmoid": "sigmoid", "black_scholes": "Black-Scholes, call and put", "sum": "sum", "norm": "norm",
    "argmax": "argmax", "softmax": "softmax of rows of 1000",
}
COLOURS = {"cpu": "#1f5fa8", "gpu": "#d1661f"}
DASHES = ["--", "-.", ":", (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1))]


def lines(documents, bench):
    """(machine, label, is it Duet) -> {size: us}. The last file that has a point wins."""
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
    """The machines' names, in a line."""
    parts = []
    for d in documents:
        if any(r.get("machine", "cpu") == "cpu" for r in d["results"]):
            parts.append(f"CPU: {d.get('cpu', '?')}, {d.get('threads', '?')} threads")
        if any(r.get("machine") == "gpu" or r.get("gpu_us") for r in d["results"]):
            parts.append(f"GPU: {d.get('gpu', '?')}")
    return "; ".join(dict.fromkeys(parts))


def style(axes, machine, label, ours, points, peers):
    """One line; Duet's thick, a peer's thin and with dashes of its own."""
    x = sorted(points)
    dashes = "-" if ours else peers.setdefault(label, DASHES[len(peers) % len(DASHES)])
    axes.plot(x, [points[n] for n in x], linestyle=dashes, color=COLOURS[machine], label=f"{label}, {machine.upper()}",
              linewidth=2.4 if ours else 0.9, marker="o" if ours else None, markersize=4)


def epilogue(figure, axes, documents, path, title, xlabel, ylabel, scale=("log", "log")):
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
    epilogue(figure, axes, documents, path, title, unit, "time of a call, microseconds")
    return True


PLACES = {"auto": ("left to auto", "#2a7a3b"), "cpu": ("forced to the CPU", COLOURS["cpu"]), "gpu": ("forced to the GPU", COLOURS["gpu"])}
STARTS = {"host": "data start on the host", "device": "on the device", "half": "half and half"}
MODES = {"once": "one call", "loop": "a call of a loop"}


def place_points(documents, case):
    """(mode, start, place) -> {size: us}. The last file that has a point wins."""
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
    """Three lines, auto between the CPU and the GPU; a panel for each start, once and in a loop."""
    found = place_points(documents, case)
    if not found:
        return False
    title, unit = CHARTS[case]
    starts = [s for s in STARTS if any(k[1] == s for k in found)]
    figure, panels = plt.subplots(2, len(starts), figsize=(1 + 3.4 * len(starts), 6.4), layout="constrained", sharex=True, sharey="row", squeeze=False)
    for row, (mode, what) in enumerate(MODES.items()):
        for axes, start in zip(panels[row], starts):
            for place, (label, colour) in PLACES.items():
                points = found.get((mode, start, place), {})
                axes.plot(sorted(points), [points[n] for n in sorted(points)], label=label, color=colour, marker="o", markersize=3,
                          linewidth=2.4 if place == "auto" else 1.2, zorder=1 if place == "auto" else 2)
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
    """{size: units of work}, and the unit of their rate, of duet-place."""
    rows = [r for d in documents for r in d["results"] if r.get("bench") == "place" and r["case"] == case and r.get("work")]
    return {r["size"]: r["work"] for r in rows}, rows[0]["unit"] if rows else ""


def placement_chart(documents, path):
    """The paper's figures: a panel a benchmark, the rate over the size, three lines; loops over data that start on the host."""
    cases = [c for c in CHARTS if rate_of(documents, c)[0]]
    if not cases:
        return False
    figure, panels = plt.subplots(1, len(cases), figsize=(3.1 * len(cases), 3.4), layout="constrained", squeeze=False)
    for axes, case in zip(panels[0], cases):
        found, (work, unit) = place_points(documents, case), rate_of(documents, case)
        for place, (label, colour) in PLACES.items():
            points = {n: work[n] / us / 1e3 for n, us in found.get(("loop", "host", place), {}).items()}
            axes.plot(sorted(points), [points[n] for n in sorted(points)], label=label, color=colour, marker="o", markersize=3,
                      linewidth=3.2 if place == "auto" else 1.2, alpha=0.6 if place == "auto" else 1)
        axes.set(xscale="log", yscale="log", xlabel=CHARTS[case][1], ylabel=unit)
        axes.set_title(CHARTS[case][0].split(":")[0].split(" on ")[0], fontsize=8.5)
        axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    panels[0][0].legend(fontsize=7)
    figure.text(0.005, -0.005, hardware(documents), ha="left", va="top", fontsize=5.5, color="#555555")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return True


def overhead_chart(documents, path):
    """Of duet-calls, what the host spends on a call: on the GPU where there is one, each of Duet's beside its bare calls."""
    rows = [r for d in documents for r in d["results"] if r.get("bench") == "calls" and r.get("ns") and "batch 1, " not in r["what"] and "above" not in r["what"]]
    machine = "gpu" if any(r["machine"] == "gpu" for r in rows) else "cpu"
    found = {r["what"]: r["ns"] for r in rows if r["machine"] == machine}
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7, 1 + 0.24 * len(found)), layout="constrained")
    names = list(found)[::-1]
    colours = ["#999999" if "bare" in n or "loop" in n else COLOURS[machine] for n in names]
    axes.barh(range(len(names)), [found[n] for n in names], color=colours, height=0.7)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_title(f"the host's time of a call on the {machine.upper()}; grey: bare", fontsize=10)
    axes.set(xlabel="nanoseconds")
    axes.grid(True, axis="x", linewidth=0.4, alpha=0.6)
    figure.text(0.005, -0.005, hardware(documents), ha="left", va="top", fontsize=5.5, color="#555555")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return True


def median_lines(documents, bench):
    """As lines, of all runs, with what duet-vectors measures beside Duet: medians, in microseconds; and the bytes that must
    move. The copy's time is that of as many bytes."""
    found, moved = {}, {}
    for d in documents:
        for r in d["results"]:
            if r.get("bench") != bench or not r.get("us") or "copy_us" not in r:
                continue
            at = (r["machine"], r["size"])
            moved[at] = r["rate"] * r["us"] * 1e3
            found.setdefault((r["machine"], "Duet", True), {}).setdefault(r["size"], []).append(r["us"])
            copied = 8 * r["size"] * (1000 if bench == "softmax" else 1)
            for label, us in ("copy", r["copy_us"] * moved[at] / copied), ("kernel by hand", r.get("hand_us")):
                if us:
                    found.setdefault((r["machine"], label, False), {}).setdefault(r["size"], []).append(us)
        for r in d.get("peers", []):
            if r["bench"] == bench and r.get("us"):
                found.setdefault((r["machine"], r["peer"], False), {}).setdefault(r["size"], []).append(r["us"])
    medians = {k: {n: statistics.median(us) for n, us in v.items()} for k, v in found.items()}
    return dict(sorted(medians.items(), key=lambda k: (not k[0][2], k[0][0], k[0][1]))), moved


def bandwidth_chart(documents, bench, path):
    """Bytes that must move over the time."""
    found, moved = median_lines(documents, bench)
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    peers = {}
    for (machine, label, ours), points in found.items():
        rate = {n: moved[machine, n] / us / 1e3 for n, us in points.items() if (machine, n) in moved}
        style(axes, machine, label, ours, rate, peers)
    epilogue(figure, axes, documents, path, BANDWIDTH[bench], "rows" if bench == "softmax" else "elements", "GB/s, of the bytes that must move")
    return True


def operators_chart(documents, path):
    """Time over the number of operators, at the greatest size that all lengths have."""
    lengths, by_length = (2, 8, 16, 24, 28, 32, 40, 64), {}
    for n in lengths:
        by_length[n] = median_lines(documents, f"ops{n}")[0]
    sizes = [set.intersection(*[set(points) for points in found.values()]) for found in by_length.values() if found]
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
    epilogue(figure, axes, documents, path, f"programs of operators over 3 inputs of {size:.3g} elements", "operators", "time of a call, microseconds",
           ("linear", "log"))
    return True


def expressions_chart(documents, path):
    """Geometric means of the ratios to the best compiled loop; into the destination's own memory."""
    found = {}
    for d in documents:
        for r in d["results"]:
            if r.get("bench") == "expressions" and not r["in_place"] and r.get("geomean"):
                found.setdefault(r["contender"], {})[r["size"]] = r["geomean"]
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for k, (label, points) in enumerate(found.items()):
        sizes, ours = sorted(points), label.startswith("Duet's")
        axes.plot(sizes, [points[n] for n in sizes], linestyle="-" if label == "Duet's machine" else DASHES[k % len(DASHES)],
                  color=COLOURS["cpu"] if ours else "#777777", linewidth=2.4 if label == "Duet's machine" else 1.0, label=label)
    epilogue(figure, axes, documents, path, "random expressions on one thread", "elements", "time over the best compiled loop's, geometric mean")
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("json", nargs="+", help="files of --json, of one machine or several, of one run or several")
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
    others += [("placement", lambda p: placement_chart(documents, p)), ("overhead", lambda p: overhead_chart(documents, p))]
    others += [("operators", lambda p: operators_chart(documents, p)), ("expressions", lambda p: expressions_chart(documents, p))]
    for name, draw in others:
        path = os.path.join(args.out, f"{name}.{args.format}")
        if draw(path):
            print(path)
            drawn += 1
    sys.exit(0 if drawn else "charts.py: nothing to draw")


if __name__ == "__main__":
    main()
