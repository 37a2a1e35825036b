/* codegen/planning/shared_steps.c -- see the header.
 *
 * A value of frozen weights alone, such as one rounded to 16 bits, is as large as they are: it is
 * computed where it is read, and so by members, too. */
#include "codegen/planning/shared_steps.h"

#include "compiler/passes/ensemble.h"

#include <string.h>

/* What a value depends on. */
typedef enum { OF_WEIGHTS, OF_BATCH, OF_MEMBER } Origin;

typedef struct Division {
    LsCtx *cx;
    const LsProblem *p;
    uint8_t *origin;            /* by tensor */
    bool *wanted;               /* by tensor: a member's steps read it */
} Division;

static Origin of_source(const LsGraph *g, const LsValue *v)
{
    if (v->kind == LS_V_INPUT)
        return v->stacked || g->ensemble.own_batches ? OF_MEMBER : OF_BATCH;
    return v->kind == LS_V_CONST || (v->kind == LS_V_STATE && !v->stacked) ? OF_WEIGHTS
                                                                            : OF_MEMBER;
}

/* The latest of what a node reads. */
static Origin of_operands(const Division *d, const LsDagNode *n)
{
    Origin most = OF_WEIGHTS;
    for (uint32_t k = 0; k < n->nin; k++)
        most = d->origin[n->in[k]] > most ? (Origin)d->origin[n->in[k]] : most;
    return most;
}

/* What ends with a member's step is of the member: updates, what they read, outputs. */
static Origin of_node(const Division *d, uint32_t v)
{
    const LsDag *g = &d->p->dag;
    const LsDagNode *n = &g->node[v];
    bool own = n->kind != LS_DAG_FORWARD || n->nupd > 0 || n->required
               || ls_node_draws(&d->p->g->node[d->p->node_of[v].i]);
    for (uint32_t k = 0; k < n->nout; k++)
        own |= g->tensor[n->out[k]].output;
    return own ? OF_MEMBER : of_operands(d, n);
}

static void find_origins(Division *d)
{
    const LsDag *g = &d->p->dag;
    for (uint32_t t = 0; t < g->ntensor; t++)
        d->origin[t] = (uint8_t)of_source(d->p->g, &d->p->g->value[d->p->value_of[t].i]);
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; !g->node[v].alternative && k < g->node[v].nout; k++)
            d->origin[g->node[v].out[k]] = (uint8_t)of_node(d, v);
}

static Origin made_by(const Division *d, const LsDagNode *n)
{
    Origin most = OF_WEIGHTS;
    for (uint32_t k = 0; k < n->nout; k++)
        most = d->origin[n->out[k]] > most ? (Origin)d->origin[n->out[k]] : most;
    return n->nout == 0 ? OF_MEMBER : most;
}

/* Whether a member's steps have the node: of what others make, an alternative may read only what
 * is there anyway. */
static bool is_own(const Division *d, uint32_t v)
{
    const LsDagNode *n = &d->p->dag.node[v];
    for (uint32_t k = 0; n->alternative && k < n->nin; k++)
        if (d->origin[n->in[k]] == OF_BATCH && !d->p->dag.tensor[n->in[k]].persistent
            && !d->wanted[n->in[k]])
            return false;
    for (uint32_t k = 0; k < n->nout; k++)
        if (d->origin[n->out[k]] == OF_BATCH)
            return false;
    return true;
}

static bool is_common(const Division *d, uint32_t v)
{
    const LsDagNode *n = &d->p->dag.node[v];
    return made_by(d, n) != OF_MEMBER && of_operands(d, n) != OF_MEMBER && n->nupd == 0;
}

static void find_wanted(Division *d)
{
    const LsDag *g = &d->p->dag;
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; made_by(d, &g->node[v]) != OF_BATCH && k < g->node[v].nin; k++) {
            const uint32_t t = g->node[v].in[k];
            if (!g->node[v].alternative && d->origin[t] == OF_BATCH && !g->tensor[t].persistent)
                d->wanted[t] = true;
        }
}

