/* scheduler/pipeline/stage_layout.c -- see the header. */
#include "scheduler/pipeline/stage_layout.h"

#include "scheduler/pipeline/stage_packing.h"

typedef struct Place {
    LsArena *arena, *tmp;
    const LsPipeCut *c;
    uint32_t stage;
    const LsPipeGraph *full;
    const LsSeq *seq;
    const uint32_t *phase_at;
    LsPipeWindows *w;
    int64_t most;
    bool fits;
    LsPipeLayout *out;
} Place;

static uint8_t phase_of(const Place *x, uint32_t run)
{
    uint8_t phase = LS_STAGE_PHASES - 1;
    while (phase > 0 && run < x->phase_at[phase])
        phase--;
    return phase;
}

/* Whether the instance of the tensor that lies in the block last is made in that phase. */
static bool is_made_in(const Place *x, const LsBlock *b, uint32_t tensor, uint8_t phase)
{
    uint32_t run = b->to;
    while (run > b->from) {
        const LsDagNode *n = &x->full->dag.node[x->seq->node[run]];
        if (ls_id_in(n->out, n->nout, tensor))
            break;
        run--;
    }
    return phase_of(x, run) == phase;
}

/* Writes the messages that send what lies in the block last. Returns their number. */
static uint32_t find_messages(const Place *x, const LsBlock *b, uint32_t tensor,
                              const LsPipeMove **to)
{
    uint32_t n = 0;
    for (uint32_t k = 0; tensor != LS_NO_ID && k < x->c->nmove; k++) {
        const LsPipeMove *m = &x->c->move[k];
        if (m->from == x->stage && m->tensor == tensor && is_made_in(x, b, tensor, m->made))
            to[n++] = m;
    }
    return n;
}

/* Finds the kind of a block. A message that the micro-batch's own later phases may overtake lasts
 * to the end of these. */
static uint32_t kind_of(const Place *x, uint32_t tensor, LsBlock *b)
{
    const LsPipeMove **sent = ls_arena_alloc(x->tmp, x->c->nmove + 1u, sizeof *sent);
    const uint8_t from = phase_of(x, b->from);
    const uint32_t n = find_messages(x, b, tensor, sent);
    const uint32_t kind = ls_pipe_kind(x->w, from, phase_of(x, b->to), sent, n);
    const uint8_t reach = x->w->kind[kind].reach;
    if (n > 0 && b->to + 1 < x->phase_at[reach + 1])
        b->to = x->phase_at[reach + 1] - 1;
    return kind;
}

/* Returns the blocks as they lie beside others; *kind: by block. */
static LsBlock *find_kinds(Place *x, const LsBlock *block, const uint32_t *tensor, uint32_t n,
                           uint32_t **kind)
{
    LsBlock *b = ls_arena_alloc(x->tmp, n + 1u, sizeof *b);
    *kind = ls_arena_alloc(x->tmp, n + 1u, sizeof **kind);
    for (uint32_t k = 0; k < n; k++) {
        b[k] = block[k];
        (*kind)[k] = kind_of(x, tensor[k], &b[k]);
    }
    return b;
}

static void place(void *self, const LsBlock *block, const uint32_t *tensor, uint32_t n,
                  int64_t alignment, int64_t *offset)
{
    Place *x = self;
    uint32_t *kind;
    for (uint8_t phase = 0; phase <= LS_PHASE_LATE; phase++)
        if (phase <= x->w->last || phase == LS_PHASE_LATE)
            ls_pipe_kind(x->w, phase, phase, NULL, 0);
    const LsBlock *b = find_kinds(x, block, tensor, n, &kind);
    x->out->placed = ls_arena_alloc(x->arena, n + 1u, sizeof *x->out->placed);
    x->fits = ls_pipe_pack(x->w, b, kind, n, alignment, x->most, offset, x->out);
}

static void place_kept(void *self, const LsBlock *block, const uint32_t *tensor, uint32_t n,
                       int64_t alignment, int64_t *offset)
{
    Place *x = self;
    uint32_t *kind;
    const LsBlock *b = find_kinds(x, block, tensor, n, &kind);
    ls_pipe_pack_kept(x->w, b, kind, n, alignment, offset, x->out);
}

/* The runs of the plan, and those of the late phase in the order of the graph. Sets phase_at. */
static LsSeq runs_of(LsArena *arena, const LsPipeGraph *full, const LsPlan *plan,
                     uint32_t *phase_at)
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
    /* a phase without a node of its own */
    for (int phase = LS_PHASE_LATE - 1; phase > LS_PHASE_F; phase--)
        if (full->begin[phase] == LS_NO_ID)
            at[phase] = at[phase + 1];
    for (int phase = 0; phase <= LS_STAGE_PHASES; phase++)
        phase_at[phase] = at[phase];
    return seq;
}

bool ls_pipe_layout(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full,
                    const LsProb *p, const LsPlan *plan, const LsPipeFlow *flow, int64_t most,
                    LsPipeLayout *out)
{
    Place x = {.arena = arena,
               .tmp = ls_arena_new(),
               .c = c,
               .stage = stage,
               .full = full,
               .most = most,
               .fits = true,
               .out = out};
    *out = (LsPipeLayout){.nplan = 1};
    LsPipeRuns *of = &out->of[LS_PIPE_USUAL];
    const LsSeq seq = runs_of(x.tmp, full, plan, of->phase_at);
    x.seq = &seq;
    x.phase_at = of->phase_at;
    x.w = out->windows = ls_pipe_windows(arena, flow);
    ls_plan_build_by(arena, p, &seq, plan->strategy, &(LsPlacer){place, &x}, &of->plan);
    ls_arena_free(x.tmp);
    return x.fits;
}

void ls_pipe_layout_kept(LsArena *arena, const LsPipeCut *c, uint32_t stage,
                         const LsPipeGraph *full, const LsProb *p, const LsPlan *plan,
                         LsPipeLayout *io)
{
    Place x = {.arena = arena,
               .tmp = ls_arena_new(),
               .c = c,
               .stage = stage,
               .full = full,
               .w = io->windows,
               .out = io};
    LsPipeRuns *of = &io->of[LS_PIPE_KEPT];
    const LsSeq seq = runs_of(x.tmp, full, plan, of->phase_at);
    x.seq = &seq;
    x.phase_at = of->phase_at;
    io->nplan = LS_PIPE_PLANS;
    ls_plan_build_by(arena, p, &seq, plan->strategy, &(LsPlacer){place_kept, &x}, &of->plan);
    ls_arena_free(x.tmp);
}
