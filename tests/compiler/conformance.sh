#!/bin/sh
# Runs all of ONNX's operator tests and writes the tables of their results anew:
# compiler/onnx/conformance.txt, which `lowerset ops` prints, and the section at the end
# of docs/operators.md.
#   sh tests/compiler/conformance.sh BUILD-FOLDER SOURCE-FOLDER CASES VERSION
#   CASES     folder that holds test_*, or an archive of it (node/test_*)
#   VERSION   release of ONNX that the cases are of
set -eu
build=$(cd "$1" && pwd) source=$(cd "$2" && pwd) cases=$3 version=$4
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -f "$cases" ]; then
    tar -xf "$cases" -C "$work"
    cases=$work/node
fi
# Failed cases are rows, too.
"$build/tests/onnx_nodes" --table "$cases" >"$work/all" || [ $? = 1 ]
grep '	test_' "$work/all" | sort -t '	' -k 4,4 >"$work/rows"
[ -s "$work/rows" ] || { echo "no cases in $cases" >&2; exit 1; }

# Rows: verdict, operator, floats, name, note. A case that is written out as a function counts for
# its operator.
cat >"$work/common.awk" <<'END'
BEGIN { FS = "\t" }
function base(name) { sub(/_expanded.*/, "", name); return name }
FNR == NR { of[$4] = $2; next }
{ op = (base($4) in of) && of[base($4)] != "" ? of[base($4)] : $2; good = $1 ~ /^ok/ }
END

{ cat "$work/common.awk"; cat <<'END'
$1 == "left out" || op == "" { next }
{ all[op]++; passed[op] += good; gradient[op] += $1 == "ok" }
END { for (op in all) if (passed[op] > 0) print op, passed[op], all[op], gradient[op] }
END
} >"$work/ops.awk"
{ echo "# operator, passed cases, cases, cases with gradients: ONNX $version; made by ./dev" \
    "conformance"
  awk -f "$work/ops.awk" "$work/rows" "$work/rows" | sort
  } >"$source/compiler/onnx/conformance.txt"

{ cat "$work/common.awk"; cat <<'END'
$1 == "left out" { out[$5]++; nout++; next }
{ all++; ok += good; with += $1 == "ok"; wrong += $1 == "FAIL" }
$3 == "floats" { floats++; floats_ok += good }
!good { missing[op]++; why[op] = why[op] == "" || $5 == "unsupported" ? $5 : why[op] }
END {
    printf "%d of %d cases pass, " \
        "%d of them with gradients checked against differences; %d give wrong\nresults.\n",
        ok, all, with, wrong
    printf "Of the cases in floats (float operands and results; others may be integers and " \
        "bools), %d of %d\npass: %.1f %%.\n\n", floats_ok, floats, 100 * floats_ok / floats
    if (ok < all) print "### Cases that do not pass\n\n| operator | cases | |\n|---|---|---|"
    n = 0
    for (op in missing) row[n++] = op
    for (i = 0; i < n; i++)
        for (j = i + 1; j < n; j++)
            if (row[j] < row[i]) { t = row[i]; row[i] = row[j]; row[j] = t }
    for (i = 0; i < n; i++)
        printf "| %s | %d | %s |\n", row[i] == "" ? "(none)" : row[i], missing[row[i]],
            why[row[i]]
    print (ok < all ? "\n" : "") "### Cases that are left out\n\n| reason | cases |\n|---|---|"
    n = 0
    for (r in out) row[n++] = r
    for (i = 0; i < n; i++)
        for (j = i + 1; j < n; j++)
            if (row[j] < row[i]) { t = row[i]; row[i] = row[j]; row[j] = t }
    for (i = 0; i < n; i++) printf "| %s | %d |\n", row[i], out[row[i]]
}
END
} >"$work/page.awk"
page=$source/docs/operators.md
{ sed '/^## Conformance$/,$d' "$page"
  cat <<END
## Conformance

\`./dev conformance\` makes this section from the operator tests of ONNX $version. \`lowerset ops\`
has the figures of each operator. The operands of a case become parameters, so that the gradients of
every combination of attributes that ONNX tests are checked, too.

END
  awk -f "$work/page.awk" "$work/rows" "$work/rows"; } >"$work/page"
cat "$work/page" >"$page"
grep -A 1 -E '^([0-9]+ of [0-9]+ cases pass|Of the cases in floats)' "$page"
# README.md states the sum.
sum=$(awk -F '\t' '$1 == "left out" { next } { n++; ok += $1 ~ /^ok/ } END { print ok " of " n }' \
    "$work/rows")
sed "s/[0-9]* of [0-9]* of ONNX [0-9.]*'s operator tests/$sum of ONNX $version's operator tests/" \
    "$source/README.md" >"$work/readme"
cat "$work/readme" >"$source/README.md"
