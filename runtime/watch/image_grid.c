/* runtime/watch/image_grid.c -- see image_grid.h. */
#include "runtime/base/png_write.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/watch/image_grid.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, CELL = 96, GAP = 4 };       /* CELL: least pixels of an image's longer side */

/* One row of the grid: a tensor, and how a sample of it is displayed. */
typedef struct LsGridRow {
    const LsTensor *t;
    const LsWatch *watch;       /* NULL: the input */
    LsTensor code_t; LsWatch code;      /* storage for watch and t in a row of find_code */
    int64_t c, h, w, count;     /* count: elements of a sample, possibly less than c * h * w */
    float *value;               /* [COLUMNS][count], in logical order */
    double low, high;           /* black and white */
} LsGridRow;

typedef struct LsGrid {
    LsEngine *g;
    LsLoader *l;
    uint32_t input;             /* the input in row 0 */
    int64_t have, take;         /* columns filled; columns to fill from this batch */
    LsGridRow *row; int nrow;
    int64_t h, w;               /* pixels of a cell */
} LsGrid;

/* Chooses the display of a row. A vector is shown as a square, filled line by line. */
static bool look_at(LsGridRow *r, const LsTensor *t, const LsGridRow *input, int64_t batch)
{
    bool image = t->rank == 4, gray = t->rank == 3;
    if (t->rank < 2 || t->rank > 4 || t->dim[0] != batch || !ls_holds_reals(t->type))
        return false;
    *r = (LsGridRow){.t = t, .count = ls_tensor_count(t) / batch};
    r->c = image ? t->dim[1] : 1;
    r->h = image ? t->dim[2] : gray ? t->dim[1] : 1;
    r->w = image ? t->dim[3] : gray ? t->dim[2] : r->count;
    bool flat = t->rank == 2 || r->h * r->w == 1;
    if (flat && input && r->count == input->count) {
        r->c = input->c, r->h = input->h, r->w = input->w;
    } else if (flat) {
        r->c = 1;
        r->w = (int64_t)ceil(sqrt((double)r->count));
        r->h = (r->count + r->w - 1) / r->w;
    }
    return true;
}

/* Sets row 0 and its input. */
static bool find_image(LsGrid *x)
{
    const LsProgram *p = x->g->p;
    LsGridRow *r = &x->row[0];
    for (x->input = 0; x->input < p->ninput; x->input++)
        if (!p->input[x->input].is_label
            && look_at(r, &p->input[x->input].t, NULL, p->division.samples)
            && (r->c == 1 || r->c == 3))
            return true;
    return false;
}

/* For an autoencoder whose code is no output: the smallest result, per sample, on the path to the
 * output that resembles the input. Rows are in their final place, so pointers into them stay
 * valid. */
static void find_code(LsGrid *x, const LsWatch *like)
{
    const LsProgram *p = x->g->p;
    LsGridRow *r = &x->row[x->nrow];
    int64_t least = x->row[0].count / 2;
    for (uint32_t k = 0; k < like->step; k++)
        for (uint32_t o = 0; o < p->phase.eval.step[k].nout; o++) {
            const LsStep *s = &p->phase.eval.step[k];
            int64_t count = p->argument.count[s->count + o], each = count / p->division.samples;
            LsAddress at = p->argument.address[s->arg + s->nin + o];
            LsDataType type = (LsDataType)p->argument.type[s->count + o];
            if (!ls_holds_reals(type) || at.space != LS_AT_ARENA
                || count % p->division.samples != 0 || each < 2 || each > least)
                continue;
            LsTensor t = {.name = s->name,
                          .type = type,
                          .rank = 2,
                          .dim = {p->division.samples, each},
                          .at = at};
            look_at(r, &t, NULL, p->division.samples);
            r->code_t = t;
            r->code = (LsWatch){t, "code/", k, false, 0};
            r->t = &r->code_t;
            r->watch = &r->code;
            least = each;
        }
    x->nrow += r->watch != NULL;
}

