/* cli/commands/check_plan.c -- see check_plan.h. */
#include "cli/commands/check_plan.h"

#include "base/json_text.h"
#include "cli/job/job.h"
#include "scheduler/graph/dag_read.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/plan_json.h"

#include <inttypes.h>
#include <string.h>

static int wrong(const char *path, const char *why, int code)
{
    fprintf(stderr, "lowerset: %s: %s\n", path, why);
    return code;
}

static void print_json(const LsOptions *o, const LsPlan *plan, const char *hash, const char *why)
{
    printf("{\"schema\": 1, \"file\": ");
    ls_json_text(stdout, o->model);
    printf(", \"plan\": \"%s\", \"live_peak_bytes\": %" PRId64 ", \"arena_bytes\": %" PRId64
           ", \"cost\": %.17g, \"overhead\": %.9g, \"passed\": %s, \"why\": ", hash,
           plan->live_peak, plan->arena, plan->cost, ls_plan_overhead(plan),
           why == NULL ? "true" : "false");
    ls_json_text(stdout, why);
    printf("}\n");
}

static void print_line(LsArena *a, const LsOptions *o, const LsPlan *plan, const char *hash)
{
    printf("%s: sound: plan %s, live peak %s (%" PRId64 " bytes)", o->model, hash,
           ls_bytes_text(a, plan->live_peak), plan->live_peak);
    if (!plan->unplaced)
        printf(", arena %s (%" PRId64 " bytes)", ls_bytes_text(a, plan->arena), plan->arena);
    printf(", cost %.6g ms, overhead %.2f %%\n", plan->cost * 1e-6, 100 * ls_plan_overhead(plan));
}

static int judge(LsArena *a, const LsOptions *o, const LsDag *dag, const LsPlan *plan,
                 const char *stated)
{
    char why[512], hash[17];
    ls_plan_hash(plan, hash);
    bool sound = ls_audit(dag, plan, why, sizeof why);
    if (sound && stated[0] != '\0' && strcmp(stated, hash) != 0) {
        snprintf(why, sizeof why, "states the hash %s, but its hash is %s", stated, hash);
        sound = false;
    }
    if (o->reports.json)
        print_json(o, plan, hash, sound ? NULL : why);
    else if (sound)
        print_line(a, o, plan, hash);
    return sound ? 0 : wrong(o->model, why, LS_EXIT_CHECK);
}

int ls_check_plan(const LsOptions *o)
{
    char why[512], stated[17];
    LsPlan plan;
    if (o->check.graph == NULL)
        return wrong(o->model,
                     "a plan is checked against its graph: name it with --graph GRAPH.json",
                     LS_EXIT_USAGE);
    if (o->model_only != NULL) {
        fprintf(stderr, "lowerset: %s is for models, but this is a plan\n", o->model_only);
        return LS_EXIT_USAGE;
    }
    LsArena *a = ls_arena_new();
    LsDag *dag = ls_dag_read(a, o->check.graph, why, sizeof why);
    int code = dag != NULL ? 0 : wrong(o->check.graph, why, LS_EXIT_MODEL);
    if (code == 0 && !ls_plan_read(a, dag, o->model, &plan, stated, why, sizeof why))
        code = wrong(o->model, why, LS_EXIT_MODEL);
    code = code != 0 ? code : judge(a, o, dag, &plan, stated);
    ls_arena_free(a);
    return code;
}