/* The nodes that `in` chooses, as a problem. */
static LsProblem *part(const Division *d, bool (*in)(const Division *, uint32_t))
{
    LsArena *a = d->cx->arena;
    const LsProblem *p = d->p;
    LsProblem *to = ls_arena_alloc(a, 1, sizeof *to);
    uint32_t n = 0, *whole = ls_arena_alloc(a, p->dag.nnode, sizeof *whole);
    int64_t *at = ls_arena_alloc(a, p->dag.nnode, sizeof *at);
    *to = *p;
    to->dag.node = ls_arena_alloc(a, p->dag.nnode, sizeof *to->dag.node);
    to->node_of = ls_arena_alloc(a, p->dag.nnode, sizeof *to->node_of);
    to->whole = whole;
    for (uint32_t v = 0; v < p->dag.nnode; v++) {
        at[v] = -1;
        if (!in(d, v))
            continue;
        to->node_of[n] = p->node_of[v];
        to->dag.node[n] = p->dag.node[v];
        to->dag.node[n].of = p->dag.node[v].of >= 0 ? at[p->dag.node[v].of] : -1;
        whole[n] = v;
        at[v] = n++;
    }
    to->dag.nnode = n;
    return to;
}

/* A result in the place of an operand: both lie in the arena. */
static void drop_pairs(LsArena *a, const LsDag *g, const bool *wanted, LsDagNode *n)
{
    LsDagPair *pair = ls_arena_alloc(a, n->ninplace + 1u, sizeof *pair);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n->ninplace; k++)
        if (!g->tensor[n->inplace[k].in].persistent && !wanted[n->inplace[k].out])
            pair[kept++] = n->inplace[k];
    n->inplace = pair;
    n->ninplace = kept;
}

/* Tensors that no node of the part makes are persistent there; those of no node take nothing. Of
 * the results of what is common, members have the bytes. */
static void set_tensors(const Division *d, LsProblem *to, bool common)
{
    LsDag *g = &to->dag;
    LsDagTensor *tensor = ls_arena_alloc(d->cx->arena, g->ntensor + 1u, sizeof *tensor);
    bool *made = ls_arena_alloc(d->cx->arena, g->ntensor + 1u, sizeof *made);
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; k < g->node[v].nout; k++)
            made[g->node[v].out[k]] = true;
    for (uint32_t t = 0; t < g->ntensor; t++) {
        tensor[t] = g->tensor[t];
        if (!made[t] && !g->tensor[t].persistent) {
            tensor[t].persistent = true;
            tensor[t].output = false;
            tensor[t].bytes = !common && d->wanted[t] ? tensor[t].bytes : 0;
        } else if (common && d->wanted[t]) {
            tensor[t].output = true;
            tensor[t].bytes = 0;
        }
    }
    g->tensor = tensor;
    for (uint32_t v = 0; v < g->nnode; v++)
        drop_pairs(d->cx->arena, g, d->wanted, &g->node[v]);
}

LsSharedSteps ls_shared_steps(LsCtx *cx, const LsProblem *whole)
{
    const LsDag *g = &whole->dag;
    Division d = {.cx = cx, .p = whole,
                  .origin = ls_arena_alloc(cx->arena, g->ntensor + 1u, 1),
                  .wanted = ls_arena_alloc(cx->arena, g->ntensor + 1u, sizeof(bool))};
    LsSharedSteps s = {.nresult = 0};
    LsValueId *result = ls_arena_alloc(cx->arena, g->ntensor + 1u, sizeof *result);
    if (whole->g->ensemble.members < 2)
        return s;
    find_origins(&d);
    find_wanted(&d);
    for (uint32_t t = 0; t < g->ntensor; t++)
        if (d.wanted[t]) {
            result[s.nresult++] = whole->value_of[t];
            s.bytes += ls_align(g->tensor[t].bytes, LS_ALIGNMENT);
        }
    if (s.nresult == 0)
        return s;
    s.result = result;
    s.once = part(&d, is_common);
    s.each = part(&d, is_own);
    set_tensors(&d, s.once, true);
    set_tensors(&d, s.each, false);
    return s;
}
