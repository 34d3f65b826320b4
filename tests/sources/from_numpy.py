#!/usr/bin/env python3
"""from_numpy.py TOP GENERATED LIBRARY-FOLDER CC... - tests the tables of docs/from-numpy.md. Compiles the Duet
column of every row. Runs the rows of the tables marked "test: rows", and compares each result with that of
the NumPy column, if NumPy is installed. Reports in TAP."""
import importlib.util
import math
import pathlib
import re
import subprocess
import sys
import tempfile

top, generated, library, *cc = sys.argv[1:]
page = pathlib.Path(top) / "docs" / "from-numpy.md"
has_numpy = importlib.util.find_spec("numpy") is not None


def wave(count, f, scale, start):
    return [start + scale * f(0.7 * k) for k in range(count)]


matrices = {  # name: shape, type, elements
    "x": ((3, 4), "F64", wave(12, math.sin, 2, 2.5)),
    "y": ((3, 4), "F64", wave(12, lambda t: math.cos(t * t), 1, 1.5)),
    "A": ((3, 3), "F64", [4.0, 1, 0.5, 1, 3, 0.25, 0.5, 0.25, 2]),
    "B": ((3, 3), "F64", wave(9, math.cos, 1, 0.5)),
    "B4": ((4, 4), "F64", wave(16, math.cos, 1, 0.25)),
    "T": ((2, 3, 4), "F64", wave(24, math.sin, 1, 0.1)),
    "u": ((3,), "F64", [1.0, -2, 0.5]),
    "v": ((4,), "F64", [0.5, 2, 1.25, 3]),
    "w": ((4,), "F64", [2.0, 0.75, 1, 4]),
    "z": ((4,), "C128", [1 + 2j, -0.5 + 1j, 2 - 1j, 0.25 + 0j]),
    "m": ((3, 4), "I64", [(5 * k) % 7 for k in range(12)]),
    "n": ((3, 4), "I64", [k % 5 + 1 for k in range(12)]),
    "i": ((3,), "I64", [2, 0, 1]),
    "mask": ((3, 4), "BOOL", [int(k % 3 != 1) for k in range(12)]),
    "p": ((4,), "BOOL", [1, 1, 0, 0]),
    "q": ((4,), "BOOL", [1, 0, 1, 0]),
    "eye": ((4, 4), "F64", [float(k % 5 == 0) for k in range(16)]),
    "row": ((3, 1), "I64", [0, 1, 2]),
    "column": ((3,), "I64", [0, 1, 2]),
    "Q": ((3, 3), "F64", [0.0] * 9),
    "R": ((3, 3), "F64", [0.0] * 9),
    "s": ((3,), "F64", [0.0] * 3),
    "order": ((3,), "I64", [0] * 3),
}
c_types = {"F64": "double", "I64": "int64_t", "BOOL": "uint8_t", "C128": "double _Complex"}

head = r"""
#include <complex.h>
#include <duet/duet.h>
#include <stdlib.h>
static int row_number;
static void fail(void)
{
    const char *how = duet_error_status() == DUET_UNSUPPORTED ? "unsupported" : "failed";
    printf("%d %s: %s\n", row_number, how, duet_error());
}
static void show_matrix(duet_matrix *m)
{
    duet_matrix *c = m ? duet_eval(duet_cast(m, DUET_C128)) : NULL;
    const double _Complex *p = c ? duet_read_c128(c) : NULL;
    if (!p) fail();
    else {
        printf("%d shape", row_number);
        for (int a = 0; a < duet_rank(c); a++) printf(" %d", (int)duet_size(c, a));
        printf(" is");
        for (int64_t k = 0; k < duet_count(c); k++) printf(" %.17g %.17g", creal(p[k]), cimag(p[k]));
        puts("");
    }
    duet_free(&c);
}
static void show_new(duet_matrix *m) { show_matrix(m); duet_free(&m); }
static void show_formula(duet_expr e) { show_new(duet_eval(e)); }
static void show_number(double n) { printf("%d shape is %.17g 0\n", row_number, n); }
#define SHOW(result) _Generic(result, duet_expr: show_formula, duet_matrix *: show_new, default: show_number)(result)
"""


def literal(z):
    return f"{z.real!r} + {z.imag!r} * I" if isinstance(z, complex) else repr(z)


def read_rows():
    """The rows of the page: whether it runs, and the NumPy and the Duet column."""
    kind = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("<!-- test:"):
            kind = "run" if "test: rows" in line else "compile"
        elif line.startswith("#"):
            kind = None
        elif line.startswith("| `"):
            cells = [c.replace("\\|", "|").strip().strip("`") for c in re.split(r"(?<!\\)\|", line)]
            yield number, kind, cells[1], cells[2]


