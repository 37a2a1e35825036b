/* tests/compiler/test_onnx_reject_data.c -- tensors with wrong sizes or data, or with data in a
 * forbidden place, end in an error that names them. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

START_TEST(two_initializers_of_one_name_are_refused)
{
    make_weight(&mk, "w", "3x4", 12);
    refuse(LS_E_NAME, LS_EXIT_MODEL, "'w' is made twice; it is also an initializer");
}
END_TEST

START_TEST(dimensions_that_overflow_are_refused)
{
    mk.g->initializer[0]->dims[0] = INT64_C(1) << 40;
    mk.g->initializer[0]->dims[1] = INT64_C(1) << 40;
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "more elements than any machine holds");
}
END_TEST

START_TEST(negative_dimensions_are_refused)
{
    mk.g->initializer[0]->dims[0] = -3;
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "tensor 'w' has dimension -3");
}
END_TEST

START_TEST(a_rank_that_is_not_handled_is_named)
{
    make_weight(&mk, "deep", "1x1x1x1x1x1x1x1x1", 1);
    make_node(&mk, "Add", "h deep", "z");
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "tensor 'deep' has rank 9");
}
END_TEST

START_TEST(data_of_the_wrong_length_gives_both_lengths)
{
    mk.g->initializer[0]->raw_data.len = 44;
    refuse(LS_E_DATA, LS_EXIT_MODEL, "'w' (float 3x4) needs 48 bytes of data, the file has 44");
}
END_TEST

START_TEST(typed_data_of_the_wrong_length_is_refused)
{
    Onnx__TensorProto *t = mk.g->initializer[0];
    t->has_raw_data = false;
    t->n_float_data = 11;
    t->float_data = ls_arena_alloc(mk.cx.arena, 11, sizeof(float));
    refuse(LS_E_DATA, LS_EXIT_MODEL, "needs 48 bytes of data, the file has 44");
}
END_TEST

START_TEST(external_data_above_the_model_is_refused)
{
    make_external(&mk, mk.g->initializer[0], "../w.bin", NULL);
    refuse(LS_E_DATA, LS_EXIT_MODEL, "outside the model's folder: '../w.bin'");
}
END_TEST

START_TEST(external_data_that_climbs_midway_is_refused)
{
    make_external(&mk, mk.g->initializer[0], "a/../../w.bin", NULL);
    refuse(LS_E_DATA, LS_EXIT_MODEL, "outside the model's folder");
}
END_TEST

START_TEST(external_data_at_an_absolute_path_is_refused)
{
    make_external(&mk, mk.g->initializer[0], "/etc/hostname", NULL);
    refuse(LS_E_DATA, LS_EXIT_MODEL, "outside the model's folder: '/etc/hostname'");
}
END_TEST

START_TEST(external_data_behind_a_link_that_leads_out_is_refused)
{
    char link[128];
    snprintf(link, sizeof link, "%s/w.bin", mk.dir);
    ck_assert_int_eq(symlink("/etc/hostname", link), 0);
    make_external(&mk, mk.g->initializer[0], "w.bin", NULL);
    refuse(LS_E_DATA, LS_EXIT_MODEL, "outside the model's folder: 'w.bin'");
}
END_TEST

START_TEST(external_data_past_the_end_of_its_file_is_refused)
{
    make_file(&mk, "w.bin", (char[60]){0}, 60);
    make_external(&mk, mk.g->initializer[0], "w.bin", "16");
    refuse(LS_E_DATA, LS_EXIT_MODEL, "needs 48 bytes at offset 16");
}
END_TEST

START_TEST(external_data_at_an_offset_that_is_no_number_is_refused)
{
    make_file(&mk, "w.bin", (char[60]){0}, 60);
    make_external(&mk, mk.g->initializer[0], "w.bin", "-8");
    refuse(LS_E_DATA, LS_EXIT_MODEL, "offset '-8'");
}
END_TEST

START_TEST(external_data_that_is_missing_is_reported_once)
{
    make_weight(&mk, "v", "4", 4);
    make_node(&mk, "Add", "h v", "z");
    make_external(&mk, mk.g->initializer[0], "w.bin", NULL);
    make_external(&mk, mk.g->initializer[1], "w.bin", "48");
    refuse(LS_E_DATA, LS_EXIT_MODEL, "the data of 2 tensors lies in it ('w', ...)");
    ck_assert_int_eq(mk.cx.nerror, 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("reject_data");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        two_initializers_of_one_name_are_refused,
        dimensions_that_overflow_are_refused,
        negative_dimensions_are_refused,
        a_rank_that_is_not_handled_is_named,
        data_of_the_wrong_length_gives_both_lengths,
        typed_data_of_the_wrong_length_is_refused,
        external_data_above_the_model_is_refused,
        external_data_that_climbs_midway_is_refused,
        external_data_at_an_absolute_path_is_refused,
        external_data_behind_a_link_that_leads_out_is_refused,
        external_data_past_the_end_of_its_file_is_refused,
        external_data_at_an_offset_that_is_no_number_is_refused,
        external_data_that_is_missing_is_reported_once,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("reject_data", tc);
}
