/* compiler/ops/row.h -- shared by the rows of several families. */
#ifndef LS_COMPILER_OPS_ROW_H
#define LS_COMPILER_OPS_ROW_H

#include "compiler/fold/append.h"
#include "compiler/onnx/onnx_takes.h"

#include <inttypes.h>
#include <string.h>

/* ---- infer ---- */
/* Sets result 0 after checking that its size can be counted; the size is not 0 except in
 * constants. */
bool ls_infer_out(LsCtx *cx, LsGraph *g, LsNodeId n, LsType type, const LsShape *shape);
/* MAP: operands of one type, broadcast against each other. */
bool ls_infer_map(LsCtx *cx, LsGraph *g, LsNodeId n);
/* The same for operands from `first` on; the operands before only take part in the broadcast. */
bool ls_infer_map_from(LsCtx *cx, LsGraph *g, LsNodeId n, int first);
/* One real result with the shape of operand 0, or of operand 1. */
bool ls_infer_like0(LsCtx *cx, LsGraph *g, LsNodeId n);
bool ls_infer_like1(LsCtx *cx, LsGraph *g, LsNodeId n);
LsType ls_infer_bool(const LsGraph *g, LsNodeId n);             /* LsOp.type of comparisons */

/* ---- grad ---- */
/* LsOp.grad of steps and comparisons: the gradient is zero, which is no error. */
void ls_grad_zero(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                  LsValueId dx[]);
/* Defines the LsOp.grad of a row with one operand, whose gradient is one node of dy and of the
 * operand or result: LS_GRAD_OF(exp, LS_OP_MUL, ls_out), LS_GRAD_OF(log, LS_OP_DIV, ls_in) */
#define LS_GRAD_OF(row, op, of) \
    static void row##_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], \
                           const bool want[], LsValueId dx[]) \
    { \
        LsAttr at = g->node[n.i].attr; \
        (void)want; \
        dx[0] = ls_append2(cx, g, op, dy[0], of(g, n, 0), &at); \
    }

/* ---- eval ---- */
/* LS_EVAL(add, x[0] + x[1]) defines add_eval; LS_EVAL_INT sets *y, and is false where undefined. */
#define LS_EVAL(row, expr) \
    static double row##_eval(const double x[], const LsAttr *at) { (void)at; return expr; }
#define LS_EVAL_INT(row, expr) \
    static bool row##_eval_int(const int64_t x[], const LsAttr *at, int64_t *y) \
    { (void)at; return expr; }

/* ---- build ---- */
/* One IR node over all `nin` operands; no attributes. */
bool ls_onnx_simple(LsOnnxNode *n, LsValueId out[], LsOpCode op, int nin);
/* The row of an ONNX operator that becomes one IR node: LS_ONNX_SIMPLE(add, "Add", 7, LS_OP_ADD,
 * 2) */
#define LS_ONNX_SIMPLE(row, op_type, version, op, nin) \
    static bool row##_build(LsOnnxNode *n, LsValueId out[]) \
    { return ls_onnx_simple(n, out, op, nin); } \
    const LsOnnxOp ls_onnx_##row = {op_type, version, row##_build};
/* Casts out[0] to an IR type, or to an ONNX element type (TensorProto.DataType); reports types that
 * are not supported. */
bool ls_onnx_cast_type(LsOnnxNode *n, LsValueId out[], LsType to);
bool ls_onnx_cast_to(LsOnnxNode *n, LsValueId out[], int64_t onnx);
/* A constant vector of integers. */
LsValueId ls_const_ints(LsCtx *cx, LsGraph *g, int count, const int64_t v[]);

#endif
