#!/usr/bin/env python3
"""type_checks.py TOP GENERATED - what the compiler says of calls. A program that calls every function and
every macro compiles without a warning, by gcc and clang, with -Wall -Wextra -Wpedantic, as gnu11, C11, C23 and
C++17. Misuse does not compile, or warns: a pointer to numbers as an operand, a pointer to other elements than
those of the matrix, a formula or a new matrix that is thrown away. GENERATED is the folder with
duet/reference.h. Reports in TAP; a compiler that is not installed is skipped."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

top, generated = (pathlib.Path(arg) for arg in sys.argv[1:3])
work = pathlib.Path(tempfile.mkdtemp())
points = 0


def report(good, text, log=""):
    global points
    points += 1
    print("ok" if good else "not ok", points, "-", text)
    for line in [] if good else log.splitlines()[:60]:
        print("#", line)


def skip(text):
    global points
    points += 1
    print("ok", points, "-", text, "# SKIP not installed")


def compile_text(compiler, standard, text, *options):
    source = work / ("program.cpp" if "++" in compiler else "program.c")
    source.write_text(text)
    command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{top}/include"]
    command += [*options, "-c", str(source), "-o", str(work / "program.o")]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.returncode == 0, run.stderr


# ---- every function and macro ----

# One call for each macro that takes a list or options, where the prototype does not tell the arguments. The
# formula x and the matrices m and y are parameters.
lists = """
duet_new(DUET_F32, 2, 3)
duet_zeros(DUET_F32, 2)
duet_ones(DUET_F32, 2)
duet_full(DUET_F32, 1.5, 2, 3)
duet_wrap(numbers, DUET_F32, 6)
duet_wrap_columns(numbers, DUET_F32, 2, 3)
duet_wrap_const(numbers, DUET_F32, 6)
duet_wrap_device(numbers, DUET_F32, 6)
duet_from_array(numbers, DUET_F32, 2, 3)
duet_reshaped(m, 3, -1)
duet_broadcast_to(m, 4, 2, 3)
duet_permuted(m, 1, 0)
duet_indexed(m, DUET_AT(1), DUET_RANGE(0, 2))
duet_reshape(x, 3, -1)
duet_broadcast(x, 4, 2, 3)
duet_permute(x, 1, 0)
duet_index(x, DUET_AT(1), DUET_RANGE(0, 2))
duet_tile(x, 2, 2)
duet_concat(0, x, m)
duet_stack(0, x, m)
duet_global_norm(x, m)
duet_meshgrid(x, 0, 3, 4)
"""
only_c = """
duet_upsample1d(x, 2)
duet_upsample2d(x, 2, 2)
duet_upsample3d(x, 2, 2, 2)
duet_set_all({ m, x }, { y, duet_sum(x) })
duet_item(x, numbers)
duet_item(x, numbers, duet_sum(m), numbers + 1)
duet_print(stdout, "x", x, m, 1)
"""
only_cpp = """
duet_set_all({ { m, x }, { y, duet_sum(x) } })
"""


def prototypes():
    text = (generated / "duet/reference.h").read_text()
    for m in re.finditer(r"^(static inline )?([a-z][\w *]*[ *])(duet_[a-z0-9_]+)\(([^()]*)\);$", text, re.M):
        parameters = [] if m[4] == "void" else [p.strip() for p in m[4].split(",")]
        yield m[2].strip(), m[3], parameters


def macros():
    found = {}
    text = (top / "include/duet/lift.h").read_text()
    for m in re.finditer(r"^#define (duet_[a-z0-9_]+)\(([^)]*)\)", text, re.M):
        found[m[1]] = m[2]
    return found


def name_of(parameter):
    return re.search(r"(\w+)(\[\d*\])?$", parameter)[1]


def call(function, parameters, cpp):
    """The call with the parameters' names; None if the text `lists` has it."""
    if re.search(rf"^{function}\(", lists + only_c, re.M):
        return None
    names = [name_of(p) for p in parameters]
    given = macro.get(function)
    if cpp or given is None or "..." not in given:
        return f"{function}({', '.join(names)})"
    if re.match(r"const duet_.*options$", parameters[-1]):  # none given
        return f"{function}({', '.join(names[:-1])})"
    if parameters[-1].startswith("const int *"):
        return f"{function}({', '.join(names[:-2] + ['0', '1'])})"
    return f"{function}({', '.join(names)})"


def program(cpp):
    lines = ["#include <duet/duet.h>"]
    count = 0
    for result, function, parameters in prototypes():
        if cpp and "_Complex" in result:
            continue
        text = call(function, parameters, cpp)
        if text is None:
            continue
        typed = parameters
        if cpp or (function in macro and function != "duet_drop"):  # matrices as operands, which are converted
            typed = [re.sub(r"^duet_expr ", "duet_matrix *", p) for p in parameters]
        unused = [f"(void){name_of(p)};" for p in typed]
        body = "\n    ".join(unused + [f"{text};" if result == "void" else f"return {text};"])
        count += 1
        head = f"{result} call_{count}({', '.join(typed) or 'void'})"
        lines += [f"{head};", f"{head}\n{{\n    {body}\n}}"]
    for text in (lists + (only_cpp if cpp else only_c)).strip().splitlines():
        if not text:
            continue
        count += 1
        head = f"int call_{count}(duet_matrix *m, duet_matrix *y, float *numbers)"
        lines += [f"{head};", f"{head}\n{{\n    const duet_expr x = duet_exp(m);"]
        lines += [f"    (void)y, (void)x, (void)numbers;\n    (void)!sizeof({text});\n    return 0;\n}}"]
    return "\n".join(lines) + "\n", count


