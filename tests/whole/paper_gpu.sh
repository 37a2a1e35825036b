#!/bin/sh
# Whole programs for NVIDIA GPUs, trained without one: the host text on a fake CUDA runtime, the
# device text thread by thread in the executor, products and convolutions by stand-ins of the
# libraries. Losses, gradients, statistics and parameters agree with the CPU's program, and have the
# same bits under every budget.
#   sh tests/whole/paper_gpu.sh BUILD-FOLDER SOURCE-FOLDER CUDA-HOME
# LS_WHOLE: every network under every budget and in every order of its steps, else one of them;
# programs are optimised.
set -eu
. "$2/tests/support/paper.sh"

train() {       # PROGRAM OPTIONS...
    LD_LIBRARY_PATH=$OUT/lib "$@" --data synthetic --seed 3 --progress none >"$OUT/said" \
        2>"$OUT/err" || {
        cat "$OUT/said" "$OUT/err"
        return 1
    }
}

steps=3
# agrees NAME TOLERANCE MODEL-OPTIONS... -- COMPILE-OPTIONS...: it gives the results of the
# CPU's program.
agrees() {
    name=$1 tolerance=$2
    shift 2
    d=$OUT/$name
    mkdir "$d"
    model=
    while [ "$1" != -- ]; do model="$model $1"; shift; done
    shift
    "$LOWERSET" model $model -o "$d/net.onnx" >/dev/null
    "$LOWERSET" compile "$d/net.onnx" "$@" -q -O "$opt" --plan-effort=1 -o "$d/cpu"
    check "$name runs here" train "$d/cpu" --steps $steps --dump "$d/cpu.npz"
    build_paper "$d/all" "$d/net.onnx" "$@" --plan-effort=1
    check "$name runs on paper" train "$d/all/net" --steps $steps --dump "$d/all.npz"
    check "$name keeps the compiler's plans" ends 1 grep "planned" "$OUT/err"
    printf '%s: ' "$name"
    check "$name agrees with the CPU" "$BUILD/tests/npz_near" "$d/cpu.npz" "$d/all.npz" "$tolerance"
}

# all_ways NAME TOLERANCE MODEL-OPTIONS... -- COMPILE-OPTIONS...: and the same bits, at any time of
# the work, under every budget and in every order of its steps.
all_ways() {
    agrees "$@"
    shift 2
    while [ "$1" != -- ]; do shift; done
    shift
    LS_FAKE_CUDART=lazy LS_FAKE_ORDER=7 check "$name runs late" train "$d/all/net" --steps $steps \
        --dump "$d/late.npz"
    check "$name does not depend on when" cmp "$d/all.npz" "$d/late.npz"
    build_paper "$d/min" "$d/net.onnx" "$@" --budget=min --plan-effort=10
    check "$name runs in the least memory" train "$d/min/net" --steps $steps --dump "$d/min.npz"
    check "$name has the same bits in the least memory" cmp "$d/all.npz" "$d/min.npz"
    check "$name has steps that may run at the same time" grep -q "[.]wait = train_wait" \
        "$d/all/net.c"
    for order in 1 ${LS_WHOLE:+2 3}; do
        LS_FAKE_ORDER=$order check "$name runs in order $order" train "$d/all/net" --steps $steps \
            --dump "$d/apart.npz"
        check "$name has the same bits in order $order" cmp "$d/all.npz" "$d/apart.npz"
    done
    build_paper "$d/turns" "$d/net.onnx" "$@" --no-overlap --plan-effort=1
    check "$name has none with --no-overlap" ends 1 grep "train_wait" "$d/turns/net.c"
    check "$name runs without" train "$d/turns/net" --steps $steps --dump "$d/turns.npz"
    check "$name has the same bits without" cmp "$d/all.npz" "$d/turns.npz"
}

# one ...: a network that only the whole set runs in all ways.
one() { if [ -n "${LS_WHOLE:-}" ]; then all_ways "$@"; else agrees "$@"; fi }

# The listing of targets, and requests that cannot be met.
check "targets end well" ends 0 "$LOWERSET" targets
check "targets names the toolkit" grep -q "toolkit    $CUDA" "$OUT/out"
check "targets names the driver" grep -q "driver  " "$OUT/out"
"$LOWERSET" model mlp --batch=4 --width=64 -o "$OUT/mlp.onnx" >/dev/null
check "an old architecture is refused" ends 2 "$LOWERSET" plan "$OUT/mlp.onnx" \
    --target=cuda --arch=60
check "bfloat16 is refused for one without it" ends 2 "$LOWERSET" plan "$OUT/mlp.onnx" \
    --target=cuda --arch=75,90a --precision=bf16
check "with the first that has it" grep -q "arch=75: --precision=bf16 needs GPUs from sm_80 on" \
    "$OUT/errors"
