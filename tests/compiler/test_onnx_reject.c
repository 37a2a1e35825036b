/* tests/compiler/test_onnx_reject.c -- broken models end in an error that names what is wrong. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

static void refuse_bytes(const void *bytes, size_t n, const char *says)
{
    make_write(&mk, bytes, n);
    ck_assert_ptr_null(ls_onnx_import(&mk.cx, mk.path, &mk.o));
    ck_assert_msg(strstr(make_log(&mk), says) != NULL, "not said: %s\nbut: %s", says,
                  make_log(&mk));
    ck_assert_int_eq(mk.cx.exit_code, LS_EXIT_MODEL);
}

START_TEST(the_model_they_all_start_from_is_read)
{
    LsGraph *g = make_import(&mk);
    ck_assert_msg(g != NULL, "%s", make_log(&mk));
    ck_assert(ls_verify(&mk.cx, g));
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    ck_assert_ptr_null(ls_onnx_import(&mk.cx, "/nonexistent/m.onnx", &mk.o));
    ck_assert_int_eq(mk.cx.last, LS_E_IO);
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "/nonexistent/m.onnx"));
}
END_TEST

START_TEST(a_folder_is_not_a_model)
{
    ck_assert_ptr_null(ls_onnx_import(&mk.cx, mk.dir, &mk.o));
    ck_assert_int_eq(mk.cx.last, LS_E_IO);
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "is a directory"));
}
END_TEST

START_TEST(an_empty_file_is_refused) { refuse_bytes("", 0, "is empty"); } END_TEST

START_TEST(bytes_that_are_not_protobuf_are_refused)
{
    const char text[] = "%PDF-1.4 this is no model at all, but somebody renamed it";
    refuse_bytes(text, sizeof text, "not an ONNX model");
    ck_assert_int_eq(mk.cx.last, LS_E_PARSE);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    unsigned char *bytes;
    size_t n = make_pack(&mk, &bytes);
    for (size_t cut = 1; cut < n; cut++) {
        make_write(&mk, bytes, cut);
        ck_assert_msg(ls_onnx_import(&mk.cx, mk.path, &mk.o) == NULL, "%zu of %zu bytes", cut, n);
    }
}
END_TEST

START_TEST(nesting_deeper_than_any_model_is_refused)
{
    /* graph { node { attribute { g { node { ... : each level is one length-prefixed field */
    enum { LEVELS = 300 };
    static const unsigned char key[3] = {1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2};
    unsigned char bytes[6 * LEVELS];
    size_t at = sizeof bytes;
    for (int level = LEVELS - 1; level >= 0; level--) {
        size_t len = sizeof bytes - at;
        unsigned char head[4] = {level == 0 ? 7 << 3 | 2 : key[(level - 1) % 3],
                                 (unsigned char)(len & 127), (unsigned char)(len >> 7)};
        bool wide = len > 127;
        head[1] |= wide ? 128 : 0;
        at -= wide ? 3 : 2;
        memcpy(bytes + at, head, wide ? 3 : 2);
    }
    refuse_bytes(bytes + at, sizeof bytes - at, "nested deeper");
}
END_TEST

START_TEST(a_file_without_a_graph_is_refused)
{
    refuse_bytes("\x08\x08", 2, "no graph");
}
END_TEST

START_TEST(an_opset_that_is_too_new_names_the_limit)
{
    mk.m->opset_import[0]->version = 29;
    refuse(LS_E_VERSION, LS_EXIT_MODEL, "uses opset 29; 7 to 28 are read");
}
END_TEST

START_TEST(an_opset_that_is_too_old_names_the_limit)
{
    mk.m->opset_import[0]->version = 6;
    refuse(LS_E_VERSION, LS_EXIT_MODEL, "uses opset 6; 7 to 28 are read");
}
END_TEST

START_TEST(a_model_without_opset_is_refused)
{
    mk.m->n_opset_import = 0;
    refuse(LS_E_VERSION, LS_EXIT_MODEL, "which opset");
}
END_TEST

START_TEST(an_unknown_ir_version_is_refused)
{
    mk.m->ir_version = 99;
    refuse(LS_E_VERSION, LS_EXIT_MODEL, "IR version 99");
}
END_TEST

START_TEST(nodes_in_a_circle_are_named)
{
    make_node(&mk, "Add", "h b", "a")->name = "first";
    make_node(&mk, "Relu", "a", "b")->name = "second";
    refuse(LS_E_CYCLE, LS_EXIT_MODEL, "'first' (Add)");
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "'second' (Relu)"));
}
END_TEST

