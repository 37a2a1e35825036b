/* cli/report/tile_report.h -- what values in parts bring, region by region. */
#ifndef LS_CLI_REPORT_TILE_REPORT_H
#define LS_CLI_REPORT_TILE_REPORT_H

#include "cli/job/job.h"

/* Prints a line for each tiled region: the most that one of its kernels reads and writes of the
 * samples, whole and in parts. Recomputation alone holds the former at once, unless a result takes
 * the place of an operand. */
void ls_tile_print(const LsJob *job);

/* The same as a JSON list, in the job's arena. */
const char *ls_tile_json(const LsJob *job);

#endif
