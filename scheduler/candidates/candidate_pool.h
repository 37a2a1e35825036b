/* scheduler/candidates/candidate_pool.h -- the candidates of one planning: for each strategy the
 * Pareto front of its sequences in peak and cost.
 *
 * No candidate depends on the budget. This makes plans monotone: a larger budget only admits more
 * candidates. */
#ifndef LS_SCHEDULER_CANDIDATES_CANDIDATE_POOL_H
#define LS_SCHEDULER_CANDIDATES_CANDIDATE_POOL_H

#include "scheduler/candidates/plan_build.h"

enum { LS_NLOOSE = 8 };

typedef struct LsCand {
    LsSeq seq;
    int64_t peak;               /* live bytes, aligned sizes */
    double cost;
    const char *strategy;
    bool aside;                 /* only for the row of its strategy: auto does not use it */
    LsArena *arena;             /* of the fields below; NULL until they are set */
    LsPlan *plan;               /* built on demand; NULL until then */
    LsSeq order;                /* the runs of plan: seq, or one of `loose` if it packs better; set
                                 * with plan */
    LsSeq loose[LS_NLOOSE]; uint32_t nloose;        /* other orders, made on demand, each from the
                                                     * best so far */
    int64_t quick[1 + LS_NLOOSE];   /* bytes of arena of a quick packing of seq (set with plan),
                                     * then of each loose order */
    int64_t asked;              /* a search for a `good` of at least this finds nothing more;
                                 * INT64_MAX: not yet searched */
} LsCand;

typedef struct LsCandidates {
    const LsProb *prob;
    double least_cost;          /* ns: no sequence costs less; 0: not known */
    LsArena *arena;             /* of the candidates */
    LsArena *tmp;               /* of `live` and of sequences to be offered; renewed now and then,
                                 * as thousands of sequences are made and most are thrown away */
    LsCand *cand; uint32_t n, room;         /* by rising cost, hence by falling peak per strategy */
    LsLive *live;
    bool aside;                 /* value of LsCand.aside for new candidates */
    bool has_turn;              /* the graph has a backward part (backward_start.h) */
    uint32_t since;             /* evaluations since tmp was renewed */
    uint64_t *seen; uint32_t nseen, seen_room;      /* open addressing; 0: free */
} LsCandidates;

LsCandidates *ls_candidates_new(LsArena *arena, const LsProb *p);
void ls_candidates_free(LsCandidates *pool);

/* Returns a pool for another thread: of the same problem, with the n cheapest candidates of this
 * pool (or all). None of these may have been packed. */
LsCandidates *ls_candidates_beside(const LsCandidates *pool, uint32_t n);

/* Offers the candidates of `beside`, the cheapest first, and frees it. */
void ls_candidates_join(LsCandidates *pool, LsCandidates *beside);

/* Returns whether lifetimes have arbitrary lengths, as in large graphs without a backward part. No
 * packing then comes near the live peak, and coming nearer takes long. */
bool ls_candidates_rough(const LsCandidates *pool);

/* Returns how many candidates of least peak are packed with all effort to find the least arena. */
uint32_t ls_candidates_thorough(const LsCandidates *pool);

/* Returns whether packing gives up early on other candidates that hardly fit: in large rough
 * graphs. */
bool ls_candidates_hasty(const LsCandidates *pool);

/* Frees pool->tmp with all its sequences and pool->live, and starts new ones. */
void ls_candidates_renew(LsCandidates *pool);

/* Returns whether a candidate of this fingerprint was made before, and records the fingerprint. */
bool ls_candidates_seen(LsCandidates *pool, uint64_t fingerprint);

/* Returns the candidate of least live peak, the first of equals; the pool must not be empty. */
const LsCand *ls_candidates_least(const LsCandidates *pool);

/* Returns the cheapest candidate with a live peak of at most `peak` bytes, or NULL. */
const LsCand *ls_candidates_within(const LsCandidates *pool, int64_t peak);

/* Offers a sequence made in pool->tmp. The pool takes a copy unless a candidate of that strategy
 * dominates it. The call may renew pool->tmp: all sequences in it, seq too, end. */
void ls_candidates_offer(LsCandidates *pool, const LsSeq *seq, const char *strategy);

/* Offers all candidates of a strategy under the name of another strategy as well. */
void ls_candidates_offer_as(LsCandidates *pool, const char *strategy, const char *other);

/* Offers a sequence of p, the pool's problem or a variant of it, twice: unchanged, and with the
 * nodes that no node waits for moved to where they lower the live sum. */
void ls_candidates_offer_moved(LsCandidates *pool, const LsProb *p, const LsSeq *seq,
                               const char *strategy);

#endif
