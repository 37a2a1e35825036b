#!/bin/sh
# Counts the lines of each room that the tests in BUILD-FOLDER have executed, in the compiler
# and in the programs that it made, which link the runtime library of that folder. Lines of
# kernels that such programs include are not counted. With gcovr it also makes pages of all
# sources: BUILD-FOLDER/coverage/index.html.
#   sh tests/coverage.sh BUILD-FOLDER
set -eu
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
export LC_ALL=C
command -v gcov >/dev/null 2>&1 || { echo "gcov is missing: it comes with gcc" >&2; exit 5; }

# gcov adds up all objects of one call, so a source or header of many objects counts as one file.
# The percentage has two decimals, which give the exact number of lines for files of less than 5000.
(cd "$build" && find . -name '*.gcno' -exec gcov -n {} + 2>/dev/null) | awk '
/^File / { split($0, part, "\047"); path = part[2]; next }
/^Lines executed:/ && path ~ /^\.\.\// {
    split(path, folder, "/")
    split($0, share, /[:%]| of /)
    of[folder[2]] += $NF
    run[folder[2]] += int(share[2] * $NF / 100 + 0.5)
}
{ path = "" }
function row(name, run, of) {
    printf "%-10s %7d of %7d lines  %5.1f%%\n", name, run, of, of ? 100 * run / of : 0
}
END {
    n = split("base compiler scheduler codegen runtime cli models", room, " ")
    for (k = 1; k <= n; k++) {
        row(room[k], run[room[k]], of[room[k]])
        all_run += run[room[k]]; all_of += of[room[k]]
    }
    row("all", all_run, all_of)
    exit all_of == 0
}' || { echo "$1 is no build folder of -Db_coverage=true by gcc" >&2; exit 1; }

if command -v gcovr >/dev/null 2>&1; then
    mkdir -p "$build/coverage"
    gcovr --root . --object-directory "$build" --exclude tests --exclude bench --exclude demo \
        --exclude "$build" \
        --html-details "$build/coverage/index.html" >/dev/null \
        && echo "line by line: $build/coverage/index.html"
fi
