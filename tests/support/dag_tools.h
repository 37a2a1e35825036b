/* tests/support/dag_tools.h -- training graphs for the scheduler's tests: random ones and the shared
 * ones. */
#ifndef LS_TESTS_SUPPORT_DAG_TOOLS_H
#define LS_TESTS_SUPPORT_DAG_TOOLS_H

#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "scheduler/graph/dag_read.h"

static inline uint32_t dag_random(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % below;
}

/* A random training graph under construction; value, weight (0: none) and grad by forward node. */
typedef struct DagMaker {
    LsDag *g;
    uint64_t rnd;
    uint32_t *id, nid;          /* room for the lists of all nodes */
    uint32_t *weight, *value, *grad;
    uint32_t *from;             /* two for each: the forward nodes it reads */
    LsDagPair *pair;
    uint32_t input;
} DagMaker;

static inline uint32_t dag_tensor(DagMaker *m, const char *name, int64_t bytes, bool persistent,
                                  bool output)
{
    m->g->tensor[m->g->ntensor] = (LsDagTensor){name, bytes, persistent, output};
    return m->g->ntensor++;
}

/* Ends the list of operands that begins at in, and makes the tensor the node's one result. */
static inline void dag_result(DagMaker *m, LsDagNode *n, uint32_t tensor)
{
    m->nid += n->nin;
    m->id[m->nid] = tensor;
    n->out = m->id + m->nid++;
    n->nout = 1;
}

static inline void dag_forward(DagMaker *m, uint32_t v, uint32_t nf)
{
    LsDagNode *n = &m->g->node[m->g->nnode++];
    uint32_t *in = m->id + m->nid, *from = m->from + 2 * v;
    *n = (LsDagNode){
        .name = "f", .op = "F", .cost = 1 + dag_random(&m->rnd, 9), .in = in, .of = -1};
    from[0] = v ? v - 1 - dag_random(&m->rnd, v < 3 ? v : 3) : 0;
    from[1] = v > 1 ? dag_random(&m->rnd, v) : from[0];
    in[n->nin++] = v ? m->value[from[0]] : m->input;
    if (v && from[1] != from[0])
        in[n->nin++] = m->value[from[1]];
    if (v % 2) {
        m->weight[v] = dag_tensor(m, "w", 100 + dag_random(&m->rnd, 900), true, false);
        in[n->nin++] = m->weight[v];
    }
    m->value[v] = dag_tensor(m, "y", 100 + dag_random(&m->rnd, 1000), false, v + 1 == nf);
    dag_result(m, n, m->value[v]);
    n->once = dag_random(&m->rnd, 12) == 0;
    n->workspace = dag_random(&m->rnd, 4) == 0 ? dag_random(&m->rnd, 500) : 0;
}

/* The gradient of v's result: a sum over its readers, here one node that reads their gradients. */
static inline void dag_backward(DagMaker *m, uint32_t v, uint32_t nf)
{
    LsDag *g = m->g;
    LsDagNode *n = &g->node[g->nnode++];
    uint32_t *in = m->id + m->nid;
    *n = (LsDagNode){.name = "b", .op = "B", .kind = LS_DAG_BACKWARD,
                     .cost = 1 + dag_random(&m->rnd, 9), .in = in, .of = v};
    if (v + 1 == nf || dag_random(&m->rnd, 2))
        in[n->nin++] = m->value[v];
    for (uint32_t u = v + 1; u < nf; u++)
        if (m->from[2 * u] == v || m->from[2 * u + 1] == v) {
            in[n->nin++] = m->grad[u];
            if (m->weight[u])
                in[n->nin++] = m->weight[u];
        }
    m->grad[v] = dag_tensor(m, "dy", g->tensor[m->value[v]].bytes, false, v == 0);
    dag_result(m, n, m->grad[v]);
    if (n->nin > 0 && !g->tensor[in[n->nin - 1]].persistent && dag_random(&m->rnd, 2)) {
        m->pair[v] = (LsDagPair){m->grad[v], in[n->nin - 1]};
        n->inplace = &m->pair[v];
        n->ninplace = 1;
    }
}

