/* runtime/data/picture_read.c -- see picture_read.h. */
#include "runtime/data/picture_read.h"

#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/data/label_input.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool ls_takes_labels(const LsProgram *p, uint32_t input)
{
    const LsInput *in = &p->input[input];
    return p->target.soft && in->t.type == LS_DT_REAL && in->is_label && input == ls_label_input(p);
}

/* ---- sizes ---- */

bool ls_map_size(const LsDataset *d, uint32_t input, LsPictureSize *s)
{
    const LsTensor *t = &d->p->input[input].t;
    const LsSource *from = &d->source[input];
    const bool classes_last = ls_takes_labels(d->p, input) && d->p->target.class_axis > t->rank - 3;
    if (from->whole || t->rank < 3 || (t->rank == 3 && t->channels_last) || classes_last)
        return false;
    const int64_t high = t->dim[t->rank - 2], wide = t->dim[t->rank - 1];
    *s = (LsPictureSize){high, wide, from->high > 0 ? from->high : high,
                         from->high > 0 ? from->wide : wide};
    return true;
}

bool ls_picture_size(const LsDataset *d, uint32_t input, LsPictureSize *s)
{
    const LsInput *in = &d->p->input[input];
    return in->t.type == LS_DT_REAL && in->t.rank == 4 && !in->is_label
           && in->t.dim[0] == d->p->division.samples && ls_map_size(d, input, s);
}

uint32_t ls_first_picture(const LsDataset *d)
{
    LsPictureSize s;
    uint32_t k = 0;
    while (k < d->p->ninput && !ls_picture_size(d, k, &s))
        k++;
    return k;
}

bool ls_moves_with_pictures(const LsDataset *d, uint32_t input)
{
    const uint32_t first = ls_first_picture(d);
    LsPictureSize of, own;
    return first < d->p->ninput && ls_picture_size(d, first, &of) && ls_map_size(d, input, &own)
           && own.high == of.high && own.wide == of.wide
           && (d->p->input[input].is_label || d->p->input[input].t.type != LS_DT_REAL
               || ls_picture_size(d, input, &own));
}

bool ls_pictures_agree(const LsDataset *d, LsError *e)
{
    const uint32_t first = ls_first_picture(d);
    LsPictureSize of, own;
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        if (!ls_moves_with_pictures(d, k) || d->source[k].one)
            continue;
        ls_picture_size(d, first, &of);
        ls_map_size(d, k, &own);
        if (own.from_high != of.from_high || own.from_wide != of.from_wide)
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: '%s' is %" PRId64 "x%" PRId64 ", but '%s' is %" PRId64 "x%" PRId64
                           ": what belongs to pictures has their rows and columns",
                           d->source[k].path, d->p->input[k].t.name, own.from_high, own.from_wide,
                           d->p->input[first].t.name, of.from_high, of.from_wide);
    }
    return true;
}

/* ---- windows ---- */

/* The column (or row) of the picture that column x has; -1: none. */
static int64_t source_of(int64_t x, int64_t n, bool flip, int64_t first, int64_t length,
                         int64_t from, const LsWindow *w)
{
    x = flip ? n - 1 - x : x;
    if (w->resized) /* the middle of the pixel lies in it */
        x = (2 * x + 1) * length / (2 * n);
    x += first;
    if (w->reflect && x < 0)
        x = -x;
    if (w->reflect && x >= from)
        x = 2 * from - 2 - x;
    return x >= 0 && x < from ? x : -1;
}

bool ls_window_piece(const LsWindow *w, const LsPictureSize *s, bool rows, int64_t x, LsPiece *p)
{
    const int64_t n = rows ? s->high : s->wide, from = rows ? s->from_high : s->from_wide,
                  first = rows ? w->top : w->left, length = rows ? w->high : w->wide;
    const bool flip = rows ? w->vflip : w->flip;
    if (x >= n)
        return false;
    *p = (LsPiece){x, 1, source_of(x, n, flip, first, length, from, w), 0};
    for (int64_t at = p->from; x + p->n < n; p->n++) {
        const int64_t next = source_of(x + p->n, n, flip, first, length, from, w);
        const int step = at < 0 || next < 0 ? 0 : next - at == 1 ? 1 : next - at == -1 ? -1 : 0;
        if ((at < 0) != (next < 0) || (at >= 0 && (step == 0 || (p->n > 1 && step != p->step))))
            break;
        p->step = step;
        at = next;
    }
    p->step = p->from >= 0 && p->n == 1 ? 1 : p->step;
    return true;
}

