# setup.sh - install or report what tests/run.sh, bench/run.sh and .ci/run need before they can
# build. A POSIX shell sources this file.
#
#     setup_top=$top               the root of the sources, absolute; the current folder if not set
#     . tools/setup.sh
#     setup build                  check for what builds the library and its tests
#     setup build bench            check for what the benchmarks use as well
#     gpu_options OPTION           print the meson options for the GPUs of this machine, or OPTION if there is none
#
# Each check compiles and links a small program with the compiler that the build will use: $CC and
# $CXX, with $CFLAGS and $LDFLAGS. What is present stays as it is. Missing packages are installed
# with apt-get if the user is root, or if sudo needs no password. Otherwise setup prints the command
# to run as root, or, on a system without apt-get, a list of what to install. If the system's meson
# is older than 1.0, setup installs meson and ninja with pip into a virtual environment below the
# sources, build-venv, and puts it into $PATH. setup ends the shell with status 1 if something
# required is still missing.

setup_top=${setup_top:-$PWD}
setup_venv=$setup_top/build-venv

setup_say() { printf '%s\n' "setup: $*" >&2; }

# One row for each requirement: group | required or optional | check | packages of Debian and
# Ubuntu, the first one available is taken | what it is. A name with a colon in the column of
# packages is a function that prints them.
setup_requirements() {
    cat <<'ROWS'
build|required|has_cc|setup_cc_packages:|a C compiler (gcc or clang)
build|required|has_libc|libc6-dev|the header files of the C library
build|required|has_openmp|setup_openmp_packages:|OpenMP for that compiler (gcc: libgomp, clang: libomp)
build|required|has_openblas|libopenblas-openmp-dev libopenblas-dev|OpenBLAS with its header cblas.h (Fedora: openblas-devel, Alpine: openblas-dev, Arch and Homebrew: openblas)
build|required|has_ninja|ninja-build|ninja
build|required|has_meson|setup_meson_packages:|meson 1.0 or later
build|optional|has_onednn|libdnnl-dev|oneDNN, for convolutions and products on the CPU (Fedora: onednn-devel, Arch: onednn)
build|optional|has_lapacke|liblapacke-dev|LAPACKE, for linear algebra (Fedora: lapack-devel, Alpine: lapack-dev, Arch: lapacke)
build|optional|has_superlu|libsuperlu-dev|SuperLU, for sparse systems (Fedora: SuperLU-devel, Alpine: superlu-dev, Arch: superlu)
build|optional|has_fftw|libfftw3-dev|FFTW 3, for Fourier transforms (Fedora: fftw-devel, Alpine: fftw-dev, Arch and Homebrew: fftw)
build|optional|has_zlib|zlib1g-dev|zlib, for compressed .npz files (Fedora: zlib-devel, Alpine: zlib-dev)
build|optional|has_mpi|libopenmpi-dev libmpich-dev|MPI, for groups of processes (Fedora: openmpi-devel, Alpine: openmpi-dev, Arch: openmpi)
build|optional|has_cxx|setup_cxx_packages:|a C++ compiler, for most of the tests
bench|optional|has_eigen|libeigen3-dev|Eigen 3, to compare with
bench|optional|has_numpy|python3-numpy|NumPy, to compare with
bench|optional|has_matplotlib|python3-matplotlib|matplotlib, for the charts
ROWS
}

setup_quiet() { "$@" >/dev/null 2>&1; }
setup_has_command() { setup_quiet command -v "$1"; }

# Print the compiler that meson will use: $CC, which may be several words such as "ccache gcc", or
# the first of meson's own list.
setup_cc() {
    if [ -n "${CC:-}" ]; then printf '%s' "$CC"; return; fi
    for name in cc gcc clang; do if setup_has_command "$name"; then printf '%s' "$name"; return; fi; done
    return 1
}
setup_cxx() {
    if [ -n "${CXX:-}" ]; then printf '%s' "$CXX"; return; fi
    for name in c++ g++ clang++; do if setup_has_command "$name"; then printf '%s' "$name"; return; fi; done
    return 1
}