check "a processor is no GPU" ends 2 "$LOWERSET" plan "$OUT/mlp.onnx" --target=cuda --machine=cpu
check "a plan for a GPU ends well" ends 0 "$LOWERSET" plan "$OUT/mlp.onnx" --target=cuda --arch=80
check "it is planned for the GPU asked for" grep -q "machine a100" "$OUT/out"
check "a workspace in percent is refused" ends 2 "$LOWERSET" plan "$OUT/mlp.onnx" --target=cuda \
    --workspace=5%
"$LOWERSET" model resnet18 --batch=2 --size=64 --weights=none -o "$OUT/r18.onnx" >/dev/null
export FAKE_CUDNN_ENGINES=320
check "convolutions are planned" ends 0 "$LOWERSET" plan "$OUT/r18.onnx" --target=cuda \
    --plan-effort=1
check "their workspace is said" grep \
    -q "59 convolutions, a workspace of at most [0-9]\{6,\} bytes: plans" "$OUT/out"
check "and can be limited" ends 0 "$LOWERSET" plan "$OUT/r18.onnx" --target=cuda --plan-effort=1 \
    --workspace=4KiB
check "to less" grep -q "59 convolutions, a workspace of at most 4096 bytes: plans" "$OUT/out"
unset FAKE_CUDNN_ENGINES
check "steps on the CPU run in turn anyway" ends 2 "$LOWERSET" plan "$OUT/mlp.onnx" --no-overlap
check "a plan says how far steps can be taken apart" ends 0 "$LOWERSET" plan "$OUT/r18.onnx" \
    --target=cuda --plan-effort=1
check "in ms" grep -q "the longest chain of dependent steps takes [0-9.]* of [0-9.]* ms" "$OUT/out"
check "it says what the driver takes" grep -q "+ context .* an estimate" "$OUT/out"
figure() { sed -n "s/^ *$1  *\([0-9.]*\) MiB.*/\1/p" "$OUT/out"; }
arena=$(figure arena) context=$(figure "+ context")
check "and how without" ends 0 "$LOWERSET" plan "$OUT/r18.onnx" --target=cuda \
    --plan-effort=1 --no-overlap
check "in the same memory" [ "$arena" = "$(figure arena)" ]
check "but for that of the driver" awk "BEGIN { exit !($context > $(figure "+ context")) }"
check "which says nothing of it" [ 0 = "$(grep -c "longest chain" "$OUT/out")" ]

[ -z "${LS_WHOLE:-}" ] \
    || all_ways mlp 1e-4 mlp --batch=4 --width=64 -- --optimizer=adamw --accumulate=2 --clip-norm=1
# Labels that do not count: batches have weights.
one labels 1e-4 mlp --batch=4 --width=64 -- --optimizer=adamw --accumulate=2 --clip-norm=1 \
    --ignore-index=1
all_ways gpt 1e-4 gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=64 -- --batch=2 \
    --optimizer=sgd:momentum=0.9
# The number of classes is not a multiple of four: rows of scores are longer than the number
# of classes.
one odd 1e-4 gpt --depth=1 --heads=1 --width=24 --context=8 --vocab=67 -- --batch=2 \
    --optimizer=sgd:momentum=0.9
check "its numbers are finite" train "$OUT/odd/all/net" --steps 2 --check-numerics
check "products make whole fours of columns" grep -q "[.]m = 16, [.]n = 68, [.]k = 24" \
    "$OUT/odd/all/net.c"
# In 16 bits: sums in another order let elements fall to the next number of the type, and units of a
# ReLU to its other side.
one gpt16 2e-2 gpt --depth=1 --heads=2 --width=32 --context=16 --vocab=64 -- --batch=2 \
    --optimizer=sgd:momentum=0.9 --precision=bf16
check "products are of 16 bits" grep -q "type = LS_PRODUCT_BF16" "$OUT/gpt16/all/net.c"
check "gradients of weights are reals" grep -q "wide = true" "$OUT/gpt16/all/net.c"
check "kernels take eight elements" grep -q "LS_LANES8" "$OUT/gpt16/all/net.cu"
if [ -n "${LS_WHOLE:-}" ]; then
    one odd16 5e-3 gpt --depth=1 --heads=1 --width=24 --context=8 --vocab=67 -- --batch=2 \
        --optimizer=sgd:momentum=0.9 --precision=f16
    check "products make whole eights of columns" grep -q "[.]m = 16, [.]n = 72, [.]k = 24" \
        "$OUT/odd16/all/net.c"
fi
steps=1
one unet16 0.1 unet --batch=2 --size=16 --width=8 --depth=1 -- --optimizer=sgd --precision=f16
check "convolutions are of 16 bits" grep -q "real_bytes = 2" "$OUT/unet16/all/net.c"
FAKE_CUDNN_NO_DRIVER=1 build_paper "$OUT/masks16" "$OUT/unet16/net.onnx" --optimizer=sgd \
    --precision=f16 --compiled-engines --plan-effort=1
