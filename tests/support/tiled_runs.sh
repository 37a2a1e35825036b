# tests/support/tiled_runs.sh -- for tests of programs with values in parts against those with whole
# values, which are called with BUILD-FOLDER SOURCE-FOLDER and begin with
#     . "$(dirname "$0")/../support/tiled_runs.sh"
# They go on in a folder of their own, which goes with them.
lowerset=$(cd "$1" && pwd)/lowerset
tests=$(cd "$2" && pwd)/tests
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export LOWERSET_PROBE=off
fail() { echo "FAIL $*"; [ ! -f said ] || tail -n 5 said; exit 1; }
# written NET OUT [WORD...]: the network that tests/whole/NET.py writes
written() {
    net=$1
    shift
    "${PYTHON:-python3}" "$tests/whole/$net.py" "$@" 2>said \
        || { echo "skipped: no python3"; exit 77; }
}

steps=5 more=       # of programs: updates, more options
# trained NAME MODEL THREADS OPTION...: NAME.onnx, NAME.npz of some updates
trained() {
    name=$1 model=$2 threads=$3
    shift 3
    [ -z "${LS_WHOLE-}" ] || steps=50
    "$lowerset" compile "$model" -q -O 0 --plan-effort 1 --store-gradients "$@" -o net \
        >said 2>&1 || fail "compile $*"
    ./net --data "synthetic:$samples" --seed 3 --threads "$threads" --lr 0.05 --steps "$steps" \
        $more --progress none --no-export-notes --export "$name.onnx" --dump "$name.npz" \
        >"$name.said" 2>&1 \
        || { cat "$name.said"; fail "the program of $*"; }
}
passed=0
# Sanitized programs take several times as long: a few of the cases.
few() { [ -n "${LS_SANITIZED-}" ]; }
# same MODEL PARTS OPTION...: the same bits with whole values
same() {
    model=$1 parts=$2
    shift 2
    trained whole "$model" 2 "$@"
    for n in $parts; do
        trained parts "$model" 3 "$@" --tiles "$n"
        cmp -s whole.npz parts.npz || fail "$n parts, $*: other values"
        cmp -s whole.onnx parts.onnx || fail "$n parts, $*: other weights"
        passed=$((passed + 1))
    done
}
# number FILE KEY: the last number after this key
number() { sed -n "s/.*\"$2\":[[:space:]]*\([0-9]*\).*/\1/p" "$1" | tail -n 1; }
# in_graph OP COUNT: graph.json has at least so many of these nodes
in_graph() {
    [ "$(grep -o "\"op\": *\"$1\"" graph.json | wc -l)" -ge "$2" ] || fail "$1 is whole"
}
# arena PLAN.json: bytes of the plan's arena
arena() { grep -v 'no_recompute\|least_arena' "$1" >line; number line arena_bytes; }
# least_arenas MODEL BATCH WAY...: the file `arenas`, a line for each way of options
least_arenas() {
    model=$1 batch=$2
    shift 2
    for way in "$@"; do
        # shellcheck disable=SC2086
        "$lowerset" plan "$model" --batch "$batch" --budget min --plan-effort 1 --json -q $way \
            >plan.json 2>said || fail "plan $way"
        echo "$(arena plan.json)"
    done >arenas
}
# refused WORDS MODEL OPTION...: compile ends with these words
refused() {
    words=$1
    shift
    if "$lowerset" compile "$@" -q -O 0 -o net >said 2>&1; then
        fail "$*: accepted"
    fi
    grep -q -e "$words" said || fail "$*: no word of '$words'"
}
