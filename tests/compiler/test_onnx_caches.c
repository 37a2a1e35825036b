/* tests/compiler/test_onnx_caches.c -- inputs of past keys and values: which ones are without
 * tokens, what depends on them, and what becomes of outputs with the new tokens. */
#include "compiler/ir/graph.h"
#include "compiler/onnx/onnx_decisions.h"
#include "compiler/onnx/onnx_import.h"
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

/* present = Concat(CACHE, x w) and y = Relu(present); the tokens, and a mask of all of them. */
static void model(const char *cache, const char *dims, int axis)
{
    mk.g->n_input = mk.g->n_node = mk.g->n_output = mk.g->n_initializer = 0;
    make_input(&mk, "x", axis == 1 ? "BxTx4" : "Bx2xTx4");
    make_input(&mk, "input_ids", "BxT");
    make_input(&mk, "attention_mask", "Bxtotal_sequence_length");
    make_input(&mk, cache, dims);
    make_weight(&mk, "w", "4x4", 16);
    make_node(&mk, "MatMul", "x w", "h");
    char *operands = ls_arena_printf(mk.cx.arena, "%s h", cache);
    make_int(&mk, make_node(&mk, "Concat", operands, "present.0.key"), "axis", axis);
    make_node(&mk, "Relu", "present.0.key", "y");
    make_output(&mk, "y");
    make_output(&mk, "present.0.key");
}

static LsDim dims[4];

/* --dim NAME=SIZE, beside those before. */
static void bind(const char *name, int64_t size)
{
    dims[mk.o.ndim++] = (LsDim){name, size};
    mk.o.dim = dims;
}

static bool is_input(const LsGraph *g, const char *name)
{
    for (uint32_t k = 0; k < g->ninput; k++)
        if (strcmp(g->value[g->input[k].i].name, name) == 0)
            return true;
    return false;
}

static bool said(const char *text) { return strstr(make_log(&mk), text) != NULL; }

static const struct { const char *name, *dims; int axis; } caches[] = {
    {"past_key_values.0.key", "Bx2xpast_sequence_lengthx4", 2},
    {"past_key_values.0.key", "Bx2xLx4", 2},            /* by its name */
    {"k", "Bxpast_seq_lenx4", 1},                       /* by that of its length */
    {"past_key_values.0.key", "Bx2xpast_sequence_lengthxopen", 2},
};

START_TEST(caches_have_no_tokens)
{
    model(caches[_i].name, caches[_i].dims, caches[_i].axis);
    bind("B", 2);
    bind("T", 5);
    LsGraph *g = import_well();
    ck_assert(!is_input(g, caches[_i].name) && is_input(g, "x"));
    ck_assert_int_eq(ls_shape(g, named(g, "attention_mask"))->dim[1], 5);
    ck_assert_int_eq(ls_shape(g, named(g, "y"))->dim[caches[_i].axis], 5);
    ck_assert_int_eq(g->noutput, 1);
    ck_assert_str_eq(g->value[g->output[0].i].name, "y");
    ck_assert(said("1 input of past keys and values has no tokens, and 1 output with the new ones "
                   "is left out"));
    ck_assert_int_eq(g->source.decisions->nempty, 1);
    ck_assert_int_eq(g->source.decisions->nextended, 1);
}
END_TEST

/* Its length decides, by --dim or by --shape. */
START_TEST(caches_with_a_length_are_inputs)
{
    static LsShapeBinding shape = {"past_key_values.0.key", {4, {2, 2, 3, 4}}};
    model(caches[_i].name, caches[_i].dims, caches[_i].axis);
    bind("B", 2);
    bind("T", 5);
    bind("total_sequence_length", 8);
    if (_i == 0)
        bind("past_sequence_length", 3);
    if (_i == 1) {
        mk.o.shape = &shape;
        mk.o.nshape = 1;
    }
    LsGraph *g = import_well();
    ck_assert(is_input(g, caches[_i].name));
    ck_assert_int_eq(ls_shape(g, named(g, "y"))->dim[2], 8);
    ck_assert_int_eq(g->noutput, 2);
    ck_assert(!said("past keys and values"));
}
END_TEST

