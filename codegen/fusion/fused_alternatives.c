/* codegen/fusion/fused_alternatives.c -- finds the operands that readers could compute themselves,
 * and merges bodies.
 *
 * A FUSED node with operands c1, c2, … from pointwise nodes has one alternative per operand, one
 * for all of them, and each of these a step deeper if the operands' makers read such values too.
 * Convolutions and products may compute an operand as they pack it. An alternative is left out if
 * it makes its reader much dearer and adds several times the cost of recomputing the makers. */
#include "codegen/fusion/fused_alternatives.h"

#include "codegen/fusion/inline_bodies.h"
#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/conv.h"
#include "codegen/kernels/fused_body.h"
#include "codegen/kernels/matmul.h"
#include "compiler/cost/roofline.h"

#include <string.h>

#define LITTLE 1.125                /* times the reader's cost: always allowed */

enum {
    MAX_FOUND = 6,                  /* most operands of one node that are tried */
    SMALL = 256,                    /* values smaller than 1 / 256 of the largest stay stored */
    DEAR = 4,                       /* most times the makers' cost that an alternative adds */
    BROADCAST = 4,                  /* most points of the reader per element */
};

typedef struct Found {              /* an alternative */
    uint32_t of;                    /* the node it replaces */
    const LsFused *body;            /* of a FUSED node */
    const LsComputed *computed;     /* of other nodes; else NULL */
    const LsValueId *in; int nin;   /* all operands */
    const char *name;
} Found;

typedef struct Search {
    LsCtx *cx;
    const LsGraph *from;            /* the graph as given */
    const LsGraph *g;               /* the same with layer norms as bodies over their own
                                     * statistics */
    LsMachine cpu;                  /* on every target, so that the kernels stay the same */
    LsTarget target;                /* with floats, whatever the program's precision is */
    double largest;                 /* bytes of the largest value that a node makes */
    uint32_t *writer;               /* by value: the node that updates it, 0: none */
    Found *found; uint32_t nfound, cap;     /* by rising node */
} Search;

/* ---- layer norms ---- */

/* y = (x - mean) * invstd * scale + bias, as the kernel computes it. The body is pointwise given
 * the statistics, which the gradient needs anyway. */
static const LsFused *norm_body(LsArena *a, const LsGraph *g, LsNodeId n, bool bias)
{
    static const struct { LsOpCode op; int16_t arg[2]; } row[] = {
        {LS_OP_SUB, {~0, ~1}}, {LS_OP_MUL, {0, ~2}}, {LS_OP_MUL, {1, ~3}}, {LS_OP_ADD, {2, ~4}}};
    LsFused *f = ls_arena_alloc(a, 1, sizeof *f);
    *f = (LsFused){.space = *ls_in_shape(g, n, 0), .layout = LS_ROW, .nstmt = bias ? 4 : 3};
    f->stmt = ls_arena_alloc(a, 4, sizeof *f->stmt);
    f->out = ls_arena_alloc(a, 3, sizeof *f->out);
    for (int k = 0; k < f->nstmt; k++)
        f->stmt[k] = (LsStmt){.op = (uint16_t)row[k].op, .type = LS_REAL, .narg = 2,
                              .arg = {row[k].arg[0], row[k].arg[1]}, .name = g->node[n.i].name};
    f->stmt[f->nstmt - 1].type = ls_type(g, ls_out(g, n, 0));
    f->out[0].stmt = f->nstmt - 1;
    f->out[1].reduce = f->out[2].reduce = true;
    return f;
}

static bool rows_are_normal(const LsGraph *g, LsNodeId n)
{
    const LsShape *x = ls_in_shape(g, n, 0);
    return g->node[n.i].op == LS_OP_LAYER_NORM && g->node[n.i].attr.norm.axis == x->rank - 1;
}

