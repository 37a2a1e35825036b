/* codegen/tiling/tile_samples.c -- see the header. */
#include "codegen/tiling/tile_samples.h"

#include "codegen/kernels/conv.h"
#include "codegen/kernels/reduce.h"
#include "codegen/tiling/loss_sums.h"
#include "codegen/tiling/tile_loss.h"
#include "codegen/tiling/tile_order.h"
#include "codegen/tiling/tile_picture.h"
#include "codegen/tiling/tile_tokens.h"

#include <inttypes.h>

/* Some rows of a value, which lie in no tile by themselves. The backward part has its own: they are
 * copies, which are cheaper to make than to keep. */
typedef struct LsTileRows {
    LsSpan span;
    LsPhase phase;
    LsValueId v;
    struct LsTileRows *next;
} LsTileRows;

LsTilePlace *ls_tile_place(LsRewrite *r, const LsTiler *s, LsSpan own, int64_t of, int t)
{
    LsTilePlace *at = ls_arena_alloc(r->cx->arena, 1, sizeof *at);
    *at = (LsTilePlace){.first = own.first, .of = of, .axis = s->r.axis, .number = t};
    return at;
}

static int64_t count_of(LsSpan s) { return s.end - s.first; }
static bool is_span(LsSpan a, LsSpan b) { return a.first == b.first && a.end == b.end; }

/* Sets result k of node `to`: samples or rows of the value `of`. */
static void set_tile(LsRewrite *r, const LsTiler *s, LsNodeId to, int k, LsValueId of, LsSpan own,
                     const char *name)
{
    const LsValue *old = &r->from->value[of.i];
    LsShape shape = old->shape;
    shape.dim[s->r.axis] = count_of(own);
    const LsValueId v = ls_out(r->to, to, k);
    r->to->value[v.i].name = name;
    r->to->value[v.i].layout = old->layout;
    ls_set_out(r->to, to, k, old->type, &shape);
}

static const char *tile_name(LsRewrite *r, LsValueId of, int t)
{
    return ls_arena_printf(r->cx->arena, "%s.%d", r->from->value[of.i].name, t);
}

static const char *rows_name(LsRewrite *r, LsValueId of, LsSpan rows)
{
    return ls_arena_printf(r->cx->arena, "%s.%" PRId64 "-%" PRId64, r->from->value[of.i].name,
                           rows.first, rows.end);
}

/* Samples or rows `own` of value v, of which `in` has those from `begin` on, for tile t. */
static LsValueId slice(LsRewrite *r, const LsTiler *s, LsValueId v, LsValueId in, int64_t begin,
                       LsSpan own, int t, const char *name)
{
    const LsShape *x = ls_shape(r->to, in);
    LsAttr at = {0};
    for (int k = 0; k < x->rank; k++) {
        at.slice.stop[k] = x->dim[k];
        at.slice.step[k] = 1;
    }
    at.slice.start[s->r.axis] = own.first - begin;
    at.slice.stop[s->r.axis] = own.end - begin;
    const LsNodeId n = ls_append_bare(r->to, LS_OP_SLICE, 1, &in, 1, &at);
    r->to->node[n.i].tile = ls_tile_place(r, s, own, ls_shape(r->from, v)->dim[s->r.axis], t);
    set_tile(r, s, n, 0, v, own, name);
    return ls_out(r->to, n, 0);
}

/* Rows of value v for tile t, put together from those of its tiles. */
static LsValueId join(LsRewrite *r, const LsTiler *s, LsValueId v, LsSpan rows, int t)
{
    LsValueId *in = ls_arena_alloc(r->cx->arena, (size_t)s->r.tiles, sizeof *in);
    int nin = 0;
    for (int k = 0; k < s->r.tiles; k++) {
        const LsSpan own = ls_tile_span(&s->r, v, k);
        const LsSpan both = {own.first > rows.first ? own.first : rows.first,
                             own.end < rows.end ? own.end : rows.end};
        const LsValueId tile = *ls_tile_of(s, v, k);
        if (count_of(both) > 0)
            in[nin++] = is_span(both, own) ? tile
                                           : slice(r, s, v, tile, own.first, both, t,
                                                   rows_name(r, v, both));
    }
    if (nin == 1)
        return in[0];
    const LsNodeId n =
        ls_append_bare(r->to, LS_OP_CONCAT, nin, in, 1, &(LsAttr){.axis = {s->r.axis}});
    r->to->node[n.i].tile = ls_tile_place(r, s, rows, ls_shape(r->from, v)->dim[s->r.axis], t);
    set_tile(r, s, n, 0, v, rows, rows_name(r, v, rows));
    return ls_out(r->to, n, 0);
}

