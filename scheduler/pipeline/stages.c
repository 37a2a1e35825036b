/* scheduler/pipeline/stages.c -- completes a cut of the forward graph: the stages of all other nodes, the messages between
 * stages, and what each stage takes. */
#include "scheduler/pipeline/stages.h"

#include "scheduler/pipeline/anchors.h"

#include <stdlib.h>
#include <string.h>

/* The stage of a node with an anchor. Phase B goes downwards, so no node may be in a later stage than the makers of gradients
 * that it reads, and no forward node in an earlier one than those of its operands. What updates tell each other may go
 * either way. */
static uint32_t stage_of_other(const LsProb *p, const LsStages *s, uint32_t anchor, uint32_t i)
{
    const bool forward = p->dag->node[i].kind == LS_DAG_FORWARD;
    uint32_t stage = s->stage[anchor];
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
        const uint32_t maker = p->maker[p->in.id[k]], at = s->stage[maker];
        if (forward ? at > stage : p->dag->node[maker].kind == LS_DAG_BACKWARD && at < stage)
            stage = at;
    }
    return stage;
}

/* The stage of an updated parameter is that of its update; of all else, LS_NO_ID. */
static uint32_t *owners(LsArena *arena, const LsProb *p, const LsStages *s)
{
    uint32_t *owner = ls_arena_alloc(arena, p->nt + 1u, sizeof *owner);
    for (uint32_t t = 0; t < p->nt; t++)
        owner[t] = LS_NO_ID;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; p->needed[i] && k < p->dag->node[i].nupd; k++)
            owner[p->dag->node[i].upd[k]] = s->stage[i];
    return owner;
}

static int by_way(const void *x, const void *y)
{
    const LsStageSend *a = x, *b = y;
    const uint32_t u[] = {a->from, a->to, a->made, a->tensor}, v[] = {b->from, b->to, b->made, b->tensor};
    for (int k = 0; k < 4; k++)
        if (u[k] != v[k])
            return u[k] < v[k] ? -1 : 1;
    return 0;
}

/* A tensor and a stage that reads it: its first reading phase. */
static void find_sends(LsArena *arena, const LsProb *p, LsStages *s)
{
    LsArena *tmp = ls_arena_new();
    uint8_t *first = ls_arena_alloc(tmp, (size_t)p->nt * s->k + 1, 1);      /* 1 + phase; 0: not read there */
    size_t n = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = p->in.at[i]; s->stage[i] != LS_NO_ID && p->needed[i] && k < p->in.at[i + 1]; k++) {
            uint8_t *read = &first[(size_t)p->in.id[k] * s->k + s->stage[i]];
            n += *read == 0;
            if (*read == 0 || s->phase[i] + 1 < *read)
                *read = s->phase[i] + 1;
        }
    s->send = ls_arena_alloc(arena, n + 1, sizeof *s->send);
    for (uint32_t t = 0; t < p->nt; t++)
        for (uint32_t k = 0; k < s->k; k++) {
            const uint8_t read = first[(size_t)t * s->k + k];
            if (read == 0 || s->stage[p->maker[t]] == k)
                continue;
            s->send[s->nsend++] = (LsStageSend){t, s->stage[p->maker[t]], k, (LsPipePhase)s->phase[p->maker[t]],
                                                (LsPipePhase)(read - 1),
                                                p->dag->node[p->maker[t]].kind == LS_DAG_OPTIMIZER, p->dag->tensor[t].bytes};
        }
    qsort(s->send, s->nsend, sizeof *s->send, by_way);
    ls_arena_free(tmp);
}

/* Persistent tensors: the state of each stage that reads them, and copies of what another stage updates. */
static void find_state(LsArena *arena, const LsProb *p, LsStages *s)
{
    LsArena *tmp = ls_arena_new();
    const uint32_t *owner = owners(tmp, p, s);
    bool *there = ls_arena_alloc(tmp, (size_t)p->nt * s->k + 1, 1);
    size_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const LsDagNode *node = &p->dag->node[i];
        for (uint32_t k = 0; s->stage[i] != LS_NO_ID && p->needed[i] && k < node->nin; k++) {
            bool *at = &there[(size_t)node->in[k] * s->k + s->stage[i]];
            n += !*at;
            *at = true;
        }
    }
    s->copy = ls_arena_alloc(arena, n + 1, sizeof *s->copy);
    for (uint32_t t = 0; t < p->nt; t++)
        for (uint32_t k = 0; k < s->k; k++) {
            const LsDagTensor *of = &p->dag->tensor[t];
            if (!of->persistent || !there[(size_t)t * s->k + k])
                continue;
            s->of[k].state += ls_align(of->bytes, p->dag->alignment);
            if (owner[t] != LS_NO_ID && owner[t] != k)
                s->copy[s->ncopy++] = (LsStageCopy){t, owner[t], k, of->bytes};
        }
    ls_arena_free(tmp);
}

