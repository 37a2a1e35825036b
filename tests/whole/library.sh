#!/bin/sh
# Libraries (--emit=lib) have the bits of programs: for each network and setting, updates by a
# library and by the trainer leave the same tensors in their checkpoints, and print the same losses;
# a run that the trainer began goes on in the library, and the other way round. Symbols, refusals,
# several instances in a process.
#   sh tests/whole/library.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
. "$(dirname "$0")/library_runs.sh"

"$lowerset" model mlp --batch=0 --width=16 --size=6 --dropout=0.3 -o mlp.onnx >said
"$lowerset" model cnn --batch=0 --size=8 --width=4 -o cnn.onnx >said
"$lowerset" model unet --width=2 --depth=1 --size=8 --batch=0 --classes=5 -o unet.onnx >said
"$lowerset" model gpt --depth=1 --width=8 --heads=2 --vocab=9 --context=4 --batch=0 -o gpt.onnx \
    >said

"$lowerset" model autoencoder --size=8 --width=2 --depth=4 --batch=0 -o autoencoder.onnx >said

# shown KIND ARCHIVE.npz: KIND.NAME, which `calls show` wrote, end with the bytes of KIND/NAME
cat >shown.py <<'END'
import glob, struct, sys, zipfile
kind, archive = sys.argv[1:]
z = zipfile.ZipFile(archive)
names = sorted(n for n in z.namelist() if n.startswith(kind + "/"))
shown = sorted("%s/%s.npy" % (kind, f[len(kind) + 1:]) for f in glob.glob(kind + ".*"))
assert names and names == shown, (names, shown)
for name in names:
    npy, got = z.read(name), open(kind + "." + name[len(kind) + 1:-4], "rb").read()
    want = npy[10 + struct.unpack("<H", npy[8:10])[0]:]
    if not want or not got.endswith(want):
        sys.exit("%s has other bytes" % name)
END

# alike NETWORK TOTAL OPTION...: 12 updates over so many samples, and what is refused
alike() {
    net=$1 total=$2
    shift 2
    same "$net.onnx" "$total" 12 "$@"
    ./client check >said 2>&1 || fail "$net $*: refusals"
    grep -q "^#define NET_RATE 0[.]05" lib/net.h || fail "$net $*: the rate of --lr"
    build_client "$source/tests/whole/library_calls.c" calls || fail "$net $*: calls do not link"
    ./calls check "$total" >said 2>&1 || fail "$net $*: calls"
    cat said >>lent
}

# shown_alike: outputs and gradients are those that the trainer shows
shown_alike() {
    rm -f out.* grad.*
    last=$(ls saved/*0012.safetensors)
    ./calls show "$last" "$total" >said 2>&1 || fail "outputs and gradients"
    # shellcheck disable=SC2086
    ./trainer $train --eval --resume "$last" --dump eval.npz >said 2>&1 || fail "evaluation"
    # shellcheck disable=SC2086
    ./trainer $train --steps 13 --resume "$last" --dump step.npz >said 2>&1 || fail "a step"
    python3 shown.py out eval.npz >said 2>&1 || fail "outputs of a library"
    python3 shown.py grad step.npz >said 2>&1 || fail "gradients of a library"
}
alike mlp 64 --batch 8 --optimizer adamw --store-gradients
shown_alike
alike mlp 27 --batch 8 --optimizer sgd:momentum=0.9 --ema 0.9
alike cnn 32 --batch 8 --microbatches 2 --accumulate 2 --clip-norm 0.5
alike unet 16 --batch 4 --budget min --optimizer nadam --store-gradients
shown_alike
alike mlp 24 --batch 4 --precision f64 --optimizer sgd --store-gradients
shown_alike
alike cnn 24 --batch 4 --dp clip=1,noise=0.5,delta=1e-3,expected-batch=9 --optimizer adam
alike autoencoder 24 --batch 8 --loss mse:x_hat,huber:z@delta=0.5@2 --optimizer adam \
    --store-gradients
shown_alike
alike gpt 16 --batch 4 --precision f16 --loss-scale 1024 --optimizer lion --store-gradients
shown_alike
alike gpt 16 --batch 4 --precision bf16 --budget 60% --store-gradients
shown_alike

grep -q '^[1-9][0-9]* calls' lent || fail "no library calls the caller's threads"

# ---- runs go on: 5 updates here, 7 there ----
./trainer $train --steps 5 --save half >said 2>&1 || fail "5 updates of the trainer"
./client train 16 7 0.05 9 1 on.safetensors "$(ls half/*0005.safetensors)" >losses 2>said \
    || fail "the library goes on"
tensors on.safetensors | cmp -s - one || fail "the library goes on with other bits"
./client train 16 5 0.05 3 2 five.safetensors >losses 2>said || fail "5 updates of the library"
tensors "$(ls half/*0005.safetensors)" >five
tensors five.safetensors | cmp -s - five || fail "5 updates have other bits"
./trainer $train --steps 5 --resume five.safetensors --export five.onnx >said 2>&1 \
    || fail "the trainer reads the library's checkpoint"
./trainer $train --steps 5 --resume "$(ls half/*0005.safetensors)" --export half.onnx >said 2>&1
cmp -s five.onnx half.onnx || fail "the trainer exports other weights of the library's checkpoint"

# ---- symbols ----
nm -g --defined-only lib/libnet.a | awk 'NF == 3 { print $3 }' >symbols
grep -q '^net_step$' symbols && ! grep -qv '^net_' symbols || fail "symbols: $(cat symbols)"
case $flags in
*sanitize*) ;;
*) nm -D --undefined-only lib/libnet.so | sed 's/.* //; s/@.*//' >taken
   ! grep -x '_*exit\|_Exit\|quick_exit\|abort\|signal\|sigaction\|printf\|puts\|perror' \
       taken >said || fail "a library calls $(cat said)" ;;
esac
nm -D --defined-only lib/libnet.so | awk '{ print $3 }' | sort >shared
sort symbols | cmp -s - shared || fail "the shared library has other symbols: $(cat shared)"
"$lowerset" compile mlp.onnx -q -O 0 --batch 8 --emit=lib --prefix own_2 -o lib/2nd 2>said \
    || fail "--prefix"
nm -g --defined-only lib/lib2nd.a | grep -q ' own_2_step$' || fail "--prefix: no own_2_step"
"$lowerset" compile mlp.onnx -q -O 0 --batch 8 --emit=lib -o lib/2nd 2>said || fail "2nd"
nm -g --defined-only lib/lib2nd.a | grep -q ' net_2nd_step$' || fail "no net_2nd_step"

# ---- neither objcopy nor ar is needed: the C compiler alone makes the same library ----
mkdir only alone
for tool in cc as ld; do
    ! command -v $tool >/dev/null 2>&1 || ln -s "$(command -v $tool)" only/$tool
done
# (cc may be ccache, which looks for the compiler itself)
CCACHE_PATH=$PATH PATH=$PWD/only CC=cc "$lowerset" compile mlp.onnx -q -O 0 --batch 8 --emit=lib \
    -o alone/2nd 2>said || fail "without objcopy and ar"
nm -s alone/lib2nd.a | grep -q '^net_2nd_step in ' || fail "the archive has no index"
CC=cc "$lowerset" compile mlp.onnx -q -O 0 --batch 8 --emit=lib -o lib/2nd 2>said \
    || fail "2nd again"
case $flags in
*sanitize*) ;;
*) cmp -s lib/lib2nd.a alone/lib2nd.a || fail "the same library twice has other bytes" ;;
esac
ar t alone/lib2nd.a >said && (cd alone && ar x lib2nd.a) || fail "ar cannot read the archive"

