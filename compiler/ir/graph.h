/* compiler/ir/graph.h -- building and asking the graph. */
#ifndef LS_COMPILER_IR_GRAPH_H
#define LS_COMPILER_IR_GRAPH_H

#include "compiler/ir/op.h"

/* What newly appended nodes are said to belong to. Importer and passes set it; rows leave it
 * alone. */
typedef struct LsOrigin { LsPhase phase; LsNodeId fwd; uint32_t onnx; const char *name; } LsOrigin;

LsGraph *ls_graph_new(LsCtx *cx);
void ls_graph_origin(LsGraph *g, LsOrigin o);

/* A value that no node makes. `name` is made unique when it is taken. */
LsValueId ls_value_add(LsCtx *cx, LsGraph *g, LsValueKind kind, const char *name, LsType type,
                       const LsShape *shape, const void *data);
/* A constant. data: see LsValue.data; it is not copied. */
LsValueId ls_const_add(LsCtx *cx, LsGraph *g, LsType type, const LsShape *shape, const void *data);
LsValueId ls_const_real(LsCtx *cx, LsGraph *g, double v);      /* scalar */

/* Appends a node and infers its results: the id of the first one (the others follow it), or none
 * after a diagnostic. When every operand is constant and ls_fold can, the result is a constant and
 * no node is made. attr may be NULL (zeros). Operands may be none where the row allows. */
LsValueId ls_append(LsCtx *cx, LsGraph *g, LsOpCode op, int nin, const LsValueId in[],
                    const LsAttr *attr);
/* The bare node with nout results of no type yet, not folded: what ls_append and ls_fuse build
 * on. */
LsNodeId ls_append_bare(LsGraph *g, LsOpCode op, int nin, const LsValueId in[], int nout,
                        const LsAttr *attr);
LsValueId ls_append1(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, const LsAttr *attr);
LsValueId ls_append2(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b,
                     const LsAttr *attr);
LsValueId ls_append3(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b, LsValueId c,
                     const LsAttr *attr);

/* ---- for infer functions and passes ---- */
/* operand k; none if absent */
static inline LsValueId ls_in(const LsGraph *g, LsNodeId n, int k)
{
    const LsNode *node = &g->node[n.i];
    return k < node->nin ? g->operand[node->in + (uint32_t)k] : (LsValueId){0};
}
static inline LsValueId ls_out(const LsGraph *g, LsNodeId n, int k)
{
    return (LsValueId){g->node[n.i].out + (uint32_t)k};
}
static inline const LsShape *ls_shape(const LsGraph *g, LsValueId v)
{
    return &g->value[v.i].shape;
}
static inline const LsShape *ls_in_shape(const LsGraph *g, LsNodeId n, int k)
{
    return &g->value[ls_in(g, n, k).i].shape;
}
static inline LsType ls_type(const LsGraph *g, LsValueId v) { return g->value[v.i].type; }
static inline bool ls_is(LsValueId v) { return v.i != 0; }
static inline bool ls_is_const(const LsGraph *g, LsValueId v)
{
    return g->value[v.i].kind == LS_V_CONST;
}
/* Tensors that an update is of, and operands of each. */
static inline int ls_updated(const LsNode *n)
{
    return ls_op[n->op]->kernel == LS_K_UPDATE && n->attr.update.many > 1 ? n->attr.update.many : 1;
}
static inline int ls_update_operands(const LsNode *n) { return n->nin / ls_updated(n); }
/* The node overwrites operand k, a state value. */
static inline bool ls_writes(const LsNode *n, int k)
{
    int role = ls_op[n->op]->writes != 0 ? k % ls_update_operands(n) : 8;
    return role < 8 && (ls_op[n->op]->writes >> role & 1) != 0;
}
static inline bool ls_is_state(const LsGraph *g, LsValueId v)
{
    return g->value[v.i].kind == LS_V_PARAM || g->value[v.i].kind == LS_V_STATE;
}
void ls_set_out(LsGraph *g, LsNodeId n, int k, LsType type, const LsShape *shape);

/* ---- shapes ---- */
/* Elements of one value, and of all values of a model, at most: 4 TiB in doubles, 256 TiB. No machine
 * holds more, and sums and byte counts below cannot overflow. */
#define LS_MOST_ELEMENTS (INT64_C(1) << 39)
#define LS_MOST_IN_ALL (INT64_C(1) << 45)
int64_t ls_count(const LsShape *s);                     /* elements */
bool ls_shape_same(const LsShape *a, const LsShape *b);
bool ls_shape_broadcast(LsShape *to, const LsShape *with);      /* NumPy's rule; false: cannot */
/* Distance in elements between neighbours along each logical axis, for this layout. */
void ls_strides(const LsShape *s, LsLayout layout, int64_t stride[LS_MAX_RANK]);
/* Strides to read v while iterating over `space` (ranks may differ: NumPy
 * alignment), 0 where broadcast. */
void ls_broadcast_strides(const LsGraph *g, LsValueId v, const LsShape *space,
                          int64_t stride[LS_MAX_RANK]);
/* The bytes are the same under both layouts: axis 1 or every axis behind it has length 1. */
bool ls_layout_free(const LsShape *s);
int ls_type_bytes(LsType t, int real_bytes);            /* real_bytes: 4, or 8
                                                         * under --precision=f64 */
int64_t ls_value_bytes(const LsGraph *g, LsValueId v, int real_bytes);
int64_t ls_state_bytes(const LsGraph *g, LsValueId v, int real_bytes);  /* and of what lies behind */

/* By value: how many operands of nodes and outputs it is; with `results`, the loss and gradients of
 * parameters count, too. */
uint32_t *ls_readers(struct LsArena *arena, const LsGraph *g, bool results);

/* The value whose bytes v is a view of; v itself where it is none. */
LsValueId ls_viewed(const LsGraph *g, LsValueId v);

/* Constant's element i as double / int64 (logical row-major index). */
double ls_const_at(const LsGraph *g, LsValueId v, int64_t i);
int64_t ls_const_int_at(const LsGraph *g, LsValueId v, int64_t i);

/* ---- common small builders ---- */
LsValueId ls_reshape(LsCtx *cx, LsGraph *g, LsValueId v, const LsShape *to);
/* Sums v over the axes along which `to` was broadcast to v's shape; the result has shape `to`.
 * What a gradient of a broadcasting operator does to reach the operand. */
LsValueId ls_reduce_to(LsCtx *cx, LsGraph *g, LsValueId v, const LsShape *to);
/* a + b, two gradients of one value. Those of neighbouring slices are joined (ops/pad_sum.c). */
LsValueId ls_sum_grads(LsCtx *cx, LsGraph *g, LsValueId a, LsValueId b);

/* ---- passes ---- */
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

void ls_graph_print(const LsGraph *g, FILE *to);    /* one line a node: %7 =
                                                     * Conv x %3 : 8x64x56x56 */

#endif
