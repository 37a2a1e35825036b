/* compiler/ir/rewrite.h -- rebuilds a graph node by node; the base of every pass that inserts
 * nodes. */
#ifndef LS_COMPILER_IR_REWRITE_H
#define LS_COMPILER_IR_REWRITE_H

#include "compiler/ir/graph.h"

/* Rebuilds g node by node. visit either maps the results itself (appends nodes to r->to, sets
 * r->map[result]) and returns true, or returns false to have the node copied. Values that are not
 * results are copied first, so every value has its image before its first reader is visited. */
typedef struct LsRewrite {
    LsCtx *cx;
    const LsGraph *from;
    LsGraph *to;
    LsValueId *map;         /* by old value id */
    void *user;
    LsNodeId forward;       /* of the node that is visited: the image of the node it
                             * differentiates */
    LsNodeId image;         /* set by visit: the image of the node, unless it is the last node after
                             * the visit */
} LsRewrite;
void ls_rewrite(LsCtx *cx, LsGraph *g, bool (*visit)(LsRewrite *, LsNodeId), void *user);
/* The same, visiting the nodes in this order. It must be a run order and may leave nodes out. */
void ls_rewrite_order(LsCtx *cx, LsGraph *g, bool (*visit)(LsRewrite *, LsNodeId), void *user,
                      const LsNodeId *order, uint32_t norder);
/* For visit: appends a node over the images of the operands `in`; its results take the places of
 * the values `of`. Both are values of the old graph. */
LsNodeId ls_rewrite_append(LsRewrite *r, LsOpCode op, int nin, const LsValueId in[], int nout,
                           const LsValueId of[], const LsAttr *attr);
/* For visit: copies the node, over the images of its operands; keeps names, types, layouts,
 * attributes. */
void ls_rewrite_copy(LsRewrite *r, LsNodeId n);
/* Result k of node `to` of the new graph replaces value `of`, with its name, type, shape and
 * layout. */
void ls_rewrite_result(LsRewrite *r, LsNodeId to, int k, LsValueId of);
static inline LsValueId ls_image(const LsRewrite *r, LsValueId old) { return r->map[old.i]; }

#endif
