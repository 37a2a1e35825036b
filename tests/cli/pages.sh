#!/bin/sh
# Everything that the pages name exists: paths and ls_ names in backquotes, files and sections
# that links lead to. Every page of docs/ is linked from the README, or from the index of the
# lab, docs/lab/README.md.
#   sh tests/cli/pages.sh SOURCE-FOLDER
# A path begins with a folder of the root and has no blank or pattern in it; build folders do
# not count.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1"
failed=0
fail() { echo "FAIL $*"; failed=1; }

find base cli codegen compiler models runtime scheduler tests bench demo lowerset.c -name '*.[ch]' \
    -exec cat {} + |
    grep -oE '\bls_[a-z0-9_]+( =|[[(])' | sed 's/[^a-z0-9_].*//' | sort -u >"$work/known"
[ -s "$work/known" ] || fail "there are no sources in $1"

# sections PAGE: the names that links give the sections of a page, as GitHub makes them
sections() {
    awk '/^ *```/ { block = !block; next }
        !block && /^#+ / { sub(/^#+ /, ""); print tolower($0) }' "$1" |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# leads_somewhere PAGE LINK
leads_somewhere() {
    target=${2%%#*}
    if [ -n "$target" ]; then target=$(dirname "$1")/$target; else target=$1; fi
    [ -e "$target" ] || return 1
    case $2 in *.md#* | "#"*) sections "$target" | grep -qxF -e "${2#*#}" ;; esac
}

for page in README.md CONTRIBUTING.md CHANGELOG.md docs/*.md docs/lab/*.md; do
    [ -s "$page" ] || { fail "$page is missing"; continue; }
    awk '/^ *```/ { block = !block; next } !block && !/^    /' "$page" >"$work/text"
    grep -oE '`[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*`' "$work/text" | tr -d '`' |
        sort -u >"$work/paths" || :
    while read -r path; do
        case $path in build* | out/* | ./*) continue ;; esac
        [ ! -d "${path%%/*}" ] || [ -e "$path" ] || fail "$page: there is no $path"
    done <"$work/paths"
    grep -oE '`ls_[a-z0-9_]*[a-z0-9]`' "$work/text" | tr -d '`' | sort -u |
        comm -23 - "$work/known" >"$work/unknown" || :
    while read -r name; do
        fail "$page: no source has $name"
    done <"$work/unknown"
    grep -oE '\]\([^) ]+' "$work/text" | cut -c3- | grep -v '^[a-z]*:' | sort -u >"$work/links" || :
    while read -r link; do
        leads_somewhere "$page" "$link" || fail "$page: the link to $link leads nowhere"
    done <"$work/links"
done
for page in docs/*.md; do
    grep -q "($page)" README.md || fail "README.md has no link to $page"
done
for page in docs/lab/*.md; do
    [ "$page" = docs/lab/README.md ] ||
        grep -q "(${page#docs/lab/}) |.*| 20[0-9][0-9]-[01][0-9]-[0-3][0-9] | .*\`.*\` |" \
        docs/lab/README.md \
        || fail "docs/lab/README.md has no row with $page, a date and a command"
done
# The table of policies has those of --recompute, in the same words.
sed -n 's/^ *\(FIRST\|NEXT\)([A-Z_]*, "\([a-z-]*\)", ALL, "\(.*\)").*/\2 \3/p' \
    scheduler/graph/recompute_policy.h >"$work/policies"
[ -s "$work/policies" ] || fail "scheduler/graph/recompute_policy.h has no table"
while read -r name again; do
    grep -q "^| \`$name\` | $again\( (default)\)\{0,1\} |" docs/planning.md ||
        fail "docs/planning.md has no row for --recompute=$name: $again"
done <"$work/policies"
grep -q '^| `except-last` |' docs/planning.md \
    || fail "docs/planning.md has no row for --recompute=except-last"
[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
