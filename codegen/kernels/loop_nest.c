/* codegen/kernels/loop_nest.c */
#include "codegen/kernels/loop_nest.h"

#include <inttypes.h>

void ls_walk_order(const LsShape *s, LsLayout layout, int order[LS_MAX_RANK])
{
    bool last = layout == LS_LAST && s->rank >= 3;
    int n = 0;
    for (int k = 0; k < s->rank; k++)
        if (!last || k != 1)
            order[n++] = k;
    if (last)
        order[n] = 1;
}

int ls_innermost(const LsShape *s, LsLayout layout)
{
    int order[LS_MAX_RANK];
    ls_walk_order(s, layout, order);
    return order[s->rank - 1];
}

LsNest *ls_nest_new(const LsGraph *g, const LsShape *space, LsLayout layout, int ntensor)
{
    LsNest *n = ls_arena_alloc(g->arena, 1, sizeof *n);
    int order[LS_MAX_RANK];
    n->arena = g->arena;
    n->naxis = space->rank;
    n->ntensor = ntensor;
    n->stride = ls_arena_alloc(g->arena, (size_t)ntensor, sizeof *n->stride);
    n->before = ls_arena_alloc(g->arena, (size_t)ntensor, sizeof *n->before);
    ls_walk_order(space, layout, order);
    for (int k = 0; k < space->rank; k++) {
        n->size[k] = n->whole[k] = space->dim[order[k]];
        n->last[k] = k;
    }
    return n;
}

void ls_nest_tensor(LsNest *n, const LsShape *space, LsLayout layout, int tensor,
                    const int64_t stride[LS_MAX_RANK])
{
    int order[LS_MAX_RANK];
    ls_walk_order(space, layout, order);
    for (int k = 0; k < space->rank; k++)
        n->stride[tensor][k] = stride[order[k]];
}

/* Whether one loop can walk axis a and axis b directly inside it, for every tensor. */
static bool joins(const LsNest *n, int a, int b)
{
    if (n->reduced[a] != n->reduced[b] || n->alone[a] || n->alone[b])
        return false;
    for (int t = 0; t < n->ntensor; t++)
        if (n->stride[t][a] != n->stride[t][b] * n->size[b])
            return false;
    return true;
}

static void move_axis(LsNest *n, int to, int from)
{
    n->size[to] = n->size[from];
    n->reduced[to] = n->reduced[from];
    n->alone[to] = n->alone[from];
    n->last[to] = n->last[from];
    for (int t = 0; t < n->ntensor; t++)
        n->stride[t][to] = n->stride[t][from];
}

void ls_nest_merge(LsNest *n)
{
    static const char *const name[LS_NEST_AXES] = {"i", "j", "k", "m", "n", "o", "p", "q",
                                                   "r", "s", "t", "v", "w", "x", "z", "d"};
    int kept = 0;
    for (int k = 0; k < n->naxis; k++) {
        if (n->size[k] == 1 && !n->alone[k])
            continue;
        if (kept > 0 && joins(n, kept - 1, k)) {
            int64_t outer = n->size[kept - 1];
            move_axis(n, kept - 1, k);
            n->size[kept - 1] *= outer;
        } else {
            move_axis(n, kept++, k);
        }
    }
    if (kept == 0) {
        n->size[0] = 1;
        n->reduced[0] = false;
        for (int t = 0; t < n->ntensor; t++)
            n->stride[t][0] = 0;
        kept = 1;
    }
    n->naxis = kept;
    for (int k = 0; k < kept; k++)
        n->var[k] = name[kept - 1 - k];
}

int64_t ls_nest_count(const LsNest *n)
{
    int64_t count = 1;
    for (int k = 0; k < n->naxis; k++)
        count *= n->size[k];
    return count;
}

const char *ls_nest_offset(const LsNest *n, int tensor, int from, int to)
{
    const char *text = NULL;
    for (int k = from; k < to; k++) {
        int64_t s = n->stride[tensor][k];
        if (s == 0)
            continue;
        const char *term = s == 1 ? n->var[k]
                                  : ls_arena_printf(n->arena, "%s * " LS_N64, n->var[k], s);
        text = text == NULL ? term : ls_arena_printf(n->arena, "%s + %s", text, term);
    }
    if (text != NULL && n->before[tensor] > 0)
        text = ls_arena_printf(n->arena, "%s - " LS_N64, text, n->before[tensor]);
    return text == NULL ? "0" : text;
}

const char *ls_nest_index(const LsNest *n, int k)
{
    int axis = 0;
    if (n->whole[k] == 1)                           /* such axes may have been dropped */
        return "0";
    while (n->last[axis] < k)
        axis++;
    /* Division by a constant is quick in 32 bits. */
    const char *text = n->size[axis] <= INT32_MAX ? "(uint32_t)" : "";
    int64_t inside = 1;
    for (int j = k + 1; j <= n->last[axis]; j++)
        inside *= n->whole[j];
    text = ls_arena_printf(n->arena, "%s%s", text, n->var[axis]);
    if (inside > 1)
        text = ls_arena_printf(n->arena, "%s / " LS_N64, text, inside);
    if (k > (axis > 0 ? n->last[axis - 1] + 1 : 0))
        text = ls_arena_printf(n->arena, "%s %% " LS_N64, text, n->whole[k]);
    return text;
}

