/* compiler/onnx_repair/unmerge_parameters.h -- undoes two changes of exporters to parameters: equal
 * parameters merged into one initializer, and copies of an initializer that still exists.
 *
 * Merging is by value: layer norms all start as ones and zeros, so PyTorch's default exporter keeps
 * one pair for all of them. The exporter's notes of calls name the module's parameters. In a file
 * without notes, an initializer of one repeated value that several norms or biases read counts as
 * merged. The copy gets the parameter's original name where it is known. */
#ifndef LS_COMPILER_ONNX_REPAIR_UNMERGE_PARAMETERS_H
#define LS_COMPILER_ONNX_REPAIR_UNMERGE_PARAMETERS_H

#include "compiler/onnx_repair/file_edit.h"

/* Changes the graph of m in place: new initializers, other operand names, and nodes in front that
 * compute copies. data: folders of external data. tie: parameters stay merged, statistics do
 * not. */
const LsOnnxEdits *ls_onnx_untie(LsCtx *cx, Onnx__ModelProto *m, LsDataFolder data,
                                 const LsOnnxSources *s, bool tie);

#endif
