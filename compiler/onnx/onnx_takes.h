/* compiler/onnx/onnx_takes.h -- checks of ONNX rows on single operands and results of a node. */
#ifndef LS_COMPILER_ONNX_ONNX_TAKES_H
#define LS_COMPILER_ONNX_ONNX_TAKES_H

#include "compiler/ir/graph.h"
#include "compiler/onnx/onnx_attr.h"

/* The node lists at least min and at most max operands, the first min of them present. */
bool ls_onnx_takes(const LsOnnxNode *n, int min, int max);
/* Operand k; none where the file leaves it out. */
static inline LsValueId ls_onnx_in(const LsOnnxNode *n, int k)
{
    return k < n->nin ? n->in[k] : (LsValueId){0};
}
/* The element type of operand k in the file, where its IR type does not tell it; else 0
 * (onnx_element.h). */
enum { LS_ELEMENT_UINT64 = 13 };
static inline int ls_onnx_element(const LsOnnxNode *n, int k)
{
    return n->element != NULL && k < n->nin ? n->element[k] : 0;
}
/* Operand k, if there, holds reals; reports otherwise. */
bool ls_onnx_takes_real(const LsOnnxNode *n, int k);
/* The node's only operand holds reals, N x C x spatial axes; reports otherwise. */
bool ls_onnx_takes_image(const LsOnnxNode *n);
/* The node's result k has a name in the file, so somebody may read it. */
static inline bool ls_onnx_gives(const LsOnnxNode *n, int k)
{
    return k < n->nout && n->out_name[k][0] != '\0';
}
/* The row of operand 0 that gets no gradient by this Gather: nn.Embedding's padding_idx, which only
 * the exporter's note of the traced call has. -1: none. */
int64_t ls_onnx_padding_row(const LsOnnxNode *n);

#endif
