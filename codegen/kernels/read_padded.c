/* codegen/kernels/read_padded.c -- see the header. */
#include "codegen/kernels/read_padded.h"

#include <inttypes.h>

void ls_inset_strides(const LsKernelText *k, LsNest *n, int x)
{
    const LsFused *f = k->g->node[k->n.i].attr.fused.body;
    int64_t stride[LS_MAX_RANK] = {0};
    stride[ls_innermost(&f->space, f->layout)] = 1;
    ls_nest_tensor(n, &f->space, f->layout, x, stride);
}

/* One axis of an operand, for the text of a row. */
typedef struct Along {
    const char *at;             /* the index in the space, as text */
    int64_t from, per, span, n, points;     /* n: length in the operand; points: in the space */
    int64_t stride;             /* elements */
    int64_t back;               /* the term's index at a point is the last one less `back` */
} Along;

/* One term of the sum that the operand is at a point. */
typedef struct Term {
    const LsInset *in;
    const char *name;           /* "3", or "3_1" if there are several terms */
    const char *which;          /* likewise */
    Along x[LS_MAX_RANK]; int n;        /* all axes but the innermost, in logical order */
} Term;

static int64_t terms(const LsBody *b, const LsInset *in)
{
    return ls_inset_terms(in, b->f->space.rank);
}

static Along along(const LsBody *b, const LsInset *in, int axis)
{
    const LsFused *f = b->f;
    const LsShape *s = ls_in_shape(b->k->g, b->k->n, in->operand);
    int64_t stride[LS_MAX_RANK], points = f->space.dim[axis];
    ls_strides(s, f->layout, stride);
    return (Along){points > 1 ? ls_arena_printf(b->nest->arena, "p%d", axis) : "0", in->from[axis],
                   in->per[axis], in->span[axis], s->dim[axis], points, stride[axis], 0};
}

/* The last axis of `number` varies fastest. */
static Term term_of(const LsBody *b, const LsInset *in, int64_t number)
{
    struct LsArena *a = b->nest->arena;
    const char *suffix = terms(b, in) > 1 ? ls_arena_printf(a, "_%" PRId64, number) : "";
    Term t = {.in = in, .name = ls_arena_printf(a, "%d%s", in->operand, suffix),
              .which = ls_arena_printf(a, "%d%s", in->which, suffix)};
    int inner = ls_innermost(&b->f->space, b->f->layout);
    for (int axis = 0; axis < b->f->space.rank; axis++)
        if (axis != inner)
            t.x[t.n++] = along(b, in, axis);
    for (int k = t.n; k-- > 0;) {
        int64_t many = (t.x[k].span + t.x[k].per - 1) / t.x[k].per;
        t.x[k].back = number % many;
        number /= many;
    }
    return t;
}

static bool is_used(const LsBody *b, const LsInset *in) { return b->load[in->operand]; }

/* Calls print for each term of each operand that a statement reads. */
static void each_term(const LsBody *b, void (*print)(const LsBody *, const Term *))
{
    for (int i = 0; i < b->f->ninset; i++)
        for (int64_t k = 0; is_used(b, &b->f->inset[i]) && k < terms(b, &b->f->inset[i]); k++) {
            const Term t = term_of(b, &b->f->inset[i], k);
            print(b, &t);
        }
}

static void emit_places(const LsBody *b, const Term *t)
{
    ls_emit_room(b->k->e, b->wide, ls_arena_printf(b->nest->arena, "g%s", t->name));
    if (t->in->which > 0)
        ls_emit_line(b->k->e, "LS_BYTES%d(k%s);", b->wide, t->which);
}

void ls_inset_declare(const LsBody *b)
{
    for (int i = 0; i < b->f->ninset; i++) {
        const LsInset *in = &b->f->inset[i];
        if (in->which > 0 && is_used(b, in))
            ls_emit_operand(b->k, ls_arena_printf(b->nest->arena, "x%d", in->which), in->which);
    }
    if (b->wide > 0)
        each_term(b, emit_places);
}

/* ---- where a row is ---- */

/* "p2 - 4": the index relative to the operand's start. */
static const char *counted(struct LsArena *a, const Along *x)
{
    if (x->from == 0)
        return x->at;
    return ls_arena_printf(a, "(%s %c " LS_N64 ")", x->at, x->from > 0 ? '-' : '+',
                           x->from > 0 ? x->from : -x->from);
}

static const char *both(struct LsArena *a, const char *this, const char *that)
{
    return this == NULL ? that : ls_arena_printf(a, "%s && %s", this, that);
}

/* "p2 >= 4 && p2 < 60": the points at which the term exists; NULL: all. */
static const char *presence(struct LsArena *a, const Term *t)
{
    const char *text = NULL;
    for (const Along *x = t->x; x < t->x + t->n; x++) {
        int64_t first = x->from + x->back * x->per, end = first + x->n * x->per;
        int64_t left = x->span - x->back * x->per;      /* points of the span left for this index */
        if (first > 0)
            text = both(a, text, ls_arena_printf(a, "%s >= %" PRId64, x->at, first));
        if (end < x->points)
            text = both(a, text, ls_arena_printf(a, "%s < %" PRId64, x->at, end));
        if (left < x->per)
            text = both(a, text, ls_arena_printf(a, "%s %% " LS_N64 " < %" PRId64, counted(a, x),
                                                 x->per, left));
    }
    return text;
}

