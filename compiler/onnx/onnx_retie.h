/* compiler/onnx/onnx_retie.h -- parameters' copies that an exporter folded are computed again. */
#ifndef LS_COMPILER_ONNX_ONNX_RETIE_H
#define LS_COMPILER_ONNX_ONNX_RETIE_H

#include "compiler/onnx/onnx_edit.h"

/* Replaces copies that were folded from an initializer by a computation, where that initializer
 * still exists. */
void ls_onnx_retie(LsEditor *u);

#endif
