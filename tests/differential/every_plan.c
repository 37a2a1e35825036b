/* tests/differential/every_plan.c -- see the header. */
#include "tests/differential/every_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/ls_half.h"         /* takes memcpy and integers from the headers above */

typedef struct Maker {
    LsArena *arena;
    const LsDag *d;
    EveryPlan *e;
    uint32_t cap_step, cap_offset, cap_lost;
    int64_t *at;                /* by tensor: its last place */
    uint32_t *entry;            /* likewise in plan.offset */
    uint32_t *maker;            /* by tensor: the node that makes it and is no alternative; nnode:
                                 * none has yet */
    bool *dirty;                /* by tensor: an update has changed it */
} Maker;

static int64_t place(Maker *m, int64_t bytes)
{
    const int64_t at = m->e->plan.arena;
    m->e->plan.arena += ls_align(bytes > 0 ? bytes : 1, LS_ALIGNMENT);
    return at;
}

/* Runs node n, its result `in_place` (-1: none) at `where`. */
static void run(Maker *m, uint32_t n, int64_t in_place, int64_t where)
{
    const LsDagNode *node = &m->d->node[n];
    LsPlan *plan = &m->e->plan;
    plan->step = ls_arena_grow(m->arena, plan->step, plan->nstep, plan->nstep + 1u,
                               sizeof *plan->step, &m->cap_step);
    plan->offset = ls_arena_grow(m->arena, plan->offset, plan->noffset, plan->noffset + node->nout,
                                 sizeof *plan->offset, &m->cap_offset);
    m->e->lost = ls_arena_grow(m->arena, m->e->lost, plan->noffset, plan->noffset + node->nout,
                               sizeof *m->e->lost, &m->cap_lost);
    LsPlanStep *s = &plan->step[plan->nstep++];
    *s = (LsPlanStep){.id = n, .offset = plan->noffset, .workspace_offset = -1};
    for (uint32_t k = 0; k < node->nout; k++) {
        m->entry[node->out[k]] = plan->noffset;
        m->at[node->out[k]] = k == in_place ? where : place(m, m->d->tensor[node->out[k]].bytes);
        m->e->lost[plan->noffset] = false;
        plan->offset[plan->noffset++] = m->at[node->out[k]];
    }
    if (node->workspace > 0)
        s->workspace_offset = place(m, node->workspace);
    for (uint32_t k = 0; k < node->nupd; k++)
        m->dirty[node->upd[k]] = true;
}

static bool may_run(const Maker *m, uint32_t n)
{
    const LsDagNode *node = &m->d->node[n];
    bool may = !node->once && node->nout > 0 && node->nupd == 0;
    for (uint32_t k = 0; k < node->nin; k++)
        may = may && !m->dirty[node->in[k]];
    return may;
}

static void run_in_place(Maker *m, uint32_t n, LsDagPair pair)
{
    const LsDagNode *node = &m->d->node[n];
    const uint32_t maker = m->maker[pair.in];
    int64_t result = -1;
    for (uint32_t k = 0; k < node->nout; k++)
        result = node->out[k] == pair.out ? (int64_t)k : result;
    if (maker == m->d->nnode || result < 0 || !may_run(m, maker))
        return;
    run(m, maker, -1, 0);
    m->e->lost[m->entry[pair.in]] = true;
    run(m, n, result, m->at[pair.in]);
    run(m, maker, -1, 0);
    m->e->inplace++;
}

static void run_way(Maker *m, uint32_t n)
{
    const LsDagNode *node = &m->d->node[n];
    if (!may_run(m, n))
        return;
    run(m, n, -1, 0);
    m->e->ways++;
    for (uint32_t k = 0; k < node->ninplace; k++)
        run_in_place(m, n, node->inplace[k]);
    if (m->maker[node->out[0]] != m->d->nnode && may_run(m, m->maker[node->out[0]]))
        run(m, m->maker[node->out[0]], -1, 0);          /* others read its results */
}

static void run_node(Maker *m, uint32_t n)
{
    const LsDagNode *node = &m->d->node[n];
    if (node->alternative) {
        run_way(m, n);
        return;
    }
    run(m, n, -1, 0);
    for (uint32_t k = 0; k < node->nout; k++)
        m->maker[node->out[k]] = n;
    if (!may_run(m, n))
        return;
    for (uint32_t k = 0; k < node->ninplace; k++)
        run_in_place(m, n, node->inplace[k]);
    run(m, n, -1, 0);
    m->e->again++;
}

static bool reads(const LsDagNode *node, uint32_t t)
{
    for (uint32_t k = 0; k < node->nin; k++)
        if (node->in[k] == t)
            return true;
    return false;
}

/* All that it reads is there, and all readers of what it changes have run. */
static bool is_ready(const Maker *m, uint32_t n, const bool *done)
{
    const LsDagNode *node = &m->d->node[n];
    for (uint32_t k = 0; k < node->nin; k++)
        if (!m->d->tensor[node->in[k]].persistent && m->maker[node->in[k]] == m->d->nnode)
            return false;
    for (uint32_t k = 0; k < node->nupd; k++)
        for (uint32_t i = 0; i < m->d->nnode; i++)
            if (i != n && !done[i] && reads(&m->d->node[i], node->upd[k]))
                return false;
    return true;
}

