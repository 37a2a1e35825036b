#!/bin/sh
# For every output of lowerset: a regular file is replaced whole, a link stays a link, a pipe or a
# device is written to.
#   sh tests/cli/outputs.sh BUILD-FOLDER
set -eu
lowerset=$1/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
passed=0
fail() { echo "FAIL $1"; exit 1; }
pass() { passed=$((passed + 1)); }

"$lowerset" model mlp -o m.onnx >/dev/null
plan() { "$lowerset" plan m.onnx --batch 4 --plan-effort 1 "$@" >/dev/null 2>&1; }
program() {
    "$lowerset" compile m.onnx --batch 4 --opt 0 --plan-effort 1 -q -o "$1" >/dev/null 2>&1
}

plan --plan-json p.json --graph-json g.json
program t
size=$(wc -c <t)

# A pipe gets the bytes, and stays a pipe.
mkfifo pipe
cat pipe >got & reader=$!
plan --plan-json pipe || fail "plan --plan-json into a pipe"
wait "$reader"
[ -p pipe ] && cmp -s got p.json || fail "a pipe did not get the plan"
cat pipe >got & reader=$!
program pipe || fail "compile -o into a pipe"
wait "$reader"
[ -p pipe ] && [ "$(wc -c <got)" = "$size" ] || fail "a pipe did not get the program"
"$lowerset" plan m.onnx --batch 4 --plan-effort 1 --plan-json /dev/stdout >both 2>/dev/null
grep -q '^m.onnx: plan' both && grep -q '"steps"' both || fail "stdout is not shared"
pass

# What does not get all of its text must not pass for a success.
if [ -c /dev/full ]; then
    program full
    for command in "plan m.onnx --batch 4 --plan-effort 1" \
        "plan m.onnx --batch 4 --plan-effort 1 --json" "inspect m.onnx" ops \
            "explain" help "sweep m.onnx --batch 4 --points 2 --plan-effort 1"; do
        code=0
        "$lowerset" $command >/dev/full 2>err || code=$?
        [ "$code" = 1 ] && grep -q 'the output could not be written' err \
            || fail "$command: exit code $code on a full disk"
    done
    code=0
    ./full --help >/dev/full 2>err || code=$?
    [ "$code" = 1 ] && grep -q 'the output could not be written' err \
        || fail "a program: exit code $code on a full disk"
    pass
fi

# So does a device. Making one takes root.
if mknod null c 1 3 2>/dev/null; then
    plan --plan-json null && plan --report null && program null || fail "a device is refused"
    [ -c null ] || fail "a device was replaced"
    pass
else
    echo "skipped: no device can be made here"
fi

# A link stays, and its target is replaced.
mkdir far
echo old >far/p.json
ln -s far/p.json link
plan --plan-json link
[ -L link ] && cmp -s far/p.json p.json || fail "a link was replaced"
echo old >far/t
rm link
ln -s far/t link
program link
[ -L link ] && [ -x far/t ] && far/t --version >/dev/null || fail "compile replaced a link"
pass

# The old file is whole until the new file is whole: an open reader continues with the old file.
echo old >p2.json
exec 3<p2.json
plan --plan-json p2.json
[ "$(cat <&3)" = old ] && cmp -s p2.json p.json || fail "a file was written over in place"
cp t t2
program t2 || fail "compile over a program"
! CC=false program t2 || fail "a compiler that fails is not told"
./t2 --version >/dev/null || fail "a failed compilation took the old program away"
pass

# A missing folder is reported before the model is read.
for option in plan-json graph-json graph report timeline; do
    ! "$lowerset" plan no.onnx --batch 4 --$option nodir/x 2>err || fail "--$option nodir/x"
    grep -q '^lowerset: nodir/x: cannot write: No such file or directory$' err || fail "$(cat err)"
done
! "$lowerset" compile no.onnx --batch 4 -o nodir/x 2>err || fail "-o nodir/x"
grep -q '^lowerset: nodir/x: cannot write: No such file or directory$' err || fail "$(cat err)"
[ -z "$(find . -name '*.tmp')" ] || fail "temporary files are left: $(find . -name '*.tmp')"
pass
echo "$passed passed, 0 failed"
