/* tests/runtime/test_cudnn_run.c -- convolutions of a program run through cuDNN's graph API: a
 * library with the same functions that computes on the CPU (fake_cudnn.c) checks shapes, plans and
 * addresses. */
#include "runtime/cuda/cudnn_conv.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/cudnn_run.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/cudnn_match.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/lowerset-cudnn-XXXXXX";

enum { MOST = 4096, ROOM = 65536, MASKED = 4 };

typedef struct Case { const char *what; LsDnnConv conv; } Case;

static const Case cases[] = {
    {"two axes", {.kind = LS_DNN_CONV_FORWARD, .axes = 2, .real_bytes = 4, .x = {2, 3, 7, 6},
                  .w = {4, 3, 3, 3}, .y = {2, 4, 7, 6}, .stride = {1, 1}, .dilation = {1, 1},
                  .pad_lo = {1, 1}, .pad_hi = {1, 1}}},
    {"bias and ReLU", {.kind = LS_DNN_CONV_FORWARD, .axes = 2, .real_bytes = 4, .bias = true,
                       .relu = true, .x = {1, 4, 5, 5}, .w = {6, 2, 3, 2}, .y = {1, 6, 2, 3},
                       .stride = {2, 2}, .dilation = {1, 1}, .pad_lo = {0, 1}, .pad_hi = {1, 0}}},
    {"data, groups, dilation", {.kind = LS_DNN_CONV_DATA, .axes = 2, .real_bytes = 4,
                                .x = {2, 4, 8, 8}, .w = {6, 2, 3, 3}, .y = {2, 6, 4, 4},
                                .stride = {1, 1}, .dilation = {2, 2}}},
    {"data, strides", {.kind = LS_DNN_CONV_DATA, .axes = 2, .real_bytes = 4, .x = {1, 2, 8, 7},
                       .w = {3, 2, 3, 3}, .y = {1, 3, 4, 4}, .stride = {2, 2}, .dilation = {1, 1},
                       .pad_lo = {1, 1}, .pad_hi = {1, 1}}},
    {"data, mask", {.kind = LS_DNN_CONV_DATA, .axes = 2, .real_bytes = 4, .mask = true,
                    .x = {2, 4, 6, 5}, .w = {3, 4, 3, 3}, .y = {2, 3, 6, 5}, .stride = {1, 1},
                    .dilation = {1, 1}, .pad_lo = {1, 1}, .pad_hi = {1, 1}}},
    {"weights", {.kind = LS_DNN_CONV_WEIGHTS, .axes = 2, .real_bytes = 4, .x = {2, 3, 6, 6},
                 .w = {5, 3, 2, 3}, .y = {2, 5, 3, 6}, .stride = {2, 1}, .dilation = {1, 1},
                 .pad_lo = {0, 1}, .pad_hi = {0, 1}}},
    {"three axes of doubles", {.kind = LS_DNN_CONV_FORWARD, .axes = 3, .real_bytes = 8,
                               .x = {1, 2, 3, 4, 4}, .w = {3, 2, 2, 3, 3}, .y = {1, 3, 2, 4, 2},
                               .stride = {1, 1, 2}, .dilation = {1, 1, 1}, .pad_lo = {0, 1, 1},
                               .pad_hi = {0, 1, 1}}},
};

static int64_t count(const LsDnnConv *c, const int64_t dim[])
{
    int64_t n = 1;
    for (int k = 0; k < 2 + c->axes; k++)
        n *= dim[k];
    return n;
}

/* Element i of a tensor that lies channels last: its logical index. */
static void index_of(const LsDnnConv *c, const int64_t dim[], int64_t i, int64_t at[])
{
    at[1] = i % dim[1];
    i /= dim[1];
    for (int k = 1 + c->axes; k >= 2; k--) {
        at[k] = i % dim[k];
        i /= dim[k];
    }
    at[0] = i;
}

