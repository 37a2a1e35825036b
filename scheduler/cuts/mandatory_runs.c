/* scheduler/cuts/mandatory_runs.c -- see the header. Where updates run, and in which phase:
 * scheduler/pipeline/phases_and_messages.c; what is forgotten: scheduler/plan/hint_graph.c. */
#include "scheduler/cuts/mandatory_runs.h"

#include "scheduler/cuts/node_times.h"

static bool is_update(const LsProb *p, uint32_t i)
{
    return p->dag->node[i].kind == LS_DAG_OPTIMIZER;
}

static bool is_in_f(const LsProb *p, const LsCertain *c, uint32_t i)
{
    return p->dag->node[i].kind == LS_DAG_FORWARD || c->ahead[i];
}

/* An update that needs nothing of phase B and W runs in phase F, unless its operands are made in
 * later stages than its own. No cut has them there if all belong to the anchor that the update
 * stays with. */
static void find_ahead(const LsProb *p, const LsAnchors *a, LsCertain *c)
{
    for (uint32_t i = 0; i < p->n; i++) {
        bool perhaps = p->needed[i] && is_update(p, i),
             ahead = perhaps && c->stays[i] && !a->loose[i];
        for (uint32_t k = p->in.at[i]; perhaps && k < p->in.at[i + 1]; k++) {
            const uint32_t m = p->maker[p->in.id[k]];
            perhaps = p->dag->node[m].kind == LS_DAG_FORWARD || c->perhaps_ahead[m];
            ahead &= is_in_f(p, c, m) && !a->loose[m] && a->at[m] == a->at[i]
                     && (!is_update(p, m) || c->stays[m]);
        }
        c->perhaps_ahead[i] = perhaps;
        c->ahead[i] = perhaps && ahead;
    }
}

static bool reads(const LsProb *p, uint32_t node, uint32_t t)
{
    return ls_id_in(p->in.id + p->in.at[node], p->in.at[node + 1] - p->in.at[node], t);
}

static bool reads_result(const LsProb *p, uint32_t node, uint32_t maker)
{
    for (uint32_t k = p->out.at[maker]; k < p->out.at[maker + 1]; k++)
        if (reads(p, node, p->out.id[k]))
            return true;
    return false;
}

/* Whether every alternative of the node reads a result of the maker or, unless it is LS_NO_ID,
 * tensor t. */
static bool all_read(const LsProb *p, uint32_t node, uint32_t maker, uint32_t t)
{
    for (uint32_t k = p->swap.at[node]; k < p->swap.at[node + 1]; k++)
        if (!reads_result(p, p->swap.id[k], maker)
            && (t == LS_NO_ID || !reads(p, p->swap.id[k], t)))
            return false;
    return true;
}

/* Marks what must run early so that node i can read this operand: its producer or, if every
 * alternative skips the producer, the producer's own operands. */
static void add_early(const LsProb *p, LsCertain *c, bool alternatives, uint32_t i, uint32_t maker)
{
    if (!alternatives || all_read(p, i, maker, LS_NO_ID)) {
        c->early[maker] = true;
        return;
    }
    for (uint32_t k = p->in.at[maker]; k < p->in.at[maker + 1]; k++) {
        const uint32_t t = p->in.id[k], above = p->maker[t];
        c->early[above] |= all_read(p, maker, above, LS_NO_ID) && all_read(p, i, maker, t);
    }
}

/* What changes a state in phase F, and the results of the whole graph, belong to the phase's
 * end. */
static void find_early(const LsProb *p, LsCertain *c, bool alternatives)
{
    const LsDag *g = p->dag;
    for (uint32_t i = p->n; i-- > 0;) {
        if (!p->needed[i] || !is_in_f(p, c, i))
            continue;
        c->early[i] |= g->node[i].nupd > 0;
        for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++)
            c->early[i] |= g->tensor[p->out.id[k]].output;
        for (uint32_t k = p->in.at[i]; c->early[i] && k < p->in.at[i + 1]; k++)
            add_early(p, c, alternatives, i, p->maker[p->in.id[k]]);
    }
}

