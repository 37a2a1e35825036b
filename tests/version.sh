#!/bin/sh
# The version has one place, meson.build: what the program says, its manual page, the models that it
# writes, the Debian package, the changelog and the examples have the same.
#   sh tests/version.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
build=$(cd "$1" && pwd)
cd "$2"
failed=0
fail() { failed=1; echo "FAIL $*"; }

version=$(sed -n "s/^project('lowerset',.* version: '\([0-9][^']*\)'.*/\1/p" meson.build)
[ -n "$version" ] || { echo "FAIL meson.build has no version"; exit 1; }
# has WHAT VERSION...: there is one, and it is the one of meson.build
has() {
    what=$1
    shift
    [ "$*" = "$version" ] || fail "$what has the version '$*', meson.build $version"
}

has "lowerset --version" "$("$build/lowerset" --version | sed 's/^lowerset //')"
has "debian/changelog" "$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)"
has "CHANGELOG.md" "$(sed -n 's/^## \([0-9][^ ]*\).*/\1/p' CHANGELOG.md | head -n 1)"
has "an image of examples/ci" "$(grep -rho 'lowerset:[0-9][0-9.]*[0-9]' examples/ci |
    sed 's/.*://' | sort -u)"
[ ! -f "$build/docs/lowerset.1" ] ||
    has "the manual page" "$(sed -n '1s/.*"lowerset \([^"]*\)".*/\1/p' "$build/docs/lowerset.1")"
# The package of Python asks meson.
grep -q '^dynamic = .*"version"' pyproject.toml \
    || fail "pyproject.toml does not take meson's version"
made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$build/lowerset" model mlp --width=2 -o "$made" >/dev/null
# ONNX's fields: the producer's name, a tag, and the version behind its length.
field=$(printf 'lowerset\032\\%03o' ${#version})
grep -qaF -e "$(printf "$field")$version" "$made" \
    || fail "a model that lowerset writes has another version than $version"
# No source says it again.
said=$(grep -rlF "$version" base cli codegen compiler models runtime scheduler python docs/*.sh \
    --include='*.[ch]' --include='*.py' --include='*.sh' --include=meson.build | head -n 3)
[ -z "$said" ] || fail "the version also stands in $said"

[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
