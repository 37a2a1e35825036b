/* scheduler/plan/plan_audit.c -- replays a plan byte range by byte range. It deliberately shares no
 * code with the planner and recomputes everything in the plainest way. */
#include "scheduler/plan/plan_audit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/reason.h"

/* bytes in use; tensor, or NONE */
typedef struct Range { int64_t lo, hi; uint32_t tensor; } Range;

enum { NONE = 0xffffffff };

typedef struct Audit {
    const LsDag *g;
    const LsPlan *plan;
    LsWhy why;
    Range *range; uint32_t nrange;      /* by rising lo, no two overlap */
    bool *alive, *updated;              /* by tensor */
    int64_t *at;                        /* by tensor: offset of its live instance */
    uint32_t *runs;                     /* by node */
    int64_t used, peak, arena;
    double cost;
} Audit;

#define fail(r, ...) ls_why(&(r)->why, __VA_ARGS__)

static const char *tname(const Audit *a, uint32_t t)
{
    return t == NONE ? "a workspace" : a->g->tensor[t].name ? a->g->tensor[t].name : "?";
}

static const char *nname(const Audit *a, uint32_t v)
{
    return a->g->node[v].name ? a->g->node[v].name : "?";
}

/* Takes [lo, lo + bytes) for t; an overlap is an error. Plans may have no offsets. */
static bool take(Audit *a, int64_t lo, int64_t bytes, uint32_t t)
{
    if (a->plan->unplaced)
        return lo == -1 || fail(a, "%s has a place in a plan without offsets", tname(a, t));
    if (lo < 0 || lo % a->g->alignment != 0 || lo > INT64_MAX - bytes)
        return fail(a, "offset %" PRId64 " of %s is not a multiple of %" PRId64, lo, tname(a, t),
                    a->g->alignment);
    if (bytes == 0)
        return true;
    uint32_t k = 0;
    while (k < a->nrange && a->range[k].hi <= lo)
        k++;
    if (k < a->nrange && a->range[k].lo < lo + bytes)
        return fail(a, "%s at [%" PRId64 ", %" PRId64 ") overlaps %s at [%" PRId64 ", %" PRId64 ")",
                    tname(a, t), lo, lo + bytes, tname(a, a->range[k].tensor), a->range[k].lo,
                    a->range[k].hi);
    for (uint32_t j = a->nrange++; j > k; j--)
        a->range[j] = a->range[j - 1];
    a->range[k] = (Range){lo, lo + bytes, t};
    a->arena = lo + bytes > a->arena ? lo + bytes : a->arena;
    return true;
}

static void give(Audit *a, uint32_t t)
{
    uint32_t k = 0;
    while (k < a->nrange && a->range[k].tensor != t)
        k++;
    if (k == a->nrange)
        return;
    a->nrange--;
    for (; k < a->nrange; k++)
        a->range[k] = a->range[k + 1];
}

static bool do_free(Audit *a, uint32_t t)
{
    if (t >= a->g->ntensor)
        return fail(a, "frees tensor %u, but there are only %u", t, a->g->ntensor);
    if (a->g->tensor[t].persistent)
        return fail(a, "frees %s, which is persistent", tname(a, t));
    if (!a->alive[t])
        return fail(a, "frees %s, which is not live", tname(a, t));
    a->alive[t] = false;
    a->used -= a->g->tensor[t].bytes;
    give(a, t);
    return true;
}

static bool check_reads(Audit *a, const LsDagNode *n)
{
    for (uint32_t k = 0; k < n->nin; k++) {
        uint32_t t = n->in[k];
        if (!a->g->tensor[t].persistent && !a->alive[t])
            return fail(a, "%s reads %s, which is not live", n->name, tname(a, t));
        if (a->updated[t] && !ls_id_in(n->upd, n->nupd, t))
            return fail(a, "%s reads %s after its update", n->name, tname(a, t));
    }
    for (uint32_t k = 0; k < n->nupd; k++)
        a->updated[n->upd[k]] = true;
    return true;
}

