#!/bin/sh
# Every test has a timeout of its own: meson's 30 seconds for those without one are too few for a
# slow machine. The list of long tests names tests that there are, in this build or, say with MPI,
# in another one.
#   sh tests/own_timeouts.sh BUILD-FOLDER
set -eu
tests=$1/meson-info/intro-tests.json
[ -s "$tests" ] || { echo "skipped: no list of tests in $1/meson-info"; exit 77; }
rows=$(grep -o '"timeout": *[0-9]*' "$tests" | wc -l)
[ "$rows" -gt 100 ] || { echo "FAIL only $rows tests in $tests"; exit 1; }
short=$(tr '{' '\n' <"$tests" | grep -E '"timeout": *[0-9]{1,2}[,}]' |
    sed -n 's/.*"name": *"\([^"]*\)".*/\1/p')
[ -z "$short" ] || { echo "FAIL tests without a timeout of at least 100 seconds:" $short; exit 1; }
here=$(dirname "$0")
while read -r name; do
    grep -q "\"name\": *\"$name\"" "$tests" || grep -q "test('$name'" "$here/meson.build" ||
        { echo "FAIL long.txt: no test $name"; exit 1; }
done <"$here/long.txt"
echo "$rows tests have a timeout of their own"
