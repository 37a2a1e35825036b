/* tests/whole/test_microbatches.c -- batches that run in parts, through the command line: one part
 * changes nothing, modes of recomputation and budgets change no bit, gradients add up in the tree
 * that docs/micro-batches.md says, runs are resumed, and what cannot be cut is refused. Losses with
 * weights and random masks are in test_batches.c. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 "
#define RUN " --progress none --no-shuffle "

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 "
                  "--dropout=0.2 -o gpt.onnx");
    MUST(LS_BUILD "/lowerset model unet --depth=1 --size=4 --width=2 -o unet.onnx");
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=8 --size=4 -o mlp.onnx");
}

START_TEST(one_part_is_no_option)
{
    MUST(COMPILE
         "gpt.onnx --optimizer=adam --clip-norm=1 --precision=f16 --batch=4 --emit=c -o plain.c");
    MUST(COMPILE "gpt.onnx --optimizer=adam --clip-norm=1 --precision=f16 --batch=4 "
                 "--microbatches=1 --emit=c -o one.c");
    MUST("cmp plain.c one.c");
    MUST(COMPILE "mlp.onnx --batch=4 --microbatches=2 --emit=c -o one.c");
    MUST("! cmp -s plain.c one.c");
}
END_TEST

/* ---- bits ---- */

static const struct { const char *net; int steps; const char *ways[6]; } bits[] = {
    {"unet.onnx --optimizer=sgd:momentum=0.9 --clip-norm=1", 200,
     {"--recompute=none", "--recompute=except-last", "--budget=90%", "--budget=min"}},
    {"gpt.onnx --optimizer=adamw", 25, {"--recompute=none", "--recompute=all", "--budget=min"}},
    {"gpt.onnx --precision=f16 --loss-scale=torch:init=1e6,period=3 --accumulate=2", 12,
     {"--recompute=none", "--recompute=except-last --store-gradients"}},
};
enum { NBITS = sizeof bits / sizeof *bits };

/* 19 samples: batches of 8 have parts of 2; the last one has a part that is half full, and two that
 * are empty. */
START_TEST(modes_and_budgets_change_no_bit)
{
    for (int k = 0; bits[_i].ways[k] != NULL; k++) {
        MUST(COMPILE "%s %s --batch=8 --microbatches=4 -o t", bits[_i].net, bits[_i].ways[k]);
        MUST("./t --data synthetic:19 --progress none --seed 3 --lr 0.01 --steps %d --epochs 100 "
             "--dump %s.npz",
             bits[_i].steps, k == 0 ? "first" : "other");
        ck_assert_msg(k == 0 || same_arrays("first.npz", "other.npz", ""), "%s %s: %s",
                      bits[_i].net, bits[_i].ways[k], text);
    }
}
END_TEST

START_TEST(a_mode_that_recomputes_runs_steps_again)
{
    int again[3];
    static const char *const mode[] = {"none", "all", "except-last"};
    for (int k = 0; k < 3; k++) {
        MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --recompute=%s --emit=c -o t.c",
             mode[k]);
        MUST("sh -c \"grep -c ' again' t.c || true\"");
        again[k] = atoi(text);
    }
    ck_assert_int_eq(again[0], 0);
    ck_assert_int_gt(again[1], 8);
    ck_assert_int_eq(again[2], again[1]);       /* the table of the last part has none */
    MUST("grep -c 'LsStep last_step' t.c");
}
END_TEST

/* Batches of an update are parts as well: the same tree adds them. */
START_TEST(accumulated_batches_are_parts)
{
    static const char *const way[] = {"--batch=12 --microbatches=6", "--batch=2 --accumulate=6",
                                      "--batch=4 --microbatches=2 --accumulate=3"};
    for (int k = 0; k < 3; k++) {
        MUST(COMPILE "mlp.onnx --optimizer=adam %s -o t", way[k]);
        MUST("./t --data synthetic:24" RUN "--lr 0.01 --epochs 3 --dump %s.npz",
             k == 0 ? "first" : "other");
        ck_assert_msg(k == 0
                          || (same_arrays("first.npz", "other.npz", "param/")
                              && same_arrays("first.npz", "other.npz", "moment/")),
                      "%s", way[k]);
    }
}
END_TEST

/* ---- the order of the sum ---- */

typedef struct Sum { LsFile file[8]; LsArray part[8]; int64_t i; float scale; } Sum;

static void find(LsFile *f, const char *path, const char *name, LsArray *a)
{
    LsError e = {0};
    bool found = false;
    ck_assert_msg(ls_file_map(f, path, &e) && ls_npz_find(f, name, a, &found, &e) && found,
                  "%s: no %s", path, name);
}

