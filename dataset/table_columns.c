/* dataset/table_columns.c -- see the header. Tables are read twice here: for the kinds of columns,
 * and for the categories of those that have some. */
#include "dataset/table_columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_CATEGORIES = 1 << 16, MOST_COLUMNS = 1 << 16 };

static bool no_memory(LsError *e)
{
    return ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

static bool is_missing(const char *s)
{
    static const char *const word[] = {"", "NA", "N/A", "nan", "null", "none", "?"};
    for (size_t k = 0; k < sizeof word / sizeof *word; k++)
        if (strcasecmp(s, word[k]) == 0)
            return true;
    return false;
}

/* A finite decimal number; strtod alone takes hexadecimal and words, too. */
static bool number(const char *s, double *v)
{
    char *end;
    if (s[strspn(s, "+-.0123456789eE")] != '\0' || *s == '\0')
        return false;
    *v = strtod(s, &end);
    return *end == '\0' && end > s && isfinite(*v);
}

/* ---- rows ---- */

bool ls_table_begin(LsTable *t, int k, LsError *e)
{
    bool end;
    ls_csv_close(&t->rows);
    ls_csv_open(&t->rows, &t->file[k]);
    if (!t->has_names)
        return true;
    if (!ls_csv_next(&t->rows, &end, e))
        return false;
    for (int c = 0; c < t->columns; c++)
        if (end || t->rows.n != t->columns || strcmp(t->rows.field[c], t->column[c].name) != 0)
            return ls_fail(e, LS_EXIT_DATA, "%s: other names of columns than %s", t->rows.path,
                           t->file[0].path);
    return true;
}

static bool next_row(LsTable *t, bool *end, LsError *e)
{
    if (!ls_csv_next(&t->rows, end, e))
        return false;
    return *end || t->rows.n == t->columns
           || ls_fail(e, LS_EXIT_DATA, "%s:%" PRId64 ": %d fields, but %s %d", t->rows.path,
                      t->rows.line, t->rows.n, t->has_names ? "the names are" : "the first row has",
                      t->columns);
}

static bool is_used(const LsTableColumn *c)
{
    return !c->left_out;
}

static bool row_is_dropped(const LsTable *t)
{
    for (int k = 0; k < t->columns; k++)
        if (t->missing == LS_MISSING_DROP && is_used(&t->column[k]) && is_missing(t->rows.field[k]))
            return true;
    return false;
}

bool ls_table_row(LsTable *t, bool *end, bool *drop, LsError *e)
{
    *drop = false;
    if (!next_row(t, end, e))
        return false;
    *drop = !*end && row_is_dropped(t);
    return true;
}

static bool lacks(const LsTable *t, const LsTableColumn *c, LsError *e)
{
    return ls_fail(e, LS_EXIT_DATA,
                   "%s:%" PRId64 ": no value in column '%s'; --missing=drop leaves "
                   "the row out%s",
                   t->rows.path, t->rows.line, c->name,
                   c->is_label ? "" : ", --missing=mean or a number takes another");
}

bool ls_table_value(const LsTable *t, int k, double *v, LsError *e)
{
    const LsTableColumn *c = &t->column[k];
    const char *s = t->rows.field[k];
    if (is_missing(s) && (c->is_label || (t->missing == LS_MISSING_ERROR)))
        return lacks(t, c, e);
    if (c->is_category) {
        const int64_t n = ls_category_find(&c->categories, is_missing(s) ? "" : s);
        *v = (double)n;
        return n >= 0
               || ls_fail(e, LS_EXIT_DATA,
                          "%s:%" PRId64 ": column '%s' has '%s', which is none of "
                          "its %" PRId64 " categories%s%s",
                          t->rows.path, t->rows.line, c->name, s, c->categories.names.n,
                          t->like ? " in " : "", t->like ? t->like->f->path : "");
    }
    if (is_missing(s))
        return *v = t->missing == LS_MISSING_VALUE ? t->value : c->mean, true;
    return number(s, v)
           || ls_fail(e, LS_EXIT_DATA, "%s:%" PRId64 ": column '%s' has '%s', which is no number",
                      t->rows.path, t->rows.line, c->name, s);
}

/* ---- kinds of columns ---- */

static void count_field(LsTableColumn *c, const char *s, int64_t line)
{
    double v;
    if (is_missing(s)) {
        c->missing++;
    } else if (number(s, &v)) {
        c->numbers++;
        c->sum += v;
        c->is_whole &= v == floor(v) && fabs(v) < 9e15;
    } else if (c->words++ == 0) {
        c->word = strdup(s);
        c->word_line = line;
    }
}

/* Calls `take` for each row of all files that is not dropped. */
static bool each_row(LsTable *t, bool (*take)(LsTable *, LsError *), LsError *e)
{
    for (int k = 0; k < t->files; k++) {
        bool end = false, drop;
        if (!ls_table_begin(t, k, e))
            return false;
        for (;;) {
            if (!ls_table_row(t, &end, &drop, e))
                return false;
            if (end)
                break;
            if (!drop && !take(t, e))
                return false;
        }
    }
    return true;
}

static bool count_row(LsTable *t, LsError *e)
{
    (void)e;
    for (int c = 0; c < t->columns; c++)
        count_field(&t->column[c], t->rows.field[c], t->rows.line);
    t->samples++;
    return true;
}

static bool count_rows(LsTable *t, LsError *e)
{
    return each_row(t, count_row, e)
           && (t->samples > 0 || ls_fail(e, LS_EXIT_DATA, "%s: no rows", t->file[0].path));
}

/* Whether `list`, with commas between, has the name or the column's number. */
static bool is_listed(const char *list, const char *name, int at, bool *found)
{
    char text[16];
    snprintf(text, sizeof text, "%d", at + 1);
    for (const char *p = list; p != NULL && *p;) {
        const size_t n = strcspn(p, ",");
        if ((strlen(name) == n && memcmp(p, name, n) == 0)
            || (strlen(text) == n && memcmp(p, text, n) == 0))
            return *found = true;
        p += n + (p[n] == ',');
    }
    return false;
}

static bool decide(LsTable *t, LsTableColumn *c, LsError *e)
{
    if (c->left_out)
        return true;
    c->is_category = c->told_category || (c->words > 0 && c->numbers == 0);
    c->mean = c->numbers > 0 ? c->sum / (double)c->numbers : 0;
    if (c->words > 0 && c->numbers > 0 && !c->told_category)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s:%" PRId64 ": column '%s' has '%s', and numbers in %" PRId64
                       " rows; --categories=%s takes all of them as categories, --leave-out=%s "
                       "none",
                       t->rows.path, c->word_line, c->name, c->word ? c->word : "", c->numbers,
                       c->name, c->name);
    if (c->numbers == 0 && c->words == 0 && t->missing != LS_MISSING_VALUE)
        return ls_fail(e, LS_EXIT_DATA, "%s: column '%s' is empty; --leave-out=%s passes over it",
                       t->rows.path, c->name, c->name);
    return true;
}

