/* codegen/kernels/gather.c -- LS_K_GATHER: rows of a table picked by index, and the sum back into
 * it.
 *
 * The table is outer x length x inner, all row-major. An index that is outside gives NaN (0 for
 * integers) and adds nothing. The gradient adds in the order of the indices, to zeros or to its base,
 * which is copied unless it lies where the result does. On the CPU its units are
 * columns, which no two share. A GPU would wait for one index after the other: there the places of
 * equal indices are linked first, all at once, and a unit then sums along one chain. */
#include "codegen/kernels/move.h"

#include <inttypes.h>

enum { COLUMNS = 64, LINKED = 256 };    /* added, indices linked in one unit */

typedef struct Gather {
    const LsKernelText *k;
    LsEmit *e;
    int64_t outer, length, inner, count;    /* count: indices */
} Gather;

static Gather gather_new(const LsKernelText *k, const LsShape *table)
{
    int axis = k->g->node[k->n.i].attr.gather.axis;
    Gather g = {.k = k, .e = k->e, .outer = 1, .length = table->dim[axis], .inner = 1,
                .count = ls_count(ls_in_shape(k->g, k->n, 1))};
    for (int a = 0; a < table->rank; a++)
        if (a != axis)
            *(a < axis ? &g.outer : &g.inner) *= table->dim[a];
    return g;
}

/* name: index number `place`, counted from the front. */
static void pick(const Gather *g, const char *name, const char *place)
{
    ls_emit_line(g->e, "const int64_t %s = index[%s] < 0 ? index[%s] + %" PRId64 " : index[%s];",
                 name, place, place, g->length, place);
}

static void forward(const Gather *g)
{
    LsEmit *e = g->e;
    int64_t rows = g->outer * g->count, unit = ls_unit(g->k);
    int64_t group = g->inner >= unit ? 1 : unit / g->inner;
    int x = ls_threads(g->inner, 256);
    const LsGrid part = {"part", ls_ceil_div(rows, group), x, ls_threads(group, 256 / x)};
    const char *nothing = ls_type(g->k->g, ls_out(g->k->g, g->k->n, 0)) == LS_REAL ? "NAN" : "0";
    ls_emit_part(g->k, &part);
    ls_emit_operand(g->k, "x", 0);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_result(g->k, "y", 0);
    ls_emit_line(e, "LS_ROWS(p, lo * %" PRId64 ", ls_least(hi * %" PRId64 ", %" PRId64 ")) {",
                 group, group, rows);
    ls_emit_line(e, "const int64_t j = p %% %" PRId64 ";", g->count);
    pick(g, "t", "j");
    ls_emit_line(e, "const int64_t from = (p / %" PRId64 " * %" PRId64 " + t) * %" PRId64 ";",
                 g->count, g->length, g->inner);
    ls_emit_line(e, "if (t >= 0 && t < %" PRId64 ") {", g->length);
    ls_emit_line(e, "LS_COPY(y + p * %" PRId64 ", x + from, %" PRId64 ");", g->inner,
                 g->inner);
    ls_emit_line(e, "continue;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_LANES(i, 0, %" PRId64 ")", g->inner);
    ls_emit_line(e, "    y[p * %" PRId64 " + i] = %s;", g->inner, nothing);
    ls_emit_close(e, 2);
    ls_emit_launch(g->k, &part, 1);
}

