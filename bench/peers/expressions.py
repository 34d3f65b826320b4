#!/usr/bin/env python3
"""expressions.py - times random element-wise expressions on the CPU: Duet, compiled loops and
Eigen.

It creates expressions from a seed. It writes each as a plain loop in C, as an Eigen expression, and
as a line that duet-expressions reads. It compiles the loops for this processor, once with 256-bit
and once with 512-bit vectors, compiles the Eigen expressions, and runs duet-expressions with all of
them. Each expression exists twice: with a separate result, and with a result that overwrites an
input. The latter is clamped to the range of the inputs, so that it can be repeated. Sigmoid and
Black-Scholes are compared with loops compiled with -Ofast, which may call libmvec."""

import argparse
import math
import os
import random
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = os.path.join(HERE, "..", "suites")
LOW, HIGH = 0.5, 2.0  # the range of the inputs; expressions.c uses the same
PLAIN = ["-O3", "-march=native", "-fno-math-errno"]
FAST = [
    "-Ofast",
    "-march=native",
    "-nostartfiles",
]  # -Ofast links a start file that flushes subnormals in the whole process

# name: the operator in C and in Eigen
C = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "sqrt": "sqrtf({0})",
    "min": "({0} < {1} ? {0} : {1})",
    "max": "({0} > {1} ? {0} : {1})",
}
EIGEN = {**C, "sqrt": "{0}.sqrt()", "min": "{0}.min({1})", "max": "{0}.max({1})"}
WEIGHTS = {"add": 5, "sub": 4, "mul": 5, "div": 2, "sqrt": 1, "min": 1, "max": 1, "fma": 4}


# ---- expressions: lists of steps (name, operands); an operand is ("x", i), ("t", i) or ("", number) ----


def interval(name, a, b):
    """Returns the interval of the result, or None if it might be NaN, infinite, or only rounding
    error."""
    if name == "sqrt":
        return (math.sqrt(a[0]), math.sqrt(a[1])) if a[0] >= 0.01 else None
    if name == "div" and b[0] < 0.05 and b[1] > -0.05:
        return None
    function = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "min": min,
        "max": max,
    }[name]
    ends = [function(x, y) for x in a for y in b]
    return (min(ends), max(ends)) if max(map(abs, ends)) < 1e6 else None


class Expression:
    """An expression under construction: its steps, the range of each value, its size as a tree, and
    the unused values."""

    def __init__(self, r, inputs):
        self.r, self.steps, self.inputs = r, [], inputs
        self.range = {("x", i): (LOW, HIGH) for i in range(inputs)}
        self.tree = {v: 1 for v in self.range}
        self.unused = list(self.range)

    def number(self):
        x = (
            self.r.choice([2.0, 0.5, 4.0, 0.25])
            if self.r.random() < 0.2
            else round(self.r.uniform(0.1, 3), 3)
        )
        return ("", x)

    def bounds(self, v):
        return self.range.get(v, (v[1], v[1]))

    def step(self, name, *operands):
        """Adds a step and returns its value, or None if its interval is not allowed."""
        two = [self.bounds(v) for v in operands] + [(0, 0)]
        found = interval(name, two[0], two[1])
        size = 1 + sum(self.tree.get(v, 1) for v in operands)
        if found is None or size > 60:
            return None
        value = ("t", len(self.steps))
        self.steps.append((name, operands))
        self.range[value], self.tree[value] = found, size
        self.unused = [v for v in self.unused if v not in operands] + [value]
        return value

    def second(self, first, must_join):
        others = [v for v in self.unused if v != first]
        if must_join:
            return self.r.choice(others)
        if self.r.random() < 0.3:
            return self.number()
        return self.r.choice(
            others
            if others and self.r.random() < 0.6
            else [v for v in self.range if v != first] or [self.number()]
        )

    def grow(self, left):
        """Adds one step, or two for a product and a sum, but at most `left`. The remaining steps
        must be able to use all unused values."""
        must_join = len(self.unused) - 1 >= left
        name = self.r.choices(list(WEIGHTS), WEIGHTS.values())[0]
        first = self.r.choice(self.unused[-2:])
        if name == "sqrt":
            return not must_join and self.step(name, first)
        b = self.second(first, must_join)
        if name == "fma":
            fits = left >= 2 and len(self.unused) <= left
            product = fits and self.step("mul", first, self.number() if self.r.random() < 0.5 else b)
            return product and self.step(
                "add", product, self.second(product, len(self.unused) - 1 >= left - 1)
            )
        if b[0] == "" or self.r.random() < 0.5:
            return self.step(name, first, b) if b[0] or self.r.random() < 0.7 else self.step(name, b, first)
        return self.step(name, b, first)


