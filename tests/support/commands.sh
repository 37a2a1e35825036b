# tests/support/commands.sh -- for tests of the command line, which begin with
#     . "$(dirname "$0")/../support/commands.sh"
# They go on in a folder of their own, which goes with them. Words of the last command lie in the
# files out and err.
lowerset=$1/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1"; cat out err; exit 1; }
must() { "$@" >out 2>err || fail "$*"; }
# refused WORDS COMMAND...: wrong usage, with these words.
refused() {
    words=$1 code=0
    shift
    "$@" >out 2>err || code=$?
    [ "$code" = 2 ] && grep -qF -- "$words" err || fail "exit $code, not 2 with '$words': $*"
}
# has FILE WORDS
has() { grep -qF -- "$2" "$1" || fail "no '$2' in $1"; }
