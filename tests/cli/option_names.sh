#!/bin/sh
# Messages name only options that exist: every --word in a string literal of lowerset's and the
# trainer's sources stands in one of the option tables, or belongs to another program.
#   sh tests/cli/option_names.sh SOURCE-FOLDER LOWERSET
set -eu
LOWERSET=$(realpath "$2")
cd "$1"
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT

# Old spellings, which lowerset answers with the new one. Options of gcc, nvcc, NVRTC, ld and srun;
# properties of style sheets; the start of --no-FLAG.
cat >"$OUT/known" <<'END'
--emit-c --emit-obj --loss-axis --checkpoint
--create --image3 --device-debug --generate-line-info --gpu-architecture --fmad --option
--split-compile --mpi --wildcard --keep-global-symbol
--at --auto --card --ink --left --line --page --soft
--name --no --to-be --version
END
tr ' ' '\n' <"$OUT/known" >"$OUT/options"
"$LOWERSET" help --table | sed 's/^[a-z]* //' >>"$OUT/options"
printf '%s\n' --help --list --table >>"$OUT/options"
# The trainer's options: rows of its table. Flags also have a --no- form.
sed -n 's/^    {"--\([a-z-]*\)",.*/\1/p' runtime/trainer/option_rows.c >"$OUT/trainer"
[ "$(wc -l <"$OUT/trainer")" -gt 30 ] || {
    echo "FAIL the trainer's option table is not found"
    exit 1
}
sed 's/.*/--&\n--no-&/' "$OUT/trainer" >>"$OUT/options"

# Only text between quotes, without comments; adjacent literals are one text.
literals() {
    awk '
    { text = text $0 "\n" }
    function scan(s,    i, c, d, in_string, in_comment, n) {
        n = length(s)
        for (i = 1; i <= n; i++) {
            c = substr(s, i, 1); d = substr(s, i, 2)
            if (in_comment) { if (d == "*/") { in_comment = 0; i++ } continue }
            if (in_string) {
                if (c == "\\") { printf " "; i++; continue }
                if (c == "\"") in_string = 0
                else printf "%s", c
                continue
            }
            if (d == "/*") { in_comment = 1; i++; continue }
            if (d == "//") { while (i <= n && substr(s, i, 1) != "\n") i++; continue }
            if (substr(s, i, 3) == "\x27\"\x27") { i += 2; continue }
            if (c == "\"") { in_string = 1; continue }
            if (c ~ /[^ \n\t]/) printf "\n"
        }
        printf "\n"
    }
    END { scan(text) }' "$1"
}

failed=0
for f in lowerset.c $(find base compiler cli codegen runtime scheduler models -name '*.c' -o \
    -name '*.h' -o -name '*.def'); do
    grep -q -e '--[a-z]' "$f" || continue
    literals "$f" | grep -oE -e '(^|[^a-z-])--[a-z][a-z0-9]*(-[a-z0-9]+)*' | sed 's/^[^-]*//' |
        sort -u >"$OUT/used"
    unknown=$(grep -vxF -f "$OUT/options" "$OUT/used" || true)
    for word in $unknown; do
        echo "FAIL $f names $word, which is no option"
        failed=1
    done
done
[ "$failed" = 0 ] && echo "all options that messages name exist"
exit "$failed"
