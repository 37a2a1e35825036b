/* scheduler/against.c -- what got worse since an earlier plan, and where the two part. */
#include "scheduler/against.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/text_file.h"

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 ? v->valuedouble : -1;
}

static int64_t bytes(const cJSON *o, const char *key)
{
    double v = number(o, key);
    return v <= 9007199254740992.0 ? (int64_t)v : -1;
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
        if (!cJSON_IsNumber(run))
            return ls_why(why, "run %" PRIu32 " names no node", out->nrun);
        out->node[out->nrun] = (int64_t)run->valuedouble;
        if (cJSON_IsString(name))
            out->name[out->nrun] = ls_arena_strdup(arena, name->valuestring);
        out->nrun++;
    }
    return true;
}

static bool get_schedule(LsArena *arena, const cJSON *root, LsEarlier *out, const LsWhy *why)
{
    const cJSON *claims = cJSON_GetObjectItemCaseSensitive(root, "claims");
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(root, "steps");
    if (!cJSON_IsArray(steps))
        return ls_why(why, "no list of 'steps'");
    out->cost = number(claims, "cost");
    out->base_cost = number(claims, "base_cost");
    out->bound = number(claims, "cost_lower_bound");
    out->live_peak = bytes(claims, "live_peak");
    out->arena = bytes(claims, "arena_peak");
    out->budget = bytes(claims, "budget");
    if (out->cost < 0 || (out->arena < 0 && out->live_peak < 0))
        return ls_why(why, "'claims' has no cost or no peak to compare with");
    return get_runs(arena, steps, out, why);
}

static bool get_any(LsArena *arena, const cJSON *root, LsEarlier *out, const LsWhy *why)
{
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(root, "format");
    *out = (LsEarlier){0};
    if (!cJSON_IsObject(root))
        return ls_why(why, "not a JSON object");
    if (cJSON_IsString(format) && strcmp(format->valuestring, "lowerset-schedule") == 0)
        return get_schedule(arena, root, out, why);
    out->cost = number(root, "cost");
    out->base_cost = number(root, "base_cost");
    out->bound = number(root, "cost_lower_bound");
    out->live_peak = bytes(root, "live_peak_bytes");
    out->arena = bytes(root, "arena_bytes");
    out->budget = bytes(root, "arena_budget_bytes");
    if (number(root, "schema") != 1 || out->cost < 0 || out->arena < 0)
        return ls_why(why, "neither a lowerset-schedule, as --plan-json writes it, nor the "
                      "summary that --json prints");
    return true;
}

bool ls_earlier_read(LsArena *arena, const char *path, LsEarlier *out, char *why, size_t size)
{
    LsWhy to = {.text = why, .size = size};
    char *text = ls_text_file(path, &to);
    cJSON *root = text != NULL ? cJSON_Parse(text) : NULL;
    bool ok = text != NULL && get_any(arena, root, out, &to);
    cJSON_Delete(root);
    free(text);
    return ok;
}

/* One line; whether it got worse. gap: compared by difference, else by ratio. */
static bool line(FILE *to, const char *what, double then, double now, double tolerance, bool gap)
{
    enum { ROUNDING = 1000000000 };     /* sums in another order differ in their last digits */
    double change = gap ? now - then : then > 0 ? now / then - 1 : now > 0 ? INFINITY : 0;
    if (then < 0) {
        fprintf(to, "  %-10s %22s -> %.*f%s\n", what, "?", gap ? 2 : 0, gap ? 100 * now : now,
                gap ? " %" : "");
        return false;
    }
    bool worse = change > tolerance + 1.0 / ROUNDING;
    const char *word = worse ? "worse" : change > 1.0 / ROUNDING ? "within the tolerance"
                     : change < -1.0 / ROUNDING ? "better" : "the same";
    if (gap)
        fprintf(to, "  %-10s %20.2f %% -> %.2f %%  %s\n", what, 100 * then, 100 * now, word);
    else
        fprintf(to, "  %-10s %22.0f -> %.0f  %+.2f %%  %s\n", what, then, now, 100 * change, word);
    return worse;
}

static const char *name_of(const LsDag *g, const char *name, int64_t node)
{
    if (name == NULL && node >= 0 && node < g->nnode)
        name = g->node[node].name;
    return name != NULL ? name : "?";
}

static void tell_parting(FILE *to, const LsEarlier *then, const LsDag *g, const LsPlan *plan)
{
    uint32_t run = 0, step = 0;
    for (; step < plan->nstep; step++) {
        const LsPlanStep *s = &plan->step[step];
        if (s->free)
            continue;
        if (run == then->nrun) {
            fprintf(to, "  the plans part at run %" PRIu32 ", step %" PRIu32 ": nothing more then, "
                    "'%s' now\n", run, step, g->node[s->id].name);
            return;
        }
        const char *old = name_of(g, then->name[run], then->node[run]);
        if (strcmp(old, name_of(g, NULL, s->id)) != 0 || then->node[run] != s->id) {
            fprintf(to, "  the plans part at run %" PRIu32 ", step %" PRIu32 ": '%s' (node %" PRId64
                    ") then, '%s' (node %" PRIu32 ")%s now\n", run, step, old, then->node[run],
                    name_of(g, NULL, s->id), s->id, s->again ? " again" : "");
            return;
        }
        run++;
    }
    if (run < then->nrun)
        fprintf(to, "  the plans part at run %" PRIu32 ": '%s' (node %" PRId64 ") then, nothing "
                "more now\n", run, name_of(g, then->name[run], then->node[run]), then->node[run]);
    else
        fprintf(to, "  the plans run the same nodes in the same order\n");
}

bool ls_earlier_compare(FILE *to, const LsEarlier *then, const LsDag *g, const LsPlan *plan,
                        const LsPlanReport *report, double tolerance)
{
    bool proven = then->bound >= 0 && then->base_cost > 0;
    double gap = proven ? (then->cost - then->bound) / then->base_cost : -1;
    bool worse = line(to, "cost", then->cost, plan->cost, tolerance, false);
    worse |= line(to, "live peak", (double)then->live_peak, (double)plan->live_peak, tolerance,
                  false);
    worse |= line(to, "arena", (double)then->arena, (double)plan->arena, tolerance, false);
    worse |= line(to, "gap", gap, ls_plan_gap(plan, report), tolerance, true);
    if ((then->budget > 0 || report->budget > 0) && then->budget != report->budget)
        fprintf(to, "  the budget of the arena is another: %" PRId64 " -> %" PRId64 " bytes\n",
                then->budget, report->budget);
    if (then->nrun > 0)
        tell_parting(to, then, g, plan);
    return worse;
}
