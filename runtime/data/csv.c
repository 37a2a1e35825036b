/* runtime/data/csv.c -- tables of numbers: one sample per row, the inputs' elements side by side.
 * Rows are lines, except that a quoted name may contain line ends; blank lines are skipped; lines
 * end with LF, CR or both. */
#include "runtime/data/dataset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD = 1024 };          /* characters of the longest number */

typedef struct LsCsv { const char *p, *end; int64_t line; } LsCsv;     /* line: of p, from 1 */

static bool at_line_end(const LsCsv *c) { return c->p == c->end || *c->p == '\n' || *c->p == '\r'; }

static void skip_line_end(LsCsv *c)
{
    if (c->p == c->end)
        return;
    bool both = c->end - c->p >= 2 && c->p[0] == '\r' && c->p[1] == '\n';
    c->p += both ? 2 : 1;
    c->line++;
}

/* Moves to the next line that is not blank; false at the end. */
static bool begin_row(LsCsv *c)
{
    for (;;) {
        LsCsv at = *c;
        while (at.p < at.end && *at.p == ' ')
            at.p++;
        if (!at_line_end(&at))
            return true;
        if (at.p == at.end)
            return false;
        skip_line_end(&at);
        *c = at;
    }
}

/* Skips a row of names. A quote begins a quoted name only where a name begins. */
static void skip_names_row(LsCsv *c)
{
    bool quoted = false, begins = true;
    while (c->p < c->end && (quoted || !at_line_end(c))) {
        quoted ^= *c->p == '"' && (quoted || begins);
        begins = !quoted && *c->p && strchr(",;\t \"", *c->p);
        if (at_line_end(c))
            skip_line_end(c);
        else
            c->p++;
    }
    skip_line_end(c);
}

/* Parses the number up to a comma, semicolon or tab, which is consumed, or up to the line's end,
 * which is not. *last: the number is the last of its row. */
static bool field(LsCsv *c, double *v, bool *last)
{
    char text[FIELD], *stop;
    size_t n = 0;
    while (c->p < c->end && (*c->p == ' ' || *c->p == '"'))
        c->p++;
    for (; !at_line_end(c) && *c->p && !strchr(",;\t", *c->p); c->p++)
        if (n < FIELD)
            text[n++] = *c->p;
    if (n == 0 || n == FIELD)
        return false;
    text[n] = '\0';
    *v = strtod(text, &stop);
    stop += strspn(stop, " \"");
    *last = at_line_end(c);
    c->p += !*last && *c->p;
    return stop > text && *stop == '\0';
}

/* Skips the column names: the first row, unless it begins with a number. */
static void skip_names(LsCsv *c)
{
    LsCsv at = *c;
    double v;
    bool last;
    if (begin_row(c) && (at = *c, !field(&at, &v, &last)))
        skip_names_row(c);
}

/* Numbers contain no line ends, so each row is one line. */
static int64_t count_rows(LsCsv c)
{
    int64_t n = 0;
    for (; begin_row(&c); n++) {
        while (!at_line_end(&c))
            c.p++;
        skip_line_end(&c);
    }
    return n;
}

static bool parse_row(LsCsv *c, const char *path, int64_t columns, double *to, LsError *e)
{
    begin_row(c);
    for (int64_t k = 0; k < columns; k++) {
        bool last;
        if (!field(c, to++, &last))
            return ls_fail(e, LS_EXIT_DATA, "%s:%" PRId64 ": column %" PRId64 " is not a number",
                           path, c->line, k + 1);
        if (last != (k == columns - 1))
            return ls_fail(e, LS_EXIT_DATA,
                           "%s:%" PRId64 ": %s than the %" PRId64 " columns that "
                           "the program's inputs take",
                           path, c->line, last ? "fewer" : "more", columns);
    }
    skip_line_end(c);
    return true;
}

static bool wants(const LsDataset *d, uint32_t k)
{
    return !d->source[k].path && !(d->p->input[k].is_label && d->label_is_input);
}

static int64_t columns_of(LsCsv c)
{
    int64_t n = 1;
    begin_row(&c);
    for (; !at_line_end(&c); c.p++)
        n += *c.p == ',' || *c.p == ';' || *c.p == '\t';
    return n;
}

/* Columns of the inputs that the table serves. Where targets may be missing, and the first row has
 * no columns for them, they are zeros. */
static int64_t wanted_columns(LsDataset *d, LsCsv first)
{
    int64_t inputs = 0, targets = 0;
    for (uint32_t k = 0; k < d->p->ninput; k++)
        if (wants(d, k))
            *(d->p->input[k].is_label ? &targets : &inputs) += d->source[k].per_sample;
    if (!d->opt.unlabelled || targets == 0 || columns_of(first) != inputs)
        return inputs + targets;
    for (uint32_t k = 0; k < d->p->ninput; k++)
        if (wants(d, k) && d->p->input[k].is_label)
            ls_dataset_zero(d, k);
    return inputs;
}

/* The table, from its first number on. */
static LsCsv open_table(const LsFile *f)
{
    static const char mark[] = "\xef\xbb\xbf";      /* byte order mark of UTF-8, which some programs
                                                     * write */
    LsCsv c = {(const char *)f->data, (const char *)f->data + f->size, 1};
    if (f->size >= 3 && memcmp(f->data, mark, 3) == 0)
        c.p += 3;
    skip_names(&c);
    return c;
}

bool ls_csv_read(LsDataset *d, const LsFile *f, LsError *e)
{
    LsCsv c = open_table(f);
    int64_t at = 0, rows = count_rows(c), columns = wanted_columns(d, c);
    if (rows == 0 || columns == 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: %s", f->path,
                       columns ? "no rows" : "no input needs it");
    /* A complete row takes 2 characters or more for each number, so an incomplete one is met within
     * this room. */
    int64_t room = ((int64_t)f->size + 1) / 2 / columns + 1;
    room = rows < room ? rows : room;
    if (d->csv || !(d->csv = calloc((size_t)room, (size_t)columns * sizeof *d->csv)))
        return ls_fail(e, LS_EXIT_DATA, "%s: a second table, or a table that is too large",
                       f->path);
    for (int64_t r = 0; r < rows; r++)
        if (!parse_row(&c, f->path, columns, d->csv + r * columns, e))
            return false;
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        LsSource *s = &d->source[k];
        if (!wants(d, k))
            continue;
        s->path = f->path;
        s->array = (LsArray){(const unsigned char *)(d->csv + at), LS_F64, false, 2,
                             {rows, s->per_sample}, rows * s->per_sample};
        s->stride = columns;
        at += s->per_sample;
    }
    return true;
}
