/* tests/codegen/test_conv_within.c -- convolutions of one tap fused with their readers, for GPUs: run by the
 * executor and compared with sums in double, over ragged sizes. */
#include "codegen/cuda/conv_within.h"
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

/* The factors are multiples of 1/64, which are exact in TF32: only the order of sums can differ. */
static LsValueId factor(Rig *r, LsShape s)
{
    LsValueId v = rig_operand(r, LS_REAL, LS_LAST, s);
    for (int64_t i = 0; i < ls_count(&s); i++)
        rig_set(r, v, i, floor(rig_get(r, v, i) * 64) / 64);
    return v;
}

typedef struct Size { int64_t n, h, w, columns, depth, tiles; } Size;

static const Size sizes[] = {
    {1, 1, 1, 4, 4, 1},         /* one row */
    {2, 9, 8, 36, 20, 1},       /* a tile and a bit */
    {1, 16, 16, 64, 16, 1},     /* whole tiles, the narrow ones */
    {3, 11, 9, 132, 36, 2},     /* two across, blocks of two */
    {2, 20, 20, 128, 8, 3},     /* the last block has one */
    {1, 10, 13, 256, 40, 1},
    {1, 33, 5, 192, 12, 1},     /* three narrow ones */
};
enum { NSIZES = sizeof sizes / sizeof *sizes };

/* x, w and the shape of the product; the node's operands `more` stand before them. */
static LsNodeId node(Rig *r, const Size *s, const LsFused *f, int nbody, LsValueId in[], int nout,
                     bool data)
{
    in[nbody] = factor(r, SHAPE(s->n, s->depth, s->h, s->w));
    in[nbody + 1] = factor(r, data ? SHAPE(s->depth, s->columns, 1, 1)
                                   : SHAPE(s->columns, s->depth, 1, 1));
    LsAttr at = {.conv_fused = {f, nbody, data, s->tiles}};
    return rig_node(r, LS_OP_CONV_FUSED, (size_t)nbody + 2, in, nout, &at);
}

static LsFused *body(Rig *r, const Size *s, int nstmt, const LsStmt stmt[], int nout,
                     const LsFusedOut out[])
{
    LsFused *f = ls_arena_alloc(r->cx.arena, 1, sizeof *f);
    *f = (LsFused){.space = SHAPE(s->n, s->columns, s->h, s->w), .layout = LS_LAST, .axes = 13,
                   .nstmt = nstmt};
    f->stmt = ls_arena_alloc(r->cx.arena, (size_t)nstmt, sizeof *f->stmt);
    f->out = ls_arena_alloc(r->cx.arena, (size_t)nout, sizeof *f->out);
    memcpy(f->stmt, stmt, (size_t)nstmt * sizeof *stmt);
    memcpy(f->out, out, (size_t)nout * sizeof *out);
    return f;
}

/* The product at image n, column m, place p. */
static double product_at(const Rig *r, const Size *s, LsNodeId n, int64_t image, int64_t m, int64_t p)
{
    const LsConvFusedAttr *at = &r->g->node[n.i].attr.conv_fused;
    LsValueId x = ls_in(r->g, n, at->nbody), w = ls_in(r->g, n, at->nbody + 1);
    double sum = 0;
    for (int64_t c = 0; c < s->depth; c++)
        sum += rig_get(r, x, (image * s->depth + c) * s->h * s->w + p)
            * rig_get(r, w, at->data ? c * s->columns + m : m * s->depth + c);
    return sum;
}

/* All sizes, each by both forms of the product, made, run and checked. */
static void over_all_sizes(LsNodeId (*make)(Rig *, const Size *, int number), int64_t least_columns,
                           void (*check)(const Rig *, const Size *, LsNodeId))
{
    Rig r;
    LsNodeId n[2 * NSIZES] = {{0}};
    rig_open(&r, 4);
    r.cuda = r.target.tf32 = true;
    for (int i = 0; i < 2 * NSIZES; i++)
        if (sizes[i / 2].columns >= least_columns)
            n[i] = make(&r, &sizes[i / 2], i);
    rig_run(&r);
    for (int i = 0; i < 2 * NSIZES; i++)
        if (n[i].i != 0)
            check(&r, &sizes[i / 2], n[i]);
    rig_close(&r);
}