/* Checks the in-place pairs: the operands end here, and results take their bytes. */
static bool do_reuses(Audit *a, const LsPlanStep *s, const LsDagNode *n, const int64_t *offset)
{
    if (s->reuse > a->plan->nreuse || s->nreuse > a->plan->nreuse - s->reuse)
        return fail(a, "reuse pairs outside the list");
    for (uint32_t k = 0; k < s->nreuse; k++) {
        LsDagPair r = a->plan->reuse[s->reuse + k];
        bool allowed = false;
        for (uint32_t j = 0; j < n->ninplace; j++)
            allowed |= n->inplace[j].out == r.out && n->inplace[j].in == r.in;
        if (!allowed)
            return fail(a, "%s may not work in place with this pair", n->name);
        for (uint32_t j = 0; j < k; j++)
            if (a->plan->reuse[s->reuse + j].out == r.out
                || a->plan->reuse[s->reuse + j].in == r.in)
                return fail(a, "%s uses a tensor in two in-place pairs", n->name);
        if (a->g->tensor[r.out].bytes > a->g->tensor[r.in].bytes)
            return fail(a, "%s is larger than %s, whose place it takes", tname(a, r.out),
                        tname(a, r.in));
        for (uint32_t j = 0; j < n->nout; j++)
            if (n->out[j] == r.out && a->g->tensor[r.out].bytes && offset[j] != a->at[r.in])
                return fail(a, "%s is not where %s is", tname(a, r.out), tname(a, r.in));
    }
    return true;
}

static bool do_run(Audit *a, const LsPlanStep *s)
{
    if (s->id >= a->g->nnode)
        return fail(a, "runs node %u, but there are only %u", s->id, a->g->nnode);
    const LsDagNode *n = &a->g->node[s->id];
    if (a->runs[s->id]++ > 0 && (n->once || n->nupd > 0))
        return fail(a, "%s runs a second time", nname(a, s->id));
    if (s->again != (a->runs[s->id] > 1))
        return fail(a, "%s is %smarked as run again", nname(a, s->id), s->again ? "" : "not ");
    if (s->offset > a->plan->noffset || n->nout > a->plan->noffset - s->offset)
        return fail(a, "offsets outside the list");
    const int64_t *offset = a->plan->offset + s->offset;
    if (!check_reads(a, n) || !do_reuses(a, s, n, offset))
        return false;
    int64_t tails = 0;                  /* bytes of operands beyond the smaller results in their
                                         * places, live while the node runs */
    for (uint32_t k = 0; k < s->nreuse; k++) {
        LsDagPair r = a->plan->reuse[s->reuse + k];
        tails += a->g->tensor[r.in].bytes - a->g->tensor[r.out].bytes;
        a->alive[r.in] = false;
        a->used -= a->g->tensor[r.in].bytes;
        give(a, r.in);
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        uint32_t t = n->out[k];
        if (a->alive[t])
            return fail(a, "%s makes %s, which is still live", n->name, tname(a, t));
        a->alive[t] = true;
        a->at[t] = offset[k];
        a->used += a->g->tensor[t].bytes;
        int64_t bytes = a->g->tensor[t].bytes;
        for (uint32_t j = 0; j < s->nreuse; j++)    /* while the node runs, the whole operand
                                                     * lives */
            if (a->plan->reuse[s->reuse + j].out == t)
                bytes = a->g->tensor[a->plan->reuse[s->reuse + j].in].bytes;
        if (!take(a, offset[k], bytes, t))
            return false;
    }
    if (n->workspace > 0) {
        if (!take(a, s->workspace_offset, n->workspace, NONE))
            return false;
        give(a, NONE);
    }
    for (uint32_t k = 0; k < s->nreuse; k++)        /* afterwards the tail is free */
        for (uint32_t j = 0; j < a->nrange; j++)
            if (a->range[j].tensor == a->plan->reuse[s->reuse + k].out)
                a->range[j].hi = a->range[j].lo + a->g->tensor[a->range[j].tensor].bytes;
    if (a->used + tails + n->workspace > a->peak)
        a->peak = a->used + tails + n->workspace;
    a->cost += n->cost;
    return true;
}

