#!/usr/bin/env python3
"""charts.py - from duet-bench's JSON, one log-log chart a benchmark: time over size, CPU and GPU, peers as thinner lines."""

import argparse
import json
import os
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
COLOURS = {"cpu": "#1f5fa8", "gpu": "#d1661f"}
DASHES = ["--", "-.", ":", (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1))]


def lines(documents, bench):
    """(machine, label, is it Duet) -> {size: us}. The last file that has a point wins."""
    found = {}
    for d in documents:
        for r in d["results"]:
            if r["bench"] != bench or not r.get("us"):
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
        if any(r["machine"] == "cpu" for r in d["results"]):
            parts.append(f"CPU: {d.get('cpu', '?')}, {d.get('threads', '?')} threads")
        if any(r["machine"] == "gpu" for r in d["results"]):
            parts.append(f"GPU: {d.get('gpu', '?')}")
    return "; ".join(dict.fromkeys(parts))


def chart(documents, bench, path):
    found = lines(documents, bench)
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    peers = {}
    for (machine, label, ours), points in found.items():
        sizes = sorted(points)
        style = "-" if ours else peers.setdefault(label, DASHES[len(peers) % len(DASHES)])
        axes.plot(sizes, [points[n] for n in sizes], linestyle=style, color=COLOURS[machine],
                  label=f"{label}, {machine.upper()}", linewidth=2.4 if ours else 0.9, marker="o" if ours else None, markersize=4)
    title, unit = CHARTS[bench]
    axes.set(xscale="log", yscale="log", xlabel=unit, ylabel="time of a call, microseconds")
    axes.set_title(title, fontsize=11)
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(fontsize=7.5)
    figure.text(0.995, 0.002, hardware(documents), ha="right", va="bottom", fontsize=5.5, color="#555555")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("json", nargs="+", help="files of duet-bench --json, of one machine or several")
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
    sys.exit(0 if drawn else "charts.py: nothing to draw")


if __name__ == "__main__":
    main()
