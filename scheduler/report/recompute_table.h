/* scheduler/report/recompute_table.h -- what a plan keeps and what it runs again, operator by
 * operator. */
#ifndef LS_SCHEDULER_REPORT_RECOMPUTE_TABLE_H
#define LS_SCHEDULER_REPORT_RECOMPUTE_TABLE_H

#include "scheduler/report/memory_series.h"

#define LS_ALL_NODES UINT32_MAX

typedef struct LsAgainRow {     /* the nodes of one operator in one part of the step */
    const char *op;
    LsDagKind kind;
    uint32_t first;             /* first node, the tie-break; LS_ALL_NODES: the row of all nodes of
                                 * the part */
    uint32_t nodes, kept, again, runs;  /* kept, again: numbers of nodes; runs: further runs */
    int64_t kept_bytes;         /* of results kept for the backward part; 0 of other nodes than
                                 * forward ones */
    int64_t again_bytes;        /* of results that are made again, each counted once: what need not
                                 * be kept */
    double cost;                /* of the further runs, ns */
} LsAgainRow;

/* "forward", "backward", "optimizer" */
extern const char *const ls_part_name[LS_DAG_OPTIMIZER + 1];

/* Makes the rows of forward operators, then those of other operators whose nodes run again; within
 * a part the largest bytes come first. Each part ends with the row of all its nodes, if any of it
 * is there. Returns the number of rows. */
uint32_t ls_again_rows(LsArena *arena, const LsDag *dag, const LsSeries *series, LsAgainRow **row);

#endif
