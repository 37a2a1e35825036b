/* tests/codegen/test_kernels_fused.c -- pointwise chains and reductions, printed, compiled and
 * run. */
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

/* ---- a second opinion: the body point by point, in double, sums in order ---- */
static double apply(LsOpCode op, const double x[])
{
    switch (op) {
    case LS_OP_ADD: return x[0] + x[1];
    case LS_OP_SUB: return x[0] - x[1];
    case LS_OP_MUL: return x[0] * x[1];
    case LS_OP_EXP: return exp(x[0]);
    case LS_OP_RELU: return x[0] < 0 ? 0 : x[0];
    case LS_OP_GREATER: return x[0] > x[1];
    case LS_OP_WHERE: return x[0] != 0 ? x[1] : x[2];
    case LS_OP_REDUCE_SUM_SQUARE: return x[0] * x[0];
    default: return x[0];
    }
}

/* Index in v, broadcast, of the point of the space with that flat index. */
static int64_t broadcast_index(const LsShape *space, const LsShape *shape, int64_t point)
{
    int64_t index = 0, step = 1;
    for (int k = space->rank - 1, j = shape->rank - 1; j >= 0; k--, j--) {
        index += shape->dim[j] == 1 ? 0 : point % space->dim[k] * step;
        step *= shape->dim[j];
        point /= space->dim[k];
    }
    return index;
}

/* Index in a part of that point; -1: it does not have it. */
static int64_t part_index(const LsFused *f, const LsFusedOut *part, int64_t point)
{
    int64_t inside = 1;
    for (int k = f->space.rank - 1; k > f->split; k--)
        inside *= f->space.dim[k];
    int64_t at = point / inside % f->space.dim[f->split] - part->from;
    int64_t outside = point / inside / f->space.dim[f->split];
    return at < 0 || at >= part->length ? -1
                                        : (outside * part->length + at) * inside + point % inside;
}

/* The axis that the layout has side by side. */
static int innermost(const LsFused *f)
{
    return f->layout == LS_LAST && f->space.rank >= 3 ? 1 : f->space.rank - 1;
}

/* The sum of the elements of an inset operand whose points these are, over axes k and on: index and
 * which are of the axes before. */
static double inset_sum(const Rig *r, LsNodeId n, const LsInset *in, const int64_t point[], int k,
                        int64_t index, int64_t which)
{
    const LsShape *s = ls_in_shape(r->g, n, in->operand);
    double sum = 0;
    if (k == s->rank && in->which > 0
        && rig_get(r, ls_in(r->g, n, in->which), index) != (double)which)
        return 0;
    if (k == s->rank)
        return rig_get(r, ls_in(r->g, n, in->operand), index)
               / (in->over > 0 ? (double)in->over : 1);
    for (int64_t i = 0; i < s->dim[k]; i++) {
        int64_t nth = point[k] - (in->from[k] + i * in->per[k]);
        if (nth >= 0 && nth < in->span[k])
            sum +=
                inset_sum(r, n, in, point, k + 1, index * s->dim[k] + i, which * in->span[k] + nth);
    }
    return sum;
}

static double inset_at(const Rig *r, LsNodeId n, const LsInset *in, int64_t point)
{
    const LsFused *f = r->g->node[n.i].attr.fused.body;
    int64_t at[LS_MAX_RANK];
    for (int k = f->space.rank - 1; k >= 0; k--) {
        at[k] = point % f->space.dim[k];
        point /= f->space.dim[k];
    }
    return inset_sum(r, n, in, at, 0, 0, 0);
}

/* What operand x is at that point; of parts, the one that has it. */
static double operand_at(const Rig *r, LsNodeId n, int x, int64_t point)
{
    const LsFused *f = r->g->node[n.i].attr.fused.body;
    if (ls_inset_of(f, x) != NULL)
        return inset_at(r, n, ls_inset_of(f, x), point);
    if (!ls_is_joined(f, x))
        return rig_get(r, ls_in(r->g, n, x),
                       broadcast_index(&f->space, ls_in_shape(r->g, n, x), point));
    LsFused part = {.space = f->space, .split = innermost(f)};
    LsFusedOut at = {0};
    for (int64_t index = -1;; x++, at.from += at.length) {
        at.length = ls_in_shape(r->g, n, x)->dim[part.split];
        if ((index = part_index(&part, &at, point)) >= 0)
            return rig_get(r, ls_in(r->g, n, x), index);
    }
}