/* The graph to search in. It shares all but operands and nodes with g. */
static LsGraph *with_norms(LsCtx *cx, const LsGraph *g)
{
    LsArena *a = cx->arena;
    LsGraph *to = ls_arena_alloc(a, 1, sizeof *to);
    *to = *g;
    to->node = ls_arena_alloc(a, g->nnode, sizeof *to->node);
    to->operand = ls_arena_alloc(a, g->noperand + 5 * (size_t)g->nnode, sizeof *to->operand);
    memcpy(to->node, g->node, g->nnode * sizeof *to->node);
    memcpy(to->operand, g->operand, g->noperand * sizeof *to->operand);
    for (uint32_t i = 1; i < g->nnode; i++) {
        LsNodeId n = {i};
        if (!rows_are_normal(g, n))
            continue;
        LsValueId bias = ls_in(g, n, 2), in[] = {ls_in(g, n, 0), ls_out(g, n, 1), ls_out(g, n, 2),
                                                 ls_in(g, n, 1), bias};
        LsNode *node = &to->node[i];
        node->op = LS_OP_FUSED;
        node->attr.fused.body = norm_body(a, g, n, ls_is(bias));
        node->in = to->noperand;
        node->nin = ls_is(bias) ? 5 : 4;
        memcpy(to->operand + to->noperand, in, node->nin * sizeof *in);
        to->noperand += node->nin;
    }
    return to;
}

/* ---- candidates ---- */

/* Whether v comes from a statement that uses the index of its point. */
static bool draws(const LsGraph *g, LsValueId v)
{
    const LsFused *f = ls_body_of(g, g->value[v.i].def);
    uint64_t mask = ls_needed_statements(g, v);
    for (int s = 0; s < f->nstmt; s++)
        if (mask >> s & 1 && strstr(ls_op[f->stmt[s].op]->expr, "%i") != NULL)
            return true;
    return false;
}

/* Whether a loop over `space` may compute v. A random statement numbers the points of its own
 * space. */
static bool fits(const Search *s, LsValueId v, const LsShape *space)
{
    const LsFused *f = ls_body_of(s->g, s->g->value[v.i].def);
    const LsTilePlace *of = s->g->node[s->g->value[v.i].def.i].tile;
    return ls_root_statement(s->g, v) >= 0 && f->nstmt <= LS_MERGE_STMT
        && ls_count(ls_shape(s->g, v)) * BROADCAST >= ls_count(space)
        && (double)ls_value_bytes(s->g, v, 4) * SMALL >= s->largest
        && ((ls_shape_same(&f->space, space) && (of == NULL || of->axis == 0))
            || !draws(s->g, v));
}

/* Adds the operands of v's maker that v depends on and that can be computed, too. */
static void add_deeper(const Search *s, LsValueId v, const LsShape *space, LsValueSet *to)
{
    LsNodeId def = s->g->value[v.i].def;
    const LsFused *f = ls_body_of(s->g, def);
    uint64_t mask = ls_needed_statements(s->g, v);
    for (int k = 0; k < f->nstmt; k++)
        for (int c = 0; mask >> k & 1 && c < f->stmt[k].narg; c++) {
            int a = f->stmt[k].arg[c];
            if (a < 0 && fits(s, ls_in(s->g, def, ~a), space))
                ls_value_set_put(to, ls_in(s->g, def, ~a));
        }
}

static bool same_operands(const Found *a, const Found *b)
{
    if (a->nin != b->nin || (a->computed != NULL) != (b->computed != NULL)
        || (a->computed != NULL && a->computed->operand != b->computed->operand))
        return false;
    for (int k = 0; k < b->nin; k++) {
        bool there = false;
        for (int j = 0; j < a->nin; j++)
            there |= a->in[j].i == b->in[k].i;
        if (!there)
            return false;
    }
    return true;
}

/* ---- alternatives ---- */

static const LsFused *reader_body(LsArena *a, const LsGraph *g, uint32_t n, LsMerge *m)
{
    const LsFused *reader = ls_body_of(g, (LsNodeId){n});
    LsFused *f = ls_merge_body(a, m, reader, g->node[n].nout);
    for (int k = 0; k < g->node[n].nout; k++) {
        f->out[k] = reader->out[k];
        f->out[k].stmt = ls_merge_statement(m, (LsNodeId){n}, reader->out[k].stmt);
    }
    return f;
}


