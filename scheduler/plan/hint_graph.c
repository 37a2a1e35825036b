/* scheduler/plan/hint_graph.c -- adds copies of forgotten tensors for the backward part to read.
 *
 * The last forward node gets one more result of size 0, the sign of the turn. The copy of a node
 * reads the sign, so it cannot run earlier. If an operand is forgotten as well, the copy reads the
 * operand's copy. A forward node that reads a forgotten tensor gets an alternative that reads the
 * copies, so it can run again in the backward part at no further cost. */
#include "scheduler/plan/hint_graph.h"

#include <string.h>

#include "scheduler/graph/instance.h"

typedef struct Build {
    LsArena *arena;
    const LsHintMarks *m;
    const LsDag *from;
    LsHinted *h;
    bool *changed;              /* by tensor: a node in the new list updates it */
    uint32_t *copy;             /* by tensor: its copy, or LS_NO_ID */
    bool *wanted;               /* by node: a copy of it is wanted */
    bool *copied;               /* by node: its copy is in the new list */
    bool *dropped;              /* by node: it is an alternative that hints rule out */
    uint32_t *place;            /* by node: its place in the new list */
    uint32_t *waits;            /* by forward node: copies of its operands still to come */
    uint32_t *stack;
    uint32_t sign;              /* the tensor that marks the turn */
} Build;

static uint32_t *ids(LsArena *arena, size_t n, uint32_t all)
{
    uint32_t *id = ls_arena_alloc(arena, n + 1, sizeof *id);
    for (size_t k = 0; k < n; k++)
        id[k] = all;
    return id;
}

/* Returns the last forward node before the backward part that runs for sure, and leaves a state as
 * it is. */
static uint32_t find_turn(LsArena *arena, const LsDag *g)
{
    const LsProb *p = ls_prob_new(arena, g, false);
    uint32_t turn = LS_NO_ID;
    for (uint32_t i = 0; i < g->nnode && g->node[i].kind != LS_DAG_BACKWARD; i++)
        if (g->node[i].kind == LS_DAG_FORWARD && p->needed[i] && g->node[i].nupd == 0
            && (!g->node[i].once || g->node[i].required) && !g->node[i].alternative)
            turn = i;
    return turn;
}

LsHintMarks ls_hint_marks(LsArena *arena, const LsDag *g)
{
    LsHintMarks m = {.dag = g, .maker = ids(arena, g->ntensor, LS_NO_ID)};
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; k < g->node[i].nout && !g->node[i].alternative; k++)
            m.maker[g->node[i].out[k]] = i;
    m.turn = find_turn(arena, g);
    m.changed = ls_arena_alloc(arena, g->ntensor + 1u, sizeof *m.changed);
    for (uint32_t i = 0; m.turn != LS_NO_ID && i <= m.turn; i++)
        for (uint32_t k = 0; k < g->node[i].nupd; k++)
            m.changed[g->node[i].upd[k]] = true;
    m.kept = ls_arena_alloc(arena, g->nnode + 1u, sizeof *m.kept);
    m.forgotten = ls_arena_alloc(arena, g->ntensor + 1u, sizeof *m.forgotten);
    return m;
}

const char *ls_hint_obstacle(const LsHintMarks *m, uint32_t t)
{
    const LsDag *g = m->dag;
    if (g->tensor[t].persistent)
        return "is there all the time, in no arena";
    if (g->tensor[t].output)
        return "is an output, so must be live when the step ends";
    const LsDagNode *n = &g->node[m->maker[t]];
    if (m->turn == LS_NO_ID || m->maker[t] > m->turn || n->kind != LS_DAG_FORWARD)
        return "is not made in the forward part";
    if (n->once || n->nupd > 0)
        return "is made by a node that may run only once";
    for (uint32_t k = 0; k < n->nin; k++)
        if (m->changed[n->in[k]])
            return "is made from a state that the forward part changes";
    return NULL;
}

/* Returns whether hints rule the alternative out: it makes a kept tensor, or avoids reading one. */
static bool ruled_out(const Build *b, const LsDagNode *alt)
{
    const LsHintMarks *m = b->m;
    if (m->no_alternative)
        return true;
    for (uint32_t k = 0; k < alt->nout; k++) {
        uint32_t v = m->maker[alt->out[k]];
        if (v == LS_NO_ID || m->kept[v])
            return true;
        const LsDagNode *usual = &b->from->node[v];
        for (uint32_t j = 0; j < usual->nin; j++) {
            uint32_t t = usual->in[j];
            if (m->maker[t] != LS_NO_ID && m->kept[m->maker[t]]
                && !ls_id_in(alt->in, alt->nin, t))
                return true;
        }
    }
    return false;
}

