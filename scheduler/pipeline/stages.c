/* scheduler/pipeline/stages.c -- completes a cut of the forward graph: the stages of all other nodes, the messages between
 * stages, and what each stage takes. */
#include "scheduler/pipeline/stages.h"

#include <stdlib.h>
#include <string.h>

/* The stage of a node that is no vertex of the forward graph. Phases run B downwards, so no node may be in a later stage
 * than the makers of gradients that it reads. */
static uint32_t stage_of_other(const LsProb *p, const LsStages *s, uint32_t i)
{
    const LsDagNode *node = &p->dag->node[i];
    uint32_t own = node->of >= 0 ? s->stage[node->of] : LS_NO_ID, most = s->k - 1, reads = 0;
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
        const uint32_t maker = p->maker[p->in.id[k]];
        if (s->stage[maker] == LS_NO_ID)
            continue;
        if (p->forward[maker] && s->stage[maker] > reads)
            reads = s->stage[maker];
        if (!p->forward[maker] && s->stage[maker] < most)
            most = s->stage[maker];
    }
    own = own != LS_NO_ID ? own : reads;
    return own < most ? own : most;
}

static LsPipePhase phase_of(const LsProb *p, uint32_t i)
{
    if (p->dag->node[i].kind == LS_DAG_FORWARD)
        return LS_PHASE_F;
    return p->role[i] == LS_ROLE_SPINE ? LS_PHASE_B : LS_PHASE_W;
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
                                                (LsPipePhase)(read - 1), p->dag->tensor[t].bytes};
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

/* Tensors of phase F, own or received, that B or W of the stage reads. */
static void find_kept(const LsProb *p, LsStages *s)
{
    LsArena *tmp = ls_arena_new();
    bool *kept = ls_arena_alloc(tmp, (size_t)p->nt * s->k + 1, 1);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = p->in.at[i]; p->needed[i] && s->phase[i] != LS_PHASE_F && k < p->in.at[i + 1]; k++) {
            const uint32_t t = p->in.id[k];
            bool *at = &kept[(size_t)t * s->k + s->stage[i]];
            if (s->phase[p->maker[t]] == LS_PHASE_F && !*at) {
                *at = true;
                s->of[s->stage[i]].kept += p->size[t];
            }
        }
    ls_arena_free(tmp);
}

void ls_stages_complete(LsArena *arena, const LsProb *p, LsStages *s)
{
    s->phase = ls_arena_alloc(arena, p->n + 1u, sizeof *s->phase);
    s->of = ls_arena_alloc(arena, s->k, sizeof *s->of);
    for (uint32_t i = 0; i < p->n; i++) {
        s->phase[i] = (uint8_t)phase_of(p, i);
        if (!p->forward[i])
            s->stage[i] = p->needed[i] ? stage_of_other(p, s, i) : LS_NO_ID;
        if (s->stage[i] != LS_NO_ID)
            s->of[s->stage[i]].ns[s->phase[i]] += p->cost[i];
    }
    find_sends(arena, p, s);
    find_state(arena, p, s);
    find_kept(p, s);
    s->bottleneck = 0;
    for (uint32_t k = 0; k < s->k; k++) {
        const LsStageFigures *of = &s->of[k];
        const double ns = of->ns[LS_PHASE_F] + of->ns[LS_PHASE_B] + of->ns[LS_PHASE_W] + of->again_ns;
        s->bottleneck = ns > s->bottleneck ? ns : s->bottleneck;
    }
}