/* Rows of value v for tile t of a node of that part. */
static LsValueId rows_of(LsRewrite *r, const LsTiler *s, LsValueId v, LsSpan rows, int t,
                         LsPhase phase)
{
    for (const LsTileRows *k = s->rows[v.i]; k != NULL; k = k->next)
        if (is_span(k->span, rows) && k->phase == phase)
            return k->v;
    LsTileRows *own = ls_arena_alloc(r->cx->arena, 1, sizeof *own);
    *own = (LsTileRows){.span = rows, .phase = phase, .next = s->rows[v.i]};
    own->v = ls_is(*ls_tile_of(s, v, 0))
                 ? join(r, s, v, rows, t)
                 : slice(r, s, v, ls_image(r, v), 0, rows, t, rows_name(r, v, rows));
    s->rows[v.i] = own;
    return own->v;
}

LsValueId ls_tile_operand(LsRewrite *r, const LsTiler *s, LsNodeId n, int k, int t)
{
    const LsValueId v = ls_in(r->from, n, k);
    if (!ls_is(v) || !ls_tile_reads(&s->r, n, k))
        return ls_is(v) ? ls_image(r, v) : v;
    const LsSpan own = ls_tile_reads_span(&s->r, n, k, t);
    if (s->r.axis > 0 || s->r.tokens > 1)
        return rows_of(r, s, v, own, t, r->from->node[n.i].phase);
    LsValueId *tile = ls_tile_of(s, v, t);
    if (!ls_is(*tile))
        *tile = slice(r, s, v, ls_image(r, v), 0, own, t, tile_name(r, v, t));
    return *tile;
}

/* The whole value `of` with one more tile. */
static void place(LsRewrite *r, LsTiler *s, LsValueId of, int t)
{
    const LsValueId in[] = {*ls_tile_of(s, of, t), s->base[of.i]};
    LsAttr at = {.slice = {.x = *ls_shape(r->from, of)}};
    const LsSpan own = ls_tile_span(&s->r, of, t);
    at.slice.start[s->r.axis] = own.first;
    const LsNodeId n = ls_append_bare(r->to, LS_OP_PLACE, t > 0 ? 2 : 1, in, 1, &at);
    r->to->node[n.i].tile = ls_tile_place(r, s, own, ls_shape(r->from, of)->dim[s->r.axis], t);
    ls_rewrite_result(r, n, 0, of);
    s->base[of.i] = ls_out(r->to, n, 0);
    if (own.end < ls_shape(r->from, of)->dim[s->r.axis])
        r->to->value[s->base[of.i].i].name =
            ls_arena_printf(r->cx->arena, "%s..%d", r->from->value[of.i].name, t);
}

void ls_tile_set_state(LsRewrite *r, LsTiler *s, LsNodeId to, int k, LsValueId of, LsType type,
                       int64_t elements, int t)
{
    const LsValueId v = ls_out(r->to, to, k);
    r->to->value[v.i].name =
        ls_arena_printf(r->cx->arena, "%s+%d", r->from->value[of.i].name, t);
    ls_set_out(r->to, to, k, type, &(LsShape){1, {elements}});
    s->state[of.i] = v;
}

/* The sum of a product's terms so far; that of the last ones is the result. */
static void set_product(LsRewrite *r, LsTiler *s, LsNodeId to, LsValueId of, int t, bool last)
{
    ls_rewrite_result(r, to, 0, of);
    s->state[of.i] = ls_out(r->to, to, 0);
    if (!last)
        r->to->value[s->state[of.i].i].name =
            ls_arena_printf(r->cx->arena, "%s+%d", r->from->value[of.i].name, t);
}

/* ---- nodes ---- */

/* What one node of a tile makes: some results of a node, by the operands that these need. */
typedef struct Part {
    const LsFused *body;        /* of a FUSED node */
    int operand[LS_TILE_OPERANDS], nin;     /* by operand: of the node */
    int result[LS_MAX_OUT], nout;           /* by result: of the node */
} Part;

/* Marks the statements that results of the part need, last to first. */
static void mark(const LsFused *f, const Part *p, bool *need)
{
    for (int k = 0; k < p->nout; k++)
        need[f->out[p->result[k]].stmt] = true;
    for (int s = f->nstmt; s-- > 0;)
        for (int c = 0; need[s] && c < f->stmt[s].narg; c++)
            if (f->stmt[s].arg[c] >= 0)
                need[f->stmt[s].arg[c]] = true;
}

/* The number in the part of operand k of the node. */
static int operand_in(Part *p, int k)
{
    for (int i = 0; i < p->nin; i++)
        if (p->operand[i] == k)
            return i;
    p->operand[p->nin] = k;
    return p->nin++;
}

