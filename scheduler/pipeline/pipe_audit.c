/* scheduler/pipeline/pipe_audit.c -- see the header. A step leaves nothing behind, so each is replayed alone: one, one with a
 * micro-batch less, as empty ones are left out, and one of the first alone. Micro-batches beyond a few rounds of those under way
 * bring nothing new. */
#include "scheduler/pipeline/pipe_audit.h"

#include "base/reason.h"

#include <string.h>

typedef struct Held { int64_t lo, hi; uint32_t tensor, micro; } Held;   /* bytes that still are what was made */

typedef struct Audit {
    const LsPipeGraph *g;
    const LsPipeCut *c;
    const LsPipeLayout *l;
    const LsPipeFlow *flow;
    uint32_t stage, micros;
    uint8_t *plan_of;           /* by micro-batch */
    LsArena *tmp;
    Held *held; uint32_t nheld, room;       /* by place; they do not overlap */
    bool *has;                  /* by micro-batch and tensor: its bytes are among these */
    bool *sent;                 /* by message and micro-batch: it may still be on its way */
    LsWhy why;
} Audit;

static const char *tname(const Audit *a, uint32_t t)
{
    return a->g->dag.tensor[t].name != NULL ? a->g->dag.tensor[t].name : "?";
}

static bool *has(const Audit *a, uint32_t tensor, uint32_t micro)
{
    return &a->has[(size_t)micro * a->g->dag.ntensor + tensor];
}

static bool *sent(const Audit *a, uint32_t move, uint32_t micro) { return &a->sent[(size_t)move * a->micros + micro]; }

