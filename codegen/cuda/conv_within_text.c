/* codegen/cuda/conv_within_text.c -- CONV_FUSED: the kernel (runtime/cuda_kernels/ls_cuda_tile.h).
 *
 * A block computes consecutive tiles down the rows, in the columns of one tile. Blocks with the same rows
 * are neighbours, so the cache serves all but one of them. Sums over the rows leave a warp in float, go on
 * in double, and lie in the workspace by block until a second part combines them.
 *
 * Numbers stand where kernels that differ only in them can take them as arguments (lift_constants.h).
 * In the text, j is a row, i a column, c the thread's sums of the product, and a0 one of these. */
#include "codegen/cuda/conv_within.h"
#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/fused_body.h"
#include "runtime/cuda_kernels/ls_cuda_sizes.h"

#include <inttypes.h>

enum { END_COLUMNS = 8, END_ROWS = 32 };    /* columns, and rows of threads, of a unit of the second part */

typedef struct Within {
    const LsKernelText *k;
    LsEmit *e;
    const LsConvFusedAttr *at;
    LsWithinSize s;
    int64_t block_rows, blocks; /* rows of a block, blocks over the rows */
    LsBody body;                /* over rows and columns */
} Within;

/* A reduced result is a sum over the rows, or a mean, followed by the variance about it (a square). */
static bool is_reduced(const Within *w, int y) { return w->at->body->out[y].reduce; }
static bool is_square(const Within *w, int y) { return w->at->body->out[y].variance; }
static bool has_square(const Within *w, int y)
{
    return y + 1 < w->body.node->nout && is_square(w, y + 1);
}
static bool is_moments(const Within *w, int y) { return is_square(w, y) || has_square(w, y); }

static int reduced(const Within *w, int end)    /* results before `end` that are reduced */
{
    int n = 0;
    for (int y = 0; y < end; y++)
        n += is_reduced(w, y);
    return n;
}

static void each_sum(const Within *w, void (*print)(const Within *w, int y))
{
    for (int y = 0; y < w->body.node->nout; y++)
        if (is_reduced(w, y))
            print(w, y);
}

/* Calls print once for the two results of moments. */
static void each_total(const Within *w, void (*print)(const Within *w, int y))
{
    for (int y = 0; y < w->body.node->nout; y++)
        if (is_reduced(w, y) && !is_square(w, y))
            print(w, y);
}

/* ---- sizes ---- */
/* A graph with the body as a FUSED node, whose operand 0 is no value. */
static LsGraph *body_graph(const LsKernelText *k, const LsFused *f)
{
    LsGraph *g = ls_arena_alloc(k->g->arena, 1, sizeof *g);
    *g = *k->g;
    g->node = ls_arena_alloc(g->arena, 2, sizeof *g->node);
    g->nnode = 2;
    g->node[1] = k->g->node[k->n.i];
    g->node[1].op = LS_OP_FUSED;
    g->node[1].attr.fused.body = f;
    return g;
}

static LsNest *tile_nest(const LsKernelText *k, const LsConvFusedAttr *at, LsWithinSize s)
{
    const LsNode *node = &k->g->node[k->n.i];
    LsNest *n = ls_arena_alloc(k->g->arena, 1, sizeof *n);
    n->arena = k->g->arena;
    n->naxis = 2;
    n->ntensor = node->nin + node->nout + (at->body->njoined > 0) + 1;
    n->stride = ls_arena_alloc(n->arena, (size_t)n->ntensor, sizeof *n->stride);
    n->before = ls_arena_alloc(n->arena, (size_t)n->ntensor, sizeof *n->before);
    n->size[0] = s.rows, n->size[1] = s.columns;
    n->var[0] = "j", n->var[1] = "i";
    for (int x = 1; x < at->nbody; x++) {
        int64_t stride[2] = {0, 1};                 /* of a joined part, whose row is found by number */
        if (!ls_is_joined(at->body, x))
            ls_computed_strides(k->g, ls_in(k->g, k->n, x), &at->body->space, LS_LAST, 1, stride);
        n->stride[x][0] = stride[0], n->stride[x][1] = stride[1];
    }
    if (at->body->njoined > 0)
        n->stride[node->nin + node->nout][0] = 1;
    for (int y = 0; y < node->nout; y++) {
        const LsFusedOut *o = &at->body->out[y];
        n->stride[node->nin + y][0] = o->reduce ? 0 : o->length > 0 ? o->length : s.columns;
        n->stride[node->nin + y][1] = 1;
        n->before[node->nin + y] = o->length > 0 ? o->from : 0;
        n->alone[1] |= o->length > 0;
    }
    return n;
}

