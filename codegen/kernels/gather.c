/* codegen/kernels/gather.c -- LS_K_GATHER: rows of a table picked by index, single elements
 * likewise, and scatters, of which the gradients are those that add.
 *
 * The table is outer x length x inner, all row-major. An index out of range gives NaN (0 for
 * integers) and changes nothing. A scatter combines in the order of the indices, with zeros or with
 * its base, which is copied unless it shares the result's memory. On the CPU a unit of a scatter of
 * rows is a range of columns. A GPU would wait for one index after the other, so there a parallel
 * ranking (ls_rank) first sorts the places by their index, and a row of threads then combines the
 * places of one index, which lie side by side. Where every element has its own index, a lane has
 * all indices of one line along the axis. The gradient of some rows of a table, on the CPU, skips
 * the indices of others. */
#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/move_axes.h"
#include "codegen/kernels/unpack.h"
#include "compiler/passes/fuse.h"
#include "runtime/cuda_kernels/ls_cuda_sizes.h"

#include <inttypes.h>

enum {
    COLUMNS = 64,               /* columns of one unit on the CPU */
    BASE_UNITS = 8,             /* units of a plain loop that form one unit of copying a base */
    RANK_ROWS = 16,             /* rows of threads that share the comparisons with one index */
    ROW_AT = 3,                 /* operand of the gradient of some rows: the first of them */
    TOGETHER = 8,               /* places whose rows a thread loads before it adds the first */
};
_Static_assert((int)RANK_ROWS <= (int)LS_RANK_KEYS, "ls_rank has room for the rows of threads");

typedef struct Gather {
    const LsKernelText *k;
    LsEmit *e;
    int64_t outer, length, inner, count;    /* count: indices, or with `each` indices of a line */
    bool each;                  /* every element has its own index */
    LsScatterHow how;           /* scatters */
    const char *type;           /* of the elements */
    bool single;                /* one update for all places */
    int64_t of;                 /* > 0: these are rows row_at[0] .. of a table of so many */
} Gather;

static Gather gather_new(const LsKernelText *k, const LsShape *table)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsShape *index = ls_in_shape(k->g, k->n, 1);
    int axis = node->attr.gather.axis;
    Gather g = {.k = k, .e = k->e, .outer = 1, .length = table->dim[axis], .inner = 1,
                .each = node->op == LS_OP_GATHER_EACH || node->op == LS_OP_SCATTER_EACH,
                .how = node->op == LS_OP_GATHER_GRAD ? LS_SCATTER_ADD : node->attr.gather.how,
                .type = ls_ctype(ls_result_type(k, 0))};
    if (node->op == LS_OP_GATHER_GRAD && ls_is(ls_in(k->g, k->n, ROW_AT)))
        g.of = node->attr.gather.rows;
    g.count = g.each ? index->dim[axis] : ls_count(index);
    for (int a = 0; a < table->rank; a++)
        if (a != axis)
            *(a < axis ? &g.outer : &g.inner) *= table->dim[a];
    int64_t updates = ls_count(ls_in_shape(k->g, k->n, 0));
    g.single = updates == 1 && g.outer * g.count * g.inner > 1;
    return g;
}

/* Declares `name`: the index at `place`, counted from the front. */
static void pick(const Gather *g, const char *name, const char *place)
{
    if (g->of > 0)
        ls_emit_line(g->e, "const int64_t %s = (index[%s] < 0 ? index[%s] + %" PRId64
                     " : index[%s]) - row_at[0];", name, place, place, g->of, place);
    else
        ls_emit_line(g->e, "const int64_t %s = index[%s] < 0 ? index[%s] + " LS_N64
                     " : index[%s];", name, place, place, g->length, place);
}

static const char *nothing(const Gather *g)
{
    const LsNode *node = &g->k->g->node[g->k->n.i];
    LsType type = ls_result_type(g->k, 0);
    return ls_narrowed(g->k->g->arena, type,
                       ls_is_float(type) && !node->attr.gather.zero ? "NAN" : "0");
}

/* The table and the result are stored in different types. */
static bool converts(const Gather *g)
{
    return ls_operand_type(g->k, 0) != ls_result_type(g->k, 0);
}

/* An element of the table as an element of the result. */
static const char *element(const Gather *g, const char *x)
{
    LsArena *a = g->k->g->arena;
    LsType from = ls_operand_type(g->k, 0), to = ls_result_type(g->k, 0);
    return converts(g) ? ls_stored(a, to, ls_widened(a, from, x)) : x;
}

