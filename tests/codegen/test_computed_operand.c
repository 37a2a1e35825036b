/* tests/codegen/test_computed_operand.c -- convolutions and products that compute an operand where
 * they pack it give the same bits as from an operand in memory. */
#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/conv.h"
#include "codegen/kernels/matmul.h"
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

/* relu(x * scale + shift + other): scale and shift per channel, 2 the third operand's factor. */
static LsFused *body_new(Rig *r, const LsShape *space, LsLayout layout)
{
    static const struct { LsOpCode op; int16_t arg[2]; } row[] = {
        {LS_OP_MUL, {~0, ~1}}, {LS_OP_ADD, {0, ~2}}, {LS_OP_MUL, {~3, ~4}}, {LS_OP_ADD, {1, 2}},
        {LS_OP_RELU, {3, 0}},
    };
    enum { NSTMT = sizeof row / sizeof *row };
    LsFused *f = ls_arena_alloc(r->cx.arena, 1, sizeof *f);
    *f = (LsFused){.space = *space, .layout = layout, .nstmt = NSTMT};
    f->stmt = ls_arena_alloc(r->cx.arena, NSTMT, sizeof *f->stmt);
    f->out = ls_arena_alloc(r->cx.arena, 1, sizeof *f->out);
    f->out[0].stmt = NSTMT - 1;
    for (int k = 0; k < NSTMT; k++)
        f->stmt[k] = (LsStmt){.op = (uint16_t)row[k].op, .type = LS_REAL, .name = "n",
                              .narg = row[k].op == LS_OP_RELU ? 1 : 2,
                              .arg = {row[k].arg[0], row[k].arg[1]}};
    return f;
}

enum { BODY_IN = 6 };             /* the last says which elements the fourth operand has */

typedef struct Value { LsFused *body; LsValueId in[BODY_IN], v; int axis; } Value;

/* Of images: operand 0 begins one row down, and blocks of two by two pixels share an element of
 * operand 3, which belongs to one of them. */
static void value_inset(Rig *r, Value *x, LsShape shape)
{
    LsInset *in = ls_arena_alloc(r->cx.arena, 2, sizeof *in);
    LsShape below = shape, shared = shape;
    in[1] = (LsInset){.operand = 3, .which = 5};
    for (int k = 0; k < 4; k++)
        in[0].per[k] = in[1].per[k] = in[0].span[k] = in[1].span[k] = 1;
    in[0].from[2] = 1;
    below.dim[2]--;
    for (int k = 2; k < 4; k++) {
        in[1].per[k] = in[1].span[k] = 2;
        shared.dim[k] /= 2;
    }
    x->body->inset = in;
    x->body->ninset = 2;
    x->in[0] = rig_operand(r, LS_REAL, x->body->layout, below);
    x->in[3] = rig_operand(r, LS_REAL, x->body->layout, shared);
    x->in[5] = rig_operand(r, LS_BOOL, x->body->layout, shared);
    for (int64_t i = 0; i < ls_count(&shared); i++)
        rig_set(r, x->in[5], i, (double)(i * 5 % 4));
}

/* A FUSED node and its result. */
static Value value_new(Rig *r, LsShape shape, LsLayout layout, int axis)
{
    LsShape vector = {.rank = shape.rank - axis};
    for (int k = 0; k < vector.rank; k++)
        vector.dim[k] = k == 0 ? shape.dim[axis] : 1;
    Value x = {.body = body_new(r, &shape, layout), .axis = axis};
    x.in[0] = rig_operand(r, LS_REAL, layout, shape);
    x.in[1] = rig_operand(r, LS_REAL, LS_ROW, vector);
    x.in[2] = rig_operand(r, LS_REAL, LS_ROW, vector);
    x.in[3] = rig_operand(r, LS_REAL, layout, shape);
    x.in[4] = x.in[5] = rig_literal(r, 2);
    if (shape.rank == 4 && shape.dim[3] > 1)
        value_inset(r, &x, shape);
    LsNodeId n = rig_node(r, LS_OP_FUSED, BODY_IN, x.in, 1, &(LsAttr){.fused = {.body = x.body}});
    x.v = rig_result(r, n, 0, LS_REAL, layout, shape);
    return x;
}

typedef struct Pair { LsValueId read, computed; } Pair;

