#!/bin/sh
# Evaluations of a run: samples held out of training, the best checkpoint, an early end, parts of
# epochs. What they decide is the same for threads, ranks and stages, and after a resume.
#   sh tests/whole/validation.sh BUILD-FOLDER
set -eu
. "$(dirname "$0")/../support/commands.sh"
# Of two classes, with labels that are wrong in places, so that evaluations get worse again.
awk 'BEGIN { srand(3); for (i = 0; i < 200; i++) { a = rand(); b = rand();
    print a "," b "," rand() "," rand() "," ((a > b) != (rand() < 0.15)) } }' >train.csv
must "$lowerset" model mlp --size=2 --classes=2 --width=64 --batch=0 -o net.onnx
build="$lowerset compile net.onnx --batch 16 --microbatches 4 --loss ce --optimizer adam --opt 0 -q"
must $build -o one
must $build --ranks 2 -o two
must $build --stages 2 -o stages
split="--data train.csv --val-split 20% --lr 0.02 --progress none"
long="$split --epochs 60 --val-every 7 --keep-best val_loss --patience 6 --export-best
    --no-export-notes"

# ---- an early end, and the best
must ./one $long --save ck --log log --export best.onnx
cp out early
must ./one $long --save ck-threads --threads 3 --export other.onnx
cmp out early || fail "threads: other results"
cmp best.onnx other.onnx || fail "threads: another model"
for run in two stages "stages --ranks 2"; do
    rm -rf ck-other
    must ./$run $long --save ck-other --export other.onnx
    cmp out early || fail "$run: other results"
    cmp best.onnx other.onnx || fail "$run: another model"
    [ "$(ls ck-other)" = "$(ls ck)" ] || fail "$run: other checkpoints"
done
# The log knows better than the program: the best evaluation, and how many follow it.
sed -n 's/^{"step":\([0-9]*\),.*"val_loss":\([0-9.e-]*\).*/\1 \2/p' log >losses
best=$(sort -g -k 2 losses | head -n 1 | cut -d ' ' -f 1)
behind=$(awk -v best="$best" '$1 > best' losses | wc -l)
last=$(tail -n 1 losses | cut -d ' ' -f 1)
[ "$behind" = 6 ] || fail "$behind evaluations behind the best of step $best"
has early "ended after step $last: val_loss has not improved in 6 evaluations (--patience)"
has early "of step $best"
has early "exporting the model of step $best, with the best val_loss"
[ -e "ck/step-$(printf %09d "$last").safetensors" ] || fail "no last checkpoint: $(ls ck)"
[ "$last" -lt 720 ] || fail "no early end"
# The best checkpoint is that step: its evaluation on the same samples has that loss.
must ./one --eval --data train.csv --val-split 20% --resume ck/best.safetensors --progress none
has out "val_loss $(awk -v best="$best" '$1 == best { printf "%.7g", $2 }' losses)"
has out "step $best "
must ./one --eval --data train.csv --val-split 20% --resume ck/best.safetensors --progress none \
    --no-export-notes --export again.onnx
cmp best.onnx again.onnx || fail "the exported model is not the best"
# A delta that nothing reaches ends the run after the first evaluation and so many more.
must ./one $split --epochs 60 --val-every 7 --patience 3 --min-delta 9
has out "ended after step 20: val_loss has not improved by more than 9 in 3 evaluations"

# ---- resume
rm -rf ck2
must ./one $long --save ck2 --steps 20 --export x.onnx
must ./one $long --save ck2 --resume auto --export rest.onnx
cmp best.onnx rest.onnx || fail "a resumed run has another best model"
tail -n 2 early >end
tail -n 2 out | cmp - end || fail "a resumed run ends elsewhere"
cmp ck/best.safetensors ck2/best.safetensors || fail "a resumed run has another best checkpoint"
must ./one $long --save ck2 --resume auto --export rest.onnx
has out "ended after step $last"
cmp best.onnx rest.onnx || fail "a run that has ended has another best model"
refused "holds out 22 of 200 samples, and the checkpoint's run 40 of 200" \
    ./one --data train.csv --val-split 11% --epochs 70 --save ck2 --resume auto
refused "give --val-split=40 again" ./one --data train.csv --epochs 70 --save ck2 --resume auto
refused "give --val-split=40 again" ./one --data train.csv --val train.csv --epochs 70 --save ck2 \
    --resume auto