static int64_t place_of(const LsDnnConv *c, const int64_t dim[], const int64_t at[])
{
    int64_t i = at[0];
    for (int k = 2; k < 2 + c->axes; k++)
        i = i * dim[k] + at[k];
    return i * dim[1] + at[1];
}

static int result_of(const LsDnnConv *c)        /* x, w, y are 0, 1, 2 */
{
    return c->kind == LS_DNN_CONV_FORWARD ? 2 : c->kind == LS_DNN_CONV_DATA ? 0 : 1;
}

static const int64_t *dim_of(const LsDnnConv *c, int which)
{
    return which == 0 ? c->x : which == 1 ? c->w : c->y;
}

/* The definition: every element of y with every element of its filter. */
static void reference(const LsDnnConv *c, const double *x, const double *w, const double *y,
                      const double *b, const double *mask, double *to)
{
    int64_t filters = c->w[0] / (c->x[1] / c->w[1]), yi[5], wi[5], xi[5], out[2] = {0};
    const int64_t *dim = dim_of(c, result_of(c));
    memset(to, 0, (size_t)count(c, dim) * sizeof *to);
    for (int64_t i = 0; i < count(c, c->y); i++)
        for (int64_t j = 0; j < count(c, c->w); j++) {
            index_of(c, c->y, i, yi);
            index_of(c, c->w, j, wi);
            bool in = wi[0] == yi[1];
            xi[0] = yi[0];
            xi[1] = wi[0] / filters * c->w[1] + wi[1];
            for (int k = 0; k < c->axes; k++) {
                xi[2 + k] = yi[2 + k] * c->stride[k] - c->pad_lo[k] + wi[2 + k] * c->dilation[k];
                in &= xi[2 + k] >= 0 && xi[2 + k] < c->x[2 + k];
            }
            if (!in)
                continue;
            out[0] = place_of(c, c->x, xi);
            if (c->kind == LS_DNN_CONV_FORWARD)
                to[i] += x[out[0]] * w[j];
            else if (c->kind == LS_DNN_CONV_DATA)
                to[out[0]] += y[i] * w[j];
            else
                to[j] += y[i] * x[out[0]];
        }
    for (int64_t i = 0; i < count(c, dim); i++) {
        to[i] += c->bias ? b[i % dim[1]] : 0;
        to[i] = (c->relu && to[i] < 0) || (c->mask && mask[i] <= 0) ? 0 : to[i];
    }
}

typedef struct Data {           /* numbers, and their text as in a program */
    double v[5][MOST];
    union { float f[MOST]; double d[MOST]; } at[5] __attribute__((aligned(64)));
    void *arg[6];               /* x, w, y, bias, mask, workspace */
} Data;

static char room[ROOM] __attribute__((aligned(256)));

static void fill(Data *d, const LsDnnConv *c, unsigned seed)
{
    for (int t = 0; t < 5; t++) {
        for (int i = 0; i < MOST; i++) {
            seed = seed * 1664525 + 1013904223;
            d->v[t][i] = (double)(seed >> 24) / 64 - 2;
            if (c->real_bytes == 8)
                d->at[t].d[i] = d->v[t][i];
            else
                d->at[t].f[i] = (float)d->v[t][i];
        }
        d->arg[t] = &d->at[t];
    }
    d->arg[5] = room + 64;      /* not aligned as cuDNN requires */
}

static LsCudaConv program_conv(const LsDnnConv *c, int64_t workspace, const char *plan)
{
    return (LsCudaConv){.conv = *c, .rules = {.tf32 = false}, .arg_x = 0, .arg_w = 1, .arg_y = 2,
                        .arg_bias = c->bias ? 3 : -1, .arg_mask = c->mask ? 4 : -1,
                        .arg_workspace = workspace > 0 ? 5 : -1, .workspace = workspace,
                        .plan = plan};
}

