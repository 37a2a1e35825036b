/* tests/compiler/test_sample_axis.c -- whether the first axis of the inputs holds samples, by what
 * the model does along it. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

enum { B = 6, T = 4, C = 8 };

static char *log_text;
static size_t log_size;

static LsValueId input(const char *name, LsShape s)
{
    LsValueId *list = ls_arena_alloc(cx.arena, g->ninput + 1, sizeof *list);
    for (uint32_t i = 0; i < g->ninput; i++)
        list[i] = g->input[i];
    LsValueId v = ls_value_add(&cx, g, LS_V_INPUT, name, LS_REAL, &s, NULL);
    list[g->ninput++] = v;
    g->input = list;
    return v;
}

/* A graph with the input x. */
static LsValueId open_with(LsShape s)
{
    graph_open();
    cx.log = open_memstream(&log_text, &log_size);
    g->batch = B;
    return input("x", s);
}

static void close_all(void)
{
    fclose(cx.log);
    free(log_text);
    graph_close();
}

/* Attaches a loss to y. A text: the compiler says it, and the inputs are one sample; NULL: samples
 * they stay. */
static void expect(LsValueId y, const char *text)
{
    g->output = &y;
    g->noutput = 1;
    ck_assert(ls_is(y));
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_MSE}));
    fflush(cx.log);
    ck_assert_msg(text == NULL ? log_size == 0 : strstr(log_text, text) != NULL, "said: %s",
                  log_text);
    ck_assert_int_eq(g->batch, text == NULL ? B : 1);
    close_all();
}

#define MIXES "mixes the elements along the first axis of input 'x', whose 6 elements"
#define LEAVES "do not have the first axis of input 'x', whose 6 elements"

static LsValueId turn(LsValueId v) { return ls_transpose(&cx, g, v, (int[]){1, 0, 2}); }

static LsValueId product(LsValueId a, LsValueId b, bool trans_b)
{
    return ls_append2(&cx, g, LS_OP_MATMUL, a, b,
                      &(LsAttr){.gemm = {.trans_b = trans_b, .alpha = 1}});
}

static LsValueId softmax(LsValueId v, int axis)
{
    return ls_append1(&cx, g, LS_OP_SOFTMAX, v, &(LsAttr){.axis = {axis}});
}

static LsValueId reduce(LsValueId v, LsOpCode op, uint32_t axes)
{
    return ls_append1(&cx, g, op, v, &(LsAttr){.reduce = {.axes = axes, .keep = true}});
}

/* Rows of [N,T,C] attend to each other. */
static LsValueId attend(LsValueId v)
{
    return product(softmax(product(v, v, true), 2), v, false);
}

START_TEST(attention_over_the_first_axis_mixes)
{
    LsValueId x = open_with(SHAPE(B, T, C));
    expect(turn(attend(turn(x))), MIXES);
    x = open_with(SHAPE(B, T, C));
    expect(attend(x), NULL);
    x = open_with(SHAPE(B, T, C));      /* heads: [B,T,C] -> [B,2T,C/2] -> [2T,B,C/2] */
    LsValueId y = turn(attend(turn(ls_reshape(&cx, g, x, &SHAPE(B, 2 * T, C / 2)))));
    expect(ls_reshape(&cx, g, y, &SHAPE(B, T, C)), MIXES);
    x = open_with(SHAPE(B, T, C));      /* windows of two rows, which stay within a sample */
    y = attend(ls_reshape(&cx, g, x, &SHAPE(2 * B, T / 2, C)));
    expect(ls_reshape(&cx, g, y, &SHAPE(B, T, C)), NULL);
}
END_TEST

START_TEST(a_kernel_for_attention_is_read_like_its_parts)
{
    for (int token = 1; token < 3; token++) {
        LsValueId x = open_with(SHAPE(B, T, C));
        LsValueId q = token == 1 ? ls_reshape(&cx, g, x, &SHAPE(B, 1, T, C))
                                 : ls_reshape(&cx, g, turn(x), &SHAPE(T, 1, B, C));
        LsValueId y =
            ls_append3(&cx, g, LS_OP_ATTENTION, q, q, q, &(LsAttr){.attention = {.scale = 1}});
        y = ls_reshape(&cx, g, y, token == 1 ? &SHAPE(B, T, C) : &SHAPE(T, B, C));
        expect(token == 1 ? y : turn(y), token == 1 ? NULL : MIXES);
    }
}
END_TEST

