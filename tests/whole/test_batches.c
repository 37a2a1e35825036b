/* tests/whole/test_batches.c -- losses over several batches, through the command line: an update of
 * several batches equals the update of one large batch, for every loss, optimizer, clipping and
 * budget; so does an evaluation. The programs use doubles, so only rounding differs. Labels must
 * have the shape that fits the axis of the classes.
 *
 * The network is x [N, 6] -> 5 -> relu -> 3 classes; data go by .npy files. */
#include "tests/support/less.h"
#include "tests/support/suite.h"
#include "tests/support/wave_weight.h"

#include <math.h>

enum { SAMPLES = 14, FEATURES = 6, CLASSES = 3 };      /* 14: the last of 4 or 8 is not whole */

/* ---- data ---- */

/* label: NULL: real targets, 0 or 1. */
static void write_data(const int64_t *label)
{
    float x[SAMPLES * FEATURES], y[SAMPLES * CLASSES];
    for (int i = 0; i < SAMPLES * FEATURES; i++)
        x[i] = wave(i, 1);
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        y[i] = i * 5 % 3 == 1;
    write_npy("x.npy", "<f4", "14, 6", x, sizeof x);
    if (label != NULL)
        write_npy("t.npy", "<i8", "14,", label, SAMPLES * sizeof *label);
    else
        write_npy("t.npy", "<f4", "14, 3", y, sizeof y);
}

/* ---- the network ---- */

/* Makes m.onnx in a new folder and goes there. loss: operator of the file's own loss, over labels
 * t; NULL: none. The caller may add to the model, then writes it. */
static Onnx__NodeProto *open_net(Make *mk, const char *loss)
{
    Onnx__NodeProto *n = NULL;
    make_begin(mk, 17);
    make_input(mk, "x", "Nx6");
    wave_weight(mk, "w1", "6x5", 30, 2);
    wave_weight(mk, "b1", "5", 5, 3);
    wave_weight(mk, "w2", "5x3", 15, 4);
    wave_weight(mk, "b2", "3", 3, 5);
    make_node(mk, "Gemm", "x w1 b1", "h");
    make_node(mk, "Relu", "h", "r");
    make_node(mk, "Gemm", "r w2 b2", "y");
    if (loss != NULL) {
        MAKE_PUSH(mk, mk->g->input, mk->g->n_input, make_value(mk, "t", MAKE_I64, "N"));
        n = make_node(mk, loss, "y t", "loss");
    }
    make_output(mk, loss != NULL ? "loss" : "y");
    ck_assert_int_eq(chdir(mk->dir), 0);
    return n;
}

static void write_net(Make *mk)
{
    unsigned char *bytes;
    size_t n = make_pack(mk, &bytes);
    make_write(mk, bytes, n);
}

/* Runs two epochs of the program `to` with this batch size; its results are in TO.npz. */
static void train(const char *to, const char *options, const char *batches, const char *label)
{
    MUST(LS_BUILD "/lowerset compile m.onnx -q -O0 --precision=f64 --plan-effort=2 %s %s -o %s",
         options, batches, to);
    MUST("./%s --data x.npy,%s=t.npy --no-shuffle --epochs 2 --lr 0.3 --dump %s.npz", to, label,
         to);
}

static void check_near(const char *a, const char *b, const char *options)
{
    ck_assert_msg(sh(LS_BUILD "/tests/npz_near '%s' '%s' 1e-10 param/", a, b) == 0,
                  "%s: %s", options, text);
}

/* ---- cases ---- */

typedef struct Case {
    const char *options, *loss;         /* loss: of the file, in mean or sum; NULL: as the options
                                         * say */
    const char *reduction;
    bool ignores;                       /* by the file */
    bool real;
} Case;

