#!/bin/sh
# The script `dev` is sound: the shell reads it, no function is defined twice, and commands that
# need a word ask for it.
#   sh tests/dev_script.sh SOURCE-FOLDER
set -eu
cd "$1"
failed=0
fail() { echo "FAIL $*"; failed=$((failed + 1)); }

sh -n dev || fail "the shell does not read dev"
twice=$(sed -n 's/^\([a-z_]*\)() *{.*/\1/p' dev | sort | uniq -d)
[ -z "$twice" ] || fail "dev defines twice:" $twice
for called in $(grep -o 'build_[a-z_]*' dev | grep -v '^build_dir$' | sort -u); do
    grep -q "^$called() *{" dev || fail "dev calls $called, which is no function of it"
done
code=0
said=$(BUILD=/nonexistent/build sh dev fuzz 2>&1) || code=$?
[ "$code" = 2 ] || fail "dev fuzz without seconds ends with $code"
case $said in *"how many seconds"*) ;; *) fail "dev fuzz without seconds says: $said" ;; esac
# The Debian package is built with every library that dev installs, but for those of tests.
for library in $(sed -n '/^PACKAGES="/,/"$/p' dev | grep -o '[a-z0-9-]*-dev' | grep -v libc6); do
    grep -q "^ *\(Build-Depends:\)* *$library\>" debian/control \
        || fail "debian/control builds without $library"
done
[ "$failed" = 0 ] || exit 1
echo "1 passed, 0 failed"
