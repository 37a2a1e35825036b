/* codegen/kernels/reduce.c -- FUSED bodies with reductions.
 *
 * Two shapes of loop. Where the innermost axis is kept (channels-last statistics), a row of
 * accumulators runs along it; where it is reduced, LANES accumulators run along it and are summed
 * as a tree at its end. Sums of floats run in float for a few elements only and go on in double.
 * When there is little to keep, the longest reduced axis is cut into pieces, as many as the shape
 * says; their partial results lie in the workspace and are combined in order by a second part. So
 * the bits of a result depend on the shape alone. */
#include "codegen/kernels/body.h"

#include <inttypes.h>
#include <string.h>

enum {
    UNIT = 8192,            /* elements worth a unit */
    PIECE = 16384,          /* elements worth a piece of a cut axis */
    MAX_PIECE = 32,
    TILE = 1024,            /* accumulators of a row, at most */
    GPU_PIECE = 8192, GPU_MAX_PIECE = 1024, GPU_TILE = 128,
    GPU_LOCAL = 32768,      /* bytes of accumulators that a block may have */
    END_COLUMNS = 8,        /* results of a unit that combines pieces */
    RUN = 16,               /* rows summed in float before they go to double */
    PARTIAL_BYTES = 8,
};

typedef struct Reduce {
    LsBody body;
    int kept[LS_NEST_AXES], nkept;      /* kept axes, except an innermost one */
    int red[LS_NEST_AXES], nred;        /* reduced axes, except an innermost one */
    bool rows;              /* the innermost axis is kept */
    int64_t inner;          /* its length */
    int64_t outer;          /* points of the kept axes */
    int64_t group;          /* of them in one unit */
    int64_t tile, ntile;    /* rows: accumulators, tiles of the innermost axis */
    int64_t lanes;          /* not rows: accumulators */
    bool fours;             /* rows: LS_LANES4 serves the innermost axis */
    LsGrid part[2];
    int cut;                /* axis that is cut */
    int64_t piece, npiece;  /* its length, and how many */
    int64_t count;          /* elements combined into one */
} Reduce;

static void sort_axes(Reduce *r)
{
    const LsNest *n = r->body.nest;
    int last = n->naxis - 1;
    r->rows = !n->reduced[last];
    r->inner = n->size[last];
    r->outer = r->count = 1;
    r->cut = -1;
    for (int k = 0; k <= last; k++) {
        if (n->reduced[k]) {
            r->count *= n->size[k];
            if (r->cut < 0 || n->size[k] > n->size[r->cut])
                r->cut = k;
            if (k < last)
                r->red[r->nred++] = k;
        } else if (k < last) {
            r->outer *= n->size[k];
            r->kept[r->nkept++] = k;
        }
    }
    r->lanes = ls_lanes(r->inner);
    int64_t most = r->body.k->target->kind == LS_TARGET_CPU ? TILE : GPU_TILE;
    r->ntile = r->rows ? ls_ceil_div(r->inner, most) : 1;
    /* Even tiles keep a processor's threads busy to the end. On a GPU they are more than blocks that
     * run at a time; there equal tiles let kernels of many widths share a text. */
    r->tile = !r->rows ? 1 : most == GPU_TILE ? most
              : ls_ceil_div(ls_ceil_div(r->inner, r->ntile), 16) * 16;
    if (r->ntile == 1)
        r->tile = r->inner;
}

/* How the longest reduced axis is cut. */
static void cut_axis(Reduce *r)
{
    bool cpu = r->body.k->target->kind == LS_TARGET_CPU;
    int64_t points = ls_nest_count(r->body.nest), apart = r->outer * r->ntile;
    int64_t want = points / (cpu ? PIECE : GPU_PIECE) / apart, most = cpu ? MAX_PIECE : GPU_MAX_PIECE;
    int64_t length = r->cut < 0 ? 1 : r->body.nest->size[r->cut];
    int64_t grain = r->cut == r->body.nest->naxis - 1 ? r->lanes : 1;
    if (want > most)
        want = most;
    if (want > length / grain)
        want = length / grain;
    if (want < 1)
        want = 1;
    r->piece = ls_ceil_div(ls_ceil_div(length, want), grain) * grain;
    r->npiece = ls_ceil_div(length, r->piece);
    if (r->npiece == 1)
        r->piece = length;
    int64_t each = points / apart / r->npiece, unit = ls_unit(r->body.k);
    r->group = each >= unit ? 1 : unit / each;
    if (r->group > r->outer)
        r->group = r->outer;
}