static void check_result(const Data *d, const LsDnnConv *c, const char *what)
{
    static double want[MOST];
    int out = result_of(c);
    const int64_t *dim = dim_of(c, out);
    reference(c, d->v[0], d->v[1], d->v[2], d->v[3], d->v[4], want);
    for (int64_t i = 0; i < count(c, dim); i++) {
        double got = c->real_bytes == 8 ? d->at[out].d[i] : (double)d->at[out].f[i];
        ck_assert_msg(fabs(got - want[i]) <= 1e-5 * (1 + fabs(want[i])),
                      "%s: element %lld is %g, not %g", what, (long long)i, got, want[i]);
    }
}

static LsDnnRuns *opened(const LsStopwatch *tune, FILE *notes)
{
    LsDnnRuns *r = NULL;
    LsError e = {0};
    LsDnnSetup setup = {.cache = tune != NULL ? folder : NULL, .notes = notes};
    ck_assert_msg(ls_dnn_runs_open(&r, &setup, &e), "%s", e.text);
    ls_dnn_tune(r, tune);
    return r;
}

static void run_once(LsDnnRuns *r, const LsCudaConv *p, Data *d, const char *what)
{
    LsError e = {0};
    ck_assert_msg(ls_dnn_run(r, NULL, p, d->arg, (void *)1, &e), "%s: %s", what, e.text);
    check_result(d, &p->conv, what);
}

/* The text that a compiler with this library would write into the program. */
static char *planned(const LsDnnConv *c, int64_t workspace)
{
    LsDnn lib;
    char err[600];
    ck_assert_msg(ls_dnn_open(&lib, err, sizeof err), "%s", err);
    LsDnnDesc device = ls_dnn_device_of_id(&lib, 0, err, sizeof err);
    LsDnnSearch *s = ls_dnn_search(&lib, device, c, &(LsDnnRules){.tf32 = false}, workspace, 8, err,
                                   sizeof err);
    ck_assert_msg(s != NULL, "%s", err);
    char *json = ls_dnn_plan_json(&lib, ls_dnn_search_best(s));
    ls_dnn_search_free(s);
    ls_dnn_drop(&lib, device);
    ls_dnn_close(&lib);
    return json;
}

