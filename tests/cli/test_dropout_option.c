/* tests/cli/test_dropout_option.c -- --dropout through the command line: which dropouts the program
 * has. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

#include <sys/wait.h>

static char *said;              /* output of the last command, both streams */

static char *text_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s is missing", path);
    char *text = ls_arena_alloc(mk.cx.arena, 1 << 20, 1);
    text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* lowerset COMMAND m.onnx OPTIONS, in the model's folder; its exit code. */
static int lowerset(const char *command, const char *options)
{
    int status = system(ls_arena_printf(mk.cx.arena, "cd '%s' && '%s' %s m.onnx %s >said 2>&1",
                                        mk.dir, LS_LOWERSET, command, options));
    said = text_of(ls_arena_printf(mk.cx.arena, "%s/said", mk.dir));
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void write_model(void)
{
    unsigned char *bytes;
    size_t n = make_pack(&mk, &bytes);
    make_write(&mk, bytes, n);
}

/* A dropout of opset 10, which has no mode. */
static void old_model(void)
{
    mk.m->opset_import[0]->version = 10;
    make_node(&mk, "Dropout", "y", "z")->name = "drop";
    mk.g->n_output = 0;
    make_output(&mk, "z");
    write_model();
}

/* A dropout of opset 13; mode -1: no training_mode, which means false. */
static void new_model(int mode)
{
    make_node(&mk, "Dropout", mode < 0 ? "y" : "y ratio mode", "z")->name = "drop";
    Onnx__TensorProto *t = make_tensor(&mk, "ratio", MAKE_FLOAT, "", (float[]){0.25f}, 4);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
    t = make_tensor(&mk, "mode", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, "", (uint8_t[]){mode > 0}, 1);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
    mk.g->n_output = 0;
    make_output(&mk, "z");
    write_model();
}

/* The compiled program draws random numbers. */
static bool drops(const char *options)
{
    ck_assert_msg(lowerset("compile", ls_arena_printf(mk.cx.arena, "--emit=c -o p.c %s", options))
                  == 0, "%s", said);
    return strstr(text_of(ls_arena_printf(mk.cx.arena, "%s/p.c", mk.dir)), "ls_uniform(") != NULL;
}

START_TEST(before_opset_12_all_drop_and_that_is_said)
{
    old_model();
    ck_assert(drops(""));
    ck_assert_ptr_nonnull(strstr(said, "1 Dropout is of opset 10"));
    ck_assert_ptr_nonnull(strstr(said, "--dropout=on or --dropout=off decides"));
    ck_assert(drops("--dropout=file"));
    ck_assert(drops("--dropout=on"));
    ck_assert_ptr_null(strstr(said, "opset 10"));
    ck_assert(!drops("--dropout=off"));
    ck_assert_ptr_null(strstr(said, "opset 10"));
}
END_TEST

START_TEST(from_opset_12_the_mode_decides_unless_the_option_does)
{
    new_model(1);
    ck_assert(drops("--dropout=file"));
    ck_assert(drops("--dropout=on"));
    ck_assert(!drops("--dropout=off"));
}
END_TEST

START_TEST(a_mode_of_false_is_said_and_overruled)
{
    new_model(0);
    ck_assert(!drops(""));
    ck_assert_ptr_nonnull(strstr(said, "training_mode is false in the file"));
    ck_assert(!drops("--dropout=off"));
    ck_assert_ptr_null(strstr(said, "training_mode"));
    ck_assert(drops("--dropout=on"));
    ck_assert_ptr_null(strstr(said, "training_mode"));
}
END_TEST

START_TEST(a_mode_left_out_is_one_of_false)
{
    new_model(-1);
    ck_assert(!drops("--dropout=file"));
    ck_assert(drops("--dropout=on"));
}
END_TEST

START_TEST(the_other_commands_take_it_too)
{
    static const char *const command[] = {"compile", "plan", "sweep", "check"};
    old_model();
    ck_assert_int_eq(lowerset("plan", "--dropout=off"), 0);
    ck_assert_ptr_null(strstr(said, "opset 10"));
    ck_assert_int_eq(lowerset("plan", ""), 0);
    ck_assert_ptr_nonnull(strstr(said, "opset 10"));
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(lowerset(command[k], "--dropout=maybe"), 2);
        ck_assert_ptr_nonnull(strstr(said, "--dropout"));
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("dropout_option");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {
        before_opset_12_all_drop_and_that_is_said,
        from_opset_12_the_mode_decides_unless_the_option_does,
        a_mode_of_false_is_said_and_overruled,
        a_mode_left_out_is_one_of_false,
        the_other_commands_take_it_too,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("dropout_option", tc);
}
