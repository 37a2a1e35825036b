#!/bin/sh
# bash completes commands, the options of each, their values and file names.
#   sh tests/cli/completion.sh BUILD-FOLDER
set -eu
command -v bash >/dev/null 2>&1 || { echo "skipped: no bash here"; exit 77; }
LOWERSET=$(cd "$1" && pwd)/lowerset
MADE=$(cd "$1/docs" && pwd)/lowerset
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
export LOWERSET MADE LC_ALL=C
cd "$OUT"
mkdir 'a folder' && touch net.onnx 'my net.onnx' net.graph.json net.txt code.idx
cat >check.bash <<'END_OF_CHECK'
set -u
failed=0
source "$MADE"

# completes WORDS... : completes the last word as bash does; prints the possible words, sorted
completes() {
    COMP_WORDS=(lowerset "$@") COMP_CWORD=$# COMPREPLY=()
    _lowerset
    printf '%s\n' "${COMPREPLY[@]}" | sort -u | paste -sd '|'
}

# is WANT WORDS...
is() {
    local got
    got=$(completes "${@:2}" 2>&1)
    [[ $got == "$1" ]] && return
    echo "FAIL lowerset ${*:2}: '$got', not '$1'"
    failed=1
}

is 'calibrate|check|compile' c
is 'compile' com
is 'plan' pl
is '' nothing
is 'compile' help com
is '' help compile p
is '--batch|--bf16-sums|--bn|--bn-var|--budget|--budget-of' compile net.onnx --b
is '--budget|--budget-of' plan --bu
is '--threads' calibrate --t
is 'c|exe|lib|obj' compile --emit ''
is 'exe' compile --emit = e
is 'c|exe|lib|obj' compile --emit =
is '--emit=obj' compile --emit=o
is 'min' compile --budget m
is '' compile --batch ''
is 'a folder|my net.onnx|net.onnx' compile ''
is 'net.graph.json|net.onnx' plan net
is 'net.graph.json|net.onnx|net.txt' compile net.onnx -o net
is 'net.graph.json|net.onnx|net.txt' plan net.onnx --graph-json = net
is 'a folder' compile --save-temps ''
is 'code.idx' check --data co
is '' ops ''
is 'pspnet101|pspnet50' model p
is '--list' model --l
is '--pad' model unet --p
is 'same|valid' model unet --pad ''
is '' model mlp --pa
is 'LS-E0007' explain LS-E0007

# Every option of the tables is offered; each option of model for some network.
n=0
while read -r command option; do
    key=$command
    if [[ $command == model ]]; then
        [[ $option != --list ]] || continue
        key=$(sed -n "s/^    '\(model [a-z0-9_]*\)') .* $option[ '].*/\1/p" "$MADE" | head -1)
    fi
    COMP_WORDS=(lowerset $key "$option") COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _lowerset
    [[ " ${COMPREPLY[*]} " == *" $option "* ]] || {
        echo "FAIL $command $option is not offered"
        failed=1
    }
    n=$((n + 1))
done < <("$LOWERSET" help --table)
((n > 100)) || { echo "FAIL only $n options are in the table"; failed=1; }
((failed)) || echo "bash completes commands, options, values and file names"
exit $failed
END_OF_CHECK
bash check.bash
