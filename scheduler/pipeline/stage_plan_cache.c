/* scheduler/pipeline/stage_plan_cache.c -- see the header. */
#include "scheduler/pipeline/stage_plan_cache.h"

#include <string.h>

typedef struct Entry { const LsPipeGraph *graph; LsPlanSource source; LsPlanned planned; } Entry;

struct LsPlanMemo {
    LsArena *arena;
    LsPipeGraph **graph; uint32_t ngraph, graph_room;
    Entry *entry; uint32_t nentry, entry_room;
};

LsPlanMemo *ls_plan_memo_new(LsArena *arena)
{
    LsPlanMemo *m = ls_arena_alloc(arena, 1, sizeof *m);
    m->arena = arena;
    return m;
}

static bool same_list(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb)
{
    return na == nb && (na == 0 || memcmp(a, b, na * sizeof *a) == 0);
}

/* Nodes of one graph that is cut in two ways differ in what the cut adds. */
static bool same_node(const LsDagNode *a, const LsDagNode *b)
{
    return same_list(a->in, a->nin, b->in, b->nin) && same_list(a->out, a->nout, b->out, b->nout)
           && a->once == b->once && a->required == b->required && a->of == b->of;
}

static bool same_graph(const LsPipeGraph *a, const LsPipeGraph *b)
{
    const LsDag *x = &a->dag, *y = &b->dag;
    if (x->nnode != y->nnode || x->ntensor != y->ntensor
        || memcmp(a->begin, b->begin, sizeof a->begin) != 0
        || memcmp(a->node_of, b->node_of, x->nnode * sizeof *a->node_of) != 0)
        return false;
    for (uint32_t t = 0; t < x->ntensor; t++)
        if (x->tensor[t].output != y->tensor[t].output)
            return false;
    for (uint32_t i = 0; i < x->nnode; i++)
        if (!same_node(&x->node[i], &y->node[i]))
            return false;
    return true;
}

LsPipeGraph *ls_plan_memo_graph(LsPlanMemo *m, const LsPipeCut *c, uint32_t stage)
{
    LsArena *tmp = ls_arena_new();
    LsPipeGraph g;
    ls_pipe_graph(tmp, c, stage, false, &g);
    uint32_t k = 0;
    while (k < m->ngraph && !same_graph(m->graph[k], &g))
        k++;
    ls_arena_free(tmp);
    if (k < m->ngraph)
        return m->graph[k];
    m->graph = ls_arena_grow(m->arena, m->graph, m->ngraph, m->ngraph + 1u, sizeof(LsPipeGraph *),
                             &m->graph_room);
    m->graph[k] = ls_arena_alloc(m->arena, 1, sizeof(LsPipeGraph));
    ls_pipe_graph(m->arena, c, stage, false, m->graph[k]);
    m->ngraph++;
    return m->graph[k];
}

LsPlanned ls_plan_memo_find(const LsPlanMemo *m, const LsPipeGraph *g, const LsPlanSource *source)
{
    for (uint32_t k = 0; k < m->nentry; k++) {
        const LsPlanSource *s = &m->entry[k].source;
        if (m->entry[k].graph == g && s->policy == source->policy && s->extra == source->extra
            && s->late == source->late && s->part == source->part && s->effort == source->effort
            && s->one == source->one)
            return m->entry[k].planned;
    }
    return (LsPlanned){.found = false};
}

void ls_plan_memo_add(LsPlanMemo *m, const LsPipeGraph *g, const LsPlanSource *source,
                      const LsPlan *plan, uint32_t n)
{
    LsPlan *copy = ls_arena_alloc(m->arena, n + 1u, sizeof *copy);
    for (uint32_t k = 0; k < n; k++)
        ls_plan_copy(m->arena, &plan[k], &copy[k]);
    m->entry = ls_arena_grow(m->arena, m->entry, m->nentry, m->nentry + 1u, sizeof *m->entry,
                             &m->entry_room);
    m->entry[m->nentry++] = (Entry){g, *source, {copy, n, true}};
}
