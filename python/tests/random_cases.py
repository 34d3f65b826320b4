"""Compares random cases of many operators with NumPy and SciPy.

    python python/tests/random_cases.py --count 100000

A case is a seed and a name. A line for each failure shows how to repeat it alone:
--seed S --count 1 --only NAME. DUET_BACKEND=gpu runs all cases on the GPU. Operators that a device does not
support count as skipped."""

import argparse
import collections
import sys
import time
import traceback
import warnings
import zlib
from pathlib import Path

import numpy as np

import duet

sys.path.insert(0, str(Path(__file__).resolve().parent))
from families import CASES, Draw, Wrong
from families import compositions, images, indexing, linear, networks  # noqa: F401
from families import products, reductions, sparse, spectra  # noqa: F401


def run(seed, name):
    """Runs one case. Returns None, or why it failed."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    try:
        CASES[name][1](Draw(rng))
    except duet.NotImplementedError:
        raise
    except Wrong as error:
        return str(error)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        place = ' < '.join(f'{Path(f.filename).name}:{f.lineno}' for f in where[:0:-1][:4])
        return f'{type(error).__name__}: {error} ({place})'
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--count', type=int, default=1000, help='number of cases')
    parser.add_argument('--seed', type=int, default=None, help='seed of the first case')
    parser.add_argument('--only', action='append', help='name of a case or of a family; may be repeated')
    args = parser.parse_args()
    seed = int(time.time()) * 1000 if args.seed is None else args.seed
    names = [n for n in CASES if not args.only or n in args.only or CASES[n][0] in args.only]
    if not names:
        parser.error(f'there are only the names {", ".join(CASES)}')
    np.seterr(all='ignore')
    warnings.simplefilter('ignore')

    done, failures = collections.Counter(), []
    skipped, reasons = collections.Counter(), {}
    start, vacant = time.perf_counter(), 0
    print(f'--seed {seed} --count {args.count}: {len(names)} kinds of cases', flush=True)
    for i in range(args.count):
        if i and i % 5000 == 0:
            seconds = time.perf_counter() - start
            print(f'{i} cases, {len(failures)} wrong, {seconds:.0f} s, seed {seed + i}', flush=True)
        name = names[(seed + i) % len(names)]
        try:
            why = run(seed + i, name)
        except duet.NotImplementedError as error:
            skipped[name] += 1
            reasons.setdefault(name, str(error))
            continue
        if why or Draw.current.checked:
            done[CASES[name][0]] += 1
        else:
            vacant += 1
        if why:
            failures.append((seed + i, name, why))

    for family, count in sorted(done.items()):
        print(f'{count:8} {family}')
    if vacant:
        print(f'{vacant:8} without a result to compare, not counted: ill-conditioned matrices, no windows')
    for name, count in sorted(skipped.items()):
        print(f'{count:8} skipped: {name}: {reasons[name]}')
    for at, name, why in failures[:20]:
        print(f'WRONG --seed {at} --count 1 --only {name}: {why}')
    if len(failures) > 20:
        print('WRONG', dict(collections.Counter(name for _, name, _ in failures)))
    print(f'{sum(done.values())} cases, {len(failures)} wrong, {time.perf_counter() - start:.0f} s')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
