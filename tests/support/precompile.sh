#!/bin/sh
# The headers of kernels that tests compile, precompiled for gcc, so that it need not read them for
# every kernel. The folder comes before the sources in such a compiler's -I; gcc takes what fits its
# flags and macros there, else the header. Other compilers see nothing there.
#   sh tests/support/precompile.sh SOURCE-FOLDER FOLDER FLAGS DEPENDENCIES STAMP
set -eu
SOURCE=$1 FOLDER=$2 FLAGS=$3 DEPENDENCIES=$4 STAMP=$5
rm -rf "$FOLDER"

# precompile HEADER OPTION...: for floats and for doubles
precompile() {
    header=$1
    shift
    mkdir -p "$FOLDER/$header.gch"
    ln -s "$SOURCE/$header" "$FOLDER/$header"       # for gcc that reads it a second time
    for real in -ULS_F64 -DLS_F64=; do
        # shellcheck disable=SC2086
        cc $FLAGS $real "$@" -I"$SOURCE" -x c-header "$SOURCE/$header" \
            -o "$FOLDER/$header.gch/${real#-}" \
            -MD -MF "$FOLDER/$header.${real#-}.d"
    done
}

precompile runtime/kernels/ls_kernel.h
precompile tests/support/rig_products.h
precompile tests/support/cuda_executor.h -DLS_EXECUTOR= -ffp-contract=off
{ echo "$STAMP: \\"; cat "$FOLDER"/*/*/*.d | sed 's/^[^:]*://; s/\\$//' | tr -s ' ' '\n' | sort -u |
    sed '/^$/d; s/$/ \\/'; echo; } >"$DEPENDENCIES"
touch "$STAMP"
