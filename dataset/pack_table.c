/* dataset/pack_table.c -- tables: the columns that are no label become elements of one field of
 * reals, and the label's column a class or a number. */
#include "dataset/figures.h"
#include "dataset/table_columns.h"

#include <stdlib.h>
#include <string.h>

typedef struct Table {
    LsTable t;
    LsFile like_file;
    LsDataFile like;
    LsDataColumn *column; /* of the field */
    int64_t columns, elements;
    LsFigures figures;
    LsColumn *x, *y;
    int label; /* column; -1: none */
    bool one_hot;
    float *row;
    double *values;
} Table;

static bool no_memory(LsError *e)
{
    return ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

static int64_t elements_of(const Table *k, const LsTableColumn *c)
{
    return k->one_hot && c->is_category ? c->categories.names.n : 1;
}

static bool describe(Table *k, LsError *e)
{
    k->label = -1;
    k->column = calloc((size_t)k->t.columns, sizeof *k->column);
    if (k->column == NULL)
        return no_memory(e);
    for (int i = 0; i < k->t.columns; i++) {
        const LsTableColumn *c = &k->t.column[i];
        if (c->is_label)
            k->label = i;
        if (c->is_label || c->left_out)
            continue;
        k->column[k->columns++] = (LsDataColumn){.name = c->name,
                                                 .categories = c->categories.names,
                                                 .one_hot = k->one_hot && c->is_category};
        k->elements += elements_of(k, c);
    }
    return k->columns > 0
           || ls_fail(e, LS_EXIT_DATA, "%s: no column is left for inputs", k->t.file[0].path);
}

static bool make_columns(Table *k, LsPack *p, LsError *e)
{
    const LsPackOptions *o = k->t.o;
    const LsDataField x = {.name = (char *)(o->input_name ? o->input_name : "x"),
                           .type = LS_F32,
                           .rank = 1,
                           .dim = {k->elements},
                           .column = k->column,
                           .columns = k->columns};
    LsDataField y = {.name = (char *)(o->label_name ? o->label_name : "label"), .is_label = true};
    k->row = malloc((size_t)k->elements * sizeof *k->row);
    k->values = malloc((size_t)k->elements * sizeof *k->values);
    if (k->row == NULL || k->values == NULL)
        return no_memory(e);
    k->x = ls_pack_column(p, &x, e);
    if (k->label >= 0) {
        const LsTableColumn *c = &k->t.column[k->label];
        y.type = c->is_category || c->is_whole ? LS_I64 : LS_F32;
        y.classes = c->categories.names;
        k->y = ls_pack_column(p, &y, e);
    }
    return e->code == LS_EXIT_DONE && ls_figures_open(&k->figures, &x, e)
           && ls_pack_begin(p, k->t.samples, e);
}

static bool put_row(Table *k, LsPack *p, LsError *e)
{
    int64_t at = 0;
    double v = 0;
    for (int i = 0; i < k->t.columns; i++) {
        const LsTableColumn *c = &k->t.column[i];
        if (c->is_label || c->left_out)
            continue;
        if (!ls_table_value(&k->t, i, &v, e))
            return false;
        const int64_t n = elements_of(k, c);
        for (int64_t j = 0; j < n; j++, at++)
            k->values[at] = k->one_hot && c->is_category ? (double)(j == (int64_t)v) : v;
    }
    for (int64_t j = 0; j < k->elements; j++)
        k->row[j] = (float)k->values[j];
    ls_figures_add(&k->figures, k->values);
    if (!ls_pack_append(p, k->x, k->row, 1, e))
        return false;
    if (k->y == NULL)
        return true;
    if (!ls_table_value(&k->t, k->label, &v, e))
        return false;
    const int64_t whole = (int64_t)v;
    const float real = (float)v;
    return ls_pack_append(p, k->y, k->y->field.type == LS_I64 ? (const void *)&whole : &real, 1, e);
}

static bool put_rows(Table *k, LsPack *p, LsPackResult *r, LsError *e)
{
    const LsPackOptions *o = k->t.o;
    for (int f = 0; f < k->t.files; f++) {
        bool end = false, drop;
        if (!ls_table_begin(&k->t, f, e))
            return false;
        for (;;) {
            if (!ls_table_row(&k->t, &end, &drop, e))
                return false;
            if (end)
                break;
            r->skipped += drop;
            if (drop)
                continue;
            if (!put_row(k, p, e))
                return false;
            p->samples++;
            if (o->progress != NULL && p->samples % 256 == 0)
                o->progress(o->progress_to, p->samples, k->t.samples);
        }
    }
    ls_figures_set(&k->figures, &k->x->field);
    return true;
}

static bool open_like(Table *k, const LsPackOptions *o, LsError *e)
{
    if (o->like == NULL)
        return true;
    if (!ls_file_map(&k->like_file, o->like, e) || !ls_data_file_open(&k->like, &k->like_file, e))
        return false;
    for (int64_t f = 0; f < k->like.fields; f++)
        for (int64_t c = 0; c < k->like.field[f].columns; c++)
            k->one_hot |= k->like.field[f].column[c].one_hot;
    return true;
}

static bool run(Table *k, const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e)
{
    return open_like(k, o, e) && ls_table_open(&k->t, o, o->like ? &k->like : NULL, e)
           && describe(k, e) && make_columns(k, p, e) && put_rows(k, p, r, e);
}

bool ls_pack_table(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e)
{
    Table k = {.one_hot = o->one_hot};
    const bool ok = ls_pack_end(p, run(&k, o, p, r, e), e);
    ls_figures_close(&k.figures);
    ls_table_close(&k.t);
    ls_data_file_close(&k.like);
    if (k.like_file.data != NULL)
        ls_file_unmap(&k.like_file);
    free(k.column);
    free(k.row);
    free(k.values);
    return ok;
}