/* Rows of threads share the innermost reduced axis, as far as their accumulators have room. */
static void find_grids(Reduce *r, int nsum)
{
    int64_t points = r->outer * (r->rows ? r->inner : 1);
    int64_t units = ls_ceil_div(r->outer, r->group) * r->ntile * r->npiece;
    int x = r->rows ? ls_threads(r->fours ? r->tile / 4 : r->tile, 256) : (int)r->lanes, y = 1;
    int64_t rows = r->rows ? r->nred > 0 ? 256 : 1 : x <= 32 ? r->group : 1;
    int64_t bytes = (r->rows ? r->tile : r->lanes) * 12 * nsum;
    while (2 * y <= 256 / x && y < rows && 2 * y * bytes <= GPU_LOCAL)
        y *= 2;
    r->part[0] = (LsGrid){"part", units, x, y};
    r->part[1] = (LsGrid){"end", ls_ceil_div(points, END_COLUMNS), END_COLUMNS, 32};
}

static Reduce reduce_new(const LsKernelText *k)
{
    Reduce r = {.body = ls_body_new(k)};
    int nsum = 0;
    for (int y = 0; y < r.body.node->nout; y++)
        nsum += r.body.f->out[y].reduce;
    sort_axes(&r);
    cut_axis(&r);
    r.fours = r.rows && r.tile % 4 == 0 && ls_boxes(k, r.body.nest).fours;
    r.body.fours = r.fours;
    find_grids(&r, nsum);
    return r;
}

static LsEmit *to(const Reduce *r) { return r->body.k->e; }

/* ---- types of accumulators ---- */
static LsType result_type(const Reduce *r, int y)
{
    return ls_type(r->body.k->g, ls_out(r->body.k->g, r->body.k->n, y));
}

/* A sum of floats, which runs in float and goes on in double. */
static bool long_sum(const Reduce *r, int y)
{
    return r->body.f->out[y].combine == LS_SUM && result_type(r, y) == LS_REAL
        && r->body.k->target->real_bytes == 4;
}

/* Type of the total, and of every accumulator but those of long sums, which are `real`. */
static const char *total_type(const Reduce *r, int y)
{
    LsCombine c = r->body.f->out[y].combine;
    if (result_type(r, y) != LS_REAL)
        return "int64_t";
    return c == LS_SUM || c == LS_PROD ? "double" : "real";
}

static const char *start(const Reduce *r, int y)
{
    static const char *const real[] = {"0", "-INFINITY", "INFINITY", "1"};
    static const char *const whole[] = {"0", "INT64_MIN", "INT64_MAX", "1"};
    return (result_type(r, y) == LS_REAL ? real : whole)[r->body.f->out[y].combine];
}

/* "to += x;" and its kin. */
static void combine(const Reduce *r, int y, const char *total, const char *x)
{
    switch (r->body.f->out[y].combine) {
    case LS_SUM:  ls_emit_line(to(r), "%s += %s;", total, x); break;
    case LS_PROD: ls_emit_line(to(r), "%s *= %s;", total, x); break;
    case LS_MAX:  ls_emit_line(to(r), "%s = ls_max(%s, %s);", total, total, x); break;
    case LS_MIN:  ls_emit_line(to(r), "%s = ls_min(%s, %s);", total, total, x); break;
    }
}

static const char *text(const Reduce *r, const char *format, int y)
{
    char buffer[64];
    snprintf(buffer, sizeof buffer, format, y);
    return ls_arena_strdup(r->body.nest->arena, buffer);
}

/* Result y from its total. */
static void finish(const Reduce *r, int y, const char *total)
{
    const LsBody *b = &r->body;
    const char *at = ls_nest_offset(b->nest, ls_body_result(b, y), 0, b->nest->naxis);
    const char *type = ls_ctype(result_type(r, y));
    if (b->f->out[y].mean)
        ls_emit_line(to(r), "y%d[%s] = (%s)(%s / %" PRId64 ");", y, at, type, total, r->count);
    else
        ls_emit_line(to(r), "y%d[%s] = (%s)%s;", y, at, type, total);
}