# ---- misuse ----

# Lines in a function with the parameters below; the first character tells whether they compile. The compiler's
# message contains what follows //.
parameters = "duet_matrix *m, const duet_matrix *c, float *f, int *i, uint8_t *u, char *b"
everywhere = """
+ return duet_set(m, duet_add(m, c));
+ return duet_set(m, duet_add(m, 2));
+ return duet_explain(stdout, m, 2);
+ return duet_print_expr(stdout, m);
- return duet_set(m, duet_add(m, f));
- return duet_set(m, duet_add(m, i));
- return duet_set(m, duet_exp(f));
- return duet_set(m, duet_where(m, f, 1));
- return duet_set(m, f);
- return duet_set(m, "1");
- return duet_set(c, m);
- return duet_set(f, m);
+ duet_matrix *y = duet_row(m, 1); return duet_set(y, 1);
- duet_exp(m);
- duet_add(duet_exp(m), 1);
- duet_sum(m);
- duet_set(m, 1);
- duet_new(DUET_F32, 3);
- duet_reshape(m, 2, 3);
- duet_index(m, DUET_AT(1));
- duet_tile(m, 2);
- duet_sum(m, 0);
- duet_row(m, 1);
- duet_reshaped(m, 3);
- duet_eval(duet_exp(m));
+ const float *p = duet_read_f32(m); return p != NULL;
- const int *p = duet_read_f32(m); return p != NULL;
- float *p = duet_read_f32(m); return p != NULL;
- double *p = duet_overwrite_f32(m); return p != NULL;
+ m = duet_wrap(f, DUET_F32, 3); return m != NULL;
- m = duet_wrap(c, 3, DUET_F32, 3); return m != NULL;
"""
in_c = """
- return duet_iadd(m, f);
- return duet_set(m, duet_sum(f, 0));
- duet_free(f);
+ duet_free(&m, &m);
- int n = 0; return duet_item(m, &n, m, n);
- return duet_print(stdout, f);
+ return duet_print(stdout, "text", m, duet_exp(m), 1, 2.5f, "more");
- return duet_print(stdout, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17); // at most 16 items
- return duet_set(m, duet_stack(0, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m)); // at most 16 items
- return duet_set(m, duet_concat(0, m, f));
- m = duet_wrap(i, DUET_F32, 3); return m != NULL;
- m = duet_wrap(f, DUET_F64, 3); return m != NULL;
- m = duet_from_array(i, DUET_F32, 3); return m != NULL;
- m = duet_wrap_columns(u, DUET_F32, 3, 1); return m != NULL;
+ m = duet_wrap_const((const float *)f, DUET_F32, 3); return m != NULL;
- m = duet_wrap((const float *)f, DUET_F32, 3); return m != NULL;
- m = duet_wrap_const((const int *)i, DUET_F32, 3); return m != NULL;
- m = duet_wrap_device(u, DUET_F32, 3); return m != NULL;
+ m = duet_wrap(u, DUET_BOOL, 3); return m != NULL;
+ m = duet_wrap(f, DUET_C64, 3); return m != NULL;
+ m = duet_wrap(b, DUET_F32, 3); return m != NULL;
+ int n = 0; return duet_item(m, &n);
- int n = 0; return duet_item(m, n);
"""


def misuse(compiler, standard):
    for line in (everywhere + ("" if "++" in compiler else in_c)).strip().splitlines():
        if not line:
            continue
        line, _, message = line.partition(" // ")
        text = f"#include <duet/duet.h>\nint call({parameters});\nint call({parameters})\n{{\n"
        text += f"    (void)m, (void)c, (void)f, (void)i, (void)u, (void)b;\n    {line[2:]}\n    return 0;\n}}\n"
        compiled, log = compile_text(compiler, standard, text, "-Wno-unreachable-code")
        unknown = r"[‘'](?!duet_\d)\w+[’'] (undeclared|was not declared)|undeclared identifier '(?!duet_\d)"
        misspelt = not compiled and re.search("implicit declaration|" + unknown, log)
        if compiled != (line[0] == "+") or misspelt or message not in log:
            return False, f"{'compiles' if compiled else 'does not compile'}: {line[2:]}\n{log}"
    return True, ""


macro = macros()
for compiler, standards in (("gcc", "gnu11 c11 c2x"), ("clang", "gnu11 c11 c2x"), ("g++", "c++17"), ("clang++", "c++17")):
    for standard in standards.split():
        text, count = program("++" in compiler)
        calls, wrong = f"{count} functions and macros as {standard} by {compiler}", f"misuse as {standard} by {compiler}"
        if not shutil.which(compiler):
            skip(calls)
            skip(wrong)
            continue
        good, log = compile_text(compiler, standard, text)
        report(good, calls, log)
        good, log = misuse(compiler, standard)
        report(good, wrong, log)
shutil.rmtree(work)
print(f"1..{points}")