/* ---- names and options ---- */

static bool is_row_of_numbers(const LsCsvRows *r)
{
    double v;
    for (int k = 0; k < r->n; k++)
        if (!number(r->field[k], &v) && !is_missing(r->field[k]))
            return false;
    return true;
}

static bool name_columns(LsTable *t, LsError *e)
{
    bool end;
    char text[32];
    ls_csv_open(&t->rows, &t->file[0]);
    if (!ls_csv_next(&t->rows, &end, e))
        return false;
    if (end)
        return ls_fail(e, LS_EXIT_DATA, "%s: no rows", t->file[0].path);
    if (t->rows.n > MOST_COLUMNS)
        return ls_fail(e, LS_EXIT_DATA, "%s: more than %d columns", t->file[0].path, MOST_COLUMNS);
    t->has_names = !is_row_of_numbers(&t->rows);
    t->column = calloc((size_t)t->rows.n, sizeof *t->column);
    if (t->column == NULL)
        return no_memory(e);
    for (; t->columns < t->rows.n; t->columns++) {
        LsTableColumn *c = &t->column[t->columns];
        snprintf(text, sizeof text, "%d", t->columns + 1);
        const char *name = t->has_names ? t->rows.field[t->columns] : text;
        *c = (LsTableColumn){.name = strdup(name), .is_whole = true};
        if (c->name == NULL)
            return no_memory(e);
        if (!ls_is_utf8(name))
            return ls_fail(e, LS_EXIT_DATA, "%s: the name of column %s is no UTF-8",
                           t->file[0].path, text);
        for (int k = 0; k < t->columns; k++)
            if (strcmp(t->column[k].name, name) == 0)
                return ls_fail(e, LS_EXIT_DATA, "%s: two columns are called '%s'", t->file[0].path,
                               name);
    }
    return true;
}

