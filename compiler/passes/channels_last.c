/* compiler/passes/channels_last.c -- assigns LsValue.layout and inserts layout conversions.
 *
 * requires static shapes; keeps run order. State, inputs and constants get one layout for the whole
 * program (data are loaded in that layout); results get theirs from the rule of their row (op.h).
 * Images stay channels-last from the input to the loss, so common nets have no conversion except
 * before a flatten that really moves bytes. */
#include "compiler/passes/channels_last.h"

#include <string.h>

#include "compiler/fold/append.h"
#include "compiler/ir/rewrite.h"

typedef struct Layouts {
    const LsGraph *like;        /* evaluation form: state and inputs as in the training graph */
    bool *decided;              /* by old value: the layout of a value without a defining node is
                                 * fixed */
    LsLayout *want;             /* ... to this */
    LsValueId *other;           /* by new value: its conversion to the other layout */
    LsPhase *other_phase;       /* a conversion is not kept from forward to backward */
    uint32_t nother;
} Layouts;

static bool is_source(const LsGraph *g, LsValueId v)
{
    return g->value[v.i].kind != LS_V_TEMP && g->value[v.i].kind != LS_V_NONE;
}

static void decide(const LsGraph *g, Layouts *ly, LsValueId v, LsLayout layout)
{
    if (!ls_is(v) || !is_source(g, v) || ly->decided[v.i] || ls_layout_free(ls_shape(g, v)))
        return;
    ly->decided[v.i] = true;
    ly->want[v.i] = layout;
}

/* The source of this name, searched from behind the last one found and then from the start: two
 * forms of one model list their sources in the same order. */
static LsValueId find_source(const LsGraph *g, const char *name, uint32_t *last)
{
    for (uint32_t n = 1; n < g->nvalue; n++) {
        uint32_t k = (*last + n - 1) % (g->nvalue - 1) + 1;
        if (is_source(g, (LsValueId){k}) && strcmp(g->value[k].name, name) == 0) {
            *last = k;
            return (LsValueId){k};
        }
    }
    return (LsValueId){0};
}

/* Fixes sources first by the training graph, then by kernels without a choice: channels-last before
 * row-major. */
static void decide_sources(const LsGraph *g, Layouts *ly)
{
    uint32_t last = 0;
    for (uint32_t i = 1; ly->like != NULL && i < g->nvalue; i++) {
        if (!is_source(g, (LsValueId){i}) || ls_is_const(g, (LsValueId){i}))
            continue;
        LsValueId twin = find_source(ly->like, g->value[i].name, &last);
        if (ls_is(twin))
            decide(g, ly, (LsValueId){i}, ly->like->value[twin.i].layout);
    }
    static const struct { LsLayoutRule rule; LsLayout layout; } order[] = {
        {LS_LAY_LAST, LS_LAST}, {LS_LAY_ROW, LS_ROW}, {LS_LAY_FREE, LS_ROW}};
    for (size_t r = 0; r < sizeof order / sizeof *order; r++)
        for (uint32_t i = 1; i < g->nnode; i++)
            for (int k = 0; k < g->node[i].nin; k++)
                if (ls_op[g->node[i].op]->layout == order[r].rule)
                    decide(g, ly, ls_in(g, (LsNodeId){i}, k), order[r].layout);
}

/* Rank of the node: operands and results of this full rank take part in the layout choice of a SAME
 * node. */
static int full_rank(const LsGraph *g, LsNodeId n)
{
    int rank = 0;
    for (int k = 0; k < g->node[n.i].nin; k++)
        if (ls_is(ls_in(g, n, k)) && ls_in_shape(g, n, k)->rank > rank)
            rank = ls_in_shape(g, n, k)->rank;
    return rank;
}

static LsLayout layout_now(const LsRewrite *r, LsValueId old)
{
    return r->to->value[ls_image(r, old).i].layout;
}

/* Where all operands are free of layout (a gradient broadcast over an image): the layout of the
 * forward operand that the result is the gradient of. Updates are row-major there: sums within them
 * must have one order, also in a graph of updates alone, which has no forward part. */
static LsLayout as_forward(const LsRewrite *r, LsNodeId n)
{
    const LsGraph *g = r->from;
    LsNodeId fwd = g->node[n.i].fwd;
    const bool has = fwd.i != 0 && g->node[n.i].phase != LS_UPDATE && g->node[n.i].nout > 0;
    for (int k = 0; has && k < g->node[fwd.i].nin; k++)
        if (ls_shape_same(ls_in_shape(g, fwd, k), ls_shape(g, ls_out(g, n, 0))))
            return layout_now(r, ls_in(g, fwd, k));
    return LS_ROW;
}

