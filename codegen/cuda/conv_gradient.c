/* codegen/cuda/conv_gradient.c -- gradients of ReLUs moved into the data gradients that they
 * read. */
#include "codegen/cuda/conv_fuse.h"
#include "codegen/cuda/conv_plan.h"
#include "codegen/fusion/inline_bodies.h"
#include "compiler/ir/rewrite.h"
#include "compiler/passes/fuse.h"

typedef struct Move {           /* by FUSED node: the ReLU gradient that moves out */
    LsNodeId conv;              /* the convolution that takes it; none: nothing moves */
    int operand, stmt;          /* the operand that is conv's result; the gradient's statement */
} Move;

typedef struct Search {
    const LsGraph *g;
    uint32_t *readers;          /* by value: its uses as operand or as result of the graph */
    Move *move;
    LsValueId *mask;            /* by convolution: the ReLU's result; none: no gradient moves in */
} Search;

/* The statement of a body that is a ReLU's gradient of operand k, if no other statement reads k;
 * else -1. */
static int gradient_of(const LsFused *f, int k)
{
    int found = -1;
    for (int s = 0; s < f->nstmt; s++)
        for (int a = 0; a < f->stmt[s].narg; a++) {
            if (f->stmt[s].arg[a] != ~k)
                continue;
            if (f->stmt[s].op != LS_OP_RELU_GRAD || a != 0 || found >= 0)
                return -1;
            found = s;
        }
    return found >= 0 && f->stmt[found].arg[1] < 0 ? found : -1;
}

/* Whether parts of the statement's value are results; no convolution stores parts. */
static bool is_in_parts(const LsGraph *g, LsNodeId n, int stmt)
{
    const LsFused *f = ls_body_of(g, n);
    bool parts = false;
    for (int k = 0; k < g->node[n.i].nout; k++)
        parts |= f->out[k].stmt == stmt && f->out[k].length > 0;
    return parts;
}

/* Whether v's elements lie in the order in which the loop walks them. */
static bool lies_as(const LsGraph *g, const LsFused *f, LsValueId v)
{
    return ls_shape_same(ls_shape(g, v), &f->space)
        && (g->value[v.i].layout == f->layout || ls_layout_free(&f->space));
}

/* Notes the move of a ReLU's gradient of operand k of FUSED node n into the convolution that makes
 * k. */
static void try_operand(Search *s, LsNodeId n, int k, const LsTarget *t)
{
    const LsGraph *g = s->g;
    const LsFused *f = ls_body_of(g, n);
    LsValueId v = ls_in(g, n, k);
    LsNodeId conv = g->value[v.i].def;
    if (conv.i == 0 || g->node[conv.i].op != LS_OP_CONV_DX || g->node[conv.i].nin != 2
        || s->readers[v.i] != 1 || g->node[conv.i].phase != g->node[n.i].phase)
        return;
    int stmt = gradient_of(f, k);
    LsValueId mask = stmt < 0 ? (LsValueId){0} : ls_in(g, n, ~f->stmt[stmt].arg[1]);
    if (!ls_is(mask) || g->value[mask.i].def.i >= conv.i || !lies_as(g, f, v)
        || !lies_as(g, f, mask) || is_in_parts(g, n, stmt)
        || !ls_conv_takes_mask(t->convs, g, conv, t->real_bytes))
        return;
    s->move[n.i] = (Move){conv, k, stmt};
    s->mask[conv.i] = mask;
}

/* ---- the new graph ---- */
static void copy_conv(LsRewrite *r, LsNodeId n, LsValueId mask)
{
    const LsGraph *from = r->from;
    LsValueId in[LS_CONV_MASK + 1] = {ls_in(from, n, 0), ls_in(from, n, 1)},
                                of = ls_out(from, n, 0);
    in[LS_CONV_MASK] = mask;
    ls_rewrite_append(r, LS_OP_CONV_DX, LS_CONV_MASK + 1, in, 1, &of, &from->node[n.i].attr);
}

/* The body without the moved statement, whose readers read the operand instead. Writes to in[] and
 * *nin the operands that are still read. */
static LsFused *rest_of(LsRewrite *r, LsNodeId n, const Move *m, LsValueId in[], int *nin)
{
    const LsFused *f = ls_body_of(r->from, n);
    int16_t *place = ls_arena_alloc(r->cx->arena, r->from->node[n.i].nin, sizeof *place);
    LsFused *to = ls_arena_alloc(r->cx->arena, 1, sizeof *to);
    *to = *f;
    to->nstmt = f->nstmt - 1;
    to->stmt = ls_arena_alloc(r->cx->arena, (size_t)f->nstmt, sizeof *to->stmt);
    *nin = 0;
    for (int s = 0, at = 0; s < f->nstmt; s++) {
        if (s == m->stmt)
            continue;
        LsStmt *st = &to->stmt[at++];
        *st = f->stmt[s];
        for (int a = 0; a < st->narg; a++) {
            int arg = st->arg[a] == m->stmt ? ~m->operand : st->arg[a];
            if (arg < 0 && place[~arg] == 0) {
                in[*nin] = ls_in(r->from, n, ~arg);
                place[~arg] = (int16_t)++*nin;
            }
            st->arg[a] = (int16_t)(arg < 0 ? -place[~arg] : arg - (arg > m->stmt));
        }
    }
    return to;
}

/* Appends the loop without the gradient. The gradient, if it was a result, is now the
 * convolution's. */
static void copy_rest(LsRewrite *r, LsNodeId n, const Move *m)
{
    const LsNode *node = &r->from->node[n.i];
    const LsFused *f = ls_body_of(r->from, n);
    LsValueId *in = ls_arena_alloc(r->cx->arena, node->nin, sizeof *in);
    LsValueId *kept = ls_arena_alloc(r->cx->arena, node->nout, sizeof *kept);
    int nin, nout = 0;
    LsFused *to = rest_of(r, n, m, in, &nin);
    to->out = ls_arena_alloc(r->cx->arena, node->nout, sizeof *to->out);
    for (int k = 0; k < node->nout; k++) {
        if (f->out[k].stmt == m->stmt) {
            r->map[ls_out(r->from, n, k).i] = ls_image(r, ls_in(r->from, n, m->operand));
            continue;
        }
        to->out[nout] = f->out[k];
        to->out[nout].stmt -= f->out[k].stmt > m->stmt;
        kept[nout++] = ls_out(r->from, n, k);
    }
    if (nout > 0)
        ls_rewrite_append(r, LS_OP_FUSED, nin, in, nout, kept, &(LsAttr){.fused = {.body = to}});
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Search *s = r->user;
    if (ls_is(s->mask[n.i]))
        copy_conv(r, n, s->mask[n.i]);
    else if (s->move[n.i].conv.i != 0)
        copy_rest(r, n, &s->move[n.i]);
    else
        return false;
    return true;
}

uint32_t ls_conv_fuse_gradients(LsCtx *cx, LsGraph *g, const LsTarget *t)
{
    Search s = {.g = g};
    uint32_t found = 0;
    if (t->kind != LS_TARGET_CUDA || t->convs == NULL)
        return 0;
    s.readers = ls_readers(cx->arena, g, true);
    s.move = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.move);
    s.mask = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.mask);
    for (uint32_t i = 1; i < g->nnode; i++) {
        for (int k = 0; k < g->node[i].nin && g->node[i].op == LS_OP_FUSED
             && s.move[i].conv.i == 0; k++)
            try_operand(&s, (LsNodeId){i}, k, t);
        found += s.move[i].conv.i != 0;
    }
    if (found > 0)
        ls_rewrite(cx, g, visit, &s);
    return found;
}
