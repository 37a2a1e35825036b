#!/bin/sh
# Wrong command lines of lowerset end with exit 2 (1 for files) and a sentence, before any planning.
#   sh tests/cli/usage.sh BUILD-FOLDER
set -eu
LOWERSET=$1/lowerset
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
export XDG_CONFIG_HOME=$DIR/config
cd "$DIR"
failed=0 n=0

# refuses CODE WORDS OPTIONS...: this exit code and these words, and no plan
refuses() {
    want=$1 words=$2 code=0
    shift 2
    n=$((n + 1))
    "$LOWERSET" "$@" >out 2>&1 </dev/null || code=$?
    if [ "$code" != "$want" ] || ! grep -qF -- "$words" out || grep -q 'planning [0-9]' out; then
        echo "FAIL $*: exit $code and not $want, or no '$words'"
        cat out
        failed=1
    fi
}
# On the model, with -v, which says when the planning begins.
compile() { want=$1 words=$2; shift 2; refuses "$want" "$words" compile net.onnx -v -n "$@"; }
plan() { want=$1 words=$2; shift 2; refuses "$want" "$words" plan net.onnx -v "$@"; }

"$LOWERSET" model mlp --batch=0 --width=8 --size=4 -o net.onnx

# Rates, schedules and optimizers of the trainer.
for lr in nan -0.1 abc inf 1e39; do compile 2 "--lr: '$lr'" --lr=$lr; done
refuses 2 "--lr: 'abc'" check net.onnx -v --lr abc
for s in poly step cosine:min=2 linear:warmup=1.5 constant:gamma=1; do
    compile 2 "--schedule=$s" --schedule $s
done
compile 2 "beta1=1: must be a number of at least 0 and below 1" --optimizer adam:beta1=1
compile 2 "momentum=1.5" --optimizer sgd:momentum=1.5
plan 2 "momentum=nan" --optimizer sgd:momentum=nan
compile 2 "lr=-1" --optimizer adam:lr=-1
compile 2 "eps=x" --optimizer adam:eps=x
plan 2 "sgd takes no 'beta1'" --optimizer sgd:beta1=0.9
plan 2 "adam takes no 'momentum'" --optimizer adam:momentum=0.9
plan 2 "adam takes no 'nesterov'" --optimizer adam:nesterov
plan 2 "none takes no 'lr'" --optimizer none:lr=1
plan 2 "wd is given twice" --optimizer sgd:wd=0.1,wd=0.2
plan 2 "nesterov needs a momentum" --optimizer sgd:nesterov
plan 2 "sgd takes no ''" --optimizer sgd:
plan 2 "'lambda' is not one of sgd adam adamw lion" --optimizer lambda
plan 2 "--ema: '1'" --ema 1
plan 2 "without an optimizer no weight changes" --ema 0.9 --optimizer none
plan 2 "keep an average of their own" --ema 0.9 --optimizer schedule-free-sgd
plan 2 "nothing decays without wd=" --no-decay none
plan 3 "no trained parameter is called 'nobody'" --batch 2 --no-decay nobody --optimizer adamw
plan 2 "clip has a meaning with apex alone" --optimizer lamb:clip=1
plan 2 "say lamb:apex,clip=2" --optimizer lamb:apex --clip-norm 2
plan 2 "lion takes no 'eps'; it takes beta1= beta2= wd= lr=" --optimizer lion:eps=1
plan 2 "alpha=1: must be a number of at least 0 and below 1" --optimizer rmsprop:alpha=1
plan 2 "radam takes no 'decoupled'" --optimizer radam:decoupled=1
# Loss, clipping, sizes.
for e in -0.1 1.5 nan x; do plan 2 "--label-smoothing: '$e'" --label-smoothing=$e; done
for k in 1.5 x 1e3; do plan 2 "--ignore-index: '$k'" --ignore-index=$k; done
for w in 1,,2 1,-1 nan 0,0 1e39 x; do plan 2 "--class-weights: '$w'" --class-weights=$w; done
plan 2 "--label-smoothing is for --loss=ce" --label-smoothing 0.1 --loss mse
plan 2 "--ignore-index is for --loss=ce" --ignore-index 0 --loss l1
plan 2 "--class-weights is for --loss=ce" --class-weights 1,1 --loss bce
plan 2 "--label names the target of an added loss" --loss graph --label y
plan 2 "--label names the target of an added loss" --loss triplet:a,b,c --label y
plan 2 "--label-smoothing is for --loss=ce and soft_ce, but" --label-smoothing 0.1 --loss nll
plan 2 "--loss: 'hinge' is not one of" --loss hinge
plan 2 "--loss: 'box' is not one of" --loss ce:y,box
plan 2 "--loss: '' is not one of" --loss ce,
plan 2 "huber takes no 'beta'; it takes delta" --loss huber:beta=1
plan 2 "mse takes no 'delta'" --loss mse@delta=1
plan 2 "triplet takes three outputs" --loss triplet:a,b
plan 2 "triplet takes three outputs" --loss triplet
plan 2 "mse takes an output after ':'" --loss mse:
plan 2 "mse has two of '@WEIGHT'" --loss mse@1@2
plan 2 "huber has two of 'delta'" --loss huber:delta=1@delta=2
for w in 0 nan x ""; do plan 2 "'$w' is not a weight" --loss mse@$w; done
for d in 0 -1; do plan 2 "'$d' is not a number above 0" --loss huber@delta=$d; done
plan 2 "'-1' is not a number of at least 0" --loss smooth_l1@beta=-1
plan 2 "--loss-input names the output of a single loss" --loss ce:y --loss-input y
plan 2 "--loss-input names the output of a single loss" --loss ce,mse --loss-input y
plan 1 "the model has no output 'z'" --batch 2 --loss mse:z
for x in 0 -1 nan inf x; do
    plan 2 "--clip-norm: '$x'" --clip-norm=$x
    plan 2 "--clip-value: '$x'" --clip-value=$x
