/* tests/codegen/test_kernels_rows.c -- softmax along any axis, layer norm. */
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

static const int real_bytes[] = {4, 8};

typedef struct Row { int64_t count, step, n; } Row;     /* rows along an axis, logical row-major */

static Row row_of(const LsShape *s, int axis)
{
    Row r = {.count = ls_count(s) / s->dim[axis], .step = 1, .n = s->dim[axis]};
    for (int k = axis + 1; k < s->rank; k++)
        r.step *= s->dim[k];
    return r;
}

static int64_t row_at(const Row *r, int64_t row, int64_t c)
{
    return row / r->step * r->step * r->n + row % r->step + c * r->step;
}

static void check_softmax(const Rig *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    LsValueId a = ls_in(r->g, n, 0), b = ls_in(r->g, n, 1), y = ls_out(r->g, n, 0);
    Row row = row_of(ls_shape(r->g, y), node->attr.axis.axis);
    for (int64_t j = 0; j < row.count; j++) {
        double max = -INFINITY, sum = 0, dot = 0, total = 0;
        for (int64_t c = 0; c < row.n; c++) {
            int64_t at = row_at(&row, j, c);
            max = fmax(max, rig_get(r, a, at));
            total += rig_get(r, a, at);
            dot += ls_is(b) ? rig_get(r, a, at) * rig_get(r, b, at) : 0;
        }
        for (int64_t c = 0; c < row.n; c++)
            sum += exp(rig_get(r, a, row_at(&row, j, c)) - max);
        for (int64_t c = 0; c < row.n; c++) {
            int64_t at = row_at(&row, j, c);
            double x = rig_get(r, a, at), z = ls_is(b) ? rig_get(r, b, at) : 0;
            double want = node->op == LS_OP_SOFTMAX ? exp(x - max) / sum
                        : node->op == LS_OP_LOG_SOFTMAX ? x - max - log(sum)
                        : node->op == LS_OP_SOFTMAX_GRAD ? (x - dot) * z : x - exp(z) * total;
            rig_close_to(r, y, at, want, node->op == LS_OP_LOG_SOFTMAX_GRAD ? 1e-5 : 2e-6);
        }
    }
}

START_TEST(test_softmax_along_any_axis_in_either_layout)
{
    static const LsOpCode op[] = {LS_OP_SOFTMAX, LS_OP_LOG_SOFTMAX, LS_OP_SOFTMAX_GRAD,
                                  LS_OP_LOG_SOFTMAX_GRAD};
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (int o = 0; o < 4; o++) {
        for (int l = LS_ROW; l <= LS_LAST; l++)
            for (int axis = 0; axis < 4; axis++) {
                LsShape s = SHAPE(2, 7, 3, 45);
                LsValueId x = rig_operand(&r, LS_REAL, l, s), z = rig_operand(&r, LS_REAL, l, s);
                LsNodeId n = rig_node(&r, op[o], o < 2 ? 1 : 2, (LsValueId[]){x, z}, 1,
                                      &(LsAttr){.axis = {axis}});
                rig_result(&r, n, 0, LS_REAL, l, s);
            }
        LsShape s = SHAPE(9, 1333);
        LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, s), z = rig_operand(&r, LS_REAL, LS_ROW, s);
        LsNodeId n =
            rig_node(&r, op[o], o < 2 ? 1 : 2, (LsValueId[]){x, z}, 1, &(LsAttr){.axis = {1}});
        rig_result(&r, n, 0, LS_REAL, LS_ROW, s);
    }
    rig_run(&r);
    for (uint32_t i = 1; i < r.g->nnode; i++)
        check_softmax(&r, (LsNodeId){i});
    rig_close(&r);
}
END_TEST

START_TEST(test_softmax_of_large_numbers_stays_finite)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(2, 40));
    for (int k = 0; k < 80; k++)
        rig_set(&r, x, k, k < 40 ? 1e4 * (k - 20) : k == 60 ? -INFINITY : 0);
    LsNodeId n = rig_node(&r, LS_OP_SOFTMAX, VALUES(x), 1, &(LsAttr){.axis = {1}});
    LsValueId y = rig_result(&r, n, 0, LS_REAL, LS_ROW, SHAPE(2, 40));
    rig_run(&r);
    for (int k = 0; k < 80; k++)
        rig_close_to(&r, y, k, k < 40 ? k == 39 : k == 60 ? 0 : 1. / 39, 1e-6);
    rig_close(&r);
}
END_TEST

