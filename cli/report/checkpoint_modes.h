/* cli/report/checkpoint_modes.h -- what each mode of --checkpoint takes, side by side. */
#ifndef LS_CLI_REPORT_CHECKPOINT_MODES_H
#define LS_CLI_REPORT_CHECKPOINT_MODES_H

#include "cli/job/job.h"

/* For a planned job with --microbatches or --checkpoint: prints the parts of a step, the bytes of partial sums, and memory
 * and time of every mode. Nothing for other jobs. False after diagnostics. */
bool ls_checkpoint_modes(LsJob *job);
/* The same as JSON in the job's arena: {"batch", "parts", "per_update", "sum_levels", "sum_bytes", "mode", "modes": [{"mode",
 * "feasible", "total_bytes", "arena_bytes", "kept_bytes", "step_ns"}, ...]}; NULL for other jobs, and after diagnostics. */
const char *ls_checkpoint_json(LsJob *job);

#endif
