/* codegen/kernels/reduce.c -- FUSED bodies with reductions.
 *
 * There are two shapes of loops. If the innermost axis is kept (channels-last statistics), a row of
 * accumulators lies along it; if it is reduced, `lanes` accumulators run along it and a tree sums
 * them at its end. Sums of floats run in float for a few elements only and go on in double. If few
 * elements are kept, the longest reduced axis is cut into pieces, whose number depends on the
 * shape; their partial results lie in the workspace and a second part combines them in order. So
 * the bits of a result depend on the shape alone. */
#include "codegen/kernels/reduce.h"

#include "codegen/kernels/fused_body.h"

#include <inttypes.h>

enum {
    PIECE = 16384,          /* elements worth a piece of a cut axis */
    MAX_PIECE = 32,
    TILE = 1024,            /* most accumulators of a row */
    GPU_PIECE = 16384, GPU_MAX_PIECE = 1024, GPU_TILE = 128,
    GPU_THREADS = 256,
    GPU_LOCAL = 32768,      /* most bytes of accumulators per block */
    END_COLUMNS = 8,        /* results of a unit that combines pieces */
    PARTIAL_BYTES = 8,
};

static void sort_axes(LsReduce *r)
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
    /* Even tiles keep all threads of a CPU busy to the end. A GPU has more tiles than blocks that
     * run at a time; there a fixed tile lets kernels of many widths share a text. */
    r->tile = !r->rows ? 1 : most == GPU_TILE ? most
              : ls_ceil_div(ls_ceil_div(r->inner, r->ntile), 16) * 16;
    if (r->ntile == 1)
        r->tile = r->inner;
}

/* About `rows` rows, chosen so that each row of threads has the same number of runs in a piece. */
static int64_t whole_runs(const LsReduce *r, int64_t rows)
{
    int x = ls_threads(ls_ceil_div(r->tile, r->wide == 8 ? 8 : 4), GPU_THREADS);
    int64_t all = (int64_t)LS_REDUCE_RUN * (GPU_THREADS / x);
    return rows < all ? rows : rows / all * all;
}

/* Decides how to cut the longest reduced axis. */
static void cut_axis(LsReduce *r)
{
    bool cpu = r->body.k->target->kind == LS_TARGET_CPU;
    int64_t points = ls_nest_count(r->body.nest), apart = r->outer * r->ntile;
    if (r->state)
        points = points / r->body.nest->size[0] * r->length;
    int64_t want = points / (cpu ? PIECE : GPU_PIECE) / apart;
    int64_t most = cpu ? MAX_PIECE : GPU_MAX_PIECE;
    int64_t length = r->cut < 0 ? 1 : r->state ? r->length : r->body.nest->size[r->cut];
    int64_t grain = r->cut == r->body.nest->naxis - 1 ? r->lanes : 1;
    /* Pieces of whole runs, so that a sum can go on wherever a run ends (LsFused.states). */
    if (cpu && r->rows && r->nred > 0 && r->cut == r->red[r->nred - 1]
        && length >= MAX_PIECE * LS_REDUCE_RUN)
        grain = LS_REDUCE_RUN;
    if (want > most)
        want = most;
    if (want > length / grain)
        want = length / grain;
    if (want < 1 || r->body.k->whole)
        want = 1;
    r->piece = ls_ceil_div(ls_ceil_div(length, want), grain) * grain;
    if (!cpu && r->rows && want > 1)
        r->piece = whole_runs(r, r->piece);
    r->npiece = ls_ceil_div(length, r->piece);
    if (r->npiece == 1)
        r->piece = length;
    int64_t each = points / apart / r->npiece, unit = ls_unit(r->body.k);
    r->group = each >= unit ? 1 : unit / each;
    if (r->group > r->outer)
        r->group = r->outer;
    r->some = r->npiece;
    if (r->state) {
        r->first = r->before / r->piece;
        r->some = ls_ceil_div(r->before + r->body.nest->size[0], r->piece) - r->first;
    }
}

/* Sets the grids. Rows of threads share the innermost reduced axis, up to GPU_LOCAL bytes of
 * accumulators. */
