/* codegen/kernels/inset.c -- see the header. */
#include "codegen/kernels/inset.h"

#include <inttypes.h>

void ls_inset_strides(const LsKernelText *k, LsNest *n, int x)
{
    const LsFused *f = k->g->node[k->n.i].attr.fused.body;
    int64_t stride[LS_MAX_RANK] = {0};
    stride[ls_innermost(&f->space, f->layout)] = 1;
    ls_nest_tensor(n, &f->space, f->layout, x, stride);
}

/* One axis of an operand, as the text of a row has it. */
typedef struct Along {
    const char *at;             /* name of its index in the space */
    int64_t from, per, n, points;       /* n: of the operand; points: of the space */
    int64_t stride;             /* elements */
} Along;

/* All but the innermost, in logical order; returns how many. */
static int find_axes(const LsBody *b, const LsInset *in, Along out[LS_MAX_RANK])
{
    const LsFused *f = b->f;
    const LsShape *s = ls_in_shape(b->k->g, b->k->n, in->operand);
    int64_t stride[LS_MAX_RANK];
    int n = 0, inner = ls_innermost(&f->space, f->layout);
    ls_strides(s, f->layout, stride);
    for (int a = 0; a < s->rank; a++)
        if (a != inner && f->space.dim[a] > 1)
            out[n++] = (Along){ls_arena_printf(b->nest->arena, "p%d", a), in->from[a], in->per[a],
                               s->dim[a], f->space.dim[a], stride[a]};
    return n;
}

static bool is_used(const LsBody *b, const LsInset *in) { return b->load[in->operand]; }

void ls_inset_declare(const LsBody *b)
{
    for (int i = 0; i < b->f->ninset; i++) {
        const LsInset *in = &b->f->inset[i];
        if (in->which == 0 || !is_used(b, in))
            continue;
        ls_emit_operand(b->k, ls_arena_printf(b->nest->arena, "x%d", in->which), in->which);
        if (b->fours)
            ls_emit_line(b->k->e, "LS_BYTES4(k%d);", in->which);
    }
}

/* "p2 - 4", counted from where the operand begins. */
static const char *counted(struct LsArena *a, const Along *x)
{
    if (x->from == 0)
        return x->at;
    return ls_arena_printf(a, "(%s %c %" PRId64 ")", x->at, x->from > 0 ? '-' : '+',
                           x->from > 0 ? x->from : -x->from);
}

/* "p2 >= 4 && p2 < 60"; NULL: it is there at every point. */
static const char *presence(struct LsArena *a, const Along x[], int n)
{
    const char *text = NULL;
    for (int k = 0; k < n; k++) {
        int64_t end = x[k].from + x[k].n * x[k].per;
        if (x[k].from > 0)
            text = ls_arena_printf(a, "%s%s%s >= %" PRId64, text ? text : "", text ? " && " : "",
                                   x[k].at, x[k].from);
        if (end < x[k].points)
            text = ls_arena_printf(a, "%s%s%s < %" PRId64, text ? text : "", text ? " && " : "",
                                   x[k].at, end);
    }
    return text;
}

static const char *offset(struct LsArena *a, const Along x[], int n)
{
    const char *text = NULL;
    for (int k = 0; k < n; k++) {
        const char *at = counted(a, &x[k]);
        if (x[k].per > 1)
            at = ls_arena_printf(a, "%s / %" PRId64, at, x[k].per);
        text = ls_arena_printf(a, "%s%s%s * %" PRId64, text ? text : "", text ? " + " : "", at,
                               x[k].stride);
    }
    return text != NULL ? text : "0";
}

/* "p2 % 2 * 2 + p3 % 2" */
static const char *number(struct LsArena *a, const Along x[], int n)
{
    const char *text = NULL;
    for (int k = 0; k < n; k++) {
        if (x[k].per == 1)
            continue;
        const char *rest = ls_arena_printf(a, "%s %% %" PRId64, counted(a, &x[k]), x[k].per);
        text = text == NULL ? rest : ls_arena_printf(a, "(%s) * %" PRId64 " + %s", text, x[k].per,
                                                     rest);
    }
    return text != NULL ? text : "0";
}

static bool is_always_there(const LsBody *b, const LsInset *in)
{
    Along x[LS_MAX_RANK];
    return presence(b->nest->arena, x, find_axes(b, in, x)) == NULL;
}

/* The indices of the row's point along the other axes: p0, p2, ... */
static void emit_indices(const LsBody *b)
{
    const LsFused *f = b->f;
    int order[LS_MAX_RANK];
    ls_walk_order(&f->space, f->layout, order);
    for (int k = 0; k + 1 < f->space.rank; k++)
        if (f->space.dim[order[k]] > 1)
            ls_emit_line(b->k->e, "const int64_t p%d = %s;", order[k], ls_nest_index(b->nest, k));
}

/* The row as pointers to which the innermost index is added as it is: that a place is a multiple of
 * four shows nowhere else. */
static void emit_row(const LsBody *b, const LsInset *in)
{
    struct LsArena *a = b->nest->arena;
    LsEmit *e = b->k->e;
    Along x[LS_MAX_RANK];
    int n = find_axes(b, in, x), k = in->operand;
    const char *there = presence(a, x, n), *from = offset(a, x, n);
    if (there != NULL) {
        ls_emit_line(e, "const bool o%d = %s;", k, there);
        from = ls_arena_printf(a, "o%d ? %s : 0", k, from);
    }
    ls_emit_line(e, "const int64_t f%d = %s;", k, from);
    ls_emit_line(e, "const real *const row%d = x%d + f%d;", k, k, k);
    if (in->which == 0)
        return;
    ls_emit_line(e, "const uint8_t *const row%d = x%d + f%d;", in->which, in->which, k);
    ls_emit_line(e, "const uint8_t r%d = (uint8_t)(%s);", k, number(a, x, n));
}

void ls_inset_rows(const LsBody *b)
{
    bool any = false;
    for (int i = 0; i < b->f->ninset; i++) {
        if (!is_used(b, &b->f->inset[i]))
            continue;
        if (!any)
            emit_indices(b);
        any = true;
        emit_row(b, &b->f->inset[i]);
    }
}

/* "o3 ? LS_GET4(a3, row3, i) : 0" */
static const char *element(const LsBody *b, const LsInset *in, const char *get)
{
    struct LsArena *a = b->nest->arena;
    return is_always_there(b, in) ? get : ls_arena_printf(a, "o%d ? %s : 0", in->operand, get);
}

void ls_inset_load(const LsBody *b, const LsInset *in)
{
    struct LsArena *a = b->nest->arena;
    LsEmit *e = b->k->e;
    int x = in->operand;
    const char *at = b->nest->var[b->nest->naxis - 1];
    const char *get = ls_get_text(a, b->fours, ls_arena_printf(a, "a%d", x),
                                  ls_arena_printf(a, "row%d", x), at);
    if (in->over > 0)
        get = ls_arena_printf(a, "%s / %" PRId64, get, in->over);
    if (in->which == 0) {
        ls_emit_line(e, "const real a%d = %s;", x, element(b, in, get));
        return;
    }
    ls_emit_line(e, "const real g%d = %s;", x, element(b, in, get));
    ls_emit_line(e, "const uint8_t w%d = %s;", x,
                 element(b, in, b->fours ? ls_arena_printf(a, "LS_GET4B(k%d, row%d, %s)", in->which,
                                                           in->which, at)
                                         : ls_arena_printf(a, "row%d[%s]", in->which, at)));
    ls_emit_line(e, "const real a%d = w%d == r%d ? g%d : 0;", x, x, x, x);
}
