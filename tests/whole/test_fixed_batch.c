/* tests/whole/test_fixed_batch.c -- files that fix the batch, through the command line: with
 * --microbatches, --ranks and --stages their batch is that of a part, unless --batch asks for this
 * very number in all; others are refused. */
#include "tests/support/less.h"
#include "tests/support/suite.h"
#include "tests/support/wave_weight.h"

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 "
#define RUN " --progress none --no-shuffle --lr 0.1 --epochs 3 "

/* Such files hold the number in their graph, too: a Reshape to 2 rows goes wrong in parts of one
 * sample. */
static void write_rows(void)
{
    Make mk;
    unsigned char *bytes;
    const int64_t rows[] = {2, -1};
    make_begin(&mk, 13);
    make_input(&mk, "x", "2x2x3");
    wave_weight(&mk, "w", "6x3", 18, 2);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, "rows", MAKE_I64, "2", rows, sizeof rows));
    make_node(&mk, "Reshape", "x rows", "f");
    make_node(&mk, "MatMul", "f w", "y");
    make_output(&mk, "y");
    const size_t n = make_pack(&mk, &bytes);
    make_write(&mk, bytes, n);
    MUST("cp %s rows.onnx", mk.path);
    make_end(&mk);
}

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model mlp --batch=2 --width=8 --size=4 -o fixed.onnx");
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=8 --size=4 -o open.onnx");
    write_rows();
}

/* The same program as that of the open file with all samples, or of the open file with as many as
 * the fixed one has. */
static const struct { const char *fixed, *open; } same[] = {
    {"--microbatches=4", "--batch=8 --microbatches=4"},
    {"--batch=8 --microbatches=4", "--batch=8 --microbatches=4"},
    {"--batch=2 --microbatches=2", "--batch=2 --microbatches=2"},
    {"--microbatches=3 --accumulate=2", "--batch=6 --microbatches=3 --accumulate=2"},
    {"--batch=4 --ranks=2", "--batch=4 --ranks=2"},
    {"--stages=2 --microbatches=3", "--batch=6 --microbatches=3 --stages=2"},
    {"--microbatches=1", "--batch=2"},
};
enum { NSAME = sizeof same / sizeof *same };

START_TEST(a_fixed_batch_is_that_of_a_part)
{
    MUST(COMPILE "fixed.onnx %s -o t", same[_i].fixed);
    MUST("./t --data synthetic:19" RUN "--dump first.npz");
    MUST(COMPILE "open.onnx %s -o t", same[_i].open);
    MUST("./t --data synthetic:19" RUN "--dump other.npz");
    ck_assert_msg(same_arrays("first.npz", "other.npz", ""), "%s: %s", same[_i].fixed, text);
}
END_TEST

START_TEST(numbers_in_a_graph_of_a_fixed_batch_stay_right)
{
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 rows.onnx --loss=mse --microbatches=4");
    ck_assert_msg(strstr(text, "batch 8") != NULL && strstr(text, "runs in 4 parts of 2") != NULL,
                  "%s", text);
    MUST(COMPILE "rows.onnx --loss=mse --microbatches=4 -o t");
    MUST("./t --data synthetic:16" RUN "--dump first.npz");
    MUST(COMPILE "rows.onnx --loss=mse --accumulate=4 -o t"); /* of a deterministic net the same, by
                                                                 another road */
    MUST("./t --data synthetic:16" RUN "--dump other.npz");
    ck_assert_msg(same_arrays("first.npz", "other.npz", "param/"), "%s", text);
    ck_assert_int_ne(
        sh(LS_BUILD "/lowerset plan -q rows.onnx --loss=mse --batch=2 --microbatches=2"), 0);
}
END_TEST

static const struct { const char *command; const char *why;
} refused[] = {
    {"fixed.onnx --batch=6 --microbatches=4",
     "give --batch 8, or none; or --batch 2, to cut as many samples"},
    {"fixed.onnx --batch=6 --ranks=2", "so that a batch of 2 parts has 4 samples"},
    {"fixed.onnx --batch=3 --stages=2",
     "--batch 3: the file fixes the first dimension of 'x' at 2"},
    {"fixed.onnx --batch=4 --accumulate=2",
     "--batch 4: the file fixes the first dimension of 'x' at 2"},
    {"fixed.onnx --batch=2 --microbatches=4",
     "a batch of 2 samples does not divide into so many equal parts"},
};
enum { NREFUSED = sizeof refused / sizeof *refused };

START_TEST(other_batches_are_refused)
{
    const int code = sh(COMPILE "%s -o t", refused[_i].command);
    ck_assert_msg(code == 2 && strstr(text, refused[_i].why) != NULL, "%s: %d: %s",
                  refused[_i].command, code, text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fixed_batch");
    tcase_add_loop_test(t, a_fixed_batch_is_that_of_a_part, 0, NSAME);
    tcase_add_test(t, numbers_in_a_graph_of_a_fixed_batch_stay_right);
    tcase_add_loop_test(t, other_batches_are_refused, 0, NREFUSED);
    return run_command_lines("fixed_batch", t, make_nets);
}