static bool every_name_found(const LsTable *t, const char *option, const char *list, int found,
                             LsError *e)
{
    int given = list != NULL;
    for (const char *p = list; p != NULL && *p; p++)
        given += *p == ',';
    return found == given
           || ls_fail(e, LS_EXIT_USAGE, "%s=%s: %s has no such column", option, list,
                      t->file[0].path);
}

static bool take_lists(LsTable *t, LsError *e)
{
    const LsPackOptions *o = t->o;
    int labels = 0, out = 0, categories = 0;
    for (int k = 0; k < t->columns; k++) {
        LsTableColumn *c = &t->column[k];
        bool found;
        c->is_label = o->label_column != NULL
                      && (strcmp(o->label_column, c->name) == 0
                          || is_listed(strchr(o->label_column, ',') ? NULL : o->label_column,
                                       c->name, k, &found));
        c->left_out = is_listed(o->leave_out, c->name, k, &found);
        c->told_category = is_listed(o->categories, c->name, k, &found);
        labels += c->is_label;
        out += c->left_out;
        categories += c->told_category;
        if (c->is_label && c->left_out)
            return ls_fail(e, LS_EXIT_USAGE, "--leave-out=%s: it is the label", o->leave_out);
    }
    if (o->label_column != NULL && labels != 1)
        return ls_fail(e, LS_EXIT_USAGE, "--label-column=%s: %s has no such column",
                       o->label_column, t->file[0].path);
    return every_name_found(t, "--leave-out", o->leave_out, out, e)
           && every_name_found(t, "--categories", o->categories, categories, e);
}

static bool take_missing(LsTable *t, LsError *e)
{
    const char *m = t->o->missing;
    if (m == NULL)
        return true;
    t->missing = strcmp(m, "mean") == 0   ? LS_MISSING_MEAN
                 : strcmp(m, "drop") == 0 ? LS_MISSING_DROP
                                          : LS_MISSING_VALUE;
    return t->missing != LS_MISSING_VALUE || number(m, &t->value)
           || ls_fail(e, LS_EXIT_USAGE, "--missing=%s: neither mean, nor drop, nor a number", m);
}

/* ---- categories of all columns ---- */

static bool collect(LsTable *t, LsError *e)
{
    for (int c = 0; c < t->columns; c++) {
        LsTableColumn *x = &t->column[c];
        const char *s = t->rows.field[c];
        if (!is_used(x) || !x->is_category || (is_missing(s) && t->missing == LS_MISSING_ERROR))
            continue; /* what lacks is named when the row is taken */
        if (!ls_is_utf8(s))
            return ls_fail(e, LS_EXIT_DATA, "%s:%" PRId64 ": column '%s' has text that is no UTF-8",
                           t->rows.path, t->rows.line, x->name);
        if (!(is_missing(s) && x->is_label)
            && !ls_category_add(&x->categories, is_missing(s) ? "" : s))
            return no_memory(e);
        if (x->categories.names.n > MOST_CATEGORIES)
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: column '%s' has more than %d different texts; if "
                           "they name rows, --leave-out=%s",
                           t->rows.path, x->name, MOST_CATEGORIES, x->name);
    }
    return true;
}

