# tests/whole/library_runs.sh -- sourced by tests of libraries (--emit=lib), with BUILD-FOLDER and
# SOURCE-FOLDER as $1 and $2: a folder of their own, and updates by a library beside the trainer's.
lowerset=$(cd "$1" && pwd)/lowerset
source=$(cd "$2" && pwd)
client=$source/tests/whole/library_client.c
. "$source/tests/support/link_flags.sh"
flags=$(link_flags "$(cd "$1" && pwd)")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off
passed=0 rate=0.05
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }

# tensors CHECKPOINT: name and bytes of each, without the place of the run
cat >tensors.py <<'END_OF_PYTHON'
import hashlib, json, struct, sys
data = open(sys.argv[1], "rb").read()
n, = struct.unpack("<Q", data[:8])
head = json.loads(data[8:8 + n])
head.pop("__metadata__", None)
for name, t in sorted(head.items()):
    a, b = t["data_offsets"]
    print(name, t["dtype"], t["shape"], hashlib.sha256(data[8 + n + a:8 + n + b]).hexdigest())
END_OF_PYTHON
tensors() { python3 tensors.py "$1"; }

# build_client FILE.c PROGRAM: with the library in lib/
build_client() {
    # shellcheck disable=SC2086
    cc -Wall -Wextra -Werror -std=c11 $flags -Ilib -I"$source/tests/whole" "$1" lib/libnet.a -lm \
        -lpthread -o "$2" >said 2>&1
}

# compile_both FILE.onnx OPTION...: ./trainer, lib/ and ./client
compile_both() {
    file=$1
    shift
    rm -rf lib saved log
    mkdir lib
    "$lowerset" compile "$file" -q -O 0 --plan-effort 1 "$@" --lr "$rate" -o trainer 2>said \
        || fail "$file $*: the program"
    "$lowerset" compile "$file" -q -O 0 --plan-effort 1 "$@" --lr "$rate" --emit=lib -o lib/net \
        2>said || fail "$file $*: the library"
    build_client "$client" client || fail "$file $*: the library does not link"
}

# same FILE.onnx TOTAL STEPS OPTION...: so many updates over so many samples. CLASSES in the
# environment: of the labels.
same() {
    file=$1 total=$2 steps=$3
    shift 3
    compile_both "$file" "$@"
    (cd lib && ../client make "$total")
    data=$(cd lib && for f in *.npy; do printf '%s=lib/%s,' "${f%.npy}" "$f"; done)
    train="--data ${data%,} --seed 3 --threads 2 --progress none --epochs 100"
    case "$*" in *--dp*) train="$train --noise-seed 7" ;; *) train="$train --no-shuffle" ;; esac
    # shellcheck disable=SC2086
    ./trainer $train --steps "$steps" --save saved --log log >said 2>&1 \
        || fail "$file $*: the trainer"
    ./client train "$total" "$steps" "$rate" 3 2 end.safetensors >losses 2>said \
        || fail "$file $*: $steps updates"
    [ ! -s said ] || fail "$file $*: a library prints"
    tensors saved/*"$(printf %04d "$steps")".safetensors >one
    tensors end.safetensors >other
    [ -s one ] && cmp -s one other || fail "$file $*: other bits: $(diff one other | head -n 4)"
    sed -n 's/.*"loss":\([^,}]*\).*/\1/p' log | head -n "$steps" >expected
    [ "$(wc -l <expected)" = "$steps" ] && cmp -s expected losses \
        || fail "$file $*: other losses: $(diff expected losses | head -n 4)"
    passed=$((passed + 1))
}
