#!/bin/sh
# Tables, tokens, texts, lines and arrays become data files that train as their sources do, or are
# refused with a line.
#   sh tests/whole/data_tables.sh BUILD-FOLDER
set -eu
lowerset=$1/lowerset
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "FAIL $1"; exit 1; }
pack() { "$lowerset" data pack "$@" -q 2>err || fail "pack $*: $(cat err)"; }
refused() {
    want=$1 text=$2 code=0
    shift 2
    rm -f bad.lsd
    "$lowerset" data pack "$@" -o bad.lsd >out 2>err || code=$?
    [ "$code" = "$want" ] && grep -qF -- "$text" err \
        || fail "pack $*: $code, not $want with '$text': $(cat err)"
    [ ! -e bad.lsd ] && [ ! -e bad.lsd.tmp ] || fail "pack $*: left a file"
}
shows() {
    "$lowerset" data show "$1" --json >out
    grep -qF -- "$2" out || fail "$1 has not '$2': $(cat out)"
}
# values FILE FIELD TYPE COUNT
values() {
    at=$("$lowerset" data show "$1" --json | grep -o "{\"name\": \"$2\"[^}]*" |
        sed 's/.*"offset": \([0-9]*\).*/\1/' | head -n 1)
    od -An -v -t"$3" -j "$at" -N "$4" "$1" | tr -s ' \n' ' '
}

# Byte order mark, CRLF, quotes, blank lines, categories, missing values.
printf '\357\273\277age,colour,size,kind\r\n1,red,2.5,b\r\n\r\n' >t.csv
printf '2,"a ""dark"", blue",,a\r\n6,red,3.5,b\r\n' >>t.csv
refused 8 "t.csv:4: no value in column 'size'" t.csv --label-column kind
pack t.csv -o t.lsd --label-column kind --missing mean
[ "$(values t.lsd x f4 36)" = " 1 1 2.5 2 0 3 6 1 3.5 " ] || fail "values: $(values t.lsd x f4 36)"
[ "$(values t.lsd label d8 24)" = " 1 0 1 " ] || fail "classes: $(values t.lsd label d8 24)"
shows t.lsd '"categories": ["a \"dark\", blue", "red"]'
shows t.lsd '"classes": ["a", "b"]'
shows t.lsd '"mean": [3, '
pack t.csv -o d.lsd --label-column 4 --missing drop --one-hot
[ "$(values d.lsd x f4 24)" = " 1 1 2.5 6 1 3.5 " ] || fail "dropped: $(values d.lsd x f4 24)"
pack t.csv -o o.lsd --label-column age --missing 9 --one-hot
[ "$(values o.lsd x f4 20)" = " 0 1 2.5 0 1 " ] || fail "one hot: $(values o.lsd x f4 20)"
[ "$(values o.lsd label d8 24)" = " 1 2 6 " ] || fail "numbers as labels"
# The same columns and classes for other rows.
printf 'age,colour,size,kind,more\n5,red,,b,x\n' >v.csv
pack v.csv -o v.lsd --label-column kind --missing mean --like t.lsd
[ "$(values v.lsd x f4 12)" = " 5 1 3 " ] && [ "$(values v.lsd label d8 8)" = " 1 " ] \
    || fail "--like: $(values v.lsd x f4 12)"
printf 'age,colour,size,kind\n5,green,1,b\n' >v.csv
refused 8 "v.csv:2: column 'colour' has 'green', which is none of its 2 categories in t.lsd" \
    v.csv --label-column kind --like t.lsd
printf 'a;b\n1;2\n3\n' >r.csv
refused 8 "r.csv:3: 1 fields, but the names are 2" r.csv
printf 'a,b\n1,2\nx,4\n' >r.csv
refused 8 "r.csv:3: column 'a' has 'x', and numbers in 1 rows" r.csv
pack r.csv -o r.lsd --categories a
printf 'a,b\n1,"2\n' >r.csv
refused 8 "r.csv:2: a quote opens" r.csv
refused 2 "has no such column" t.csv --label-column none
refused 2 "--size is not for tables" t.csv --size 3

# A table trains as the same numbers do from CSV.
awk 'BEGIN { print "p,q,c"; for (i = 0; i < 64; i++) {
    a = i % 9 / 9; b = i % 7 / 7; print a "," b "," (a > b ? "up" : "down") } }' >n.csv
