/* cli/report/adapter_report.h -- what a plan says of adapters: their memory beside that of training
 * all that the same options would train without them. */
#ifndef LS_CLI_REPORT_ADAPTER_REPORT_H
#define LS_CLI_REPORT_ADAPTER_REPORT_H

#include "cli/job/job.h"

/* For a planned job with --lora or --adapter: prints both. Both plans are without recomputation,
 * and their least arenas are those of segments: sums, not searches. */
void ls_adapter_report(const LsJob *job);
/* The same as JSON; NULL without adapters. */
const char *ls_adapter_json(const LsJob *job);

#endif
