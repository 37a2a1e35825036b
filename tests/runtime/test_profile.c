/* tests/runtime/test_profile.c -- --profile on known times: it writes the steps' usual times, and
 * distributes the difference between their sum and the usual run. */
#include "runtime/engine/engine.h"
#include "runtime/engine/program_memory.h"
#include "runtime/ls_program.h"
#include "runtime/watch/trace.h"
#include "tests/support/suite.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 3, RUNS = 6 };

static const int64_t element_count[STEPS] = {8, 8, 8};
static const uint8_t element_type[STEPS] = {LS_DT_REAL, LS_DT_BF16, LS_DT_F16};
static const LsStep step[STEPS] = {{.name = "a", .op = "Relu", .node = 0, .nout = 1, .count = 0},
                                   {.name = "b", .op = "Relu", .node = 1, .nout = 1, .count = 1},
                                   {.name = "c", .op = "Relu", .node = 2, .nout = 1, .count = 2}};
static const LsPhaseTable phase = {.step = step, .nstep = STEPS};
static const LsProgram program = {.about.model = "m",
                                  .about.plan_hash = "h",
                                  .real_bytes = 4,
                                  .division.samples = 1,
                                  .argument.count = element_count,
                                  .argument.type = element_type};

/* Writes the profile of those runs and reads the numbers called `key` of its steps. */
static void profile(int64_t took[RUNS][STEPS], const char *key, double out[STEPS])
{
    char path[] = "/tmp/lowerset-profile-XXXXXX", text[4096];
    LsError e = {0};
    LsTrace x;
    const LsMemory memory = {.p = &program};
    const LsEngine engine = {.p = &program, .m = &memory};
    close(mkstemp(path));
    ck_assert(ls_trace_open(&x, &engine, &phase, LS_TRACE_RUNS, &e));
    for (int r = 0; r < RUNS; r++)
        for (int k = 0; k < STEPS; k++) {
            int64_t ns = took[r][k];
            x.sample[k * LS_TRACE_SAMPLES + r] = ns;
            x.run[k]++;
            x.total[k] += ns;
            x.least[k] = r == 0 || ns < x.least[k] ? ns : x.least[k];
        }
    ck_assert(ls_profile_write(&x, 1, path, 1, &e));
    FILE *f = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    unlink(path);
    cJSON *root = cJSON_Parse(text), *steps = cJSON_GetObjectItem(root, "steps");
    ck_assert_int_eq(cJSON_GetArraySize(steps), STEPS);
    for (int k = 0; k < STEPS; k++) {
        static const char *const type[STEPS] = {"f32", "bf16", "f16"};
        const cJSON *types = cJSON_GetObjectItem(cJSON_GetArrayItem(steps, k), "types");
        ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetArrayItem(types, 0)), type[k]);
    }
    for (int k = 0; k < STEPS; k++)
        out[k] = cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(steps, k), key));
    cJSON_Delete(root);
    ls_trace_close(&x);
}

START_TEST(one_bad_run_does_not_count)
{
    int64_t took[RUNS][STEPS];
    double ns[STEPS];
    for (int r = 0; r < RUNS; r++)
        for (int k = 0; k < STEPS; k++)
            took[r][k] = (r == 2 ? 100000 : 1000) * (k + 1);
    profile(took, "ns", ns);
    for (int k = 0; k < STEPS; k++)
        ck_assert_double_eq(ns[k], 1000 * (k + 1));
    profile(took, "least_ns", ns);
    ck_assert_double_eq(ns[2], 3000);
}
END_TEST

/* Every run is 1000 ns longer than the steps' usual times; each time another step is longer. */
START_TEST(the_sum_is_that_of_the_usual_run)
{
    int64_t took[RUNS][STEPS];
    double ns[STEPS];
    for (int r = 0; r < RUNS; r++)
        for (int k = 0; k < STEPS; k++)
            took[r][k] = 1000 * (k + 1) + (r % STEPS == k ? 1000 : 0);
    profile(took, "ns", ns);
    ck_assert_double_eq_tol(ns[0] + ns[1] + ns[2], 7000, 3);
    ck_assert_double_eq_tol(ns[2] / ns[0], 3, 0.01);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("profile");
    const TTest *const tests[] = {one_bad_run_does_not_count, the_sum_is_that_of_the_usual_run};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("profile", tc);
}
