#!/usr/bin/env python3
"""table.py - prints the tables of docs/results.md in Markdown, from the JSON files of the benchmarks.

Figures are medians over the runs. Figures above their limits are listed on stderr."""

import argparse
import json
import statistics
import sys

# ---- limits in microseconds, with the aim in parentheses, by math mode, network and batch ----
LIMITS = {
    "strict": {
        "dense": {
            1: "9.5 (8)",
            10: "15 (13)",
            100: "27 (16)",
            1000: "108 (100)",
            4096: "345 (325)",
            16384: "1370 (1300)",
        },
        "cnn": {1: "18 (15)", 10: "25", 100: "41 (35)", 1000: "190 (165)", 4096: "670 (570)"},
    },
    "split": {
        "dense": {10: "12 (10)", 100: "21 (13)", 1000: "46 (32)", 4096: "112 (80)", 16384: "470"},
        "cnn": {1: "13 (10)", 10: "18", 100: "22 (16)", 1000: "70 (52)", 4096: "230 (175)"},
    },
}
PEER_MOST, ERROR_MOST = 1.02, {"strict": 3e-7, "split": 2e-6}
REPLAYED_UPTO = 100  # for batches up to this the time with replay counts
NETWORKS = {"dense": "dense", "cnn": "CNN"}

# ---- ETL (github.com/wichtounet/etl) on the same machines: time of a call in microseconds ----
# On the GPU, an NVIDIA H200: with its memory pool and 20 evaluations between synchronisations.
# batch: (measured batch, us).
ETL_GPU = {
    "dense": {1: (1, 55), 100: (128, 95), 1000: (1024, 301), 4096: (4096, 567)},
    "cnn": {1: (1, 250), 100: (128, 254), 1000: (512, 455)},
}
# On the CPU, by number of threads: with OpenBLAS, vectorised, parallel. The CNN is in its faster,
# split form.
ETL_CPU = {
    2: (
        "2 cores of a shared AVX-512 Xeon",
        {("dense", 4096): 151849, ("cnn", 512): 98080, ("sgemm", 1000): 6776, ("complex", 1000): 14991},
    ),
    16: (
        "16 cores of the H200's host",
        {("dense", 4096): 166000, ("cnn", 512): 64000, ("sgemm", 1000): 8200},
    ),
}
BARE_MOST, LOWER_BOUND_MOST, ETL_LEAST = {"dense": 1.1}, {"cnn": 2.5}, 3
COMPLEX_MOST, COMPLEX_SIZES = 1.03, (100, 1000, 2000)

exceeded = []


def median(values):
    found = [v for v in values if v is not None]
    return statistics.median(found) if found else None


def number(x):
    """Formats a number with three significant digits."""
    return "" if x is None else f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def limited(value, limit, what):
    """Formats a number, and records it if it is above its limit."""
    if value is not None and limit is not None and not value <= limit:
        exceeded.append(f"{what}: {value:.3g}, above the limit of {limit:.3g}")
    return number(value)


def rows(documents, bench, size, machine, math="strict"):
    """Yields the result of each run with the results of its peers."""
    for d in documents:
        if d.get("math", "strict") != math:
            continue
        for r in d["results"]:
            if (r.get("bench"), r.get("size"), r.get("machine")) == (bench, size, machine) and r.get("us"):
                yield r, [
                    p
                    for p in d.get("peers", [])
                    if (p["bench"], p["size"], p["machine"]) == (bench, size, machine) and p.get("us")
                ]


def measured(r):
    return r["replay_us"] if r["size"] <= REPLAYED_UPTO and r.get("replay_us") else r["us"]


def best_peer(found):
    """Returns the name of the peer with the least median time, this time, and the median over the
    runs of the ratio to the fastest peer of the run."""
    by_name = {}
    for _, peers in found:
        for p in peers:
            by_name.setdefault(p["peer"], []).append(p["us"])
    if not by_name:
        return None, None, None
    name = min(by_name, key=lambda n: statistics.median(by_name[n]))
    ratio = median([measured(r) / min(p["us"] for p in peers) for r, peers in found if peers])
    return name, statistics.median(by_name[name]), ratio


def markdown(head, lines):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def limit_of(math, bench, batch):
    text = LIMITS.get(math, {}).get(bench, {}).get(batch, "")
    return text, float(text.split()[0]) if text else None


def etl_cell(bench, batch):
    at = ETL_GPU[bench].get(batch)
    return "" if not at else number(at[1]) + ("" if at[0] == batch else f" (batch {at[0]})")


