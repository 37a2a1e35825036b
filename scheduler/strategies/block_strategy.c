/* scheduler/strategies/block_strategy.c -- plans composed of blocks, for tight budgets and deep
 * graphs.
 *
 * The row of blocks is split into ranges. A range keeps the values that later blocks read, and
 * those of its option. Backward, the range recomputes its missing values, runs, and is finished.
 * The values that earlier ranges keep stay live all the while, so
 *   kept by earlier ranges + peak of the range <= target,   for each range,
 * and a dynamic program over (blocks done, bytes kept) finds the cheapest split with its options,
 * for a row of targets. Where that is not enough, ranges of layers and of single nodes are
 * recomputed within ranges (nested_blocks.h). */
#include "scheduler/blocks/nested_blocks.h"
#include "scheduler/strategies/published_strategies.h"

enum { CELLS = 128 };           /* cells of kept bytes, from 0 to the target */

typedef struct Label {          /* the cheapest way to finish the earlier blocks in this cell */
    double cost;                /* < 0: none */
    int64_t kept;
    uint32_t from, cell;        /* start of the last range, and the label there */
    uint32_t option;
} Label;

typedef struct Chain {
    LsCandidates *pool;
    LsBlockRanges r;
    Label *label;               /* by blocks done and cell */
    LsPhase *phase;
} Chain;

/* Drops dominated labels: those that keep more and cost no less than another. */
static void prune(Chain *c, uint32_t at)
{
    Label *label = &c->label[(size_t)at * CELLS];
    double least = -1;
    for (uint32_t cell = 0; cell < CELLS; cell++) {
        if (label[cell].cost < 0)
            continue;
        if (least >= 0 && label[cell].cost >= least)
            label[cell].cost = -1;
        else
            least = label[cell].cost;
    }
}

static void relax(Chain *c, uint32_t from, uint32_t to, int64_t target)
{
    const LsKeepOptions *o = ls_block_ranges_at(&c->r, from, to);
    for (uint32_t cell = 0; cell < CELLS; cell++) {
        const Label *l = &c->label[(size_t)from * CELLS + cell];
        for (uint32_t k = 0; l->cost >= 0 && k < o->n; k++) {
            const LsKeepOption *x = &o->item[k];
            int64_t kept = l->kept + x->kept;
            if (l->kept + x->peak > target || kept > target)
                continue;
            uint32_t into = (uint32_t)((double)kept / (double)target * (CELLS - 1));
            Label *to_label = &c->label[(size_t)to * CELLS + into];
            double cost = l->cost + x->again;
            if (to_label->cost < 0 || cost < to_label->cost
                || (cost <= to_label->cost && kept < to_label->kept))
                *to_label = (Label){cost, kept, from, cell, k};
        }
    }
}

/* Fills c->phase for a target; returns the number of ranges; 0: the target cannot be met. */
static uint32_t solve(Chain *c, int64_t target)
{
    uint32_t n = c->r.b->n, best = LS_NO_ID, count = 0;
    for (size_t k = 0; k < (size_t)(n + 1) * CELLS; k++)
        c->label[k].cost = -1;
    c->label[0] = (Label){.cost = 0};
    for (uint32_t from = 0; from < n; from++) {
        prune(c, from);
        for (uint32_t to = from + 1; to <= n && to - from <= c->r.longest; to++)
            relax(c, from, to, target);
    }
    const Label *end = &c->label[(size_t)n * CELLS];
    for (uint32_t cell = 0; cell < CELLS; cell++)
        if (end[cell].cost >= 0 && (best == LS_NO_ID || end[cell].cost < end[best].cost))
            best = cell;
    if (best == LS_NO_ID)
        return 0;
    for (uint32_t at = n, cell = best; at > 0;) {
        const Label *l = &c->label[(size_t)at * CELLS + cell];
        const LsKeepOptions *o = ls_block_ranges_at(&c->r, l->from, at);
        c->phase[count++] = (LsPhase){l->from, at, &o->item[l->option]};
        at = l->from;
        cell = l->cell;
    }
    return count;
}

static void split_once(Chain *c)
{
    enum { TARGETS = 140 };
    double target = (double)c->pool->cand[0].peak;
    for (int k = 0; k < TARGETS; k++, target *= 0.98) {
        uint32_t n = solve(c, (int64_t)target);
        if (n == 0)
            break;
        ls_block_ranges_offer(c->pool, &c->r, c->phase, n);
    }
}

void ls_strategy_hierarchy(LsCandidates *pool, const LsProb *p)
{
    enum { MOST = 96, FINE = 48 };
    LsArena *arena = ls_arena_new();
    Chain c = {.pool = pool, .r = ls_block_ranges(arena, p, MOST, LS_CUT_VALLEYS)};
    uint32_t n = c.r.b->n;
    if (n > 1 && pool->n > 0) {
        c.label = ls_arena_alloc(arena, (size_t)(n + 1) * CELLS, sizeof *c.label);
        c.phase = ls_arena_alloc(arena, n + 1u, sizeof *c.phase);
        split_once(&c);
        ls_nested_offer(pool, &c.r);
    }
    LsBlockRanges fine = ls_block_ranges(arena, p, FINE, LS_CUT_EVERYWHERE);
    if (fine.b->n > 1 && pool->n > 0)
        ls_nested_offer(pool, &fine);
    ls_arena_free(arena);
}