/* A state that changes. */
typedef struct State {
    uint32_t updater;           /* LS_NO_ID: it does not change */
    uint32_t anchor;            /* of all other nodes that read it; LS_NO_ID: there are none */
    bool apart;                 /* these belong to several anchors, or to none for sure */
} State;

static State *find_states(LsArena *arena, const LsProb *p, const LsAnchors *a)
{
    State *s = ls_arena_alloc(arena, p->nt + 1u, sizeof *s);
    for (uint32_t t = 0; t < p->nt; t++)
        s[t] = (State){LS_NO_ID, LS_NO_ID, false};
    for (uint32_t i = 0; i < p->n; i++) {
        const LsDagNode *node = &p->dag->node[i];
        for (uint32_t k = 0; p->needed[i] && k < node->nupd; k++)
            s[node->upd[k]].updater = i;
        for (uint32_t k = 0; p->needed[i] && !is_update(p, i) && k < node->nin; k++) {
            State *of = &s[node->in[k]];
            of->apart |= a->loose[i] || (of->anchor != LS_NO_ID && of->anchor != a->at[i]);
            of->anchor = a->at[i];
        }
    }
    return s;
}

/* Whether some cut moves an update to where a gradient is made that it reads, and its state with
 * it. */
static bool may_move(const LsProb *p, const LsAnchors *a, uint32_t i)
{
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
        const uint32_t m = p->maker[p->in.id[k]];
        if (p->dag->node[m].kind == LS_DAG_BACKWARD
            && (a->loose[i]
                || (p->role[m] != LS_ROLE_SPINE && (a->loose[m] || a->at[m] != a->at[i]))))
            return true;
    }
    return false;
}

/* An update runs in the stage that holds its state. State that other nodes read fixes that stage;
 * state of its own follows the update, which then runs where its operands are computed. */
static bool stays(const LsProb *p, const LsAnchors *a, const State *state, uint32_t i)
{
    const LsDagNode *node = &p->dag->node[i];
    bool alone = !a->loose[i];
    if (!is_update(p, i))
        return true;
    for (uint32_t k = 0; k < node->nin; k++) {
        const State *s = &state[node->in[k]];
        if (s->updater == LS_NO_ID)
            continue;
        if (s->anchor == a->at[i] && !s->apart && !a->loose[i] && !may_move(p, a, s->updater))
            return true;
        alone &= s->updater == i && s->anchor == LS_NO_ID;
    }
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
        const uint32_t m = p->maker[p->in.id[k]];
        alone &= !is_update(p, m) && !a->loose[m] && a->at[m] == a->at[i];
    }
    return alone;
}

static bool forgets(const LsProb *p, const LsCertain *c, const State *state, uint32_t i)
{
    const LsDagNode *node = &p->dag->node[i];
    bool f = node->kind == LS_DAG_FORWARD && !node->once && node->nupd == 0;
    for (uint32_t k = 0; k < node->nin; k++) {
        const uint32_t by = state[node->in[k]].updater;
        f &= by == LS_NO_ID || !(p->dag->node[by].kind == LS_DAG_FORWARD || c->perhaps_ahead[by]);
    }
    return f;
}

LsCertain ls_certain_runs(LsArena *arena, const LsProb *p, const LsAnchors *a, bool alternatives)
{
    LsCertain c;
    bool **const of[] = {&c.runs, &c.early, &c.ahead, &c.perhaps_ahead, &c.stays, &c.forgets};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        *of[k] = ls_arena_alloc(arena, p->n + 1u, sizeof **of[k]);
    const State *state = find_states(arena, p, a);
    if (alternatives)
        ls_least_times(arena, p, c.runs);
    for (uint32_t i = 0; i < p->n; i++)
        c.stays[i] = p->needed[i] && stays(p, a, state, i);
    find_ahead(p, a, &c);
    find_early(p, &c, alternatives);
    for (uint32_t i = 0; i < p->n; i++) {
        c.runs[i] |= !alternatives && p->needed[i];
        c.forgets[i] = p->needed[i] && forgets(p, &c, state, i);
    }
    return c;
}
