/* tests/codegen/test_implicit_pad.c -- which borders and gradients of poolings FUSED kernels
 * compute themselves. */
#include "codegen/emit/kernel_emit.h"
#include "codegen/fusion/implicit_pad.h"
#include "compiler/passes/fuse.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static const LsTarget cpu = {.real_bytes = 4}, gpu = {.kind = LS_TARGET_CUDA, .real_bytes = 4};

/* Images, channels last: all values are, before the graph is fused. */
static LsValueId given(const char *name, LsType type, LsShape s)
{
    LsValueId v = ls_value_add(&cx, g, LS_V_INPUT, name, type, &s, NULL);
    g->value[v.i].layout = LS_LAST;
    return v;
}

static LsValueId laid(LsValueId v)
{
    g->value[v.i].layout = LS_LAST;
    return v;
}

static LsValueId exponential(LsValueId x)
{
    return laid(ls_append1(&cx, g, LS_OP_EXP, x, NULL));
}

static LsValueId border(LsValueId x, int64_t channels, double value)
{
    LsAttr at = {.pad = {.lo = {0, channels, 1, 2}, .hi = {0, 0, 3, 1}, .value = value}};
    return laid(ls_append1(&cx, g, LS_OP_PAD, x, &at));
}

/* The gradient of a pooling of 8x9 pixels whose windows are `kernel` wide and begin `stride`
 * apart. */
static LsValueId gradient(LsOpCode op, int64_t kernel, int64_t stride, int64_t pad,
                          int64_t channels)
{
    LsAttr at = {.window = {.n = 2}};
    LsShape y = SHAPE(2, channels, 0, 0);
    for (int d = 0; d < 2; d++) {
        at.window.kernel[d] = kernel;
        at.window.stride[d] = stride;
        at.window.dilation[d] = 1;
        at.window.pad_lo[d] = pad;
        at.window.x_dim[d] = 8 + d;
        y.dim[2 + d] = (8 + d + pad - kernel) / stride + 1;
    }
    LsValueId dy = given("dy", LS_REAL, y);
    if (op == LS_OP_AVERAGE_POOL_GRAD)
        return laid(ls_append1(&cx, g, op, dy, &at));
    return laid(ls_append2(&cx, g, op, dy, given("which", kernel > 16 ? LS_I32 : LS_BOOL, y), &at));
}

/* Fuses with this output. Returns the number of nodes that disappeared. */
static uint32_t inset(const LsTarget *t, LsValueId out, const char *const *made, uint32_t nmade)
{
    static LsValueId output[1];
    output[0] = out;
    g->output = output;
    g->noutput = 1;
    ck_assert(ls_fuse(&cx, g));
    return ls_inset_operands(&cx, g, t, made, nmade);
}

static const LsNode *maker(void) { return &g->node[g->value[g->output[0].i].def.i]; }

static void check_operands(const LsNode *n, int count, const char *const want[])
{
    ck_assert_int_eq(n->nin, count);
    for (int k = 0; k < count; k++)
        ck_assert_str_eq(g->value[g->operand[n->in + (uint32_t)k].i].name, want[k]);
}

START_TEST(a_border_and_a_gradient_are_read_where_they_come_from)
{
    graph_open();
    LsValueId x = given("x", LS_REAL, SHAPE(2, 16, 4, 6)),
              m = gradient(LS_OP_MAX_POOL_GRAD, 2, 2, 0, 16);
    LsValueId p = border(x, 0, 0), a = gradient(LS_OP_AVERAGE_POOL_GRAD, 3, 3, 0, 16);
    g->value[ls_in(g, g->value[a.i].def, 0).i].name = "mean";
    LsValueId sum = laid(ls_append2(&cx, g, LS_OP_ADD, m, p, NULL));
    ck_assert_uint_eq(inset(&cpu, laid(ls_append2(&cx, g, LS_OP_ADD, a, sum, NULL)), NULL, 0), 3);
    const LsFused *f = maker()->attr.fused.body;
    ck_assert_int_eq(f->ninset, 3);
    check_operands(maker(), 4, (const char *const[]){"dy", "x", "mean", "which"});
    const LsInset *in = ls_inset_of(f, 0);
    ck_assert(in->which == 3 && in->over == 0 && in->per[1] == 1 && in->per[2] == 2
              && in->from[2] == 0 && in->span[1] == 1 && in->span[2] == 2);
    in = ls_inset_of(f, 1);
    ck_assert(in->which == 0 && in->over == 0 && in->per[2] == 1 && in->from[2] == 1
              && in->from[3] == 2);
    in = ls_inset_of(f, 2);
    ck_assert(in->which == 0 && in->over == 9 && in->per[3] == 3);
    for (int k = 0; k < 3; k++)
        ck_assert_uint_eq(count_op((LsOpCode[]){LS_OP_PAD, LS_OP_MAX_POOL_GRAD,
                                                LS_OP_AVERAGE_POOL_GRAD}[k]), 0);
    graph_close();
}
END_TEST

static uint32_t went_of_border(const LsTarget *t, int64_t channels, int64_t more, double value)
{
    graph_open();
    LsValueId x = given("x", LS_REAL, SHAPE(2, channels, 4, 6));
    uint32_t n = inset(t, exponential(border(x, more, value)), NULL, 0);
    graph_close();
    return n;
}

