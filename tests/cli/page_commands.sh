#!/bin/sh
# The commands of the users' pages run from top to bottom, as a reader would paste them.
#   sh tests/cli/page_commands.sh BUILD-FOLDER SOURCE-FOLDER [PAGE.md...]
# What runs are the blocks ```sh of README.md and docs/*.md, all of a page in one folder. A block
# ```prints after one has lines that it must print, `...` standing for anything. A page begins with
# nothing, with what blocks in Python write: files of tests/export/fixtures, or with its C program.
# So that this takes seconds, programs are compiled without optimization and plans get little work,
# unless the page says how much.
set -eu
build=$(cd "$1" && pwd) source=$(cd "$2" && pwd)
shift 2
export LC_ALL=C LOWERSET_PROBE=off
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME="$work/config" XDG_CACHE_HOME="$work/cache"

mkdir "$work/bin"
cat >"$work/bin/lowerset" <<END
#!/bin/sh
case "\$1 \$*" in
*" -O "* | *" --opt "*) ;;
compile* | check*.onnx*) set -- "\$@" -O 0 ;;
esac
case "\$1 \$*" in
*" --plan-effort"*) ;;
compile* | plan* | sweep* | check*.onnx*) set -- "\$@" --plan-effort 2 ;;
esac
exec "$build/lowerset" "\$@"
END
chmod +x "$work/bin/lowerset"
# What links with a library of this build needs its sanitizers, too. cc may be ccache, which looks
# for the compiler itself, and must not find this one.
. "$source/tests/support/link_flags.sh"
if [ -n "$(link_flags "$build" | tr -d ' ')" ]; then
    printf '#!/bin/sh\nCCACHE_PATH="%s" exec "%s" "$@" %s\n' "$PATH" "$(command -v cc)" \
        "$(link_flags "$build")" >"$work/bin/cc"
    chmod +x "$work/bin/cc"
fi
export PATH="$work/bin:$PATH"

# The page as a script. Before each command stands the line that it begins in.
cat >"$work/script.awk" <<'END'
function quoted(text) { gsub(/'/, "'\\''", text); return "'" text "'" }
/^```sh$/ { block = "sh"; n++; goes_on = 0; printf "exec >said.%d 2>&1\n", n; next }
/^```prints$/ { block = "prints"; next }
/^```/ { if (block == "sh") print "exec >&3 2>&1"; block = block == "" ? "other" : ""; next }
block == "sh" { print (goes_on ? "" : "at=" NR "; ") $0; goes_on = /\\$/ }
block == "prints" && $0 != "" && $0 !~ /^ *\.\.\.$/ {
    printf "at=%d; prints said.%d %s\n", NR, n, quoted($0)
}
END
cat >"$work/begin.sh" <<'END'
set -eu
exec 3>&1
at=0
trap 'code=$?; exec >&3; [ $code = 0 ] || {
    tail -n 20 said.* /dev/null; echo "FAIL $page:$at: exit code $code"; }' EXIT
prints() {
    pattern=$(printf '%s' "$2" | sed 's/[][*?\\]/\\&/g; s/\.\.\./*/g')
    while IFS= read -r line; do
        case $line in $pattern) return 0 ;; esac
    done <"$1"
    echo "this is not printed: $2" >>"$1"
    return 1
}
END

# One page. What its Python would write lies in its folder before.
cat >"$work/run.sh" <<END
set -eu
page=\$1
script=$work/\$(basename "\$page" .md).sh
{ cat "$work/begin.sh"; awk -f "$work/script.awk" "$source/\$page"; } >"\$script"
n=\$(grep -c '^at=[0-9]*; [^p]' "\$script") || exit 0
mkdir "\${script%.sh}"
cd "\${script%.sh}"
case \$page in docs/from-pytorch.md)
    cp "$source/tests/export/fixtures/cnn/raw_n.onnx" net.onnx
    cp "$source/tests/export/fixtures/cnn/data.npz" train.npz
    cp train.npz val.npz ;;
docs/library.md)
    awk '/^\`\`\`/ { c = \$0 == "\`\`\`c"; next } c' "$source/\$page" >step.c ;;
examples/c/README.md) cp "$source"/examples/c/*.c . ;;
esac
page=\$page sh "\$script"
echo "\$page: \$n commands"
END

cd "$source"
[ $# -gt 0 ] || set -- README.md docs/*.md
if printf '%s\n' "$@" | xargs -n 1 -P 2 sh "$work/run.sh" >"$work/said"; then
    code=0
else
    code=1
fi
cat "$work/said"
grep -q ': [0-9]* commands' "$work/said" || { echo "FAIL no page has a command"; code=1; }
[ "$code" = 0 ] && echo "1 passed, 0 failed"
exit "$code"