static inline void dag_weight_gradient(DagMaker *m, uint32_t v)
{
    LsDagNode *w = &m->g->node[m->g->nnode++];
    uint32_t *in = m->id + m->nid;
    *w = (LsDagNode){.name = "dw", .op = "W", .kind = LS_DAG_BACKWARD,
                     .cost = 1 + dag_random(&m->rnd, 9), .in = in, .nin = 2, .of = v};
    in[0] = m->grad[v];
    in[1] = m->value[m->from[2 * v]];
    dag_result(m, w, dag_tensor(m, "dw", m->g->tensor[m->weight[v]].bytes, false, false));
}

static inline void dag_update(DagMaker *m, const LsDagNode *of)
{
    uint32_t *in = m->id + m->nid;
    m->g->node[m->g->nnode++] =
        (LsDagNode){.name = "sgd", .op = "Sgd", .kind = LS_DAG_OPTIMIZER, .cost = 1, .nin = 2,
                    .nupd = 1, .of = of->of, .in = in, .upd = in + 1};
    in[0] = of->out[0];
    in[1] = m->weight[of->of];
    m->nid += 2;
}

/* A random training graph: nf forward nodes; backward with exact reads; a weight for every
 * second node, whose gradient an update takes, last in the list; some workspaces, in-place pairs,
 * masks and nodes that run only once. */
static inline LsDag *dag_make(LsArena *a, uint32_t nf, uint64_t seed)
{
    DagMaker m = {.g = ls_arena_alloc(a, 1, sizeof *m.g), .rnd = seed * 77 + 5};
    LsDag *g = m.g;
    g->name = "random";
    g->alignment = seed % 3 == 0 ? 64 : 1;
    g->tensor = ls_arena_alloc(a, 6 * nf + 8, sizeof *g->tensor);
    g->node = ls_arena_alloc(a, 4 * nf + 8, sizeof *g->node);
    m.id = ls_arena_alloc(a, 64 * nf + 64, sizeof *m.id);
    m.weight = ls_arena_alloc(a, nf, sizeof *m.weight);
    m.value = ls_arena_alloc(a, nf, sizeof *m.value);
    m.grad = ls_arena_alloc(a, nf, sizeof *m.grad);
    m.from = ls_arena_alloc(a, 2 * nf, sizeof *m.from);
    m.pair = ls_arena_alloc(a, 8 * nf, sizeof *m.pair);
    m.input = dag_tensor(&m, "x", 1000, true, false);
    for (uint32_t v = 0; v < nf; v++)
        dag_forward(&m, v, nf);
    for (uint32_t v = nf; v-- > 0;) {
        dag_backward(&m, v, nf);
        if (m.weight[v])
            dag_weight_gradient(&m, v);
    }
    uint32_t nback = g->nnode;
    for (uint32_t i = nf; i < nback; i++)
        if (g->node[i].op[0] == 'W')
            dag_update(&m, &g->node[i]);
    return g;
}

/* A random graph of nothing but forward nodes. */
static inline LsDag *dag_make_forward(LsArena *a, uint32_t n, uint64_t seed)
{
    LsDag *g = dag_make(a, n, seed);
    while (g->node[g->nnode - 1].kind != LS_DAG_FORWARD)
        g->nnode--;
    g->node[g->nnode - 1].required = true;
    return g;
}

/* ../shared/judge/NAME, or NULL after a line that says so. */
static inline LsDag *dag_shared(LsArena *a, const char *name)
{
    char path[4096], why[256];
    snprintf(path, sizeof path, "%s/judge/%s", LS_SHARED, name);
    if (access(path, R_OK) != 0) {
        printf("skipped: no %s\n", path);
        return NULL;
    }
    return ls_dag_read(a, path, why, sizeof why);
}

#endif
