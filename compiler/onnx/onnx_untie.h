/* compiler/onnx/onnx_untie.h -- takes back what exporters do to parameters: equal ones merged into one
 * initializer, and copies of one that is still there.
 *
 * Merging is by value: layer norms all start as ones and zeros, so PyTorch's default exporter keeps
 * one pair for all of them. The calls noted beside the nodes name the parameters that the module
 * had; where a file has no notes, initializers of one value that several norms or biases read are
 * taken for merged. The copy gets the name that the parameter had where that is known. */
#ifndef LS_COMPILER_ONNX_ONNX_UNTIE_H
#define LS_COMPILER_ONNX_ONNX_UNTIE_H

#include "compiler/onnx/onnx_source.h"
#include "compiler/onnx/onnx_tensor.h"
#include "compiler/onnx/onnx_wire.h"

typedef struct LsUntied { const char *name, *from; } LsUntied;  /* a copy, and the initializer */

typedef struct LsOnnxEdits {
    LsUntied *untied; uint32_t nuntied, cap_untied;     /* parameters */
    LsUntied *statistic; uint32_t nstatistic, cap_statistic;    /* running means and variances */
    LsUntied *literal; uint32_t nliteral, cap_literal;  /* ones and zeros of norms without parameters */
    uint32_t nlost; const char *lost;           /* parameters of the module that are not in the file */
    LsUntied *retied; uint32_t nretied, cap_retied;     /* transposed or reshaped copies: computed again */
} LsOnnxEdits;

/* Changes the graph of m in place: new initializers, other operand names, and nodes in front that
 * compute copies. data: where external data lies. tie: parameters stay merged, statistics do not. */
const LsOnnxEdits *ls_onnx_untie(LsCtx *cx, Onnx__ModelProto *m, LsDataFolder data,
                                 const LsOnnxSources *s, bool tie);

#endif
