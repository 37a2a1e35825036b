/* tests/plan_graph.c -- plan_graph GRAPH.json BUDGET [STRATEGY] [SCHEDULE.json]: plans a graph
 * of the interchange format, audits the plan, prints its figures and writes the schedule.
 *
 * BUDGET: bytes of arena, a fraction of the store-all peak ("0.6"), 0 for none, or min. Exit
 * status: 0 planned, 1 broken plan, 2 bad file, 4 nothing fits. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scheduler/audit.h"
#include "scheduler/dag_json.h"
#include "scheduler/plan.h"
#include "scheduler/plan_json.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The store-all peak, by a planning that does nothing else. */
static int64_t store_all(LsArena *arena, const LsDag *g)
{
    LsPlan plan;
    LsPlanReport report;
    ls_plan(arena, g, &(LsPlanOptions){.strategy = "none"}, &plan, &report);
    return report.store_all;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: plan_graph GRAPH.json BUDGET [STRATEGY] [SCHEDULE.json]\n");
        return 2;
    }
    char why[512] = "";
    LsArena *arena = ls_arena_new();
    const LsDag *g = ls_dag_read(arena, argv[1], why, sizeof why);
    if (g == NULL) {
        fprintf(stderr, "plan_graph: %s: %s\n", argv[1], why);
        return 2;
    }
    LsPlanOptions o = {.strategy = argc > 3 ? argv[3] : "auto"};
    double b = atof(argv[2]);
    o.least = strcmp(argv[2], "min") == 0;
    o.budget = (int64_t)b;
    if (b > 0 && b <= 1)        /* rounded up to KiB, as the judge does */
        o.budget = (int64_t)ceil((double)store_all(arena, g) * b / 1024) * 1024;
    o.no_inplace = getenv("LS_NO_INPLACE") != NULL;
    o.effort = getenv("LS_EFFORT") ? (uint32_t)atoi(getenv("LS_EFFORT")) : 0;
    o.seconds = getenv("LS_SECONDS") ? atof(getenv("LS_SECONDS")) : 0;
    LsPlan plan;
    LsPlanReport r;
    double began = now();
    bool ok = ls_plan(arena, g, &o, &plan, &r);
    double took = now() - began;
    int status = ok ? 0 : 4;
    if (!ok)
        printf("%s %s: %s  (%.2f s)\n", g->name, o.strategy, r.error, took);
    else if (!ls_audit(g, &plan, why, sizeof why)) {
        printf("%s %s: AUDIT: %s\n", g->name, o.strategy, why);
        status = 1;
    } else
        printf("%s %s budget %" PRId64 ": %s live %" PRId64 " arena %" PRId64 " overhead %.2f %%  "
               "(store-all %" PRId64 ", %.2f s, %s)\n",
               g->name, o.strategy, o.budget, plan.strategy, plan.live_peak, plan.arena,
               100 * (plan.cost / plan.base_cost - 1), r.store_all, took, r.hash);
    if (ok && argc > 4) {
        FILE *f = fopen(argv[4], "w");
        if (f == NULL)
            return 2;
        ls_plan_write(f, g, &plan, &r);
        fclose(f);
    }
    ls_arena_free(arena);
    return status;
}
