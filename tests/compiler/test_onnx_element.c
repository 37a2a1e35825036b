/* tests/compiler/test_onnx_element.c -- element types without an IR type of their own: integers
 * wrap at their width, a cast to 16 bits rounds, and casts that change nothing cost nothing. */
#include "compiler/fold/append.h"
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

#define DT(code) ONNX__TENSOR_PROTO__DATA_TYPE__##code

/* A model whose only operands are constants of this type; `op` reads a and b. */
static void binary(const char *op, int type, const char *dims, const void *a, const void *b,
                   size_t bytes)
{
    mk.g->n_node = mk.g->n_input = mk.g->n_initializer = mk.g->n_output = 0;
    mk.m->opset_import[0]->version = 18;
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, "a", type, dims, a, bytes));
    if (b != NULL)
        MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
                  make_tensor(&mk, "b", type, dims, b, bytes));
    if (op != NULL)
        make_node(&mk, op, b != NULL ? "a b" : "a", "y");
    MAKE_PUSH(&mk, mk.g->output, mk.g->n_output, make_value(&mk, "y", type, NULL));
}

static void expect(int n, const double *want)
{
    LsGraph *g = import_well();
    LsValueId y = named(g, "y");
    ck_assert(ls_is_const(g, y));
    for (int i = 0; i < n; i++)
        ck_assert_msg(ls_const_at(g, y, i) == want[i], "element %d is %g, not %g", i,
                      ls_const_at(g, y, i), want[i]);
}
#define EXPECT(...) expect(sizeof (double[]){__VA_ARGS__} / 8, (double[]){__VA_ARGS__})

START_TEST(integers_wrap_at_their_width)
{
    binary("Sub", DT(UINT8), "2", (uint8_t[]){3, 9}, (uint8_t[]){5, 4}, 2);
    EXPECT(254, 5);
    binary("Add", DT(INT8), "3", (int8_t[]){100, -100, 1}, (int8_t[]){100, -100, 2}, 3);
    EXPECT(-56, 56, 3);
    binary("Mul", DT(INT16), "2", (int16_t[]){300, -7}, (int16_t[]){300, 3}, 4);
    EXPECT(24464, -21);
    binary("Add", DT(UINT16), "1", (uint16_t[]){65535}, (uint16_t[]){2}, 2);
    EXPECT(1);
    binary("Sub", DT(UINT32), "2", (uint32_t[]){1, 8}, (uint32_t[]){2, 3}, 8);
    EXPECT(4294967295.0, 5);
    binary("BitwiseNot", DT(UINT8), "2", (uint8_t[]){0, 250}, NULL, 2);
    EXPECT(255, 5);
    binary("Max", DT(UINT8), "1", (uint8_t[]){200}, (uint8_t[]){7}, 1);
    EXPECT(200);
}
END_TEST

