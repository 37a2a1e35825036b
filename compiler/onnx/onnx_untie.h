/* compiler/onnx/onnx_untie.h -- takes back what exporters do to parameters: equal ones merged into one
 * initializer, and copies of one that is still there.
 *
 * Merging is by value: layer norms all start as ones and zeros, so PyTorch's default exporter keeps
 * one pair for all of them. The calls noted beside the nodes name the parameters that the module
 * had; where a file has no notes, initializers of one value that several norms or biases read are
 * taken for merged. The copy gets the name that the parameter had where that is known. */
#ifndef LS_COMPILER_ONNX_ONNX_UNTIE_H
#define LS_COMPILER_ONNX_ONNX_UNTIE_H

#include "compiler/onnx/onnx_edit.h"

/* Changes the graph of m in place: new initializers, other operand names, and nodes in front that
 * compute copies. data: where external data lies. tie: parameters stay merged, statistics do not. */
const LsOnnxEdits *ls_onnx_untie(LsCtx *cx, Onnx__ModelProto *m, LsDataFolder data,
                                 const LsOnnxSources *s, bool tie);

#endif
