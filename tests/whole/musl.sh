#!/bin/sh
# A program that --emit=c prints needs nothing that musl's C library lacks: built with musl-gcc it
# trains, saves, resumes and exports as the program built with glibc does.
#   sh tests/whole/musl.sh BUILD-FOLDER
set -eu
unset CC
BUILD=$(cd "$1" && pwd)
command -v musl-gcc >/dev/null || {
    echo "skipped: no musl-gcc (Debian: apt-get install musl-tools)"
    exit 77
}
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
cd "$DIR"
export TMPDIR="$DIR"
fail() { echo "FAIL $*"; exit 1; }

"$BUILD/lowerset" model autoencoder --width=4 --depth=2 --size=16 -o net.onnx
mkdir program
compile="$BUILD/lowerset compile net.onnx --batch 4 --plan-effort 5 --loss mse -O 0"
$compile -o net-cc >said 2>&1 && $compile --emit=c -o program/net.c >said 2>&1 \
    || { cat said; fail "compile"; }
command=$(sed -n 's/^ *cc \(.* -lpthread\).*/\1/p' said)
[ -n "$command" ] || { cat said; fail "no command"; }
musl-gcc -static -Werror=implicit-function-declaration $command -o net-musl-gcc 2>errors \
    || { cat errors; fail "musl-gcc does not build the program"; }
for cc in cc musl-gcc; do
    run="./net-$cc --data synthetic:32 --label-from input --seed 5"
    $run --epochs 2 --export "$cc.onnx" --log "$cc.json" >"$cc.out" || {
        cat "$cc.out"
        fail "$cc: training"
    }
    $run --epochs 1 --save "$cc-saved" >out \
        && $run --epochs 2 --save "$cc-saved" --resume auto --export "$cc-again.onnx" >out \
        || { cat out; fail "$cc: resuming"; }
    cmp "$cc.onnx" "$cc-again.onnx" || fail "$cc: a resumed run gives other weights"
done
grep -o 'loss [0-9.e-]\{6\}' cc.out >a
grep -o 'loss [0-9.e-]\{6\}' musl-gcc.out >b
[ -s a ] && cmp a b || { cat cc.out musl-gcc.out; fail "other losses than with glibc"; }
echo "musl passes"