/* ---- a batch norm's statistics ---- */
static LsNodeId moments(Rig *r, const Size *s, bool data)
{
    const LsStmt same = {.op = LS_OP_CAST, .narg = 1, .arg = {~0}};
    const LsFusedOut out[] = {{.stmt = 0},
                              {.reduce = true, .combine = LS_SUM, .mean = true},
                              {.reduce = true, .combine = LS_SUM, .variance = true}};
    LsValueId in[3] = {{0}};
    LsNodeId n = node(r, s, body(r, s, 1, &same, 3, out), 1, in, 3, data);
    rig_result(r, n, 0, LS_REAL, LS_LAST, SHAPE(s->n, s->columns, s->h, s->w));
    rig_result(r, n, 1, LS_REAL, LS_LAST, SHAPE(1, s->columns, 1, 1));
    rig_result(r, n, 2, LS_REAL, LS_LAST, SHAPE(1, s->columns, 1, 1));
    return n;
}

static void check_moments(const Rig *r, const Size *s, LsNodeId n)
{
    int64_t places = s->h * s->w;
    for (int64_t m = 0; m < s->columns; m++) {
        double sum = 0, square = 0, count = (double)(s->n * places);
        for (int64_t i = 0; i < s->n * places; i++) {
            double v = product_at(r, s, n, i / places, m, i % places);
            rig_close_to(r, ls_out(r->g, n, 0), (i / places * s->columns + m) * places + i % places,
                         v, 1e-6);
            sum += v;
            square += v * v;
        }
        rig_close_to(r, ls_out(r->g, n, 1), m, sum / count, 1e-6);
        rig_close_to(r, ls_out(r->g, n, 2), m, square / count - sum / count * sum / count, 2e-6);
    }
}

static LsNodeId any_moments(Rig *r, const Size *s, int number) { return moments(r, s, number % 2); }

START_TEST(the_product_its_mean_and_its_variance)
{
    over_all_sizes(any_moments, 0, check_moments);
}
END_TEST

/* Channels whose mean is many deviations from 0: squares are summed about the mean, not about 0. */
START_TEST(a_variance_far_from_zero)
{
    const Size s = {4, 16, 16, 32, 4, 2};
    Rig r;
    rig_open(&r, 4);
    r.cuda = r.target.tf32 = true;
    LsNodeId n = moments(&r, &s, false);
    LsValueId x = ls_in(r.g, n, 1), w = ls_in(r.g, n, 2);
    for (int64_t i = 0; i < s.n * 4 * 256; i++)         /* channel 0 is 1 */
        rig_set(&r, x, i, i / 256 % 4 == 0 ? 1 : floor(rig_random(&r) * 64) / 64);
    for (int64_t i = 0; i < s.columns * 4; i++)         /* and weighs 500, about 900 deviations */
        rig_set(&r, w, i, i % 4 == 0 ? 512 : floor(rig_random(&r) * 64) / 64);
    rig_run(&r);
    for (int64_t m = 0; m < s.columns; m++) {
        double sum = 0, square = 0, count = 1024;
        for (int64_t i = 0; i < 1024; i++)
            sum += product_at(&r, &s, n, i / 256, m, i % 256) / count;
        for (int64_t i = 0; i < 1024; i++)
            square += pow(product_at(&r, &s, n, i / 256, m, i % 256) - sum, 2) / count;
        double got = rig_get(&r, ls_out(r.g, n, 2), m);
        ck_assert_msg(fabs(got - square) <= 3e-3 * square + 1e-9, "%" PRId64 ": %g, not %g", m, got,
                      square);
    }
    rig_close(&r);
}
END_TEST

