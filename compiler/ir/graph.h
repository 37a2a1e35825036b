/* compiler/ir/graph.h -- builds and queries the graph. */
#ifndef LS_COMPILER_IR_GRAPH_H
#define LS_COMPILER_IR_GRAPH_H

#include "compiler/ir/op.h"
#include "compiler/ir/shape.h"

/* The origin of newly appended nodes. Importer and passes set it; rows leave it alone. */
typedef struct LsOrigin { LsPhase phase; LsNodeId fwd; uint32_t onnx; const char *name; } LsOrigin;

LsGraph *ls_graph_new(LsCtx *cx);
void ls_graph_origin(LsGraph *g, LsOrigin o);

/* A value without a defining node. `name` is made unique when it is taken. */
LsValueId ls_value_add(LsCtx *cx, LsGraph *g, LsValueKind kind, const char *name, LsType type,
                       const LsShape *shape, const void *data);
/* A constant. data: see LsValue.data; it is not copied. */
LsValueId ls_const_add(LsCtx *cx, LsGraph *g, LsType type, const LsShape *shape, const void *data);
LsValueId ls_const_real(LsCtx *cx, LsGraph *g, double v);      /* scalar */
/* scalar of an integer type or bool */
LsValueId ls_const_int(LsCtx *cx, LsGraph *g, LsType type, int64_t v);

/* Appends a bare node: nout results without a type, not folded. ls_append (compiler/fold/append.h)
 * and ls_fuse build on it. */
LsNodeId ls_append_bare(LsGraph *g, LsOpCode op, int nin, const LsValueId in[], int nout,
                        const LsAttr *attr);
/* Removes node n, which must be the last one. */
void ls_graph_pop(LsGraph *g, LsNodeId n);
LsValueId ls_graph_push_value(LsGraph *g, LsValue v);

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
/* Number of tensors that an update node updates, and of operands for each. */
static inline int ls_updated(const LsNode *n)
{
    return ls_op[n->op]->kernel == LS_K_UPDATE && n->attr.update.many > 1 ? n->attr.update.many : 1;
}
static inline int ls_update_operands(const LsNode *n) { return n->nin / ls_updated(n); }
/* The partial sums that operand v of node n holds, of which it touches about one; 1: it is no such
 * operand. */
static inline int ls_update_levels(const LsGraph *g, LsNodeId n, LsValueId v)
{
    const LsNode *node = &g->node[n.i];
    const int levels = g->value[v.i].of_update && ls_op[node->op]->kernel == LS_K_UPDATE
                           ? node->attr.update.sum.levels
                           : 0;
    return levels > 1 ? levels : 1;
}
/* The node overwrites operand k, a state value. */
static inline bool ls_writes(const LsNode *n, int k)
{
    int role = ls_op[n->op]->writes != 0 ? k % ls_update_operands(n) : LS_MAX_IN;
    return role < LS_MAX_IN && (ls_op[n->op]->writes >> role & 1) != 0;
}
static inline bool ls_is_state(const LsGraph *g, LsValueId v)
{
    return g->value[v.i].kind == LS_V_PARAM || g->value[v.i].kind == LS_V_STATE;
}
LsWhere ls_where(const LsGraph *g, LsNodeId n);     /* of a node of the graph, for messages */
const char *ls_type_name(LsType t);                 /* for messages: "float", "int64" */
const char *ls_dims(const LsGraph *g, LsValueId v);     /* its shape, for messages */
void ls_set_out(LsGraph *g, LsNodeId n, int k, LsType type, const LsShape *shape);

/* Strides to read v while iterating over `space` (NumPy alignment of ranks), 0 where broadcast. */
void ls_broadcast_strides(const LsGraph *g, LsValueId v, const LsShape *space,
                          int64_t stride[LS_MAX_RANK]);
int64_t ls_value_bytes(const LsGraph *g, LsValueId v, int real_bytes);  /* of one member */
/* Bytes that divide into slices for all ranks, however many a run has, each of whole blocks of
 * LS_SLICE. */
enum { LS_SLICE = 64 };
static inline int64_t ls_rank_bytes(const LsGraph *g, int64_t bytes)
{
    const int64_t least = (int64_t)LS_SLICE * g->rank.choice[g->rank.nchoice - 1];
    return (bytes + least - 1) / least * least;
}
/* Partial sums that a tree over n parts needs: the gradient of the last one joins those of all bits
 * of n - 1. */
static inline int ls_tree_levels(int64_t n)
{
    int levels = 0;
    for (n--; n > 0; n /= 2)
        levels++;
    return levels;
}
/* Of state that depends on the number of ranks, sliced or of rank_levels: that of one of so many
 * ranks. */
int64_t ls_stored_of_rank(const LsGraph *g, LsValueId v, int real_bytes, int ranks);
/* Of all members of an ensemble together; of state with its rows_behind; of one of g->ranks
 * ranks. */
int64_t ls_stored_bytes(const LsGraph *g, LsValueId v, int real_bytes);
static inline int64_t ls_copies(const LsGraph *g, LsValueId v)
{
    return g->value[v.i].stacked ? g->ensemble.members : 1;
}

/* Gradients of parameters: the first entries of g->grad. */
uint32_t ls_gradients(const LsGraph *g);

/* The source of that name; none: there is none. */
LsValueId ls_source_named(const LsGraph *g, const char *name);
/* Readers of each value: operands of nodes and graph outputs. With `results`, the loss and the
 * gradients of parameters count, too. */
uint32_t *ls_readers(struct LsArena *arena, const LsGraph *g, bool results);

/* The value that v is a view of; v itself where it is no view. */
LsValueId ls_viewed(const LsGraph *g, LsValueId v);

/* Constant's element i as double / int64 (logical row-major index). A real beyond int64 gives the
 * nearest one, NaN 0. */
double ls_const_at(const LsGraph *g, LsValueId v, int64_t i);
int64_t ls_const_int_at(const LsGraph *g, LsValueId v, int64_t i);

#endif
