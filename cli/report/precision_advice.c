/* cli/report/precision_advice.c -- see precision_advice.h. */
#include "cli/report/precision_advice.h"

#include "base/json_print.h"
#include "cli/job/told_times.h"

#include "compiler/ir/precision.h"

#include <inttypes.h>
#include <stdio.h>

LsPays ls_precision_pays(const LsPrecisionPlan *narrow, const LsPrecisionPlan *wide)
{
    bool time = narrow->step_ns < wide->step_ns;
    bool memory = (double)narrow->arena <= 0.95 * (double)wide->arena;
    return time && memory ? LS_PAYS_BOTH
           : time         ? LS_PAYS_TIME
           : memory       ? LS_PAYS_MEMORY
                          : LS_PAYS_NOTHING;
}

static LsPrecisionPlan plan_of(const LsJob *job)
{
    return (LsPrecisionPlan){ls_precision_name(job->pipeline.precision.compute), true,
                             job->arena_bytes, job->state_bytes, ls_job_step_ns(job)};
}

bool ls_precision_compare(const LsJob *job, LsPrecisionPlan *narrow, LsPrecisionPlan *wide)
{
    if (job->graph_file || job->pipeline.precision.compute == LS_REAL)
        return false;
    LsOptions o = *job->options;
    LsJob other;
    o.machine.precision = o.machine.eval_precision = NULL;
    o.machine.name = job->built_in ? job->machine.name : o.machine.name; /* one machine for both */
    o.machine.wide.n = 0;
    o.update.scale = NULL;
    o.output.dump_pass = NULL;
    o.output.verbose = false;
    *narrow = plan_of(job);
    *wide = (LsPrecisionPlan){.type = ls_precision_name(LS_REAL)};
    if (ls_job_start(&other, &o, true) != 0)
        return true;
    FILE *quiet = fopen("/dev/null", "w");
    other.cx.log = quiet;
    other.unproven = true;
    const bool planned = ls_job_plan(&other) == 0;
    other.told = job->told;
    if (planned)
        *wide = plan_of(&other);
    ls_job_end(&other);
    if (quiet != NULL)
        fclose(quiet);
    return true;
}

static void print_row(const LsJob *job, const LsPrecisionPlan *p)
{
    if (p->planned)
        printf("  %-5s %12s %12.4g ms %12s\n", p->type, ls_bytes_text(job->cx.arena, p->arena),
               p->step_ns * 1e-6, ls_bytes_text(job->cx.arena, p->state));
    else
        printf("  %-5s no plan keeps within this budget\n", p->type);
}

void ls_precision_advice(const LsJob *job)
{
    LsPrecisionPlan narrow, wide;
    if (!ls_precision_compare(job, &narrow, &wide))
        return;
    printf("  %-5s %12s %15s %12s  (%s)\n", "type", "arena", "a step", "state",
           ls_job_told_of(job));
    print_row(job, &narrow);
    print_row(job, &wide);
    const double longer = 100 * (narrow.step_ns / wide.step_ns - 1);
    switch (wide.planned ? ls_precision_pays(&narrow, &wide) : LS_PAYS_BOTH) {
    case LS_PAYS_NOTHING:
        printf("  16 bits are not predicted to pay here: a step takes %.1f %% longer, and the "
               "arena is hardly smaller\n",
               longer);
        break;
    case LS_PAYS_MEMORY:
        printf("  16 bits are predicted to pay in memory alone: a step takes %.1f %% longer\n",
               longer);
        break;
    case LS_PAYS_TIME:
        printf("  16 bits are predicted to pay in time alone: the arena is hardly smaller\n");
        break;
    default:
        break;
    }
}

static cJSON *json_row(const LsPrecisionPlan *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "type", p->type);
    cJSON_AddBoolToObject(o, "feasible", p->planned);
    if (p->planned) {
        cJSON_AddNumberToObject(o, "arena_bytes", (double)p->arena);
        ls_json_add_exact(o, "step_ns", p->step_ns);
        cJSON_AddNumberToObject(o, "state_bytes", (double)p->state);
    }
    return o;
}

const char *ls_precision_json(const LsJob *job)
{
    static const char *const pays[] = {
        [LS_PAYS_BOTH] = "both", [LS_PAYS_TIME] = "time",
        [LS_PAYS_MEMORY] = "memory", [LS_PAYS_NOTHING] = "nothing"};
    LsPrecisionPlan narrow, wide;
    if (!ls_precision_compare(job, &narrow, &wide))
        return NULL;
    cJSON *o = cJSON_CreateObject();
    cJSON *plans = cJSON_AddArrayToObject(o, "plans");
    cJSON_AddItemToArray(plans, json_row(&narrow));
    cJSON_AddItemToArray(plans, json_row(&wide));
    if (wide.planned)
        cJSON_AddStringToObject(o, "pays", pays[ls_precision_pays(&narrow, &wide)]);
    return ls_json_line(job->cx.arena, o);
}