static void check_body(Rig *r, LsNodeId n, double tolerance)
{
    const LsFused *f = r->g->node[n.i].attr.fused.body;
    int64_t points = ls_count(&f->space);
    for (int y = 0; y < r->g->node[n.i].nout; y++) {
        LsValueId v = ls_out(r->g, n, y);
        int64_t count = ls_count(ls_shape(r->g, v)), stored = 0;
        double *want = calloc((size_t)count, sizeof *want),
               *size = calloc((size_t)count, sizeof *size);
        bool *any = calloc((size_t)count, sizeof *any);
        for (int64_t p = 0; p < points; p++) {
            double s[16] = {0};
            for (int k = 0; k < f->nstmt; k++) {
                double x[6];
                for (int c = 0; c < f->stmt[k].narg; c++) {
                    int a = f->stmt[k].arg[c];
                    x[c] = a >= 0 ? s[a] : operand_at(r, n, ~a, p);
                }
                s[k] = apply(f->stmt[k].op, x);
            }
            int64_t at = f->out[y].length > 0 ? part_index(f, &f->out[y], p)
                                              : broadcast_index(&f->space, ls_shape(r->g, v), p);
            double x = s[f->out[y].stmt];
            if (at < 0)
                continue;
            stored++;
            LsCombine c = f->out[y].combine;
            size[at] += fabs(x);
            if (!any[at] || !f->out[y].reduce)
                want[at] = x;
            else
                want[at] = c == LS_SUM    ? want[at] + x
                           : c == LS_PROD ? want[at] * x
                           : c == LS_MAX  ? (want[at] > x ? want[at] : x)
                           : want[at] < x ? want[at]
                                          : x;
            any[at] = true;
        }
        ck_assert_int_ge(stored, count);
        double combined = (double)(points / count);
        for (int64_t k = 0; k < count; k++) {
            double t = f->out[y].reduce && f->out[y].combine == LS_SUM
                           ? tolerance * (size[k] > 1 ? size[k] : 1) : tolerance;
            double w = f->out[y].mean ? want[k] / combined : want[k];
            rig_close_to(r, v, k, w, f->out[y].mean ? t / combined : t);
        }
        free(want);
        free(size);
        free(any);
    }
}

/* ---- making bodies ---- */
typedef struct Body { LsFused f; LsStmt stmt[16]; LsFusedOut out[8]; } Body;

static Body *body_new(Rig *r, LsLayout layout, LsShape space, uint32_t axes)
{
    Body *b = ls_arena_alloc(r->cx.arena, 1, sizeof *b);
    b->f =
        (LsFused){.space = space, .layout = layout, .axes = axes, .stmt = b->stmt, .out = b->out};
    return b;
}