static LsNode node_of(const LsGraph *g, const Found *a)
{
    LsNode n = g->node[a->of];
    n.nin = (uint16_t)a->nin;
    n.name = a->name;
    n.computed = a->computed;
    if (a->computed == NULL)
        n.attr.fused.body = a->body;
    return n;
}

/* A graph over the same values whose node 1 is this alternative, for its cost. */
static LsGraph with_node(LsCtx *cx, const LsGraph *g, const Found *a)
{
    LsGraph t = *g;
    t.node = ls_arena_alloc(cx->arena, 2, sizeof *t.node);
    t.operand = ls_arena_alloc(cx->arena, (size_t)a->nin + 1, sizeof *t.operand);
    memcpy(t.operand, a->in, (size_t)a->nin * sizeof *t.operand);
    t.node[1] = node_of(g, a);
    t.node[1].in = 0;
    t.nnode = 2;
    return t;
}

/* Whether it reads a weight or a statistic that an earlier node updates. */
static bool too_late(const Search *s, const Found *a)
{
    for (int k = 0; k < a->nin; k++) {
        LsValueId v = ls_viewed(s->g, a->in[k]);
        if (s->writer[v.i] != 0 && s->writer[v.i] < a->of)
            return true;
    }
    return false;
}

static double cost_of(const Search *s, const LsGraph *g, LsNodeId n)
{
    const LsEmitter *e = ls_emitter_of(s->target.kind, ls_op[g->node[n.i].op]->kernel);
    LsCostWay way = e != NULL && e->way != NULL ? e->way(g, n, &s->target) : LS_WAY_DIRECT;
    LsWork w = ls_node_work(g, n, &s->cpu, way, 4);
    return ls_work_ns(&s->cpu, &w, 4);
}

/* Whether the alternative adds at most DEAR times its makers' cost, or little to the reader, and
 * gives the same bits. */
static bool worth(const Search *s, const Found *a, const LsValueSet *set)
{
    LsNodeId at = {1}, of = {a->of};
    const LsGraph t = with_node(s->cx, s->g, a);
    double makers = 0;
    for (int k = 0; k < set->n; k++) {
        LsNodeId def = s->g->value[set->v[k].i].def;
        bool counted = false;
        for (int j = 0; j < k; j++)
            counted |= s->g->value[set->v[j].i].def.i == def.i;
        makers += counted ? 0 : cost_of(s, s->g, def);
    }
    double reader = cost_of(s, s->g, of), own = cost_of(s, &t, at);
    if (own > reader + DEAR * makers && own > reader * LITTLE)
        return false;
    if (a->computed != NULL || !ls_reduces(a->body, s->g->node[of.i].nout))
        return true;
    return ls_body_same_loops(&(LsKernelText){.g = s->g, .n = of, .target = &s->target},
                              &(LsKernelText){.g = &t, .n = at, .target = &s->target});
}

static void offer(Search *s, Found *f, const LsValueSet *set, uint32_t first)
{
    LsArena *a = s->cx->arena;
    for (uint32_t k = first; k < s->nfound; k++)
        if (same_operands(&s->found[k], f))
            return;
    if (s->nfound >= s->g->nnode || too_late(s, f) || !worth(s, f, set))
        return;
    const char *name = s->g->node[f->of].name;
    f->name = name != NULL ? name : "";
    for (int k = 0; k < set->n; k++)
        f->name = ls_arena_printf(a, "%s%s%s", f->name, k > 0 ? ", " : " computing ",
                                  s->g->value[set->v[k].i].name);
    s->found = ls_arena_grow(a, s->found, s->nfound, s->nfound + 1, sizeof *s->found, &s->cap);
    s->found[s->nfound++] = *f;
}