START_TEST(a_shift_leaves_the_bits_of_its_type)
{
    binary(NULL, DT(UINT8), "3", (uint8_t[]){200, 1, 1}, (uint8_t[]){1, 7, 8}, 3);
    Onnx__NodeProto *p = make_node(&mk, "BitShift", "a b", "y");
    Onnx__AttributeProto *way =
        make_attr(&mk, p, "direction", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    way->has_s = true;
    way->s = (ProtobufCBinaryData){4, (uint8_t *)"LEFT"};
    EXPECT(144, 128, 0);
}
END_TEST

static void cast(int from, int to, const char *dims, const void *a, size_t bytes)
{
    binary(NULL, from, dims, a, NULL, bytes);
    mk.g->output[0]->type->tensor_type->elem_type = to;
    make_int(&mk, make_node(&mk, "Cast", "a", "y"), "to", to);
}

START_TEST(casts_cut_integers_to_the_width_of_the_type)
{
    static const int64_t wide[] = {300, -1, 200};
    cast(DT(INT64), DT(UINT8), "3", wide, sizeof wide);
    EXPECT(44, 255, 200);
    cast(DT(INT64), DT(INT8), "3", wide, sizeof wide);
    EXPECT(44, -1, -56);
    cast(DT(INT64), DT(UINT16), "3", wide, sizeof wide);
    EXPECT(300, 65535, 200);
    cast(DT(INT64), DT(UINT32), "3", wide, sizeof wide);
    EXPECT(300, 4294967295.0, 200);
    cast(DT(INT8), DT(UINT8), "2", (int8_t[]){-1, 5}, 2);
    EXPECT(255, 5);
    cast(DT(UINT8), DT(FLOAT), "2", (uint8_t[]){255, 5}, 2);
    EXPECT(255, 5);
}
END_TEST

/* A constant by way of a node: an initializer of reals is trained. */
static void real_cast(int to, int n, const float *x)
{
    char dims[8];
    snprintf(dims, sizeof dims, "%d", n);
    cast(DT(FLOAT), to, dims, x, (size_t)n * 4);
    mk.g->n_initializer = 0;
    make_tensor_attr(&mk, make_node(&mk, "Constant", "", "a"), "value",
                     make_tensor(&mk, "v", DT(FLOAT), dims, x, (size_t)n * 4));
}

START_TEST(casts_of_reals_cut_and_round_to_nearest_even)
{
    real_cast(DT(FLOAT16), 7, (float[]){0.1f, 65519, 65520, -1e9f, 2049, 2051, 3e-8f});
    EXPECT(0.0999755859375, 65504, INFINITY, -INFINITY, 2048, 2052, 5.9604644775390625e-08);
    real_cast(DT(UINT8), 2, (float[]){2.9f, 255});
    EXPECT(2, 255);
    real_cast(DT(BFLOAT16), 3, (float[]){0.1f, 257, 259});
    EXPECT(0.10009765625, 256, 260);
}
END_TEST

static uint32_t roundings(const LsGraph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == LS_OP_ROUND_HALF;
    return n;
}

START_TEST(a_cast_there_and_back_rounds_once_and_passes_the_gradient)
{
    make_int(&mk, make_node(&mk, "Cast", "y", "half"), "to", DT(FLOAT16));
    make_int(&mk, make_node(&mk, "Cast", "half", "again"), "to", DT(FLOAT16));
    make_int(&mk, make_node(&mk, "Cast", "again", "back"), "to", DT(FLOAT));
    make_output(&mk, "back");
    LsGraph *g = import_well();
    ck_assert_uint_eq(roundings(g), 1);
    LsShape s = *ls_shape(g, named(g, "back"));
    LsValueId sum = ls_append1(&mk.cx, g, LS_OP_REDUCE_SUM, named(g, "back"),
                               &(LsAttr){.reduce = {.axes = 3, .keep = true}});
    ck_assert_int_eq(s.rank, 2);
    g->objective.loss = ls_reshape(&mk.cx, g, sum, &(LsShape){0});
    ck_assert_msg(ls_autodiff(&mk.cx, g), "%s", make_log(&mk));
    ck_assert_uint_eq(g->ngrad, 1);
    ck_assert_uint_eq(roundings(g), 1);
}
END_TEST

START_TEST(dtype_is_the_type_of_the_result)
{
    MAKE_PUSH(&mk, mk.g->input, mk.g->n_input, make_value(&mk, "d", DT(DOUBLE), "2x4"));
    make_int(&mk, make_node(&mk, "RandomNormalLike", "d", "noise"), "dtype", DT(FLOAT));
    make_node(&mk, "Add", "y noise", "z");
    make_output(&mk, "z");
    import_well();
}
END_TEST

START_TEST(a_cast_to_a_wider_type_is_no_node)
{
    make_int(&mk, make_node(&mk, "Cast", "y", "twice"), "to", DT(DOUBLE));
    make_int(&mk, make_node(&mk, "Cast", "twice", "back"), "to", DT(FLOAT));
    make_node(&mk, "Relu", "back", "z");
    make_output(&mk, "z");
    LsGraph *g = import_well();
    ck_assert_uint_eq(g->nnode, 1 + 3);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("onnx_element");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, integers_wrap_at_their_width);
    tcase_add_test(tc, a_shift_leaves_the_bits_of_its_type);
    tcase_add_test(tc, casts_cut_integers_to_the_width_of_the_type);
    tcase_add_test(tc, casts_of_reals_cut_and_round_to_nearest_even);
    tcase_add_test(tc, a_cast_there_and_back_rounds_once_and_passes_the_gradient);
    tcase_add_test(tc, dtype_is_the_type_of_the_result);
    tcase_add_test(tc, a_cast_to_a_wider_type_is_no_node);
    return run_tests("onnx_element", tc);
}
