/* cli/stage.h -- what a command is doing while it takes its time. */
#ifndef LS_CLI_STAGE_H
#define LS_CLI_STAGE_H

#include "cli/options.h"

/* Says what comes next, on stderr: with -v as a line; else on a terminal, with the seconds that it has
 * taken so far, until the next stage or ls_stage_end; else, and with -q, nothing. By one thread. */
__attribute__((format(printf, 2, 3)))
void ls_stage(const LsOptions *o, const char *fmt, ...);
/* Wipes what stands on the terminal: to be called before anything else is printed. */
void ls_stage_end(const LsOptions *o);
/* Whether stages stand on the terminal and pass: what is printed meanwhile would be lost in them. */
bool ls_stage_passes(const LsOptions *o);

#endif
