/* cli/options/optimizer_spec.c -- see optimizer_spec.h. */
#include "cli/options/optimizer_spec.h"

#include "base/arena.h"
#include "cli/options/trainer_words.h"
#include "runtime/base/number.h"

#include <math.h>
#include <string.h>

enum { MOST_SPEC = 256 };

static double *hyper_of(LsOptimizerOptions *op, const LsSetting *s)
{
    return (double *)ls_hyper_find(&op->hyper, s->hyper, strlen(s->hyper));
}

/* Parses one value. lr: parsed as by the trainer. */
static bool read_value(const LsSetting *s, const char *text, LsOptimizerOptions *op, double *lr)
{
    if (s->hyper == NULL)
        return ls_trainer_lr(text, lr);
    double *to = hyper_of(op, s);
    return ls_number_real(text, 0, 1e30, to) && (s->kind != LS_SET_PART || *to < 1)
        && (s->kind != LS_SET_WHOLE || (*to >= 1 && *to < 1 << 24 && *to == floor(*to)));
}

/* The place of the setting of that name; -1: the optimizer has no such setting. */
static int find_setting(const LsOptimizer *of, const char *name, bool has_value)
{
    for (int k = 0; k < LS_SETTINGS && of->setting[k].name != NULL; k++)
        if (strcmp(of->setting[k].name, name) == 0)
            return has_value == (of->setting[k].kind != LS_SET_FLAG) ? k : -1;
    return -1;
}

static bool no_setting(const LsOptimizer *of, const char *name, char *why, size_t size)
{
    size_t n = (size_t)snprintf(why, size, "%s takes no '%s'; it takes", of->name, name);
    for (int k = 0; k < LS_SETTINGS && of->setting[k].name != NULL && n < size; k++)
        n += (size_t)snprintf(why + n, size - n, " %s%s", of->setting[k].name,
                              of->setting[k].kind == LS_SET_FLAG ? "" : "=");
    if (n < size && of->setting[0].name == NULL)
        snprintf(why + n, size - n, " nothing");
    return false;
}

/* Parses one "name=value" or "nesterov", already split off; given: bits of the settings before
 * it. */
static bool read_one(const LsOptimizer *of, char *text, unsigned *given, LsOptimizerOptions *op,
                     double *lr, char *why, size_t size)
{
    char *value = strchr(text, '=');
    if (value != NULL)
        *value++ = '\0';
    int k = find_setting(of, text, value != NULL);
    if (k < 0)
        return no_setting(of, text, why, size);
    if (*given & 1u << k)
        return snprintf(why, size, "%s is given twice", text), false;
    *given |= 1u << k;
    const LsSetting *s = &of->setting[k];
    if (s->kind == LS_SET_FLAG)
        *hyper_of(op, s) = 1;
    else if (!read_value(s, value, op, lr))
        return snprintf(why, size, "%s=%s: must be a %s", text, value,
                        s->kind == LS_SET_WHOLE  ? "whole number of at least 1, below 2^24"
                        : s->kind == LS_SET_PART ? "number of at least 0 and below 1"
                                                 : "number of at least 0"), false;
    return true;
}

static bool is_given(const LsOptimizer *of, unsigned given, const char *name)
{
    for (int k = 0; k < LS_SETTINGS && of->setting[k].name != NULL; k++)
        if (strcmp(of->setting[k].name, name) == 0)
            return given >> k & 1;
    return false;
}

static int find_kind(const char *text, size_t n)
{
    for (int k = 0; k < LS_NOPTIMIZERS; k++)
        if (strlen(ls_optimizer_row[k].name) == n && memcmp(ls_optimizer_row[k].name, text, n) == 0)
            return k;
    return -1;
}

static bool no_kind(const char *text, size_t n, char *why, size_t size)
{
    size_t at = (size_t)snprintf(why, size, "'%.*s' is not one of", (int)(n < 99 ? n : 99), text);
    for (int k = 0; k < LS_NOPTIMIZERS && at < size; k++)
        at += (size_t)snprintf(why + at, size - at, " %s", ls_optimizer_row[k].name);
    return false;
}

static void set_usual(const LsOptimizer *of, LsOptimizerOptions *op, double *lr)
{
    *lr = 0.01;
    for (int k = 0; k < LS_SETTINGS && of->setting[k].name != NULL; k++)
        if (of->setting[k].usual != NULL)
            read_value(&of->setting[k], of->setting[k].usual, op, lr);
}

