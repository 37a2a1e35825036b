/* codegen/kernels/resize.c -- LS_K_RESIZE: nearest and linear resizing, and its gradient.
 *
 * Along each resized axis the result is a sparse matrix times the operand: every result index has a
 * few operand indices with weights. The matrices are computed here and printed as tables. The
 * gradient prints the transposed matrices and runs the same loops. So both directions only gather,
 * in a fixed order. A tile of some rows has those rows of the matrix of its axis. */
#include "codegen/kernels/resize.h"

#include "codegen/kernels/loop_nest.h"
#include "compiler/ops/resize_line.h"

#include <inttypes.h>

enum { TO, FROM, TENSORS };     /* tensors of the nest; FROM has stride 0 along resized axes */

typedef struct Entry { int64_t row, col; double by; } Entry;

typedef struct Axis {           /* a resized axis of the nest */
    int64_t from;               /* operand's stride */
    int64_t rows;               /* length of the result */
    Entry *entry; int64_t count;    /* sorted by row */
    bool pick;                  /* one entry of weight 1 per row */
} Axis;

typedef struct Resize {
    const LsKernelText *k;
    LsEmit *e;
    const LsResizeAttr *at;
    LsNest *n;
    Axis axis[LS_NEST_AXES];    /* by axis of the nest */
} Resize;

/* The matrix of logical axis k, from x to y. */
static void forward_entries(const Resize *r, int k, Axis *a)
{
    enum { MOST = 2 };          /* of nearest and linear */
    const LsResizeLine line = ls_resize_axis(r->at, k);
    a->entry = ls_arena_alloc(r->k->g->arena, (size_t)line.y * MOST, sizeof *a->entry);
    a->pick = line.mode == LS_LINE_NEAREST;
    for (int64_t i = 0; i < line.y; i++) {
        LsLineTap tap[MOST];
        const int64_t n = ls_line_taps(&line, i, tap);
        for (int64_t j = 0; j < n; j++)
            a->entry[a->count++] = (Entry){i, tap[j].at, tap[j].by};
    }
}

/* Of a tile: leaves the rows of its axis d that it makes, and counts columns from the first row
 * that it reads. */
static void cut(const Resize *r, int d, Axis *a)
{
    const LsTilePlace *of = r->k->g->node[r->k->n.i].tile;
    int64_t n = 0;
    if (of == NULL || of->axis != d)
        return;
    const int64_t end = of->first + ls_shape(r->k->g, ls_out(r->k->g, r->k->n, 0))->dim[d];
    for (int64_t e = 0; e < a->count; e++)
        if (a->entry[e].row >= of->first && a->entry[e].row < end)
            a->entry[n++] = (Entry){a->entry[e].row - of->first, a->entry[e].col - of->from,
                                    a->entry[e].by};
    a->count = n;
}

/* Swaps rows and columns; entries of a row keep their order. */
static void transpose(const Resize *r, int64_t rows, Axis *a)
{
    Entry *t = ls_arena_alloc(r->k->g->arena, (size_t)a->count, sizeof *t);
    int64_t *next = ls_arena_alloc(r->k->g->arena, (size_t)rows + 1, sizeof *next);
    for (int64_t e = 0; e < a->count; e++)
        next[a->entry[e].col + 1]++;
    for (int64_t i = 0; i < rows; i++)
        next[i + 1] += next[i];
    for (int64_t e = 0; e < a->count; e++)
        t[next[a->entry[e].col]++] = (Entry){a->entry[e].col, a->entry[e].row, a->entry[e].by};
    a->entry = t;
    a->pick = false;
}

