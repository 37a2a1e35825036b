/* tests/whole/test_per_sample.c -- gradients of samples, through the command line: equal to runs of
 * one sample each, their norms, clipped sums, what is refused. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/less.h"
#include "tests/support/npz_util.h"
#include "tests/support/suite.h"


enum { BATCH = 3 };

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 "
#define RUN " --data synthetic --seed 3 --progress none --no-shuffle --lr 0 "

static void make_nets(void)
{
    MUST(LS_BUILD
         "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=33 -o gpt.onnx");
    MUST(LS_BUILD "/lowerset model autoencoder -o auto.onnx");
    MUST(LS_BUILD "/lowerset model cnn --size=12 --width=4 -o cnn.onnx");
    MUST(LS_BUILD
         "/lowerset model resnet18 --stem=cifar --width=2 --classes=4 --size=8 -o res.onnx");
}

typedef struct Member { LsFile f; LsArray a; } Member;

static bool open_member(const char *path, const char *name, Member *m)
{
    LsError e = {0};
    bool found = false;
    ck_assert_msg(ls_file_map(&m->f, path, &e), "%s", e.text);
    ck_assert(ls_npz_find(&m->f, name, &m->a, &found, &e));
    if (!found)
        ls_file_unmap(&m->f);
    return found;
}

/* The distance between `of`'s elements from `first` on and all of `ref`, over the norm of ref. */
static double distance(const LsArray *of, int64_t first, const LsArray *ref)
{
    double far = 0, norm = 0;
    for (int64_t i = 0; i < ref->count; i++) {
        const double a = ls_array_real(of, first + i), b = ls_array_real(ref, i);
        far += (a - b) * (a - b), norm += b * b;
    }
    return norm > 0 ? sqrt(far / norm) : sqrt(far);
}

static double norm_of(const LsArray *a, int64_t first, int64_t n)
{
    double sum = 0;
    for (int64_t i = first; i < first + n; i++)
        sum += ls_array_real(a, i) * ls_array_real(a, i);
    return sqrt(sum);
}

/* Compares member psgrad/PARAM and psnorm/PARAM of all.npz with grad/PARAM of the runs of one
 * sample. */
static void compare_param(const char *param, double *squares)
{
    char key[300], path[32];
    Member all, norms, one;
    snprintf(key, sizeof key, "psgrad/%s", param);
    ck_assert_msg(open_member("all.npz", key, &all), "%s", key);
    snprintf(key, sizeof key, "psnorm/%s", param);
    ck_assert_msg(open_member("all.npz", key, &norms), "%s", key);
    ck_assert_int_eq(norms.a.count, BATCH);
    for (int s = 0; s < BATCH; s++) {
        snprintf(path, sizeof path, "one%d.npz", s);
        snprintf(key, sizeof key, "grad/%s", param);
        ck_assert_msg(open_member(path, key, &one), "%s", key);
        ck_assert_int_eq(all.a.count, BATCH * one.a.count);
        const double far = distance(&all.a, s * one.a.count, &one.a),
                     n = norm_of(&one.a, 0, one.a.count);
        ck_assert_msg(far <= 1e-5, "%s of sample %d: %g", key, s, far);
        ck_assert_double_eq_tol(ls_array_real(&norms.a, s), n, 1e-5 * n);
        squares[s] += n * n;
        ls_file_unmap(&one.f);
    }
    ls_file_unmap(&all.f);
    ls_file_unmap(&norms.f);
}

/* Compares all gradients of the dump one0.npz. */
static void compare_all(void)
{
    LsFile f;
    LsError e = {0};
    LsArray a;
    const char *name;
    size_t len;
    bool found = true;
    double squares[BATCH] = {0};
    int n = 0;
    ck_assert(ls_file_map(&f, "one0.npz", &e));
    for (uint32_t k = 0; ls_npz_at(&f, k, &name, &len, &a, &found, &e) && found; k++) {
        char param[200];
        if (len < 6 || strncmp(name, "grad/", 5) != 0)
            continue;
        snprintf(param, sizeof param, "%.*s", (int)len - 5, name + 5);
        compare_param(param, squares);
        n++;
    }
    ls_file_unmap(&f);
    ck_assert_int_gt(n, 3);
    Member all;
    ck_assert(open_member("all.npz", "psnorm", &all));
    for (int s = 0; s < BATCH; s++)
        ck_assert_double_eq_tol(ls_array_real(&all.a, s), sqrt(squares[s]),
                                1e-5 * sqrt(squares[s]));
    ls_file_unmap(&all.f);
}