def program(rows):
    yield head
    for name, (shape, dtype, elements) in matrices.items():
        yield f"static duet_matrix *{name};\nstatic const {c_types[dtype]} data_{name}[] = {{ {', '.join(map(literal, elements))} }};\n"
    yield "static duet_matrix *first, *sign, *value;\nstatic duet_sparse *S, *S2, *S3;\nstatic double number, memory[12];\nstatic const double data[] = { 1, 2, 3 };\n"
    yield "static void fresh(void)\n{\n"
    for name, (shape, dtype, _) in matrices.items():
        yield f"    duet_free(&{name}), {name} = duet_from_array(data_{name}, DUET_{dtype}, {', '.join(map(str, shape))});\n"
    yield "    duet_free(&first), first = duet_row(x, 0);\n    duet_free(&sign), sign = duet_new(DUET_F64), duet_free(&value), value = duet_new(DUET_F64);\n}\n"
    for number, kind, _, duet in rows:
        yield f"static void row_{number}(void)\n{{\n    (void)number, (void)memory, (void)S, (void)S2, (void)S3;\n"
        yield f"#line {number} \"{page}\"\n    __auto_type result = {duet};\n"
        to = destination(duet)
        yield f"    if (result) fail();\n    else show_matrix({to});\n}}\n" if to and kind == "run" else "    SHOW(result);\n}\n" if kind == "run" else "    (void)result;\n}\n"
    yield "int main(void)\n{\n"
    for number, kind, _, _ in rows:
        yield f"    row_number = {number}, fresh();\n    row_{number}();\n" if kind == "run" else f"    (void)row_{number};\n"
    yield "}\n"


def destination(duet):
    """The matrix that a statement sets, or None."""
    found = re.match(r"duet_(set|i(?:add|sub|mul|div))\((\w+)", duet)
    return found and found[2]


def numpy_result(np, numpy, duet):
    names = {"np": np, "data": [1.0, 2.0, 3.0]}
    for name, (shape, dtype, elements) in matrices.items():
        names[name] = np.array(elements, {"F64": float, "I64": np.int64, "BOOL": bool, "C128": complex}[dtype]).reshape(shape)
    names["first"] = names["x"][0]
    to = destination(duet)
    if not to:
        return np.asarray(eval(numpy, names))
    exec(numpy, names)
    return names[to]


def is_too_old(np, numpy):
    """Versions before 2.1 lack some of the functions on the page."""
    if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1):
        return False
    for name in re.findall(r"\bnp\.(\w+(?:\.\w+)*)", numpy):
        of = np
        for part in name.split("."):
            if not hasattr(of, part):
                return True
            of = getattr(of, part)
    return False


def compare(np, line, numpy, duet):
    if line is None:
        return "no result"
    if " unsupported: " in line:  # the build has no LAPACKE or no FFTW
        return None
    found = re.match(r"\d+ shape(.*) is(.*)", line)
    if not found:
        return line
    shape, numbers = tuple(map(int, found[1].split())), [float(n) for n in found[2].split()]
    if is_too_old(np, numpy):
        return None
    want = numpy_result(np, numpy, duet)
    got = np.array(numbers).reshape(-1, 2) @ [1, 1j]
    if shape != want.shape:
        return f"the shape is {shape}, that of NumPy {want.shape}"
    if not np.allclose(got, want.reshape(-1), 1e-6, 1e-9, equal_nan=True):
        return f"{got} is not {want.reshape(-1)}"
    return None


rows = list(read_rows())
points = 0


def point(problem, name):
    global points
    points += 1
    print("not ok" if problem else "ok", points, "-", name)
    for line in (problem or "").splitlines()[:20]:
        print("#", line)


with tempfile.TemporaryDirectory() as folder:
    source, binary = pathlib.Path(folder) / "rows.c", pathlib.Path(folder) / "rows"
    source.write_text("".join(program(rows)))
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{generated}", f"-I{top}/include"]
    made = subprocess.run(cc + flags + [source, "-o", binary, f"-L{library}", "-lduet", f"-Wl,-rpath,{library}"], capture_output=True, text=True)
    point(made.stderr if made.returncode else None, f"{len(rows)} rows of docs/from-numpy.md compile")
    point(None if len(rows) >= 150 else "fewer than 150 rows", "the page has 150 rows")
    if not made.returncode:
        out = subprocess.run([binary], capture_output=True, text=True, timeout=100).stdout
        lines = {int(line.split()[0]): line for line in out.splitlines() if line[:1].isdigit()}
        if has_numpy:
            import numpy
        for number, kind, left, right in rows:
            if kind == "run":
                problem = compare(numpy, lines.get(number), left, right) if has_numpy else None if number in lines else "no result"
                point(problem, f"line {number}: {left}")
print(f"1..{points}")
