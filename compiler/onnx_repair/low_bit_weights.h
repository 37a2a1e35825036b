/* compiler/onnx_repair/low_bit_weights.h -- weights that a file keeps in 4 or 8 bits:
 * DequantizeLinear of an initializer, and com.microsoft's MatMulNBits and MatMulBnb4. They become
 * initializers of float32 whose data are the codes (LsCtx.packed), and are never trained. */
#ifndef LS_COMPILER_ONNX_REPAIR_LOW_BIT_WEIGHTS_H
#define LS_COMPILER_ONNX_REPAIR_LOW_BIT_WEIGHTS_H

#include "compiler/onnx_repair/file_edit.h"

/* Whether the graph has such nodes. */
bool ls_onnx_has_low_bits(const Onnx__GraphProto *g);

/* Names the new initializers in u->e->unpacked. Forms that are not read here keep their node.
 * False after a diagnostic. */
bool ls_onnx_unpack_weights(LsEditor *u);

#endif
