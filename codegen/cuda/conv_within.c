/* codegen/cuda/conv_within.c -- which convolutions take in their readers; see conv_within.h. */
#include "codegen/cuda/conv_within.h"

#include "codegen/fusion/inline_bodies.h"
#include "codegen/kernels/computed_operand.h"
#include "compiler/cost/roofline.h"
#include "compiler/ir/rewrite.h"
#include "runtime/cuda_kernels/ls_cuda_sizes.h"

enum { BLOCKS = 6 };            /* most blocks per multiprocessor, which runs two at a time */

typedef struct Pair {           /* by node: */
    uint32_t reader;            /* of a convolution: the FUSED node that it takes in; 0: none */
    uint32_t conv;              /* of a FUSED node: the convolution that takes it in; 0: none */
    bool kept;                  /* of a convolution: other nodes read its result */
} Pair;

typedef struct Search {
    const LsGraph *g;
    const LsTarget *target;
    const LsMachine *machine;
    LsMachine fast;             /* machine with TF32 costs, for products */
    Pair *pair;
} Search;

LsWithinSize ls_within_size(const LsGraph *g, LsNodeId n)
{
    const LsConvFusedAttr *at = &g->node[n.i].attr.conv_fused;
    const LsShape *x = ls_in_shape(g, n, at->nbody), *w = ls_in_shape(g, n, at->nbody + 1);
    LsWithinSize s = {.rows = ls_count(x) / x->dim[1], .columns = w->dim[at->data],
                      .depth = x->dim[1]};
    bool narrow = s.columns <= 3 * 64 && (s.columns + 63) / 64 % 2 == 1;
    s.n = narrow ? 4 : 8;
    s.down = ls_ceil_div(s.rows, LS_TILE_ROWS);
    s.across = ls_ceil_div(s.columns, LS_TILE_COLUMNS(s.n));
    return s;
}

/* ---- readers that may be taken in ---- */
/* Whether it has one tap, on every point, and channels in fours. */
static bool is_product(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsWindowAttr *at = &node->attr.window;
    if ((node->op != LS_OP_CONV && node->op != LS_OP_CONV_DX) || node->nin != 2 || at->group != 1
        || at->relu)
        return false;
    const LsShape *w = ls_in_shape(g, n, 1);
    for (int d = 0; d < at->n; d++)
        if (w->dim[2 + d] != 1 || at->stride[d] != 1 || at->pad_lo[d] != 0 || at->pad_hi[d] != 0)
            return false;
    return w->dim[0] % 4 == 0 && w->dim[1] % 4 == 0
        && g->value[ls_in(g, n, 1).i].rows_behind == 0;
}

/* Whether the node only computes mean and variance of its operand (moments.h). */
static bool is_moments(const LsGraph *g, LsNodeId n)
{
    const LsFused *f = ls_body_of(g, n);
    return f->first == 1 && g->node[n.i].nin == 2 && g->node[n.i].nout == 2 && f->out[0].mean
        && f->out[1].variance && ls_in(g, n, 0).i == ls_in(g, n, 1).i;
}

/* Whether the result is a part of the channels, in fours. */
static bool is_part(const LsFused *f, const LsFusedOut *o)
{
    return f->split == 1 && o->from % 4 == 0 && o->length % 4 == 0;
}

/* Whether each result is stored, all channels or some, or is a sum over all axes but the channels. */
static bool results_fit(const LsGraph *g, LsNodeId n)
{
    const LsFused *f = ls_body_of(g, n);
    int sums = 0;
    for (int k = 0; k < g->node[n.i].nout; k++) {
        const LsFusedOut *o = &f->out[k];
        if ((o->length > 0 && !is_part(f, o)) || (o->reduce && o->combine != LS_SUM) || o->variance
            || ls_type(g, ls_out(g, n, k)) != LS_REAL)
            return false;
        sums += o->reduce;
    }
    return sums <= LS_WITHIN_SUMS && (sums == 0 || f->first == 0)
        && (f->axes == 0 || f->axes == (((1u << f->space.rank) - 1) & ~2u));
}