/* A row of a table in codes, rounded to 16 bits. */
static void unpack_narrow(const Gather *g)
{
    enum { SOME = 256 };
    LsEmit *e = g->e;
    ls_emit_line(e, "for (int64_t i = 0; i < %" PRId64 " && t >= 0 && t < %" PRId64 "; i += %d) {",
                 g->inner, g->length, SOME);
    ls_emit_line(e, "real some[%d];", SOME);
    ls_emit_line(e, "const int64_t n = ls_least(%d, %" PRId64 " - i);", SOME, g->inner);
    ls_emit_line(e, "ls_unpack(&codes, x, t * %" PRId64 " + i, some, n);", g->inner);
    ls_emit_line(e, "ls_give(%s, y, j * %" PRId64 " + i, some, n);",
                 ls_stored_word(ls_result_type(g->k, 0)), g->inner);
    ls_emit_line(e, "}");
}

/* Rows of a table in codes. */
static void forward_codes(const Gather *g, const LsComputed *c)
{
    LsEmit *e = g->e;
    const int64_t unit = ls_unit(g->k), group = g->inner >= unit ? 1 : unit / g->inner;
    const LsGrid part = {"part", ls_ceil_div(g->count, group), 1, 1};
    ls_emit_part(g->k, &part);
    ls_emit_line(e, "LS_IN(uint8_t, x, %d);", c->first);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_result(g->k, "y", 0);
    ls_unpack_emit_codes(g->k, "codes", c->codes);
    ls_emit_line(e, "for (int64_t j = lo * %" PRId64 "; j < ls_least(hi * %" PRId64 ", %" PRId64
                 "); j++) {", group, group, g->count);
    pick(g, "t", "j");
    if (ls_is_16(ls_result_type(g->k, 0)))
        unpack_narrow(g);
    else
        ls_emit_line(e, "if (t >= 0 && t < %" PRId64 ") ls_unpack(&codes, x, t * %" PRId64
                        ", y + j * %" PRId64 ", %" PRId64 ");",
                     g->length, g->inner, g->inner, g->inner);
    ls_emit_line(e, "for (int64_t i = 0; i < %" PRId64 " && (t < 0 || t >= %" PRId64 "); i++)",
                 g->inner, g->length);
    ls_emit_line(e, "    y[j * %" PRId64 " + i] = %s;", g->inner, nothing(g));
    ls_emit_close(e, 2);
    ls_emit_launch(g->k, &part, 1);
}

static void forward(const Gather *g)
{
    LsEmit *e = g->e;
    int64_t rows = g->outer * g->count, unit = ls_unit(g->k);
    int64_t group = g->inner >= unit ? 1 : unit / g->inner;
    int x = ls_threads(g->inner, 256);
    const LsGrid part = {"part", ls_ceil_div(rows, group), x, ls_threads(group, 256 / x)};
    const int wide = g->k->target->kind == LS_TARGET_CUDA ? ls_wide(g->inner, true) : 0;
    ls_emit_part(g->k, &part);
    ls_emit_operand(g->k, "x", 0);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_result(g->k, "y", 0);
    if (converts(g) && wide > 0)
        ls_emit_room(e, wide, "v");
    ls_emit_line(e, "LS_ROWS(p, lo * " LS_N64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, rows);
    ls_emit_line(e, "const int64_t j = p %% " LS_N64 ";", g->count);
    pick(g, "t", "j");
    ls_emit_line(e, "const int64_t from = (p / " LS_N64 " * " LS_N64 " + t) * " LS_N64 ";",
                 g->count, g->length, g->inner);
    ls_emit_line(e, "if (t >= 0 && t < %" PRId64 ") {", g->length);
    if (converts(g) && wide > 0) {
        ls_emit_line(e, "%s(i, 0, " LS_BOUND64 ")", ls_lanes_word(wide), g->inner);
        ls_emit_line(e, "    LS_PUT%d(y, p * " LS_N64 " + i, %s);", wide, g->inner,
                     ls_rounded(g->k->g->arena, ls_result_type(g->k, 0),
                                ls_get_text(g->k->g->arena, wide, "v", "x", "from + i")));
    } else if (converts(g)) {
        ls_emit_line(e, "LS_LANES(i, 0, " LS_BOUND64 ")", g->inner);
        ls_emit_line(e, "    y[p * " LS_N64 " + i] = %s;", g->inner, element(g, "x[from + i]"));
    } else {
        ls_emit_line(e, "LS_COPY(y + p * " LS_N64 ", x + from, " LS_N64 ");", g->inner, g->inner);
    }
    ls_emit_line(e, "continue;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_LANES(i, 0, " LS_BOUND64 ")", g->inner);
    ls_emit_line(e, "    y[p * " LS_N64 " + i] = %s;", g->inner, nothing(g));
    ls_emit_close(e, 2);
    ls_emit_launch(g->k, &part, 1);
}

