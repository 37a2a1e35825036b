#!/bin/sh
# Every option of every command reaches the program or the output: each row of the option table
# (`lowerset help --table`) has a row here, and the command's output with the option differs from
# its output without it. An option without a row fails.
#   sh tests/cli/options.sh BUILD-FOLDER [EVERY]
# With LS_WHOLE a row is run by each of its commands; else by the first of them, and of the others
# by every ninth, which
# changes from row to row.
set -eu
BUILT=$(cd "$1" && pwd)
LOWERSET=$BUILT/lowerset
EVERY=${2:-1}                   # every so many rows, one runs
FIXTURES=$(cd "$(dirname "$0")/../export/fixtures" && pwd)
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
export LOWERSET_PROBE=off LC_ALL=C XDG_CONFIG_HOME=$DIR/config XDG_CACHE_HOME=$DIR/cache \
    TMPDIR=$DIR CC=$DIR/cc
cd "$DIR"
set -f                  # the program expands globs
failed=0 n=0

# A C compiler that keeps its input and makes the program below; under another name it prints that
# name and fails.
cat >cc <<END
#!/bin/sh
same() { sed "s,[^ \\"]*/lowerset-[^ /\\"]*,DIR,g; s,\\.tmp[^ ]*,,g" "\$@"; }
echo "\$0 \$*" | same >>"$DIR/kept"
for f in "\$@"; do
    case \$f in *.c|*.S|*.cu) same "\$f" >>"$DIR/kept" ;; esac
    case \$f in
    *_data.S) cat "\${f%_data.S}.const" "\${f%_data.S}_eval.onnx" | cksum >>"$DIR/kept" ;;
    esac
done
while [ "\$#" -gt 1 ] && [ "\$1" != -o ]; do shift; done
case \$0 in */other) exit 1 ;; esac
[ "\$#" -lt 2 ] || cp "$DIR/trainer" "\$2"
END
# A program that keeps its arguments, and writes the same figures for every step.
cat >trainer <<END
#!/bin/sh
echo "trainer \$*" | sed "s,[^ ]*/lowerset-[^ /]*,DIR,g" >>"$DIR/kept"
while [ "\$#" -gt 0 ]; do
    case \$1 in
    --dump) cp "$FIXTURES/mlp/ref.npz" "\$2" ;;
    --log) printf '{"loss":1,"time":%s}\n' 1 2 3 >"\$2" ;;
    --profile) echo '{"schema":1,"threads":1,"real_bytes":4,"batch":1,"steps":[]}' >"\$2" ;;
    esac
    shift
done
echo '{"touched":8}'
END
chmod +x cc trainer
cp cc other

# makes COMMAND OPTIONS...: all that it prints and writes, without the options' own words, which a
# program stores for people; "measure": a sweep that builds programs
makes() {
    rm -rf kept new
    mkdir new
    command=$1
    shift
    case "$command $*" in
    measure*) set -- sweep "$@" --points 1 --strategies auto --measure -o new/made ;;
    compile*" -o "*|compile*--output*|compile*--emit*|sweep*--output*|calibrate*|model*) set \
        -- "$command" "$@" ;;
    compile*|sweep*) set -- "$command" "$@" -o new/made ;;
    *) set -- "$command" "$@" ;;
    esac
    code=0
    "$LOWERSET" "$@" >made.txt 2>&1 </dev/null || code=$?
    echo "exit $code" >>made.txt
    [ ! -f kept ] || cat kept >>made.txt
    find new -type f | sort | while read -r f; do echo "$f" && cat "$f"; done >>made.txt
    # Programs of a calibration are built in any order.
    [ "$command" != calibrate ] || sort -o made.txt made.txt
    sed 's,[^ "]*/lowerset-[^ /"]*,DIR,g; s/after [0-9]* s$//' made.txt |
        sed '/^ *\.\(about\.optimizer\|about\.loss\|archs\) = "/d'
}