/* ---- loops ---- */
static void each_reduced(const Reduce *r, void (*print)(const Reduce *, const char *format, int y),
                         const char *format)
{
    for (int y = 0; y < r->body.node->nout; y++)
        if (r->body.f->out[y].reduce)
            print(r, format, y);
}

static void open_axis(const Reduce *r, int axis)
{
    const LsNest *n = r->body.nest;
    const char *v = n->var[axis];
    if (axis == r->cut && r->npiece > 1)
        ls_emit_line(to(r), "for (int64_t %s = from; %s < end; %s++) {", v, v, v);
    else
        ls_emit_line(to(r), "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {", v, v, n->size[axis],
                     v);
}

/* A finished total: stored, or left for the second part. */
static void deliver(const Reduce *r, const char *format, int y)
{
    if (r->npiece == 1)
        finish(r, y, text(r, format, y));
    else
        ls_emit_line(to(r), "part%d[%s] = %s;", y, r->rows ? "at + i" : "at", text(r, format, y));
}

/* ---- the innermost axis is kept ---- */
static void tile_loop(const Reduce *r)
{
    const char *i = r->body.nest->var[r->body.nest->naxis - 1], *word = ls_lanes_word(r->fours);
    if (r->ntile == 1)
        ls_emit_line(to(r), "%s(%s, 0, %" PRId64 ") {", word, i, r->inner);
    else
        ls_emit_line(to(r), "%s(%s, i0, i1) {", word, i);
}

static const char *column(const Reduce *r)
{
    return r->ntile == 1 ? "i" : "i - i0";
}

static void local_rows(const Reduce *r, const LsGrid *part, const char *type, const char *name,
                       int y, int64_t n)
{
    ls_emit_line(to(r), "LS_LOCAL_ROWS(%s, %s%d, %" PRId64 ", %d);", type, name, y, n, part->y);
}

static void rows_declare(const Reduce *r, const char *format, int y)
{
    (void)format;
    local_rows(r, &r->part[0], total_type(r, y), "total", y, r->tile);
    if (long_sum(r, y))
        local_rows(r, &r->part[0], "real", "run", y, r->tile);
}

static void rows_start(const Reduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(to(r), "total%d[%s] = %s;", y, column(r), start(r, y));
    if (long_sum(r, y))
        ls_emit_line(to(r), "run%d[%s] = 0;", y, column(r));
}

static void rows_combine(const Reduce *r, const char *format, int y)
{
    (void)format;
    combine(r, y,
            ls_arena_printf(r->body.nest->arena, "%s%d[%s]", long_sum(r, y) ? "run" : "total", y,
                            column(r)),
            text(r, "v%d", r->body.f->out[y].stmt));
}

static void rows_flush(const Reduce *r, const char *format, int y)
{
    (void)format;
    if (!long_sum(r, y))
        return;
    ls_emit_line(to(r), "total%d[%s] += run%d[%s];", y, column(r), y, column(r));
    ls_emit_line(to(r), "run%d[%s] = 0;", y, column(r));
}

static bool any_long_sum(const Reduce *r)
{
    for (int y = 0; y < r->body.node->nout; y++)
        if (r->body.f->out[y].reduce && long_sum(r, y))
            return true;
    return false;
}

static void vector_loop(const Reduce *r, void (*print)(const Reduce *, const char *, int),
                        const char *format)
{
    tile_loop(r);
    each_reduced(r, print, format);
    ls_emit_line(to(r), "}");
}

/* The innermost reduced axis, shared by the rows of threads: in runs of RUN, each followed by the
 * move to double, where it is long. True: two loops. */
static bool rows_axis(const Reduce *r, int axis)
{
    const LsNest *n = r->body.nest;
    const char *v = n->var[axis];
    bool cut = axis == r->cut && r->npiece > 1;
    const char *from = cut ? "from" : "0";
    const char *end = cut ? "end" : ls_arena_printf(n->arena, "%" PRId64, n->size[axis]);
    if (!any_long_sum(r) || (!cut && n->size[axis] <= RUN)) {
        ls_emit_line(to(r), "LS_ROWS(%s, %s, %s) {", v, from, end);
        return false;
    }
    int64_t runs = ls_ceil_div(cut ? r->piece : n->size[axis], RUN);
    ls_emit_line(to(r), "LS_ROWS(chunk, 0, %" PRId64 ") {", runs);
    ls_emit_line(to(r), "const int64_t r0 = %schunk * %d;", cut ? "from + " : "", RUN);
    ls_emit_line(to(r), "for (int64_t %s = r0; %s < ls_least(r0 + %d, %s); %s++) {", v, v, RUN, end,
                 v);
    return true;
}