# ---- two libraries in one program, as C++ and pedantic C; several instances ----
cat >both.c <<'END'
#include "net.h"
#include "2nd.h"
int main(void) { return net_batch() == 4 && net_2nd_batch() == 8 ? 0 : 1; }
END
cc -std=c11 -Wall -Wextra -pedantic -Werror $flags -Ilib both.c lib/libnet.a lib/lib2nd.a -lm \
    -lpthread -o both >said 2>&1 || fail "two libraries do not link"
./both || fail "two libraries"
if command -v c++ >/dev/null 2>&1; then
    c++ -x c++ -std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only -Ilib both.c >said 2>&1 \
        || fail "the header is not C++17"
fi
./client pair 16 9 >said 2>&1 || fail "instances"

# turns NAME OPTION...: NAME.so, an object around a library whose symbols begin with net_, too
turns() {
    name=$1
    shift
    rm -rf lib
    mkdir lib
    "$lowerset" compile "$name.onnx" -q -O 0 --plan-effort 1 "$@" --emit=lib -o lib/net 2>said \
        || fail "$name $*: the library"
    # shellcheck disable=SC2086
    cc -Wall -Wextra -Werror -std=c11 $flags -shared -fPIC -Ilib -I"$source/tests/whole" \
        "$source/tests/whole/library_turns.c" lib/libnet.a -lm -lpthread -o "$name.so" >said 2>&1 \
        || fail "$name: an object around a library"
}
turns mlp --batch 8 --optimizer adamw --microbatches 2
turns cnn --batch 4 --precision bf16 --budget min
turns gpt --batch 4 --accumulate 2
# shellcheck disable=SC2086
cc -Wall -Wextra -Werror -std=gnu11 $flags -I"$source/tests/whole" \
    "$source/tests/whole/library_two.c" -ldl -lpthread -o two >said 2>&1 || fail "two"
./two 12 "$PWD/mlp.so" "$PWD/cnn.so" "$PWD/gpt.so" >said 2>&1 || fail "nets in turns"

# ---- refusals ----
refused() {     # WORDS OPTION...
    words=$1
    shift
    code=0
    "$lowerset" compile mlp.onnx --batch 8 --emit=lib -o no "$@" >said 2>&1 || code=$?
    [ $code = 2 ] && grep -q -- "$words" said || fail "not refused: $*"
}
refused "a library (--emit=lib) does not do --ranks yet" --ranks 2
refused "a library (--emit=lib) does not do --stages yet" --stages 2
refused "a library (--emit=lib) does not do --ensemble yet" --ensemble 2
refused "has no --schedule: its caller gives every step a rate" --schedule cosine
refused "no gradients of single samples" --grads per-sample-norm --randomness different
refused "exports no model, which --merge is for" --lora r=2:fc1 --merge
refused "'2x' does not begin a C name" --prefix 2x

# ---- valgrind sees no fault and no leak; it does not know the instructions of every machine ----
checked() {
    valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect "$@" \
        >said 2>&1 || fail "valgrind: $*"
}
case $(uname -m)$flags in
*sanitize*) ;;
x86_64*)
    if command -v valgrind >/dev/null 2>&1; then
        compile_both mlp.onnx --batch 8 -march=x86-64-v3 --store-gradients
        build_client "$source/tests/whole/library_calls.c" calls || fail "calls do not link"
        checked ./client train 20 5 0.01 3 3 valgrind.safetensors
        checked ./calls show valgrind.safetensors 20
        checked ./calls check 10
        checked ./client pair 16 3
    fi ;;
esac
echo "$passed settings have the bits of the trainer"