const char *ls_nest_below(const LsNest *n, int k, const char *count, int64_t times)
{
    int axis = 0;
    while (n->last[axis] < k)
        axis++;
    if (k > (axis > 0 ? n->last[axis - 1] + 1 : 0))
        return ls_arena_printf(n->arena, "(int64_t)(%s) < %s * " LS_N64, ls_nest_index(n, k), count,
                               times);
    for (int j = k + 1; j <= n->last[axis]; j++)
        times *= n->whole[j];
    return ls_arena_printf(n->arena, "%s < %s * " LS_N64, n->var[axis], count, times);
}

int ls_nest_level(const LsNest *n, int tensor)
{
    int level = n->naxis - 1;
    while (level >= 0 && n->stride[tensor][level] == 0)
        level--;
    return level;
}

void ls_nest_decode(LsEmit *e, const LsNest *n, const char *flat, int count, const int axis[])
{
    int64_t inside = 1;
    for (int c = count - 1; c >= 0; c--) {
        int k = axis[c];
        const char *by = inside == 1 ? "" : ls_arena_printf(n->arena, " / " LS_N64, inside);
        const char *of = c == 0 ? "" : ls_arena_printf(n->arena, " %% " LS_N64, n->size[k]);
        ls_emit_line(e, "const int64_t %s = %s%s%s;", n->var[k], flat, by, of);
        inside *= n->size[k];
    }
}

/* ---- units ---- */
/* A GPU needs many units, and starting a thread costs nothing. */
int64_t ls_unit(const LsKernelText *k) { return k->target->kind == LS_TARGET_CPU ? 8192 : 2048; }

enum {
    THREADS = 256,          /* of a block */
    ONE_BLOCK = 128,        /* of a small grid's only block, a fixed number: more kernels share its
                             * text */
};

int ls_threads(int64_t n, int most)
{
    int threads = 1;
    while (threads < n && threads < most)
        threads *= 2;
    return threads;
}

LsGrid ls_flat_grid(const LsKernelText *k, const char *suffix, int64_t n)
{
    return (LsGrid){suffix, ls_ceil_div(n, ls_unit(k)), THREADS, 1};
}

/* Threads for a row of n elements. */
static int row_threads(int64_t n) { return n < 2048 ? ls_threads(n, 32) : THREADS; }

int64_t ls_row_group(const LsKernelText *k, int64_t n)
{
    int64_t rows = n >= ls_unit(k) ? 1 : ls_unit(k) / n, together = THREADS / row_threads(n);
    return k->target->kind == LS_TARGET_CPU ? rows : ls_ceil_div(rows, together) * together;
}

int64_t ls_line_group(const LsKernelText *k, int64_t n)
{
    if (k->target->kind != LS_TARGET_CPU)
        return ONE_BLOCK;
    return n >= ls_unit(k) ? 1 : ls_unit(k) / n;
}

LsGrid ls_rows_grid(const char *suffix, int64_t rows, int64_t group, int64_t n)
{
    int x = row_threads(n);
    return (LsGrid){suffix, ls_ceil_div(rows, group), x,
                    x <= 32 ? ls_threads(group, THREADS / x) : 1};
}

/* Whether every tensor moves along the innermost axis by one or not at all, and its rows start at
 * multiples of `count` elements. */
static bool goes_in(const LsNest *n, int64_t inner, int count)
{
    int last = n->naxis - 1;
    bool goes = n->size[last] % count == 0 && inner % count == 0;
    for (int t = 0; t < n->ntensor; t++) {
        goes &= n->stride[t][last] == 0 || n->stride[t][last] == 1;
        goes &= n->before[t] % count == 0;
        for (int k = 0; k < last && n->stride[t][last] != 0; k++)
            goes &= n->stride[t][k] % count == 0;
    }
    return goes;
}

LsBoxes ls_boxes(const LsKernelText *k, const LsNest *n)
{
    int64_t inner = n->size[n->naxis - 1], mid = n->naxis > 1 ? n->size[n->naxis - 2] : 1;
    int64_t unit = ls_unit(k);
    LsBoxes b = {.inner = inner, .mid = mid, .outer = 1,
                 .gpu = k->target->kind != LS_TARGET_CPU};
    if (inner >= 2 * unit) {
        b.inner = unit;
        b.mid = 1;
    } else if (unit / inner < mid) {
        b.mid = inner < unit ? unit / inner : 1;
    }
    b.ninner = ls_ceil_div(inner, b.inner);
    b.nmid = ls_ceil_div(mid, b.mid);
    for (int a = 0; a + 2 < n->naxis; a++)
        b.outer *= n->size[a];
    b.units = b.outer * b.nmid * b.ninner;
    b.wide = n->eights && goes_in(n, b.inner, 8) ? 8 : goes_in(n, b.inner, 4) ? 4 : 0;
    return b;
}

