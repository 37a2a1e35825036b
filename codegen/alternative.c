/* codegen/alternative.c -- finds the operands that readers could compute themselves, and merges
 * bodies.
 *
 * Of each FUSED node with operands c1, c2, … that pointwise nodes make, there is one alternative
 * per operand, one for all of them, and each of these a step deeper, where the operands' makers
 * read such values too. What costs more than running the makers again and then the reader is left
 * out: nobody would take it. */
#include "codegen/alternative.h"

#include "codegen/kernels/body.h"
#include "compiler/cost.h"

#include <string.h>

enum {
    MAX_STMT = 48, MAX_IN = 48,     /* of a merged body; keeps kernels readable */
    MAX_INLINED = 12,               /* values */
    MAX_FOUND = 6,                  /* operands of one node that are tried */
    SMALL = 256,                    /* values this many times smaller than the largest stay stored */
    BROADCAST = 4,                  /* more points than this per element are too many */
};

typedef struct Set { LsValueId v[MAX_INLINED]; int n; } Set;

typedef struct Found {              /* an alternative */
    uint32_t of;                    /* node */
    const LsFused *body;
    const LsValueId *in; int nin;
    const char *name;
} Found;

typedef struct Search {
    LsCtx *cx;
    const LsGraph *g;
    LsMachine cpu;                  /* whatever plans are made for: the kernels stay the same */
    double largest;                 /* bytes, of the values that nodes make */
    uint32_t *writer;               /* by value: the node that updates it, 0: none */
    Found *found; uint32_t nfound, cap;     /* by rising node */
} Search;

typedef struct Merge {              /* a body under construction */
    const LsGraph *g;
    const Set *set;                 /* values whose statements it takes in */
    LsStmt stmt[MAX_STMT];
    struct { uint32_t node; int stmt; } from[MAX_STMT];
    LsValueId in[MAX_IN];
    int nstmt, nin;
    bool full;
} Merge;

static const LsFused *body_of(const LsGraph *g, uint32_t n)
{
    return g->node[n].op == LS_OP_FUSED ? g->node[n].attr.fused.body : NULL;
}

static bool has(const Set *s, LsValueId v)
{
    for (int k = 0; k < s->n; k++)
        if (s->v[k].i == v.i)
            return true;
    return false;
}

static void put(Set *s, LsValueId v)
{
    if (!has(s, v) && s->n < MAX_INLINED)
        s->v[s->n++] = v;
}

/* The statement of its maker that gives v; -1: none, or a reduction. */
static int root_statement(const LsGraph *g, LsValueId v)
{
    LsNodeId def = g->value[v.i].def;
    const LsFused *f = body_of(g, def.i);
    if (def.i == 0 || f == NULL)
        return -1;
    const LsFusedOut *out = &f->out[v.i - g->node[def.i].out];
    return out->reduce ? -1 : out->stmt;
}

/* Bit s: v needs statement s of its maker (bodies have at most 64). */
static uint64_t needed(const LsFused *f, int root)
{
    uint64_t mask = UINT64_C(1) << root;
    for (int s = root; s >= 0; s--)
        for (int k = 0; mask >> s & 1 && k < f->stmt[s].narg; k++)
            if (f->stmt[s].arg[k] >= 0)
                mask |= UINT64_C(1) << f->stmt[s].arg[k];
    return mask;
}

/* ---- merging ---- */
static int16_t take_operand(Merge *m, LsValueId v);

static int16_t take_statement(Merge *m, uint32_t n, int s)
{
    for (int k = 0; k < m->nstmt; k++)
        if (m->from[k].node == n && m->from[k].stmt == s)
            return (int16_t)k;
    LsStmt st = body_of(m->g, n)->stmt[s];
    for (int k = 0; k < st.narg; k++)
        st.arg[k] = st.arg[k] >= 0 ? take_statement(m, n, st.arg[k])
                                   : take_operand(m, ls_in(m->g, (LsNodeId){n}, ~st.arg[k]));
    if (m->nstmt == MAX_STMT) {
        m->full = true;
        return 0;
    }
    m->from[m->nstmt].node = n;
    m->from[m->nstmt].stmt = s;
    m->stmt[m->nstmt] = st;
    return (int16_t)m->nstmt++;
}

static int16_t take_operand(Merge *m, LsValueId v)
{
    if (has(m->set, v))
        return take_statement(m, m->g->value[v.i].def.i, root_statement(m->g, v));
    for (int k = 0; k < m->nin; k++)
        if (m->in[k].i == v.i)
            return (int16_t)~k;
    if (m->nin == MAX_IN) {
        m->full = true;
        return ~0;
    }
    m->in[m->nin] = v;
    return (int16_t)~m->nin++;
}

