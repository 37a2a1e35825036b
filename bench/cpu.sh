#!/bin/sh
# Training steps on the CPU beside PyTorch: time and peak memory, in turns, one table.
#   sh bench/cpu.sh BUILD-FOLDER [--rounds R] [--steps PERCENT] [--threads "1 2"]
#                    [--coretype NAME] [--precision bf16] [MODEL...]
#
# Each configuration runs in a process of its own, R times (2), with lowerset and PyTorch in turns,
# so that other jobs disturb both alike. A figure is the median over the rounds, "best" the fastest
# step of all rounds, "cpu" the processor time of a step: PyTorch's the least of the rounds,
# lowerset's the least time of a run less that of a run of one step. (The least difference within a
# round would choose those whose short run was disturbed.) Processes stay on as many CPUs as they
# have threads. PyTorch runs plain and channels-last, and the table shows the better run. With
# several threads, PyTorch's one-thread run also counts if it is better. A step is forward, loss,
# backward and update (SGD with momentum; AdamW for the GPT), after a warm-up. Both sides train on
# the same batch: PyTorch has it as a tensor, lowerset reads it from a file each step.
# --coretype: OPENBLAS_CORETYPE for PyTorch, where its OpenBLAS does not recognise the CPU.
# --precision bf16: in 16 bits, beside lowerset in f32 and PyTorch under autocast. PYTHON: an
# interpreter with another PyTorch than Debian's.
set -eu
BUILD=$1
shift
HERE=$(dirname "$0")
LOWERSET=$BUILD/lowerset
OUT=$BUILD/bench
PYTHON=${PYTHON:-/usr/bin/python3}
ROUNDS=2
PERCENT=100
THREADS="1 2"
MODELS=
CORETYPE=
PRECISION=f32

say() { printf '%s\n' "$*" >&2; }

while [ $# -gt 0 ]; do
    case $1 in
    --rounds) ROUNDS=$2; shift 2 ;;
    --steps) PERCENT=$2; shift 2 ;;
    --threads) THREADS=$2; shift 2 ;;
    --coretype) CORETYPE=$2; shift 2 ;;
    --precision) PRECISION=$2; shift 2 ;;
    -*) say "usage: bench/cpu.sh BUILD [--rounds R] [--steps PERCENT] [--threads '1 2']" \
            "[--coretype NAME] [--precision bf16] [MODEL...]"
        exit 2 ;;
    *) MODELS="$MODELS $1"; shift ;;
    esac
done
[ -n "$MODELS" ] || MODELS="resnet18 unet densenet121 mlp gpt"

# The generator's options and the training options; bench/torch_peer.py does the same under the
# same name.
settings() {
    optimizer=sgd:momentum=0.9
    lr=0.01
    case $1 in
    resnet18) model="resnet18 --batch=8"; steps=24 ;;
    unet) model="unet --size=128 --batch=2"; steps=16 ;;
    densenet121) model="densenet121 --size=112 --batch=4"; steps=60 ;;
    mlp) model="mlp --batch=256"; steps=500 ;;
    gpt) model="gpt --depth=4 --width=256 --heads=8 --context=256 --vocab=4096 --batch=4"; steps=40
         optimizer=adamw:wd=0.01; lr=1e-3 ;;
    *) say "no such benchmark: $1 (resnet18 unet densenet121 mlp gpt)"; exit 2 ;;
    esac
    steps=$((steps * PERCENT / 100))
    [ "$steps" -ge 5 ] || steps=5
}

# The first N of the CPUs this process may use, as "0,1".
cpus() {
    awk -v n="$1" '/^Cpus_allowed_list:/ {
        k = split($2, range, ",")
        for (i = 1; i <= k && n > 0; i++) {
            m = split(range[i], end, "-")
            for (c = end[1]; c <= end[m] && n > 0; c++) { list = list sep c; sep = ","; n-- }
        }
        print list
    }' /proc/self/status
}