/* ---- the backward part of a residual block ---- */
/* product, other, z, x, per -> g = (product + other) where z > 0, stored; sums of g and g (x - per). */
static LsNodeId residual(Rig *r, const Size *s, bool data, bool stored)
{
    const LsStmt stmt[] = {
        {.op = LS_OP_ADD, .narg = 2, .arg = {~1, ~0}},
        {.op = LS_OP_RELU_GRAD, .narg = 2, .arg = {0, ~2}},
        {.op = LS_OP_SUB, .narg = 2, .arg = {~3, ~4}},
        {.op = LS_OP_MUL, .narg = 2, .arg = {1, 2}},
    };
    const LsFusedOut out[] = {{.stmt = 1, .reduce = true, .combine = LS_SUM},
                              {.stmt = 3, .reduce = true, .combine = LS_SUM, .mean = true},
                              {.stmt = 1}};
    const LsShape all = SHAPE(s->n, s->columns, s->h, s->w), channels = SHAPE(1, s->columns, 1, 1);
    LsValueId in[7] = {{0}};
    for (int k = 1; k < 4; k++)
        in[k] = rig_operand(r, LS_REAL, LS_LAST, all);
    in[4] = rig_operand(r, LS_REAL, LS_LAST, channels);
    LsNodeId n = node(r, s, body(r, s, 4, stmt, 3, out), 5, in, 2 + stored, data);
    rig_result(r, n, 0, LS_REAL, LS_LAST, channels);
    rig_result(r, n, 1, LS_REAL, LS_LAST, channels);
    if (stored)
        rig_result(r, n, 2, LS_REAL, LS_LAST, all);
    return n;
}

static void check_residual(const Rig *r, const Size *s, LsNodeId n)
{
    int64_t places = s->h * s->w, count = s->n * places;
    for (int64_t m = 0; m < s->columns; m++) {
        double sum = 0, dot = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t at = (i / places * s->columns + m) * places + i % places;
            double v = product_at(r, s, n, i / places, m, i % places)
                + rig_get(r, ls_in(r->g, n, 1), at);
            v = rig_get(r, ls_in(r->g, n, 2), at) > 0 ? v : 0;
            sum += v;
            dot += v * (rig_get(r, ls_in(r->g, n, 3), at) - rig_get(r, ls_in(r->g, n, 4), m));
            if (r->g->node[n.i].nout == 3)
                rig_close_to(r, ls_out(r->g, n, 2), at, v, 1e-6);
        }
        rig_close_to(r, ls_out(r->g, n, 0), m, sum, 1e-5);        /* hundreds of terms that cancel */
        rig_close_to(r, ls_out(r->g, n, 1), m, dot / (double)count, 3e-6);
    }
}

static LsNodeId any_residual(Rig *r, const Size *s, int number)
{
    return residual(r, s, number % 2 == 0, number / 2 % 2);
}

START_TEST(sums_with_other_operands_stored_in_place_or_not)
{
    Rig r;
    rig_open(&r, 4);
    LsNodeId n = residual(&r, &sizes[1], true, true);
    ck_assert(ls_kernel_inplace(r.g, n, 2, 1) && !ls_kernel_inplace(r.g, n, 0, 1));
    ck_assert(!ls_kernel_inplace(r.g, moments(&r, &(Size){1, 2, 2, 8, 8, 1}, false), 0, 1));
    rig_close(&r);
    over_all_sizes(any_residual, 0, check_residual);
}
END_TEST

/* ---- parts of channels ---- */
/* product and a joined operand in three parts -> their sum, stored as the first columns and the others; and the
 * sums of each column. */
