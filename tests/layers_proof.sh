# Included by layers.sh: proves that its check sees every arrow that its list forbids. The functions
# and $work, $rooms are those of layers.sh.

arrows=0 missed=0

# expect WHAT: the check of the copy must have a fault that begins so.
expect() {
    arrows=$((arrows + 1))
    check "$work/copy" >"$work/faults"
    if ! grep -q "^FAIL $1" "$work/faults"; then
        missed=$((missed + 1))
        echo "FAIL the check does not see: $2"
    fi
}

# try FILE LINE WHAT: adds a line to a file of the copy, for one check.
try() {
    cp "$work/copy/$1" "$work/kept"
    printf '%s\n' "$2" >>"$work/copy/$1"
    expect "$3" "$1: $2"
    cp "$work/kept" "$work/copy/$1"
}

# new_file FILE WHAT: adds an empty file to the copy, for one check.
new_file() {
    mkdir -p "$work/copy/$(dirname "$1")"
    : >"$work/copy/$1"
    expect "$2" "a new file $1"
    rm "$work/copy/$1"
}

# may FROM TO: the list has TO behind FROM.
may() { grep -qE "^$1( .*)? $2( |$)" "$work/may"; }

# one_of FOLDER PATTERN: a file of a room or folder, another one at each call.
one_of() {
    case $1 in
    */.) find "${1%/.}" -maxdepth 1 -name "$2" ;;
    *) find "$1" -name "$2" ;;
    esac | sort >"$work/some"
    n=$(wc -l <"$work/some")
    [ "$n" = 0 ] || sed -n "$((arrows % n + 1))p" "$work/some"
}

# pair FROM TO: of two rooms or folders, a forbidden arrow from some file of the one to some header
# of the other.
pair() {
    from=$(one_of "$1" '*.[ch]') to=$(one_of "$2" '*.h')
    [ -n "$from" ] && [ -n "$to" ] || return 0
    try "$from" "#include \"$to\"" "$1 must not include $2: $from: $to"
}

every_pair() {
    for a in $rooms; do
        for b in $rooms; do
            [ "$a" = "$b" ] || may "$a" "$b" || pair "$a" "$b"
        done
    done
    for a in $(sed -n 's,^\([^ ]*/[^ ]*\).*,\1,p' "$work/may"); do
        for b in $(sed -n "s,^\(${a%%/*}/[^ ]*\).*,\1,p" "$work/may"); do
            [ "$a" = "$b" ] || may "$a" "${b#*/}" || pair "$a" "$b"
        done
    done
}

# In each folder the arrow between two headers, turned back; and a circle through three files.
every_circle() {
    grep -E '^[^/]*/' "$work/may" | cut -d' ' -f1 | sed 's,/\.$,,' | while read -r folder; do
        grep -oE "#include \"$folder/[a-z_0-9]+\.h\"" "$folder"/*.h 2>/dev/null |
            sed 's/#include //; s/[:"]/ /g' | head -1
    done >"$work/within"
    while read -r from to; do
        try "$to" "#include \"$from\"" "files include each other in a circle"
    done <"$work/within"
    printf '#include "scheduler/graph/dag_check.h"\n' >>"$work/copy/scheduler/graph/dag.h"
    expect "files include each other in a circle" "a circle of three files"
    cp scheduler/graph/dag.h "$work/copy/scheduler/graph/dag.h"
}

# Other ways to write a forbidden arrow, and paths that are not whole.
every_spelling() {
    for line in '# include "codegen/emit/target.h"' '#include  "codegen/emit/target.h"' \
        '#include"codegen/emit/target.h"' '   #include "codegen/emit/target.h"' \
        '#	include "codegen/emit/target.h" /* why */'; do
        try compiler/ir/map.def "$line" "compiler must not include codegen"
    done
    for line in '#include "graph.h"' '#include "./graph.h"' '#include "../ir/graph.h"' \
        '#include "ir/graph.h"' \
        '#include "compiler/../codegen/emit/target.h"' '#include "compiler//ir/graph.h"' \
        '#include "compiler/./ir/graph.h"' '#include <compiler/ir/graph.h>' \
        '#include <codegen/emit/target.h>' \
        "#include \"$(pwd)/codegen/emit/target.h\"" '#include "tests/../codegen/emit/target.h"' \
        '#include <../codegen/emit/target.h>' '#include LS_HEADER'; do
        try compiler/ir/graph.c "$line" "an include must say the whole path"
    done
    try compiler/pipeline.c '#include "passes/fuse.h"' "an include must say the whole path"
    try lowerset.c '#include "cli/../tests/support/less.h"' "an include must say the whole path"
}

every_name() {
    new_file compiler/ir/planner.c "more than one file is called planner.c"
    new_file scheduler/graph/less.h "more than one file is called less.h"
    new_file codegen/kernels/less.h "more than one file is called less.h"
    new_file compiler/sparse/mask.c "compiler/sparse has no line"
    new_file base/deep/tree.h "base/deep has no line"
    # Rooms are found by git, as a build folder has sources, too.
    if git init -q "$work/copy" 2>/dev/null; then
        mkdir "$work/copy/search"
        : >"$work/copy/search/tree.c"
        git -C "$work/copy" add search/tree.c
        expect "search has no line" "a new room search"
    fi
}

prove_arrows() {
    cd "$1"
    for file in $(sources); do
        mkdir -p "$work/copy/$(dirname "$file")"
        cp "$file" "$work/copy/$file"
    done
    check "$work/copy" >"$work/faults"
    [ ! -s "$work/faults" ] || { echo "FAIL the copy differs from the sources"; exit 1; }
    every_pair
    every_circle
    every_spelling
    every_name
    echo "$arrows forbidden arrows tried, $missed missed"
    [ "$missed" = 0 ]
}
