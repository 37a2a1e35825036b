/* scheduler/candidates/candidate_pool.h -- the candidates of one planning: sequences that no other of their
 * strategy beats in both peak and cost.
 *
 * None of them depends on the budget. That is what makes plans monotone: a larger budget only
 * admits more candidates. */
#ifndef LS_SCHEDULER_CANDIDATES_CANDIDATE_POOL_H
#define LS_SCHEDULER_CANDIDATES_CANDIDATE_POOL_H

#include "scheduler/candidates/plan_build.h"

enum { LS_NLOOSE = 8 };

typedef struct LsCand {
    LsSeq seq;
    int64_t peak;               /* live bytes, aligned sizes */
    double cost;
    const char *strategy;
    bool aside;                 /* for the row of its strategy alone: auto does without */
    LsArena *arena;             /* of all that follows, NULL before */
    LsPlan *plan;               /* built on demand, NULL before */
    LsSeq order;                /* the runs of plan: seq, or one of the next, where it is easier to
                                 * pack; set with plan */
    LsSeq loose[LS_NLOOSE]; uint32_t nloose;        /* other orders, made on demand,
                                                     * each of the best before */
    int64_t quick[1 + LS_NLOOSE];   /* bytes of arena that a quick packing of seq takes, set with
                                     * plan, and of the others */
    int64_t asked;              /* nothing is to be found below; INT64_MAX: not looked for */
} LsCand;

typedef struct LsCandidates {
    const LsProb *prob;
    LsArena *arena;             /* of the candidates */
    LsArena *tmp;               /* of sequences that are to be offered, and of live; renewed now and
                                 * then, as these are made by the thousand and mostly thrown away */
    LsCand *cand; uint32_t n, room;         /* by rising cost, so by falling peak per strategy */
    LsLive *live;
    bool aside;                 /* what is offered now is that */
    bool has_turn;              /* the graph has a backward part (backward_start.h) */
    uint32_t since;             /* evaluations since tmp was renewed */
    uint64_t *seen; uint32_t nseen, seen_room;      /* open addressing; 0: free */
} LsCandidates;

LsCandidates *ls_candidates_new(LsArena *arena, const LsProb *p);
void ls_candidates_free(LsCandidates *pool);

/* A pool for a thread of its own: of the same problem, holding the n cheapest candidates of this one
 * (or all), none of which has been packed. */
LsCandidates *ls_candidates_beside(const LsCandidates *pool, uint32_t n);

/* Offers what `beside` found, the cheapest first, and frees it. */
void ls_candidates_join(LsCandidates *pool, LsCandidates *beside);

/* Whether lifetimes are of any length, as in large graphs without a backward part: no packing comes
 * near the live peak, and to come nearer takes long. */
bool ls_candidates_rough(const LsCandidates *pool);

/* How many of the least peak are packed as well as can be, to find the least arena. */
uint32_t ls_candidates_thorough(const LsCandidates *pool);

/* Whether the others are left soon if they hardly fit: in rough graphs that are large, besides. */
bool ls_candidates_hasty(const LsCandidates *pool);

/* Frees pool->tmp, with all sequences made in it, and starts a new one; pool->live too. */
void ls_candidates_renew(LsCandidates *pool);

/* Whether a candidate of this fingerprint has been made before; from now on it has. */
bool ls_candidates_seen(LsCandidates *pool, uint64_t fingerprint);

/* The one of the least live peak, the first of equals; the pool is not empty. */
const LsCand *ls_candidates_least(const LsCandidates *pool);

/* The cheapest with a live peak of at most `peak` bytes, or NULL. */
const LsCand *ls_candidates_within(const LsCandidates *pool, int64_t peak);

/* Offers a sequence made in pool->tmp. Takes a copy if nothing of that strategy is as good in
 * both. Ends all sequences in that arena, seq too. */
void ls_candidates_offer(LsCandidates *pool, const LsSeq *seq, const char *strategy);

/* Offers all candidates of a strategy under the name of another, too. */
void ls_candidates_offer_as(LsCandidates *pool, const char *strategy, const char *other);

/* Offers a sequence of p, the pool's problem or a variant of it, as it is, and with the nodes that
 * nobody waits for where they lower the live sum. */
void ls_candidates_offer_moved(LsCandidates *pool, const LsProb *p, const LsSeq *seq,
                               const char *strategy);

#endif