static LsNodeId parts(Rig *r, const Size *s, bool data)
{
    const int64_t length = s->columns / 12 * 4, cut = s->columns / 8 * 4;
    const LsStmt sum = {.op = LS_OP_ADD, .narg = 2, .arg = {~0, ~1}};
    const LsFusedOut out[] = {{.length = cut}, {.from = cut, .length = s->columns - cut},
                              {.reduce = true, .combine = LS_SUM}};
    LsFused *f = body(r, s, 1, &sum, 3, out);
    LsValueId in[6] = {{0}};
    f->split = 1;
    f->joined = 1;
    f->njoined = 3;
    for (int k = 0; k < 3; k++)
        in[1 + k] = rig_operand(r, LS_REAL, LS_LAST,
                                SHAPE(s->n, k < 2 ? length : s->columns - 2 * length, s->h, s->w));
    LsNodeId n = node(r, s, f, 4, in, 3, data);
    rig_result(r, n, 0, LS_REAL, LS_LAST, SHAPE(s->n, cut, s->h, s->w));
    rig_result(r, n, 1, LS_REAL, LS_LAST, SHAPE(s->n, s->columns - cut, s->h, s->w));
    rig_result(r, n, 2, LS_REAL, LS_LAST, SHAPE(1, s->columns, 1, 1));
    return n;
}

/* Element (image, m, p) of adjacent operands or results, each of which has some of the channels. */
static double element(const Rig *r, const LsValueId *v, const Size *s, int64_t image, int64_t m,
                      int64_t p)
{
    int64_t channels;
    while (m >= (channels = ls_shape(r->g, *v)->dim[1]))
        m -= channels, v++;
    return rig_get(r, *v, (image * channels + m) * s->h * s->w + p);
}

static void check_parts(const Rig *r, const Size *s, LsNodeId n)
{
    const LsValueId joined[] = {ls_in(r->g, n, 1), ls_in(r->g, n, 2), ls_in(r->g, n, 3)};
    const LsValueId part[] = {ls_out(r->g, n, 0), ls_out(r->g, n, 1)};
    int64_t places = s->h * s->w;
    for (int64_t m = 0; m < s->columns; m++) {
        double sum = 0;
        for (int64_t i = 0; i < s->n * places; i++) {
            double want = product_at(r, s, n, i / places, m, i % places)
                + element(r, joined, s, i / places, m, i % places);
            double got = element(r, part, s, i / places, m, i % places);
            ck_assert_msg(fabs(got - want) <= 1e-6 * fmax(1, fabs(want)), "%g, not %g", got, want);
            sum += want;
        }
        rig_close_to(r, ls_out(r->g, n, 2), m, sum, 1e-5);
    }
}

static LsNodeId any_parts(Rig *r, const Size *s, int number) { return parts(r, s, number % 2 == 0); }

START_TEST(operands_and_results_in_parts)
{
    over_all_sizes(any_parts, 12, check_parts);
}
END_TEST

/* ---- which loops are fused ---- */
/* A convolution, and a loop that adds `other` to its result and sums the result. */
typedef enum { PLAIN, SHOWN, LATER, STRIDED, TWICE, LONG, NKINDS } Kind;

static LsNodeId conv_of(Rig *r, Kind kind, LsValueId *y)
{
    const int64_t size = kind == LONG ? 1024 : 64, step = kind == STRIDED ? 2 : 1;
    LsAttr at = {.window = {.n = 2, .kernel = {1, 1}, .stride = {step, step}, .dilation = {1, 1},
                            .group = 1}};
    LsShape x = SHAPE(8, size, 8 * step, 8 * step), w = SHAPE(size, size, 1, 1);
    LsValueId in[2];
    in[0] = ls_value_add(&r->cx, r->g, LS_V_INPUT, "x", LS_REAL, &x, NULL);
    in[1] = ls_value_add(&r->cx, r->g, LS_V_INPUT, "w", LS_REAL, &w, NULL);
    r->g->value[in[0].i].layout = r->g->value[in[1].i].layout = LS_LAST;
    LsNodeId n = ls_append_bare(r->g, LS_OP_CONV, 2, in, 1, &at);
    *y = ls_out(r->g, n, 0);
    ls_set_out(r->g, n, 0, LS_REAL, &SHAPE(8, size, 8, 8));
    r->g->value[y->i].layout = LS_LAST;
    return n;
}

