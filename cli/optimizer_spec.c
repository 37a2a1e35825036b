/* cli/optimizer_spec.c -- see optimizer_spec.h. */
#include "cli/optimizer_spec.h"

#include "cli/trainer_words.h"
#include "runtime/base/number.h"

#include <string.h>

static const char *const kind[] = {"sgd", "adam", "adamw", "none"};     /* by LsOptimizerKind */
enum { NKINDS = sizeof kind / sizeof *kind, MOST_SPEC = 256 };

typedef struct Setting {
    const char *name;
    bool taken[NKINDS];         /* kinds that have the setting */
    const char *usual[NKINDS];  /* default, as text */
    bool is_part;               /* below 1 */
    size_t at;                  /* offset in LsOptimizerOptions; unused for lr */
} Setting;
#define AT(field) offsetof(LsOptimizerOptions, field)

static const Setting setting[] = {
    {"momentum", {1, 0, 0, 0}, {"0", "", "", ""}, true, AT(momentum)},
    {"beta1", {0, 1, 1, 0}, {"", "0.9", "0.9", ""}, true, AT(beta1)},
    {"beta2", {0, 1, 1, 0}, {"", "0.999", "0.999", ""}, true, AT(beta2)},
    {"eps", {0, 1, 1, 0}, {"", "1e-8", "1e-8", ""}, false, AT(eps)},
    {"wd", {1, 1, 1, 0}, {"0", "0", "0.01", ""}, false, AT(decay)},
    {"lr", {1, 1, 1, 0}, {"0.01", "1e-3", "1e-3", ""}, false, 0},
};
enum { NSETTINGS = sizeof setting / sizeof *setting, NESTEROV = NSETTINGS };

static bool is_lr(int k) { return setting[k].name[0] == 'l'; }

/* Parses one value. lr: parsed as by the trainer. */
static bool read_value(int k, const char *text, LsOptimizerOptions *op, double *lr)
{
    double *to = (double *)(void *)((char *)op + setting[k].at);
    if (is_lr(k))
        return ls_trainer_lr(text, lr);
    return ls_number_real(text, 0, 1e30, to) && (!setting[k].is_part || *to < 1);
}

/* The setting of that name for an optimizer of that kind; -1: no such setting. */
static int find_setting(int of, const char *name, bool has_value)
{
    if (strcmp(name, "nesterov") == 0)
        return of == LS_SGD && !has_value ? NESTEROV : -1;
    for (int k = 0; k < NSETTINGS; k++)
        if (setting[k].taken[of] && strcmp(setting[k].name, name) == 0)
            return has_value ? k : -1;
    return -1;
}

static bool no_setting(int of, const char *name, char *why, size_t size)
{
    size_t n = (size_t)snprintf(why, size, "%s takes no '%s'; it takes", kind[of], name);
    for (int k = 0; k < NSETTINGS && n < size; k++)
        if (setting[k].taken[of])
            n += (size_t)snprintf(why + n, size - n, " %s=", setting[k].name);
    if (n < size)
        snprintf(why + n, size - n, "%s", of == LS_SGD ? " nesterov" : of == LS_OPT_NONE ? " nothing"
                                                                     : "");
    return false;
}

/* Parses one "name=value" or "nesterov", already split off; given: bits of the settings before
 * it. */
static bool read_one(int of, char *text, unsigned *given, LsOptimizerOptions *op, double *lr,
                     char *why, size_t size)
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
    if (k == NESTEROV)
        op->nesterov = true;
    else if (!read_value(k, value, op, lr))
        return snprintf(why, size, "%s=%s: must be a number of at least 0%s", text, value,
                        setting[k].is_part ? " and below 1" : ""), false;
    return true;
}

static int find_kind(const char *text, size_t n)
{
    for (int k = 0; k < NKINDS; k++)
        if (strlen(kind[k]) == n && memcmp(kind[k], text, n) == 0)
            return k;
    return -1;
}

bool ls_optimizer_parse(const char *text, LsOptimizerOptions *op, double *lr, char *why,
                        size_t size)
{
    char copy[MOST_SPEC];
    unsigned given = 0;
    size_t n = strcspn(text, ":");
    int of = find_kind(text, n);
    if (of < 0 || strlen(text) >= sizeof copy)
        return snprintf(why, size, "'%.*s' is not one of sgd adam adamw none", (int)(n < 99 ? n : 99),
                        text), false;
    *op = (LsOptimizerOptions){.kind = (LsOptimizerKind)of, .accumulate = 1};
    *lr = 0.01;
    for (int k = 0; k < NSETTINGS; k++)
        if (setting[k].taken[of])
            read_value(k, setting[k].usual[of], op, lr);
    strcpy(copy, text);
    for (char *at = copy[n] == ':' ? copy + n + 1 : NULL, *next; at != NULL; at = next) {
        next = strchr(at, ',');
        if (next != NULL)
            *next++ = '\0';
        if (!read_one(of, at, &given, op, lr, why, size))
            return false;
    }
    if (op->nesterov && op->momentum == 0)
        return snprintf(why, size, "nesterov needs a momentum above 0"), false;
    return true;
}

void ls_optimizer_help(FILE *to)
{
    for (int of = 0; of < NKINDS; of++) {
        fprintf(to, "    %s", kind[of]);
        const char *gap = ":";
        for (int k = 0; k < NSETTINGS; k++)
            if (setting[k].taken[of]) {
                fprintf(to, "%s%s=%s", gap, setting[k].name, setting[k].usual[of]);
                gap = ",";
            }
        fprintf(to, "%s\n", of == LS_SGD ? ",nesterov" : of == LS_OPT_NONE ? "  (no update)" : "");
    }
}
