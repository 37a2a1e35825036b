#!/bin/sh
# The command line as a page, from the tables of options that the programs print themselves:
# docs/cli.md. Options and settings that several commands have in the same words are printed once.
#   sh docs/cli.sh BUILD-FOLDER >docs/cli.md
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C XDG_CONFIG_HOME="$work"
. "$(dirname "$0")/tables.sh"

# A help becomes $work/COMMAND.head, .settings and .end, and rows of $work/options: COMMAND, GROUP,
# NAME, TEXT with \001 for ends of lines. An option is its line and the lines that continue it, from
# column 34 on.
commands=$(command_names)
for command in $commands; do
    if [ "$command" = model ]; then "$lowerset" model --help; else "$lowerset" help "$command"; fi |
        awk -v command="$command" -v to="$work/" -v OFS='\t' '
    function take(    name) {
        if (option == "") return
        name = option
        sub(/^ +(-[a-zA-Z], )?/, "", name)
        sub(/[ =\[\001].*/, "", name)
        print command, group, name, option
        option = ""
    }
    BEGIN { part = "head" }
    /^  (    )?-/ && part != "settings" { take(); option = $0; part = "options"; next }
    option != "" && /^                                  / { option = option "\001" $0; next }
    { take() }
    part == "options" && /^[A-Z][a-z]*$/ { group = $0; next }
    part == "head" && /^[A-Z][a-z]*$/ { group = $0; part = "options"; next }
    part == "options" && /^(Losses|Settings)/ { part = "settings" }
    part != "head" && /^Examples/ { part = "end" }
    part == "options" && $0 == "" { next }
    { print >(to command "." part) }
    END { take() }' >>"$work/options"
done

# Rows of options whose command is $1, a heading before each group; of the command "" those that
# several commands have.
block() {
    awk -F '\t' -v command="$1" '
    NR == FNR { times[$2, $4]++; next }
    { shared = times[$2, $4] > 1 }
    (command == "" ? !shared || seen[$2, $4]++ : $1 != command || shared) { next }
    !($2 in rows) { order[++n] = $2 }
    { rows[$2] = rows[$2] $4 "\n" }
    END {
        for (i = 1; i <= n; i++) {
            gsub(/\001/, "\n", rows[order[i]])
            printf "%s%s\n%s", (i > 1 ? "\n" : ""), order[i], rows[order[i]]
        }
    }' "$work/options" "$work/options"
}

# Which of the options of several commands the command has: all but a few, or a few.
shared_names() {
    awk -F '\t' -v command="$1" '
    NR == FNR { times[$2, $4]++; next }
    times[$2, $4] > 1 && !(($2, $4) in row) { row[$2, $4] = ++n; name[n] = $3 }
    times[$2, $4] > 1 && $1 == command { has[row[$2, $4]] = 1; nhas++ }
    function names(of,    i, list) {
        for (i = 1; i <= n; i++)
            if ((i in has) == of) list = list (list == "" ? "" : ", ") "`" name[i] "`"
        return list
    }
    END {
        if (nhas == 0) exit
        if (nhas == n) print "Also all options of several commands."
        else if (2 * nhas > n) print "Also the options of several commands, but not " names(0) "."
        else print "Also " names(1) "."
    }' "$work/options" "$work/options"
}

cat <<'END'
# The command line

Made by `./dev docs` from the tables of options that `lowerset help` prints; do not edit.

    lowerset COMMAND [MODEL.onnx] [OPTION...]

`--name VALUE` and `--name=VALUE` are the same. An option is given once, but for those that collect
(`--freeze`, `--keep`, ...). Options that several commands have in the same words are explained
once: [options of several commands](#options-of-several-commands).
END
for command in $commands; do
    printf '\n## lowerset %s\n\n```\n' "$command"
    sed -e '${/^$/d;}' "$work/$command.head"
    block "$command" >"$work/own"
    if [ -s "$work/own" ]; then echo; cat "$work/own"; fi
    if [ -f "$work/$command.settings" ] \
        && ! cmp -s "$work/$command.settings" "$work/compile.settings"; then
        echo
        cat "$work/$command.settings"
    fi
    if [ -f "$work/$command.end" ]; then echo; cat "$work/$command.end"; fi
    if [ "$command" = model ]; then
        printf '\nNAME, parameters, what it is\n'
        "$lowerset" model --list | sed 's/^/  /'
        printf \
            '\nOptions of unet, with its defaults; other models have those that make sense for them\n'
        "$lowerset" model unet --help | sed -n '/^  -/p'
    fi
    printf '```\n'
    shared_names "$command" >"$work/names"
    if [ -s "$work/names" ]; then echo; cat "$work/names"; fi
done
printf '\n## Options of several commands\n\n```\n'
block ""
printf '```\n\n### Losses, optimizers, schedules, sizes\n\n```\n'
sed -e '${/^$/d;}' "$work/compile.settings"
printf '```\n'

# Whether the options of a pair go together, as the compiler says: it refuses with exit code 2.
# GPUs' programs are only planned, as not every lowerset can build them.
"$lowerset" model mlp --batch=0 --width=4 --size=4 -o "$work/any.onnx" >"$work/said"
together() {
    case "$*" in
    *--target=cuda*) set -- plan "$work/any.onnx" --machine h100 "$@" ;;
    *) set -- compile "$work/any.onnx" -n --machine cpu -o "$work/any" "$@" ;;
    esac
    code=0
    "$lowerset" "$@" --batch 8 -q --plan-effort 1 >"$work/said" 2>&1 || code=$?
    if [ "$code" = 2 ]; then echo no; else echo yes; fi
}
label() { case $1 in --target*) echo "\`$1\`" ;; *) echo "\`${1%%=*}\`" ;; esac; }
features="--accumulate=2 --microbatches=2 --ranks=2 --stages=2 --ensemble=2
--dp=clip=1,noise=1,delta=1e-5 --grads=per-sample --loss-scale=dynamic --clip-norm=1 --target=cuda"
cat <<'END'

## What goes together

Of two of these options in one program; the compiler says why not.

END
printf '| |'
for column in $features; do printf ' %s |' "$(label "$column")"; done
printf '\n|---|'
for column in $features; do printf -- '---|'; done
echo
for row in $features; do
    printf '| %s |' "$(label "$row")"
    for column in $features; do
        if [ "$row" = "$column" ]; then
            printf ' |'
        else
            printf ' %s |' "$(together "$row" "$column")"
        fi
    done
    echo
done

printf '\n## The program that compile makes\n\n```\n'
"$lowerset" model mlp --batch=4 --width=4 --size=4 -o "$work/net.onnx" >"$work/said"
"$lowerset" compile "$work/net.onnx" -q -O 0 --plan-effort 1 --machine cpu -o "$work/net"
"$work/net" --help | sed -e '1s,.*,usage: ./net --data SPEC [options],' -e '/^Trains /,/^$/d'
printf '```\n'
