#!/bin/sh
# The command line as a page, from the tables of options that the programs print themselves: docs/cli.md.
#   sh docs/cli.sh BUILD-FOLDER >docs/cli.md
set -eu
lowerset=$(cd "$1" && pwd)/lowerset
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C XDG_CONFIG_HOME="$work"
. "$(dirname "$0")/tables.sh"

cat <<'END'
# The command line

Made by `./dev docs` from the tables of options that `lowerset help` prints; do not edit.

    lowerset COMMAND [MODEL.onnx] [OPTION...]

`--name VALUE` and `--name=VALUE` are the same. An option is given once, but for those that collect (`--freeze`, `--keep`, ...).
END
for command in $(command_names); do
    printf '\n## lowerset %s\n\n```\n' "$command"
    if [ "$command" = model ]; then "$lowerset" model --help; else "$lowerset" help "$command"; fi
    printf '```\n'
done
printf '\n## The program that compile makes\n\n```\n'
"$lowerset" model mlp --batch=4 --width=4 --size=4 -o "$work/net.onnx" >"$work/said"
"$lowerset" compile "$work/net.onnx" -q -O 0 --plan-effort 1 --machine cpu -o "$work/net"
"$work/net" --help | sed -e '1s,.*,usage: ./net --data SPEC [options],' -e '/^Trains /,/^$/d'
printf '```\n'