static int add_stmt(Body *b, LsOpCode op, LsType type, int n, const int arg[])
{
    LsStmt *s = &b->stmt[b->f.nstmt];
    *s = (LsStmt){.op = (uint16_t)op, .narg = (uint16_t)n, .type = type, .name = "n"};
    for (int k = 0; k < n; k++)
        s->arg[k] = (int16_t)arg[k];
    return b->f.nstmt++;
}
#define STMT(b, op, type, ...) \
    add_stmt(b, LS_OP_##op, type, sizeof (int[]){__VA_ARGS__} / sizeof(int), (int[]){__VA_ARGS__})
#define IN(k) ~(k)

static LsShape reduced(const LsShape *space, uint32_t axes)
{
    LsShape s = *space;
    for (int k = 0; k < s.rank; k++)
        if (axes >> k & 1)
            s.dim[k] = 1;
    return s;
}

static LsNodeId fused(Rig *r, Body *b, size_t nin, const LsValueId in[], int nout, LsType type)
{
    LsNodeId n = rig_node(r, LS_OP_FUSED, nin, in, nout, &(LsAttr){.fused = {.body = &b->f}});
    for (int y = 0; y < nout; y++) {
        LsShape s = b->out[y].reduce ? reduced(&b->f.space, b->f.axes) : b->f.space;
        if (b->out[y].length > 0)
            s.dim[b->f.split] = b->out[y].length;
        rig_result(r, n, y, b->out[y].reduce ? type : b->stmt[b->out[y].stmt].type, b->f.layout, s);
    }
    return n;
}

/* ---- pointwise ---- */
/* relu(x * w + y) and exp of it, w broadcast. */
static void chain(Rig *r, LsLayout layout, LsShape space, LsShape w_shape)
{
    LsValueId x = rig_operand(r, LS_REAL, layout, space),
              w = rig_operand(r, LS_REAL, LS_ROW, w_shape);
    LsValueId y = rig_operand(r, LS_REAL, layout, space);
    Body *b = body_new(r, layout, space, 0);
    int m = STMT(b, MUL, LS_REAL, IN(0), IN(1));
    int a = STMT(b, ADD, LS_REAL, m, IN(2));
    int c = STMT(b, RELU, LS_REAL, a);
    int e = STMT(b, EXP, LS_REAL, c);
    b->out[0].stmt = c;
    b->out[1].stmt = e;
    fused(r, b, VALUES(x, w, y), 2, LS_REAL);
}

static void all_checked(Rig *r, double tolerance)
{
    rig_run(r);
    for (uint32_t i = 1; i < r->g->nnode; i++)
        check_body(r, (LsNodeId){i}, tolerance);
    rig_close(r);
}

static const int real_bytes[] = {4, 8};

START_TEST(test_chains_broadcast_their_operands_in_either_layout)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (int layout = LS_ROW; layout <= LS_LAST; layout++) {
        chain(&r, layout, SHAPE(2, 5, 3, 7), SHAPE(5, 1, 1));
        chain(&r, layout, SHAPE(2, 5, 3, 7), SHAPE(2, 5, 1, 1));
        chain(&r, layout, SHAPE(2, 5, 3, 7), SHAPE(2, 1, 3, 7));
        chain(&r, layout, SHAPE(2, 5, 3, 7), SHAPE(7));
        chain(&r, layout, SHAPE(2, 5, 3, 7), SHAPE(3, 1));
        chain(&r, layout, SHAPE(2, 64, 9, 31), SHAPE(1, 64, 1, 1));
        chain(&r, layout, SHAPE(3, 3, 3, 2, 5), SHAPE(3, 1, 3, 1, 5));
    }
    chain(&r, LS_ROW, SHAPE(3, 20011), SHAPE(3, 1));
    chain(&r, LS_ROW, SHAPE(2, 2, 17001), SHAPE(2, 1, 17001));
    chain(&r, LS_ROW, SHAPE(1), SHAPE(1));
    chain(&r, LS_ROW, SHAPE(9000), SHAPE(1));
    chain(&r, LS_ROW, SHAPE(257, 129), SHAPE(129));
    chain(&r, LS_ROW, SHAPE(8192, 1), SHAPE(1, 1));
    all_checked(&r, 2e-6);
}
END_TEST

START_TEST(test_a_scalar_space_and_a_literal_operand_work)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsShape scalar = {0};
    LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, scalar), c = rig_literal(&r, -0.25);
    Body *b = body_new(&r, LS_ROW, scalar, 0);
    b->out[0].stmt = STMT(b, MUL, LS_REAL, IN(0), IN(1));
    fused(&r, b, VALUES(x, c), 1, LS_REAL);
    LsValueId v = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(100));
    b = body_new(&r, LS_ROW, SHAPE(100), 0);
    b->out[0].stmt = STMT(b, ADD, LS_REAL, IN(1), IN(0));
    fused(&r, b, VALUES(v, c), 1, LS_REAL);
    all_checked(&r, 1e-7);
}
END_TEST