/* Finds the copies that the backward part reads, and those that these copies read. */
static void find_wanted(Build *b)
{
    const LsHintMarks *m = b->m;
    for (uint32_t i = b->from->nnode; i-- > 0;) {
        const LsDagNode *n = &b->from->node[i];
        bool reads_copies = i > m->turn ? !b->dropped[i] : b->wanted[i];
        for (uint32_t k = 0; reads_copies && k < n->nin; k++)
            if (m->forgotten[n->in[k]])
                b->wanted[m->maker[n->in[k]]] = true;
    }
    for (uint32_t i = 0; i <= m->turn; i++)
        for (uint32_t k = 0; k < b->from->node[i].nin; k++) {
            uint32_t v = m->maker[b->from->node[i].in[k]];
            b->waits[i] += v != LS_NO_ID && b->wanted[v] && m->forgotten[b->from->node[i].in[k]];
        }
}

static const uint32_t *with_copies(Build *b, const uint32_t *id, uint32_t n, bool sign)
{
    uint32_t *to = ls_arena_alloc(b->arena, n + 2u, sizeof *to);
    for (uint32_t k = 0; k < n; k++)
        to[k] = b->copy[id[k]] != LS_NO_ID ? b->copy[id[k]] : id[k];
    if (sign)
        to[n] = b->sign;
    return to;
}

/* Appends node i of the old list. reads_copies, makes_copies: copies replace its operands, its
 * results. */
static LsDagNode *append(Build *b, uint32_t i, bool reads_copies, bool makes_copies)
{
    LsDag *g = b->h->dag;
    const LsDagNode *from = &b->from->node[i];
    LsDagNode *n = &g->node[g->nnode];
    *n = *from;
    n->once |= b->m->kept[i];
    n->of = from->of >= 0 && from->of < i ? (int64_t)b->place[from->of] : -1;
    b->h->node_of[g->nnode++] = i;
    for (uint32_t k = 0; k < from->nupd; k++)
        b->changed[from->upd[k]] = true;
    if (reads_copies)
        n->in = with_copies(b, from->in, from->nin, makes_copies);
    if (makes_copies)
        n->out = with_copies(b, from->out, from->nout, false);
    LsDagPair *pair = ls_arena_alloc(b->arena, from->ninplace + 1u, sizeof *pair);
    for (uint32_t k = 0; k < from->ninplace; k++) {
        uint32_t out = from->inplace[k].out, in = from->inplace[k].in;
        pair[k] = (LsDagPair){makes_copies ? b->copy[out] : out,
                              reads_copies && b->copy[in] != LS_NO_ID ? b->copy[in] : in};
    }
    n->inplace = pair;
    return n;
}

/* Appends an alternative for each forward node whose operands now all have their copies, so that it
 * can run again. */
static void append_readers(Build *b, uint32_t copied)
{
    const LsDagNode *c = &b->from->node[copied];
    for (uint32_t i = copied + 1; i <= b->m->turn; i++) {
        const LsDagNode *n = &b->from->node[i];
        uint32_t reads = 0;
        bool late = false;      /* an operand has been updated already */
        for (uint32_t k = 0; k < c->nout; k++)
            reads += b->m->forgotten[c->out[k]] && ls_id_in(n->in, n->nin, c->out[k]);
        for (uint32_t k = 0; k < n->nin; k++)
            late |= b->changed[n->in[k]];
        b->waits[i] -= reads;
        if (reads == 0 || late || b->waits[i] > 0 || b->wanted[i] || b->dropped[i] || b->m->kept[i]
            || n->once || n->nupd > 0 || n->kind != LS_DAG_FORWARD)
            continue;
        append(b, i, true, false)->alternative = true;
    }
}

static void append_copy(Build *b, uint32_t i)
{
    LsDag *g = b->h->dag;
    const LsDagNode *from = &b->from->node[i];
    for (uint32_t k = 0; k < from->nout; k++) {
        b->copy[from->out[k]] = g->ntensor;
        b->h->tensor_of[g->ntensor] = from->out[k];
        g->tensor[g->ntensor] = b->from->tensor[from->out[k]];
        g->tensor[g->ntensor++].output = false;
    }
    LsDagNode *n = append(b, i, true, true);
    n->nin++;                   /* it reads the sign of the turn */
    n->required = false;
    b->copied[i] = true;
    b->h->ncopy++;
    for (uint32_t k = 0; k < from->nout; k++)
        if (!b->m->forgotten[from->out[k]])     /* the backward part reads the original */
            b->copy[from->out[k]] = LS_NO_ID;
    append_readers(b, i);
}

