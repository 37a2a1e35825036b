#!/bin/sh
# ./dev bench promises: every row holds here, and a row that does not is found: a compiler that
# makes another program within a budget breaks two of them.
#   sh tests/whole/promises.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
build=$(cd "$1" && pwd) source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LOWERSET_PROBE=off PYTHONDONTWRITEBYTECODE=1
fail() { echo "FAIL $*"; tail -n 12 "$work/said"; exit 1; }
bench() { python3 "$source/bench/promises.py" "$@" --no-torch --quick >"$work/said" 2>&1; }

bench "$build" --out "$work/page.md" || fail "a promise is broken"
[ "$(grep -c '^| .* | yes | not there |$' "$work/page.md")" = 8 ] || fail "there are not eight rows"
grep -q "dropouts run again" "$work/page.md" || fail "no dropout ran again"
grep -q "^Made 20..-..-.. by .\./dev bench promises" "$work/page.md" || fail "no date"

mkdir "$work/bin"
cat >"$work/bin/lowerset" <<END
#!/bin/sh
case "\$*" in compile*--budget=min*) set -- "\$@" --bn-var torch ;; esac
exec "$build/lowerset" "\$@"
END
chmod +x "$work/bin/lowerset"
code=0
bench "$work/bin" --only bits,statistics || code=$?
[ "$code" = 6 ] || fail "broken promises end with $code"
[ "$(grep -c '| \*\*no\*\* |' "$work/said")" = 2 ] || fail "not both rows are broken"
echo "1 passed, 0 failed"