done
for k in 0 -1 1.5 x 9999999999999999999; do
    for o in batch accumulate max-errors plan-effort; do
        plan 2 "--$o needs a whole number" --$o=$k
    done
    refuses 2 "--points needs a whole number" sweep net.onnx --points=$k
    refuses 2 "--elements needs a whole number" check net.onnx --elements=$k
    refuses 2 "--threads needs a whole number" calibrate --threads=$k
done
plan 2 "--dim: 'N=0'" --dim N=0
plan 2 "--dim: 'N'" --dim N
plan 2 "--dim is given twice for one name" --dim N=2 --dim N=3
plan 2 "--shape: 'x=2x'" --shape x=2x
plan 2 "--shape is given twice for one name" --shape image=2x3 --shape image=2x4
for x in 0 -1 nan inf x; do plan 2 "--plan-time: '$x'" --plan-time=$x; done
for x in -1% nan x %; do plan 2 "--tolerance: '$x'" --tolerance=$x --against net.onnx; done
for x in 0 -1 0.5 4X nan 1e300 %; do plan 2 "--budget: '$x'" --budget=$x; done
refuses 2 "--from: '0'" sweep net.onnx --from 0
refuses 2 "--to: 'min'" sweep net.onnx --to min
refuses 2 "--strategies: 'best'" sweep net.onnx --strategies best
plan 2 "--strategy: 'best'" --strategy best
plan 2 "--recompute: 'some' is not one of auto|none|cheap|conv-saved|all|except-last" \
    --recompute some
for c in sweep check; do
    refuses 2 "--recompute=except-last is for compile and plan" $c net.onnx --recompute=except-last
