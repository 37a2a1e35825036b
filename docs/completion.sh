#!/bin/sh
# What bash completes for lowerset, from the tables of options that the program prints itself.
#   sh docs/completion.sh BUILD-FOLDER >share/bash-completion/completions/lowerset
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
export LC_ALL=C
. "$(dirname "$0")/tables.sh"

# The O rows of every command, "KEY ROW"; KEY is the command, and for model also the name of
# the network.
option_rows() {
    command_rows | while IFS='	' read -r name usage sentence; do help_rows "$name" |
        sed -n "s/^O/$name/p"; done
    for model in $(model_names); do model_rows "$model" | sed "s/^O/model $model/"; done
}

# Cases of _lowerset_options.
put_names() {
    awk -F '\t' '
    function flush() { if (key != "") printf "    \047%s\047) echo \047%s\047 ;;\n", key, names }
    $1 != key { flush(); key = $1; names = "--help" }
    { names = names " " $3 ($2 != "-" ? " " $2 : "") }
    END { flush() }'
}

# Cases of _lowerset_value: words of the value that stand for themselves, or @file, @folder,
# @program, or @text.
put_values() {
    awk -F '\t' '
    function kind(name, value,    part, n, k, words) {
        n = split(value, part, "|")
        for (k = 1; k <= n && n > 1; k++)
            if (part[k] ~ /^[a-z0-9][a-z0-9-]*$/) words = words (words != "" ? " " : "") part[k]
        if (words != "") return words
        if (value ~ /FILE|\.json|\.npz/ || name == "--data") return "@file"
        return value == "DIR" ? "@folder" : value == "PROGRAM" ? "@program" : "@text"
    }
    $4 != "-" {
        sub(/^model .*/, "model", $1)
        names = "\047" $1 " " $3 "\047" ($2 != "-" ? "|\047" $1 " " $2 "\047" : "")
        if (!seen[names]++) printf "    %s) echo \047%s\047 ;;\n", names, kind($3, $4)
    }'
}

# Cases of _lowerset_word: what a command takes beside options, by its usage.
put_words() {
    command_rows | while IFS='	' read -r name usage sentence; do
        case $name in
        model) printf "    model) echo '%s' ;;\n" "--list $(model_names | tr '\n' ' ' |
            sed 's/ $//')" ;;
        explain) printf "    explain) echo '%s' ;;\n" \
            "$("$lowerset" explain | awk '{ printf "%s%s", sep, $1; sep = " " }')" ;;
        *)  endings=$(printf '%s\n' "$usage" | sed 's/ .*//' | tr '|' '\n' |
            sed -n 's/^[A-Z]*\.\([a-z]*\)$/ \1/p' | tr -d '\n')
            [ -z "$endings" ] || printf "    %s) echo '@file%s' ;;\n" "$name" "$endings" ;;
        esac
    done
    printf "    help) echo '%s' ;;\n" "$commands"
}

rows=$(option_rows)
commands=$(command_rows | cut -f 1 | tr '\n' ' ' | sed 's/ $//')
cat <<END_OF_PART
# bash completion for lowerset; made from its tables of options by docs/completion.sh.

_lowerset_commands='$commands help --help --version'

# COMMAND, or model NETWORK: the names of its options
_lowerset_options()
{
    case \$1 in
$(printf '%s\n' "$rows" | put_names)
    esac
}

# "COMMAND OPTION": what the option's value may be; nothing for flags
_lowerset_value()
{
    case \$1 in
$(printf '%s\n' "$rows" | put_values)
    esac
}

# COMMAND: what it takes beside options
_lowerset_word()
{
    case \$1 in
$(put_words)
    esac
}
END_OF_PART
cat <<'END_OF_PART'

# KIND [ENDING...]: sets COMPREPLY to words of that kind that go on from $current, each
# after $before
_lowerset_reply()
{
    local IFS=$' \t\n' ending
    case $1 in
    @text) ;;
    @file|@folder)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(
            if [[ $1 == @folder || $# -gt 1 ]]; then compgen -P "$before" -d -- "$current"
            else compgen -P "$before" -f -- "$current"; fi
            for ending in "${@:2}"; do
                compgen -P "$before" -f -X "!*.$ending" -- "$current"
            done) ;;
    @program) mapfile -t COMPREPLY < <(compgen -P "$before" -c -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -P "$before" -W "$*" -- "$current") ;;
    esac
}

_lowerset()
{
    local current=${COMP_WORDS[COMP_CWORD]} before= command=${COMP_WORDS[1]} key kind
    local option=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _lowerset_reply $_lowerset_commands
        return
    fi
    # --name=VALUE is three words where '=' breaks words, else one.
    if [[ $current == = ]]; then
        current=
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == --*=* ]]; then
        option=${current%%=*} before=${current%%=*}= current=${current#*=}
    fi
    kind=$(_lowerset_value "$command $option")
    if [[ -n $kind ]]; then
        _lowerset_reply $kind
        return
    fi
    key=$command
    [[ $command != model ]] || key="model ${COMP_WORDS[2]}"
    if [[ $current == -* && $key != "model $current" ]]; then
        _lowerset_reply $(_lowerset_options "$key")
    elif [[ $command == model || $command == help || $command == explain ]] &&
        ((COMP_CWORD > 2)); then
        return
    else
        kind=$(_lowerset_word "$command")
        [[ -z $kind ]] || _lowerset_reply $kind
    fi
}
complete -F _lowerset lowerset
END_OF_PART
