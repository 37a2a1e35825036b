/* cli/job/rank_facts.h -- what training over ranks takes. */
#ifndef LS_CLI_JOB_RANK_FACTS_H
#define LS_CLI_JOB_RANK_FACTS_H

#include "cli/job/job.h"

typedef struct LsRankFacts {    /* bytes of one rank */
    int64_t sums;               /* of the sums that ranks add up */
    int64_t trees;              /* of partial sums of a rank's parts, and of statistics of all
                                 * parts */
    int64_t moments, own;       /* of the optimizer's state: in all, and in one rank */
    int64_t exchange;           /* of the buffers that the trainer's exchange allocates */
    int64_t sent;               /* that a rank sends in an update */
} LsRankFacts;

/* Of a job that has graphs and updates over ranks, with one of the numbers of ranks that the
 * program takes. */
LsRankFacts ls_rank_facts(const LsJob *job, int ranks);

#endif
