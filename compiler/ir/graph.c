/* compiler/ir/graph.c -- appending values and nodes. */
#include "compiler/ir/graph.h"

#include "compiler/fold/fold_constants.h"

#include <assert.h>
#include <string.h>

LsGraph *ls_graph_new(LsCtx *cx)
{
    LsGraph *g = ls_arena_alloc(cx->arena, 1, sizeof *g);
    g->arena = cx->arena;
    g->value = ls_arena_grow(g->arena, NULL, 0, 64, sizeof *g->value, &g->cap_value);
    g->node = ls_arena_grow(g->arena, NULL, 0, 64, sizeof *g->node, &g->cap_node);
    g->operand = ls_arena_grow(g->arena, NULL, 0, 64, sizeof *g->operand, &g->cap_operand);
    g->nvalue = g->nnode = g->noperand = 1;
    return g;
}

void ls_graph_origin(LsGraph *g, LsOrigin o)
{
    g->node[0].phase = o.phase;     /* row 0 is the template of new nodes */
    g->node[0].fwd = o.fwd;
    g->node[0].onnx = o.onnx;
    g->node[0].name = o.name;
}

static LsValueId push_value(LsGraph *g, LsValue v)
{
    g->value = ls_arena_grow(g->arena, g->value, g->nvalue, g->nvalue + 1, sizeof v, &g->cap_value);
    g->value[g->nvalue] = v;
    return (LsValueId){g->nvalue++};
}

LsValueId ls_value_add(LsCtx *cx, LsGraph *g, LsValueKind kind, const char *name, LsType type,
                       const LsShape *shape, const void *data)
{
    (void)cx;
    return push_value(g, (LsValue){.name = ls_arena_strdup(g->arena, name), .kind = kind,
                                   .type = type, .shape = *shape, .data = data});
}

LsValueId ls_const_add(LsCtx *cx, LsGraph *g, LsType type, const LsShape *shape, const void *data)
{
    (void)cx;
    return push_value(g, (LsValue){.name = ls_arena_printf(g->arena, "const%u", g->nvalue),
                                   .kind = LS_V_CONST,
                                   .type = type,
                                   .shape = *shape,
                                   .data = data});
}

LsValueId ls_const_real(LsCtx *cx, LsGraph *g, double v)
{
    float *data = ls_arena_alloc(g->arena, 1, sizeof *data);
    *data = (float)v;
    return ls_const_add(cx, g, LS_REAL, &(LsShape){0}, data);
}

void ls_set_out(LsGraph *g, LsNodeId n, int k, LsType type, const LsShape *shape)
{
    LsValue *v = &g->value[ls_out(g, n, k).i];
    v->type = type;
    v->shape = *shape;
}

/* Undo the append of node n, which is the last one. */
static void pop_node(LsGraph *g, LsNodeId n)
{
    g->nvalue = g->node[n.i].out;
    g->noperand = g->node[n.i].in;
    g->nnode = n.i;
}

LsNodeId ls_append_bare(LsGraph *g, LsOpCode op, int nin, const LsValueId in[], int nout,
                        const LsAttr *attr)
{
    LsNodeId n = {g->nnode};
    g->node =
        ls_arena_grow(g->arena, g->node, g->nnode, g->nnode + 1, sizeof *g->node, &g->cap_node);
    g->operand = ls_arena_grow(g->arena, g->operand, g->noperand, g->noperand + (uint32_t)nin,
                               sizeof *g->operand, &g->cap_operand);
    LsNode node = g->node[0];
    node.op = (uint16_t)op;
    node.nin = (uint16_t)nin;
    node.nout = (uint16_t)nout;
    node.in = g->noperand;
    node.out = g->nvalue;
    node.attr = attr != NULL ? *attr : (LsAttr){0};
    if (node.phase == LS_FORWARD && ls_op[op]->once)
        node.phase = LS_UPDATE;
    for (int k = 0; k < nin; k++) {
        g->operand[g->noperand++] = in[k];
        if (ls_writes(&node, k))
            g->value[in[k].i].once_written = true;
    }
    g->node[g->nnode++] = node;
    for (int k = 0; k < nout; k++)
        push_value(g, (LsValue){.name = ls_arena_printf(g->arena, "%%%u", g->nvalue),
                                .kind = LS_V_TEMP, .def = n});
    return n;
}

