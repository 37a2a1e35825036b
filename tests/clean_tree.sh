#!/bin/sh
# No test, tool or interrupted run has left a file in the sources: results of programs belong into
# folders of their own. New sources that are not added yet are none of these.
#   sh tests/clean_tree.sh SOURCE-FOLDER [--prove]
set -eu
cd "$1"
if ! top=$(git rev-parse --show-toplevel 2>/dev/null) || [ "$top" != "$(pwd -P)" ]; then
    echo "skipped: no checkout of git's"
    exit 77
fi
if [ "${2:-}" = --prove ]; then     # the check sees a file
    probe=tests/clean_tree.interrupted.safetensors
    trap 'rm -f "$probe"' EXIT
    : >"$probe"
    if sh tests/clean_tree.sh . >/dev/null; then echo "FAIL $probe is not seen"; exit 1; fi
    exit 0
fi
left=$(git status --porcelain --untracked-files=all | sed -n 's/^?? //p' |
       grep -vE '\.(c|h|def|md|sh|py|build|txt|machine|json|svg|S|map)"?$' || true)
if [ -n "$left" ]; then
    echo "FAIL files that do not belong to the sources; add them to git, or remove them and see" \
        "what wrote them:"
    echo "$left"
    exit 1
fi
echo "no file is left in the sources"