/* The sum of n parts from the first on: the largest power of two below n, and the rest. */
static float tree(const Sum *s, int first, int n)
{
    int left = 1;
    if (n == 1) {
        volatile float leaf = (float)ls_array_real(&s->part[first], s->i) * s->scale;
        return leaf;
    }
    while (2 * left < n)
        left *= 2;
    return tree(s, first, left) + tree(s, first + left, n - left);
}

static float in_a_row(const Sum *s, int n)
{
    volatile float sum = tree(s, 0, 1);
    for (int k = 1; k < n; k++)
        sum += tree(s, k, 1);
    return sum;
}

/* With rate 1 and no momentum a step subtracts the gradient. The gradients of parts are those of
 * batches of 2. */
static void check_tree(int parts)
{
    static const char *const name[] = {"fc1.weight", "fc1.bias", "fc2.weight"};
    int64_t other = 0;
    MUST(LS_BUILD "/lowerset compile -q -O2 mlp.onnx --batch=%d --microbatches=%d "
                  "--optimizer=sgd:momentum=0 --store-gradients "
                  "-o whole",
         2 * parts, parts);
    MUST("./whole --data synthetic:14" RUN "--lr 1 --steps 1 --dump whole.npz");
    for (int k = 0; k < 3; k++) {
        char member[40], path[20];
        Sum s = {.scale = (float)(1.0 / parts)};
        LsFile file[2];
        LsArray after, before;
        snprintf(member, sizeof member, "param/%s", name[k]);
        find(&file[0], "whole.npz", member, &after);
        find(&file[1], "g0.npz", member, &before);
        snprintf(member, sizeof member, "grad/%s", name[k]);
        for (int p = 0; p < parts; p++) {
            snprintf(path, sizeof path, "g%d.npz", p);
            find(&s.file[p], path, member, &s.part[p]);
        }
        for (s.i = 0; s.i < after.count; s.i++) {
            const float w = (float)ls_array_real(&before, s.i), step = tree(&s, 0, parts);
            ck_assert_msg((float)ls_array_real(&after, s.i) == w - step, "%d parts: %s[%d]", parts,
                          name[k], (int)s.i);
            other += w - in_a_row(&s, parts) != w - step;
        }
        for (int p = 0; p < parts; p++)
            ls_file_unmap(&s.file[p]);
        for (int f = 0; f < 2; f++)
            ls_file_unmap(&file[f]);
    }
    ck_assert(parts < 4 || other > 0);          /* the order shows */
}

START_TEST(gradients_add_up_in_a_tree)
{
    MUST(LS_BUILD "/lowerset compile -q -O2 mlp.onnx --batch=2 --optimizer=sgd:momentum=0 "
                  "--store-gradients -o part");
    for (int k = 0; k < 7; k++)
        MUST("./part --data synthetic:14" RUN "--lr 0 --steps %d --dump g%d.npz", k + 1, k);
    if (tests_do_all())
        check_tree(6);
    check_tree(7);
}
END_TEST

/* ---- runs ---- */

START_TEST(a_resumed_run_is_the_unbroken_one)
{
    MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --recompute=except-last -o t");
    MUST(COMPILE "unet.onnx --batch=8 -o plain");
    MUST("./t --data synthetic:21 --lr 0.01 --seed 5 --epochs 4 --progress none --dump first.npz");
    MUST("rm -rf saved; ./t --data synthetic:21 --lr 0.01 --seed 5 --epochs 4 --steps 5 --progress "
         "none --save saved");
    MUST("./t --data synthetic:21 --lr 0.01 --seed 5 --epochs 4 --progress none --resume "
         "saved/$(ls saved | head -1) "
         "--dump other.npz");
    ck_assert(same_arrays("first.npz", "other.npz", "param/")
              && same_arrays("first.npz", "other.npz", "stat/"));
    MUST("! grep -q 'weight.grad' saved/*");    /* sums within an update are not saved */
    MUST("./plain --data synthetic:21 --lr 0.01 --seed 5 --epochs 4 --progress none --resume "
         "saved/$(ls saved | head -1)");
}
END_TEST

/* ---- plans ---- */

/* ms of a step in the row of a mode. */
static double step_of(const char *mode)
{
    char line[32];
    double ms;
    snprintf(line, sizeof line, "\n  %-12s ", mode);
    const char *at = strstr(text, line);
    ck_assert_msg(at != NULL && sscanf(at + strlen(line), "%*f %*s %*f %*s %lf", &ms) == 1, "%s",
                  text);
    return ms;
}

/* A step has as many parts as its batch; of except-last all but one are those of `all`. */
START_TEST(modes_tell_the_time_of_a_step)
{
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 gpt.onnx --batch=8 --microbatches=4 "
                  "--recompute=all");
    const double all = step_of("all"), none = step_of("none");
    ck_assert_double_eq_tol(all, told("a step takes "), 1e-3 * all);
    ck_assert_double_gt(all, 1.1 * none);
    ck_assert_double_eq_tol(step_of("except-last"), 0.75 * all + 0.25 * none, 1e-3 * all);
}
END_TEST