/* The statements and operands that the results of the part need. */
static void keep_needed(LsArena *a, const LsFused *f, Part *p, LsFused *to)
{
    bool *need = ls_arena_alloc(a, (size_t)f->nstmt, sizeof *need);
    int *at = ls_arena_alloc(a, (size_t)f->nstmt, sizeof *at);
    mark(f, p, need);
    to->stmt = ls_arena_alloc(a, (size_t)f->nstmt, sizeof *to->stmt);
    to->out = ls_arena_alloc(a, (size_t)p->nout, sizeof *to->out);
    to->nstmt = 0;
    for (int s = 0; s < f->nstmt; s++) {
        if (!need[s])
            continue;
        LsStmt *own = &to->stmt[at[s] = to->nstmt++];
        *own = f->stmt[s];
        for (int c = 0; c < own->narg; c++)
            own->arg[c] = (int16_t)(own->arg[c] >= 0 ? at[own->arg[c]]
                                                     : ~operand_in(p, ~own->arg[c]));
    }
    for (int k = 0; k < p->nout; k++) {
        to->out[k] = f->out[p->result[k]];
        to->out[k].stmt = at[to->out[k].stmt];
    }
}

/* The part of node n that makes its sums, or its other results, in a tile of `count` samples or
 * rows. Those are made apart, so that they can run again without the sums. */
static Part part_of(LsRewrite *r, const LsTiler *s, LsNodeId n, bool sums, int64_t count)
{
    const LsNode *node = &r->from->node[n.i];
    Part p = {.nin = 0};
    for (int k = 0; k < node->nout; k++)
        if (ls_tile_makes(&s->r, n, k) != sums)
            p.result[p.nout++] = k;
    if (node->op != LS_OP_FUSED || p.nout == 0) {
        for (; p.nin < (node->op == LS_OP_XENT ? 1 : node->nin); p.nin++)
            p.operand[p.nin] = p.nin;
        return p;
    }
    LsFused *f = ls_arena_alloc(r->cx->arena, 1, sizeof *f);
    *f = *node->attr.fused.body;
    keep_needed(r->cx->arena, node->attr.fused.body, &p, f);
    f->space.dim[s->r.axis] = count;
    f->axes = sums || (s->r.axis == 0 && !(f->axes & 1)) ? f->axes : 0;
    f->states = sums ? p.nin : 0;
    p.body = f;
    return p;
}

static LsAttr attr_of(LsRewrite *r, const LsTiler *s, LsNodeId n, const Part *p, LsSpan own, int t)
{
    const LsNode *node = &r->from->node[n.i];
    LsAttr at = node->attr;
    if (node->op == LS_OP_FUSED)
        at.fused.body = p->body;
    else if (node->op == LS_OP_SLICE)
        at.slice.stop[s->r.axis] = count_of(own);
    else if (s->r.axis > 0)
        ls_picture_attr(&s->r, n, t, &at);
    else
        ls_tile_row_attr(r->from, n, own, &at);
    return at;
}

/* The operator of a node of a tile. */
static LsOpCode op_of(const LsRewrite *r, LsNodeId n)
{
    const LsOpCode op = (LsOpCode)r->from->node[n.i].op;
    return op == LS_OP_CONV_DW             ? LS_OP_CONV_DW_PART
           : op == LS_OP_XENT              ? LS_OP_XENT_LSE
           : ls_tile_sums_rows(r->from, n) ? LS_OP_MATMUL_PART
                                           : op;
}

/* The parts of the state of a sum, and their elements; parts 0: they are no parts. */
static void state_of(const LsRewrite *r, const LsTiler *s, LsNodeId n, int64_t *parts,
                     int64_t *points)
{
    *parts = 0;
    *points = 0;
    if (ls_tile_sums_rows(r->from, n))
        return;
    if (r->from->node[n.i].op == LS_OP_FUSED)
        ls_reduce_may_go_on(r->from, n, s->r.target, (LsTilePlace){.axis = s->r.axis}, parts,
                            points);
    else
        ls_conv_may_go_on(r->from, n, s->r.target, parts, points);
}

