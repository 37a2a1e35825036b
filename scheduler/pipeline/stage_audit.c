/* scheduler/pipeline/stage_audit.c -- see the header. Steps share no values, so three are
 * replayed on their own: a full one, one without the last micro-batch, one with the first only
 * (short batches leave micro-batches out). Micro-batches beyond a few rounds of those in flight
 * bring nothing new. */
#include "scheduler/pipeline/stage_audit.h"

#include "base/reason.h"

#include <string.h>

/* bytes that still are what was made */
typedef struct Held { int64_t lo, hi; uint32_t tensor, micro; } Held;

/* Bytes of a message under way, which nobody else may write to: it arrives, or leaves. */
typedef struct Flight { int64_t lo, hi; uint32_t move, micro; bool arrives; } Flight;

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
    bool *was;                  /* likewise: they were, in this step */
    Flight *flight; uint32_t nflight, flight_room;
    uint32_t *home;             /* by tensor: the stage that changes it; LS_NO_ID: none does */
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

static bool *was(const Audit *a, uint32_t tensor, uint32_t micro)
{
    return &a->was[(size_t)micro * a->g->dag.ntensor + tensor];
}

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
    *has(a, tensor, micro) = *was(a, tensor, micro) = true;
}

/* Sets [*lo, *hi) to the place of these bytes of a plan in the micro-batch's copy of their
 * region. */
static bool find_place(const Audit *a, const char *what, int64_t offset, int64_t bytes,
                       uint32_t micro, int64_t *lo, int64_t *hi)
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

/* Whether the stage may write to the bytes: no message lies there that is under way. */
static bool may_write(const Audit *a, const char *what, int64_t lo, int64_t hi, uint32_t micro)
{
    for (uint32_t k = 0; k < a->nflight; k++) {
        const Flight *f = &a->flight[k];
        const LsPipeMove *m = &a->c->move[f->move];
        if (f->lo >= hi || lo >= f->hi)
            continue;
        if (f->arrives)
            return ls_why(&a->why,
                          "micro-batch %u: '%s' writes to where '%s' arrives from stage %u", micro,
                          what, tname(a, m->tensor), m->from + 1);
        return ls_why(&a->why,
                      "micro-batch %u: '%s' may be overwritten by '%s' of micro-batch %u before "
                      "stage %u has it",
                      f->micro, tname(a, m->tensor), what, micro, m->to + 1);
    }
    return true;
}

static void add_flight(Audit *a, uint32_t move, uint32_t micro, bool arrives)
{
    const uint32_t tensor = a->c->move[move].tensor;
    uint32_t k = 0;
    while (a->held[k].tensor != tensor || a->held[k].micro != micro)
        k++;
    a->flight = ls_arena_regrow(a->tmp, a->flight, a->nflight, a->nflight + 1u, sizeof *a->flight,
                                &a->flight_room);
    a->flight[a->nflight++] = (Flight){a->held[k].lo, a->held[k].hi, move, micro, arrives};
}

/* Ends what is under way by that message of a micro-batch, or with LS_NO_ID all that arrives. */
static void end_flights(Audit *a, uint32_t move, uint32_t micro)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < a->nflight; k++) {
        const Flight *f = &a->flight[k];
        if (!(move == LS_NO_ID ? f->arrives : f->move == move && f->micro == micro))
            a->flight[n++] = *f;
    }
    a->nflight = n;
}

/* A state that changes is where it changes, and elsewhere by copies. */
static bool has_state(const Audit *a, uint32_t tensor)
{
    bool here = a->home[tensor] == LS_NO_ID || a->home[tensor] == a->stage;
    for (uint32_t k = 0; k < a->c->ncopy && !here; k++)
        here = a->c->copy[k].tensor == tensor && a->c->copy[k].to == a->stage;
    return here;
}

/* Whether the operands are there. What arrives for the phase is awaited before the run that reads
 * it. */