static void find_grids(LsReduce *r, int nsum)
{
    int64_t points = r->outer * (r->rows ? r->inner : 1);
    int64_t units = ls_ceil_div(r->outer, r->group) * r->ntile * r->some;
    int64_t lanes = r->wide > 0 ? r->tile / r->wide : r->tile;
    int x = r->rows ? ls_threads(lanes, GPU_THREADS) : (int)r->lanes, y = 1;
    int64_t rows = r->rows ? r->nred > 0 ? 256 : 1 : x <= 32 ? r->group : 1;
    int64_t bytes = (r->rows ? r->tile * 8 : r->lanes * 12) * nsum;
    while (2 * y <= GPU_THREADS / x && y < rows && 2 * y * bytes <= GPU_LOCAL)
        y *= 2;
    r->part[0] = (LsGrid){"part", units, x, y};
    r->part[1] = (LsGrid){"end", ls_ceil_div(points, END_COLUMNS), END_COLUMNS, 32};
}

static int wide_of(const LsReduce *r)
{
    int wide = ls_boxes(r->body.k, r->body.nest).wide;
    return wide == 0 ? 0 : ls_wide(r->tile, wide == 8);
}

/* Steps whose loads go together: as many as registers allow. A thread with eight neighbours has
 * twice the sums of one with four: there a second block on the multiprocessor, which keeps_two()
 * asks for, hides more of the memory's delay than a second step does, unless the kernel only reads
 * one array (ResNet-50, DenseNet-121 and U-Net in bf16 on an H200: 42, 35 and 42 ms with the steps
 * of fours; 40, 32 and 42 ms with one). */
static int group_of(const LsReduce *r, int nsum)
{
    const int streams = ls_body_streams(&r->body, r->red[r->nred - 1]);
    const bool reads_one = streams == 1 && nsum == r->body.node->nout;
    return r->wide == 8 ? (reads_one ? 4 : 1) : streams <= 3 ? 4 : 2;
}
static bool keeps_two(const LsReduce *r) { return r->wide == 8 && r->body.group == 1; }

static LsReduce reduce_new(const LsKernelText *k)
{
    LsReduce r = {.body = ls_body_new(k), .e = k->e};
    int nsum = 0;
    for (int y = 0; y < r.body.node->nout; y++)
        nsum += r.body.f->out[y].reduce;
    sort_axes(&r);
    if (r.body.f->states > 0) {
        const LsTilePlace *of = r.body.node->tile;
        const int64_t rows = r.body.nest->size[0] / r.body.f->space.dim[of->axis];
        r.state = true;
        r.before = of->first * rows;
        r.length = of->of * rows;
    }
    r.wide = r.body.wide = r.rows ? wide_of(&r) : 0;
    r.body.only = ls_body_rows_that_count(&r.body);
    cut_axis(&r);
    if (r.wide > 0 && k->target->kind != LS_TARGET_CPU && ls_reduce_runs(&r))
        r.body.group = group_of(&r, nsum);
    find_grids(&r, nsum);
    return r;
}

/* ---- the kernel ---- */
static void declare_partial(const LsReduce *r, const char *format, int y)
{
    (void)format;
    int slot = 0;
    for (int k = 0; k < y; k++)
        slot += r->body.f->out[k].reduce;
    const char *type = ls_reduce_type(r, y) == LS_REAL ? "double" : "int64_t";
    if (r->state) {
        ls_emit_line(r->e, "%s *const part%d = arg[%d];", type, y, r->body.node->nin + y);
        return;
    }
    int64_t offset = slot * r->npiece * r->outer * (r->rows ? r->inner : 1);
    ls_emit_workspace(r->body.k, type, ls_reduce_text(r, "all%d", y));
    ls_emit_line(r->e, "%s *const part%d = all%d + " LS_N64 ";", type, y, y, offset);
}

static void declare_result(const LsReduce *r, const char *format, int y)
{
    ls_emit_result(r->body.k, ls_reduce_text(r, format, y), y);
}

/* Opens a unit's kept points (`row`, of r->outer) with their indices. */
static void open_kept(const LsReduce *r, const char *unit)
{
    const LsNest *n = r->body.nest;
    if (r->group == 1)
        ls_emit_line(r->e, "const int64_t row = %s;", unit);
    else if (r->rows)       /* all threads work on one row at a time */
        ls_emit_line(r->e,
                     "for (int64_t row = %s * %" PRId64 "; row < ls_least((%s + 1) * %" PRId64
                     ", %" PRId64 "); row++) {",
                     unit, r->group, unit, r->group, r->outer);
    else
        ls_emit_line(r->e, "LS_ROWS(row, %s * " LS_N64 ", ls_least((%s + 1) * " LS_N64 ", " LS_N64
                     ")) {", unit, r->group, unit, r->group, r->outer);
    ls_nest_decode(r->e, n, "row", r->nkept, r->kept);
}

