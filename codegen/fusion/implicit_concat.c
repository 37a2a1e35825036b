/* codegen/fusion/implicit_concat.c -- see the header. */
#include "codegen/fusion/implicit_concat.h"

#include "codegen/fusion/drop_nodes.h"
#include "codegen/fusion/fused_alternatives.h"
#include "codegen/fusion/inline_bodies.h"
#include "codegen/kernels/read_concat.h"

#include <string.h>

typedef struct Join {
    LsCtx *cx;
    LsGraph *g;
    const LsTarget *target;
    bool *may;                  /* by node: a concatenation whose parts can be read instead */
} Join;

/* Whether the innermost index determines the part, and all parts have the layout of the whole. */
static bool is_plain(const Join *j, LsNodeId n)
{
    const LsGraph *g = j->g;
    LsValueId y = ls_out(g, n, 0);
    const LsShape *s = ls_shape(g, y);
    int axis = g->node[n.i].attr.axis.axis;
    int64_t grain = j->target->kind == LS_TARGET_CPU ? 1 : 4;
    bool plain = s->rank > 1 && ls_innermost(s, g->value[y.i].layout) == axis
        && ls_is_float(ls_type(g, y));
    for (int k = 0; k < g->node[n.i].nin; k++)
        plain &= ls_in_shape(g, n, k)->dim[axis] % grain == 0 && !ls_is_updated(g, ls_in(g, n, k))
            && (g->value[ls_in(g, n, k).i].layout == g->value[y.i].layout
                || ls_layout_free(ls_in_shape(g, n, k)));
    LsJoinedRun run[LS_JOINED_RUNS];
    return plain && s->dim[axis] <= LS_JOINED_ROW && g->node[n.i].nin <= LS_JOINED_PARTS
        && ls_joined_runs(g, n, 0, g->node[n.i].nin, axis, run) <= LS_JOINED_RUNS;
}

/* Whether node n reads the concatenation v through one operand of its loop, in an order that lets
 * it read the parts instead. */
static bool takes_parts(const LsGraph *g, LsNodeId n, LsValueId v)
{
    const LsFused *f = ls_body_of(g, n);
    int at = -1;
    for (int k = 0; k < g->node[n.i].nin; k++) {
        if (ls_in(g, n, k).i == v.i && at >= 0)
            return false;
        at = ls_in(g, n, k).i == v.i ? k : at;
    }
    if (f == NULL || f->states > 0 || !ls_shape_same(&f->space, ls_shape(g, v))
        || (f->first > 0 && f->first == at))
        return false;
    return ls_innermost(&f->space, f->layout) == g->node[g->value[v.i].def.i].attr.axis.axis
        && (f->layout == g->value[v.i].layout || ls_layout_free(&f->space));
}

/* Keeps concatenations with a reader that cannot take parts; a reader takes those of one
 * concatenation. Alternatives do not count: they can be dropped. */
static void look_at_readers(Join *j)
{
    LsGraph *g = j->g;
    for (uint32_t i = 1; i < g->nnode; i++) {
        LsNodeId n = {i};
        uint32_t first = 0;
        for (int k = 0; k < g->node[i].nin && !ls_is_alternative(g, n); k++) {
            LsValueId v = ls_in(g, n, k);
            uint32_t from = ls_dropped_maker(j->g, j->may, v);
            if (from != 0 && (first != 0 || !takes_parts(g, n, v)))
                j->may[from] = false;
            else if (from != 0)
                first = from;
        }
    }
}

/* The loop with the parts as operands own, own + 1, ... in place of operand `at`. */
static LsFused *loop_over_parts(const Join *j, const LsFused *body, int at, int own, int parts)
{
    LsFused *f = ls_arena_alloc(j->cx->arena, 1, sizeof *f);
    *f = *body;
    f->joined = own;
    f->njoined = parts;
    f->first -= f->first > at;
    f->stmt = ls_arena_alloc(j->cx->arena, (size_t)f->nstmt, sizeof *f->stmt);
    memcpy(f->stmt, body->stmt, (size_t)f->nstmt * sizeof *f->stmt);
    for (int s = 0; s < f->nstmt; s++)
        for (int c = 0; c < f->stmt[s].narg; c++) {
            int old = ~f->stmt[s].arg[c];
            if (old >= at)
                f->stmt[s].arg[c] = (int16_t)~(old == at ? own : old - 1);
        }
    return f;
}

/* Replaces operand `at` of node n by the operands of the concatenation `from`, after the other
 * operands of the loop. These keep their numbers whatever the number of parts, so kernels share
 * their texts. */
static void read_parts(Join *j, LsNodeId n, int at, LsNodeId from)
{
    LsGraph *g = j->g;
    LsNode *node = &g->node[n.i];
    int own = node->nin - 1, parts = g->node[from.i].nin;
    const LsFused *f = loop_over_parts(j, ls_body_of(g, n), at, own, parts);
    uint32_t to = g->noperand;
    g->operand = ls_arena_grow(g->arena, g->operand, to, to + (uint32_t)(node->nin - 1 + parts),
                               sizeof *g->operand, &g->cap_operand);
    for (int k = 0; k < node->nin; k++)
        if (k != at)
            g->operand[g->noperand++] = ls_in(g, n, k);
    for (int k = 0; k < parts; k++)
        g->operand[g->noperand++] = ls_in(g, from, k);
    node->in = to;
    node->nin = (uint16_t)(node->nin - 1 + parts);
    node->attr.fused.body = f;
}

/* Lets node n read the parts of a dropped concatenation; drops an alternative that cannot. */
static void join_node(Join *j, LsNodeId n)
{
    LsGraph *g = j->g;
    LsNode *node = &g->node[n.i];
    LsNodeId from = {0};
    int at = 0;
    for (int k = 0; k < node->nin; k++) {
        uint32_t of = ls_dropped_maker(j->g, j->may, ls_in(g, n, k));
        if (of == 0)
            continue;
        if (from.i != 0 || !takes_parts(g, n, ls_in(g, n, k))) {
            *node = (LsNode){.op = LS_OP_NOP};
            return;
        }
        from.i = of;
        at = k;
    }
    if (from.i != 0)
        read_parts(j, n, at, from);
}

uint32_t ls_join_operands(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                          uint32_t nmade)
{
    Join j = {.cx = cx, .g = g, .target = t};
    j.may = ls_arena_alloc(cx->arena, g->nnode, sizeof *j.may);
    for (uint32_t i = 1; i < g->nnode; i++)
        j.may[i] = g->node[i].op == LS_OP_CONCAT && is_plain(&j, (LsNodeId){i});
    ls_drop_none_wanted(g, made, nmade, j.may);
    look_at_readers(&j);
    for (uint32_t i = 1; i < g->nnode; i++)
        join_node(&j, (LsNodeId){i});
    return ls_drop_nodes(g, t, j.may);
}