/* ---- reading ---- */

typedef struct Reader {
    const LsDataset *d;
    const LsTensor *t;
    uint32_t input;
    int64_t sample;
    LsPictureSize size;
    LsPiece piece[LS_PIECES]; /* of columns */
    int pieces;               /* more than LS_PIECES: they are too many to keep */
    const LsWindow *window;
    char *to;
    int64_t bytes; /* of an element */
    LsWalk walk;
} Reader;

/* Labels q .. of the sample: the elements of their classes are 1. */
static bool read_hot(const Reader *r, int64_t from, int64_t q, int64_t n, int step, LsError *e)
{
    enum { SOME = 64 };
    const int axis = r->d->p->target.class_axis;
    int64_t label[SOME], inner = 1;
    for (int k = axis + 1; k < r->t->rank; k++)
        inner *= r->t->dim[k];
    for (int64_t k = 0; k < n; k += SOME) {
        const int64_t some = n - k < SOME ? n - k : SOME;
        if (!ls_dataset_read_labels(r->d, r->input, r->sample, from + k, some, label, e))
            return false;
        for (int64_t j = 0; j < some; j++) {
            const int64_t at = q + (k + j) * step;
            const int64_t i = (at / inner * r->t->dim[axis] + label[j]) * inner + at % inner;
            ls_real_put(r->to + ls_walk_at(&r->walk, i) * r->bytes, 1, r->d->p->real_bytes);
        }
    }
    return true;
}

/* Row y of plane p has no picture. */
static void put_nothing(const Reader *r, int64_t plane, int64_t at, int64_t n)
{
    const LsProgram *p = r->d->p;
    const LsInput *in = &p->input[r->input];
    const LsSource *s = &r->d->source[r->input];
    const double v = in->t.type == LS_DT_REAL
                         ? ls_dataset_zero_value(r->d, r->input, plane % s->channel)
                     : in->is_label && p->target.has_ignore ? (double)p->target.ignore
                                                            : 0;
    if (s->labels > 0) { /* a map of nothing is class 0 */
        for (int64_t k = 0; k < n; k++) {
            const int64_t i = at + k; /* plane 0 of the classes */
            ls_real_put(r->to + ls_walk_at(&r->walk, i) * r->bytes, 1, p->real_bytes);
        }
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        char *to = r->to + ls_walk_at(&r->walk, at + k) * r->bytes;
        if (in->t.type == LS_DT_REAL)
            ls_real_put(to, v, p->real_bytes);
        else if (in->t.type == LS_DT_I64)
            *(int64_t *)(void *)to = (int64_t)v;
        else if (in->t.type == LS_DT_I32)
            *(int32_t *)(void *)to = (int32_t)v;
        else
            *to = 0;
    }
}

static bool read_piece(const Reader *r, int64_t plane, int64_t y, int64_t from_y, const LsPiece *c,
                       LsError *e)
{
    const LsPictureSize *s = &r->size;
    const int64_t at = (plane * s->high + y) * s->wide + c->x;
    if (from_y < 0 || c->from < 0)
        return put_nothing(r, plane, at, c->n), true;
    const bool back = c->step < 0;
    const int64_t from = (plane * s->from_high + from_y) * s->from_wide
                         + (back ? c->from - c->n + 1 : c->from),
                  first = back ? at + c->n - 1 : at;
    const int64_t apart = r->t->channels_last ? r->walk.channels : 1;
    if (r->d->source[r->input].labels > 0)
        return read_hot(r, from, first, c->n, back ? -1 : 1, e);
    return ls_dataset_read_run(r->d, r->input, r->sample, from, plane, c->n,
                               r->to + ls_walk_at(&r->walk, first) * r->bytes,
                               back ? -apart : apart, e);
}

