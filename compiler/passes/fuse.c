/* compiler/passes/fuse.c -- fusion: merges MAP and REDUCE nodes into loops over one iteration
 * space.
 *
 * requires layouts; keeps results and names; replaces every MAP and REDUCE node by a FUSED node,
 * alone or in a group, and reorders nodes where a group needs it (the order stays a run order).
 *
 * Greedy in run order. A node joins the group of one of its producers: the intermediate value then
 * needs no memory traffic, and no memory without other readers. Or it joins the group of a
 * reduction that walks the same operand, which is then read once. Or, where its result is small, it
 * joins a group that reads results of the same group: this saves a kernel whose launch takes longer
 * than its work. Groups stay convex: no outside node lies on a path from one member to another.
 * Forward and backward nodes never share a group, so that a recomputation repeats no more than
 * needed. Sums of many gradients never share one either, as they would have to wait for each
 * other. */
#include "compiler/passes/fuse.h"

#include "compiler/ir/rewrite.h"
#include "compiler/passes/passes.h"

#include <string.h>

enum { MAX_STMT = 24, MAX_ARG = 40 };   /* limits of a body; keep kernels readable */
/* Most operands, as large as the gradient's kernel space, that wait for each other: where a value
 * has many readers, one sum of all their gradients would keep all of them live until then. */
enum { MAX_WAITING = 5 };
enum { SMALL = 4096 };                  /* most elements of a small result */

/* codegen/tiling/ sets the results' shapes. */
const LsOp ls_op_sum_end = {
    .name = "sum_end", .min_in = 1, .max_in = 1, .nout = 1, .kernel = LS_K_SUM_END};
const LsOp ls_op_fused = {.name = "fused", .max_in = 255, .kernel = LS_K_FUSED};

typedef struct Group {
    LsShape space;
    LsLayout layout;
    LsPhase phase;
    uint32_t axes;              /* reduced; 0: no reduction yet */
    uint32_t last, size;        /* members are chained by Fuse.next in run order */
    int narg;                   /* operands and results of the members, counted with repetition */
    int nwide;                  /* operands from outside over the whole space, likewise */
} Group;

typedef struct Fuse {
    LsCtx *cx;
    const LsGraph *g;
    Group *group;               /* by the node id of its first member */
    uint32_t *of;               /* by node: its group; every node has one (alone if it cannot
                                 * fuse) */
    uint32_t *next;             /* by node: next member */
    uint32_t *reader;           /* by value: last group with a reduction that reads it, 0 none */
    uint32_t *small;            /* by group: the last group of small results that reads its results,
                                 * 0 none */
    uint32_t *mark, stamp;      /* for searches */
    uint32_t *stack;
    LsNodeId *order;            /* groups by first member, in the new run order */
    uint32_t norder;
    int *stmt_of;               /* by node: its statement in the body of its group */
    bool *outside;              /* by value: read outside its group, or an output of the graph */
} Fuse;

static bool fusible(const LsGraph *g, LsNodeId n)
{
    LsKernelId k = ls_op[g->node[n.i].op]->kernel;
    return k == LS_K_MAP || k == LS_K_REDUCE;
}

static bool is_reduce(const LsGraph *g, uint32_t n)
{
    return ls_op[g->node[n].op]->kernel == LS_K_REDUCE;
}

/* The iteration space of a node: its result's shape, or the broadcast of its operands when it
 * reduces. */
static LsShape space_of(const LsGraph *g, LsNodeId n)
{
    if (!is_reduce(g, n.i))
        return *ls_shape(g, ls_out(g, n, 0));
    LsShape s = *ls_in_shape(g, n, 0);
    for (int k = 1; k < g->node[n.i].nin; k++)
        ls_shape_broadcast(&s, ls_in_shape(g, n, k));
    return s;
}

