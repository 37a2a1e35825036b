/* codegen/fusion/implicit_pad.c -- see the header. */
#include "codegen/fusion/implicit_pad.h"

#include "codegen/fusion/drop_nodes.h"
#include "codegen/fusion/fused_alternatives.h"
#include "codegen/fusion/inline_bodies.h"
#include "codegen/kernels/loop_nest.h"

#include <string.h>

typedef struct Insets {
    LsCtx *cx;
    LsGraph *g;
    const LsTarget *target;
    bool *may;                  /* by node: its operand can be read instead of its result */
} Insets;

/* ---- which nodes ---- */

static bool is_border(const LsGraph *g, LsNodeId n)
{
    const LsPadAttr *at = &g->node[n.i].attr.pad;
    bool is = g->node[n.i].op == LS_OP_PAD && at->mode == LS_PAD_CONSTANT && at->value == 0;
    for (int k = 0; is && k < ls_in_shape(g, n, 0)->rank; k++)
        is = at->lo[k] >= 0 && at->hi[k] >= 0;
    return is;
}

/* Whether few windows share a point. Several may on a GPU, which is bound by memory. A CPU does the
 * pooling's gradient window by window faster than it finds several windows at every point. An
 * average's windows must also lie inside the image, as the divisor would differ at the edge. */
static bool is_pool_gradient(const Insets *z, LsNodeId n)
{
    enum { MOST = 255 };                            /* points of a window that a byte tells apart */
    const LsGraph *g = z->g;
    const int64_t most_terms = z->target->kind == LS_TARGET_CPU ? 1 : 4;
    LsOpCode op = g->node[n.i].op;
    if (op != LS_OP_MAX_POOL_GRAD && op != LS_OP_AVERAGE_POOL_GRAD)
        return false;
    const LsWindowAttr *w = &g->node[n.i].attr.window;
    const LsShape *dy = ls_in_shape(g, n, 0), *x = ls_shape(g, ls_out(g, n, 0));
    bool few = op == LS_OP_AVERAGE_POOL_GRAD || ls_type(g, ls_in(g, n, 1)) == LS_BOOL;
    int64_t points = 1, terms = 1;
    for (int d = 0; d < w->n; d++) {
        int64_t end = (dy->dim[2 + d] - 1) * w->stride[d] + w->kernel[d] - w->pad_lo[d];
        few &= w->dilation[d] == 1 || w->kernel[d] == 1;
        if (op == LS_OP_AVERAGE_POOL_GRAD)
            few &= w->pad_lo[d] == 0 && end <= x->dim[2 + d];
        points *= w->kernel[d];
        terms *= (w->kernel[d] + w->stride[d] - 1) / w->stride[d];
    }
    return few && points <= MOST && terms <= most_terms;
}

/* Whether rows of the operand are rows of the result, and long enough to be found one by one. */
static bool has_rows(const Insets *z, LsNodeId n)
{
    enum { SHORT = 16 };
    const LsGraph *g = z->g;
    LsValueId x = ls_in(g, n, 0), y = ls_out(g, n, 0);
    const LsShape *s = ls_shape(g, y);
    int inner = ls_innermost(s, g->value[y.i].layout);
    int64_t length = s->dim[inner];
    return s->rank > 1 && ls_shape(g, x)->dim[inner] == length && ls_is_float(ls_type(g, y))
        && ls_type(g, x) == ls_type(g, y)
        && g->value[x.i].layout == g->value[y.i].layout && !ls_is_updated(g, x)
        && (z->target->kind == LS_TARGET_CPU ? length >= SHORT : length % 4 == 0);
}

/* The body that node n runs, or NULL; *first: the node's operand that is the body's first. */
static const LsFused *body_in(const LsGraph *g, LsNodeId n, int *first)
{
    const LsComputed *c = g->node[n.i].computed;
    *first = c != NULL ? c->first : 0;
    return c != NULL ? c->body : ls_body_of(g, n);
}

/* Whether node n may find the elements of operand k itself. */
static bool takes(const LsGraph *g, LsNodeId n, int k)
{
    int first;
    const LsFused *f = body_in(g, n, &first);
    LsValueId v = ls_in(g, n, k);
    return f != NULL && k >= first && f->njoined == 0 && f->states == 0
        && f->layout == g->value[v.i].layout && ls_shape_same(&f->space, ls_shape(g, v))
        && (f->first == 0 || f->first != k - first);
}

/* Keeps nodes with a reader that cannot take the operand. Alternatives do not count: they can
 * go. */
static void look_at_readers(Insets *z)
{
    const LsGraph *g = z->g;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin && !ls_is_alternative(g, (LsNodeId){i}); k++) {
            uint32_t from = ls_dropped_maker(z->g, z->may, ls_in(g, (LsNodeId){i}, k));
            if (from != 0 && !takes(g, (LsNodeId){i}, k))
                z->may[from] = false;
        }
}