check "gradients of ReLUs are taken into them" grep -q "mask = 1" "$OUT/masks16/net.c"
FAKE_CUDNN_MASK= XDG_CACHE_HOME=$OUT/masks16 check "or left to kernels" train "$OUT/masks16/net" \
    --steps 1 --dump "$OUT/masks16.npz"
check "which give the same" cmp "$OUT/unet16/all.npz" "$OUT/masks16.npz"
one brain16 0.15 autoencoder --batch=2 --size=16 --width=8 --depth=4 -- --loss=mse --optimizer=sgd \
    --precision=bf16
check "in bfloat16" grep -q "brain = true" "$OUT/brain16/all/net.c"
steps=3
# A scale at which all gradients overflow: the same steps are skipped.
one scale16 5e-3 mlp --batch=4 --width=64 -- --optimizer=adamw --clip-norm=1 --precision=f16 \
    --loss-scale=dynamic:init=268435456,factor=16
for side in cpu all/net; do train "$OUT/scale16/$side" --steps 4 && cat "$OUT/said" "$OUT/err" |
    grep skipped >"$OUT/scale16/$(basename $side).skips"; done
check "updates are skipped" grep -q "step 1: scale 268435456 -> 16777216, update skipped" \
    "$OUT/scale16/net.skips"
check "as on the CPU" cmp "$OUT/scale16/cpu.skips" "$OUT/scale16/net.skips"
# Epilogues of products that the library lacks: all, or those of one kind.
export FAKE_CUBLASLT_WITHOUT=all
check "products without epilogues train" train "$OUT/gpt/all/net" --steps 3 --dump "$OUT/alone.npz"
check "each is said" grep \
    -q "note: node '.*': libcublasLt.so.13 .* has no algorithm for a product .* (epilogue 256)" \
    "$OUT/err"
noted=$(grep -c "^note: " "$OUT/err" || true)
check "kernels do what the library did" "$BUILD/tests/npz_near" "$OUT/gpt/cpu.npz" \
    "$OUT/alone.npz" 1e-4
check "in the least memory too" train "$OUT/gpt/min/net" --steps 3 --dump "$OUT/alone_min.npz"
check "with the same bits" cmp "$OUT/alone.npz" "$OUT/alone_min.npz"
export FAKE_CUBLASLT_WITHOUT=256
check "so do they without sums" train "$OUT/gpt/all/net" --steps 3 --dump "$OUT/alone.npz"
check "the others stay with the library" [ 4 = "$(grep -c "^note: " "$OUT/err")" -a "$noted" = 8 ]
check "which gives the same" "$BUILD/tests/npz_near" "$OUT/gpt/cpu.npz" "$OUT/alone.npz" 1e-4
unset FAKE_CUBLASLT_WITHOUT
one unet 1e-4 unet --batch=2 --size=16 --width=4 --depth=2 -- --optimizer=sgd:momentum=0.9
one autoencoder 1e-4 autoencoder --batch=2 --size=16 --width=8 --depth=4 -- --loss=mse \
    --optimizer=adam
check "ReLUs are taken into convolutions" grep -q "bias = 1, .relu = 1" "$OUT/autoencoder/all/net.c"
check "kernels share their texts" grep -q "LS_NUMBER" "$OUT/unet/all/net.cu"
check "engines are timed" train "$OUT/unet/all/net" --steps 3 --tune --dump "$OUT/tuned.npz"
check "every engine gives the same here" cmp "$OUT/unet/all.npz" "$OUT/tuned.npz"
check "what was timed is kept" ends 0 sh -c 'grep -q "within" "$0"/lowerset/cudnn-*.tuned' \
    "$OUT/cache"
check "what was kept is used" train "$OUT/unet/all/net" --steps 3 --dump "$OUT/tuned.npz"
# ReLU gradients behind data gradients, by engines that compile: where this works, where it fails,
# and chosen by time.
export FAKE_CUDNN_NO_DRIVER=1
build_paper "$OUT/masks" "$OUT/unet/net.onnx" --optimizer=sgd:momentum=0.9 --compiled-engines \
    --plan-effort=1
check "gradients of ReLUs are taken into convolutions" grep -q "mask = 1" "$OUT/masks/net.c"
[ -z "${LS_WHOLE:-}" ] \
    || build_paper "$OUT/masks_min" "$OUT/unet/net.onnx" --optimizer=sgd:momentum=0.9 \
    --compiled-engines --budget=min --plan-effort=10
