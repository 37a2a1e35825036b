#!/bin/sh
# The manual page names every command and every option, and groff does not warn.
#   sh tests/cli/man_page.sh BUILD-FOLDER
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
page=$1/docs/lowerset.1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
fail() { echo "FAIL $*"; failed=1; }

# The page without its markup; each command's section goes into a file of its own.
sed -e 's/\\f[BIR]//g; s/\\-/-/g; s/\\&//g; s/\\e/\\/g; s/^\.[BI] //' "$page" >"$out/page"
awk -v out="$out" '/^\.S[SH] / { to = $1 == ".SS" ? $3 : "" } to != "" { print >(out "/of-" to) }' \
    "$out/page"
"$lowerset" help --table >"$out/table"
[ "$(wc -l <"$out/table")" -gt 100 ] || fail "there is no table of options"
while read -r command option; do
    grep -q -e "^\([^ ]*, \)*$option\([= []\|\$\)" -e "^lowerset $command.* $option " \
        "$out/of-$command" \
        || [ "$command $option" = "model --list" ] || fail "$command $option is not in the page"
done <"$out/table"
for command in $("$lowerset" help | sed -n 's/^  lowerset \([a-z]*\) .*/\1/p'); do
    [ -f "$out/of-$command" ] || fail "there is no section about $command"
done
# A word of the help text that the page lost would stand in no section.
for command in compile plan; do
    "$lowerset" help "$command" | tr -s ' ' '\n' | sort -u >"$out/want"
    tr -s ' ' '\n' <"$out/page" | sort -u >"$out/have"
    comm -23 "$out/want" "$out/have" >"$out/lost"
    grep -v -e '^usage:$' -e ',$' "$out/lost" >"$out/words" || continue
    fail "words of the help of $command are not in the page: $(tr '\n' ' ' <"$out/words")"
done
if command -v groff >/dev/null 2>&1; then
    groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null | head -5 >"$out/said"
    [ ! -s "$out/said" ] || fail "groff warns: $(cat "$out/said")"
else
    echo "not checked by groff, which is not here"
fi
[ "$failed" = 0 ] && echo "the manual page has every command and option"
exit "$failed"
