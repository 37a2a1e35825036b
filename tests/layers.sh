#!/bin/sh
# The arrows between rooms point one way: base/ lies under all rooms but the runtime, which includes no other;
# compiler/ and scheduler/ know nothing of each other. Within a room its folders are in an order as well, and no
# files include each other in a circle.
#   sh tests/layers.sh SOURCE-FOLDER
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1"
failed=0
fail() { echo "FAIL $*"; failed=1; }

# forbid ROOM PATTERN: no file of ROOM includes a file that matches.
forbid() {
    if grep -rnE "#include \"($2)/" "$1" --include='*.c' --include='*.h' --include='*.def'; then
        fail "$1/ must not include $2"
    fi
}

forbid base 'compiler|scheduler|codegen|models|cli|tests|runtime'
forbid runtime 'base|compiler|scheduler|codegen|models|cli|tests'
forbid compiler 'scheduler|codegen|models|cli|tests|runtime'
forbid scheduler 'compiler|codegen|models|cli|tests|runtime'
forbid codegen 'models|cli|tests'
forbid models 'scheduler|codegen|cli|tests|runtime'

# folder ROOM/FOLDER OTHERS: of its room's folders it includes only OTHERS and itself.
: "${folders:=}"
folder() {
    folders="$folders $1"
    room=${1%/*} own=${1#*/}
    may=$(echo "$own $2" | tr ' ' '|')
    if grep -rnE "#include \"$room/[a-z_]+/" "$1" --include='*.c' --include='*.h' --include='*.def' |
        grep -vE "#include \"$room/($may)/"; then
        fail "$1/ may include of $room/ only: $2"
    fi
    # A room's own files, which stand above its folders or beneath them.
    if [ "$room" != runtime ] && grep -rnE "#include \"$room/[a-z_0-9]+\.h\"" "$1"; then
        fail "$1/ includes what stands above it"
    fi
}

folder scheduler/algorithms ''
folder scheduler/graph ''
folder scheduler/packing 'algorithms'
folder scheduler/lower_sets 'graph'
folder scheduler/order 'graph lower_sets algorithms'
folder scheduler/candidates 'order packing graph algorithms'
folder scheduler/relaxation 'graph'
folder scheduler/state_search 'relaxation order graph'
folder scheduler/bounds 'state_search relaxation algorithms graph'
folder scheduler/blocks 'candidates order graph algorithms'
folder scheduler/local_search 'candidates state_search order graph algorithms'
folder scheduler/strategies 'blocks local_search state_search candidates order lower_sets graph algorithms'
folder scheduler/plan 'strategies bounds candidates graph algorithms'
folder scheduler/report 'plan candidates'

folder compiler/ir ''
folder compiler/fold 'ir'
folder compiler/onnx 'fold ir'
folder compiler/ops 'onnx fold ir'
folder compiler/passes 'ops onnx fold ir'
folder compiler/patterns 'passes ops onnx fold ir'
folder compiler/inspect 'patterns passes ops onnx fold ir'
folder compiler/cost 'passes ops fold ir'

folder codegen/emit ''
folder codegen/kernels 'emit'
folder codegen/fusion 'kernels emit'
folder codegen/cuda 'fusion kernels emit'
folder codegen/planning 'fusion kernels emit'
folder codegen/program 'planning cuda fusion kernels emit'
folder codegen/toolchain ''

folder runtime/base ''
folder runtime/data 'base'
folder runtime/engine 'data base'
folder runtime/kernels 'engine'
folder runtime/cuda 'engine base'
folder runtime/cuda_kernels 'kernels'
folder runtime/watch 'engine data base'
folder runtime/trainer 'watch engine data base'

for d in $(git ls-files | grep -E '^(base|compiler|scheduler|codegen|runtime|models|cli)/[^/]+/.*\.[ch]$' |
    sed 's,/[^/]*$,,' | sort -u); do
    case "$folders " in *" $d "*) ;; *) fail "$d/ has no line here that says what it may include" ;; esac
done

# Includes have the whole path; only generated headers have none.
if git ls-files '*.c' '*.h' '*.def' | grep -v '^tests/' | xargs grep -nE '#include "([^"/]+|.*\.\./.*)"' |
    grep -vE '"(build_config|onnx\.pb-c)\.h"'; then
    fail "an include must say the whole path"
fi

# A circle: x.c and x.h are one file here, and a file leads to those that it includes. tsort finds it.
git ls-files '*.c' '*.h' '*.def' | grep -v '^tests/' | xargs grep -E '#include "[^"]*/' |
    sed -nE 's,^(.*)\.(c|h|def):#include "(.*)\.(c|h|def)".*,\1 \3,p' | awk '$1 != $2' >"$work/arrows"
if ! tsort "$work/arrows" >/dev/null 2>"$work/circle"; then
    sed 's/^tsort: -*:*//' "$work/circle"
    fail "files include each other in a circle"
fi

# A name is unique, so that "where is partition_dp.c" has one answer; an operator and its kernel's emitter share a
# name.
twice=$(git ls-files '*.c' '*.h' | grep -vE '^(codegen/kernels|compiler/ops)/' | sed 's,.*/,,' |
    sort | uniq -d)
for name in $twice; do
    fail "more than one file is called $name: $(git ls-files "$name" "*/$name" | tr '\n' ' ')"
done
[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
