/* scheduler/pipeline/pipe_layout.c -- see the header. */
#include "scheduler/pipeline/pipe_layout.h"

#include "scheduler/packing/offsets_over.h"

typedef struct Place {
    LsArena *tmp;
    const uint32_t *phase_at;
    uint32_t slots;
    int last;                   /* the last phase of a micro-batch */
    const bool *sent;           /* by tensor: it must stay until the slot is used again */
    const LsBlock *block;
    const uint32_t *tensor;     /* by block: the one that lies in it last, or LS_NO_ID */
    uint32_t n;
    int64_t alignment;
    int64_t most;
    bool fits;
    int64_t transient, slot;
} Place;

enum { SLOT = LS_PHASE_LATE };  /* a home beside the phases */

static int phase_of(const Place *x, uint32_t run)
{
    int phase = LS_STAGE_PHASES - 1;
    while (phase > 0 && run < x->phase_at[phase])
        phase--;
    return phase;
}

static bool is_sent(const Place *x, uint32_t k) { return x->tensor[k] != LS_NO_ID && x->sent[x->tensor[k]]; }

/* SLOT, or the phase within which the block lives. The late phase follows the last phase of the last micro-batch, so nothing
 * runs between them, and they count as one. */
static int home(const Place *x, uint32_t k)
{
    const int from = phase_of(x, x->block[k].from), to = phase_of(x, x->block[k].to);
    const bool late = to == LS_PHASE_LATE && from >= x->last;
    return x->slots == 1 || is_sent(x, k) || (from != to && !late) ? SLOT : late ? x->last : from;
}

/* Packs the blocks of a home. Returns the bytes; without offsets, a lower bound. */
static int64_t pack(const Place *x, int where, int64_t *offset)
{
    LsBlock *some = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *some);
    uint32_t *of = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *of), m = 0;
    int64_t *at = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *at);
    for (uint32_t k = 0; k < x->n; k++)
        if (home(x, k) == where) {
            of[m] = k;
            some[m++] = x->block[k];
        }
    const int64_t least = m > 0 ? ls_offsets_bound(some, m) : 0;
    if (offset == NULL || m == 0)
        return ls_align(least, x->alignment);
    const int64_t end = ls_offsets(some, m, x->alignment, least, 0, LS_PACK_FULL, at);
    for (uint32_t k = 0; k < m; k++)
        offset[of[k]] = at[k];
    return ls_align(end, x->alignment);
}