START_TEST(test_integers_and_bools_keep_their_types)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsShape s = SHAPE(3, 70);
    LsValueId a = rig_operand(&r, LS_I64, LS_ROW, s),
              b = rig_operand(&r, LS_I64, LS_ROW, SHAPE(70));
    LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, s), bit = rig_operand(&r, LS_BOOL, LS_ROW, s);
    Body *body = body_new(&r, LS_ROW, s, 2);
    int sum = STMT(body, ADD, LS_I64, IN(0), IN(1));
    int more = STMT(body, GREATER, LS_BOOL, sum, IN(1));
    int pick = STMT(body, WHERE, LS_REAL, more, IN(2), IN(2));
    int pick2 = STMT(body, WHERE, LS_REAL, IN(3), pick, IN(2));
    body->out[0].stmt = sum;
    body->out[1].stmt = more;
    body->out[2].stmt = pick2;
    fused(&r, body, VALUES(a, b, x, bit), 3, LS_REAL);
    for (int c = LS_SUM; c <= LS_PROD; c++)
        for (int t = LS_I64; t <= LS_I32; t++) {
            LsValueId in = rig_operand(&r, (LsType)t, LS_ROW, SHAPE(3, 9));
            for (uint32_t axes = 1; axes < 4; axes++) {
                Body *rb = body_new(&r, LS_ROW, SHAPE(3, 9), axes);
                rb->out[0] = (LsFusedOut){.stmt = STMT(rb, REDUCE_SUM, (LsType)t, IN(0)),
                                          .reduce = true,
                                          .combine = (LsCombine)c};
                fused(&r, rb, VALUES(in), 1, (LsType)t);
            }
        }
    all_checked(&r, 1e-7);
}
END_TEST

/* ---- results in parts ---- */
/* exp(x) + w: all of it; parts that touch, overlap and leave some out; and, where `axes` are, its
 * sums. */
static void parts(Rig *r, LsLayout layout, LsShape space, int split, int64_t at, uint32_t axes)
{
    LsValueId x = rig_operand(r, LS_REAL, layout, space),
              w = rig_operand(r, LS_REAL, LS_ROW, SHAPE(1));
    Body *b = body_new(r, layout, space, axes);
    int64_t end = space.dim[split];
    int e = STMT(b, EXP, LS_REAL, IN(0)), s = STMT(b, ADD, LS_REAL, e, IN(1));
    b->f.split = split;
    b->out[0] = (LsFusedOut){.stmt = s, .length = at};
    b->out[1] = (LsFusedOut){.stmt = s, .from = at, .length = end - at};
    b->out[2] = (LsFusedOut){.stmt = e};
    b->out[3] = (LsFusedOut){.stmt = e, .from = at / 2, .length = (end - at / 2 + 1) / 2};
    b->out[4] = (LsFusedOut){.stmt = s, .reduce = axes != 0};
    fused(r, b, VALUES(x, w), 5, LS_REAL);
}

START_TEST(test_results_are_stored_in_parts_along_any_axis)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (int layout = LS_ROW; layout <= LS_LAST; layout++)
        for (uint32_t axes = 0; axes < 16; axes += 13) {
            parts(&r, layout, SHAPE(2, 24, 3, 5), 1, 8, axes);      /* fours */
            parts(&r, layout, SHAPE(2, 24, 3, 5), 1, 7, axes);
            parts(&r, layout, SHAPE(2, 256, 9, 11), 1, 224, axes);
            parts(&r, layout, SHAPE(4, 6, 3, 8), 0, 1, axes);
            parts(&r, layout, SHAPE(2, 6, 7, 8), 2, 3, axes);
            parts(&r, layout, SHAPE(2, 6, 7, 8), 3, 4, axes);
            parts(&r, layout, SHAPE(2, 3, 1, 1), 1, 2, axes);
        }
    parts(&r, LS_ROW, SHAPE(2, 20011), 1, 10004, 0);
    parts(&r, LS_ROW, SHAPE(2, 20012), 1, 10004, 0);
    all_checked(&r, 2e-6);
}
END_TEST

/* ---- an operand in parts ---- */
/* relu(x * w + y) with y in parts, of which `alike` are as long as the second, in a space as wide
 * as all; it is stored whole and in parts, or summed up. */