static const struct { const char *name, *dims; } others[] = {
    {"past_key_values.0.encoder.key", "Bx2xLx4"},       /* of another sequence */
    {"past_key_values.0.key", "Bx2x3x4"},               /* the file fixes the length */
    {"cache", "Bx2xLx4"},
};

START_TEST(other_inputs_stay)
{
    model(others[_i].name, others[_i].dims, 2);
    bind("B", 2);
    bind("T", 5);
    bind("total_sequence_length", 8);
    if (_i != 1)
        bind("L", 3);
    LsGraph *g = import_well();
    ck_assert(is_input(g, others[_i].name));
    ck_assert_int_eq(g->noutput, 2);
}
END_TEST

START_TEST(lengths_that_other_inputs_lack_are_asked_for)
{
    model("past_key_values.0.encoder.key", "Bx2xLx4", 2);
    bind("B", 2);
    bind("T", 5);
    refuse(LS_E_DIM, 1, "input 'attention_mask' (2xtotal_sequence_length) has dimensions without");
    ck_assert(said("input 'past_key_values.0.encoder.key' (2x2xLx4) has dimensions without"));
}
END_TEST

START_TEST(sums_of_past_and_new_tokens_are_new_ones)
{
    model("past_key_values.0.key", "Bx2xpast_sequence_lengthx4", 2);
    mk.g->input[2] = make_value(&mk, "attention_mask", MAKE_I64, "Bxpast_sequence_length + T");
    mk.g->input[1] = make_value(&mk, "input_ids", MAKE_I64, "Bx7");
    bind("B", 2);
    bind("T", 5);
    LsGraph *g = import_well();
    ck_assert_int_eq(ls_shape(g, named(g, "attention_mask"))->dim[1], 7);
}
END_TEST

/* What a file computes from a dimension that nothing gives is not guessed. */
START_TEST(unknown_dimensions_are_not_guessed)
{
    model("past_key_values.0.key", "Bx2xpast_sequence_lengthxopen", 2);
    make_node(&mk, "Shape", "past_key_values.0.key", "s");
    int64_t three = 3;
    Onnx__TensorProto *t = make_tensor(&mk, "three", MAKE_I64, "1", &three, sizeof three);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
    make_node(&mk, "Gather", "s three", "width");
    make_node(&mk, "ConstantOfShape", "width", "zeros");
    make_node(&mk, "Add", "y zeros", "z");
    mk.g->n_output = 0;
    make_output(&mk, "z");
    bind("B", 2);
    bind("T", 5);
    refuse(LS_E_SHAPE, 1, "2x2x5x4 and 0 do not broadcast");
}
END_TEST

START_TEST(the_switch_is_off_where_caches_are_empty)
{
    model("past_key_values.0.key", "Bx2xpast_sequence_lengthx4", 2);
    Onnx__ValueInfoProto *v =
        make_value(&mk, "use_cache_branch", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, "1");
    MAKE_PUSH(&mk, mk.g->input, mk.g->n_input, v);
    make_node(&mk, "Where", "use_cache_branch h y", "z");
    mk.g->n_output = 0;
    make_output(&mk, "z");
    bind("B", 2);
    bind("T", 5);
    LsGraph *g = import_well();
    ck_assert(!is_input(g, "use_cache_branch"));
    LsValueId off = named(g, "use_cache_branch");
    ck_assert(ls_is_const(g, off) && ls_const_at(g, off, 0) == 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, caches_have_no_tokens, 0, sizeof caches / sizeof *caches);
    tcase_add_loop_test(tc, caches_with_a_length_are_inputs, 0, 2);
    tcase_add_loop_test(tc, other_inputs_stay, 0, sizeof others / sizeof *others);
    tcase_add_test(tc, lengths_that_other_inputs_lack_are_asked_for);
    tcase_add_test(tc, sums_of_past_and_new_tokens_are_new_ones);
    tcase_add_test(tc, unknown_dimensions_are_not_guessed);
    tcase_add_test(tc, the_switch_is_off_where_caches_are_empty);
    return run_tests("onnx_caches", tc);
}
