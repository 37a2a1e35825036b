/* tests/compiler/test_onnx_external.c -- data files behind links: they are read if all of a model's
 * links end in one folder, as in model hubs; a link that leads elsewhere is refused with its
 * target. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

#include "compiler/inspect/onnx_inspect.h"

#include <sys/stat.h>

static char aside[96];          /* a folder beside the model's, whose name begins like it */

static const char *in(const char *dir, const char *name)
{
    return ls_arena_printf(mk.cx.arena, "%s/%s", dir, name);
}

static void make_aside(void)
{
    snprintf(aside, sizeof aside, "%s-evil", mk.dir);
    ck_assert_int_eq(mkdir(aside, 0700), 0);
}

static void remove_aside(void)
{
    ck_assert_int_eq(system(ls_arena_printf(mk.cx.arena, "rm -rf '%s'", aside)), 0);
}

static void put_weights(const char *path)
{
    float v[12];
    for (int i = 0; i < 12; i++)
        v[i] = (float)(10 + i);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(v, sizeof v, 1, f), 1);
    fclose(f);
}

static void link_to(const char *target, const char *name)
{
    ck_assert_int_eq(symlink(target, in(mk.dir, name)), 0);
}

static void data_in(const char *location)
{
    make_external(&mk, mk.g->initializer[0], location, NULL);
}

static void reads_well(void)
{
    LsGraph *g = import_well();
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 11), 21);
}

START_TEST(a_link_inside_the_folder_is_followed)
{
    ck_assert_int_eq(mkdir(in(mk.dir, "data"), 0700), 0);
    put_weights(in(mk.dir, "data/w"));
    link_to("data/w", "w.bin");
    data_in("w.bin");
    reads_well();
}
END_TEST

START_TEST(model_and_data_linked_into_one_folder_are_read)
{
    unsigned char *bytes;
    data_in("m.onnx_data");
    size_t n = make_pack(&mk, &bytes);
    ck_assert_int_eq(mkdir(in(mk.dir, "blobs"), 0700) | mkdir(in(mk.dir, "snap"), 0700), 0);
    make_file(&mk, "blobs/aaaa", bytes, n);
    put_weights(in(mk.dir, "blobs/bbbb"));
    link_to("../blobs/aaaa", "snap/m.onnx");
    link_to("../blobs/bbbb", "snap/m.onnx_data");
    LsGraph *g = ls_onnx_import(&mk.cx, in(mk.dir, "snap/m.onnx"), &mk.o);
    ck_assert_msg(g != NULL, "%s", make_log(&mk));
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 0), 10);
}
END_TEST

START_TEST(a_link_that_leads_out_is_refused_with_its_target)
{
    make_aside();
    put_weights(in(aside, "w"));
    const char *target = in(aside, "w");
    link_to(target, "w.bin");
    data_in("w.bin");
    refuse(LS_E_DATA, LS_EXIT_MODEL,
           ls_arena_printf(mk.cx.arena, "tensor 'w' lies outside the model's folder: 'w.bin' "
                           "('w.bin' is a symbolic link to '%s')", target));
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "copy the file beside the model"));
    remove_aside();
}
END_TEST

START_TEST(a_folder_that_leads_out_is_refused_with_its_target)
{
    make_aside();
    put_weights(in(aside, "w"));
    link_to(aside, "data");
    data_in("data/w");
    refuse(LS_E_DATA, LS_EXIT_MODEL, "'data/w' ('data' is a symbolic link to '");
    remove_aside();
}
END_TEST

START_TEST(a_model_that_is_no_link_opens_no_other_folder)
{
    ck_assert_int_eq(mkdir(in(mk.dir, "blobs"), 0700) | mkdir(in(mk.dir, "snap"), 0700), 0);
    unsigned char *bytes;
    data_in("w.bin");
    size_t n = make_pack(&mk, &bytes);
    make_file(&mk, "snap/m.onnx", bytes, n);
    put_weights(in(mk.dir, "blobs/bbbb"));
    link_to("../blobs/bbbb", "snap/w.bin");
    ck_assert_ptr_null(ls_onnx_import(&mk.cx, in(mk.dir, "snap/m.onnx"), &mk.o));
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "is a symbolic link to '../blobs/bbbb'"));
}
END_TEST

START_TEST(names_that_leave_the_folder_are_refused_though_the_file_exists)
{
    make_aside();
    put_weights(in(aside, "w"));
    data_in(in(aside, "w"));
    refuse(LS_E_DATA, LS_EXIT_MODEL, "outside the model's folder");
    mk.g->initializer[0]->n_external_data = 0;
    data_in(ls_arena_printf(mk.cx.arena, "../%s/w", strrchr(aside, '/') + 1));
    refuse(LS_E_DATA, LS_EXIT_MODEL, "outside the model's folder");
    mk.g->initializer[0]->n_external_data = 0;
    put_weights(in(mk.dir, "w"));
    data_in(ls_arena_printf(mk.cx.arena, "..%s/w", strrchr(mk.dir, '/')));     /* back in again */
    refuse(LS_E_DATA, LS_EXIT_MODEL, "outside the model's folder");
    remove_aside();
}
END_TEST

