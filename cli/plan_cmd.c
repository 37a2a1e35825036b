/* cli/plan_cmd.c -- lowerset plan: what training takes and what a budget costs; builds nothing. */
#include "cli/commands.h"
#include "cli/job.h"

int ls_plan_main(int argc, char **argv)
{
    LsOptions o = {0};
    LsJob job;
    int code = ls_options_parse(&o, LS_CMD_PLAN, argc, argv);
    if (code != 0)
        return code;
    code = ls_job_start(&job, &o, true);
    if (code == 0)
        code = ls_job_plan(&job);
    if (code == 0)
        printf("arena %s\n", ls_bytes_text(job.cx.arena, job.plan.arena));
    ls_job_end(&job);
    return code;
}