static const LsFused *merged_body(LsArena *a, const LsFused *reader, uint32_t n, int nout, Merge *m)
{
    LsFused *f = ls_arena_alloc(a, 1, sizeof *f);
    *f = *reader;
    f->out = ls_arena_alloc(a, (size_t)nout, sizeof *f->out);
    for (int k = 0; k < nout; k++) {
        f->out[k] = reader->out[k];
        f->out[k].stmt = take_statement(m, n, reader->out[k].stmt);
    }
    f->nstmt = m->nstmt;
    f->stmt = ls_arena_alloc(a, (size_t)m->nstmt, sizeof *f->stmt);
    memcpy(f->stmt, m->stmt, (size_t)m->nstmt * sizeof *f->stmt);
    return f;
}

/* ---- candidates ---- */
static bool draws(const LsFused *f, uint64_t mask)
{
    for (int s = 0; s < f->nstmt; s++)
        if (mask >> s & 1 && strstr(ls_op[f->stmt[s].op]->expr, "%i") != NULL)
            return true;
    return false;
}

/* May a loop over `space` compute v? A random statement numbers the points of its own space. */
static bool fits(const Search *s, LsValueId v, const LsShape *space)
{
    int root = root_statement(s->g, v);
    if (root < 0)
        return false;
    const LsFused *f = body_of(s->g, s->g->value[v.i].def.i);
    return f->nstmt <= MAX_STMT && ls_count(ls_shape(s->g, v)) * BROADCAST >= ls_count(space)
        && (double)ls_value_bytes(s->g, v, 4) * SMALL >= s->largest
        && (ls_shape_same(&f->space, space) || !draws(f, needed(f, root)));
}

/* The operands of v's maker that v comes from and that can be computed as well. */
static void add_deeper(const Search *s, LsValueId v, const LsShape *space, Set *to)
{
    LsNodeId def = s->g->value[v.i].def;
    const LsFused *f = body_of(s->g, def.i);
    uint64_t mask = needed(f, root_statement(s->g, v));
    for (int k = 0; k < f->nstmt; k++)
        for (int c = 0; mask >> k & 1 && c < f->stmt[k].narg; c++) {
            int a = f->stmt[k].arg[c];
            if (a < 0 && fits(s, ls_in(s->g, def, ~a), space))
                put(to, ls_in(s->g, def, ~a));
        }
}

static bool same_operands(const Found *a, const Merge *m)
{
    if (a->nin != m->nin)
        return false;
    for (int k = 0; k < m->nin; k++) {
        bool there = false;
        for (int j = 0; j < a->nin; j++)
            there |= a->in[j].i == m->in[k].i;
        if (!there)
            return false;
    }
    return true;
}

/* ---- alternatives ---- */

/* The graph with one more row of operands, to ask what a node over them costs. */
static LsGraph with_node(LsCtx *cx, const LsGraph *g, const Found *a, LsNodeId *at)
{
    LsGraph t = *g;
    t.node = ls_arena_alloc(cx->arena, 2, sizeof *t.node);
    t.operand = ls_arena_alloc(cx->arena, (size_t)a->nin + 1, sizeof *t.operand);
    memcpy(t.operand, a->in, (size_t)a->nin * sizeof *t.operand);
    t.node[1] = g->node[a->of];
    t.node[1].in = 0;
    t.node[1].nin = (uint16_t)a->nin;
    t.node[1].attr.fused.body = a->body;
    t.nnode = 2;
    *at = (LsNodeId){1};
    return t;
}

static bool reduces(const LsFused *f, int nout)
{
    for (int k = 0; k < nout; k++)
        if (f->out[k].reduce)
            return true;
    return false;
}

/* Does it read a weight or a statistic that an earlier node has updated? */
static bool too_late(const Search *s, const Found *a)
{
    for (int k = 0; k < a->nin; k++) {
        LsValueId v = a->in[k];
        while (s->g->value[v.i].def.i != 0
               && ls_op[s->g->node[s->g->value[v.i].def.i].op]->kernel == LS_K_VIEW)
            v = ls_in(s->g, s->g->value[v.i].def, 0);
        if (s->writer[v.i] != 0 && s->writer[v.i] < a->of)
            return true;
    }
    return false;
}

/* Is it worth less than its makers and the reader one after the other, and does it give the same
 * bits? */
