#!/bin/sh
# The arrows between rooms point one way: base/ lies under all rooms but the runtime, which includes
# no other; compiler/ and scheduler/ know nothing of each other. Within a room its folders are in an
# order as well, and no files include each other in a circle. Includes say the whole path, and a
# file's name is unique.
#   sh tests/layers.sh SOURCE-FOLDER
#   sh tests/layers.sh --prove SOURCE-FOLDER
#   With --prove, and in the setup `whole`: each arrow that is forbidden is added to a copy of the
#   sources, one at a time, and must make the check fail.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A line per room: the rooms that it may include beside itself. A line per folder of a room: the
# folders of the same room; "ROOM/." are the room's own files, which stand above its folders or
# beneath them.
cat >"$work/may" <<'END'
base
runtime
compiler base
scheduler base
codegen base compiler scheduler runtime
models base compiler
dataset base runtime
cli base compiler scheduler codegen models runtime dataset
lowerset.c base compiler scheduler codegen models runtime dataset cli
demo runtime
examples
bench base compiler scheduler codegen models runtime dataset cli tests
tests base compiler scheduler codegen models runtime dataset cli

scheduler/algorithms
scheduler/graph
scheduler/packing algorithms
scheduler/lower_sets graph
scheduler/order graph lower_sets algorithms
scheduler/candidates order packing graph algorithms
scheduler/relaxation graph
scheduler/state_search relaxation order graph
scheduler/bounds state_search relaxation algorithms graph
scheduler/blocks candidates order graph algorithms
scheduler/local_search candidates state_search order graph algorithms
scheduler/strategies blocks local_search state_search candidates order lower_sets graph algorithms
scheduler/plan strategies bounds candidates graph algorithms
scheduler/cuts lower_sets graph
scheduler/pipeline cuts plan order packing candidates graph algorithms
scheduler/report pipeline cuts plan strategies candidates

compiler/ir
compiler/fold ir
compiler/packed ir
compiler/onnx_file packed ir
compiler/onnx_repair packed onnx_file ir
compiler/adapters onnx_repair packed onnx_file ir
compiler/onnx adapters onnx_repair packed onnx_file fold ir
compiler/ops onnx onnx_file fold ir
compiler/per_sample ops fold ir
compiler/updates per_sample ops onnx fold ir
compiler/passes updates per_sample ops onnx packed fold ir
compiler/patterns passes ops onnx fold ir
compiler/inspect patterns passes ops onnx onnx_repair onnx_file fold ir
compiler/cost passes ops fold ir
compiler/. cost inspect patterns passes updates per_sample ops onnx fold ir

codegen/emit
codegen/kernels emit
codegen/fusion kernels emit
codegen/tiling kernels emit
codegen/cuda fusion kernels emit
codegen/planning fusion kernels emit
codegen/program planning cuda tiling fusion kernels emit
codegen/toolchain

runtime/.
runtime/base .
runtime/comm base .
runtime/comm_mpi comm base .
runtime/comm_nccl comm cuda base .
runtime/data base .
runtime/engine comm data base .
runtime/ranks engine comm base .
runtime/kernels engine .
runtime/cuda engine base .
runtime/cuda_ranks comm_nccl cuda comm ranks engine base .
runtime/cuda_kernels kernels .
runtime/watch engine data base .
runtime/privacy
runtime/checkpoint privacy engine data base .
runtime/pipeline ranks engine comm data base .
runtime/metrics engine data base .
runtime/update checkpoint metrics engine data base .
runtime/predict metrics watch engine data base .
runtime/library update watch engine base .
runtime/trainer update checkpoint predict metrics pipeline watch ranks engine comm data base .

base/.
dataset/.
models/.
cli/option_groups
cli/options option_groups
cli/job options option_groups
cli/report job options option_groups
cli/commands report job options option_groups
demo/.
examples/c
bench/.
END
rooms=$(cut -d' ' -f1 "$work/may" | grep -v /)

