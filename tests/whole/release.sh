#!/bin/sh
# ./dev release makes the same bytes of the same commit, wherever and by whomever it is run: a
# tarball of what is committed, and its checksum. What is not committed is named. With LS_WHOLE the
# tarball is built, too, and its program trains.
#   sh tests/whole/release.sh SOURCE-FOLDER
set -eu
command -v git >/dev/null 2>&1 && git -C "$1" rev-parse HEAD >/dev/null 2>&1 \
    || { echo "skipped: no checkout of git's"; exit 77; }
command -v xz >/dev/null 2>&1 || { echo "skipped: no xz"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { failed=1; echo "FAIL $*"; }

# The sources as they are here, as one commit of their own.
mkdir "$work/one"
git -C "$1" ls-files -co --exclude-standard >"$work/files"
(cd "$1" && while read -r file; do [ ! -e "$file" ] || echo "$file"; done <"$work/files" |
    tar -c -T -) | tar -x -C "$work/one"
export HOME="$work" GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='2026-01-02T03:04:05Z' GIT_COMMITTER_DATE='2026-01-02T03:04:05Z'
git -C "$work/one" init -q
git -C "$work/one" add -A
git -C "$work/one" commit -qm all
git clone -q "$work/one" "$work/two"

quick=--no-build
[ -z "${LS_WHOLE:-}" ] || quick=
(cd "$work/one" && ./dev release $quick) >"$work/said" 2>&1 || fail "$(tail -n 3 "$work/said")"
(cd "$work/two" && umask 077 && TZ=Asia/Tokyo XZ_OPT=-0 LC_ALL=C ./dev release --no-build) \
    >"$work/said" 2>&1 || fail "$(tail -n 3 "$work/said")"
(cd "$work/one/dist" && ls) >"$work/made"
version=$(sed -n "s/^project('lowerset',.* version: '\([^']*\)'.*/\1/p" "$1/meson.build")
printf 'lowerset-%s.tar.xz\nlowerset-%s.tar.xz.sha256\n' "$version" "$version" |
    cmp -s - "$work/made" || fail "it makes $(tr '\n' ' ' <"$work/made")"
tarball=lowerset-$version.tar.xz
cmp "$work/one/dist/$tarball" "$work/two/dist/$tarball" || fail "two clones make two tarballs"
(cd "$work/two/dist" && sha256sum -c "$tarball.sha256" >/dev/null) || fail "the checksum is wrong"
tar -tf "$work/one/dist/$tarball" | sed -n "s,^lowerset-$version/\(.*[^/]\)$,\1,p" |
    sort >"$work/has"
git -C "$work/one" ls-files | sort | cmp -s - "$work/has" || fail "the tarball has other files"
tar -tvf "$work/one/dist/$tarball" | grep -q '^-rwxr-xr-x.*/dev$' || fail "dev cannot be run"

# What is not committed would not be in it.
echo more >>"$work/two/README.md"
code=0
(cd "$work/two" && ./dev release --no-build) >"$work/said" 2>&1 || code=$?
[ "$code" = 1 ] && grep -q "README.md" "$work/said" \
    || fail "a change that is not committed: exit $code, $(tail -n 2 "$work/said")"

[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