static Within within_new(const LsKernelText *k)
{
    const LsConvFusedAttr *at = &k->g->node[k->n.i].attr.conv_fused;
    Within w = {.k = k, .e = k->e, .at = at, .s = ls_within_size(k->g, k->n)};
    LsKernelText *own = ls_arena_alloc(k->g->arena, 1, sizeof *own);
    w.block_rows = at->tiles * LS_TILE_ROWS;
    w.blocks = ls_ceil_div(w.s.rows, w.block_rows);
    *own = *k;
    own->g = body_graph(k, at->body);
    own->n = (LsNodeId){1};
    w.body = ls_body_over(own, tile_nest(k, at, w.s));
    w.body.load[0] = false;     /* operand 0 is a0 */
    w.body.wide = 4;
    return w;
}

/* ---- the product and its epilogue ---- */
static const char *total_type(const Within *w, int y)
{
    return is_moments(w, y) ? "LsMoments" : "double";
}

static int64_t total_bytes(const Within *w, int y)
{
    return is_moments(w, y) ? sizeof(LsMoments) : sizeof(double);
}

static void declare_shared(const Within *w, int y)
{
    int apart = LS_TILE_LEFT(w->s.n) * reduced(w, y);
    ls_emit_line(w->e, "real *const left%d = left + %d;", y, apart);
    if (!is_moments(w, y))
        return;
    ls_emit_line(w->e, "real *const left%d = left + %d;", y + 1, apart + LS_TILE_LEFT(w->s.n));
    ls_emit_line(w->e, "LS_SHARED(real, near%d, [%d]);", y, LS_TILE_COLUMNS(w->s.n));
}

/* Totals lie in shared memory, as the product needs all registers. Each thread has its own. */
static void declare_totals(const Within *w, int y)
{
    ls_emit_line(w->e, "LS_SHARED(double, totals%d, [LS_TILE_THREADS]);", y);
    ls_emit_line(w->e, "double *const total%d = totals%d + ls_tile_me();", y, y);
}

static void start_total(const Within *w, int y) { ls_emit_line(w->e, "*total%d = 0;", y); }

static void declare_four(const Within *w, int y)
{
    ls_emit_line(w->e, "real of%d[4] = {0};", y);
    if (!has_square(w, y))
        return;
    ls_emit_line(w->e, "real near%d_four[4];", y);
    ls_emit_line(w->e, "ls_get4(near%d_four, near%d + ls_tile_first(p, %d));", y, y, w->s.n);
}

static void find_near(const Within *w, int y)
{
    if (has_square(w, y))
        ls_emit_line(w->e, "ls_tile_near(near%d, c, %d);", y, w->s.n);
}

static void take(const Within *w, int y)
{
    const int v = w->at->body->out[y].stmt;
    if (is_square(w, y)) {
        ls_emit_line(w->e, "of%d[i & 3] = ls_fma(d%d, d%d, of%d[i & 3]);", y, y - 1, y - 1, y);
    } else if (has_square(w, y)) {
        ls_emit_line(w->e, "const real d%d = v%d - near%d_four[i & 3];", y, v, y);
        ls_emit_line(w->e, "of%d[i & 3] += d%d;", y, y);
    } else {
        ls_emit_line(w->e, "of%d[i & 3] += v%d;", y, v);
    }
}

static void leave(const Within *w, int y)
{
    ls_emit_line(w->e, "ls_tile_sums(left%d, of%d, p, %d);", y, y, w->s.n);
}

static void add(const Within *w, int y)
{
    ls_emit_line(w->e, "*total%d += ls_tile_total(left%d, %d);", y, y, w->s.n);
}

/* Bytes of the workspace before result `end`: each reduced result has an array [blocks][columns]. */
static int64_t workspace_before(const Within *w, int end)
{
    int64_t bytes = 0;
    for (int y = 0; y < end; y++)
        if (is_reduced(w, y) && !is_square(w, y))
            bytes += w->blocks * w->s.columns * total_bytes(w, y);
    return bytes;
}

static void declare_room(const Within *w, int y)
{
    ls_emit_line(w->e, "%s *const all%d = (%s *)(room + %" PRId64 ");", total_type(w, y), y,
                 total_type(w, y), workspace_before(w, y));
}

static void keep(const Within *w, int y)
{
    const char *value = is_moments(w, y)
        ? ls_arena_printf(w->k->g->arena, "ls_moments_about((double)near%d[ls_tile_me()], "
                          "(double)(end - from), *total%d, *total%d)", y, y, y + 1)
        : ls_arena_printf(w->k->g->arena, "*total%d", y);
    ls_emit_line(w->e, "all%d[u / %" PRId64 " * %" PRId64 " + column] = %s;", y, w->s.across,
                 w->s.columns, value);
}