static Resize resize_new(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    bool grad = node->op == LS_OP_RESIZE_GRAD;
    const LsValue *to = &k->g->value[ls_out(k->g, k->n, 0).i],
                  *from = &k->g->value[ls_in(k->g, k->n, 0).i];
    Resize r = {.k = k, .e = k->e, .at = &node->attr.resize};
    int64_t ts[LS_MAX_RANK], fs[LS_MAX_RANK];
    int order[LS_MAX_RANK], logical[LS_NEST_AXES], count = 0;
    ls_strides(&to->shape, to->layout, ts);
    ls_strides(&from->shape, from->layout, fs);
    ls_walk_order(&to->shape, to->layout, order);
    r.n = ls_nest_new(k->g, &to->shape, to->layout, TENSORS);
    ls_nest_tensor(r.n, &to->shape, to->layout, TO, ts);
    ls_nest_tensor(r.n, &to->shape, to->layout, FROM, fs);
    for (int a = 0; a < to->shape.rank; a++) {
        int d = order[a];
        r.n->alone[a] = r.at->x.dim[d] != r.at->y.dim[d] || r.at->scale[d] != 1;
        if (r.n->alone[a]) {
            r.n->stride[FROM][a] = 0;
            logical[count++] = d;
        }
    }
    ls_nest_merge(r.n);
    count = 0;
    for (int a = 0; a < r.n->naxis; a++) {
        if (!r.n->alone[a])
            continue;
        int d = logical[count++];
        forward_entries(&r, d, &r.axis[a]);
        if (grad)
            transpose(&r, r.at->x.dim[d], &r.axis[a]);
        cut(&r, d, &r.axis[a]);
        r.axis[a].from = fs[d];
        r.axis[a].rows = r.n->size[a];
    }
    return r;
}

/* ---- tables ---- */
static void table(const Resize *r, const char *type, const char *name, int axis, int64_t count,
                  const char *(*item)(const Resize *, const Axis *, int64_t))
{
    enum { LINE = 12 };
    ls_emit_line(r->e, "static const %s %s_%s[%" PRId64 "] = {", type, name, r->n->var[axis],
                 count);
    for (int64_t i = 0; i < count; i += LINE) {
        const char *line = "";
        for (int64_t j = i; j < count && j < i + LINE; j++)
            line = ls_arena_printf(r->n->arena, "%s%s,%s", line, item(r, &r->axis[axis], j),
                                   j + 1 < count && j + 1 < i + LINE ? " " : "");
        ls_emit_line(r->e, "%s", line);
    }
    ls_emit_line(r->e, "};");
}

static const char *column(const Resize *r, const Axis *a, int64_t e)
{
    return ls_arena_printf(r->n->arena, "%" PRId64, a->entry[e].col);
}

static const char *weight(const Resize *r, const Axis *a, int64_t e)
{
    return ls_arena_printf(r->n->arena, r->k->target->real_bytes == 4 ? "%.9g" : "%.17g",
                           a->entry[e].by);
}

/* The first entry of a row; for the row after the last, the number of entries. */
static const char *first(const Resize *r, const Axis *a, int64_t row)
{
    int64_t lo = 0, hi = a->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (a->entry[mid].row < row)
            lo = mid + 1;
        else
            hi = mid;
    }
    return ls_arena_printf(r->n->arena, "%" PRId64, lo);
}

static void tables(const Resize *r)
{
    for (int a = 0; a < r->n->naxis; a++) {
        const Axis *ax = &r->axis[a];
        if (!r->n->alone[a])
            continue;
        table(r, "int32_t", "from", a, ax->count, column);
        if (ax->pick)
            continue;
        table(r, "real", "by", a, ax->count, weight);
        table(r, "int32_t", "first", a, ax->rows + 1, first);
    }
}

/* ---- loops ---- */
/* The offset of the operand's element for the entries e_i, e_j, ...; a picked axis has one entry
 * per row. */
static const char *source(const Resize *r)
{
    const char *text = ls_nest_offset(r->n, FROM, 0, r->n->naxis);
    for (int a = 0; a < r->n->naxis; a++)
        if (r->n->alone[a])
            text = ls_arena_printf(r->n->arena, "%s + from_%s[%s%s] * (int64_t)%" PRId64, text,
                                   r->n->var[a], r->axis[a].pick ? "" : "e_", r->n->var[a],
                                   r->axis[a].from);
    return text;
}

