#!/bin/sh
# A failed allocation ends the command with a sentence and an exit code, or changes nothing: no
# crash, no silence, no output that lacks a part. Allocations of some commands fail in turn: all of
# short ones, of long ones a selection, ten times as many in whole sets.
#   sh tests/whole/out_of_memory.sh BUILD LIBRARY
set -eu
build=$(cd "$1" && pwd)
library=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
lowerset=$build/lowerset
export LOWERSET_PROBE=off       # which has memory of its own, and can do without
"$lowerset" model mlp --width=8 --depth=1 -o net.onnx
broken=0

# one N COMMAND...: allocation N of the command fails; 0: none, and the allocations are counted
# in `count`.
one() {
    n=$1
    shift
    code=0
    LS_FAIL_AT=$n LS_FAIL_COUNT=count LD_PRELOAD=$library "$lowerset" "$@" >out 2>err || code=$?
}

complain() {
    echo "allocation $n of '$*' fails: $1" >&2
    cat err >&2
    broken=$((broken + 1))
}

# every STEP COMMAND...
every() {
    step=$1
    shift
    [ -z "${LS_WHOLE:-}" ] || step=$(((step + 9) / 10))
    one 0 "$@"
    [ "$code" = 0 ] || { cat err >&2; exit 1; }
    all=$(cat count)
    mv out whole
    at=1
    while [ "$at" -le "$all" ]; do
        one "$at" "$@"
        if [ "$code" = 0 ]; then
            cmp -s out whole || complain "other output" "$@"
        elif [ "$code" -gt 8 ]; then
            complain "exit code $code" "$@"
        elif ! [ -s err ]; then
            complain "exit code $code without a word" "$@"
        fi
        at=$((at + step))
    done
}

every 1 dp --sample-rate 0.01 --steps 100 --noise 1 --delta 1e-5
every 1 inspect net.onnx
every 13 inspect net.onnx --json
every 211 plan net.onnx --batch 2 --json
every 199 compile net.onnx --batch 2 --dry-run -o net
[ "$broken" = 0 ]
