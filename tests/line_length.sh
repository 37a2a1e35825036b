#!/bin/sh
# Lines of text have at most 100 columns: characters, not bytes. Rows of tables in pages and
# addresses that stand alone are as long as they are. What else is longer is listed in
# tests/line_length.txt, whose numbers may only become less.
#   sh tests/line_length.sh SOURCE-FOLDER
set -eu
export LC_ALL=C
cd "$1"
if ! top=$(git rev-parse --show-toplevel 2>/dev/null) || [ "$top" != "$(pwd -P)" ]; then
    echo "skipped: no checkout of git's"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAIL $*"; failed=1; }
tab=$(printf '\t')

# Text that is tracked, and still there.
git ls-files --eol | sed -n "s/^i\/[a-z]*lf .*$tab//p" | while read -r file; do
    [ ! -f "$file" ] || printf '%s\0' "$file"
done >"$work/files"
[ -s "$work/files" ] || fail "there are no files in $1"

# A row for each long line: the file, the number of the line. A character counts once, by its
# first byte.
cat >"$work/long.awk" <<'END'
length($0) <= 100 { next }
FILENAME ~ /[.]md$/ && /^ *[|]/ { next }
/^[^A-Za-z0-9]*https?:[^ ]*[^A-Za-z0-9]*$/ { next }
{
    line = $0
    gsub(/[\200-\277]/, "", line)
    if (length(line) > 100) print FILENAME "\t" FNR
}
END
xargs -0 awk -f "$work/long.awk" <"$work/files" >"$work/long"

# Each row of the list takes the lines of its files; a file belongs to the first row that names it.
grep -v '^#' tests/line_length.txt >"$work/rows"
while read -r most pattern; do
    found=0
    : >"$work/rest"
    while IFS=$tab read -r file line; do
        case $file in
        $pattern) found=$((found + 1)) ;;
        *) printf '%s\t%s\n' "$file" "$line" >>"$work/rest" ;;
        esac
    done <"$work/long"
    mv "$work/rest" "$work/long"
    if [ "$found" = 0 ]; then
        fail "$pattern has no line of more than 100 columns: remove its row of" \
            "tests/line_length.txt"
    elif [ "$most" != any ] && [ "$found" -gt "$most" ]; then
        fail "$pattern has $found lines of more than 100 columns, and had $most: break the new ones"
    elif [ "$most" != any ] && [ "$found" -lt "$most" ]; then
        fail "$pattern has $found lines of more than 100 columns, and had $most: lower the number" \
            "in its row of tests/line_length.txt to $found"
    fi
done <"$work/rows"
while IFS=$tab read -r file line; do
    fail "$file:$line has more than 100 columns"
done <"$work/long"
[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