/* The operands of an alternative must be made in its stage or sent there anyway. */
static void place_alternatives(const LsProb *p, LsStages *s)
{
    LsArena *tmp = ls_arena_new();
    bool *there = ls_arena_alloc(tmp, (size_t)p->nt * s->k + 1, 1);
    for (uint32_t t = 0; t < p->nt; t++)
        if (p->maker[t] != LS_NO_ID && s->stage[p->maker[t]] != LS_NO_ID)
            there[(size_t)t * s->k + s->stage[p->maker[t]]] = true;
    for (uint32_t k = 0; k < s->nsend; k++)
        there[(size_t)s->send[k].tensor * s->k + s->send[k].to] = true;
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t k = p->swap.at[v]; s->stage[v] != LS_NO_ID && k < p->swap.at[v + 1]; k++) {
            const uint32_t alt = p->swap.id[k];
            bool all = true;
            for (uint32_t j = p->in.at[alt]; j < p->in.at[alt + 1]; j++)
                all &= there[(size_t)p->in.id[j] * s->k + s->stage[v]];
            s->stage[alt] = all ? s->stage[v] : LS_NO_ID;
            s->phase[alt] = s->phase[v];
        }
    ls_arena_free(tmp);
}

/* What is live in a stage while its phases run in list order, every node once. */
typedef struct Live {
    const LsProb *p;
    LsStages *s;
    uint32_t stage;
    uint32_t *until;            /* by tensor: the last node of the stage that reads it, with W behind B; LS_NO_ID: none */
    bool *there;                /* by tensor */
    int64_t bytes;
} Live;

static void make(Live *l, uint32_t t)
{
    l->bytes += l->there[t] ? 0 : l->p->size[t];
    l->there[t] = true;
}

static void run(Live *l, uint32_t i)
{
    const LsProb *p = l->p;
    int64_t *peak = &l->s->of[l->stage].peak[l->s->phase[i]];
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
        make(l, p->in.id[k]);               /* if it was received */
    for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++)
        make(l, p->out.id[k]);
    *peak = l->bytes + p->workspace[i] > *peak ? l->bytes + p->workspace[i] : *peak;
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
        if (l->until[p->in.id[k]] == i) {
            l->there[p->in.id[k]] = false;
            l->bytes -= p->size[p->in.id[k]];
        }
    for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++)
        if (l->until[p->out.id[k]] == LS_NO_ID) {
            l->there[p->out.id[k]] = false;
            l->bytes -= p->size[p->out.id[k]];
        }
}

static void find_peaks(const LsProb *p, LsStages *s, uint32_t stage)
{
    LsArena *tmp = ls_arena_new();
    Live l = {p, s, stage, ls_arena_alloc(tmp, p->nt + 1u, sizeof *l.until), ls_arena_alloc(tmp, p->nt + 1u, 1), 0};
    int64_t *end[] = {&s->of[stage].kept, &s->of[stage].late};
    for (uint32_t t = 0; t < p->nt; t++)
        l.until[t] = LS_NO_ID;
    for (int phase = 0; phase < LS_PHASES; phase++)
        for (uint32_t i = 0; i < p->n; i++)
            for (uint32_t k = p->in.at[i]; p->needed[i] && s->stage[i] == stage && s->phase[i] == phase
                                           && k < p->in.at[i + 1]; k++)
                l.until[p->in.id[k]] = i;
    for (int phase = 0; phase < LS_PHASES; phase++) {
        for (uint32_t i = 0; i < p->n; i++)
            if (p->needed[i] && s->stage[i] == stage && s->phase[i] == phase)
                run(&l, i);
        for (uint32_t k = 0; phase == LS_PHASE_F && k < s->nsend; k++)
            if (s->send[k].to == stage && s->send[k].made == LS_PHASE_F && s->send[k].read != LS_PHASE_F)
                make(&l, s->send[k].tensor);
        if (phase < LS_PHASE_W)
            *end[phase] = l.bytes;
    }
    ls_arena_free(tmp);
}

static double slowest(const LsStages *s)
{
    double most = 0;
    for (uint32_t k = 0; k < s->k; k++) {
        const double *of = s->of[k].ns, ns = of[LS_PHASE_F] + of[LS_PHASE_B] + of[LS_PHASE_W];
        most = ns > most ? ns : most;
    }
    return most;
}

void ls_stages_complete(LsArena *arena, const LsProb *p, LsStages *s)
{
    LsArena *tmp = ls_arena_new();
    const LsAnchors anchor = ls_anchors(tmp, p);
    s->phase = ls_arena_alloc(arena, p->n + 1u, sizeof *s->phase);
    s->of = ls_arena_alloc(arena, s->k, sizeof *s->of);
    for (uint32_t i = 0; i < p->n; i++) {
        s->phase[i] = (uint8_t)ls_phase_of(p, i);
        if (!p->forward[i])
            s->stage[i] = p->needed[i] && anchor.at[i] != LS_NO_ID ? stage_of_other(p, s, anchor.at[i], i) : LS_NO_ID;
        if (s->stage[i] != LS_NO_ID)
            s->of[s->stage[i]].ns[s->phase[i]] += p->cost[i];
    }
    find_sends(arena, p, s);
    find_state(arena, p, s);
    place_alternatives(p, s);
    for (uint32_t k = 0; k < s->k; k++)
        find_peaks(p, s, k);
    s->bottleneck = slowest(s);
    ls_arena_free(tmp);
}
