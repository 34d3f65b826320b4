#!/bin/sh
# symbols.sh LIBRARY ARCHIVE ... - checks which symbols the project's objects use, which libraries the library
# needs, and what it exports. No object in the archives may end the process or print; only core/trace.c may
# use stderr. Reports in TAP.
library=$1 && shift
points=0
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -20; fi
}
# "object: symbol" for every undefined symbol
for archive in "$@"; do nm -A --undefined-only "$archive" 2>/dev/null | sed -n 's/^\([^ ]*\): *[Uw] \(.*\)$/\1 \2/p'; done >"$work/wanted"
[ -s "$work/wanted" ]
point $? 'the objects can be read'

forbidden='exit|_exit|_Exit|quick_exit|abort|__assert_fail|__assert|printf|vprintf|__printf_chk|__vprintf_chk|puts|putchar|perror|stdout'
grep -E " ($forbidden)(@.*)?$" "$work/wanted" >"$work/log"
[ ! -s "$work/log" ]
point $? 'no object ends the process or prints'

grep -E ' stderr(@.*)?$' "$work/wanted" | grep -v 'trace\.c\.o' >"$work/log"
[ ! -s "$work/log" ]
point $? 'stderr in core/trace.c alone'

grep -E ' (__cxa_|_Zn|_Zd|__gxx_)' "$work/wanted" >"$work/log"
[ ! -s "$work/log" ]
point $? 'nothing of the C++ run time is named'

readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' >"$work/needed"
[ -s "$work/needed" ]
point $? 'the needed libraries can be read'
grep -E '^lib(cuda|cudart|cublas|cublasLt|cudnn|cufft|curand|cusolver|nvrtc|nvidia|stdc\+\+|c\+\+)' "$work/needed" >"$work/log"
[ ! -s "$work/log" ]
point $? "no CUDA library and no libstdc++ is needed: $(tr '\n' ' ' <"$work/needed")"

nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' >"$work/exported"
grep -q '^duet_set_at$' "$work/exported"
point $? 'the library exports its interface'
grep -vE '^(duet_|DUET_)' "$work/exported" >"$work/log"
[ ! -s "$work/log" ]
point $? "only duet_ names are exported ($(wc -l <"$work/exported"))"
echo "1..$points"