static bool worth(const Search *s, const Found *a, const Set *set)
{
    LsNodeId at, of = {a->of};
    LsGraph t = with_node(s->cx, s->g, a, &at);
    double apart = ls_node_cost(s->g, of, &s->cpu);
    for (int k = 0; k < set->n; k++) {
        LsNodeId def = s->g->value[set->v[k].i].def;
        bool counted = false;
        for (int j = 0; j < k; j++)
            counted |= s->g->value[set->v[j].i].def.i == def.i;
        apart += counted ? 0 : ls_node_cost(s->g, def, &s->cpu);
    }
    if (ls_node_cost(&t, at, &s->cpu) > apart)
        return false;
    if (!reduces(a->body, s->g->node[of.i].nout))
        return true;
    return ls_body_same_loops(&(LsKernelText){.g = s->g, .n = of, .real_bytes = 4},
                              &(LsKernelText){.g = &t, .n = at, .real_bytes = 4});
}

static void try_set(Search *s, uint32_t n, const Set *set, uint32_t first)
{
    const LsGraph *g = s->g;
    LsArena *a = s->cx->arena;
    const LsFused *reader = body_of(g, n);
    Merge *m = ls_arena_alloc(a, 1, sizeof *m);
    *m = (Merge){.g = g, .set = set};
    for (int k = 0; k < reader->nstmt; k++)
        take_statement(m, n, k);
    if (m->full || s->nfound >= g->nnode)
        return;
    for (uint32_t k = first; k < s->nfound; k++)
        if (same_operands(&s->found[k], m))
            return;
    Found f = {.of = n, .body = merged_body(a, reader, n, g->node[n].nout, m), .in = m->in,
               .nin = m->nin};
    if (too_late(s, &f) || !worth(s, &f, set))
        return;
    const char *name = g->node[n].name != NULL ? g->node[n].name : "";
    for (int k = 0; k < set->n; k++)
        name = ls_arena_printf(a, "%s%s%s", name, k > 0 ? ", " : " computing ",
                               g->value[set->v[k].i].name);
    f.name = name;
    s->found = ls_arena_grow(a, s->found, s->nfound, s->nfound + 1, sizeof *s->found, &s->cap);
    s->found[s->nfound++] = f;
}

static void try_both(Search *s, uint32_t n, const Set *set, uint32_t first)
{
    const LsShape *space = &body_of(s->g, n)->space;
    Set deep = *set;
    try_set(s, n, set, first);
    for (int k = 0; k < set->n; k++)
        add_deeper(s, set->v[k], space, &deep);
    if (deep.n > set->n)
        try_set(s, n, &deep, first);
}

static void search_node(Search *s, uint32_t n)
{
    const LsFused *f = body_of(s->g, n);
    Set all = {.n = 0};
    if (f == NULL || f->nstmt > MAX_STMT)
        return;
    for (int k = 0; k < s->g->node[n].nin && all.n < MAX_FOUND; k++)
        if (fits(s, ls_in(s->g, (LsNodeId){n}, k), &f->space))
            put(&all, ls_in(s->g, (LsNodeId){n}, k));
    uint32_t first = s->nfound;
    for (int k = 0; k < all.n; k++)
        try_both(s, n, &(Set){.v = {all.v[k]}, .n = 1}, first);
    if (all.n > 1)
        try_both(s, n, &all, first);
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
    const LsGraph *g = s->g;
    LsArena *a = s->cx->arena;
    LsGraph *to = ls_arena_alloc(a, 1, sizeof *to);
    uint32_t *image = ls_arena_alloc(a, g->nnode, sizeof *image), k = 0;
    *to = *g;
    to->cap_value = g->nvalue;
    to->cap_node = g->nnode + s->nfound;
    to->cap_operand = g->noperand + s->nfound * MAX_IN;
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
            const Found *f = &s->found[k];
            LsNode other = node;
            other.nin = (uint16_t)f->nin;
            other.name = f->name;
            other.attr.fused.body = f->body;
            append(to, other, f->in);
        }
    }
    for (uint32_t i = 1; i < to->nvalue; i++)
        to->value[i].def.i = image[g->value[i].def.i];
    return to;
}

LsGraph *ls_alternatives(LsCtx *cx, const LsGraph *g)
{
    Search s = {.cx = cx, .g = g};
    ls_machine_find(&s.cpu, "cpu");
    s.writer = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.writer);
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin && k < 8; k++)
            if (ls_op[g->node[i].op]->writes >> k & 1)
                s.writer[ls_in(g, (LsNodeId){i}, k).i] = i;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].def.i != 0 && (double)ls_value_bytes(g, (LsValueId){i}, 4) > s.largest)
            s.largest = (double)ls_value_bytes(g, (LsValueId){i}, 4);
    for (uint32_t i = 1; i < g->nnode; i++)
        search_node(&s, i);
    return extended(&s);
}
