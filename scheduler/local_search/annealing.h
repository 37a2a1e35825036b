/* scheduler/local_search/annealing.h -- sequences for one target at a time: repaired, rid of what is not asked for,
 * improved by simulated annealing. Everything seen on the way that no other sequence beats is
 * kept. */
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
    int64_t top;                /* bytes: live peak of what costs least */
    uint32_t moves;             /* of one annealing, at such a target */
    double weight;              /* cost that a byte above the target counts for */
    double hot;                 /* rise of cost that is often taken at first */
    uint64_t since;             /* moves since the limit was looked at */
    LsLimit limit;
    bool cut;                   /* it is over */
} LsAnneal;

/* Moves by limit->effort. */
LsAnneal ls_anneal_new(LsArena *arena, const LsProb *p, int64_t top, const LsLimit *limit);
void ls_anneal_free(LsAnneal *s);

/* What rises of cost are taken, in parts of a node's, and what the peak counts above the target, in
 * parts of a step's cost. */
void ls_anneal_mood(LsAnneal *s, double heat, double weight);

/* Puts seq on the tape, for the target. */
void ls_anneal_load(LsAnneal *s, const LsSeq *seq, int64_t target);

/* Brings the tape to the target by what costs least per byte; false if that fails. */
bool ls_anneal_repair(LsAnneal *s);

/* Takes back all recomputations that the target does not ask for, the dearest first. */
void ls_anneal_take_back(LsAnneal *s);

/* Keeps what was changed since the tape had the energy *now, if it was made (it may still have bad
 * reads) and that is no more than `rise` above, and offers it to the front; else takes it back. */
void ls_anneal_judge(LsAnneal *s, bool made, double rise, double *now);

/* The tighter the target, the more runs again, and the more moves to put them right. */
void ls_anneal_run(LsAnneal *s);

/* Repairs seq for the target; the result goes to the front. */
void ls_anneal_attempt(LsAnneal *s, const LsSeq *seq, int64_t target);

/* Offers its front to the pool, as `auto`. */
void ls_anneal_offer(const LsAnneal *s, LsCandidates *pool);

#endif
