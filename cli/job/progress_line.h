/* cli/job/progress_line.h -- tells what a command is doing while it runs. */
#ifndef LS_CLI_JOB_PROGRESS_LINE_H
#define LS_CLI_JOB_PROGRESS_LINE_H

#include "cli/options/options.h"

/* Announces the next stage on stderr. With -v: as a line. On a terminal: with the seconds so far,
 * until the next stage or ls_stage_end. Else, and with -q: nothing. For one thread only. */
__attribute__((format(printf, 2, 3)))
void ls_progress_line(const LsOptions *o, const char *fmt, ...);
/* Clears the stage from the terminal: to be called before anything else is printed. */
void ls_stage_end(const LsOptions *o);
/* Whether the stage is shown on the terminal and overwritten: other output would be lost in it. */
bool ls_stage_passes(const LsOptions *o);

#endif