def other_mode(documents, math, bench, batch):
    """Returns the cells of a mode other than strict: limit, time, peer in the same mode, error."""
    found = list(rows(documents, bench, batch, "gpu", math))
    text, most = limit_of(math, bench, batch)
    us, error = median([measured(r) for r, _ in found]), median([r.get("error") for r, _ in found])
    name, peer, ratio = best_peer(found)
    limited(error, ERROR_MOST.get(math), f"{math} {bench} {batch}, error")
    cells = [text] if math in LIMITS else []
    return cells + [
        limited(us, most, f"{math} {bench} {batch}"),
        f"{number(peer)}, {ratio:.2f}" if ratio else "",
        f"{error:.1e}" if error else "",
    ]


def forward(documents):
    maths = [m for m in ("split", "tf32", "bf16") if any(d.get("math") == m for d in documents)]
    lines = []
    for bench, label in NETWORKS.items():
        for batch in LIMITS["strict"][bench]:
            found = list(rows(documents, bench, batch, "gpu"))
            if not found:
                continue
            text, most = limit_of("strict", bench, batch)
            name, peer, ratio = best_peer(found)
            what, error = f"{bench} {batch}", median([r.get("error") for r, _ in found])
            us = {k: median([r.get(k) for r, _ in found]) for k in ("us", "replay_us", "auto_us")}
            limited(median([measured(r) for r, _ in found]), most, what)
            limited(error, ERROR_MOST["strict"], what + ", error")
            cells = [
                f"{label} {batch}",
                text,
                number(us["us"]),
                number(us["replay_us"]),
                number(us["auto_us"]),
                f"{number(peer)} {name or ''}".strip(),
            ]
            cells += [
                limited(ratio, PEER_MOST, what + ", ratio to the best peer"),
                etl_cell(bench, batch),
                f"{error:.1e}" if error else "",
            ]
            lines.append(cells + [c for m in maths for c in other_mode(documents, m, bench, batch)])
    head = [
        "network, batch",
        "limit (aim)",
        "direct",
        "replayed",
        "automatic",
        "best peer",
        "ratio",
        "ETL",
        "error",
    ]
    head += [
        h
        for m in maths
        for h in ([f"{m}: limit (aim)"] if m in LIMITS else []) + [m, f"{m}: peer, ratio", f"{m}: error"]
    ]
    if lines:
        markdown(head, lines)


def complex_expression(documents):
    lines = []
    for size in COMPLEX_SIZES:
        found = [r for r, _ in rows(documents, "complex", size, "gpu") if r.get("floor_us")]
        if found:
            ratio = median([r["floor_ratio"] for r in found])
            lines.append(
                [
                    str(size),
                    number(median([r["us"] for r in found])),
                    number(median([r["floor_us"] for r in found])),
                    limited(ratio, COMPLEX_MOST, f"complex expression {size}"),
                ]
            )
    if lines:
        markdown(["complex expression", "Duet", "two cuBLASLt products and two sums", "ratio"], lines)


def on_cpu(documents):
    lines, wanted = [], [
        ("sgemm", 1000),
        ("complex", 1000),
        ("dense", 1),
        ("dense", 100),
        ("dense", 4096),
        ("cnn", 1),
        ("cnn", 100),
        ("cnn", 512),
        ("cnn", 4096),
    ]
    threads = next(
        (d.get("threads") for d in documents if any(r.get("machine") == "cpu" for r in d["results"])), None
    )
    etl_machine, etl = ETL_CPU.get(threads, ("", {}))
    for bench, size in wanted:
        found = list(rows(documents, bench, size, "cpu"))
        if not found:
            continue
        what, us = f"{bench} {size} on the CPU", median([r["us"] for r, _ in found])
        bare, least = median([r.get("ratio") for r, _ in found]), median(
            [r.get("floor_ratio") for r, _ in found]
        )
        name, peer, ratio = best_peer(found)
        slower = etl[bench, size] / us if (bench, size) in etl else None
        if slower and bench in NETWORKS and slower < ETL_LEAST:
            exceeded.append(f"{what}: {slower:.2f} times faster than ETL, not {ETL_LEAST}")
        lines.append(
            [
                f"{NETWORKS.get(bench, bench)} {size}",
                number(us),
                limited(
                    bare,
                    BARE_MOST.get(bench) if size == 4096 else None,
                    what + ", ratio to the bare products",
                ),
                limited(
                    least,
                    LOWER_BOUND_MOST.get(bench) if size == 512 else None,
                    what + ", ratio to its arithmetic",
                ),
                f"{number(peer)} {name}, {ratio:.2f}" if name else "",
                f"{number(etl[bench, size])}, {slower:.2g} times" if slower else "",
            ]
        )
    if lines:
        bare_name = next(
            (
                r["peer"]
                for d in documents
                for r in d["results"]
                if r.get("bench") == "sgemm" and r.get("machine") == "cpu" and r.get("peer")
            ),
            "bare products",
        )
        markdown(
            [
                "case",
                "Duet",
                f"ratio to {bare_name}",
                "ratio to its arithmetic at sgemm's rate",
                "best peer, ratio",
                f"ETL{', ' + etl_machine if etl_machine else ''}",
            ],
            lines,
        )