static void rows_loops(const Reduce *r)
{
    bool loop = r->nred > 0, runs = loop && rows_axis(r, r->red[r->nred - 1]);
    ls_body_rows(&r->body);
    tile_loop(r);
    ls_body_point(&r->body);
    each_reduced(r, rows_combine, NULL);
    ls_emit_close(to(r), loop ? 2 : 1);
    if (any_long_sum(r))
        vector_loop(r, rows_flush, NULL);
    ls_emit_close(to(r), runs);
}

/* What the rows of threads have, in one. */
static void rows_fold(const Reduce *r, const char *format, int y)
{
    (void)format;
    struct LsArena *a = r->body.nest->arena;
    ls_emit_line(to(r), "%s sum%d = total%d[%s];", total_type(r, y), y, y, column(r));
    ls_emit_line(to(r), "LS_FOLD(other, %d) {", r->part[0].y);
    combine(r, y, text(r, "sum%d", y),
            ls_arena_printf(a, "LS_OF_ROW(total%d, other)[%s]", y, column(r)));
    ls_emit_line(to(r), "}");
}

static void rows_unit(const Reduce *r)
{
    each_reduced(r, rows_declare, NULL);
    vector_loop(r, rows_start, NULL);
    for (int k = 0; k + 1 < r->nred; k++)
        open_axis(r, r->red[k]);
    rows_loops(r);
    ls_emit_close(to(r), r->nred - 1);
    ls_emit_line(to(r), "LS_SYNC;");
    ls_emit_line(to(r), "LS_ROWS(first, 0, 1) {");
    tile_loop(r);
    each_reduced(r, rows_fold, NULL);
    each_reduced(r, deliver, "sum%d");
    ls_emit_close(to(r), 2);
    ls_emit_line(to(r), "LS_SYNC;");
}

/* ---- the innermost axis is reduced ---- */
static void lanes_declare(const Reduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(to(r), "%s total%d = %s;", total_type(r, y), y, start(r, y));
}

static void lanes_array(const Reduce *r, const char *format, int y)
{
    (void)format;
    local_rows(r, &r->part[0], long_sum(r, y) ? "real" : total_type(r, y), "lane", y, r->lanes);
}

static void lanes_start(const Reduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(to(r), "LS_LANES(l, 0, %" PRId64 ")", r->lanes);
    ls_emit_line(to(r), "    lane%d[l] = %s;", y, start(r, y));
}

static void lanes_combine(const Reduce *r, const char *format, int y)
{
    combine(r, y, text(r, format, y), text(r, "v%d", r->body.f->out[y].stmt));
}

static void lanes_end(const Reduce *r, const char *format, int y)
{
    (void)format;
    if (result_type(r, y) == LS_REAL && r->body.f->out[y].combine == LS_SUM) {
        ls_emit_line(to(r), "total%d += ls_sum_lanes(lane%d, %" PRId64 ");", y, y, r->lanes);
        return;
    }
    ls_emit_line(to(r), "LS_ROW_SYNC;");
    ls_emit_line(to(r), "for (int64_t l = 0; l < %" PRId64 "; l++) {", r->lanes);
    combine(r, y, text(r, "total%d", y), text(r, "lane%d[l]", y));
    ls_emit_line(to(r), "}");
    ls_emit_line(to(r), "LS_ROW_SYNC;");
}

/* Elements b .. b + count of the innermost axis, one per lane. */
static void lanes_point(const Reduce *r, const char *count)
{
    ls_emit_line(to(r), "LS_LANES(l, 0, %s) {", count);
    ls_emit_line(to(r), "const int64_t i = b + l;");
    ls_body_point(&r->body);
    each_reduced(r, lanes_combine, "lane%d[l]");
    ls_emit_line(to(r), "}");
}

