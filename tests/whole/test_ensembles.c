/* tests/whole/test_ensembles.c -- models that are trained together, through the command line: every
 * member is, to the bit, what a program of its own would have made of it. */
#include "runtime/data/npz.h"
#include "tests/support/command_line.h"
#include "tests/support/less.h"
#include "tests/support/npz_util.h"
#include "tests/support/suite.h"

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 --store-gradients "
#define QUIET " --progress none "

enum { BATCH = 4, SAMPLES = 3 * BATCH, PIXELS = 9 };

/* Samples of the small network, in one file and, for members with batches of their own, in a file
 * for each. */
static void make_data(void)
{
    static float x[SAMPLES * PIXELS];
    int64_t label[SAMPLES];
    char path[32];
    for (int i = 0; i < SAMPLES * PIXELS; i++)
        x[i] = wave(i, 1);
    for (int i = 0; i < SAMPLES; i++)
        label[i] = i * 7 % 10;
    write_npz("all.npz", 2,
              (NpzItem[]){{"x", LS_F32, 4, {SAMPLES, 1, 3, 3}, x},
                          {"label", LS_I64, 1, {SAMPLES}, label}});
    for (int k = 0; k < SAMPLES / BATCH; k++) {
        snprintf(path, sizeof path, "part%d.npz", k);
        write_npz(path, 2, (NpzItem[]){{"x", LS_F32, 4, {BATCH, 1, 3, 3}, x + k * BATCH * PIXELS},
                                       {"label", LS_I64, 1, {BATCH}, label + k * BATCH}});
    }
}

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model mlp --width=32 --size=3 -o mlp.onnx");
    MUST(LS_BUILD "/lowerset model mlp --width=32 --size=3 --dropout=0.5 -o drop.onnx");
    MUST(LS_BUILD "/lowerset model cnn --size=12 --width=4 -o cnn.onnx");
    MUST(LS_BUILD
         "/lowerset model resnet18 --stem=cifar --width=2 --classes=4 --size=8 -o res.onnx");
    make_data();
}

/* Compares all values in one.npz with the part of member k, of n, in all.npz. */
static void compare(const char *all, int64_t n, int64_t k, const char *one)
{
    LsFile f, g;
    LsError e = {0};
    LsArray a, b;
    const char *name;
    size_t length;
    bool found = true;
    uint32_t seen = 0;
    ck_assert_msg(ls_file_map(&f, all, &e) && ls_file_map(&g, one, &e), "%s", e.text);
    for (;; seen++) {
        char key[300];
        ck_assert(ls_npz_at(&g, seen, &name, &length, &b, &found, &e));
        if (!found)
            break;
        snprintf(key, sizeof key, "%.*s", (int)length, name);
        ck_assert(ls_npz_find(&f, key, &a, &found, &e));
        ck_assert_msg(found && a.count == n * b.count, "%s", key);
        for (int64_t i = 0; i < b.count; i++)
            ck_assert_msg(ls_array_real(&a, k * b.count + i) == ls_array_real(&b, i),
                          "%s of member %d, element %d: %.9g, alone %.9g", key, (int)k, (int)i,
                          ls_array_real(&a, k * b.count + i), ls_array_real(&b, i));
    }
    ck_assert_uint_gt(seen, 8);
    ls_file_unmap(&f);
    ls_file_unmap(&g);
}

/* Writes an ensemble's members as models, with their initial weights. */
static void export_members(const char *program, int n)
{
    for (int k = 0; k < n; k++)
        MUST("./%s --data synthetic --steps 1 --lr 0 --ensemble-seed 5 --export first%d.onnx "
             "--export-member %d" QUIET,
             program, k, k);
}

/* What members share: all but the weights that they begin with. */
static const struct { const char *compile, *lanes, *run;
} same[] = {
    {"mlp.onnx --batch=4 --optimizer=adam", "", ""},
    {"cnn.onnx --batch=4 --clip-norm=0.1 --accumulate=2", "", "--drop-last "},
    {"cnn.onnx --batch=5 --precision=bf16 --budget=min", "--ensemble-lanes=2 ",
     "--threads 3 "}, /* the last batch is smaller */
};
enum { NSAME = sizeof same / sizeof *same };

