/* runtime/data/token_rows.c -- see the header. */
#include "runtime/data/token_rows.h"

#include <stdlib.h>
#include <string.h>

static bool grow(void **to, int64_t *cap, int64_t need, size_t each)
{
    if (need <= *cap)
        return true;
    const int64_t more = *cap > 0 ? 2 * *cap : 64;
    void *p = realloc(*to, (size_t)more * each);
    if (p == NULL)
        return false;
    *to = p;
    *cap = more;
    return true;
}

bool ls_token_rows_add(LsTokenRows *r, int32_t token, int32_t label)
{
    int64_t cap = r->tokens_cap;
    if (!grow((void **)&r->token, &cap, r->ntoken + 1, sizeof *r->token)
        || !grow((void **)&r->label, &r->tokens_cap, r->ntoken + 1, sizeof *r->label))
        return false;
    r->token[r->ntoken] = token;
    r->label[r->ntoken++] = label;
    r->sample[r->nsample - 1].count++;
    return true;
}

bool ls_token_rows_begin(LsTokenRows *r, int64_t line)
{
    if (!grow((void **)&r->sample, &r->samples_cap, r->nsample + 1, sizeof *r->sample))
        return false;
    r->sample[r->nsample++] = (LsTokenSample){r->ntoken, 0, line};
    return true;
}

void ls_token_rows_free(LsTokenRows *r)
{
    free(r->token);
    free(r->label);
    free(r->sample);
    free(r->first);
    *r = (LsTokenRows){0};
}

/* ---- rows ---- */

/* Room in rows, as a tree: node k has the most of 2k and 2k + 1, and row r is node leaves + r. */
typedef struct Room {
    int32_t *most;
    int64_t leaves;
} Room;

static bool room_new(Room *t, int64_t rows, int64_t length)
{
    t->leaves = 1;
    while (t->leaves < rows)
        t->leaves *= 2;
    t->most = malloc((size_t)(2 * t->leaves) * sizeof *t->most);
    for (int64_t k = 0; t->most != NULL && k < 2 * t->leaves; k++)
        t->most[k] = (int32_t)length;
    return t->most != NULL;
}

/* The first row that has room for `count`, which it then has no more. */
static int64_t room_take(Room *t, int64_t count)
{
    int64_t k = 1;
    while (k < t->leaves)
        k = 2 * k + (t->most[2 * k] < count);
    const int64_t row = k - t->leaves;
    t->most[k] -= (int32_t)count;
    for (k /= 2; k > 0; k /= 2)
        t->most[k] = t->most[2 * k] > t->most[2 * k + 1] ? t->most[2 * k] : t->most[2 * k + 1];
    return row;
}

/* The row of each sample: `row`. */
static bool pack_rows(LsTokenRows *r, int64_t *row)
{
    Room t;
    if (!room_new(&t, r->nsample, r->length))
        return false;
    for (int64_t k = 0; k < r->nsample; k++) {
        row[k] = room_take(&t, r->sample[k].count);
        r->rows = row[k] + 1 > r->rows ? row[k] + 1 : r->rows;
    }
    free(t.most);
    return true;
}

/* Puts the samples of each row beside each other, in the file's order. */
static bool sort_by_row(LsTokenRows *r, const int64_t *row)
{
    LsTokenSample *sorted = malloc((size_t)r->nsample * sizeof *sorted);
    r->first = calloc((size_t)r->rows + 2, sizeof *r->first);
    if (sorted == NULL || r->first == NULL) {
        free(sorted);
        return false;
    }
    for (int64_t k = 0; k < r->nsample; k++)
        r->first[row[k] + 2]++;
    for (int64_t k = 2; k < r->rows + 2; k++)
        r->first[k] += r->first[k - 1];
    for (int64_t k = 0; k < r->nsample; k++)
        sorted[r->first[row[k] + 1]++] = r->sample[k];
    free(r->sample);
    r->sample = sorted;
    return true;
}

bool ls_token_rows_place(LsTokenRows *r, int64_t length, bool pack)
{
    int64_t *row = malloc((size_t)r->nsample * sizeof *row);
    r->length = length;
    r->rows = pack ? 0 : r->nsample;
    for (int64_t k = 0; row != NULL && k < r->nsample; k++)
        row[k] = k;
    const bool ok = row != NULL && (!pack || pack_rows(r, row)) && sort_by_row(r, row);
    free(row);
    return ok;
}

/* ---- reading ---- */

/* The sample at place *i of a row, and the place within it; NULL: behind them. *number: the
 * sample's within the row; behind them, how many there are. */
static const LsTokenSample *sample_at(const LsTokenRows *r, int64_t row, int64_t *i,
                                      int64_t *number)
{
    const LsTokenSample *s = r->sample + r->first[row], *end = r->sample + r->first[row + 1];
    for (*number = 0; s < end && *i >= s->count; s++, ++*number)
        *i -= s->count;
    return s < end ? s : NULL;
}

int64_t ls_token_row_value(const LsTokenRows *r, LsRowPart part, int64_t row, int64_t i)
{
    int64_t number;
    const LsTokenSample *s = sample_at(r, row, &i, &number);
    switch (part) {
    case LS_ROW_TOKEN: return s != NULL ? r->token[s->from + i] : 0;
    case LS_ROW_LABEL: return s != NULL && i + 1 < s->count ? r->label[s->from + i + 1] : r->none;
    case LS_ROW_SEGMENT: return number;
    case LS_ROW_PLACE: return i;
    default: return s != NULL;
    }
}

int64_t ls_token_row_line(const LsTokenRows *r, int64_t row, int64_t i)
{
    int64_t number;
    const LsTokenSample *s = sample_at(r, row, &i, &number);
    return s != NULL ? s->line : 0;
}