# row COMMANDS OPTION VALUE BASE [OTHER]: with --option=VALUE ("-": a flag) beside options BASE, and
# without it, or with OTHER as its value
: >rows
row() {
    option=$2 value=$3 base=$4 before="$4${5:+ $2 ${5:-}}"
    for c in $1; do
        echo "$c $option" | sed 's/^measure /sweep /' >>rows
        n=$((n + 1))
        [ $((n % EVERY)) = 0 ] || continue
        [ -n "${LS_WHOLE:-}" ] || [ "$c" = "${1%% *}" ] || [ $((n % 9)) = 0 ] || continue
        key=without-$(echo "$c $before" | tr ' /*=' '____')
        # shellcheck disable=SC2086
        [ -f "$key" ] || makes "$c" $before >"$key"
        case $value in
        # shellcheck disable=SC2086
        -) makes "$c" $base "$option" >with ;;
        # shellcheck disable=SC2086
        *) makes "$c" $base "$option" "$value" >with ;;
        esac
        if grep -qa "^exit 2$" with || grep -qa "changes nothing" with || cmp -s "$key" with ||
            { [ "$c" = inspect ] && [ "$option" != --max-errors ] \
            && grep -qa "^exit 3$" with; }; then
            echo "FAIL $c $option $value does nothing, beside $before"
            head -3 with
            failed=1
        fi
    done
}

"$LOWERSET" help --table | sort -u >table

# Files of the tests, and small networks of the zoo.
cp "$FIXTURES/mlp/data.npz" data.npz
cp "$FIXTURES/mlp/ref.npz" ref.npz
cp "$FIXTURES/cnn/ts.onnx" cnn.onnx
"$LOWERSET" model cnn --size=12 --width=4 --batch=2 -o zoo.onnx >/dev/null
"$LOWERSET" model unet --size=32 --width=4 --depth=1 --batch=0 -o parted.onnx >/dev/null
cp "$FIXTURES/../../data/faults/statistics-parts/covariance.onnx" mixed.onnx
cp "$FIXTURES/gpt_tied/ts.onnx" gpt.onnx
cp "$FIXTURES/../../data/inputs/wave3/adapters/mlp_patterns/base.onnx" lora.onnx
cp -r "$FIXTURES/../../data/inputs/wave3/adapters/mlp_patterns/start" adapter
cp "$FIXTURES/layernorm/dyn.onnx" tied.onnx
sed 's/Relu/Rexu/g; s/Gemm/Gexx/g' cnn.onnx >bad.onnx
"$LOWERSET" model mlp --batch=0 --width=8 --size=4 -o net.onnx
# Protobuf merges messages that are written one after the other: graph { output { name: "relu1" } }.
{ cat net.onnx && printf '\072\011\142\007\012\005relu1'; } >two.onnx
"$LOWERSET" model mlp --batch=0 --width=8 --size=4 --dropout=0.5 -o drop.onnx
"$LOWERSET" model mlp --batch=0 --width=4 --size=4 --depth=24 -o deep.onnx
"$LOWERSET" model unet --batch=0 --width=2 --depth=1 --size=8 --bias=on -o normed.onnx
"$LOWERSET" model mlp --batch=0 --width=1024 --size=16 --depth=1 -o wide.onnx
"$LOWERSET" model unet --width=2 --depth=1 --size=8 --batch=2 --classes=3 -o unet.onnx
EFFORT="--plan-effort 1"
OPEN="net.onnx $EFFORT"
NET="net.onnx --batch 2 $EFFORT"
CNN="cnn.onnx --batch 2 $EFFORT"
TIGHT="cnn.onnx --batch 2 --budget 80% $EFFORT"
GPU="$CNN --target cuda --precision tf32"
BUILD="compile plan check measure"

# ---- the model, the loss, the update
row "$BUILD" --loss mse "$NET"
row "compile" --loss mse@2 "$NET" mse
row "compile" --loss huber:delta=0.5 "$NET" huber
row "compile" --loss smooth_l1:beta=0.5 "$NET" smooth_l1
row "compile" --loss nll "$NET" ce
row "compile" --loss kl "$NET" mse
row "compile" --loss soft_ce "$NET" mse
row "compile" --loss cosine "$NET" mse
row "compile" --loss ce:y,mse:relu1 "two.onnx --batch 2 $EFFORT" ce:y,mse:relu1@2
row "compile" --loss triplet:relu1,relu1,relu1 "two.onnx --batch 2 $EFFORT" \
    triplet:relu1,relu1,relu1@margin=2