/* A row of a window that is turned, pixel by pixel. */
static bool read_turned(const Reader *r, int64_t plane, int64_t y, LsError *e)
{
    const LsPictureSize *s = &r->size;
    for (int64_t x = 0; x < s->wide; x++) {
        double from[2];
        ls_window_turn(r->window, s->high, s->wide, y, x, from);
        const int64_t at_y = (int64_t)rint(from[0]), at_x = (int64_t)rint(from[1]);
        LsPiece row = {.from = -1}, column = {.from = -1};
        if (at_y >= 0 && at_y < s->high)
            row.from = source_of(at_y, s->high, r->window->vflip, r->window->top, r->window->high,
                                 s->from_high, r->window);
        if (at_x >= 0 && at_x < s->wide)
            column.from = source_of(at_x, s->wide, r->window->flip, r->window->left,
                                    r->window->wide, s->from_wide, r->window);
        column.x = x, column.n = 1, column.step = 1;
        if (!read_piece(r, plane, y, row.from, &column, e))
            return false;
    }
    return true;
}

static bool read_row(const Reader *r, int64_t plane, int64_t y, int64_t from_y, LsError *e)
{
    LsPiece c;
    if (r->pieces <= LS_PIECES) {
        for (int k = 0; k < r->pieces; k++)
            if (!read_piece(r, plane, y, from_y, &r->piece[k], e))
                return false;
        return true;
    }
    for (int64_t x = 0; ls_window_piece(r->window, &r->size, false, x, &c); x += c.n)
        if (!read_piece(r, plane, y, from_y, &c, e))
            return false;
    return true;
}

static void keep_pieces(Reader *r)
{
    LsPiece c;
    for (int64_t x = 0; ls_window_piece(r->window, &r->size, false, x, &c); x += c.n)
        if (r->pieces++ < LS_PIECES)
            r->piece[r->pieces - 1] = c;
        else
            return;
}

static Reader begin(const LsDataset *d, uint32_t input, int64_t sample, void *to)
{
    const LsTensor *t = &d->p->input[input].t;
    return (Reader){.d = d,
                    .t = t,
                    .input = input,
                    .sample = sample,
                    .to = to,
                    .bytes = ls_data_bytes(t->type, d->p->real_bytes),
                    .walk = ls_walk_start(t)};
}

bool ls_window_read(const LsDataset *d, uint32_t input, int64_t sample, const LsWindow *w, void *to,
                    LsError *e)
{
    const LsSource *s = &d->source[input];
    Reader r = begin(d, input, sample, to);
    if (!ls_map_size(d, input, &r.size))
        return false;
    r.window = w;
    if (s->labels > 0)
        memset(to, 0, (size_t)(s->per_sample * r.bytes));
    keep_pieces(&r);
    const int64_t planes = s->labels > 0 ? 1 : s->per_sample / (r.size.high * r.size.wide);
    for (int64_t y = 0; w->turned && y < r.size.high; y++)
        for (int64_t p = 0; p < planes; p++)
            if (!read_turned(&r, p, y, e))
                return false;
    if (w->turned)
        return true;
    LsPiece rows;
    for (int64_t y = 0; ls_window_piece(w, &r.size, true, y, &rows); y += rows.n)
        for (int64_t p = 0; p < planes; p++)
            for (int64_t k = 0; k < rows.n; k++)
                if (!read_row(&r, p, y + k, rows.from < 0 ? -1 : rows.from + k * rows.step, e))
                    return false;
    return true;
}

bool ls_picture_sample(const LsDataset *d, uint32_t input, int64_t sample, void *to, LsError *e)
{
    const LsSource *s = &d->source[input];
    LsPictureSize size;
    if (s->labels > 0 && s->high == 0) {
        const Reader r = begin(d, input, sample, to);
        memset(to, 0, (size_t)(s->per_sample * r.bytes));
        return read_hot(&r, 0, 0, s->labels, 1, e);
    }
    if (!ls_map_size(d, input, &size) || size.from_high < size.high || size.from_wide < size.wide)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: '%s' is %" PRId64 "x%" PRId64 ", smaller than the %" PRId64 "x%" PRId64
                       " that the program takes",
                       s->path, d->p->input[input].t.name, size.from_high, size.from_wide,
                       size.high, size.wide);
    const LsWindow w = ls_window_centre(&size);
    return ls_window_read(d, input, sample, &w, to, e);
}
