#!/bin/sh
# Every option of every command reaches the program or the output: each row of the option table
# (lowerset help --table) has a row here, and what the command makes with the option is not what it
# makes without it. An option with neither a row nor a place in the list of pending rows fails.
#   sh tests/options.sh BUILD-FOLDER
set -eu
LOWERSET=$1/lowerset
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
export LC_ALL=C XDG_CONFIG_HOME=$DIR/config TMPDIR=$DIR
cd "$DIR"
failed=0 n=0

# A C compiler that keeps what it is given to compile, and says no.
cat >cc <<END
#!/bin/sh
echo "\$@" | sed "s,[^ ]*/lowerset-[^ /]*,DIR,g" >>"$DIR/kept"
for f in "\$@"; do case \$f in *.c|*.S) sed "s,[^ \\"]*/lowerset-[^ /]*,DIR,g" "\$f" >>"$DIR/kept" ;; esac; done
exit 1
END
chmod +x cc
"$LOWERSET" model mlp --batch=0 --width=8 --size=4 -o net.onnx

# makes COMMAND OPTIONS...: all that it says and writes, times of day and hashes of paths apart
makes() {
    rm -rf kept made
    command=$1
    shift
    case $command in
    compile) "$LOWERSET" compile "$@" --cc "$DIR/cc" -o made ;;
    sweep) "$LOWERSET" sweep "$@" --points 1 -o made ;;
    check) CC=$DIR/cc "$LOWERSET" check "$@" ;;
    *) "$LOWERSET" "$command" "$@" ;;
    esac >made.txt 2>&1 </dev/null || echo "exit $?" >>made.txt
    for f in kept made/sweep.csv; do [ ! -f "$f" ] || cat "$f" >>made.txt; done
    cat made.txt
}

# row COMMANDS OPTION VALUE BASE: with --option=VALUE ("-": a flag) beside options BASE
: >rows
row() {
    option=$2 value=$3 base=$4
    for c in $1; do
        echo "$c $option" >>rows
        n=$((n + 1))
        # shellcheck disable=SC2086
        key=without-$(echo "$c $base" | tr ' /*=' '____')
        [ -f "$key" ] || makes "$c" $base >"$key"
        case $value in
        -) makes "$c" $base "$option" >with ;;
        *) makes "$c" $base "$option" "$value" >with ;;
        esac
        if grep -q "unknown option\|wants\|is none of\|is not " with || cmp -s "$key" with; then
            echo "FAIL $c $option $value does nothing, beside $base"
            head -3 with
            failed=1
        fi
    done
}
NET="net.onnx --batch 2 --plan-effort 5"

row "compile plan check" --loss mse "$NET"
row "compile plan check" --optimizer adam "$NET"
row "compile" --lr 0.125 "$NET"
row "compile" --schedule cosine "$NET"
row "compile check" --label-smoothing 0.25 "$NET"
row "compile check" --ignore-index 3 "$NET"
row "compile plan check" --clip-norm 1.5 "$NET"
row "compile check" --clip-value 1.5 "$NET"
row "compile plan check" --accumulate 3 "$NET"
row "compile check" --label target "$NET"
row "compile plan check" --freeze "*" "$NET"
row "compile plan sweep check" --batch 3 "net.onnx --plan-effort 5"
row "compile plan check" --dim N=3 "net.onnx --plan-effort 5"
row "compile plan check" --precision f64 "$NET"
row "plan" --budget 90% "$NET"
row "plan" --strategy chen "$NET"
row "plan" --json - "$NET"
row "inspect" --json - net.onnx
row "inspect" --dim N=3 net.onnx
row "compile plan" --verbose - "$NET"
row "compile" --quiet - "$NET -n"
row "compile" -march x86-64 "$NET"
row "compile" --opt 1 "$NET"
row "compile" --emit obj "$NET"
row "compile" --emit-obj - "$NET"
row "compile" --dry-run - "$NET"
row "compile plan" --dump import "$NET"
row "compile plan sweep check" --train "fc2*" "$NET --freeze fc*"
row "inspect" --freeze "*" net.onnx
row "inspect" --train "fc2*" "net.onnx --freeze fc*"
"$LOWERSET" model mlp --batch=0 --width=8 --size=4 --dropout=0.5 -o drop.onnx
row "compile plan sweep check" --dropout off "drop.onnx --batch 2 --plan-effort 5"
"$LOWERSET" model unet --width=2 --depth=1 --size=8 -o seg.onnx
row "compile plan sweep check" --class-axis 2 "seg.onnx --batch 2 --plan-effort 5"
row "inspect" --bn frozen seg.onnx