static void declare(const Within *w)
{
    const LsKernelText *k = w->k;
    const int slots = reduced(w, w->body.node->nout);
    ls_body_declare(&w->body);
    ls_emit_operand(k, "rows", w->at->nbody);
    ls_emit_operand(k, "weights", w->at->nbody + 1);
    ls_emit_line(w->e, "LS_SHARED(real, xs, [LS_TILE_BUFFERS(%d)]);", LS_TILE_ROWS);
    ls_emit_line(w->e, "LS_SHARED(real, ws, [LS_TILE_BUFFERS(%d)]);", LS_TILE_COLUMNS(w->s.n));
    if (slots > 0) {
        ls_emit_workspace(k, "char", "room");
        ls_emit_line(w->e, "LS_SHARED(real, left, [%d]);", LS_TILE_LEFT(w->s.n) * slots);
        each_total(w, declare_shared);
        each_total(w, declare_room);
        each_sum(w, declare_totals);
    }
    ls_emit_line(w->e, "int turn = 0;");
}

static void product(const Within *w)
{
    LsEmit *e = w->e;
    ls_emit_line(e, "real c[%d] = {0};", LS_TILE_NUMBERS(w->s.n));
    ls_emit_line(e, "LsTileProduct product;");
    ls_emit_line(e, "product.x = rows + j0 * %" PRId64 ", product.w = weights + i0%s;", w->s.depth,
                 w->at->data ? "" : ls_arena_printf(w->k->g->arena, " * %" PRId64, w->s.depth));
    ls_emit_line(e, "product.rows = (int)(end - j0), product.columns = (int)(columns - i0);");
    ls_emit_line(e, "product.depth = (int)LS_WHOLE4(%" PRId64 "), product.apart = (int)columns;",
                 w->s.depth);
    ls_emit_line(e, "product.n = %d, product.turned = %d;", w->s.n, w->at->data);
    ls_emit_line(e, "turn = ls_tile_product(c, product, xs, ws, turn);");
    bool near = false;
    for (int y = 0; y < w->body.node->nout; y++)
        near |= is_square(w, y);
    if (!near)
        return;
    ls_emit_line(e, "if (j0 == from) {");
    each_sum(w, find_near);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "}");
}

static void elements(const Within *w)
{
    LsEmit *e = w->e;
    ls_emit_line(e, "LS_UNROLL for (int p = 0; p < %d; p++) {", w->s.n / 2);
    ls_emit_line(e, "const int64_t four = i0 / 4 + ls_tile_first(p, %d) / 4;", w->s.n);
    each_sum(w, declare_four);
    ls_emit_line(e, "LS_UNROLL for (int h = 0; h < 4; h++) {");
    ls_emit_line(e, "const int64_t j = j0 + ls_tile_row(h);");
    if (w->s.columns % LS_TILE_COLUMNS(w->s.n) == 0)
        ls_emit_line(e, "if (j >= end)");
    else
        ls_emit_line(e, "if (j >= end || 4 * four >= columns)");
    ls_emit_line(e, "    continue;");
    ls_body_rows(&w->body);
    ls_emit_line(e, "LS_UNROLL for (int64_t i = 4 * four; i < 4 * four + 4; i++) {");
    ls_emit_line(e, "const real a0 = c[ls_tile_at(p, h, i & 3, %d)];", w->s.n);
    ls_body_point(&w->body);
    each_sum(w, take);
    ls_emit_close(e, 2);
    each_sum(w, leave);
    ls_emit_line(e, "}");
}

static void rows_part(const Within *w, const LsGrid *part)
{
    LsEmit *e = w->e;
    const bool sums = reduced(w, w->body.node->nout) > 0;
    ls_emit_part_together(w->k, part, 2);
    declare(w);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t i0 = u %% %" PRId64 " * %d, from = u / %" PRId64 " * %" PRId64
                 ";",
                 w->s.across, LS_TILE_COLUMNS(w->s.n), w->s.across, w->block_rows);
    ls_emit_line(e, "const int64_t end = ls_least(from + %" PRId64 ", %" PRId64 ");", w->block_rows,
                 w->s.rows);
    ls_emit_line(e, "const int64_t columns = LS_WHOLE4(%" PRId64 ");", w->s.columns);
    each_sum(w, start_total);
    ls_emit_line(e, "for (int64_t j0 = from; j0 < end; j0 += %d) {", LS_TILE_ROWS);
    product(w);
    elements(w);
    if (sums) {
        ls_emit_line(e, "LS_SYNC;");
        ls_emit_line(e, "if (ls_tile_me() < %d) {", LS_TILE_COLUMNS(w->s.n));
        each_sum(w, add);
        ls_emit_line(e, "}");
    }
    ls_emit_line(e, "}");
    if (sums) {
        ls_emit_line(e, "const int64_t column = i0 + ls_tile_me();");
        ls_emit_line(e, "if (ls_tile_me() < %d && column < columns) {", LS_TILE_COLUMNS(w->s.n));
        each_total(w, keep);
        ls_emit_line(e, "}");
    }
    ls_emit_close(e, 2);
}

