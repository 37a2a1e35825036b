/* dataset/csv_rows.h -- records of a table (RFC 4180): fields between commas, semicolons or tabs,
 * quoted or not; lines end with LF, CR or both; blank lines are passed over. */
#ifndef LS_DATASET_CSV_ROWS_H
#define LS_DATASET_CSV_ROWS_H

#include "runtime/base/file.h"

typedef struct LsCsvRows {
    const char *path;
    const char *begin, *p, *end;
    int64_t line, next_line; /* where the record begins, from 1; of p */
    char separator;
    char **field;
    int n, cap; /* of the record, without quotes and outer blanks */
    char *text;
    size_t room, used;
} LsCsvRows;

/* Passes over a byte order mark, and finds the separator in the first record. */
void ls_csv_open(LsCsvRows *r, const LsFile *f);
void ls_csv_rewind(LsCsvRows *r);
/* The next record; *end: there is none. */
bool ls_csv_next(LsCsvRows *r, bool *end, LsError *e);
void ls_csv_close(LsCsvRows *r);

#endif
