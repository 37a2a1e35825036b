/* cli/commands/compile.h -- from a planned job to a program. */
#ifndef LS_CLI_COMMANDS_COMPILE_H
#define LS_CLI_COMMANDS_COMPILE_H

#include "cli/job/job.h"

/* Writes the executable of job->plan to `path`. job->eval_plan, job->report.hash and
 * job->arena_bytes are as ls_job_plan leaves them. 0 or the exit code, after diagnostics. */
int ls_compile_job(LsJob *job, const char *path);

/* The same for another plan of a loaded job; the plan is audited first. budget: bytes in all; 0:
 * none. */
int ls_compile_plan(LsJob *job, const LsPlan *plan, int64_t budget, const char *path);

#endif