static bool collect_all(LsTable *t, LsError *e)
{
    bool any = false;
    for (int c = 0; c < t->columns; c++)
        any |= is_used(&t->column[c]) && t->column[c].is_category;
    if (any && !each_row(t, collect, e))
        return false;
    for (int c = 0; c < t->columns; c++) {
        if (!ls_categories_sort(&t->column[c].categories))
            return no_memory(e);
    }
    return true;
}

/* ---- columns of another data set ---- */

static bool copy_categories(LsTableColumn *c, const LsTexts *from, LsError *e)
{
    c->is_category = from->n > 0;
    for (int64_t k = 0; k < from->n; k++)
        if (!ls_category_add(&c->categories, from->text[k]))
            return no_memory(e);
    return true;
}

static LsTableColumn *column_named(LsTable *t, const char *name)
{
    for (int k = 0; k < t->columns; k++)
        if (strcmp(t->column[k].name, name) == 0)
            return &t->column[k];
    return NULL;
}

/* The inputs of the other data set, in this order and no others; means of missing numbers, too. */
static bool take_like(LsTable *t, LsError *e)
{
    const LsDataField *x = NULL, *y = NULL;
    int64_t element = 0, used = 0;
    for (int64_t k = 0; k < t->like->fields; k++)
        *(t->like->field[k].is_label ? &y : &x) = &t->like->field[k];
    if (x == NULL || x->columns == 0)
        return ls_fail(e, LS_EXIT_DATA, "--like=%s: it was not made of a table", t->o->like);
    for (int64_t k = 0; k < x->columns; k++) {
        const LsDataColumn *from = &x->column[k];
        LsTableColumn *c = column_named(t, from->name);
        if (c == NULL || c->is_label || c->left_out)
            return ls_fail(e, LS_EXIT_DATA, "%s has no column '%s', which %s has", t->file[0].path,
                           from->name, t->o->like);
        if (c - t->column < used)
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: column '%s' stands before others that %s has "
                           "first",
                           t->file[0].path, from->name, t->o->like);
        used = c - t->column + 1;
        if (!copy_categories(c, &from->categories, e))
            return false;
        c->mean = x->mean != NULL ? x->mean[element] : 0;
        element += from->one_hot ? from->categories.n : 1;
    }
    for (int k = 0; k < t->columns; k++) {
        LsTableColumn *c = &t->column[k];
        bool there = c->is_label;
        for (int64_t i = 0; i < x->columns && !there; i++)
            there = strcmp(x->column[i].name, c->name) == 0;
        c->left_out |= !there;
        if (c->is_label && y != NULL && !copy_categories(c, &y->classes, e))
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool open_files(LsTable *t, LsError *e)
{
    t->file = calloc((size_t)t->o->sources, sizeof *t->file);
    if (t->file == NULL)
        return no_memory(e);
    for (int k = 0; k < t->o->sources; k++) {
        if (!ls_file_map(&t->file[k], t->o->source[k], e))
            return false;
        t->files++;
    }
    return true;
}

bool ls_table_open(LsTable *t, const LsPackOptions *o, const LsDataFile *like, LsError *e)
{
    *t = (LsTable){.o = o, .like = like};
    if (!open_files(t, e) || !name_columns(t, e) || !take_lists(t, e) || !take_missing(t, e))
        return false;
    if (like != NULL && !take_like(t, e))
        return false;
    if (!count_rows(t, e))
        return false;
    for (int c = 0; c < t->columns && like == NULL; c++)
        if (!decide(t, &t->column[c], e))
            return false;
    return like != NULL || collect_all(t, e);
}

void ls_table_close(LsTable *t)
{
    for (int k = 0; k < t->columns; k++) {
        LsTableColumn *c = &t->column[k];
        ls_categories_free(&c->categories);
        free(c->name);
        free(c->word);
    }
    free(t->column);
    ls_csv_close(&t->rows);
    while (t->files > 0)
        ls_file_unmap(&t->file[--t->files]);
    free(t->file);
    *t = (LsTable){0};
}
