/* scheduler/cuts/file_order_cut.c -- cuts the forward nodes in list order, as frameworks do. */
#include "scheduler/cuts/stages.h"

#include <inttypes.h>
#include <stdio.h>

/* By node: its time and that of the backward nodes that come from it. */
static double *whole_times(LsArena *arena, const LsProb *p, double *sum)
{
    double *ns = ls_arena_alloc(arena, p->n + 1u, sizeof *ns);
    for (uint32_t i = 0; i < p->n; i++) {
        const int64_t of = p->dag->node[i].of;
        const bool counts = p->forward[i] || (p->needed[i] && of >= 0 && p->forward[of]);
        ns[p->forward[i] || !counts ? i : of] += counts ? p->cost[i] : 0;
        *sum += counts ? p->cost[i] : 0;
    }
    return ns;
}

bool ls_stages_in_file_order(LsArena *arena, const LsProb *p, const LsStageOptions *o,
                             LsStages *out, char *why, size_t room)
{
    uint32_t n = 0, at = 0;
    double sum = 0, before = 0;
    const double *ns = whole_times(arena, p, &sum);
    for (uint32_t i = 0; i < p->n; i++)
        n += p->forward[i];
    if (o->stages > n || o->stages > LS_MOST_STAGES) {
        snprintf(why, room,
                 "%" PRIu32 " stages are too many: the forward part has %" PRIu32
                 " kernels, and a pipeline at most "
                 "%d stages",
                 o->stages, n, LS_MOST_STAGES);
        return false;
    }
    *out =
        (LsStages){.k = o->stages, .stage = ls_arena_alloc(arena, p->n + 1u, sizeof *out->stage)};
    /* The middle of a node's time says in which part it lies; every part has a node. */
    uint32_t stage = 0, left = n;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->forward[i])
            continue;
        const uint32_t want = sum > 0 ? (uint32_t)((before + ns[i] / 2) / sum * o->stages) : 0;
        const bool last_chance = left == o->stages - 1 - stage;
        if (at > 0 && stage + 1 < o->stages && (want > stage || last_chance))
            stage++, at = 0;
        out->stage[i] = stage;
        before += ns[i];
        at++;
        left--;
    }
    ls_stages_complete(arena, p, out);
    return true;
}
