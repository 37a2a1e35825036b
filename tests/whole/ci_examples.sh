#!/bin/sh
# The jobs of examples/ci hold a model to its plan: the commands of those files run as a runner
# would run them. An unchanged model passes; a plan that got worse ends with 6 and is named in the
# summary; another model with 2; --update blesses.
#   sh tests/whole/ci_examples.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
build=$(cd "$1" && pwd) source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C XDG_CONFIG_HOME="$work/config"
failed=0
fail() { failed=1; echo "FAIL $*"; }

# Plans get little work here.
mkdir "$work/bin"
cat >"$work/bin/lowerset" <<END
#!/bin/sh
[ "\$1" = plan ] && set -- "\$@" --plan-effort 2
exec "$build/lowerset" "\$@"
END
chmod +x "$work/bin/lowerset"
export PATH="$work/bin:$PATH"

# commands FILE.yml: the words behind `run:`, or the items of `script:`; `|` begins lines that are
# indented deeper.
commands() {
    awk '
    BEGIN { block = -1; script = -1 }
    /^ *#/ || $0 == "" { next }
    { match($0, /^ */); indent = RLENGTH }
    block >= 0 && indent > block { print; next }
    { block = -1; text = "" }
    script >= 0 && indent <= script { script = -1 }
    /^ *(- )?run: / { text = $0; sub(/^ *(- )?run: /, "", text) }
    script >= 0 && /^ *- / { text = $0; sub(/^ *- /, "", text) }
    /^ *script:$/ { script = indent }
    text == "|" { block = indent; next }
    text != "" { print text }' "$1"
}
# The blocks sh of a page.
page_commands() { awk '/^```/ { inside = $0 == "```sh"; next } inside' "$1"; }

# job WANTED-CODE WHAT [SED-EDIT]: the commands of $yml, edited, as one script.
job() {
    want=$1 what=$2 code=0
    commands "$source/examples/ci/$yml" | sed "${3:-}" >job.sh
    [ "$(grep -c lowerset job.sh)" -ge 2 ] || fail "$yml: its commands are not found"
    : >summary.md
    GITHUB_STEP_SUMMARY=$PWD/summary.md sh -e job.sh >said 2>&1 || code=$?
    [ ! -f plan.md ] || cat plan.md >>summary.md
    [ "$code" = "$want" ] || fail "$yml, $what: exit $code, not $want: $(tail -n 3 said)"
}
summary() { grep -q -- "$1" summary.md || fail "$yml: no '$1' in the summary: $(cat summary.md)"; }

larger='s/--batch 8/& --no-inplace --budget none/; s/ --budget 60%//'
for yml in github-actions.yml gitlab-ci.yml; do
    mkdir "$work/$yml"
    cd "$work/$yml"
    job 1 "without a plan"
    grep -q "plans/unet.json" said || fail "$yml: a missing plan is not named"
    page_commands "$source/examples/ci/README.md" >bless.sh
    sh -e bless.sh >said 2>&1 || fail "README.md: $(tail -n 3 said)"
    grep -q "plans/unet.json is new" said || fail "a new plan is not said to be new"
    cp plans/unet.json first.json
    job 0 "nothing changed"
    summary "^### Plan of unet.onnx: no worse"
    summary "^| arena | .* | +0.00 % | the same |"
    job 6 "more bytes" "$larger"
    summary "^### Plan of unet.onnx: worse"
    summary "^| arena | .* | \*\*worse\*\* |"
    summary "^Got worse: .*arena +[0-9.]* % ([0-9]* to [0-9]* bytes)"
    job 0 "more bytes, tolerated" "$larger; s/1%/900%/"
    summary "within the tolerance"
    job 2 "another batch" 's/--batch 8/--batch 4/'
    summary "^### Plan of unet.onnx: not comparable"
    job 2 "another machine" 's/--machine cpu/--machine cpu-amx/'
    summary "^Not comparable: its costs are of machine cpu"
    cmp -s plans/unet.json first.json || fail "a job without --update changed the plan"
done

# --update: says what changed, exits with 0, and leaves a plan as it is when it is the same.
sed -i 's/--budget 60%/--budget min/' bless.sh
sh -e bless.sh >said 2>&1 || fail "--update does not bless: $(tail -n 3 said)"
grep -q "cost .* worse" said || fail "--update does not say what got worse"
grep -q "plans/unet.json now holds this plan" said || fail "--update does not say what it did"
cmp -s plans/unet.json first.json && fail "--update changed nothing"
job 0 "what was blessed" 's/--budget 60%/--budget min/'
ls -i plans/unet.json >inode
sh -e bless.sh >said 2>&1 || fail "--update of the same plan: $(tail -n 3 said)"
grep -q "plans/unet.json has this plan" said || fail "--update writes the same plan anew"
ls -i plans/unet.json | cmp -s - inode || fail "--update replaces a plan by itself"
# What is no plan is not replaced by one.
for other in unet.onnx bless.sh; do
    cp "$other" kept
    code=0
    lowerset plan unet.onnx --batch 8 --against "$other" --update >said 2>&1 || code=$?
    [ "$code" = 1 ] || fail "--update of $other: exit $code"
    cmp -s "$other" kept || fail "--update replaced $other by a plan"
done
# JSON on stdout and Markdown in a file.
unchanged="--batch 8 --budget min --machine cpu --threads 2 --against plans/unet.json"
lowerset plan unet.onnx $unchanged --json --markdown=both.md >both.json 2>said || fail "$(cat said)"
grep -q '"recomputed_runs":{"then":[0-9]*,"now":[0-9]*,"verdict":"the same"}' both.json \
    || fail "the JSON has no count of runs"
grep -q "^| runs that compute again | [0-9]* | [0-9]* | +0 | the same |" both.md \
    || fail "the Markdown has no count of runs"
# A name is text, whatever is in it.
cp unet.onnx 'a|b_<i>.onnx'
lowerset plan 'a|b_<i>.onnx' $unchanged --markdown >odd.md 2>said || fail "$(cat said)"
grep -qF '### Plan of a\|b\_\<i\>.onnx: no worse' odd.md || fail "a name is markup: $(cat odd.md)"

[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