START_TEST(members_are_what_programs_of_their_own_would_be)
{
    enum { N = 3 };
    const char *compile = same[_i].compile, *run = same[_i].run;
    char one[32];
    MUST(COMPILE "%s --ensemble=3 %s-o all", compile, same[_i].lanes);
    export_members("all", N);
    MUST("./all --data synthetic:37 --steps 5 %s--ensemble-seed 5 --lr 0.05 --dump "
         "all_out.npz" QUIET,
         run);
    for (int k = 0; k < N; k++) {
        const char *rest = strchr(compile, ' ');
        snprintf(one, sizeof one, "one%d.npz", k);
        MUST(COMPILE "first%d.onnx%s -o one", k, rest);
        MUST("./one --data synthetic:37 --steps 5 %s--lr 0.05 --dump %s" QUIET, run, one);
        compare("all_out.npz", N, k, one);
    }
}
END_TEST

/* Batch norms: every member has statistics of its own. Rates: of every member. */
START_TEST(members_have_rates_and_statistics_of_their_own)
{
    static const char *const rate[] = {"0.1", "0.003"};
    MUST(COMPILE "res.onnx --batch=4 --ensemble=2 --schedule=cosine -o all");
    MUST("./all --data synthetic:8 --steps 3 --member-rates 0.1,0.003 --dump all_out.npz --val "
         "synthetic:8" QUIET);
    const double mean = told("val_loss ");
    MUST(COMPILE "res.onnx --batch=4 --schedule=cosine -o one");
    double sum = 0;
    for (int k = 0; k < 2; k++) {
        MUST("./one --data synthetic:8 --steps 3 --lr %s --dump one.npz --val synthetic:8" QUIET,
             rate[k]);
        sum += told("val_loss ");
        compare("all_out.npz", 2, k, "one.npz");
    }
    ck_assert_double_eq_tol(mean, sum / 2, 1e-6 * mean);
}
END_TEST

START_TEST(members_have_masks_of_their_own_or_the_same)
{
    ck_assert_int_ne(sh(COMPILE "drop.onnx --batch=4 --ensemble=2 -o no"), 0);
    ck_assert_msg(strstr(text, "Dropout draws random numbers") != NULL
                      && strstr(text, "--randomness=different") != NULL,
                  "%s", text);
    MUST(COMPILE "drop.onnx --batch=4 -o one");
    for (int equal = 0; equal < 2; equal++) {
        MUST(COMPILE "drop.onnx --batch=4 --ensemble=2 --randomness=%s -o all",
             equal ? "same" : "different");
        MUST("./all --data all.npz --no-shuffle --steps 3 --seed 3 --member-seeds 3,11 --dump "
             "all_out.npz" QUIET);
        for (int k = 0; k < 2; k++) {
            MUST("./one --data all.npz --no-shuffle --steps 3 --seed %d --dump one.npz" QUIET,
                 k == 1 && !equal ? 11 : 3);
            compare("all_out.npz", 2, k, "one.npz");
        }
    }
}
END_TEST

START_TEST(members_may_have_batches_of_their_own)
{
    MUST(COMPILE "mlp.onnx --batch=4 --ensemble=3 --ensemble-batches=each -o all");
    MUST("./all --data all.npz --no-shuffle --epochs 2 --lr 0.05 --dump all_out.npz --val "
         "part0.npz" QUIET);
    MUST(COMPILE "mlp.onnx --batch=4 -o one");
    for (int k = 0; k < 3; k++) {
        MUST("./one --data part%d.npz --no-shuffle --epochs 2 --lr 0.05 --dump one.npz" QUIET, k);
        compare("all_out.npz", 3, k, "one.npz");
    }
    ck_assert_int_ne(sh("./all --data part0.npz" QUIET), 0);
    ck_assert_ptr_nonnull(strstr(text, "do not fill a batch of 12, one for all members"));
}
END_TEST

/* Element i of member NAME. */
static double element(const char *path, const char *name, int64_t i)
{
    LsFile f;
    LsError e = {0};
    LsArray a;
    bool found = false;
    ck_assert(ls_file_map(&f, path, &e) && ls_npz_find(&f, name, &a, &found, &e));
    ck_assert_msg(found && i < a.count, "%s", name);
    const double v = ls_array_real(&a, i);
    ls_file_unmap(&f);
    return v;
}

