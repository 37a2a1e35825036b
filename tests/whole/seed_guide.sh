#!/bin/sh
# ./dev seed guide: rows that need little time, and the page; a result that is another is found: a
# compiler that makes another program for ranks ends with 6. The whole table with LS_WHOLE.
#   sh tests/whole/seed_guide.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
build=$(cd "$1" && pwd) source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LOWERSET_PROBE=off PYTHONDONTWRITEBYTECODE=1
fail() { echo "FAIL $*"; tail -n 12 "$work/said"; exit 1; }
seed() {
    python3 "$source/bench/seed_guide.py" "$@" --quick --rounds 1 --steps 1 >"$work/said" 2>&1
}
has() { grep -q "$1" "$work/page.md" || fail "the page has no '$1'"; }

rows=2,7,9,10,13
[ -z "${LS_WHOLE:-}" ] || rows=1,2,3,4,5,6,7,8,9,10,11,12,13
seed "$build" --only "$rows" --out "$work/page.md" || fail "rows $rows"
for k in $(echo "$rows" | tr , ' '); do has "^| $k | "; done
has "0 calls of memset"
has "trained weights have the same bits"
has "24 and 7 steps"
has "^Made 20..-..-.. by .\./dev seed guide"

mkdir "$work/bin"
cat >"$work/bin/lowerset" <<END
#!/bin/sh
case "\$*" in compile*--ranks=2*) set -- "\$@" --clip-value 0.0001 ;; esac
exec "$build/lowerset" "\$@"
END
chmod +x "$work/bin/lowerset"
code=0
seed "$work/bin" --only 9 || code=$?
[ "$code" = 6 ] && grep -q "OTHER bits \*\*wrong\*\*" "$work/said" || fail "another result: $code"
echo "1 passed, 0 failed"
