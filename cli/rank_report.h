/* cli/rank_report.h -- what training over ranks takes, and what a plan says of it. */
#ifndef LS_CLI_RANK_REPORT_H
#define LS_CLI_RANK_REPORT_H

#include "cli/job.h"

typedef struct LsRankFacts {    /* bytes of one rank */
    int64_t sums;               /* of the sums that ranks add up */
    int64_t trees;              /* of partial sums of a rank's parts, and of statistics of all parts */
    int64_t moments, own;       /* of the optimizer's state: in all, and in one rank */
    int64_t exchange;           /* of the buffers that the trainer's exchange allocates */
    int64_t sent;               /* that a rank sends in an update */
} LsRankFacts;

/* Of a job that has graphs and updates over ranks, with one of the numbers of ranks that the program takes. */
LsRankFacts ls_rank_facts(const LsJob *job, int ranks);
/* For a planned job with --ranks: prints parts, state and messages of a rank. */
void ls_rank_report(const LsJob *job);
/* The same as JSON; NULL without --ranks. */
const char *ls_rank_json(const LsJob *job);

#endif
