/* scheduler/strategies/published_strategies.h -- the strategies; each fills the pool with its
 * candidates. */
#ifndef LS_SCHEDULER_STRATEGIES_PUBLISHED_STRATEGIES_H
#define LS_SCHEDULER_STRATEGIES_PUBLISHED_STRATEGIES_H

#include "scheduler/algorithms/search_limit.h"
#include "scheduler/candidates/candidate_pool.h"
#include "scheduler/lower_sets/partition_dp.h"

/* Returns whether candidates of strategy `part` count for strategy `want`: all for auto, only its
 * own and "none" for others. */
bool ls_strategy_counts(const char *want, const char *part);

void ls_strategy_none(LsCandidates *pool);
void ls_strategy_chen(LsCandidates *pool, const LsForward *f);

/* Sweeps the DP's own budget from the largest useful one down to the least feasible one, and offers
 * strategies of its Pareto fronts as `tc` (time-centred) and `mc` (memory-centred); NULL: offers
 * none of that kind. fine: small steps; else steps good enough for starts of a search. */
void ls_strategy_dp(LsCandidates *pool, const LsForward *f, const LsFamily *fam, const char *tc,
                    const char *mc, bool fine);

/* Offers the optima for such a sweep. fam must be whole. Returns the pruned family with all sets
 * that the optima use: a family for ls_strategy_dp when fam is too large for it. looks:
 * LsDpOptions.most_looks of each solve; 0: a few seconds. *unknown: number of sweeps that ended
 * early, at an optimum that needs more work. Times are rounded to 1/1024 of their sum unless they
 * are small whole numbers. */
const LsFamily *ls_strategy_exact(LsCandidates *pool, const LsForward *f, const LsFamily *fam,
                                  const char *tc, const char *mc, uint64_t looks,
                                  uint32_t *unknown);

/* Offers an order of all needed nodes, each once, if it takes less memory than the pool's
 * candidates of that cost. Only for graphs without a backward part, where the order matters more
 * than recomputation, and with at most a few thousand nodes. */
void ls_strategy_order(LsCandidates *pool);

/* For the next two functions p is the pool's problem or a variant of it (fusion_choice.h). */

/* Sweeps the price of a kept byte, and offers for each price the best set to keep at the turn from
 * forward to backward. */
void ls_strategy_closure(LsCandidates *pool, const LsProb *p);

/* For problems with values in parts (LsDag.pass): offers schedules that go once through the list of
 * nodes in ever less room, in which what does not fit is thrown away and made again. */
void ls_strategy_evict(LsCandidates *pool, const LsProb *p);

/* Splits the graph into blocks, and offers the results of a dynamic program over them for a row of
 * target peaks. */
void ls_strategy_hierarchy(LsCandidates *pool, const LsProb *p);

/* Offers the results of simulated annealing over any order and any recomputation for falling
 * targets; only for graphs without a backward part. is_patient: one lane has a higher temperature
 * and one a lower, and missed targets are tried again; this reaches lower peaks and takes several
 * times as long. */
void ls_strategy_roam(LsCandidates *pool, LsLimit *limit, bool is_patient);

/* Whether something made of many gradients, such as their norm, is read where most of them are
 * used: a result of the backward part has at least half as many readers as there are updates. */
bool ls_waits_for_gradients(const LsProb *p);

/* Lowers the peak of some candidates: backward nodes whose results wait for a second reader run
 * twice, or that reader takes an alternative that reads other values. */
void ls_strategy_twice(LsCandidates *pool);

/* If the updates wait for one number that is made of gradients, and may be made twice: the problem
 * whose updates do not, and the number's tensor. Else NULL. */
LsProb *ls_step_without_gate(LsArena *arena, const LsProb *p, uint32_t *gate);

/* Offers the candidates of that problem, each run twice: for the number alone, then as a whole. */
void ls_strategy_step_again(LsCandidates *pool, uint32_t gate, const LsCandidates *open);

/* Repairs the pool's candidates for a ladder of targets, improves them, and offers the Pareto
 * front. store_all: live peak of every node once without in-place reuse, bytes. Returns whether the
 * clock cut the search. */
bool ls_strategy_auto(LsCandidates *pool, int64_t store_all, LsLimit *limit);

/* Offers, until the limit, sequences of less memory than the pool's least at any cost, and cheaper
 * ones of about as much. Each `turn` searches another way. */
void ls_strategy_least(LsCandidates *pool, const LsLimit *limit, uint32_t turn);

/* Improves the cheapest candidates for these targets window by window (window_search.h). Returns
 * whether the clock cut the search. */
bool ls_strategy_polish(LsCandidates *pool, int64_t store_all, LsLimit *limit);

/* Offers candidates of ever less peak, until the limit: windows around the places of the peak are
 * searched for runs that fit. */
void ls_strategy_tighten(LsCandidates *pool, LsLimit *limit);

/* Offers the optima of a small graph by a search of all schedules (best_first_search.h): the whole
 * Pareto front of a tiny graph, else the cheapest for fractions of the peak without recomputation,
 * as far as a counted effort goes. effort: percent of the usual. */
void ls_strategy_optima(LsCandidates *pool, uint32_t effort);

/* For problems with values in parts (LsDag.pass): offers, for a row of prices, the passes one after
 * the other, each of which makes again what was not kept for it. p: the pool's problem or a variant
 * of it. */
void ls_strategy_passes(LsCandidates *pool, const LsProb *p);

/* Offers the results of beam search (beam_search.h) for these fractions, on graphs of up to some
 * hundred nodes. */
void ls_strategy_beam(LsCandidates *pool, int64_t store_all, uint32_t effort);

#endif
