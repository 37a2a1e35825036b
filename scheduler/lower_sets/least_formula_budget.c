/* scheduler/lower_sets/least_formula_budget.c -- binary search over a DP on bytes alone. */
#include "scheduler/lower_sets/least_formula_budget.h"

/* Sets least[j] to the fewest bytes kept by strategies up to set j within the budget by the
 * formula, or -1 if there is none. Returns whether there is one up to the last set. */
static bool fits(const LsForward *f, const LsFamily *fam, int64_t budget, int64_t *least)
{
    for (uint32_t j = 1; j < fam->n; j++) {
        uint32_t from = fam->step != NULL ? fam->step_at[j] : 0;
        uint32_t to = fam->step != NULL ? fam->step_at[j + 1] : j;
        least[j] = -1;
        for (uint32_t k = from; k < to; k++) {
            LsCutStep step = {.from = k};
            uint32_t i = fam->step != NULL ? fam->step[k].from : k;
            int64_t need = least[i] + 2 * (fam->mem[j] - fam->mem[i]) + fam->halo[j];
            if (least[i] < 0 || need > budget || (least[j] >= 0 && least[i] >= least[j]))
                continue;
            if (fam->step != NULL)
                step = fam->step[k];
            else if (!ls_cut_step(f, fam, i, j, &step))
                continue;
            if (least[j] < 0 || least[i] + step.kept < least[j])
                least[j] = least[i] + step.kept;
        }
    }
    return least[fam->n - 1] >= 0;
}

int64_t ls_least_budget(LsArena *scratch, const LsForward *f, const LsFamily *fam, int64_t some)
{
    enum { PARTS = 1000 };
    int64_t *least = ls_arena_alloc(scratch, fam->n, sizeof *least), none = 0;
    while (some - none > 1 + some / PARTS) {
        int64_t mid = none + (some - none) / 2;
        if (fits(f, fam, mid, least))
            some = mid;
        else
            none = mid;
    }
    return some;
}