# Rows that are still to be written. A new option has no place here.
"$LOWERSET" help --table | sort -u >table
sort -u >pending <<'END'
calibrate --output
calibrate --quick
calibrate --threads
calibrate --verbose
check --against
check --allow-nondeterministic
check --arch
check --bn
check --bn-var
check --budget
check --budget-of
check --cc
check --class-weights
check --compiled-engines
check --costs
check --data
check --dump
check --elements
check --forget
check --graph
check --json
check --keep
check --loss-input
check --lr
check --machine
check --max-errors
check --no-alternatives
check --no-epilogues
check --no-inplace
check --nvcc
check --opt
check --overlap
check --own-convolutions
check --plan-effort
check --plan-time
check --prove
check --quiet
check --recompute
check --shape
check --store-gradients
check --strategy
check --target
check --tie
check --verbose
check --workspace
check -march
compile --allow-nondeterministic
compile --arch
compile --bn
compile --bn-var
compile --budget
compile --budget-of
compile --cc
compile --class-weights
compile --compiled-engines
compile --costs
compile --emit-c
compile --forget
compile --keep
compile --loss-input
compile --machine
compile --max-errors
compile --no-alternatives
compile --no-epilogues
compile --no-inplace
compile --nvcc
compile --output
compile --overlap
compile --own-convolutions
compile --plan-effort
compile --plan-time
compile --prove
compile --recompute
compile --save-temps
compile --shape
compile --store-gradients
compile --strategy
compile --target
compile --tie
compile --workspace
inspect --batch
inspect --dump
inspect --max-errors
inspect --quiet
inspect --shape
inspect --tie
inspect --verbose
model --batch
model --bn
model --channels
model --classes
model --context
model --depth
model --dropout
model --head
model --heads
model --list
model --pad
model --seed
model --size
model --stem
model --up
model --vocab
model --weights
model --width
model -o
model -v
plan --against
plan --allow-nondeterministic
plan --arch
plan --bn
plan --bn-var
plan --budget-of
plan --class-weights
plan --clip-value
plan --compiled-engines
plan --costs
plan --forget
plan --graph
plan --graph-json
plan --ignore-index
plan --keep
plan --label
plan --label-smoothing
plan --loss-input
plan --machine
plan --max-batch
plan --max-errors
plan --no-alternatives
plan --no-epilogues
plan --no-inplace
plan --no-offsets
plan --overlap
plan --own-convolutions
plan --plan-effort
plan --plan-json
plan --plan-time
plan --prove
plan --quiet
plan --recompute
plan --report
plan --shape
plan --store-gradients
plan --target
plan --tie
plan --timeline
plan --tolerance
plan --workspace
sweep --accumulate
sweep --allow-nondeterministic
sweep --arch
sweep --bn
sweep --bn-var
sweep --budget-of
sweep --cc
sweep --class-weights
sweep --clip-norm
sweep --clip-value
sweep --compiled-engines
sweep --costs
sweep --dim
sweep --dump
sweep --forget
sweep --freeze
sweep --from
sweep --ignore-index
sweep --keep
sweep --label
sweep --label-smoothing
sweep --loss
sweep --loss-input
sweep --machine
sweep --max-errors
sweep --measure
sweep --no-alternatives
sweep --no-epilogues
sweep --no-inplace
sweep --no-offsets
sweep --nvcc
sweep --opt
sweep --optimizer
sweep --output
sweep --own-convolutions
sweep --plan-effort
sweep --plan-time
sweep --points
sweep --precision
sweep --prove
sweep --quiet
sweep --recompute
sweep --shape
sweep --store-gradients
sweep --strategies
sweep --table
sweep --target
sweep --tie
sweep --to
sweep --verbose
sweep --workspace
sweep -march
END
sort -u rows >have
sort -u rows pending | comm -23 table - >missing
while read -r line; do
    echo "FAIL $line has no row here"
    failed=1
done <missing
{ comm -12 have pending; comm -13 table pending; } >stale
while read -r line; do
    echo "FAIL $line is pending, but has a row or is no option"
    failed=1
done <stale
[ "$failed" = 0 ] && echo "$n rows"
exit "$failed"
