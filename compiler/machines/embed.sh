#!/bin/sh
# Prints machine files as C strings: the text of machine_data.c.
#   sh embed.sh FILE.machine...
set -eu
echo '/* Made by compiler/machines/embed.sh. */'
echo '#include "compiler/cost/machine.h"'
echo 'static const char *const text[] = {'
for f in "$@"; do
    sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' "$f"
    echo '    ,'
done
echo '    NULL};'
echo 'const char *ls_machine_builtin(size_t k)'
echo '{'
echo '    return k < sizeof text / sizeof *text ? text[k] : NULL;'
echo '}'