# Compile and link the program on standard input; the arguments are options. The second form
# compiles C++.
setup_links() { setup_link_with c "$(setup_cc)" "$@"; }
setup_links_cxx() { setup_link_with c++ "$(setup_cxx)" "$@"; }
setup_link_with() {
    language=$1 compiler=$2 && shift 2
    [ -n "$compiler" ] && folder=$(mktemp -d) || return 1
    cat >"$folder/program"
    # shellcheck disable=SC2086 # the compiler and the flags are lists of words
    setup_quiet $compiler ${CPPFLAGS:-} ${CFLAGS:-} -x "$language" "$folder/program" -x none -o "$folder/a.out" ${LDFLAGS:-} "$@"
    result=$?
    rm -rf "$folder"
    return $result
}

# Print the flags for a library: those of pkg-config if it has them, otherwise $2...
setup_flags() {
    module=$1 && shift
    pkg-config --cflags --libs "$module" 2>/dev/null || printf '%s' "$*"
}

# Print the compiler itself from the words of a command such as "ccache gcc -m32".
setup_compiler_of() {
    for word in "$@"; do case $word in ccache | */ccache | distcc | sccache) ;; *) printf '%s' "$word" && return ;; esac; done
}
# shellcheck disable=SC2046 # the command is a list of words
has_cc() { compiler=$(setup_compiler_of $(setup_cc)) && setup_has_command "$compiler"; }
has_libc() { echo '#include <stdio.h>
    int main(void) { return puts("") < 0; }' | setup_links; }
has_openmp() { echo '#include <omp.h>
    int main(void) { return omp_get_max_threads() < 1; }' | setup_links -fopenmp; }
has_cxx() { echo '#include <cmath>
    int main(int argc, char **) { return std::isnan(double(argc)); }' | setup_links_cxx; }

# cblas.h alone proves nothing: libblas-dev has one too. The functions used here exist in OpenBLAS only.
# shellcheck disable=SC2046 # flags are words
has_openblas() {
    setup_openblas_program |
        setup_links -Werror=implicit-function-declaration $(setup_flags openblas -I/usr/include/openblas -lopenblas)
}
setup_openblas_program() {
    echo '#include <cblas.h>
    int main(void) { float x[2] = { 1, 2 }; return cblas_sdot(2, x, 1, x, 1) != 5 || !openblas_get_config(); }'
}
has_onednn() { echo '#include <oneapi/dnnl/dnnl.h>
    int main(void) { return !dnnl_version(); }' | setup_links -ldnnl; }
# shellcheck disable=SC2046
has_lapacke() {
    for library in '' -llapacke; do
        echo '#include <lapacke.h>
        int main(void) { return (int)LAPACKE_dlange(LAPACK_ROW_MAJOR, 77, 0, 0, 0, 1); }' |
            setup_links $library $(setup_flags openblas -I/usr/include/openblas -lopenblas) && return
    done
    return 1
}
# shellcheck disable=SC2046
has_superlu() { echo '#include <slu_ddefs.h>
    int main(void) { return sp_ienv(1) < 1; }' | setup_links $(setup_flags superlu '-I/usr/include/superlu -lsuperlu'); }
has_fftw() { echo '#include <fftw3.h>
    int main(void) { fftw_cleanup(); return 0; }' | setup_links -lfftw3; }
has_zlib() { echo '#include <zlib.h>
    int main(void) { return !zlibVersion(); }' | setup_links -lz; }
# shellcheck disable=SC2046
has_mpi() { for module in ompi-c mpich mpi-c; do
    echo '#include <mpi.h>
    int main(void) { return MPI_Finalize(); }' | setup_links $(setup_flags $module -lmpi) && return
done; }
# shellcheck disable=SC2046
has_eigen() { echo '#include <Eigen/Core>
    int main() { return Eigen::Vector2f(0, 0).sum() != 0; }' | setup_links_cxx $(setup_flags eigen3 -I/usr/include/eigen3); }

has_numpy() { setup_quiet python3 -c 'import numpy'; }
has_matplotlib() { setup_quiet python3 -c 'import matplotlib'; }
has_ninja() { setup_has_command ninja || setup_has_command ninja-build || setup_has_command samu; }
has_meson() { setup_is_recent "$(meson --version 2>/dev/null)"; }
setup_is_recent() { major=${1%%.*} && [ "${major:-0}" -ge 1 ]; } 2>/dev/null

# Packages whose names depend on the compiler. Debian names those of compilers like the commands:
# clang, clang-16, gcc-13.
# shellcheck disable=SC2086 # the command is a list of words
setup_program_name() { name=$(setup_compiler_of ${1:-$2}) && printf '%s' "${name##*/}"; }
setup_cc_packages() { setup_program_name "${CC:-}" gcc; }
setup_cxx_packages() { name=$(setup_program_name "${CXX:-}" g++) && printf '%s' "$name" | sed 's/^clang++/clang/'; }
setup_openmp_packages() {
    compiler=$(setup_cc) || compiler=gcc
    version=$(echo __clang_major__ | $compiler -E -P -x c - 2>/dev/null | sed -n '/^[0-9][0-9]*$/p') # empty unless it is clang
    case "${version:+clang} $compiler" in *clang*) printf '%s' "${version:+libomp-$version-dev }libomp-dev" ;; *) printf 'gcc' ;; esac
}
# Debian 11 and Ubuntu 22.04 have a meson older than 1.0: there pip installs one, which needs
# python3-venv.
setup_meson_packages() {
    candidate=$(apt-cache policy meson 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9][^ ]*\)$/\1/p')
    if setup_is_recent "${candidate:-1}"; then printf 'meson'; else printf 'python3-venv'; fi
}

# Use meson and ninja of the virtual environment. Create it first if python3 can and apt-get cannot
# install a recent meson, or could not ($1 is "again"): an older meson may be in front in $PATH.
setup_use_venv() {
    [ ! -x "$setup_venv/bin/meson" ] || PATH=$setup_venv/bin:$PATH
    if has_meson || ! setup_has_command python3; then return; fi
    if [ -z "${1:-}" ] && setup_may_install && [ "$(setup_meson_packages)" = meson ]; then return; fi
    setup_say "installing meson and ninja with pip into $setup_venv"
    if setup_quiet python3 -m venv "$setup_venv" && setup_quiet "$setup_venv/bin/pip" install 'meson>=1.0' ninja; then
        PATH=$setup_venv/bin:$PATH
    else
        rm -rf "$setup_venv"
        setup_say "pip could not install meson"
    fi
}

setup_may_install() { setup_has_command apt-get && { [ "$(id -u)" = 0 ] || setup_quiet sudo -n true; }; }
setup_as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
setup_apt() { setup_as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" >&2; }
setup_apt_install() { setup_apt install --no-install-recommends "$@"; }
setup_is_available() { apt-cache show "$1" 2>/dev/null | grep -q '^Package:'; }

# Of the groups named, print the rows whose check fails.
setup_missing() {
    setup_requirements | while IFS='|' read -r group kind check packages meaning; do
        case " $* " in *" $group "*) ;; *) continue ;; esac
        "$check" </dev/null || printf '%s|%s|%s\n' "$kind" "$packages" "$meaning"
    done
}

# From the rows of one kind on standard input, print one package each: the first one available. If
# none is available, print the first name of a required row, so that apt-get says what is missing, and
# nothing for an optional one. Where apt-get has no lists of packages yet, the first name is taken.
setup_packages() {
    if apt-cache show gcc >/dev/null 2>&1; then check=setup_is_available; else check=true; fi
    while IFS='|' read -r kind packages meaning; do
        [ "$kind" = "$1" ] || continue
        case $packages in *:) packages=$("${packages%:}") ;; esac
        chosen=
        for package in $packages; do if "$check" "$package"; then chosen=$package && break; fi; done
        if [ -z "$chosen" ] && [ "$kind" = required ]; then chosen=${packages%% *}; fi
        [ -z "$chosen" ] || printf '%s\n' "$chosen"
    done | awk '!seen[$0]++ { printf " %s", $0 }'
}
setup_required() { printf '%s\n' "$missing" | setup_packages required; }
setup_optional() { printf '%s\n' "$missing" | setup_packages optional; }
setup_meanings() { printf '%s\n' "$missing" | sed -n "s/^$1|[^|]*|/    $1: /p"; }

# Install the required packages in one command. Install the optional ones one at a time if they
# cannot be installed together.
# shellcheck disable=SC2086 # package names are words
setup_install() {
    setup_apt update || setup_say "apt-get update failed; using the package lists that are present"
    required=$(setup_required)
    optional=$(setup_optional)
    setup_say "installing$required$optional"
    [ -z "$required" ] || setup_apt_install $required || return
    [ -z "$optional" ] || setup_apt_install $optional && return
    failed=0
    for package in $optional; do
        setup_apt_install "$package" || { failed=1 && setup_say "could not install $package; it is optional"; }
    done
    return $failed
}

# Print what the user has to install, as a command where apt-get exists. $1 is not empty if setup has
# installed the packages.
setup_print_instructions() {
    setup_say "some requirements are missing:"
    { setup_meanings required && setup_meanings optional; } >&2
    if [ -n "${1:-}" ]; then
        setup_say "their packages are installed, but the first programs in PATH do not find them: $(setup_first_programs)"
        return
    fi
    if ! setup_has_command apt-get; then
        setup_say "this system has no apt-get: install them with its own package manager"
        return
    fi
    sudo=
    if [ "$(id -u)" != 0 ] && setup_has_command sudo; then sudo='sudo '; fi
    required=$(setup_required)
    optional=$(setup_optional)
    setup_say "run this command as root, then try again:"
    install="${sudo}apt-get install -y --no-install-recommends"
    printf '    %s\n' "${sudo}apt-get update && $install${required:-$optional}" >&2
    if [ -n "$required" ] && [ -n "$optional" ]; then
        setup_say "and for the optional parts:"
        printf '    %s\n' "$install$optional" >&2
    fi
}

setup_first_programs() {
    for name in "$(setup_cc)" "$(setup_cxx)" python3 pkg-config; do command -v "${name%% *}"; done | paste -s -d ' ' -
}

setup() {
    installed=
    setup_use_venv
    missing=$(setup_missing "$@")
    [ -n "$missing" ] || return 0
    if setup_may_install; then
        if setup_install; then installed=1; else setup_say "apt-get failed"; fi
        setup_use_venv again
        missing=$(setup_missing "$@")
        [ -n "$missing" ] || return 0
    fi
    setup_print_instructions "$installed"
    if printf '%s\n' "$missing" | grep -q '^required'; then exit 1; fi
    setup_say "building without the optional parts"
}

# Print the meson option that compiles kernels for the GPUs of this machine only, which takes a
# fraction of nvcc's time; print $1 if there is no GPU. Print nothing if nvcc cannot compile for one
# of them: the build then uses its default architectures.
gpu_options() {
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    cards=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -n 's/^\([0-9]*\)\.\([0-9]\)$/\1\2/p' | sort -nu)
    [ -n "$cards" ] || { printf '%s' "$1"; return; }
    for card in $cards; do "$nvcc" --list-gpu-arch 2>/dev/null | grep -qx "compute_$card" || return 0; done
    printf '%s' "-Dgpu_arch=$(printf '%s\n' "$cards" | paste -s -d , -)"
}
