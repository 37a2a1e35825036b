/* scheduler/candidates/plan_build.c -- turns lifetimes into blocks, packs the blocks, and turns
 * runs and frees into steps. */
#include "scheduler/candidates/plan_build.h"

#include <assert.h>

typedef struct Build {
    LsArena *tmp;
    const LsProb *p;
    const LsSeq *seq;
    const LsLive *live;
    const LsPlacer *placer;
    uint32_t *block_of;         /* by instance */
    int64_t *place;             /* by block */
    uint32_t *workspace;        /* by run: its block, or LS_NO_ID */
} Build;

/* Makes and packs one block per chain of instances that share a place, and one per workspace. */
static void pack(Build *b)
{
    const LsLive *l = b->live;
    uint32_t n = b->seq->n, nblock = 0;
    LsBlock *block = ls_arena_alloc(b->tmp, l->ninst + n + 1u, sizeof *block);
    uint32_t *tensor = ls_arena_alloc(b->tmp, l->ninst + n + 1u, sizeof *tensor);
    b->block_of = ls_arena_alloc(b->tmp, l->ninst + 1u, sizeof *b->block_of);
    b->workspace = ls_arena_alloc(b->tmp, n + 1u, sizeof *b->workspace);
    for (uint32_t k = 0; k < l->ninst; k++) {       /* an heir comes after the instance whose place
                                                     * it takes */
        const LsInstance *in = &l->inst[k];
        uint32_t to = in->to < n ? in->to : n - 1;
        int64_t size = b->p->size[in->tensor];
        if (in->of != LS_NO_ID) {
            LsBlock *o = &block[b->block_of[in->of]];
            b->block_of[k] = b->block_of[in->of];
            tensor[b->block_of[k]] = in->tensor;
            o->to = to;
            if (size < o->size && o->rest == 0 && to > in->from) {
                o->rest = size;                     /* the upper end is free again */
                o->full = in->from;
            }
            continue;
        }
        b->block_of[k] = nblock;
        tensor[nblock] = in->tensor;
        block[nblock++] = (LsBlock){size, in->from, to, 0, 0};
    }
    for (uint32_t s = 0; s < n; s++) {
        int64_t bytes = b->p->workspace[b->seq->node[s]];
        b->workspace[s] = bytes ? nblock : LS_NO_ID;
        tensor[nblock] = LS_NO_ID;
        if (bytes)
            block[nblock++] = (LsBlock){bytes, s, s, 0, 0};
    }
    b->place = ls_arena_alloc(b->tmp, nblock + 1u, sizeof *b->place);
    b->placer->place(b->placer->self, block, tensor, nblock, b->p->dag->alignment, b->place);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_run(Build *b, uint32_t s, bool again, LsPlan *out)
{
    const LsDag *g = b->p->dag;
    const LsLive *l = b->live;
    uint32_t v = b->seq->node[s];
    LsPlanStep step = {.again = again, .id = v, .offset = out->noffset, .workspace_offset = -1,
                       .reuse = out->nreuse};
    for (uint32_t k = l->first[s]; k < l->first[s + 1]; k++) {
        int64_t at = out->unplaced ? -1 : b->place[b->block_of[k]];
        out->offset[out->noffset++] = at;
        if (!out->unplaced)
            out->arena = larger(out->arena, at + g->tensor[l->inst[k].tensor].bytes);
        if (l->inst[k].of != LS_NO_ID)
            out->reuse[out->nreuse++] =
                (LsDagPair){l->inst[k].tensor, l->inst[l->inst[k].of].tensor};
    }
    step.nreuse = out->nreuse - step.reuse;
    if (!out->unplaced && b->workspace[s] != LS_NO_ID) {
        step.workspace_offset = b->place[b->workspace[s]];
        out->arena = larger(out->arena, step.workspace_offset + g->node[v].workspace);
    }
    out->step[out->nstep++] = step;
    out->cost += g->node[v].cost;
}

/* Writes the steps in order, and the live peak in true bytes (the planner counts aligned bytes). */
static void add_steps(Build *b, LsPlan *out)
{
    const LsDag *g = b->p->dag;
    const LsLive *l = b->live;
    bool *ran = ls_arena_alloc(b->tmp, b->p->n + 1u, sizeof *ran);
    uint32_t *last = ls_arena_alloc(b->tmp, l->ninst + 1u, sizeof *last);
    for (uint32_t k = 0; k < l->ninst; k++)
        last[k] = l->inst[k].to;
    /* by run: instances that end there */
    LsRows ending = ls_rows_by(b->tmp, last, l->ninst, b->seq->n);
    int64_t used = 0;
    for (uint32_t s = 0; s < b->seq->n; s++) {
        uint32_t v = b->seq->node[s];
        add_run(b, s, ran[v], out);
        ran[v] = true;
        for (uint32_t k = l->first[s]; k < l->first[s + 1]; k++)
            used += l->inst[k].of == LS_NO_ID ? g->tensor[l->inst[k].tensor].bytes : 0;
        out->live_peak = larger(out->live_peak, used + g->node[v].workspace);
        for (uint32_t k = l->first[s]; k < l->first[s + 1]; k++)
            used += l->inst[k].of != LS_NO_ID ? g->tensor[l->inst[k].tensor].bytes : 0;
        for (uint32_t j = ending.at[s]; j < ending.at[s + 1]; j++) {
            const LsInstance *in = &l->inst[ending.id[j]];
            used -= g->tensor[in->tensor].bytes;
            if (in->heir == LS_NO_ID)
                out->step[out->nstep++] = (LsPlanStep){.free = true, .id = in->tensor,
                                                       .workspace_offset = -1};
        }
    }
}

typedef struct Effort { LsPackEffort effort; int64_t enough; } Effort;

static void place_freely(void *self, const LsBlock *block, const uint32_t *tensor, uint32_t n,
                         int64_t alignment, int64_t *offset)
{
    const Effort *e = self;
    (void)tensor;
    ls_offsets(block, n, alignment, ls_offsets_bound(block, n), e->enough, e->effort, offset);
}

void ls_plan_build(LsArena *arena, const LsProb *p, const LsSeq *seq, const char *strategy,
                   LsPackEffort effort, int64_t enough, LsPlan *out)
{
    Effort e = {effort, enough};
    ls_plan_build_by(arena, p, seq, strategy, &(LsPlacer){place_freely, &e}, out);
}

void ls_plan_build_by(LsArena *arena, const LsProb *p, const LsSeq *seq, const char *strategy,
                      const LsPlacer *placer, LsPlan *out)
{
    Build b = {.tmp = ls_arena_new(), .p = p, .seq = seq, .placer = placer};
    LsLive *live = ls_live_new(b.tmp, p);
    ls_live(p, seq, live);
    b.live = live;
    *out = (LsPlan){.strategy = strategy, .base_cost = p->base_cost, .unplaced = p->unplaced};
    out->step = ls_arena_alloc(arena, (size_t)seq->n + live->ninst + 1, sizeof *out->step);
    out->offset = ls_arena_alloc(arena, live->ninst + 1u, sizeof *out->offset);
    out->reuse = ls_arena_alloc(arena, live->ninst + 1u, sizeof *out->reuse);
    if (seq->n > 0 && !p->unplaced)
        pack(&b);
    add_steps(&b, out);
    assert(p->unplaced || out->arena >= out->live_peak);
    if (p->unplaced)
        out->arena = out->live_peak;
    ls_arena_free(b.tmp);
}