/* Dumps one0.npz, one1.npz, ...: gradients of single samples. The parameters stay, as the rate is
 * 0. */
static void dump_single(const char *net)
{
    MUST(COMPILE "%s --batch=1 --store-gradients -o one", net);
    for (int s = 0; s < BATCH; s++)
        MUST("./one" RUN "--steps %d --dump one%d.npz", s + 1, s);
}

static const char *const nets[] = {"gpt.onnx", "res.onnx --bn=frozen", "auto.onnx --loss=mse",
                                   "cnn.onnx"};
enum { NNETS = sizeof nets / sizeof *nets };

START_TEST(gradients_of_samples_are_those_of_runs_of_one_sample)
{
    dump_single(nets[_i]);
    MUST(COMPILE "%s --batch=%d --grads=per-sample --store-gradients -o all", nets[_i], BATCH);
    MUST("./all" RUN "--steps 1 --dump all.npz");
    compare_all();
    MUST(COMPILE "%s --batch=%d --grads=per-sample --store-gradients --budget=min -o least",
         nets[_i], BATCH);
    MUST("./least" RUN "--steps 1 --dump least.npz");
    MUST(LS_BUILD "/tests/npz_near all.npz least.npz 0");
    MUST(COMPILE "%s --batch=%d --grads=per-sample-norm --store-gradients -o norms", nets[_i],
         BATCH);
    MUST("./norms" RUN "--steps 1 --dump norms.npz");
    MUST(LS_BUILD "/tests/npz_near norms.npz all.npz 1e-5 psnorm");
    MUST(COMPILE "%s --batch=%d --store-gradients -o mean", nets[_i], BATCH);
    MUST("./mean" RUN "--steps 1 --dump mean.npz");
    MUST(LS_BUILD "/tests/npz_near mean.npz all.npz 1e-5 grad/");
    MUST(LS_BUILD "/tests/npz_near mean.npz norms.npz 1e-5 grad/");
}
END_TEST

/* Pairs of rows, tiles and the gradients of samples give the same norms, and within a way no bit
 * depends on the budget. */
START_TEST(ways_to_a_norm_agree)
{
    static const char *const way[] = {"pairs", "tiles", "terms", "auto"};
    for (int k = 0; k < 4; k++)
        for (int tight = 0; tight < 2; tight++) {
            MUST(
                COMPILE
                "%s --batch=%d --grads=per-sample-norm --sample-norms=%s --store-gradients%s -o %s",
                nets[_i], BATCH, way[k], tight ? " --budget=min" : "", way[k]);
            MUST("./%s" RUN "--steps 1 --dump %s%d.npz", way[k], way[k], tight);
        }
    for (int k = 0; k < 4; k++) {
        MUST(LS_BUILD "/tests/npz_near %s0.npz %s1.npz 0", way[k], way[k]);
        MUST(LS_BUILD "/tests/npz_near %s0.npz terms0.npz 1e-6 psnorm", way[k]);
    }
    ck_assert(sh("cmp -s pairs0.npz terms0.npz") != 0);
}
END_TEST

/* How often the program's graph has this operator. */
static int count_of(const char *op, const char *way)
{
    return sh(LS_BUILD "/lowerset compile -q --emit=c --plan-effort=2 cnn.onnx --batch=3 "
                       "--grads=per-sample-norm --sample-norms=%s -o c_%s "
                       "&& grep -c '%s(' c_%s.c",
              way, way, op,
              way) == 0
               ? atoi(text)
               : 0;
}

/* Each way that is asked for is in the program: two convolutions and two products, whose kernels
 * may be shared. */
START_TEST(each_way_reaches_the_program)
{
    ck_assert_int_gt(count_of("ls_conv_dw_squares", "tiles"), 0);
    ck_assert_int_gt(count_of("ls_matmul_squares", "tiles"), 0);
    ck_assert_int_eq(
        count_of("ls_conv_dw_squares", "terms") + count_of("ls_conv_dw_squares", "pairs"), 0);
    ck_assert_int_eq(
        count_of("ls_matmul_squares", "terms") + count_of("ls_matmul_squares", "pairs"), 0);
    MUST(LS_BUILD "/lowerset plan cnn.onnx --batch=3 --grads=per-sample-norm --sample-norms=pairs "
                  "--plan-effort=2 --dump=fuse");
    ck_assert_ptr_nonnull(strstr(text, "Gather "));                /* of patches */
    MUST(LS_BUILD "/lowerset plan cnn.onnx --batch=3 --grads=per-sample-norm --sample-norms=terms "
                  "--plan-effort=2 --dump=fuse");
    ck_assert_ptr_null(strstr(text, "Gather "));
}
END_TEST

