/* compiler/passes/drop_bias.c -- see the header.
 *
 * requires the forward part with its loss, before ls_autodiff; keeps all names. With y = x + b for
 * each channel: mean(y) = mean(x) + b, so y - mean(y) = x - mean(x) and var(y) = var(x). What
 * follows has the same values but for rounding. */
#include "compiler/passes/drop_bias.h"

#include <inttypes.h>

#include "compiler/fold/append.h"
#include "compiler/ir/rewrite.h"
#include "compiler/passes/passes.h"
#include "compiler/updates/decay_groups.h"

typedef struct Drop {
    const LsOptimizerOptions *o;
    LsValueId *bias_of;         /* by value: a result, and its mean, lose this bias */
    uint32_t *reads;            /* by value: nodes that read it, and outputs */
    uint32_t dropped;
    int64_t elements;
} Drop;

/* Adds a bias to each channel, which is axis 1: a product adds it to its columns. */
static bool adds_bias(const LsGraph *g, LsNodeId n)
{
    const LsOpCode op = g->node[n.i].op;
    const bool product = op == LS_OP_MATMUL && ls_shape(g, ls_out(g, n, 0))->rank == 2;
    return (product || op == LS_OP_CONV || op == LS_OP_CONV_DX) && ls_is(ls_in(g, n, 2));
}

static void count_reads(const LsGraph *g, uint32_t *reads)
{
    for (uint32_t k = 0; k < g->noutput; k++)
        reads[g->output[k].i]++;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            reads[ls_in(g, (LsNodeId){i}, k).i]++;
}

/* The mean of y over everything but the channels, which a batch norm takes; none: no norm does. */
static LsValueId mean_of(const LsGraph *g, LsValueId y)
{
    const int rank = ls_shape(g, y)->rank;
    const uint32_t axes = ((1u << rank) - 1) & ~2u;
    for (uint32_t i = g->value[y.i].def.i + 1; i < g->nnode; i++) {
        const LsNodeId n = {i};
        if (g->node[i].op == LS_OP_NORMALIZE && ls_in(g, n, 0).i == y.i) {
            const LsNodeId made = g->value[ls_in(g, n, 1).i].def;
            if (g->node[made.i].op == LS_OP_REDUCE_MEAN && ls_in(g, made, 0).i == y.i
                && g->node[made.i].attr.reduce.axes == axes)
                return ls_in(g, n, 1);
        }
    }
    return (LsValueId){0};
}

/* How many of the reads of y and of its mean the batch norms do. */
static uint32_t norms_read(const LsGraph *g, LsValueId y, LsValueId mean)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNodeId id = {i};
        const LsOpCode op = g->node[i].op;
        const LsValueId a = ls_in(g, id, 0), b = ls_in(g, id, 1);
        if (op == LS_OP_REDUCE_MEAN && a.i == y.i && ls_out(g, id, 0).i == mean.i)
            n += 1;
        else if ((op == LS_OP_NORM_VAR || op == LS_OP_NORMALIZE) && a.i == y.i && b.i == mean.i)
            n += 2;
        else if (op == LS_OP_RUNNING_STAT && b.i == mean.i)
            n += 1;
    }
    return n;
}

/* Why the bias of the node must stay; NULL: it can go. */
static const char *reason(const LsGraph *g, const Drop *d, LsNodeId n, LsValueId mean)
{
    const LsValueId y = ls_out(g, n, 0), read = ls_in(g, n, 2), b = ls_viewed(g, read);
    if (d->reads[read.i] > 1 || (read.i != b.i && d->reads[b.i] > 1))
        return "others read the bias";
    if (ls_decays(g, b, d->o))
        return "it has weight decay, which would move the running mean";
    if (d->reads[y.i] + d->reads[mean.i] != norms_read(g, y, mean))
        return "others read the result, or its mean, beside the norm";
    return NULL;
}

static void find(LsCtx *cx, const LsGraph *g, Drop *d)
{
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNodeId n = {i};
        const LsValueId b = adds_bias(g, n) ? ls_viewed(g, ls_in(g, n, 2)) : (LsValueId){0};
        const LsValueId y = ls_out(g, n, 0);
        if (!ls_is(b) || g->value[b.i].kind != LS_V_PARAM)
            continue;
        const LsValueId mean = mean_of(g, y);
        const char *why = ls_is(mean) ? reason(g, d, n, mean) : NULL;
        if (why != NULL)
            ls_warn(cx, ls_where(g, n), NULL, "--drop-bias leaves '%s' where it is: %s",
                    g->value[b.i].name, why);
        if (!ls_is(mean) || why != NULL)
            continue;
        d->bias_of[y.i] = d->bias_of[mean.i] = ls_in(g, n, 2);
        d->dropped++;
        d->elements += ls_count(ls_shape(g, b));
    }
}

static LsValueId mean_with_bias(LsRewrite *r, LsValueId mean, LsValueId bias)
{
    const LsShape s = *ls_shape(r->from, mean);
    const LsValueId b = ls_reshape(r->cx, r->to, ls_image(r, bias), &s);
    return ls_append2(r->cx, r->to, LS_OP_ADD, ls_image(r, mean), b, NULL);
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const LsGraph *g = r->from;
    const Drop *d = r->user;
    const LsNode *node = &g->node[n.i];
    if (node->op == LS_OP_RUNNING_STAT) {
        const LsValueId run = ls_in(g, n, 0), mean = ls_in(g, n, 1), bias = d->bias_of[mean.i];
        if (!ls_is(bias))
            return false;
        const LsValueId whole = mean_with_bias(r, mean, bias);
        ls_append2(r->cx, r->to, LS_OP_RUNNING_STAT, ls_image(r, run), whole, &node->attr);
        return true;
    }
    if (!adds_bias(g, n) || !ls_is(d->bias_of[ls_out(g, n, 0).i]))
        return false;
    const LsValueId in[] = {ls_in(g, n, 0), ls_in(g, n, 1)}, out[] = {ls_out(g, n, 0)};
    ls_rewrite_append(r, (LsOpCode)node->op, 2, in, 1, out, &node->attr);
    return true;
}

bool ls_drop_bias(LsCtx *cx, LsGraph *g, const LsOptimizerOptions *o)
{
    if (!ls_dce(cx, g))
        return false;
    Drop d = {.o = o,
              .bias_of = ls_arena_alloc(cx->arena, g->nvalue, sizeof *d.bias_of),
              .reads = ls_arena_alloc(cx->arena, g->nvalue, sizeof *d.reads)};
    count_reads(g, d.reads);
    find(cx, g, &d);
    if (d.dropped == 0)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "leave --drop-bias out",
                        "--drop-bias: no trained bias stands in front of a batch norm with "
                        "statistics of the batch");
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (ls_is(d.bias_of[i]))
            g->value[ls_viewed(g, d.bias_of[i]).i].kind = LS_V_STATE;
    ls_rewrite(cx, g, visit, &d);
    g->inert = (LsInert){d.dropped, d.elements};
    return true;
}
