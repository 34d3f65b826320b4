#!/usr/bin/env python3
"""compare.py BUILD - runs the programs of examples/cpp and examples/numpy, compares the numbers that they
print, and counts their lines that are neither empty nor comments. Reports in TAP. A C++ program may have 1.3
times the lines of the NumPy program. Without NumPy only the lines are counted."""
import importlib.util
import pathlib
import re
import subprocess
import sys

here = pathlib.Path(__file__).parent
build = pathlib.Path(sys.argv[1])
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
for program in sorted(here.parent.glob("cpp/*.cpp")):
    name = program.stem
    cpp, py = lines(program, "//"), lines(here / (name + ".py"), "#")
    points += 1
    print("ok" if cpp <= 1.3 * py else "not ok", points, "-", f"{name}: {cpp} lines, NumPy {py}: {cpp / py:.2f}")
    points += 1
    if not has_numpy:
        print("ok", points, "-", name, "# SKIP NumPy is not installed")
        continue
    (got, drawn), (want, sketch) = numbers([build / ("cpp_" + name)]), numbers([sys.executable, here / (name + ".py")])
    wrong = [(a, b) for a, b in zip(got, want) if far(a, b)]
    for a, b in wrong[:5]:
        print(f"# {a} is not {b}")
    good = want and len(got) == len(want) and not wrong and drawn == sketch
    print("ok" if good else "not ok", points, "-", f"{name}: {len(want)} numbers as NumPy, {len(got)} printed")
print(f"1..{points}")
