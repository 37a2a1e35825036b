#!/bin/sh
# lowerset plan --stages tells what lowerset compile --stages makes: the same plans of all stages,
# bytes of each arena, of the
# largest rank and of the messages, for networks, numbers of stages, orders, modes and budgets.
# Without LS_WHOLE the networks
# take turns: every number of stages has every order and mode, every network each number.
#   sh tests/cli/stages_as_planned.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C XDG_CONFIG_HOME=$dir/config
cd "$dir"
passed=0
fail() { echo "FAIL $1"; shift; [ "$#" = 0 ] || cat "$@"; exit 1; }

"$lowerset" model mlp --batch=0 --width=8 --size=4 -o mlp.onnx >/dev/null
"$lowerset" model unet --depth=1 --size=8 --width=2 -o unet.onnx >/dev/null
"$lowerset" model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 -o gpt.onnx >/dev/null

# all FILE NAME: every number of that name, a line each
all() { sed -n "s/.*\"$2\":[^0-9.-]*\([0-9.e+-]*\).*/\1/p" "$1"; }
# bytes_text N: as lowerset prints bytes
bytes_text() {
    awk -v n="$1" 'BEGIN { split("B KiB MiB GiB", u, " "); k = 1
                           while (n >= 1024 && k < 4) { n /= 1024; k++ }
                           if (k == 1) printf "%d B", n; else printf "%.2f %s", n, u[k] }'
}
# sent FILE: by stage, the bytes that it sends with each micro-batch
sent() {
    awk '/^static const LsMessage stage[0-9]+_send/ { on = 1; sum = 0 }
         on && /^    \{A\(/ { gsub(/[{},]/, " "); if ($6 != 3) sum += $2 }
         on && /^};/ { print sum; on = 0 }' "$1"
}

# regions FILE FIELD: of all stages, field 1: offset, 2: bytes of a copy, 3: copies
regions() {
    awk -v field="$2" '/^static const LsRegion stage[0-9]+_region/ { on = 1 }
         on && /^ *\{[0-9]/ { gsub(/[{},]/, " "); print $field }
         on && /^ *};/ { on = 0 }' "$1"
}

# same MODEL STAGES OPTIONS...: plans and compiles
same() {
    model=$1 stages=$2
    shift 2
    options="$model.onnx --stages $stages --microbatches 4 --batch 8 --plan-effort 1 $*"
    "$lowerset" plan $options -q --json >p.json || fail "plan $options" p.json
    "$lowerset" compile $options -v --emit=c -o t.c 2>log || fail "compile $options" log
    hash=$(sed -n 's/.*"hash":[^"]*"\([0-9a-f]*\)".*/\1/p' p.json)
    grep -q "plan $hash," log || fail "$options: another plan than $hash" log
    all p.json arena_bytes >planned
    all p.json sent_bytes >>planned
    all p.json region_copies >>planned
    all p.json region_bytes >>planned
    row='^ *\.at = [0-9]*, .* \.arena_bytes = \([0-9]*\),.*'
    { sed -n "s/$row/\1/p" t.c; sent t.c; regions t.c 3; regions t.c 2; } >made
    [ "$(sed -n "s/$row/\1/p" t.c | wc -l)" = "$stages" ] \
        || fail "$options: not $stages stages in the program" made
    cmp -s planned made || fail "$options: other bytes than planned" planned made
    most=$(all p.json rank_bytes | head -1)
    [ "$(all p.json rank_bytes | tail -n +2 | sort -n | tail -1)" = "$most" ] \
        || fail "$options: not the largest rank" p.json
    grep -qF "the largest rank $(bytes_text "$most")" log \
        || fail "$options: the largest rank has $most bytes" log
    step=$(all p.json step_ns)
    grep -qF "step $(awk -v ns="$step" 'BEGIN { printf "%.4g", ns * 1e-6 }') ms" log \
        || fail "$options: a step of $step ns" log
    passed=$((passed + 1))
}

turn=0
# mine: whether the network has the turn
mine() {
    turn=$((turn + 1))
    [ -n "${LS_WHOLE:-}" ] || [ $(((turn + number) % 3)) = 0 ]
}
number=0
for model in mlp unet gpt; do
    turn=0
    for stages in 2 3; do
        ! mine || same $model $stages --order gpipe --recompute all
        ! mine || same $model $stages --order 1f1b --recompute none
        ! mine || same $model $stages --order zb --recompute auto
        order=$(echo "gpipe 1f1b zb" | cut -d' ' -f$stages)
        ! mine || same $model $stages --order "$order" --recompute except-last
    done
    number=$((number + 1))
done
"$lowerset" plan gpt.onnx --stages 3 --microbatches 4 --batch 8 --plan-effort 1 \
    --order zb --recompute except-last -q --json >tied.json
grep -q 'transformer.wte.weight' tied.json || fail "no tied weights" tied.json
same unet 2 --order gpipe --recompute auto --budget 75%
same unet 3 --order gpipe --recompute all --budget min
same unet 3 --order gpipe --recompute except-last --budget min
same gpt 2 --order gpipe --recompute auto --clip-norm 1 --optimizer adamw
same gpt 2 --order gpipe --recompute auto --clip-norm 1 --optimizer adamw \
    --budget $(($(all p.json rank_bytes | head -1) * 9 / 10))
echo "$passed passed, 0 failed"
