/* scheduler/graph/memory_budget.h -- a limit on memory that says what it contains, and what a
 * process takes beside its arenas. All arithmetic between the two is here. */
#ifndef LS_SCHEDULER_GRAPH_MEMORY_BUDGET_H
#define LS_SCHEDULER_GRAPH_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LS_BUDGET_OF_ARENA,         /* one arena: what a plan is made for */
    LS_BUDGET_OF_PROCESS        /* all of a process, or of a rank: LsProcessBytes, and its arenas */
} LsBudgetOf;

/* Zeroed: no limit. `least` counts before `percent`, and that before `bytes`. */
typedef struct LsBudget {
    LsBudgetOf of;              /* what `bytes` contain; the others are of an arena */
    int64_t bytes;              /* > 0: so many */
    double percent;             /* > 0: a part of the arena of the plan that runs nothing again */
    bool of_store_all;          /* the percentage is of the live peak without results in place */
    bool least;                 /* the least that has a plan */
} LsBudget;

/* What a process takes. */
typedef struct LsProcessBytes {
    int64_t state;              /* parameters, moments, statistics, constants */
    int64_t input;              /* the ring of batches */
    int64_t exchange;           /* what other ranks send */
    int64_t arenas;             /* their number: the lanes of an ensemble, else 1; equally large */
} LsProcessBytes;

static inline bool ls_budget_is_none(const LsBudget *b)
{
    return b->bytes <= 0 && b->percent <= 0 && !b->least;
}

/* Bytes beside the arenas. */
int64_t ls_process_fixed(const LsProcessBytes *p);
/* All bytes, with arenas of `arena` bytes. */
int64_t ls_process_total(const LsProcessBytes *p, int64_t arena);
/* Bytes of each arena within `total`, at least 1. */
int64_t ls_process_arena(const LsProcessBytes *p, int64_t total);

/* The same limit, as one on each arena of the process. */
LsBudget ls_budget_of_arena(const LsBudget *b, const LsProcessBytes *p);
/* Bytes that a budget of an arena allows, at least 1; 0: no limit in bytes. whole: bytes that are
 * 100 %. */
int64_t ls_budget_arena_bytes(const LsBudget *b, int64_t whole);

#endif