/* The node with x as operand k of `nin`: once reading x, once computing it. */
static Pair both(Rig *r, LsOpCode op, int nin, const LsValueId in[], int k, const Value *x,
                 const LsAttr *attr, LsLayout layout, LsShape result)
{
    LsValueId all[8 + BODY_IN];
    memcpy(all, in, (size_t)nin * sizeof *all);
    memcpy(all + nin, x->in, sizeof x->in);
    LsComputed *c = ls_arena_alloc(r->cx.arena, 1, sizeof *c);
    *c = (LsComputed){.operand = k, .first = nin, .axis = x->axis, .body = x->body, .times = 1};
    LsNodeId a = rig_node(r, op, (size_t)nin, in, 1, attr);
    Pair p = {.read = rig_result(r, a, 0, LS_REAL, layout, result)};
    int axis = -1;
    bool conv = ls_op[op]->kernel == LS_K_CONV;
    ck_assert((conv ? ls_conv_computes : ls_matmul_computes)(r->g, a, k, &axis) > 0);
    ck_assert_int_eq(axis, x->axis);
    LsNodeId b = rig_node(r, op, (size_t)nin + BODY_IN, all, 1, attr);
    r->g->node[b.i].computed = c;
    p.computed = rig_result(r, b, 0, LS_REAL, layout, result);
    return p;
}

static void check_pair(const Rig *r, Pair p)
{
    size_t bytes = (size_t)ls_value_bytes(r->g, p.read, r->real_bytes);
    bool any = false;
    for (int64_t i = 0; i < ls_count(ls_shape(r->g, p.read)); i++)
        any |= rig_get(r, p.read, i) != 0;
    ck_assert(any);
    ck_assert_msg(memcmp(r->buffer[p.read.i], r->buffer[p.computed.i], bytes) == 0,
                  "other bits than when %s reads it", r->g->value[p.read.i].name);
}

/* ---- convolutions ---- */
static const struct {
    int64_t images, group, cin, cout, x[2], kernel, stride, dilation, pad;
} conv[] = {
    {2, 1, 5, 7, {9, 11}, 3, 1, 1, 1},      {2, 1, 40, 24, {7, 8}, 1, 1, 1, 0},
    {2, 1, 40, 24, {7, 8}, 1, 2, 1, 0},     {2, 1, 17, 37, {13, 12}, 3, 1, 2, 2},
    {1, 1, 6, 7, {16, 9}, 5, 3, 2, 4},      {1, 1, 4, 6, {6, 6}, 3, 1, 1, 4},
    {2, 2, 12, 6, {7, 9}, 3, 2, 1, 1},      {1, 1, 260, 257, {6, 5}, 3, 2, 1, 1}, /* few places */
    {2, 1, 16, 32, {16, 20}, 3, 1, 1, 1},   /* Winograd's algorithm */
    {1, 1, 80, 16, {27, 30}, 3, 1, 1, 1},   {2, 1, 1024, 16, {3, 3}, 1, 1, 1, 0}, /* crowded rows */
    {2, 1, 70, 20, {40, 36}, 3, 1, 1, 0},   /* parts of the sum over places */
};
enum { NCONV = sizeof conv / sizeof *conv };

static void conv_pairs(Rig *r, int i, Pair p[2])
{
    int64_t k = conv[i].kernel, c = conv[i].cin;
    LsShape x = SHAPE(conv[i].images, c, conv[i].x[0], conv[i].x[1]);
    LsShape w = SHAPE(conv[i].cout, c / conv[i].group, k, k), y = x;
    LsAttr attr = {.window = {.n = 2, .group = conv[i].group}};
    y.dim[1] = conv[i].cout;
    for (int a = 0; a < 2; a++) {
        LsWindowAttr *at = &attr.window;
        at->kernel[a] = k;
        at->stride[a] = conv[i].stride;
        at->dilation[a] = conv[i].dilation;
        at->pad_lo[a] = at->pad_hi[a] = conv[i].pad;
        at->x_dim[a] = x.dim[2 + a];
        y.dim[2 + a] = (x.dim[2 + a] + 2 * conv[i].pad - (k - 1) * conv[i].dilation - 1)
            / conv[i].stride + 1;
    }
    Value v = value_new(r, x, LS_LAST, 1);
    LsValueId weight = rig_operand(r, LS_REAL, LS_LAST, w);
    LsValueId bias = rig_operand(r, LS_REAL, LS_ROW, SHAPE(conv[i].cout));
    LsValueId dy = rig_operand(r, LS_REAL, LS_LAST, y);
    p[0] = both(r, LS_OP_CONV, 3, (LsValueId[]){v.v, weight, bias}, 0, &v, &attr, LS_LAST, y);
    p[1] = both(r, LS_OP_CONV_DW, 2, (LsValueId[]){dy, v.v}, 1, &v, &attr, LS_LAST, w);
}

