/* codegen/kernels/reduce_unit.c -- the loops of one unit of a reduction: with the innermost axis
 * kept, and with it reduced. */
#include "codegen/kernels/reduce.h"

#include "codegen/kernels/fused_body.h"

#include <inttypes.h>
#include <string.h>

static void open_axis(const LsReduce *r, int axis)
{
    const LsNest *n = r->body.nest;
    const char *v = n->var[axis];
    if (axis == r->cut && (r->npiece > 1 || r->state))
        ls_emit_line(r->e, "for (int64_t %s = from; %s < end; %s++) {", v, v, v);
    else
        ls_emit_line(r->e, "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {", v, v, n->size[axis],
                     v);
}

/* Stores a finished total, or leaves it in the workspace for the second part. */
static void deliver(const LsReduce *r, const char *format, int y)
{
    if (r->npiece == 1 && !r->state)
        ls_total_finish(r, y, ls_reduce_text(r, format, y));
    else
        ls_emit_line(r->e, "part%d[%s] = %s;", y, r->rows ? "at + i" : "at",
                     ls_reduce_text(r, format, y));
}

/* ---- the innermost axis is kept ---- */
/* A thread has at most one step of this loop. */
static void tile_loop(const LsReduce *r)
{
    const char *i = r->body.nest->var[r->body.nest->naxis - 1];
    const char *word = r->wide == 8   ? LS_FOURS "LS_ONCE8"
                       : r->wide == 4 ? LS_FOURS "LS_ONCE4"
                                      : "LS_ONCE";
    if (r->ntile == 1)
        ls_emit_line(r->e, "%s(%s, 0, " LS_BOUND64 ") {", word, i, r->inner);
    else
        ls_emit_line(r->e, "%s(%s, i0, i1) {", word, i);
}

static const char *column(const LsReduce *r)
{
    return r->ntile == 1 ? "i" : "i - i0";
}

/* Accumulator y of the column. The float accumulator is in the thread's registers; the total,
 * needed once a run, would take too many registers. */
static const char *run(const LsReduce *r, int y)
{
    return ls_arena_printf(r->body.nest->arena, "LS_OWN%s(run%d, %s)",
                           r->wide == 8   ? "8"
                           : r->wide == 4 ? "4"
                                          : "",
                           y, column(r));
}

static const char *total(const LsReduce *r, int y)
{
    return ls_arena_printf(r->body.nest->arena, "total%d[%s]", y, column(r));
}

static void rows_declare(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_local_rows(r, &r->part[0], ls_total_type(r, y), "total", y, r->tile);
    if (ls_long_sum(r, y))
        ls_emit_line(r->e, "LS_OWNED%s(real, run%d, %" PRId64 ");", r->wide == 8 ? "8" : "", y,
                     r->tile);
}

static void rows_start(const LsReduce *r, const char *format, int y)
{
    (void)format;
    if (r->state && r->before > r->first * r->piece)     /* whose piece goes on */
        ls_emit_line(r->e, "%s = begin < 0 ? part%d[at + i] : %s;", total(r, y), y,
                     ls_total_start(r, y));
    else
        ls_emit_line(r->e, "%s = %s;", total(r, y), ls_total_start(r, y));
    if (ls_long_sum(r, y))
        ls_emit_line(r->e, "%s = 0;", run(r, y));
}

static void rows_combine(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_total_combine(r, y, ls_long_sum(r, y) ? run(r, y) : total(r, y),
                     ls_reduce_text(r, "v%d", r->body.f->out[y].stmt));
}

static void rows_flush(const LsReduce *r, const char *format, int y)
{
    (void)format;
    if (!ls_long_sum(r, y))
        return;
    ls_emit_line(r->e, "%s += %s;", total(r, y), run(r, y));
    ls_emit_line(r->e, "%s = 0;", run(r, y));
}

static void vector_loop(const LsReduce *r, void (*print)(const LsReduce *, const char *, int),
                        const char *format)
{
    tile_loop(r);
    ls_reduce_each(r, print, format);
    ls_emit_line(r->e, "}");
}

