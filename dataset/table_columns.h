/* dataset/table_columns.h -- what the columns of tables are: numbers or categories, found by
 * reading all rows, and what a field of each is worth. */
#ifndef LS_DATASET_TABLE_COLUMNS_H
#define LS_DATASET_TABLE_COLUMNS_H

#include "dataset/category_set.h"
#include "dataset/csv_rows.h"
#include "dataset/pack_source.h"

typedef struct LsTableColumn {
    char *name;
    bool left_out, is_label, is_category, is_whole; /* is_whole: all numbers are integers */
    bool told_category;                             /* by --categories */
    int64_t numbers, words, missing;                /* rows of each kind */
    char *word;
    int64_t word_line; /* the first that is no number */
    double sum;
    double mean;        /* for missing numbers */
    LsCategories categories; /* sorted by their bytes */
} LsTableColumn;

typedef struct LsTable {
    const LsPackOptions *o;
    LsFile *file;
    int files;
    LsCsvRows rows; /* of the file under way */
    LsTableColumn *column;
    int columns;
    bool has_names; /* the first row of each file */
    int64_t samples;
    enum { LS_MISSING_ERROR, LS_MISSING_MEAN, LS_MISSING_DROP, LS_MISSING_VALUE } missing;
    double value;
    const LsDataFile *like; /* NULL */
} LsTable;

/* Reads all rows, and decides. */
bool ls_table_open(LsTable *t, const LsPackOptions *o, const LsDataFile *like, LsError *e);
void ls_table_close(LsTable *t);
/* Begins file k; then each row in turn. *end: there is none. *drop: it is left out. */
bool ls_table_begin(LsTable *t, int k, LsError *e);
bool ls_table_row(LsTable *t, bool *end, bool *drop, LsError *e);
/* The number of a field of the row: that of its category, or itself. */
bool ls_table_value(const LsTable *t, int column, double *v, LsError *e);

#endif
