#!/bin/sh
# floors.sh TOP CC... - the include paths are the architecture: an upward include does not compile, a downward one does. TAP.
top=$1 points=0 && shift
cc=${*:-cc} # words: ccache gcc
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
src=$top/src

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -10; fi
}
includes() { # floor's paths, header
    printf '#include "%s"\nint nothing;\n' "$2" >"$work/try.c"
    # shellcheck disable=SC2086 # words
    $cc -std=gnu11 -DDUET_TLS='"initial-exec"' $1 -c "$work/try.c" -o "$work/try.o" >"$work/log" 2>&1
}
core="-I$top/include -I$src/core"
expr="$core -I$src/expr"
plan="$expr -I$src/plan"
io="$core -I$src/io"

includes "$core" matrix.h && includes "$expr" expr.h && includes "$plan" plan.h && includes "$plan" expr.h && includes "$plan" matrix.h
point $? 'downward includes compile'
for up in "core:$core:expr.h" "core:$core:plan.h" "core:$core:cpu.h" "core:$core:gpu.h" "core:$core:kernels.h" "expr:$expr:plan.h" \
    "expr:$expr:cpu.h" "core:$core:io.h" "plan:$plan:io.h" "io:$io:expr.h" "io:$io:plan.h" "io:$io:cpu.h" "io:$io:gpu.h" "plan:$plan:cpu.h" "plan:$plan:gpu.h" "plan:$plan:kernels.h"; do
    floor=${up%%:*} header=${up##*:} paths=${up#*:} && paths=${paths%:*}
    includes "$paths" "$header"
    [ $? -ne 0 ] && grep -q "$header" "$work/log"
    point $? "src/$floor cannot include $header"
done

# The other way round: what meson really passes. Each folder's own build file names no floor above it.
grep -lE "include_directories: *(expr|plan|roof)" "$src/core/meson.build" "$src/io/meson.build" "$src/cpu/meson.build" "$src/gpu/meson.build" >"$work/log"
[ ! -s "$work/log" ] && ! grep -nE "include_directories: *(plan|roof)" "$src/expr/meson.build" >"$work/log"
point $? 'no folder is given the paths of a floor above it'

grep -rnE '#[ 	]*include[ 	]*["<]\.\.' "$src" "$top/gpu-kernels" "$top/include" >"$work/log"
[ $? -eq 1 ]
point $? 'no ../ in an include'

grep -rnlE '#[ 	]*include[ 	]*[<"](cuda|cublas|cudnn|cufft|curand|cusolver)' "$src" "$top/include" | grep -v "^$src/gpu/" >"$work/log"
[ ! -s "$work/log" ]
point $? 'CUDA is named in src/gpu alone'

# Launchers meet the rest at the link of a build with CUDA alone, which not every machine makes.
names() { cat "$@" | sed -nE '/^(static|typedef|extern)/d; s/^[a-z][a-z_0-9 *]*[ *]([a-z][a-z_0-9]*)\([^;]*$/\1/p' | sort -u; }
names "$top"/gpu-kernels/*.c >"$work/launchers"
names "$src"/*.c "$src"/*/*.c >"$work/others"
comm -12 "$work/launchers" "$work/others" >"$work/log"
[ -s "$work/launchers" ] && [ -s "$work/others" ] && [ ! -s "$work/log" ]
point $? 'no launcher has the name of a function of src'
echo "1..$points"
