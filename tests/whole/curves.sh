#!/bin/sh
# Whole training runs on real data beside recorded ones: models/CURVES.json holds losses of three
# models in float32 and float64. Rounding makes float32 runs drift apart, so they are held to the
# recorded ones only for as many steps as the two recorded runs stay together, then by the mean of
# the last 100 losses; the float64 runs are held to the recorded float64 losses to the end.
# Without LS_WHOLE one of the models: the others are in the test of references, for three steps.
#   sh tests/whole/curves.sh BUILD-FOLDER INPUTS-FOLDER
set -eu
BUILD=$(cd "$1" && pwd)
curves=$2/models/CURVES.json
if [ ! -f "$curves" ]; then
    echo "skipped: no $curves"
    exit 77
fi
INPUTS=$(cd "$2" && pwd)
curves=$INPUTS/models/CURVES.json
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK"
failed=0

for name in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte \
    t10k-labels-idx1-ubyte; do
    gunzip -c "$INPUTS/mnist/$name.gz" >"$name"
done

# Compile options, then the trainer's: learning rates and sizes of batches are those of the
# recorded runs.
compile_options() {
    case $1 in
    tiny_gpt) echo "--loss ce --optimizer adam:eps=1e-8 --lr 1e-3" ;;
    seed_autoencoder) echo "--loss mse --optimizer adam:eps=1e-8 --lr 1e-3" ;;
    jmp_cnn_dynamic) echo "--batch 64 --loss ce --optimizer sgd:momentum=0.9 --lr 0.05" ;;
    esac
}
run_options() {
    case $1 in
    tiny_gpt) echo "--data $INPUTS/text/tinyshakespeare.txt --steps 600" ;;
    seed_autoencoder) echo "--data train-images-idx3-ubyte --label-from x --steps 600" ;;
    jmp_cnn_dynamic) echo "--data train-images-idx3-ubyte,train-labels-idx1-ubyte --drop-last" \
        "--epochs 1
        --val t10k-images-idx3-ubyte,t10k-labels-idx1-ubyte" ;;
    esac
}

# recorded MODEL TYPE: lines "STEP LOSS", "mean LOSS", "accuracy PART" of a run, from the JSON, a
# field a line.
recorded() {
    awk -v model="$1" -v type="$2" -F'[":, ]+' '
        $2 == "model" { mine = $3 == model; on = 0 }
        $2 == "float32" || $2 == "float64" { on = mine && $2 == type }
        on && $2 ~ /^[0-9]+$/ { print $2, $3 }
        on && $2 == "mean_loss_last_100_steps" { print "mean", $3 }
        on && $2 == "test_accuracy" { print "accuracy", $3 }' "$curves"
}

# logged FILE: the same lines of a run of lowerset; steps are counted from 0 there.
logged() {
    awk -F'[":,{}]+' '
        $2 == "step" {
            for (k = 2; k < NF; k += 2) field[$k] = $(k + 1)
            if ("loss" in field) { loss[n++] = field["loss"]; print n - 1, field["loss"] }
            if ("val_accuracy" in field) accuracy = field["val_accuracy"]
            delete field
        }
        END {
            for (k = n - 100; k < n; k++) sum += loss[k]
            print "mean", sum / 100
            if (accuracy != "") print "accuracy", accuracy
        }' OFMT=%.12g CONVFMT=%.12g "$1"
}

# compare MODEL RECORDED32 RECORDED64 OURS32 OURS64: the table of a model; fails when a figure
# is outside.
#
# Tolerances, relative: float64 1e-5 throughout. float32: 20 times the distance of the two recorded
# runs and at least 1e-5, up to the first step where that distance exceeds 1e-4; steps from there on
# are shown and not judged, the mean of the last 100 losses may be off by 10 %, the accuracy by 1 %.
compare() {
    name=$1
    shift
    awk -v model="$name" '
        function abs(x) { return x < 0 ? -x : x }
        FNR == 1 { part++ }
        { value[part, $1] = $2 }
        part == 1 { name[++n] = $1 }
        END {
            for (k = 1; k <= n; k++) {
                what = name[k]
                a = value[1, what]; b = value[2, what]; c = value[3, what]; d = value[4, what]
                spread = abs(a - b) / b
                if (what ~ /^[0-9]+$/ && spread > 1e-4) drifted = 1
                tol = spread * 20 > 1e-5 ? spread * 20 : 1e-5
                if (drifted) tol = what == "mean" ? 0.1 : what == "accuracy" ? 0.01 : 0
                e32 = abs(c - b) / b
                e64 = abs(d - b) / b
                bad = c == "" || d == "" || (tol > 0 && !(e32 <= tol)) || !(e64 <= 1e-5)
                allowed = "(drifted)"
                if (tol > 0) allowed = sprintf("%.0e", tol)
                verdict = bad ? "FAIL" : "ok"
                printf("%-16s %-8s %11.8f %11.8f  %11.8f %8.1e %-9s %11.8f %8.1e %s\n", model,
                    what, a, b, c, e32, allowed, d, e64, verdict)
                failed += bad
            }
            exit(n < 10 || failed > 0)
        }' "$@"
}

printf '%-16s %-8s %11s %11s  %11s %8s %-9s %11s %8s\n' model step recorded32 recorded64 \
    float32 "off by" \
    allowed float64 "off by"
for model in ${LS_WHOLE:+tiny_gpt} seed_autoencoder ${LS_WHOLE:+jmp_cnn_dynamic}; do
    for bits in 32 64; do
        recorded "$model" "float$bits" >"recorded$bits"
        # shellcheck disable=SC2046
        "$BUILD/lowerset" compile "$INPUTS/models/$model.onnx" -q -O2 --plan-effort=1 \
            --precision "f$bits" \
            $(compile_options "$model") -o run
        # shellcheck disable=SC2046
        ./run $(run_options "$model") --no-shuffle --progress none --log log.jsonl >run.out
        logged log.jsonl >"logged$bits"
    done
    compare "$model" recorded32 recorded64 logged32 logged64 || failed=1
done
[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
