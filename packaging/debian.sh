#!/bin/sh
# debian.sh - builds the Debian packages in a temporary copy of the sources, checks them with lintian
# and uses them as a program would.
#
#     sh packaging/debian.sh [--chroot] [FOLDER]   FOLDER receives the packages
#         --chroot   also installs them into a minimal system and runs tests/packages.sh there
#
# $DEB_BUILD_OPTIONS is "nocheck noautodbgsym" if not set: the tests take much longer than the build,
# and tests/run.sh runs them. $DEB_BUILD_PROFILES may be pkg.duet.cuda. The last line of output is
# "N passed, N failed".
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
chroot= out=
for argument; do case $argument in --chroot) chroot=1 ;; *) out=$(mkdir -p "$argument" && cd "$argument" && pwd) ;; esac; done
export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-nocheck noautodbgsym} parallel=$(nproc)"
passed=0 failed=0
point() { # status name
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)) && echo "ok - $2"; else failed=$((failed + 1)) && echo "not ok - $2"; fi
}

cd "$top"
. tools/setup.sh
setup build
setup_has_command dh && setup_has_command lintian || setup_apt_install dpkg-dev debhelper fakeroot lintian
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
mkdir "$work/duet" "$work/installed"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$work/duet"
status=0
(cd "$work/duet" && dpkg-buildpackage -us -uc -b) >"$work/log" 2>&1 || status=$?
[ $status -eq 0 ] || tail -40 "$work/log"
point $status 'dpkg-buildpackage'
[ $status -eq 0 ] || { echo "$passed passed, $failed failed" && exit 1; }
lintian --fail-on error "$work"/duet_*.changes || status=$?
point $status 'lintian finds no errors'

for package in "$work"/*.deb; do dpkg -x "$package" "$work/installed"; done
status=0
sh tests/packages.sh --prefix "$work/installed/usr" >"$work/log" 2>&1 || status=$?
cat "$work/log"
point $status 'programs use the packages'

if [ -n "$chroot" ]; then
    setup_has_command mmdebstrap || setup_apt_install mmdebstrap
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    status=0
    cat >"$work/hook" <<HOOK
mkdir "\$1/tests" && cp -r $top/tests/packages $top/tests/packages.sh $work/libduet0*.deb $work/libduet-dev*.deb "\$1/tests" || exit
chroot "\$1" sh -c 'apt-get install -y --no-install-recommends /tests/*.deb && sh /tests/packages.sh --prefix /usr'
HOOK
    setup_as_root mmdebstrap --mode=root --variant=apt --include=ca-certificates,gcc,libc6-dev,pkg-config,cmake,make \
        --customize-hook="sh $work/hook \"\$1\"" "$suite" /dev/null >"$work/log" 2>&1 || status=$?
    grep -E '^(ok|not ok)' "$work/log" || status=1
    [ $status -eq 0 ] || tail -40 "$work/log"
    point $status 'programs use the packages in a system that has nothing else'
fi
[ -z "$out" ] || cp "$work"/*.deb "$out"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
