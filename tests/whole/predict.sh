#!/bin/sh
# Predictions of a program: whole data sets without padding, whatever the batch; text that follows a
# prompt; lines of standard input. The model that is exported says what it comes from, and takes
# bytes where it is to; with a Python that has onnxruntime, both predict the same.
#   sh tests/whole/predict.sh BUILD-FOLDER
set -eu
. "$(dirname "$0")/../support/commands.sh"
export LOWERSET_PROBE=off LC_ALL=C
build="$lowerset compile -q --opt 0 --plan-effort 1 --optimizer adam"

# ---- tables and archives: ten samples of four numbers, of three classes
awk 'BEGIN { srand(5); for (i = 0; i < 10; i++) { for (k = 0; k < 4; k++) { v = rand() - 0.5
    a += k == 0 ? v : 0; printf "%.6f,", v } print i % 3 } }' >train.csv
cut -d, -f1-4 train.csv >bare.csv
must "$lowerset" model mlp --size=2 --classes=3 --width=8 --batch=0 -o net.onnx
for b in 1 3 7; do
    must $build net.onnx --batch $b --loss ce -o net$b
done
must ./net3 --data train.csv --epochs 30 --lr 0.05 --save-weights w.safetensors
for b in 1 3 7; do
    must ./net$b --data bare.csv --init-from w.safetensors --predict $b.csv --threads $((b % 3 + 1))
    has out "predicted 10 samples"
    must ./net$b --data train.csv --init-from w.safetensors --predict labelled.csv
    cmp $b.csv labelled.csv || fail "labels change predictions"
    must ./net$b --data bare.csv --init-from w.safetensors --predict $b.npz --predict-outputs y
    cmp 1.csv $b.csv || fail "batches of $b: other rows"
    cmp 1.npz $b.npz || fail "batches of $b: another archive"
done
[ "$(wc -l <1.csv)" = 11 ] && [ "$(head -n 1 1.csv)" = class,probability,p_0,p_1,p_2 ] \
    || fail "the table: $(head -n 2 1.csv)"
# Its classes are the labels as often as the evaluation says, and their probabilities the largest.
must ./net3 --eval --data train.csv --init-from w.safetensors --metrics all --confusion table.csv
tail -n +2 1.csv | paste -d, - train.csv >both
right=$(awk -F, '$1 == $10' both | wc -l)
has out "($right/10)"
[ "$(awk -F, 'NR > 1 { s += $NR } END { print s }' table.csv)" = "$right" ] \
    || fail "the diagonal of $(cat table.csv)"
awk -F, '{ m = $3 > $4 ? $3 : $4; m = m > $5 ? m : $5; s = $3 + $4 + $5
    if ($2 != m || $(3 + $1) != m || s < 0.999999 || s > 1.000001) exit 1 }' both \
    || fail "probabilities"
# Values, and yes or no.
awk -F, '{ print $1 "," $2 "," $3 "," $4 "," $1 + $2 "," $3 }' bare.csv >values.csv
must "$lowerset" model mlp --size=2 --classes=2 --width=8 --batch=0 -o two.onnx
must $build two.onnx --batch 3 --loss mse -o values
must ./values --eval --data values.csv --metrics all
error=$(sed -n 's/.*val_mse \([0-9.e-]*\).*/\1/p' out)
must ./values --data values.csv --predict v.csv
[ "$(head -n 1 v.csv)" = "y[0],y[1]" ] || fail "$(head -n 1 v.csv)"
tail -n +2 v.csv | paste -d, - values.csv | awk -F, -v is="$error" '
    { a = $1 - $7; b = $2 - $8; s += (a * a + b * b) / 20 }
    END { d = s / is - 1; if (d > 1e-5 || d < -1e-5) exit 1 }' || fail "values do not give $error"

# ---- pictures
must "$lowerset" model unet --width=2 --depth=1 --size=8 --batch=0 --classes=3 -o unet.onnx
must $build unet.onnx --batch 4 --loss ce -o unet
mkdir masks.tmp
echo old >masks.tmp/3.png               # of a run that was killed
must ./unet --data synthetic:11 --predict masks/
[ "$(ls masks | tr '\n' ' ')" = "00.png 01.png 02.png 03.png 04.png 05.png 06.png 07.png 08.png \
09.png 10.png " ] && [ ! -e masks.tmp ] || fail "$(ls -d masks* masks/*)"
[ "$(head -c 16 masks/03.png | tail -c 4)" = IHDR ] && grep -qa PLTE masks/03.png || fail "no mask"
refused "the folder is not empty" ./unet --data synthetic:11 --predict masks/
refused "no picture" ./net3 --data bare.csv --predict pictures/