done
plan 2 "--budget-of: 'all'" --budget-of all
plan 2 "--bn: 'off'" --bn off
# Patterns of names that match nothing.
for o in freeze train keep forget; do plan 2 "nobody*" --batch 2 --$o 'nobody*'; done
plan 2 "--train-only nobody* matches no parameter that can be trained" --batch 2 \
    --train-only 'nobody*'
plan 2 "--stop-gradient nobody* matches no value and no node" --batch 2 --stop-gradient 'nobody*'
plan 2 "--precision-of: nothing is called 'nobody*'" --batch 2 --precision bf16 \
    --precision-of 'nobody*=f32'
plan 2 "--precision-of: nothing is called 'nobody*'" --batch 2 --eval-precision bf16 \
    --precision-of 'nobody*=f32'
plan 2 "'fc1.weight' is named by --train-only fc1* and by --freeze *.weight" --batch 2 \
    --train-only 'fc1*' --freeze '*.weight'
plan 2 "leave --train out" --batch 2 --train-only 'fc1*' --train 'fc2*'
plan 2 "--bn=frozen has nothing to act on: the model has no batch norm" --batch 2 --bn frozen
plan 2 "--bn-var: 'biased'" --bn-var biased
plan 2 "--dump: 'parse' is not one of all import" --dump parse
refuses 2 "--dump: 'parse'" plan net.onnx --dump parse
# Machines.
plan 2 "--target: 'tpu'" --target tpu
plan 2 "--precision: 'f8' is not one of f32" --precision f8
plan 2 "--precision: 'bf16' is not one of params=" --precision bf16,c=f32
plan 2 "--precision: parameters are kept in f32" --precision p=bf16
plan 2 "--precision: output is f32" --precision p=f32,c=bf16,o=f16
plan 2 "--precision-of: '*' is not GLOB=f32" --precision bf16 --precision-of '*'
compile 2 "--bf16-sums: 'rows' is not one of" --precision bf16 --bf16-sums rows
compile 2 "--bf16-sums is for --target=cpu with --precision=bf16" --bf16-sums tiles
plan 2 "--eval-precision: 'f64' is not one of" --eval-precision f64
plan 2 "--eval-precision: with --precision=f64, evaluation computes in the same type" \
    --precision f64 --eval-precision f32
plan 2 "--eval-precision=bf16 is for --target=cpu so far" --target cuda --eval-precision bf16
plan 2 "--precision-of: there is nothing to keep" --precision-of '*=f32'
for x in 0 -1 inf nan auto 1e39 'dynamic;period=2'; do
    plan 2 "--loss-scale: '$x': '$x' is not one of none" --loss-scale "$x"
done
plan 2 "dynamic takes no 'backoff'; it takes init= period= factor= min=" \
    --loss-scale dynamic:backoff=0.5
plan 2 "torch takes no 'min'; it takes init= period= factor= backoff=" --loss-scale torch:min=1
plan 2 "dynamic takes no 'period'" --loss-scale dynamic:period
plan 2 "init is given twice" --loss-scale torch:init=1,init=2
for x in init=0 period=0 period=2.5 period=16777217 factor=1 min=-1; do
    plan 2 "$x: must be " --loss-scale "dynamic:$x"
done
for x in backoff=0 backoff=1 factor=1e-3; do plan 2 "$x: must be " --loss-scale "torch:$x"; done
plan 2 "--machine: 'abacus'" --machine abacus
compile 2 "--opt: 'fast'" -O fast
compile 2 "--emit: 'asm'" --emit asm
compile 2 "--emit is given twice" --emit exe --emit=c
compile 2 "--save-temps is not for C" --emit=c --save-temps t
plan 2 "--workspace: 'x'" --target cuda --workspace x
refuses 2 "--arch: 'sm_x'" plan net.onnx --target cuda --arch sm_x
for o in "--workspace 1M" "--arch 80" --allow-nondeterministic --compiled-engines --no-overlap \
    --no-epilogues; do
    plan 2 "${o%% *} is for GPUs: it needs --target=cuda" $o