sources() { find $rooms -name '*.[ch]' -o -name '*.def'; }

# check FOLDER: writes a line "FAIL ..." for each fault.
check() (
    cd "$1"
    sources >"$work/files"
    # tests/ has no order among its folders, and includes generated programs by macros; examples/
    # includes headers that the compiler writes.
    xargs grep -HE '^[[:space:]]*#[[:space:]]*(include|include_next|import)([^a-z_]|$)' \
        <"$work/files" |
        sed 's/:[[:space:]]*#[[:space:]]*[a-z_]*[[:space:]]*/ /' |
        awk -v arrows="$work/arrows" '
    function room(path) { return substr(path, 1, index(path "/", "/") - 1) }
    function folder(path, part, n) {
        n = split(path, part, "/")
        return part[1] "/" (n > 2 ? part[2] : ".")
    }
    FNR == NR {
        if (NF > 0) { line[$1]; for (k = 2; k <= NF; k++) may[$1, $k] }
        next
    }
    FILENAME == ARGV[2] {
        if (room($1) != "tests" && $1 ~ /\// && !(folder($1) in line) && !(folder($1) in told)) {
            print "FAIL " folder($1) " has no line here that says what it may include"
            told[folder($1)]
        }
        next
    }
    {
        from = $1
        said = substr($0, length(from) + 2)
        to = substr(said, 2)
        sub(/[">].*/, "", to)
        if (said ~ /^</ && !(room(to) in line) && to !~ /\.\./) next
        if (to == "build_config.h" || to == "onnx.pb-c.h") next      # what the build makes
        if (said !~ /^"[a-z_0-9]+(\/[a-z_0-9]+)*\/[a-z_0-9]+\.(c|h|def)"/ || !(room(to) in line)) {
            if (room(from) != "tests" && room(from) != "examples")
                print "FAIL an include must say the whole path: " from ": " said
            next
        }
        a = room(from); b = room(to); f = folder(from); g = folder(to)
        own = substr(g, index(g, "/") + 1)
        if (a != b && !((a, b) in may))
            print "FAIL " a " must not include " b ": " from ": " to
        if (a == b && a != "tests" && f != g && !((f, own) in may))
            print "FAIL " f " must not include " g ": " from ": " to
        sub(/\.[a-z]*$/, "", from); sub(/\.[a-z]*$/, "", to)      # x.c and x.h are one file here
        if (from != to) print from, to >arrows
    }' "$work/may" "$work/files" -

    # A file leads to those that it includes. tsort finds circles.
    if ! tsort "$work/arrows" >/dev/null 2>"$work/circle"; then
        echo "FAIL files include each other in a circle:" $(sed 's/^tsort: -*:*//' "$work/circle")
    fi

    # A name is unique, so that "where is partition_dp.c" has one answer; an operator and the
    # emitters of its kernels share theirs.
    grep -v '\.def$' "$work/files" | sort | awk -F/ '
    {
        of[$NF] = of[$NF] " " $0
        many[$NF]++
        shared[$NF] += $0 ~ /^(compiler\/ops|codegen\/kernels|codegen\/cuda)\//
    }
    END { for (name in many) if (many[name] > 1 && shared[name] < many[name])
        print "FAIL more than one file is called " name ":" of[name] }'
    [ -s "$work/files" ] || echo "FAIL there are no sources in $1"
    # A room that is missing above.
    for room in $(git ls-files '*.c' '*.h' '*.def' 2>/dev/null | sed 's,/.*,,' | sort -u); do
        grep -qE "^$room( |$)" "$work/may" \
            || echo "FAIL $room has no line here that says what it may include"
    done
)

. "$(dirname "$0")/layers_proof.sh"

prove=${LS_WHOLE:+yes}
if [ "$1" = --prove ]; then
    prove=yes
    shift
fi
check "$1" >"$work/faults"
cat "$work/faults"
[ ! -s "$work/faults" ] || exit 1
echo "1 passed, 0 failed"
[ -z "$prove" ] || prove_arrows "$1"
