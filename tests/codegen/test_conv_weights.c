/* tests/codegen/test_conv_weights.c -- weight gradients of 3x3 convolutions by Lowerset's kernel
 * for GPUs, run by the executor and compared with sums in double: borders, ragged strips and
 * channels, several blocks. */
#include "codegen/cuda/conv_weights.h"
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

typedef struct Case { int64_t n, rows, columns, x_channels, y_channels, pad; } Case;

static const Case cases[] = {
    {1, 3, 3, 4, 4, 1},
    {2, 5, 16, 64, 32, 1},      /* whole strips and blocks */
    {1, 9, 21, 12, 36, 1},      /* a strip and a bit, pieces of blocks */
    {3, 7, 18, 68, 8, 0},       /* two blocks of x's channels, no border */
    {1, 40, 12, 8, 68, 1},      /* of y's */
    {2, 6, 34, 20, 20, 2},      /* wider than the image */
    {2, 40, 40, 8, 8, 1},       /* several shares that begin and end within strips */
    {4, 36, 20, 12, 40, 1},     /* the same, of more of y's channels */
};
enum { NCASES = sizeof cases / sizeof *cases };

/* Multiples of 1/64, which are exact in TF32: only the order of sums can differ. */
static LsValueId factor(Rig *r, LsShape s)
{
    LsValueId v = rig_operand(r, LS_REAL, LS_LAST, s);
    for (int64_t i = 0; i < ls_count(&s); i++)
        rig_set(r, v, i, floor(rig_get(r, v, i) * 64) / 64);
    return v;
}

static LsAttr window_of(const Case *c, int64_t stride)
{
    return (LsAttr){.window = {.n = 2, .kernel = {3, 3}, .stride = {stride, stride},
                               .dilation = {1, 1}, .pad_lo = {c->pad, c->pad},
                               .pad_hi = {c->pad, c->pad}, .group = 1}};
}

static LsNodeId node(Rig *r, const Case *c)
{
    const int64_t grow = 2 * c->pad - 2;
    const LsAttr at = window_of(c, 1);
    LsValueId in[] = {factor(r, SHAPE(c->n, c->y_channels, c->rows + grow, c->columns + grow)),
                      factor(r, SHAPE(c->n, c->x_channels, c->rows, c->columns))};
    LsNodeId n = rig_node(r, LS_OP_CONV_DW, 2, in, 1, &at);
    rig_result(r, n, 0, LS_REAL, LS_LAST, SHAPE(c->y_channels, c->x_channels, 3, 3));
    return n;
}

/* The node without numbers. */
static LsNodeId shapes_of(Rig *r, const Case *c, int64_t stride)
{
    const LsAttr at = window_of(c, stride);
    const LsShape shape[] = {SHAPE(c->n, c->y_channels, c->rows / stride, c->columns / stride),
                             SHAPE(c->n, c->x_channels, c->rows, c->columns)};
    LsValueId in[2];
    for (int k = 0; k < 2; k++)
        in[k] = ls_value_add(&r->cx, r->g, LS_V_INPUT, "x", LS_REAL, &shape[k], NULL);
    LsNodeId n = ls_append_bare(r->g, LS_OP_CONV_DW, 2, in, 1, &at);
    ls_set_out(r->g, n, 0, LS_REAL, &SHAPE(c->y_channels, c->x_channels, 3, 3));
    return n;
}

static double sum_of(const Rig *r, const Case *c, LsNodeId n, int64_t m, int64_t k, int64_t tap)
{
    LsValueId y = ls_in(r->g, n, 0), x = ls_in(r->g, n, 1);
    const LsShape *s = ls_shape(r->g, y);
    double sum = 0;
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t p = 0; p < s->dim[2]; p++)
            for (int64_t q = 0; q < s->dim[3]; q++) {
                int64_t row = p + tap / 3 - c->pad, column = q + tap % 3 - c->pad;
                if (row >= 0 && row < c->rows && column >= 0 && column < c->columns)
                    sum +=
                        rig_get(r, y, ((i * c->y_channels + m) * s->dim[2] + p) * s->dim[3] + q)
                        * rig_get(r, x,
                                  ((i * c->x_channels + k) * c->rows + row) * c->columns + column);
            }
    return sum;
}

START_TEST(every_weight_is_the_sum_over_all_points)
{
    Rig r;
    LsNodeId n[NCASES];
    rig_open(&r, 4);
    r.cuda = r.target.tf32 = true;
    r.emitter = &ls_emitter_conv_weights;
    for (int i = 0; i < NCASES; i++)
        n[i] = node(&r, &cases[i]);
    rig_run(&r);
    for (int i = 0; i < NCASES; i++)
        for (int64_t at = 0; at < cases[i].y_channels * cases[i].x_channels * 9; at++)
            rig_close_to(&r, ls_out(r.g, n[i], 0), at,
                         sum_of(&r, &cases[i], n[i], at / 9 / cases[i].x_channels,
                                at / 9 % cases[i].x_channels, at % 9), 2e-6);
    rig_close(&r);
}
END_TEST

/* Candidates for the kernel: 3 x 3 at stride 1, with few wasted products. */
START_TEST(those_are_served_that_other_engines_are_slow_for)
{
    static const struct { Case c; int64_t stride; bool serves; } some[] = {
        {{64, 56, 56, 128, 32, 1}, 1, true}, {{64, 56, 56, 128, 32, 1}, 2, false},
        {{64, 28, 28, 128, 128, 1}, 1, true}, {{16, 30, 30, 1024, 1024, 0}, 1, true},
        {{1, 14, 14, 256, 256, 1}, 1, true}, {{64, 7, 7, 128, 32, 1}, 1, false},
        {{64, 64, 64, 3, 64, 1}, 1, false}, {{64, 64, 64, 12, 64, 1}, 1, false},
        {{64, 64, 64, 64, 36, 1}, 1, false},
    };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        Rig r;
        LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = 4, .tf32 = true};
        rig_open(&r, 4);
        LsNodeId n = shapes_of(&r, &some[i].c, some[i].stride);
        t.tf32 = false;
        ck_assert(!ls_conv_weights_serves(r.g, n, &t));
        t.tf32 = true;
        ck_assert_msg(ls_conv_weights_serves(r.g, n, &t) == some[i].serves, "case %zu", i);
        rig_close(&r);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("conv_weights");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, every_weight_is_the_sum_over_all_points);
    tcase_add_test(tc, those_are_served_that_other_engines_are_slow_for);
    return run_tests("conv_weights", tc);
}
