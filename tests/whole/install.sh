#!/bin/sh
# The files of `meson install` compile models by themselves, without the build folder.
#   sh tests/whole/install.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
BUILD=$(cd "$1" && pwd)
SOURCE=$(cd "$2" && pwd)
command -v meson >/dev/null 2>&1 || { echo "skipped: no meson in PATH"; exit 77; }
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
unset LOWERSET_HOME
export XDG_CONFIG_HOME=$OUT/config XDG_CACHE_HOME=$OUT/cache

fail() { echo "FAIL $*"; cat "$OUT/said"; exit 1; }

DESTDIR=$OUT/root meson install -C "$BUILD" --no-rebuild --quiet >"$OUT/said" 2>&1 \
    || fail "meson install"
lowerset=$(find "$OUT/root" -path '*/bin/lowerset')
part=$(dirname "$(dirname "$lowerset")")/lib/lowerset
folders=$(sed 's/^[a-z_]* //' "$BUILD/runtime/folders.txt")
for folder in $(cd "$SOURCE/runtime" && ls -d */); do
    case " $(echo $folders) " in
    *" ${folder%/} "*) ;;
    *) echo >"$OUT/said"; fail "runtime/$folder is in no list of runtime/meson.build" ;;
    esac
done
for folder in . $folders; do
    (cd "$SOURCE/runtime/$folder" && ls | grep '\.[ch]$') >"$OUT/want"
    (cd "$part/runtime/$folder" && ls | grep '\.[ch]$') >"$OUT/said"
    cmp "$OUT/want" "$OUT/said" || fail "the runtime's folder $folder is not all there"
done
share=$(dirname "$(dirname "$lowerset")")/share
[ -s "$share/man/man1/lowerset.1" ] || fail "there is no manual page"
[ -s "$share/bash-completion/completions/lowerset" ] || fail "bash is not told what to complete"

# compiles OPTIONS...: from the installed folder alone
compiles() {
    "$lowerset" compile "$OUT/mlp.onnx" -v "$@" -o "$OUT/net" >"$OUT/said" 2>&1 || fail "compile $*"
    grep -q -- "-I[^ ]*/bin/../lib/lowerset/runtime/.. " "$OUT/said" \
        || fail "compile $* does not use what is installed"
    if grep -qF -e "$BUILD/" -e "$SOURCE/" "$OUT/said"; then fail "compile $* uses the build"; fi
}

"$lowerset" model mlp --batch=4 --width=16 -o "$OUT/mlp.onnx" >"$OUT/said" || fail "model"
compiles -O 1
"$OUT/net" --data synthetic --steps 2 --progress none >"$OUT/said" 2>&1 \
    || fail "the program does not train"
if [ ! -f "$part/libls_runtime_cuda.a" ]; then
    echo "no programs for GPUs: built without the CUDA toolkit"
elif ! "$lowerset" targets | grep -q 'programs are built here'; then
    echo "no programs for GPUs: neither NVRTC nor nvcc is here"
else
    compiles --target=cuda --arch=90a
fi
echo "what is installed compiles models"