static void lanes_run(const Reduce *r)
{
    bool cut = r->npiece > 1 && r->cut == r->body.nest->naxis - 1;
    struct LsArena *a = r->body.nest->arena;
    const char *end = cut ? "end" : ls_arena_printf(a, "%" PRId64, r->inner);
    int64_t rest = r->inner % r->lanes;
    ls_emit_line(to(r), "int64_t b = %s;", cut ? "from" : "0");
    ls_emit_line(to(r), "for (; b + %" PRId64 " <= %s; b += %" PRId64 ") {", r->lanes, end,
                 r->lanes);
    lanes_point(r, ls_arena_printf(a, "%" PRId64, r->lanes));
    ls_emit_line(to(r), "}");
    if (rest != 0 && cut)
        lanes_point(r, "end - b");
    else if (rest != 0)
        lanes_point(r, ls_arena_printf(a, "%" PRId64, rest));
}

static void lanes_unit(const Reduce *r)
{
    each_reduced(r, lanes_declare, NULL);
    if (r->lanes > 1)
        each_reduced(r, lanes_array, NULL);
    for (int k = 0; k < r->nred; k++)
        open_axis(r, r->red[k]);
    ls_body_rows(&r->body);
    if (r->lanes == 1) {
        open_axis(r, r->body.nest->naxis - 1);
        ls_body_point(&r->body);
        each_reduced(r, lanes_combine, "total%d");
        ls_emit_line(to(r), "}");
    } else {
        each_reduced(r, lanes_start, NULL);
        lanes_run(r);
        each_reduced(r, lanes_end, NULL);
    }
    ls_emit_close(to(r), r->nred);
    ls_emit_line(to(r), "LS_LEAD {");
    each_reduced(r, deliver, "total%d");
    ls_emit_line(to(r), "}");
}

/* ---- the kernel ---- */
static void declare_partial(const Reduce *r, const char *format, int y)
{
    (void)format;
    int slot = 0;
    for (int k = 0; k < y; k++)
        slot += r->body.f->out[k].reduce;
    const char *type = result_type(r, y) == LS_REAL ? "double" : "int64_t";
    int64_t offset = slot * r->npiece * r->outer * (r->rows ? r->inner : 1);
    ls_emit_workspace(r->body.k, type, text(r, "all%d", y));
    ls_emit_line(to(r), "%s *const part%d = all%d + %" PRId64 ";", type, y, y, offset);
}

static void declare_result(const Reduce *r, const char *format, int y)
{
    ls_emit_result(r->body.k, text(r, format, y), y);
}

/* The kept point `at` (among r->outer) as indices. */
static void open_kept(const Reduce *r, const char *unit)
{
    const LsNest *n = r->body.nest;
    if (r->group == 1)
        ls_emit_line(to(r), "const int64_t row = %s;", unit);
    else if (r->rows)       /* all threads do one after the other */
        ls_emit_line(to(r),
                     "for (int64_t row = %s * %" PRId64 "; row < ls_least((%s + 1) * %" PRId64
                     ", %" PRId64 "); row++) {",
                     unit, r->group, unit, r->group, r->outer);
    else
        ls_emit_line(to(r), "LS_ROWS(row, %s * %" PRId64 ", ls_least((%s + 1) * %" PRId64
                     ", %" PRId64 ")) {", unit, r->group, unit, r->group, r->outer);
    ls_nest_decode(to(r), n, "row", r->nkept, r->kept);
}

static void main_part(const Reduce *r)
{
    struct LsArena *a = r->body.nest->arena;
    int64_t per = r->npiece * r->ntile;
    ls_emit_part(r->body.k, &r->part[0]);
    ls_body_declare(&r->body);
    each_reduced(r, r->npiece > 1 ? declare_partial : declare_result, "y%d");
    ls_emit_line(to(r), "for (int64_t u = lo; u < hi; u++) {");
    if (r->npiece > 1) {
        ls_emit_line(to(r), "const int64_t piece = u %% %" PRId64 ", from = piece * %" PRId64 ";",
                     r->npiece, r->piece);
        ls_emit_line(to(r), "const int64_t end = ls_least(from + %" PRId64 ", %" PRId64 ");",
                     r->piece, r->body.nest->size[r->cut]);
    }
    if (r->ntile > 1) {
        ls_emit_line(to(r), "const int64_t i0 = u / %" PRId64 " %% %" PRId64 " * %" PRId64 ";",
                     r->npiece, r->ntile, r->tile);
        ls_emit_line(to(r), "const int64_t i1 = ls_least(i0 + %" PRId64 ", %" PRId64 ");", r->tile,
                     r->inner);
    }
    if (r->outer > 1)
        open_kept(r, per == 1 ? "u" : ls_arena_printf(a, "(u / %" PRId64 ")", per));
    if (r->npiece > 1)
        ls_emit_line(to(r), "const int64_t at = (piece * %" PRId64 " + %s) * %" PRId64 ";",
                     r->outer, r->outer > 1 ? "row" : "0", r->rows ? r->inner : 1);
    if (r->rows)
        rows_unit(r);
    else
        lanes_unit(r);
    ls_emit_close(to(r), r->outer > 1 && r->group > 1);
    ls_emit_close(to(r), 2);
}

