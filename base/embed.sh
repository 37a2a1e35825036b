#!/bin/sh
# Prints files as C strings: dir/name.ext becomes  const char ls_text_name_ext[].
#   sh embed.sh FILE...
set -eu
echo '/* Made by base/embed.sh. */'
for f in "$@"; do
    name=ls_text_$(basename "$f" | tr .- __)
    echo "extern const char $name[];"
    echo "const char $name[] ="
    sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' "$f"
    echo '    ;'
done
