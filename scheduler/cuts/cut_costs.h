/* scheduler/cuts/cut_costs.h -- what the forward nodes between two lower sets cost as a stage: at least so much time and so
 * many bytes, whatever plan the stage gets. */
#ifndef LS_SCHEDULER_CUTS_CUT_COSTS_H
#define LS_SCHEDULER_CUTS_CUT_COSTS_H

#include "scheduler/lower_sets/lower_set.h"
#include "scheduler/cuts/stages.h"

typedef struct LsCutTensor {
    uint32_t maker;             /* vertex */
    int64_t bytes;              /* in the arena */
    bool again;                 /* its maker may run again */
    bool forgotten;             /* where all is made again, it is, if `elsewhere` is in its stage */
    const uint64_t *forward;    /* set of vertices that read it in phase F */
    const uint64_t *later;      /* set of vertices whose nodes of phases B and W must read it */
    const uint64_t *soft;       /* of those that read it if no cheaper node stands in for them */
    const uint64_t *elsewhere;  /* set of vertices: in their stages phase B or W may read it, and not phase F */
    double avoid;               /* ns that it takes at least to replace one of the latter */
} LsCutTensor;

typedef struct LsCutState { int64_t bytes; const uint64_t *read; } LsCutState;     /* persistent; vertices that read it */

typedef struct LsCutLoose {     /* a node in the earliest stage of the vertices; latest: in the latest */
    double ns;
    bool latest;
    const uint64_t *places;
} LsCutLoose;

typedef struct LsCutGroup {     /* vertices that share a parameter */
    const uint64_t *set;
    double between;             /* ns of the least stage with all of them */
} LsCutGroup;

typedef struct LsCutModel {
    bool cheapest;              /* alternatives may stand in for nodes */
    bool sure;                  /* count only what every plan takes, for a bound; else what plans will take */
    bool apart;                 /* phase W is apart from B */
    const int64_t *state;       /* by persistent tensor: bytes of it in a rank whose nodes read it; NULL: its own */
} LsCutModel;

typedef struct LsCutCosts {
    const LsForward *f;
    LsCutModel model;
    double *node;               /* by node: the least time of it or what stands in for it, ns */
    double *time;               /* ns by vertex: of itself and of the nodes that belong to it in every cut */
    LsCutLoose *loose; uint32_t nloose;
    double total;               /* of all nodes */
    int64_t *need;              /* by vertex: the most bytes that a run of its nodes touches at once */
    LsCutTensor *tensor; uint32_t ntensor;      /* made in phase F, by maker */
    uint32_t *first;            /* by vertex: its first tensor; one extra entry at the end */
    uint32_t *row;              /* by tensor of the graph: its place in `tensor`, or LS_NO_ID */
    bool *early;                /* by vertex: it runs in phase F in every plan, not for the first time for phase B or W */
    uint64_t *again;            /* scratch: a set of vertices */
    LsCutTensor **by_price; uint32_t nprice;    /* the cheapest bytes to make again first */
    LsCutState *state; uint32_t nstate;
    LsCutGroup *group; uint32_t ngroup;
} LsCutCosts;

LsCutCosts *ls_cut_costs(LsArena *arena, const LsForward *f, const LsCutModel *model);

/* ns of everything in the stages of a lower set: that of a stage is the difference of two. */
double ls_cut_sum(const LsCutCosts *c, const uint64_t *low);

typedef struct LsCutLimits {    /* of one stage */
    LsKeepMode keep;
    double again;               /* of LS_KEEP_ALWAYS and _EXCEPT_LAST: the part of the micro-batches that run things again */
    uint32_t slots;             /* micro-batches that the stage holds at once */
    int64_t bytes;              /* of the rank; 0: no limit */
} LsCutLimits;

/* The least bytes of a stage with the vertices of `set`. Of LS_KEEP_AUTO, with nothing made again. */
int64_t ls_cut_bytes(const LsCutCosts *c, const LsCutLimits *l, const uint64_t *set);

/* The least mean time of a micro-batch in that stage: `ns` and the recomputation that mode and limit force; INFINITY: it cannot
 * keep the limit. */
double ls_cut_time(const LsCutCosts *c, const LsCutLimits *l, double ns, const uint64_t *set);

/* Bytes that are made in the lower set and read outside. */
int64_t ls_cut_crossing(const LsCutCosts *c, const uint64_t *low);

/* Whether the stage has all of the group or nothing. */
bool ls_cut_keeps(const LsCutCosts *c, const LsCutGroup *group, const uint64_t *set);

#endif