sed '1d; s/down/0/; s/up/1/' n.csv >plain.csv
pack n.csv -o n.lsd --label-column c
"$lowerset" model mlp --size=1 --channels=2 --classes=2 --width=4 -o m.onnx >/dev/null 2>&1
"$lowerset" compile m.onnx --batch 8 --loss ce --opt 0 --plan-effort 1 -q -o m --lr 0.1
./m --data plain.csv --epochs 2 >csv.log 2>err || fail "$(cat err)"
./m --data n.lsd --epochs 2 >lsd.log 2>err || fail "$(cat err)"
cmp csv.log lsd.log || fail "a table trains otherwise than its numbers"
# Other columns than the model was trained on are refused.
sed '1s/p,q/q,r/' n.csv >w.csv
pack w.csv -o w.lsd --label-column c
code=0
./m --data n.lsd --val w.lsd --epochs 1 >out 2>err || code=$?
[ "$code" = 8 ] && grep -q 'other columns or categories' err || fail "other columns: $(cat err)"

# Tokens, text and lines train as their sources do.
"$lowerset" model gpt --width=16 --depth=1 --heads=2 --context=8 --vocab=40 -o g.onnx >/dev/null
"$lowerset" compile g.onnx --batch 2 --opt 0 --plan-effort 1 -q -o g --lr 0.1 --ignore-index -100 \
    >/dev/null 2>&1
for k in 1 2 3 4 5 6 7 8; do printf 'abcd efgh ijk '; done >a.txt
awk 'BEGIN { for (i = 0; i < 300; i++) printf "%c%c", i * 7 % 39 + 1, 0 }' >a.bin
awk 'BEGIN { srand(1); for (i = 0; i < 24; i++) { s = ""; n = 1 + i % 8
    for (k = 0; k < n; k++) s = s (k ? ", " : "") int(rand() * 40)
    print "{\"input_ids\": [" s "]" (i % 2 ? ", \"prompt_length\": 1" : "") "}" } }' >a.jsonl
for f in a.txt a.bin a.jsonl; do
    case $f in
    a.txt) pack $f -o s.lsd --text characters ;;
    a.jsonl) pack $f -o s.lsd --length 8 ;;
    *) pack $f -o s.lsd ;;
    esac
    ./g --data "$f" --epochs 1 >one.log 2>err || fail "$f: $(cat err)"
    ./g --data s.lsd --epochs 1 >two.log 2>err || fail "$f packed: $(cat err)"
    [ -s one.log ] && cmp one.log two.log || fail "$f trains otherwise when it is packed"
done
refused 8 "a.jsonl:4: 4 tokens are more than the 3" a.jsonl --length 3
echo '{"labels": [1]}' >b.jsonl
refused 8 "b.jsonl:1: no 'input_ids'" b.jsonl
printf abc >odd.bin
refused 8 "odd.bin: 3 bytes are not a multiple" odd.bin

# Several files of tokens, of tables.
./g --data a.bin+a.bin --epochs 1 >two.log 2>err || fail "$(cat err)"
./g --data a.bin+none.bin >out 2>err && fail "a file that is not there" || :
grep -q 'none.bin' err || fail "$(cat err)"
head -n 32 plain.csv >p1.csv
tail -n 32 plain.csv >p2.csv
./m --data p1.csv+p2.csv --epochs 2 >two.log 2>err || fail "$(cat err)"
cmp csv.log two.log || fail "two tables are not their rows"

# CIFAR's records: a label and 3072 bytes, planes first.
awk 'BEGIN { for (i = 0; i < 6; i++) { printf "%c", i % 2 + 1
    for (k = 0; k < 3072; k++) printf "%c", 1 + (37 * i + k * (i + 1)) % 100 } }' >c.bin
"$lowerset" model mlp --size=32 --channels=3 --classes=10 --width=64 -o c.onnx >/dev/null
"$lowerset" compile c.onnx --batch 2 --loss ce --opt 0 --plan-effort 1 -q -o c --lr 0.01
./c --data c.bin --epochs 1 --no-shuffle >one.log 2>err || fail "CIFAR: $(cat err)"
awk 'BEGIN { for (i = 0; i < 6; i++) {
    for (k = 0; k < 3072; k++) printf "%.9g,", (1 + (37 * i + k * (i + 1)) % 100) / 255
    print i % 2 + 1 } }' >c.csv
./c --data c.csv --epochs 1 --no-shuffle >two.log 2>err || fail "$(cat err)"
cmp one.log two.log || fail "CIFAR: $(cat one.log two.log)"
echo "data files of tables and tokens are right"
