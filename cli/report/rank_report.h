/* cli/report/rank_report.h -- what a plan says of training over ranks. */
#ifndef LS_CLI_REPORT_RANK_REPORT_H
#define LS_CLI_REPORT_RANK_REPORT_H

#include "cli/job/job.h"

/* For a planned job with --ranks: prints parts, state and messages of a rank. */
void ls_rank_report(const LsJob *job);
/* The same as JSON; NULL without --ranks. */
const char *ls_rank_json(const LsJob *job);

#endif
