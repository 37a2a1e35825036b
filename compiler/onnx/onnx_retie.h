/* compiler/onnx/onnx_retie.h -- copies that an exporter folded from a parameter are computed again.
 * */
#ifndef LS_COMPILER_ONNX_ONNX_RETIE_H
#define LS_COMPILER_ONNX_ONNX_RETIE_H

#include "compiler/onnx/onnx_edit.h"

/* Copies that were folded from an initializer which is still there. */
void ls_onnx_retie(LsEditor *u);

#endif
