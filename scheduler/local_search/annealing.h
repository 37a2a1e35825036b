/* scheduler/local_search/annealing.h -- sequences for one target peak at a time: repaired, freed of
 * needless recomputation, improved by simulated annealing. All sequences of the Pareto front seen
 * on the way are kept. */
#ifndef LS_SCHEDULER_LOCAL_SEARCH_ANNEALING_H
#define LS_SCHEDULER_LOCAL_SEARCH_ANNEALING_H

#include "scheduler/candidates/candidate_pool.h"
#include "scheduler/candidates/pareto_front.h"
#include "scheduler/order/moves.h"

typedef struct LsAnneal {
    const LsProb *p;
    LsTape *t;
    LsMoves *m;
    LsFront front;
    int64_t top;                /* live peak of the cheapest sequence, bytes */
    uint32_t moves;             /* base number of moves of one annealing; tight targets get more */
    double weight;              /* penalty per byte above the target, as a cost */
    double hot;                 /* temperature at the start: the rise of cost that is often
                                 * accepted */
    uint64_t since;             /* moves since the limit was last checked */
    LsLimit limit;
    bool cut;                   /* the limit was reached */
} LsAnneal;

/* The number of moves follows limit->effort. */
LsAnneal ls_anneal_new(LsArena *arena, const LsProb *p, int64_t top, const LsLimit *limit);
void ls_anneal_free(LsAnneal *s);

/* Sets the temperature, in parts of a node's cost, and the penalty of the peak above the target, in
 * parts of a step's cost. */
void ls_anneal_mood(LsAnneal *s, double heat, double weight);

/* Puts seq on the tape and sets the target, bytes. */
void ls_anneal_load(LsAnneal *s, const LsSeq *seq, int64_t target);

/* Brings the tape's peak down to the target by the moves that cost least per byte; returns false if
 * that fails. */
bool ls_anneal_repair(LsAnneal *s);

/* Removes all recomputation that the target does not require, the dearest first. */
void ls_anneal_take_back(LsAnneal *s);

/* Accepts or undoes the changes since the tape had the energy *now. Accepts them, and offers the
 * tape to the front, if `made` is true, no read is bad and the energy rose by at most `rise`. */
void ls_anneal_judge(LsAnneal *s, bool made, double rise, double *now);

/* Anneals the tape. A tighter target needs more recomputation, so it gets more moves. */
void ls_anneal_run(LsAnneal *s);

/* Repairs seq for the target and offers the result to the front. */
void ls_anneal_attempt(LsAnneal *s, const LsSeq *seq, int64_t target);

/* Offers the front of s to the pool, as `auto`. */
void ls_anneal_offer(const LsAnneal *s, LsCandidates *pool);

#endif
