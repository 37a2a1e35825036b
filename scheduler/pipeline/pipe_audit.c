/* scheduler/pipeline/pipe_audit.c -- see the header. Several steps are replayed, so that each meets what the one before left:
 * two whole ones, and where micro-batches have two plans, one of the first micro-batch alone, as at the end of an epoch, and a
 * whole one. Micro-batches beyond a few rounds of the slots bring nothing new and are left out, as empty ones are. */
#include "scheduler/pipeline/pipe_audit.h"

#include "base/reason.h"

typedef struct Held { int64_t lo, hi; uint32_t tensor, micro; } Held;   /* bytes that still are what was made */

typedef struct Audit {
    const LsPipeGraph *g;
    const LsPipeCut *c;
    const LsPipeLayout *l;
    const LsPipeFlow *flow;
    uint32_t stage, micros;     /* micros: with samples, in this step */
    LsArena *tmp;
    Held *held; uint32_t nheld, room;
    uint32_t *holder;           /* by slot: 1 + its last micro-batch; 0: none */
    LsWhy why;
} Audit;

static const char *tname(const Audit *a, uint32_t t)
{
    return a->g->dag.tensor[t].name != NULL ? a->g->dag.tensor[t].name : "?";
}

static bool has(const Audit *a, uint32_t tensor, uint32_t micro)
{
    for (uint32_t k = 0; k < a->nheld; k++)
        if (a->held[k].tensor == tensor && a->held[k].micro == micro)
            return true;
    return false;
}

static void overwrite(Audit *a, int64_t lo, int64_t hi)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < a->nheld; k++)
        if (a->held[k].hi <= lo || a->held[k].lo >= hi)
            a->held[n++] = a->held[k];
    a->nheld = n;
}

/* Those who read what was made again read the new bytes, whatever became of the old ones. */
static void forget(Audit *a, uint32_t tensor, uint32_t micro)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < a->nheld; k++)
        if (a->held[k].tensor != tensor || a->held[k].micro != micro)
            a->held[n++] = a->held[k];
    a->nheld = n;
}

/* Sets [*lo, *hi) to the place of these bytes of a plan in a slot. In slot 0 they are where the plan has them, also across the
 * start of the slot. */
static bool find_place(const Audit *a, const char *what, int64_t offset, int64_t bytes, uint32_t slot, int64_t *lo, int64_t *hi)
{
    const LsPipeLayout *l = a->l;
    const bool kept = offset >= l->transient;
    const int64_t end = slot == 0 ? l->transient + l->first : kept ? l->transient + l->slot : l->transient;
    if (offset < 0 || offset + bytes > end)
        return ls_why(&a->why, "%s lies outside its region", what);
    *lo = offset + (kept && slot > 0 ? l->first + (slot - 1) * l->slot : 0);
    *hi = *lo + bytes;
    return *hi <= l->arena || ls_why(&a->why, "%s lies outside the arena", what);
}

static bool run(Audit *a, const LsPipeRuns *runs, const LsPlanStep *s, uint32_t slot, uint32_t micro)
{
    const LsDagNode *n = &a->g->dag.node[s->id];
    int64_t lo = 0, hi = 0;
    for (uint32_t k = 0; k < n->nin; k++) {
        const LsDagTensor *t = &a->g->dag.tensor[n->in[k]];
        if (!t->persistent && t->bytes > 0 && !has(a, n->in[k], micro))
            return ls_why(&a->why, "micro-batch %u: '%s' reads '%s', which was overwritten", micro, n->name, tname(a, n->in[k]));
    }
    if (s->workspace_offset >= 0) {
        if (!find_place(a, n->name, s->workspace_offset, n->workspace, slot, &lo, &hi))
            return false;
        overwrite(a, lo, hi);
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        const int64_t bytes = a->g->dag.tensor[n->out[k]].bytes;
        if (!find_place(a, tname(a, n->out[k]), runs->plan.offset[s->offset + k], bytes, slot, &lo, &hi))
            return false;
        overwrite(a, lo, hi);
        forget(a, n->out[k], micro);
        if (bytes == 0)
            continue;
        a->held = ls_arena_regrow(a->tmp, a->held, a->nheld, a->nheld + 1u, sizeof *a->held, &a->room);
        a->held[a->nheld++] = (Held){lo, hi, n->out[k], micro};
    }
    return true;
}