/* Walk order: a reduction follows its largest operand, whose bytes it streams. */
static LsLayout walk_of(const LsGraph *g, LsNodeId n, const LsShape *space)
{
    if (!is_reduce(g, n.i))
        return g->value[ls_out(g, n, 0).i].layout;
    for (int k = 0; k < g->node[n.i].nin; k++)
        if (ls_shape_same(ls_in_shape(g, n, k), space))
            return g->value[ls_in(g, n, k).i].layout;
    return g->value[ls_in(g, n, 0).i].layout;
}

/* Whether some member of group `target` is a producer of group `from`, at any distance. */
static bool reaches(Fuse *f, uint32_t target, uint32_t from)
{
    uint32_t n = 0;
    if (from == target)
        return true;
    f->stack[n++] = from;
    f->mark[from] = f->stamp;
    while (n > 0) {
        uint32_t at = f->stack[--n];
        for (uint32_t m = at; m != 0; m = f->next[m])
            for (int k = 0; k < f->g->node[m].nin; k++) {
                uint32_t p = f->of[f->g->value[ls_in(f->g, (LsNodeId){m}, k).i].def.i];
                if (p == target)
                    return true;
                if (p == 0 || f->mark[p] == f->stamp)   /* one that ended before the target began
                                                         * may depend on it, by a group that went
                                                         * on */
                    continue;
                f->mark[p] = f->stamp;
                f->stack[n++] = p;
            }
    }
    return false;
}

/* Number of operands of node n over the whole space that come from outside group t. */
static int count_wide(const Fuse *f, uint32_t n, const LsShape *space, uint32_t t)
{
    int wide = 0;
    for (int k = 0; k < f->g->node[n].nin; k++) {
        LsValueId v = ls_in(f->g, (LsNodeId){n}, k);
        wide += f->of[f->g->value[v.i].def.i] != t
                && ls_shape_same(ls_in_shape(f->g, (LsNodeId){n}, k), space);
    }
    return wide;
}

/* Whether node n may join group t. Its operands from outside must not depend on the group, and a
 * reduced result of the group is not available before the loop ends. */
static bool may_join(Fuse *f, uint32_t n, uint32_t t)
{
    const Group *a = &f->group[n], *b = &f->group[t];
    if (a->phase != b->phase || a->layout != b->layout || !ls_shape_same(&a->space, &b->space)
        || b->size >= MAX_STMT || a->narg + b->narg > MAX_ARG
        || (a->axes != 0 && b->axes != 0 && a->axes != b->axes))
        return false;
    if (b->phase == LS_BACKWARD && ls_count(&b->space) > SMALL
        && b->nwide + count_wide(f, n, &b->space, t) > MAX_WAITING)
        return false;
    f->stamp++;
    for (int k = 0; k < f->g->node[n].nin; k++) {
        uint32_t p = f->g->value[ls_in(f->g, (LsNodeId){n}, k).i].def.i;
        if (p == 0)
            continue;
        if (f->of[p] == t ? is_reduce(f->g, p) : reaches(f, t, f->of[p]))
            return false;
    }
    return true;
}

static void join(Fuse *f, uint32_t n, uint32_t t)
{
    Group *b = &f->group[t];
    f->next[b->last] = n;
    b->last = n;
    b->size++;
    b->nwide += count_wide(f, n, &b->space, t);
    b->narg += f->group[n].narg;
    b->axes |= f->group[n].axes;
    f->of[n] = t;
}

/* The group that made v, or made the value that v is a slice of. */
static uint32_t made_by(const Fuse *f, LsValueId v)
{
    LsNodeId def = f->g->value[v.i].def;
    while (f->g->node[def.i].op == LS_OP_SLICE)
        def = f->g->value[ls_in(f->g, def, 0).i].def;
    return f->of[def.i];
}

