/* tests/support/wide_graph.h -- training graphs with a kernel of many operands, results and
 * in-place pairs, and a value that many alternatives can make. */
#ifndef LS_TESTS_SUPPORT_WIDE_GRAPH_H
#define LS_TESTS_SUPPORT_WIDE_GRAPH_H

#include "tests/support/random_graph.h"

typedef struct WideShape { uint32_t width, pairs, alternatives; } WideShape;

static inline LsDagNode *wg_node(RandomGraph *r, LsDagKind kind, const uint32_t *in, uint32_t nin,
                                 const uint32_t *out, uint32_t nout)
{
    LsDagNode *n = rg_node(r, kind);
    n->cost = 1 + dag_random(&r->rnd, 20);
    n->workspace = 0;
    n->in = in;
    n->nin = nin;
    n->out = out;
    n->nout = nout;
    return n;
}

static inline uint32_t *wg_ids(RandomGraph *r, uint32_t n)
{
    return ls_arena_alloc(r->arena, n + 1u, sizeof(uint32_t));
}

/* Pairs of any result with any operand, none twice. */
static inline void wg_pairs(RandomGraph *r, LsDagNode *n, uint32_t many)
{
    LsDagPair *pair = ls_arena_alloc(r->arena, many + 1u, sizeof *pair);
    bool *there = ls_arena_alloc(r->arena, (size_t)n->nin * n->nout, sizeof *there);
    for (uint32_t k = 0; k < many; k++) {
        uint32_t o = dag_random(&r->rnd, n->nout), i = dag_random(&r->rnd, n->nin);
        if (!there[o * n->nin + i])
            pair[n->ninplace++] = (LsDagPair){n->out[o], n->in[i]};
        there[o * n->nin + i] = true;
    }
    n->inplace = pair;
}

/* Alternatives of `of`, from its first operand and any of n values. */
static inline void wg_alternatives(RandomGraph *r, const LsDagNode *of, const uint32_t *value,
                                   uint32_t n, uint32_t many)
{
    for (uint32_t k = 0; k < many; k++) {
        uint32_t *in = wg_ids(r, 2);
        in[0] = of->in[0];
        in[1] = value[dag_random(&r->rnd, n)];
        wg_node(r, LS_DAG_BACKWARD, in, 2, of->out, of->nout)->alternative = true;
    }
}

/* `width` values, a kernel that reads them all and makes as many, a loss of these, and a gradient
 * for each value, which reads it. Valid for ls_dag_check. */
static inline LsDag *wide_graph(LsArena *a, WideShape shape, uint64_t seed)
{
    uint32_t w = shape.width, most = 4 * w + shape.alternatives + 8;
    RandomGraph r = {.arena = a, .g = ls_arena_alloc(a, 1, sizeof *r.g), .rnd = seed * 131 + 7};
    r.g->name = "wide";
    r.g->alignment = seed % 2 ? 1 : 64;
    r.g->tensor = ls_arena_alloc(a, most, sizeof *r.g->tensor);
    r.g->node = ls_arena_alloc(a, most, sizeof *r.g->node);
    uint32_t *x = wg_ids(&r, 1), *value = wg_ids(&r, w), *made = wg_ids(&r, w);
    uint32_t *loss = wg_ids(&r, 2), *grad = loss + 1;
    *x = rg_tensor(&r, true);
    for (uint32_t k = 0; k < w; k++)
        wg_node(&r, LS_DAG_FORWARD, x, 1, &value[k], 1)->of = -1, value[k] = rg_tensor(&r, false);
    for (uint32_t k = 0; k < w; k++)
        made[k] = rg_tensor(&r, false);
    wg_pairs(&r, wg_node(&r, LS_DAG_FORWARD, value, w, made, w), shape.pairs);
    *loss = rg_tensor(&r, false);
    wg_node(&r, LS_DAG_FORWARD, made, w, loss, 1);
    *grad = rg_tensor(&r, false);
    wg_node(&r, LS_DAG_BACKWARD, loss, 1, grad, 1);
    for (uint32_t k = 0; k < w; k++) {
        uint32_t *in = wg_ids(&r, 2), *out = wg_ids(&r, 1);
        in[0] = *grad;
        in[1] = value[k];
        *out = rg_tensor(&r, false);
        r.g->tensor[*out].output = true;
        LsDagNode *n = wg_node(&r, LS_DAG_BACKWARD, in, 2, out, 1);
        if (k == 0)
            wg_alternatives(&r, n, value, w, shape.alternatives);
    }
    return r.g;
}

#endif