static const LsWatch *output_like_input(const LsGrid *x)
{
    const LsPhaseTable *t = &x->g->p->phase.eval;
    for (uint32_t k = 0; k < t->nwatch; k++)
        if (strncmp(t->watch[k].key, "out/", 4) == 0 && !t->watch[k].before
            && ls_tensor_count(&t->watch[k].t) == x->row[0].count * x->g->p->division.samples)
            return &t->watch[k];
    return NULL;
}

/* Adds the watched values with `least` to `most` elements per sample. */
static void add_watched(LsGrid *x, const char *prefix, int64_t least, int64_t most)
{
    const LsPhaseTable *t = &x->g->p->phase.eval;
    for (uint32_t k = 0; k < t->nwatch; k++) {
        int64_t each = ls_tensor_count(&t->watch[k].t) / x->g->p->division.samples;
        if (strncmp(t->watch[k].key, prefix, strlen(prefix)) == 0 && each >= least && each <= most
            && look_at(&x->row[x->nrow], &t->watch[k].t, &x->row[0], x->g->p->division.samples))
            x->row[x->nrow++].watch = &t->watch[k];
    }
}

static bool make_rows(LsGrid *x, const char *path, LsError *e)
{
    x->row = calloc(x->g->p->phase.eval.nwatch + 2, sizeof *x->row);
    if (!x->row)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (!find_image(x))
        return ls_fail(e, LS_EXIT_FAIL, "%s: the model has no input that is an image", path);
    x->nrow = 1;
    add_watched(x, "code/", 0, INT64_MAX);
    const LsWatch *like = output_like_input(x);
    int64_t code = like ? x->row[0].count / 2 : -1;
    add_watched(x, "out/", 0, code);    /* an autoencoder's code may be an output too */
    if (x->nrow == 1 && like)
        find_code(x, like);
    add_watched(x, "out/", code + 1, INT64_MAX);
    for (int k = 0; k < x->nrow; k++) {
        x->row[k].value = calloc((size_t)(COLUMNS * x->row[k].count), sizeof(float));
        if (!x->row[k].value)
            return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    }
    return true;
}

static void copy_row(LsGrid *x, LsGridRow *r, const char *from)
{
    LsWalk walk = ls_walk_start(r->t);
    float *to = r->value + x->have * r->count;
    int64_t each = ls_data_bytes(r->t->type, x->g->p->real_bytes);
    for (int64_t i = 0; i < x->take * r->count; i++)
        to[i] = (float)ls_element_at(r->t->type, from + ls_walk_next(&walk) * each,
                                     x->g->p->real_bytes);
}

static void copy_watched(LsGrid *x, uint32_t step, bool before)
{
    for (int k = 1; k < x->nrow; k++)
        if (x->row[k].watch->step == step && x->row[k].watch->before == before)
            copy_row(x, &x->row[k], ls_engine_view(x->g, x->row[k].t->at,
                     ls_tensor_bytes(x->row[k].t, x->g->p->real_bytes)));
}

static void before(void *self, uint32_t step) { copy_watched(self, step, true); }
static void after(void *self, uint32_t step) { copy_watched(self, step, false); }

static bool run_model(LsGrid *x, const LsDataset *data, LsError *e)
{
    LsPass pass = {.data = data};
    LsHook hook = {before, after, x, NULL};
    pass.end = ls_batches_per_epoch(&pass);
    ls_loader_begin(x->l, &pass);
    for (int64_t k = 0; k < pass.end && x->have < COLUMNS; k++) {
        const LsBatch *b = ls_loader_next(x->l, e);
        if (!b)
            return false;
        x->take = b->valid < COLUMNS - x->have ? b->valid : COLUMNS - x->have;
        copy_row(x, &x->row[0], b->input + x->l->offset[x->input]);
        ls_engine_feed(x->g, x->l, b);
        if (!ls_engine_run(x->g, &x->g->p->phase.eval, &hook, 1, e) || !ls_engine_fed(x->g, e))
            return false;
        ls_loader_release(x->l);
        x->have += x->take;
    }
    return true;
}

