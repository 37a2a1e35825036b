#!/bin/sh
# Everything that the pages name exists: paths and ls_ names in backquotes, targets of links.
#   sh tests/cli/pages.sh SOURCE-FOLDER
# A path begins with a folder of the root and has no blank or pattern in it; build folders do not count.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1"
failed=0
fail() { echo "FAIL $*"; failed=1; }

find base cli codegen compiler models runtime scheduler tests bench demo lowerset.c -name '*.[ch]' -exec cat {} + |
    grep -oE '\bls_[a-z0-9_]+( =|[[(])' | sed 's/[^a-z0-9_].*//' | sort -u >"$work/known"
[ -s "$work/known" ] || fail "there are no sources in $1"

for page in README.md CONTRIBUTING.md CHANGELOG.md docs/*.md; do
    [ -s "$page" ] || { fail "$page is missing"; continue; }
    awk '/^ *```/ { block = !block; next } !block && !/^    /' "$page" >"$work/text"
    grep -oE '`[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]*`' "$work/text" | tr -d '`' | sort -u >"$work/paths" || :
    while read -r path; do
        case $path in build* | out/* | ./*) continue ;; esac
        [ ! -d "${path%%/*}" ] || [ -e "$path" ] || fail "$page: there is no $path"
    done <"$work/paths"
    grep -oE '`ls_[a-z0-9_]*[a-z0-9]`' "$work/text" | tr -d '`' | sort -u | comm -23 - "$work/known" >"$work/unknown" || :
    while read -r name; do
        fail "$page: no source has $name"
    done <"$work/unknown"
    grep -oE '\]\([^)# ]+' "$work/text" | cut -c3- | grep -v '^[a-z]*:' | sort -u >"$work/links" || :
    while read -r link; do
        [ -e "$(dirname "$page")/$link" ] || fail "$page: the link to $link leads nowhere"
    done <"$work/links"
done
[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
