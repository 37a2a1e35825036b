/* runtime/base/option_table.h -- command-line options as one table, for the parser and for the help
 * text.
 *
 * --name VALUE and --name=VALUE are the same. A brief name takes its value right behind it, or as
 * the next word. */
#ifndef LS_RUNTIME_BASE_OPTION_TABLE_H
#define LS_RUNTIME_BASE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum {
    LS_OPTION_GROUP,            /* not an option: a heading of the help text */
    LS_OPTION_FLAG,             /* bool */
    LS_OPTION_TEXT,             /* const char *, never empty */
    LS_OPTION_OUTPUT,           /* the same, the name of an output file */
    LS_OPTION_MAYBE,            /* the same; the value needs a '=', and is "" without */
    LS_OPTION_WHOLE,            /* int64_t, `least` to `most` */
    LS_OPTION_WHOLE_OR_ANY,     /* the same, or the word any: LS_OPTION_ANY */
    LS_OPTION_AMOUNT,           /* the same; the value needs a '=', and is -1 without */
    LS_OPTION_REAL,             /* double, from `least` to the largest float */
    LS_OPTION_LIST,             /* LsList, which collects */
} LsOptionKind;

enum { LS_OPTION_WHY = 600, LS_OPTION_ANY = -1 };
typedef struct LsList { const char **item; int n; } LsList;     /* on the heap */

typedef struct LsOption {
    const char *name, *brief;   /* "--name", or the heading; "-x" or NULL */
    const char *arg;            /* the value's name in the help; NULL for flags */
    LsOptionKind kind;
    int64_t least, most;        /* of numbers */
    size_t at;                  /* offset of the field that receives the value */
    int where;                  /* bits: the commands that take the option */
    const char *help;
} LsOption;

/* The row of a heading. */
#define LS_OPTION_HEADING(title) {.name = (title), .kind = LS_OPTION_GROUP}

typedef struct LsOptionTable {
    const LsOption *row; int n;
    int where;                  /* only rows with one of these bits apply */
    bool negative;              /* --no-FLAG clears a flag */
} LsOptionTable;

/* Parses the option at argv[*i] into `fields`; *i advances when the value is the next word. given:
 * by row, the earlier values, all NULL at first: an option is given once, unless it collects a
 * list. given NULL: the last value counts. Returns the row; or NULL with a sentence in `why`: no
 * such option (with the likely intended name, if any), or an invalid value. */
const LsOption *ls_option_take(const LsOptionTable *t, void *fields, const char **given, int argc,
                               char **argv, int *i, char why[LS_OPTION_WHY]);

/* Prints headings and options, 100 columns wide. */
void ls_option_help(FILE *to, const LsOptionTable *t);

#endif