pinned() {      # THREADS COMMAND...
    list=$(cpus "$1")
    shift
    if command -v taskset >/dev/null 2>&1; then exec taskset -c "$list" "$@"; else exec "$@"; fi
}

# Peak memory of a process so far, KiB; nothing if the process has ended.
high_water() {
    [ -r "/proc/$1/status" ] || return 0
    while read -r key value _; do
        [ "$key" != VmHWM: ] || echo "$value"
    done <"/proc/$1/status" 2>/dev/null || true
}

# Processor time of all children, ms, from the output of `times`.
children() {
    awk 'NR == 2 { gsub(/[ms]/, " "); printf "%.2f\n", ($1 * 60 + $2 + $3 * 60 + $4) * 1e3 }'
}

trainer() {     # PROGRAM THREADS STEPS
    rm -f "$OUT/log.jsonl"
    (pinned "$2" "$OUT/$1" --data "$data" --epochs "$3" --steps "$3" --threads "$2" \
        --progress none --log "$OUT/log.jsonl") >"$OUT/trainer.out" 2>&1 &
    pid=$!
    peak=0
    while now=$(high_water "$pid") && [ -n "$now" ]; do
        peak=$now
        sleep 0.2
    done
    wait "$pid" || { say "the trainer of $1 failed:"; cat "$OUT/trainer.out" >&2; exit 1; }
}

# Adds "MODEL THREADS who median best peak-MiB long short steps" for one run of lowerset's trainer;
# long, short: processor time of the run and of one of a single step; steps: by which they differ.
# Its memory is the kernel's high-water mark, read while it runs: nothing is allocated after the
# first step.
ours() {        # MODEL THREADS TYPE
    times >"$OUT/times"; before=$(children <"$OUT/times")
    trainer "$1-$3" "$2" 1
    times >"$OUT/times"; short=$(children <"$OUT/times")
    trainer "$1-$3" "$2" "$steps"
    times >"$OUT/times"; long=$(children <"$OUT/times")
    # a step's time is the difference of two lines' times; the first two steps warm up
    sed -n 's/.*"step":.*"time":\([0-9.]*\).*/\1/p' "$OUT/log.jsonl" \
        | awk 'NR > 2 { printf "%.6f\n", ($1 - last) * 1e3 } { last = $1 }' | sort -n \
        | awk -v head="$1 $2 lowerset-$3" -v kib="$peak" -v steps="$steps" -v before="$before" \
            -v short="$short" -v long="$long" '{ t[NR] = $1 } END {
            printf "%s %.3f %.3f %.0f %.2f %.2f %d\n", head,
                t[int((NR + 1) / 2)], t[1], kib / 1024, long - short,
                short - before, steps - 1 }' >>"$RESULTS"
}

# The same for PyTorch, one variant.
theirs() {
    "$PYTHON" "$HERE/torch_peer.py" "$1" --threads "$2" --variant "$3" --seconds 0 \
        --steps "$steps" \
        --coretype "$CORETYPE" ${AUTOCAST:+--autocast "$AUTOCAST"} \
        | tr -d ',"' | awk -v head="$1 $2 $3" '{
            for (i = 1; i < NF; i++) is[$i] = $(i + 1)
            print head, is["median_ms:"], is["best_ms:"], is["peak_rss_mb:"], is["cpu_ms:"] }' \
        >>"$RESULTS"
}

variants() {
    case $1 in mlp | gpt) echo plain ;; *) echo plain channels-last ;; esac
}

TYPES=$PRECISION
AUTOCAST=
[ "$PRECISION" = f32 ] || TYPES="$PRECISION f32"
[ "$PRECISION" != bf16 ] || AUTOCAST=bf16
[ -x "$LOWERSET" ] || { say "$LOWERSET is not there: ./dev build"; exit 5; }
mkdir -p "$OUT"
RESULTS=$OUT/cpu.txt
: >"$RESULTS"
torch=yes
"$PYTHON" -c 'import torch' 2>/dev/null || {
    torch=
    say "skipped: PyTorch (no python3-torch here)"
}
[ -z "$torch" ] || "$PYTHON" "$HERE/torch_peer.py" --blas | grep -q openblas \
    || say "note: PyTorch has no OpenBLAS here and is slow at products (libopenblas0-pthread)"

