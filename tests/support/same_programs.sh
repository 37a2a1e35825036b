#!/bin/sh
# Two builds make the same plans and print the same programs, to the byte: for changes that must not
# change results.
#   sh tests/support/same_programs.sh OLD-BUILD NEW-BUILD
# Lines that include are left out: folders may move.
set -eu
old=$(cd "$1" && pwd) new=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# made BUILD NAME BATCH ZOO-OPTION...: the plan, its graph and page, and the programs of a network
made() {
    lowerset=$1/lowerset name=$2 batch=$3
    shift 3
    "$lowerset" model "$@" -o "$name.onnx"
    set -- "$name.onnx" --batch "$batch" --plan-effort 20 --machine cpu
    for budget in none 60% min; do
        "$lowerset" plan "$@" --budget "$budget" --plan-json "$name-$budget.json" \
            --graph-json "$name-graph.json" \
            --report "$name-$budget.html" --timeline "$name-$budget.csv" >"$name-$budget.txt" 2>&1 \
            || :
        "$lowerset" compile "$@" -q --budget "$budget" --emit=c -o "$name-$budget" 2>&1 || :
    done
    "$lowerset" plan "$@" -d all >"$name-passes.txt" 2>&1
    "$lowerset" compile "$name.onnx" -q --batch "$batch" --plan-effort 20 --target cuda \
        --precision tf32 \
        --emit=c -o "$name-cuda" 2>&1 || :
}

all() {
    made "$1" mlp 4 mlp --width=8 --size=4
    made "$1" unet 2 unet --width=6 --depth=3 --classes=2 --size=32
    made "$1" resnet 4 resnet18 --stem=cifar --width=8 --classes=10 --size=32 --dropout=0.2
    made "$1" densenet 2 densenet121 --width=6 --classes=10 --size=32
    made "$1" gpt 2 gpt --depth=2 --heads=2 --width=32 --context=32 --vocab=65
    made "$1" googlenet 2 googlenet --classes=10 --size=64
}
for side in old new; do
    mkdir "$side"
    case $side in old) build=$old ;; *) build=$new ;; esac
    (cd "$side" && all "$build" >said.txt)
    find "$side" -type f \( -name '*.c' -o -name '*.cu' \) -exec sed -i '/^#include "/d' {} +
done
# Copies of the runtime are not printed.
if diff -rq -x runtime old new; then
    echo "$(find new -type f -not -path "*/runtime/*" | wc -l) files are the same"
else
    exit 1
fi
