/* scheduler/cuts/forward_owner.c -- see the header. */
#include "scheduler/cuts/forward_owner.h"

#include <string.h>

LsPipePhase ls_phase_of(const LsProb *p, uint32_t node)
{
    if (p->dag->node[node].kind == LS_DAG_FORWARD)
        return LS_PHASE_F;
    return p->role[node] == LS_ROLE_SPINE ? LS_PHASE_B : LS_PHASE_W;
}

/* Without a forward node of its own: the latest forward node that it reads from or, if it reads
 * gradients alone, the earliest anchor among these. */
static uint32_t anchor_by_operands(const LsProb *p, const LsAnchors *a, uint32_t i)
{
    uint32_t latest = LS_NO_ID, earliest = LS_NO_ID;
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
        const uint32_t maker = p->maker[p->in.id[k]], at = a->at[maker];
        if (at == LS_NO_ID)
            continue;
        if (p->dag->node[maker].kind == LS_DAG_FORWARD)
            latest = latest == LS_NO_ID || at > latest ? at : latest;
        else
            earliest = at < earliest ? at : earliest;       /* LS_NO_ID is the largest */
    }
    return p->dag->node[i].kind != LS_DAG_FORWARD && earliest != LS_NO_ID ? earliest : latest;
}

static uint32_t anchor_of(const LsProb *p, const LsAnchors *a, uint32_t i)
{
    const int64_t of = p->dag->node[i].of;
    if (!p->needed[i])
        return LS_NO_ID;
    if (p->forward[i])
        return i;
    if (of >= 0 && of < (int64_t)i && a->at[of] != LS_NO_ID)
        return a->at[of];
    return anchor_by_operands(p, a, i);
}

/* Nodes without an anchor so far belong to their first reader; if that has none either, to the last
 * forward node. */
static void anchor_orphans(LsArena *tmp, const LsProb *p, LsAnchors *a)
{
    bool *orphan = ls_arena_alloc(tmp, p->n + 1u, 1);
    uint32_t last = LS_NO_ID;
    for (uint32_t i = 0; i < p->n; i++) {
        orphan[i] = p->needed[i] && a->at[i] == LS_NO_ID;
        last = p->forward[i] ? i : last;
    }
    for (uint32_t i = p->n; i-- > 0;) {             /* of a node's readers the first comes last */
        if (p->needed[i] && a->at[i] == LS_NO_ID)
            a->at[i] = last;
        for (uint32_t k = p->in.at[i]; p->needed[i] && k < p->in.at[i + 1]; k++)
            if (orphan[p->maker[p->in.id[k]]])
                a->at[p->maker[p->in.id[k]]] = a->at[i];
    }
}

typedef struct Sets {           /* of nodes with p->forward, by node */
    uint32_t nword;
    uint64_t *before;           /* itself and what it depends on */
    uint64_t *places;           /* LsAnchors.places */
} Sets;

static void add(uint64_t *set, uint32_t i) { set[i / 64] |= UINT64_C(1) << (i % 64); }

static void find_before(const LsProb *p, Sets *s)
{
    for (uint32_t i = 0; i < p->n; i++) {
        uint64_t *mine = s->before + (size_t)i * s->nword;
        if (!p->forward[i])
            continue;
        add(mine, i);
        for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
            for (uint32_t w = 0; w < s->nword; w++)
                mine[w] |= s->before[(size_t)p->maker[p->in.id[k]] * s->nword + w];
    }
}

/* Whether every cut has `low` in no later stage than the operand. */
static bool is_below(const Sets *s, uint32_t low, uint32_t operand)
{
    const uint64_t *places = s->places + (size_t)operand * s->nword;
    for (uint32_t w = 0; w < s->nword; w++)
        for (uint64_t left = places[w]; left != 0; left &= left - 1) {
            const uint32_t at = 64 * w + (uint32_t)__builtin_ctzll(left);
            if (!(s->before[(size_t)at * s->nword + low / 64] >> (low % 64) & 1))
                return false;
        }
    return true;
}

/* Whether operand k of node i may force it into another stage than its anchor's: gradients into an
 * earlier one, a forward node into a later one. What updates tell each other forces nothing. */
static bool may_force(const LsProb *p, const LsAnchors *a, const Sets *s, uint32_t i, uint32_t k)
{
    const uint32_t maker = p->maker[p->in.id[k]];
    const bool forward = p->dag->node[i].kind == LS_DAG_FORWARD;
    if (a->at[maker] == LS_NO_ID
        || p->dag->node[maker].kind != (forward ? LS_DAG_FORWARD : LS_DAG_BACKWARD))
        return false;
    if (forward)
        return !(s->before[(size_t)a->at[i] * s->nword + a->at[maker] / 64] >> (a->at[maker] % 64)
                 & 1);
    return !is_below(s, a->at[i], maker);
}

static void find_place(const LsProb *p, LsAnchors *a, Sets *s, uint32_t i)
{
    uint64_t *places = s->places + (size_t)i * s->nword;
    add(places, a->at[i]);
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1] && !p->forward[i]; k++) {
        if (!may_force(p, a, s, i, k))
            continue;
        a->loose[i] = true;
        for (uint32_t w = 0; w < s->nword; w++)
            places[w] |= s->places[(size_t)p->maker[p->in.id[k]] * s->nword + w];
    }
}

LsAnchors ls_anchors(LsArena *arena, const LsProb *p)
{
    LsArena *tmp = ls_arena_new();
    Sets s = {.nword = p->n / 64 + 1};
    s.before = ls_arena_alloc(tmp, (size_t)p->n * s.nword + 1, sizeof *s.before);
    s.places = ls_arena_alloc(arena, (size_t)p->n * s.nword + 1, sizeof *s.places);
    find_before(p, &s);
    LsAnchors a = {ls_arena_alloc(arena, p->n + 1u, sizeof *a.at),
                   ls_arena_alloc(arena, p->n + 1u, sizeof *a.loose), s.nword, s.places};
    for (uint32_t i = 0; i < p->n; i++)
        a.at[i] = LS_NO_ID;
    for (uint32_t i = 0; i < p->n; i++)
        a.at[i] = anchor_of(p, &a, i);
    anchor_orphans(tmp, p, &a);
    for (uint32_t i = 0; i < p->n; i++)
        if (a.at[i] != LS_NO_ID)
            find_place(p, &a, &s, i);
    ls_arena_free(tmp);
    return a;
}
