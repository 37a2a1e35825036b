/* cli/report/check_table.h -- the results of lowerset check: a row for each check, and the
 * verdict. */
#ifndef LS_CLI_REPORT_CHECK_TABLE_H
#define LS_CLI_REPORT_CHECK_TABLE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum { LS_CHECK_PASSED, LS_CHECK_FAILED, LS_CHECK_SKIPPED } LsCheckResult;

typedef struct LsCheckRow {
    const char *name;
    LsCheckResult result;
    double off, limit;          /* the error, and its limit; limit < 0: the check has no such
                                 * figure */
    const char *says;
} LsCheckRow;

typedef struct LsCheckTable {
    LsArena *arena;
    const char *model, *plan;   /* plan: hash */
    LsCheckRow *row; uint32_t nrow, room;
} LsCheckTable;

void ls_check_add(LsCheckTable *t, LsCheckRow row);
/* Number of checks that failed. */
uint32_t ls_check_failed(const LsCheckTable *t);
/* Both print to stdout. */
void ls_check_print(const LsCheckTable *t);
void ls_check_print_json(const LsCheckTable *t);

#endif