row "$BUILD" --optimizer adam "$NET"
row "$BUILD" --ema 0.9 "$NET"
row "$BUILD" --no-decay none "$NET --optimizer adamw -d all"
row "compile check" --lr 0.125 "$NET --budget min"
row "compile" --schedule cosine "$NET"
row "$BUILD" --label-smoothing 0.25 "$NET -d all"
row "$BUILD" --ignore-index 3 "$NET"
row "$BUILD" --class-weights 1,2,3,4,5,6,7,8,9,10 "$NET -d all"
row "$BUILD" --class-axis 2 "unet.onnx $EFFORT"
row "$BUILD" --label-shape 2x17 "gpt.onnx --batch 2 $EFFORT"
row "$BUILD" --loss-input relu1 "two.onnx --batch 2 $EFFORT"
row "$BUILD" --clip-norm 1.5 "$NET"
row "$BUILD" --clip-value 1.5 "$NET -d all"
row "$BUILD" --loss-scale dynamic "$NET"
row "$BUILD" --grads per-sample "$NET"
row "$BUILD" --sample-norms tiles \
    "drop.onnx --batch 2 --randomness same --grads per-sample-norm $EFFORT" terms
row "$BUILD" --randomness same "drop.onnx --batch 2 --grads per-sample $EFFORT" different
row "compile plan measure" --dp clip=1,noise=1.5,delta=1e-5 "$NET"
row "compile plan measure" --ensemble 3 "$NET"
row "compile plan measure" --ensemble-batches each "$NET --ensemble 3" shared
row "compile plan" --ensemble-lanes 2 "$NET --ensemble 3"
row "$BUILD" --accumulate 3 "$NET"
row "$BUILD" --sums running "$NET --accumulate 3"
row "$BUILD" --microbatches 2 "$NET"
row "$BUILD" --mixed-parts own "mixed.onnx --batch 8 --microbatches 2 $EFFORT"
row "compile plan" --stages 2 "$NET"
row "compile plan" --order zb "$NET --stages 2 --microbatches 2"
row "plan" --link none "$NET --stages 2 --microbatches 2"
row "compile plan" --ranks 2 "$NET"
row "compile plan" --recompute except-last "$CNN --microbatches 2"
row "$BUILD" --label target "$NET -d all"
row "compile" --label target "two.onnx --batch 2 $EFFORT --loss ce:y,mse:relu1"
row "$BUILD" --freeze "fc1*" "$NET"
row "$BUILD" --train "fc1*" "$NET --freeze *"
row "$BUILD" --train-only "fc1*" "$NET" "fc2*"
row "$BUILD" --stop-gradient relu1 "$NET"
row "$BUILD" --tie - "tied.onnx $EFFORT"
row "$BUILD" --lora r=2:a "lora.onnx --batch 2 $EFFORT" r=3:a
row "$BUILD" --adapter adapter "lora.onnx --batch 2 $EFFORT"
row "$BUILD" --quantize-frozen nf4 "lora.onnx --batch 2 --lora r=2:a $EFFORT" int8
row "compile" --merge - "lora.onnx --batch 2 --lora r=2:a $EFFORT"
row "compile" --lora r=2,alpha=4:a "lora.onnx --batch 2 $EFFORT" r=2,alpha=5:a
row "inspect" --lora r=2:a lora.onnx
row "inspect" --adapter adapter lora.onnx
row "inspect" --quantize-frozen nf4:a "lora.onnx --lora r=2:a"
row "$BUILD" --head-chunks 2 "$NET"
row "$BUILD" --head-gradient parts "gpt.onnx --batch 2 --head-chunks 2 $EFFORT" whole
row "$BUILD" --tiles 2@1B "zoo.onnx $EFFORT"
row "compile plan check" --no-tiles - "parted.onnx --batch 8 --plan-effort 1 --budget 1240KiB"
row "$BUILD" --segments - "gpt.onnx --batch 2 $EFFORT"
row "$BUILD" --bn frozen "$CNN"
row "$BUILD" --drop-bias - "normed.onnx --batch 2 --plan-effort 1"
row "compile" --bn-var torch "$CNN -q"        # the option also silences a warning
row "$BUILD" --bn-var torch "$CNN -d all" onnx
row "$BUILD" --dropout off "drop.onnx --batch 2 $EFFORT"
row "$BUILD" --batch 3 "$OPEN" 2
row "$BUILD" --dim N=3 "$OPEN" N=2
row "$BUILD" --shape x=3x1x4x4 "$OPEN" x=2x1x4x4
row "$BUILD" --precision f64 "$NET"
row "compile check" --bf16-sums pairs "$NET --precision bf16"
row "compile measure" --bf16-sums tiles "$NET --precision bf16" pairs
row "compile plan" --eval-precision f32 "$NET --precision bf16"
row "$BUILD" --precision-of '*=f32' "$NET --precision bf16"
# The updates of ranks are a graph of their own, in which nothing has that name.
row "compile" --precision-of 'y=f32' "$NET --precision bf16 --microbatches 2 --ranks 2"
# The value matters, not only the option's presence.
row "compile" --optimizer adam "$NET" adam:beta1=0.5
row "compile" --lr 0.125 "$NET" 0.25
row "compile" --loss-scale 1024 "$NET" 2048
row "compile" --loss-scale dynamic "$NET" torch
row "compile" --loss-scale dynamic "$NET" dynamic:init=1024
row "compile" --loss-scale dynamic "$NET" dynamic:period=7
row "compile" --loss-scale dynamic "$NET" dynamic:factor=4
row "compile" --loss-scale dynamic "$NET" dynamic:min=2
row "compile" --loss-scale torch "$NET" torch:backoff=0.25
row "compile" --loss-scale none "$NET --precision f16"
row "compile" --schedule cosine "$NET" cosine:min=0.5
row "compile" --label-smoothing 0.25 "$NET" 0.5
row "compile" --ignore-index 3 "$NET" 4
row "compile" --class-weights 1,2,3,4,5,6,7,8,9,10 "$NET" 1,2,3,4,5,6,7,8,9,11
row "compile" --clip-norm 1.5 "$NET" 2.5
row "compile" --clip-value 1.5 "$NET" 2.5
row "compile" --grads per-sample "$NET" per-sample-norm
row "compile" --dp clip=1,noise=1.5,delta=1e-5 "$NET" clip=1,noise=1.5,delta=1e-5,expected-batch=7
row "compile" --accumulate 3 "$NET" 2
row "compile" --microbatches 2 "drop.onnx --batch 4 $EFFORT" 4
row "compile" --stages 2 "drop.onnx --batch 4 --microbatches 2 $EFFORT" 3
row "compile" --order zb "$NET --stages 2 --microbatches 2" gpipe
row "compile" --ranks 2 "drop.onnx --batch 4 $EFFORT" 4
row "compile plan" --ranks any "drop.onnx --batch 4 --microbatches 4 $EFFORT" 4
row "compile" --comm mpi "drop.onnx --batch 4 --ranks 2 --emit=c $EFFORT" sockets
row "compile" --recompute all "$CNN --microbatches 2" except-last
row "compile" --recompute all "$CNN --microbatches 2" none
row "compile" --label target "$NET" aim
row "compile" --freeze "fc1*" "$NET" "fc2*"
row "compile" --dropout off "drop.onnx --batch 2 $EFFORT" on
row "inspect" --freeze "fc1*" net.onnx
row "inspect" --train "fc1*" "net.onnx --freeze *"
row "inspect" --train-only "fc1*" net.onnx
row "inspect" --stop-gradient relu1 net.onnx
row "inspect" --tie - tied.onnx
row "inspect" --bn frozen cnn.onnx
row "inspect" --batch 3 net.onnx 2
row "inspect" --dim N=3 net.onnx N=2
row "inspect" --shape x=3x1x4x4 net.onnx x=2x1x4x4

