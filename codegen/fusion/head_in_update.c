/* codegen/fusion/head_in_update.c -- see the header. */
#include "codegen/fusion/head_in_update.h"

#include "base/arena.h"
#include "codegen/fusion/drop_nodes.h"
#include "codegen/kernels/head_gradient.h"
#include "compiler/ir/optimizer.h"
#include "compiler/ir/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* One chunk: the nodes that make its share of the gradient. */
typedef struct Chunk { LsNodeId part, slope, scores; int64_t first; } Chunk;

typedef struct Head {
    const LsGraph *g;
    uint32_t *readers;          /* by value */
    LsNodeId update, table, wide;       /* table, wide: none, or the node that adds the gradient of
                                         * a table, that makes reals of the sum */
    Chunk *chunk; int chunks;
    LsValueId x;                /* of all positions */
    bool *goes;                 /* by node */
    LsHeadGradient of;
} Head;

static LsNodeId maker(const LsGraph *g, LsValueId v) { return g->value[ls_viewed(g, v).i].def; }

static const LsNode *node_at(const Head *h, LsNodeId n) { return &h->g->node[n.i]; }

/* The node that makes v for one reader only; 0: there is none. */
static LsNodeId sole(const Head *h, LsValueId v)
{
    return h->readers[v.i] == 1 ? h->g->value[v.i].def : (LsNodeId){0};
}

/* Sets the chunk from its part of the sum; false: it is no part of a head's gradient. */
static bool read_chunk(const Head *h, Chunk *c, LsValueId weight)
{
    const LsGraph *g = h->g;
    const LsNode *part = node_at(h, c->part);
    c->slope = maker(g, ls_in(g, c->part, 0));
    if (node_at(h, c->slope)->op != LS_OP_XENT_GRAD || !part->attr.gemm.trans_a
        || part->attr.gemm.trans_b)
        return false;
    c->scores = maker(g, ls_in(g, c->slope, 1));
    const LsNode *scores = node_at(h, c->scores), *slope = node_at(h, c->slope);
    c->first = slope->attr.loss.first;
    return scores->op == LS_OP_MATMUL && !scores->attr.gemm.trans_a && scores->attr.gemm.trans_b
           && slope->attr.loss.reduction == LS_LOSS_EACH && slope->attr.loss.rows > 0
           && ls_viewed(g, ls_in(g, c->scores, 1)).i == weight.i
           && (slope->attr.loss.smoothing == 0 || !ls_is(ls_in(g, c->slope, 3)))
           && ls_in(g, c->scores, 0).i == ls_in(g, c->part, 1).i;
}