static const Case cases[] = {
    {.options = "--ignore-index=-100 --optimizer=sgd:momentum=0.9"},
    {.options = "--ignore-index=1 --class-weights=0.5,1,2 --label-smoothing=0.1 "
                "--optimizer=adam:eps=1e-3 --clip-norm=0.2"},
    {.options = "--class-weights=0,1,2 --label-smoothing=0.1 --optimizer=adamw:eps=1e-3 "
                "--clip-value=0.02 --ignore-index=-100"},
    {.options = "--ignore-index=-100 --optimizer=sgd --clip-norm=0.1 --budget=min"},
    {.options = "--loss=mse --optimizer=sgd:momentum=0", .real = true},
    {.options = "--loss=l1 --optimizer=sgd:momentum=0.5 --clip-norm=0.1", .real = true},
    {.options = "--loss=bce --optimizer=adam:eps=1e-3", .real = true},
    {.options = "--loss=kl:y@0.5,huber:y@delta=0.5,smooth_l1:y@beta=0.2,cosine:y@2 --optimizer=sgd",
     .real = true},
    {.options = "--loss=nll@3 --ignore-index=-100 --class-weights=0.5,1,2 --clip-norm=0.1"},
    {.options = "--loss=graph --clip-norm=0.1", .loss = "SoftmaxCrossEntropyLoss", .ignores = true},
    {.options = "--loss=graph --optimizer=sgd:momentum=0.9",
     .loss = "SoftmaxCrossEntropyLoss",
     .reduction = "sum"},
};
enum { NCASE = sizeof cases / sizeof *cases };

static const int64_t some[SAMPLES] = {-100, 1, -100, 0, 2, 1, 1, 0, -100, -100, -100, -100, 2, 0},
                     classes[SAMPLES] = {0, 1, 1, 0, 2, 1, 1, 0, 1, 1, 1, 1, 2, 0};

static void open_case(Make *mk, const Case *c)
{
    Onnx__NodeProto *loss = open_net(mk, c->loss);
    if (c->ignores)
        make_int(mk, loss, "ignore_index", -100);
    if (c->reduction != NULL) {
        Onnx__AttributeProto *a =
            make_attr(mk, loss, "reduction", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
        a->has_s = true;
        a->s.data = (uint8_t *)ls_arena_strdup(mk->cx.arena, c->reduction);
        a->s.len = strlen(c->reduction);
    }
    write_net(mk);
    bool some_count = c->ignores || strstr(c->options, "-100") != NULL;
    write_data(c->real ? NULL : some_count ? some : classes);
}

START_TEST(several_batches_are_one_large_batch)
{
    const Case *c = &cases[_i];
    const char *label = c->loss != NULL ? "t" : "label";
    Make mk;
    open_case(&mk, c);
    train("one", c->options, "--batch=8", label);
    double epoch = told("epoch 2  step 4  loss ");
    static const char *const way[] = {"--batch=4 --accumulate=2", "--batch=8 --microbatches=4"};
    for (int k = 1; k >= 0; k--) {
        train("many", c->options, way[k], label);
        ck_assert_double_eq_tol(told("epoch 2  step 4  loss "), epoch, 1e-10 * fabs(epoch));
        check_near("one.npz", "many.npz", c->options);
    }
    MUST("./one --eval --data x.npy,%s=t.npy", label);
    double loss = told("val_loss ");
    MUST("./many --eval --data x.npy,%s=t.npy", label);
    ck_assert_double_eq_tol(told("val_loss "), loss, 1e-10 * fabs(loss));
    make_end(&mk);
}
END_TEST

/* Gradients computed by their updates have the bits of stored gradients. */
START_TEST(a_large_weight_takes_the_means_too)
{
    const char *options =
        "--ignore-index=-100 --class-weights=0.5,1,2 --optimizer=sgd:momentum=0.9 "
        "--batch=2 --accumulate=2";
    Make mk;
    make_begin(&mk, 17);
    make_input(&mk, "x", "Nx6");
    float *v = ls_arena_alloc(mk.cx.arena, 512 * 1024, sizeof *v);
    wave_weight(&mk, "b", "3", 3, 2);
    const struct { const char *name, *dims; int n; } w[] = {
        {"w1", "6x512", 6 * 512}, {"w2", "512x1024", 512 * 1024}, {"w3", "1024x3", 1024 * 3}};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < w[k].n; i++)
            v[i] = 0.05f * wave(i, k);
        MAKE_PUSH(
            &mk, mk.g->initializer, mk.g->n_initializer,
            make_tensor(&mk, w[k].name, MAKE_FLOAT, w[k].dims, v, (size_t)w[k].n * sizeof *v));
    }
    make_node(&mk, "MatMul", "x w1", "h1");
    make_node(&mk, "MatMul", "h1 w2", "h2");
    make_node(&mk, "Gemm", "h2 w3 b", "y");
    make_output(&mk, "y");
    ck_assert_int_eq(chdir(mk.dir), 0);
    write_net(&mk);
    write_data(some);
    for (int k = 0; k < 2; k++)
        MUST(LS_BUILD "/lowerset compile m.onnx -q -O1 --plan-effort=2 %s %s -o t%d", options,
             k == 1 ? "--store-gradients" : "", k);
    for (int k = 0; k < 2; k++)
        MUST("./t%d --data x.npy,label=t.npy --no-shuffle --epochs 1 --lr 0.01 --no-export-notes "
             "--export c%d.onnx",
             k, k);
    MUST("./t0 --data x.npy,label=t.npy --steps 1 --dump d.npz");
    ck_assert_ptr_nonnull(strstr(text, "will lack 1 gradient"));
    MUST("cmp c0.onnx c1.onnx");
    make_end(&mk);
}
END_TEST

