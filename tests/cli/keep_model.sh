#!/bin/sh
# compile never overwrites the model that it reads.
#   sh tests/cli/keep_model.sh LOWERSET
set -eu
lowerset=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"$lowerset" model mlp --batch=2 -o net.onnx >/dev/null
cp net.onnx before.onnx
ln -s net.onnx other.onnx

"$lowerset" compile net.onnx -q --emit=c -o net.c 2>/dev/null
cmp net.onnx before.onnx || { echo "FAIL compile --emit=c -o net.c wrote over net.onnx"; exit 1; }
[ -s net_eval.onnx ] || { echo "FAIL net_eval.onnx is missing"; exit 1; }

mv net.onnx net_eval.onnx
for name in net_eval.onnx other.onnx; do
    [ "$name" = other.onnx ] && mv net_eval.onnx net.onnx
    for out in "--emit=c -o net.c" "-o $name"; do
        [ "$name $out" = "other.onnx --emit=c -o net.c" ] && continue
        # shellcheck disable=SC2086
        if "$lowerset" compile "$name" -q $out 2>message; then
            echo "FAIL compile $name $out wrote over the model"
            exit 1
        fi
        grep -q "is the model itself" message || { cat message; exit 1; }
    done
    cmp "$name" before.onnx || { echo "FAIL $name has changed"; exit 1; }
done
echo "1 passed, 0 failed"
