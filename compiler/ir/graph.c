/* compiler/ir/graph.c -- appends values and nodes. */
#include "compiler/ir/graph.h"

#include <math.h>
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

LsValueId ls_graph_push_value(LsGraph *g, LsValue v)
{
    g->value =
        ls_arena_regrow(g->arena, g->value, g->nvalue, g->nvalue + 1, sizeof v, &g->cap_value);
    g->value[g->nvalue] = v;
    return (LsValueId){g->nvalue++};
}

LsValueId ls_value_add(LsCtx *cx, LsGraph *g, LsValueKind kind, const char *name, LsType type,
                       const LsShape *shape, const void *data)
{
    (void)cx;
    return ls_graph_push_value(g, (LsValue){.name = ls_arena_strdup(g->arena, name), .kind = kind,
                                   .type = type, .shape = *shape, .data = data});
}

LsValueId ls_const_add(LsCtx *cx, LsGraph *g, LsType type, const LsShape *shape, const void *data)
{
    (void)cx;
    return ls_graph_push_value(g, (LsValue){.name = ls_arena_printf(g->arena, "const%u", g->nvalue),
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

LsValueId ls_const_int(LsCtx *cx, LsGraph *g, LsType type, int64_t v)
{
    union {
        int64_t i64;
        int32_t i32;
        uint8_t flag;
    } *data = ls_arena_alloc(g->arena, 1, sizeof *data);
    switch (type) {
    case LS_I32:  data->i32 = (int32_t)v; break;
    case LS_BOOL: data->flag = v != 0; break;
    default:      data->i64 = v; break;
    }
    return ls_const_add(cx, g, type, &(LsShape){0}, data);
}

void ls_set_out(LsGraph *g, LsNodeId n, int k, LsType type, const LsShape *shape)
{
    LsValue *v = &g->value[ls_out(g, n, k).i];
    v->type = type;
    v->shape = *shape;
}

void ls_graph_pop(LsGraph *g, LsNodeId n)
{
    g->nvalue = g->node[n.i].out;
    g->noperand = g->node[n.i].in;
    g->nnode = n.i;
}

LsNodeId ls_append_bare(LsGraph *g, LsOpCode op, int nin, const LsValueId in[], int nout,
                        const LsAttr *attr)
{
    LsNodeId n = {g->nnode};
    const LsAttr own = attr != NULL ? *attr : (LsAttr){0};      /* perhaps of a node, which moves */
    g->node =
        ls_arena_regrow(g->arena, g->node, g->nnode, g->nnode + 1, sizeof *g->node, &g->cap_node);
    g->operand = ls_arena_grow(g->arena, g->operand, g->noperand, g->noperand + (uint32_t)nin,
                               sizeof *g->operand, &g->cap_operand);
    LsNode node = g->node[0];
    node.op = (uint16_t)op;
    node.nin = (uint16_t)nin;
    node.nout = (uint16_t)nout;
    node.in = g->noperand;
    node.out = g->nvalue;
    node.attr = own;
    if (node.phase == LS_FORWARD && ls_op[op]->once)
        node.phase = LS_UPDATE;
    for (int k = 0; k < nin; k++) {
        g->operand[g->noperand++] = in[k];
        if (ls_writes(&node, k))
            g->value[in[k].i].once_written = true;
    }
    g->node[g->nnode++] = node;
    for (int k = 0; k < nout; k++)
        ls_graph_push_value(g, (LsValue){.name = ls_arena_printf(g->arena, "%%%u", g->nvalue),
                                .kind = LS_V_TEMP, .def = n});
    return n;
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

/* Conversions out of the range have no meaning in C. */
static int64_t nearest_int(double x)
{
    const double end = 0x1p63;
    return isnan(x) ? 0 : x >= end ? INT64_MAX : x < -end ? INT64_MIN : (int64_t)x;
}

int64_t ls_const_int_at(const LsGraph *g, LsValueId v, int64_t i)
{
    const LsValue *c = &g->value[v.i];
    return c->type == LS_I64 ? ((const int64_t *)c->data)[i] : nearest_int(ls_const_at(g, v, i));
}

uint32_t ls_gradients(const LsGraph *g)
{
    uint32_t n = 0;
    while (n < g->ngrad && g->grad[n].kind == LS_GRAD)
        n++;
    return n;
}

LsValueId ls_source_named(const LsGraph *g, const char *name)
{
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].kind != LS_V_TEMP && g->value[i].kind != LS_V_NONE
            && strcmp(g->value[i].name, name) == 0)
            return (LsValueId){i};
    return (LsValueId){0};
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
    readers[g->objective.loss.i] += results;
    return readers;
}

LsValueId ls_viewed(const LsGraph *g, LsValueId v)
{
    for (LsNodeId def; (def = g->value[v.i].def).i != 0 && g->node[def.i].op != LS_OP_NOP
                       && ls_op[g->node[def.i].op]->kernel == LS_K_VIEW;)
        v = ls_in(g, def, 0);
    return v;
}

void ls_broadcast_strides(const LsGraph *g, LsValueId v, const LsShape *space,
                          int64_t stride[LS_MAX_RANK])
{
    const LsValue *x = &g->value[v.i];
    int64_t own[LS_MAX_RANK];
    ls_strides(&x->shape, x->layout, own);
    int skip = space->rank - x->shape.rank;
    for (int k = 0; k < space->rank; k++)
        stride[k] = k < skip || x->shape.dim[k - skip] == 1 ? 0 : own[k - skip];
}

int64_t ls_value_bytes(const LsGraph *g, LsValueId v, int real_bytes)
{
    return ls_count(ls_shape(g, v)) * ls_type_bytes(ls_type(g, v), real_bytes);
}

int64_t ls_stored_of_rank(const LsGraph *g, LsValueId v, int real_bytes, int ranks)
{
    const int64_t bytes = ls_value_bytes(g, v, real_bytes);
    const int levels = g->value[v.i].rank_levels;
    if (levels > 0)
        return ls_tree_levels(g->rank.micro_batches / ranks) * ls_rank_bytes(g, bytes / levels);
    return ls_rank_bytes(g, bytes) / ranks;
}

int64_t ls_stored_bytes(const LsGraph *g, LsValueId v, int real_bytes)
{
    int64_t bytes = ls_value_bytes(g, v, real_bytes), rows = g->value[v.i].rows_behind;
    if (g->value[v.i].rank_sum)
        return ls_rank_bytes(g, bytes);
    if (g->value[v.i].sliced || g->value[v.i].rank_levels > 0)
        return ls_stored_of_rank(g, v, real_bytes, g->rank.count);
    return ls_copies(g, v) * (rows > 0 ? bytes + rows * (bytes / ls_shape(g, v)->dim[0]) : bytes);
}

LsWhere ls_where(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return (LsWhere){node->onnx, node->name, ls_op[node->op]->name};
}

const char *ls_type_name(LsType t)
{
    static const char *const name[LS_NTYPES] = {"float", "int64",    "int32",
                                                "bool",  "bfloat16", "float16", "uint8"};
    return name[t];
}

const char *ls_dims(const LsGraph *g, LsValueId v)
{
    return ls_shape_text(g->arena, ls_shape(g, v));
}
