#!/bin/sh
# The arrows between rooms point left: no room includes one to its right, base/ lies under all rooms but the
# runtime, which includes no other, and compiler/ and scheduler/ know nothing of each other.
#   sh tests/layers.sh SOURCE-FOLDER
set -eu
cd "$1"
failed=0

# forbid ROOM PATTERN: no file of ROOM includes a file that matches.
forbid() {
    if grep -rnE "#include \"($2)/" "$1" --include='*.c' --include='*.h'; then
        echo "FAIL $1/ must not include $2"
        failed=1
    fi
}

forbid base 'compiler|scheduler|codegen|models|cli|tests|runtime'
forbid runtime 'base|compiler|scheduler|codegen|models|cli|tests'
forbid compiler 'scheduler|codegen|models|cli|tests|runtime'
forbid scheduler 'compiler|codegen|models|cli|tests|runtime'
forbid codegen 'models|cli|tests'
forbid models 'scheduler|codegen|cli|tests|runtime'

# A name is unique, so that "where is partition_dp.c" has one answer; an operator and the emitter of
# its kernel share theirs.
twice=$(git ls-files '*.c' '*.h' | grep -vE '^(codegen/kernels|compiler/ops)/' | sed 's,.*/,,' |
    sort | uniq -d)
for name in $twice; do
    echo "FAIL more than one file is called $name: $(git ls-files "$name" "*/$name" | tr '\n' ' ')"
    failed=1
done
[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