check "not where they are not asked for" ends 1 grep "mask = 1" "$OUT/unet/all/net.c"
unset FAKE_CUDNN_NO_DRIVER
check "engines compile" train "$OUT/masks/net" --steps 3 --dump "$OUT/masks.npz"
check "nothing is said of that" ends 1 grep "note:" "$OUT/err"
check "they give what the kernels give" cmp "$OUT/unet/all.npz" "$OUT/masks.npz"
if [ -n "${LS_WHOLE:-}" ]; then
    check "in the least memory too" train "$OUT/masks_min/net" --steps 3 --dump "$OUT/masks.npz"
    check "with the same bits" cmp "$OUT/unet/all.npz" "$OUT/masks.npz"
fi
FAKE_CUDNN_MASK= XDG_CACHE_HOME=$OUT/masks check "without them kernels do it" train \
    "$OUT/masks/net" --steps 3 --dump "$OUT/masks.npz"
check "which is said with the node" grep \
    -q "note: .*conv.*: cuDNN .* has no plan .*; a kernel of the program" "$OUT/err"
check "they give the same" cmp "$OUT/unet/all.npz" "$OUT/masks.npz"
XDG_CACHE_HOME=$OUT/masks check "both are timed" train "$OUT/masks/net" --steps 3 --tune \
    --dump "$OUT/masks.npz"
check "whichever wins gives the same" cmp "$OUT/unet/all.npz" "$OUT/masks.npz"
# In double precision, because batch norms over few numbers amplify the last bits. Kernels that find
# borders, and the elements of a pool's gradient: one window over a point, and up to four.
one valid 1e-4 unet --pad=valid --up=bilinear --batch=1 --size=28 --width=4 --depth=1 -- \
    --optimizer=sgd
check "borders are not made" ends 1 grep -q "k[0-9]*_pad" "$OUT/valid/all/net.cu"
# Large networks: only in whole sets.
large() {
factors=
one stem 1e-4 resnet18 --batch=2 --size=64 --width=4 --classes=3 -- --optimizer=sgd
check "gradients of pools are not made" ends 1 grep -q "k[0-9]*_max_pool_grad" \
    "$OUT/stem/all/net.cu"
check "but found, of four windows" grep -q "== nth[0-9]*_3 " "$OUT/stem/all/net.cu"
one resnet 1e-8 resnet18 --batch=2 --size=32 --width=2 --classes=3 -- --accumulate=2 --clip-norm=1 \
    --precision=f64
}
[ -z "${LS_WHOLE:-}" ] || large
# Weight gradients of 3x3 convolutions by Lowerset's kernel, which is for TF32 only. Here it does
# not round, and neither does the stand-in for cuDNN.
factors=-DLS_EXACT_FACTORS
d=$OUT/weights
mkdir "$d"
batch=2 size=12
[ -z "${LS_WHOLE:-}" ] || batch=7 size=16
"$LOWERSET" model unet --batch=$batch --size=$size --width=48 --depth=1 -o "$d/net.onnx" >/dev/null
"$LOWERSET" compile "$d/net.onnx" --optimizer=sgd -q -O "$opt" --plan-effort=1 -o "$d/cpu"
check "a U-Net on the CPU" train "$d/cpu" --steps 1 --dump "$d/cpu.npz"
build_paper "$d/net" "$d/net.onnx" --precision=tf32 --optimizer=sgd --plan-effort=1
check "a program has both" [ 1 -le "$(grep -c "[.]own = k[0-9]*_conv_dw_own," "$d/net/net.c")" ]
check "it takes cuDNN's at first" train "$d/net/net" --steps 1 --dump "$d/cudnn.npz"
export FAKE_CUDNN_NO_WEIGHTS=48
check "those that are refused it needs" ends 1 train "$d/net/net" --steps 1
FAKE_CUDNN_ENGINES=7 check "but not beside own ones, by the clock" train "$d/net/net" --steps 1 \
    --tune --dump "$d/tuned.npz"
check "which is kept" grep -q "weights .*	own$" "$OUT/cache"/lowerset/cudnn-*.tuned
check "and used" train "$d/net/net" --steps 1 --dump "$d/own.npz"
check "with the same bits" cmp "$d/tuned.npz" "$d/own.npz"
unset FAKE_CUDNN_NO_WEIGHTS
for which in cudnn own; do
    check "either is right: $which" "$BUILD/tests/npz_near" "$d/cpu.npz" "$d/$which.npz" 1e-4
done
factors=
# Convolutions that no engine supports.
export FAKE_CUDNN_ENGINES= XDG_CACHE_HOME=$OUT/other
[ -z "${LS_WHOLE:-}" ] || {
    steps=1
    all_ways own16 0.1 unet --batch=2 --size=16 --width=8 --depth=1 -- --optimizer=sgd \
        --precision=f16
    steps=3
}
one unet_own 1e-4 unet --batch=2 --size=16 --width=4 --depth=2 -- --optimizer=sgd:momentum=0.9

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
