/* codegen/cuda/conv_fuse.c */
#include "codegen/cuda/conv_fuse.h"

#include "codegen/cuda/conv_plan.h"
#include "codegen/fusion/inline_bodies.h"
#include "compiler/passes/fuse.h"

/* Whether the FUSED node is just max(x, 0) of every element. */
static bool is_relu(const LsGraph *g, LsNodeId n)
{
    const LsFused *f = ls_body_of(g, n);
    const LsNode *node = &g->node[n.i];
    return f != NULL && f->nstmt == 1 && f->stmt[0].op == LS_OP_RELU && node->nin == 1
        && node->nout == 1 && !f->out[0].reduce
        && ls_shape_same(ls_in_shape(g, n, 0), ls_shape(g, ls_out(g, n, 0)))
        && g->value[ls_in(g, n, 0).i].layout == g->value[node->out].layout;
}

/* Whether an engine does the bias and the ReLU; sets the convolution's relu. */
static bool served(LsGraph *g, LsNodeId conv, const LsTarget *t)
{
    g->node[conv.i].attr.window.relu = true;
    const LsConvChoice *c = ls_conv_choose(t->convs, g, conv, t->real_bytes);
    g->node[conv.i].attr.window.relu = c->conv.relu && !c->own && c->json != NULL;
    return g->node[conv.i].attr.window.relu;
}

/* Lets the convolution make the ReLU's result. The ReLU's gradient nodes now belong to the
 * convolution. */
static void take_in(LsGraph *g, LsNodeId conv, LsNodeId relu)
{
    LsValueId to = ls_out(g, relu, 0);
    const LsNode *r = &g->node[relu.i];
    g->value[g->node[conv.i].out].def = relu;
    g->value[to.i].def = conv;
    g->node[conv.i].out = to.i;
    for (uint32_t i = relu.i + 1; i < g->nnode; i++)
        if (g->node[i].fwd.i == relu.i)
            g->node[i].fwd = conv;
    g->node[relu.i] = (LsNode){.op = LS_OP_NOP, .onnx = r->onnx, .name = r->name};
}

uint32_t ls_conv_fuse(LsGraph *g, const LsTarget *t)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode && t->kind == LS_TARGET_CUDA && t->convs != NULL; i++) {
        LsNodeId conv = {i};
        if (g->node[i].op != LS_OP_CONV || !ls_is(ls_in(g, conv, 2)))
            continue;
        bool shared;
        LsNodeId relu = ls_first_reader(g, ls_out(g, conv, 0), &shared);
        if (relu.i == 0 || shared || g->node[relu.i].phase != g->node[i].phase || !is_relu(g, relu)
            || !served(g, conv, t))
            continue;
        take_in(g, conv, relu);
        n++;
    }
    return n;
}
