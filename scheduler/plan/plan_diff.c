/* scheduler/plan/plan_diff.c -- finds what got worse since an earlier plan, and where the two plans
 * differ. */
#include "scheduler/plan/plan_diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/read_file.h"

static const double exactly = 9007199254740992.0;       /* 2^53: doubles hold all integers up to
                                                         * it */

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 ? v->valuedouble : -1;
}

static int64_t bytes(const cJSON *o, const char *key)
{
    double v = number(o, key);
    return v <= exactly ? (int64_t)v : -1;
}

/* Returns whether the values present under the keys (up to NULL) are numbers from 0 to `most`. */
static bool are_sane(const cJSON *o, const char *const *key, double most, const LsWhy *why)
{
    for (; *key != NULL; key++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, *key);
        if (v != NULL && !(cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= most))
            return ls_why(why, "'%s' is not a number from 0 to %g", *key, most);
    }
    return true;
}

/* Checks the figures of a schedule's claims or of a summary. */
static bool figures_are_sane(const cJSON *o, const LsWhy *why)
{
    static const char *const cost[] = {"cost", "base_cost", "cost_lower_bound", NULL};
    static const char *const size[] = {
        "live_peak",   "arena_peak",         "budget", "persistent_bytes", "live_peak_bytes",
        "arena_bytes", "arena_budget_bytes", NULL};
    return are_sane(o, cost, 1e30, why) && are_sane(o, size, exactly, why);
}

static bool get_runs(LsArena *arena, const cJSON *steps, LsEarlier *out, const LsWhy *why)
{
    const cJSON *step;
    size_t most = (size_t)cJSON_GetArraySize(steps) + 1;
    out->name = ls_arena_alloc(arena, most, sizeof *out->name);
    out->node = ls_arena_alloc(arena, most, sizeof *out->node);
    cJSON_ArrayForEach(step, steps) {
        const cJSON *run = cJSON_GetObjectItemCaseSensitive(step, "compute");
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(step, "name");
        if (run == NULL && cJSON_GetObjectItemCaseSensitive(step, "free") != NULL)
            continue;
        if (!cJSON_IsNumber(run) || !(run->valuedouble >= 0 && run->valuedouble <= exactly))
            return ls_why(why, "run %" PRIu32 " names no node", out->nrun);
        out->node[out->nrun] = (int64_t)run->valuedouble;
        if (cJSON_IsString(name))
            out->name[out->nrun] = ls_arena_strdup(arena, name->valuestring);
        out->nrun++;
    }
    return true;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t count_again(LsArena *arena, const LsEarlier *of)
{
    int64_t *node = ls_arena_alloc(arena, of->nrun + 1u, sizeof *node), again = 0;
    if (of->nrun > 0)
        memcpy(node, of->node, of->nrun * sizeof *node);
    qsort(node, of->nrun, sizeof *node, by_number);
    for (uint32_t k = 1; k < of->nrun; k++)
        again += node[k] == node[k - 1];
    return again;
}

static const char *word(LsArena *arena, const cJSON *root, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(root, key);
    return cJSON_IsString(v) ? ls_arena_strdup(arena, v->valuestring) : NULL;
}

static void get_graph(LsArena *arena, const cJSON *root, const cJSON *sizes, LsEarlier *out)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(root, "graph");
    out->graph = cJSON_IsString(name) ? ls_arena_strdup(arena, name->valuestring) : NULL;
    out->persistent = bytes(sizes, "persistent_bytes");
    out->of.machine = word(arena, root, "machine");
    out->of.precision = word(arena, root, "precision");
    const double threads = number(root, "threads");
    out->of.threads = threads >= 1 && threads <= INT32_MAX ? (int)threads : 0;
}