/* Five samples in batches of three: the second batch has two. */
START_TEST(the_last_batch_is_smaller)
{
    float x[5 * 12 * 12];
    int64_t label[5];
    for (int i = 0; i < 5 * 12 * 12; i++)
        x[i] = (float)sin(i);
    for (int i = 0; i < 5; i++)
        label[i] = i;
    write_npz("five.npz", 2,
              (NpzItem[]){{"x", LS_F32, 4, {5, 1, 12, 12}, x}, {"label", LS_I64, 1, {5}, label}});
    MUST(COMPILE "cnn.onnx --batch=3 --grads=per-sample --store-gradients -o all");
    MUST(COMPILE "cnn.onnx --batch=3 --store-gradients -o mean");
    MUST(COMPILE "cnn.onnx --batch=1 --store-gradients -o one");
    MUST("./all --data five.npz --progress none --no-shuffle --lr 0 --steps 2 --dump all.npz");
    MUST("./mean --data five.npz --progress none --no-shuffle --lr 0 --steps 2 --dump mean.npz");
    MUST(LS_BUILD "/tests/npz_near mean.npz all.npz 1e-5 grad/");
    MUST("./one --data five.npz --progress none --no-shuffle --lr 0 --steps 4 --dump one.npz");
    Member all, one;
    ck_assert(open_member("all.npz", "psgrad/fc2.bias", &all)
              && open_member("one.npz", "grad/fc2.bias", &one));
    ck_assert_double_le(distance(&all.a, 0, &one.a), 1e-5);
    ck_assert_double_eq(norm_of(&all.a, 2 * one.a.count, one.a.count), 0);
    ls_file_unmap(&all.f);
    ls_file_unmap(&one.f);
}
END_TEST

/* The clip is half of the least norm: every sample counts half of it, over its own norm. The data
 * are one batch, of which all samples are drawn. */
START_TEST(clipped_sums_are_sums_of_clipped_gradients)
{
    MUST(COMPILE "gpt.onnx --batch=3 --grads=per-sample --store-gradients -o all");
    MUST("./all" RUN "--steps 1 --dump all.npz");
    Member norms, each, sum;
    ck_assert(open_member("all.npz", "psnorm", &norms)
              && open_member("all.npz", "psgrad/transformer.wte.weight", &each));
    double clip = INFINITY;
    for (int s = 0; s < BATCH; s++)
        clip = fmin(clip, 0.5 * ls_array_real(&norms.a, s));
    MUST(COMPILE "gpt.onnx --batch=3 --dp clip=%.9g,noise=0,delta=1e-5,expected-batch=3 "
                 "--store-gradients -o private",
         clip);
    MUST("./private --data synthetic:3 --seed 3 --progress none --lr 0 --steps 1 --dump sum.npz");
    ck_assert(open_member("sum.npz", "grad/transformer.wte.weight", &sum));
    double far = 0, norm = 0;
    for (int64_t i = 0; i < sum.a.count; i++) {
        double want = 0;
        for (int s = 0; s < BATCH; s++)
            want += clip / ls_array_real(&norms.a, s) * ls_array_real(&each.a, s * sum.a.count + i)
                    / BATCH;
        const double d = ls_array_real(&sum.a, i) - want;
        far += d * d, norm += want * want;
    }
    ck_assert_double_le(sqrt(far / norm), 1e-6);
    ls_file_unmap(&norms.f);
    ls_file_unmap(&each.f);
    ls_file_unmap(&sum.f);
}
END_TEST

/* Three samples that are equal: with the same masks they have equal gradients, with different masks
 * they do not. The masks of a sample depend on its place alone, not on the batch. */