/* Whether later passes let a FUSED node's kernel read this value at its source. */
static bool is_found_in_place(const LsGraph *g, LsValueId v)
{
    int op = g->node[g->value[ls_viewed(g, v).i].def.i].op;
    return op == LS_OP_PAD || op == LS_OP_MAX_POOL_GRAD;
}

/* Whether the layout of operand k lets a thread find its four numbers for four channels. */
static bool operand_fits(const LsGraph *g, LsNodeId n, int k)
{
    const LsFused *f = ls_body_of(g, n);
    int64_t stride[2];
    return !is_found_in_place(g, ls_in(g, n, k))
        && ls_computed_strides(g, ls_in(g, n, k), &f->space, LS_LAST, 1, stride);
}

static bool reader_fits(const LsGraph *g, LsNodeId n, LsNodeId conv)
{
    const LsFused *f = ls_body_of(g, n);
    const LsValueId v = ls_out(g, conv, 0);
    int reads = 0;
    if (f == NULL || f->layout != LS_LAST || !ls_shape_same(&f->space, ls_shape(g, v))
        || g->node[n.i].phase != g->node[conv.i].phase || f->njoined > 0 || f->ninset > 0)
        return false;
    if (is_moments(g, n))
        return true;
    for (int k = 0; k < g->node[n.i].nin; k++) {
        if (!operand_fits(g, n, k) || g->value[ls_in(g, n, k).i].def.i > conv.i)
            return false;
        reads += ls_in(g, n, k).i == v.i;
    }
    return reads == 1 && f->first == 0 && !ls_fused_asks_for_index(f) && results_fit(g, n);
}

/* ---- the new node ---- */
static LsStmt as_it_is(const char *name)
{
    return (LsStmt){.op = LS_OP_CAST, .type = LS_REAL, .narg = 1, .arg = {~0}, .name = name,
                    .attr = {.cast = LS_REAL}};
}

/* Fills a body with mean and variance of the product. */
static void moments_body(LsFused *to, int kept, const char *name)
{
    to->stmt[0] = as_it_is(name);
    to->nstmt = 1;
    to->first = 0;
    to->out[kept] = (LsFusedOut){.reduce = true, .combine = LS_SUM, .mean = true};
    to->out[kept + 1] = (LsFusedOut){.reduce = true, .combine = LS_SUM, .variance = true};
}

/* The reader's body with the product as operand 0, followed by the reader's other operands in[1 ...]; *nin
 * counts all. */
static LsFused *body_around(LsArena *a, const LsGraph *g, LsNodeId n, LsValueId v, bool kept,
                            LsValueId *in, int *nin)
{
    const LsNode *node = &g->node[n.i];
    const LsFused *f = ls_body_of(g, n);
    LsFused *to = ls_arena_alloc(a, 1, sizeof *to);
    *to = *f;
    to->stmt = ls_arena_alloc(a, (size_t)f->nstmt + kept, sizeof *to->stmt);
    to->out = ls_arena_alloc(a, (size_t)node->nout + kept, sizeof *to->out);
    *nin = 1;
    if (is_moments(g, n)) {
        moments_body(to, kept, node->name);
        return to;
    }
    int16_t *place = ls_arena_alloc(a, node->nin, sizeof *place);
    for (int k = 0; k < node->nin; k++) {
        place[k] = (int16_t)(ls_in(g, n, k).i == v.i ? 0 : *nin);
        if (place[k] > 0)
            in[(*nin)++] = ls_in(g, n, k);
    }
    to->nstmt = f->nstmt + kept;
    if (kept)
        to->stmt[0] = as_it_is(node->name);
    for (int s = 0; s < f->nstmt; s++) {
        LsStmt *st = &to->stmt[s + kept];
        *st = f->stmt[s];
        for (int c = 0; c < st->narg; c++)
            st->arg[c] = (int16_t)(st->arg[c] < 0 ? ~place[~st->arg[c]] : st->arg[c] + kept);
    }
    for (int k = 0; k < node->nout; k++) {
        to->out[k + kept] = f->out[k];
        to->out[k + kept].stmt += kept;
    }
    return to;
}