/* ---- the second part: combining the blocks' sums ---- */
static void end_declare(const Within *w, int y)
{
    ls_emit_line(w->e, "LS_LOCAL_ROWS(%s, total%d, %d, %d);", total_type(w, y), y, END_COLUMNS,
                 END_ROWS);
}

static void end_start(const Within *w, int y)
{
    ls_emit_line(w->e, is_moments(w, y) ? "total%d[c] = ls_moments(0, 0, 0);" : "total%d[c] = 0;",
                 y);
}

static void end_join(const Within *w, int y)
{
    ls_emit_line(w->e, is_moments(w, y) ? "ls_moments_join(&total%d[c], all%d[block * %" PRId64
                 " + at]);"
                                        : "total%d[c] += all%d[block * " LS_N64 " + at];",
                 y, y, w->s.columns);
}

static void end_result(const Within *w, int y)
{
    LsEmit *e = w->e;
    ls_emit_line(e, "%s sum%d = total%d[c];", total_type(w, y), y, y);
    ls_emit_line(e, "LS_FOLD(other, %d)", END_ROWS);
    ls_emit_line(e, is_moments(w, y) ? "    ls_moments_join(&sum%d, LS_OF_ROW(total%d, other)[c]);"
                                     : "    sum%d += LS_OF_ROW(total%d, other)[c];", y, y);
    if (!is_moments(w, y)) {
        ls_emit_line(e, w->at->body->out[y].mean ? "y%d[at] = (real)(sum%d / %" PRId64 ");"
                                                 : "y%d[at] = (real)sum%d;", y, y, w->s.rows);
        return;
    }
    ls_emit_line(e, "y%d[at] = (real)sum%d.mean;", y, y);
    ls_emit_line(e, "y%d[at] = (real)(sum%d.square / %" PRId64 ");", y + 1, y, w->s.rows);
}

static void end_part(const Within *w, const LsGrid *part)
{
    LsEmit *e = w->e;
    ls_emit_part(w->k, part);
    ls_emit_workspace(w->k, "char", "room");
    each_total(w, declare_room);
    for (int y = 0; y < w->body.node->nout; y++)
        if (is_reduced(w, y))
            ls_emit_result(w->k, ls_arena_printf(w->k->g->arena, "y%d", y), y);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    each_total(w, end_declare);
    ls_emit_line(e, "const int64_t first = u * %d, count = ls_least(%d, %" PRId64 " - first);",
                 END_COLUMNS, END_COLUMNS, w->s.columns);
    ls_emit_line(e, "LS_LANES(c, 0, count) {");
    each_total(w, end_start);
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_ROWS(block, 0, %" PRId64 ") {", w->blocks);
    ls_emit_line(e, "LS_LANES(c, 0, count) {");
    ls_emit_line(e, "const int64_t at = first + c;");
    each_total(w, end_join);
    ls_emit_close(e, 2);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "LS_ROWS(top, 0, 1) {");
    ls_emit_line(e, "LS_LANES(c, 0, count) {");
    ls_emit_line(e, "const int64_t at = first + c;");
    each_total(w, end_result);
    ls_emit_close(e, 4);
}

static void emit(const LsKernelText *k)
{
    const Within w = within_new(k);
    const bool sums = reduced(&w, w.body.node->nout) > 0;
    const LsGrid part[] = {
        {"part", w.blocks * w.s.across, LS_TILE_X, LS_TILE_Y},
        {"end", ls_ceil_div(w.s.columns, END_COLUMNS), END_COLUMNS, END_ROWS}};
    rows_part(&w, &part[0]);
    if (sums)
        end_part(&w, &part[1]);
    ls_emit_launch(k, part, sums ? 2 : 1);
}

static int64_t workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const LsKernelText k = {.g = g, .n = n, .target = t};
    const Within w = within_new(&k);
    return workspace_before(&w, w.body.node->nout);
}

const LsEmitter ls_emitter_conv_fused = {.emit = emit, .workspace = workspace};