START_TEST(only_regular_files_are_read)
{
    ck_assert_int_eq(mkdir(in(mk.dir, "folder"), 0700), 0);
    ck_assert_int_eq(mkfifo(in(mk.dir, "pipe"), 0600), 0);
    link_to("folder", "to-folder");
    link_to("pipe", "to-pipe");
    static const char *const name[] = {"folder", "pipe", "to-folder", "to-pipe"};
    for (int k = 0; k < 4; k++) {
        mk.g->initializer[0]->n_external_data = 0;
        data_in(name[k]);
        refuse(LS_E_DATA, LS_EXIT_MODEL,
               ls_arena_printf(mk.cx.arena, "%s/%s is not a regular file", mk.dir, name[k]));
    }
}
END_TEST

START_TEST(a_device_behind_a_link_is_refused)
{
    link_to("/dev/zero", "w.bin");
    data_in("w.bin");
    refuse(LS_E_DATA, LS_EXIT_MODEL, "'w.bin' is a symbolic link to '/dev/zero'");
}
END_TEST

START_TEST(a_link_to_nothing_names_its_target)
{
    link_to("gone", "w.bin");
    data_in("w.bin");
    refuse(LS_E_DATA, LS_EXIT_MODEL, "w.bin ('w.bin' is a symbolic link to 'gone') does not exist");
}
END_TEST

START_TEST(links_in_a_circle_are_refused)
{
    link_to("b.bin", "a.bin");
    link_to("a.bin", "b.bin");
    data_in("a.bin");
    refuse(LS_E_DATA, LS_EXIT_MODEL, "cannot open");
}
END_TEST

START_TEST(a_plan_reads_no_weights_but_sees_that_they_fit)
{
    make_file(&mk, "w.bin", (char[60]){0}, 47);
    data_in("w.bin");
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "2x3");
    mk.o.weightless = true;
    refuse(LS_E_DATA, LS_EXIT_MODEL, "needs 48 bytes at offset 0");
}
END_TEST

/* A program takes them from the file that it embeds, so that compile must see that they are
 * there. */
START_TEST(weights_that_are_only_located_must_be_there)
{
    data_in("gone.bin");
    mk.g->initializer[0]->dims[0] *= 1000;      /* too large for a setting, which is read in any
                                                 * case */
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "2x3000");
    mk.o.located = true;
    refuse(LS_E_DATA, LS_EXIT_MODEL, "gone.bin does not exist");
}
END_TEST

START_TEST(a_plan_keeps_no_large_weights)
{
    make_weight(&mk, "big", "100x100", 10000);
    make_weight(&mk, "small", "100x4", 400);
    make_node(&mk, "MatMul", "big small", "s");
    mk.o.weightless = true;
    LsGraph *g = import_well();
    ck_assert_ptr_null(g->value[named(g, "big").i].data);
    ck_assert_ptr_nonnull(g->value[named(g, "small").i].data);     /* it may be a setting */
    mk.o.weightless = false;
    g = import_well();
    ck_assert_ptr_nonnull(g->value[named(g, "big").i].data);
    mk.o.located = true;
    g = import_well();
    ck_assert_ptr_null(g->value[named(g, "big").i].data);
}
END_TEST

START_TEST(inspect_says_that_a_data_file_is_missing)
{
    char *text = NULL;
    size_t n = 0;
    unsigned char *bytes;
    data_in("gone.bin");
    n = make_pack(&mk, &bytes);
    make_write(&mk, bytes, n);
    FILE *to = open_memstream(&text, &n);
    bool trainable = true;
    ck_assert(ls_inspect(&mk.cx, mk.path, &mk.o, to, false, false, &trainable));
    ck_assert(!trainable);
    fclose(to);
    ck_assert_ptr_nonnull(
        strstr(text, "gone.bin does not exist; the data of 1 tensor lies in it ('w')"));
    ck_assert_ptr_null(strstr(text, "nothing prevents training"));
    free(text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("external");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {
        a_link_inside_the_folder_is_followed,
        model_and_data_linked_into_one_folder_are_read,
        a_link_that_leads_out_is_refused_with_its_target,
        a_folder_that_leads_out_is_refused_with_its_target,
        a_model_that_is_no_link_opens_no_other_folder,
        names_that_leave_the_folder_are_refused_though_the_file_exists,
        only_regular_files_are_read,
        a_device_behind_a_link_is_refused,
        a_link_to_nothing_names_its_target,
        links_in_a_circle_are_refused,
        a_plan_reads_no_weights_but_sees_that_they_fit,
        weights_that_are_only_located_must_be_there, a_plan_keeps_no_large_weights,
        inspect_says_that_a_data_file_is_missing,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("external", tc);
}
