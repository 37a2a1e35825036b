#!/bin/sh
# Runs a test of the package by the first Python that has what it needs: $PYTHON, python3, or that
# of the system; without one it is skipped.
#   sh tests/python/run.sh LOWERSET TEST.py MODULE...
set -eu
if [ -n "${LS_SANITIZED:-}" ]; then
    echo "skipped: a sanitized library cannot be loaded into python3"
    exit 77
fi
LOWERSET=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
export LOWERSET LOWERSET_PROBE=off
test=$2
shift 2
for python in ${PYTHON:-} python3 /usr/bin/python3; do
    if "$python" -c "$(printf 'import %s\n' "$@")" 2>/dev/null; then
        exec "$python" "$test"
    fi
done
echo "skipped: no python3 has $*; PYTHON=venv/bin/python names one that has"
exit 77