/* The rows of a piece that are among these. */
static void piece_of_some(const LsReduce *r)
{
    const int64_t rows = r->body.nest->size[0];
    ls_emit_line(r->e, "const int64_t piece = u %% " LS_N64 " + " LS_N64 ", begin = piece * " LS_N64
                 " - " LS_N64 ";", r->some, r->first, r->piece, r->before);
    ls_emit_line(r->e, "const int64_t from = ls_most(begin, 0), end = ls_least(begin + " LS_N64
                 ", " LS_N64 ");", r->piece, rows);
}

static void main_part(const LsReduce *r)
{
    struct LsArena *a = r->body.nest->arena;
    int64_t per = r->some * r->ntile;
    ls_emit_part_together(r->body.k, &r->part[0], keeps_two(r) ? 2 : 0);
    ls_body_declare(&r->body);
    ls_reduce_each(r, r->npiece > 1 || r->state ? declare_partial : declare_result, "y%d");
    ls_emit_line(r->e, "for (int64_t u = lo; u < hi; u++) {");
    if (r->state)
        piece_of_some(r);
    else if (r->npiece > 1) {
        ls_emit_line(r->e, "const int64_t piece = u %% " LS_N64 ", from = piece * " LS_N64 ";",
                     r->npiece, r->piece);
        ls_emit_line(r->e, "const int64_t end = ls_least(from + " LS_N64 ", " LS_N64 ");",
                     r->piece, r->body.nest->size[r->cut]);
    }
    if (r->ntile > 1) {
        ls_emit_line(r->e, "const int64_t i0 = u / " LS_N64 " %% " LS_N64 " * " LS_N64 ";",
                     r->some, r->ntile, r->tile);
        ls_emit_line(r->e, "const int64_t i1 = ls_least(i0 + " LS_N64 ", " LS_N64 ");", r->tile,
                     r->inner);
    }
    if (r->outer > 1)
        open_kept(r, per == 1 ? "u" : ls_arena_printf(a, "(u / %" PRId64 ")", per));
    if (r->npiece > 1 || r->state)
        ls_emit_line(r->e, "const int64_t at = (piece * " LS_N64 " + %s) * " LS_N64 ";",
                     r->outer, r->outer > 1 ? "row" : "0", r->rows ? r->inner : 1);
    if (r->rows)
        ls_reduce_rows(r);
    else
        ls_reduce_lanes(r);
    ls_emit_close(r->e, r->outer > 1 && r->group > 1);
    ls_emit_close(r->e, 2);
}

static void end_declare(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_local_rows(r, &r->part[1], ls_total_type(r, y), "total", y, END_COLUMNS);
}

static void end_start(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(r->e, "total%d[c] = %s;", y, ls_total_start(r, y));
}

static void end_combine(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_total_combine(r, y, ls_reduce_text(r, "total%d[c]", y),
                     ls_arena_printf(r->body.nest->arena, "(%s)part%d[piece * " LS_N64 " + at]",
                                     ls_total_type(r, y), y, r->outer * (r->rows ? r->inner : 1)));
}

static void end_deliver(const LsReduce *r, const char *format, int y)
{
    (void)format;
    ls_emit_line(r->e, "%s sum%d = total%d[c];", ls_total_type(r, y), y, y);
    ls_emit_line(r->e, "LS_FOLD(other, %d) {", r->part[1].y);
    ls_total_combine(r, y, ls_reduce_text(r, "sum%d", y),
                     ls_arena_printf(r->body.nest->arena, "LS_OF_ROW(total%d, other)[c]", y));
    ls_emit_line(r->e, "}");
    ls_total_finish(r, y, ls_reduce_text(r, "sum%d", y));
}

/* Prints the part that combines the pieces; rows of threads share them, and a unit is END_COLUMNS
 * points. */