LsGrid ls_boxes_grid(const char *suffix, const LsBoxes *b)
{
    int x = ls_threads(b->wide > 0 ? b->inner / b->wide : b->inner, THREADS);
    if (b->units == 1 && b->mid == 1 && x < ONE_BLOCK)
        x = ONE_BLOCK;
    return (LsGrid){suffix, b->units, x, ls_threads(b->mid, THREADS / x)};
}

/* Declares an axis' first index in a unit, and its end. */
static void bounds(LsEmit *e, const LsBoxes *b, const char *var, const char *unit, int64_t size,
                   int64_t block)
{
    if (block == size || block == 1)
        return;
    ls_emit_line(e, "const int64_t %s0 = %s * " LS_N64 ";", var, unit, block);
    if (size % block == 0 && !b->gpu)   /* on a GPU a shared text is worth more than a constant */
        ls_emit_line(e, "const int64_t %s1 = %s0 + " LS_N64 ";", var, var, block);
    else
        ls_emit_line(e, "const int64_t %s1 = ls_least(%s0 + " LS_N64 ", " LS_N64 ");", var, var,
                     block, size);
}

static const char rows_word[] = "LS_ROWS";

/* Opens the loop over a unit's indices of one axis, or declares the index if there is only one.
 * True: a loop. */
static bool walk(LsEmit *e, const char *word, const char *var, const char *unit, int64_t size,
                 int64_t block)
{
    const bool lanes = word != rows_word;
    if (block == 1 && size > 1) {
        ls_emit_line(e, "const int64_t %s = %s;", var, unit);
        return false;
    }
    if (block == size)
        ls_emit_line(e, lanes ? "%s(%s, 0, " LS_BOUND64 ") {" : "%s(%s, 0, " LS_N64 ") {", word,
                     var, size);
    else
        ls_emit_line(e, "%s(%s, %s0, %s1) {", word, var, var, var);
    return true;
}

int ls_boxes_open(LsEmit *e, const LsNest *n, const LsBoxes *b)
{
    const char *mid = "u", *inner = "u";    /* number of the box along an axis */
    int axis[LS_NEST_AXES], last = n->naxis - 1, outer = last - 1;
    int64_t per = b->nmid * b->ninner;
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    for (int k = 0; k < outer; k++)
        axis[k] = k;
    if (outer > 0) {
        const char *flat = per == 1 ? "u" : ls_arena_printf(n->arena, "u / " LS_N64, per);
        ls_nest_decode(e, n, flat, outer, axis);
        mid = ls_arena_printf(n->arena, "u %% " LS_N64, per);
    }
    if (b->ninner > 1 && (outer > 0 || b->nmid > 1)) {
        mid = ls_arena_printf(n->arena, "%s / " LS_N64, mid, b->ninner);
        inner = ls_arena_printf(n->arena, "u %% " LS_N64, b->ninner);
    }
    bounds(e, b, n->var[last], inner, n->size[last], b->inner);
    if (last == 0)
        return 1;
    bounds(e, b, n->var[last - 1], mid, n->size[last - 1], b->mid);
    return walk(e, rows_word, n->var[last - 1], mid, n->size[last - 1], b->mid) ? 2 : 1;
}

void ls_boxes_inner(LsEmit *e, const LsNest *n, const LsBoxes *b)
{
    int last = n->naxis - 1;
    walk(e, ls_lanes_word(b->wide), n->var[last], "0", n->size[last], b->inner);
}

int64_t ls_lanes(int64_t n)
{
    return n < 8 ? 1 : n < 32 ? 8 : n < 256 ? 16 : n < 2048 ? 32 : n < 8192 ? 64 : 256;
}

/* ---- text ---- */
void ls_emit_put(LsEmit *e, int wide, const char *y, const char *at, const char *v)
{
    if (wide > 0)
        ls_emit_line(e, "LS_PUT%d(%s, %s, %s);", wide, y, at, v);
    else
        ls_emit_line(e, "%s[%s] = %s;", y, at, v);
}

const char *ls_get_text(struct LsArena *a, int wide, const char *v, const char *x, const char *at)
{
    return wide > 0 ? ls_arena_printf(a, "LS_GET%d(%s, %s, %s)", wide, v, x, at)
                    : ls_arena_printf(a, "%s[%s]", x, at);
}

void ls_emit_room(LsEmit *e, int wide, const char *v)
{
    ls_emit_line(e, "%s(%s);", wide == 8 ? "LS_EIGHT" : "LS_FOUR", v);
}

void ls_emit_close(LsEmit *e, int count)
{
    while (count-- > 0)
        ls_emit_line(e, "}");
}