bool ls_optimizer_parse(const char *text, LsOptimizerOptions *op, double *lr, char *why,
                        size_t size)
{
    char copy[MOST_SPEC];
    unsigned given = 0;
    size_t n = strcspn(text, ":");
    int kind = find_kind(text, n);
    if (kind < 0 || strlen(text) >= sizeof copy)
        return no_kind(text, n, why, size);
    const LsOptimizer *of = &ls_optimizer_row[kind];
    *op = (LsOptimizerOptions){.kind = (LsOptimizerKind)kind, .accumulate = 1};
    set_usual(of, op, lr);
    strcpy(copy, text);
    for (char *at = copy[n] == ':' ? copy + n + 1 : NULL, *next; at != NULL; at = next) {
        next = strchr(at, ',');
        if (next != NULL)
            *next++ = '\0';
        if (!read_one(of, at, &given, op, lr, why, size))
            return false;
    }
    for (int k = 0; k < LS_SETTINGS && of->setting[k].name != NULL; k++)
        if (of->setting[k].needs != NULL && given & 1u << k
            && !is_given(of, given, of->setting[k].needs))
            return snprintf(why, size, "%s has a meaning with %s alone", of->setting[k].name,
                            of->setting[k].needs),
                   false;
    if (of->op == LS_OP_MUON && *lr == 0)
        return snprintf(why, size, "muon needs an lr above 0: adam_lr counts in parts of it"),
               false;
    if (of->op == LS_OP_MUON)
        op->hyper.rate_part /= *lr;
    if (op->hyper.nesterov != 0 && op->hyper.momentum == 0)
        return snprintf(why, size, "nesterov needs a momentum above 0"), false;
    if (of->op == LS_OP_SGD && op->hyper.bf16 != 0 && op->hyper.momentum == 0)
        return snprintf(why, size, "bf16 needs a momentum above 0: there is no other moment"),
               false;
    return true;
}

/* The names of the state beside the first parameter that has any, "m, v". */
static const char *suffixes(const LsGraph *g)
{
    const char *all = "";
    for (uint32_t i = 1; i < g->nvalue; i++) {
        const size_t n = strlen(g->value[i].name);
        for (uint32_t k = i + 1; g->value[i].kind == LS_V_PARAM && k < g->nvalue; k++)
            if (g->value[k].of_optimizer && strncmp(g->value[k].name, g->value[i].name, n) == 0
                && g->value[k].name[n] == '.' && strchr(g->value[k].name + n + 1, '.') == NULL)
                all = ls_arena_printf(g->arena, "%s%s%s", all, *all != '\0' ? ", " : "",
                                      g->value[k].name + n + 1);
        if (*all != '\0')
            return all;
    }
    return "none";
}

const char *ls_optimizer_state_text(const LsGraph *g, LsOptimizerKind kind, int real_bytes)
{
    int64_t state = 0, trained = 0;
    g = g->rank.updates != NULL ? g->rank.updates : g;
    for (uint32_t i = 1; i < g->nvalue; i++) {
        if (g->value[i].of_optimizer)
            state += ls_value_bytes(g, (LsValueId){i}, real_bytes);
        else if (g->value[i].kind == LS_V_PARAM && g->value[i].once_written)
            trained += ls_count(&g->value[i].shape);
    }
    return ls_arena_printf(g->arena, "%s: %.5g bytes of state per parameter (%s)",
                           ls_optimizer_row[kind].name,
                           trained > 0 ? (double)state / (double)trained : 0.0, suffixes(g));
}

void ls_optimizer_help(FILE *to)
{
    for (int kind = 0; kind < LS_NOPTIMIZERS; kind++) {
        const LsOptimizer *of = &ls_optimizer_row[kind];
        const char *gap = ":";
        fprintf(to, "    %s", of->name);
        for (int k = 0; k < LS_SETTINGS && of->setting[k].name != NULL; k++, gap = ",")
            fprintf(to, of->setting[k].usual != NULL ? "%s%s=%s" : "%s%s", gap, of->setting[k].name,
                    of->setting[k].usual);
        fprintf(to, "\n        %s\n", of->formula);
    }
}
