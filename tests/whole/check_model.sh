#!/bin/sh
# lowerset check MODEL.onnx: small networks pass, dropout and recomputation among them; programs
# that an altered C compiler breaks fail: a gradient that is off by a hundredth, a gradient that is
# off in floats only, bits that change within a budget only.
#   sh tests/whole/check_model.sh LOWERSET
# LS_SANITIZED: only one network, and one broken program.
set -eu
lowerset=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir tmp
export TMPDIR="$work/tmp"
failed=0

fail() { failed=1; echo "FAIL $*"; }

# says WANTED-EXIT-CODE WANTED-TEXT MODEL [ARGUMENT...]
says() {
    want=$1 text=$2 code=0
    shift 2
    "$lowerset" check --plan-effort=2 -O0 -q "$@" >out 2>&1 || code=$?
    if [ "$code" != "$want" ] || ! grep -q -- "$text" out; then
        fail "check $*: exit $code, not $want with '$text': $(head -n 20 out)"
    fi
    [ -z "$(ls tmp)" ] || { fail "check $* leaves $(ls tmp)"; rm -rf tmp/*; }
}

# breaks NAME TEST EDIT: a C compiler that edits programs whose text satisfies TEST.
breaks() {
    cat >"$1" <<EOF
#!/bin/sh
for a; do
    case \$a in
    *.c) if $2 "\$a"; then sed -i "$3" "\$a"; fi ;;
    esac
done
exec ${CC:-cc} "\$@"
EOF
    chmod +x "$1"
}

"$lowerset" model mlp --width=16 --size=6 --classes=3 -o mlp.onnx
"$lowerset" model unet --width=4 --depth=1 --classes=2 --size=16 -o unet.onnx
"$lowerset" model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=11 \
    --dropout=0.2 -o gpt.onnx
says 0 "trains as it should here: 4 checks passed" mlp.onnx --batch 4
# Every kind of loss, over three outputs: graph { output { name: "relu1" } output { name: "relu2"
# } }.
"$lowerset" model mlp --width=8 --size=4 --depth=3 --classes=8 -o deep.onnx
{ cat deep.onnx && printf '\072\022\142\007\012\005relu1\142\007\012\005relu2'; } >three.onnx
says 0 "trains as it should here: 4 checks passed" three.onnx --batch 4 \
    --loss "mse:y,l1:y@0.1,bce:y,kl:y@0.5,\
smooth_l1:y@beta=0.5,huber:y@delta=0.3@2,cosine:y,ce:relu1,nll:relu2@0.1,\
triplet:relu1,relu2,y@margin=2" --elements 30
[ -n "${LS_SANITIZED:-}" ] || {
    says 0 "budget  *passed .* within .* without a budget" unet.onnx --batch 2 --budget 70%
    says 0 "gradients  *passed " gpt.onnx --batch 2 --accumulate 2 --clip-norm 1 --optimizer adam
    # Gradients and losses are those of all parts, of which the labels that count are not
    # equally many.
    says 0 "trains as it should here: 4 checks passed" gpt.onnx --batch 6 --microbatches 3 \
        --ignore-index 1 --elements 12
}
says 0 "trains as it should here: 4 checks passed" mlp.onnx --batch 4 --precision f16 \
    --precision-of 'relu*=f32' --elements 3
says 0 '"check": "floats", "result": "skipped"' mlp.onnx --batch 4 --precision f64 \
    --json --elements 3
grep -q '"says": "3 elements of 4 parameters' out || fail "--elements 3: $(cat out)"

edit() { echo "/relu_grad/s| : 0;| * $1 : 0;|"; }
breaks cc-gradient "grep -q relu_grad" "$(edit 1.01)"
breaks cc-floats "! grep -q LS_F64" "$(edit 1.5)"
breaks cc-budget "! grep -q 'strategy none'" "$(edit 1.0001f)"
says 6 "^gradients  *FAILED" mlp.onnx --batch 4 --cc ./cc-gradient
grep -q "the gradient of fc1.* is off by" out || fail "no word of the parameter: $(cat out)"
grep -q "^floats  *passed" out \
    || fail "a gradient that is wrong in both is not one of floats: $(cat out)"
[ -n "${LS_SANITIZED:-}" ] || {
    says 6 "^floats  *FAILED" mlp.onnx --batch 4 --cc ./cc-floats
    grep -q "^gradients  *passed" out || fail "gradients in doubles are right: $(cat out)"
    says 6 "^gradients  *FAILED" mlp.onnx --batch 4 --microbatches 2 --cc ./cc-gradient --elements 6
    says 6 "^budget  *FAILED .* has other bits than without a budget" mlp.onnx --batch 4 \
        --cc ./cc-budget
    grep -q "1 of 4 checks FAILED" out || fail "one check fails: $(cat out)"
    # A missing GPU is no failure.
    [ -e /dev/nvidiactl ] \
        || says 0 "gpu  *skipped  *no NVIDIA GPU here" mlp.onnx --batch 4 --target cuda --no-overlap
}

# A reference is the dump of a program; another model's has other values.
"$lowerset" compile mlp.onnx --batch 4 -q -O0 --store-gradients -o mlp
"$lowerset" model mlp --width=16 --size=6 --classes=3 --seed=2 -o other.onnx
"$lowerset" compile other.onnx --batch 4 -q -O0 --store-gradients -o other
cat >data.csv <<EOF
$(awk 'BEGIN { for (n = 0; n < 4; n++) {
    for (k = 0; k < 36; k++) printf "%g,", ((n * 36 + k) * 7 % 13) / 13
    print n % 3 } }')
EOF
for net in mlp other; do
    ./$net --data data.csv --no-shuffle --steps 1 --lr 0 --progress none --dump $net.npz >/dev/null
done
says 0 "reference  *passed .*of 5 tensors" mlp.onnx --batch 4 --data data.csv --against mlp.npz
says 6 "reference  *FAILED" mlp.onnx --batch 4 --data data.csv --against other.npz

says 2 "needs --data" mlp.onnx --batch 4 --against mlp.npz
says 2 "show the gradients of a batch's last part" mlp.onnx --batch 4 --microbatches 2 \
    --data data.csv --against mlp.npz
says 8 "nowhere.npz" mlp.onnx --batch 4 --data nowhere.npz
says 1 "No such file" nowhere.onnx
says 4 "ask for --budget" mlp.onnx --batch 4 --budget 1KiB
[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