LsValueId ls_append(LsCtx *cx, LsGraph *g, LsOpCode op, int nin, const LsValueId in[],
                    const LsAttr *attr)
{
    const LsOp *row = ls_op[op];
    assert(nin >= row->min_in && (row->max_in == 255 || nin <= row->max_in));
    assert(op != LS_OP_FUSED);          /* ls_fuse makes those */
    LsNodeId n = ls_append_bare(g, op, nin, in, row->nout, attr);
    if (!row->infer(cx, g, n)) {
        pop_node(g, n);
        return (LsValueId){0};
    }
    LsValueId folded = {0};
    if (ls_fold(cx, g, n, &folded)) {       /* one result, now a constant
                                             * behind the node's values */
        LsValue c = g->value[folded.i];
        pop_node(g, n);
        c.name = ls_arena_printf(g->arena, "const%u", g->nvalue);
        return push_value(g, c);
    }
    return (LsValueId){g->node[n.i].out};
}

LsValueId ls_append1(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, const LsAttr *attr)
{
    return ls_append(cx, g, op, 1, (LsValueId[]){a}, attr);
}

LsValueId ls_append2(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b,
                     const LsAttr *attr)
{
    return ls_append(cx, g, op, 2, (LsValueId[]){a, b}, attr);
}

LsValueId ls_append3(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b, LsValueId c,
                     const LsAttr *attr)
{
    return ls_append(cx, g, op, 3, (LsValueId[]){a, b, c}, attr);
}

double ls_const_at(const LsGraph *g, LsValueId v, int64_t i)
{
    const LsValue *c = &g->value[v.i];
    switch (c->type) {
    case LS_REAL: return ((const float *)c->data)[i];
    case LS_I64:  return (double)((const int64_t *)c->data)[i];
    case LS_I32:  return ((const int32_t *)c->data)[i];
    default:      return ((const uint8_t *)c->data)[i];
    }
}

int64_t ls_const_int_at(const LsGraph *g, LsValueId v, int64_t i)
{
    const LsValue *c = &g->value[v.i];
    return c->type == LS_I64 ? ((const int64_t *)c->data)[i] : (int64_t)ls_const_at(g, v, i);
}

uint32_t *ls_readers(LsArena *arena, const LsGraph *g, bool results)
{
    uint32_t *readers = ls_arena_alloc(arena, g->nvalue, sizeof *readers);
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            readers[ls_in(g, (LsNodeId){i}, k).i]++;
    for (uint32_t k = 0; k < g->noutput; k++)
        readers[g->output[k].i]++;
    for (uint32_t k = 0; results && k < g->ngrad; k++)
        readers[g->grad[k].grad.i]++;
    readers[g->loss.i] += results;
    return readers;
}

LsValueId ls_viewed(const LsGraph *g, LsValueId v)
{
    for (LsNodeId def; (def = g->value[v.i].def).i != 0 && g->node[def.i].op != LS_OP_NOP
                       && ls_op[g->node[def.i].op]->kernel == LS_K_VIEW;)
        v = ls_in(g, def, 0);
    return v;
}

LsValueId ls_reshape(LsCtx *cx, LsGraph *g, LsValueId v, const LsShape *to)
{
    if (ls_shape_same(ls_shape(g, v), to))
        return v;
    return ls_append1(cx, g, LS_OP_RESHAPE, v, &(LsAttr){.shape = {*to}});
}

LsValueId ls_reduce_to(LsCtx *cx, LsGraph *g, LsValueId v, const LsShape *to)
{
    const LsShape from = *ls_shape(g, v);
    int skip = from.rank - to->rank;
    uint32_t axes = 0;
    for (int k = 0; k < from.rank; k++)
        if (from.dim[k] > 1 && (k < skip || to->dim[k - skip] == 1))
            axes |= 1u << k;
    if (axes != 0)
        v = ls_append1(cx, g, LS_OP_REDUCE_SUM, v,
                       &(LsAttr){.reduce = {.axes = axes, .keep = true}});
    return ls_reshape(cx, g, v, to);
}
