/* compiler/onnx_repair/single_bias.h -- biases of recurrent layers that Keras has once and ONNX
 * twice. */
#ifndef LS_COMPILER_ONNX_REPAIR_SINGLE_BIAS_H
#define LS_COMPILER_ONNX_REPAIR_SINGLE_BIAS_H

#include "compiler/onnx_repair/file_edit.h"

/* ONNX adds two biases for each gate. Keras has only the first, and tf2onnx writes zeros as the
 * second: trained, they would double the bias's rate. The second half of such an initializer
 * becomes a constant. Notes the biases in u->e->halved. */
void ls_onnx_single_bias(LsEditor *u);

#endif