static void check_convs(int real_bytes, const char *flags)
{
    Rig r = rig_of_products(real_bytes, flags);
    Pair p[NCONV][2];
    /* of doubles every second one */
    const int apart = real_bytes == 4 || tests_do_all() ? 1 : 2;
    for (int i = 0; i < NCONV; i += apart)
        conv_pairs(&r, i, p[i]);
    rig_run(&r);
    for (int i = 0; i < NCONV; i += apart)
        for (int k = 0; k < 2; k++)
            check_pair(&r, p[i][k]);
    rig_close(&r);
}

START_TEST(convolutions_compute_their_source)
{
    check_convs(4, tests_do_all() ? "-O3 -march=native" : "-O2 -march=native");
}
END_TEST
START_TEST(convolutions_compute_their_source_in_double)
{
    check_convs(8, tests_do_all() ? "-O2" : "-O0");
}
END_TEST

/* ---- products ---- */
static const struct { int64_t m, n, k; bool turn_a; } product[] = {
    {5, 7, 9, false}, {70, 300, 520, false}, {40, 33, 1024, false}, {130, 20, 70, true},
    {300, 64, 300, true}, {16, 16, 16, true},
};
enum { NPRODUCT = sizeof product / sizeof *product };

static void product_pairs(Rig *r, int i, Pair p[2])
{
    int64_t m = product[i].m, n = product[i].n, k = product[i].k;
    LsAttr attr = {.gemm = {.trans_a = product[i].turn_a, .alpha = 0.5, .beta = 1}};
    LsShape sa = product[i].turn_a ? SHAPE(k, m) : SHAPE(m, k);
    Value a = value_new(r, sa, LS_ROW, 1), b = value_new(r, SHAPE(k, n), LS_ROW, 1);
    LsValueId bias = rig_operand(r, LS_REAL, LS_ROW, SHAPE(n)), in[] = {a.v, b.v, bias};
    p[0] = both(r, LS_OP_MATMUL, 3, in, 0, &a, &attr, LS_ROW, SHAPE(m, n));
    p[1] = both(r, LS_OP_MATMUL, 3, in, 1, &b, &attr, LS_ROW, SHAPE(m, n));
}

static void check_products(int real_bytes, const char *flags)
{
    Rig r = rig_of_products(real_bytes, flags);
    Pair p[NPRODUCT][2];
    for (int i = 0; i < NPRODUCT; i++)
        product_pairs(&r, i, p[i]);
    rig_run(&r);
    for (int i = 0; i < NPRODUCT; i++)
        for (int k = 0; k < 2; k++)
            check_pair(&r, p[i][k]);
    rig_close(&r);
}

START_TEST(products_compute_an_operand) { check_products(4, "-O3 -march=native"); }
END_TEST
START_TEST(products_compute_an_operand_in_double)
{
    check_products(8, tests_do_all() ? "-O2" : "-O0");
}
END_TEST

/* A value per image, or with another order in memory, is not a row of channels. */
START_TEST(operands_of_other_forms_are_refused)
{
    Rig r;
    rig_open(&r, 4);
    LsShape y = SHAPE(2, 6, 5, 5);
    int64_t stride[2];
    const struct { LsShape s; LsLayout layout; bool fits; } row[] = {
        {y, LS_LAST, true}, {y, LS_ROW, false}, {SHAPE(1, 6, 1, 1), LS_ROW, true},
        {SHAPE(6, 1, 1), LS_ROW, true}, {SHAPE(2, 1, 1, 1), LS_ROW, false},
        {SHAPE(2, 6, 1, 1), LS_LAST, false}, {SHAPE(1), LS_ROW, true},
        {SHAPE(1, 1, 5, 5), LS_ROW, false},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        LsValueId v = rig_operand(&r, LS_REAL, row[k].layout, row[k].s);
        ck_assert_msg(ls_computed_strides(r.g, v, &y, LS_LAST, 1, stride) == row[k].fits,
                      "row %zu", k);
    }
    rig_close(&r);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        convolutions_compute_their_source, convolutions_compute_their_source_in_double,
        products_compute_an_operand, products_compute_an_operand_in_double,
        operands_of_other_forms_are_refused,
    };
    TCase *tc = tcase_create("computed");
    tcase_set_timeout(tc, 120);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("computed", tc);
}