static bool get_schedule(LsArena *arena, const cJSON *root, LsEarlier *out, const LsWhy *why)
{
    const cJSON *claims = cJSON_GetObjectItemCaseSensitive(root, "claims");
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(root, "steps");
    if (!cJSON_IsArray(steps))
        return ls_why(why, "no list of 'steps'");
    if (!figures_are_sane(claims, why))
        return false;
    get_graph(arena, root, claims, out);
    out->cost = number(claims, "cost");
    out->base_cost = number(claims, "base_cost");
    out->bound = number(claims, "cost_lower_bound");
    out->live_peak = bytes(claims, "live_peak");
    out->arena = bytes(claims, "arena_peak");
    out->budget = bytes(claims, "budget");
    if (out->cost < 0 || (out->arena < 0 && out->live_peak < 0))
        return ls_why(why, "'claims' has no cost or no peak to compare with");
    if (!get_runs(arena, steps, out, why))
        return false;
    out->again = count_again(arena, out);
    return true;
}

static bool get_any(LsArena *arena, const cJSON *root, LsEarlier *out, const LsWhy *why)
{
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(root, "format");
    *out = (LsEarlier){0};
    if (!cJSON_IsObject(root))
        return ls_why(why, "not a JSON object");
    if (cJSON_IsString(format) && strcmp(format->valuestring, "lowerset-schedule") == 0)
        return get_schedule(arena, root, out, why);
    if (!figures_are_sane(root, why))
        return false;
    get_graph(arena, root, root, out);
    out->cost = number(root, "cost");
    out->base_cost = number(root, "base_cost");
    out->bound = number(root, "cost_lower_bound");
    out->live_peak = bytes(root, "live_peak_bytes");
    out->arena = bytes(root, "arena_bytes");
    out->budget = bytes(root, "arena_budget_bytes");
    out->again = bytes(root, "recomputed_runs");
    if (number(root, "schema") != 1 || out->cost < 0 || out->arena < 0)
        return ls_why(why, "neither a lowerset-schedule, as --plan-json writes it, nor the "
                      "summary that --json prints");
    return true;
}

bool ls_earlier_read(LsArena *arena, const char *path, LsEarlier *out, char *why, size_t size)
{
    LsWhy to = {.text = why, .size = size};
    char *text = ls_read_text(path, &to);
    cJSON *root = text != NULL ? cJSON_Parse(text) : NULL;
    bool ok = text != NULL && get_any(arena, root, out, &to);
    cJSON_Delete(root);
    free(text);
    return ok;
}

/* Adds a figure. then < 0: not stated. */
static void add(LsPlanDiff *d, const char *what, const char *key, LsFigureUnit unit, double then,
                double now)
{
    static const double rounding = 1e-9;        /* sums in another order differ in their last
                                                 * digits */
    LsPlanFigure *f = &d->figure[d->nfigure++];
    const bool part = unit == LS_FIGURE_PART, judged = unit != LS_FIGURE_RUNS;
    const double change = part ? now - then : then > 0 ? now / then - 1 : now > 0 ? INFINITY : 0;
    *f = (LsPlanFigure){.what = what, .key = key, .unit = unit, .then = then, .now = now,
                        .change = change, .verdict = "unknown"};
    if (then < 0)
        return;
    f->worse = judged && change > d->tolerance + rounding;
    f->verdict = f->worse             ? "worse"
                 : change > rounding  ? judged ? "within the tolerance" : "more"
                 : change < -rounding ? judged ? "better" : "fewer"
                                      : "the same";
    if (f->worse)
        d->verdict = LS_AGAINST_WORSE;
}

static const char *name_of(const LsDag *g, const char *name, int64_t node)
{
    if (name == NULL && node >= 0 && node < g->nnode)
        name = g->node[node].name;
    return name != NULL ? name : "?";
}

