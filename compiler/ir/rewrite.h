/* compiler/ir/rewrite.h -- rebuilding a graph node by node; the frame of every pass that inserts
 * nodes. */
#ifndef LS_COMPILER_IR_REWRITE_H
#define LS_COMPILER_IR_REWRITE_H

#include "compiler/ir/graph.h"

/* Rebuilds g node by node. visit: either maps the results itself (appending to r->to whatever
 * it likes, setting r->map[result]) and returns true, or returns false to have the node
 * copied. Values that are not results are copied first, so every value has its image before
 * its first reader is visited. */
typedef struct LsRewrite {
    LsCtx *cx;
    const LsGraph *from;
    LsGraph *to;
    LsValueId *map;         /* by old value id */
    void *user;
    LsNodeId image;         /* for visit to set: of the node, where it is not the last that is there
                             * behind the visit */
} LsRewrite;
void ls_rewrite(LsCtx *cx, LsGraph *g, bool (*visit)(LsRewrite *, LsNodeId), void *user);
/* The same, visiting the nodes in this order, which must be a run order and may leave nodes out. */
void ls_rewrite_order(LsCtx *cx, LsGraph *g, bool (*visit)(LsRewrite *, LsNodeId), void *user,
                      const LsNodeId *order, uint32_t norder);
/* For visit: a node over the images of these operands, whose results take the places of these values:
 * both of the graph as it was. */
LsNodeId ls_rewrite_append(LsRewrite *r, LsOpCode op, int nin, const LsValueId in[], int nout,
                           const LsValueId of[], const LsAttr *attr);
/* For visit: the node as it is, over the images of its operands; keeps names,
 * types, layouts, attributes. */
void ls_rewrite_copy(LsRewrite *r, LsNodeId n);
/* Result k of node `to` of the new graph takes the place of value `of`: with its name, type, shape and
 * layout. */
void ls_rewrite_result(LsRewrite *r, LsNodeId to, int k, LsValueId of);
static inline LsValueId ls_image(const LsRewrite *r, LsValueId old) { return r->map[old.i]; }

#endif
