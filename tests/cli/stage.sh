#!/bin/sh
# A terminal shows the current stage of a command with its seconds, then the line disappears; no
# other output has it.
#   sh tests/cli/stage.sh BUILD-FOLDER
set -eu
LOWERSET=$1/lowerset
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
export XDG_CONFIG_HOME=$DIR/config TMPDIR=$DIR
cd "$DIR"
if ! script -qefc true /dev/null >/dev/null 2>&1; then
    echo "skipped: no script (util-linux), which makes a terminal"
    exit 77
fi
esc=$(printf '\033')
failed=0
fail() { echo "FAIL $*"; cat -v out; failed=1; }

# A C compiler that fails when the terminal shows "2 s", or after 20 s.
cat >cc <<'END'
#!/bin/sh
[ "$1" = --version ] && exit
for k in $([ -z "$WAIT" ] || seq 200); do
    grep -q "$WAIT" "$DIR/out" && break
    sleep 0.1
done
exit 1
END
chmod +x cc
export DIR WAIT=
"$LOWERSET" model mlp --batch=0 --width=8 --size=4 -o net.onnx
compile="$LOWERSET compile net.onnx --batch 2 --plan-effort 5 --cc ./cc -o trainer"

WAIT='building trainer ... 2 s' script -qefc "$compile" out </dev/null >/dev/null \
    && fail "cc did not fail"
tr '\r' '\n' <out >lines
grep -q "^$esc\[Knet.onnx: planning [0-9]* nodes \.\.\." lines || fail "no stage of planning"
grep -q "^$esc\[Knet.onnx: building trainer \.\.\. 2 s\$" lines || fail "no seconds"
grep -q "^$esc\[Knet.onnx: error LS-E0017" lines \
    || fail "the error does not stand on a line of its own"
# Narrow terminals: a line never reaches the edge, where erasing would leave a part of it.
cp net.onnx "a-name-that-is-much-too-long-for-a-narrow-terminal.onnx"
script -qefc "stty cols 40; $LOWERSET plan a-name*.onnx --batch 2" out </dev/null >/dev/null \
    || fail "plan"
tr '\r' '\n' <out | grep "^$esc\[Ka-name.* \.\.\." | grep -q "^.\{44,\}" \
    && fail "the line is wider than the terminal"
tr '\r' '\n' <out | grep -q "^$esc\[Ka-name.* \.\.\." || fail "no stage on a narrow terminal"
# With -q, and without a terminal, nothing; with -v lines.
script -qefc "$compile -q" out </dev/null >/dev/null && fail "cc did not fail"
grep -q "planning\|building\|$esc" out && fail "stages with -q"
$compile >out 2>&1 && fail "cc did not fail"
grep -q "planning\|building\|$esc" out && fail "stages without a terminal"
$compile -v >out 2>&1 && fail "cc did not fail"
grep -q '^net.onnx: planning [0-9]* nodes$' out && grep -q '^net.onnx: building trainer$' out \
    || fail "no stages with -v"
[ "$failed" = 0 ] && echo "stages pass"
exit "$failed"