/* Images keep the range 0..1 if the input is within it, and share the input's range; other rows
 * have their own. */
static void set_ranges(LsGrid *x)
{
    for (int k = 0; k < x->nrow; k++) {
        LsGridRow *r = &x->row[k];
        bool image = r->c == x->row[0].c && r->h == x->row[0].h && r->w == x->row[0].w;
        r->low = INFINITY, r->high = -INFINITY;
        for (int64_t i = 0; i < x->have * r->count; i++) {
            r->low = fmin(r->low, r->value[i]);
            r->high = fmax(r->high, r->value[i]);
        }
        if (k == 0 && r->low >= 0 && r->high <= 1)
            r->low = 0, r->high = 1;
        if (k > 0 && image)
            r->low = x->row[0].low, r->high = x->row[0].high;
        if (!(r->high > r->low))
            r->high = r->low + 1;
    }
}

/* More channels than colours are class scores: the class of the largest, as a shade. */
static unsigned char shade(const LsGridRow *r, const float *v, int64_t y, int64_t x, int colour)
{
    int64_t area = r->h * r->w, at = y * r->w + x, best = 0;
    if (at >= r->count)
        return 0;
    if (r->c == 1 || r->c == 3) {
        double part = (v[(r->c == 3 ? colour : 0) * area + at] - r->low) / (r->high - r->low);
        return (unsigned char)(255 * fmin(fmax(part, 0), 1) + 0.5);
    }
    for (int64_t c = 1; c < r->c; c++)
        if (v[c * area + at] > v[best * area + at])
            best = c;
    return (unsigned char)(255 * best / (r->c - 1));
}

static void paint(const LsGrid *x, int row, int64_t column, unsigned char *rgb, int64_t width)
{
    const LsGridRow *r = &x->row[row];
    const float *v = r->value + column * r->count;
    int64_t top = GAP + row * (x->h + GAP), left = GAP + column * (x->w + GAP);
    for (int64_t py = 0; py < x->h; py++)
        for (int64_t px = 0; px < x->w; px++)
            for (int c = 0; c < 3; c++)
                rgb[((top + py) * width + left + px) * 3 + c] =
                    shade(r, v, py * r->h / x->h, px * r->w / x->w, c);
}

static bool paint_all(LsGrid *x, const char *path, LsError *e)
{
    const LsGridRow *in = &x->row[0];
    int64_t longer = in->h > in->w ? in->h : in->w, scale = (CELL + longer - 1) / longer;
    x->h = in->h * scale;
    x->w = in->w * scale;
    int64_t width = GAP + x->have * (x->w + GAP), height = GAP + x->nrow * (x->h + GAP);
    unsigned char *rgb = malloc((size_t)(width * height * 3));
    if (!rgb)
        return ls_fail(e, LS_EXIT_FAIL, "%s: no memory for the picture", path);
    memset(rgb, 128, (size_t)(width * height * 3));
    for (int k = 0; k < x->nrow; k++)
        for (int64_t c = 0; c < x->have; c++)
            paint(x, k, c, rgb, width);
    bool ok = ls_picture_write(path, rgb, width, height, e);
    free(rgb);
    return ok;
}

bool ls_grid_write(LsEngine *g, LsLoader *l, const LsDataset *data, const char *path, LsError *e)
{
    LsGrid x = {.g = g, .l = l};
    bool ok = make_rows(&x, path, e) && run_model(&x, data, e);
    if (ok)
        set_ranges(&x);
    ok = ok && paint_all(&x, path, e);
    for (int k = 0; k < x.nrow; k++)
        free(x.row[k].value);
    free(x.row);
    return ok;
}