# ---- ends: nothing that is not whole has the name
code=0
timeout -s KILL 0.3 ./net1 --data synthetic:100000000 --predict killed.csv >out 2>err || code=$?
[ "$code" = 137 ] && [ ! -e killed.csv ] || fail "killed: $code"
code=0
timeout --preserve-status -s INT 0.3 ./net1 --data synthetic:100000000 --predict cut.npz \
    >out 2>err || code=$?
[ "$code" = 130 ] && [ ! -e cut.npz ] || fail "interrupted: $code"
refused "do not go together" ./net1 --data bare.csv --predict x.csv --metrics f1
refused "more than the 4 GiB of an archive" ./net1 --data synthetic:400000000 --predict x.npz
refused "has no output 'z'" ./net1 --data bare.csv --predict x.csv --predict-outputs z
refused "--predict and --generate are two runs" \
    ./net1 --data bare.csv --predict x.csv --generate 3 --prompt 1

# ---- text
awk 'BEGIN { for (i = 0; i < 40; i++) print "abcdefghij" }' >text.txt
must "$lowerset" model gpt --batch=0 --width=16 --depth=1 --heads=2 --context=8 --vocab=11 \
    -o gpt.onnx
must $build gpt.onnx --batch 2 --loss ce -o gpt
must $build gpt.onnx --batch 1 --loss ce -o gpt1
must ./gpt --data text.txt --epochs 4 --lr 0.02 --save-weights g.safetensors --export g.onnx
must $build g.onnx --batch 3 --loss ce -o again         # it has weights and alphabet
must ./again --generate 12 --prompt fghijabc --temperature 0
# (the newline of the text does not follow what has not been learned)
cp out greedy
for threads in 1 2 3; do
    must ./again --generate 12 --prompt fghijabc --temperature 0 --threads $threads
    cmp out greedy || fail "greedy: $threads threads"
    must ./again --generate 12 --prompt fghijabc --temperature 2 --seed 4 --threads $threads
    [ "$threads" = 1 ] && cp out drawn || cmp out drawn || fail "drawn: $threads threads"
done
# The same by predictions: the likeliest character behind eight ones.
printf fghijabc >window
k=0
while [ $k -lt 12 ]; do
    { tail -c 8 window; echo; } >step.txt
    must ./again --data step.txt --predict step.csv
    tail -n 1 step.csv | awk -F, '{ b = 78; for (c = 79; c <= 88; c++) if ($c > $b) b = c
        printf "%s", b == 78 ? "\n" : substr("abcdefghij", b - 78, 1) }' >next
    cat next >>window
    k=$((k + 1))
done
tail -c +9 window >expected
echo >>expected
cmp expected greedy || fail "greedy, and $(cat expected) by predictions"
refused "not among the 11 characters" ./again --generate 3 --prompt abX
must ./again --generate 5 --prompt a --temperature 0           # shorter than a row
refused "give --prompt" ./again --generate 5
refused "takes its input from --prompt" ./again --generate 5 --prompt a --data text.txt
printf '%s\n' abc '{"prompt": "ab\u0063", "id": 7}' '"abc' '{"prompt": "X"}' '"abc"' |
    ./again --serve-stdin --generate 4 --temperature 0 >out 2>err || fail "prompts"
[ "$(wc -l <out)" = 5 ] && [ "$(grep -c '"error":' out)" = 2 ] || fail "answers to prompts"
[ "$(sed -n 2p out)" = "{\"id\":7,$(sed -n 1p out | cut -c2-)" ] \
    && [ "$(sed -n 5p out)" = "$(sed -n 1p out)" ] || fail "answers differ"

# ---- lines
sed 's/.*/{"x": [&], "id": 1}/' bare.csv >lines
{ cat lines; echo '[1,2]'; echo; cat bare.csv; echo '{"x":[1,2,3,NaN]}'; echo nonsense
    echo '{"y":[1,2,3,4]}'; echo '{"x":[[[1,2],[3,4]]]}'
    head -c 3000000 /dev/zero | tr '\0' '['; echo; echo '{"x":[1,2,3,1e999]}'
    printf '%s' "$(head -n 1 bare.csv)"; } >asked
