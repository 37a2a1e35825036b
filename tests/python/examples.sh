#!/bin/sh
# The examples in Python run to their ends, and reach what they say: those whose libraries this
# Python has.
#   PYTHON=venv/bin/python sh tests/python/examples.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
LOWERSET=$(cd "$1" && pwd)/lowerset
source=$(cd "$2" && pwd)
PYTHONPATH=$source/python
PYTHON=${PYTHON:-python3}
export LOWERSET PYTHONPATH LOWERSET_PROBE=off PYTHONDONTWRITEBYTECODE=1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
failed=0

has() { "$PYTHON" -c "import $1" >/dev/null 2>&1; }

# example MODULES WORDS FILE OPTION...: it ends well, and its last line has the words.
example() {
    modules=$1 words=$2
    shift 2
    for m in $modules; do
        has "$m" || { echo "left out: $1 ($m is not installed)"; return; }
    done
    if "$PYTHON" "$source/examples/python/$@" >said 2>&1 && tail -n 1 said | grep -q "$words"; then
        echo "ran: $1: $(tail -n 1 said)"
    else
        failed=1
        echo "FAIL $1"
        tail -n 5 said
    fi
}

has torch && has onnx || { echo "SKIP: $PYTHON has no torch, or no onnx"; exit 77; }
example "torchvision" "tells [6-9][0-9] %\|100 %" fine_tune_resnet.py
example "transformers" "\(9[0-9]\|100\) % of the held" classify_text.py
example "" "discs: 0[.][89]" segment_unet.py
example "" "has the bits of the other" own_loop.py
example "matplotlib" "^0[.]9" run_notebook.py "$source/examples/python/budget.ipynb"
exit $failed
