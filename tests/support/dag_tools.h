/* tests/support/dag_tools.h -- training graphs for the scheduler's tests: random ones and the
 * shared ones. */
#ifndef LS_TESTS_SUPPORT_DAG_TOOLS_H
#define LS_TESTS_SUPPORT_DAG_TOOLS_H

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "scheduler/graph/dag_read.h"
#include "tests/support/shared_file.h"

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

/* Every second node that reads a forward value, or with `gradients` every second gradient that
 * reads another one, gets an alternative that reads the operands of its maker instead. */
static inline LsDag *dag_with_alternatives(LsArena *a, const LsDag *g, bool gradients,
                                           uint64_t seed)
{
    LsDag *h = ls_arena_alloc(a, 1, sizeof *h);
    uint32_t *maker = ls_arena_alloc(a, g->ntensor, sizeof *maker),
             *place = ls_arena_alloc(a, g->nnode, sizeof *place);
    *h = *g;
    h->node = ls_arena_alloc(a, 2 * g->nnode, sizeof *h->node);
    h->nnode = 0;
    for (uint32_t i = 0; i < g->nnode; i++) {
        const LsDagNode *n = &g->node[i];
        place[i] = h->nnode;
        h->node[h->nnode] = *n;
        h->node[h->nnode].of = n->of >= 0 ? (int64_t)place[n->of] : -1;
        h->nnode++;
        for (uint32_t k = 0; k < n->nout; k++)
            maker[n->out[k]] = i;
        uint32_t t = n->nin > 0 ? n->in[0] : 0, at = 0;
        for (; gradients && at + 1 < n->nin
               && (g->tensor[t].persistent || g->node[maker[t]].op[0] != 'B');
             t = n->in[++at])
            continue;
        if (n->nin == 0 || g->tensor[t].persistent
            || g->node[maker[t]].op[0] != (gradients ? 'B' : 'F') || n->nupd > 0
            || dag_random(&seed, 2))
            continue;
        const LsDagNode *of = &g->node[maker[t]];
        uint32_t *in = ls_arena_alloc(a, n->nin + of->nin, sizeof *in), nin = 0;
        for (uint32_t k = 0; k < n->nin; k++)
            if (k != at)
                in[nin++] = n->in[k];
        for (uint32_t k = 0; k < of->nin; k++)
            if (!ls_id_in(in, nin, of->in[k]))
                in[nin++] = of->in[k];
        h->node[h->nnode] = (LsDagNode){.name = "alternative",
                                        .op = "A",
                                        .kind = n->kind,
                                        .alternative = true,
                                        .in = in,
                                        .nin = nin,
                                        .out = n->out,
                                        .nout = n->nout,
                                        .of = h->node[place[i]].of,
                                        .cost = n->cost + (int)dag_random(&seed, 5) - 1};
        h->nnode++;
    }
    return h;
}

/* Adds what changes states beside weights: running statistics of two forward values, the second
 * wherever, and, with `norm`, a tensor made of all gradients of weights, which their updates read.
 * Some gradients are also made of a value far below. */
static inline LsDag *dag_with_updates(LsArena *a, const LsDag *g, bool norm, uint64_t seed)
{
    LsDag *h = ls_arena_alloc(a, 1, sizeof *h);
    const uint32_t factor = g->ntensor;
    uint32_t *list = ls_arena_alloc(a, 16u * g->nnode * g->nnode + 8, sizeof *list),
             *gradient = ls_arena_alloc(a, g->nnode + 1u, sizeof *list), n = 0, forward = 0;
    *h = *g;
    h->node = ls_arena_alloc(a, 2u * g->nnode + 1, sizeof *h->node);
    h->tensor = ls_arena_alloc(a, g->ntensor + g->nnode + 1u, sizeof *h->tensor);
    memcpy(h->tensor, g->tensor, g->ntensor * sizeof *h->tensor);
    h->tensor[h->ntensor++] = (LsDagTensor){.name = "norm", .bytes = seed % 3 ? 8 : 2000};
    h->nnode = 0;
    while (forward < g->nnode && g->node[forward].op[0] == 'F')
        forward++;
    for (uint32_t i = 0; i < g->nnode && g->node[i].op[0] != 'S'; i++) {
        LsDagNode *to = &h->node[h->nnode++];
        *to = g->node[i];
        if (to->op[0] == 'W')
            gradient[n++] = to->out[0];
        const uint32_t far = to->op[0] == 'B' && to->of > 0
                                 ? g->node[dag_random(&seed, (uint32_t)to->of)].out[0]
                                 : factor;
        if (far == factor || to->nin == 0 || dag_random(&seed, 3) > 0
            || ls_id_in(to->in, to->nin, far))
            continue;
        memcpy(list, to->in, to->nin * sizeof *list);
        list[to->nin++] = far;
        to->in = list;
        list += to->nin;
    }
    list[0] = factor;
    h->node[h->nnode++] = (LsDagNode){.name = "norm",
                                      .op = "N",
                                      .kind = LS_DAG_OPTIMIZER,
                                      .cost = 3,
                                      .in = gradient,
                                      .nin = n,
                                      .out = list++,
                                      .nout = 1,
                                      .of = -1};
    for (uint32_t i = 0; i < g->nnode; i++) {
        const LsDagNode *from = &g->node[i];
        LsDagNode *to = &h->node[h->nnode];
        if (from->op[0] == 'S') {
            *to = *from;
            memcpy(list, from->in, from->nin * sizeof *list);
            list[to->nin] = factor;
            to->nin += norm;
        } else if (from->op[0] == 'F' && dag_random(&seed, 4) == 0) {
            *to = (LsDagNode){.name = "statistic",
                              .op = "R",
                              .kind = LS_DAG_OPTIMIZER,
                              .cost = 2,
                              .nin = 3,
                              .nupd = 1,
                              .of = i};
            list[0] = from->out[0];
            to->upd = list + 1;
            list[1] = h->ntensor++;
            list[2] = g->node[dag_random(&seed, forward)].out[0];
            to->nin -= list[2] == list[0];
            h->tensor[list[1]] = (LsDagTensor){.name = "running", .bytes = 40, .persistent = true};
        } else {
            continue;
        }
        to->in = list;
        list += to->nin;
        h->nnode++;
    }
    return h;
}

/* Backward nodes read no weights, so that no parameter has readers in several forward nodes. */
static inline LsDag *dag_without_shared_weights(LsArena *a, LsDag *g)
{
    for (uint32_t i = 0; i < g->nnode; i++) {
        LsDagNode *n = &g->node[i];
        uint32_t *in = ls_arena_alloc(a, n->nin + 1u, sizeof *in), nin = 0;
        for (uint32_t k = 0; k < n->nin; k++)
            if (n->op[0] != 'B' || !g->tensor[n->in[k]].persistent)
                in[nin++] = n->in[k];
        n->in = in;
        n->nin = nin;
    }
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

/* judge/NAME of tests/data or ../shared, or NULL after a line that says so. */
static inline LsDag *dag_shared(LsArena *a, const char *name)
{
    char path[SHARED_PATH], file[256], why[256];
    snprintf(file, sizeof file, "judge/%s", name);
    if (shared_file(path, file) == NULL)
        return NULL;
    LsDag *g = ls_dag_read(a, path, why, sizeof why);
    ck_assert_msg(g != NULL, "%s", why);
    return g;
}

#endif
