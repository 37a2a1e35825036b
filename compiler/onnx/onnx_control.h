/* compiler/onnx/onnx_control.h -- operators with bodies: If, Loop, Scan, SequenceMap,
 * FlexAttention.
 *
 * A program runs the same nodes in every step. So the branch of an If is chosen, and the iterations
 * of the others are written out, when the model is compiled: conditions and numbers of iterations
 * must be known then. */
#ifndef LS_COMPILER_ONNX_ONNX_CONTROL_H
#define LS_COMPILER_ONNX_ONNX_CONTROL_H

#include "compiler/onnx/import_state.h"

/* Builds the node (ls_onnx_control_op). Sets to[k] for each result; false after diagnostics, also
 * of nodes of a body. */
bool ls_onnx_control(LsImport *im, const LsOnnxFlat *f, LsOnnxValue to[]);

#endif