static void end_part(const LsReduce *r)
{
    int axis[LS_NEST_AXES], naxis = r->nkept;
    int64_t points = r->outer * (r->rows ? r->inner : 1);
    for (int k = 0; k < r->nkept; k++)
        axis[k] = r->kept[k];
    if (r->rows)
        axis[naxis++] = r->body.nest->naxis - 1;
    ls_emit_part(r->body.k, &r->part[1]);
    if (r->body.f->first > 0)
        ls_emit_operand(r->body.k, ls_reduce_text(r, "x%d", r->body.f->first), r->body.f->first);
    ls_reduce_each(r, declare_partial, NULL);
    ls_reduce_each(r, declare_result, "y%d");
    ls_emit_line(r->e, "for (int64_t u = lo; u < hi; u++) {");
    ls_reduce_each(r, end_declare, NULL);
    ls_emit_line(r->e, "const int64_t first = u * " LS_N ", count = ls_least(" LS_N ", " LS_N64
                 " - first);",
                 END_COLUMNS, END_COLUMNS, points);
    ls_emit_line(r->e, "LS_LANES(c, 0, count) {");
    ls_reduce_each(r, end_start, NULL);
    ls_emit_line(r->e, "}");
    ls_emit_line(r->e, "LS_ROWS(piece, 0, " LS_N64 ") {", r->npiece);
    ls_emit_line(r->e, "LS_LANES(c, 0, count) {");
    ls_emit_line(r->e, "const int64_t at = first + c;");
    ls_reduce_each(r, end_combine, NULL);
    ls_emit_close(r->e, 2);
    ls_emit_line(r->e, "LS_SYNC;");
    ls_emit_line(r->e, "LS_ROWS(top, 0, 1) {");
    ls_emit_line(r->e, "LS_LANES(c, 0, count) {");
    ls_nest_decode(r->e, r->body.nest, "(first + c)", naxis, axis);
    ls_reduce_each(r, end_deliver, NULL);
    ls_emit_close(r->e, 4);
}

static void take_state(const LsReduce *r, const char *format, int y)
{
    (void)format;
    const int in = ls_state_operand(r->body.f, y), out = r->body.node->nin + y;
    ls_emit_line(r->e, "if (arg[%d] != arg[%d])", in, out);
    ls_emit_line(r->e, "    memcpy(arg[%d], arg[%d], %" PRId64 ");", out, in,
                 r->npiece * r->inner * PARTIAL_BYTES);
}

/* The kernel of a part of the sums: on CPUs alone. */
static void launch_state(const LsReduce *r)
{
    const LsKernelText *k = r->body.k;
    ls_emit_line(r->e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(r->e, "{");
    if (r->body.node->nin > r->body.f->states)
        ls_reduce_each(r, take_state, NULL);
    ls_emit_line(r->e, "ls_parallel(run, %s_part, %" PRId64 ", arg);", k->name, r->part[0].units);
    ls_emit_line(r->e, "}");
}

bool ls_reduce_may_go_on(const LsGraph *g, LsNodeId n, const LsTarget *t, LsTilePlace of,
                         int64_t *pieces, int64_t *points)
{
    const LsKernelText k = {.g = g, .n = n, .target = t};
    const LsReduce r = reduce_new(&k);
    const LsNest *nest = r.body.nest;
    bool fits = t->kind == LS_TARGET_CPU && r.rows && nest->naxis == 2 && nest->reduced[0]
                && !nest->reduced[1] && r.body.f->first == 0 && r.body.f->njoined == 0
                && r.body.f->ninset == 0 && (r.body.f->axes >> of.axis & 1) != 0
                && (of.axis == 0 || r.body.f->space.dim[0] == 1);
    for (int y = 0; y < r.body.node->nout && fits; y++)
        fits = !r.body.f->out[y].reduce
               || (!r.body.f->out[y].variance && r.body.f->out[y].combine == LS_SUM
                   && ls_reduce_type(&r, y) == LS_REAL);
    if (!fits)
        return false;
    const int64_t before = of.first * (nest->size[0] / r.body.f->space.dim[of.axis]);
    *pieces = r.npiece;
    *points = r.inner;
    return before % r.piece % LS_REDUCE_RUN == 0;
}

void ls_reduce_emit(const LsKernelText *k)
{
    const LsReduce r = reduce_new(k);
    main_part(&r);
    if (r.state) {
        launch_state(&r);
        return;
    }
    if (r.npiece > 1)
        end_part(&r);
    ls_emit_launch(k, r.part, r.npiece > 1 ? 2 : 1);
}

int64_t ls_reduce_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    LsKernelText k = {.g = g, .n = n, .target = t};
    const LsReduce r = reduce_new(&k);
    int64_t points = r.outer * (r.rows ? r.inner : 1), sums = 0;
    for (int y = 0; y < r.body.node->nout; y++)
        sums += r.body.f->out[y].reduce;
    return r.npiece == 1 || r.state ? 0 : sums * r.npiece * points * PARTIAL_BYTES;
}