static void forward_each(const Gather *g)
{
    LsEmit *e = g->e;
    int64_t all = g->outer * g->count * g->inner, unit = ls_unit(g->k);
    const LsGrid part = ls_flat_grid(g->k, "part", all);
    ls_emit_part(g->k, &part);
    ls_emit_operand(g->k, "x", 0);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_result(g->k, "y", 0);
    ls_emit_line(e, "LS_LANES(p, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 unit, unit, all);
    pick(g, "t", "p");
    ls_emit_line(e, "const int64_t from = (p / " LS_N64 " * " LS_N64 " + t) * " LS_N64 " + p %% "
                 LS_N64 ";", g->count * g->inner, g->length, g->inner, g->inner);
    ls_emit_line(e, "y[p] = t >= 0 && t < %" PRId64 " ? %s : %s;", g->length, element(g, "x[from]"),
                 nothing(g));
    ls_emit_close(e, 2);
    ls_emit_launch(g->k, &part, 1);
}

/* What an element that is `old` becomes with the update `v`. */
static const char *combined(const Gather *g, const char *old, const char *v)
{
    LsArena *a = g->k->g->arena;
    switch (g->how) {
    case LS_SCATTER_SET: return v;
    case LS_SCATTER_MUL: return ls_arena_printf(a, "%s * %s", old, v);
    case LS_SCATTER_MAX: return ls_arena_printf(a, "ls_max(%s, %s)", old, v);
    case LS_SCATTER_MIN: return ls_arena_printf(a, "ls_min(%s, %s)", old, v);
    default:             return ls_arena_printf(a, "%s + %s", old, v);
    }
}

/* Prints the combination of dx[to] with the update at `from`, indented by `by`. */
static void combine(const Gather *g, const char *by, const char *to, const char *from)
{
    LsArena *a = g->k->g->arena;
    const char *old = ls_arena_printf(a, "dx[%s]", to);
    const char *v = g->single ? "dy[0]" : ls_arena_printf(a, "dy[%s]", from);
    if (g->how == LS_SCATTER_ADD)
        ls_emit_line(g->e, "%s%s += %s;", by, old, v);
    else
        ls_emit_line(g->e, "%s%s = %s;", by, old, combined(g, old, v));
}

static bool has_base(const Gather *g) { return ls_is(ls_in(g->k->g, g->k->n, 2)); }

/* Stores the index of each place as a sort key; indices out of range get the length, after all
 * others. */
static void keys(const Gather *g, int64_t units)
{
    int64_t share = ls_ceil_div(g->count, units);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_workspace(g->k, "int32_t", "key");
    ls_emit_line(g->e, "LS_LANES(j, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64
                 ")) {", share,
                 share, g->count);
    pick(g, "t", "j");
    ls_emit_line(g->e, "key[j] = (int32_t)(t < 0 || t > %" PRId64 " ? %" PRId64 " : t);", g->length,
                 g->length);
    ls_emit_close(g->e, 1);
}

/* Prints the part that sets the gradient's initial values. */
static LsGrid start_part(const Gather *g, bool with_keys)
{
    LsEmit *e = g->e;
    int64_t n = g->outer * g->length * g->inner, unit = ls_unit(g->k);
    if (has_base(g))            /* mostly nothing to copy: few blocks suffice */
        unit *= BASE_UNITS;
    const LsGrid part = {"start", ls_ceil_div(n, unit), 256, 1};
    ls_emit_part(g->k, &part);
    if (with_keys)
        keys(g, part.units);
    ls_emit_result(g->k, "dx", 0);
    if (has_base(g)) {
        ls_emit_operand(g->k, "base", 2);
        ls_emit_line(e, "const int64_t from = lo * " LS_N64 ", to = ls_least(hi * " LS_N64 ", "
                     LS_N64 ");", unit, unit, n);
        ls_emit_line(e, "if (!LS_SAME(2, %d))", g->k->g->node[g->k->n.i].nin);
        ls_emit_line(e, "    LS_COPY(dx + from, base + from, to - from);");
    } else {
        ls_emit_line(e, "%s(i, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 "))",
                     ls_lanes_word(ls_fours(n)), unit, unit, n);
        ls_emit_line(e, "    dx[i] = 0;");
    }
    ls_emit_close(e, 1);
    return part;
}

