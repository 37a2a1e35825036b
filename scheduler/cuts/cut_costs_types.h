/* scheduler/cuts/cut_costs_types.h -- the data behind cut_costs.h. */
#ifndef LS_SCHEDULER_CUTS_CUT_COSTS_TYPES_H
#define LS_SCHEDULER_CUTS_CUT_COSTS_TYPES_H

#include "scheduler/lower_sets/lower_set.h"

typedef struct LsCutTensor {
    uint32_t maker;             /* vertex */
    int64_t bytes;              /* in the arena */
    bool again;                 /* its maker may run again */
    bool forgotten;             /* where all is made again, it is, if `elsewhere` is in its stage */
    const uint64_t *forward;    /* set of vertices that read it in phase F */
    const uint64_t *later;      /* set of vertices whose nodes of phases B and W must read it */
    const uint64_t *soft;       /* readers that a cheaper alternative may replace */
    const uint64_t *elsewhere;  /* set of vertices: in their stages phase B or W may read it, and
                                 * not phase F */
    double avoid;               /* ns that it takes at least to replace one of the latter */
} LsCutTensor;

/* persistent; vertices that read it */
typedef struct LsCutState { int64_t bytes; const uint64_t *read; } LsCutState;

typedef struct LsCutLoose {     /* a node in the earliest stage of the vertices; latest: in the
                                 * latest */
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
    bool sure;                  /* count only what every plan takes, for a bound; else what plans
                                 * will take */
    bool apart;                 /* phase W is apart from B */
    const int64_t *state;       /* by persistent tensor: bytes of it in a rank whose nodes read it;
                                 * NULL: its own */
} LsCutModel;

typedef struct LsCutCosts {
    const LsForward *f;
    LsCutModel model;
    double *node;               /* by node: the least time of it or what stands in for it, ns */
    double *time;               /* ns by vertex: of itself and of the nodes that belong to it in
                                 * every cut */
    LsCutLoose *loose; uint32_t nloose;
    double total;               /* of all nodes */
    int64_t *need;              /* by vertex: the most bytes that a run of its nodes touches at
                                 * once */
    LsCutTensor *tensor; uint32_t ntensor;      /* made in phase F, by maker */
    uint32_t *first;            /* by vertex: its first tensor; one extra entry at the end */
    uint32_t *row;              /* by tensor of the graph: its place in `tensor`, or LS_NO_ID */
    bool *early;                /* by vertex: it runs in phase F in every plan, not for the first
                                 * time for phase B or W */
    uint64_t *again;            /* scratch: a set of vertices */
    LsCutTensor **by_price; uint32_t nprice;    /* the cheapest bytes to make again first */
    LsCutState *state; uint32_t nstate;
    LsCutGroup *group; uint32_t ngroup;
} LsCutCosts;

#endif
