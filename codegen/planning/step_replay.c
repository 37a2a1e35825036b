/* codegen/planning/step_replay.c -- see step_replay.h. */
#include "codegen/planning/step_replay.h"

#include "compiler/cost/cache_reuse.h"

enum { MOST_PARTS = 1024 };     /* most touches of a run that are recorded */

typedef struct Replay {
    LsArena *arena;
    const LsProblem *p;
    int64_t *place;             /* by tensor: its address; state lies behind the arena */
    LsReuse reuse;
    LsTouch *touch; uint32_t ntouch, room;      /* of one run */
} Replay;

static void place_state(Replay *r, int64_t arena_bytes)
{
    const LsDag *d = &r->p->dag;
    int64_t at = ls_align(arena_bytes, LS_ALIGNMENT);
    for (uint32_t t = 0; t < d->ntensor; t++)
        if (d->tensor[t].persistent) {
            r->place[t] = at;
            at += ls_align(d->tensor[t].bytes, LS_ALIGNMENT);
        }
}

static void note(Replay *r, LsTouch t)
{
    if (r->ntouch >= MOST_PARTS)
        return;
    r->touch = ls_arena_grow(r->arena, r->touch, r->ntouch, r->ntouch + 1u, sizeof *r->touch,
                             &r->room);
    r->touch[r->ntouch++] = t;
}

/* Touches bytes from address `from`. near: bytes that this run has touched already, now in the
 * nearest cache. */
static void touch(Replay *r, int64_t from, int64_t bytes, bool write, double near)
{
    ls_reuse_touch(&r->reuse, from, from + bytes);
    for (uint32_t k = 0; k < r->reuse.npart; k++) {
        LsAged part = r->reuse.part[k];
        double own = part.bytes < near ? part.bytes : near;
        near -= own;
        if (own > 0)
            note(r, (LsTouch){own, 0, write});
        if (part.bytes > own)
            note(r, (LsTouch){part.bytes - own, part.age, write});
    }
}

/* The number of these bytes that belong to operands. */
static double shared(const Replay *r, const LsDagNode *n, const int64_t *operand, int64_t from,
                     int64_t bytes)
{
    double sum = 0;
    for (uint32_t k = 0; k < n->nin; k++) {
        int64_t lo = operand[k], hi = lo + r->p->dag.tensor[n->in[k]].bytes;
        lo = lo > from ? lo : from;
        hi = hi < from + bytes ? hi : from + bytes;
        sum += hi > lo ? (double)(hi - lo) : 0;
    }
    return sum;
}

/* The bytes of an operand that a run touches: of an update's partial sums as much as one. */
static int64_t touched(const Replay *r, uint32_t node, uint32_t tensor)
{
    const LsGraph *g = r->p->g;
    return r->p->dag.tensor[tensor].bytes
           / ls_update_levels(g, r->p->node_of[node], r->p->value_of[tensor]);
}

static void run(Replay *r, const LsPlan *plan, const LsPlanStep *s)
{
    const LsDag *d = &r->p->dag;
    const LsDagNode *n = &d->node[s->id];
    int64_t *operand = ls_arena_alloc(r->arena, n->nin + 1u, sizeof *operand);
    r->ntouch = 0;
    for (uint32_t k = 0; k < n->nin; k++) {
        operand[k] = r->place[n->in[k]];
        touch(r, operand[k], touched(r, s->id, n->in[k]), false, 0);
    }
    if (n->workspace > 0 && s->workspace_offset >= 0)
        ls_reuse_touch(&r->reuse, s->workspace_offset, s->workspace_offset + n->workspace);
    for (uint32_t k = 0; k < n->nout; k++) {
        int64_t at = plan->offset[s->offset + k], bytes = d->tensor[n->out[k]].bytes;
        r->place[n->out[k]] = at;
        touch(r, at, bytes, true, shared(r, n, operand, at, bytes));
    }
    for (uint32_t k = 0; k < n->nupd; k++)
        note(r, (LsTouch){(double)touched(r, s->id, n->upd[k]), 0, true});
}

static LsWork finished(const Replay *r, LsArena *to, uint32_t node, const LsMachine *m)
{
    LsWork w = ls_problem_work(r->p, node, m);
    LsTouch *copy = ls_arena_alloc(to, r->ntouch + 1u, sizeof *copy);
    for (uint32_t k = 0; k < r->ntouch; k++)
        copy[k] = r->touch[k];
    w.touch = copy;
    w.ntouch = r->ntouch;
    return w;
}

LsWork *ls_replay(LsArena *arena, const LsProblem *p, const LsPlan *plan, const LsMachine *m)
{
    LsArena *own = ls_arena_new();
    Replay r = {.arena = own, .p = p, .reuse = {.arena = own},
                .place = ls_arena_alloc(own, p->dag.ntensor + 1u, sizeof *r.place)};
    LsWork *work = ls_arena_alloc(arena, plan->nstep + 1u, sizeof *work);
    place_state(&r, plan->arena);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t k = 0, n = 0; k < plan->nstep; k++) {
            if (plan->step[k].free)
                continue;
            run(&r, plan, &plan->step[k]);
            if (pass == 1)
                work[n++] = finished(&r, arena, plan->step[k].id, m);
        }
    ls_arena_free(own);
    return work;
}

double ls_replay_ns(LsArena *arena, const LsProblem *p, const LsPlan *plan, const LsMachine *m)
{
    LsWork *work = ls_replay(arena, p, plan, m);
    double ns = m->step;
    for (uint32_t k = 0, n = 0; k < plan->nstep; k++)
        if (!plan->step[k].free)
            ns += ls_work_ns(m, &work[n++], p->target.real_bytes);
    return ns;
}