/* The first entry that ends above `lo`. */
static uint32_t find(const Audit *a, int64_t lo)
{
    uint32_t low = 0, high = a->nheld;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (a->held[mid].hi <= lo)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Ends all entries that reach into the bytes. Returns where an entry of these would stand. */
static uint32_t overwrite(Audit *a, int64_t lo, int64_t hi)
{
    const uint32_t first = find(a, lo);
    uint32_t end = first;
    for (; end < a->nheld && a->held[end].lo < hi; end++)
        *has(a, a->held[end].tensor, a->held[end].micro) = false;
    if (end > first)            /* so there is an array */
        memmove(a->held + first, a->held + end, (a->nheld - end) * sizeof *a->held);
    a->nheld -= end - first;
    return first;
}

/* An older instance of the tensor is no longer what is read. */
static void forget(Audit *a, uint32_t tensor, uint32_t micro)
{
    uint32_t k = 0;
    while (k < a->nheld && !(a->held[k].tensor == tensor && a->held[k].micro == micro))
        k++;
    if (k < a->nheld)
        overwrite(a, a->held[k].lo, a->held[k].hi);
}

static void write(Audit *a, int64_t lo, int64_t hi, uint32_t tensor, uint32_t micro)
{
    if (*has(a, tensor, micro))
        forget(a, tensor, micro);
    const uint32_t at = overwrite(a, lo, hi);
    a->held = ls_arena_regrow(a->tmp, a->held, a->nheld, a->nheld + 1u, sizeof *a->held, &a->room);
    memmove(a->held + at + 1, a->held + at, (a->nheld - at) * sizeof *a->held);
    a->held[at] = (Held){lo, hi, tensor, micro};
    a->nheld++;
    *has(a, tensor, micro) = true;
}

/* Sets [*lo, *hi) to the place of these bytes of a plan in the micro-batch's copy of their region. */
static bool find_place(const Audit *a, const char *what, int64_t offset, int64_t bytes, uint32_t micro, int64_t *lo, int64_t *hi)
{
    const LsPipeLayout *l = a->l;
    uint32_t r = l->nregion - 1;
    while (r > 0 && offset < l->region[r].at)
        r--;
    const LsPipeRegion *of = &l->region[r];
    if (offset < of->at || offset + bytes > of->at + of->bytes)
        return ls_why(&a->why, "%s lies outside its region", what);
    *lo = offset + micro % of->copies * of->bytes;
    *hi = *lo + bytes;
    const int64_t end = r + 1 < l->nregion ? l->region[r + 1].at : l->arena;
    return *hi <= end || ls_why(&a->why, "%s lies outside the copies of its region", what);
}

static bool run(Audit *a, const LsPlan *plan, const LsPlanStep *s, uint32_t micro)
{
    const LsDagNode *n = &a->g->dag.node[s->id];
    int64_t lo = 0, hi = 0;
    for (uint32_t k = 0; k < n->nin; k++) {
        const LsDagTensor *t = &a->g->dag.tensor[n->in[k]];
        if (!t->persistent && t->bytes > 0 && !*has(a, n->in[k], micro))
            return ls_why(&a->why, "micro-batch %u: '%s' reads '%s', which was overwritten", micro, n->name, tname(a, n->in[k]));
    }
    if (s->workspace_offset >= 0) {
        if (!find_place(a, n->name, s->workspace_offset, n->workspace, micro, &lo, &hi))
            return false;
        overwrite(a, lo, hi);
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        const int64_t bytes = a->g->dag.tensor[n->out[k]].bytes;
        if (bytes == 0)
            continue;
        if (!find_place(a, tname(a, n->out[k]), plan->offset[s->offset + k], bytes, micro, &lo, &hi))
            return false;
        write(a, lo, hi, n->out[k], micro);
    }
    return true;
}

/* A message that was on its way must still be there. */
static bool end_message(const Audit *a, uint32_t move, uint32_t micro)
{
    const LsPipeMove *m = &a->c->move[move];
    if (micro >= a->micros || !*sent(a, move, micro))
        return true;
    *sent(a, move, micro) = false;
    return *has(a, m->tensor, micro)
           || ls_why(&a->why, "micro-batch %u: '%s' may be overwritten before stage %u has it", micro, tname(a, m->tensor),
                     m->to + 1);
}

static bool end_messages(const Audit *a, const LsPipeTurn *t)
{
    for (uint32_t k = 0; k < a->c->nmove; k++) {
        uint32_t micro[2];
        for (uint32_t j = a->c->move[k].from == a->stage ? ls_move_ends(&a->c->move[k], t->phase, t->micro, micro) : 0; j-- > 0;)
            if (!end_message(a, k, micro[j]))
                return false;
    }
    return true;
}

/* All messages of a step, also those that only the last micro-batch sends. */
static bool end_step(const Audit *a)
{
    for (uint32_t k = 0; k < a->c->nmove; k++)
        for (uint32_t micro = 0; micro < a->micros; micro++)
            if (!end_message(a, k, micro))
                return false;
    return true;
}

static void send(const Audit *a, int phase, uint32_t micro)
{
    for (uint32_t k = 0; k < a->c->nmove; k++) {
        const LsPipeMove *m = &a->c->move[k];
        if (m->from == a->stage && m->made == phase && m->bytes > 0 && (m->read != LS_PHASE_LATE || micro + 1 == a->micros))
            *sent(a, k, micro) = true;
    }
}

static bool run_phase(Audit *a, int phase, uint32_t micro)
{
    const LsPipeRuns *of = &a->l->of[a->plan_of[micro]];
    const LsPlan *plan = &of->plan;
    uint32_t at = 0;
    for (uint32_t s = 0; s < plan->nstep; s++) {
        if (plan->step[s].free)
            continue;
        if (at >= of->phase_at[phase] && at < of->phase_at[phase + 1] && !run(a, plan, &plan->step[s], micro))
            return false;
        at++;
    }
    send(a, phase, micro);
    return true;
}

/* Nothing of the step before is left to read. */
static void begin_step(Audit *a)
{
    memset(a->has, 0, (size_t)a->micros * a->g->dag.ntensor + 1);
    a->nheld = 0;
}

static bool run_step(Audit *a)
{
    begin_step(a);
    for (uint32_t k = 0; k < a->flow->nturn; k++) {
        const LsPipeTurn *t = &a->flow->turn[k];
        if (!end_messages(a, t) || (t->micro < a->micros && !run_phase(a, t->phase, t->micro)))
            return false;
    }
    return run_phase(a, LS_PHASE_LATE, a->micros - 1) && end_step(a);
}

bool ls_pipe_audit(const LsPipeGraph *full, const LsPipeCut *c, uint32_t stage, const LsPipeLayout *l,
                    const LsPipeFlow *flow, char *why, size_t room)
{
    uint32_t micros = 0;
    for (uint32_t k = 0; k < flow->nturn; k++)
        micros = flow->turn[k].micro + 1 > micros ? flow->turn[k].micro + 1 : micros;
    const uint32_t few = 2 * flow->most + 3;
    micros = few < micros ? few : micros;
    Audit a = {.g = full, .c = c, .l = l, .flow = flow, .stage = stage, .micros = micros, .tmp = ls_arena_new(),
               .why = {.text = why, .size = room}};
    a.has = ls_arena_alloc(a.tmp, (size_t)micros * full->dag.ntensor + 1, 1);
    a.sent = ls_arena_alloc(a.tmp, (size_t)c->nmove * micros + 1, 1);
    a.plan_of = ls_arena_alloc(a.tmp, micros, 1);
    for (uint32_t k = 0; k < flow->nturn; k++) {
        const LsPipeTurn *t = &flow->turn[k];
        if (t->plan >= l->nplan)
            return ls_why(&a.why, "micro-batch %u has plan %d of %u", t->micro, t->plan, l->nplan);
        if (t->micro < micros)
            a.plan_of[t->micro] = t->plan;
    }
    const uint32_t ran[] = {micros, micros - 1, 1};
    bool ok = true;
    for (int k = 0; ok && k < 3; k++) {
        a.micros = ran[k];
        ok = a.micros == 0 || run_step(&a);
    }
    ls_arena_free(a.tmp);
    return ok;
}
