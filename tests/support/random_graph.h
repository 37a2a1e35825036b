/* tests/support/random_graph.h -- random training graphs with all features of the format: several
 * and empty results, in-place pairs, workspaces, alternatives, nodes that run once, updates, nodes
 * that must run, several outputs. They do not have the shape of a network; graphs of dag_tools.h
 * have. */
#ifndef LS_TESTS_SUPPORT_RANDOM_GRAPH_H
#define LS_TESTS_SUPPORT_RANDOM_GRAPH_H

#include "tests/support/dag_tools.h"

typedef struct RandomGraph {
    LsArena *arena;
    LsDag *g;
    uint64_t rnd;
    uint32_t *made, nmade;      /* tensors that ordinary nodes have made */
    uint32_t *state, nstate;    /* persistent tensors */
} RandomGraph;

static inline bool rg_one_in(RandomGraph *r, uint32_t n) { return dag_random(&r->rnd, n) == 0; }

static inline uint32_t rg_tensor(RandomGraph *r, bool persistent)
{
    LsDag *g = r->g;
    int64_t bytes = rg_one_in(r, 12) ? 0 : 1 + dag_random(&r->rnd, rg_one_in(r, 3) ? 4000 : 300);
    g->tensor[g->ntensor] = (LsDagTensor){ls_arena_printf(r->arena, "t%u", g->ntensor), bytes,
                                          persistent, false};
    return g->ntensor++;
}

/* Up to `most` tensors made before, mostly late tensors, each once; sometimes a state. */
static inline void rg_reads(RandomGraph *r, LsDagNode *n, uint32_t most)
{
    uint32_t *in = ls_arena_alloc(r->arena, most + 2u, sizeof *in);
    for (uint32_t k = 0; k < most && r->nmade > 0; k++) {
        uint32_t back = dag_random(&r->rnd, rg_one_in(r, 2) && r->nmade > 4 ? 4 : r->nmade);
        uint32_t t = r->made[r->nmade - 1 - back];
        if (!ls_id_in(in, n->nin, t))
            in[n->nin++] = t;
    }
    if (rg_one_in(r, 3))
        in[n->nin++] = r->state[dag_random(&r->rnd, r->nstate)];
    n->in = in;
}

static inline void rg_pairs(RandomGraph *r, LsDagNode *n)
{
    LsDagPair *pair = ls_arena_alloc(r->arena, (size_t)n->nin * n->nout + 1, sizeof *pair);
    for (uint32_t o = 0; o < n->nout; o++)
        for (uint32_t i = 0; i < n->nin; i++)
            if (!r->g->tensor[n->in[i]].persistent && rg_one_in(r, 4))
                pair[n->ninplace++] = (LsDagPair){n->out[o], n->in[i]};
    n->inplace = pair;
}

static inline LsDagNode *rg_node(RandomGraph *r, LsDagKind kind)
{
    LsDag *g = r->g;
    LsDagNode *n = &g->node[g->nnode];
    *n = (LsDagNode){.name = ls_arena_printf(r->arena, "n%u", g->nnode), .op = "Op", .kind = kind,
                     .cost = rg_one_in(r, 9) ? 0 : 1 + dag_random(&r->rnd, 20), .of = -1,
                     .workspace = rg_one_in(r, 5) ? dag_random(&r->rnd, 800) : 0};
    g->nnode++;
    return n;
}

/* An ordinary node, and perhaps an alternative. */
static inline void rg_maker(RandomGraph *r, LsDagKind kind)
{
    LsDagNode *n = rg_node(r, kind);
    uint32_t *out = ls_arena_alloc(r->arena, 2, sizeof *out);
    rg_reads(r, n, 1 + dag_random(&r->rnd, 3));
    n->nout = rg_one_in(r, 5) ? 2 : 1;
    for (uint32_t k = 0; k < n->nout; k++)
        out[k] = rg_tensor(r, false);
    n->out = out;
    n->once = rg_one_in(r, 12);
    n->required = rg_one_in(r, 15);
    rg_pairs(r, n);
    if (!n->once && rg_one_in(r, 6)) {
        LsDagNode *other = rg_node(r, kind);
        rg_reads(r, other, 1 + dag_random(&r->rnd, 2));
        other->out = out;
        other->nout = n->nout;
        other->alternative = true;
        rg_pairs(r, other);
    }
    for (uint32_t k = 0; k < n->nout; k++)
        r->made[r->nmade++] = out[k];
}

/* A node at the end that changes its own state. */
static inline void rg_update(RandomGraph *r, uint32_t state)
{
    LsDagNode *n = rg_node(r, LS_DAG_OPTIMIZER);
    uint32_t *in = ls_arena_alloc(r->arena, 2, sizeof *in);
    in[0] = r->made[r->nmade - 1 - dag_random(&r->rnd, r->nmade / 2 + 1)];
    in[1] = r->state[state];
    n->in = in;
    n->nin = 2;
    n->upd = in + 1;
    n->nupd = 1;
}

/* nforward + nback makers, the updates and the alternatives: valid for ls_dag_check. */
static inline LsDag *random_graph(LsArena *a, uint32_t nforward, uint32_t nback, uint64_t seed)
{
    enum { STATES = 3 };
    static const int64_t alignment[] = {1, 1, 64, 256};
    uint32_t most = 2 * (nforward + nback) + STATES;
    RandomGraph r = {.arena = a, .g = ls_arena_alloc(a, 1, sizeof *r.g), .rnd = seed * 131 + 7};
    r.g->name = ls_arena_printf(a, "random %u", (unsigned)seed);
    r.g->alignment = alignment[dag_random(&r.rnd, 4)];
    r.g->tensor = ls_arena_alloc(a, 2 * most, sizeof *r.g->tensor);
    r.g->node = ls_arena_alloc(a, most, sizeof *r.g->node);
    r.made = ls_arena_alloc(a, 2 * most, sizeof *r.made);
    r.state = ls_arena_alloc(a, STATES, sizeof *r.state);
    for (int k = 0; k < STATES; k++)
        r.state[r.nstate++] = rg_tensor(&r, true);
    for (uint32_t k = 0; k < nforward + nback; k++)
        rg_maker(&r, k < nforward ? LS_DAG_FORWARD : LS_DAG_BACKWARD);
    r.g->tensor[r.made[r.nmade - 1]].output = true;
    for (uint32_t k = 0; k < r.nmade; k++)
        r.g->tensor[r.made[k]].output |= rg_one_in(&r, 10);
    for (uint32_t k = 0; k < STATES; k++)
        if (rg_one_in(&r, 2))
            rg_update(&r, k);
    return r.g;
}

#endif
