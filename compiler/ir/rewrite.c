/* compiler/ir/rewrite.c -- rebuilds a graph node by node; the base of every pass that inserts
 * nodes. */
#include "compiler/ir/rewrite.h"

#include <string.h>

static void copy_value(LsRewrite *r, uint32_t i)
{
    const LsValue *v = &r->from->value[i];
    LsValueId id = ls_value_add(r->cx, r->to, v->kind, v->name, v->type, &v->shape, v->data);
    r->to->value[id.i].layout = v->layout;
    r->to->value[id.i].statistic = v->statistic;
    r->to->value[id.i].stopped = v->stopped;
    r->to->value[id.i].stacked = v->stacked;
    r->to->value[id.i].of_optimizer = v->of_optimizer;
    r->to->value[id.i].average_of = v->average_of;
    r->to->value[id.i].of_update = v->of_update;
    r->to->value[id.i].rank_sum = v->rank_sum;
    r->to->value[id.i].rank_levels = v->rank_levels;
    r->to->value[id.i].sliced = v->sliced;
    r->to->value[id.i].packed = v->packed;
    r->map[i] = id;
}

void ls_rewrite_result(LsRewrite *r, LsNodeId to, int k, LsValueId of)
{
    const LsValue *old = &r->from->value[of.i];
    LsValueId v = ls_out(r->to, to, k);
    r->to->value[v.i].name = old->name;
    r->to->value[v.i].layout = old->layout;
    r->to->value[v.i].stopped = old->stopped;
    ls_set_out(r->to, to, k, old->type, &old->shape);
    r->map[of.i] = v;
}

LsNodeId ls_rewrite_append(LsRewrite *r, LsOpCode op, int nin, const LsValueId in[], int nout,
                           const LsValueId of[], const LsAttr *attr)
{
    LsValueId *image = ls_arena_alloc(r->cx->arena, (size_t)nin, sizeof *image);
    for (int k = 0; k < nin; k++)
        image[k] = ls_image(r, in[k]);
    LsNodeId id = ls_append_bare(r->to, op, nin, image, nout, attr);
    for (int k = 0; k < nout; k++)
        ls_rewrite_result(r, id, k, of[k]);
    return id;
}

void ls_rewrite_copy(LsRewrite *r, LsNodeId n)
{
    const LsNode *node = &r->from->node[n.i];
    LsValueId *out = ls_arena_alloc(r->cx->arena, node->nout, sizeof *out);
    for (int k = 0; k < node->nout; k++)
        out[k] = ls_out(r->from, n, k);
    LsNodeId id = ls_rewrite_append(r, node->op, node->nin, r->from->operand + node->in,
                                    node->nout, out, &node->attr);
    r->to->node[id.i].phase = node->phase;
    r->to->node[id.i].rounds = node->rounds;
    r->to->node[id.i].tile = node->tile;
    r->to->node[id.i].pass = node->pass;
    r->to->node[id.i].computed = node->computed;
}

static void copy_lists(LsRewrite *r, LsValueId **list, uint32_t n)
{
    LsValueId *old = *list;
    *list = ls_arena_alloc(r->cx->arena, n, sizeof **list);
    for (uint32_t i = 0; i < n; i++)
        (*list)[i] = r->map[old[i].i];
}

void ls_rewrite(LsCtx *cx, LsGraph *g, bool (*visit)(LsRewrite *, LsNodeId), void *user)
{
    ls_rewrite_order(cx, g, visit, user, NULL, g->nnode - 1);
}

void ls_rewrite_order(LsCtx *cx, LsGraph *g, bool (*visit)(LsRewrite *, LsNodeId), void *user,
                      const LsNodeId *order, uint32_t norder)
{
    LsRewrite r = {.cx = cx, .from = g, .to = ls_graph_new(cx), .user = user};
    LsNodeId *node_map = ls_arena_alloc(cx->arena, g->nnode, sizeof *node_map);
    r.map = ls_arena_alloc(cx->arena, g->nvalue, sizeof *r.map);
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].kind != LS_V_TEMP)
            copy_value(&r, i);
    for (uint32_t i = 0; i < norder; i++) {
        LsNodeId n = order != NULL ? order[i] : (LsNodeId){i + 1};
        const LsNode *node = &g->node[n.i];
        if (node->op == LS_OP_NOP)
            continue;
        /* A node's image is the last node that its visit appends: the forward node of a
         * gradient. */
        ls_graph_origin(r.to,
                        (LsOrigin){node->phase, node_map[node->fwd.i], node->onnx, node->name});
        r.image.i = 0;
        r.forward = node_map[node->fwd.i];
        if (!visit(&r, n))
            ls_rewrite_copy(&r, n);
        node_map[n.i].i = r.image.i != 0 ? r.image.i : r.to->nnode - 1;
    }
    ls_graph_origin(r.to, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    LsGraph *to = r.to, result = *g;    /* everything but the arrays stays */
    copy_lists(&r, &result.input, g->ninput);
    copy_lists(&r, &result.output, g->noutput);
    result.grad = ls_arena_alloc(cx->arena, g->ngrad, sizeof *result.grad);
    for (uint32_t i = 0; i < g->ngrad; i++)
        result.grad[i] =
            (LsGrad){r.map[g->grad[i].param.i], r.map[g->grad[i].grad.i], g->grad[i].kind};
    result.objective.loss = r.map[g->objective.loss.i];
    result.objective.weight = r.map[g->objective.weight.i];
    result.objective.label = r.map[g->objective.label.i];
    result.segments = r.map[g->segments.i];
    result.scaling.scale = r.map[g->scaling.scale.i];
    result.scaling.counter = r.map[g->scaling.counter.i];
    result.scaling.skips = r.map[g->scaling.skips.i];
    result.value = to->value, result.nvalue = to->nvalue, result.cap_value = to->cap_value;
    result.node = to->node, result.nnode = to->nnode, result.cap_node = to->cap_node;
    result.operand = to->operand, result.noperand = to->noperand;
    result.cap_operand = to->cap_operand;
    *g = result;
}
