/* scheduler/pipes/pipe_layout.c -- see the header. */
#include "scheduler/pipes/pipe_layout.h"

typedef struct Place {
    LsArena *tmp;
    const uint32_t *phase_at;
    uint32_t slots;
    int last;                   /* the last phase of a micro-batch */
    const bool *sent;           /* by tensor: it must stay until another stage has it */
    const LsBlock *block;
    const uint32_t *tensor;     /* by block: the one that lies in it last, or LS_NO_ID */
    uint32_t n;
    int64_t alignment;
    int64_t most;
    bool fits;
    int64_t transient, slot;
} Place;

static int phase_of(const Place *x, uint32_t run)
{
    int phase = LS_STAGE_PHASES - 1;
    while (phase > 0 && run < x->phase_at[phase])
        phase--;
    return phase;
}

/* The late phase follows the last phase of the last micro-batch, so nothing runs between them. */
static bool is_kept(const Place *x, uint32_t k)
{
    const LsBlock *b = &x->block[k];
    const int from = phase_of(x, b->from), to = phase_of(x, b->to);
    return x->slots == 1 || (x->tensor[k] != LS_NO_ID && x->sent[x->tensor[k]])
        || (from != to && !(from == x->last && to == LS_PHASE_LATE));
}

/* Packs the blocks that are kept, or the others. Returns the bytes; without offsets, a lower bound. */
static int64_t pack(const Place *x, bool kept, int64_t *offset)
{
    LsBlock *some = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *some);
    uint32_t *of = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *of), m = 0;
    int64_t *at = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *at);
    for (uint32_t k = 0; k < x->n; k++)
        if (is_kept(x, k) == kept) {
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
    if (x->most > 0 && pack(x, false, NULL) + x->slots * pack(x, true, NULL) > x->most) {
        place_in_a_row(x, offset);
        x->fits = false;
        return;
    }
    x->transient = pack(x, false, offset);
    x->slot = pack(x, true, offset);
    for (uint32_t k = 0; k < n; k++)
        offset[k] += is_kept(x, k) ? x->transient : 0;
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

/* By tensor: it is sent to a phase of a micro-batch. */
static bool *find_sent(LsArena *arena, const LsPipeGraph *full, const LsPipeCut *c, uint32_t stage)
{
    bool *sent = ls_arena_alloc(arena, full->dag.ntensor + 1u, 1);
    for (uint32_t k = 0; k < c->nmove; k++)
        sent[c->move[k].tensor] |= c->move[k].from == stage && c->move[k].read != LS_PHASE_LATE;
    return sent;
}

bool ls_pipe_layout(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full, const LsProb *p,
                    const LsPlan *plan, uint32_t slots, int64_t most, LsPipeLayout *out)
{
    Place x = {.tmp = ls_arena_new(), .slots = slots, .most = most, .fits = true};
    *out = (LsPipeLayout){.slots = slots};
    const LsSeq seq = runs_of(x.tmp, full, plan, out->phase_at);
    x.phase_at = out->phase_at;
    x.sent = find_sent(x.tmp, full, c, stage);
    x.last = full->begin[LS_PHASE_W] != LS_NO_ID ? LS_PHASE_W : LS_PHASE_B;
    ls_plan_build_by(arena, p, &seq, plan->strategy, &(LsPlacer){place, &x}, &out->plan);
    out->transient = x.transient;
    out->slot = x.slot;
    out->arena = x.transient + slots * x.slot;
    ls_arena_free(x.tmp);
    return x.fits;
}