START_TEST(plan_shows_all_modes)
{
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 unet.onnx --batch=8 --microbatches=4 "
                  "--accumulate=2 --recompute=all");
    ck_assert_msg(strstr(text, "a batch of 8 samples runs in 4 parts of 2") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "gradients of 8 parts add up in a tree: 3 partial sums of each")
                      != NULL,
                  "%s", text);
    static const char *const mode[] = {"none", "except-last", "all", "auto"};
    for (int k = 0; k < 4; k++) {
        char line[32];
        snprintf(line, sizeof line, "\n  %-12s ", mode[k]);
        const char *at = strstr(text, line);
        ck_assert_msg(at != NULL, "%s", text);
        ck_assert_int_eq(
            strstr(at, "chosen") != NULL && strstr(at, "chosen") < strchr(at + 1, '\n'), k == 2);
    }
    ck_assert_msg(strstr(text, "\n  cheap ") == NULL, "%s", text);
    ck_assert_int_eq(
        sh(LS_BUILD
           "/lowerset plan -q unet.onnx --batch=8 --microbatches=4 --recompute=none --budget=90%%"),
        4);
    ck_assert_msg(strstr(text, "with --recompute=none is") != NULL, "%s", text);
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 unet.onnx --batch=8 --microbatches=4 "
                  "--recompute=cheap | "
                  "grep -o '^  [a-z]* .* chosen'");
    ck_assert_msg(strncmp(text, "  cheap ", 8) == 0 && strchr(text, '\n')[1] == '\0', "%s", text);
    MUST(LS_BUILD "/lowerset plan -q --plan-effort=2 unet.onnx --batch=8 --microbatches=4 --json");
    ck_assert_msg(strstr(text, "{\"batch\":8,\"parts\":4,\"per_update\":4,\"sum_levels\":2,")
                      != NULL,
                  "%s", text);
}
END_TEST

static const struct { const char *command; int code; const char *why;
} refused[] = {
    {"mlp.onnx --batch=8 --microbatches=3", 2,
     "--microbatches 3: a batch of 8 samples does not divide into so many equal parts"},
    {"mlp.onnx --batch=8 --microbatches=0", 2, "--microbatches needs a whole number"},
    {"mlp.onnx --batch=8 --microbatches=1048576 --accumulate=2", 2,
     "an update takes more than 1048576 parts"},
    {"mlp.onnx --batch=8 --microbatches=2 --dp=clip=1,noise=1,delta=1e-5", 2,
     "--microbatches: with --dp, --batch is"},
    {"mlp.onnx --batch=8 --microbatches=2 --grads=per-sample", 2,
     "--grads shows the samples of a whole batch"},
    {"mlp.onnx --batch=8 --microbatches=2 --recompute=some", 2,
     "--recompute: 'some' is not one of auto|none|cheap|"},
    {"mlp.onnx --batch=8 --recompute=except-last --keep=*", 2,
     "--recompute=except-last says what each part runs again: leave --keep out"},
    {"mlp.onnx --batch=8 --checkpoint=never", 2,
     "unknown option '--checkpoint=never': use --recompute=none"},
    {"mlp.onnx --batch=8 --microbatches=2 --label-shape=9", 2,
     "a shape whose samples divide into the --microbatches"},
    {"mlp.onnx --batch=8 --ranks=2 --label-shape=9", 2,
     "a shape whose samples divide into the --microbatches"},
    {"mlp.onnx --batch=8 --microbatches=2 --ignore-index=1 --loss=ce@1,ce@2", 1,
     "terms of the loss are means over different"},
};
enum { NREFUSED = sizeof refused / sizeof *refused };

START_TEST(what_cannot_be_cut_is_refused)
{
    const int code = sh(COMPILE "%s -o t", refused[_i].command);
    ck_assert_msg(code == refused[_i].code && strstr(text, refused[_i].why) != NULL, "%s: %d: %s",
                  refused[_i].command, code, text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("microbatches");
    tcase_add_test(t, one_part_is_no_option);
    tcase_add_loop_test(t, modes_and_budgets_change_no_bit, 0, NBITS);
    tcase_add_test(t, a_mode_that_recomputes_runs_steps_again);
    tcase_add_test(t, accumulated_batches_are_parts);
    tcase_add_test(t, gradients_add_up_in_a_tree);
    tcase_add_test(t, a_resumed_run_is_the_unbroken_one);
    tcase_add_test(t, modes_tell_the_time_of_a_step);
    tcase_add_test(t, plan_shows_all_modes);
    tcase_add_loop_test(t, what_cannot_be_cut_is_refused, 0, NREFUSED);
    return run_command_lines("microbatches", t, make_nets);
}
