/* compiler/onnx_repair/unfold_parameters.h -- parameters' copies that an exporter folded are
 * computed again. */
#ifndef LS_COMPILER_ONNX_REPAIR_UNFOLD_PARAMETERS_H
#define LS_COMPILER_ONNX_REPAIR_UNFOLD_PARAMETERS_H

#include "compiler/onnx_repair/file_edit.h"

/* Replaces copies that were folded from an initializer by a computation, where that initializer
 * still exists. */
void ls_onnx_retie(LsEditor *u);
/* Turns Constant nodes of reals under the name of another operator's result, which optimizers make,
 * into initializers: they may come from parameters. */
void ls_onnx_hoist_results(LsArena *a, Onnx__GraphProto *g);

#endif
