# Sourced by the scripts of this folder with $lowerset set: the tables of commands and options, as
# `lowerset help` prints them, a row a line with tabs between its fields.

command_names() { "$lowerset" help | sed -n 's/^  lowerset \([a-z]*\) .*/\1/p'; }

# NAME, USAGE ("-": no arguments), SENTENCE of each command
command_rows() {
    for command in $(command_names); do
        "$lowerset" help "$command" | awk -v name="$command" -v OFS='\t' '
            NR == 1 { sub(/^usage: lowerset [a-z]* ?/, ""); usage = $0 }
            NR == 2 { print name, (usage != "" ? usage : "-"), $0; exit }'
    done
}

# help_rows COMMAND: G, TITLE of a group of options; O, BRIEF, NAME, VALUE, SENTENCE of an option,
# fields that it lacks being "-"; T, TEXT of any other line. In the help the left side of an option
# ends at column 34, or fills a line that ends in a blank.
help_rows() {
    "$lowerset" help "$1" | awk -v OFS='\t' '
    function flush_option() {
        if (name != "") print "O", brief, name, value, sentence
        name = ""
    }
    function flush_line() {
        if (held) print "T", line
        held = 0
    }
    function take_option(left,    word, n) {
        n = split(left, word, " ")
        brief = word[1] ~ /,$/ ? substr(word[1], 1, length(word[1]) - 1) : "-"
        name = word[1] ~ /,$/ ? word[2] : word[1]
        value = n > (word[1] ~ /,$/) + 1 ? word[n] : "-"
        if (match(name, /\[=.*/)) {            # --name[=VALUE]
            value = substr(name, RSTART)
            name = substr(name, 1, RSTART - 1)
        }
    }
    NR <= 2 { next }
    /^  (    )?-/ {
        flush_option()
        if (held) print "G", line
        held = 0
        take_option(/ $/ ? $0 : substr($0, 1, 34))
        sentence = / $/ ? "" : substr($0, 35)
        next
    }
    name != "" && /^                                  / {
        sub(/^ +/, "")
        sentence = sentence (sentence == "" ? "" : " ") $0
        next
    }
    { flush_option(); flush_line(); held = $0 != ""; line = $0 }
    END { flush_option(); flush_line() }'
}

model_names() { "$lowerset" model --list | awk '{ print $1 }'; }

# model_rows MODEL: O rows as above, the sentences without what is the default of this model
model_rows() {
    "$lowerset" model "$1" --help | awk -v OFS='\t' '
    /^  -/ {
        n = split($1, part, "=")
        sub(/^ *[^ ]+ +/, "")
        sub(/ \([^()]*\)$/, "")
        print "O", "-", part[1], (n > 1 ? part[2] : "-"), $0
    }'
    printf 'O\t-\t-o\tFILE.onnx\tfile to write\n'
}