/* Appends convolution n and its reader as one node. */
static void append(LsRewrite *r, LsNodeId n, const Pair *p)
{
    const LsGraph *g = r->from;
    LsNodeId reader = {p->reader};
    const LsNode *node = &g->node[reader.i];
    LsArena *a = r->cx->arena;
    LsValueId *in = ls_arena_alloc(a, node->nin + 3u, sizeof *in);
    LsValueId *of = ls_arena_alloc(a, node->nout + 1u, sizeof *of);
    int nin;
    LsFused *f = body_around(a, g, reader, ls_out(g, n, 0), p->kept, in, &nin);
    LsAttr at = {.conv_fused = {.body = f, .nbody = nin,
                                 .data = g->node[n.i].op == LS_OP_CONV_DX}};
    in[nin] = ls_in(g, n, 0);
    in[nin + 1] = ls_in(g, n, 1);
    of[0] = ls_out(g, n, 0);
    for (int k = 0; k < node->nout; k++)
        of[k + p->kept] = ls_out(g, reader, k);
    if (p->kept)
        f->out[0] = (LsFusedOut){.stmt = 0};
    LsNodeId to = ls_rewrite_append(r, LS_OP_CONV_FUSED, nin + 2, in, node->nout + p->kept, of, &at);
    const LsWithinSize s = ls_within_size(r->to, to);
    r->to->node[to.i].attr.conv_fused.tiles =
        ls_ceil_div(s.down * s.across, LS_GPU_PROCESSORS * BLOCKS);
}

/* The new node takes the convolution's place, where all operands exist. */
static bool visit(LsRewrite *r, LsNodeId n)
{
    const Pair *p = &((const Search *)r->user)->pair[n.i];
    if (p->reader != 0)
        append(r, n, p);
    else if (p->conv != 0)
        r->image = r->to->value[ls_image(r, ls_out(r->from, n, 0)).i].def;
    return p->reader != 0 || p->conv != 0;
}

/* ---- which ones ---- */
static LsWork work(const Search *s, LsNodeId n)
{
    return ls_node_work(s->g, n, s->machine, LS_WAY_DIRECT, s->target->real_bytes);
}

/* Whether fusing is faster: the result is not read, and not written unless another node reads it. */
static bool pays(const Search *s, LsNodeId conv, LsNodeId reader, bool kept)
{
    double bytes = (double)ls_value_bytes(s->g, ls_out(s->g, conv, 0), s->target->real_bytes);
    const LsWork c = work(s, conv), f = work(s, reader);
    const LsWork both = {.kind = LS_COST_CONV_FUSED, .flops = c.flops,
                         .read = c.read + f.read - bytes,
                         .written = c.written + f.written - (kept ? 0 : bytes)};
    const int bytes_of = s->target->real_bytes;
    return ls_work_ns(&s->fast, &both, bytes_of)
        < ls_work_ns(&s->fast, &c, bytes_of) + ls_work_ns(s->machine, &f, bytes_of);
}

static bool try_conv(Search *s, LsNodeId n)
{
    const LsGraph *g = s->g;
    Pair *p = &s->pair[n.i];
    if (!is_product(g, n))
        return false;
    LsNodeId reader = ls_first_reader(g, ls_out(g, n, 0), &p->kept);
    if (reader.i == 0 || s->pair[reader.i].conv != 0 || !reader_fits(g, reader, n)
        || !pays(s, n, reader, p->kept))
        return false;
    p->reader = reader.i;
    s->pair[reader.i].conv = n.i;
    return true;
}

uint32_t ls_conv_within(LsCtx *cx, LsGraph *g, const LsTarget *t, const LsMachine *m)
{
    Search s = {.g = g, .target = t, .machine = m, .fast = ls_machine_with_peak(m, LS_PEAK_TF32)};
    uint32_t found = 0;
    if (t->kind != LS_TARGET_CUDA || !t->tf32 || t->real_bytes != 4)
        return 0;
    s.pair = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.pair);
    for (uint32_t i = 1; i < g->nnode; i++)
        found += try_conv(&s, (LsNodeId){i});
    if (found > 0)
        ls_rewrite(cx, g, visit, &s);
    return found;
}
