/* cli/options/scale_spec.c -- see scale_spec.h. */
#include "cli/options/scale_spec.h"

#include "base/arena.h"
#include "runtime/base/number.h"

#include <float.h>
#include <string.h>

/* The counter of good steps is a float: it counts to 2^24. */
enum { PERIOD_MOST = 1 << 24, MOST_SPEC = 256 };
enum { INIT, PERIOD, FACTOR, LAST, NSETTINGS };        /* LAST: min, or backoff */

static const struct {
    const char *word;
    const char *name[NSETTINGS];
    double usual[NSETTINGS];
} machine[] = {
    {"dynamic", {"init", "period", "factor", "min"}, {32768, 2000, 2, 1}},
    {"torch", {"init", "period", "factor", "backoff"}, {65536, 2000, 2, 0.5}},
};
enum { NMACHINES = sizeof machine / sizeof *machine, DYNAMIC = 0, TORCH = 1 };

static const char *const wanted[NMACHINES][NSETTINGS] = {
    {"a float above 0", "a whole number from 1 to 2^24", "a number above 1", "a number from 0"},
    {"a float above 0", "a whole number from 1 to 2^24", "a number above 1",
     "a number above 0 and below 1"},
};

static bool is_positive(const char *text, double *v)
{
    return ls_number_real(text, FLT_MIN, FLT_MAX, v);
}

static bool read_value(int of, int k, const char *text, double *v)
{
    int64_t whole;
    switch (k) {
    case INIT: return is_positive(text, v);
    case PERIOD:
        if (!ls_number_whole(text, 1, PERIOD_MOST, &whole))
            return false;
        *v = (double)whole;
        return true;
    case FACTOR: return ls_number_real(text, 1, FLT_MAX, v) && (float)*v > 1;
    default:
        return of == TORCH ? ls_number_real(text, DBL_MIN, 1, v) && *v < 1
                           : ls_number_real(text, 0, FLT_MAX, v);
    }
}

/* Reads "NAME=VALUE", which is split off. */
static bool read_setting(int of, char *text, double value[NSETTINGS], unsigned *given, char *why,
                         size_t size)
{
    char *equal = strchr(text, '=');
    int k = 0;
    if (equal != NULL)
        *equal = '\0';
    while (k < NSETTINGS && strcmp(machine[of].name[k], text) != 0)
        k++;
    if (k == NSETTINGS || equal == NULL)
        snprintf(why, size,
                 "%s takes no '%s'; it takes init= period= factor= %s=", machine[of].word, text,
                 machine[of].name[LAST]);
    else if (*given >> k & 1)
        snprintf(why, size, "%s is given twice", text);
    else if (!read_value(of, k, equal + 1, &value[k]))
        snprintf(why, size, "%s=%s: must be %s", text, equal + 1, wanted[of][k]);
    else {
        *given |= 1u << k;
        return true;
    }
    return false;
}

static LsLossScale moving(int of, const double v[NSETTINGS])
{
    const bool torch = of == TORCH;
    return (LsLossScale){.on = true, .start = (float)v[INIT],
                         .rule = {.period = v[PERIOD], .grow = torch ? v[FACTOR] : (float)v[FACTOR],
                                  .shrink = torch ? v[LAST] : (float)v[FACTOR], .divides = !torch,
                                  .least = torch ? 0 : (float)v[LAST]}};
}

bool ls_scale_parse(const char *text, LsType compute, LsLossScale *to, char *why, size_t size)
{
    char copy[MOST_SPEC];
    double value[NSETTINGS];
    unsigned given = 0;
    int of = 0;
    *to = (LsLossScale){0};
    text = text != NULL ? text : compute == LS_F16 ? "dynamic" : "none";
    if (strcmp(text, "none") == 0)
        return true;
    if (is_positive(text, &to->start)) {
        to->on = true;
        to->start = (float)to->start;
        return true;
    }
    size_t n = strcspn(text, ":");
    while (of < NMACHINES
           && (strlen(machine[of].word) != n || strncmp(machine[of].word, text, n) != 0))
        of++;
    if (of == NMACHINES || strlen(text) >= sizeof copy)
        return snprintf(why, size,
                        "'%.99s' is not one of none, dynamic, torch, or a number above 0", text),
               false;
    memcpy(value, machine[of].usual, sizeof value);
    strcpy(copy, text);
    for (char *at = copy[n] == ':' ? copy + n + 1 : NULL, *next; at != NULL; at = next) {
        next = strchr(at, ',');
        if (next != NULL)
            *next++ = '\0';
        if (!read_setting(of, at, value, &given, why, size))
            return false;
    }
    *to = moving(of, value);
    return true;
}

void ls_scale_help(FILE *to)
{
    fprintf(to, "    none\n    NUMBER  (does not change)\n");
    for (int of = 0; of < NMACHINES; of++) {
        fprintf(to, "    %s", machine[of].word);
        for (int k = 0; k < NSETTINGS; k++)
            fprintf(to, "%s%s=%g", k == 0 ? ":" : ",", machine[of].name[k], machine[of].usual[k]);
        fprintf(to, "%s\n",
                of == TORCH ? "  (as PyTorch's GradScaler)" : "  (as jmp's DynamicLossScale)");
    }
}

const char *ls_scale_text(struct LsArena *a, const LsLossScale *s)
{
    const LsScaleAttr *r = &s->rule;
    if (!s->on)
        return "none";
    if (r->period == 0)
        return ls_arena_printf(a, "%.9g", s->start);
    return ls_arena_printf(a, "%s:init=%.9g,period=%.9g,factor=%.9g,%s=%.9g",
                           machine[r->divides ? DYNAMIC : TORCH].word, s->start, r->period, r->grow,
                           r->divides ? "min" : "backoff", r->divides ? r->least : r->shrink);
}
