/* scheduler/strategies/published_strategies.h -- each strategy fills the pool with its candidates. */
#ifndef LS_SCHEDULER_STRATEGIES_PUBLISHED_STRATEGIES_H
#define LS_SCHEDULER_STRATEGIES_PUBLISHED_STRATEGIES_H

#include "scheduler/algorithms/search_limit.h"
#include "scheduler/candidates/candidate_pool.h"
#include "scheduler/lower_sets/partition_dp.h"

/* Whether candidates called `part` count for strategy `want`: all for auto, its own and "none" for
 * others. */
bool ls_strategy_counts(const char *want, const char *part);

void ls_strategy_none(LsCandidates *pool);
void ls_strategy_chen(LsCandidates *pool, const LsForward *f);

/* Sweeps the DP's own budget from all that could be asked down to the least feasible one, and
 * offers strategies on its fronts as `tc` (time-centred) and `mc` (memory-centred); NULL: not
 * these. fine: by small steps; else by such as serve to start a search from. */
void ls_strategy_dp(LsCandidates *pool, const LsForward *f, const LsFamily *fam, const char *tc,
                    const char *mc, bool fine);

/* Offers the optimum itself for such a sweep. Returns the pruned family with all sets that the
 * optima use: one for ls_strategy_dp where fam, which must be whole, is too large for it.
 * looks: LsDpOptions.most_looks of each; 0: a few seconds. *unknown: sweeps that ended early, at
 * an optimum that was more work. Times are rounded to 1/1024 of their sum unless they are small
 * whole numbers. */
const LsFamily *ls_strategy_exact(LsCandidates *pool, const LsForward *f, const LsFamily *fam,
                                  const char *tc, const char *mc, uint64_t looks,
                                  uint32_t *unknown);

/* Offers an order of all needed nodes, each once, if it takes less memory than what the pool has
 * that costs as much. Only for graphs without a backward part, whose order decides more than what
 * is made again, and not of many thousands of nodes. */
void ls_strategy_order(LsCandidates *pool);

/* For these two, p is the pool's problem or a variant of it (fusion_choice.h). */

/* Sweeps the price of a kept byte: what is best to keep at the turn from forward to backward. */
void ls_strategy_closure(LsCandidates *pool, const LsProb *p);

/* Splits the graph into blocks, and offers what a dynamic program over them finds for a row of
 * targets. */
void ls_strategy_hierarchy(LsCandidates *pool, const LsProb *p);

/* Offers what annealing from any order and any recomputation finds for falling targets; only for
 * graphs without a backward part. Patient: one of the lanes with more heat and one with less, and
 * targets that were missed again, which comes further down and takes several times as long. */
void ls_strategy_roam(LsCandidates *pool, LsLimit *limit, bool is_patient);

/* Repairs what the pool holds by now for a ladder of targets, improves it, and offers what no
 * other sequence beats. store_all: live peak of everything once, nothing in place. Whether the
 * clock cut the search. */
bool ls_strategy_auto(LsCandidates *pool, int64_t store_all, LsLimit *limit);

/* Offers sequences of less memory than the pool has, whatever they cost, and cheaper ones of about
 * as much, until the limit. Each turn goes another way. */
void ls_strategy_least(LsCandidates *pool, const LsLimit *limit, uint32_t turn);

/* Makes the cheapest candidates for these targets cheaper, window by window (window_search.h). Whether the
 * clock cut it short. */
bool ls_strategy_polish(LsCandidates *pool, int64_t store_all, LsLimit *limit);

/* Offers the optima of a small graph, by trying all schedules (best_first_search.h): the cheapest for every
 * peak of a tiny one, else for parts of the peak without recomputation, as far as a counted effort
 * goes. effort: percent of the usual. */
void ls_strategy_optima(LsCandidates *pool, uint32_t effort);

/* Offers what a beam (beam_search.h) finds for these parts, on graphs of up to some hundred nodes. */
void ls_strategy_beam(LsCandidates *pool, int64_t store_all, uint32_t effort);

#endif
