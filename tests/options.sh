#!/bin/sh
# Every option of every command reaches the program or the output: each row of the option table
# (lowerset help --table) has a row here, and what the command makes with the option is not what it
# makes without it. An option without a row fails.
#   sh tests/options.sh BUILD-FOLDER
set -eu
LOWERSET=$(cd "$1" && pwd)/lowerset
FIXTURES=$(cd "$(dirname "$0")/export/fixtures" && pwd)
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
export LC_ALL=C XDG_CONFIG_HOME=$DIR/config TMPDIR=$DIR CC=$DIR/cc
cd "$DIR"
failed=0 n=0

# A C compiler that keeps what it is given to compile and makes the program below of it; with
# another name it says that, and no.
cat >cc <<END
#!/bin/sh
same() { sed "s,[^ \\"]*/lowerset-[^ /\\"]*,DIR,g; s,\\.tmp[^ ]*,,g" "\$@"; }
echo "\$0 \$*" | same >>"$DIR/kept"
for f in "\$@"; do case \$f in *.c|*.S|*.cu) same "\$f" >>"$DIR/kept" ;; esac; done
while [ "\$#" -gt 1 ] && [ "\$1" != -o ]; do shift; done
case \$0 in */other) exit 1 ;; esac
[ "\$#" -lt 2 ] || cp "$DIR/trainer" "\$2"
END
# A program that keeps what it is told, and writes what every step is said to have made.
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

# makes COMMAND OPTIONS...: all that it says and writes; "measure": a sweep that builds programs
makes() {
    rm -rf kept new
    mkdir new
    command=$1
    shift
    case "$command $*" in
    measure*) set -- sweep "$@" --points 1 --strategies auto --measure -o new/made ;;
    compile*-o*|compile*--output*|compile*--emit*|calibrate*-o*|model*) set -- "$command" "$@" ;;
    compile*|sweep*) set -- "$command" "$@" -o new/made ;;
    *) set -- "$command" "$@" ;;
    esac
    code=0
    "$LOWERSET" "$@" >made.txt 2>&1 </dev/null || code=$?
    echo "exit $code" >>made.txt
    [ ! -f kept ] || cat kept >>made.txt
    find new -type f | sort | while read -r f; do echo "$f" && cat "$f"; done >>made.txt
    sed 's/after [0-9]* s$//' made.txt
}

# row COMMANDS OPTION VALUE BASE: with --option=VALUE ("-": a flag) beside options BASE
: >rows
row() {
    option=$2 value=$3 base=$4
    for c in $1; do
        echo "$c $option" | sed 's/^measure /sweep /' >>rows
        n=$((n + 1))
        key=without-$(echo "$c $base" | tr ' /*=' '____')
        # shellcheck disable=SC2086
        [ -f "$key" ] || makes "$c" $base >"$key"
        case $value in
        # shellcheck disable=SC2086
        -) makes "$c" $base "$option" >with ;;
        # shellcheck disable=SC2086
        *) makes "$c" $base "$option" "$value" >with ;;
        esac
        if grep -qa "^exit 2$" with || cmp -s "$key" with; then
            echo "FAIL $c $option $value does nothing, beside $base"
            head -3 with
            failed=1
        fi
    done
}

# Files of the tests, and small networks of the zoo.
cp "$FIXTURES/mlp/data.npz" data.npz
cp "$FIXTURES/mlp/ref.npz" ref.npz
cp "$FIXTURES/cnn/ts.onnx" cnn.onnx
cp "$FIXTURES/frozen/ts.onnx" frozen.onnx
cp "$FIXTURES/gpt_tied/ts.onnx" gpt.onnx
"$LOWERSET" model mlp --batch=0 --width=8 --size=4 -o net.onnx
"$LOWERSET" model mlp --batch=0 --width=8 --size=4 --dropout=0.5 -o drop.onnx
"$LOWERSET" model mlp --batch=0 --width=512 --size=8 --weights=none -o wide.onnx
"$LOWERSET" model unet --width=4 --depth=2 --size=16 --batch=2 --classes=3 -o unet.onnx
EFFORT="--plan-effort 5"
NET="net.onnx --batch 2 $EFFORT"
CNN="cnn.onnx --batch 2 $EFFORT"
TIGHT="cnn.onnx --batch 2 --budget 80% $EFFORT"
ALL="compile plan check measure"

# ---- the model, the loss, the update
row "$ALL" --loss mse "$NET"
row "$ALL" --optimizer adam "$NET"
row "compile check" --lr 0.125 "$NET"
row "compile" --schedule cosine "$NET"
row "compile check measure" --label-smoothing 0.25 "$NET"
row "$ALL" --ignore-index 3 "$NET"
row "$ALL" --class-weights 1,2,3,4,5,6,7,8,9,10 "$NET -d all"
row "$ALL" --class-axis 2 "unet.onnx $EFFORT"
row "$ALL" --loss-input relu1 "$NET"
row "$ALL" --clip-norm 1.5 "$NET"
row "compile check measure" --clip-value 1.5 "$NET"
row "$ALL" --accumulate 3 "$NET"
row "$ALL" --label target "$NET -d all"
row "$ALL inspect" --freeze "fc1*" net.onnx
row "$ALL inspect" --train "fc1*" "net.onnx --freeze *"
row "$ALL inspect" --tie - gpt.onnx
row "$ALL inspect" --bn frozen "cnn.onnx"
row "$ALL" --bn-var torch "cnn.onnx --bn-var onnx -d all"
row "$ALL" --dropout off "drop.onnx --batch 2 -d all"
row "$ALL inspect" --batch 3 "net.onnx"
row "$ALL inspect" --dim N=3 "net.onnx"
row "$ALL inspect" --shape x=3x1x4x4 "net.onnx"
row "$ALL" --precision f64 "$NET"
# ---- the search for a plan
row "plan" --budget 90% "$NET"
row "compile check" --budget 80% "$CNN"
row "plan" --strategy chen "$NET"
row "compile check" --strategy none "$TIGHT"
row "$ALL" --budget-of store-all "$TIGHT"
row "$ALL" --keep "*" "$CNN"
row "$ALL" --forget "*" "$CNN"
row "$ALL" --recompute all "$CNN"
row "$ALL" --plan-effort 1 "cnn.onnx --batch 2"
row "$ALL" --plan-time 0.000001 "cnn.onnx --batch 2"
row "$ALL" --prove - "$TIGHT"
row "$ALL" --no-inplace - "$CNN"
row "$ALL" --no-alternatives - "$CNN"
row "$ALL" --store-gradients - "wide.onnx --batch 2 $EFFORT"
row "plan" --max-batch - "net.onnx --budget 64K $EFFORT"
[ "$failed" = 0 ] && echo "$n rows"
exit "$failed"