START_TEST(random_numbers_are_the_same_or_different_for_samples)
{
    float x[BATCH * 4];
    int64_t label[BATCH] = {0};
    for (int i = 0; i < BATCH * 4; i++)
        x[i] = (float)(i % 4 + 1);
    write_npz(
        "equal.npz", 2,
        (NpzItem[]){{"x", LS_F32, 4, {BATCH, 1, 2, 2}, x}, {"label", LS_I64, 1, {BATCH}, label}});
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=32 --size=2 --dropout=0.5 -o drop.onnx");
    ck_assert_int_ne(sh(COMPILE "drop.onnx --batch=3 --grads=per-sample -o no"), 0);
    ck_assert_msg(strstr(text, "Dropout draws random numbers") != NULL
                      && strstr(text, "--randomness=different") != NULL,
                  "%s", text);
    for (int same = 0; same < 2; same++) {
        Member each;
        MUST(COMPILE
             "drop.onnx --batch=3 --grads=per-sample --store-gradients --randomness=%s -o drop",
             same ? "same" : "different");
        MUST("./drop --data equal.npz --progress none --lr 0 --steps 1 --dump drop.npz");
        ck_assert(open_member("drop.npz", "psgrad/fc1.weight", &each));
        const int64_t n = each.a.count / BATCH;
        double far = 0;
        for (int64_t i = 0; i < n; i++)
            far += fabs(ls_array_real(&each.a, i) - ls_array_real(&each.a, n + i));
        ck_assert_msg(same ? far == 0 : far > 0, "%s: %g", same ? "same" : "different", far);
        ls_file_unmap(&each.f);
    }
    MUST(COMPILE
         "drop.onnx --batch=2 --grads=per-sample --store-gradients --randomness=different -o two");
    MUST("./two --data equal.npz --progress none --lr 0 --steps 1 --dump two.npz");
    MUST(COMPILE "drop.onnx --batch=3 --grads=per-sample --store-gradients --randomness=different "
                 "--budget=min -o three");
    MUST("./three --data equal.npz --progress none --lr 0 --steps 1 --dump three.npz");
    Member two, three;
    ck_assert(open_member("two.npz", "psgrad/fc1.weight", &two)
              && open_member("three.npz", "psgrad/fc1.weight", &three));
    for (int64_t i = 0; i < two.a.count; i++)
        ck_assert_double_eq_tol(ls_array_real(&two.a, i), ls_array_real(&three.a, i), 1e-6);
    ls_file_unmap(&two.f);
    ls_file_unmap(&three.f);
    ck_assert_int_ne(sh(COMPILE "drop.onnx --batch=3 --randomness=same -o no"), 0);
}
END_TEST

/* h0 [4, 5] has a row for each sample, as a start state of zeros. U, which it is multiplied by and
 * which is used twice, has a gradient for each sample. Trained, each sample has a gradient of its
 * own row; frozen, it is a constant. Data of k samples alone leave the gradients of the first k. */
START_TEST(a_state_with_a_row_for_each_sample_is_no_mixture)
{
    enum { N = 4 };
    static const char *const param[] = {"U", "W", "F", "h0"};
    float x[N * 6];
    const int64_t label[N] = {0, 2, 1, 1};
    for (int i = 0; i < N * 6; i++)
        x[i] = (float)sin(1.7 * i);
    for (int frozen = 0; frozen < 2; frozen++) {
        MUST(COMPILE LS_SOURCE
             "/tests/data/faults/persample-constant-state/net.onnx --store-gradients%s -o mean",
             frozen ? " --freeze h0" : "");
        MUST(COMPILE LS_SOURCE "/tests/data/faults/persample-constant-state/net.onnx "
                               "--store-gradients%s --grads=per-sample -o all",
             frozen ? " --freeze h0" : "");
        for (int k = 1; k <= N; k++) {
            write_npz("few.npz", 2,
                      (NpzItem[]){{"x", LS_F32, 2, {k, 6}, x}, {"label", LS_I64, 1, {k}, label}});
            MUST("./%s --data few.npz --progress none --no-shuffle --lr 0 --steps 1 --dump "
                 "few%d.npz",
                 k < N ? "mean" : "all", k);
        }
        MUST("./mean --data few.npz --progress none --no-shuffle --lr 0 --steps 1 --dump mean.npz");
        for (int p = 0; p < 4 - frozen; p++) {
            char key[2][32];
            Member each, norms, whole, one;
            snprintf(key[0], sizeof key[0], "psgrad/%s", param[p]);
            snprintf(key[1], sizeof key[1], "grad/%s", param[p]);
            ck_assert(open_member("few4.npz", key[0], &each)
                      && open_member("mean.npz", key[1], &whole));
            ck_assert(open_member("few1.npz", key[1], &one));
            ck_assert_int_eq(each.a.count, N * whole.a.count);
            ck_assert_double_le(distance(&each.a, 0, &one.a), 1e-5);
            double far = 0;
            for (int64_t i = 0; i < whole.a.count; i++) {
                double sum = 0;
                for (int s = 0; s < N; s++)
                    sum += ls_array_real(&each.a, s * whole.a.count + i);
                far = fmax(far, fabs(sum / N - ls_array_real(&whole.a, i)));
            }
            ck_assert_double_le(far, 1e-6);
            snprintf(key[0], sizeof key[0], "psnorm/%s", param[p]);
            ck_assert(open_member("few4.npz", key[0], &norms));
            for (int s = 0; s < N; s++)
                ck_assert_double_eq_tol(ls_array_real(&norms.a, s),
                                        norm_of(&each.a, s * whole.a.count, whole.a.count), 1e-5);
            for (int64_t i = 0; p == 3 && i < each.a.count; i++)
                ck_assert(i / 5 % N == i / 20 || ls_array_real(&each.a, i) == 0);
        }
    }
}
END_TEST

