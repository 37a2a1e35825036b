/* tests/runtime/test_loss_scale.c -- the machine that moves the loss scale: against a model in
 * whole exponents, over a million random strings of steps, and against traces of jmp and of
 * PyTorch's GradScaler. */
#include "runtime/data/npz.h"
#include "runtime/kernels/ls_kernel.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t state;

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- a model of its own, for powers of two: the scale is 2^exponent ---- */
typedef struct Model { int exponent, least, factor, period, good; bool floor; } Model;

static void model_step(Model *m, bool finite)
{
    if (!finite) {
        m->exponent -= m->factor;
        if (m->floor && m->exponent < m->least)
            m->exponent = m->least;
        m->good = 0;
    } else if (++m->good == m->period) {
        m->good = 0;
        if (m->exponent + m->factor <= 127)
            m->exponent += m->factor;
    }
}

static float power(int exponent) { return exponent < -149 ? 0 : ldexpf(1, exponent); }

static void check_string(bool torch)
{
    static const int period[] = {1, 3, 2000};
    Model m = {.factor = 1 + (int)draw(2),
               .period = period[draw(3)],
               .least = (int)draw(8) - 3,
               .floor = !torch};
    m.exponent = m.least + (int)draw(draw(2) ? 20 : (uint32_t)(128 - m.least));
    m.good = m.period - 1 - (int)draw((uint32_t)(m.period < 5 ? m.period : 5));
    const LsScaleRule rule = {.period = m.period,
                              .grow = ldexp(1, m.factor),
                              .shrink = torch ? ldexp(1, -m.factor) : ldexp(1, m.factor),
                              .divides = !torch,
                              .least = torch ? 0 : power(m.least)};
    float scale = power(m.exponent), counter = (float)m.good;
    uint32_t odds = 1 + draw(8);
    for (int k = 0; k < 16; k++) {
        bool finite = draw(odds) != 0;
        ls_scale_step(&rule, finite, &scale, &counter);
        model_step(&m, finite);
        ck_assert_msg(scale == power(m.exponent) && counter == (float)m.good,
                      "scale %g, not 2^%d; counter %g, not %d", (double)scale, m.exponent,
                      (double)counter, m.good);
    }
}

START_TEST(random_strings_follow_the_model)
{
    state = 11;
    for (int k = 0; k < 1000000; k++)
        check_string(k % 2 != 0);
}
END_TEST

START_TEST(it_grows_at_the_last_step_of_a_period)
{
    const LsScaleRule rule = {.period = 2000, .grow = 2, .shrink = 2, .divides = true, .least = 1};
    float scale = 32768, counter = 0;
    for (int k = 1; k <= 4000; k++) {
        ls_scale_step(&rule, true, &scale, &counter);
        ck_assert_float_eq(scale, k < 2000 ? 32768.f : k < 4000 ? 65536.f : 131072.f);
        ck_assert_float_eq(counter, (float)(k % 2000));
    }
}
END_TEST

START_TEST(a_static_scale_never_moves)
{
    const LsScaleRule rule = {0};
    float scale = 1000, counter = 0;
    for (int k = 0; k < 100; k++)
        ls_scale_step(&rule, k % 3 != 0, &scale, &counter);
    ck_assert_float_eq(scale, 1000);
    ck_assert_float_eq(counter, 0);
}
END_TEST

/* ---- traces ---- */
#define JMP(start, period, factor, min) start, {period, factor, factor, true, min}
#define TORCH(start, period, factor, backoff) start, {period, factor, backoff, false, 0}
typedef struct Trace { const char *name; float start; LsScaleRule rule; } Trace;
static const Trace traces[] = {
    {"jmp_default", JMP(32768, 2000, 2, 1)},
    {"jmp_floor", JMP(32768, 2000, 2, 1)},
    {"jmp_period3", JMP(32768, 3, 2, 1)},
    {"jmp_period1", JMP(32768, 1, 2, 1)},
    {"jmp_factor4_min16", JMP(1024, 5, 4, 16)},
    {"jmp_top", JMP(0x1p120f, 10, 2, 1)},
    {"jmp_start_below_floor", JMP(0.25f, 3, 2, 1)},
    {"jmp_not_power_of_two", JMP(1000, 4, 3, 1)},
    {"gradscaler_default", TORCH(65536, 2000, 2, 0.5)},
    {"gradscaler_no_floor", TORCH(65536, 4, 2, 0.5)},
    {"gradscaler_interval3", TORCH(65536, 3, 2, 0.5)},
    {"gradscaler_growth15_backoff07", TORCH(4096, 4, 1.5, 0.7)},
    {"gradscaler_top", TORCH(0x1p120f, 10, 2, 0.5)},
    {"gradscaler_growth1", TORCH(4096, 2, 1.001, 0.999)},
};

