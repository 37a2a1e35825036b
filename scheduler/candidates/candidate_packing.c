/* scheduler/candidates/candidate_packing.c -- packs candidates: quickly, then in other orders of
 * their runs, then thoroughly. */
#include "scheduler/candidates/candidate_packing.h"

#include <string.h>

#include "scheduler/algorithms/tasks.h"
#include "scheduler/candidates/reorder_to_pack.h"

/* The packing of one candidate, on a thread of its own and into its own arena. */
typedef struct Pack {
    const LsProb *p;
    LsCand *cand;
    int64_t good;               /* bytes */
    bool rough, hasty;          /* of the pool */
    bool needed;                /* among the candidates of least peak, which are packed
                                 * thoroughly */
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

/* Returns whether the plan is good enough. In rough graphs a small loss is not worth a search. */
static bool fits(const Pack *z)
{
    enum { LITTLE = 256 };
    int64_t arena = z->cand->plan->arena, peak = z->cand->peak;
    return arena <= z->good || arena <= peak + (z->rough && z->good <= 1 ? peak / LITTLE : 0);
}

/* Returns the order (0: seq, else loose) with the best quick packing that is not done yet; the
 * tie-break is the first. */
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

/* Returns the number of orders to try. In large graphs each takes long, and in the largest the
 * moves are too few to change much. In a hasty pool orders after the first few hardly help the
 * thorough packing. */
static uint32_t most_orders(const Pack *z)
{
    enum { SOME = 4, LARGEST = 2000, FEW = 2 };
    uint32_t n = z->cand->seq.n;
    return n > LARGEST ? FEW : z->hasty ? SOME : LS_NLOOSE;
}

/* Returns whether packing may give up early. In large graphs without a backward part lifetimes have
 * arbitrary lengths and no packing comes near the live peak, so a hopeless search would take most
 * of the time. Candidates packed thoroughly for the least arena never give up, else a budget of
 * just that size would be refused. */
static bool may_be_left(const Pack *z)
{
    return z->hasty && !z->needed;
}

/* Returns whether `good` would need a loss below `left` times that of a quick packing of `quick`
 * bytes, which few packings reach. If one `good` is not hopeless, no larger one is. */
static bool is_hopeless(const Pack *z, int64_t quick, double left)
{
    int64_t peak = z->cand->peak;
    return z->good > 1 && may_be_left(z)
        && (double)(z->good - peak) < left * (double)(quick - peak);
}

/* Packs other orders quickly, each made from the best so far, then the most promising ones
 * thoroughly. No step depends on `good`, which only ends the steps sooner. Returns false if it gave
 * up as hopeless. */
static bool pack_on(Pack *z)
{
    enum { THOROUGH = 2 };
    const double quickly = 0.4, thoroughly = 0.6;   /* fractions of the loss, at first and at the
                                                     * end */
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