# ---- the search for a plan
row "compile plan" --budget min "$CNN"
row "check" --budget 90% "$CNN" 100%
row "plan" --strategy chen "$NET"
row "plan" --budget 90% "$CNN" 100%
row "plan" --recompute none "$CNN --budget 92%" cheap
row "compile check" --strategy none "$CNN"
row "compile plan check" --budget-of store-all "$TIGHT"
row "sweep" --budget-of store-all "$NET --points 2"
row "$BUILD" --keep "*" "$CNN"
row "$BUILD" --forget "*" "$CNN"
row "$BUILD" --recompute all "$CNN"
row "sweep" --plan-effort 1 "net.onnx --batch 2 --from 90% --points 2"
row "compile plan check" --plan-effort 1 "net.onnx --batch 2 --budget min"
row "sweep" --plan-time 0.0001 "gpt.onnx --batch 2 --plan-effort 5 --points 2 --strategies auto"
row "compile plan check" --plan-time 0.0001 "gpt.onnx --batch 2 --plan-effort 5 --budget 60%"
row "compile" --prove - "gpt.onnx --batch 2 $EFFORT --budget min -v -q"
row "plan check" --prove - "gpt.onnx --batch 2 $EFFORT --budget min"
row "sweep" --prove - "gpt.onnx --batch 2 $EFFORT --points 2 --strategies auto --from 50%"
row "$BUILD" --no-inplace - "$CNN"
row "$BUILD" --no-alternatives - "$CNN"
row "$BUILD" --store-gradients - "wide.onnx --batch 2 $EFFORT"
"$LOWERSET" plan $NET --graph-json graph.json --plan-json plan.json >made.txt
"$LOWERSET" plan $NET --json >plan-json.txt
row "plan" --max-batch - "$OPEN --budget 64K"
row "plan sweep" --no-offsets - "graph.json $EFFORT"
row "sweep" --from 50% "$NET --points 2" 60%
row "sweep" --to 50% "$NET --points 2" 60%
row "sweep" --points 2 "$NET" 3
row "sweep" --strategies auto "$NET"
row "sweep" --table - "$NET"
row "sweep" --measure - "$NET --points 1"