done
compile 2 "--nvcc is for GPUs" --nvcc nvcc
for o in "--cc cc" "-march native" "-O 1"; do
    refuses 2 "is for --measure" sweep net.onnx $o
done
plan 2 "--tolerance is for --against" --tolerance 1%
plan 2 "--markdown is for --against" --markdown
plan 2 "--update is for --against" --update
plan 2 "--markdown= needs a value" --markdown= --against net.onnx
plan 2 "both write to stdout" --json --markdown --against net.onnx
for o in "--from 20%" "--points 3" "--strategies auto" --measure "--keep x" "--recompute all"; do
    refuses 2 "--table takes no ${o%% *}" sweep net.onnx --table $o
done
# The accountant of private training.
dp() { words=$1; shift; refuses 2 "$words" dp "$@"; }
for o in "" "--sample-rate 0.1" "--steps 10" "--samples 100 --batch 10" "--batch 10 --epochs 1" \
    "--samples 100 --epochs 2" \
        "--sample-rate 0.1 --steps 10 --epochs 1" "--sample-rate 0.1 --epochs 1"; do
    dp "give --sample-rate and --steps, or else --samples, --batch and --epochs" $o \
        --noise 1 --delta 1e-5
done
dp "give --noise, or --epsilon to search" --sample-rate 0.1 --steps 10 --delta 1e-5
dp "give --noise, or --epsilon to search" --sample-rate 0.1 --steps 10 --delta 1e-5 \
    --noise 1 --epsilon 1
dp "give --delta" --sample-rate 0.1 --steps 10 --noise 1
dp "--batch 200 is more than all 100 --samples" --samples 100 --batch 200 --epochs 1 \
    --noise 1 --delta 1e-5
for x in -0.1 1.5 nan x; do
    dp "--sample-rate: '$x' is not a number from 0 to 1" --sample-rate=$x --steps 1 \
        --noise 1 --delta 1e-5
done
for x in -1 inf x; do
    dp "--noise: '$x' is not a number of at least 0" --sample-rate 0.1 --steps 1 \
        --noise=$x --delta 1e-5
done
for x in -1 nan x; do
    dp "--epsilon: '$x' is not a number of at least 0" --sample-rate 0.1 --steps 1 \
        --epsilon=$x --delta 1e-5
done
for x in 0 1; do
    dp "--delta must be above 0 and below 1" --sample-rate 0.1 --steps 1 --noise 1 --delta $x
done
dp "--delta: '2' is not a number from 0 to 1" --sample-rate 0.1 --steps 1 --noise 1 --delta 2
dp "no noise multiplier up to 1e+06 keeps epsilon within 0" --sample-rate 1 --steps 1000000 \
    --epsilon 0 --delta 1e-9
for o in steps samples epochs batch; do dp "--$o needs a whole number" --$o=0; done
dp "net.onnx is not an option, and dp takes no model" net.onnx
# Options with one value are given once.
while read -r line; do
    eval "set -- $line"
    plan 2 "$1 is given twice: '$2' and '$3'" "$1" "$2" "$1" "$3"
done <<'END'
--batch 4 8
--loss ce mse
--loss-input a b
--label a b
--optimizer adam sgd
--loss-scale none 8
--budget 1M 50%
--strategy auto chen
--target cpu cuda
--precision f32 f64
--plan-json a b
--graph a b
--plan-effort 5 50
END
compile 2 "--output is given twice: 'a' and 'b'" -o a --output=b
compile 2 "--lr is given twice" --lr 1 --lr=1
refuses 2 "width is given twice: '8' and '9'" model mlp --width=8 --width 9 -o x.onnx
refuses 2 "-o is given twice" model mlp -o x.onnx -o y.onnx
refuses 2 "two models given" plan net.onnx net.onnx
refuses 2 "no model given" plan
refuses 2 "takes no model" calibrate net.onnx
plan 2 "--loss needs SPEC" --loss=
plan 2 "--batch needs N" --batch
plan 2 "--prove takes no value" --prove=1
plan 2 "unknown option '--bugdet'; did you mean --budget?" --bugdet 3
for o in -S --emit-c; do compile 2 "unknown option '$o': use --emit=c" $o; done
for o in -c --emit-obj; do compile 2 "unknown option '$o': use --emit=obj" $o; done
for c in compile plan sweep check; do
    refuses 2 "unknown option '--loss-axis=1': use --class-axis" $c net.onnx --loss-axis=1