/* The first run at which the plans differ, as a sentence. */
static const char *parting(LsArena *arena, const LsEarlier *then, const LsDag *g,
                           const LsPlan *plan)
{
    uint32_t run = 0, step = 0;
    for (; step < plan->nstep; step++) {
        const LsPlanStep *s = &plan->step[step];
        if (s->free)
            continue;
        if (run == then->nrun)
            return ls_arena_printf(arena, "the plans part at run %" PRIu32 ", step %" PRIu32
                                   ": nothing more then, '%s' now",
                                   run + 1, step, g->node[s->id].name);
        const char *old = name_of(g, then->name[run], then->node[run]);
        if (strcmp(old, name_of(g, NULL, s->id)) != 0 || then->node[run] != s->id)
            return ls_arena_printf(arena, "the plans part at run %" PRIu32 ", step %" PRIu32
                                   ": '%s' (node %" PRId64 ") then, '%s' (node %" PRIu32 ")%s now",
                                   run + 1, step, old, then->node[run], name_of(g, NULL, s->id),
                                   s->id, s->again ? " again" : "");
        run++;
    }
    if (run == then->nrun)
        return "the plans run the same nodes in the same order";
    return ls_arena_printf(arena, "the plans part at run %" PRIu32 ": '%s' (node %" PRId64
                           ") then, nothing more now",
                           run + 1, name_of(g, then->name[run], then->node[run]), then->node[run]);
}

/* Returns a graph's name without folders: a model's graph is named after its path. */
static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

/* Returns NULL, or why the earlier plan is not for this graph. A renamed model is the same if its
 * base cost is. */
static const char *mismatch(LsArena *arena, const LsEarlier *then, const LsDag *g, double base_cost)
{
    int64_t now = ls_dag_persistent_bytes(g);
    if (then->persistent >= 0 && then->persistent != now)
        return ls_arena_printf(arena, "its inputs and state take %" PRId64 " bytes, here %" PRId64
                               ": another model, batch or way to train", then->persistent, now);
    if (then->graph != NULL && strcmp(last_part(then->graph), last_part(g->name)) != 0
        && then->base_cost >= 0 && fabs(then->base_cost - base_cost) > 1e-9 * base_cost)
        return ls_arena_printf(arena, "it is for '%s', this is '%s'", then->graph, g->name);
    return NULL;
}

/* Returns NULL, or why costs cannot be compared. */
static const char *costs_differ(LsArena *arena, const LsCostsOf *then, const LsCostsOf *now)
{
    if (then->precision != NULL && now->precision != NULL
        && strcmp(then->precision, now->precision) != 0)
        return ls_arena_printf(arena, "it computes in %.40s, this plan in %s", then->precision,
                               now->precision);
    if (then->machine != NULL && now->machine != NULL && strcmp(then->machine, now->machine) != 0)
        return ls_arena_printf(arena,
                               "its costs are of machine %.60s, here of %s; --machine names one",
                               then->machine, now->machine);
    if (then->threads > 0 && now->threads > 0 && then->threads != now->threads)
        return ls_arena_printf(arena, "its costs are of %d thread%s, here of %d", then->threads,
                               then->threads == 1 ? "" : "s", now->threads);
    return NULL;
}

LsPlanDiff ls_earlier_compare(LsArena *arena, const LsEarlier *then, const LsDag *g,
                              const LsPlan *plan, const LsPlanReport *report, double tolerance)
{
    const bool proven = then->bound >= 0 && then->base_cost > 0;
    const double over = proven ? fmax(then->cost - then->bound, 0) / then->base_cost : -1;
    LsPlanDiff d = {.tolerance = tolerance, .other = mismatch(arena, then, g, plan->base_cost),
                    .budget_then = then->budget, .budget_now = report->budget};
    if (d.other == NULL)
        d.other = costs_differ(arena, &then->of, &report->of);
    if (d.other != NULL) {
        d.verdict = LS_AGAINST_OTHER;
        return d;
    }
    add(&d, "cost", "cost", LS_FIGURE_NS, then->cost, plan->cost);
    add(&d, "live peak", "live_peak_bytes", LS_FIGURE_BYTES, (double)then->live_peak,
        (double)plan->live_peak);
    add(&d, "arena", "arena_bytes", LS_FIGURE_BYTES, (double)then->arena, (double)plan->arena);
    add(&d, "gap", "gap", LS_FIGURE_PART, over, ls_plan_gap(plan, report));
    add(&d, "again", "recomputed_runs", LS_FIGURE_RUNS, (double)then->again,
        ls_plan_turn(g, plan).all.runs);
    if (then->nrun > 0)
        d.parting = parting(arena, then, g, plan);
    return d;
}