# ---- outputs
row "plan" --json - "$NET"
row "inspect" --json - "net.onnx --batch 2"
row "check" --json - "$NET"
"$LOWERSET" plan $CNN --plan-json easy.json >made.txt 2>&1
row "plan" --tolerance 900% "$CNN --budget min --against easy.json"
row "plan" --against plan.json "$NET"
row "plan" --markdown - "$CNN --against easy.json"
row "plan" --update - "$CNN --budget min --against easy.json"
row "plan" --graph-json new/f.json "$NET"
row "plan" --plan-json new/f.json "$NET"
row "plan" --timeline new/f.csv "$NET"
row "plan" --report new/f.html "$NET"
row "plan" --graph new/f.dot "$NET"
row "check" --graph graph.json plan.json
row "check" --data data.npz "$NET"
row "check" --elements 7 "$NET" 8
row "check" --against ref.npz "$NET --data data.npz"
row "compile plan check measure" --verbose - "$NET"
row "inspect" --verbose - deep.onnx
row "$BUILD" --quiet - "$CNN"
row "$BUILD inspect" --max-errors 1 "bad.onnx --batch 2"
row "$BUILD" --dump import "$NET"
row "compile" --output new/f "$NET"
row "sweep" --output new/f "$NET --points 1 --strategies auto"
row "compile" --emit obj "$NET"
row "compile" --emit lib "$NET --dry-run"
row "compile" --prefix own "$NET --emit lib --dry-run"
row "compile" --save-temps new/f "$NET"
row "compile" --dry-run - "$NET"

