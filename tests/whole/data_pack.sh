#!/bin/sh
# Folders of pictures become one data file, which trains; what is bad is named; a file is whole or
# not there.
#   sh tests/whole/data_pack.sh BUILD-FOLDER
set -eu
lowerset=$1/lowerset
make=$1/tests/make_pictures
[ -x "$make" ] || { echo "no libjpeg or no libpng here"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1"; exit 1; }
pack() { "$lowerset" data pack "$@" -q 2>err || fail "pack $*: $(cat err)"; }
# refused CODE TEXT ARGUMENTS...: pack ends with the code, says the text, and leaves no file.
refused() {
    want=$1 text=$2 code=0
    shift 2
    rm -f bad.lsd
    "$lowerset" data pack "$@" -o bad.lsd >out 2>err || code=$?
    [ "$code" = "$want" ] && grep -qF -- "$text" err \
        || fail "pack $*: $code, not $want with '$text': $(cat err)"
    [ ! -e bad.lsd ] && [ ! -e bad.lsd.tmp ] || fail "pack $*: left a file"
}
show() { "$lowerset" data show "$@" 2>err || fail "show $*: $(cat err)"; }
# bytes FILE FIELD COUNT [AT]: bytes of a field, from its beginning.
bytes() {
    at=$("$lowerset" data show "$1" --json | grep -o "{\"name\": \"$2\"[^}]*" |
        sed 's/.*"offset": \([0-9]*\).*/\1/')
    od -An -v -tu1 -j $((at + ${4:-0})) -N "$3" "$1" | tr -s ' \n' ' '
}

# Classes in the order of their names; the file does not depend on threads.
"$make" photos 12 dog cat
echo text >photos/cat/notes.txt
pack photos -o a.lsd --size 16 --threads 1
pack photos -o b.lsd --size 16 --threads 4
cmp a.lsd b.lsd || fail "another number of threads, another file"
show a.lsd --check >out
grep -q '24 samples' out && grep -q 'classes 2: cat, dog' out && grep -q 'uint8 3x16x16' out \
    && grep -q 'all 2 blocks' out || fail "show: $(cat out)"
[ "$(bytes a.lsd label 8)" = " 0 0 0 0 0 0 0 0 " ] \
    && [ "$(bytes a.lsd label 8 96)" = " 1 0 0 0 0 0 0 0 " ] || fail "labels"
# Two sources are one; --like gives the other's classes.
"$make" more 2 bird cat
pack photos more -o c.lsd --size 16
show c.lsd | grep -q 'classes 3: bird, cat, dog' || fail "classes of two sources"
refused 8 "has no class 'bird'" more --size 16 --like a.lsd
"$make" dogs 3 dog
pack dogs -o d.lsd --size 16 --like a.lsd
[ "$(bytes d.lsd label 8)" = " 1 0 0 0 0 0 0 0 " ] || fail "--like"

# A PNG keeps its values: 30 + (3x + 2y + 37c + 11 seed) % 180, as planes.
mkdir one
"$make" --kinds one
pack one -o k.lsd
show k.lsd | grep -q '10 samples' || fail "kinds"
[ "$(bytes k.lsd image 3)" = " 41 44 47 " ] && [ "$(bytes k.lsd image 2 192)" = " 78 81 " ] \
    || fail "pixels: $(bytes k.lsd image 3)"
"$lowerset" data pack one -o k1.lsd --channels 1 --crop 8 >out 2>err
grep -q '2 pictures have 16 bits' err && grep -q '1 pictures have transparency' err \
    || fail "losses are not told: $(cat err)"

# Masks keep their numbers, by the nearest pixel and at the picture's place.
"$make" --masks pictures masks 4
pack pictures --masks masks -o m.lsd --crop 8x12
# picture 1 at x 2, y 2: (30 + (6 + 4 + 11) % 180) % 16
[ "$(bytes m.lsd label 2 96)" = " 3 6 " ] || fail "masks: $(bytes m.lsd label 4 96)"
mv masks/2.png masks/none.png
refused 8 "pictures/2.jpg: has no mask masks/2.png" pictures --masks masks
cp pictures/2.jpg masks/2.png
refused 8 "masks/2.png: JPEG changes values" pictures --masks masks
cp one/colour16.png masks/2.png
refused 8 "masks/2.png: colours" pictures --masks masks

# The trainer reads it, by whatever name; figures and classes come with it and go into checkpoints.
"$lowerset" model mlp --size=16 --channels=3 --classes=2 --width=8 -o n.onnx >/dev/null
"$lowerset" compile n.onnx --batch 4 --loss ce --opt 0 --plan-effort 1 -q -o n --lr 0.01
./n --data a.lsd --val d.lsd --epochs 2 --save ck --mean auto --std auto >out 2>err \
    || fail "$(cat err)"
grep -q 'val_loss' out || fail "no val_loss"
last=$(ls ck/* | tail -n 1)
grep -aq 'classes.*cat.*dog.*mean' "$last" || fail "the checkpoint has no classes"
loss() { sed -n 's/.*val_loss \([0-9.]*\).*/\1/p'; }
# Dogs alone are class 0 of their own file, and class 1 of the model; figures are the training's.
pack dogs -o alone.lsd --size 16
same=$(./n --eval --data d.lsd --resume "$last" --mean auto --std auto | loss)
[ -n "$same" ] || fail "no loss"
[ "$(./n --eval --data alone.lsd --resume "$last" --mean auto --std auto | loss)" = "$same" ] \
    || fail "classes are not mapped by their names"
[ "$(./n --eval --data d.lsd --resume "$last" | loss)" != "$same" ] \
    || fail "--mean auto does nothing"
figures() { show a.lsd --json | sed "s/.*\"$1\": \[\([^]]*\)\].*/\1/; s/ //g"; }
[ "$(./n --eval --data d.lsd --resume "$last" --mean "$(figures mean)" --std "$(figures std)" |
    loss)" = "$same" ] || fail "--mean auto are not the figures of the training data"
pack more -o other.lsd --size 16
code=0
./n --eval --data other.lsd --resume "$last" >out 2>err || code=$?
[ "$code" = 8 ] && grep -q "class 'bird' is not one of the 2" err \
    || fail "another class: $(cat err)"
code=0
./n --data m.lsd >out 2>err || code=$?
[ "$code" = 8 ] && grep -q "does not fit input 'label'" err || fail "a map as a class: $(cat err)"
# Pictures of another size: a part of each, where --augment says which.
pack photos -o big.lsd --size 20
code=0
./n --data big.lsd >out 2>err || code=$?
[ "$code" = 2 ] && grep -q "is 20x20 in the data, and the program takes 16x16; --augment" err \
    || fail "another size: $(cat err)"
./n --data big.lsd --augment crop=2 --epochs 1 >out 2>err || fail "another size: $(cat err)"
code=0
./n --data a.lsd+big.lsd --augment crop=2 --epochs 1 >out 2>err || code=$?
[ "$code" = 8 ] && grep -q "have another shape than in" err || fail "two sizes: $(cat err)"
# Several files are one, by + and by a pattern: the same samples, the same bits.
mkdir parts
pack photos/../photos -o parts/1.lsd --size 16
cp d.lsd parts/2.lsd
./n --data parts/1.lsd+parts/2.lsd --epochs 1 --no-shuffle >one.log 2>err || fail "$(cat err)"
./n --data 'parts/*.lsd' --epochs 1 --no-shuffle >two.log 2>err || fail "$(cat err)"
cmp one.log two.log || fail "a pattern is not the list"
pack photos dogs -o whole.lsd --size 16
./n --data whole.lsd --epochs 1 --no-shuffle >three.log 2>err || fail "$(cat err)"
cmp one.log three.log || fail "two files are not their samples"
code=0
./n --data a.lsd+other.lsd >out 2>err || code=$?
[ "$code" = 8 ] && grep -q "class 'bird'" err || fail "parts of other classes: $(cat err)"

# What is bad is named, and left out on request.
cp -r photos broken
head -c 500 photos/cat/p000000.jpg >broken/cat/p000000.jpg
: >broken/cat/p000002.jpg
refused 8 "broken/cat/p000000.jpg: damaged or truncated JPEG" broken --size 16
"$lowerset" data pack broken -o skipped.lsd --size 16 --skip-bad >out 2>err || fail "$(cat err)"
grep -q 'left out: broken/cat/p000000.jpg: damaged' err \
    && grep -q 'left out: broken/cat/p000002.jpg' err \
    && grep -q '22 samples.*2 left out' out || fail "--skip-bad: $(cat out err)"
show skipped.lsd --check >out
mkdir photos/empty
refused 8 "photos/empty: no pictures" photos --size 16
rmdir photos/empty
ln -s .. photos/cat/loop
refused 8 "photos/cat/loop: leads back to a folder above it" photos --size 16
rm photos/cat/loop
mkdir "photos/$(printf 'b\377d')"
refused 8 "is no UTF-8" photos --size 16
rmdir photos/b?d
mkdir nothing
refused 8 "nothing: no pictures" nothing
refused 8 "pixels (height x width), but the first picture has" photos
refused 8 "cannot read" not-there
refused 2 "--size" photos --size 16y16
cp photos/dog/p000001.png broken/stray.png
refused 8 "beside folders of classes" broken --size 16

# A file that is damaged or cut is not taken for whole.
size=$(wc -c <a.lsd)
for n in 10 100 4096 9000 $((size - 1)); do
    head -c "$n" a.lsd >cut.lsd
    code=0
    ./n --data cut.lsd >out 2>err || code=$?
    [ "$code" = 8 ] && grep -q 'cut.lsd: ' err || fail "cut after $n bytes: $code, $(cat err)"
done
for at in 9 20 $((size - 5)); do
    cp a.lsd hit.lsd
    printf '!' | dd of=hit.lsd bs=1 seek="$at" conv=notrunc 2>/dev/null
    code=0
    ./n --data hit.lsd >out 2>err || code=$?
    [ "$code" = 8 ] && grep -q 'hit.lsd: ' err || fail "byte $at changed: $code, $(cat err)"
done
cp a.lsd hit.lsd
printf '\377' | dd of=hit.lsd bs=1 seek=5000 conv=notrunc 2>/dev/null
show hit.lsd >/dev/null
code=0
"$lowerset" data show hit.lsd --check >out 2>err || code=$?
[ "$code" = 8 ] && grep -q "hit.lsd: damaged: bytes 4096 to" err || fail "--check: $(cat err)"

# Two that write one file do not meet.
if command -v flock >/dev/null 2>&1; then
    : >bad.lsd.tmp
    code=0
    flock bad.lsd.tmp "$lowerset" data pack photos -o bad.lsd --size 16 >out 2>err || code=$?
    [ "$code" = 1 ] && grep -q 'bad.lsd: another process writes it now' err && [ ! -e bad.lsd ] \
        || fail "two writers: $code, $(cat err)"
    rm bad.lsd.tmp
fi

# Killed at any time, pack leaves the old file or the whole new one.
"$make" many 60 a b
pack many -o many.lsd --size 64 --threads 2
cp a.lsd kill.lsd
for t in 0.001 0.003 0.005 0.008 0.012 0.016 0.02 0.03 0.04 0.06; do
    "$lowerset" data pack many -o kill.lsd --size 64 --threads 2 -q 2>/dev/null &
    pid=$!
    sleep "$t"
    kill -9 "$pid" 2>/dev/null || :
    wait "$pid" 2>/dev/null || :
    cmp -s kill.lsd a.lsd || cmp -s kill.lsd many.lsd || fail "killed after $t s: neither file"
done
echo "data files of pictures are right"
