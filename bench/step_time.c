/* bench/step_time.c -- the time of a plan's step by the figures of several machines.
 *   step_time MACHINE[,MACHINE...] OPTIONS-OF-PLAN...
 * The plan is the plan of `lowerset plan OPTIONS...`. Prints its hash, then a line of ns for each
 * machine: by replaying the plan (codegen/planning/step_replay.h), and as the sum of the nodes'
 * costs. */
#include <stdio.h>
#include <string.h>

#include "cli/job/job.h"
#include "cli/job/machine_choice.h"
#include "codegen/planning/step_replay.h"

static double sum_of_costs(LsJob *job, const LsMachine *m)
{
    double ns = m->step;
    ls_problem_price(job->train_problem, m);
    for (uint32_t k = 0; k < job->plan.nstep; k++)
        if (!job->plan.step[k].free)
            ns += job->dag->node[job->plan.step[k].id].cost;
    return ns;
}

static int show(LsJob *job, char *machines)
{
    char *save = NULL;
    printf("%s\n", job->report.hash);
    for (char *name = strtok_r(machines, ",", &save); name != NULL;
         name = strtok_r(NULL, ",", &save)) {
        LsMachine m;
        const char *from;
        int code = ls_machine_choose(job->cx.arena, name, false, &m, &from);
        if (code != 0)
            return code;
        printf("%.0f %.0f\n", ls_replay_ns(job->cx.arena, job->train_problem, &job->plan, &m),
               sum_of_costs(job, &m));
    }
    return 0;
}

int main(int argc, char **argv)
{
    LsOptions o = {0};
    LsJob job;
    if (argc < 3) {
        fprintf(stderr, "step_time: MACHINE[,MACHINE...] OPTIONS-OF-PLAN...\n");
        return 2;
    }
    char plan[] = "plan", *machines = argv[1];
    argv[1] = plan;             /* the command line of `lowerset plan` */
    int code = ls_options_parse(&o, LS_CMD_PLAN, argc, argv);
    code = code != 0 ? code : ls_job_start(&job, &o, true);
    if (code != 0)
        return code;
    code = ls_job_plan(&job);
    if (code == 0)
        code = show(&job, machines);
    ls_job_end(&job);
    return code;
}