static bool read(Audit *a, const LsDagNode *n, uint32_t micro)
{
    for (uint32_t k = 0; k < n->nin; k++) {
        const uint32_t t = n->in[k];
        if (a->g->dag.tensor[t].persistent && !has_state(a, t))
            return ls_why(&a->why,
                          "'%s' reads '%s', which stage %u changes, and gets no copy of it",
                          n->name, tname(a, t), a->home[t] + 1);
        if (a->g->dag.tensor[t].persistent || a->g->dag.tensor[t].bytes == 0)
            continue;
        if (!*was(a, t, micro))
            return ls_why(&a->why, "micro-batch %u: '%s' reads '%s', which is not there yet", micro,
                          n->name, tname(a, t));
        if (!*has(a, t, micro))
            return ls_why(&a->why, "micro-batch %u: '%s' reads '%s', which was overwritten", micro,
                          n->name, tname(a, t));
        for (uint32_t j = a->nflight; j-- > 0;)
            if (a->flight[j].arrives && a->c->move[a->flight[j].move].tensor == t)
                end_flights(a, a->flight[j].move, micro);
    }
    return true;
}

static bool run(Audit *a, const LsPlan *plan, const LsPlanStep *s, uint32_t micro)
{
    const LsDagNode *n = &a->g->dag.node[s->id];
    int64_t lo = 0, hi = 0;
    if (!read(a, n, micro))
        return false;
    if (s->workspace_offset >= 0) {
        if (!find_place(a, n->name, s->workspace_offset, n->workspace, micro, &lo, &hi)
            || !may_write(a, n->name, lo, hi, micro))
            return false;
        overwrite(a, lo, hi);
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        const int64_t bytes = a->g->dag.tensor[n->out[k]].bytes;
        if (bytes == 0)
            continue;
        if (!find_place(a, tname(a, n->out[k]), plan->offset[s->offset + k], bytes, micro, &lo, &hi)
            || !may_write(a, n->name, lo, hi, micro))
            return false;
        write(a, lo, hi, n->out[k], micro);
    }
    return true;
}

static void end_messages(Audit *a, const LsPipeTurn *t)
{
    for (uint32_t k = 0; k < a->c->nmove; k++) {
        uint32_t micro[2];
        for (uint32_t j = a->c->move[k].from == a->stage
                              ? ls_move_ends(&a->c->move[k], t->phase, t->micro, micro)
                              : 0;
             j-- > 0;)
            end_flights(a, k, micro[j]);
    }
}

/* What the phase has made for other stages leaves. */
static bool send(Audit *a, int phase, uint32_t micro)
{
    for (uint32_t k = 0; k < a->c->nmove; k++) {
        const LsPipeMove *m = &a->c->move[k];
        if (m->from != a->stage || m->made != phase || m->bytes == 0
            || (m->read == LS_PHASE_LATE && micro + 1 < a->micros))
            continue;
        if (!*has(a, m->tensor, micro))
            return ls_why(&a->why, "micro-batch %u: '%s' for stage %u was %s", micro,
                          tname(a, m->tensor), m->to + 1,
                          *was(a, m->tensor, micro) ? "overwritten before it left"
                                                    : "not made in its phase");
        add_flight(a, k, micro, false);
    }
    return true;
}

/* Whether a run of the phase behind `step` reads the tensor. */
static bool is_read_behind(const Audit *a, const LsPipeRuns *of, uint32_t step, uint32_t run,
                           int phase, uint32_t tensor)
{
    for (uint32_t s = step + 1; s < of->plan.nstep && run + 1 < of->phase_at[phase + 1]; s++) {
        const LsDagNode *n = &a->g->dag.node[of->plan.step[s].id];
        if (of->plan.step[s].free)
            continue;
        if (ls_id_in(n->in, n->nin, tensor))
            return true;
        run++;
    }
    return false;
}

/* What the node that begins a phase makes arrives until a run of this phase reads it, and at once
 * if none does. What another one of its results lies on is found where it is read. */