/* Finds a group for node n, which has a small result. */
static void join_small(Fuse *f, uint32_t n)
{
    const LsNode *node = &f->g->node[n];
    for (int pass = 0; pass < 2; pass++)            /* find a group, then record it */
        for (int k = 0; k < node->nin; k++) {
            uint32_t from = made_by(f, ls_in(f->g, (LsNodeId){n}, k)), t = f->small[from];
            if (from == 0 || !fusible(f->g, (LsNodeId){from}))      /* others get epilogues */
                continue;
            if (pass == 1)
                f->small[from] = f->of[n];
            else if (t != 0 && f->of[n] == n && may_join(f, n, t))
                join(f, n, t);
        }
}

static void place(Fuse *f, uint32_t n)
{
    const LsGraph *g = f->g;
    LsNodeId id = {n};
    Group *own = &f->group[n];
    *own = (Group){.last = n, .size = 1, .phase = g->node[n].phase,
                   .narg = g->node[n].nin + g->node[n].nout};
    f->of[n] = n;
    if (!fusible(g, id))
        return;
    own->space = space_of(g, id);
    own->layout = ls_layout_free(&own->space) ? LS_ROW : walk_of(g, id, &own->space);
    own->axes = is_reduce(g, n) ? g->node[n].attr.reduce.axes : 0;
    own->nwide = count_wide(f, n, &own->space, n);
    for (int k = 0; k < g->node[n].nin && f->of[n] == n; k++) {
        uint32_t p = g->value[ls_in(g, id, k).i].def.i;
        if (p != 0 && fusible(g, (LsNodeId){p}) && may_join(f, n, f->of[p]))
            join(f, n, f->of[p]);
    }
    for (int k = 0; k < g->node[n].nin && f->of[n] == n && own->axes != 0; k++) {
        uint32_t t = f->reader[ls_in(g, id, k).i];
        if (t != 0 && ls_shape_same(ls_in_shape(g, id, k), &own->space) && may_join(f, n, t))
            join(f, n, t);
    }
    if (own->axes != 0)
        for (int k = 0; k < g->node[n].nin; k++)
            f->reader[ls_in(g, id, k).i] = f->of[n];
    else if (ls_count(&own->space) <= SMALL)
        join_small(f, n);
}

/* Puts groups in a run order: depth-first from the last member of each, so that a group runs where
 * its last operand is ready, and otherwise in the old order. */
static void visit_group(Fuse *f, uint32_t t)
{
    if (f->mark[t] == f->stamp)
        return;
    f->mark[t] = f->stamp;
    for (uint32_t m = t; m != 0; m = f->next[m])
        for (int k = 0; k < f->g->node[m].nin; k++) {
            uint32_t p = f->of[f->g->value[ls_in(f->g, (LsNodeId){m}, k).i].def.i];
            if (p != 0 && p != t)
                visit_group(f, p);
        }
    f->order[f->norder++] = (LsNodeId){t};
}

static void find_outside(Fuse *f)
{
    const LsGraph *g = f->g;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++) {
            LsValueId v = ls_in(g, (LsNodeId){i}, k);
            if (f->of[g->value[v.i].def.i] != f->of[i])
                f->outside[v.i] = true;
        }
    for (uint32_t i = 0; i < g->noutput; i++)
        f->outside[g->output[i].i] = true;
    for (uint32_t i = 0; i < g->ngrad; i++)
        f->outside[g->grad[i].grad.i] = true;
    f->outside[g->objective.loss.i] = true;
}

static int find_operand(const LsValueId *in, int nin, LsValueId v)
{
    for (int k = 0; k < nin; k++)
        if (in[k].i == v.i)
            return k;
    return -1;
}

/* A group's body: statements in member order, operands in order of first use. */
typedef struct Body {
    LsFused *fused;
    LsValueId in[MAX_STMT * 6], old_out[MAX_STMT];
    int nin, nout;
} Body;

