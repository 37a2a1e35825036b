#!/bin/sh
# CONTRIBUTING.md's examples (tests/whole/examples) are complete: a copy of the sources with their
# files and edits still has the places that the edits name, and compiles. With LS_WHOLE it is built,
# and each example runs.
#   sh tests/whole/worked_examples.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
BUILD=$(cd "$1" && pwd) SOURCE=$(cd "$2" && pwd)
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
failed=0
fail() { echo "FAIL $*"; failed=1; }

mkdir "$DIR/src"
cd "$SOURCE"
cp -r base bench cli codegen compiler demo docs models runtime scheduler tests lowerset.c \
    meson.build meson_options.txt \
    LICENSE README.md "$DIR/src/"
cd "$DIR/src"

# Makes the edits of an example: "NEW-FILE PLACE", or "FILE SED-COMMAND", which must change
# the file.
apply() {
    from=tests/whole/examples/$1
    grep -v '^#' "$from/edits" >"$DIR/edits"
    while read -r file command; do
        if [ -f "$from/$file" ]; then
            cp "$from/$file" "$command"
            echo "$command" >>"$DIR/changed"
            continue
        fi
        sed "$command" "$file" >"$DIR/edited"
        cmp -s "$file" "$DIR/edited" && fail "$1: $file has no place for $command"
        cp "$DIR/edited" "$file"
        echo "$file" >>"$DIR/changed"
    done <"$DIR/edits"
}
for example in operator kernel strategy; do
    apply "$example"
    # The page tells of every file that takes part.
    for file in $(grep -v '^#' "tests/whole/examples/$example/edits" | sed 's/ .*//' | sort -u); do
        case $file in *.c | *.def | *.h | *.build) grep -q "${file##*/}" "$SOURCE/CONTRIBUTING.md" \
            || fail "CONTRIBUTING.md does not tell of $file, which the $example takes" ;; esac
    done
done

if [ -z "${LS_WHOLE:-}" ]; then
    include="-I. -I$BUILD -I$BUILD/compiler -I$BUILD/codegen -I$BUILD/scheduler -I$BUILD/cli"
    include="$include $(pkg-config --cflags libcjson libprotobuf-c 2>/dev/null || :)"
    for file in $(grep '\.c$' "$DIR/changed" | sort -u); do
        ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only $include "$file" \
            2>"$DIR/errors" \
            || { head -20 "$DIR/errors"; fail "$file does not compile"; }
    done
    [ "$failed" = 0 ] && echo "the examples compile"
    exit "$failed"
fi

meson setup "$DIR/build" -Dwerror=true -Doptimization=0 -Ddebug=false >"$DIR/log" 2>&1 \
    && ninja -C "$DIR/build" lowerset runtime/libls_runtime.a >>"$DIR/log" 2>&1 \
    || { tail -30 "$DIR/log"; fail "no build"; exit 1; }
cd "$DIR"
lowerset=build/lowerset
# trains WAS IS: net.onnx, another network whose operator WAS is IS, trained for an epoch
trains() {
    LC_ALL=C sed "s/$1/$2/g" was.onnx >net.onnx
    "$lowerset" compile net.onnx --batch 2 --plan-effort 5 -O 1 --save-temps=temps \
        -o net >out 2>&1 \
        && ./net --data synthetic:16 --epochs 1 >>out 2>&1 && grep -q 'loss [0-9]' out \
        || { cat out; fail "$2 does not train"; }
}
"$lowerset" model mlp --batch=0 --width=8 --size=4 -o was.onnx
trains Relu Bump
"$lowerset" check net.onnx --batch 2 >out 2>&1 || { cat out; fail "gradients of Bump"; }
"$lowerset" model gpt --width=8 --depth=1 --heads=2 -o was.onnx
trains Softmax Peakmax
grep -q 'best = x\[i\] > x\[best\]' temps/*.c || fail "the kernel is not printed"
"$lowerset" plan net.onnx --batch 2 --plan-effort 5 --strategy halves >out 2>&1 \
    && grep -q '^halves  *[0-9]' out \
    || { cat out; fail "the strategy does not plan"; }
[ "$failed" = 0 ] && echo "the examples run"
exit "$failed"