static LsGrid rank_part(const Gather *g)
{
    const LsGrid part = {"rank", ls_ceil_div(g->count, LS_RANK_KEYS), LS_RANK_KEYS, RANK_ROWS};
    ls_emit_part(g->k, &part);
    ls_emit_workspace(g->k, "int32_t", "key");
    ls_emit_line(g->e, "ls_rank(key + %" PRId64 ", key + %" PRId64 ", key, %" PRId64 ", lo);",
                 2 * g->count, g->count, g->count);
    ls_emit_close(g->e, 1);
    return part;
}

/* A row of threads sums the places of one index; only the row at the first of these places
 * works. */
static LsGrid sum_part(const Gather *g)
{
    LsEmit *e = g->e;
    int x = ls_threads(g->inner, 256);
    int64_t tiles = ls_ceil_div(g->inner, x), all = g->outer * g->count * tiles, group = 256 / x;
    const LsGrid part = {"part", ls_ceil_div(all, group), x, (int)group};
    ls_emit_part(g->k, &part);
    ls_emit_operand(g->k, "dy", 0);
    ls_emit_result(g->k, "dx", 0);
    ls_emit_workspace(g->k, "int32_t", "key");
    ls_emit_line(e, "const int32_t *const sorted = key + " LS_N64 ", *const order = sorted + "
                 LS_N64 ";",
                 g->count, g->count);
    ls_emit_line(e, "LS_ROWS(u, lo * " LS_N64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {", group,
                 group,
                 all);
    ls_emit_line(e, "const int64_t r = u / " LS_N64 " %% " LS_N64 ", i0 = u %% " LS_N64 " * "
                 LS_N ";", tiles,
                 g->count, tiles, x);
    ls_emit_line(e, "const int64_t o = u / " LS_N64 ";", g->count * tiles);
    ls_emit_line(e, "const int32_t t = sorted[r];");
    ls_emit_line(e, "if (t == %" PRId64 " || (r > 0 && sorted[r - 1] == t))", g->length);
    ls_emit_line(e, "    continue;");
    ls_emit_line(e, "LS_ONCE(i, i0, ls_least(i0 + " LS_N ", " LS_N64 ")) {", x, g->inner);
    if (g->single)
        ls_emit_line(e, "const %s *const from = dy;", g->type);
    else
        ls_emit_line(e, "const %s *const from = dy + o * " LS_N64 " + i;", g->type,
                     g->count * g->inner);
    ls_emit_line(e, "%s *const to = dx + (o * " LS_N64 " + t) * " LS_N64 " + i;", g->type,
                 g->length, g->inner);
    ls_emit_line(e, "%s sum = %s;", g->type, has_base(g) ? "*to" : "0");
    ls_emit_line(e, "for (int64_t at = r; at < %" PRId64 " && sorted[at] == t; at += %d) {",
                 g->count,
                 TOGETHER);
    ls_emit_line(e, "%s v[%d];", g->type, TOGETHER);
    ls_emit_line(e, "int64_t j[%d], n = 0;", TOGETHER);
    ls_emit_line(e, "LS_UNROLL for (int k = 0; k < %d; k++) {", TOGETHER);
    ls_emit_line(e, "const int64_t here = ls_least(at + k, " LS_N64 ");", g->count - 1);
    ls_emit_line(e, "n += sorted[here] == t && at + k < %" PRId64 ";", g->count);
    ls_emit_line(e, "j[k] = order[here];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_UNROLL for (int k = 0; k < %d; k++) v[k] = k < n ? from[j[k] * " LS_N64
                 "] : 0;",
                 TOGETHER, g->single ? 0 : g->inner);
    ls_emit_line(e, "LS_UNROLL for (int k = 0; k < %d; k++) sum = k < n ? %s : sum;",
                 TOGETHER, combined(g, "sum", "v[k]"));
    ls_emit_line(e, "}");
    ls_emit_line(e, "*to = sum;");
    ls_emit_close(e, 3);
    return part;
}

static void backward_ranked(const Gather *g)
{
    const LsGrid start = start_part(g, true), rank = rank_part(g), sum = sum_part(g);
    ls_emit_launch(g->k, (const LsGrid[]){start, rank, sum}, 3);
}

static void backward(const Gather *g)
{
    LsEmit *e = g->e;
    int64_t tiles = ls_ceil_div(g->inner, COLUMNS);
    const LsGrid part[2] = {start_part(g, false),
                            {"part", g->outer * tiles, ls_threads(g->inner, COLUMNS), 1}};
    ls_emit_part(g->k, &part[1]);
    ls_emit_operand(g->k, "dy", 0);
    ls_emit_operand(g->k, "index", 1);
    if (g->of > 0)
        ls_emit_operand(g->k, "row_at", ROW_AT);
    ls_emit_result(g->k, "dx", 0);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t o = u / " LS_N64 ", i0 = u %% " LS_N64 " * " LS_N ";", tiles,
                 tiles,
                 COLUMNS);
    ls_emit_line(e, "const int64_t i1 = ls_least(i0 + " LS_N ", " LS_N64 ");", COLUMNS, g->inner);
    ls_emit_line(e, "for (int64_t j = 0; j < %" PRId64 "; j++) {", g->count);
    pick(g, "t", "j");
    ls_emit_line(e, "if (t < 0 || t >= %" PRId64 ")", g->length);
    ls_emit_line(e, "    continue;");
    if (g->single)
        ls_emit_line(e, "const int64_t to = (o * " LS_N64 " + t) * " LS_N64 ";", g->length,
                     g->inner);
    else
        ls_emit_line(e, "const int64_t to = (o * " LS_N64 " + t) * " LS_N64 ", from = (o * " LS_N64
                     " + j) * " LS_N64 ";", g->length, g->inner, g->count, g->inner);
    ls_emit_line(e, "LS_LANES(i, i0, i1)");
    combine(g, "    ", "to + i", "from + i");
    ls_emit_close(e, 3);
    ls_emit_launch(g->k, part, 2);
}

