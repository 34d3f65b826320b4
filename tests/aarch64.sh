#!/bin/sh
# aarch64.sh - cross-compiles Duet for 64-bit Arm and runs quick tests under qemu, on a Debian or Ubuntu
# system.
#
#     sh tests/aarch64.sh [--build DIR] [TEST ...]   the default tests are below; "all" runs all tests
#
# It installs the cross compiler, qemu and mmdebstrap if they are missing. Libraries for Arm are unpacked
# into a folder of DIR, and not installed into the system. The last line of output is "N passed, N failed".
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build-aarch64
[ "${1:-}" != --build ] || { build=$2 && shift 2; }
# One test of each kind: conversions, mathematics, formulas, kernels, vendor libraries, statements.
[ $# -gt 0 ] || set -- core matrix shape convert expr bits trees batched linear fft convs set_all
cd "$top"
. tools/setup.sh
. tests/results.sh
setup build
triplet=aarch64-linux-gnu
for row in $triplet-gcc:gcc-$triplet $triplet-g++:g++-$triplet qemu-aarch64-static:qemu-user-static mmdebstrap:mmdebstrap; do
    setup_has_command "${row%%:*}" || { setup_apt update && setup_apt_install "${row#*:}"; }
done

root=$build/sysroot
mkdir -p "$build"
if [ ! -f "$root/complete" ]; then
    rm -rf "$root"
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mmdebstrap --quiet --variant=extract --architectures=arm64 --mode="$([ "$(id -u)" = 0 ] && echo root || echo unshare)" \
        --include=libc6-dev,libgomp1,libstdc++6,libgcc-s1,libopenblas-openmp-dev,liblapacke-dev,libdnnl-dev,libfftw3-dev,zlib1g-dev \
        "$suite" "$root"
    # Absolute links would lead out of this folder.
    find "$root" -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
    # Nothing is configured in this folder, so the links that Debian's alternatives would make are absent.
    lib=$root/usr/lib/$triplet
    ln -s "$lib"/openblas-openmp/lib*.so* "$lib"
    ln -s "$root/usr/include/$triplet"/openblas-openmp/*.h "$root/usr/include/$triplet"
    touch "$root/complete"
fi

cat >"$build/cross.ini" <<INI
[binaries]
c = [$(command -v ccache >/dev/null && echo "'ccache', ")'$triplet-gcc', '--sysroot=$root']
cpp = [$(command -v ccache >/dev/null && echo "'ccache', ")'$triplet-g++', '--sysroot=$root']
ar = '$triplet-ar'
objcopy = '$triplet-objcopy'
strip = '$triplet-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-L', '$root']

[properties]
sys_root = '$root'
pkg_config_libdir = '$root/usr/lib/$triplet/pkgconfig'

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'armv8-a'
endian = 'little'
INI
export DUET_TEST_QUICK=1
unset OPENBLAS_CORETYPE # it may name a processor of this machine
[ -f "$build/meson/build.ninja" ] ||
    meson setup "$build/meson" --cross-file "$build/cross.ini" -Dgpu=disabled -Dmpi=disabled -Dbench=false -Dexamples=false
if [ "$*" = all ]; then
    set --
    ninja -C "$build/meson"
else
    # shellcheck disable=SC2046 # names are words
    ninja -C "$build/meson" $(printf 'tests/test_%s ' "$@")
fi
status=0
meson test -C "$build/meson" --no-rebuild --print-errorlogs --timeout-multiplier 10 --suite cpu "$@" || status=$?
log=$build/meson/meson-logs/testlog.txt
print_results "$log" "$status"