EveryPlan every_plan(LsArena *a, const LsProblem *p)
{
    const LsDag *d = &p->dag;
    EveryPlan e = {.plan = {.strategy = "every"}};
    Maker m = {.arena = a,
               .d = d,
               .e = &e,
               .at = ls_arena_alloc(a, d->ntensor, sizeof *m.at),
               .entry = ls_arena_alloc(a, d->ntensor, sizeof *m.entry),
               .maker = ls_arena_alloc(a, d->ntensor, sizeof *m.maker),
               .dirty = ls_arena_alloc(a, d->ntensor, sizeof *m.dirty)};
    bool *done = ls_arena_alloc(a, d->nnode, sizeof *done);
    for (uint32_t t = 0; t < d->ntensor; t++)
        m.maker[t] = d->nnode;
    for (bool some = true; some;) {
        some = false;
        for (uint32_t n = 0; n < d->nnode; n++)
            if (!done[n] && is_ready(&m, n, done)) {
                run_node(&m, n);
                some = done[n] = true;
            }
    }
    for (uint32_t n = 0; n < d->nnode; n++)
        e.stuck |= !done[n];
    return e;
}

/* ---- comparison ---- */

static double number(const char *p, LsType type, int real_bytes, int64_t i)
{
    switch (type) {
    case LS_REAL:
        return real_bytes == 8 ? ((const double *)(const void *)p)[i]
                               : (double)((const float *)(const void *)p)[i];
    case LS_BF16: return (double)ls_from_bf16(((const ls_bf16 *)(const void *)p)[i]);
    case LS_F16: return (double)ls_from_f16(((const ls_f16 *)(const void *)p)[i]);
    case LS_I64: return (double)((const int64_t *)(const void *)p)[i];
    case LS_I32: return ((const int32_t *)(const void *)p)[i];
    default: return ((const uint8_t *)p)[i];
    }
}

/* The largest difference over the largest value, or over `most`; a NaN is far. */
static double distance(const LsRunGraph *r, LsValueId v, const char *a, const char *b, double most)
{
    double far = 0;
    for (int64_t i = 0; i < ls_count(ls_shape(r->g, v)); i++) {
        const double x = number(a, ls_type(r->g, v), r->problem->target.real_bytes, i);
        const double y = number(b, ls_type(r->g, v), r->problem->target.real_bytes, i);
        const double d = fabs(x - y);
        most = fmax(most, fmax(fabs(x), fabs(y)));
        far = d <= far || (isnan(x) && isnan(y)) || x == y ? far : isnan(d) ? INFINITY : d;
    }
    return far == 0 ? 0 : far / most;
}

/* The first run that left a result, of the value or (v: none) of the tensor. */
typedef struct First { const LsPlanStep *step; uint32_t k; LsValueId v; } First;

static const char *bytes_of(const LsRunGraph *r, const LsPlanStep *s, uint32_t k)
{
    return r->arena + r->plan.offset[s->offset + k];
}

static bool compare(const LsRunGraph *r, const First *first, const LsPlanStep *s, uint32_t k,
                    LsValueId v, double tolerance, double least, double *worst, char *why,
                    size_t room)
{
    const char *a = bytes_of(r, first->step, first->k), *b = bytes_of(r, s, k);
    const LsDagNode *node = &r->problem->dag.node[s->id],
                    *of = &r->problem->dag.node[first->step->id];
    const bool same = first->v.i == v.i;
    if (same && memcmp(a, b, (size_t)ls_value_bytes(r->g, v, r->problem->target.real_bytes)) == 0)
        return true;
    const double far = distance(r, v, a, b, least);
    *worst = !same && far > *worst ? far : *worst;
    if (!same && far <= tolerance)
        return true;
    snprintf(why, room,
             "result %u of '%s' (%s, %s) and of '%s' (%s, %s): %s, %g of the largest, %g for %g", k,
             node->name, node->op, r->g->value[v.i].name, of->name, of->op,
             r->g->value[first->v.i].name, same ? "other bits" : "another way gives other numbers",
             far, number(b, ls_type(r->g, v), r->problem->target.real_bytes, 0),
             number(a, ls_type(r->g, v), r->problem->target.real_bytes, 0));
    return false;
}

bool every_plan_agrees(const LsRunGraph *r, const EveryPlan *e, double tolerance, double least,
                       double *worst, char *why, size_t room)
{
    const LsProblem *p = r->problem;
    First *of_value = ls_arena_alloc(r->cx->arena, r->g->nvalue, sizeof *of_value);
    First *of_tensor = ls_arena_alloc(r->cx->arena, p->dag.ntensor, sizeof *of_tensor);
    for (uint32_t s = 0; s < r->plan.nstep; s++) {
        const LsPlanStep *st = &r->plan.step[s];
        for (uint32_t k = 0; k < p->dag.node[st->id].nout; k++) {
            const LsValueId v = ls_out(r->g, p->node_of[st->id], (int)k);
            const uint32_t t = p->dag.node[st->id].out[k];
            if (e->lost[st->offset + k] || r->g->value[v.i].columns > 0)
                continue;
            First *first[] = {&of_value[v.i], &of_tensor[t]};
            for (int which = 0; which < 2; which++) {
                if (first[which]->step == NULL)
                    *first[which] = (First){st, k, v};
                else if ((which == 0 || first[which]->v.i != v.i)
                         && !compare(r, first[which], st, k, v, tolerance, least, worst, why, room))
                    return false;
            }
        }
    }
    return true;
}