static void joined(Rig *r, LsLayout layout, LsShape space, const int64_t length[], int n,
                   uint32_t axes)
{
    enum { MOST = 20 };
    Body *b = body_new(r, layout, space, axes);
    int axis = innermost(&b->f);
    LsValueId in[MOST + 2];
    b->f.space.dim[axis] = 0;
    for (int k = 0; k < n; k++) {
        LsShape part = space;
        part.dim[axis] = length[k];
        in[1 + k] = rig_operand(r, LS_REAL, layout, part);
        b->f.space.dim[axis] += length[k];
    }
    b->f.joined = 1;
    b->f.njoined = n;
    LsShape w = {.rank = space.rank, .dim = {1, 1, 1, 1}};
    w.dim[axis] = b->f.space.dim[axis];
    in[0] = rig_operand(r, LS_REAL, layout, b->f.space);
    in[1 + n] = rig_operand(r, LS_REAL, LS_ROW, w);
    int m = STMT(b, MUL, LS_REAL, IN(0), IN(1 + n)), s = STMT(b, ADD, LS_REAL, m, IN(1));
    int c = STMT(b, RELU, LS_REAL, s), q = STMT(b, MUL, LS_REAL, s, IN(1));
    b->f.split = axis;
    b->out[0] = (LsFusedOut){.stmt = c, .reduce = axes != 0};
    b->out[1] = (LsFusedOut){.stmt = q};
    b->out[2] = (LsFusedOut){.stmt = c, .from = length[0],
                             .length = b->f.space.dim[axis] - length[0]};
    fused(r, b, (size_t)n + 2, in, 3, LS_REAL);
}

START_TEST(test_operands_are_read_in_parts)
{
    static const int64_t one[] = {8, 4}, alike[] = {12, 4, 4, 4}, wide[] = {64, 32, 32, 32, 32},
                         mixed[] = {4, 4, 8, 8, 20}, ragged[] = {5, 3, 3, 1}, broad[] = {1024, 256};
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (uint32_t axes = 0; axes < 16; axes += 13) {
        joined(&r, LS_LAST, SHAPE(2, 1, 3, 5), one, 2, axes);
        joined(&r, LS_LAST, SHAPE(2, 1, 3, 5), alike, 4, axes);
        joined(&r, LS_LAST, SHAPE(2, 1, 17, 19), wide, 5, axes);
        joined(&r, LS_LAST, SHAPE(2, 1, 7, 5), mixed, 5, axes);
        joined(&r, LS_LAST, SHAPE(3, 1, 2, 2), ragged, 4, axes);
        joined(&r, LS_LAST, SHAPE(2, 1, 4, 4), broad, 2, axes);
        joined(&r, LS_LAST, SHAPE(1, 1, 1, 1), alike, 4, axes);
    }
    joined(&r, LS_LAST, SHAPE(2, 1, 9, 7), wide, 5, 15);            /* over the parts as well */
    joined(&r, LS_ROW, SHAPE(2, 3, 4, 1), alike, 4, 0);
    joined(&r, LS_ROW, SHAPE(31, 1), wide, 5, 1);
    joined(&r, LS_ROW, SHAPE(31, 1), alike, 4, 2);
    all_checked(&r, 2e-6);
}
END_TEST

/* ---- operands that cover the space in part ---- */
typedef struct Window { int64_t per[4], span[4]; } Window;

/* v = x * w + b + p + m, b within a border, p spread over windows and m at one point of each;
 * relu(v) and v m, stored or summed up. border: before b along each axis, and twice that behind. */
static void inset(Rig *r, LsLayout layout, LsShape space, const int64_t border[],
                  const Window *window, LsShape w, uint32_t axes)
{
    Body *b = body_new(r, layout, space, axes);
    LsInset *in = ls_arena_alloc(r->cx.arena, 3, sizeof *in);
    LsShape inner = space, windows = space;
    in[0].operand = 1;
    in[1] = (LsInset){.operand = 2, .over = 3};
    in[2] = (LsInset){.operand = 3, .which = 5};
    for (int k = 0; k < space.rank; k++) {
        inner.dim[k] -= 3 * border[k];
        windows.dim[k] /= window->per[k];
        in[0].from[k] = border[k];
        in[2].from[k] = -(window->span[k] / 3);     /* a window may begin outside */
        in[0].per[k] = in[0].span[k] = 1;
        in[1].per[k] = in[2].per[k] = window->per[k];
        in[1].span[k] = in[2].span[k] = window->span[k];
    }
    LsValueId x = rig_operand(r, LS_REAL, layout, space),
              part = rig_operand(r, LS_REAL, layout, inner);
    LsValueId p = rig_operand(r, LS_REAL, layout, windows),
              m = rig_operand(r, LS_REAL, layout, windows);
    LsValueId scale = rig_operand(r, LS_REAL, LS_ROW, w),
              which = rig_operand(r, LS_BOOL, layout, windows);
    for (int64_t i = 0; i < ls_count(&windows); i++)
        rig_set(r, which, i, (double)(i * 7 % 10));
    b->f.ninset = 3;
    b->f.inset = in;
    int s = STMT(b, MUL, LS_REAL, IN(0), IN(4));
    for (int k = 1; k <= 3; k++)
        s = STMT(b, ADD, LS_REAL, s, IN(k));
    int c = STMT(b, RELU, LS_REAL, s), q = STMT(b, MUL, LS_REAL, s, IN(3));
    b->out[0] = (LsFusedOut){.stmt = c, .reduce = axes != 0};
    b->out[1] = (LsFusedOut){.stmt = q};
    fused(r, b, VALUES(x, part, p, m, scale, which), 2, LS_REAL);
}