START_TEST(a_member_is_exported_and_all_are_averaged)
{
    MUST(COMPILE "mlp.onnx --batch=4 --ensemble=3 -o all");
    MUST("./all --data all.npz --ensemble-seed 2 --steps 4 --save kept --export best.onnx "
         "--export-member 2" QUIET);
    MUST("./all --data all.npz --save kept --resume auto --eval --dump eval.npz" QUIET);
    const char *losses = strstr(text, "members' val_losses ");
    ck_assert_msg(losses != NULL, "%s", text);
    double loss[3] = {0};
    sscanf(losses, "members' val_losses %lf (%*f) %lf (%*f) %lf", &loss[0], &loss[1], &loss[2]);
    ck_assert_double_eq_tol(told("val_loss "), (loss[0] + loss[1] + loss[2]) / 3, 1e-6);
    for (int i = 0; i < BATCH * 10; i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++)
            sum += element("eval.npz", "out/y", k * BATCH * 10 + i);
        ck_assert_double_eq_tol(element("eval.npz", "mean/y", i), sum / 3, 1e-6);
    }
    MUST(COMPILE "best.onnx --batch=4 -o best");
    MUST("./best --data all.npz --eval" QUIET);
    ck_assert_double_eq(told("val_loss "), loss[2]);
    ck_assert_int_ne(sh("./all --data all.npz --export no.onnx" QUIET), 0);
    ck_assert_ptr_nonnull(strstr(text, "--export-member"));
}
END_TEST

START_TEST(checkpoints_hold_all_members)
{
    MUST(COMPILE "mlp.onnx --batch=4 --ensemble=2 --optimizer=adam -o all");
    MUST("./all --data all.npz --ensemble-seed 2 --steps 4 --dump whole.npz" QUIET);
    MUST("./all --data all.npz --ensemble-seed 2 --steps 2 --save half" QUIET);
    MUST("./all --data all.npz --ensemble-seed 2 --steps 4 --save half --resume auto --dump "
         "rest.npz" QUIET);
    compare("whole.npz", 1, 0, "rest.npz");
    MUST(COMPILE "mlp.onnx --batch=4 --optimizer=adam -o one");
    ck_assert_int_ne(sh("./one --data all.npz --save half --resume auto" QUIET), 0);
    ck_assert_msg(strstr(text, "is 2x") != NULL, "%s", text);
}
END_TEST

START_TEST(weights_come_from_an_archive)
{
    static float w[2 * 32 * 9], b[2 * 32], v[2 * 10 * 32], c[2 * 10];
    for (int i = 0; i < 2 * 32 * 9; i++)
        w[i] = 0.1f * wave(i, 3);
    for (int i = 0; i < 2 * 10 * 32; i++)
        v[i] = 0.1f * wave(i, 4);
    const NpzItem item[] = {{"stack/fc1.weight", LS_F32, 3, {2, 32, 9}, w},
                            {"fc1.bias", LS_F32, 2, {2, 32}, b},
                            {"stack/fc2.weight", LS_F32, 3, {2, 10, 32}, v},
                            {"fc2.bias", LS_F32, 2, {2, 10}, c}};
    write_npz("w.npz", 4, item);
    write_npz("few.npz", 3, item);
    MUST(COMPILE "mlp.onnx --batch=4 --ensemble=2 -o all");
    MUST("./all --data all.npz --ensemble-weights w.npz --steps 1 --lr 0 --dump w_out.npz" QUIET);
    for (int i = 0; i < 2 * 32 * 9; i++)
        ck_assert_double_eq(element("w_out.npz", "param/fc1.weight", i), (double)w[i]);
    for (int i = 0; i < 2 * 10 * 32; i++)
        ck_assert_double_eq(element("w_out.npz", "param/fc2.weight", i), (double)v[i]);
    ck_assert_int_ne(sh("./all --data all.npz --ensemble-weights few.npz" QUIET), 0);
    ck_assert_ptr_nonnull(strstr(text, "there is no member 'fc2.bias'"));
    MUST(COMPILE "mlp.onnx --batch=4 --ensemble=3 -o three");
    ck_assert_int_ne(sh("./three --data all.npz --ensemble-weights w.npz" QUIET), 0);
    ck_assert_ptr_nonnull(strstr(text, "2x32x9, it must be reals 3x32x9"));
}
END_TEST

