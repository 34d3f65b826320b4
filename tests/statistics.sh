#!/bin/sh
# tests/statistics.sh - tests the random numbers of Duet with the test batteries TestU01 and PractRand. It is
# made to be run each night; SmallCrush on all streams takes three minutes.
#
#     sh tests/statistics.sh [OPTIONS]
#         --streams 'NAME ...'  the streams to test; all by default. tests/statistics/stream.c lists them
#         --seed N              the first seed. The default is the day times 2^32, so each night tests other
#                               numbers
#         --crush               run TestU01's Crush instead of SmallCrush. It takes 20 to 40 minutes a stream
#         --practrand LENGTH    run PractRand instead, up to LENGTH bytes of each stream, such as 64GB or 1TB.
#                               1 TB takes two hours of CPU time
#         --rng-test PROGRAM    PractRand's program RNG_test; the default is $RNG_TEST, or RNG_test in $PATH
#         --build DIR           the build folder; the default is build-statistics in the source folder
# The build folder also gets a log for each battery and stream. The last line of output is "N passed, N
# failed". The exit status is 0 only if nothing failed.
#
# TestU01: random_testu01.c says when a test fails. First the script tests a stream that is bad on purpose; it
# counts as passed if TestU01 rejects it. If TestU01 is not installed, the script downloads Debian's packages,
# which are in the component non-free, into the build folder. Their licence excludes commercial use. Newer
# source code of TestU01 has the Apache licence; to use your own build of it, set CPPFLAGS and LDFLAGS to the
# options -I and -L for its folders.
#
# PractRand: a stream fails if RNG_test prints FAIL, which means a p-value of about 1e-10. The script prints
# weaker anomalies too, such as "unusual". For a perfect generator, about one in ten reports of RNG_test has
# one. Debian does not package PractRand. Get its source code, 0.94 or later, from the pages of the project.
# Compile all C++ files in src, and tools/RNG_test.cpp, with -O3 -march=native -Iinclude -Itools -pthread.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build-statistics
seed=$((($(date +%s) / 86400) << 32)) battery=SmallCrush rng_test=${RNG_TEST:-RNG_test}
streams='' length=''
say() { printf '%s\n' "tests/statistics.sh: $*" >&2; }
while [ $# -gt 0 ]; do
    case $1 in
    --crush) battery=Crush ;;
    --streams | --seed | --practrand | --rng-test | --build)
        [ $# -ge 2 ] || { say "$1 needs an argument" && exit 2; }
        case $1 in
        --streams) streams=$2 ;;
        --seed) seed=$2 ;;
        --practrand) length=$2 ;;
        --rng-test) rng_test=$2 ;;
        --build) build=$2 ;;
        esac
        shift
        ;;
    *) say "unknown option $1" && exit 2 ;;
    esac
    shift
done
if [ -n "$length" ] && ! command -v "$rng_test" >/dev/null; then
    say "cannot find PractRand's $rng_test; give its path with --rng-test"
    exit 2
fi

cd "$top"
setup_top=$top
. tools/setup.sh
setup build
# The bits are the same on a GPU: tests/operators/test_random.c compares them.
[ -f "$build/build.ninja" ] ||
    meson setup "$build" -Dgpu=disabled -Dtests=false -Dexamples=false -Dbench=false -Ddocs=disabled
ninja -C "$build"
build=$(cd "$build" && pwd)
source=$top/tests/statistics passed=0 failed=0
export OMP_NUM_THREADS=1

# shellcheck disable=SC2046,SC2086 # the compiler and its options are words
compile() { # PROGRAM OPTIONS...
    program=$1 && shift
    $(setup_cc) -std=gnu11 -O2 -Wall -Wextra ${CPPFLAGS:-} ${CFLAGS:-} -I"$top/include" \
        -I"$build/tools/reference" "$source/stream.c" "$source/$program.c" -o "$build/$program" \
        ${LDFLAGS:-} -L"$build" -lduet -Wl,-rpath,"$build" "$@" -lm
}

# ---- TestU01 ----