static const char *offset(struct LsArena *a, const Term *t)
{
    const char *text = NULL;
    for (const Along *x = t->x; x < t->x + t->n; x++) {
        const char *at = counted(a, x);
        if (x->n == 1)
            continue;
        if (x->per > 1)
            at = ls_arena_printf(a, "%s / " LS_N64, at, x->per);
        if (x->back > 0)
            at = ls_arena_printf(a, "(%s - " LS_N64 ")", at, x->back);
        text = ls_arena_printf(a, "%s%s%s * " LS_N64, text ? text : "", text ? " + " : "", at,
                               x->stride);
    }
    return text != NULL ? text : "0";
}

/* "(p2 % 2) * 2 + p3 % 2", in the window */
static const char *number(struct LsArena *a, const Term *t)
{
    const char *text = NULL;
    for (const Along *x = t->x; x < t->x + t->n; x++) {
        if (x->span == 1)
            continue;
        const char *rest = ls_arena_printf(a, "%s %% " LS_N64, counted(a, x), x->per);
        if (x->back > 0)
            rest = ls_arena_printf(a, "%s + " LS_N64, rest, x->back * x->per);
        text = text == NULL ? rest : ls_arena_printf(a, "(%s) * " LS_N64 " + %s", text, x->span,
                                                     rest);
    }
    return text != NULL ? text : "0";
}

/* Declares the row's indices along the other axes: p0, p2, ... */
static void emit_indices(const LsBody *b)
{
    const LsFused *f = b->f;
    int order[LS_MAX_RANK];
    ls_walk_order(&f->space, f->layout, order);
    for (int k = 0; k + 1 < f->space.rank; k++)
        if (f->space.dim[order[k]] > 1)
            ls_emit_line(b->k->e, "const int64_t p%d = %s;", order[k], ls_nest_index(b->nest, k));
}

/* Declares the row as pointers to which the innermost index itself is added, as only that index is
 * visibly a multiple of four. */
static void emit_row(const LsBody *b, const Term *t)
{
    struct LsArena *a = b->nest->arena;
    LsEmit *e = b->k->e;
    const char *there = presence(a, t), *from = offset(a, t);
    if (there != NULL) {
        ls_emit_line(e, "const bool o%s = %s;", t->name, there);
        from = ls_arena_printf(a, "o%s ? %s : 0", t->name, from);
    }
    ls_emit_line(e, "const int64_t f%s = %s;", t->name, from);
    ls_emit_line(e, "const %s *const row%s = x%d + f%s;",
                 ls_ctype(ls_operand_type(b->k, t->in->operand)), t->name, t->in->operand, t->name);
    if (t->in->which == 0)
        return;
    ls_emit_line(e, "const uint8_t *const row%s = x%d + f%s;", t->which, t->in->which, t->name);
    ls_emit_line(e, "const uint8_t nth%s = (uint8_t)(%s);", t->name, number(a, t));
}

void ls_inset_rows(const LsBody *b)
{
    bool any = false;
    for (int i = 0; i < b->f->ninset; i++)
        any |= is_used(b, &b->f->inset[i]);
    if (any)
        emit_indices(b);
    each_term(b, emit_row);
}

/* ---- the operand at a point ---- */

/* "o3 ? row3[i] : 0" */
static const char *where_there(const LsBody *b, const Term *t, const char *get)
{
    struct LsArena *a = b->nest->arena;
    return presence(a, t) == NULL ? get : ls_arena_printf(a, "o%s ? %s : 0", t->name, get);
}

/* Loads one term as g3. */
static void emit_term(const LsBody *b, const Term *t)
{
    struct LsArena *a = b->nest->arena;
    const char *at = b->nest->var[b->nest->naxis - 1];
    LsType type = ls_operand_type(b->k, t->in->operand);
    const int wide = ls_in_wide(b->k, b->wide, type) ? b->wide : 0;
    const char *get = ls_get_text(a, wide, ls_arena_printf(a, "g%s", t->name),
                                  ls_arena_printf(a, "row%s", t->name), at);
    get = wide > 0 ? get : ls_widened(a, type, get);
    if (t->in->over > 0)
        get = ls_arena_printf(a, "%s / " LS_N64, get, t->in->over);
    ls_emit_line(b->k->e, "const real g%s = %s;", t->name, where_there(b, t, get));
    if (t->in->which == 0)
        return;
    const char *byte = b->wide > 0 ? ls_arena_printf(a, "LS_GET%dB(k%s, row%s, %s)", b->wide,
                                                     t->which, t->which, at)
                                   : ls_arena_printf(a, "row%s[%s]", t->which, at);
    ls_emit_line(b->k->e, "const uint8_t w%s = %s;", t->name, where_there(b, t, byte));
}

void ls_inset_load(const LsBody *b, const LsInset *in)
{
    struct LsArena *a = b->nest->arena;
    const char *sum = NULL;
    for (int64_t k = 0; k < terms(b, in); k++) {
        const Term t = term_of(b, in, k);
        const char *own = ls_arena_printf(a, "g%s", t.name);
        emit_term(b, &t);
        if (in->which > 0)
            own = ls_arena_printf(a, "(w%s == nth%s ? g%s : 0)", t.name, t.name, t.name);
        sum = sum == NULL ? own : ls_arena_printf(a, "%s + %s", sum, own);
    }
    ls_emit_line(b->k->e, "const real a%d = %s;", in->operand,
                 ls_rounded(a, ls_operand_type(b->k, in->operand), sum));
}
