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
    r->ntile = r->rows ? ls_ceil_div(r->inner, TILE) : 1;
    r->tile = r->rows ? ls_ceil_div(ls_ceil_div(r->inner, r->ntile), 16) * 16 : 1;
    if (r->ntile == 1)
        r->tile = r->inner;
}

static Reduce reduce_new(const LsKernelText *k)
{
    Reduce r = {.body = ls_body_new(k)};
    sort_axes(&r);
    int64_t points = ls_nest_count(r.body.nest), apart = r.outer * r.ntile;
    int64_t want = points / PIECE / apart;
    int64_t length = r.cut < 0 ? 1 : r.body.nest->size[r.cut];
    int64_t grain = r.cut == r.body.nest->naxis - 1 ? r.lanes : 1;
    if (want > MAX_PIECE)
        want = MAX_PIECE;
    if (want > length / grain)
        want = length / grain;
    if (want < 1)
        want = 1;
    r.piece = ls_ceil_div(ls_ceil_div(length, want), grain) * grain;
    r.npiece = ls_ceil_div(length, r.piece);
    if (r.npiece == 1)
        r.piece = length;
    int64_t each = points / apart / r.npiece;
    r.group = each >= UNIT ? 1 : UNIT / each;
    if (r.group > r.outer)
        r.group = r.outer;
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
        && r->body.k->real_bytes == 4;
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
    const char *i = r->body.nest->var[r->body.nest->naxis - 1];
    if (r->ntile == 1)
        ls_emit_line(to(r), "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {", i, i, r->inner, i);
    else
        ls_emit_line(to(r), "for (int64_t %s = i0; %s < i1; %s++) {", i, i, i);
}

static const char *column(const Reduce *r)
{
    return r->ntile == 1 ? "i" : "i - i0";
}

static void rows_declare(const Reduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(to(r), "%s total%d[%" PRId64 "];", total_type(r, y), y, r->tile);
    if (long_sum(r, y))
        ls_emit_line(to(r), "real run%d[%" PRId64 "];", y, r->tile);
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
    ls_emit_line(to(r), "#pragma GCC ivdep");
    tile_loop(r);
    each_reduced(r, print, format);
    ls_emit_line(to(r), "}");
}

/* The innermost reduced axis in runs of RUN rows, each followed by the move to double. */
static void rows_run(const Reduce *r)
{
    const LsNest *n = r->body.nest;
    int axis = r->nred > 0 ? r->red[r->nred - 1] : 0;
    const char *v = n->var[axis];
    bool cut = axis == r->cut && r->npiece > 1;
    bool loop = r->nred > 0, runs = loop && any_long_sum(r) && (cut || n->size[axis] > RUN);
    if (runs) {
        const char *end = cut ? "end" : ls_arena_printf(n->arena, "%" PRId64, n->size[axis]);
        ls_emit_line(to(r), "for (int64_t r0 = %s; r0 < %s; r0 += %d) {", cut ? "from" : "0", end,
                     RUN);
        ls_emit_line(to(r), "for (int64_t %s = r0; %s < ls_least(r0 + %d, %s); %s++) {", v, v, RUN,
                     end, v);
    } else if (loop) {
        open_axis(r, axis);
    }
    ls_body_rows(&r->body);
    ls_emit_line(to(r), "#pragma GCC ivdep");
    tile_loop(r);
    ls_body_point(&r->body);
    each_reduced(r, rows_combine, NULL);
    ls_emit_close(to(r), loop ? 2 : 1);
    if (any_long_sum(r))
        vector_loop(r, rows_flush, NULL);
    ls_emit_close(to(r), runs);
}

static void rows_unit(const Reduce *r)
{
    each_reduced(r, rows_declare, NULL);
    vector_loop(r, rows_start, NULL);
    for (int k = 0; k + 1 < r->nred; k++)
        open_axis(r, r->red[k]);
    rows_run(r);
    ls_emit_close(to(r), r->nred - 1);
    tile_loop(r);
    each_reduced(r, deliver, ls_arena_printf(r->body.nest->arena, "total%%d[%s]", column(r)));
    ls_emit_line(to(r), "}");
}

/* ---- the innermost axis is reduced ---- */
static void lanes_declare(const Reduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(to(r), "%s total%d = %s;", total_type(r, y), y, start(r, y));
}

