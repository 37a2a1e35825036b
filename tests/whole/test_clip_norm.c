/* tests/whole/test_clip_norm.c -- clipping by the norm of all gradients without storing them,
 * through the command line: norms from pairs of rows, gradients that are made twice. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/suite.h"


#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=5 "
#define RUN " --data synthetic --seed 3 --progress none "

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=512 --size=16 --depth=3 -o wide.onnx");
    MUST(LS_BUILD
         "/lowerset model gpt --depth=4 --heads=2 --width=32 --context=8 --vocab=33 -o gpt.onnx");
}

/* The norm of the difference of all parameters of two dumps. */
static double moved(const char *from, const char *to)
{
    LsFile f, t;
    LsError e = {0};
    LsArray a, b;
    const char *name;
    size_t len;
    bool found = true;
    double sum = 0;
    ck_assert(ls_file_map(&f, from, &e) && ls_file_map(&t, to, &e));
    for (uint32_t k = 0; ls_npz_at(&f, k, &name, &len, &a, &found, &e) && found; k++) {
        char member[300];
        bool there = false;
        snprintf(member, sizeof member, "%.*s", (int)len, name);
        if (strncmp(member, "param/", 6) != 0)
            continue;
        ck_assert(ls_npz_find(&t, member, &b, &there, &e) && there && a.count == b.count);
        for (int64_t i = 0; i < a.count; i++)
            sum += pow(ls_array_real(&a, i) - ls_array_real(&b, i), 2);
    }
    ls_file_unmap(&f);
    ls_file_unmap(&t);
    return sqrt(sum);
}

/* Four rows, weights of 512 x 512: their norms come from pairs of rows. A step of SGD at rate 1
 * moves the parameters by the clipped norm. */
START_TEST(norms_from_pairs_of_rows_clip_as_norms_of_gradients_do)
{
    MUST(COMPILE "wide.onnx --batch=4 --optimizer=sgd --clip-norm=0.125 -o clip");
    MUST("./clip" RUN "--steps 1 --lr 0 --dump before.npz");
    MUST("./clip" RUN "--steps 1 --lr 1 --dump after.npz");
    ck_assert_double_eq_tol(moved("before.npz", "after.npz"), 0.125, 2e-6 * 0.125);
    MUST(COMPILE "wide.onnx --batch=4 --optimizer=sgd --clip-norm=1e9 -o free");
    MUST(COMPILE "wide.onnx --batch=4 --optimizer=sgd -o plain");
    MUST("./free" RUN "--steps 1 --lr 1 --dump free.npz");
    MUST("./plain" RUN "--steps 1 --lr 1 --dump plain.npz");
    MUST(LS_BUILD "/tests/npz_near free.npz plain.npz 0 param/");
}
END_TEST

static double arena_of(const char *options)
{
    MUST(LS_BUILD "/lowerset plan --plan-effort=5 %s", options);
    return told("arena ");
}

/* The gradients of the wide net take more than all else: with clipping by norm no plan stores one
 * of 512 x 512. */
START_TEST(large_gradients_are_never_stored)
{
    const double plain = arena_of("wide.onnx --batch=4 --optimizer=sgd");
    const double clipped = arena_of("wide.onnx --batch=4 --optimizer=sgd --clip-norm=1");
    ck_assert_double_le(clipped, 1.2 * plain);
}
END_TEST

/* The gradients of the GPT take several times the bytes of its activations. */
START_TEST(gradients_are_made_twice_where_the_budget_wants_it)
{
    MUST(COMPILE "gpt.onnx --batch=1 --optimizer=adamw --clip-norm=0.5 -v -o all");
    const double most = told("arena ");
    MUST(COMPILE "gpt.onnx --batch=1 --optimizer=adamw --clip-norm=0.5 --budget=min -v -o least");
    const double least = told("arena ");
    ck_assert_msg(least < 0.6 * most, "%g KiB of %g", least, most);
    MUST("./all" RUN "--steps 4 --dump all.npz");
    MUST("./least" RUN "--steps 4 --dump least.npz");
    MUST(LS_BUILD "/tests/npz_near all.npz least.npz 0");
    MUST(COMPILE "gpt.onnx --batch=1 --optimizer=adamw --clip-norm=0.5 --accumulate=2 -o all");
    MUST(COMPILE "gpt.onnx --batch=1 --optimizer=adamw --clip-norm=0.5 --accumulate=2 --budget=min "
                 "-o least");
    MUST("./all" RUN "--steps 4 --dump all.npz");
    MUST("./least" RUN "--steps 4 --dump least.npz");
    MUST(LS_BUILD "/tests/npz_near all.npz least.npz 0");
}
END_TEST

/* Of a GPT whose gradients take six times the bytes of all else, an embedding among them that the
 * scores share: the least arena is that without clipping, in which the step runs twice. */
START_TEST(the_least_arena_has_no_room_for_gradients)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=6 --heads=2 --width=32 --context=32 --vocab=500 "
                  "-o deep.onnx");
    const double plain = arena_of("deep.onnx --batch=1 --optimizer=adamw --budget=min");
    MUST(COMPILE "deep.onnx --batch=1 --optimizer=adamw --clip-norm=0.5 --budget=min -v -o least");
    const double least = told("arena ");
    ck_assert_msg(least <= 1.02 * plain, "%g KiB, without clipping %g", least, plain);
    const double summed =
        arena_of("deep.onnx --batch=1 --optimizer=adamw --clip-norm=1 --accumulate=3 --budget=min");
    ck_assert_msg(summed <= 1.02 * plain, "%g KiB with sums of batches", summed);
    MUST(COMPILE "deep.onnx --batch=1 --optimizer=adamw --clip-norm=0.5 -v -o all");
    ck_assert_msg(3 * least < told("arena "), "%g KiB of %g", least, told("arena "));
    MUST("./all" RUN "--steps 3 --dump all.npz");
    MUST("./least" RUN "--steps 3 --dump least.npz");
    MUST(LS_BUILD "/tests/npz_near all.npz least.npz 0");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("clip_norm");
    tcase_add_test(t, norms_from_pairs_of_rows_clip_as_norms_of_gradients_do);
    tcase_add_test(t, large_gradients_are_never_stored);
    tcase_add_test(t, gradients_are_made_twice_where_the_budget_wants_it);
    tcase_add_test(t, the_least_arena_has_no_room_for_gradients);
    return run_command_lines("clip_norm", t, make_nets);
}
