/* codegen/cuda/moments.c */
#include "codegen/cuda/moments.h"

#include "base/arena.h"
#include "codegen/fusion/inline_bodies.h"
#include "compiler/ir/rewrite.h"

typedef struct Search {
    const LsGraph *g;
    uint32_t *mean_of;          /* by node that makes a variance: the node that makes its mean */
    uint32_t *var_of;           /* by node that makes a mean: the node that makes the variance */
    uint32_t n;
} Search;

/* The body of a node that is just this reduction; else NULL. */
static const LsFused *alone(const LsGraph *g, LsNodeId n, LsOpCode op)
{
    const LsStmt *st = ls_only_statement(g, n);
    const LsFused *f = ls_body_of(g, n);
    return st != NULL && st->op == op && f->out[0].reduce && f->out[0].mean ? f : NULL;
}

/* Whether the reduction keeps only the channels, in fours, and x has the body's shape. */
static bool by_channels(const LsGraph *g, LsNodeId n, const LsFused *f)
{
    const LsValue *x = &g->value[ls_in(g, n, 0).i];
    return x->layout == LS_LAST && f->layout == LS_LAST && x->shape.rank >= 3
        && ls_shape_same(&x->shape, &f->space) && x->shape.dim[1] % 4 == 0
        && f->axes == (((1u << x->shape.rank) - 1) & ~2u);
}

static void try_variance(Search *s, LsNodeId n)
{
    const LsGraph *g = s->g;
    const LsFused *f = alone(g, n, LS_OP_NORM_VAR);
    if (f == NULL)
        return;
    LsNodeId mean = g->value[ls_in(g, n, 1).i].def;
    const LsFused *m = mean.i != 0 ? alone(g, mean, LS_OP_REDUCE_MEAN) : NULL;
    if (m == NULL || ls_in(g, mean, 0).i != ls_in(g, n, 0).i || s->var_of[mean.i] != 0
        || g->node[mean.i].phase != g->node[n.i].phase || m->axes != f->axes
        || !by_channels(g, n, f))
        return;
    s->mean_of[n.i] = mean.i;
    s->var_of[mean.i] = n.i;
    s->n++;
}

static const LsFused *joined_body(LsArena *a, const LsFused *mean)
{
    LsFused *f = ls_arena_alloc(a, 1, sizeof *f);
    *f = *mean;
    f->first = 1;
    f->nstmt = 2;
    f->stmt = ls_arena_alloc(a, 2, sizeof *f->stmt);
    f->out = ls_arena_alloc(a, 2, sizeof *f->out);
    f->stmt[0] = (LsStmt){.op = LS_OP_SUB, .type = LS_REAL, .narg = 2, .arg = {~0, ~1},
                          .name = mean->stmt[0].name};
    f->stmt[1] = (LsStmt){.op = LS_OP_MUL, .type = LS_REAL, .narg = 2, .arg = {0, 0},
                          .name = mean->stmt[0].name};
    f->out[0] = (LsFusedOut){.stmt = 0, .reduce = true, .combine = LS_SUM, .mean = true};
    f->out[1] = (LsFusedOut){.stmt = 1, .reduce = true, .combine = LS_SUM, .variance = true};
    return f;
}

static void join(LsRewrite *r, const Search *s, LsNodeId mean)
{
    const LsGraph *g = r->from;
    LsValueId x = ls_in(g, mean, 0);
    LsValueId of[] = {ls_out(g, mean, 0), ls_out(g, (LsNodeId){s->var_of[mean.i]}, 0)};
    LsAttr attr = {.fused = {.body = joined_body(r->cx->arena, ls_body_of(g, mean))}};
    ls_rewrite_append(r, LS_OP_FUSED, 2, (LsValueId[]){x, x}, 2, of, &attr);
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Search *s = r->user;
    if (s->var_of[n.i] != 0)
        join(r, s, n);
    return s->var_of[n.i] != 0 || s->mean_of[n.i] != 0;
}

uint32_t ls_join_moments(LsCtx *cx, LsGraph *g, const LsTarget *t)
{
    Search s = {.g = g};
    if (t->kind != LS_TARGET_CUDA)
        return 0;
    s.mean_of = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.mean_of);
    s.var_of = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.var_of);
    for (uint32_t i = 1; i < g->nnode; i++)
        try_variance(&s, (LsNodeId){i});
    if (s.n > 0)
        ls_rewrite(cx, g, visit, &s);
    return s.n;
}
