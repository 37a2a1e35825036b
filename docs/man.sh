#!/bin/sh
# The manual page, from the tables of options that the program prints itself.
#   sh docs/man.sh BUILD-FOLDER >lowerset.1
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
export LC_ALL=C
. "$(dirname "$0")/tables.sh"

TROFF='
function text(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    return s ~ /^[.\047]/ ? "\\&" s : s
}'

# The rows of options, as paragraphs with a tag.
put_options() {
    awk -F '\t' "$TROFF"'
    $1 == "G" { print ".P\n.I " text($2) }
    $1 == "O" {
        print ".TP"
        tag = ($2 != "-" ? "\\fB" text($2) "\\fR, " : "") "\\fB" text($3) "\\fR"
        print tag ($4 != "-" ? ($4 ~ /^\[=/ ? "" : joint) "\\fI" text($4) "\\fR" : "")
        print text($5)
    }' joint="$1"
}

put_examples() {
    awk -F '\t' "$TROFF"'
    $1 == "T" && $2 == "Examples" { print ".P\n.I Examples\n.EX"; inside = 1; next }
    $1 == "T" && inside { print text($2) }
    END { if (inside) print ".EE" }'
}

put_models() {
    printf '.P\n.I Networks\n'
    "$lowerset" model --list | awk "$TROFF"'
    { print ".TP\n.B " text($1); sub(/^[^ ]+ +[0-9]+ +/, ""); print text($0) }'
    printf '.P\n.I Options, each with its default in\n.B lowerset model\n.I NAME\n.B \\-\\-help\n'
    for model in $(model_names); do model_rows "$model"; done |
        awk -F '\t' '!seen[$3]++' | put_options =
}

# One section for each command.
put_commands() {
    command_rows | while IFS='	' read -r name usage sentence; do
        printf '.SS lowerset %s\n' "$name"
        printf '%s\n%s\n' "$name ${usage#-}" "$sentence" | awk "$TROFF"'
            NR == 1 { print ".B lowerset " text($0) } NR == 2 { print ".P\n" text($0) "." }'
        if [ "$name" = model ]; then put_models; else help_rows "$name" | put_options ' '; fi
        help_rows "$name" | put_examples
    done
}

# What follows the options of compile: the same for all commands that have it.
put_settings() {
    help_rows compile | awk -F '\t' "$TROFF"'
    $1 != "T" { next }
    $2 == "Examples" { exit }
    $2 ~ /^ / { if (!inside++) print ".EX"; print text($2); next }
    {
        if (inside) print ".EE"
        if (inside || NR == 1 || !said++) print ".P"
        inside = 0
        print text($2)
    }
    END { if (inside) print ".EE" }'
}

"$lowerset" --version | awk '{ printf ".TH LOWERSET 1 \"\" \"%s\" \"User Commands\"\n", $0 }'
cat <<'END_OF_HEAD'
.SH NAME
lowerset \- compile an ONNX model into a program that trains it within a memory budget
.SH SYNOPSIS
.B lowerset
.I COMMAND
.RI [ MODEL.onnx ]
.RI [ OPTION ...]
.SH DESCRIPTION
.B lowerset
turns a model in an ONNX file into a standalone program that trains it.
The program's memory is planned beforehand: within the budget, results of the forward
part are kept or computed again.
.P
.BI \-\-name\~ VALUE
and
.BI \-\-name= VALUE
are the same.
An option is given once, but for those that collect
.RB ( \-\-freeze ,
.BR \-\-keep ,
\&...).
The options of the program that
.B lowerset compile
makes are printed by
.IR TRAINER\~ \fB\-\-help\fR.
.SH COMMANDS
END_OF_HEAD
put_commands
printf '.SH SETTINGS\n'
put_settings
printf '.SH EXIT STATUS\n'
"$lowerset" help | sed -n '/Exit codes: /,$p' | tr '\n' ' ' |
    sed 's/.*Exit codes: //; s/\. *$//' | awk "$TROFF"'
{
    n = split($0, code, /, /)
    for (k = 1; k <= n; k++) {
        number = code[k]
        sub(/ .*/, "", number)
        sub(/^[0-9]+ /, "", code[k])
        print ".TP\n.B " number "\n" text(code[k])
    }
}'
