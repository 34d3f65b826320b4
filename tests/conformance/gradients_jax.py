#!/usr/bin/env python3
"""gradients_jax.py - compares duet_grad and duet_vjp with the gradients of JAX, on random formulas.

    python3 tests/conformance/gradients_jax.py BUILD_FOLDER [COUNT [SEED]]

Its parts are in jax_gradients/.

BUILD_FOLDER has libduet.so. COUNT formulas (1000) are compared, each in f32 and in f64. Prints TAP. Skipped
if JAX is not installed. DUET_KEEP=FOLDER keeps the C program and its data there.

A formula has 1 to 3 matrices, real or complex, and 2 to 30 operators. This script writes a
C program that builds the formulas with Duet, and evaluates the same formulas with JAX on the CPU:
    value       the sum of y * weights, where y is the formula's result. Of a complex y, the real part
    gradient    duet_grad of this value, with respect to each matrix
    vjp         duet_vjp of y, for a third of the formulas
    second      duet_grad of the sum of gradient * direction, for two thirds of the smooth formulas
In every second formula, one duet_set_all computes all results; in the others each has its own statement.

Scale of errors. The error of a gradient is the norm of its difference from JAX's gradient in f64, divided by
the larger of two norms: that of JAX's gradient, and 1/100 of that of the formula's largest gradient. (With
respect to one matrix, the gradient may be a sum of terms that cancel each other. Its rounding errors then
have the size of these terms.) For second derivatives, the norm is also at least 1/100 of the first derivative's:
they are 0 where a formula is linear. The limits are 1e-5 in f32 and 1e-12 in f64.

Conditioning. Rounding in a long formula can make larger errors in f32 than 1e-5, whoever computes it. JAX
decides, without Duet: a formula is discarded if an error of JAX's f32 gradients is more than F32_NOISE. So
are formulas where numbers are not finite or larger than HUGE, where all gradients are 0, and that XLA does
not compile.

Points without a derivative. A formula with max, sort, abs or floor is built only if no element is near a tie
or a jump, where rounding decides. At such points JAX and Duet agree for maximum, minimum, clip, max, median,
max_pool, relu, elu, prod and cumprod. They differ for
    abs, copysign at 0    Duet 0, JAX 1
    hypot at 0, 0         Duet 0, JAX 1/2
    norm at 0             Duet 0, JAX NaN
    relu6 at 6            Duet 1/2, JAX 0
    logaddexp of equal infinities    Duet 1/2, JAX 1 or NaN"""
import collections, os, shutil, sys, tempfile

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
# Most of the time is XLA's: it compiles each formula for a single run.
os.environ.setdefault('XLA_FLAGS', '--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true')
try:
    import numpy as np
    import jax, jax.scipy
except ImportError as e:
    print('1..0 # SKIP %s is not installed' % e.name)
    sys.exit(0)
jax.config.update('jax_enable_x64', True)

from jax_gradients.with_duet import c_text, compile_program, results_of, write_program
from jax_gradients.comparison import LIMIT, compare, dtype_numbers
from jax_gradients.with_jax import formulas_of


def main():
    build = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    discarded = collections.Counter()
    formulas, wants = formulas_of(count, seed, discarded)
    folder = os.environ.get('DUET_KEEP') or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    try:
        compile_program(folder, write_program(folder, formulas), build)
        results, texts = results_of(folder, formulas, wants)
    finally:
        if not os.environ.get('DUET_KEEP'):
            shutil.rmtree(folder)
    types, point, failures = dtype_numbers(), 0, 0
    for kind, limit in LIMIT.items():
        worst, bad = collections.defaultdict(lambda: (0, -1)), []
        number = collections.Counter()
        for i, g in enumerate(formulas):
            e = results[i] if isinstance(results[i], str) else compare(results[i][kind], wants[i], kind, types)
            if isinstance(e, str):
                bad.append((i, e))
                continue
            for what, v in e.items():
                number[what] += len(wants[i][what])
                worst[what] = max(worst[what], (v, i))
                if v > limit:
                    bad.append((i, '%s: error %.3g, %.3g with JAX in f32' % (what, v, g.noise[what])))
        point += 1
        failures += bool(bad)
        print('%sok %d - %d formulas in %s agree with JAX' % ('not ' if bad else '', point, count, kind))
        for what, (v, i) in worst.items():
            print('# %s, %s: %d compared, largest error %.3g (formula %d)' % (kind, what, number[what], v, i))
        for i, text in bad[:40]:
            print('# formula %d (%d of seed %d), %s' % (i, formulas[i].id, seed, text))
            print('#     ' + c_text(formulas[i], i).replace('\n', '\n#     '))
    for line in texts.splitlines()[:40]:
        print('#', line)
    print('1..%d' % point)
    print('# discarded: ' + ', '.join('%d %s' % (v, k) for k, v in discarded.most_common()))
    sizes = [len(g.order) for g in formulas]
    print('# operators of a formula: %d to %d, %.1f on average' % (min(sizes), max(sizes), np.mean(sizes)))
    seen = collections.Counter(g.nodes[i].name for g in formulas for i in g.order)
    print('# operators: ' + ', '.join('%s %d' % k for k in seen.most_common()))
    sys.exit(failures > 0)


main()