/* A batch of one sample: its gradient is that of the batch. */
START_TEST(a_batch_may_be_one_sample)
{
    Member each, norm;
    MUST(COMPILE "gpt.onnx --batch=1 --grads=per-sample --store-gradients -o one");
    MUST("./one" RUN "--steps 1 --dump one.npz");
    MUST(COMPILE "gpt.onnx --batch=1 --store-gradients -o mean");
    MUST("./mean" RUN "--steps 1 --dump mean.npz");
    MUST(LS_BUILD "/tests/npz_near mean.npz one.npz 0 grad/");
    ck_assert(open_member("one.npz", "psgrad/transformer.wte.weight", &each)
              && open_member("one.npz", "psnorm/transformer.wte.weight", &norm));
    ck_assert_double_eq_tol(ls_array_real(&norm.a, 0), norm_of(&each.a, 0, each.a.count), 1e-5);
    ls_file_unmap(&each.f);
    ls_file_unmap(&norm.f);
    MUST(COMPILE "gpt.onnx --batch=1 --dp=clip=1,noise=1,delta=1e-5 -o private");
    ck_assert_int_ne(sh(COMPILE "res.onnx --batch=1 --grads=per-sample -o no"), 0);
    ck_assert_ptr_nonnull(strstr(text, "batch norms take statistics"));
}
END_TEST

START_TEST(what_has_no_gradient_of_a_sample_is_refused)
{
    ck_assert_int_ne(sh(COMPILE "res.onnx --batch=4 --grads=per-sample -o no"), 0);
    ck_assert_ptr_nonnull(strstr(text, "batch norms take statistics of all samples"));
    ck_assert_ptr_nonnull(strstr(text, "--bn=frozen"));
    const char *names = strstr(text, "of its own: ");
    ck_assert_ptr_nonnull(names);
    ck_assert_ptr_nonnull(strchr(names, ','));
    ck_assert_int_ne(sh(COMPILE "gpt.onnx --batch=4 --grads=per-sample --ignore-index=0 -o no"), 0);
    ck_assert_ptr_nonnull(strstr(text, "a sample has no loss of its own"));
    ck_assert_int_ne(sh(COMPILE "gpt.onnx --batch=4 --grads=per-sample --precision=f16 -o no"), 0);
    ck_assert_ptr_nonnull(strstr(text, "--loss-scale=none"));
    ck_assert_int_ne(sh(COMPILE "gpt.onnx --batch=4 --dp clip=1,noise=1 -o no"), 0);
    ck_assert_ptr_nonnull(strstr(text, "delta= is missing"));
    ck_assert_int_ne(sh(COMPILE "gpt.onnx --batch=4 --dp clip=0,noise=1,delta=1e-5 -o no"), 0);
    ck_assert_ptr_nonnull(strstr(text, "clip=0: must be a number above 0"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("per_sample");
    tcase_add_loop_test(t, gradients_of_samples_are_those_of_runs_of_one_sample, 0,
                        tests_do_less() ? 1 : tests_part(NNETS, 2));
    tcase_add_loop_test(t, ways_to_a_norm_agree, 0, tests_do_less() ? 1 : tests_part(NNETS, 1));
    tcase_add_test(t, each_way_reaches_the_program);
    tcase_add_test(t, the_last_batch_is_smaller);
    tcase_add_test(t, clipped_sums_are_sums_of_clipped_gradients);
    tcase_add_test(t, random_numbers_are_the_same_or_different_for_samples);
    tcase_add_test(t, a_state_with_a_row_for_each_sample_is_no_mixture);
    tcase_add_test(t, a_batch_may_be_one_sample);
    tcase_add_test(t, what_has_no_gradient_of_a_sample_is_refused);
    return run_command_lines("per_sample", t, make_nets);
}
