/* tests/codegen/test_kernels_squares.c -- squared norms of products that are not stored, against
 * the products. */
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

typedef struct Pair { LsValueId stored, norms; } Pair;     /* products one behind the other, and
                                                            * their squared norms */

static void check_pair(const Rig *r, Pair p)
{
    const int64_t n = ls_count(ls_shape(r->g, p.norms)),
                  each = ls_count(ls_shape(r->g, p.stored)) / n;
    for (int64_t i = 0; i < n; i++) {
        double want = 0;
        for (int64_t k = i * each; k < (i + 1) * each; k++)
            want += rig_get(r, p.stored, k) * rig_get(r, p.stored, k);
        ck_assert_double_gt(want, 0);
        ck_assert_double_eq_tol(rig_get(r, p.norms, i) / want, 1,
                                r->real_bytes == 8 ? 1e-13 : 5e-7);
    }
}

/* ---- convolutions ---- */
static const struct {
    int64_t images, group, cin, cout, x[2], kernel, stride, dilation, pad;
} conv[] = {
    {3, 1, 5, 7, {9, 11}, 3, 1, 1, 1},    {2, 1, 17, 300, {5, 4}, 3, 1, 2, 2},
    {2, 2, 12, 6, {7, 9}, 3, 2, 1, 1},    {1, 1, 40, 24, {7, 8}, 1, 2, 1, 0},
    {4, 1, 32, 16, {12, 12}, 3, 1, 1, 1}, {2, 1, 3, 460, {3, 3}, 3, 1, 1, 1},
};
enum { NCONV = sizeof conv / sizeof *conv };

static Pair conv_pair(Rig *r, int i)
{
    LsAttr attr = {.window = {.n = 2, .group = conv[i].group}};
    LsShape x = SHAPE(conv[i].images, conv[i].cin, conv[i].x[0], conv[i].x[1]), y = x;
    LsShape w = SHAPE(conv[i].images * conv[i].cout, conv[i].cin / conv[i].group, conv[i].kernel,
                      conv[i].kernel);
    y.dim[1] = conv[i].cout;
    for (int a = 0; a < 2; a++) {
        attr.window.kernel[a] = conv[i].kernel;
        attr.window.stride[a] = conv[i].stride;
        attr.window.dilation[a] = conv[i].dilation;
        attr.window.pad_lo[a] = attr.window.pad_hi[a] = conv[i].pad;
        attr.window.x_dim[a] = x.dim[2 + a];
        y.dim[2 + a] =
            (x.dim[2 + a] + 2 * conv[i].pad - (conv[i].kernel - 1) * conv[i].dilation - 1)
                / conv[i].stride
            + 1;
    }
    const LsValueId in[] = {rig_operand(r, LS_REAL, LS_LAST, y),
                            rig_operand(r, LS_REAL, LS_LAST, x)};
    const LsNodeId norms = rig_node(r, LS_OP_CONV_DW_SQUARES, 2, in, 1, &attr);
    Pair p = {.norms = rig_result(r, norms, 0, LS_REAL, LS_ROW, SHAPE(conv[i].images))};
    attr.window.each = true;
    p.stored = rig_result(r, rig_node(r, LS_OP_CONV_DW, 2, in, 1, &attr), 0, LS_REAL, LS_LAST, w);
    return p;
}

/* ---- products ---- */
static const struct { int64_t batch, m, n, k; bool turned[2]; double alpha;
} product[] = {
    {3, 5, 7, 4, {true, false}, 1},        {1, 300, 140, 33, {true, false}, 1},
    {16, 257, 520, 3, {true, false}, 0.5}, {2, 64, 48, 400, {false, true}, 1},
    {5, 33, 1, 1, {false, false}, 1},      {2, 90, 70, 600, {true, true}, 2},
};
enum { NPRODUCT = sizeof product / sizeof *product };

static Pair product_pair(Rig *r, int i)
{
    const int64_t l = product[i].batch, m = product[i].m, n = product[i].n, k = product[i].k;
    const LsAttr attr = {.gemm = {.trans_a = product[i].turned[0],
                                  .trans_b = product[i].turned[1],
                                  .alpha = product[i].alpha}};
    const LsValueId in[] = {
        rig_operand(r, LS_REAL, LS_ROW, attr.gemm.trans_a ? SHAPE(l, k, m) : SHAPE(l, m, k)),
        rig_operand(r, LS_REAL, LS_ROW, attr.gemm.trans_b ? SHAPE(l, n, k) : SHAPE(l, k, n))};
    const LsNodeId stored = rig_node(r, LS_OP_MATMUL, 2, in, 1, &attr);
    Pair p = {.stored = rig_result(r, stored, 0, LS_REAL, LS_ROW, SHAPE(l, m, n))};
    p.norms = rig_result(r, rig_node(r, LS_OP_MATMUL_SQUARES, 2, in, 1, &attr), 0, LS_REAL, LS_ROW,
                         SHAPE(l));
    return p;
}

/* Also: the bits do not depend on how units are cut (rig_run). */
static void check(int real_bytes, const char *flags)
{
    Rig r = rig_of_products(real_bytes, flags);
    Pair p[NCONV + NPRODUCT];
    for (int i = 0; i < NCONV; i++)
        p[i] = conv_pair(&r, i);
    for (int i = 0; i < NPRODUCT; i++)
        p[NCONV + i] = product_pair(&r, i);
    rig_run(&r);
    for (int i = 0; i < NCONV + NPRODUCT; i++)
        check_pair(&r, p[i]);
    rig_close(&r);
}

START_TEST(squared_norms_are_those_of_the_products) { check(4, "-O2 -march=native"); }
END_TEST
START_TEST(squared_norms_are_right_with_narrow_vectors) { check(4, "-O1"); }
END_TEST
START_TEST(squared_norms_are_right_in_double) { check(8, "-O1"); }
END_TEST

/* A column times a row, too large for a cache: each element is the product of two, whatever the
 * row's alignment. */
START_TEST(large_outer_products_are_right)
{
    enum { L = 3, M = 37, N = 151201 };
    Rig r = rig_of_products(4, "-O2 -march=native");
    const LsAttr attr = {.gemm = {.trans_a = true, .alpha = 1}};
    const LsValueId in[] = {rig_operand(&r, LS_REAL, LS_ROW, SHAPE(L, 1, M)),
                            rig_operand(&r, LS_REAL, LS_ROW, SHAPE(L, 1, N))};
    const LsValueId y = rig_result(&r, rig_node(&r, LS_OP_MATMUL, 2, in, 1, &attr), 0, LS_REAL,
                                   LS_ROW, SHAPE(L, M, N));
    rig_run(&r);
    char *text = rig_print(&r);
    ck_assert_ptr_nonnull(strstr(text, "ls_outer("));
    free(text);
    for (int64_t k = 0; k < (int64_t)L * M * N; k++)
        if (rig_get(&r, y, k)
            != (float)(rig_get(&r, in[0], k / N) * rig_get(&r, in[1], k / N / M * N + k % N)))
            ck_abort_msg("element %" PRId64 ": %.9g", k, rig_get(&r, y, k));
    rig_close(&r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("squares");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, squared_norms_are_those_of_the_products);
    tcase_add_test(t, squared_norms_are_right_with_narrow_vectors);
    tcase_add_test(t, squared_norms_are_right_in_double);
    tcase_add_test(t, large_outer_products_are_right);
    return run_tests("kernels_squares", t);
}