START_TEST(a_member_that_diverges_leaves_the_others_alone)
{
    MUST(COMPILE "mlp.onnx --batch=4 --ensemble=2 -o all");
    MUST("./all --data all.npz --steps 6 --member-rates 0.01,1e30 --dump all_out.npz --log "
         "log" QUIET);
    ck_assert_msg(strstr(text, "the loss of member 1 is") != NULL, "%s", text);
    MUST(COMPILE "mlp.onnx --batch=4 -o one");
    MUST("./one --data all.npz --steps 6 --lr 0.01 --dump one.npz" QUIET);
    compare("all_out.npz", 2, 0, "one.npz");
    MUST("grep -q '\"losses\":\\[[0-9.]*,null\\]' log");
    ck_assert_int_eq(sh("./all --data all.npz --steps 6 --lr 1e30" QUIET), 7);
}
END_TEST

START_TEST(what_ensembles_cannot_do_is_refused)
{
    static const struct { const char *options, *why; } row[] = {
        {"--ensemble=2 --ensemble-lanes=3", "more lanes than members"},
        {"--ensemble=2 --grads=per-sample", "--grads and --dp are for one model"},
        {"--ensemble=2 --precision=f16", "--loss-scale=none"},
        {"--ensemble=2 --target=cuda --arch=90", "--target=cpu"},
        {"--ensemble=2 --microbatches=2", "leave --microbatches out"},
        {"--ensemble-batches=each", "no members without --ensemble"},
        {"--ensemble=1", "--ensemble"},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        ck_assert_int_ne(sh(COMPILE "mlp.onnx --batch=4 %s -o no", row[k].options), 0);
        ck_assert_msg(strstr(text, row[k].why) != NULL, "%s: %s", row[k].options, text);
    }
    MUST(COMPILE "mlp.onnx --batch=4 -o one");
    ck_assert_int_ne(sh("./one --data all.npz --member-rates 1,2" QUIET), 0);
    ck_assert_ptr_nonnull(strstr(text, "this program is one model"));
    MUST(COMPILE "mlp.onnx --batch=4 --ensemble=2 -o all");
    ck_assert_int_ne(sh("./all --data all.npz --member-seeds 1,2,3" QUIET), 0);
    ck_assert_ptr_nonnull(strstr(text, "more than 2 numbers"));
    ck_assert_int_eq(sh("./all --data all.npz --ensemble-seed 1 --ensemble-weights w.npz" QUIET),
                     2);
    ck_assert_ptr_nonnull(strstr(text, "both set the initial weights"));
    ck_assert_int_eq(sh("./all --data all.npz --export a.onnx --export-member 2" QUIET), 2);
    ck_assert_ptr_nonnull(strstr(text, "members are numbered from 0 to 1"));
    ck_assert_int_eq(sh("./all --data all.npz --export-member 1" QUIET), 2);
    ck_assert_ptr_nonnull(strstr(text, "--export-member is for --export FILE"));
    ck_assert_int_ne(sh("./all --data all.npz --check-gradients" QUIET), 0);
    ck_assert_ptr_nonnull(strstr(text, "--check-gradients is for one model"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ensembles");
    tcase_add_loop_test(t, members_are_what_programs_of_their_own_would_be, 0,
                        tests_do_less() ? 1 : tests_part(NSAME, 3));
    tcase_add_test(t, members_have_rates_and_statistics_of_their_own);
    tcase_add_test(t, members_have_masks_of_their_own_or_the_same);
    tcase_add_test(t, members_may_have_batches_of_their_own);
    tcase_add_test(t, a_member_is_exported_and_all_are_averaged);
    tcase_add_test(t, checkpoints_hold_all_members);
    tcase_add_test(t, weights_come_from_an_archive);
    tcase_add_test(t, a_member_that_diverges_leaves_the_others_alone);
    tcase_add_test(t, what_ensembles_cannot_do_is_refused);
    return run_command_lines("ensembles", t, make_nets);
}
