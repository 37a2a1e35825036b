/* compiler/per_sample/sample_axis.c -- see the header. Batch norms need statistics of the batch, so
 * these are no mixing. But an output of a model consists of samples, so its first place must be
 * outermost. */
#include "compiler/per_sample/sample_axis.h"

#include "base/arena.h"
#include "compiler/ir/graph.h"
#include "compiler/per_sample/follow_samples.h"

/* Marks the nodes that the outputs are computed by. */
static bool *needed(LsCtx *cx, const LsGraph *g, const LsValueId y[], uint32_t n)
{
    bool *need = ls_arena_alloc(cx->arena, g->nnode + 1, sizeof *need);
    for (uint32_t k = 0; k < n; k++)
        need[g->value[y[k].i].def.i] = true;
    for (uint32_t i = g->nnode; i-- > 1;)
        for (int k = 0; need[i] && k < g->node[i].nin; k++)
            need[g->value[ls_in(g, (LsNodeId){i}, k).i].def.i] = true;
    return need;
}

/* The node that took the outermost place from an output; none: the place is there, or cannot be
 * followed. */
static LsNodeId without_samples(const LsSamples *f, LsValueId y)
{
    const LsPlaces *t = &f->of[y.i];
    const int64_t count = ls_count(ls_shape(f->g, y));
    for (int i = 0; i < t->n; i++)
        if (t->inner[i] * f->g->batch == count)
            return (LsNodeId){0};
    if (t->lost || !t->sampled || count == 1)
        return (LsNodeId){0};
    return t->n > 0 ? f->g->value[y.i].def : t->gone;
}

LsNoSamples ls_find_no_samples(LsCtx *cx, const LsGraph *g, const LsValueId y[], uint32_t n)
{
    const LsSamples f = ls_follow_samples(cx, g, needed(cx, g, y, n), NULL);
    LsNoSamples found = {f.mixed, f.mixed.i != 0};
    for (uint32_t k = 0; k < n && found.at.i == 0; k++)
        found.at = without_samples(&f, y[k]);
    return found;
}
