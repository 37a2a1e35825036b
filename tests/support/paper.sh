# tests/support/paper.sh -- programs for a simulated (paper) GPU: a fake CUDA runtime, and the
# device text in the executor. Sourced by scripts with the arguments BUILD-FOLDER
# SOURCE-FOLDER CUDA-HOME.
set -eu
BUILD=$(cd "$1" && pwd)
SOURCE=$(cd "$2" && pwd)
CUDA=$3
LOWERSET=$BUILD/lowerset
. "$SOURCE/tests/support/link_flags.sh"
OUT=$(mktemp -d)
trap 'rm -rf "$OUT"' EXIT
export XDG_CONFIG_HOME=$OUT/config XDG_CACHE_HOME=$OUT/cache
export LOWERSET_CUDNN=$BUILD/tests/libcudnn-fake.so
passed=0
failed=0
opt=0
[ -z "${LS_WHOLE:-}" ] || opt=1

check() {       # NAME COMMAND...
    what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $what"; fi
}

mkdir "$OUT/lib"
ln -s "$BUILD/tests/libcublasLt-fake.so" "$OUT/lib/libcublasLt.so.13"
ln -s "$BUILD/tests/libcudnn-fake.so" "$OUT/lib/libcudnn.so.9"
for f in fake_cudart cuda_executor; do
    cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -I"$SOURCE" -isystem "$CUDA/include" \
        -c "$SOURCE/tests/support/$f.c" -o "$OUT/$f.o"
done

# paper_kernels DIR: sets $kernels to the object of the device text in DIR/net.cu. Kernels are
# compiled again only if they differ from those compiled before.
factors=
paper_kernels() {
    printf 'FAKE' >"$1/net.fatbin"
    sed -n 's/^LS_ROW(\([A-Za-z0-9_]*\),.*/PART(\1)/p' "$1/net.c" | sort -u >"$1/parts.def"
    # The comment at its head describes the plan.
    kernels=$OUT/kernels-$({ echo "$factors"; sed '1,/^ \*\//d' "$1/net.cu"; } |
        cksum | tr -d ' ').o
    [ -f "$kernels" ] \
        || cc -std=gnu11 -D_GNU_SOURCE "-O$opt" -fPIC -w $(sed -n 's/^#define \(LS_F64\)$/-D\1/p' \
        "$1/net.cu") -DLS_EXECUTOR -DLS_TEXT="\"$1/net.cu\"" \
        $factors -DLS_PARTS="\"$1/parts.def\"" -I"$SOURCE" -isystem "$CUDA/include" \
        -c "$SOURCE/tests/whole/paper_gpu.c" -o "$kernels"
}

# link_paper PROGRAM FILE...: with the runtime and the simulated GPU
link_paper() {
    program=$1
    shift
    cc -std=gnu11 -D_GNU_SOURCE "-O$opt" -rdynamic -I"$SOURCE" "$@" \
        "$kernels" "$OUT/fake_cudart.o" "$OUT/cuda_executor.o" \
        "$BUILD/runtime/libls_runtime_cuda.a" \
        "$BUILD/runtime/libls_runtime.a" $(link_flags "$BUILD") \
        -lm -lpthread -ldl -o "$program"
}

# build_paper DIR MODEL OPTIONS...: DIR/net, the program for the simulated GPU
build_paper() {
    dir=$1 model=$2
    shift 2
    mkdir -p "$dir"
    "$LOWERSET" compile "$model" "$@" --target=cuda --arch=90a -q --emit=c -o "$dir/net.c"
    paper_kernels "$dir"
    link_paper "$dir/net" "$dir/net.c" "$dir/net_data.S"
}

# build_paper_library DIR MODEL OPTIONS...: DIR/client, the library for the simulated GPU in
# tests/whole/library_gpu.c. DIR/libnet.so is the same for other
# languages.
build_paper_library() {
    dir=$1 model=$2
    shift 2
    mkdir -p "$dir"
    "$LOWERSET" compile "$model" "$@" --target=cuda --arch=90a -q --emit=lib --save-temps="$dir" \
        -o "$dir/net"
    paper_kernels "$dir"
    link_paper "$dir/client" -I"$dir" -isystem "$CUDA/include" "$dir/net.c" "$dir/net_data.S" \
        "$dir/net_library.c" "$SOURCE/tests/whole/library_gpu.c"
    link_paper "$dir/libnet.so" -shared -fPIC -I"$dir" "$dir/net.c" "$dir/net_data.S" \
        "$dir/net_library.c"
}

ends() {        # CODE COMMAND...: its exit code
    want=$1
    shift
    got=0
    "$@" >"$OUT/out" 2>"$OUT/errors" || got=$?
    [ "$got" = "$want" ]
}
