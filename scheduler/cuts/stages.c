/* scheduler/cuts/stages.c -- completes a cut of the forward graph: the stages of all other nodes,
 * and their times. */
#include "scheduler/cuts/stages.h"

#include "scheduler/cuts/forward_owner.h"

/* The stage of a node with an anchor. Phase B goes downwards, so no node may be in a later stage
 * than the makers of gradients that it reads, and no forward node in an earlier one than those of
 * its operands. What updates tell each other may go either way. */
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

static double slowest(const LsStages *s)
{
    double most = 0;
    for (uint32_t k = 0; k < s->k; k++) {
        const double ns = s->ns[k][LS_PHASE_F] + s->ns[k][LS_PHASE_B] + s->ns[k][LS_PHASE_W];
        most = ns > most ? ns : most;
    }
    return most;
}

void ls_stages_complete(LsArena *arena, const LsProb *p, LsStages *s)
{
    LsArena *tmp = ls_arena_new();
    const LsAnchors anchor = ls_anchors(tmp, p);
    s->phase = ls_arena_alloc(arena, p->n + 1u, sizeof *s->phase);
    s->ns = ls_arena_alloc(arena, s->k, sizeof *s->ns);
    for (uint32_t i = 0; i < p->n; i++) {
        s->phase[i] = (uint8_t)ls_phase_of(p, i);
        if (!p->forward[i])
            s->stage[i] = p->needed[i] && anchor.at[i] != LS_NO_ID
                              ? stage_of_other(p, s, anchor.at[i], i)
                              : LS_NO_ID;
        if (s->stage[i] != LS_NO_ID)
            s->ns[s->stage[i]][s->phase[i]] += p->cost[i];
    }
    s->bottleneck = slowest(s);
    ls_arena_free(tmp);
}