START_TEST(sums_and_weights_along_the_first_axis_mix)
{
    LsValueId x = open_with(SHAPE(B, T, C));
    expect(softmax(x, 0), MIXES);
    x = open_with(SHAPE(B, T, C));
    expect(softmax(x, 1), NULL);
    x = open_with(SHAPE(B, T, C));
    expect(ls_append1(&cx, g, LS_OP_CUM_SUM, x, &(LsAttr){.scan = {.axis = 0}}), MIXES);
    x = open_with(SHAPE(B, C));         /* a weight for each element of the axis */
    expect(product(param("w", SHAPE(B, B)), x, false), MIXES);
    x = open_with(SHAPE(B, C));
    expect(product(x, param("w", SHAPE(C, 3)), false), NULL);
    x = open_with(SHAPE(B, T, C));      /* steps as the length of a convolution */
    LsWindowAttr window = {.n = 1,
                           .kernel = {3},
                           .stride = {1},
                           .dilation = {1},
                           .pad_lo = {1},
                           .pad_hi = {1},
                           .group = 1};
    LsValueId y = ls_transpose(&cx, g, x, (int[]){1, 2, 0});
    y = ls_append2(&cx, g, LS_OP_CONV, y, param("w", SHAPE(C, C, 3)), &(LsAttr){.window = window});
    expect(ls_transpose(&cx, g, y, (int[]){2, 0, 1}), MIXES);
}
END_TEST

START_TEST(an_output_begins_with_the_samples)
{
    LsValueId x = open_with(SHAPE(B, B, C));
    expect(turn(x), LEAVES);
    x = open_with(SHAPE(B, B, C));
    expect(ls_reshape(&cx, g, reduce(x, LS_OP_REDUCE_MEAN, 1), &SHAPE(B, C)), LEAVES);
    x = open_with(SHAPE(B, B, C));
    expect(ls_reshape(&cx, g, ls_slice_axis(&cx, g, x, 0, B - 1, B), &SHAPE(B, C)), LEAVES);
    x = open_with(SHAPE(B, B, C));
    expect(ls_reshape(&cx, g, reduce(x, LS_OP_REDUCE_MEAN, 2), &SHAPE(B, C)), NULL);
}
END_TEST

START_TEST(statistics_of_a_batch_and_pairs_of_samples_are_no_mixing)
{
    LsValueId x = open_with(SHAPE(B, C));
    expect(ls_append2(&cx, g, LS_OP_SUB, x, reduce(x, LS_OP_REDUCE_MEAN, 1), NULL), NULL);
    x = open_with(SHAPE(B, C));
    LsValueId z = input("z", SHAPE(B, C));
    expect(softmax(product(x, z, true), 1), NULL);
    x = open_with(SHAPE(B, C));         /* the pairs weigh samples: attention */
    expect(product(softmax(product(x, x, true), 1), x, false), MIXES);
}
END_TEST

/* Messages between the nodes of a graph: h[edge] added to the nodes that edges end at. */
START_TEST(nodes_of_a_graph_are_no_samples)
{
    LsValueId x = open_with(SHAPE(B, C));
    LsValueId edge = input("edges", SHAPE(7));
    g->value[edge.i].type = LS_I64;
    const LsAttr at = {.gather = {.axis = 0, .x = SHAPE(B, C), .how = LS_SCATTER_ADD}};
    LsValueId h = ls_append2(&cx, g, LS_OP_GATHER, x, edge, &at);
    LsValueId zero =
        ls_const_add(&cx, g, LS_REAL, &SHAPE(B, C), ls_arena_alloc(cx.arena, B * C, sizeof(float)));
    expect(ls_append3(&cx, g, LS_OP_SCATTER, h, edge, zero, &at), LEAVES);
    LsValueId token = open_with(SHAPE(B, T));
    g->value[token.i].type = LS_I64;
    expect(ls_append2(&cx, g, LS_OP_GATHER, param("table", SHAPE(9, C)), token,
                      &(LsAttr){.gather = {.axis = 0}}),
           NULL);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("sample_axis");
    const TTest *const test[] = {
        attention_over_the_first_axis_mixes,
        a_kernel_for_attention_is_read_like_its_parts,
        sums_and_weights_along_the_first_axis_mix,
        an_output_begins_with_the_samples,
        statistics_of_a_batch_and_pairs_of_samples_are_no_mixing,
        nodes_of_a_graph_are_no_samples,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("sample_axis", tc);
}
