/* scheduler/candidates/candidate_packing.c -- plans of candidates: quickly packed, then in other orders of their
 * runs, then thoroughly. */
#include "scheduler/candidates/candidate_packing.h"

#include <string.h>

#include "scheduler/algorithms/tasks.h"
#include "scheduler/candidates/reorder_to_pack.h"

/* One candidate to be packed, on a thread of its own, into its own arena. */
typedef struct Pack {
    const LsProb *p;
    LsCand *cand;
    int64_t good;               /* bytes */
    bool rough, hasty;          /* the pool is */
    bool needed;                /* one of those of the least peak that are packed thoroughly */
} Pack;

/* Packs an order of the candidate's runs; returns the bytes of arena. */
static int64_t pack(Pack *z, const LsSeq *order, LsPackEffort effort, int64_t good)
{
    LsCand *cand = z->cand;
    LsPlan plan;
    ls_plan_build(cand->arena, z->p, order, cand->strategy, effort, good, &plan);
    if (cand->plan->step == NULL || plan.arena < cand->plan->arena) {
        *cand->plan = plan;
        cand->order = *order;
    }
    return plan.arena;
}

/* Rough ones lose what is less than a search for something better is worth. */
static bool fits(const Pack *z)
{
    enum { LITTLE = 256 };
    int64_t arena = z->cand->plan->arena, peak = z->cand->peak;
    return arena <= z->good || arena <= peak + (z->rough && z->good <= 1 ? peak / LITTLE : 0);
}

/* Of the order as it is (0) and the loose ones behind it, the one that a quick packing suits best,
 * the first of equals, but for those that are done. */
static uint32_t most_promising(const LsCand *cand, const bool *done)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t k = 0; k <= cand->nloose; k++)
        if (!done[k] && (best == UINT32_MAX || cand->quick[k] < cand->quick[best]))
            best = k;
    return best;
}

static const LsSeq *order_of(const LsCand *cand, uint32_t k)
{
    return k == 0 ? &cand->seq : &cand->loose[k - 1];
}

/* Orders that are looked at. In large graphs each takes long; moves are too few to change much in
 * the largest, and of a hasty pool those behind the first few hardly add to what the thorough
 * packing makes of them. */
static uint32_t most_orders(const Pack *z)
{
    enum { SOME = 4, LARGEST = 2000, FEW = 2 };
    uint32_t n = z->cand->seq.n;
    return n > LARGEST ? FEW : z->hasty ? SOME : LS_NLOOSE;
}

/* In large graphs without a backward part lifetimes are of any length, and no packing comes near
 * the live peak: looking for one that hardly is to be found would take most of the time. But what
 * is packed as well as can be for the least arena is never left, or a budget as large as that would
 * be refused. */
static bool may_be_left(const Pack *z)
{
    return z->hasty && !z->needed;
}

/* Whether hardly a packing comes down to `left` of what a quick one of so many bytes loses: then
 * none is looked for. More is never hopeless where less is not. */
static bool is_hopeless(const Pack *z, int64_t quick, double left)
{
    int64_t peak = z->cand->peak;
    return z->good > 1 && may_be_left(z)
        && (double)(z->good - peak) < left * (double)(quick - peak);
}

/* Other orders quickly, each made of the best before; then the most promising ones thoroughly.
 * None of this depends on what is good: that only ends it sooner. False: it ended as hopeless. */
static bool pack_on(Pack *z)
{
    enum { THOROUGH = 2 };
    const double quickly = 0.4, thoroughly = 0.6;   /* of what is lost at first, and in the end */
    LsCand *cand = z->cand;
    bool done[1 + LS_NLOOSE] = {0};
    if (is_hopeless(z, cand->quick[0], quickly))
        return false;
    while (cand->nloose < most_orders(z) && !fits(z)) {
        uint32_t k = cand->nloose;
        const LsSeq *from = order_of(cand, most_promising(cand, done));
        cand->loose[k] = ls_offsets_loosen(cand->arena, z->p, from, k);
        cand->quick[1 + k] = pack(z, &cand->loose[k], LS_PACK_QUICK, 0);
        cand->nloose++;
    }
    if (!fits(z) && is_hopeless(z, cand->quick[most_promising(cand, done)], thoroughly))
        return false;
    for (int round = 0; round < THOROUGH && !fits(z); round++) {
        uint32_t best = most_promising(cand, done);
        pack(z, order_of(cand, best), may_be_left(z) ? LS_PACK_SOON : LS_PACK_FULL, z->good);
        done[best] = true;
    }
    return true;
}

static void pack_one(void *packs, uint32_t k)
{
    Pack *z = (Pack *)packs + k;
    LsCand *cand = z->cand;
    int64_t good = z->good;
    if (cand->arena == NULL)
        cand->arena = ls_arena_new();
    if (cand->plan == NULL) {
        cand->plan = ls_arena_alloc(cand->arena, 1, sizeof *cand->plan);
        cand->quick[0] = pack(z, &cand->seq, LS_PACK_QUICK, 0);
        cand->asked = INT64_MAX;
    }
    if (!fits(z) && good < cand->asked && pack_on(z))
        cand->asked = fits(z) ? cand->plan->arena : good > 1 ? 1 : good;    /* nor would less fit */
}

static bool is_needed(const LsCandidates *pool, const LsCand *cand)
{
    uint32_t smaller = 0;
    for (uint32_t k = 0; k < pool->n; k++)
        smaller += pool->cand[k].peak < cand->peak
                   && strcmp(pool->cand[k].strategy, cand->strategy) == 0;
    return smaller < ls_candidates_thorough(pool);
}

void ls_candidates_pack(LsCandidates *pool, LsCand *const *cand, uint32_t n, int64_t good)
{
    Pack z[LS_PACK_TOGETHER];
    for (uint32_t k = 0; k < n; k++)
        z[k] = (Pack){pool->prob, cand[k], good, ls_candidates_rough(pool),
                      ls_candidates_hasty(pool), is_needed(pool, cand[k])};
    ls_side_by_side(n, pack_one, z);
}

const LsPlan *ls_candidates_plan(LsCandidates *pool, LsCand *cand, int64_t good)
{
    ls_candidates_pack(pool, &cand, 1, good);
    return cand->plan;
}
