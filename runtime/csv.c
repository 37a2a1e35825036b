/* runtime/csv.c -- tables of numbers: one sample per line, the inputs' elements side by side. */
#include "runtime/dataset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD = 64 };            /* characters of the longest number */

/* The number at p..end, up to a comma, semicolon, tab or the end of the line; returns what follows
 * the separator, NULL when it is no number. *last tells that the line ended. */
static const char *field(const char *p, const char *end, double *v, bool *last)
{
    char text[FIELD], *stop;
    size_t n = 0;
    while (p < end && (*p == ' ' || *p == '"'))
        p++;
    while (p + n < end && !strchr(",;\t\r\n", p[n]) && n < FIELD - 1) {
        text[n] = p[n];
        n++;
    }
    text[n] = '\0';
    *v = strtod(text, &stop);
    stop += strspn(stop, " \"");
    if (n == 0 || stop == text || *stop != '\0')
        return NULL;
    p += n;
    *last = p == end || *p == '\n' || *p == '\r';
    while (p < end && (*p == '\r' || (*last && *p == '\n')))
        p++;
    return *last || p == end ? p : p + 1;
}

static const char *next_line(const char *p, const char *end)
{
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    return nl ? nl + 1 : end;
}

static int64_t count_lines(const char *p, const char *end)
{
    int64_t n = 0;
    for (; p < end; p = next_line(p, end))
        n += *p != '\n' && *p != '\r';
    return n;
}

static bool parse(const LsFile *f, const char *p, int64_t line, int64_t rows, int64_t columns,
                  double *to, LsError *e)
{
    const char *end = (const char *)f->data + f->size;
    for (int64_t r = 0; r < rows; r++, line++)
        for (int64_t c = 0; c < columns; c++) {
            bool last;
            p = field(p, end, to++, &last);
            if (!p)
                return ls_fail(e, LS_EXIT_DATA, "%s:%" PRId64 ": column %" PRId64 " is no number",
                               f->path, line, c + 1);
            if (last != (c == columns - 1))
                return ls_fail(e, LS_EXIT_DATA,
                               "%s:%" PRId64 ": %s than the %" PRId64 " columns that "
                               "the program's inputs take",
                               f->path, line, last ? "fewer" : "more", columns);
        }
    return true;
}

static bool wants(const LsDataset *d, uint32_t k)
{
    return !d->source[k].path && !(d->p->input[k].is_label && d->label_is_input);
}

bool ls_csv_read(LsDataset *d, const LsFile *f, LsError *e)
{
    const char *p = (const char *)f->data, *end = p + f->size;
    int64_t columns = 0, at = 0;
    bool last;
    double v;
    for (uint32_t k = 0; k < d->p->ninput; k++)
        columns += wants(d, k) ? d->source[k].per_sample : 0;
    bool head = !field(p, end, &v, &last);      /* names of columns */
    int64_t rows = count_lines(p, end) - head;
    if (rows <= 0 || columns == 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: %s", f->path,
                       columns ? "no rows" : "no input needs it");
    if (d->csv || !(d->csv = calloc((size_t)rows, (size_t)columns * sizeof *d->csv)))
        return ls_fail(e, LS_EXIT_DATA, "%s: a second table, or too large a one", f->path);
    if (!parse(f, head ? next_line(p, end) : p, 1 + head, rows, columns, d->csv, e))
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