done
refuses 2 "unknown option '-S'" plan net.onnx -S
for c in compile plan; do
    refuses 2 "unknown option '--checkpoint=never': use --recompute=none" \
        $c net.onnx --checkpoint=never
    refuses 2 "unknown option '--checkpoint': use --recompute=all" $c net.onnx --checkpoint always
    refuses 2 "unknown option '--checkpoint=except-last': use --recompute" \
        $c net.onnx --checkpoint=except-last
    refuses 2 "unknown option '--checkpoint': use --recompute" $c net.onnx --checkpoint
done
refuses 2 "unknown option '--checkpoint=never'" sweep net.onnx --checkpoint=never
for c in ops targets; do refuses 2 "an argument too many" $c more; done
refuses 2 "an argument too many" explain LS-E0001 more

# An output that cannot be written is reported before the work.
mkdir folder
touch file
build() { want=$1 words=$2; shift 2; refuses "$want" "$words" compile net.onnx -v "$@"; }
build 1 "nodir/x: cannot write: No such file" -o nodir/x
build 1 "folder: cannot write: it is a folder" -o folder
build 1 "file/x: cannot write: Not a directory" -o file/x
compile 1 "cannot write 'file': Not a directory" -o x --save-temps file
compile 1 "is the model itself" -o net.onnx
for o in plan-json graph-json graph timeline report; do
    plan 1 "nodir/x.html: cannot write" --$o nodir/x.html
done
refuses 1 "cannot write 'nodir/out'" sweep net.onnx -o nodir/out
refuses 1 "cannot write 'file'" sweep net.onnx -o file
refuses 1 "folder: cannot write" sweep --table -o folder
refuses 1 "nodir/machine: cannot write" calibrate -o nodir/machine
refuses 5 "cannot run './no-such-cc'" compile net.onnx -v -o net --cc ./no-such-cc
"$LOWERSET" plan net.onnx --batch 2 --plan-json /dev/null >out 2>&1 || {
    echo "FAIL plan into /dev/null"
    failed=1
}

# inspect exits with 3 if training is not possible, else with 0, as text and as JSON.
"$LOWERSET" inspect net.onnx >out || { echo "FAIL inspect of what can be trained"; failed=1; }
refuses 3 "no trained parameter has influence on an output" inspect net.onnx --freeze '*'
refuses 3 '"trainable":	false' inspect net.onnx --json --freeze '*'
refuses 1 "cannot open" inspect no-such.onnx

# Sizes that this machine, or any, cannot hold.
"$LOWERSET" model gpt --depth=24 --heads=2 --width=32 --context=32 --vocab=32 -o large.onnx
"$LOWERSET" plan net.onnx --batch 4 --plan-effort 5 --graph-json graph.json -q >out
# What --max-batch tells as the least is the least of plan, which has an arena for each lane.
lanes="--ensemble 3 --ensemble-lanes 2 --budget 1K --strategy none -q"
# shellcheck disable=SC2086
"$LOWERSET" plan net.onnx --max-batch $lanes >out
least=$(sed -n 's/.* a batch of 1 needs //p' out)
# shellcheck disable=SC2086
refuses 4 "the least budget found by strategy none is ${least:-told}," \
    plan net.onnx --batch 1 $lanes
refuses 2 "--recompute=except-last is for models, but this is a training graph" \
    plan graph.json --recompute=except-last