/* chain[j]: the next place of j's index, or count; lead[j]: there is none before. */
static void links(const Gather *g, const LsGrid *grid)
{
    LsEmit *e = g->e;
    ls_emit_part(g->k, grid);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_workspace(g->k, "int32_t", "chain");
    ls_emit_line(e, "int32_t *const lead = chain + %" PRId64 ";", g->count);
    ls_emit_line(e, "LS_LANES(j, lo * %d, ls_least(hi * %d, %" PRId64 ")) {", LINKED, LINKED,
                 g->count);
    pick(g, "t", "j");
    ls_emit_line(e, "int64_t next = %" PRId64 ", before = 0;", g->count);
    ls_emit_line(e, "for (int64_t other = 0; other < %" PRId64 "; other++) {", g->count);
    pick(g, "to", "other");
    ls_emit_line(e, "const bool same = to == t;");
    ls_emit_line(e, "next = same && other > j && other < next ? other : next;");
    ls_emit_line(e, "before += same && other < j;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "chain[j] = (int32_t)next;");
    ls_emit_line(e, "lead[j] = before == 0;");
    ls_emit_close(e, 2);
}

static bool has_base(const Gather *g) { return ls_is(ls_in(g->k->g, g->k->n, 2)); }

/* What the gradient is before anything is added. */
static LsGrid start_part(const Gather *g)
{
    LsEmit *e = g->e;
    int64_t n = g->outer * g->length * g->inner, unit = ls_unit(g->k);
    if (!has_base(g))
        return ls_fill_part(g->k, 0);
    const LsGrid part = ls_flat_grid(g->k, "base", n);
    ls_emit_part(g->k, &part);
    ls_emit_operand(g->k, "base", 2);
    ls_emit_result(g->k, "dx", 0);
    ls_emit_line(e, "const int64_t from = lo * %" PRId64 ", to = ls_least(hi * %" PRId64 ", %" PRId64
                 ");", unit, unit, n);
    ls_emit_line(e, "if (!LS_SAME(2, 3))");
    ls_emit_line(e, "    LS_COPY(dx + from, base + from, to - from);");
    ls_emit_close(e, 1);
    return part;
}

static void backward_linked(const Gather *g)
{
    LsEmit *e = g->e;
    const LsGrid grid[3] = {start_part(g),
                            {"links", ls_ceil_div(g->count, LINKED), LINKED, 1},
                            {"part", g->outer * g->count, ls_threads(g->inner, 256), 1}};
    links(g, &grid[1]);
    ls_emit_part(g->k, &grid[2]);
    ls_emit_operand(g->k, "dy", 0);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_result(g->k, "dx", 0);
    ls_emit_workspace(g->k, "int32_t", "chain");
    ls_emit_line(e, "const int32_t *const lead = chain + %" PRId64 ";", g->count);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t o = u / %" PRId64 ", j = u %% %" PRId64 ";", g->count, g->count);
    pick(g, "t", "j");
    ls_emit_line(e, "if (t < 0 || t >= %" PRId64 " || !lead[j])", g->length);
    ls_emit_line(e, "    continue;");
    ls_emit_line(e, "LS_LANES(i, 0, %" PRId64 ") {", g->inner);
    ls_emit_line(e, "real *const to = dx + (o * %" PRId64 " + t) * %" PRId64 " + i;", g->length, g->inner);
    ls_emit_line(e, "real sum = %s;", has_base(g) ? "*to" : "0");
    ls_emit_line(e, "for (int64_t at = j; at < %" PRId64 "; at = chain[at])", g->count);
    ls_emit_line(e, "    sum += dy[(o * %" PRId64 " + at) * %" PRId64 " + i];", g->count, g->inner);
    ls_emit_line(e, "*to = sum;");
    ls_emit_close(e, 3);
    ls_emit_launch(g->k, grid, 3);
}

static void backward(const Gather *g)
{
    LsEmit *e = g->e;
    int64_t tiles = ls_ceil_div(g->inner, COLUMNS);
    const LsGrid part[2] = {start_part(g),
                            {"part", g->outer * tiles, ls_threads(g->inner, COLUMNS), 1}};
    ls_emit_part(g->k, &part[1]);
    ls_emit_operand(g->k, "dy", 0);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_result(g->k, "dx", 0);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t o = u / %" PRId64 ", i0 = u %% %" PRId64 " * %d;", tiles, tiles,
                 COLUMNS);
    ls_emit_line(e, "const int64_t i1 = ls_least(i0 + %d, %" PRId64 ");", COLUMNS, g->inner);
    ls_emit_line(e, "for (int64_t j = 0; j < %" PRId64 "; j++) {", g->count);
    pick(g, "t", "j");
    ls_emit_line(e, "if (t < 0 || t >= %" PRId64 ")", g->length);
    ls_emit_line(e, "    continue;");
    ls_emit_line(e, "const int64_t to = (o * %" PRId64 " + t) * %" PRId64 ", from = (o * %" PRId64
                 " + j) * %" PRId64 ";", g->length, g->inner, g->count, g->inner);
    ls_emit_line(e, "LS_LANES(i, i0, i1)");
    ls_emit_line(e, "    dx[to + i] += dy[from + i];");
    ls_emit_close(e, 3);
    ls_emit_launch(g->k, part, 2);
}

static bool linked(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    return g->node[n.i].op != LS_OP_GATHER && t->kind == LS_TARGET_CUDA
        && ls_count(ls_in_shape(g, n, 1)) <= INT32_MAX;
}

static void gather_emit(const LsKernelText *k)
{
    if (k->g->node[k->n.i].op == LS_OP_GATHER) {
        const Gather g = gather_new(k, ls_in_shape(k->g, k->n, 0));
        forward(&g);
    } else {
        const Gather g = gather_new(k, ls_shape(k->g, ls_out(k->g, k->n, 0)));
        (linked(k->g, k->n, k->target) ? backward_linked : backward)(&g);
    }
}

static int64_t gather_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    int64_t count = ls_count(ls_in_shape(g, n, 1));
    return linked(g, n, t) ? 2 * count * (int64_t)sizeof(int32_t) : 0;
}

const LsEmitter ls_emitter_gather = {.emit = gather_emit, .workspace = gather_workspace};