must ./one --data train.csv --epochs 1 --save plain --progress none
refused "held no samples out" ./one --data train.csv --val-split 40 --epochs 2 --save plain \
    --resume auto
refused "holds checkpoints of another run, up to step" ./one $split --save ck
rm ck/step-*
refused "holds checkpoints of another run, and --resume=auto" ./one $split --save ck
must ./one $split --save ck --overwrite
[ ! -e ck/best.safetensors ] || fail "--overwrite left the best of another run"

# ---- parts of epochs: 160 samples are 10 batches
steps() { must ./one $split "$@" --log log; sed -n 's/^{"step":\([0-9]*\),.*"loss".*/\1/p' log |
    tail -n 1; }
[ "$(steps --epochs 0.5)" = 5 ] || fail "half an epoch"
[ "$(steps --epochs 2.25)" = 23 ] || fail "two epochs and a quarter"
[ "$(steps --epochs 0.001)" = 1 ] || fail "a thousandth of an epoch"
[ "$(steps --epochs 3 --limit-batches 4)" = 12 ] || fail "three epochs of four batches"
grep -c "^epoch . *step" out | grep -q '^3$' || fail "three epochs of four batches"
refused "must be more than 0" ./one $split --epochs 0
must ./one $split --limit-val-batches 2
has out "/32)"
# Other batches of an epoch: it is said, and epochs stay whole.
must ./one $split --epochs 2 --limit-batches 4 --save part
must ./one $split --epochs 3 --limit-batches 5 --save part --resume auto
has err "--limit-batches, are not those of the checkpoint; continuing with epoch 3"

# ---- private training: of the samples that are left, and no more than they
must "$lowerset" compile net.onnx --batch 16 --loss ce --dp clip=1,noise=1,delta=1e-5 --opt 0 -q \
    -o dp
private="--progress none --noise-seed 3 --epochs 2 --limit-batches 3"
must ./dp --data train.csv --val-split 20% $private --val-every 2 --keep-best val_loss \
    --patience 9 --save dp1 --export a.onnx
[ "$(ls dp1)" = "$(printf 'best.safetensors\nstep-00000000%d.safetensors\n' 3 6 | sort -u)" ] \
    || fail "private: $(ls dp1)"
head -n 160 train.csv >some.csv         # as many samples: the same guarantee
sed -n 's/.*\(([^)]*differentially.*\|epsilon.*\)after.*/\1/p' out >guarantee
must ./dp --data some.csv --save dp2 $private
sed -n 's/.*\(([^)]*differentially.*\|epsilon.*\)after.*/\1/p' out | cmp - guarantee \
    || fail "private: another guarantee"
[ -s guarantee ] || fail "no guarantee"

# ---- windows of tokens: the last ones, and none that shares a token with them
awk 'BEGIN { for (i = 0; i < 900; i++) printf "%c", 97 + (i * i + i / 7) % 26 }' >text.txt
must "$lowerset" model gpt --depth=1 --heads=1 --width=8 --context=16 --vocab=26 \
    -o gpt.onnx
must "$lowerset" compile gpt.onnx --batch 4 --loss ce --opt 0 -q -o gpt
head -c 705 text.txt >head.txt          # 44 windows; 45 to 56 have one window of 16 between
windows="--epochs 2 --progress none --no-export-notes"
must ./gpt --data text.txt --val-split 11 --no-shuffle $windows --export a.onnx
must ./gpt --data head.txt --val text.txt --no-shuffle $windows --export b.onnx
cmp a.onnx b.onnx || fail "windows: it trained on others"

# ---- what does not go together
refused "--val-split and --val both" ./one $split --val train.csv
wrong="of 200 samples, 200 held out leave none to train on" code=0
./one --data train.csv --val-split 200 >out 2>err || code=$?
[ "$code" = 8 ] || fail "exit $code, not 8: $wrong"
has err "$wrong"
refused "a number of samples, or a share" ./one --data train.csv --val-split 0.1
refused "nothing is evaluated" ./one --data train.csv --patience 2
refused "--keep-best keeps a checkpoint in --save DIR" ./one $split --keep-best val_loss
refused "no best model is kept" ./one $split --export-best --export x.onnx
refused "--min-delta is for --patience" ./one $split --min-delta 1
refused "--keep-best=fame: evaluations of this program give val_loss, val_accuracy" \
    ./two $split --keep-best fame --save fame
refused "--eval trains nothing" ./one $split --eval --patience 2
echo "held out, kept the best, ended in time"
