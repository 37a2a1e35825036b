#!/bin/sh
# --drop-bias: a network without the biases in front of its batch norms trains as with them: losses,
# weights and running statistics to 1e-9, biases as the file has them, an exported model that
# evaluates the same. Budgets, ranks, ensembles, micro-batches and 16 bits take it; it is refused
# where no bias can go.
#   sh tests/whole/drop_bias.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off LC_ALL=C XDG_CONFIG_HOME="$out/config"
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }
quick="--batch 4 -O 0 --plan-effort 1 -q"

# trained NAME OPTION...: the program and what it saves and exports after 6 updates
trained() {
    name=$1
    shift
    "$lowerset" compile net.onnx $quick "$@" -o "$name" >said 2>&1 || fail "compile $*"
    "./$name" --data synthetic:12 --val synthetic:8 --epochs 2 --lr 0.02 --progress none \
        --save "of-$name" --no-export-notes --export "$name.onnx" >"$name.txt" 2>&1 \
        || fail "$(tail -n 3 "$name.txt")"
}
# near A B: the same tensors in two checkpoints, off by 1e-9 at most. What only A has are biases
# that B does not train, and their moments.
near() {
    last=step-000000006.safetensors
    python3 - "of-$1/$last" "of-$2/$last" <<'END' || fail "$1 and $2"
import array, json, struct, sys
def tensors(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    return {k: array.array("d", data[slice(*v["data_offsets"])]) for k, v in head.items()
            if k != "__metadata__" and v["dtype"] == "F64"}
a, b = tensors(sys.argv[1]), tensors(sys.argv[2])
running = [k for k in b if k.endswith("running_mean")]
assert len(running) == 10 and set(b) <= set(a), sorted(set(b) - set(a))
assert all(max(map(abs, a[k])) > 0.01 for k in running), "statistics do not move"
for k in b:
    worst = max(abs(x - y) / max(1, abs(y)) for x, y in zip(a[k], b[k]))
    assert len(a[k]) == len(b[k]) and worst <= 1e-9, (k, worst)
left = set(a) - set(b)
assert all(".bias" in k for k in left) and len(left) in (0, 10, 20), sorted(left)
END
}
# value WORD FILE: the number behind the word in the last line that has it
value() { sed -n "s/.*$1  *\([0-9.e+-]*\).*/\1/p" "$2" | tail -n 1; }
close_to() {
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 < 1e-11 * b * b) }' \
        || fail "$1: $2, with biases $3"
}

"$lowerset" model unet --width=3 --depth=2 --size=16 --bias=on --dropout=0.2 -o net.onnx \
    >said 2>&1 \
    || fail "model"
# In doubles, as few elements make a statistic here, and rounding is amplified.
trained with --precision f64
trained without --drop-bias --precision f64
near with without
for word in 'step 6  *loss' val_loss; do
    close_to "$word" "$(value "$word" without.txt)" "$(value "$word" with.txt)"
done
# The exported models evaluate the same, by their running statistics.
for name in with without; do
    "$lowerset" compile "$name.onnx" $quick --bn frozen -o again >said 2>&1 || fail "$name.onnx"
    ./again --data synthetic:8 --eval >"again-$name.txt" 2>&1 || fail "$(cat "again-$name.txt")"
done
close_to "exported" "$(value val_loss again-without.txt)" "$(value val_loss again-with.txt)"
close_to "exported" "$(value val_loss again-without.txt)" "$(value val_loss without.txt)"

# Training goes on from its checkpoint; any budget has the same bits.
"$lowerset" compile net.onnx $quick --drop-bias --precision f64 --budget min -o least >said 2>&1 \
    || fail "--budget"
./least --data synthetic:12 --val synthetic:8 --epochs 1 --lr 0.02 --progress none --save of-least \
    >said 2>&1 || fail "one epoch"
./least --data synthetic:12 --val synthetic:8 --epochs 2 --lr 0.02 --progress none --save of-least \
    --resume auto --no-export-notes --export least.onnx >said 2>&1 || fail "--resume"
cmp -s least.onnx without.onnx || fail "within a budget, and resumed, it has other bits"
# Ranks have the bits of one process.
trained parts --drop-bias --microbatches 2 --precision f64
trained ranks --drop-bias --microbatches 2 --ranks 2 --precision f64
cmp -s parts.onnx ranks.onnx || fail "two ranks have other bits"
trained whole --microbatches 2 --precision f64
near whole parts
trained half --drop-bias --precision bf16
"$lowerset" compile net.onnx $quick --drop-bias --ensemble 2 --randomness different -o many \
    >said 2>&1 || fail "--ensemble"
./many --data synthetic:12 --epochs 2 --progress none >said 2>&1 || fail "members"

# Less is planned, and said.
"$lowerset" plan net.onnx --batch 4 --plan-effort 1 --drop-bias >said 2>&1 || fail "plan"
grep -q "trains 36 of 46 tensors" said || fail "the share does not say what is trained"
grep -q "10 biases of [0-9]* elements are not added in front of batch norms" said || fail "plan"
# Biases that decay stay, and where none can go that is refused.
decays="--optimizer adamw:wd=0.1 --drop-bias"
"$lowerset" plan net.onnx $decays --batch 4 --plan-effort 1 >said 2>&1 || fail "$decays"
grep -q "trains 36 of 46 tensors" said || fail "with weight decay that spares biases none go"
refused() {
    what=$1
    shift
    ! "$lowerset" plan "$@" --batch 4 --plan-effort 1 --drop-bias >said 2>&1 || fail "taken: $*"
    grep -q -- "$what" said || fail "no word of '$what': $*"
}
refused "leaves 'inc.double_conv.0.bias' where it is: it has weight decay" \
    net.onnx --optimizer adamw:wd=0.1 --no-decay none
refused "no trained bias stands in front of a batch norm" net.onnx --bn frozen
refused "no trained bias stands in front of a batch norm" net.onnx --freeze '*conv.[03].bias'
# Gradients against differences of the loss, in doubles; bits within the least budget.
"$lowerset" check net.onnx --batch 2 --drop-bias --elements 40 -q >said 2>&1 || fail "check"
echo "1 passed, 0 failed"
