/* compiler/onnx/onnx_moving_buffers.h -- buffers that the module itself changes in every step, such
 * as the vectors of a spectral norm. The program does not: they stay as in the file. */
#ifndef LS_COMPILER_ONNX_ONNX_MOVING_BUFFERS_H
#define LS_COMPILER_ONNX_ONNX_MOVING_BUFFERS_H

struct LsImport;                /* import_state.h */

/* Warns of them, with the --stop-gradient that the module's torch.no_grad() amounts to: after all
 * nodes are built. */
void ls_onnx_hint_moving_buffers(struct LsImport *im);

#endif
