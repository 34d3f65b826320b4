#!/usr/bin/env python3
"""ratios.py - prints the ratio of Duet's time to that of each peer, as the median over several runs
of duet-vectors."""

import argparse
import json
import statistics
import sys


def key(r):
    return r["bench"], r["size"], r["machine"]


def collect(paths):
    """Returns two dictionaries by (test, size, machine): Duet's results of each run, and those of
    each peer."""
    duet, peers = {}, {}
    for path in paths:
        with open(path) as f:
            document = json.load(f)
        for r in document["results"]:
            if r.get("us") and r.get("ok", True):
                duet.setdefault(key(r), []).append(r)
        for r in document.get("peers", []):
            if r.get("ratio"):
                peers.setdefault(key(r), {}).setdefault(r["peer"], []).append(r)
    return duet, peers


def median(results, what):
    found = [r[what] for r in results if r.get(what) is not None]
    return statistics.median(found) if found else None


def cell(x, form):
    return "-" if x is None else format(x, form)


def line(k, results, by_peer):
    share = median(results, "share")
    text = f"{k[0]:13} {k[1]:>10} {k[2]:4} {median(results, 'us'):12.2f} "
    text += f"{cell(share and 100 * share, '.1f'):>7} {cell(median(results, 'first_us'), '.0f'):>9}"
    for peer, found in sorted(by_peer.items()):
        text += f"  {peer}: {median(found, 'ratio'):.3f} (first {cell(median(found, 'first_us'), '.0f')} us)"
    return text


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("json", nargs="+")
    p.add_argument("--limit", type=float, default=1.02, help="ratios above this are listed at the end")
    args = p.parse_args()
    duet, peers = collect(args.json)
    if not duet:
        sys.exit("ratios.py: no results")
    print(
        f"{'test':13} {'size':>10} {'on':4} {'us':>12} {'% copy':>7} {'first us':>9}  "
        f"time of Duet / time of a peer, medians of {len(args.json)} run(s)"
    )
    above = []
    for k in duet:
        print(line(k, duet[k], peers.get(k, {})))
        above += [
            (*k, peer) for peer, found in peers.get(k, {}).items() if median(found, "ratio") > args.limit
        ]
    for case in above:
        print(f"above {args.limit}:", *case)


if __name__ == "__main__":
    main()