bool ls_reduce_runs(const LsReduce *r)
{
    if (r->nred == 0 || !ls_any_long_sum(r))
        return false;
    int axis = r->red[r->nred - 1];
    return (axis == r->cut && r->npiece > 1)
           || (r->state ? r->length : r->body.nest->size[axis]) > LS_REDUCE_RUN;
}

/* Opens the innermost reduced axis, shared by the rows of threads. A long axis goes in runs, each
 * followed by the move to double. True: two loops are open. */
static bool rows_axis(const LsReduce *r, int axis)
{
    const LsNest *n = r->body.nest;
    const char *v = n->var[axis];
    bool cut = axis == r->cut && (r->npiece > 1 || r->state);
    const char *from = cut ? "from" : "0";
    const char *end = cut ? "end" : ls_arena_printf(n->arena, LS_N64, n->size[axis]);
    if (r->body.only != NULL && axis == 0) {
        ls_emit_line(r->e, "const int64_t last = ls_least(%s, %s);", end,
                     strstr(r->body.only, "< ") + 2);
        end = "last";
    }
    if (!ls_reduce_runs(r)) {
        ls_emit_line(r->e, "LS_ROWS(%s, %s, %s) {", v, from, end);
        return false;
    }
    int64_t runs = ls_ceil_div(cut ? r->piece : n->size[axis], LS_REDUCE_RUN);
    ls_emit_line(r->e, "LS_ROWS(chunk, 0, " LS_N64 ") {", runs);
    ls_emit_line(r->e, "const int64_t r0 = %schunk * " LS_N ";", cut ? "from + " : "",
                 LS_REDUCE_RUN);
    if (r->body.group == 0) {
        ls_emit_line(r->e, "for (int64_t %s = r0; %s < ls_least(r0 + %d, %s); %s++) {", v, v,
                     LS_REDUCE_RUN, ls_unmarked(n->arena, end), v);
        return true;
    }
    ls_emit_line(r->e, "LS_GROUPS(" LS_N ", g, r0, ls_least(r0 + " LS_N ", %s)) {", r->body.group,
                 LS_REDUCE_RUN, end);
    ls_emit_line(r->e, "LS_AHEAD(%s, g) {", v);
    tile_loop(r);
    ls_body_fetch(&r->body, axis, "g");
    ls_emit_close(r->e, 2);
    ls_emit_line(r->e, "LS_OF_GROUP(%d, %s, g) {", r->body.group, v);
    return true;
}

/* In the loops over all reduced axes but the innermost. */
static void leave_out(const LsReduce *r)
{
    if (r->body.only != NULL)
        ls_emit_line(r->e, "if (!(%s)) continue;", r->body.only);
}

static void rows_loops(const LsReduce *r)
{
    bool loop = r->nred > 0, runs = loop && rows_axis(r, r->red[r->nred - 1]);
    if (loop && r->red[r->nred - 1] > 0)
        leave_out(r);
    ls_body_rows(&r->body);
    tile_loop(r);
    ls_body_point(&r->body);
    ls_reduce_each(r, rows_combine, NULL);
    ls_emit_close(r->e, 1 + loop + (r->body.group > 0));
    if (ls_any_long_sum(r))
        vector_loop(r, rows_flush, NULL);
    ls_emit_close(r->e, runs);
}

/* Combines the totals of the rows of threads into one. */
static void rows_fold(const LsReduce *r, const char *format, int y)
{
    (void)format;
    struct LsArena *a = r->body.nest->arena;
    ls_emit_line(r->e, "%s sum%d = total%d[%s];", ls_total_type(r, y), y, y, column(r));
    ls_emit_line(r->e, "LS_FOLD(other, %d) {", r->part[0].y);
    ls_total_combine(r, y, ls_reduce_text(r, "sum%d", y),
                     ls_arena_printf(a, "LS_OF_ROW(total%d, other)[%s]", y, column(r)));
    ls_emit_line(r->e, "}");
}

void ls_reduce_rows(const LsReduce *r)
{
    ls_reduce_each(r, rows_declare, NULL);
    vector_loop(r, rows_start, NULL);
    for (int k = 0; k + 1 < r->nred; k++)
        open_axis(r, r->red[k]);
    rows_loops(r);
    ls_emit_close(r->e, r->nred - 1);
    ls_emit_line(r->e, "LS_SYNC;");
    ls_emit_line(r->e, "LS_ROWS(first, 0, 1) {");
    tile_loop(r);
    ls_reduce_each(r, rows_fold, NULL);
    ls_reduce_each(r, deliver, "sum%d");
    ls_emit_close(r->e, 2);
    ls_emit_line(r->e, "LS_SYNC;");
}

