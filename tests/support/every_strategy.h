/* tests/support/every_strategy.h -- every sequence of lower sets of a small graph, priced by the
 * paper's formulas. */
#ifndef LS_TESTS_SUPPORT_EVERY_STRATEGY_H
#define LS_TESTS_SUPPORT_EVERY_STRATEGY_H

#include <math.h>

#include "scheduler/lower_sets/partition_dp.h"

typedef struct Brute {          /* every sequence of lower sets, priced by the formulas */
    LsArena *arena;
    const LsForward *f;
    const LsFamily *fam;
    bool price_last;
    int64_t budget;
    const uint64_t *cut[16];
    double least, greatest;
    int64_t tightest;           /* least peak of any */
} Brute;

/* Sequences that continue from set `last`, of ncut sets so far. */
static inline void brute(Brute *b, uint32_t last, uint32_t ncut)
{
    if (last == b->fam->n - 1) {
        LsStrategy s = {.cut = b->cut, .ncut = ncut};
        ls_strategy_price(b->arena, b->f, b->price_last, &s);
        b->tightest = s.peak < b->tightest ? s.peak : b->tightest;
        if (s.peak <= b->budget) {
            b->least = fmin(b->least, s.time);
            b->greatest = fmax(b->greatest, s.time);
        }
        return;
    }
    LsCutStep step;
    for (uint32_t j = last + 1; j < b->fam->n; j++)
        if (ls_cut_step(b->f, b->fam, last, j, &step)) {
            b->cut[ncut] = b->fam->low + (size_t)j * b->fam->nword;
            brute(b, j, ncut + 1);
        }
}

#endif