/* The layout of a SAME node: that of the state it overwrites or sums up for, else channels-last if
 * any operand has it. */
static LsLayout choose(LsRewrite *r, LsNodeId n)
{
    const LsGraph *g = r->from;
    const Layouts *ly = r->user;
    int rank = full_rank(g, n);
    for (int k = 0; k < g->node[n.i].nin; k++)
        if ((ls_writes(&g->node[n.i], k) || g->node[n.i].op == LS_OP_LOCAL_SUM)
            && ly->decided[ls_in(g, n, k).i])
            return ly->want[ls_in(g, n, k).i];
    for (int k = 0; k < g->node[n.i].nin; k++) {
        LsValueId v = ls_in(g, n, k);
        if (ls_is(v) && ls_shape(g, v)->rank == rank && rank >= 3 && layout_now(r, v) == LS_LAST
            && !ls_layout_free(ls_shape(g, v)))
            return LS_LAST;
    }
    return as_forward(r, n);
}

/* The image of operand v in this layout: unchanged, decided now, or converted. */
static LsValueId in_layout(LsRewrite *r, LsValueId old, LsLayout layout)
{
    Layouts *ly = r->user;
    LsValueId v = ls_image(r, old);
    if (ls_layout_free(ls_shape(r->from, old)))
        return v;
    if (is_source(r->from, old) && !ly->decided[old.i]) {   /* also row-major: no later reader may
                                                             * change it */
        ly->decided[old.i] = true;
        ly->want[old.i] = r->to->value[v.i].layout = layout;
    }
    if (r->to->value[v.i].layout == layout)
        return v;
    LsPhase phase = r->to->node[0].phase;
    if (!ls_is(ly->other[v.i]) || ly->other_phase[v.i] != phase) {
        ly->other[v.i] = ls_append1(r->cx, r->to, LS_OP_CONVERT, v, NULL);
        r->to->value[ly->other[v.i].i].layout = layout;
        ly->other_phase[v.i] = phase;
    }
    return ly->other[v.i];
}

/* Grows the tables indexed by new values; appended conversions are new values. */
static void reserve(LsRewrite *r)
{
    Layouts *ly = r->user;
    uint32_t need = r->to->nvalue + r->from->nvalue, cap = ly->nother;
    ly->other = ls_arena_grow(r->cx->arena, ly->other, ly->nother, need, sizeof *ly->other, &cap);
    cap = ly->nother;
    ly->other_phase = ls_arena_grow(r->cx->arena, ly->other_phase, ly->nother, need,
                                    sizeof *ly->other_phase, &cap);
    ly->nother = cap;
}

static bool assign(LsRewrite *r, LsNodeId n)
{
    const LsGraph *g = r->from;
    const LsNode *node = &g->node[n.i];
    LsLayoutRule rule = ls_op[node->op]->layout;
    LsLayout layout = rule == LS_LAY_LAST ? LS_LAST : rule == LS_LAY_SAME ? choose(r, n) : LS_ROW;
    int rank = rule == LS_LAY_SAME ? full_rank(g, n) : 0;
    LsValueId *saved = ls_arena_alloc(r->cx->arena, node->nin, sizeof *saved);
    reserve(r);
    for (int k = 0; k < node->nin; k++)
        saved[k] = ls_image(r, ls_in(g, n, k));
    for (int k = 0; k < node->nin; k++) {
        LsValueId v = ls_in(g, n, k);
        if (ls_is(v) && rule != LS_LAY_FREE && ls_shape(g, v)->rank >= (rank > 3 ? rank : 3))
            r->map[v.i] = in_layout(r, v, layout);
    }
    ls_rewrite_copy(r, n);
    for (int k = 0; k < node->nin; k++)
        r->map[ls_in(g, n, k).i] = saved[k];
    for (int k = 0; k < node->nout; k++) {
        LsValue *out = &r->to->value[ls_image(r, ls_out(g, n, k)).i];
        out->layout = out->shape.rank >= 3 ? layout : LS_ROW;
    }
    return true;
}

bool ls_layout(LsCtx *cx, LsGraph *g, const LsGraph *like)
{
    Layouts ly = {.like = like};
    ly.decided = ls_arena_alloc(cx->arena, g->nvalue, sizeof *ly.decided);
    ly.want = ls_arena_alloc(cx->arena, g->nvalue, sizeof *ly.want);
    decide_sources(g, &ly);
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (ly.decided[i])
            g->value[i].layout = ly.want[i];
    ls_rewrite(cx, g, assign, &ly);
    return true;
}