/* Appends what makes the results of the part in tile t; its sums go on with those of tile t - 1. */
static void add_part(LsRewrite *r, LsTiler *s, LsNodeId n, const Part *p, bool sums, int t)
{
    const LsNode *node = &r->from->node[n.i];
    const bool weights = node->op != LS_OP_FUSED;
    LsValueId *in = ls_arena_alloc(r->cx->arena, (size_t)(p->nin + p->nout), sizeof *in);
    int nin = 0;
    int64_t parts = 0, points = 0, all;
    const LsSpan own = ls_tile_makes_span(&s->r, n, t, &all);
    const bool goes_on = sums && ls_is(s->state[ls_out(r->from, n, p->result[0]).i]);
    for (; nin < p->nin; nin++)
        in[nin] = ls_tile_operand(r, s, n, p->operand[nin], t);
    for (int k = 0; k < p->nout && goes_on; k++)
        in[nin++] = s->state[ls_out(r->from, n, p->result[k]).i];
    const LsAttr at = attr_of(r, s, n, p, own, t);
    const LsNodeId to = ls_append_bare(r->to, op_of(r, n), nin, in, p->nout, &at);
    LsTilePlace *at_place = ls_tile_place(r, s, own, all, t);
    r->to->node[to.i].tile = at_place;
    r->to->node[to.i].rounds = node->rounds;
    if (node->op == LS_OP_CONV_DW && s->r.axis > 0) {
        const LsSpan terms = ls_picture_terms(&s->r, n, t);
        at_place->from = terms.first;
        at_place->to = terms.end;
    }
    if (s->r.axis > 0 && (node->op == LS_OP_RESIZE || node->op == LS_OP_RESIZE_GRAD))
        at_place->from = ls_tile_reads_span(&s->r, n, 0, t).first;
    if (sums)
        state_of(r, s, n, &parts, &points);
    for (int k = 0; k < p->nout; k++) {
        const LsValueId of = ls_out(r->from, n, p->result[k]);
        if (sums && op_of(r, n) == LS_OP_MATMUL_PART) {
            set_product(r, s, to, of, t, own.end == all);
        } else if (sums) {
            ls_tile_set_state(r, s, to, k, of, weights ? LS_REAL : LS_I64,
                              parts > 0 ? parts * points : points, t);
        } else {
            set_tile(r, s, to, k, of, ls_tile_span(&s->r, of, t), tile_name(r, of, t));
            *ls_tile_of(s, of, t) = ls_out(r->to, to, k);
        }
    }
    for (int k = 0; k < p->nout && !sums; k++)
        if (s->r.whole[ls_out(r->from, n, p->result[k]).i])
            place(r, s, ls_out(r->from, n, p->result[k]), t);
}

/* The result of a sum after the last tile. */
static void end_sum(LsRewrite *r, const LsTiler *s, LsNodeId n, int k)
{
    const LsNode *node = &r->from->node[n.i];
    const LsValueId of = ls_out(r->from, n, k), in = s->state[of.i];
    LsAttr at = node->attr;
    int64_t parts, points;
    state_of(r, s, n, &parts, &points);
    if (node->op == LS_OP_FUSED)
        at.fused = (LsFusedAttr){node->attr.fused.body, k, parts, points};
    else
        at.window.parts = parts;
    const LsNodeId end = ls_append_bare(
        r->to, node->op == LS_OP_FUSED ? LS_OP_SUM_END : LS_OP_CONV_DW_END, 1, &in, 1, &at);
    ls_rewrite_result(r, end, 0, of);
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    LsTiler *s = r->user;
    if (!s->r.in[n.i])
        return false;
    const bool loss = ls_tile_is_loss(&r->from->node[n.i]);
    for (int t = 0; t < s->r.tiles; t++)
        for (int sums = 0; sums < 2; sums++) {
            int64_t all;
            const int64_t count = count_of(ls_tile_makes_span(&s->r, n, t, &all));
            const Part p = part_of(r, s, n, sums, count);
            if (p.nout > 0 && count > 0 && sums && loss)
                ls_tile_loss_part(r, s, n, t);
            else if (p.nout > 0 && count > 0)
                add_part(r, s, n, &p, sums, t);
        }
    if (loss) {
        ls_tile_loss_end(r, s, n);
        return true;
    }
    for (int k = 0; k < r->from->node[n.i].nout; k++)
        if (!ls_tile_makes(&s->r, n, k) && !ls_tile_sums_rows(r->from, n))
            end_sum(r, s, n, k);
    return true;
}

uint32_t ls_tile_samples(LsCtx *cx, LsGraph *g, const LsTarget *t, LsTiling *o)
{
    const int64_t tokens =
        o->tiles > 1 && o->of == LS_OF_TOKENS ? ls_tokens_flatten(cx, g, t) : 0;
    LsTiler s = {.r = ls_tile_region(cx, g, t, o, tokens)};
    if (s.r.nodes == 0)
        return 0;
    const size_t tiles = (size_t)s.r.tiles;
    o->tiles = s.r.tiles;
    s.tile = ls_arena_alloc(cx->arena, g->nvalue * tiles, sizeof *s.tile);
    s.base = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.base);
    s.state = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.state);
    s.rows = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.rows);
    ls_rewrite(cx, g, visit, &s);
    ls_tile_order(cx, g, t->real_bytes, s.r.axis == 0);
    return s.r.nodes;
}
