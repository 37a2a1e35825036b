#!/bin/sh
# docs/cli.md is the page that ./dev docs makes.
#   sh tests/cli/cli_page.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
made=$(mktemp)
trap 'rm -f "$made"' EXIT
sh "$2/docs/cli.sh" "$1" >"$made"
if diff -u "$2/docs/cli.md" "$made"; then echo "docs/cli.md is up to date"; exit; fi
echo "FAIL docs/cli.md is old: run ./dev docs"
exit 1
