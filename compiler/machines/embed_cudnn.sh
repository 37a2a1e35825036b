#!/bin/sh
# Prints cuDNN's descriptions of devices as C strings, by the names of their machines.
#   sh embed_cudnn.sh FILE.cudnn.json...
set -eu
echo '/* Made by compiler/machines/embed_cudnn.sh. */'
echo "#include \"codegen/cuda/conv_device.h\""
echo "#include <stddef.h>"
echo 'const LsConvDevice ls_conv_devices[] = {'
for f in "$@"; do
    echo "    {\"$(basename "$f" .cudnn.json)\","
    sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' "$f"
    echo '    },'
done
echo '    {NULL, NULL}};'