/* A lane combines the updates of one line. */
static void backward_each(const Gather *g)
{
    LsEmit *e = g->e;
    int64_t lines = g->outer * g->inner, group = ls_line_group(g->k, g->count);
    const LsGrid part[2] = {start_part(g, false),
                            {"part", ls_ceil_div(lines, group), ls_threads(group, 256), 1}};
    ls_emit_part(g->k, &part[1]);
    ls_emit_operand(g->k, "dy", 0);
    ls_emit_operand(g->k, "index", 1);
    ls_emit_result(g->k, "dx", 0);
    ls_emit_line(e, "LS_LANES(l, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, lines);
    ls_emit_line(e, "const int64_t o = l / " LS_N64 ", i = l %% " LS_N64 ";", g->inner, g->inner);
    ls_emit_line(e, "for (int64_t k = 0; k < " LS_N64 "; k++) {", g->count);
    ls_emit_line(e, "const int64_t j = (o * " LS_N64 " + k) * " LS_N64 " + i;", g->count, g->inner);
    pick(g, "t", "j");
    ls_emit_line(e, "if (t < 0 || t >= %" PRId64 ")", g->length);
    ls_emit_line(e, "    continue;");
    ls_emit_line(e, "const int64_t to = (o * " LS_N64 " + t) * " LS_N64 " + i;", g->length,
                 g->inner);
    combine(g, "", "to", "j");
    ls_emit_close(e, 3);
    ls_emit_launch(g->k, part, 2);
}

static bool is_ranked(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const LsNode *node = &g->node[n.i];
    return (node->op == LS_OP_GATHER_GRAD || node->op == LS_OP_SCATTER) && t->kind == LS_TARGET_CUDA
        && ls_count(ls_in_shape(g, n, 1)) < INT32_MAX
        && node->attr.gather.x.dim[node->attr.gather.axis] < INT32_MAX;
}

static void gather_emit(const LsKernelText *k)
{
    LsOpCode op = (LsOpCode)k->g->node[k->n.i].op;
    if (op == LS_OP_GATHER || op == LS_OP_GATHER_EACH) {
        const Gather g = gather_new(k, ls_in_shape(k->g, k->n, 0));
        const LsComputed *c = k->g->node[k->n.i].computed;
        if (c != NULL)
            forward_codes(&g, c);
        else
            (g.each ? forward_each : forward)(&g);
    } else {
        const Gather g = gather_new(k, ls_shape(k->g, ls_out(k->g, k->n, 0)));
        (g.each                                  ? backward_each
         : is_ranked(k->g, k->n, k->target) ? backward_ranked
                                                 : backward)(&g);
    }
}

static int64_t gather_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    int64_t count = ls_count(ls_in_shape(g, n, 1));
    return is_ranked(g, n, t) ? 3 * count * (int64_t)sizeof(int32_t) : 0;
}

const LsEmitter ls_emitter_gather = {.emit = gather_emit, .workspace = gather_workspace};