# ---- the machine
row "$BUILD" --machine h200 "$NET"
row "compile plan" --threads 3 "$NET" 1
row "compile" --machine h200 "$NET" l4
row "$BUILD" --target cuda "$NET"
row "compile check measure" -march x86-64 "$NET"
row "compile check measure" --opt 1 "$NET" 2
row "compile check measure" --cc "$DIR/other" "$NET"
# A profile by which every node takes a second.
"$LOWERSET" plan $NET -d all | sed '/^net.onnx/,$d' | awk '
/^#/ { n = 0; next }
{ what = $3; for (i = 3; i < NF; i++) if ($i == "=") what = $(i + 1)
  name = $NF ($2 == "forward" ? "" : " " $2); sizes = ""
  split($0, half, " : "); sub(/ *#.*/, "", half[2]); m = split(half[2], type, ", ")
  for (i = 1; i <= m; i++) { k = 1; sub(/.* /, "", type[i]); d = split(type[i], dim, "x")
      for (j = 1; j <= d; j++) k *= dim[j] == "scalar" ? 1 : dim[j]
      sizes = sizes (i > 1 ? "," : "") k }
  step[n++] = "{\"name\":\"" name "\",\"op\":\"" what "\",\"node\":" n ",\"ns\":1e9," \
      "\"elements\":[" sizes "]}" }
END { printf "{\"schema\":1,\"threads\":1,\"real_bytes\":4,\"batch\":2,\"steps\":["
      for (i = 0; i < n; i++) printf "%s%s", i ? "," : "", step[i]; print "]}" }' >profile.json
row "$BUILD" --costs profile.json "$NET"

# ---- NVIDIA GPUs: a device, a cuDNN and a compiler that do not exist
mkdir lib
ln -s "$BUILT/tests/libcuda-fake.so" lib/libcuda.so.1
export LD_LIBRARY_PATH="$DIR/lib:${LD_LIBRARY_PATH:-}" NVCC=$DIR/cc
export LOWERSET_CUDNN="$BUILT/tests/libcudnn-fake.so" FAKE_CUDNN_NO_DRIVER=1
if "$LOWERSET" targets | grep -q "builds none"; then
    echo "this lowerset builds nothing for NVIDIA GPUs: their options are not looked at"
    gpu="arch|workspace|no-epilogues|no-overlap|compiled-engines|allow-nondeterministic|nvcc"
    grep -Ee " --($gpu)$" table >>rows
else
    row "$BUILD" --arch 80 "$GPU"
    row "compile check measure" --arch 80 "$GPU --machine h200"
    row "$BUILD" --no-epilogues - "$GPU"
    row "compile plan check" --no-overlap - "$GPU"
    row "$BUILD" --compiled-engines - "$GPU"
    row "compile check measure" --nvcc "$DIR/other" "$NET --target cuda"
    export FAKE_CUDNN_ENGINES=93 XDG_CACHE_HOME=$DIR/cache93
    row "$BUILD" --allow-nondeterministic - "$CNN --target cuda"
    row "$BUILD" --workspace 1KiB "$CNN --target cuda"
    unset FAKE_CUDNN_ENGINES
fi

# ---- networks of the zoo
MLP="mlp --width=8 --size=4 -o new/m"
GPT="gpt --depth=1 --width=8 --heads=2 --vocab=9 -o new/m"
UNET="unet --width=2 --size=32 -o new/m"
row "model" --batch 3 "$MLP" 4
row "model" --seed 3 "$MLP" 4
row "model" --weights none "$MLP"
row "model" --dropout 0.5 "$MLP"
row "model" --depth 3 "$MLP" 4
row "model" --channels 2 "$MLP" 4
row "model" --classes 3 "$MLP" 4
row "model" --size 5 "mlp --width=8 -o new/m"
row "model" --width 5 "mlp --size=4 -o new/m"
row "model" --heads 4 "gpt --depth=1 --width=8 --vocab=9 --context=4 -o new/m"
row "model" --vocab 4 "gpt --depth=1 --width=8 --heads=2 --context=4 -o new/m"
row "model" --context 4 "$GPT"
row "model" --head untied "$GPT"
row "model" --patch 4 "vit --width=8 --depth=1 --heads=2 --size=16 -o new/m" 8
row "model" --stem cifar "resnet18 --width=2 --size=32 -o new/m"
row "model" --up bilinear "$UNET"
row "model" --pad valid "unet --width=2 --depth=1 --size=32 -o new/m"
row "model" --bias on "$UNET"
row "model" --bn on "vgg16 --width=1 --size=32 --weights=none -o new/m"
row "model" -v - "$MLP"
row "model" -o new/n "mlp --width=8 --size=4"
row "model" --list - ""

# ---- the accountant of private training
DP="--sample-rate 0.01 --steps 100 --delta 1e-5"
PASSES="--noise 1 --delta 1e-5"
row "dp" --sample-rate 0.01 "--steps 100 $PASSES" 0.02
row "dp" --steps 100 "--sample-rate 0.01 $PASSES" 200
row "dp" --noise 1 "$DP" 2
row "dp" --epsilon 1 "$DP" 2
row "dp" --delta 1e-5 "--sample-rate 0.01 --steps 100 --noise 1" 1e-6
row "dp" --samples 1000 "--batch 10 --epochs 2 $PASSES" 2000
row "dp" --batch 10 "--samples 1000 --epochs 2 $PASSES" 20
row "dp" --epochs 2 "--samples 1000 --batch 10 $PASSES" 3
row "dp" --json - "$DP --noise 1"

# ---- data sets
PICTURES=$(cd "$(dirname "$0")/../data/pictures" && pwd)
printf 'a,b,c\n1,red,x\n2,blue,y\n,red,x\n' >t.csv
printf 'to be, or not to be' >t.txt
printf '01234567' >t.bin
printf '{"input_ids": [1, 2]}\n{"input_ids": [3]}\n{"input_ids": [4]}\n' >t.jsonl
mkdir bad
cp "$PICTURES/photos/0.png" bad
: >bad/1.png
TABLE="pack t.csv -o new/f -q --missing mean"
"$LOWERSET" data pack t.csv -o like.lsd -q --missing mean --leave-out a
row "data" --label-column c "$TABLE" a
row "data" --categories a "$TABLE"
row "data" --leave-out a "$TABLE"
row "data" --one-hot - "$TABLE"
row "data" --missing 7 "pack t.csv -o new/f -q" mean
row "data" --like like.lsd "$TABLE"
row "data" --input-name n "$TABLE"
row "data" --label-name n "$TABLE --label-column c"
row "data" --text characters "pack t.txt -o new/f -q"
row "data" --raw uint32 "pack t.bin -o new/f -q"
row "data" --length 5 "pack t.jsonl -o new/f -q"
row "data" --pack - "pack t.jsonl -o new/f -q"
row "data" --output new/f "pack t.txt -q"
row "data" --quiet - "pack t.txt -o new/f"
row "data" --json - "show like.lsd"
row "data" --check - "show like.lsd"
if "$LOWERSET" data pack "$PICTURES/photos" -o photos.lsd -q; then
    PHOTOS="pack $PICTURES/photos -o new/f -q"
    row "data" --size 4 "$PHOTOS" 3x5
    row "data" --crop 2 "$PHOTOS" 2x3
    row "data" --channels 1 "$PHOTOS"
    row "data" --masks "$PICTURES/masks" "$PHOTOS"
    row "data" --skip-bad - "pack bad -o new/f -q"
    row "data" --threads 1 "$PHOTOS --json" 2
else
    for o in size crop channels masks skip-bad threads; do echo "data --$o" >>rows; done
fi

row "calibrate" --threads 1 "--quick -o new/f" 2
row "calibrate" --verbose - "--quick -o new/f"
row "calibrate" --output new/f "--quick"
row "calibrate" --quick - "-o new/f"

sort -u rows | comm -23 table - >missing
while read -r line; do
    echo "FAIL $line has no row here"
    failed=1
done <missing
sort -u rows | comm -13 table - >stale
while read -r line; do
    echo "FAIL $line has a row and is no option"
    failed=1
done <stale
[ "$failed" = 0 ] && echo "$n rows"
exit "$failed"
