/* tests/dag_tools.h -- training graphs for the scheduler's tests: random ones and the shared
 * ones. */
#ifndef LS_TESTS_DAG_TOOLS_H
#define LS_TESTS_DAG_TOOLS_H

#include <stdio.h>
#include <unistd.h>

#include "compiler/arena.h"
#include "scheduler/dag_json.h"

static inline uint32_t dag_random(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % below;
}

/* A random training graph: nf forward nodes; backward with exact reads; a weight for every
 * second node, whose gradient an update takes; some workspaces, in-place pairs, masks and nodes
 * that run only once. */
static inline LsDag *dag_make(LsArena *a, uint32_t nf, uint64_t seed)
{
    uint64_t rnd = seed * 77 + 5;
    LsDag *g = ls_arena_alloc(a, 1, sizeof *g);
    g->name = "random";
    g->alignment = seed % 3 == 0 ? 64 : 1;
    g->tensor = ls_arena_alloc(a, 6 * nf + 8, sizeof *g->tensor);
    g->node = ls_arena_alloc(a, 4 * nf + 8, sizeof *g->node);
    uint32_t *id = ls_arena_alloc(a, 64 * nf + 64, sizeof *id), nid = 0;
    uint32_t *weight = ls_arena_alloc(a, nf, sizeof *weight);
    uint32_t *value = ls_arena_alloc(a, nf, sizeof *value);
    uint32_t *from = ls_arena_alloc(a, 2 * nf, sizeof *from);
    uint32_t *grad = ls_arena_alloc(a, nf, sizeof *grad);
    LsDagPair *pair = ls_arena_alloc(a, 8 * nf, sizeof *pair);
    uint32_t input = g->ntensor++;
    g->tensor[input] = (LsDagTensor){"x", 1000, true, false};
    for (uint32_t v = 0; v < nf; v++) {
        LsDagNode *n = &g->node[g->nnode++];
        uint32_t *in = id + nid;
        *n = (LsDagNode){
            .name = "f", .op = "F", .cost = 1 + dag_random(&rnd, 9), .in = in, .of = -1};
        from[2 * v] = v ? v - 1 - dag_random(&rnd, v < 3 ? v : 3) : LS_DAG_FORWARD;
        from[2 * v + 1] = v > 1 ? dag_random(&rnd, v) : from[2 * v];
        in[n->nin++] = v ? value[from[2 * v]] : input;
        if (v && from[2 * v + 1] != from[2 * v])
            in[n->nin++] = value[from[2 * v + 1]];
        if (v % 2) {
            weight[v] = g->ntensor++;
            g->tensor[weight[v]] = (LsDagTensor){"w", 100 + dag_random(&rnd, 900), true, false};
            in[n->nin++] = weight[v];
        }
        nid += n->nin;
        value[v] = g->ntensor++;
        g->tensor[value[v]] = (LsDagTensor){"y", 100 + dag_random(&rnd, 1000), false, v + 1 == nf};
        id[nid] = value[v];
        n->out = id + nid++;
        n->nout = 1;
        n->once = dag_random(&rnd, 12) == 0;
        n->workspace = dag_random(&rnd, 4) == 0 ? dag_random(&rnd, 500) : 0;
    }
    for (uint32_t v = nf; v-- > 0;) {
        /* the gradient of v's result: the sum over its readers, here one node
         * that reads their gradients */
        LsDagNode *n = &g->node[g->nnode++];
        uint32_t *in = id + nid;
        *n = (LsDagNode){.name = "b", .op = "B", .kind = LS_DAG_BACKWARD,
                         .cost = 1 + dag_random(&rnd, 9), .in = in, .of = v};
        if (v + 1 == nf || dag_random(&rnd, 2))
            in[n->nin++] = value[v];
        for (uint32_t u = v + 1; u < nf; u++)
            if (from[2 * u] == v || from[2 * u + 1] == v) {
                in[n->nin++] = grad[u];
                if (weight[u])
                    in[n->nin++] = weight[u];
            }
        nid += n->nin;
        grad[v] = g->ntensor++;
        g->tensor[grad[v]] = (LsDagTensor){"dy", g->tensor[value[v]].bytes, false, v == 0};
        id[nid] = grad[v];
        n->out = id + nid++;
        n->nout = 1;
        if (n->nin > 0 && !g->tensor[in[n->nin - 1]].persistent && dag_random(&rnd, 2)) {
            pair[v] = (LsDagPair){grad[v], in[n->nin - 1]};
            n->inplace = &pair[v];
            n->ninplace = 1;
        }
        if (!weight[v])
            continue;
        LsDagNode *w = &g->node[g->nnode++];
        *w = (LsDagNode){.name = "dw", .op = "W", .kind = LS_DAG_BACKWARD,
                         .cost = 1 + dag_random(&rnd, 9), .in = id + nid, .nin = 2, .of = v};
        id[nid++] = grad[v];
        id[nid++] = value[from[2 * v]];
        uint32_t dw = g->ntensor++;
        g->tensor[dw] = (LsDagTensor){"dw", g->tensor[weight[v]].bytes, false, false};
        id[nid] = dw;
        w->out = id + nid++;
        w->nout = 1;
    }
    uint32_t nback = g->nnode;
    for (uint32_t i = nf; i < nback; i++) {         /* updates, last in the list */
        if (g->node[i].op[0] != 'W')
            continue;
        LsDagNode *u = &g->node[g->nnode++];
        *u = (LsDagNode){.name = "sgd", .op = "Sgd", .kind = LS_DAG_OPTIMIZER, .cost = 1, .nin = 2,
                         .nupd = 1, .of = g->node[i].of, .in = id + nid, .upd = id + nid + 1};
        id[nid++] = g->node[i].out[0];
        id[nid++] = weight[g->node[i].of];
    }
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
