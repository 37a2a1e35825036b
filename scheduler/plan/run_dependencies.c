/* scheduler/plan/run_dependencies.c -- see run_dependencies.h. */
#include "scheduler/plan/run_dependencies.h"

#include <stdlib.h>

#include "base/heap.h"

/* The state of a walk through a plan. */
typedef struct Walk {
    LsArena *arena;
    const LsDag *dag;
    const LsPlan *plan;
    LsPieces *p;
    uint32_t *at;               /* by tensor: the piece of its live instance */
    uint32_t ntouch, cap_piece, cap_touch;
} Walk;

static uint32_t add_piece(Walk *w, LsPiece piece)
{
    LsPieces *p = w->p;
    p->piece = ls_arena_grow(w->arena, p->piece, p->npiece, p->npiece + 1u, sizeof *p->piece,
                             &w->cap_piece);
    p->piece[p->npiece] = piece;
    return p->npiece++;
}

/* Records that the run touches a piece, once per run; a write prevails. */
static void touch(Walk *w, uint32_t piece, bool writes)
{
    LsPieces *p = w->p;
    p->piece[piece].last = p->nrun;
    for (uint32_t k = p->of[p->nrun]; k < w->ntouch; k++)
        if (p->touch[k].piece == piece) {
            p->touch[k].writes |= writes;
            return;
        }
    p->touch = ls_arena_grow(w->arena, p->touch, w->ntouch, w->ntouch + 1u, sizeof *p->touch,
                             &w->cap_touch);
    p->touch[w->ntouch++] = (LsPieceUse){piece, writes};
}

/* Returns the operand whose place the result takes in this step, or UINT32_MAX. */
static uint32_t taken_over(const Walk *w, const LsPlanStep *s, uint32_t result)
{
    for (uint32_t k = s->reuse; k < s->reuse + s->nreuse; k++)
        if (w->plan->reuse[k].out == result)
            return w->plan->reuse[k].in;
    return UINT32_MAX;
}

static void make_results(Walk *w, const LsPlanStep *s)
{
    const LsDagNode *n = &w->dag->node[s->id];
    for (uint32_t k = 0; k < n->nout; k++) {
        uint32_t t = n->out[k], in = taken_over(w, s, t);
        LsPiece fresh = {w->p->nrun, w->p->nrun, w->dag->tensor[t].bytes,
                         w->plan->offset[s->offset + k]};
        w->at[t] = in == UINT32_MAX ? add_piece(w, fresh) : w->at[in];
        w->p->result[s->offset + k] = w->at[t];
        touch(w, w->at[t], true);
    }
}

static void add_run(Walk *w, const LsPlanStep *s)
{
    LsPieces *p = w->p;
    const LsDagNode *n = &w->dag->node[s->id];
    p->of[p->nrun] = w->ntouch;
    for (uint32_t k = 0; k < n->nin; k++)
        touch(w, w->at[n->in[k]], ls_id_in(n->upd, n->nupd, n->in[k]));
    make_results(w, s);
    p->workspace[p->nrun] = LS_NO_PIECE;
    if (n->workspace > 0) {
        p->workspace[p->nrun] =
            add_piece(w, (LsPiece){p->nrun, p->nrun, n->workspace, s->workspace_offset});
        touch(w, p->workspace[p->nrun], true);
    }
    p->begin[p->nrun + 1] = p->begin[p->nrun] + n->cost;
    p->of[++p->nrun] = w->ntouch;
}

LsPieces ls_pieces(LsArena *arena, const LsDag *dag, const LsPlan *plan)
{
    LsPieces p = {.of = ls_arena_alloc(arena, plan->nstep + 1u, sizeof *p.of),
                  .begin = ls_arena_alloc(arena, plan->nstep + 1u, sizeof *p.begin),
                  .workspace = ls_arena_alloc(arena, plan->nstep + 1u, sizeof *p.workspace),
                  .result = ls_arena_alloc(arena, plan->noffset + 1u, sizeof *p.result)};
    Walk w = {.arena = arena, .dag = dag, .plan = plan, .p = &p,
              .at = ls_arena_alloc(arena, dag->ntensor + 1u, sizeof *w.at)};
    for (uint32_t t = 0; t < dag->ntensor; t++)
        if (dag->tensor[t].persistent)
            w.at[t] = add_piece(&w, (LsPiece){0, 0, dag->tensor[t].bytes, -1});
    for (uint32_t s = 0; s < plan->nstep; s++)
        if (!plan->step[s].free)
            add_run(&w, &plan->step[s]);
        else if (p.nrun > 0)    /* it may end after the last run that touches it */
            p.piece[w.at[plan->step[s].id]].last = p.nrun - 1;
    for (uint32_t t = 0; t < dag->ntensor; t++)
        if (dag->tensor[t].output && !dag->tensor[t].persistent && p.nrun > 0)
            p.piece[w.at[t]].last = p.nrun - 1;
    return p;
}

static bool same_bytes(const LsPieces *p, uint32_t a, uint32_t b, bool apart)
{
    const LsPiece *x = &p->piece[a], *y = &p->piece[b];
    if (a == b)
        return true;
    return !apart && x->offset >= 0 && y->offset >= 0 && x->offset < y->offset + y->bytes
           && y->offset < x->offset + x->bytes;
}

static bool conflict(const LsPieces *p, uint32_t a, uint32_t b, bool apart)
{
    for (uint32_t i = p->of[a]; i < p->of[a + 1]; i++)
        for (uint32_t k = p->of[b]; k < p->of[b + 1]; k++)
            if ((p->touch[i].writes || p->touch[k].writes)
                && same_bytes(p, p->touch[i].piece, p->touch[k].piece, apart))
                return true;
    return false;
}

static int rising(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

/* Goes from the previous run back to the first, so that runs already waited for through later ones
 * are recognised. */
LsWaits ls_waits(LsArena *arena, const LsPieces *p, bool apart)
{
    LsWaits w = {.words = (p->nrun + 63) / 64};
    LsPairs on = {0};
    w.before = ls_arena_alloc(arena, (size_t)p->nrun * w.words + 1u, sizeof *w.before);
    for (uint32_t r = 0; r < p->nrun; r++) {
        uint64_t *mine = w.before + (size_t)r * w.words;
        for (uint32_t i = r; i-- > 0;) {
            if (ls_waits_for(&w, r, i) || !conflict(p, i, r, apart))
                continue;
            ls_pairs_add(arena, &on, r, i);
            for (uint32_t k = 0; k < w.words; k++)
                mine[k] |= w.before[(size_t)i * w.words + k];
            mine[i / 64] |= UINT64_C(1) << i % 64;
        }
    }
    w.on = ls_rows(arena, &on, p->nrun);
    for (uint32_t r = 0; r < p->nrun; r++)
        qsort(w.on.id + w.on.at[r], w.on.at[r + 1] - w.on.at[r], sizeof *w.on.id, rising);
    return w;
}

double ls_waits_longest(const LsPieces *p, const LsWaits *w)
{
    double *end = ls_heap_alloc(p->nrun + 1u, sizeof *end), longest = 0;
    for (uint32_t r = 0; r < p->nrun; r++) {
        double from = 0;
        for (uint32_t k = w->on.at[r]; k < w->on.at[r + 1]; k++)
            from = end[w->on.id[k]] > from ? end[w->on.id[k]] : from;
        end[r] = from + p->begin[r + 1] - p->begin[r];
        longest = end[r] > longest ? end[r] : longest;
    }
    free(end);
    return longest;
}