static int in_order(const void *a, const void *b)
{
    const Chunk *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static int64_t rows_of(const Head *h, const Chunk *c)
{
    return ls_in_shape(h->g, c->part, 1)->dim[0];
}

/* The rows of all chunks, of which each has its own; none: they are not that. */
static LsValueId all_rows(const Head *h)
{
    LsValueId all = {0};
    int64_t at = 0;
    for (int k = 0; k < h->chunks; k++) {
        const Chunk *c = &h->chunk[k];
        const LsValueId x = ls_in(h->g, c->part, 1);
        const LsNode *cut = node_at(h, h->g->value[x.i].def);
        const bool sliced = cut->op == LS_OP_SLICE && cut->attr.slice.start[0] == c->first;
        const LsValueId of = h->chunks == 1 ? x
                             : sliced       ? ls_in(h->g, h->g->value[x.i].def, 0)
                                            : (LsValueId){0};
        if (c->first != at || !ls_is(of) || (k > 0 && of.i != all.i))
            return (LsValueId){0};
        all = of;
        at += rows_of(h, c);
    }
    return ls_shape(h->g, all)->dim[0] == at ? all : (LsValueId){0};
}

/* Part of a sum over chunks, or all of it. */
static bool is_part(const Head *h, LsNodeId n)
{
    const LsOpCode op = (LsOpCode)node_at(h, n)->op;
    return op == LS_OP_MATMUL_PART || (op == LS_OP_MATMUL && !ls_is(ls_in(h->g, n, 2)));
}

/* The chunks of the sum that makes v. */
static bool find_chunks(LsCtx *cx, Head *h, LsValueId v, LsValueId weight)
{
    const LsNodeId last = sole(h, v);
    h->chunks = 0;
    for (LsNodeId n = last; is_part(h, n); n = sole(h, ls_in(h->g, n, 2)))
        h->chunks++;
    h->chunk = ls_arena_alloc(cx->arena, (size_t)h->chunks + 1, sizeof *h->chunk);
    LsNodeId n = last;
    for (int k = 0; k < h->chunks; k++, n = sole(h, ls_in(h->g, n, 2))) {
        h->chunk[k].part = n;
        if (!read_chunk(h, &h->chunk[k], weight))
            return false;
    }
    if (h->chunks == 0 || ls_is(ls_in(h->g, h->chunk[h->chunks - 1].part, 2)))
        return false;
    qsort(h->chunk, (size_t)h->chunks, sizeof *h->chunk, in_order);
    h->x = all_rows(h);
    return ls_is(h->x);
}

/* Whether the node makes reals of all elements of its operand, which are of 16 bits. */
static bool widens(const Head *h, LsNodeId n, const LsShape *shape)
{
    const LsNode *node = node_at(h, n);
    const LsFused *f = node->op == LS_OP_FUSED ? node->attr.fused.body : NULL;
    return f != NULL && node->nin == 1 && node->nout == 1 && f->nstmt == 1 && !f->out[0].reduce
           && ls_is_16(ls_type(h->g, ls_in(h->g, n, 0)))
           && ls_type(h->g, ls_out(h->g, n, 0)) == LS_REAL && ls_shape_same(&f->space, shape)
           && ls_shape_same(ls_in_shape(h->g, n, 0), shape);
}

/* Whether the update reads the gradient of a head, which nothing else reads. */
static bool find_head(LsCtx *cx, Head *h, LsNodeId update)
{
    const LsGraph *g = h->g;
    const LsValueId weight = ls_in(g, update, 0);
    LsValueId v = ls_in(g, update, 1);
    const LsNodeId table = sole(h, v);
    h->update = update;
    h->table = h->wide = (LsNodeId){0};
    if (!ls_is(v) || ls_shape(g, weight)->rank != 2)
        return false;
    if (node_at(h, table)->op == LS_OP_GATHER_GRAD && node_at(h, table)->attr.gather.axis == 0
        && ls_is(ls_in(g, table, 2)) && ls_in_shape(g, table, 0)->rank > 1) {
        h->table = table;
        v = ls_in(g, table, 2);
    }
    if (widens(h, sole(h, v), ls_shape(g, weight))) {
        h->wide = sole(h, v);
        v = ls_in(g, h->wide, 0);
    }
    return find_chunks(cx, h, v, weight);
}

/* What keeps the update from computing its gradient; NULL: nothing. */
static const char *hindrance(const Head *h)
{
    const LsNode *n = node_at(h, h->update);
    const LsRule *rule = ls_rule_of((LsOpCode)n->op);
    const LsShape *p = ls_in_shape(h->g, h->update, 0);
    const int64_t block =
        ls_rule_has_codes(rule) ? ls_code_block(n->attr.update.hyper.bits) : 1;
    if (n->nout > 0)
        return "its optimizer needs the whole gradient before the first step";
    if (ls_is(ls_in(h->g, h->update, ls_rule_acc(rule))))
        return "its gradient adds up over several batches or parts of one";
    if (ls_is(ls_in(h->g, h->update, ls_rule_factor(rule))))
        return "its step has a factor that depends on all gradients";
    if (n->attr.update.sliced)
        return "ranks share its update";
    if (n->attr.update.hyper.bf16 != 0)
        return "its moments are in bfloat16";
    if (h->of.part * p->dim[1] % block != 0 || p->dim[0] % h->of.part * p->dim[1] % block != 0)
        return "its moments are codes, whose blocks end within a row";
    return NULL;
}

/* So many classes that their scores take about a third of x. */
static int64_t part_of(const LsShape *p)
{
    enum { SHARE = 3, UNIT = 32 };
    const int64_t part = (p->dim[1] / SHARE + UNIT) / UNIT * UNIT;
    return part < p->dim[0] ? part : p->dim[0];
}

/* The type of the whole sum: that of the part which is added last. */
static LsType sum_type(const Head *h)
{
    LsType type = LS_REAL;
    for (int k = 0; k < h->chunks; k++) {
        const LsType own = ls_type(h->g, ls_out(h->g, h->chunk[k].part, 0));
        type = ls_is_16(own) ? own : type;
    }
    return type;
}

static void describe(Head *h)
{
    const LsNode *part = node_at(h, h->chunk[0].part), *slope = node_at(h, h->chunk[0].slope),
                 *scores = node_at(h, h->chunk[0].scores);
    const LsShape *p = ls_in_shape(h->g, h->update, 0);
    LsHeadGradient *of = &h->of;
    *of = (LsHeadGradient){.part = part_of(p),
                           .scores = scores->attr.gemm,
                           .sum = part->attr.gemm,
                           .scores_rounds = scores->rounds,
                           .sum_rounds = part->rounds,
                           .scores_type = ls_type(h->g, ls_out(h->g, h->chunk[0].scores, 0)),
                           .slope_type = ls_type(h->g, ls_out(h->g, h->chunk[0].slope, 0)),
                           .sum_type = sum_type(h),
                           .widens = h->wide.i != 0 ? node_at(h, h->wide)->attr.fused.body : NULL,
                           .loss = slope->attr.loss};
    of->scores.part = of->sum.part = false;
    of->loss.first = of->loss.rows = 0;
    of->loss.nclass = p->dim[0];
    if (h->table.i != 0)
        of->table = node_at(h, h->table)->attr.gather;
}

/* ---- the new node ---- */

/* Operand k of node `of` of each chunk, one behind the other. */
static LsValueId together(LsRewrite *r, const Head *h, int k)
{
    LsValueId *in = ls_arena_alloc(r->cx->arena, (size_t)h->chunks, sizeof *in);
    int64_t rows = 0;
    for (int c = 0; c < h->chunks; c++) {
        in[c] = ls_image(r, ls_in(h->g, h->chunk[c].slope, k));
        rows += ls_count(ls_shape(r->to, in[c]));
    }
    if (h->chunks == 1)
        return in[0];
    const LsType type = ls_type(r->to, in[0]);
    const LsNodeId n =
        ls_append_bare(r->to, LS_OP_CONCAT, h->chunks, in, 1, &(LsAttr){.axis = {0}});
    LsShape shape = *ls_shape(r->to, in[0]);
    shape.dim[0] = rows;
    ls_set_out(r->to, n, 0, type, &shape);
    r->to->node[n.i].phase = LS_BACKWARD;
    return ls_out(r->to, n, 0);
}

static void append(LsRewrite *r, const Head *h)
{
    const LsGraph *g = r->from;
    const LsNode *node = &g->node[h->update.i];
    const int own = ls_rule_shared(ls_rule_of((LsOpCode)node->op)) + 1;
    LsValueId *in =
        ls_arena_alloc(r->cx->arena, (size_t)own + LS_HEAD_OPERANDS, sizeof *in), *of = in + own;
    for (int k = 0; k < node->nin; k++)
        if (k != 1 && ls_is(ls_in(g, h->update, k)))
            in[k] = ls_image(r, ls_in(g, h->update, k));
    const Chunk *c = &h->chunk[0];
    of[LS_HEAD_X] = ls_image(r, h->x);
    of[LS_HEAD_DLOSS] = together(r, h, 0);
    of[LS_HEAD_LABEL] = together(r, h, 2);
    of[LS_HEAD_LSE] = together(r, h, 4);
    if (ls_is(ls_in(g, c->slope, 3)))
        of[LS_HEAD_WEIGHTS] = ls_image(r, ls_in(g, c->slope, 3));
    if (ls_is(ls_in(g, c->scores, 2)))
        of[LS_HEAD_BIAS] = ls_image(r, ls_in(g, c->scores, 2));
    if (h->table.i != 0) {
        of[LS_HEAD_DY] = ls_image(r, ls_in(g, h->table, 0));
        of[LS_HEAD_INDEX] = ls_image(r, ls_in(g, h->table, 1));
    }
    const LsNodeId to =
        ls_append_bare(r->to, (LsOpCode)node->op, own + LS_HEAD_OPERANDS, in, 0, &node->attr);
    LsHeadGradient *head = ls_arena_alloc(r->cx->arena, 1, sizeof *head);
    LsComputed *computed = ls_arena_alloc(r->cx->arena, 1, sizeof *computed);
    *head = h->of;
    *computed = (LsComputed){.operand = 1, .first = own, .head = head};
    r->to->node[to.i].computed = computed;
    r->to->node[to.i].rounds = h->of.scores_rounds;
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Head *h = r->user;
    if (n.i == h->update.i)
        append(r, h);
    return h->goes[n.i] || n.i == h->update.i;
}

/* Marks the nodes that make the gradient; false: somebody wants to see it. */
static bool mark(LsCtx *cx, Head *h, const char *const *made, uint32_t nmade)
{
    bool wanted = false;
    h->goes = ls_arena_alloc(cx->arena, h->g->nnode, sizeof *h->goes);
    for (int k = 0; k < h->chunks; k++) {
        h->goes[h->chunk[k].part.i] = true;
        wanted |= ls_is_named(h->g, h->chunk[k].part, made, nmade);
    }
    h->goes[h->table.i] = h->table.i != 0;
    h->goes[h->wide.i] |= h->wide.i != 0;
    return !wanted && (h->table.i == 0 || !ls_is_named(h->g, h->table, made, nmade));
}

static bool refuse(LsCtx *cx, const char *why)
{
    return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "leave --head-gradient out",
                    "--head-gradient=parts: %s", why);
}

bool ls_head_in_update(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                       uint32_t nmade)
{
    Head h = {.g = g, .readers = ls_readers(cx->arena, g, false)};
    bool found = false;
    if (t->kind != LS_TARGET_CPU)
        return refuse(cx, "only programs for the CPU have such an update");
    for (uint32_t i = 1; i < g->nnode && !found; i++)
        found = ls_rule_of((LsOpCode)g->node[i].op) != NULL && g->node[i].computed == NULL
                && find_head(cx, &h, (LsNodeId){i});
    if (!found)
        return refuse(cx, "no update reads the gradient of a head's weight, [classes, columns], "
                      "which nothing else reads; --clip-norm and a loss scale do");
    describe(&h);
    const char *why = hindrance(&h);
    if (why == NULL && !mark(cx, &h, made, nmade))
        why = "its gradient is to be made as a value";
    if (why != NULL)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "leave --head-gradient out",
                        "--head-gradient=parts: the update of '%s' cannot compute its gradient: %s",
                        g->value[ls_in(g, h.update, 0).i].name, why);
    ls_rewrite(cx, g, visit, &h);
    ls_forget_gradients(g);
    return true;
}