sed 's/"bytes": [0-9]\{1,\}/"bytes": 140000000000000/' graph.json >huge.json
refuses 4 "but no machine addresses more than" plan huge.json --strategy none
refuses 1 "large.onnx: 1 error" plan large.onnx --batch 80000000
"$LOWERSET" plan net.onnx --batch 1000000000 --strategy none >out 2>&1 || true
grep -q 'the program takes .* but this machine has' out || {
    echo "FAIL no warning of memory"
    cat out
    failed=1
}

# A C compiler may be given with any number of words.
printf '#!/bin/sh\ncase "$*" in *--version) exit ;; esac\necho "$@" >>"%s"\nexit 1\n' \
    "$DIR/words" >cc
chmod +x cc
many=$(seq 300 | sed 's/^/-DW/' | tr '\n' ' ')
refuses 5 "" compile net.onnx --batch 2 --plan-effort 5 -o t --cc "$DIR/cc $many"
CC="$DIR/cc $many" "$LOWERSET" compile net.onnx --batch 2 --plan-effort 5 -o t >out 2>&1 \
    && { echo "FAIL a failed CC"; failed=1; }
[ "$(grep -c "^$many" words)" = 2 ] || {
    echo "FAIL words of the C compiler are lost"
    cat out words
    failed=1
}

# A compiler that cannot build programs is refused before planning; one that says nothing may try.
says() {                # says TEXT: a compiler that says so of itself, and compiles nothing
    { echo '#!/bin/sh'; echo 'case $1 in --version) cat <<END'; echo "$1"; printf \
        'END\nexit ;;\nesac\n'
      echo "echo \"\$@\" >>'$DIR/called'; exit 1"; } >cc
}
: >called
fsf='Copyright (C) 2015 Free Software Foundation, Inc.'
says "gcc (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)
$fsf"
refuses 5 "./cc' is gcc 4.8, and programs need gcc 12 or clang 13, or later" compile net.onnx \
    -o t --cc ./cc
refuses 5 "name another with --cc or in CC" compile net.onnx -o t --cc ./cc
CC=./cc "$LOWERSET" compile net.onnx -o t >out 2>&1 && {
    echo "FAIL an old compiler in CC"
    failed=1
}
grep -q "'./cc' is gcc 4.8" out || { echo "FAIL an old compiler in CC"; cat out; failed=1; }
says "Debian clang version 7.0.1-8"
refuses 5 "./cc' is clang 7.0, and programs need" compile net.onnx -o t --cc ./cc
[ ! -s called ] || { echo "FAIL an old compiler compiles"; failed=1; }
for text in "gcc (GCC) 12.1.0
$fsf" "another compiler 1.0" ""; do
    says "$text"
    refuses 5 "the C compiler './cc' failed" compile net.onnx --batch 2 --plan-effort 5 \
        -o t --cc ./cc
done

# The search for the largest batch handles batches that no machine holds, and batches beyond
# its limit.
"$LOWERSET" model mlp --batch=0 --width=8 --size=512 -o wide.onnx
"$LOWERSET" plan wide.onnx --max-batch --budget 1000TiB --strategy none >out 2>err \
    || echo "exit $?" >>out
grep -q '^none  *2097152 ' out && grep -q 'batch 2097153 does not fit: .*too many elements' err \
    && grep -q 'warning: the program takes .* TiB, but this machine has' err \
    || { echo "FAIL --max-batch"; cat out err; failed=1; }
"$LOWERSET" plan net.onnx --max-batch --budget 1000TiB --strategy none -q >out 2>err \
    || echo "exit $?" >>out
grep -q '16777216 .* larger batches were not tried' out && [ ! -s err ] || {
    echo "FAIL --max-batch has no end"
    failed=1
}
refuses 4 "but no machine addresses more than" sweep huge.json --points 2 --strategies none

echo "$n command lines"
exit "$failed"
