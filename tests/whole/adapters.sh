#!/bin/sh
# Adapters (--lora, --adapter, --export-adapter, --merge) beside peft: losses of 20 updates, the
# gradients of the first, the adapters that they end with; merged models; and what is refused.
#   sh tests/whole/adapters.sh BUILD-FOLDER SOURCE-FOLDER
# LS_WHOLE: also the references in ../shared.
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
source=$(cd "$2" && pwd)
compare=$source/tests/whole/adapters.py
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

# built PROGRAM MODEL OPTION...
built() {
    program=$1
    shift
    "$lowerset" compile "$@" -q -O 0 --plan-effort 1 -o "$program" >said 2>&1 \
        || fail "compile $*"
}
ran() { "$@" --progress none --no-shuffle >said 2>&1 || fail "$*"; }
evaluated() { ./"$@" --eval --progress none 2>/dev/null | sed -n 's/.*\(val_loss.*\)/\1/p'; }
# A model whose evaluation form reads what the options say of batch and labels.
options="--optimizer adamw:wd=0.01 --no-decay none"

# references FOLDER
references() {
    ref=$1
    name=$(basename "$ref")
    batch=$(python3 "$compare" samples "$ref/data.npz")
    label=
    case $name in llama*) label="--ignore-index -100" ;; esac
    # shellcheck disable=SC2086
    for way in "" "--budget min --threads 1"; do
        threads=${way#--budget min}
        built net "$ref/base.onnx" --batch "$batch" --adapter "$ref/start" $options $label \
            ${way%--threads 1}
        rm -rf log end
        ran ./net $threads --data "$ref/data.npz" --epochs 20 --lr 3e-3 --log log \
            --export-adapter end --export trained.onnx
        python3 "$compare" losses log "$ref/ref.npz" >said 2>&1 || fail "$name: losses"
        python3 "$compare" files end "$ref/end" >said 2>&1 || fail "$name: the trained adapter"
        [ -n "$way" ] || { rm -rf plain; mv end plain; continue; }
        cmp -s plain/adapter_model.safetensors end/adapter_model.safetensors \
            || fail "$name: $way has other bits"
    done
    # shellcheck disable=SC2086
    built net "$ref/base.onnx" --batch "$batch" --adapter "$ref/start" $options $label \
        --store-gradients
    ran ./net --data "$ref/data.npz" --steps 1 --lr 3e-3 --dump dump.npz
    python3 "$compare" gradients dump.npz "$ref/ref.npz" >said 2>&1 || fail "$name: gradients"

    # ---- merged, and as nodes: what is evaluated is the trained network ----
    # shellcheck disable=SC2086
    built net "$ref/base.onnx" --batch "$batch" --adapter "$ref/start" $options $label --merge
    ran ./net --data "$ref/data.npz" --epochs 20 --lr 3e-3 --export-adapter merged \
        --export merged.onnx
    cmp -s plain/adapter_model.safetensors merged/adapter_model.safetensors \
        || fail "$name: --merge trains other bits"
    for model in trained merged; do
        # shellcheck disable=SC2086
        built "of_$model" "$model.onnx" --batch "$batch" $label
    done
    # shellcheck disable=SC2086
    built again "$ref/base.onnx" --batch "$batch" --adapter end $label
    want=$(evaluated again --data "$ref/data.npz")
    [ -n "$want" ] && [ "$(evaluated of_trained --data "$ref/data.npz")" = "$want" ] \
        || fail "$name: the exported model computes something else"
    evaluated of_merged --data "$ref/data.npz" >one
    echo "$want" >other
    python3 -c "
import re, sys
a, b = (float(re.search(r'loss ([-0-9.e]+)', open(f).read())[1]) for f in ('one', 'other'))
sys.exit(abs(a - b) > 1e-5 * abs(b))" || fail "$name: merged: $(cat one), not $want"
    "$lowerset" inspect merged.onnx >said 2>&1 || fail "$name: inspect"
    ! grep -q lora said || fail "$name: the merged model has adapters"
    passed=$((passed + 1))
}
passed=0 seen=
more=
[ -z "${LS_WHOLE:-}" ] || more=$source/../shared/inputs/wave3/adapters
for of in "$source/tests/data/inputs/wave3/adapters" $more; do
    for folder in "$of"/*; do
        [ -d "$folder" ] || continue
        case " $seen " in *" $(basename "$folder") "*) continue ;; esac
        seen="$seen $(basename "$folder")"
        references "$folder"
    done
done

# ---- adapters that are drawn ----
mlp=$source/tests/data/inputs/wave3/adapters/mlp_patterns
batch=$(python3 "$compare" samples "$mlp/data.npz")
built base "$mlp/base.onnx" --batch "$batch"
built net "$mlp/base.onnx" --batch "$batch" --lora "r=4,alpha=8:a,b" --optimizer sgd
[ "$(evaluated base --data "$mlp/data.npz")" = "$(evaluated net --data "$mlp/data.npz")" ] \
    || fail "adapters with B = 0 change the network"
ran ./net --data "$mlp/data.npz" --steps 1 --lr 0 --export-adapter drawn
python3 "$compare" drawn drawn >said 2>&1 || fail "drawn values"
built net "$mlp/base.onnx" --batch "$batch" --lora "r=4,alpha=8,seed=1:a,b" --optimizer sgd
ran ./net --data "$mlp/data.npz" --steps 1 --lr 0 --export-adapter drawn1
! cmp -s drawn/adapter_model.safetensors drawn1/adapter_model.safetensors || fail "seed="
built net "$mlp/base.onnx" --batch "$batch" --lora "r=4,alpha=0:a,b,c" --optimizer sgd
ran ./net --data "$mlp/data.npz" --epochs 3 --lr 0.5 --save saved
[ "$(evaluated base --data "$mlp/data.npz")" \
    = "$(evaluated net --data "$mlp/data.npz" --resume auto --save saved)" ] \
    || fail "alpha = 0 changes the network"

# ---- every product but the last, where no name is given ----
"$lowerset" plan "$mlp/base.onnx" --batch 4 --plan-effort 1 --lora r=2 --json -q >said 2>&1 \
    || fail "plan --lora"
"$lowerset" compile "$mlp/base.onnx" --batch 4 -O 0 --plan-effort 1 --lora r=2 -o net >said 2>&1 \
    || fail "compile --lora"
grep -q "trains 4 of 10 tensors, 264 of " said || fail "what is trained: $(tail -n 1 said)"

# ---- several programs of one command ----
"$lowerset" check "$mlp/base.onnx" --batch 4 --lora r=2 --elements 4 >said 2>&1 \
    || fail "check --lora"
"$lowerset" sweep "$mlp/base.onnx" --batch 4 --lora r=2 --points 2 --strategies auto >said 2>&1 \
    || fail "sweep --lora"

# ---- refusals ----
refused() {     # CODE WORDS OPTION...
    want=$1 words=$2
    shift 2
    code=0
    "$lowerset" compile "$mlp/base.onnx" --batch 4 -q -o no "$@" >said 2>&1 || code=$?
    [ $code = "$want" ] || fail "exit $code, not $want: $*"
    grep -q -- "$words" said || fail "no '$words': $*"
}
refused 2 "leave one out" --lora r=2 --adapter "$mlp/start"
refused 2 "there are no adapters" --merge
refused 2 "'r=0' is not r=RANK" --lora r=0
refused 2 "'r=1.5' is not r=RANK" --lora r=1.5
refused 2 "'q=1' is not r=, alpha=" --lora r=2,q=1
refused 2 "'dropout=1' is not dropout=P" --lora dropout=1
refused 2 "adapters begin with peft's own initial values" --lora init=pissa
refused 2 "no module that can have an adapter is called 'q_proj'" --lora r=2:q_proj
refused 2 "has rank 13" --lora r=13:a
refused 2 "cannot read '/nowhere/adapter_config.json'" --adapter /nowhere
cp -r "$mlp/start" bad
chmod -R u+w bad
sed -i 's/"r": 4/"r": 5/' bad/adapter_config.json
refused 1 "is 4x12, and the model's module takes 5x12" --adapter bad
printf '{"peft_type": "IA3"}' >bad/adapter_config.json
refused 2 "only LORA is read" --adapter bad
printf '{"peft_type": "LORA", "target_modules": ["a"], "r": 4}' >bad/adapter_config.json
refused 1 "the model has no module for" --adapter bad
printf 'xxxxxxxxxxxxxxxx' >bad/adapter_model.safetensors
refused 1 "damaged safetensors file" --adapter bad
printf '{' >bad/adapter_config.json
refused 2 "not a JSON object" --adapter bad
code=0
./base --data "$mlp/data.npz" --export-adapter no >said 2>&1 || code=$?
[ $code = 2 ] && grep -q "has no adapters" said || fail "--export-adapter of a plain program"
code=0
built net "$mlp/base.onnx" --batch 4 --lora r=2 --merge
./net --data "$mlp/data.npz" --export x.onnx --export-precision f16 >said 2>&1 || code=$?
[ $code = 2 ] && grep -q "merged into weights of float32" said || fail "--export-precision"
echo "$passed adapters of peft"