/* ---- their readers ---- */

/* How node n's operand lies in its result. */
static LsInset inset_by(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    LsInset in = {.operand = -1};
    for (int k = 0; k < LS_MAX_RANK; k++)
        in.per[k] = in.span[k] = 1;
    if (node->op == LS_OP_PAD) {
        memcpy(in.from, node->attr.pad.lo, sizeof in.from);
        return in;
    }
    const LsWindowAttr *w = &node->attr.window;
    for (int d = 0; d < w->n; d++) {
        in.per[2 + d] = w->stride[d];
        in.span[2 + d] = w->kernel[d];
        in.from[2 + d] = -w->pad_lo[d];
    }
    in.over = node->op == LS_OP_AVERAGE_POOL_GRAD;
    for (int d = 0; d < w->n; d++)
        in.over *= w->kernel[d];
    return in;
}

/* Replaces operand `at` of node n by the operand of its maker `from`. The tensor of a max pool's
 * indices comes after all other operands. first: the operand of n that is its body's first. */
static void read_inset(LsGraph *g, LsNodeId n, int at, LsNodeId from, int first, LsInset *in)
{
    LsNode *node = &g->node[n.i];
    *in = inset_by(g, from);
    in->operand = at - first;
    g->operand[node->in + (uint32_t)at] = ls_in(g, from, 0);
    if (g->node[from.i].op == LS_OP_MAX_POOL_GRAD) {
        in->which = node->nin - first;
        g->operand[node->in + node->nin++] = ls_in(g, from, 1);
    }
}

/* The operands of node n that dropped nodes make; *all: n can take each. */
static int count_sources(const Insets *z, LsNodeId n, bool *all)
{
    int count = 0;
    *all = true;
    for (int k = 0; k < z->g->node[n.i].nin; k++) {
        if (ls_dropped_maker(z->g, z->may, ls_in(z->g, n, k)) == 0)
            continue;
        count++;
        *all &= takes(z->g, n, k);
    }
    return count;
}

/* Moves the operands of node n to a new place with room for `more` after them. */
static void move_operands(LsGraph *g, LsNodeId n, int more)
{
    LsNode *node = &g->node[n.i];
    uint32_t to = g->noperand;
    g->operand = ls_arena_grow(g->arena, g->operand, to, to + (uint32_t)(node->nin + more),
                               sizeof *g->operand, &g->cap_operand);
    memcpy(g->operand + to, g->operand + node->in, node->nin * sizeof *g->operand);
    node->in = to;
    g->noperand += (uint32_t)(node->nin + more);
}

static void set_body(LsArena *a, LsNode *node, const LsFused *f)
{
    if (node->computed == NULL) {
        node->attr.fused.body = f;
        return;
    }
    LsComputed *c = ls_arena_alloc(a, 1, sizeof *c);
    *c = *node->computed;
    c->body = f;
    node->computed = c;
}

/* Lets node n read dropped nodes' operands; drops an alternative that cannot. */
static void inset_node(Insets *z, LsNodeId n)
{
    LsGraph *g = z->g;
    LsArena *a = z->cx->arena;
    LsNode *node = &g->node[n.i];
    bool all;
    int first, count = count_sources(z, n, &all), nin = node->nin;
    if (count == 0)
        return;
    if (!all) {
        *node = (LsNode){.op = LS_OP_NOP};
        return;
    }
    LsFused *f = ls_arena_alloc(a, 1, sizeof *f);
    LsInset *inset = ls_arena_alloc(a, (size_t)count, sizeof *inset);
    *f = *body_in(g, n, &first);
    f->inset = inset;
    move_operands(g, n, count);
    for (int k = 0; k < nin; k++) {
        uint32_t from = ls_dropped_maker(z->g, z->may, ls_in(g, n, k));
        if (from != 0)
            read_inset(g, n, k, (LsNodeId){from}, first, &inset[f->ninset++]);
    }
    set_body(a, node, f);
}

uint32_t ls_inset_operands(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                           uint32_t nmade)
{
    Insets z = {.cx = cx, .g = g, .target = t};
    z.may = ls_arena_alloc(cx->arena, g->nnode, sizeof *z.may);
    for (uint32_t i = 1; i < g->nnode; i++)
        z.may[i] = (is_border(g, (LsNodeId){i}) || is_pool_gradient(&z, (LsNodeId){i}))
            && has_rows(&z, (LsNodeId){i});
    ls_drop_none_wanted(g, made, nmade, z.may);
    look_at_readers(&z);
    for (uint32_t i = 1; i < g->nnode; i++)
        inset_node(&z, (LsNodeId){i});
    return ls_drop_nodes(g, t, z.may);
}