static LsArray member(const LsFile *f, const char *trace, const char *what)
{
    char name[80];
    LsArray a;
    bool found = false;
    LsError e = {0};
    snprintf(name, sizeof name, "%s/%s", trace, what);
    ck_assert_msg(ls_npz_find(f, name, &a, &found, &e) && found, "%s: %s", name, e.text);
    return a;
}

START_TEST(traces_of_jmp_and_of_pytorch_are_followed)
{
    const Trace *t = &traces[_i];
    LsFile f;
    LsError e = {0};
    /* Long traces are not among those of tests/data. */
    const char *folder = strstr(t->name, "_default") != NULL ? LS_SHARED : LS_SOURCE "/tests/data";
    char path[4096];
    snprintf(path, sizeof path, "%s/inputs/wave2/mixed/loss_scale.ref.npz", folder);
    if (access(path, R_OK) != 0 && strcmp(folder, LS_SHARED) == 0) {
        printf("skipped: %s, as there is no %s\n", t->name, path);
        return;
    }
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    LsArray finite = member(&f, t->name, "finite"), want = member(&f, t->name, "scale");
    LsArray good = member(&f, t->name, "counter");
    float scale = t->start, counter = 0;
    for (int64_t k = 0; k < finite.dim[0]; k++) {
        ls_scale_step(&t->rule, ls_array_int(&finite, k) != 0, &scale, &counter);
        ck_assert_msg((double)scale == ls_array_real(&want, k)
                          && (int64_t)counter == ls_array_int(&good, k),
                      "%s, step %" PRId64 ": %.9g %g, not %.9g %" PRId64, t->name, k, (double)scale,
                      (double)counter, ls_array_real(&want, k), ls_array_int(&good, k));
    }
    ls_file_unmap(&f);
}
END_TEST

/* The beginnings of two of them, whose factors are no powers of two: every rounding shows. */
static const struct {
    int trace;
    const char *finite, *counter;
    float scale[24];
} excerpt[] = {
    {7, "FFFFFFNFFFNFNFFFNFNFFFNF", "123012012301012301012301",
     {
      1000, 1000, 1000, 3000, 3000, 3000, 1000, 1000, 1000, 1000, 333.333344f, 333.333344f,
      111.111115f, 111.111115f, 111.111115f, 111.111115f, 37.0370369f, 37.0370369f, 12.3456793f,
      12.3456793f, 12.3456793f, 12.3456793f, 4.11522627f, 4.11522627f}},
    {11, "NFFFFFFFFFNNFFFFFFNFNFFF", "012301230100123012010123",
     {
      2867.19995f, 2867.19995f, 2867.19995f, 2867.19995f, 4300.7998f, 4300.7998f, 4300.7998f,
      4300.7998f, 6451.19971f, 6451.19971f, 4515.83984f, 3161.08789f, 3161.08789f, 3161.08789f,
      3161.08789f, 4741.63184f, 4741.63184f, 4741.63184f, 3319.14233f, 3319.14233f, 2323.39966f,
      2323.39966f, 2323.39966f, 2323.39966f}},
};

START_TEST(roundings_are_those_of_jmp_and_of_pytorch)
{
    const Trace *t = &traces[excerpt[_i].trace];
    float scale = t->start, counter = 0;
    for (int k = 0; k < 24; k++) {
        ls_scale_step(&t->rule, excerpt[_i].finite[k] == 'F', &scale, &counter);
        ck_assert_float_eq(scale, excerpt[_i].scale[k]);
        ck_assert_float_eq(counter, (float)(excerpt[_i].counter[k] - '0'));
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("loss_scale");
    tcase_add_test(t, random_strings_follow_the_model);
    tcase_add_test(t, it_grows_at_the_last_step_of_a_period);
    tcase_add_test(t, a_static_scale_never_moves);
    tcase_add_loop_test(t, traces_of_jmp_and_of_pytorch_are_followed, 0,
                        sizeof traces / sizeof *traces);
    tcase_add_loop_test(t, roundings_are_those_of_jmp_and_of_pytorch, 0, 2);
    return run_tests("loss_scale", t);
}
