#!/usr/bin/env python3
"""compare.py BUILD [cpp] - runs the programs of examples/numpy and the same programs in C, with cpp also in
C++. It compares the numbers that they print, and counts their lines that are neither empty nor comments.
Reports in TAP. A C program may have 1.6 times the lines of the NumPy program, a C++ program 1.3 times.
Without NumPy only the lines are counted."""
import importlib.util
import pathlib
import re
import subprocess
import sys

here = pathlib.Path(__file__).parent
build = pathlib.Path(sys.argv[1])
languages = [("C", "../{}.c", "/*", "{}", 1.6)]
if sys.argv[2:] == ["cpp"]:
    languages.append(("C++", "../cpp/{}.cpp", "//", "cpp_{}", 1.3))
has_numpy = importlib.util.find_spec("numpy") is not None


def lines(path, comment):
    text = [line.strip() for line in path.read_text().splitlines()]
    return sum(1 for line in text if line and not line.startswith(comment))


def numbers(command):
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout
    text = re.sub(r"np\.\w+\(", " ", out)
    found = re.findall(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)", text)
    return [float(x) for x in found], re.findall(r"^[ .:=+*#%@-]+$", out, flags=re.M)


def far(a, b):
    return not abs(a - b) <= 1e-9 + 2e-5 * abs(b)


points = 0


def report(good, text):
    global points
    points += 1
    print("ok" if good else "not ok", points, "-", text)


for program in sorted(here.glob("*.py")):
    name = program.stem
    if name == "compare":
        continue
    py = lines(program, "#")
    if has_numpy:
        want, sketch = numbers([sys.executable, program])
    for language, source, comment, binary, limit in languages:
        n = lines(here / source.format(name), comment)
        report(n <= limit * py, f"{name}: {n} lines in {language}, {py} in NumPy: {n / py:.2f}")
        if not has_numpy:
            report(True, f"{name} in {language} # SKIP NumPy is not installed")
            continue
        got, drawn = numbers([build / binary.format(name)])
        wrong = [(a, b) for a, b in zip(got, want) if far(a, b)]
        for a, b in wrong[:5]:
            print(f"# {a} is not {b}")
        good = want and len(got) == len(want) and not wrong and drawn == sketch
        report(good, f"{name} in {language}: {len(want)} numbers as NumPy, {len(got)} printed")
print(f"1..{points}")
