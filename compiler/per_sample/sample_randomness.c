/* compiler/per_sample/sample_randomness.c -- random numbers where every sample has a gradient of
 * its own.
 *
 * A draw is a function of the run's seed, the step, the node and the element. Elements of different
 * samples thus have different numbers, whatever else the batch holds. For equal numbers a node
 * draws for one sample, and the others read the same. */
#include "compiler/per_sample/per_sample.h"

#include "base/arena.h"
#include "compiler/ir/op.h"
#include "compiler/ir/shape.h"
#include "compiler/fold/append.h"
#include "compiler/ir/rewrite.h"

static bool draws(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return (node->op == LS_OP_DROPOUT && node->attr.scalar.a > 0) || node->op == LS_OP_UNIFORM
           || node->op == LS_OP_NORMAL;
}

/* The axis of the samples in result 0 of a drawing node: that of its operand, or, if that only
 * gives the shape, the first. -1: it has none. */
static int axis_of_samples(const LsSamples *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsShape *s = ls_shape(g, ls_out(g, n, 0));
    const LsPlaces *t = &f->of[ls_out(g, n, 0).i];
    if (t->n == 1)
        return ls_sample_axis(s, t->inner[0], g->batch);
    return !t->sampled && s->rank > 0 && s->dim[0] == g->batch ? 0 : -1;
}

typedef struct Once { const LsSamples *samples; bool failed; } Once;

/* Draws the numbers of one sample; y = x * mask, or the numbers repeated. */
static bool visit(LsRewrite *r, LsNodeId n)
{
    Once *once = r->user;
    const LsGraph *g = r->from;
    const LsAttr at = g->node[n.i].attr;
    const int axis = draws(g, n) ? axis_of_samples(once->samples, n) : -1;
    if (axis < 0)
        return false;
    const LsValueId y = ls_out(g, n, 0);
    LsShape s = *ls_shape(g, y), one = s;
    const bool mask = g->node[n.i].op == LS_OP_DROPOUT;
    if (s.dim[axis] != g->batch) {
        ls_error(r->cx, ls_where(g, n), LS_E_UNSUPPORTED, "--randomness=different",
                 "%s: samples are not alone on an axis, so "
                 "--randomness=same cannot repeat its numbers",
                 ls_op[g->node[n.i].op]->name);
        once->failed = true;
        return false;
    }
    one.dim[axis] = 1;
    LsValueId v = ls_expand(r->cx, r->to, ls_const_real(r->cx, r->to, mask), one);
    v = ls_append1(r->cx, r->to, (LsOpCode)g->node[n.i].op, v, &at);
    v = mask ? ls_append2(r->cx, r->to, LS_OP_MUL, ls_image(r, ls_in(g, n, 0)), v, NULL)
             : ls_expand(r->cx, r->to, v, s);
    r->map[y.i] = v;
    return true;
}

bool ls_sample_randomness(LsCtx *cx, LsGraph *g, LsRandomness how)
{
    const LsSamples f = ls_follow_samples(cx, g, NULL, NULL);
    Once once = {.samples = &f};
    for (uint32_t i = 1; i < g->nnode && how == LS_RANDOM_ERROR; i++)
        if (draws(g, (LsNodeId){i}))
            return ls_error(cx, ls_where(g, (LsNodeId){i}), LS_E_UNSUPPORTED,
                            "--randomness=different draws for every sample, "
                            "--randomness=same once for all; --dropout=off leaves dropouts out",
                            "%s draws random numbers, and every sample has a gradient of its own",
                            ls_op[g->node[i].op]->name);
    if (how == LS_RANDOM_SAME)
        ls_rewrite(cx, g, visit, &once);
    return !once.failed;
}

/* Elements of a part that follow each other in result 0 of a drawing node; 0: all parts draw alike,
 * as the result has no samples; -1: that is not known. */
static int64_t part_of(const LsSamples *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsShape *s = ls_shape(g, ls_out(g, n, 0));
    const LsPlaces *t = &f->of[ls_out(g, n, 0).i];
    if (t->lost || t->n > 1 || (t->sampled && t->n == 0))
        return -1;
    if (t->n == 1)
        return t->inner[0] * g->batch;
    return g->node[n.i].op != LS_OP_DROPOUT && s->rank > 0 && s->dim[0] == g->batch ? ls_count(s)
                                                                                    : 0;
}

bool ls_part_randomness(LsCtx *cx, LsGraph *g, int64_t parts)
{
    if (parts < 2)
        return true;
    const LsSamples f = ls_follow_samples(cx, g, NULL, NULL);
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (!draws(g, (LsNodeId){i}))
            continue;
        const int64_t inner = part_of(&f, (LsNodeId){i});
        if (inner < 0)
            return ls_error(
                cx, ls_where(g, (LsNodeId){i}), LS_E_UNSUPPORTED,
                "--accumulate draws for every batch anew; "
                "--dropout=off leaves dropouts out",
                "%s draws random numbers of samples whose places in the "
                "batch cannot be followed to it, so they would depend on --microbatches",
                ls_op[g->node[i].op]->name);
        g->node[i].attr.scalar.parts = inner > 0 ? parts : 0;
        g->node[i].attr.scalar.inner = inner;
    }
    return true;
}