static void receive(Audit *a, const LsPipeRuns *of, uint32_t step, uint32_t run, int phase,
                    uint32_t micro)
{
    for (uint32_t k = 0; k < a->c->nmove; k++) {
        const LsPipeMove *m = &a->c->move[k];
        if (m->to == a->stage && m->read == phase && m->bytes > 0 && *has(a, m->tensor, micro)
            && is_read_behind(a, of, step, run, phase, m->tensor))
            add_flight(a, k, micro, true);
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
        if (at >= of->phase_at[phase] && at < of->phase_at[phase + 1]) {
            if (!run(a, plan, &plan->step[s], micro))
                return false;
            if (plan->step[s].id == a->g->begin[phase])
                receive(a, of, s, at, phase, micro);
        }
        at++;
    }
    end_flights(a, LS_NO_ID, micro);
    return send(a, phase, micro);
}

/* Nothing of the step before is left to read. */
static void begin_step(Audit *a)
{
    memset(a->has, 0, (size_t)a->micros * a->g->dag.ntensor + 1);
    memset(a->was, 0, (size_t)a->micros * a->g->dag.ntensor + 1);
    a->nheld = a->nflight = 0;
}

static bool run_step(Audit *a)
{
    begin_step(a);
    for (uint32_t k = 0; k < a->flow->nturn; k++) {
        const LsPipeTurn *t = &a->flow->turn[k];
        end_messages(a, t);
        if (t->micro < a->micros && !run_phase(a, t->phase, t->micro))
            return false;
    }
    return run_phase(a, LS_PHASE_LATE, a->micros - 1);
}

/* The stage of a node that is needed changes the state. */
static void find_homes(Audit *a)
{
    const LsProb *p = a->c->p;
    a->home = ls_arena_alloc(a->tmp, a->g->dag.ntensor + 1u, sizeof *a->home);
    memset(a->home, 0xff, a->g->dag.ntensor * sizeof *a->home);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; p->needed[i] && k < p->dag->node[i].nupd; k++)
            a->home[p->dag->node[i].upd[k]] = a->c->stage[i];
}

static bool find_plans(Audit *a)
{
    for (uint32_t k = 0; k < a->flow->nturn; k++) {
        const LsPipeTurn *t = &a->flow->turn[k];
        if (t->plan >= a->l->nplan)
            return ls_why(&a->why, "micro-batch %u has plan %d of %u", t->micro, t->plan,
                          a->l->nplan);
        if (t->micro < a->micros)
            a->plan_of[t->micro] = t->plan;
    }
    return true;
}

bool ls_pipe_audit(const LsPipeGraph *full, const LsPipeCut *c, uint32_t stage,
                   const LsPipeLayout *l, const LsPipeFlow *flow, char *why, size_t room)
{
    uint32_t micros = 0;
    for (uint32_t k = 0; k < flow->nturn; k++)
        micros = flow->turn[k].micro + 1 > micros ? flow->turn[k].micro + 1 : micros;
    const uint32_t few = 2 * flow->most + 3;
    micros = few < micros ? few : micros;
    Audit a = {.g = full,
               .c = c,
               .l = l,
               .flow = flow,
               .stage = stage,
               .micros = micros,
               .tmp = ls_arena_new(),
               .why = {.text = why, .size = room}};
    a.has = ls_arena_alloc(a.tmp, (size_t)micros * full->dag.ntensor + 1, 1);
    a.was = ls_arena_alloc(a.tmp, (size_t)micros * full->dag.ntensor + 1, 1);
    find_homes(&a);
    a.plan_of = ls_arena_alloc(a.tmp, micros, 1);
    bool ok = find_plans(&a);
    const uint32_t ran[] = {micros, micros - 1, 1};
    for (int k = 0; ok && k < 3; k++) {
        a.micros = ran[k];
        ok = a.micros == 0 || run_step(&a);
    }
    ls_arena_free(a.tmp);
    return ok;
}
