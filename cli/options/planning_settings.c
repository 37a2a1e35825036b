/* cli/options/planning_settings.c -- what options say of plans: budgets, limits of the search, what
 * may run again. */
#include "cli/options/options.h"

#include "runtime/base/number.h"
#include "scheduler/plan/planner.h"
#include "scheduler/strategies/strategy_names.h"
#include "cli/options/option_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The number that text begins with, above 0, and where it ends. */
static bool amount(const char *text, double *value, const char **unit)
{
    char *end;
    *value = strtod(text, &end);
    *unit = end;
    return end != text && isfinite(*value) && *value > 0;
}

bool ls_size_parse(const char *text, int64_t *bytes)
{
    static const struct { const char *unit; double bytes; } unit[] = {
        {"", 1}, {"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
        {"TiB", 1099511627776.0}, {"K", 1024.0}, {"M", 1048576.0}, {"G", 1073741824.0},
        {"T", 1099511627776.0}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    const char *end;
    double value;
    if (!amount(text, &value, &end))
        return false;
    for (size_t k = 0; k < sizeof unit / sizeof *unit; k++)
        if (strcasecmp(end, unit[k].unit) == 0 && value * unit[k].bytes < 9e18) {
            *bytes = (int64_t)floor(value * unit[k].bytes);
            return *bytes > 0;
        }
    return false;
}

bool ls_budget_parse(const char *text, LsBudget *b)
{
    const char *end;
    *b = (LsBudget){.of = LS_BUDGET_OF_PROCESS};
    if (text == NULL || strcmp(text, "none") == 0)
        return true;
    b->least = strcmp(text, "min") == 0;
    if (b->least || (amount(text, &b->percent, &end) && strcmp(end, "%") == 0))
        return true;
    b->percent = 0;
    return ls_size_parse(text, &b->bytes);
}

int ls_options_planning(const LsOptions *o, LsPlanOptions *want)
{
    want->strategy = o->memory.strategy;
    want->no_inplace = o->memory.no_inplace;
    want->no_offsets = o->memory.no_offsets;
    want->prove = o->memory.prove;
    if (o->memory.strategy != NULL && !ls_plan_has_strategy(o->memory.strategy))
        return ls_options_bad("--strategy", o->memory.strategy, "one of" LS_STRATEGY_WORDS);
    if (o->memory.plan_time != NULL
        && (!ls_number_real(o->memory.plan_time, 0, 1e9, &want->seconds) || want->seconds <= 0))
        return ls_options_bad("--plan-time", o->memory.plan_time, "a number of seconds above 0");
    want->effort = (uint32_t)o->memory.plan_effort;
    return 0;
}

int ls_options_hints(const LsOptions *o, LsHints *hints)
{
    *hints = (LsHints){.keep = o->memory.keep.item, .nkeep = o->memory.keep.n,
                       .forget = o->memory.forget.item, .nforget = o->memory.forget.n};
    const int code = ls_options_recompute(o, &hints->recompute);
    if (hints->recompute == LS_RECOMPUTE_EXCEPT_LAST)   /* the last part has a plan of its own */
        hints->recompute = LS_RECOMPUTE_ALL;
    return code;
}

const char *ls_tiles_exclude(const LsOptions *o)
{
    return o->machine.target != NULL && strcmp(o->machine.target, "cpu") != 0 ? "--target=cuda"
           : o->samples.privacy != NULL   ? "--dp"
           : o->samples.grads != NULL     ? "--grads"
           : o->pipe.stages > 0           ? "--stages"
                                          : NULL;
}

int ls_options_tiling(const LsOptions *o, LsTiling *tiling)
{
    enum { MOST = 4096 };
    static const struct { const char *word; LsTilesOf of; } kind[] = {{"rows", LS_OF_ROWS},
                                                                      {"tokens", LS_OF_TOKENS}};
    const char *text = o->memory.tiles, *end = "";
    *tiling = (LsTiling){0};
    if (text == NULL || strcmp(text, "off") == 0)
        return 0;
    if (o->memory.no_tiles) {
        fprintf(stderr, "lowerset: --no-tiles is the opposite of --tiles: leave one of both out\n");
        return LS_EXIT_USAGE;
    }
    if (ls_tiles_exclude(o) != NULL) {
        fprintf(stderr, "lowerset: --tiles: values in parts do not go together with %s: leave one "
                        "of both out\n", ls_tiles_exclude(o));
        return LS_EXIT_USAGE;
    }
    if (strcmp(text, "auto") == 0)
        return 0;
    const bool counted = ls_options_count(text, &end, &tiling->tiles);
    for (int k = 0; k < 2 && counted; k++)
        if (strncmp(end, kind[k].word, strlen(kind[k].word)) == 0) {
            tiling->of = kind[k].of;
            end += strlen(kind[k].word);
        }
    if (!counted || tiling->tiles < 2 || tiling->tiles > MOST || *end != '@'
        || !ls_size_parse(end + 1, &tiling->least))
        return ls_options_bad("--tiles", text,
                              "N@SIZE, Nrows@SIZE or Ntokens@SIZE with a number of parts from 2 to "
                              "4096, as 8@16MiB, or auto or off");
    return 0;
}

int ls_options_recompute(const LsOptions *o, LsRecompute *policy)
{
    *policy = LS_RECOMPUTE_AUTO;
    if (o->memory.recompute != NULL && !ls_recompute_parse(o->memory.recompute, policy))
        return ls_options_bad("--recompute", o->memory.recompute, "one of " LS_RECOMPUTE_NAMES);
    if (*policy != LS_RECOMPUTE_EXCEPT_LAST)
        return 0;
    if (o->memory.keep.n + o->memory.forget.n > 0) {
        fprintf(stderr,
                "lowerset: --recompute=except-last says what each part runs again: leave %s out\n",
                o->memory.keep.n > 0 ? "--keep" : "--forget");
        return LS_EXIT_USAGE;
    }
    const int64_t steps = ls_options_parts(o) * (o->parts.accumulate > 1 ? o->parts.accumulate : 1);
    if (steps / (o->ranks.count > 1 ? o->ranks.count : 1) == 1)
        *policy = LS_RECOMPUTE_NONE;    /* the only part is the last one */
    return 0;
}

int ls_options_tolerance(const LsOptions *o, double *part)
{
    char text[64] = "0";
    double percent = 0;
    size_t n = o->reports.tolerance != NULL ? strlen(o->reports.tolerance) : 1;
    if (o->reports.tolerance != NULL && n < sizeof text)
        strcpy(text, o->reports.tolerance);
    if (n < sizeof text && text[n - 1] == '%')
        text[n - 1] = '\0';
    if (n >= sizeof text || !ls_number_real(text, 0, 1e9, &percent))
        return ls_options_bad("--tolerance", o->reports.tolerance,
                              "a percentage of at least 0, like 0.5%");
    *part = percent / 100;
    return 0;
}
