#!/bin/sh
# lowerset dp prints the epsilons of the table of dp_accounting, and the noise that keeps
# an epsilon.
#   sh tests/cli/dp.sh LOWERSET TABLE
set -eu
LOWERSET=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0 n=0
fail() { echo "FAIL $*"; failed=1; }

# field NAME FILE: a number of the JSON, or null
field() { sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$2"; }
# within A B: two numbers are equal to 0.001
within() {
    awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && d < 0.001 && d > -0.001) }'
}

awk '$1 == "bound" && $NF == "near" && ++k % 7 == 1' "$2" >"$out/rows"
while read -r _ rate noise steps delta epsilon order _; do
    n=$((n + 1))
    "$LOWERSET" dp --sample-rate "$rate" --noise "$noise" --steps "$steps" --delta "$delta" \
        --json >"$out/json"
    within "$(field epsilon "$out/json")" "$epsilon" \
        || fail "rate $rate noise $noise steps $steps: $(cat "$out/json"), not $epsilon"
    "$LOWERSET" dp --sample-rate "$rate" --noise "$noise" --steps "$steps" \
        --delta "$delta" >"$out/words"
    awk -v least="$(field epsilon "$out/json")" \
        'NR == 1 { exit !($2 >= least && $2 < least + 2e-4) }' "$out/words" \
        || fail "the words understate epsilon: $(cat "$out/words" "$out/json")"
    [ "$order" -gt 63 ] 2>/dev/null && continue     # where epsilon changes little with the noise
    "$LOWERSET" dp --sample-rate "$rate" --epsilon "$epsilon" --steps "$steps" --delta "$delta" \
        --json >"$out/json"
    within "$(field noise "$out/json")" "$noise" \
        || fail "rate $rate epsilon $epsilon: $(cat "$out/json"), not $noise"
done <"$out/rows"
[ "$n" -ge 7 ] || fail "the table has $n rows"

# Both ways of saying how samples are drawn; the words for people.
"$LOWERSET" dp --samples 1050 --batch 100 --epochs 3 --noise 4 --delta 1e-4 >"$out/counted"
"$LOWERSET" dp --sample-rate 0.09523809523809523 --steps 33 --noise 4 --delta 1e-4 >"$out/direct"
cmp -s "$out/counted" "$out/direct" || fail "counted samples: $(cat "$out/counted")"
"$LOWERSET" dp --sample-rate 0.01 --steps 10000 --noise 1.1 --delta 1e-6 >"$out/words"
grep -q '^epsilon 6\.2300 at delta 1e-06 (order 5)$' "$out/words" \
    || fail "words: $(cat "$out/words")"
"$LOWERSET" dp --sample-rate 0.01 --steps 10000 --epsilon 6.23 --delta 1e-6 >"$out/words"
grep -q '^noise 1\.1000: epsilon 6\.2300 at delta 1e-06 (order 5)$' "$out/words" \
    || fail "search: $(cat "$out/words")"

# Without noise there is no guarantee, and a delta that hides no sample is named.
"$LOWERSET" dp --sample-rate 0.01 --steps 1 --noise 0 --delta 1e-5 >"$out/words"
grep -q '^epsilon is infinite' "$out/words" || fail "no noise: $(cat "$out/words")"
"$LOWERSET" dp --sample-rate 0.01 --steps 1 --noise 0 --delta 1e-5 --json >"$out/json"
[ "$(field epsilon "$out/json")" = null ] || fail "no noise: $(cat "$out/json")"
"$LOWERSET" dp --samples 1000 --batch 10 --epochs 1 --noise 1 --delta 1e-3 \
    2>"$out/said" >"$out/words"
grep -q 'warning: .* one of 1000 samples unchanged' "$out/said" \
    || fail "no warning of a large delta"
"$LOWERSET" dp --samples 1000 --batch 10 --epochs 1 --noise 1 --delta 9e-4 \
    2>"$out/said" >"$out/words"
[ ! -s "$out/said" ] || fail "a warning: $(cat "$out/said")"
[ "$failed" = 0 ] && echo "$n rows of the table"
exit "$failed"
