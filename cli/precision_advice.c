/* cli/precision_advice.c -- see precision_advice.h. */
#include "cli/precision_advice.h"

#include <stdio.h>

static void row(const LsJob *job, const char *type, const LsJob *of)
{
    printf("  %-5s %12s %12.4g ms %12s\n", type, ls_bytes_text(job->cx.arena, of->arena_bytes),
           ls_job_step_ns(of) * 1e-6, ls_bytes_text(job->cx.arena, of->state_bytes));
}

/* The step in 16 bits takes longer or hardly less, or the arena is hardly smaller. */
static void judge(const LsJob *job, const LsJob *wide)
{
    double time = ls_job_step_ns(job) / ls_job_step_ns(wide);
    double bytes = (double)job->arena_bytes / (double)(wide->arena_bytes > 0 ? wide->arena_bytes : 1);
    if (time > 1 && bytes > 0.95)
        printf("  16 bits are not predicted to pay here: neither time nor memory gets less\n");
    else if (time > 1)
        printf("  16 bits are predicted to pay in memory alone: a step takes %.1f %% longer\n", 100 * (time - 1));
}

void ls_precision_advice(const LsJob *job)
{
    if (job->graph_file || job->pipeline.precision.compute == LS_REAL)
        return;
    LsOptions o = *job->options;
    LsJob wide;
    o.precision = NULL;
    o.wide.n = 0;
    o.scale = NULL;
    o.dump_pass = NULL;
    o.verbose = false;
    printf("  %-5s %12s %15s %12s\n", "type", "arena", "a step", "state");
    row(job, job->pipeline.precision.compute == LS_BF16 ? "bf16" : "f16", job);
    bool started = ls_job_start(&wide, &o, true) == 0;
    FILE *quiet = fopen("/dev/null", "w");
    wide.cx.log = quiet;
    wide.unproven = true;
    if (started && ls_job_plan(&wide) == 0) {
        row(job, "f32", &wide);
        judge(job, &wide);
    } else {
        printf("  f32   no plan keeps within this budget\n");
    }
    if (started)
        ls_job_end(&wide);
    if (quiet != NULL)
        fclose(quiet);
}