/* Tries FUSED reader n with the statements of these values in its own loop. */
static void try_set(Search *s, uint32_t n, const LsValueSet *set, uint32_t first)
{
    LsArena *a = s->cx->arena;
    const LsFused *reader = ls_body_of(s->g, (LsNodeId){n});
    LsMerge *m = ls_arena_alloc(a, 1, sizeof *m);
    *m = (LsMerge){.g = s->g, .set = set};
    for (int k = 0; k < reader->nstmt; k++)
        ls_merge_statement(m, (LsNodeId){n}, k);
    if (m->full)
        return;
    offer(s, &(Found){.of = n, .body = reader_body(a, s->g, n, m), .in = m->in, .nin = m->nin},
          set, first);
}

static void try_both(Search *s, uint32_t n, const LsValueSet *set, uint32_t first)
{
    const LsShape *space = &ls_body_of(s->g, (LsNodeId){n})->space;
    LsValueSet deep = *set;
    try_set(s, n, set, first);
    for (int k = 0; k < set->n; k++)
        add_deeper(s, set->v[k], space, &deep);
    if (deep.n > set->n)
        try_set(s, n, &deep, first);
}

static void search_fused(Search *s, uint32_t n)
{
    const LsFused *f = ls_body_of(s->g, (LsNodeId){n});
    LsValueSet all = {.n = 0};
    if (f->nstmt > LS_MERGE_STMT || f->first > 0 || f->states > 0)
        return;
    for (int k = 0; k < s->g->node[n].nin && all.n < MAX_FOUND; k++)
        if (fits(s, ls_in(s->g, (LsNodeId){n}, k), &f->space))
            ls_value_set_put(&all, ls_in(s->g, (LsNodeId){n}, k));
    uint32_t first = s->nfound;
    for (int k = 0; k < all.n; k++)
        try_both(s, n, &(LsValueSet){.v = {all.v[k]}, .n = 1}, first);
    if (all.n > 1)
        try_both(s, n, &all, first);
}

/* The operands of the node, then those of the body. */
static const LsValueId *joined(LsArena *a, const LsGraph *g, uint32_t n, const LsMerge *m)
{
    int own = g->node[n].nin;
    LsValueId *in = ls_arena_alloc(a, (size_t)(own + m->nin), sizeof *in);
    for (int k = 0; k < own + m->nin; k++)
        in[k] = k < own ? ls_in(g, (LsNodeId){n}, k) : m->in[k - own];
    return in;
}

/* Tries reader n computing operand like->operand, the value v, with the values of `set` inlined. */
static void try_computed(Search *s, uint32_t n, LsValueId v, const LsComputed *like,
                         const LsValueSet *set, uint32_t first)
{
    const LsGraph *g = s->g;
    LsArena *a = s->cx->arena;
    LsMerge *m = ls_arena_alloc(a, 1, sizeof *m);
    LsComputed *c = ls_arena_alloc(a, 1, sizeof *c);
    *m = (LsMerge){.g = g, .set = set};
    *c = *like;
    int root = ls_merge_operand(m, v);
    int64_t stride[2];
    for (int k = 0; k < m->nin; k++)
        if (!ls_computed_strides(g, m->in[k], ls_shape(g, v), g->value[v.i].layout, c->axis,
                                 stride))
            return;
    if (m->full)
        return;
    LsFused *f = ls_merge_body(a, m, ls_body_of(g, g->value[v.i].def), 1);
    f->space = *ls_shape(g, v);
    f->layout = g->value[v.i].layout;
    f->out[0] = (LsFusedOut){.stmt = root};
    c->body = f;
    c->first = g->node[n].nin;
    offer(s, &(Found){.of = n, .computed = c, .in = joined(a, g, n, m),
                      .nin = c->first + m->nin}, set, first);
}

