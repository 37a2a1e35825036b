/* dataset/pack_lines.c -- JSON lines of input_ids and labels become rows of one length: the fields
 * input_ids, labels (of the next token, as the trainer moves them), attention_mask; where samples
 * share rows also segments and position_ids. Lines are read twice, and not kept. */
#include "dataset/pack_source.h"

#include "runtime/data/dataset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NO_LABEL = -100, FIELDS = 5 };

typedef struct Lines {
    const LsPackOptions *o;
    LsFile *file;
    int files;
    LsTokenRows index; /* a sample's `from`: where its line begins, in file number `line` */
    LsTokenRows row;   /* the samples of a row, with their tokens */
    int64_t length;
    LsColumn *column[FIELDS];
    int32_t *ids, *labels, *places;
    uint8_t *seen;
    uint16_t *segments;
} Lines;

static bool no_memory(LsError *e)
{
    return ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

static const char *end_of_line(const char *p, const char *end)
{
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    return stop != NULL ? stop : end;
}

static bool is_blank(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p == end;
}

static void empty(LsTokenRows *r)
{
    r->ntoken = r->nsample = 0;
}

/* The first reading: how long the samples are, and whether they can be read. */
static bool index_file(Lines *l, int k, LsError *e)
{
    const LsFile *f = &l->file[k];
    const char *const begin = (const char *)f->data, *const end = begin + f->size;
    int64_t line = 0;
    for (const char *p = begin, *stop; p < end; p = stop < end ? stop + 1 : end) {
        stop = end_of_line(p, end);
        line++;
        if (is_blank(p, stop))
            continue;
        empty(&l->row);
        if (!ls_json_line_read(&l->row, f->path, line, p, stop, INT32_MAX, e))
            return false;
        if (l->o->length > 0 && l->row.sample[0].count > l->o->length)
            return ls_fail(e, LS_EXIT_DATA,
                           "%s:%" PRId64 ": %" PRId64 " tokens are more than the "
                           "%" PRId64 " of --length",
                           f->path, line, l->row.sample[0].count, l->o->length);
        if (!ls_token_rows_begin(&l->index, k))
            return no_memory(e);
        LsTokenSample *s = &l->index.sample[l->index.nsample - 1];
        s->from = p - begin;
        s->count = l->row.sample[0].count;
        l->length = s->count > l->length ? s->count : l->length;
    }
    return true;
}

static bool index_all(Lines *l, LsError *e)
{
    l->file = calloc((size_t)l->o->sources, sizeof *l->file);
    if (l->file == NULL)
        return no_memory(e);
    for (int k = 0; k < l->o->sources; k++) {
        if (!ls_file_map(&l->file[k], l->o->source[k], e))
            return false;
        l->files++;
        if (!index_file(l, k, e))
            return false;
    }
    if (l->index.nsample == 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: no samples", l->o->source[0]);
    l->length = l->o->length > 0 ? l->o->length : l->length;
    return ls_token_rows_place(&l->index, l->length, l->o->share_rows) || no_memory(e);
}

static bool columns(Lines *l, LsPack *p, LsError *e)
{
    const LsPackOptions *o = l->o;
    const LsDataField field[FIELDS] = {
        {.name = (char *)(o->input_name ? o->input_name : "input_ids"), .type = LS_I32},
        {.name = (char *)(o->label_name ? o->label_name : "labels"),
         .type = LS_I32,
         .is_label = true},
        {.name = "attention_mask", .type = LS_U8},
        {.name = "segments", .type = LS_U16},
        {.name = "position_ids", .type = LS_I32},
    };
    for (int k = 0; k < (o->share_rows ? FIELDS : 3); k++) {
        LsDataField f = field[k];
        f.rank = 1;
        f.dim[0] = l->length;
        if ((l->column[k] = ls_pack_column(p, &f, e)) == NULL)
            return false;
    }
    const size_t n = (size_t)l->length;
    l->ids = malloc(3 * n * sizeof *l->ids);
    l->segments = malloc(n * sizeof *l->segments);
    l->seen = malloc(n);
    if (!l->ids || !l->segments || !l->seen)
        return no_memory(e);
    l->labels = l->ids + n;
    l->places = l->labels + n;
    return ls_pack_begin(p, l->index.rows, e);
}

/* The second reading: the samples of a row. */
static bool read_row(Lines *l, int64_t row, LsError *e)
{
    int64_t first[2] = {0, 0};
    empty(&l->row);
    for (int64_t k = l->index.first[row]; k < l->index.first[row + 1]; k++) {
        const LsTokenSample *s = &l->index.sample[k];
        const LsFile *f = &l->file[s->line];
        const char *p = (const char *)f->data + s->from,
                   *end = end_of_line(p, (const char *)f->data + f->size);
        if (!ls_json_line_read(&l->row, f->path, 0, p, end, l->length, e))
            return false;
    }
    first[1] = l->row.nsample;
    if (first[1] > UINT16_MAX)
        return ls_fail(e, LS_EXIT_DATA, "%s: more than %d samples in a row", l->o->source[0],
                       UINT16_MAX);
    l->row.first = first;
    for (int64_t i = 0; i < l->length; i++) {
        l->ids[i] = (int32_t)ls_token_row_value(&l->row, LS_ROW_TOKEN, 0, i);
        l->labels[i] = (int32_t)ls_token_row_value(&l->row, LS_ROW_LABEL, 0, i);
        l->places[i] = (int32_t)ls_token_row_value(&l->row, LS_ROW_PLACE, 0, i);
        l->seen[i] = (uint8_t)ls_token_row_value(&l->row, LS_ROW_SEEN, 0, i);
        l->segments[i] = (uint16_t)ls_token_row_value(&l->row, LS_ROW_SEGMENT, 0, i);
    }
    l->row.first = NULL;
    return true;
}

static bool put_rows(Lines *l, LsPack *p, LsError *e)
{
    const void *const from[FIELDS] = {l->ids, l->labels, l->seen, l->segments, l->places};
    for (int64_t row = 0; row < l->index.rows; row++) {
        if (!read_row(l, row, e))
            return false;
        for (int k = 0; k < FIELDS && l->column[k] != NULL; k++)
            if (!ls_pack_append(p, l->column[k], from[k], 1, e))
                return false;
        p->samples++;
        if (l->o->progress != NULL)
            l->o->progress(l->o->progress_to, p->samples, l->index.rows);
    }
    return true;
}

bool ls_pack_lines(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e)
{
    Lines l = {.o = o, .row.none = NO_LABEL};
    (void)r;
    const bool ok = ls_pack_end(p, index_all(&l, e) && columns(&l, p, e) && put_rows(&l, p, e), e);
    while (l.files > 0)
        ls_file_unmap(&l.file[--l.files]);
    free(l.file);
    free(l.ids);
    free(l.segments);
    free(l.seen);
    ls_token_rows_free(&l.index);
    ls_token_rows_free(&l.row);
    return ok;
}
