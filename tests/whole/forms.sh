#!/bin/sh
# Every form of output is built as a user gets it: an executable; an object, linked with the runtime
# library; C, by the
# command that compile prints. Programs of one process, of ranks and of stages, whose three forms
# train the same weights; and
# programs for GPUs, which must link. In a folder whose name has quotes, spaces, a backslash and a
# percent sign.
# The first printed command runs as it is; those after it, without LS_WHOLE, by a compiler that
# takes files of the runtime
# library that it has compiled before.
#   sh tests/whole/forms.sh BUILD-FOLDER
set -eu
unset CC
BUILD=$(cd "$1" && pwd)
LOWERSET=$BUILD/lowerset
ALL=$(mktemp -d)
trap 'rm -rf "$ALL"' EXIT
TOP=$ALL/$(printf 'a "b" c\\d %%s$e'"'"'f?')
export TMPDIR="$TOP/two
lines"      # as gcc takes it here; not in a name that it writes into assembler text, as a header's
mkdir -p "$TMPDIR"
cd "$TOP"
export XDG_CONFIG_HOME=$TOP/config XDG_CACHE_HOME=$TOP/cache
fail() { echo "FAIL $*"; cat said 2>/dev/null; exit 1; }

# A compiler for commands with files of the runtime library: an object each, once for the same
# library and the same flags.
mkdir "$ALL/bin" "$ALL/objects"
cat >"$ALL/bin/cc" <<'END'
#!/bin/sh
set -eu
objects=$(dirname "$0")/../objects
PATH=${PATH#*:}
n=$# before= flags= sum=
while [ "$n" -gt 0 ]; do
    word=$1
    shift
    n=$((n - 1))
    case $word in
    */src/runtime/*.c)
        file=${word##*/src/runtime/}
        [ -n "$sum" ] \
            || sum=$(cd "${word%"/$file"}" && find . -type f | LC_ALL=C sort | xargs cksum | cksum)
        key=$objects/$(printf '%s|' "$flags" "$sum" "$file" | cksum | tr ' ' -).o
        [ -f "$key" ] || eval "cc $before -c \"\$word\" -o \"\$key\""
        set -- "$@" "$key" ;;
    *)  case $word in
        -I*) ;;
        -[DUOfm]*|-std=*) flags="$flags $word" ;;
        esac
        case $word in
        -[DUOfmI]*|-std=*) before="$before '$(printf %s "$word" | sed "s/'/'\\\\''/g")'" ;;
        esac
        set -- "$@" "$word" ;;
    esac
done
exec cc "$@"
END
chmod +x "$ALL/bin/cc"
before=                 # the path to it

# Runs the command that compile printed for C, which makes the program `net`, in folder $1.
build_c() {
    sed -n '/^cc -std.* -o net$/p' said >"$1/command"
    [ -s "$1/command" ] || fail "$1: no command for C"
    (cd "$1" && PATH=$before$PATH sh ./command) >said 2>&1 \
        || fail "$1: the printed command does not build the program"
    mv "$1/net" "$1/c"
    [ -n "${LS_WHOLE:-}" ] || before=$ALL/bin:
}
extra=${LS_SANITIZED:+-fsanitize=address,undefined}

# forms NAME OPTIONS...: all three
forms() {
    name=$1
    shift
    mkdir -p "$name"
    for form in exe obj c; do
        out=$name/$form
        [ $form != obj ] || out=$name/net.o
        [ $form != c ] || { mkdir "$name/src"; out=$TOP/$name/src/net.c; }
        "$LOWERSET" compile net.onnx --batch 4 -O 0 --plan-effort 2 --loss mse "$@" --emit=$form \
            -o "$out" >said 2>&1 \
            || fail "$name: compile --emit=$form"
    done
    cc $extra "$name/net.o" "$BUILD/runtime/libls_runtime.a" -lm -lpthread -o "$name/obj" >said \
        2>&1 || fail "$name: the object does not link"
    "$LOWERSET" compile net.onnx --batch 4 -O 0 --plan-effort 2 --loss mse "$@" --emit=c \
        -o "$TOP/$name/src/net.c" >said 2>&1
    build_c "$name"
    for form in exe obj c; do
        "$name/$form" --data synthetic:8 --label-from input --seed 3 --epochs 1 --threads 2 \
            --progress none --export "$name/$form.onnx" \
            >said 2>&1 || fail "$name: the form $form does not train"
        cmp "$name/exe.onnx" "$name/$form.onnx" || fail "$name: the form $form trains other weights"
    done
    echo "$name: three forms train the same weights"
}

# links NAME OPTIONS...: C for GPUs. What nvcc would make of its kernels is not looked at.
links() {
    name=$1
    shift
    mkdir -p "$name/src"
    "$LOWERSET" compile net.onnx --batch 4 -O 0 --plan-effort 2 --loss mse --target=cuda \
        --arch=90a "$@" --emit=c -o "$TOP/$name/src/net.c" \
        >said 2>&1 || fail "$name: compile"
    grep -q '^nvcc ' said || fail "$name: no command for the kernels"
    echo FAKE >"$name/src/net.fatbin"
    build_c "$name"
    "$name/c" --version >said 2>&1 || fail "$name: the program does not start"
    echo "$name: C for GPUs links"
}

"$LOWERSET" model autoencoder --width=2 --depth=2 --size=8 -o net.onnx
cp net.onnx "$TOP/q\"u\\o.onnx"
"$LOWERSET" compile "$TOP/q\"u\\o.onnx" --batch 4 -O 0 --plan-effort 2 --loss mse \
    --save-temps="$TOP/te\"mps" -o quoted >said 2>&1 || fail "a quoted name"
./quoted --data synthetic:8 --label-from input --steps 1 --progress none >said 2>&1 \
    || fail "the program of a quoted name"
forms plain
forms ranks --ranks=2
forms stages --stages=2 --microbatches=2
CUDA_HOME=$(sed -n 's/^#define LS_CUDA_HOME "\(.*\)"/\1/p' "$BUILD/build_config.h")
if [ -z "$CUDA_HOME" ]; then
    echo "no C for GPUs: built without the CUDA toolkit"
else
    export CUDA_HOME
    links gpu
    links gpu-ranks --ranks=2
fi