START_TEST(an_operand_that_nothing_makes_is_named)
{
    make_node(&mk, "Add", "h ghost", "z")->name = "lonely";
    refuse(LS_E_NAME, LS_EXIT_MODEL,
           "node 2 'lonely' (Add): error LS-E0004: operand 1 reads 'ghost'");
}
END_TEST

START_TEST(an_output_that_nothing_makes_is_named)
{
    make_output(&mk, "nowhere");
    refuse(LS_E_NAME, LS_EXIT_MODEL, "graph output 'nowhere'");
}
END_TEST

START_TEST(a_name_made_twice_names_both_makers)
{
    mk.g->node[0]->name = "one";
    make_node(&mk, "Tanh", "x", "h")->name = "two";
    refuse(LS_E_NAME, LS_EXIT_MODEL, "'h' is made twice");
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "'two'"));
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "node 0 'one'"));
}
END_TEST

START_TEST(two_inputs_of_one_name_are_refused)
{
    make_input(&mk, "x", "2x3");
    refuse(LS_E_NAME, LS_EXIT_MODEL, "two graph inputs are called 'x'");
}
END_TEST

START_TEST(an_input_too_large_for_any_memory_is_refused)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "4611686018427387904x3");
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "input 'x' has too many elements");
}
END_TEST

START_TEST(negative_input_dimensions_are_refused)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "-7x3");
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "input 'x' has dimension -7");
}
END_TEST

START_TEST(a_result_does_not_take_the_name_of_a_weight)
{
    make_node(&mk, "Neg", "h", "w");
    refuse(LS_E_NAME, LS_EXIT_MODEL, "'w' is made twice");
}
END_TEST

START_TEST(unknown_operators_are_listed_with_counts)
{
    make_node(&mk, "Frobnicate", "h", "f1")->name = "frob";
    make_node(&mk, "Frobnicate", "f1", "f2");
    make_node(&mk, "Gallop", "f2", "f3");
    ck_assert_ptr_null(make_import(&mk));
    ck_assert_int_eq(mk.cx.last, LS_E_UNSUPPORTED);
    ck_assert_int_eq(mk.cx.exit_code, LS_EXIT_UNSUPPORTED);
    ck_assert_int_eq(mk.cx.nerror, 2);
    ck_assert_ptr_nonnull(strstr(make_log(&mk),
                                 "operator Frobnicate is not supported (2 nodes, the first is node "
                                 "2 'frob')"));
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "operator Gallop"));
}
END_TEST

START_TEST(operators_of_other_domains_are_named_with_the_domain)
{
    make_node(&mk, "Relu", "h", "z")->domain = "com.example";
    refuse(LS_E_UNSUPPORTED, LS_EXIT_UNSUPPORTED, "com.example.Relu");
}
END_TEST

START_TEST(an_unbound_dimension_names_the_flag)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "Nx3");
    refuse(LS_E_DIM, LS_EXIT_MODEL, "input 'x' (Nx3) has dimensions without a size");
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "--dim N=SIZE"));
}
END_TEST

START_TEST(every_unbound_dimension_is_reported_at_once)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "NxC");
    make_input(&mk, "u", "Nx?xT");
    make_node(&mk, "Relu", "u", "z");
    ck_assert_ptr_null(make_import(&mk));
    ck_assert_int_eq(mk.cx.nerror, 2);
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "--dim N=SIZE --dim C=SIZE"));
}
END_TEST

START_TEST(an_input_without_a_shape_asks_for_one)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, NULL);
    refuse(LS_E_DIM, LS_EXIT_MODEL, "no shape in the file");
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "--shape x="));
}
END_TEST

START_TEST(a_dim_flag_for_no_dimension_lists_those_there_are)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "batchx3");
    mk.o.dim = (LsDim[]){{"N", 2}, {"batch", 2}};
    mk.o.ndim = 2;
    refuse(LS_E_OPTION, LS_EXIT_USAGE,
           "--dim N: no input has a dimension of that name; there are: batch");
}
END_TEST

START_TEST(a_shape_flag_against_the_file_gives_both)
{
    mk.o.shape = &(LsShapeBinding){"x", {2, {2, 5}}};
    mk.o.nshape = 1;
    refuse(LS_E_OPTION, LS_EXIT_USAGE, "--shape x=2x5 does not fit the file, which has 2x3");
}
END_TEST

