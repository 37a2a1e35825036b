/* runtime/base/option_table.h -- options of a command line as one table: for the parser and for the help text.
 *
 * --name VALUE and --name=VALUE are the same; a brief name takes its value right behind it, or as the next word. */
#ifndef LS_RUNTIME_BASE_OPTION_TABLE_H
#define LS_RUNTIME_BASE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum {
    LS_OPTION_GROUP,            /* no option: a heading of the help text for those that follow */
    LS_OPTION_FLAG,             /* bool */
    LS_OPTION_TEXT,             /* const char *, never empty */
    LS_OPTION_OUTPUT,           /* the same, the name of a file that is written */
    LS_OPTION_WHOLE,            /* int64_t, `least` to `most` */
    LS_OPTION_AMOUNT,           /* the same; its value needs a '=', and is -1 without */
    LS_OPTION_REAL,             /* double, from `least` to the largest float */
    LS_OPTION_LIST,             /* LsList, which collects */
} LsOptionKind;

enum { LS_OPTION_WHY = 600 };
typedef struct LsList { const char **item; int n; } LsList;     /* on the heap */

typedef struct LsOption {
    const char *name, *brief;   /* "--name", or the heading; "-x" or NULL */
    const char *arg;            /* what the value is called in the help; NULL for flags */
    LsOptionKind kind;
    int64_t least, most;        /* of numbers */
    size_t at;                  /* field of the structure that is filled in */
    int where;                  /* bits: the commands that have it */
    const char *help;
} LsOption;

typedef struct LsOptionTable {
    const LsOption *row; int n;
    int where;                  /* only rows with one of these bits are there */
    bool negative;              /* --no-FLAG takes a flag back */
} LsOptionTable;

/* The option at argv[*i], which moves on when its value is the next word; its value goes into `fields`.
 * given: by row, what was given before, all NULL at first: options that do not collect are given once. NULL: the
 * last one counts. Returns the row; NULL with a sentence in `why`: there is no such option (it names the one that
 * was meant, if any), or the value is none for it. */
const LsOption *ls_option_take(const LsOptionTable *t, void *fields, const char **given, int argc, char **argv, int *i,
                               char why[LS_OPTION_WHY]);

/* Headings and options, 100 columns wide. */
void ls_option_help(FILE *to, const LsOptionTable *t);

#endif
