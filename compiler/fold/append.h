/* compiler/fold/append.h -- appends nodes, with constant folding. */
#ifndef LS_COMPILER_FOLD_APPEND_H
#define LS_COMPILER_FOLD_APPEND_H

#include "compiler/ir/graph.h"

/* Appends a node and infers its results. Returns the id of the first result (the others follow it),
 * or none after a diagnostic. When every operand is constant and ls_fold can evaluate the op, the
 * result is a constant and no node is made. attr may be NULL (zeros). Operands may be none where
 * the row allows. */
LsValueId ls_append(LsCtx *cx, LsGraph *g, LsOpCode op, int nin, const LsValueId in[],
                    const LsAttr *attr);
LsValueId ls_append1(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, const LsAttr *attr);
LsValueId ls_append2(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b,
                     const LsAttr *attr);
LsValueId ls_append3(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b, LsValueId c,
                     const LsAttr *attr);

/* ---- common small builders. Each may move the graph's arrays: pointers into them are read before.
 * ---- */
LsValueId ls_reshape(LsCtx *cx, LsGraph *g, LsValueId v, const LsShape *to);
/* Sums v over the axes along which `to` was broadcast to v's shape; the result has shape `to`. The
 * gradient of a broadcasting operator reaches its operand this way. */
LsValueId ls_reduce_to(LsCtx *cx, LsGraph *g, LsValueId v, LsShape to);
LsValueId ls_scale(LsCtx *cx, LsGraph *g, LsValueId v, double by);      /* v * by */
/* v broadcast to `to`. */
LsValueId ls_expand(LsCtx *cx, LsGraph *g, LsValueId v, LsShape to);
/* v[..., start:stop, ...] along one axis; the full range: v itself. */
LsValueId ls_slice_axis(LsCtx *cx, LsGraph *g, LsValueId v, int axis, int64_t start, int64_t stop);
LsValueId ls_transpose(LsCtx *cx, LsGraph *g, LsValueId v, const int perm[]);

#endif