START_TEST(test_operands_cover_the_space_in_part)
{
    static const int64_t none[] = {0, 0, 0, 0}, thin[] = {0, 0, 1, 2}, high[] = {0, 0, 2, 0},
                         first[] = {1, 1, 0, 0}, outer[] = {1, 0};
    static const Window one[] = {{{1, 1, 1, 1}, {1, 1, 1, 1}}},
                        two[] = {{{1, 1, 2, 2}, {1, 1, 2, 2}}},
                        flat[] = {{{1, 1, 1, 3}, {1, 1, 1, 3}}},
                        rows[] = {{{1, 2, 2, 1}, {1, 3, 2, 1}}},
                        lap[] = {{{1, 1, 2, 2}, {1, 1, 3, 3}}},
                        wide[] = {{{1, 1, 1, 2}, {1, 1, 4, 1}}};
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (uint32_t axes = 0; axes < 16; axes += 13) {
        inset(&r, LS_LAST, SHAPE(2, 8, 7, 9), thin, two, SHAPE(8, 1, 1), axes);
        inset(&r, LS_LAST, SHAPE(2, 5, 7, 9), thin, flat, SHAPE(5, 1, 1), axes);
        inset(&r, LS_LAST, SHAPE(1, 12, 8, 1), high, one, SHAPE(12, 1, 1), axes);
        inset(&r, LS_LAST, SHAPE(2, 8, 7, 9), none, two, SHAPE(2, 1, 1, 1), axes);
        inset(&r, LS_LAST, SHAPE(2, 16, 7, 9), thin, two, SHAPE(2, 1, 7, 9), axes);
        inset(&r, LS_LAST, SHAPE(3, 64, 27, 19), thin, two, SHAPE(64, 1, 1), axes);
        inset(&r, LS_LAST, SHAPE(2, 260, 9, 8), high, two, SHAPE(9, 8), axes);
        inset(&r, LS_LAST, SHAPE(2, 8, 7, 9), thin, lap, SHAPE(8, 1, 1), axes);
        inset(&r, LS_LAST, SHAPE(3, 64, 17, 16), thin, lap, SHAPE(64, 1, 1), axes);
        inset(&r, LS_LAST, SHAPE(2, 5, 7, 9), high, wide, SHAPE(7, 9), axes);
    }
    /* over the channels as well */
    inset(&r, LS_LAST, SHAPE(2, 20, 7, 9), thin, two, SHAPE(1), 15);
    inset(&r, LS_LAST, SHAPE(2, 300, 5, 8), thin, two, SHAPE(1), 2);
    inset(&r, LS_ROW, SHAPE(5, 7, 6, 16), first, rows, SHAPE(7, 1, 1), 0);
    inset(&r, LS_ROW, SHAPE(5, 7, 6, 16), first, rows, SHAPE(7, 1, 1), 7);
    inset(&r, LS_ROW, SHAPE(7, 24), outer, one, SHAPE(24), 2);
    all_checked(&r, 2e-6);
}
END_TEST

/* ---- mean and variance in one pass ---- */
enum { CHANNELS = 24 };

