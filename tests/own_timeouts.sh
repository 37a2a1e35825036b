#!/bin/sh
# Every test has a timeout of its own: meson's 30 seconds for those without one are too few for a
# slow machine. The lists of long tests name tests that there are; comm_mpi is there only with MPI,
# and without sanitizers.
#   sh tests/own_timeouts.sh BUILD-FOLDER
set -eu
tests=$1/meson-info/intro-tests.json
[ -s "$tests" ] || { echo "skipped: no list of tests in $1/meson-info"; exit 77; }
rows=$(grep -o '"timeout": *[0-9]*' "$tests" | wc -l)
[ "$rows" -gt 100 ] || { echo "FAIL only $rows tests in $tests"; exit 1; }
short=$(tr '{' '\n' <"$tests" | grep -E '"timeout": *[0-9]{1,2}[,}]' |
    sed -n 's/.*"name": *"\([^"]*\)".*/\1/p')
[ -z "$short" ] || { echo "FAIL tests without a timeout of at least 100 seconds:" $short; exit 1; }
for list in long long_sanitized; do
    while read -r name; do
        [ "$name" != comm_mpi ] || continue
        grep -q "\"name\": *\"$name\"" "$tests" || { echo "FAIL $list.txt: no test $name"; exit 1; }
    done <"$(dirname "$0")/$list.txt"
done
echo "$rows tests have a timeout of their own"