START_TEST(a_batch_against_a_fixed_dimension_is_refused)
{
    mk.o.batch = 7;
    refuse(LS_E_OPTION, LS_EXIT_USAGE, "fixes the first dimension of 'x' at 2");
}
END_TEST

START_TEST(a_fixed_batch_is_that_of_a_part_or_is_cut)
{
    mk.o.parts = 4;
    mk.o.batch = 6;
    refuse(LS_E_OPTION, LS_EXIT_USAGE,
           "fixes the first dimension of 'x' at 2, so that a batch of 4 parts has 8 samples");
    refuse(LS_E_OPTION, LS_EXIT_USAGE, "give --batch 8, or none; or --batch 2");
}
END_TEST

START_TEST(an_input_of_strings_is_refused)
{
    mk.g->input[0] = make_value(&mk, "x", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, "2x3");
    refuse(LS_E_TYPE, LS_EXIT_MODEL, "input 'x' has element type string");
}
END_TEST

START_TEST(operands_whose_shapes_do_not_fit_are_refused)
{
    make_weight(&mk, "v", "5x7", 35);
    make_node(&mk, "MatMul", "h v", "z")->name = "wrong";
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "node 2 'wrong' (MatMul)");
}
END_TEST

START_TEST(an_attribute_of_the_wrong_type_is_refused)
{
    Onnx__NodeProto *p = make_node(&mk, "Flatten", "h", "z");
    p->name = "flat";
    make_float(&mk, p, "axis", 1);
    refuse(LS_E_ATTR, LS_EXIT_MODEL, "node 2 'flat' (Flatten)");
    ck_assert_ptr_nonnull(
        strstr(make_log(&mk), "attribute 'axis' is a float, it must be an integer"));
}
END_TEST

START_TEST(problems_come_sorted_by_node_and_all_at_once)
{
    make_weight(&mk, "v", "5x7", 35);
    make_node(&mk, "MatMul", "h v", "z1")->name = "bad2";
    make_node(&mk, "Add", "h ghost", "z2")->name = "bad3";
    make_node(&mk, "MatMul", "x v", "z3")->name = "bad4";
    make_node(&mk, "Relu", "z1", "z4")->name = "innocent";
    ck_assert_ptr_null(make_import(&mk));
    const char *log = make_log(&mk);
    const char *a = strstr(log, "'bad2'"), *b = strstr(log, "'bad3'"), *c = strstr(log, "'bad4'");
    ck_assert(a != NULL && b != NULL && c != NULL);
    ck_assert_msg(a < b && b < c, "%s", log);
    ck_assert_ptr_null(strstr(log, "'innocent'"));
    ck_assert_int_eq(mk.cx.nerror, 3);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("reject");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        the_model_they_all_start_from_is_read,
        a_missing_file_is_named,
        a_folder_is_not_a_model,
        an_empty_file_is_refused,
        bytes_that_are_not_protobuf_are_refused,
        every_truncation_is_refused,
        nesting_deeper_than_any_model_is_refused,
        a_file_without_a_graph_is_refused,
        an_opset_that_is_too_new_names_the_limit,
        an_opset_that_is_too_old_names_the_limit,
        a_model_without_opset_is_refused,
        an_unknown_ir_version_is_refused,
        nodes_in_a_circle_are_named,
        an_operand_that_nothing_makes_is_named,
        an_output_that_nothing_makes_is_named,
        a_name_made_twice_names_both_makers,
        two_inputs_of_one_name_are_refused,
        an_input_too_large_for_any_memory_is_refused,
        negative_input_dimensions_are_refused,
        a_result_does_not_take_the_name_of_a_weight,
        unknown_operators_are_listed_with_counts,
        operators_of_other_domains_are_named_with_the_domain,
        an_unbound_dimension_names_the_flag,
        every_unbound_dimension_is_reported_at_once,
        an_input_without_a_shape_asks_for_one,
        a_dim_flag_for_no_dimension_lists_those_there_are,
        a_shape_flag_against_the_file_gives_both,
        a_batch_against_a_fixed_dimension_is_refused, a_fixed_batch_is_that_of_a_part_or_is_cut,
        an_input_of_strings_is_refused,
        operands_whose_shapes_do_not_fit_are_refused,
        an_attribute_of_the_wrong_type_is_refused,
        problems_come_sorted_by_node_and_all_at_once,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("reject", tc);
}