/* x lies `far` standard deviations from 0; channel 3 is one number throughout. */
static LsNodeId moments(Rig *r, LsShape space, double far)
{
    LsValueId x = rig_operand(r, LS_REAL, LS_LAST, space);
    int64_t each = ls_count(&space) / space.dim[0] / space.dim[1];
    for (int64_t i = 0; i < ls_count(&space); i++)
        rig_set(r, x, i, i / each % CHANNELS == 3 ? 0.7 : rig_get(r, x, i) + far * 0.57735);
    Body *b = body_new(r, LS_LAST, space, 13);
    b->f.first = 1;
    int d = STMT(b, SUB, LS_REAL, IN(0), IN(1)), q = STMT(b, MUL, LS_REAL, d, d);
    b->out[0] = (LsFusedOut){.stmt = d, .reduce = true, .mean = true};
    b->out[1] = (LsFusedOut){.stmt = q, .reduce = true, .variance = true};
    fused(r, b, VALUES(x, x), 2, LS_REAL);
    return (LsNodeId){r->g->nnode - 1};
}

/* Against two passes in long double. */
static void check_moments(const Rig *r, LsNodeId n, double tolerance)
{
    LsValueId x = ls_in(r->g, n, 0);
    const LsShape *s = ls_shape(r->g, x);
    int64_t each = ls_count(s) / s->dim[0] / s->dim[1], count = each * s->dim[0];
    for (int64_t c = 0; c < CHANNELS; c++) {
        long double sum = 0, squares = 0, mean = 0;
        for (int pass = 0; pass < 2; pass++, mean = sum / (long double)count)
            for (int64_t i = 0; i < count; i++) {
                long double v = rig_get(r, x, (i / each * CHANNELS + c) * each + i % each);
                sum += pass == 0 ? v : 0;
                squares += pass == 1 ? (v - mean) * (v - mean) : 0;
            }
        rig_close_to(r, ls_out(r->g, n, 0), c, (double)mean, tolerance);
        rig_close_to(r, ls_out(r->g, n, 1), c, (double)(squares / (long double)count), tolerance);
        if (c == 3)
            ck_assert(rig_get(r, ls_out(r->g, n, 1), c) == 0);
    }
}

START_TEST(test_mean_and_variance_of_channels_in_one_pass)
{
    Rig r;
    LsNodeId n[4];
    rig_open(&r, real_bytes[_i]);
    n[0] = moments(&r, SHAPE(2, CHANNELS, 5, 7), 0);
    n[1] = moments(&r, SHAPE(2, CHANNELS, 5, 7), 300);
    n[2] = moments(&r, SHAPE(3, CHANNELS, 67, 41), 3);
    n[3] = moments(&r, SHAPE(3, CHANNELS, 67, 41), 300);
    rig_run(&r);
    for (int k = 0; k < 4; k++)
        check_moments(&r, n[k], 1e-6);
    rig_close(&r);
}
END_TEST

/* ---- reductions ---- */
/* sum x w, sum of squares, max, and the stored product, over the axes. */
static void reduction(Rig *r, LsLayout layout, LsShape space, LsShape w_shape, uint32_t axes)
{
    LsValueId x = rig_operand(r, LS_REAL, layout, space),
              w = rig_operand(r, LS_REAL, LS_ROW, w_shape);
    Body *b = body_new(r, layout, space, axes);
    int m = STMT(b, MUL, LS_REAL, IN(0), IN(1));
    int s = STMT(b, REDUCE_SUM, LS_REAL, m);
    int q = STMT(b, REDUCE_SUM_SQUARE, LS_REAL, IN(0));
    int e = STMT(b, REDUCE_MAX, LS_REAL, m);
    b->out[0] = (LsFusedOut){.stmt = s, .reduce = true};
    b->out[1] = (LsFusedOut){.stmt = m};
    b->out[2] = (LsFusedOut){.stmt = q, .reduce = true, .mean = true};
    b->out[3] = (LsFusedOut){.stmt = e, .reduce = true, .combine = LS_MAX};
    fused(r, b, VALUES(x, w), 4, LS_REAL);
}

START_TEST(test_reductions_over_any_axes_in_either_layout)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (uint32_t axes = 0; axes < 16; axes++)
        for (int layout = LS_ROW; layout <= LS_LAST; layout++)
            reduction(&r, layout, SHAPE(3, 5, 2, 23), SHAPE(5, 1, 1), axes);
    all_checked(&r, 2e-6);
}
END_TEST