def each_cpu(documents):
    """Prints a table for each processor."""
    machines = {}
    for d in documents:
        if any(r.get("machine") == "cpu" and r.get("us") for r in d["results"]):
            machines.setdefault((d.get("cpu"), d.get("threads")), []).append(d)
    for of_one in machines.values():
        on_cpu(of_one)


def placement(documents):
    lines = []
    for mode, most in (("once", 1.1), ("loop", 1.1)):
        found = [d["summary"][mode] for d in documents if "summary" in d and mode in d["summary"]]
        if found:
            lines.append(
                [
                    mode,
                    limited(
                        median([f["geomean"] for f in found]), 1.02, f"placement, {mode}, geometric mean"
                    ),
                    limited(median([f["most"] for f in found]), most, f"placement, {mode}, maximum"),
                    str(found[0]["count"]),
                ]
            )
    if lines:
        markdown(["time of auto / time of the faster device", "geometric mean", "maximum", "cases"], lines)


def overhead(documents):
    by_name = {}
    for d in documents:
        for r in d["results"]:
            if r.get("bench") == "calls" and r.get("machine") == "gpu":
                by_name.setdefault(r["what"], []).append(r)
    lines = []
    for what, found in by_name.items():
        value, limit = median([r.get("ratio", r.get("ns")) for r in found]), found[0].get("limit")
        lines.append([what, limited(value, limit, what) + (" ns" if "ns" in found[0] else ""), number(limit)])
    if lines:
        markdown(["host time of a call on the GPU", "", "limit"], lines)


def time_of(seconds):
    return "" if seconds is None else f"{1e6 * seconds:.0f} us" if seconds < 1e-2 else f"{1e3 * seconds:.4g} ms"


def distributed_rows(documents):
    """Returns the rows of duet-distributed and its peers, and the largest number of ranks."""
    modes = "weak", "strong"
    rows = [r for d in documents for r in d["results"] if "efficiency" in r and r.get("mode") in modes]
    return rows, max((r["ranks"] for r in rows), default=0)


def distributed(documents):
    """Times of duet-distributed on one rank and on the largest number of ranks, with those of peers."""
    rows, most = distributed_rows(documents)
    found = {}
    for r in rows:
        how = r["peer"].split()[0] if "peer" in r else "replay" if r["recorded"] else "statements"
        found.setdefault((r["case"], r["mode"], r["size"]), {})[how, r["ranks"]] = r
    lines = []
    for (case, mode, size), of in found.items():
        names = ("statements", "replay", "PyTorch", "JAX")
        seconds = [of.get((how, most), {}).get("seconds") for how in names]
        efficiency = [of.get((how, most), {}).get("efficiency") for how in names]
        ours, peers = ([s for s in part if s] for part in (seconds[:2], seconds[2:]))
        if most < 2 or not ours:
            continue
        cells = [f"{time_of(s)}, {e:.3f}" if s and e else time_of(s) for s, e in zip(seconds, efficiency)]
        one = min(of[how, 1]["seconds"] for how in names[:2] if (how, 1) in of)
        lines.append([f"{case}, {mode}", str(size), time_of(one), *cells,
                      number(min(ours) / min(peers)) if peers else ""])
    if lines:
        head = ["case", "size", "1 rank", f"statements, {most} ranks", "replay", "PyTorch", "JAX", "ratio"]
        markdown(head, lines)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("json", nargs="+", help="JSON files of duet-bench, duet-place, duet-calls and duet-distributed")
    documents = []
    for path in p.parse_args().json:
        with open(path) as f:
            documents.append(json.load(f))
    for part in forward, complex_expression, each_cpu, placement, overhead, distributed:
        part(documents)
    for line in exceeded:
        print(f"table.py: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
