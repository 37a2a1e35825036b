/* cli/commands/plan_against.h -- lowerset plan --against: holds a plan to an earlier one. */
#ifndef LS_CLI_COMMANDS_PLAN_AGAINST_H
#define LS_CLI_COMMANDS_PLAN_AGAINST_H

#include "cli/job/job.h"
#include "scheduler/plan/plan_diff.h"

typedef struct LsAgainstPlan {
    double tolerance;
    bool fresh;                 /* --update, and there is no earlier plan yet */
    LsEarlier then;
} LsAgainstPlan;

/* Whether --markdown without a file takes the place of the report on stdout. */
bool ls_against_has_stdout(const LsOptions *o);
/* Checks the options that go together, and reads --tolerance. 0 or the exit code. */
int ls_against_check(const LsOptions *o, LsAgainstPlan *a);
/* Reads the earlier plan, if one is asked for: before minutes of planning. 0 or the exit code. */
int ls_against_read(LsJob *job, LsAgainstPlan *a);
/* Compares; sets report.against, prints lines, on stderr if stdout has another report, writes
 * --markdown and --update. Nothing without --against. Returns the exit code. */
int ls_against_report(LsJob *job, const LsAgainstPlan *a);

#endif
