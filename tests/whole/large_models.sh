#!/bin/sh
# Large models: inspect, plan and compile take no memory for their weights, of any type, and the
# program no more room than its numbers; layers share their kernels; adapters beside weights of 16
# bits are those beside the same numbers in float32; a large table is found to be tied.
#   sh tests/whole/large_models.sh BUILD-FOLDER PEAK-MEMORY
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
peak=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
make=$(cd "$(dirname "$0")" && pwd)/large_model.py
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off XDG_CONFIG_HOME="$out/config" XDG_CACHE_HOME="$out/cache" TMPDIR="$out"
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

# takes MIB COMMAND...: at most so much memory
takes() {
    most=$1
    shift
    "$peak" kib "$@" >said 2>&1 || fail "$*"
    [ "$(cat kib)" -le $((most * 1024)) ] \
        || fail "$* takes $(($(cat kib) / 1024)) MiB, more than $most"
    echo "$(($(cat kib) / 1024)) MiB of at most $most: $(echo "$*" | sed 's,.*lowerset ,,')"
}

# Tables of 66 million numbers, of which one is read whole as all its numbers are zeros.
for type in f32 bf16; do
    python3 "$make" large.onnx layers=1 width=4096 hidden=11008 vocab=16000 heads=32 tokens=8 \
        type=$type
    takes 32 "$lowerset" inspect large.onnx
    takes 48 "$lowerset" plan large.onnx --lora r=8,dora --plan-effort 1
    takes 144 "$lowerset" compile large.onnx --lora r=8 --plan-effort 1 -O 0 -q -o large
    [ "$(wc -c <large)" -gt 1300000000 ] || fail "the program has no weights"
    most=100000                         # codes of 16 bits are written, zeros or not
    [ $type = f32 ] || most=800000
    [ "$(du -k large | cut -f 1)" -lt $most ] || fail "zeros of $type take room in the program"
done
rm large large.onnx large.onnx.data

# trained TYPE WAY: TYPE.WAY.out
trained() {
    "$lowerset" compile "$1.onnx" --lora "$2" --plan-effort 1 -O 0 -q -o net >said 2>&1 \
        || fail "adapters ($2) beside $1"
    ./net --data synthetic:4 --seed 2 --steps 3 --lr 0.1 --progress none --no-export-notes \
        --export "$1.$2.out" \
        >said 2>&1 || fail "training of $1 with $2"
}
for type in bf16 f16 f32; do
    python3 "$make" $type.onnx type=$type fill=numbers
done
for way in r=4 r=4,dora r=4,dropout=0.5:q_proj,embed_tokens; do
    trained f32 "$way"
    trained bf16 "$way"
    cmp "f32.$way.out" "bf16.$way.out" || fail "bf16 with $way"
done
trained f16 r=4
cmp f32.r=4.out f16.r=4.out || fail "f16"

# The kernels of 3 layers are those of 9: only the tables of steps and values grow. Within a budget
# other layers may run again.
kernels() {
    python3 "$make" deep.onnx layers="$1"
    shift
    "$lowerset" compile deep.onnx --plan-effort 1 --emit=c -q -o deep.c "$@" >said 2>&1 \
        || fail "C of layers: $*"
    grep -c '^static void k[0-9]' deep.c
}
for way in "--lora r=4 --budget=min" "--optimizer adamw --clip-norm 1"; do
    # shellcheck disable=SC2086
    few=$(kernels 3 $way) many=$(kernels 9 $way)
    [ "$few" -gt 20 ] && [ "$many" -le $((few + few / 16)) ] \
        || fail "3 layers have $few kernels, 9 have $many ($way)"
done

# More than one part of what is compared at a time.
for type in f32 bf16; do
    python3 "$make" tied.onnx layers=1 width=32 hidden=32 vocab=20000 fill=numbers type=$type \
        tied=1
    "$lowerset" compile tied.onnx --plan-effort 1 -n -v >said 2>&1 || fail "a tied head of $type"
    grep -q "lm_head.weight.*model.embed_tokens.weight" said || fail "$type: the head is not tied"
done
echo "large models take no memory"
