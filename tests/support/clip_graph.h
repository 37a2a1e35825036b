/* tests/support/clip_graph.h -- small training graphs in which something waits for all gradients,
 * as clipping by their norm does: layers, a running statistic, the loss, backward nodes, a norm per
 * weight, their factor, updates. Gradients are read twice, so backward nodes may pay to run twice.
 * Updates, the statistic and a few random nodes must run once. */
#ifndef LS_TESTS_SUPPORT_CLIP_GRAPH_H
#define LS_TESTS_SUPPORT_CLIP_GRAPH_H

#include "tests/support/dag_tools.h"

enum { CLIP_LAYERS = 16 };

typedef struct ClipGraph {
    LsArena *arena;
    LsDag *g;
    uint64_t rnd;
} ClipGraph;

static inline bool cg_one_in(ClipGraph *c, uint32_t n) { return dag_random(&c->rnd, n) == 0; }

static inline uint32_t cg_tensor(ClipGraph *c, const char *name, uint32_t of, int64_t bytes,
                                 bool persistent)
{
    LsDag *g = c->g;
    g->tensor[g->ntensor] =
        (LsDagTensor){ls_arena_printf(c->arena, "%s%u", name, of), bytes, persistent, false};
    return g->ntensor++;
}

/* A node that reads in[0 .. n) and makes a tensor of that size, whose id it returns. */
static inline uint32_t cg_node(ClipGraph *c, LsDagKind kind, const char *makes, uint32_t of,
                               const uint32_t *in, uint32_t n, int64_t bytes)
{
    LsDag *g = c->g;
    uint32_t *id = ls_arena_alloc(c->arena, n + 1u, sizeof *id);
    memcpy(id, in, n * sizeof *id);
    id[n] = cg_tensor(c, makes, of, bytes, false);
    g->node[g->nnode] = (LsDagNode){.name = g->tensor[id[n]].name,
                                    .op = "Op",
                                    .kind = kind,
                                    .cost = 1 + dag_random(&c->rnd, 9),
                                    .in = id,
                                    .nin = n,
                                    .out = id + n,
                                    .nout = 1,
                                    .of = -1,
                                    .workspace = cg_one_in(c, 6) ? dag_random(&c->rnd, 40) : 0,
                                    .once = cg_one_in(c, 14)};
    g->nnode++;
    return id[n];
}

/* A node that changes its last operand, which is persistent: an update or a statistic. */
static inline void cg_changes(ClipGraph *c, LsDagKind kind, const char *name, uint32_t of,
                              const uint32_t *in, uint32_t n)
{
    LsDag *g = c->g;
    uint32_t *id = ls_arena_alloc(c->arena, n, sizeof *id);
    memcpy(id, in, n * sizeof *id);
    g->node[g->nnode++] = (LsDagNode){.name = ls_arena_printf(c->arena, "%s%u", name, of),
                                      .op = "Op",
                                      .kind = kind,
                                      .cost = 1,
                                      .in = id,
                                      .nin = n,
                                      .upd = id + n - 1,
                                      .nupd = 1,
                                      .of = -1};
}

/* The last node may work in the place of its first operand. */
static inline void cg_inplace(ClipGraph *c)
{
    LsDagNode *n = &c->g->node[c->g->nnode - 1];
    LsDagPair *pair = ls_arena_alloc(c->arena, 1, sizeof *pair);
    *pair = (LsDagPair){n->out[0], n->in[0]};
    n->inplace = pair;
    n->ninplace = 1;
}

/* layers: at most CLIP_LAYERS; exhaustive search (exhaust.h) takes two or three. */
static inline LsDag *clip_graph(LsArena *a, uint32_t layers, uint64_t seed)
{
    ClipGraph c = {.arena = a, .g = ls_arena_alloc(a, 1, sizeof *c.g), .rnd = seed * 91 + 11};
    LsDag *g = c.g;
    g->name = ls_arena_printf(a, "clipped %u", (unsigned)seed);
    g->alignment = 1;
    g->tensor = ls_arena_alloc(a, 10 * CLIP_LAYERS, sizeof *g->tensor);
    g->node = ls_arena_alloc(a, 10 * CLIP_LAYERS, sizeof *g->node);
    uint32_t value[CLIP_LAYERS + 1], weight[CLIP_LAYERS], grad[CLIP_LAYERS + 1], dw[CLIP_LAYERS],
        norm[CLIP_LAYERS], in[3];
    value[0] = cg_tensor(&c, "x", 0, 20, true);
    for (uint32_t k = 0; k < layers; k++) {
        weight[k] = cg_tensor(&c, "w", k, 50 + dag_random(&c.rnd, 200), true);
        value[k + 1] = cg_node(&c, LS_DAG_FORWARD, "y", k, (uint32_t[]){value[k], weight[k]}, 2,
                               5 + dag_random(&c.rnd, 60));
    }
    if (cg_one_in(&c, 2))
        cg_changes(&c, LS_DAG_FORWARD, "statistic", 0,
                   (uint32_t[]){value[1], cg_tensor(&c, "mean", 0, 8, true)}, 2);
    g->tensor[cg_node(&c, LS_DAG_FORWARD, "loss", 0, &value[layers], 1, 4)].output = true;
    grad[layers] = cg_node(&c, LS_DAG_BACKWARD, "dy", layers, &value[layers], 1,
                           g->tensor[value[layers]].bytes);
    for (uint32_t k = layers; k-- > 0;) {
        dw[k] = cg_node(&c, LS_DAG_BACKWARD, "dw", k, (uint32_t[]){grad[k + 1], value[k]}, 2,
                        g->tensor[weight[k]].bytes);
        if (k > 0) {
            in[0] = grad[k + 1];
            in[1] = weight[k];
            in[2] = value[k];
            grad[k] = cg_node(&c, LS_DAG_BACKWARD, "dy", k, in, 2 + cg_one_in(&c, 2),
                              g->tensor[value[k]].bytes);
            if (cg_one_in(&c, 2))
                cg_inplace(&c);
        }
        norm[k] = cg_node(&c, LS_DAG_BACKWARD, "norm", k, &dw[k], 1, 4);
    }
    const uint32_t factor = cg_node(&c, LS_DAG_OPTIMIZER, "factor", 0, norm, layers, 4);
    for (uint32_t k = 0; k < layers; k++)
        cg_changes(&c, LS_DAG_OPTIMIZER, "update", k, (uint32_t[]){dw[k], factor, weight[k]}, 3);
    return g;
}

#endif