START_TEST(borders_of_zeros_around_whole_rows_go)
{
    ck_assert_uint_eq(went_of_border(&cpu, 16, 0, 0), 1);
    ck_assert_uint_eq(went_of_border(&cpu, 16, 4, 0), 0);       /* more channels */
    ck_assert_uint_eq(went_of_border(&cpu, 16, 0, 1), 0);
    ck_assert_uint_eq(went_of_border(&cpu, 8, 0, 0), 0);        /* rows too short for a search */
    ck_assert_uint_eq(went_of_border(&gpu, 8, 0, 0), 1);
    ck_assert_uint_eq(went_of_border(&gpu, 18, 0, 0), 0);       /* not a multiple of four */
    ck_assert_uint_eq(went_of_border(&cpu, 18, 0, 0), 1);
}
END_TEST

static uint32_t went_of_gradient(const LsTarget *t, LsOpCode op, int64_t kernel, int64_t stride,
                                 int64_t pad)
{
    graph_open();
    uint32_t n = inset(t, exponential(gradient(op, kernel, stride, pad, 16)), NULL, 0);
    graph_close();
    return n;
}

START_TEST(gradients_of_few_windows_go)
{
    const LsOpCode max = LS_OP_MAX_POOL_GRAD, mean = LS_OP_AVERAGE_POOL_GRAD;
    const LsTarget *both[] = {&cpu, &gpu};
    for (int k = 0; k < 2; k++) {
        const LsTarget *t = both[k];
        ck_assert_uint_eq(went_of_gradient(t, max, 2, 2, 0), 1);
        ck_assert_uint_eq(went_of_gradient(t, max, 3, 3, 1), 1);
        ck_assert_uint_eq(went_of_gradient(t, max, 2, 3, 0), 1);        /* points of no window */
        ck_assert_uint_eq(went_of_gradient(t, max, 3, 2, 1), k == 1);   /* four over a point */
        ck_assert_uint_eq(went_of_gradient(t, max, 3, 1, 1), 0);        /* nine */
        ck_assert_uint_eq(went_of_gradient(t, mean, 2, 2, 0), 1);
        ck_assert_uint_eq(went_of_gradient(t, mean, 3, 2, 0), k == 1);
        ck_assert_uint_eq(went_of_gradient(t, mean, 2, 2, 1), 0);       /* over fewer points */
    }
}
END_TEST

/* Windows of 2x2 pixels at every pixel: their gradient is as large as its operand, and a point
 * needs its neighbours' gradients. */
START_TEST(no_result_takes_the_place_of_an_operand_inset)
{
    graph_open();
    LsAttr at = {.window = {.n = 2, .kernel = {2, 2}, .stride = {1, 1}, .dilation = {1, 1},
                            .pad_lo = {1, 1}, .x_dim = {8, 8}}};
    LsValueId dy = given("dy", LS_REAL, SHAPE(2, 16, 8, 8)),
              x = given("x", LS_REAL, SHAPE(2, 16, 8, 8));
    LsValueId which = given("which", LS_BOOL, SHAPE(2, 16, 8, 8));
    LsValueId dx = laid(ls_append2(&cx, g, LS_OP_MAX_POOL_GRAD, dy, which, &at));
    ck_assert_uint_eq(inset(&gpu, laid(ls_append2(&cx, g, LS_OP_ADD, dx, x, NULL)), NULL, 0), 1);
    LsNodeId n = g->value[g->output[0].i].def;
    ck_assert(!ls_kernel_inplace(g, n, 0, 0));
    ck_assert(ls_kernel_inplace(g, n, 0, 1));
    graph_close();
}
END_TEST

/* An output, an operand of another kernel, a border of a border, a value that hints name. */
START_TEST(what_is_needed_as_a_whole_is_made)
{
    static const char *const glob[] = {"bord*"};
    for (int way = 0; way < 4; way++) {
        graph_open();
        LsValueId x = given("x", LS_REAL, SHAPE(2, 16, 4, 6)), p = border(x, 0, 0),
                  out = exponential(p);
        g->value[p.i].name = "border";
        LsAttr axis = {.axis = {1}};
        if (way == 0)
            out = p;
        else if (way == 1)
            out = laid(ls_append1(&cx, g, LS_OP_SOFTMAX, p, &axis));
        else if (way == 2)
            out = exponential(border(p, 0, 0));
        uint32_t went = inset(&cpu, out, glob, way == 3);
        ck_assert_uint_eq(went, way == 2);
        ck_assert_uint_eq(count_op(LS_OP_PAD), 1);
        graph_close();
    }
}
END_TEST

/* A kernel of the backward part would read the parameter after its update. */
START_TEST(what_is_updated_is_not_read_late)
{
    graph_open();
    LsValueId p = laid(param("p", SHAPE(2, 16, 4, 6)));
    ck_assert_uint_eq(inset(&cpu, exponential(border(p, 0, 0)), NULL, 0), 0);
    graph_close();
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        a_border_and_a_gradient_are_read_where_they_come_from,
        borders_of_zeros_around_whole_rows_go,
        gradients_of_few_windows_go,
        no_result_takes_the_place_of_an_operand_inset,
        what_is_needed_as_a_whole_is_made,
        what_is_updated_is_not_read_late,
    };
    TCase *tc = tcase_create("inset");
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("inset", tc);
}