/* Tries to compute operand k of convolution or product n, if it is rows of channels. */
static void search_operand(Search *s, uint32_t n, int k)
{
    const LsGraph *g = s->g;
    LsNodeId id = {n};
    LsComputed c = {.operand = k};
    bool product = ls_op[g->node[n].op]->kernel == LS_K_MATMUL;
    if (g->node[n].computed != NULL)
        return;
    c.times = (product ? ls_matmul_computes : ls_conv_computes)(g, id, k, &c.axis);
    LsValueId read = ls_in(g, id, k), v = product ? ls_viewed(g, read) : read;
    const LsShape *shape = ls_shape(g, v);
    if (c.times == 0 || !fits(s, v, shape) || !ls_is_float(ls_type(g, v))
        || draws(g, v))
        return;
    if (product) {
        c.axis = shape->rank - 1;
        if (shape->dim[c.axis] != ls_shape(g, read)->dim[ls_shape(g, read)->rank - 1])
            return;
    }
    LsValueSet set = {.v = {v}, .n = 1}, deep = set;
    uint32_t first = s->nfound;
    try_computed(s, n, v, &c, &set, first);
    add_deeper(s, v, shape, &deep);
    bool random = false;
    for (int j = 1; j < deep.n; j++)
        random |= draws(g, deep.v[j]);
    if (deep.n > 1 && !random)
        try_computed(s, n, v, &c, &deep, first);
}

static void search_node(Search *s, uint32_t n)
{
    LsKernelId kernel = ls_op[s->from->node[n].op]->kernel;
    if (kernel == LS_K_FUSED)
        search_fused(s, n);
    /* On a GPU the libraries read their operands from memory. */
    bool own = s->target.kind == LS_TARGET_CPU;
    if (own && (kernel == LS_K_CONV || kernel == LS_K_MATMUL))
        for (int k = 0; k < 2 && k < s->g->node[n].nin; k++)
            search_operand(s, n, k);
}

/* ---- the graph ---- */
static void append(LsGraph *to, LsNode node, const LsValueId *in)
{
    node.in = to->noperand;
    memcpy(to->operand + to->noperand, in, node.nin * sizeof *in);
    to->noperand += node.nin;
    to->node[to->nnode++] = node;
}

static LsGraph *extended(const Search *s)
{
    const LsGraph *g = s->from;
    LsArena *a = s->cx->arena;
    LsGraph *to = ls_arena_alloc(a, 1, sizeof *to);
    uint32_t *image = ls_arena_alloc(a, g->nnode, sizeof *image), k = 0;
    *to = *g;
    to->cap_value = g->nvalue;
    to->cap_node = g->nnode + s->nfound;
    to->cap_operand = g->noperand;
    for (uint32_t i = 0; i < s->nfound; i++)
        to->cap_operand += (uint32_t)s->found[i].nin;
    to->value = ls_arena_alloc(a, g->nvalue, sizeof *to->value);
    to->node = ls_arena_alloc(a, to->cap_node, sizeof *to->node);
    to->operand = ls_arena_alloc(a, to->cap_operand, sizeof *to->operand);
    memcpy(to->value, g->value, g->nvalue * sizeof *to->value);
    to->nnode = to->noperand = 0;
    for (uint32_t i = 0; i < g->nnode; i++) {
        LsNode node = g->node[i];
        image[i] = to->nnode;
        node.fwd.i = image[node.fwd.i];
        append(to, node, g->operand + g->node[i].in);
        for (; k < s->nfound && s->found[k].of == i; k++) {
            LsNode other = node_of(g, &s->found[k]);
            other.fwd = node.fwd;
            append(to, other, s->found[k].in);
        }
    }
    for (uint32_t i = 1; i < to->nvalue; i++)
        to->value[i].def.i = image[g->value[i].def.i];
    return to;
}

LsGraph *ls_alternatives(LsCtx *cx, const LsGraph *g, const LsTarget *target)
{
    Search s = {.cx = cx, .from = g, .g = with_norms(cx, g)};
    ls_machine_find(&s.cpu, "cpu");
    s.target = *target;
    s.target.real_bytes = 4;
    s.writer = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.writer);
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            if (ls_writes(&g->node[i], k))
                s.writer[ls_in(g, (LsNodeId){i}, k).i] = i;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].def.i != 0 && (double)ls_value_bytes(g, (LsValueId){i}, 4) > s.largest)
            s.largest = (double)ls_value_bytes(g, (LsValueId){i}, 4);
    for (uint32_t i = 1; i < g->nnode; i++)
        search_node(&s, i);
    return extended(&s);
}
