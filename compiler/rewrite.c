/* compiler/rewrite.c -- rebuilding a graph node by node; the frame of every pass that inserts nodes. */
#include "compiler/graph.h"

#include <string.h>

static void copy_value(LsRewrite *r, uint32_t i)
{
    const LsValue *v = &r->from->value[i];
    LsValueId id = ls_value_add(r->cx, r->to, v->kind, v->name, v->type, &v->shape, v->data);
    r->to->value[id.i].layout = v->layout;
    r->map[i] = id;
}

/* The node as it is, over the images of its operands; keeps names, types, layouts, attributes. */
static void copy_node(LsRewrite *r, LsNodeId n)
{
    const LsNode *node = &r->from->node[n.i];
    LsGraph *to = r->to;
    to->node = ls_arena_grow(to->arena, to->node, to->nnode, to->nnode + 1, sizeof *to->node,
                             &to->cap_node);
    to->operand = ls_arena_grow(to->arena, to->operand, to->noperand, to->noperand + node->nin,
                                sizeof *to->operand, &to->cap_operand);
    LsNode copy = *node;
    copy.in = to->noperand;
    copy.out = to->nvalue;
    copy.fwd = to->node[0].fwd;
    for (uint32_t k = 0; k < node->nin; k++) {
        LsValueId in = r->map[r->from->operand[node->in + k].i];
        to->operand[to->noperand++] = in;
        if (k < 8 && ls_op[node->op]->writes >> k & 1)
            to->value[in.i].once_written = true;
    }
    LsNodeId id = {to->nnode};
    to->node[to->nnode++] = copy;
    for (uint32_t k = 0; k < node->nout; k++) {
        copy_value(r, node->out + k);
        to->value[r->map[node->out + k].i].def = id;
    }
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
    LsRewrite r = {.cx = cx, .from = g, .to = ls_graph_new(cx), .user = user};
    LsNodeId *node_map = ls_arena_alloc(cx->arena, g->nnode, sizeof *node_map);
    r.map = ls_arena_alloc(cx->arena, g->nvalue, sizeof *r.map);
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].kind != LS_V_TEMP)
            copy_value(&r, i);
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *n = &g->node[i];
        if (n->op == LS_OP_NOP)
            continue;
        /* A node's image is the last node that its visit appends: the forward node of a gradient. */
        ls_graph_origin(r.to, (LsOrigin){n->phase, node_map[n->fwd.i], n->onnx, n->name});
        if (!visit(&r, (LsNodeId){i}))
            copy_node(&r, (LsNodeId){i});
        node_map[i].i = r.to->nnode - 1;
    }
    ls_graph_origin(r.to, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    LsGraph *to = r.to;
    to->input = g->input, to->ninput = g->ninput;
    to->output = g->output, to->noutput = g->noutput;
    copy_lists(&r, &to->input, g->ninput);
    copy_lists(&r, &to->output, g->noutput);
    to->grad = ls_arena_alloc(cx->arena, g->ngrad, sizeof *to->grad);
    to->ngrad = g->ngrad;
    for (uint32_t i = 0; i < g->ngrad; i++)
        to->grad[i] = (LsGrad){r.map[g->grad[i].param.i], r.map[g->grad[i].grad.i]};
    to->loss = r.map[g->loss.i];
    to->label = r.map[g->label.i];
    to->batch = g->batch;
    to->weightless = g->weightless;
    to->training = g->training;
    *g = *to;
}