static void add_statement(const Fuse *f, uint32_t n, int at_stmt, Body *b)
{
    const LsGraph *g = f->g;
    LsStmt *s = &b->fused->stmt[at_stmt];
    LsNodeId id = {n};
    LsValueId out = ls_out(g, id, 0);
    *s = (LsStmt){.op = g->node[n].op, .narg = g->node[n].nin, .type = ls_type(g, out),
                  .attr = g->node[n].attr, .name = g->node[n].name};
    for (int k = 0; k < s->narg; k++) {
        LsValueId v = ls_in(g, id, k);
        uint32_t p = g->value[v.i].def.i;
        if (p != 0 && f->of[p] == f->of[n]) {
            s->arg[k] = (int16_t)f->stmt_of[p];
            continue;
        }
        int at = find_operand(b->in, b->nin, v);
        if (at < 0)
            b->in[at = b->nin++] = v;
        s->arg[k] = (int16_t)~at;
    }
    if (f->outside[out.i]) {
        const LsOp *row = ls_op[g->node[n].op];
        b->fused->out[b->nout] = (LsFusedOut){.stmt = at_stmt, .reduce = is_reduce(g, n),
                                              .combine = row->combine, .mean = row->mean};
        b->old_out[b->nout++] = out;
    }
}

/* From here on, links from gradients to forward nodes name groups. A group's link is the earliest
 * of its members' links. */
static void link_groups(Fuse *f, LsGraph *g)
{
    for (uint32_t i = 1; i < g->nnode; i++) {
        LsNodeId *own = &g->node[f->of[i]].fwd, fwd = {f->of[g->node[i].fwd.i]};
        if (fwd.i != 0 && (own->i == 0 || fwd.i < own->i || f->of[i] == i))
            *own = fwd;
    }
}

static bool emit_group(LsRewrite *r, LsNodeId t)
{
    Fuse *f = r->user;
    if (!fusible(r->from, t))
        return false;
    const Group *gr = &f->group[t.i];
    LsArena *a = r->cx->arena;
    Body *b = ls_arena_alloc(a, 1, sizeof *b);
    LsFused *fused = b->fused = ls_arena_alloc(a, 1, sizeof *fused);
    *fused = (LsFused){.space = gr->space, .layout = gr->layout, .axes = gr->axes,
                       .nstmt = (int)gr->size,
                       .stmt = ls_arena_alloc(a, gr->size, sizeof *fused->stmt),
                       .out = ls_arena_alloc(a, gr->size, sizeof *fused->out)};
    int k = 0;
    for (uint32_t m = t.i; m != 0; m = f->next[m], k++) {
        f->stmt_of[m] = k;
        add_statement(f, m, k, b);
    }
    ls_rewrite_append(r, LS_OP_FUSED, b->nin, b->in, b->nout, b->old_out,
                      &(LsAttr){.fused = {.body = fused}});
    return true;
}

bool ls_fuse(LsCtx *cx, LsGraph *g)
{
    LsArena *a = cx->arena;
    Fuse f = {.cx = cx, .g = g};
    f.group = ls_arena_alloc(a, g->nnode, sizeof *f.group);
    f.of = ls_arena_alloc(a, g->nnode, sizeof *f.of);
    f.next = ls_arena_alloc(a, g->nnode, sizeof *f.next);
    f.mark = ls_arena_alloc(a, g->nnode, sizeof *f.mark);
    f.stack = ls_arena_alloc(a, g->nnode, sizeof *f.stack);
    f.order = ls_arena_alloc(a, g->nnode, sizeof *f.order);
    f.stmt_of = ls_arena_alloc(a, g->nnode, sizeof *f.stmt_of);
    f.reader = ls_arena_alloc(a, g->nvalue, sizeof *f.reader);
    f.small = ls_arena_alloc(a, g->nnode, sizeof *f.small);
    f.outside = ls_arena_alloc(a, g->nvalue, sizeof *f.outside);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op != LS_OP_NOP)
            place(&f, i);
    find_outside(&f);
    link_groups(&f, g);
    f.stamp++;
    for (uint32_t i = 1; i < g->nnode; i++)
        if (f.of[i] == i)
            visit_group(&f, i);
    ls_rewrite_order(cx, g, emit_group, &f, f.order, f.norder);
    return true;
}