/* Rows of n with mean far from zero; cuda: by the kernels of a GPU. */
static void check_norm(int bytes, bool cuda, LsShape s, int axis, bool with_bias)
{
    Rig r;
    rig_open(&r, bytes);
    r.cuda = cuda;
    /* Where compilers contract products with sums. */
    r.flags = tests_do_all() ? "-O2 -march=native" : "-O1 -fexpensive-optimizations -march=native";
    LsShape over = {.rank = s.rank - axis}, stat = s;
    for (int k = axis; k < s.rank; k++) {
        over.dim[k - axis] = s.dim[k];
        stat.dim[k] = 1;
    }
    int64_t n = ls_count(&over), rows = ls_count(&s) / n;
    LsAttr at = {.norm = {axis, 1e-5}};
    LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, s),
              scale = rig_operand(&r, LS_REAL, LS_ROW, over);
    LsValueId bias = rig_operand(&r, LS_REAL, LS_ROW, over),
              dy = rig_operand(&r, LS_REAL, LS_ROW, s);
    for (int64_t i = 0; i < ls_count(&s); i++)
        rig_set(&r, x, i, rig_get(&r, x, i) + 3);
    LsNodeId f =
        rig_node(&r, LS_OP_LAYER_NORM, with_bias ? 3 : 2, (LsValueId[]){x, scale, bias}, 3, &at);
    LsValueId y = rig_result(&r, f, 0, LS_REAL, LS_ROW, s);
    LsValueId mean = rig_result(&r, f, 1, LS_REAL, LS_ROW, stat);
    LsValueId invstd = rig_result(&r, f, 2, LS_REAL, LS_ROW, stat);
    LsNodeId b = rig_node(&r, LS_OP_LAYER_NORM_GRAD, VALUES(dy, x, scale, mean, invstd), 1, &at);
    LsValueId dx = rig_result(&r, b, 0, LS_REAL, LS_ROW, s);
    LsValueId plus = rig_operand(&r, LS_REAL, LS_ROW, s);
    LsNodeId c =
        rig_node(&r, LS_OP_LAYER_NORM_GRAD, VALUES(dy, x, scale, mean, invstd, plus), 1, &at);
    LsValueId sum = rig_result(&r, c, 0, LS_REAL, LS_ROW, s);
    for (int k = 0; k < 6; k++)         /* which of them rig_run has tried */
        ck_assert_int_eq(ls_kernel_inplace(r.g, c, 0, k), k == 0 || k == 1 || k == 5);
    rig_run(&r);
    for (int64_t j = 0; j < rows; j++) {
        double m = 0, v = 0, h = 0, hz = 0;
        for (int64_t i = 0; i < n; i++)
            m += rig_get(&r, x, j * n + i) / (double)n;
        for (int64_t i = 0; i < n; i++)
            v += pow(rig_get(&r, x, j * n + i) - m, 2) / (double)n;
        double inv = 1 / sqrt(v + 1e-5);
        for (int64_t i = 0; i < n; i++) {
            double z = (rig_get(&r, x, j * n + i) - m) * inv;
            h += rig_get(&r, dy, j * n + i) * rig_get(&r, scale, i) / (double)n;
            hz += rig_get(&r, dy, j * n + i) * rig_get(&r, scale, i) * z / (double)n;
        }
        rig_close_to(&r, mean, j, m, 1e-6);
        rig_close_to(&r, invstd, j, inv, 2e-6);
        for (int64_t i = 0; i < n; i++) {
            double z = (rig_get(&r, x, j * n + i) - m) * inv, g = rig_get(&r, scale, i);
            rig_close_to(&r, y, j * n + i, z * g + (with_bias ? rig_get(&r, bias, i) : 0), 3e-6);
            rig_close_to(&r, dx, j * n + i, inv * (rig_get(&r, dy, j * n + i) * g - h - z * hz),
                         5e-6);
            double d = rig_get(&r, dx, j * n + i) + rig_get(&r, plus, j * n + i);
            ck_assert_double_eq(rig_get(&r, sum, j * n + i), bytes == 4 ? (float)d : d);
        }
    }
    rig_close(&r);
}

START_TEST(test_layer_norm_and_its_gradient)
{
    for (int cuda = 0; cuda < (tests_do_less() ? 1 : 2); cuda++) {
        check_norm(real_bytes[_i], cuda, SHAPE(2, 3, 5), 1, false);
        check_norm(real_bytes[_i], cuda, SHAPE(4, 1025), 1, true);
        if (_i == 1 && !tests_do_all())     /* of doubles a short row and a long one */
            continue;
        check_norm(real_bytes[_i], cuda, SHAPE(3, 5, 48), 2, true);
        check_norm(real_bytes[_i], cuda, SHAPE(19, 3), 1, true);
        check_norm(real_bytes[_i], cuda, SHAPE(2, 2052), 1, false);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_rows");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_softmax_along_any_axis_in_either_layout, 0, 2);
    tcase_add_loop_test(t, test_softmax_of_large_numbers_stays_finite, 0, 2);
    tcase_add_loop_test(t, test_layer_norm_and_its_gradient, 0, 2);
    return run_tests("kernels_rows", t);
}
