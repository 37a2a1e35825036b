/* tests/whole/test_private_clip.c -- the clip of private training: it holds under every budget, and the trainer looks.
 *
 * With a rate of 0 the parameters stay; moment/PARAM.grad of a dump is the clipped sum of the last update over the expected
 * batch. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/npz_util.h"
#include "tests/support/suite.h"

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 --optimizer=sgd:momentum=0 "
#define QUIET " --progress none "
#define FAULT LS_SOURCE "/tests/data/faults/dp-budget-wrong-clip/"

static const char *const budget[] = {"", "--budget 80%", "--budget min", "--budget min --no-alternatives"};
enum { BUDGETS = sizeof budget / sizeof *budget };

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=24 --context=16 --vocab=50 --head=untied -o gpt.onnx");
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=24 --context=16 --vocab=50 -o tied.onnx");
    MUST(LS_BUILD "/lowerset model cnn --size=12 --width=4 -o cnn.onnx");
}

/* The Euclidean norm of all members of a dump whose names begin with `prefix` and end with `end`. */
static double norm_of(const char *path, const char *prefix, const char *end)
{
    LsFile f;
    LsArray a;
    LsError e = {0};
    const char *name;
    size_t len;
    double sum = 0;
    bool found = true;
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    for (uint32_t k = 0; ls_npz_at(&f, k, &name, &len, &a, &found, &e) && found; k++)
        for (int64_t i = 0; len > strlen(end) && strncmp(name, prefix, strlen(prefix)) == 0
                            && strncmp(name + len - strlen(end), end, strlen(end)) == 0 && i < a.count; i++)
            sum += ls_array_real(&a, i) * ls_array_real(&a, i);
    ls_file_unmap(&f);
    return sqrt(sum);
}

/* Its gradient is far above the clip. */
START_TEST(one_sample_has_the_norm_of_the_clip_under_every_budget)
{
    for (int k = 0; k < BUDGETS; k++) {
        MUST(COMPILE FAULT "net.onnx --batch 4 --dp clip=0.05,noise=0,delta=1e-4,expected-batch=1 %s -o t", budget[k]);
        MUST("./t --data " FAULT "one.npz --noise-seed 3 --steps 1 --lr 0 --dump one.npz" QUIET);
        const double norm = norm_of("one.npz", "moment/", ".grad");
        ck_assert_msg(fabs(norm - 0.05) < 1e-6, "%s: %.9g", budget[k], norm);
    }
}
END_TEST

/* Sums of networks with embeddings, also tied ones, convolutions, products. */
START_TEST(budgets_change_clipped_sums_by_rounding_alone)
{
    static const struct { const char *net, *data; int batch; double clip; } of[] = {
        {FAULT "net.onnx", "--data " FAULT "all.npz", 6, 0.5}, {"gpt.onnx", "--data synthetic:3", 3, 0.01},
        {"tied.onnx", "--data synthetic:3", 3, 0.01}, {"cnn.onnx", "--data synthetic:4", 4, 0.01}};
    for (int k = 0; k < BUDGETS; k++) {
        MUST(COMPILE "%s --batch %d --dp clip=%g,noise=0,delta=1e-3,expected-batch=%d %s -o t", of[_i].net, of[_i].batch,
             of[_i].clip, of[_i].batch, budget[k]);
        MUST("./t %s --seed 3 --noise-seed 3 --steps 1 --lr 0 --dump %d.npz" QUIET, of[_i].data, k);
        char path[2][32];
        snprintf(path[0], sizeof path[0], "0.npz");
        snprintf(path[1], sizeof path[1], "%d.npz", k);
        ck_assert_msg(sh(LS_BUILD "/tests/npz_near %s %s 2e-6 moment/", path[0], path[1]) == 0, "%s %s: %s", of[_i].net, budget[k],
                      text);
    }
    ck_assert_double_gt(norm_of("0.npz", "moment/", ".grad"), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("private_clip");
    tcase_add_test(t, one_sample_has_the_norm_of_the_clip_under_every_budget);
    tcase_add_loop_test(t, budgets_change_clipped_sums_by_rounding_alone, 0, 4);
    return run_command_lines("private_clip", t, make_nets);
}
