# setup.sh - what the two commands, tests/run.sh and bench/run.sh, need before they can build. To be sourced by a POSIX shell.
#
#     . tools/setup.sh
#     setup build            what builds the library and its tests: a C compiler, meson, ninja, pkg-config, OpenBLAS; C++, oneDNN, FFTW if they can be had
#     setup build bench      and what the benchmarks use where it can be had: Eigen, Python with NumPy and matplotlib
#     gpu_options OPTION     prints how to configure for the cards that are here, or OPTION
#
# What is there is left alone. What is missing is installed by apt-get as root or by a sudo that asks nothing; else the one command to
# run is printed, and setup ends the shell with status 1 if something is missing that the build cannot do without.

setup_say() { printf '%s\n' "setup: $*" >&2; }

# A row a thing: what it is for, need or wish, how to see that it is there, and the packages, tried from left to right.
setup_things() {
    cat <<'ROWS'
build need has_cc           gcc
build need has_libc         libc6-dev
build need has_meson        meson
build need has_ninja        ninja-build
build need has_pkg_config   pkg-config pkgconf
build need has_openblas     libopenblas-openmp-dev libopenblas-dev
build wish has_onednn       libdnnl-dev
build wish has_lapacke      liblapacke-dev
build wish has_fftw         libfftw3-dev
build wish has_zlib         zlib1g-dev
build wish has_cxx          g++
bench wish has_eigen        libeigen3-dev
bench wish has_numpy        python3-numpy
bench wish has_matplotlib   python3-matplotlib
ROWS
}

setup_run() { "$@" >/dev/null 2>&1; }
setup_cc() { for c in "${CC:-cc}" cc gcc clang; do setup_run command -v "$c" && { printf '%s' "$c"; return; }; done; return 1; }
setup_header() { c=$(setup_cc) && printf '#include <%s>\n' "$1" | setup_run "$c" -E -x c -; }
setup_module() { setup_run pkg-config --exists "$1"; }

has_cc() { setup_cc >/dev/null; }
has_libc() { setup_header stdio.h; }
has_ninja() { setup_run command -v ninja || setup_run command -v ninja-build || setup_run command -v samu; }
has_pkg_config() { setup_run command -v pkg-config; }
has_openblas() { setup_module openblas || setup_header cblas.h; }
has_onednn() { setup_header oneapi/dnnl/dnnl.h; }
has_lapacke() { setup_header lapacke.h; }
has_fftw() { setup_module fftw3; }
has_zlib() { setup_module zlib; }
has_cxx() { setup_run command -v "${CXX:-c++}" || setup_run command -v g++; }
has_eigen() { setup_module eigen3; }
has_numpy() { setup_run python3 -c 'import numpy'; }
has_matplotlib() { setup_run python3 -c 'import matplotlib'; }
has_meson() {
    v=$(meson --version 2>/dev/null) || return 1
    [ "${v%%.*}" -ge 1 ]
}

# As root, or by a sudo that asks nothing.
setup_as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
setup_may_install() {
    setup_run command -v apt-get && { [ "$(id -u)" = 0 ] || setup_run sudo -n true; }
}
setup_apt() { setup_as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y "$@" >&2; }
setup_available() { apt-cache show "$1" 2>/dev/null | grep -q '^Package:'; }

# The first of the packages that can be had here.
setup_choose() {
    for package; do setup_available "$package" && { printf '%s' "$package"; return; }; done
    return 1
}

# Of the groups named, the rows of things that are missing: need or wish, test, packages.
setup_missing() {
    setup_things | while read -r group kind test packages; do
        case " $* " in *" $group "*) "$test" || printf '%s %s %s\n' "$kind" "$test" "$packages" ;; esac
    done
}

setup_packages() { # rows on standard input; what cannot be had is left out
    while read -r kind test packages; do setup_choose $packages && printf ' ' || :; done
}

setup_first_names() { while read -r kind test package rest; do printf ' %s' "$package"; done; }

# Needs first, in one go; each wish on its own, so that one that fails spoils nothing.
setup_install() {
    setup_apt update || setup_say "apt-get update failed; going on with the lists at hand"
    needs=$(printf '%s\n' "$1" | grep '^need' | setup_packages)
    wishes=$(printf '%s\n' "$1" | grep '^wish' | setup_packages)
    setup_say "installing $needs$wishes"
    [ -z "$needs" ] || setup_apt install --no-install-recommends $needs || return
    [ -z "$wishes" ] || setup_apt install --no-install-recommends $wishes && return
    for package in $wishes; do setup_apt install --no-install-recommends "$package" || setup_say "going on without $package"; done
}

setup() {
    missing=$(setup_missing "$@")
    [ -n "$missing" ] || return 0
    if setup_may_install; then
        setup_install "$missing" || setup_say "apt-get failed"
        missing=$(setup_missing "$@")
        [ -n "$missing" ] || return 0
    elif setup_run command -v apt-get; then
        setup_say "something is missing, and this user may not install it. The one command to run:"
        printf '    sudo apt-get install --no-install-recommends%s\n' "$(printf '%s\n' "$missing" | setup_first_names)"
    fi
    lacks=$(printf '%s\n' "$missing" | grep '^need' | setup_first_names)
    wishes=$(printf '%s\n' "$missing" | grep '^wish' | setup_first_names)
    [ -z "$lacks" ] || { setup_say "the build cannot do without:$lacks (names as in Debian; meson 1.0 or later)"; exit 1; }
    setup_say "going on without:$wishes"
}

# Options of meson: kernels for the cards that are here alone, a fraction of nvcc's work; where there is none, what $1 says. Where nvcc does not know one
# of them, nothing: then the build has what all have.
gpu_options() {
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    cards=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -n 's/^\([0-9]*\)\.\([0-9]\)$/\1\2/p' | sort -nu)
    [ -n "$cards" ] || { printf '%s' "$1"; return; }
    for card in $cards; do "$nvcc" --list-gpu-arch 2>/dev/null | grep -qx "compute_$card" || return 0; done
    printf '%s' "-Dgpu_arch=$(printf '%s\n' "$cards" | paste -s -d , -)"
}
