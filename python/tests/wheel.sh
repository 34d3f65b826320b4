#!/bin/sh
# wheel.sh [--suite FOLDER] [MESON-OPTION...] - builds a wheel of the Python package with pip, installs it in a virtual
# environment, and runs the tests of the package there. With --suite it also runs the consortium's array-api-tests,
# of which FOLDER is a copy. Other arguments are options for meson, such as -Dgpu=disabled. Prints a summary line
# with the counts.
set -eu
cd "$(dirname "$0")/../.."
suite=
if [ "${1:-}" = --suite ]; then suite=$2 && shift 2; fi
options=
for o in "$@"; do options="$options -Csetup-args=$o"; done
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
python=$work/venv/bin/python
if ! "$python" -m pip download --quiet --no-deps -d "$work/found" meson-python >"$work/log" 2>&1; then
    tail -n 1 "$work/log"
    echo "skipped: pip finds no meson-python"
    echo "0 passed, 0 failed"
    exit 0
fi
# shellcheck disable=SC2086 # words
"$python" -m pip wheel --quiet --no-deps -w "$work" $options .
"$python" -m pip install --quiet "$work"/duet-*.whl numpy pytest array-api-strict scipy scikit-learn
unset DUET_LIBRARY PYTHONPATH || true
export OMP_WAIT_POLICY=passive DUET_CALIBRATE=0
cp -r python/tests "$work/tests" # so that Python finds the installed package
broken=0
# run COMMAND... - runs pytest in the virtual environment; its summary goes to the log.
run() {
    { "$python" -B -m pytest -p no:cacheprovider -q "$@" || echo "status $?"; } | tee -a "$work/log"
}
run "$work/tests"
if [ -n "$suite" ]; then
    "$python" -m pip install --quiet -r "$suite/requirements.txt"
    skips=$PWD/python/tests/array-api-skips.txt
    cd "$suite"
    export ARRAY_API_TESTS_MODULE=duet
    run array_api_tests --disable-deadline --max-examples "${DUET_SUITE_EXAMPLES:-100}" --skips-file "$skips"
fi
! grep -q '^status ' "$work/log" || broken=1
count() { grep -o "[0-9]* $1" "$work/log" | awk '{ n += $1 } END { print n + 0 }'; }
passed=$(count passed) failed=$(count failed)
[ "$failed" -gt 0 ] || failed=$broken
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