START_TEST(a_window_without_a_label_changes_nothing_and_is_told)
{
    int64_t none[SAMPLES];
    Make mk;
    open_net(&mk, NULL);
    write_net(&mk);
    for (int i = 0; i < SAMPLES; i++)
        none[i] = -100;
    write_data(none);
    train("t", "--ignore-index=-100 --optimizer=sgd:momentum=0", "--batch=4 --accumulate=2",
          "label");
    ck_assert_ptr_nonnull(strstr(text, "step 1: no label counts"));
    ck_assert_double_eq(told("epoch 2  step 4  loss "), 0);
    MUST("./t --data x.npy,label=t.npy --steps 1 --lr 0 --dump before.npz");
    check_near("before.npz", "t.npz", "");
    make_end(&mk);
}
END_TEST

/* y [N, 4, 5] = x w, element by element: nothing shows which axis has the classes. */
START_TEST(labels_of_another_class_axis_are_refused)
{
    const char *compile = LS_BUILD "/lowerset compile m.onnx -O0 --plan-effort=2 --batch=7";
    float x[SAMPLES * 20];
    int64_t t[SAMPLES * 5];
    Make mk;
    make_begin(&mk, 17);
    make_input(&mk, "x", "Nx4x5");
    wave_weight(&mk, "w", "4x5", 20, 1);
    make_node(&mk, "Mul", "x w", "y");
    make_output(&mk, "y");
    ck_assert_int_eq(chdir(mk.dir), 0);
    write_net(&mk);
    for (int i = 0; i < SAMPLES * 20; i++)
        x[i] = wave(i, 1);
    for (int i = 0; i < SAMPLES * 5; i++)
        t[i] = i * 7 / 3 % 4;
    write_npy("x.npy", "<f4", "14, 4, 5", x, sizeof x);
    write_npy("t.npy", "<i8", "14, 5", t, sizeof t);
    ck_assert_int_eq(sh("%s -o t", compile), 1);
    ck_assert_ptr_nonnull(
        strstr(text, "4 classes on axis 1 (labels 7x5), or 5 on axis 2 (labels 7x4)"));
    MUST("%s --class-axis=2 -o t", compile);
    ck_assert_int_eq(sh("./t --data x.npy,t.npy"), 8);
    ck_assert_ptr_nonnull(
        strstr(text, "shape 14x5 does not fit input 'label', which for one batch is 7x4, "
                     "because axis 2 of the scores has the classes"));
    ck_assert_ptr_nonnull(strstr(text, "lowerset compile --class-axis"));
    for (int k = 0; k < 2; k++) {
        MUST("%s --class-axis=%s -o t", compile, k == 0 ? "1" : "-2");
        ck_assert_ptr_null(strstr(text, "class-axis"));
        MUST("./t --data x.npy,t.npy --eval");
        double sum = 0, all = 0;
        for (int p = 0; p < SAMPLES * 5; p++) {
            for (int c = 0; c < 4; c++)
                all += exp(x[p / 5 * 20 + c * 5 + p % 5] * 0.7f * wave(c * 5 + p % 5, 1));
            sum += log(all) - (double)(x[p / 5 * 20 + t[p] * 5 + p % 5] * 0.7f
                                       * wave((int)t[p] * 5 + p % 5, 1));
            all = 0;
        }
        ck_assert_double_eq_tol(told("val_loss "), sum / (SAMPLES * 5), 1e-5);
    }
    MUST("%s --label-shape=7x5 -o by_label", compile);
    ck_assert_ptr_null(strstr(text, "class-axis"));
    MUST("./by_label --data x.npy,t.npy --eval");
    ck_assert_int_eq(sh("%s --label-shape=7x6 -o t", compile), 1);
    ck_assert_ptr_nonnull(strstr(text, "labels 7x6 fit none of its axes"));
    static const char *const bad[] = {"--class-axis=0",   "--class-axis=x",
                                      "--class-axis=1.5", "--class-axis=1 --loss=mse",
                                      "--label-shape=7x", "--label-shape=7x5 --loss=mse"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        ck_assert_int_eq(sh("%s %s -o t", compile, bad[k]), 2);
    ck_assert_int_eq(sh("%s --class-axis=3 -o t", compile), 1);
    ck_assert_ptr_nonnull(strstr(text, "no axis 3 of classes"));
    make_end(&mk);
}
END_TEST

/* Outputs y [N, 3] and h [N, 5], each with a loss and a target of its own, which data name. */
START_TEST(each_output_has_its_target)
{
    static const char *const loss[] = {"ce:y,mse:h@0.5", "ce", "mse --loss-input=h"};
    static const char *const data[] = {"label.h=h.npy,label.y=t.npy,x=x.npy", "x.npy,label=t.npy",
                                       "x.npy,h.npy"};
    const char *compile =
        LS_BUILD "/lowerset compile m.onnx -q -O0 --precision=f64 --plan-effort=2 --optimizer=sgd";
    float h[SAMPLES * 5];
    double told_of[3];
    Make mk;
    open_net(&mk, NULL);
    make_output(&mk, "h");
    write_net(&mk);
    write_data(classes);
    for (int i = 0; i < SAMPLES * 5; i++)
        h[i] = wave(i, 9);
    write_npy("h.npy", "<f4", "14, 5", h, sizeof h);
    for (int k = 0; k < 3; k++) {
        MUST("%s --batch=4 --loss=%s -o t%d", compile, loss[k], k);
        MUST("./t%d --data %s --eval", k, data[k]);     /* the last batch has 2 samples */
        told_of[k] = told("val_loss ");
        ck_assert_int_eq(strstr(text, "accuracy") != NULL, k < 2);
    }
    ck_assert_double_eq_tol(told_of[0], told_of[1] + 0.5 * told_of[2], 1e-6);
    MUST("./t0 --data x.npy,t.npy,h.npy --eval"); /* targets last, in the order of the losses */
    ck_assert_double_eq(told("val_loss "), told_of[0]);
    for (int k = 0; k < 2; k++) {
        MUST("%s --loss=%s %s -o many", compile, loss[0],
             k == 0 ? "--batch=8" : "--batch=4 --accumulate=2");
        MUST("./many --data x.npy,t.npy,h.npy --no-shuffle --epochs 2 --lr 0.1 --dump %d.npz", k);
    }
    check_near("0.npz", "1.npz", loss[0]);
    ck_assert_int_eq(sh("./t0 --data x.npy,t.npy"), 8);
    ck_assert_ptr_nonnull(strstr(text, "nothing for the target 'label.h'"));
    ck_assert_int_eq(sh("./t0 --data x=x.npy,label=t.npy,label.h=h.npy"), 8);
    ck_assert_int_eq(sh("./t0 --data x.npy,label.h=h.npy --label-from x"), 2);
    MUST("%s --batch=4 --loss=%s --label=goal -o t0", compile, loss[0]);
    MUST("./t0 --data x.npy,goal.y=t.npy,goal.h=h.npy --eval");
    ck_assert_double_eq(told("val_loss "), told_of[0]);
    make_end(&mk);
}
END_TEST

/* It would count the samples that fill up a private batch. */
START_TEST(private_training_takes_no_loss_of_the_file)
{
    const char *compile = LS_BUILD
        "/lowerset compile m.onnx -q -O0 --plan-effort=2 --batch=4 --loss=graph --loss-input=loss "
        "--dp=clip=1,noise=1,delta=1e-5 -o t";
    Make mk;
    open_net(&mk, NULL);
    make_int(&mk, make_node(&mk, "ReduceMean", "y", "loss"), "keepdims", 0);
    make_output(&mk, "loss");
    write_net(&mk);
    ck_assert_int_ne(sh("%s", compile), 0);
    ck_assert_msg(strstr(text, "--dp: the file's loss counts all samples of a batch") != NULL, "%s",
                  text);
    make_end(&mk);
    open_case(&mk,
              &(Case){.options = "", .loss = "SoftmaxCrossEntropyLoss"}); /* as one that is added */
    MUST("%s", compile);
    make_end(&mk);
}
END_TEST

/* Each cross-entropy has its own number of classes. */
START_TEST(labels_are_checked_by_their_own_classes)
{
    const char *compile =
        LS_BUILD "/lowerset compile m.onnx -q -O0 --plan-effort=2 --batch=4 --loss=ce:y,nll:h";
    int64_t u[SAMPLES];
    Make mk;
    open_net(&mk, NULL);
    make_output(&mk, "h");
    write_net(&mk);
    write_data(classes);
    MUST("%s -o t", compile);
    for (int bad = 0; bad < 2; bad++) {
        for (int i = 0; i < SAMPLES; i++)
            u[i] = i % 5 + (bad == 1 && i == 4);
        write_npy("u.npy", "<i8", "14,", u, sizeof u);
        ck_assert_msg(sh("./t --data x.npy,label.y=t.npy,label.h=u.npy --eval")
                          == (bad == 1 ? 8 : 0),
                      "%s", text);
        ck_assert_int_eq(strstr(text, "label 5 is not one of the model's 5 classes") != NULL,
                         bad == 1);
    }
    ck_assert_int_eq(sh("./t --data x.npy,label.y=u.npy,label.h=t.npy --eval"), 8);
    MUST("./t --data synthetic:8 --eval");
    make_end(&mk);
}
END_TEST

/* ---- random numbers ---- */

/* Dropouts of samples along the first, and along the last axis. */
static void write_dropouts(Make *mk)
{
    make_begin(mk, 11);
    make_input(mk, "x", "Nx6");
    wave_weight(mk, "w1", "6x6", 36, 2);
    wave_weight(mk, "w2", "6x3", 18, 3);
    make_node(mk, "MatMul", "x w1", "h");
    make_node(mk, "Dropout", "h", "d");
    make_node(mk, "Transpose", "d", "dt");
    make_node(mk, "Dropout", "dt", "et");
    make_node(mk, "Transpose", "et", "e");
    make_node(mk, "MatMul", "e w2", "y");
    make_output(mk, "y");
}

static bool near(void)
{
    return sh(LS_BUILD "/tests/npz_near first.npz other.npz 1e-10 param/") == 0;
}

START_TEST(masks_do_not_depend_on_the_parts)
{
    Make mk;
    write_dropouts(&mk);
    ck_assert_int_eq(chdir(mk.dir), 0);
    write_net(&mk);
    for (int parts = 1; parts <= 8; parts *= 2) {
        MUST(LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 m.onnx --precision=f64 --batch=8 "
                      "--microbatches=%d -o t",
             parts);
        MUST("./t --data synthetic:24 --progress none --no-shuffle --lr 0.1 --epochs 4 --dump "
             "%s.npz",
             parts == 1 ? "first" : "other");
        ck_assert_msg(parts == 1 || near(), "%d parts: %s", parts, text);
    }
    MUST(LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 m.onnx --precision=f64 --batch=2 "
                  "--accumulate=4 -o t"); /* draws for every batch */
    MUST("./t --data synthetic:24 --progress none --no-shuffle --lr 0.1 --epochs 4 --dump "
         "other.npz");
    ck_assert(!near());
    make_end(&mk);
}
END_TEST

/* Where samples mix there are no parts, also where a part would be one sample. */
START_TEST(mixed_samples_are_not_cut)
{
    Make mk;
    make_begin(&mk, 13);
    make_input(&mk, "x", "Nx6");
    wave_weight(&mk, "w", "6x3", 18, 2);
    make_node(&mk, "MatMul", "x w", "h");
    make_int(&mk, make_node(&mk, "Softmax", "h", "y"), "axis", 0);
    make_output(&mk, "y");
    ck_assert_int_eq(chdir(mk.dir), 0);
    write_net(&mk);
    for (int parts = 4; parts <= 8; parts += 4) {
        ck_assert_int_ne(
            sh(LS_BUILD "/lowerset plan -q m.onnx --batch=8 --loss=mse --microbatches=%d", parts),
            0);
        ck_assert_msg(
            strstr(text, "the first axis of the inputs holds no samples, so a batch has no parts")
                != NULL,
            "%s", text);
    }
    make_end(&mk);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("batches");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, several_batches_are_one_large_batch, 0, tests_do_less() ? 2 : NCASE);
    tcase_add_test(tc, a_large_weight_takes_the_means_too);
    tcase_add_test(tc, a_window_without_a_label_changes_nothing_and_is_told);
    tcase_add_test(tc, labels_of_another_class_axis_are_refused);
    tcase_add_test(tc, each_output_has_its_target);
    tcase_add_test(tc, private_training_takes_no_loss_of_the_file);
    tcase_add_test(tc, labels_are_checked_by_their_own_classes);
    tcase_add_test(tc, masks_do_not_depend_on_the_parts);
    tcase_add_test(tc, mixed_samples_are_not_cut);
    return run_tests("batches", tc);
}