# shellcheck disable=SC2086 # options are words
links_testu01() { echo '#include <TestU01.h>
    int main(void) { return bbattery_NTests; }' | setup_links "$@"; }

# Sets testu01_flags, or fails. Debian's packages have other names for two of the libraries.
find_testu01() {
    folder=$build/testu01/usr
    include=$(printf -- '-isystem %s ' "$folder/include" "$folder"/include/*-linux-*)
    debian='-ltestu01 -ltestu01probdist -ltestu01mylib'
    for flags in '-ltestu01 -lprobdist -lmylib -lm' "$debian -lm" \
        "$include $(printf -- '-L%s ' "$folder"/lib/*) -Wl,-Bstatic $debian -Wl,-Bdynamic -lm"; do
        testu01_flags=$flags
        # shellcheck disable=SC2086 # options are words
        if links_testu01 $flags; then return; fi
    done
    return 1
}

# apt-get with its lists in the build folder, so that the system's sources of packages stay as they are.
apt_apart() {
    apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" \
        -o APT::Sandbox::User="$(id -un)" "$@" >&2
}
download_testu01() {
    apt=$build/testu01/apt
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    address=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
        awk -v release="$release" '$2 == release { print $1; exit }') || return
    [ -n "$address" ] || return
    say "taking Debian's packages of TestU01 from the component non-free"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$key] $address $release non-free" >"$apt/sources.list"
    apt_apart update || return
    (cd "$apt" && apt_apart download libtestu01-0-dev libtestu01-0-dev-common) || return
    for package in "$apt"/*.deb; do dpkg -x "$package" "$build/testu01" || return; done
}

# Runs a battery: BATTERY STREAM [FIRST LAST]. Prints the suspect p-values; the log has the rest. Sets the
# numbers of tests that passed and failed, good and bad.
run_testu01() {
    log=$build/$1-$2.log
    status=0
    "$build/random_testu01" "$1" "$2" "$seed" ${3:+"$3" "$4"} >"$log" 2>&1 || status=$?
    grep '^\(suspect\|not ok\)' "$log" || true
    good=$(grep -c '^ok' "$log" || true)
    bad=$(grep -c '^not ok' "$log" || true)
    if [ "$status" -gt 1 ]; then # it ended early
        tail -n 5 "$log"
        bad=$((bad + 1))
    fi
}

testu01() {
    find_testu01 || { download_testu01 && find_testu01; } || {
        say 'cannot find TestU01: install libtestu01-0-dev, or build it and set CPPFLAGS and LDFLAGS'
        exit 2
    }
    # shellcheck disable=SC2086 # options are words
    compile random_testu01 $testu01_flags
    run_testu01 SmallCrush control 1 1 >/dev/null
    if [ "$bad" -eq 1 ] && [ "$status" -eq 1 ]; then
        passed=1
    else
        failed=1
        echo 'FAILED control: TestU01 accepts a stream of which some bits are not random'
    fi
    for stream in $streams; do
        run_testu01 "$battery" "$stream"
        echo "$stream: $battery: $good tests passed, $bad failed"
        passed=$((passed + good)) failed=$((failed + bad))
    done
}

# ---- PractRand ----

practrand() {
    for stream in $streams; do
        log=$build/PractRand-$stream.log
        case $stream in integers | seeds) input=stdin64 ;; *) input=stdin ;; esac
        result=passed
        "$build/random_bytes" "$stream" "$seed" |
            "$rng_test" "$input" -tlmin 1MB -tlmax "$length" -multithreaded >"$log" 2>&1 || result=failed
        if grep -q FAIL "$log" || ! grep -q '^length=' "$log"; then result=failed; fi
        grep -i 'unusual\|suspicious\|FAIL' "$log" || true
        echo "$stream: PractRand: $result: $(grep '^length=' "$log" | tail -n 1)"
        if [ $result = passed ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
}

compile random_bytes
[ -n "$streams" ] || streams=$("$build/random_bytes" --list)
echo "seed $seed"
if [ -n "$length" ]; then practrand; else testu01; fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