/* Opens the loops over the entries of every resized axis, with their weight `by`; returns the
 * braces. */
static int open_entries(const Resize *r)
{
    int open = 0;
    const char *by = NULL;
    for (int a = 0; a < r->n->naxis; a++) {
        const char *v = r->n->var[a];
        if (!r->n->alone[a])
            continue;
        ls_emit_line(r->e, "for (int32_t e_%s = first_%s[%s]; e_%s < first_%s[%s + 1]; e_%s++) {",
                     v, v, v, v, v, v, v);
        const char *one = ls_arena_printf(r->n->arena, "by_%s[e_%s]", v, v);
        by = by == NULL ? one : ls_arena_printf(r->n->arena, "%s * %s", by, one);
        open++;
    }
    ls_emit_line(r->e, "const real by = %s;", by);
    return open;
}

static bool picks(const Resize *r)
{
    for (int a = 0; a < r->n->naxis; a++)
        if (r->n->alone[a] && !r->axis[a].pick)
            return false;
    return true;
}

static void resize_emit(const LsKernelText *k)
{
    const Resize r = resize_new(k);
    const LsBoxes b = ls_boxes(k, r.n);
    const LsGrid part = ls_boxes_grid("part", &b);
    const char *to = ls_nest_offset(r.n, TO, 0, r.n->naxis);
    ls_emit_part(k, &part);
    tables(&r);
    ls_emit_operand(k, "x", 0);
    ls_emit_result(k, "y", 0);
    int open = ls_boxes_open(k->e, r.n, &b) + 1;
    if (picks(&r)) {
        ls_boxes_inner(k->e, r.n, &b);
        ls_emit_line(k->e, "y[%s] = x[%s];", to, source(&r));
        open++;
    } else if (r.n->alone[r.n->naxis - 1]) {
        ls_boxes_inner(k->e, r.n, &b);
        ls_emit_line(k->e, "real sum = 0;");
        int entries = open_entries(&r);
        ls_emit_line(k->e, "sum += by * x[%s];", source(&r));
        ls_emit_close(k->e, entries);
        ls_emit_line(k->e, "y[%s] = sum;", to);
        open++;
    } else {
        ls_boxes_inner(k->e, r.n, &b);
        ls_emit_line(k->e, "y[%s] = 0;", to);
        ls_emit_line(k->e, "}");
        int entries = open_entries(&r);
        ls_boxes_inner(k->e, r.n, &b);
        ls_emit_line(k->e, "y[%s] += by * x[%s];", to, source(&r));
        ls_emit_close(k->e, entries + 1);
    }
    ls_emit_close(k->e, open);
    ls_emit_launch(k, &part, 1);
}

void ls_resize_rows(const LsGraph *g, LsNodeId n, int axis, int64_t first, int64_t end,
                    int64_t rows[2])
{
    enum { MOST = 2 };
    const LsResizeLine line = ls_resize_axis(&g->node[n.i].attr.resize, axis);
    const bool grad = g->node[n.i].op == LS_OP_RESIZE_GRAD;
    LsLineTap tap[MOST];
    if (line.x == line.y && line.scale == 1) {      /* it is not resized */
        rows[0] = first;
        rows[1] = end;
        return;
    }
    rows[0] = grad ? line.y : line.x;
    rows[1] = 0;
    for (int64_t y = grad ? 0 : first; y < (grad ? line.y : end); y++) {
        const int64_t count = ls_line_taps(&line, y, tap);
        for (int64_t k = 0; k < count; k++) {
            const int64_t from = grad ? y : tap[k].at;
            if (grad && (tap[k].at < first || tap[k].at >= end))
                continue;
            rows[0] = from < rows[0] ? from : rows[0];
            rows[1] = from + 1 > rows[1] ? from + 1 : rows[1];
        }
    }
}

const LsEmitter ls_emitter_resize = {.emit = resize_emit};
