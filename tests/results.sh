# tests/results.sh - to be sourced: reads the results of "meson test" from its log.

# print_results LOG STATUS - prints up to 10 conditions of each test that did not hold, which meson does not
# print for tests that report in TAP, and then "N passed, N failed". Fails if a test did, or none passed.
print_results() {
    awk '/^test: / { test = $NF; printed = 0 }
         /^(not ok|# [^ ]*:[0-9]+: )/ && printed++ < 10 { print "FAILED " test ": " $0 }' "$1"
    passed=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$1" | tail -n 1)
    failed=$(sed -n 's/^\(Fail\|Timeout\|Unexpected Pass\): *\([0-9]*\).*/\2/p' "$1" | awk '{ n += $1 } END { print n + 0 }')
    echo "${passed:-0} passed, ${failed:-0} failed"
    [ "$2" -eq 0 ] && [ "${passed:-0}" -gt 0 ]
}