def make(r):
    """Returns a complete expression of 2 to 25 steps."""
    while True:
        inputs = r.randint(1, 5)
        target = min(25, max(2, inputs - 1, round(math.exp(r.gauss(math.log(6), 0.7)))))
        e = Expression(r, inputs)
        for _ in range(400):
            if len(e.steps) == target:
                break
            e.grow(target - len(e.steps))
        if len(e.steps) == target and e.unused == [("t", target - 1)]:
            return e


def clamped(e):
    last = ("t", len(e.steps) - 1)
    return e.steps + [("max", (last, ("", LOW))), ("min", (("t", len(e.steps)), ("", HIGH)))]


# ---- expressions as lines of text, in C, and in Eigen ----


def as_line(place, inputs, steps):
    words = [place, str(inputs), str(len(steps))]
    for name, operands in steps:
        words += [name] + [f"{kind}{value}" if kind else repr(value) for kind, value in operands]
    return " ".join(words)


def in_c(v):
    return f"{v[0]}{v[1]}" if v[0] else f"{v[1]!r}f"


def as_loop(k, place, inputs, steps):
    arguments = ", ".join(f"const float *restrict p{i}" for i in range(5))
    reads = "".join(
        f" float x{i} = {'d' if i == 0 and place == 'in' else f'p{i}'}[i];" for i in range(inputs)
    )
    body = "".join(f" float t{i} = {C[name].format(*map(in_c, o))};" for i, (name, o) in enumerate(steps))
    return (
        f"static void f{k}(long n, float *restrict d, {arguments})\n{{\n"
        f"    for (long i = 0; i < n; i++) {{{reads}{body} d[i] = t{len(steps) - 1}; }}\n}}\n"
    )


def in_eigen(name, operands):
    """A number has no methods, so it is moved to the right, which min and max allow."""
    if name in ("min", "max") and not operands[0][0]:
        operands = operands[::-1]
    return EIGEN[name].format(*map(in_c, operands))


def as_eigen(k, place, inputs, steps):
    arguments = ", ".join(f"const float *p{i}" for i in range(5))
    maps = "".join(f" In x{i}({'d' if i == 0 and place == 'in' else f'p{i}'}, n);" for i in range(inputs))
    body = "".join(f" auto t{i} = {in_eigen(name, o)};" for i, (name, o) in enumerate(steps))
    head = f"static void f{k}(long n, float *d, {arguments})\n"
    return head + f"{{\n   {maps} Out r(d, n);{body} r = t{len(steps) - 1};\n}}\n"


def table(count, extern):
    names = ", ".join(f"f{k}" for k in range(count))
    return f"{extern} void *const loops[] = {{ {names} }};\n{extern} const int loop_count = {count};\n"


def c_source(cases):
    loops = "".join(as_loop(k, *case) for k, case in enumerate(cases))
    return (
        "#include <math.h>\n"
        + loops
        + table(len(cases), "extern").replace("extern void", "void").replace("extern const", "const")
    )


def eigen_source(cases):
    head = (
        "#include <Eigen/Core>\nusing In = Eigen::Map<const Eigen::ArrayXf>;\n"
        "using Out = Eigen::Map<Eigen::ArrayXf>;\n"
        'extern "C" { extern void *const loops[]; extern const int loop_count; }\n'
    )
    loops = "".join(as_eigen(k, *case) for k, case in enumerate(cases))
    names = ", ".join(f"(void *)f{k}" for k in range(len(cases)))
    return head + loops + f"void *const loops[] = {{ {names} }};\nconst int loop_count = {len(cases)};\n"


# ---- compiling and running ----


def write(path, text):
    """Writes the file if its text has changed, so that unchanged files are not compiled again."""
    if os.path.exists(path):
        with open(path) as f:
            if f.read() == text:
                return
    with open(path, "w") as f:
        f.write(text)


