/* runtime/base/option_table.c -- see option_table.h. */
#include "runtime/base/option_table.h"

#include <float.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/number.h"

enum { LONGEST = 32, MOST_EDITS = 4 };  /* longest name that is compared; most edits between the
                                         * typed and the intended name */

/* Always false, so callers write: return refuse(...). */
__attribute__((format(printf, 2, 3))) static bool refuse(char *why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, LS_OPTION_WHY, fmt, ap);
    va_end(ap);
    return false;
}

static bool is_there(const LsOptionTable *t, int k)
{
    return t->row[k].kind != LS_OPTION_GROUP && (t->row[k].where & t->where) != 0;
}

/* Edits between the first n characters of a and the string b (Levenshtein). */
static int distance(const char *a, size_t n, const char *b)
{
    int line[LONGEST + 1];
    size_t nb = strlen(b) > LONGEST ? LONGEST : strlen(b);
    for (size_t j = 0; j <= nb; j++)
        line[j] = (int)j;
    for (size_t i = 0; i < n; i++) {
        int corner = line[0]++;
        for (size_t j = 1; j <= nb; j++) {
            int best = corner + (a[i] != b[j - 1]);
            best = line[j] + 1 < best ? line[j] + 1 : best;
            best = line[j - 1] + 1 < best ? line[j - 1] + 1 : best;
            corner = line[j];
            line[j] = best;
        }
    }
    return line[nb];
}

static const LsOption *unknown(const LsOptionTable *t, const char *arg, char *why)
{
    const char *near = NULL;
    int least = MOST_EDITS + 1;
    for (int k = 0; k < t->n; k++) {
        int d = is_there(t, k) ? distance(arg, strcspn(arg, "="), t->row[k].name) : least;
        if (d < least) {
            least = d;
            near = t->row[k].name;
        }
    }
    refuse(why, "unknown option '%s'%s%s%s", arg, near != NULL ? "; did you mean " : "",
            near != NULL ? near : "", near != NULL ? "?" : "");
    return NULL;
}

/* The row of the option, and its value in the same word; *value NULL: none. */
static const LsOption *find(const LsOptionTable *t, const char *arg, const char **value)
{
    for (int k = 0; k < t->n; k++) {
        const LsOption *op = &t->row[k];
        size_t n = strlen(op->name);
        if (!is_there(t, k))
            continue;
        if (strncmp(arg, op->name, n) == 0 && (arg[n] == '\0' || arg[n] == '=')) {
            *value = arg[n] == '=' ? arg + n + 1 : NULL;
            return op;
        }
        if (op->brief != NULL && strncmp(arg, op->brief, 2) == 0
            && (arg[2] == '\0' || (op->kind != LS_OPTION_FLAG && arg[1] != '-'))) {
            *value = arg[2] != '\0' ? arg + 2 : NULL;
            return op;
        }
    }
    return NULL;
}

/* The flag that --no-FLAG clears; NULL: no such flag. */
static const LsOption *find_negative(const LsOptionTable *t, const char *arg)
{
    static const char no[] = "--no-";
    const size_t n = sizeof no - 1;
    if (!t->negative || strncmp(arg, no, n) != 0)
        return NULL;
    for (int k = 0; k < t->n; k++)
        if (is_there(t, k) && t->row[k].kind == LS_OPTION_FLAG
            && strcmp(t->row[k].name + strlen("--"), arg + n) == 0)
            return &t->row[k];
    return NULL;
}

static bool append(LsList *list, const char *value, char *why)
{
    const char **more = realloc(list->item, (size_t)(list->n + 1) * sizeof *more);
    if (more == NULL)
        return refuse(why, "out of memory");
    list->item = more;
    list->item[list->n++] = value;
    return true;
}

/* Whether a value, if any, stands behind a '=' in the same word: the help then has "[=VALUE]". */
static bool joins_its_value(const LsOption *op)
{
    return op->kind == LS_OPTION_AMOUNT || op->kind == LS_OPTION_MAYBE;
}