START_TEST(test_long_reductions_are_cut_into_pieces)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    reduction(&r, LS_LAST, SHAPE(2, 24, 67, 41), SHAPE(24, 1, 1), 13);      /* batch norm */
    reduction(&r, LS_ROW, SHAPE(2, 24, 67, 41), SHAPE(24, 1, 1), 13);
    reduction(&r, LS_LAST, SHAPE(2, 24, 67, 41), SHAPE(24, 1, 1), 12);      /* global pool */
    reduction(&r, LS_ROW, SHAPE(2, 24, 67, 41), SHAPE(24, 1, 1), 12);
    reduction(&r, LS_ROW, SHAPE(100003), SHAPE(1), 1);
    reduction(&r, LS_ROW, SHAPE(70, 2100), SHAPE(2100), 1); /* bias, several tiles */
    reduction(&r, LS_ROW, SHAPE(70, 2100), SHAPE(70, 1), 2);
    reduction(&r, LS_ROW, SHAPE(6, 1500, 7), SHAPE(7), 2);
    reduction(&r, LS_ROW, SHAPE(3000, 5, 7), SHAPE(7), 5);
    all_checked(&r, 1e-6);
}
END_TEST

START_TEST(test_minimum_maximum_and_product)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (int c = LS_MAX; c <= LS_PROD; c++)
        for (uint32_t axes = 1; axes < 8; axes++) {
            LsShape space = SHAPE(2, 3, 11);
            LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, space);
            Body *b = body_new(&r, LS_ROW, space, axes);
            b->out[0] = (LsFusedOut){.stmt = STMT(b, REDUCE_SUM, LS_REAL, IN(0)),
                                     .reduce = true,
                                     .combine = (LsCombine)c};
            fused(&r, b, VALUES(x), 1, LS_REAL);
        }
    LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(40000));
    for (int c = LS_MAX; c <= LS_MIN; c++) {
        Body *b = body_new(&r, LS_ROW, SHAPE(40000), 1);
        b->out[0] = (LsFusedOut){
            .stmt = STMT(b, REDUCE_SUM, LS_REAL, IN(0)), .reduce = true, .combine = (LsCombine)c};
        fused(&r, b, VALUES(x), 1, LS_REAL);
    }
    all_checked(&r, 1e-6);
}
END_TEST

START_TEST(test_nan_reaches_maxima_and_relu)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(2, 50));
    rig_set(&r, x, 70, NAN);
    Body *b = body_new(&r, LS_ROW, SHAPE(2, 50), 2);
    b->out[0] = (LsFusedOut){
        .stmt = STMT(b, REDUCE_MAX, LS_REAL, IN(0)), .reduce = true, .combine = LS_MAX};
    b->out[1] = (LsFusedOut){.stmt = STMT(b, RELU, LS_REAL, IN(0))};
    LsNodeId n = fused(&r, b, VALUES(x), 2, LS_REAL);
    rig_run(&r);
    ck_assert(!isnan(rig_get(&r, ls_out(r.g, n, 0), 0)));
    ck_assert(isnan(rig_get(&r, ls_out(r.g, n, 0), 1)));
    ck_assert(isnan(rig_get(&r, ls_out(r.g, n, 1), 70)));
    rig_close(&r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_fused");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_chains_broadcast_their_operands_in_either_layout, 0, 2);
    tcase_add_loop_test(t, test_a_scalar_space_and_a_literal_operand_work, 0, 2);
    tcase_add_loop_test(t, test_integers_and_bools_keep_their_types, 0, 2);
    /* What moves numbers does that in double by whole sets alone; what computes with them has both
     * precisions. */
    tcase_add_loop_test(t, test_results_are_stored_in_parts_along_any_axis, 0, tests_part(2, 1));
    tcase_add_loop_test(t, test_operands_are_read_in_parts, 0, tests_part(2, 1));
    tcase_add_loop_test(t, test_operands_cover_the_space_in_part, 0, tests_part(2, 1));
    tcase_add_loop_test(t, test_reductions_over_any_axes_in_either_layout, 0, 2);
    tcase_add_loop_test(t, test_long_reductions_are_cut_into_pieces, 0, 2);
    tcase_add_loop_test(t, test_mean_and_variance_of_channels_in_one_pass, 0, 2);
    tcase_add_loop_test(t, test_minimum_maximum_and_product, 0, 2);
    tcase_add_loop_test(t, test_nan_reaches_maxima_and_relu, 0, 2);
    return run_tests("kernels_fused", t);
}
