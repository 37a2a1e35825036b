#!/bin/sh
# --find-rate: its rates rise from one update to the next, its result does not depend on threads,
# ranks and stages, and nothing of it is kept.
#   sh tests/whole/find_rate.sh BUILD-FOLDER
set -eu
. "$(dirname "$0")/../support/commands.sh"
awk 'BEGIN { srand(3); for (i = 0; i < 200; i++) { a = rand(); b = rand();
    print a "," b "," rand() "," rand() "," (a > b) } }' >train.csv
must "$lowerset" model mlp --size=2 --classes=2 --width=16 --batch=0 -o net.onnx
build="$lowerset compile net.onnx --batch 16 --microbatches 4 --loss ce --optimizer adam --opt 0 -q"
must $build -o one
must $build --ranks 2 -o two
must $build --stages 2 -o stages
must "$lowerset" compile net.onnx --batch 16 --loss ce --dp clip=1,noise=1,delta=1e-5 --opt 0 \
    -q -o dp
run="--data train.csv --val-split 10% --progress none --find-rate"

must ./one $run --rate-table table.csv --save kept
cp out first
ls kept >listed
[ ! -s listed ] || fail "it kept $(cat listed)"
for other in "one --threads 3" two stages "stages --ranks 2"; do
    must ./$other $run --rate-table other.csv
    cmp out first || fail "$other: another result"
    cmp table.csv other.csv || fail "$other: another table"
done
# Rates by the same factor, 100 of them at most; the losses are those of a run with these rates.
awk -F , 'NR == 2 { if ($1 != 1e-7) exit 1 }
    NR > 3 { q = $1 / was; if (q / factor > 1.0001 || factor / q > 1.0001) exit 1 }
    NR > 2 { factor = $1 / was } { was = $1 } END { exit NR < 20 || NR > 101 }' table.csv \
    || fail "rates: $(cat table.csv)"
must ./one $run=40 --rate-range 1e-3:1e3 --log log --rate-table table.csv
grep -q "the loss rose too far after .* of 40 updates" out || fail "no end"
sed -n 's/.*"loss":\([^,]*\),"lr":\([^,}]*\).*/\2 \1/p' log >logged
awk -F , 'NR > 1 { print $1, $2 }' table.csv | paste -d ' ' - logged |
    awk 'function near(a, b) { return a - b < 1e-6 * a && b - a < 1e-6 * a }
        !near($1, $3) || !near($2, $4) { exit 1 } END { exit NR < 10 }' || fail "the log differs"
# The rate that it names trains; rates far from it do not.
rate=$(sed -n 's/^rate \([^:]*\): .*/\1/p' first)
[ -n "$rate" ] || fail "no rate: $(cat first)"
loss() { must ./one --data train.csv --epochs 3 --progress none --lr "$1"; sed -n \
    '$s/.*loss //p' out; }
good=$(loss "$rate") low=$(loss 1e-7)
awk -v good="$good" -v low="$low" 'BEGIN { exit !(good < 0.6 * low) }' \
    || fail "rate $rate: loss $good, and $low with none"
# Where nothing is to be learned, no rate is named.
for seed in 1 2 3 4 5 6; do
    must ./one $run --rate-range 1e-9:1e-7 --seed $seed
    grep -q "did not fall at any of these rates" out || fail "a rate of noise: $(cat out)"
done
# From a checkpoint: its first loss is that of the weights there.
must ./one --data train.csv --epochs 9 --progress none --lr 0.05 --save ck
before=$(ls -l ck)
must ./one --data train.csv --progress none --find-rate --resume auto --save ck
awk 'NR == 2 { exit !($2 < 0.3) }' out || fail "not from the checkpoint: $(cat out)"
must ./one --data train.csv --progress none --find-rate --save ck --overwrite
[ "$before" = "$(ls -l ck)" ] || fail "it touched the checkpoints"

refused "no guarantee would count them" ./dp --data train.csv --find-rate
refused "trains nothing that --export could write" ./one $run --export x.onnx
refused "trains nothing that --tensorboard could write" ./one $run --tensorboard x
refused "--find-rate and --lr do not go together" ./one $run --lr 3
refused "--find-rate and --epochs do not go together" ./one $run --epochs 3
refused "--rate-range is for --find-rate" ./one --data train.csv --rate-range 1:2
refused "two rates above 0, the lower one first" ./one $run --rate-range 2:1
refused "it takes at least 10 updates" ./one $run=5
echo "found a rate, kept nothing"
