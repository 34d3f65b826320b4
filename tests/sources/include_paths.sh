#!/bin/sh
# include_paths.sh TOP CC... - the include paths keep the order of the libraries: an include of a higher
# library does not compile, one of a lower library does. Reports in TAP.
top=$1 points=0 && shift
cc=${*:-cc} # words: ccache gcc
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
src=$top/src

point() { # status name
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else echo "not ok $points - $2" && sed 's/^/# /' "$work/log" | head -10; fi
}
includes() { # include paths, header
    printf '#include "%s"\nint nothing;\n' "$2" >"$work/try.c"
    # shellcheck disable=SC2086 # words
    $cc -std=gnu11 -DDUET_TLS='"initial-exec"' $1 -c "$work/try.c" -o "$work/try.o" >"$work/log" 2>&1
}
core="-I$top/include -I$src/core"
expr="$core -I$src/expr"
graph="$expr -I$src/graph"
lower="$graph -I$src/lower"
plan="$lower -I$src/plan"
run="$plan -I$src/run"
replay="$run -I$src/replay"
statement="$replay -I$src/statement"
io="$core -I$src/io"
exchange="$core -I$src/exchange"

for down in matrix.h expr.h graph.h lower.h plan.h execute.h record.h statement.h; do
    includes "$statement" $down
    point $? "src/statement can include $down"
done

# A header of each folder that is not below, tried with the paths of the folder.
forbidden() { # folder, paths, headers
    folder=$1 paths=$2 && shift 2
    for header; do
        includes "$paths" "$header"
        [ $? -ne 0 ] && grep -q "$header" "$work/log"
        point $? "src/$folder cannot include $header"
    done
}
machines='cpu.h gpu.h kernels.h io.h'
forbidden core "$core" expr.h graph.h lower.h plan.h execute.h record.h statement.h $machines
forbidden expr "$expr" graph.h lower.h plan.h execute.h record.h statement.h $machines
forbidden graph "$graph" lower.h plan.h execute.h record.h statement.h $machines
forbidden lower "$lower" plan.h execute.h record.h statement.h $machines
forbidden plan "$plan" execute.h record.h statement.h $machines
forbidden run "$run" record.h statement.h $machines
forbidden replay "$replay" statement.h $machines
forbidden statement "$statement" $machines
forbidden io "$io" expr.h graph.h plan.h cpu.h gpu.h
forbidden exchange "$exchange" expr.h graph.h plan.h cpu.h gpu.h io.h

# The other way round: what meson passes. The build file of each folder names its own include paths and no others.
for folder in core expr graph lower plan run replay statement io exchange cpu; do
    own=$folder && [ $folder != cpu ] || own=core
    grep -oE 'include_directories: *[a-z_]+' "$src/$folder/meson.build" | grep -v ": *$own\$" >"$work/log"
    [ ! -s "$work/log" ]
    point $? "src/$folder is compiled with the include paths of src/$own"
done

grep -rnE '#[ 	]*include[ 	]*["<]\.\.' "$src" "$top/gpu-kernels" "$top/include" >"$work/log"
[ $? -eq 1 ]
point $? 'no ../ in an include'

grep -rnlE '#[ 	]*include[ 	]*[<"](cuda|cublas|cudnn|cufft|curand|cusolver)' "$src" "$top/include" | grep -v "^$src/gpu/" >"$work/log"
[ ! -s "$work/log" ]
point $? 'CUDA is named in src/gpu alone'

# Launchers meet the rest at the link of a build with CUDA alone, which not every machine makes.
names() { cat "$@" | sed -nE '/^(static|typedef|extern)/d; s/^[a-z][a-z_0-9 *]*[ *]([a-z][a-z_0-9]*)\([^;]*$/\1/p' | sort -u; }
names "$top"/gpu-kernels/*/*.c >"$work/launchers"
names "$src"/*.c "$src"/*/*.c >"$work/others"
comm -12 "$work/launchers" "$work/others" >"$work/log"
[ -s "$work/launchers" ] && [ -s "$work/others" ] && [ ! -s "$work/log" ]
point $? 'no launcher has the name of a function of src'
echo "1..$points"