static void lanes_start(const Reduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(to(r), "%s lane%d[%" PRId64 "];", long_sum(r, y) ? "real" : total_type(r, y), y,
                 r->lanes);
    ls_emit_line(to(r), "for (int64_t l = 0; l < %" PRId64 "; l++)", r->lanes);
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
    } else {
        ls_emit_line(to(r), "for (int64_t l = 0; l < %" PRId64 "; l++) {", r->lanes);
        combine(r, y, text(r, "total%d", y), text(r, "lane%d[l]", y));
        ls_emit_line(to(r), "}");
    }
}

/* Elements b .. b + count of the innermost axis, one per lane. */
static void lanes_point(const Reduce *r, const char *count)
{
    ls_emit_line(to(r), "#pragma GCC ivdep");
    ls_emit_line(to(r), "#pragma GCC unroll 1");
    ls_emit_line(to(r), "for (int64_t l = 0; l < %s; l++) {", count);
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
    each_reduced(r, deliver, "total%d");
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
    ls_emit_line(to(r), "%s *const part%d = (%s *)arg[%d] + %" PRId64 ";", type, y, type,
                 r->body.node->nin + r->body.node->nout, offset);
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
    else
        ls_emit_line(to(r),
                     "for (int64_t row = %s * %" PRId64 "; row < ls_least((%s + 1) * %" PRId64
                     ", %" PRId64 "); row++) {",
                     unit, r->group, unit, r->group, r->outer);
    ls_nest_decode(to(r), n, "row", r->nkept, r->kept);
}

static void main_part(const Reduce *r)
{
    struct LsArena *a = r->body.nest->arena;
    int64_t per = r->npiece * r->ntile;
    ls_emit_part(r->body.k, "part");
    ls_emit_line(to(r), "(void)run;");
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

static void end_total(const Reduce *r, const char *format, int y)
{
    (void)format;
    int64_t points = r->outer * (r->rows ? r->inner : 1);
    ls_emit_line(to(r), "%s total%d = part%d[at];", total_type(r, y), y, y);
    ls_emit_line(to(r), "for (int64_t piece = 1; piece < %" PRId64 "; piece++) {", r->npiece);
    combine(r, y, text(r, "total%d", y),
            ls_arena_printf(r->body.nest->arena, "(%s)part%d[piece * %" PRId64 " + at]",
                            total_type(r, y), y, points));
    ls_emit_line(to(r), "}");
    finish(r, y, text(r, "total%d", y));
}

/* Combines the pieces; a unit is one point that is kept. */
static void end_part(const Reduce *r)
{
    int axis[LS_NEST_AXES], naxis = r->nkept;
    for (int k = 0; k < r->nkept; k++)
        axis[k] = r->kept[k];
    if (r->rows)
        axis[naxis++] = r->body.nest->naxis - 1;
    ls_emit_part(r->body.k, "end");
    ls_emit_line(to(r), "(void)run;");
    each_reduced(r, declare_partial, NULL);
    each_reduced(r, declare_result, "y%d");
    ls_emit_line(to(r), "for (int64_t at = lo; at < hi; at++) {");
    ls_nest_decode(to(r), r->body.nest, "at", naxis, axis);
    each_reduced(r, end_total, NULL);
    ls_emit_close(to(r), 2);
}

void ls_reduce_emit(const LsKernelText *k)
{
    const Reduce r = reduce_new(k);
    int64_t units = ls_ceil_div(r.outer, r.group) * r.ntile * r.npiece;
    main_part(&r);
    if (r.npiece == 1) {
        ls_emit_launch(k, units);
        return;
    }
    end_part(&r);
    ls_emit_line(k->e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e, "ls_parallel(run, %s_part, %" PRId64 ", arg);", k->name, units);
    ls_emit_line(k->e, "ls_parallel(run, %s_end, %" PRId64 ", arg);", k->name,
                 r.outer * (r.rows ? r.inner : 1));
    ls_emit_line(k->e, "}");
}

int64_t ls_reduce_workspace(const LsGraph *g, LsNodeId n, int real_bytes)
{
    LsKernelText k = {.g = g, .n = n, .real_bytes = real_bytes};
    const Reduce r = reduce_new(&k);
    int64_t points = r.outer * (r.rows ? r.inner : 1), sums = 0;
    for (int y = 0; y < r.body.node->nout; y++)
        sums += r.body.f->out[y].reduce;
    return r.npiece == 1 ? 0 : sums * r.npiece * points * PARTIAL_BYTES;
}