def compile_all(jobs):
    """Runs jobs (source, library, compiler and flags), one on each core, and returns the libraries
    that exist then."""
    running, done = [], []
    for source, library, command in jobs:
        if os.path.exists(library) and os.path.getmtime(library) >= os.path.getmtime(source):
            done.append(library)
            continue
        running.append(
            (library, subprocess.Popen([*command, "-shared", "-fPIC", source, "-o", library, "-lm"]))
        )
        if len(running) >= (os.cpu_count() or 1):
            library, process = running.pop(0)
            done += [library] * (process.wait() == 0)
    return done + [library for library, process in running if process.wait() == 0]


def eigen_flags(cxx):
    found = (
        subprocess.run(["pkg-config", "--cflags-only-I", "eigen3"], capture_output=True, text=True)
        if shutil.which("pkg-config")
        else None
    )
    include = found.stdout.split() if found and found.returncode == 0 else ["-I/usr/include/eigen3"]
    probe = subprocess.run(
        [cxx, *include, "-fsyntax-only", "-x", "c++", "-"],
        input="#include <Eigen/Core>\n",
        text=True,
        capture_output=True,
    )
    return include if probe.returncode == 0 else None


def libmvec(library):
    """Returns the functions of libmvec that a library calls."""
    found = subprocess.run(["nm", "-D", library], capture_output=True, text=True).stdout.split()
    return sorted({s.split("@")[0] for s in found if s.startswith("_ZGV")})


def describe(cases, seed):
    lengths = [len(steps) for place, _, steps in cases if place == "new"]
    print(
        f"seed {seed}: {len(lengths)} expressions of {min(lengths)} to {max(lengths)} operators, "
        f"median {statistics.median(lengths):g}"
    )


def prepare(args, folder):
    r = random.Random(args.seed)
    made = [make(r) for _ in range(args.count)]
    cases = [("new", e.inputs, e.steps) for e in made] + [("in", e.inputs, clamped(e)) for e in made]
    describe(cases, args.seed)
    path = {
        name: os.path.join(folder, name)
        for name in (
            "expressions.txt",
            "loops.c",
            "eigen.cpp",
            "loops-256.so",
            "loops-512.so",
            "eigen.so",
            "vector.so",
        )
    }
    write(path["expressions.txt"], "".join(as_line(*case) + "\n" for case in cases))
    write(path["loops.c"], c_source(cases))
    write(path["eigen.cpp"], eigen_source(cases))
    jobs = [
        (path["loops.c"], path[f"loops-{bits}.so"], [args.cc, *PLAIN, f"-mprefer-vector-width={bits}"])
        for bits in (256, 512)
    ]
    jobs.append((os.path.join(SUITES, "vector_loops.c"), path["vector.so"], [args.cc, *FAST]))
    include = eigen_flags(args.cxx)
    if include:
        jobs.insert(0, (path["eigen.cpp"], path["eigen.so"], [args.cxx, *PLAIN, "-DNDEBUG", "-w", *include]))
    else:
        print("expressions.py: Eigen was not found and is not measured", file=sys.stderr)
    libraries = compile_all(jobs)
    if not all(path[f"loops-{bits}.so"] in libraries for bits in (256, 512)):
        sys.exit("expressions.py: compiling the loops failed")
    if path["vector.so"] in libraries:
        print(
            "functions of libmvec in the loops of sigmoid and Black-Scholes:",
            " ".join(libmvec(path["vector.so"])) or "none",
            flush=True,
        )
    return path["expressions.txt"], libraries


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument(
        "--build",
        default=os.path.join(HERE, "..", "..", "build-bench"),
        help="the build folder with duet-expressions",
    )
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=60, help="number of expressions")
    p.add_argument("--quick", action="store_true", help="few expressions and sizes, short measurements")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    p.add_argument("--cxx", default=os.environ.get("CXX", "g++"))
    args = p.parse_args()
    if args.quick:
        args.count = min(args.count, 16)
    folder = os.path.join(args.build, "expressions")
    os.makedirs(folder, exist_ok=True)
    lines, libraries = prepare(args, folder)
    command = [os.path.join(args.build, "bench", "duet-expressions"), lines, *libraries]
    command += (
        ["--quick"] * args.quick + (["--json", args.json] if args.json else []) + ["--seed", str(args.seed)]
    )
    sys.exit(subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode)


if __name__ == "__main__":
    main()