/* Appends the copy of node i, after the copies that it reads. */
static void make_copy(Build *b, uint32_t i)
{
    uint32_t n = 0;
    b->stack[n++] = i;
    while (n > 0) {
        const LsDagNode *node = &b->from->node[b->stack[n - 1]];
        uint32_t before = n;
        for (uint32_t k = 0; k < node->nin && n == before; k++) {
            uint32_t v = b->m->maker[node->in[k]];
            if (v != LS_NO_ID && b->m->forgotten[node->in[k]] && !b->copied[v])
                b->stack[n++] = v;
        }
        if (n == before && !b->copied[b->stack[--n]])
            append_copy(b, b->stack[n]);
    }
}

/* Appends the copies that must precede node i of the backward part: those it reads, and those that
 * read what it updates. */
static void make_copies_for(Build *b, uint32_t i)
{
    const LsDagNode *n = &b->from->node[i];
    for (uint32_t k = 0; k < n->nin; k++)
        if (b->m->forgotten[n->in[k]] && !b->copied[b->m->maker[n->in[k]]])
            make_copy(b, b->m->maker[n->in[k]]);
    for (uint32_t v = 0; v <= b->m->turn && n->nupd > 0; v++)
        for (uint32_t k = 0; b->wanted[v] && !b->copied[v] && k < n->nupd; k++)
            if (ls_id_in(b->from->node[v].in, b->from->node[v].nin, n->upd[k]))
                make_copy(b, v);
}

static void add_sign(Build *b)
{
    LsDag *g = b->h->dag;
    LsDagNode *n = &g->node[b->h->turn];
    b->sign = g->ntensor;
    g->tensor[g->ntensor++] = (LsDagTensor){.name = "turn"};
    uint32_t *out = ls_arena_alloc(b->arena, n->nout + 1u, sizeof *out);
    memcpy(out, n->out, n->nout * sizeof *out);
    out[n->nout++] = b->sign;
    n->out = out;
}

static void append_all(Build *b)
{
    bool copies = false;
    for (uint32_t i = 0; i < b->from->nnode; i++)
        copies |= b->wanted[i];
    b->h->turn = LS_NO_ID;
    for (uint32_t i = 0; i < b->from->nnode; i++) {
        bool later = copies && i > b->m->turn;
        if (later && !b->dropped[i])
            make_copies_for(b, i);
        b->place[i] = b->h->dag->nnode;
        if (b->dropped[i])
            continue;
        append(b, i, later, false);
        if (copies && i == b->m->turn) {
            b->h->turn = b->place[i];
            add_sign(b);
        }
    }
}

void ls_hint_graph(LsArena *arena, const LsHintMarks *m, LsHinted *out)
{
    const LsDag *from = m->dag;
    uint32_t n = from->nnode, nt = from->ntensor;
    size_t made = nt;           /* every node is copied at most once */
    for (uint32_t i = 0; i < n; i++)
        made += from->node[i].nout;
    LsDag *g = ls_arena_alloc(arena, 1, sizeof *g);
    *out = (LsHinted){.from = from, .dag = g, .node_of = ids(arena, 2 * (size_t)n, 0),
                      .tensor_of = ids(arena, made + 1, LS_NO_ID)};
    *g = *from;
    g->nnode = 0;
    g->node = ls_arena_alloc(arena, 2 * (size_t)n + 1, sizeof *g->node);
    g->tensor = ls_arena_alloc(arena, made + 1, sizeof *g->tensor);
    memcpy(g->tensor, from->tensor, nt * sizeof *g->tensor);
    Build b = {.arena = arena, .m = m, .from = from, .h = out,
               .copy = ids(arena, nt, LS_NO_ID), .place = ids(arena, n, 0),
               .waits = ids(arena, n, 0), .stack = ids(arena, n, 0)};
    b.changed = ls_arena_alloc(arena, nt + 1u, sizeof *b.changed);
    b.wanted = ls_arena_alloc(arena, n + 1u, sizeof *b.wanted);
    b.copied = ls_arena_alloc(arena, n + 1u, sizeof *b.copied);
    b.dropped = ls_arena_alloc(arena, n + 1u, sizeof *b.dropped);
    for (uint32_t t = 0; t < nt; t++)
        out->tensor_of[t] = t;
    for (uint32_t i = 0; i < n; i++)
        b.dropped[i] = from->node[i].alternative && ruled_out(&b, &from->node[i]);
    if (m->turn != LS_NO_ID)
        find_wanted(&b);
    append_all(&b);
}