/* A loop over y's elements: y + other, and its sums by channel. */
static LsValueId loop_of(Rig *r, LsValueId y, LsValueId other)
{
    const LsShape all = *ls_shape(r->g, y), channels = SHAPE(1, all.dim[1], 1, 1);
    LsFused *f = ls_arena_alloc(r->cx.arena, 1, sizeof *f);
    *f = (LsFused){.space = all, .layout = LS_LAST, .axes = 13, .nstmt = 1};
    f->stmt = ls_arena_alloc(r->cx.arena, 1, sizeof *f->stmt);
    f->out = ls_arena_alloc(r->cx.arena, 1, sizeof *f->out);
    f->stmt[0] = (LsStmt){.op = LS_OP_ADD, .narg = 2, .arg = {~0, ~1}};
    f->out[0] = (LsFusedOut){.reduce = true, .combine = LS_SUM};
    LsNodeId n = ls_append_bare(r->g, LS_OP_FUSED, 2, (LsValueId[]){y, other}, 1,
                                &(LsAttr){.fused = {f}});
    ls_set_out(r->g, n, 0, LS_REAL, &channels);
    r->g->value[ls_out(r->g, n, 0).i].layout = LS_LAST;
    return ls_out(r->g, n, 0);
}

static void net_of(Rig *r, Kind kind)
{
    LsValueId y, other, last;
    rig_open(r, 4);
    LsShape all = SHAPE(8, kind == LONG ? 1024 : 64, 8, 8);
    other = ls_value_add(&r->cx, r->g, LS_V_INPUT, "other", LS_REAL, &all, NULL);
    r->g->value[other.i].layout = LS_LAST;
    conv_of(r, kind, &y);
    if (kind == LATER)
        conv_of(r, STRIDED, &other);
    last = loop_of(r, y, kind == TWICE ? y : other);
    r->g->output = ls_arena_alloc(r->cx.arena, 2, sizeof *r->g->output);
    r->g->output[r->g->noutput++] = last;
    if (kind == SHOWN)
        r->g->output[r->g->noutput++] = y;
}

START_TEST(only_what_is_there_before_it_and_pays_is_taken_in)
{
    static const bool taken[NKINDS] = {[PLAIN] = true, [SHOWN] = true};
    LsMachine m;
    ck_assert(ls_machine_find(&m, "h200"));
    for (Kind kind = PLAIN; kind < NKINDS; kind++) {
        Rig r;
        LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = 4, .tf32 = true};
        net_of(&r, kind);
        if (kind == LONG)       /* a machine on which own products are slow */
            m.cost[LS_COST_CONV_FUSED].compute /= 8;
        t.tf32 = false;
        ck_assert_uint_eq(ls_conv_within(&r.cx, r.g, &t, &m), 0);
        t.tf32 = true;
        ck_assert_msg(ls_conv_within(&r.cx, r.g, &t, &m) == taken[kind], "case %d", kind);
        LsNodeId n = r.g->value[r.g->output[0].i].def;
        ck_assert_int_eq(r.g->node[n.i].op, taken[kind] ? LS_OP_CONV_FUSED : LS_OP_FUSED);
        if (taken[kind]) {      /* the product is a result where other nodes read it */
            ck_assert_int_eq(r.g->node[n.i].nout, kind == SHOWN ? 2 : 1);
            ck_assert_int_eq(r.g->node[n.i].attr.conv_fused.nbody, 2);
            ck_assert(kind == PLAIN || r.g->value[r.g->output[1].i].def.i == n.i);
            ck_assert_str_eq(r.g->value[ls_in(r.g, n, 1).i].name, "other");
        }
        rig_close(&r);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("conv_within");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_product_its_mean_and_its_variance);
    tcase_add_test(tc, a_variance_far_from_zero);
    tcase_add_test(tc, sums_with_other_operands_stored_in_place_or_not);
    tcase_add_test(tc, operands_and_results_in_parts);
    tcase_add_test(tc, only_what_is_there_before_it_and_pays_is_taken_in);
    return run_tests("conv_within", tc);
}
