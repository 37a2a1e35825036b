/* scheduler/hierarchy.c -- plans put together from blocks: for tight budgets and deep graphs.
 *
 * The row of blocks is split into ranges. A range keeps what later blocks read, and what its
 * option says of the rest; backward, it makes again what is missing, runs, and is done with.
 * What earlier ranges keep is there all the while, so
 *   kept by earlier ranges + peak of the range <= target,   for each range,
 * and the cheapest split with its options is found by a dynamic program over (blocks done, bytes
 * kept), for a row of targets. Ranges that look alike have their options found once. */
#include <math.h>

#include "scheduler/block_keep.h"
#include "scheduler/strategy.h"

enum { CELLS = 128 };           /* of kept bytes, from nothing to the target */

typedef struct Label {          /* the cheapest way to have the blocks before done in this cell */
    double cost;                /* < 0: none */
    int64_t kept;
    uint32_t from, cell;        /* where the last range begins, and the label there */
    uint32_t option;
} Label;

typedef struct Chain {
    LsCandidates *pool;
    LsArena *arena;
    LsBlocks *b;
    LsBlockWork *w;
    uint32_t longest;           /* range, in blocks */
    LsKeepOptions *options;     /* by from * longest + blocks - 1 */
    Label *label;               /* by blocks done and cell */
    LsChosen *chosen;
} Chain;

static LsKeepOptions *options_of(const Chain *c, uint32_t from, uint32_t to)
{
    return &c->options[(size_t)from * c->longest + (to - from - 1)];
}

static void find_options(Chain *c)
{
    const LsBlocks *b = c->b;
    uint64_t *print = ls_arena_alloc(c->arena, (size_t)b->n * c->longest + 1, sizeof *print);
    uint32_t *scratch = ls_arena_alloc(c->arena, b->p->nt + 1u, sizeof *scratch);
    for (uint32_t from = 0; from < b->n; from++)
        for (uint32_t to = from + 1; to <= b->n && to - from <= c->longest; to++) {
            size_t at = (size_t)from * c->longest + (to - from - 1);
            bool found = false;
            print[at] = ls_blocks_print(b, from, to, scratch);
            for (size_t k = to - from - 1; k < at && !found; k += c->longest)
                if (print[k] == print[at]) {
                    c->options[at] = c->options[k];
                    found = true;
                }
            if (!found)
                c->options[at] = ls_block_options(c->arena, c->w, from, to);
        }
}

/* Drops labels that keep more and cost no less than another. */
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
    const LsKeepOptions *o = options_of(c, from, to);
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

/* Fills c->chosen for a target; the number of ranges, 0: there is no way. */
static uint32_t solve(Chain *c, int64_t target)
{
    uint32_t n = c->b->n, best = LS_NO_ID, count = 0;
    for (size_t k = 0; k < (size_t)(n + 1) * CELLS; k++)
        c->label[k].cost = -1;
    c->label[0] = (Label){.cost = 0};
    for (uint32_t from = 0; from < n; from++) {
        prune(c, from);
        for (uint32_t to = from + 1; to <= n && to - from <= c->longest; to++)
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
        c->chosen[count++] = (LsChosen){l->from, at, &options_of(c, l->from, at)->item[l->option]};
        at = l->from;
        cell = l->cell;
    }
    for (uint32_t k = 0; 2 * k + 1 < count; k++) {
        LsChosen x = c->chosen[k];
        c->chosen[k] = c->chosen[count - 1 - k];
        c->chosen[count - 1 - k] = x;
    }
    return count;
}

static void offer(Chain *c, uint32_t n)
{
    c->b->p->arena = c->pool->prob->arena;          /* renewed now and then */
    LsSeq seq = ls_block_sequence(c->w, c->chosen, n);
    ls_candidates_offer_moved(c->pool, c->b->p, &seq, "auto");
}

/* The longest ranges looked at, in blocks: fewer in a large graph, so that the work of all ranges
 * stays about the same. */
static uint32_t longest_range(const LsBlocks *b)
{
    enum { MOST = 10, LEAST = 2, WORK = 160000 };
    double nodes = b->n > 0 ? b->ahead.at[b->n] + b->behind.at[b->n] : 1;
    double longest = sqrt(2 * WORK / nodes);
    return longest < LEAST ? LEAST : longest < MOST ? (uint32_t)longest : MOST;
}

void ls_strategy_hierarchy(LsCandidates *pool, LsProb *p)
{
    enum { MOST = 96, TARGETS = 140 };
    LsArena *arena = ls_arena_new();
    Chain c = {.pool = pool, .arena = arena, .b = ls_blocks_new(arena, p, MOST)};
    if (c.b->n > 1 && pool->n > 0) {
        c.longest = longest_range(c.b);
        c.w = ls_block_work_new(arena, c.b);
        c.options = ls_arena_alloc(arena, (size_t)c.b->n * c.longest, sizeof *c.options);
        c.label = ls_arena_alloc(arena, (size_t)(c.b->n + 1) * CELLS, sizeof *c.label);
        c.chosen = ls_arena_alloc(arena, c.b->n + 1u, sizeof *c.chosen);
        find_options(&c);
        double target = (double)pool->cand[0].peak;
        for (int k = 0; k < TARGETS; k++, target *= 0.98) {
            uint32_t n = solve(&c, (int64_t)target);
            if (n == 0)
                break;
            offer(&c, n);
        }
    }
    ls_arena_free(arena);
}