for b in 1 3 7; do
    ./net$b --serve-stdin --init-from w.safetensors <asked >answers 2>err || fail "served: $?"
    [ "$(wc -l <answers)" = 28 ] || fail "$(wc -l <answers) answers"
    tail -n +2 1.csv | awk -F, '{ printf "\"class\":%s,\"probability\":%s,", $1, $2
        printf "\"probabilities\":[%s,%s,%s]}\n", $3, $4, $5 }' >want
    head -n 10 answers | sed 's/^{"id":1,//' | cmp - want || fail "batches of $b: JSON"
    sed -n '12,21s/^{//p' answers | cmp - want || fail "batches of $b: rows"
    [ "$(tail -n 1 answers)" = "{$(head -n 1 want)" ] || fail "batches of $b: the last line"
    [ "$(grep -c '^{"error":' answers)" = 6 ] || fail "$(grep error answers)"
    [ "$b" = 1 ] && cp answers first || cmp answers first || fail "batches of $b: other answers"
done
has answers "'x' has another shape: it takes 4 numbers, 1x2x2"
has answers "more than"
has answers "no input is called 'y'"
has answers "a number is too large at character 13"

# ---- what an exported model says, and takes
must ./unet --data synthetic:11 --export plain.onnx
for key in version plan loss steps data; do has plain.onnx "lowerset.$key"; done
refused "the data are not scaled" ./unet --data synthetic:11 --export x.onnx --export-scaling
python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
    echo "SKIP comparison with onnxruntime: no Python that has it"
    exit 0
fi
cat >make.py <<'END'
import numpy as np
r = np.random.default_rng(2)
np.savez("bytes.npz", x=r.integers(0, 256, (11, 3, 8, 8)).astype("u1"),
         label=r.integers(0, 3, (11, 8, 8)))
END
must "$python" make.py
scaling="--mean 0.4,0.5,0.6 --std 0.2,0.3,0.25"
must ./unet --data bytes.npz $scaling --export s.onnx --export-scaling --save-weights u.safetensors
must ./unet --data bytes.npz $scaling --init-from u.safetensors --predict u.npz --export t.onnx
cat >compare.py <<'END'
import json
import numpy as np
import onnx
import onnxruntime as ort
x, want = np.load("bytes.npz")["x"], np.load("u.npz")["y"]
onnx.checker.check_model(onnx.load("s.onnx"), full_check=True)
notes = {p.key: p.value for p in onnx.load("t.onnx").metadata_props}
scale = json.loads(notes["lowerset.scaling"])["x"]
axis = lambda v: np.array(v, "f4").reshape(1, 3, 1, 1)
scaled = ((x * np.float32(scale["scale"]) - axis(scale["mean"])) / axis(scale["std"])).astype("f4")
for name, value in ("s.onnx", x), ("t.onnx", scaled):
    s = ort.InferenceSession(name)
    got = s.run(None, {s.get_inputs()[0].name: value})[0]
    assert np.abs(got - want).max() < 1e-5, (name, np.abs(got - want).max())
assert notes["lowerset.data"] == "bytes.npz" and notes["lowerset.steps"] == "0", notes
END
must "$python" compare.py
# Names of classes that a model file has are those of tables and answers, and stay in exports.
cat >name.py <<'END'
import onnx
m = onnx.load("net.onnx")
m.metadata_props.add(key="lowerset.classes", value='["cat","a, \\"dog\\"","\\u00e9mu"]')
onnx.save(m, "named.onnx")
END
must "$python" name.py
must $build named.onnx --batch 4 --loss ce -o named
must ./named --data bare.csv --predict named.csv --export again.onnx
[ "$(head -n 1 named.csv)" = 'class,probability,p_cat,"p_a, ""dog""",p_ému' ] || fail "names"
echo 1,2,3,4 | ./named --serve-stdin >answer || fail "served"
grep -q '^{"class":"' answer || fail "no name in $(cat answer)"
[ "$(grep -ac lowerset.classes again.onnx)" = 1 ] || fail "names in the exported model"