/* Returns whether a stated figure differs from the real one; a file may state infinity. */
static bool differs(double stated, double is)
{
    return !(fabs(stated - is) <= 1e-9 * fmax(1, fabs(is)));
}

/* The cost of all ordinary nodes that must run or whose results such nodes, or the end, read: from
 * the last node on, as readers come behind makers. */
static double base_cost(const LsDag *g)
{
    bool *wanted = ls_heap_alloc(g->ntensor + 1u, sizeof *wanted);
    double base = 0;
    for (uint32_t t = 0; t < g->ntensor; t++)
        wanted[t] = g->tensor[t].output;
    for (uint32_t v = g->nnode; v-- > 0;) {
        const LsDagNode *n = &g->node[v];
        bool runs = n->required || n->nupd > 0;
        for (uint32_t k = 0; k < n->nout; k++)
            runs |= wanted[n->out[k]];
        if (!runs || n->alternative)
            continue;
        base += n->cost;
        for (uint32_t k = 0; k < n->nin; k++)
            wanted[n->in[k]] = true;
    }
    free(wanted);
    return base;
}

static bool check_end(Audit *a)
{
    const double base = base_cost(a->g);
    for (uint32_t t = 0; t < a->g->ntensor; t++)
        if (a->g->tensor[t].output && !a->g->tensor[t].persistent && !a->alive[t])
            return fail(a, "output %s is not live at the end", tname(a, t));
    for (uint32_t v = 0; v < a->g->nnode; v++) {
        const LsDagNode *n = &a->g->node[v];
        if (a->runs[v] == 0 && !n->alternative && (n->required || n->nupd > 0))
            return fail(a, "%s must run and never does", nname(a, v));
    }
    if (a->peak != a->plan->live_peak)
        return fail(a, "states a live peak of %" PRId64 ", it is %" PRId64, a->plan->live_peak,
                    a->peak);
    if (a->plan->unplaced)
        a->arena = a->peak;
    if (a->arena != a->plan->arena)
        return fail(a, "states an arena of %" PRId64 ", it is %" PRId64, a->plan->arena, a->arena);
    if (differs(a->plan->cost, a->cost))
        return fail(a, "states a cost of %g, it is %g", a->plan->cost, a->cost);
    if (differs(a->plan->base_cost, base))
        return fail(a, "states a base cost of %g, it is %g", a->plan->base_cost, base);
    return true;
}

bool ls_audit(const LsDag *dag, const LsPlan *plan, char *why, size_t size)
{
    Audit a = {.g = dag, .plan = plan, .why = {why, size, "step", 0}};
    a.range = ls_heap_alloc(dag->ntensor + 2u, sizeof *a.range);
    a.alive = ls_heap_alloc(dag->ntensor + 1u, sizeof *a.alive);
    a.updated = ls_heap_alloc(dag->ntensor + 1u, sizeof *a.updated);
    a.at = ls_heap_alloc(dag->ntensor + 1u, sizeof *a.at);
    a.runs = ls_heap_alloc(dag->nnode + 1u, sizeof *a.runs);
    bool ok = true;
    for (uint32_t i = 0; ok && i < plan->nstep; i++) {
        const LsPlanStep *s = &plan->step[i];
        ok = s->free ? do_free(&a, s->id) : do_run(&a, s);
        a.why.number += ok;
    }
    ok = ok && check_end(&a);
    free(a.range);
    free(a.alive);
    free(a.updated);
    free(a.at);
    free(a.runs);
    return ok;
}