static int64_t pack_phases(const Place *x, int64_t *offset)
{
    int64_t most = 0;
    for (int phase = 0; phase < SLOT; phase++) {
        const int64_t bytes = pack(x, phase, offset);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Any valid offsets, for a layout that is not used. */
static void place_in_a_row(const Place *x, int64_t *offset)
{
    int64_t end = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        offset[k] = end;
        end += ls_align(x->block[k].size, x->alignment);
    }
}

static void place(void *self, const LsBlock *block, const uint32_t *tensor, uint32_t n, int64_t alignment, int64_t *offset)
{
    Place *x = self;
    x->block = block;
    x->tensor = tensor;
    x->n = n;
    x->alignment = alignment;
    if (x->most > 0 && pack_phases(x, NULL) + x->slots * pack(x, SLOT, NULL) > x->most) {
        place_in_a_row(x, offset);
        x->fits = false;
        return;
    }
    x->transient = pack_phases(x, offset);
    x->slot = pack(x, SLOT, offset);
    for (uint32_t k = 0; k < n; k++)
        offset[k] += home(x, k) == SLOT ? x->transient : 0;
    x->fits = x->most <= 0 || x->transient + x->slots * x->slot <= x->most;
}

/* The runs of the plan, and those of the late phase in the order of the graph. Sets phase_at. */
static LsSeq runs_of(LsArena *arena, const LsPipeGraph *full, const LsPlan *plan, uint32_t *phase_at)
{
    LsSeq seq = {ls_arena_alloc(arena, plan->nstep + full->dag.nnode + 1u, sizeof *seq.node), 0};
    uint32_t at[LS_STAGE_PHASES + 1] = {0};
    for (uint32_t s = 0; s < plan->nstep; s++) {
        if (plan->step[s].free)
            continue;
        for (int phase = LS_PHASE_B; phase < LS_PHASE_LATE; phase++)
            if (plan->step[s].id == full->begin[phase])
                at[phase] = seq.n;
        seq.node[seq.n++] = plan->step[s].id;
    }
    at[LS_PHASE_LATE] = seq.n;
    for (uint32_t i = full->nplanned; i < full->dag.nnode; i++)
        seq.node[seq.n++] = i;
    at[LS_STAGE_PHASES] = seq.n;
    for (int phase = LS_PHASE_LATE - 1; phase > LS_PHASE_F; phase--)       /* a phase without a node of its own */
        if (full->begin[phase] == LS_NO_ID)
            at[phase] = at[phase + 1];
    for (int phase = 0; phase <= LS_STAGE_PHASES; phase++)
        phase_at[phase] = at[phase];
    return seq;
}

/* By tensor: it is sent, and stays until the slot is used again. (What F sends for an F only stays until B begins, which reads
 * it in the graph.) */
static bool *find_sent(LsArena *arena, const LsPipeGraph *full, const LsPipeCut *c, uint32_t stage)
{
    bool *sent = ls_arena_alloc(arena, full->dag.ntensor + 1u, 1);
    for (uint32_t k = 0; k < c->nmove; k++)
        sent[c->move[k].tensor] |= c->move[k].from == stage && c->move[k].read != LS_PHASE_LATE
                                   && (c->move[k].made != LS_PHASE_F || c->move[k].read != LS_PHASE_F);
    return sent;
}

static int last_phase(const LsPipeGraph *full) { return full->begin[LS_PHASE_W] != LS_NO_ID ? LS_PHASE_W : LS_PHASE_B; }

bool ls_pipe_layout(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full, const LsProb *p,
                    const LsPlan *plan, uint32_t slots, int64_t most, LsPipeLayout *out)
{
    Place x = {.tmp = ls_arena_new(), .slots = slots, .most = most, .fits = true};
    *out = (LsPipeLayout){.nplan = 1, .slots = slots};
    LsPipeRuns *of = &out->of[LS_PIPE_USUAL];
    const LsSeq seq = runs_of(x.tmp, full, plan, of->phase_at);
    x.phase_at = of->phase_at;
    x.sent = find_sent(x.tmp, full, c, stage);
    x.last = last_phase(full);
    ls_plan_build_by(arena, p, &seq, plan->strategy, &(LsPlacer){place, &x}, &of->plan);
    out->transient = x.transient;
    out->first = out->slot = x.slot;
    out->arena = x.transient + slots * x.slot;
    ls_arena_free(x.tmp);
    return x.fits;
}

/* ---- the micro-batch with a plan of its own ---- */

/* Its runs on a line, with a step more where other micro-batches may run: behind each of its phases but the last one, and at
 * the end. (The late phase follows it only if no other micro-batch has samples.) */
typedef struct PlaceKept {
    Place x;
    uint32_t nrun;
    int64_t floor[LS_PHASES];   /* by phase: bytes from 0 on that others use between it and the next one */
    int64_t end;
} PlaceKept;

static uint32_t on_line(const PlaceKept *k, uint32_t run)
{
    uint32_t at = run;
    for (int phase = 0; phase < k->x.last; phase++)
        at += run >= k->x.phase_at[phase + 1];
    return at;
}

static uint32_t gap_on_line(const PlaceKept *k, int phase)
{
    return (phase < k->x.last ? k->x.phase_at[phase + 1] : k->nrun) + (uint32_t)phase;
}

/* What is sent may be on its way until the slot is used again. */
static void place_kept(void *self, const LsBlock *block, const uint32_t *tensor, uint32_t n, int64_t alignment, int64_t *offset)
{
    PlaceKept *k = self;
    Place *x = &k->x;
    LsBlock *all = ls_arena_alloc(x->tmp, n + (size_t)LS_PHASES, sizeof *all);
    int64_t *at = ls_arena_alloc(x->tmp, n + (size_t)LS_PHASES, sizeof *at);
    uint32_t m = 0;
    x->tensor = tensor;
    for (int phase = 0; phase <= x->last; phase++)
        all[m++] = (LsBlock){k->floor[phase], gap_on_line(k, phase), gap_on_line(k, phase), 0, 0};
    const uint32_t nfloor = m;
    for (uint32_t b = 0; b < n; b++)
        all[m++] = (LsBlock){block[b].size, on_line(k, block[b].from),
                             is_sent(x, b) ? gap_on_line(k, x->last) : on_line(k, block[b].to), block[b].rest,
                             block[b].rest > 0 ? on_line(k, block[b].full) : 0};
    k->end = ls_offsets_over(all, m, nfloor, alignment, at);
    for (uint32_t b = 0; b < n; b++)
        offset[b] = at[nfloor + b];
}

/* By phase: the bytes of the shared region that its runs use; the late phase counts as the last one. */
static void find_shared(const LsPipeGraph *full, const LsPipeLayout *l, int last, int64_t *shared)
{
    const LsPipeRuns *of = &l->of[LS_PIPE_USUAL];
    uint32_t run = 0;
    for (uint32_t s = 0; s < of->plan.nstep; s++) {
        const LsPlanStep *step = &of->plan.step[s];
        if (step->free)
            continue;
        const LsDagNode *n = &full->dag.node[step->id];
        int phase = 0;
        while (phase < last && run >= of->phase_at[phase + 1])
            phase++;
        for (uint32_t k = 0; k <= n->nout; k++) {
            const int64_t at = k < n->nout ? of->plan.offset[step->offset + k] : step->workspace_offset;
            const int64_t end = at + (k < n->nout ? full->dag.tensor[n->out[k]].bytes : n->workspace);
            if (at >= 0 && at < l->transient && end > shared[phase])
                shared[phase] = end;
        }
        run++;
    }
}

/* Sets the floors. Returns whether slot 0 is used again. */
static bool find_floors(const LsPipeFlow *flow, const int64_t *shared, PlaceKept *k)
{
    int phase = -1;             /* that it ran last */
    bool again = false;
    for (uint32_t t = 0; t < flow->nturn; t++) {
        const LsPipeTurn *turn = &flow->turn[t];
        again |= turn->plan == LS_PIPE_USUAL && turn->slot == 0;
        if (turn->plan == LS_PIPE_KEPT)
            phase = turn->phase;
        else if (phase >= 0 && shared[turn->phase] > k->floor[phase])
            k->floor[phase] = shared[turn->phase];
    }
    if (shared[k->x.last] > k->floor[k->x.last])        /* the late phase */
        k->floor[k->x.last] = shared[k->x.last];
    return again;
}

void ls_pipe_layout_kept(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full, const LsProb *p,
                         const LsPlan *plan, const LsPipeFlow *flow, LsPipeLayout *io)
{
    PlaceKept k = {.x = {.tmp = ls_arena_new(), .last = last_phase(full)}};
    LsPipeRuns *of = &io->of[LS_PIPE_KEPT];
    int64_t shared[LS_PHASES] = {0};
    const LsSeq seq = runs_of(k.x.tmp, full, plan, of->phase_at);
    k.x.phase_at = of->phase_at;
    k.x.sent = find_sent(k.x.tmp, full, c, stage);
    k.nrun = seq.n;
    find_shared(full, io, k.x.last, shared);
    const bool again = find_floors(flow, shared, &k);
    ls_plan_build_by(arena, p, &seq, plan->strategy, &(LsPlacer){place_kept, &k}, &of->plan);
    const int64_t over = k.end - io->transient, slot = again ? io->slot : 0;
    io->nplan = LS_PIPE_PLANS;
    io->first = over > slot ? over : slot;
    io->arena = io->transient + io->first + (io->slots - 1) * io->slot;
    ls_arena_free(k.x.tmp);
}
