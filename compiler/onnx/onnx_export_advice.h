/* compiler/onnx/onnx_export_advice.h -- warns of anything in a file, or in its export, that keeps
 * it from training as intended. */
#ifndef LS_COMPILER_ONNX_ONNX_EXPORT_ADVICE_H
#define LS_COMPILER_ONNX_ONNX_EXPORT_ADVICE_H

#include "compiler/onnx/import_state.h"

/* Prints warnings about the file, and about exports that cannot train as intended. */
void ls_onnx_hints(LsImport *im);
/* Refuses --bn where no batch norm was built. */
void ls_onnx_check_bn(LsImport *im);

#endif
