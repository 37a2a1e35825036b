/* tests/whole/test_private_clip.c -- the clip of private training: it holds under every budget, and
 * the trainer looks.
 *
 * With a rate of 0 the parameters stay; moment/PARAM.grad of a dump is the clipped sum of the last
 * update over the expected batch. */
#include "build_config.h"
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/npz_util.h"
#include "tests/support/suite.h"

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 --optimizer=sgd:momentum=0 "
#define QUIET " --progress none "
#define FAULT LS_SOURCE "/tests/data/faults/dp-budget-wrong-clip/"

static const char *const budget[] = {"", "--budget 80%", "--budget min",
                                     "--budget min --no-alternatives"};
enum { BUDGETS = sizeof budget / sizeof *budget };

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=24 --context=16 --vocab=50 "
                  "--head=untied -o gpt.onnx");
    MUST(LS_BUILD
         "/lowerset model gpt --depth=1 --heads=2 --width=24 --context=16 --vocab=50 -o tied.onnx");
    MUST(LS_BUILD "/lowerset model cnn --size=12 --width=4 -o cnn.onnx");
}

/* The Euclidean norm of all members of a dump whose names begin with `prefix` and end with
 * `end`. */
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
        for (int64_t i = 0;
             len > strlen(end) && strncmp(name, prefix, strlen(prefix)) == 0
             && strncmp(name + len - strlen(end), end, strlen(end)) == 0 && i < a.count;
             i++)
            sum += ls_array_real(&a, i) * ls_array_real(&a, i);
    ls_file_unmap(&f);
    return sqrt(sum);
}

/* Its gradient is far above the clip. */
START_TEST(one_sample_has_the_norm_of_the_clip_under_every_budget)
{
    for (int k = 0; k < BUDGETS; k++) {
        MUST(COMPILE FAULT
             "net.onnx --batch 4 --dp clip=0.05,noise=0,delta=1e-4,expected-batch=1 %s -o t",
             budget[k]);
        MUST("./t --data " FAULT "one.npz --noise-seed 3 --steps 1 --lr 0 --dump one.npz" QUIET);
        const double norm = norm_of("one.npz", "moment/", ".grad");
        ck_assert_msg(fabs(norm - 0.05) < 1e-6, "%s: %.9g", budget[k], norm);
    }
}
END_TEST

/* Sums of networks with embeddings, also tied ones, convolutions, products. */
START_TEST(budgets_change_clipped_sums_by_rounding_alone)
{
    static const struct { const char *net, *data; int batch; double clip;
    } of[] = {{FAULT "net.onnx", "--data " FAULT "all.npz", 6, 0.5},
              {"gpt.onnx", "--data synthetic:3", 3, 0.01},
              {"tied.onnx", "--data synthetic:3", 3, 0.01},
              {"cnn.onnx", "--data synthetic:4", 4, 0.01}};
    for (int k = 0; k < BUDGETS; k++) {
        MUST(COMPILE "%s --batch %d --dp clip=%g,noise=0,delta=1e-3,expected-batch=%d %s -o t",
             of[_i].net, of[_i].batch, of[_i].clip, of[_i].batch, budget[k]);
        MUST("./t %s --seed 3 --noise-seed 3 --steps 1 --lr 0 --dump %d.npz" QUIET, of[_i].data, k);
        char path[2][32];
        snprintf(path[0], sizeof path[0], "0.npz");
        snprintf(path[1], sizeof path[1], "%d.npz", k);
        ck_assert_msg(sh(LS_BUILD "/tests/npz_near %s %s 2e-6 moment/", path[0], path[1]) == 0,
                      "%s %s: %s", of[_i].net, budget[k], text);
    }
    ck_assert_double_gt(norm_of("0.npz", "moment/", ".grad"), 0);
}
END_TEST

/* ---- the trainer looks ---- */

