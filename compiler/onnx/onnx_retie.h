/* compiler/onnx/onnx_retie.h -- parameters' copies that an exporter folded are computed again. */
#ifndef LS_COMPILER_ONNX_ONNX_RETIE_H
#define LS_COMPILER_ONNX_ONNX_RETIE_H

#include "compiler/onnx/onnx_edit.h"

/* Replaces copies that were folded from an initializer by a computation, where that initializer
 * still exists. */
void ls_onnx_retie(LsEditor *u);
/* Turns Constant nodes of reals under the name of another operator's result, which optimizers make, into initializers:
 * they may come from parameters. */
void ls_onnx_hoist_results(LsArena *a, Onnx__GraphProto *g);

#endif