static void end_declare(const Reduce *r, const char *format, int y)
{
    (void)format;
    local_rows(r, &r->part[1], total_type(r, y), "total", y, END_COLUMNS);
}

static void end_start(const Reduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(to(r), "total%d[c] = %s;", y, start(r, y));
}

static void end_combine(const Reduce *r, const char *format, int y)
{
    (void)format;
    combine(r, y, text(r, "total%d[c]", y),
            ls_arena_printf(r->body.nest->arena, "(%s)part%d[piece * %" PRId64 " + at]",
                            total_type(r, y), y, r->outer * (r->rows ? r->inner : 1)));
}

static void end_deliver(const Reduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(to(r), "%s sum%d = total%d[c];", total_type(r, y), y, y);
    ls_emit_line(to(r), "LS_FOLD(other, %d) {", r->part[1].y);
    combine(r, y, text(r, "sum%d", y),
            ls_arena_printf(r->body.nest->arena, "LS_OF_ROW(total%d, other)[c]", y));
    ls_emit_line(to(r), "}");
    finish(r, y, text(r, "sum%d", y));
}

/* Combines the pieces, shared by the rows of threads; a unit is END_COLUMNS kept points. */
static void end_part(const Reduce *r)
{
    int axis[LS_NEST_AXES], naxis = r->nkept;
    int64_t points = r->outer * (r->rows ? r->inner : 1);
    for (int k = 0; k < r->nkept; k++)
        axis[k] = r->kept[k];
    if (r->rows)
        axis[naxis++] = r->body.nest->naxis - 1;
    ls_emit_part(r->body.k, &r->part[1]);
    each_reduced(r, declare_partial, NULL);
    each_reduced(r, declare_result, "y%d");
    ls_emit_line(to(r), "for (int64_t u = lo; u < hi; u++) {");
    each_reduced(r, end_declare, NULL);
    ls_emit_line(to(r), "const int64_t first = u * %d, count = ls_least(%d, %" PRId64 " - first);",
                 END_COLUMNS, END_COLUMNS, points);
    ls_emit_line(to(r), "LS_LANES(c, 0, count) {");
    each_reduced(r, end_start, NULL);
    ls_emit_line(to(r), "}");
    ls_emit_line(to(r), "LS_ROWS(piece, 0, %" PRId64 ") {", r->npiece);
    ls_emit_line(to(r), "LS_LANES(c, 0, count) {");
    ls_emit_line(to(r), "const int64_t at = first + c;");
    each_reduced(r, end_combine, NULL);
    ls_emit_close(to(r), 2);
    ls_emit_line(to(r), "LS_SYNC;");
    ls_emit_line(to(r), "LS_ROWS(top, 0, 1) {");
    ls_emit_line(to(r), "LS_LANES(c, 0, count) {");
    ls_nest_decode(to(r), r->body.nest, "(first + c)", naxis, axis);
    each_reduced(r, end_deliver, NULL);
    ls_emit_close(to(r), 4);
}

void ls_reduce_emit(const LsKernelText *k)
{
    const Reduce r = reduce_new(k);
    main_part(&r);
    if (r.npiece > 1)
        end_part(&r);
    ls_emit_launch(k, r.part, r.npiece > 1 ? 2 : 1);
}

int64_t ls_reduce_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    LsKernelText k = {.g = g, .n = n, .target = t};
    const Reduce r = reduce_new(&k);
    int64_t points = r.outer * (r.rows ? r.inner : 1), sums = 0;
    for (int y = 0; y < r.body.node->nout; y++)
        sums += r.body.f->out[y].reduce;
    return r.npiece == 1 ? 0 : sums * r.npiece * points * PARTIAL_BYTES;
}