for m in $MODELS; do
    settings "$m"
    say "$m: $model, $steps steps"
    # shellcheck disable=SC2086
    "$LOWERSET" model $model -o "$OUT/$m.onnx"
    for type in $TYPES; do
        "$LOWERSET" compile "$OUT/$m.onnx" --strategy none --loss=ce --optimizer="$optimizer" \
            --precision "$type" --lr "$lr" -o "$OUT/$m-$type"       # neither side recomputes
    done
    data=synthetic
    [ -z "$torch" ] || { data=$OUT/$m.npz; "$PYTHON" "$HERE/torch_peer.py" "$m" --save "$data"; }
    round=0
    while [ $round -lt "$ROUNDS" ]; do
        for t in $THREADS; do
            for type in $TYPES; do ours "$m" "$t" "$type"; done
            [ -z "$torch" ] || for v in $(variants "$m"); do theirs "$m" "$t" "$v"; done
        done
        round=$((round + 1))
    done
done

awk -v models="$MODELS" -v threads="$THREADS" -v type="$PRECISION" '
    function median(key,    list, n, i, j, x) {
        n = split(value[key], list, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; j--) {
                x = list[j]; list[j] = list[j - 1]; list[j - 1] = x
            }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    {
        key = $1 " " $2 " " $3
        value[key] = value[key] " " $4
        if (!(key in best) || $5 < best[key]) best[key] = $5
        if (!(key in long) || $7 < long[key]) long[key] = $7
        if (!(key in short) || $8 + 0 < short[key]) short[key] = $8 + 0
        steps[key] = NF > 8 ? $9 : 1
        if ($6 > peak[key]) peak[key] = $6
    }
    END {
        for (key in long) cpu[key] = sprintf("%.2f", (long[key] - short[key]) / steps[key])
        format = "%-12s %7s  %19s %8s %9s  %19s %8s %9s  %-16s %6s\n"
        printf format, "model", "threads", "lowerset ms (best)", "cpu ms", "peak MiB",
            "PyTorch ms (best)", "cpu ms", "peak MiB", "its setting", "ratio"
        nm = split(models, m, " "); nt = split(threads, t, " ")
        for (i = 1; i <= nm; i++)
            for (j = 1; j <= nt; j++) {
                us = m[i] " " t[j] " lowerset-" type
                them = ""
                for (k = 1; k <= j; k++)
                    for (v = 1; v <= 2; v++) {
                        key = m[i] " " t[k] " " (v == 1 ? "plain" : "channels-last")
                        if (key in value && (them == "" || median(key) < median(them))) them = key
                    }
                ours = sprintf("%.1f (%.1f)", median(us), best[us])
                if (them == "") {
                    printf format, m[i], t[j], ours, cpu[us], peak[us], "-", "-", "-", "-", "-"
                    continue
                }
                split(them, part, " ")
                printf format, m[i], t[j], ours, cpu[us], peak[us],
                    sprintf("%.1f (%.1f)", median(them), best[them]), cpu[them], peak[them],
                    part[3] " t" part[2], sprintf("%.2f", median(them) / median(us))
            }
        for (i = 1; i <= nm && type != "f32"; i++)
            for (j = 1; j <= nt; j++) {
                us = m[i] " " t[j] " lowerset-"
                printf "%-12s %7s  %s %.1f ms, f32 %.1f ms: %.2f of it\n", m[i], t[j], type,
                    median(us type), median(us "f32"), median(us type) / median(us "f32")
            }
        if (them != "") print "ratio: PyTorch'"'"'s time over ours; above 1 lowerset is faster"
    }' "$RESULTS"
