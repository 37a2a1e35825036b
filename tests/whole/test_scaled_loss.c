/* tests/whole/test_scaled_loss.c -- programs whose loss is scaled, with infinities in chosen
 * gradients: nothing that they keep moves in that step but the scale.
 *
 * The loss is a sum over inputs a, b and c, each times parameters of its own, so that an infinity
 * in an input makes that parameter's gradient infinite and no other's. b goes through a batch
 * norm. */
#include "tests/support/suite.h"
#include "tests/support/wave_weight.h"

enum { SAMPLES = 16 };

static void add_sum(Make *mk, const char *in, const char *out)
{
    make_int(mk, make_node(mk, "ReduceMean", in, out), "keepdims", 0);
}

/* Makes m.onnx in a new folder and goes there. Parameters in the order of the file: first [4], s
 * and bias [6] of the batch norm, last [1] and one, a scalar. */
static void open_net(Make *mk)
{
    make_begin(mk, 17);
    make_input(mk, "a", "Nx4");
    make_input(mk, "b", "Nx6");
    make_input(mk, "c", "Nx1");
    wave_weight(mk, "first", "4", 4, 1);
    wave_weight(mk, "s", "6", 6, 2);
    wave_weight(mk, "bias", "6", 6, 3);
    wave_weight(mk, "mean", "6", 6, 4);
    wave_weight(mk, "var", "6", 6, 0);
    wave_weight(mk, "last", "1", 1, 5);
    wave_weight(mk, "one", "", 1, 6);
    make_node(mk, "Mul", "a first", "pa");
    make_node(mk, "BatchNormalization", "b s bias mean var", "n");
    make_node(mk, "Mul", "n b", "pb");
    make_node(mk, "Mul", "c last", "pl");
    make_node(mk, "Mul", "pl one", "pc");
    add_sum(mk, "pa", "ma");
    add_sum(mk, "pb", "mb");
    add_sum(mk, "pc", "mc");
    make_node(mk, "Add", "ma mb", "mab");
    make_node(mk, "Add", "mab mc", "loss");
    make_output(mk, "loss");
    unsigned char *bytes;
    size_t n = make_pack(mk, &bytes);
    make_write(mk, bytes, n);
    ck_assert_int_eq(chdir(mk->dir), 0);
}

/* An infinity in element 0 of that sample's input; input 3: in none. */
static void write_data(int input, int sample)
{
    static const int width[] = {4, 6, 1};
    float x[SAMPLES * 6];
    for (int k = 0; k < 3; k++) {
        char path[8], shape[16];
        for (int i = 0; i < SAMPLES * width[k]; i++)
            x[i] = wave(i, k + 7);
        if (k == input)
            x[sample * width[k]] = INFINITY;
        snprintf(path, sizeof path, "%c.npy", 'a' + k);
        snprintf(shape, sizeof shape, "%d, %d", SAMPLES, width[k]);
        write_npy(path, "<f4", shape, x, (size_t)(SAMPLES * width[k]) * sizeof *x);
    }
}

#define TRAIN "./t --data a.npy,b.npy,c.npy --no-shuffle --epochs 9 "

static void check_same(const char *a, const char *b, const char *prefix)
{
    ck_assert_msg(sh(LS_BUILD "/tests/npz_near %s %s 0 %s", a, b, prefix) == 0, "%s %s %s: %s", a,
                  b, prefix, text);
}

/* Parameters, moments and running statistics are equal to the bit. */
static void check_kept(const char *a, const char *b, bool adam)
{
    static const char *const name[] = {"first", "s", "bias", "last", "one"};
    check_same(a, b, "param/");
    check_same(a, b, "stat/");
    for (int k = 0; k < 5; k++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "moment/%s.m", name[k]);        /* .m or .momentum */
        check_same(a, b, prefix);
        snprintf(prefix, sizeof prefix, "moment/%s.v", name[k]);
        if (adam)
            check_same(a, b, prefix);
    }
}

/* group: samples of an update */
typedef struct Case { const char *options; int group; bool adam; } Case;
static const Case cases[] = {
    {"--optimizer=sgd:momentum=0.9", 2, false},
    {"--optimizer=adam --clip-norm=0.1", 2, true},
    {"--optimizer=adamw --accumulate=4", 8, true},
    {"--optimizer=adam --accumulate=4 --precision=f16", 8, true},
    {"--optimizer=sgd:momentum=0.9 --accumulate=4 --precision=bf16", 8, false},
    {"--optimizer=sgd:momentum=0.9,nesterov --accumulate=4 --clip-norm=0.1 --clip-value=0.05 "
     "--budget=min",
     8, false},
};

START_TEST(infinite_gradients_move_nothing_but_the_scale)
{
    const Case *c = &cases[_i];
    Make mk;
    open_net(&mk);
    MUST(LS_BUILD "/lowerset compile m.onnx -q -O0 --plan-effort=2 --loss=graph --bn=train "
                  "--batch=2 --loss-scale=dynamic "
                  "%s -o t",
         c->options);
    write_data(3, 0);
    MUST(TRAIN "--eval --dump start.npz");
    MUST(TRAIN "--steps 1 --dump one.npz");
    ck_assert_msg(strstr(text, "skipped") == NULL, "%s", text);
    MUST(TRAIN "--steps 2 --dump good.npz");
    for (int input = 0; input < 3; input++) {
        write_data(input, 0);           /* in the first batch of the first update */
        MUST(TRAIN "--steps 1 --dump bad.npz");
        ck_assert_ptr_nonnull(strstr(text, "step 1: scale 32768 -> 16384, update skipped"));
        check_kept("start.npz", "bad.npz", c->adam);
        write_data(input, c->group);
        MUST(TRAIN "--steps 2 --dump bad.npz");
        ck_assert_ptr_nonnull(strstr(text, "step 2: scale 32768 -> 16384, update skipped"));
        check_kept("one.npz", "bad.npz", c->adam);
    }
    ck_assert_int_ne(sh(LS_BUILD "/tests/npz_near one.npz good.npz 0 param/"), 0);
    make_end(&mk);
}
END_TEST

/* A program without a scale, whose running statistics and updates are the same. */
START_TEST(a_scale_of_a_power_of_two_changes_no_bit)
{
    static const char *const options[] = {
        "--optimizer=adam", "--optimizer=sgd:momentum=0.5 --accumulate=4 --clip-norm=0.1"};
    Make mk;
    open_net(&mk);
    write_data(3, 0);
    for (int k = 0; k < 2; k++) {
        MUST(LS_BUILD "/lowerset compile m.onnx -q -O0 --plan-effort=2 --loss=graph --bn=train "
                      "--batch=2 %s -o t",
             options[k]);
        MUST(TRAIN "--steps 4 --dump plain.npz");
        MUST(LS_BUILD
             "/lowerset compile m.onnx -q -O0 --plan-effort=2 --loss=graph --bn=train --batch=2 %s "
             "--loss-scale=dynamic:init=1024,period=2 -o t",
             options[k]);
        MUST(TRAIN "--steps 4 --dump scaled.npz");       /* it grew twice */
        check_kept("plain.npz", "scaled.npz", k == 0);
        check_same("plain.npz", "scaled.npz", "grad/");
    }
    make_end(&mk);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("scaled_loss");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, infinite_gradients_move_nothing_but_the_scale, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(t, a_scale_of_a_power_of_two_changes_no_bit);
    return run_tests("scaled_loss", t);
}