/* Messages of the micro-batch that may still be on their way: with `forward` those of F for F, else the others. */
static bool check_messages(const Audit *a, uint32_t micro, bool forward)
{
    for (uint32_t k = 0; k < a->c->nmove; k++) {
        const LsPipeMove *m = &a->c->move[k];
        if (m->from == a->stage && m->read < LS_PHASE_LATE && forward == (m->made == LS_PHASE_F && m->read == LS_PHASE_F)
            && m->bytes > 0 && !has(a, m->tensor, micro))
            return ls_why(&a->why, "micro-batch %u: '%s' may be overwritten before stage %u has it", micro, tname(a, m->tensor),
                          m->to + 1);
    }
    return true;
}

static bool check_late(const Audit *a, uint32_t micro)
{
    for (uint32_t k = 0; k < a->c->nmove; k++) {
        const LsPipeMove *m = &a->c->move[k];
        if (m->from == a->stage && m->read == LS_PHASE_LATE && m->bytes > 0 && !has(a, m->tensor, micro))
            return ls_why(&a->why, "'%s' may be overwritten before stage %u has it", tname(a, m->tensor), m->to + 1);
    }
    return true;
}

static bool run_phase(Audit *a, int phase, uint8_t plan, uint32_t slot, uint32_t micro)
{
    const LsPipeRuns *runs = &a->l->of[plan];
    uint32_t at = 0;
    if (plan >= a->l->nplan)
        return ls_why(&a->why, "micro-batch %u has plan %u of %u", micro, plan, a->l->nplan);
    for (uint32_t s = 0; s < runs->plan.nstep; s++) {
        if (runs->plan.step[s].free)
            continue;
        if (at >= runs->phase_at[phase] && at < runs->phase_at[phase + 1] && !run(a, runs, &runs->plan.step[s], slot, micro))
            return false;
        at++;
    }
    return true;
}

static bool run_turn(Audit *a, const LsPipeTurn *t)
{
    if (t->slot >= a->l->slots)
        return ls_why(&a->why, "micro-batch %u is in slot %u of %u", t->micro, t->slot, a->l->slots);
    if (t->phase == LS_PHASE_F) {
        const uint32_t held = a->holder[t->slot];
        if (held != 0 && !check_messages(a, held - 1, false))
            return false;
        for (uint32_t k = 0; k < a->nheld; k++)         /* another micro-batch with this number, of the step before */
            if (a->held[k].micro == t->micro)
                a->held[k].micro = UINT32_MAX;
        a->holder[t->slot] = t->micro + 1;
    }
    if (t->phase == LS_PHASE_B && !check_messages(a, t->micro, true))
        return false;
    return run_phase(a, t->phase, t->plan, t->slot, t->micro);
}

static bool run_step(Audit *a, uint32_t micros)
{
    LsPipeTurn last = {.slot = 0};
    a->micros = micros;
    for (uint32_t k = 0; k < a->flow->nturn; k++) {
        if (a->flow->turn[k].micro >= a->micros)
            continue;
        if (a->flow->turn[k].micro + 1 == a->micros)
            last = a->flow->turn[k];
        if (!run_turn(a, &a->flow->turn[k]))
            return false;
    }
    for (uint32_t s = 0; s < a->l->slots; s++)
        if (a->holder[s] != 0 && !check_messages(a, a->holder[s] - 1, false))
            return false;
    for (uint32_t s = 0; s < a->l->slots; s++)
        a->holder[s] = 0;
    return run_phase(a, LS_PHASE_LATE, last.plan, last.slot, a->micros - 1) && check_late(a, a->micros - 1);
}

bool ls_pipe_audit(const LsPipeGraph *full, const LsPipeCut *c, uint32_t stage, const LsPipeLayout *l,
                    const LsPipeFlow *flow, char *why, size_t room)
{
    Audit a = {.g = full, .c = c, .l = l, .flow = flow, .stage = stage, .tmp = ls_arena_new(),
               .why = {.text = why, .size = room}};
    a.holder = ls_arena_alloc(a.tmp, l->slots + 1u, sizeof *a.holder);
    uint32_t micros = 0, most = 2 * l->slots + 3;
    for (uint32_t k = 0; k < flow->nturn; k++)
        micros = flow->turn[k].micro + 1 > micros ? flow->turn[k].micro + 1 : micros;
    most = most < micros ? most : micros;
    const bool ok = run_step(&a, most) && run_step(&a, most)
                    && (l->nplan == 1 || (run_step(&a, 1) && run_step(&a, most)));
    ls_arena_free(a.tmp);
    return ok;
}