static int last_engine(void)
{
    void *lib = dlopen(LS_FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    int (*last)(void) = (int (*)(void))(uintptr_t)dlsym(lib, "fake_cudnn_last_engine");
    int engine = last();
    dlclose(lib);
    return engine;
}

/* ---- tests ---- */
START_TEST(a_library_among_python_packages_is_found)
{
    static const char *const soname[] = {"libls-none.so.2", "libls-none.so.1", NULL};
    static const char *const folder[] = {"lib", "lib/python3.11", "lib/python3.11/site-packages",
                                         "lib/python3.11/site-packages/nvidia",
                                         "lib/python3.11/site-packages/nvidia/none",
                                         "lib/python3.11/site-packages/nvidia/none/lib"};
    char root[] = "/tmp/ls-python-XXXXXX", path[400], file[1024], why[256] = "";
    ck_assert_ptr_nonnull(mkdtemp(root));
    setenv("VIRTUAL_ENV", root, 1);
    ck_assert_ptr_null(ls_library_find(soname, file, sizeof file, why, sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "libls-none.so.2"));
    for (int k = 0; k < 6; k++) {
        snprintf(path, sizeof path, "%s/%s", root, folder[k]);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/%s/libls-none.so.1", root, folder[5]);
    ck_assert_int_eq(symlink(LS_FAKE_CUDNN, path), 0);
    void *so = ls_library_find(soname, file, sizeof file, why, sizeof why);
    ck_assert_ptr_nonnull(so);
    ck_assert_str_eq(file, path);
    ck_assert_ptr_nonnull(dlsym(so, "fake_cudnn_last_engine"));
    ck_assert_int_eq(unlink(path), 0);
    for (int k = 5; k >= 0; k--) {
        snprintf(path, sizeof path, "%s/%s", root, folder[k]);
        ck_assert_int_eq(rmdir(path), 0);
    }
    ck_assert_int_eq(rmdir(root), 0);
    unsetenv("VIRTUAL_ENV");
}
END_TEST

START_TEST(graphs_compute_what_the_convolution_is)
{
    static Data d, other;
    const Case *c = &cases[_i];
    setenv("FAKE_CUDNN_MASK", "320", 1);
    LsCudaConv p = program_conv(&c->conv, 4096, NULL);
    LsDnnRuns *r = opened(NULL, NULL);
    fill(&d, &c->conv, 1);
    fill(&other, &c->conv, 2);
    for (int again = 0; again < 2; again++) {   /* each with addresses of its own */
        run_once(r, &p, &d, c->what);
        run_once(r, &p, &other, c->what);
    }
    ls_dnn_runs_close(r);
    unsetenv("FAKE_CUDNN_MASK");
}
END_TEST

START_TEST(a_plan_of_the_same_library_and_device_is_taken_as_it_is)
{
    static Data d;
    const LsDnnConv *c = &cases[0].conv;
    char *json = planned(c, INT64_MAX);
    LsCudaConv p = program_conv(c, 8192, json);
    LsDnnRuns *r = opened(NULL, NULL);
    fill(&d, c, 3);
    run_once(r, &p, &d, "kept");
    ck_assert_int_eq(ls_dnn_tally(r).kept, 1);
    ck_assert_int_eq(ls_dnn_tally(r).again, 0);
    ls_dnn_runs_close(r);
    free(json);
}
END_TEST

START_TEST(a_plan_gets_the_description_of_the_device_that_is_there)
{
    static const char here[] = "{\"deviceVer\":900,\"pciDeviceId\":6}";
    char *text = ls_dnn_plan_here(
        "{\"a\":1,\"GPUProfile\":{\"deviceVer\":900,\"pciDeviceId\":0},\"b\":2}", here);
    ck_assert_str_eq(text,
                     "{\"a\":1,\"GPUProfile\":{\"deviceVer\":900,\"pciDeviceId\":6},\"b\":2}");
    free(text);
    ck_assert_ptr_null(ls_dnn_plan_here("{\"a\":1}", here));
    ck_assert_ptr_null(ls_dnn_plan_here("{\"GPUProfile\":{\"deviceVer\"", here));
}
END_TEST

/* Elsewhere the plan is made again, within the same workspace, with one note. */
START_TEST(on_another_library_or_device_plans_are_made_again_in_the_same_room)
{
    static Data d;
    static const struct { const char *name, *value, *says; } other[] = {
        {"FAKE_CUDNN_VERSION", "92001", "here are NVIDIA Fake and 9.20.1"},
        {"FAKE_CUDNN_PROCESSORS", "58", "planned for NVIDIA Fake and cuDNN 9.19.0"},
    };
    const LsDnnConv *c = &cases[0].conv;
    char *json = planned(c, INT64_MAX), text[1000] = "";
    LsCudaConv p = program_conv(c, 1000 + 255, json), q = p;
    for (int k = 0; k < 2; k++) {
        FILE *notes = fmemopen(text, sizeof text, "w");
        setenv(other[k].name, other[k].value, 1);
        LsDnnRuns *r = opened(NULL, notes);
        fill(&d, c, 4);
        run_once(r, &p, &d, other[k].name);
        run_once(r, &q, &d, other[k].name);
        ck_assert_int_eq(ls_dnn_tally(r).again, 2);
        ls_dnn_runs_close(r);
        fclose(notes);
        const char *said = strstr(text, "note: ");
        ck_assert_msg(said != NULL && strstr(text, other[k].says) != NULL, "%s", text);
        ck_assert_ptr_null(strstr(said + 1, "note: "));
        unsetenv(other[k].name);
    }
    free(json);
}
END_TEST

START_TEST(a_plan_larger_than_its_room_is_not_taken)
{
    static Data d;
    const LsDnnConv *c = &cases[0].conv;
    setenv("FAKE_CUDNN_ENGINES", "3", 1);
    char *json = planned(c, INT64_MAX);
    unsetenv("FAKE_CUDNN_ENGINES");
    LsCudaConv p = program_conv(c, 300, json);
    LsDnnRuns *r = opened(NULL, NULL);
    fill(&d, c, 5);
    run_once(r, &p, &d, "small room");
    ck_assert_int_eq(ls_dnn_tally(r).again, 1);
    ck_assert_int_eq(last_engine(), 0);
    ls_dnn_runs_close(r);
    free(json);
}
END_TEST

START_TEST(where_nothing_fits_the_layer_is_named)
{
    LsCudaConv p = program_conv(&cases[0].conv, 400, NULL);
    LsError e = {0};
    setenv("FAKE_CUDNN_ENGINES", "732", 1);
    LsDnnRuns *r = opened(NULL, NULL);
    ck_assert(!ls_dnn_ready(r, &p, "layer1/conv2 dx", &e));
    ck_assert_int_eq(e.code, LS_EXIT_DEVICE);
    ck_assert_msg(strstr(e.text, "layer1/conv2 dx: cuDNN 9.19") != NULL, "%s", e.text);
    ck_assert_msg(strstr(e.text, "within its 145 bytes") != NULL, "%s", e.text);
    ls_dnn_runs_close(r);
    unsetenv("FAKE_CUDNN_ENGINES");
}
END_TEST

START_TEST(a_stored_plan_that_does_not_run_is_made_again)
{
    static Data d;
    const LsDnnConv *c = &cases[2].conv;
    setenv("FAKE_CUDNN_ENGINES", "2", 1);
    char *json = planned(c, INT64_MAX);
    unsetenv("FAKE_CUDNN_ENGINES");
    LsCudaConv p = program_conv(c, 8192, json);
    setenv("FAKE_CUDNN_REFUSE", "2", 1);
    LsDnnRuns *r = opened(NULL, NULL);
    fill(&d, c, 6);
    run_once(r, &p, &d, "refused");
    ck_assert_int_eq(ls_dnn_tally(r).kept, 0);
    ck_assert_int_eq(ls_dnn_tally(r).again, 1);
    ls_dnn_runs_close(r);
    unsetenv("FAKE_CUDNN_REFUSE");
    free(json);
}
END_TEST

/* Engine 0 is the fastest by this clock, and runs without a clock use its choice. */
static double clock_time(void *self, bool (*run)(void *), void *job)
{
    ++*(int *)self;
    return !run(job) ? -1 : last_engine() == 0 ? 10 : 20;
}

START_TEST(the_clock_chooses_once_and_its_choice_is_kept)
{
    static Data d;
    int times = 0;
    const LsStopwatch watch = {.time = clock_time, .self = &times};
    const LsDnnConv *c = &cases[5].conv;
    char *json = planned(c, INT64_MAX), command[200];
    LsCudaConv p = program_conv(c, 8192, json);
    fill(&d, c, 7);
    for (int round = 0; round < 3; round++) {
        LsDnnRuns *r = opened(&watch, NULL);
        run_once(r, &p, &d, "timed");
        ck_assert_int_eq(last_engine(), 0);
        run_once(r, &p, &d, "timed");
        ck_assert_int_eq(times, 3);     /* engines 3, 2 and 0, in the first round */
        ck_assert_int_eq(ls_dnn_tally(r).timed, 1);
        ls_dnn_runs_close(r);
        if (round == 1) {       /* a broken file: all plans are timed again */
            snprintf(command, sizeof command, "sed -i 's/engine/e/' %s/*.tuned", folder);
            ck_assert_int_eq(system(command), 0);
            times = 0;
        }
    }
    free(json);
}
END_TEST

START_TEST(rules_keep_engines_out)
{
    static const struct { LsDnnRules rules; const char *engines; int engine; } row[] = {
        {{.tf32 = true}, "720", 7}, {{.tf32 = false}, "720", 2},
        {{.nondeterministic = true}, "90", 9}, {{.tf32 = true}, "8620", 2}};    /* no halves */
    static Data d;
    const LsDnnConv *c = &cases[0].conv;
    fill(&d, c, 8);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        LsCudaConv p = program_conv(c, 1 << 14, NULL);
        p.rules = row[k].rules;
        setenv("FAKE_CUDNN_ENGINES", row[k].engines, 1);
        LsDnnRuns *r = opened(NULL, NULL);
        run_once(r, &p, &d, "rules");
        ck_assert_int_eq(last_engine(), row[k].engine);
        ls_dnn_runs_close(r);
    }
    unsetenv("FAKE_CUDNN_ENGINES");
}
END_TEST

/* ---- work behind a convolution, by engines or by kernels ---- */
static int behinds;

static void mask_behind(LsRun *run, void *const arg[])
{
    const LsDnnConv *c = &cases[MASKED].conv;
    float *x = arg[0];
    const float *mask = arg[4];
    (void)run;
    behinds++;
    for (int64_t i = 0; i < count(c, c->x); i++)
        x[i] = mask[i] > 0 ? x[i] : 0;
}

/* As the compiler prints it where only engines that compile can apply the mask. */
static LsCudaConv masked_conv(const char *plan)
{
    LsCudaConv p = program_conv(&cases[MASKED].conv, 8192, plan);
    p.rules.compiled = p.alone = true;
    p.behind = mask_behind;
    behinds = 0;
    return p;
}

static char *planned_alone(void)
{
    const LsDnnConv alone = ls_dnn_alone(&cases[MASKED].conv);
    return planned(&alone, INT64_MAX);
}

START_TEST(engines_that_compile_are_asked_when_the_program_starts)
{
    static Data d;
    char *json = planned_alone();
    LsCudaConv p = masked_conv(json);
    LsDnnRuns *r = opened(NULL, NULL);
    fill(&d, &p.conv, 9);
    run_once(r, &p, &d, "compiled");
    run_once(r, &p, &d, "compiled");
    ck_assert_int_eq(last_engine(), 5);
    ck_assert_int_eq(behinds, 0);
    ck_assert_int_eq(ls_dnn_tally(r).compiled, 1);
    ls_dnn_runs_close(r);
    free(json);
}
END_TEST

/* No engine takes the mask, its kernel does not load, or it does not run: the convolution runs as
 * the compiler planned it, and a kernel behind it. */
START_TEST(where_none_serves_a_kernel_does_it_behind_the_planned_convolution)
{
    static Data d;
    static const struct { const char *name, *value; } row[] = {
        {"FAKE_CUDNN_MASK", ""}, {"FAKE_CUDNN_NO_DRIVER", "1"}, {"FAKE_CUDNN_REFUSE", "5"}};
    char *json = planned_alone(), text[1000] = "";
    for (int k = 0; k < 3; k++) {
        LsCudaConv p = masked_conv(json), q = p;
        FILE *notes = fmemopen(text, sizeof text, "w");
        setenv(row[k].name, row[k].value, 1);
        LsDnnRuns *r = opened(NULL, notes);
        fill(&d, &p.conv, 10);
        LsError e = {0};
        ck_assert_msg(ls_dnn_ready(r, &p, "conv7", &e), "%s", e.text);
        run_once(r, &p, &d, row[k].name);
        run_once(r, &q, &d, row[k].name);
        ck_assert_int_eq(last_engine(), 3);
        ck_assert_int_eq(behinds, 2);
        ls_dnn_runs_close(r);
        fclose(notes);
        const char *said = strstr(text, k < 2 ? "note: conv7: cuDNN 9.19 has no plan for a "
                                                "convolution (data+mask f32 compiled x "
                                              : "note: conv7: cuDNN does not run");
        ck_assert_msg(said != NULL && strstr(said, "; a kernel of the program does") != NULL,
                      "%s", text);
        said = strstr(said + 1, "note: "); /* of the other convolution, whose node is not known */
        ck_assert_msg(said != NULL && strstr(said + 1, "note: ") == NULL, "%s", text);
        unsetenv(row[k].name);
    }
    free(json);
}
END_TEST

/* Engines that compile are given up after some failures; ready engines are not. */
START_TEST(an_engine_behind_many_that_do_not_compile_is_found)
{
    static Data d;
    char *json = planned_alone();
    LsCudaConv p = masked_conv(json);
    setenv("FAKE_CUDNN_NO_DRIVER", "1", 1);
    setenv("FAKE_CUDNN_ENGINES", "55555550", 1);
    setenv("FAKE_CUDNN_MASK", "50", 1);
    LsDnnRuns *r = opened(NULL, NULL);
    fill(&d, &p.conv, 13);
    run_once(r, &p, &d, "ready behind compiled");
    ck_assert_int_eq(last_engine(), 0);
    ck_assert_int_eq(behinds, 0);
    ls_dnn_runs_close(r);
    unsetenv("FAKE_CUDNN_NO_DRIVER");
    unsetenv("FAKE_CUDNN_ENGINES");
    unsetenv("FAKE_CUDNN_MASK");
    free(json);
}
END_TEST

/* The compiler found an engine for everything; this library has none. */
START_TEST(a_library_without_an_engine_for_all_runs_the_convolution_alone)
{
    static Data d;
    setenv("FAKE_CUDNN_MASK", "0", 1);
    char *json = planned(&cases[MASKED].conv, INT64_MAX);
    LsCudaConv p = masked_conv(json);
    p.alone = p.rules.compiled = false;
    for (int other = 0; other < 2; other++) {
        LsDnnRuns *r = opened(NULL, NULL);
        fill(&d, &p.conv, 11);
        run_once(r, &p, &d, "whole");
        ck_assert_int_eq(last_engine(), other == 0 ? 0 : 3);
        ck_assert_int_eq(behinds, other);
        ck_assert_int_eq(ls_dnn_tally(r).kept, 1 - other);
        ls_dnn_runs_close(r);
        setenv("FAKE_CUDNN_MASK", "", 1);
        setenv("FAKE_CUDNN_VERSION", "92001", 1);
    }
    unsetenv("FAKE_CUDNN_VERSION");
    unsetenv("FAKE_CUDNN_MASK");
    free(json);
}
END_TEST

/* The time by engine: engine 5 takes *self, other engines with the kernel behind them take 15. */
static double clock_with_behind(void *self, bool (*run)(void *), void *job)
{
    int before = behinds;
    if (!run(job))
        return -1;
    ck_assert_int_eq(behinds - before, last_engine() != 5);
    return last_engine() == 5 ? *(double *)self : last_engine() == 0 ? 15 : 20;
}

START_TEST(the_clock_compares_engines_that_compile_with_a_kernel_behind)
{
    static Data d;
    char *json = planned_alone(), command[200];
    snprintf(command, sizeof command, "rm -f %s/*.tuned", folder);
    for (int k = 0; k < 2; k++) {
        double ns = k == 0 ? 10 : 18;
        const LsStopwatch watch = {.time = clock_with_behind, .self = &ns};
        ck_assert_int_eq(system(command), 0);
        for (int again = 0; again < 2; again++) {       /* the second time from the file */
            LsCudaConv p = masked_conv(json);
            LsDnnRuns *r = opened(&watch, NULL);
            fill(&d, &p.conv, 12);
            run_once(r, &p, &d, "timed");
            ck_assert_int_eq(last_engine(), k == 0 ? 5 : 0);
            ck_assert_int_eq(ls_dnn_tally(r).timed, 1);
            ns = again == 0 ? 12 : ns;
            ls_dnn_runs_close(r);
        }
    }
    free(json);
}
END_TEST

/* A kernel of the program's own, which leaves the reference in its result. */
static Data *own_data;
static int owns;

static void own_kernel(LsRun *run, void *const arg[])
{
    static double want[MOST];
    const LsDnnConv *c = &cases[5].conv;
    (void)run;
    owns++;
    reference(c, own_data->v[0], own_data->v[1], own_data->v[2], NULL, NULL, want);
    for (int64_t i = 0; i < count(c, c->w); i++)
        ((float *)arg[1])[i] = (float)want[i];
}

/* The program's kernel takes *self, the library's plans take 10 and 20. */
static double clock_with_own(void *self, bool (*run)(void *), void *job)
{
    int before = owns;
    if (!run(job))
        return -1;
    return owns > before ? *(double *)self : last_engine() == 0 ? 10 : 20;
}

START_TEST(the_clock_compares_the_library_with_a_kernel_of_the_program)
{
    static Data d;
    char *json = planned(&cases[5].conv, INT64_MAX), command[200];
    snprintf(command, sizeof command, "rm -f %s/*.tuned", folder);
    own_data = &d;
    for (int k = 0; k < 2; k++) {
        double ns = k == 0 ? 5 : 15;
        const LsStopwatch watch = {.time = clock_with_own, .self = &ns};
        ck_assert_int_eq(system(command), 0);
        for (int again = 0; again < 3; again++) {       /* then from the file, without the kernel */
            LsCudaConv p = program_conv(&cases[5].conv, 8192, json);
            p.own = again < 2 ? own_kernel : NULL;
            LsDnnRuns *r = opened(&watch, NULL);
            fill(&d, &p.conv, 13);
            int before = owns, timed = again == 0;
            run_once(r, &p, &d, "timed");
            run_once(r, &p, &d, "timed");
            ck_assert_int_eq(owns - before, (k == 0 && again < 2 ? 2 : 0) + timed);
            ck_assert_int_eq(ls_dnn_tally(r).timed, 1);
            ls_dnn_runs_close(r);
        }
    }
    LsCudaConv p = program_conv(&cases[5].conv, 8192, json);
    p.own = own_kernel;
    LsDnnRuns *r = opened(NULL, NULL);          /* no clock was asked for */
    int before = owns;
    run_once(r, &p, &d, "not timed");
    ck_assert_int_eq(owns, before);
    ck_assert_int_eq(ls_dnn_tally(r).kept, 1);
    ls_dnn_runs_close(r);
    free(json);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cudnn_run");
    const TTest *const test[] = {
        a_library_among_python_packages_is_found,
        a_plan_of_the_same_library_and_device_is_taken_as_it_is,
        a_plan_gets_the_description_of_the_device_that_is_there,
        on_another_library_or_device_plans_are_made_again_in_the_same_room,
        a_plan_larger_than_its_room_is_not_taken,
        where_nothing_fits_the_layer_is_named,
        a_stored_plan_that_does_not_run_is_made_again,
        the_clock_chooses_once_and_its_choice_is_kept,
        rules_keep_engines_out,
        engines_that_compile_are_asked_when_the_program_starts,
        where_none_serves_a_kernel_does_it_behind_the_planned_convolution,
        an_engine_behind_many_that_do_not_compile_is_found,
        a_library_without_an_engine_for_all_runs_the_convolution_alone,
        the_clock_compares_engines_that_compile_with_a_kernel_behind,
        the_clock_compares_the_library_with_a_kernel_of_the_program,
    };
    if (mkdtemp(folder) == NULL)
        return perror(folder), 1;
    setenv("LOWERSET_CUDNN", LS_FAKE_CUDNN, 1);
    tcase_add_loop_test(tc, graphs_compute_what_the_convolution_is, 0,
                        sizeof cases / sizeof *cases);
    add_tests(tc, sizeof test / sizeof *test, test);
    int code = run_tests("cudnn_run", tc);
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 ? 1 : code;
}