/* ---- the innermost axis is reduced ---- */
static void lanes_declare(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(r->e, "%s total%d = %s;", ls_total_type(r, y), y, ls_total_start(r, y));
}

static void lanes_array(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_local_rows(r, &r->part[0], ls_long_sum(r, y) ? "real" : ls_total_type(r, y), "lane", y,
                  r->lanes);
}

static void lanes_start(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(r->e, "LS_LANES(l, 0, " LS_BOUND64 ")", r->lanes);
    ls_emit_line(r->e, "    lane%d[l] = %s;", y, ls_total_start(r, y));
}

static void lanes_combine(const LsReduce *r, const char *format, int y)
{
    ls_total_combine(r, y, ls_reduce_text(r, format, y),
                     ls_reduce_text(r, "v%d", r->body.f->out[y].stmt));
}

static void lanes_end(const LsReduce *r, const char *format, int y)
{
    (void)format;
    if (ls_reduce_type(r, y) == LS_REAL && r->body.f->out[y].combine == LS_SUM) {
        ls_emit_line(r->e, "total%d += ls_sum_lanes(lane%d, %" PRId64 ");", y, y, r->lanes);
        return;
    }
    ls_emit_line(r->e, "LS_ROW_SYNC;");
    ls_emit_line(r->e, "for (int64_t l = 0; l < %" PRId64 "; l++) {", r->lanes);
    ls_total_combine(r, y, ls_reduce_text(r, "total%d", y), ls_reduce_text(r, "lane%d[l]", y));
    ls_emit_line(r->e, "}");
    ls_emit_line(r->e, "LS_ROW_SYNC;");
}

/* Prints elements b .. b + count of the innermost axis, one per lane. */
static void lanes_point(const LsReduce *r, const char *count)
{
    ls_emit_line(r->e, "LS_LANES(l, 0, %s) {", count);
    ls_emit_line(r->e, "const int64_t i = b + l;");
    ls_body_point(&r->body);
    ls_reduce_each(r, lanes_combine, "lane%d[l]");
    ls_emit_line(r->e, "}");
}

static void lanes_run(const LsReduce *r)
{
    bool cut = r->npiece > 1 && r->cut == r->body.nest->naxis - 1;
    struct LsArena *a = r->body.nest->arena;
    const char *end = cut ? "end" : ls_arena_printf(a, "%" PRId64, r->inner);
    int64_t rest = r->inner % r->lanes;
    ls_emit_line(r->e, "int64_t b = %s;", cut ? "from" : "0");
    ls_emit_line(r->e, "for (; b + %" PRId64 " <= %s; b += %" PRId64 ") {", r->lanes, end,
                 r->lanes);
    lanes_point(r, ls_arena_printf(a, "%" PRId64, r->lanes));
    ls_emit_line(r->e, "}");
    if (rest != 0 && cut)
        lanes_point(r, "end - b");
    else if (rest != 0)
        lanes_point(r, ls_arena_printf(a, "%" PRId64, rest));
}

void ls_reduce_lanes(const LsReduce *r)
{
    ls_reduce_each(r, lanes_declare, NULL);
    if (r->lanes > 1)
        ls_reduce_each(r, lanes_array, NULL);
    for (int k = 0; k < r->nred; k++)
        open_axis(r, r->red[k]);
    leave_out(r);
    ls_body_rows(&r->body);
    if (r->lanes == 1) {
        open_axis(r, r->body.nest->naxis - 1);
        ls_body_point(&r->body);
        ls_reduce_each(r, lanes_combine, "total%d");
        ls_emit_line(r->e, "}");
    } else {
        ls_reduce_each(r, lanes_start, NULL);
        lanes_run(r);
        ls_reduce_each(r, lanes_end, NULL);
    }
    ls_emit_close(r->e, r->nred);
    ls_emit_line(r->e, "LS_LEAD {");
    ls_reduce_each(r, deliver, "total%d");
    ls_emit_line(r->e, "}");
}