static bool store(void *field, const LsOption *op, const char *value, char *why)
{
    switch (op->kind) {
    case LS_OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case LS_OPTION_TEXT:
    case LS_OPTION_OUTPUT:
        *(const char **)field = value;
        return true;
    case LS_OPTION_MAYBE:
        *(const char **)field = value != NULL ? value : "";
        return true;
    case LS_OPTION_LIST:
        return append(field, value, why);
    case LS_OPTION_REAL:
        return ls_number_real(value, (double)op->least, FLT_MAX, field)
               || refuse(why, "%s needs a number of at least %" PRId64 ", not '%s'", op->name,
                         op->least, value);
    default:
        break;
    }
    if (op->kind == LS_OPTION_AMOUNT && value == NULL) {
        *(int64_t *)field = -1;
        return true;
    }
    const bool any = op->kind == LS_OPTION_WHOLE_OR_ANY;
    if (any && strcmp(value, "any") == 0) {
        *(int64_t *)field = LS_OPTION_ANY;
        return true;
    }
    if (ls_number_whole(value, op->least, op->most, field))
        return true;
    if (op->most == INT64_MAX)
        return refuse(why, "%s needs a whole number of at least %" PRId64 ", not '%s'", op->name,
                      op->least, value);
    return refuse(why, "%s needs a whole number from %" PRId64 " to %" PRId64 "%s, not '%s'",
                  op->name, op->least, op->most, any ? ", or any" : "", value);
}

/* Only lists and flags may be repeated; a repeated flag says the same. */
static bool is_first(const LsOptionTable *t, const LsOption *op, const char *value,
                     const char **given, char *why)
{
    if (given == NULL || op->kind == LS_OPTION_FLAG || op->kind == LS_OPTION_LIST)
        return true;
    const char **before = &given[op - t->row];
    if (*before != NULL)
        return refuse(why, "%s is given twice: '%s' and '%s'", op->name, *before, value);
    *before = value != NULL ? value : "";
    return true;
}

const LsOption *ls_option_take(const LsOptionTable *t, void *fields, const char **given, int argc,
                               char **argv, int *i, char why[LS_OPTION_WHY])
{
    const char *value = NULL;
    const LsOption *op = find(t, argv[*i], &value),
                   *negative = op == NULL ? find_negative(t, argv[*i]) : NULL;
    if (negative != NULL) {
        *(bool *)(void *)((char *)fields + negative->at) = false;
        return negative;
    }
    if (op == NULL)
        return unknown(t, argv[*i], why);
    bool needs = op->kind != LS_OPTION_FLAG && !joins_its_value(op);
    if (op->kind == LS_OPTION_FLAG && value != NULL)
        return refuse(why, "%s takes no value", op->name), NULL;
    if (needs && value == NULL && *i + 1 < argc)
        value = argv[++*i];
    if (needs && (value == NULL || *value == '\0'))
        return refuse(why, "%s needs %s", op->name, op->arg), NULL;
    if (op->kind == LS_OPTION_MAYBE && value != NULL && *value == '\0')
        return refuse(why, "%s= needs a value; alone it has none", op->name), NULL;
    return is_first(t, op, value, given, why) && store((char *)fields + op->at, op, value, why)
               ? op
               : NULL;
}

/* ---- help ---- */
enum { FROM = 34, END = 100 };          /* columns of an option's description */

static void put_text(FILE *to, const char *text)
{
    int column = FROM;
    while (*text != '\0') {
        int n = (int)strcspn(text, " ");
        if (column + n > END) {
            fprintf(to, "\n%*s", FROM, "");
            column = FROM;
        }
        fprintf(to, "%s%.*s", column > FROM ? " " : "", n, text);
        column += n + 1;
        text += n + (text[n] == ' ');
    }
    fputc('\n', to);
}

static void put_option(FILE *to, const LsOption *op, bool briefs)
{
    char left[80];
    const char *brief = op->brief != NULL ? op->brief : briefs ? "  " : "";
    int n = snprintf(left, sizeof left, "%s%s%s%s%s", brief,
                     op->brief != NULL ? ", "
                     : briefs          ? "  "
                                       : "",
                     op->name, op->arg != NULL && !joins_its_value(op) ? " " : "",
                     op->arg != NULL ? op->arg : "");
    fprintf(to, "  %-*s ", FROM - 3, left);
    if (n > FROM - 3)
        fprintf(to, "\n%*s", FROM, "");
    put_text(to, op->help);
}

void ls_option_help(FILE *to, const LsOptionTable *t)
{
    const char *title = NULL;
    bool briefs = false;
    for (int k = 0; k < t->n; k++)
        briefs |= is_there(t, k) && t->row[k].brief != NULL;
    for (int k = 0; k < t->n; k++) {
        if (t->row[k].kind == LS_OPTION_GROUP)
            title = t->row[k].name;
        if (!is_there(t, k))
            continue;
        if (title != NULL)
            fprintf(to, "\n%s\n", title);
        title = NULL;
        put_option(to, &t->row[k], briefs);
    }
}
