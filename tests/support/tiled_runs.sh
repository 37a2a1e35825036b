# tests/support/tiled_runs.sh -- programs with values in parts against those with whole values.
# Wants: lowerset, a working folder of its own, samples, fail().

# trained NAME MODEL THREADS OPTION...: NAME.onnx, NAME.npz of 5 updates
trained() {
    name=$1 model=$2 threads=$3
    shift 3
    "$lowerset" compile "$model" -q -O 0 --plan-effort 1 --store-gradients "$@" -o net \
        >said 2>&1 || fail "compile $*"
    ./net --data "synthetic:$samples" --seed 3 --threads "$threads" --lr 0.05 --steps 5 \
        --progress none --no-export-notes --export "$name.onnx" --dump "$name.npz" \
        >"$name.said" 2>&1 \
        || { cat "$name.said"; fail "the program of $*"; }
}
passed=0
# Sanitized programs take several times as long: a few of the cases.
few() { [ -n "${LS_SANITIZED-}" ]; }
# same MODEL PARTS OPTION...: the same bits with whole values
same() {
    model=$1 parts=$2
    shift 2
    trained whole "$model" 2 "$@"
    for n in $parts; do
        trained parts "$model" 3 "$@" --tiles "$n"
        cmp -s whole.npz parts.npz || fail "$n parts, $*: other values"
        cmp -s whole.onnx parts.onnx || fail "$n parts, $*: other weights"
        passed=$((passed + 1))
    done
}