/* Builds ./wrong: a program that scales gradients to 0.05, but promises 0.04. */
static void make_wrong(const char *more)
{
    MUST(COMPILE FAULT
         "net.onnx --dp clip=0.05,noise=0.5,delta=1e-4,expected-batch=1 %s --emit=c -o wrong.c",
         more);
    MUST("sed -i 's/\\.privacy = {0\\.05[0-9]*,/.privacy = {0.04,/' wrong.c && grep -q 'privacy = "
         "{0.04,' wrong.c");
    MUST("${CC:-cc} -O0 -I " LS_SOURCE " wrong.c wrong_data.S " LS_BUILD
         "/runtime/libls_runtime.a " LS_EXTRA_CFLAGS " " LS_EXTRA_LIBS " -lm -lpthread -o wrong");
}

START_TEST(a_program_that_does_not_clip_ends_before_its_update)
{
    make_wrong("--batch 4");
    ck_assert_int_eq(sh("./wrong --data " FAULT
                        "one.npz --noise-seed 3 --steps 2 --epochs 2 --save saved" QUIET),
                     6);
    ck_assert_msg(strstr(text, "step 1: a sample's clipped gradient has norm 0.05") != NULL
                  && strstr(text, "above the clip of 0.04") != NULL, "%s", text);
    ck_assert_int_ne(sh("ls saved/*.safetensors"), 0);
    MUST("./wrong --data " FAULT
         "one.npz --noise-seed 3 --steps 2 --epochs 2 --check-clip 0" QUIET);
}
END_TEST

/* Of two samples one is not finite, so it counts as zero. The first update draws it alone or none,
 * a later one the other. */
START_TEST(the_trainer_looks_again_every_so_often)
{
    float x[2 * 19];
    int64_t label[2] = {1, 2};
    make_wrong("--batch 1");
    for (int i = 0; i < 2 * 19; i++)
        x[i] = i < 19 ? NAN : wave(i, 1);
    write_npz("two.npz", 2,
              (NpzItem[]){{"x", LS_F32, 2, {2, 19}, x}, {"label", LS_I64, 1, {2}, label}});
    int seed = 0, late = 0;
    while (late == 0 && seed < 20) {
        seed++;
        ck_assert_int_eq(
            sh("./wrong --data two.npz --noise-seed %d --steps 40 --epochs 99 --check-clip 1" QUIET,
               seed),
            6);
        const char *at = strstr(text, "error: step ");
        late = at != NULL && atoi(at + 12) > 2 && atoi(at + 12) < 30 ? atoi(at + 12) : 0;
    }
    ck_assert_int_gt(late, 0);
    MUST("./wrong --data two.npz --noise-seed %d --steps 40 --epochs 99 --check-clip 1000" QUIET,
         seed);
    MUST("./wrong --data two.npz --noise-seed %d --steps 40 --epochs 99" QUIET, seed);
}
END_TEST

/* With what else changes state: averages, two moments, dropout; updates of one micro-batch and of
 * several. */
START_TEST(looking_changes_no_bit)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=33 "
                  "--dropout=0.1 -o drop.onnx");
    static const char *const optimizer[] = {"--optimizer=adam --ema=0.9",
                                            "--optimizer=schedule-free-adamw"};
    for (int k = 0; k < 2; k++) {
        MUST(LS_BUILD "/lowerset compile drop.onnx -q -O0 --plan-effort=2 --batch=3 %s "
                      "--randomness=different "
                      "--dp=clip=0.1,noise=0.5,delta=1e-5,expected-batch=4 -o t",
             optimizer[k]);
        for (int every = 0; every < 2; every++)
            MUST("./t --data synthetic:50 --seed 2 --noise-seed 6 --epochs 1 --check-clip %d "
                 "--dump look%d.npz" QUIET,
                 every, every);
        MUST(LS_BUILD "/tests/npz_near look0.npz look1.npz 0");
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("private_clip");
    tcase_add_test(t, one_sample_has_the_norm_of_the_clip_under_every_budget);
    tcase_add_loop_test(t, budgets_change_clipped_sums_by_rounding_alone, 0, 4);
    tcase_add_test(t, a_program_that_does_not_clip_ends_before_its_update);
    tcase_add_test(t, the_trainer_looks_again_every_so_often);
    tcase_add_test(t, looking_changes_no_bit);
    return run_command_lines("private_clip", t, make_nets);
}
