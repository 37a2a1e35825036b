/* cli/report/adapter_report.c -- see the header. Full tuning is a job of its own, of the same
 * options without the adapters. */
#include "cli/report/adapter_report.h"

#include "base/json_print.h"
#include "compiler/adapters/adapters.h"
#include "compiler/updates/trained_share.h"
#include "scheduler/report/memory_series.h"

#include <stdio.h>

typedef struct Tuning {
    bool planned;
    int64_t trained;            /* elements */
    int64_t state, fixed;       /* bytes; fixed: all that is not the arena */
    int64_t kept, own;          /* for the backward part; own: of it, what adapters made */
    int64_t arena, least;       /* without recomputation; of the smallest plan of segments */
} Tuning;

/* Bytes of what the nodes of adapters make in the forward part, and the backward part reads. Such a
 * node may add to a result of the file, which is not because of the adapter. */
static int64_t kept_of_adapters(const LsJob *job)
{
    const LsNames *made = &job->pipeline.import.adapters->made;
    LsArena *a = ls_arena_new();
    const LsSeries *s = ls_series_new(a, job->dag, &job->none);
    int64_t bytes = 0;
    for (uint32_t v = 0; v < job->dag->nnode; v++)
        for (uint32_t j = 0; ls_names_find(made, job->dag->node[v].name) != 0
                             && j < job->dag->node[v].nout; j++) {
            const uint32_t t = job->dag->node[v].out[j];
            const LsDagTensor *of = &job->dag->tensor[t];
            if (s->owner[t] == LS_OWNER_KEPT
                && (of->name[0] == '%' || ls_names_find(made, of->name) != 0))
                bytes += of->bytes;
        }
    ls_arena_free(a);
    return bytes;
}

/* Of a job with its plan without recomputation. */
static Tuning tuning_of(const LsJob *job)
{
    LsPlan plan;
    LsPlanReport report = {.least = job->none.arena};
    const LsPlanOptions segments = {.strategy = "chen", .unproven = true,
                                    .no_inplace = job->options->memory.no_inplace};
    Tuning t = {.planned = true, .trained = ls_trained_share(job->train).elements,
                .state = job->state_bytes, .fixed = ls_job_fixed_bytes(job),
                .kept = ls_plan_turn(job->dag, &job->none).kept_bytes, .arena = job->none.arena};
    ls_plan(job->cx.arena, job->dag, &segments, &plan, &report);
    t.least = report.least;
    if (job->pipeline.import.adapters != NULL)
        t.own = kept_of_adapters(job);
    return t;
}

static Tuning full_tuning(const LsJob *job)
{
    LsOptions o = *job->options;
    LsJob other;
    Tuning t = {.planned = false};
    o.trained.lora = o.trained.adapter = NULL;
    o.trained.merge = false;
    o.output.dump_pass = NULL;
    o.output.verbose = false;
    if (ls_job_start(&other, &o, true) != 0)
        return t;
    FILE *quiet = fopen("/dev/null", "w");
    other.cx.log = quiet;
    if (ls_job_load(&other) == 0)
        t = tuning_of(&other);
    ls_job_end(&other);
    if (quiet != NULL)
        fclose(quiet);
    return t;
}

static bool compare(const LsJob *job, Tuning *own, Tuning *full)
{
    if (job->graph_file || job->pipeline.import.adapters == NULL || job->none.nstep == 0)
        return false;
    *own = tuning_of(job);
    *full = full_tuning(job);
    return true;
}

static void print_row(const LsJob *job, const char *what, const Tuning *t)
{
    LsArena *a = job->cx.arena;
    const LsProcessBytes process = ls_job_process(job);
    printf("  %-12s %12s %12s %12s %12s %12s %12s\n", what,
           ls_arena_printf(a, "%lld", (long long)t->trained), ls_bytes_text(a, t->state),
           ls_bytes_text(a, t->kept), ls_bytes_text(a, t->arena),
           ls_bytes_text(a, t->fixed + t->arena * process.arenas), ls_bytes_text(a, t->least));
}

void ls_adapter_report(const LsJob *job)
{
    Tuning own, full;
    if (!compare(job, &own, &full))
        return;
    printf("\n%u adapters, without recomputation; of what they keep, %s are between A and B\n",
           job->pipeline.import.adapters->nadapted, ls_bytes_text(job->cx.arena, own.own));
    printf("  %-12s %12s %12s %12s %12s %12s %12s\n", "trained", "elements", "state", "kept",
           "arena", "in all", "least arena");
    print_row(job, "adapters", &own);
    if (full.planned)
        print_row(job, "all", &full);
    else
        printf("  with these options there is no program without the adapters\n");
}

static cJSON *json_row(const LsJob *job, const Tuning *t)
{
    const LsProcessBytes process = ls_job_process(job);
    const struct { const char *name; int64_t value; } row[] = {
        {"trained_elements", t->trained}, {"state_bytes", t->state}, {"kept_bytes", t->kept},
        {"no_recompute_arena_bytes", t->arena},
        {"total_bytes", t->fixed + t->arena * process.arenas}, {"least_arena_bytes", t->least}};
    cJSON *o = cJSON_CreateObject();
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        cJSON_AddNumberToObject(o, row[k].name, (double)row[k].value);
    return o;
}

const char *ls_adapter_json(const LsJob *job)
{
    Tuning own, full;
    if (!compare(job, &own, &full))
        return NULL;
    cJSON *o = json_row(job, &own);
    cJSON_AddNumberToObject(o, "modules", job->pipeline.import.adapters->nadapted);
    cJSON_AddNumberToObject(o, "kept_of_adapters_bytes", (double)own.own);
    if (full.planned)
        cJSON_AddItemToObject(o, "full_tuning", json_row(job, &full));
    return ls_json_line(job->cx.arena, o);
}
