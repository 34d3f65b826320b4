#!/bin/sh
# packages.sh - builds and runs a program in each way in which a user can link with Duet: plain cc,
# pkg-config, CMake, and as a subproject of meson; with the shared and with the static library.
#
#     sh tests/packages.sh --build DIR    installs that build into a temporary folder and tests it
#     sh tests/packages.sh --prefix DIR   tests what is installed there, such as /usr
#     sh tests/packages.sh --subproject   builds Duet as a subproject, which takes minutes
#
# Tests of a library that is not installed are skipped. $CC is the compiler. Reports in TAP.
top=$(cd "$(dirname "$0")/.." && pwd)
program=$top/tests/packages/program.c
cc=${CC:-cc} # words: ccache gcc
build= prefix= subproject= points=0 failed=0
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 && shift ;;
    --prefix) prefix=$2 && shift ;;
    --subproject) subproject=1 ;;
    *) echo "packages.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
done
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
log=$work/log

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else
        failed=1 && echo "not ok $points - $2" && sed 's/^/# /' "$log" | tail -30
    fi
}
skip() { points=$((points + 1)) && echo "ok $points - $1 # SKIP $2"; }
# shellcheck disable=SC2046,SC2086 # the compiler and its options are words
compile() { $cc -std=gnu11 -Wall -Wextra -Werror "$program" -o "$work/program" "$@" >"$log" 2>&1; }
runs() { LD_LIBRARY_PATH=$libdir "$1" >>"$log" 2>&1; }
runs_alone() { # PROGRAM - runs it, and checks that it does not need libduet.so
    "$1" >>"$log" 2>&1 && ! readelf -dW "$1" | grep 'NEEDED.*libduet' >>"$log"
}
cmake_program() { # COMPONENT
    cmake -S "$top/tests/packages/cmake" -B "$work/cmake-$1" -DCMAKE_PREFIX_PATH="$prefix" -DCOMPONENT="$1" \
        -DCMAKE_C_FLAGS="-std=gnu11" >"$log" 2>&1 && cmake --build "$work/cmake-$1" >>"$log" 2>&1
}

shared_flags() { pkg-config --cflags --libs duet; }
static_flags() { pkg-config --static --cflags --libs duet | sed 's/-lduet/-l:libduet.a/'; }

test_pkg_config() { # shared|static COMMAND - COMMAND runs the program
    if command -v pkg-config >/dev/null; then
        compile $("$1_flags") && "$2" "$work/program"
        point $? "pkg-config, $1"
    else
        skip "pkg-config, $1" 'no pkg-config'
    fi
}

test_cmake() { # shared|static COMMAND - COMMAND runs the program
    if command -v cmake >/dev/null; then
        cmake_program "$1" && "$2" "$work/cmake-$1/program"
        point $? "CMake, $1"
    else
        skip "CMake, $1" 'no cmake'
    fi
}

test_mpi() { # groups of MPI processes
    if [ ! -e "$libdir/libduet-mpi.so" ]; then
        skip 'pkg-config, duet-mpi' 'not installed'
    elif ! command -v pkg-config >/dev/null; then
        skip 'pkg-config, duet-mpi' 'no pkg-config'
    else
        program=$top/tests/packages/program_mpi.c
        # shellcheck disable=SC2046 # flags are words
        compile $(pkg-config --cflags --libs duet-mpi) && runs "$work/program"
        point $? 'pkg-config, duet-mpi'
    fi
}

test_installed() {
    where=$(find "$prefix"/lib* -name duet.pc | head -n 1)
    libdir=${where%/pkgconfig/duet.pc}
    mkdir "$work/pkgconfig"
    for file in "${where%.pc}"*.pc; do # they may have moved
        sed "s|^prefix=.*|prefix=$prefix|" "$file" >"$work/pkgconfig/${file##*/}"
    done
    export PKG_CONFIG_PATH="$work/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
    [ -f "$prefix/share/licenses/duet/LICENSE" ] || [ -f "$prefix/share/doc/libduet-dev/copyright" ]
    point $? 'the licence is installed'

    if [ -e "$libdir/libduet.so" ]; then
        compile -I"$prefix/include" -L"$libdir" -lduet && runs "$work/program"
        point $? 'plain cc'
        test_pkg_config shared runs
        test_cmake shared runs
    else
        skip 'the shared library' 'not installed'
    fi

    if [ -e "$libdir/libduet.a" ]; then
        nm -g --defined-only "$libdir/libduet.a" | awk 'NF == 3 { print $3 }' | grep -vE '^(duet_|\.gomp_critical_)' >"$log"
        [ ! -s "$log" ]
        point $? 'libduet.a defines only names with duet_'
        test_pkg_config static runs_alone
        test_cmake static runs_alone
    else
        skip 'the static library' 'not installed'
    fi
    test_mpi
}

if [ -n "$build" ]; then
    DESTDIR=$work/installed meson install -C "$build" --no-rebuild >"$log" 2>&1
    point $? 'meson install'
    where=$(find "$work/installed" -path '*/include/duet/duet.h')
    prefix=${where%/include/duet/duet.h}
fi
[ -z "$prefix" ] || test_installed

if [ -n "$subproject" ]; then
    mkdir -p "$work/meson/subprojects"
    cp "$program" "$top/tests/packages/meson/meson.build" "$work/meson"
    cp "$top/packaging/duet.wrap" "$work/meson/subprojects"
    ln -s "$top" "$work/meson/subprojects/duet"
    # Optimisation would take most of the time, and the result of this program does not depend on it.
    (cd "$work/meson" && meson setup build --force-fallback-for=duet -Dduet:gpu=disabled -Dduet:isa= -Doptimization=0) >"$log" 2>&1
    point $? 'meson finds the subproject'
    for kind in static shared; do # the second one takes the objects of the first
        (cd "$work/meson" && meson configure build -Ddefault_library=$kind && ninja -C build program) >"$log" 2>&1 &&
            "$work/meson/build/program" >>"$log"
        point $? "meson, as a subproject, $kind"
    done
fi
echo "1..$points"
exit $failed
