/* scheduler/graph/dag_check.c -- checks the rules of a training graph, whoever made it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/reason.h"
#include "scheduler/graph/dag_read.h"

typedef struct Check {
    const LsDag *g;
    LsWhy why;
    bool *made, *updated;       /* by tensor */
    uint32_t *seen;             /* by tensor: stamp of the last list that named it */
    uint32_t stamp;
    int64_t total;              /* bytes of all tensors and workspaces */
    double cost;                /* of all nodes */
} Check;

#define fail(r, ...) ls_why(&(r)->why, __VA_ARGS__)

/* Adds bytes >= 0. Sums of sizes must stay far from overflow: the planner multiplies them by small
 * numbers. */
static bool add_bytes(Check *c, int64_t bytes)
{
    if (bytes > INT64_MAX / 64 - c->total)
        return fail(c, "all sizes together are above %" PRId64 " bytes", INT64_MAX / 64);
    c->total += bytes;
    return true;
}

/* Checks the size of a tensor or workspace, which must fit the memory of one process. */
static bool check_size(Check *c, const char *what, uint32_t i, int64_t bytes)
{
    const int64_t most = INT64_C(1) << 47;
    if (bytes < 0 || bytes > most)
        return fail(c, "%s %" PRIu32 ": a size of %" PRId64 " bytes; it must be from 0 to %" PRId64
                    ", what a process can address", what, i, bytes, most);
    return add_bytes(c, bytes);
}

/* Sums of costs must stay finite, also with repeated runs. */
static bool add_cost(Check *c, uint32_t i, double cost)
{
    const double most = 1e30;
    if (!(cost >= 0) || isinf(cost))
        return fail(c, "node %" PRIu32 ": the cost is not a number from 0", i);
    c->cost += cost;
    return c->cost <= most || fail(c, "node %" PRIu32 ": the costs up to here are above %g ns "
                                   "together", i, most);
}

static bool check_ids(Check *c, uint32_t i, const uint32_t *id, uint32_t n, const char *what)
{
    c->stamp++;
    for (uint32_t k = 0; k < n; k++) {
        if (id[k] >= c->g->ntensor)
            return fail(c, "node %" PRIu32 ": '%s' has %" PRIu32 ", not an id below %" PRIu32, i,
                        what, id[k], c->g->ntensor);
        if (c->seen[id[k]] == c->stamp)
            return fail(c, "node %" PRIu32 ": '%s' names tensor %" PRIu32 " twice", i, what, id[k]);
        c->seen[id[k]] = c->stamp;
    }
    return true;
}

static bool check_reads(Check *c, uint32_t i, const LsDagNode *n)
{
    for (uint32_t k = 0; k < n->nin; k++) {
        uint32_t t = n->in[k];
        if (!c->made[t])
            return fail(c, "node %" PRIu32 ": reads tensor %" PRIu32 " that no earlier node makes",
                        i, t);
        if (c->updated[t] && !ls_id_in(n->upd, n->nupd, t))
            return fail(c, "node %" PRIu32 ": listed after an update of tensor %" PRIu32
                        " that it reads", i, t);
    }
    return true;
}

static bool check_writes(Check *c, uint32_t i, const LsDagNode *n)
{
    for (uint32_t k = 0; k < n->nout; k++) {
        uint32_t t = n->out[k];
        if (c->g->tensor[t].persistent)
            return fail(c, "node %" PRIu32 ": outputs persistent tensor %" PRIu32
                        "; list it in 'updates'", i, t);
        if (c->made[t] && !n->alternative)
            return fail(c, "node %" PRIu32 ": tensor %" PRIu32 " already has a producer", i, t);
    }
    for (uint32_t k = 0; k < n->nupd; k++) {
        if (!c->g->tensor[n->upd[k]].persistent)
            return fail(c, "node %" PRIu32 ": updates tensor %" PRIu32 ", which is not persistent",
                        i, n->upd[k]);
        if (c->updated[n->upd[k]])
            return fail(c, "node %" PRIu32 ": tensor %" PRIu32 " is updated twice", i, n->upd[k]);
    }
    for (uint32_t k = 0; k < n->ninplace; k++) {
        LsDagPair pair = n->inplace[k];
        if (!ls_id_in(n->out, n->nout, pair.out) || !ls_id_in(n->in, n->nin, pair.in)
            || c->g->tensor[pair.in].persistent)
            return fail(c, "node %" PRIu32 ": 'inplace' pair [%" PRIu32 ", %" PRIu32
                        "] is not [own output, own input]", i, pair.out, pair.in);
    }
    for (uint32_t k = 0; k < n->nout && !n->alternative; k++)
        c->made[n->out[k]] = true;
    for (uint32_t k = 0; k < n->nupd; k++)
        c->updated[n->upd[k]] = true;
    return true;
}

static bool check_node(Check *c, uint32_t i)
{
    const LsDagNode *n = &c->g->node[i];
    if (!add_cost(c, i, n->cost))
        return false;
    if (n->of < -1 || n->of >= (int64_t)c->g->nnode)
        return fail(c, "node %" PRIu32 ": 'of' is not a node", i);
    return check_size(c, "workspace of node", i, n->workspace) && add_bytes(c, c->g->alignment)
           && check_ids(c, i, n->in, n->nin, "inputs")
           && check_ids(c, i, n->out, n->nout, "outputs")
           && check_ids(c, i, n->upd, n->nupd, "updates") && check_reads(c, i, n)
           && check_writes(c, i, n);
}

static bool check_all(Check *c)
{
    const LsDag *g = c->g;
    if (g->alignment < 1)
        return fail(c, "'alignment' is not a positive integer");
    for (uint32_t t = 0; t < g->ntensor; t++) {
        c->made[t] = g->tensor[t].persistent;
        if (!check_size(c, "tensor", t, g->tensor[t].bytes) || !add_bytes(c, g->alignment))
            return false;
    }
    for (uint32_t i = 0; i < g->nnode; i++)
        if (!check_node(c, i))
            return false;
    for (uint32_t t = 0; t < g->ntensor; t++)
        if (g->tensor[t].output && !c->made[t])
            return fail(c, "output tensor %" PRIu32 " has no producer", t);
    return true;
}

bool ls_dag_check(const LsDag *dag, char *why, size_t size)
{
    Check c = {.g = dag, .why = {.text = why, .size = size}};
    c.made = ls_heap_alloc(dag->ntensor + 1u, sizeof *c.made);
    c.updated = ls_heap_alloc(dag->ntensor + 1u, sizeof *c.updated);
    c.seen = ls_heap_alloc(dag->ntensor + 1u, sizeof *c.seen);
    bool ok = check_all(&c);
    free(c.made);
    free(c.updated);
    free(c.seen);
    return ok;
}
