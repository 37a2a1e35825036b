#!/bin/sh
# Plans do not get worse. Plans small models and graphs for six budgets each and for the least, some
# models in tiles as well, and compares overhead and proof, at the least the arena and its bound,
# with tests/optimality/plans.txt: a worse figure fails, a better figure asks for `bless`.
# Runs a selection, the smallest graphs of four families and one network; runs all with LS_WHOLE
# (./dev test --all) and for `bless`.
#   sh tests/scheduler/optimality.sh BUILD-FOLDER SOURCE-FOLDER [bless [-y]]
# The search counts its moves and has no time limit here, so the figures are the same on
# every machine.
set -eu
build=$(cd "$1" && pwd)
table=$(cd "$2" && pwd)/tests/optimality/plans.txt
bless=${3:-}
whole=${LS_WHOLE:-$bless}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# NAME FILE [OPTION...]: one row a budget.
rows() {
    name=$1 file=$2
    shift 2
    "$build/lowerset" sweep "$file" -q --strategies auto --from 40% --to 90% --points 6 \
        --plan-time 100000 \
        --plan-effort 100 -o "$name" "$@" >log 2>&1 \
        || { echo "FAIL $name: $(tail -n 3 log)"; exit 1; }
    awk -F, -v name="$name" 'NR > 1 {
        if ($6 == 1)
            printf "%-14s %5.0f %% %11.4f %11.4f %12d %12d  %s\n", name, $2, 100 * $9, 100 * $10,
                $7, $8, $13
        else
            printf "%-14s %5.0f %% %11s %11.4f %12s %12s  %s\n", name, $2, "none", 100 * $10,
                "-", "-", "-"
    }' "$name/sweep.csv"
}

# KEY FILE: the number after this key.
number() {
    sed -n 's/.*"'"$1"'":[[:space:]]*\([0-9][0-9]*\).*/\1/p' "$2" | head -n 1
}

# NAME FILE [OPTION...]: the row of the least arena; bytes in place of overhead and bound.
least() {
    name=$1 file=$2
    shift 2
    "$build/lowerset" plan "$file" -q --budget min --plan-time 100000 --plan-effort 100 \
        --json "$@" >least.json 2>log || { echo "FAIL $name: $(tail -n 3 log)"; exit 1; }
    printf '%-14s %5s %% %11d %11d %12d %12d  %s\n' "$name" min \
        "$(number arena_bytes least.json)" "$(number least_peak_lower_bound_bytes least.json)" \
        "$(number live_peak_bytes least.json)" "$(number arena_bytes least.json)" \
        "$(sed -n 's/.*"plan":[[:space:]]*"\([0-9a-f]*\)".*/\1/p' least.json | head -n 1)"
}

# NAME BATCH ZOO-OPTION...
model() {
    name=$1 batch=$2
    shift 2
    "$build/lowerset" model "$@" -o "$name.onnx"
    rows "$name" "$name.onnx" --batch "$batch" --machine cpu
    least "$name" "$name.onnx" --batch "$batch" --machine cpu
}

# NAME TILES BATCH ZOO-OPTION...
tiled() {
    name=$1 tiles=$2 batch=$3
    shift 3
    "$build/lowerset" model "$@" -o "$name.onnx"
    least "$name" "$name.onnx" --batch "$batch" --machine cpu --tiles "$tiles"
}

# FAMILY SIZE [SEED]
graph() {
    "$build/bench/make_graph" "$1" "$2" "${3:-3}" >"$1$2.json"
    rows "$1$2" "$1$2.json"
    least "$1$2" "$1$2.json"
}

{
    echo "# Plans of auto; written by ./dev bless. Budgets are of the arena without recomputation."
    echo "# Of the least arena (min) bytes, found and proven. NAME@K: large values in K parts."
    echo "#"
    printf '# %-12s %7s %11s %11s %12s %12s  %s\n' graph budget "overhead %" "bound %" \
        "live peak" arena plan
    graph chain 6
    graph resnet 2
    graph dense 4
    graph dag 10 11
    model googlenet 4 googlenet --classes=10 --size=64
    tiled resnet18@4 4@32KiB 8 resnet18 --stem=cifar --width=8 --classes=10 --size=32
    if [ -n "$whole" ]; then
        graph unet 2
        graph transformer 1
        graph layered 100 4
        model resnet18 8 resnet18 --stem=cifar --width=8 --classes=10 --size=32
        graph chain 12
        graph resnet 6
        graph unet 3
        graph dense 8
        graph transformer 3
        graph dag 20 11
        graph dag 30
        graph layered 250 4
        model gpt 4 gpt --depth=2 --heads=2 --width=32 --context=32 --vocab=65
        model unet 4 unet --width=6 --depth=3 --classes=2 --size=32
        model vgg16 4 vgg16_bn --width=8 --classes=10 --size=64
        tiled unet@2 2@40KiB 4 unet --width=6 --depth=3 --classes=2 --size=32
        tiled vgg16@4 4@256KiB 4 vgg16_bn --width=8 --classes=10 --size=64
    fi
} >now.txt

if [ "$bless" = bless ]; then
    if [ -f "$table" ] && diff -u "$table" now.txt; then
        echo "nothing has changed"
        exit 0
    fi
    if [ "${4:-}" != -y ]; then
        printf 'take these? [y/N] '
        read -r answer || answer=n
        [ "$answer" = y ] || exit 1
    fi
    cp now.txt "$table"
    echo "written: $table"
    exit 0
fi

# overhead first, then the proof; the memory of plans of equal cost does not matter
awk -v whole="$whole" '
    /^#/ { next }
    { key = $1 " at " $2 " %" }
    FNR == NR { name[key] = $1; overhead[key] = $4; bound[key] = $5; plan[key] = $8; next }
    !(key in overhead) { print "NEW   " key; better++; next }
    {
        seen[key] = 1; planned[$1] = 1
        old = overhead[key] == "none" ? 1e9 : overhead[key] + 0
        now = $4 == "none" ? 1e9 : $4 + 0
        change = now - old > 0.0002 ? 1 : old - now > 0.0002 ? -1 : 0
        what = $2 == "min" ? "bytes " old " -> " now : "overhead " overhead[key] " -> " $4 " %"
        if (change == 0 && (bound[key] - $5 > 0.0002 || $5 - bound[key] > 0.0002)) {
            change = $5 < bound[key] ? 1 : -1
            what = "bound " bound[key] " -> " $5 ($2 == "min" ? " bytes" : " %")
        }
        if (change > 0) print "WORSE " key ": " what
        if (change < 0) print "better " key ": " what
        worse += change > 0; better += change < 0
        other += change == 0 && plan[key] != $8
    }
    END {
        for (key in overhead)
            if (!(key in seen) && (whole != "" || name[key] in planned)) {
                print "GONE  " key
                worse++
            }
        print worse + 0 " worse, " better + 0 " better, " \
            other + 0 " other plans of the same figures"
        if (better) print "./dev bless takes the plans of now as those to be kept up to"
        exit worse > 0
    }
' "$table" now.txt
