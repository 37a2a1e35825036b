/* cli/report/policy_table.h -- what each policy of --recompute takes, side by side. */
#ifndef LS_CLI_REPORT_POLICY_TABLE_H
#define LS_CLI_REPORT_POLICY_TABLE_H

#include "cli/job/job.h"

/* For a planned job with --microbatches, --ranks or --recompute=except-last: prints the parts of a
 * step, the bytes of partial sums, and memory and time of every policy. Nothing for other jobs.
 * False after diagnostics. */
bool ls_recompute_print(LsJob *job);
/* The same as JSON in the job's arena: {"batch", "parts", "per_update", "sum_levels", "sum_bytes",
 * "mode", "modes": [{"mode", "feasible", "total_bytes", "arena_bytes", "kept_bytes", "step_ns"},
 * ...]}; NULL for other jobs, and after diagnostics. */
const char *ls_recompute_json(LsJob *job);

#endif
