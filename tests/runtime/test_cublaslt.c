/* tests/runtime/test_cublaslt.c -- products for GPUs, computed by a library in cuBLASLt's place
 * (fake_cublaslt.c) and compared with loops over row-major matrices; descriptors also by the real
 * library. */
#include "runtime/cuda/cublaslt.c"
#include "runtime/cuda/cublaslt_choice.c"
#include "runtime/cuda/cublaslt_library.c"
#include "runtime/cuda/cublaslt_product.c"
#include "runtime/cuda/library.c"

#include "tests/support/suite.h"

#include <dlfcn.h>
#include <math.h>
#include <unistd.h>

typedef struct FakeReport { int live, asked, checked, products; } FakeReport;

static FakeReport *report_of(void)
{
    void *so = dlopen(LS_FAKE_CUBLASLT, RTLD_NOW);
    ck_assert_ptr_nonnull(so);
    FakeReport *(*get)(void);
    *(void **)&get = dlsym(so, "fake_report");
    return get();
}

static LsCublas *open_fake(const char *cache, const LsStopwatch *tune)
{
    LsCublas *b = NULL;
    LsError e = {0};
    const LsCublasSetup setup = {LS_FAKE_CUBLASLT, "NVIDIA H200", cache, tune, NULL};
    ck_assert_msg(ls_cublas_open(&b, &setup, &e), "%s", e.text);
    return b;
}

enum { A, B, BIAS, C, AUX, SUM, WORK, PLUS, NARG };

#define PLAIN .arg_a = A, .arg_b = B, .arg_c = C, .arg_bias = -1, .arg_aux = -1, .arg_sum_a = -1,  \
              .arg_sum_b = -1, .arg_workspace = WORK, .alpha = 1

#pragma GCC diagnostic ignored "-Woverride-init"    /* PLAIN with the fields that follow */
static const LsCudaMatmul cases[] = {
    {PLAIN, .m = 1, .n = 1, .k = 1},
    {PLAIN, .m = 13, .n = 33, .k = 7, .arg_bias = BIAS},
    {PLAIN, .m = 27, .n = 31, .k = 30, .turn_b = true, .arg_bias = BIAS, .alpha = .5},
    {PLAIN, .m = 5, .n = 16, .k = 9, .turn_a = true, .alpha = -2, .workspace = 4096 + 255},
    {PLAIN, .m = 30, .n = 7, .k = 40, .turn_a = true, .turn_b = true, .arg_bias = BIAS},
    {PLAIN, .m = 1, .n = 60, .k = 70, .arg_bias = BIAS},
    {PLAIN, .m = 70, .n = 1, .k = 33, .arg_bias = BIAS},
    {PLAIN, .m = 70, .n = 1, .k = 33, .turn_a = true, .turn_b = true},
    {PLAIN, .m = 1, .n = 60, .k = 70, .turn_a = true},
    {PLAIN, .m = 13, .n = 5, .k = 3, .turn_a = true, .arg_bias = BIAS, .naxis = 1,
     .axis = {{3, 39, 15}}},
    {PLAIN, .m = 9, .n = 7, .k = 11, .naxis = 1, .axis = {{5, 0, 77}}},          /* one A for all */
    {PLAIN, .m = 9, .n = 7, .k = 11, .turn_a = true, .naxis = 1, .axis = {{5, 99, 0}}},
    {PLAIN, .m = 4, .n = 5, .k = 6, .turn_b = true, .naxis = 3,              /* both, crosswise */
     .axis = {{2, 72, 0}, {4, 0, 30}, {3, 24, 0}}},
    {PLAIN, .m = 4, .n = 5, .k = 6, .naxis = 2, .axis = {{2, 0, 90}, {3, 24, 30}},
     .arg_bias = BIAS},
    {PLAIN, .m = 16, .n = 16, .k = 16, .naxis = 2, .axis = {{2, 256, 0}, {3, 0, 256}}},
    {PLAIN, .m = 12, .n = 20, .k = 8, .arg_bias = BIAS, .after = LS_AFTER_RELU},
    {PLAIN, .m = 12, .n = 20, .k = 8, .arg_bias = BIAS, .after = LS_AFTER_RELU, .arg_aux = AUX},
    {PLAIN, .m = 12, .n = 20, .k = 8, .after = LS_AFTER_RELU, .arg_aux = AUX, .turn_b = true},
    {PLAIN, .m = 12, .n = 20, .k = 8, .arg_bias = BIAS, .after = LS_AFTER_GELU},
    {PLAIN, .m = 12, .n = 21, .k = 8, .arg_bias = BIAS, .after = LS_AFTER_GELU, .arg_aux = AUX},
    {PLAIN, .m = 12, .n = 21, .k = 8, .after = LS_AFTER_DGELU, .arg_aux = AUX, .turn_a = true},
    {PLAIN, .m = 12, .n = 130, .k = 8, .after = LS_AFTER_DRELU, .arg_aux = AUX},
    {PLAIN, .m = 6, .n = 10, .k = 8, .after = LS_AFTER_RELU, .arg_aux = AUX, .naxis = 2,
     .axis = {{2, 48, 80}, {3, 96, 160}}},
    {PLAIN, .m = 6, .n = 10, .k = 8, .after = LS_AFTER_DGELU, .arg_aux = AUX, .naxis = 2,
     .axis = {{2, 144, 240}, {3, 48, 80}}},
    {PLAIN, .m = 6, .n = 10, .k = 8, .after = LS_AFTER_RELU, .arg_aux = AUX, .naxis = 2,
     .axis = {{3, 96, 160}, {2, 48, 80}}},      /* the batch of the library is the outer axis */
    {PLAIN, .m = 6, .n = 10, .k = 8, .after = LS_AFTER_GELU, .arg_aux = AUX, .naxis = 2,
     .axis = {{3, 96, 160}, {2, 48, 80}}},
    {PLAIN, .m = 13, .n = 33, .k = 7, .arg_bias = BIAS, .plus = true, .arg_plus = PLUS},
    {PLAIN, .m = 27, .n = 31, .k = 30, .turn_b = true, .alpha = .5, .plus = true, .arg_plus = PLUS},
    {PLAIN, .m = 4, .n = 5, .k = 6, .turn_b = true, .naxis = 3, .plus = true, .arg_plus = PLUS,
     .axis = {{2, 72, 0}, {4, 0, 30}, {3, 24, 0}}},
    {PLAIN, .m = 11, .n = 10, .k = 25, .turn_a = true, .arg_sum_b = SUM},    /* x' dy */
    {PLAIN, .m = 11, .n = 10, .k = 25, .turn_a = true, .arg_sum_a = SUM},    /* dy' x */
    {PLAIN, .m = 11, .n = 10, .k = 25, .turn_b = true, .arg_sum_b = SUM},
};
enum { NCASES = sizeof cases / sizeof *cases, ALIGN = 256, APART = 64 };

/* ---- arrays of a case, real numbers of its type ---- */
typedef struct Bench {
    const LsCudaMatmul *p;
    int64_t matrices, size[NARG];       /* elements; of WORK: bytes */
    void *arg[NARG];
} Bench;

static double at(const Bench *t, int which, int64_t i)
{
    return t->p->type == LS_PRODUCT_F64 ? ((double *)t->arg[which])[i]
                                        : ((float *)t->arg[which])[i];
}

static void set_at(const Bench *t, int which, int64_t i, double v)
{
    if (t->p->type == LS_PRODUCT_F64)
        ((double *)t->arg[which])[i] = v;
    else
        ((float *)t->arg[which])[i] = (float)v;
}

static bool bits(const LsCudaMatmul *p)
{
    return p->after == LS_AFTER_RELU || p->after == LS_AFTER_DRELU;
}

static Bench bench_new(const LsCudaMatmul *p)
{
    Bench t = {.p = p, .matrices = 1};
    int64_t a = p->m * p->k, b = p->k * p->n, word = ls_blas_bytes(p);
    for (int k = 0; k < p->naxis; k++) {
        t.matrices *= p->axis[k].count;
        a += (p->axis[k].count - 1) * p->axis[k].a;
        b += (p->axis[k].count - 1) * p->axis[k].b;
    }
    int64_t aux = t.matrices * p->m * ls_product_aux_ld(p->after, p->n);
    const int64_t size[NARG] = {a, b, p->n, t.matrices * p->m * p->n,
                                bits(p) ? aux / 8 / word : aux,
                                p->arg_sum_a >= 0 ? p->m : p->n, p->workspace / word,
                                t.matrices * p->m * p->n};
    uint64_t r = 12345;
    for (int k = 0; k < NARG; k++) {
        t.size[k] = size[k];
        t.arg[k] = aligned_alloc(ALIGN, (size_t)(size[k] * word / ALIGN + 2) * ALIGN);
        ck_assert_ptr_nonnull(t.arg[k]);
        t.arg[k] = (char *)t.arg[k] + APART;    /* aligned exactly as the arena */
        for (int64_t i = 0; i < size[k]; i++) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            set_at(&t, k, i, (double)(r >> 53) / 1024 - 1);
        }
    }
    return t;
}

static void bench_free(Bench *t)
{
    for (int k = 0; k < NARG; k++)
        free((char *)t->arg[k] - APART);
}

/* Element (i, j) of matrix `matrix`, before the epilogue. */
static double product_at(const Bench *t, int64_t matrix, int64_t i, int64_t j)
{
    const LsCudaMatmul *p = t->p;
    int64_t a0 = 0, b0 = 0;
    double s = 0;
    for (int k = p->naxis - 1; k >= 0; matrix /= p->axis[k--].count) {
        a0 += matrix % p->axis[k].count * p->axis[k].a;
        b0 += matrix % p->axis[k].count * p->axis[k].b;
    }
    for (int64_t k = 0; k < p->k; k++)
        s += at(t, A, a0 + (p->turn_a ? k * p->m + i : i * p->k + k))
           * at(t, B, b0 + (p->turn_b ? j * p->k + k : k * p->n + j));
    return p->alpha * s + (p->arg_bias >= 0 ? at(t, BIAS, j) : 0);
}

static double gelu_of(double x)
{
    return .5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + .044715 * x * x * x)));
}

static bool bit_at(const Bench *t, int64_t row, int64_t j)
{
    int64_t at = row * ls_product_aux_ld(t->p->after, t->p->n) + j;
    return ((unsigned char *)t->arg[AUX])[at / 8] >> at % 8 & 1;
}

static void check_element(const Bench *t, int64_t matrix, int64_t i, int64_t j, double tolerance)
{
    const LsCudaMatmul *p = t->p;
    int64_t row = matrix * p->m + i, aux = row * ls_product_aux_ld(p->after, p->n) + j;
    double before = product_at(t, matrix, i, j), h = 1e-6;
    before += p->plus ? at(t, PLUS, row * p->n + j) : 0;
    double want = before;
    if (p->after == LS_AFTER_RELU)
        want = before > 0 ? before : 0;
    if (p->after == LS_AFTER_GELU)
        want = gelu_of(before);
    if (p->after == LS_AFTER_DRELU)
        want = bit_at(t, row, j) ? before : 0;
    if (p->after == LS_AFTER_DGELU)
        want = before * (gelu_of(at(t, AUX, aux) + h) - gelu_of(at(t, AUX, aux) - h)) / (2 * h);
    ck_assert_double_eq_tol(at(t, C, row * p->n + j), want, tolerance);
    if (p->arg_aux >= 0 && p->after == LS_AFTER_GELU)
        ck_assert_double_eq_tol(at(t, AUX, aux), before, tolerance);
    if (p->arg_aux >= 0 && p->after == LS_AFTER_RELU && fabs(before) > tolerance)
        ck_assert_int_eq(bit_at(t, row, j), before > 0);
}

static void check_sums(const Bench *t, double tolerance)
{
    const LsCudaMatmul *p = t->p;
    for (int64_t i = 0; p->arg_sum_a >= 0 && i < p->m; i++) {
        double s = 0;
        for (int64_t k = 0; k < p->k; k++)
            s += at(t, A, p->turn_a ? k * p->m + i : i * p->k + k);
        ck_assert_double_eq_tol(at(t, SUM, i), s, tolerance);
    }
    for (int64_t j = 0; p->arg_sum_b >= 0 && j < p->n; j++) {
        double s = 0;
        for (int64_t k = 0; k < p->k; k++)
            s += at(t, B, p->turn_b ? j * p->k + k : k * p->n + j);
        ck_assert_double_eq_tol(at(t, SUM, j), s, tolerance);
    }
}

static void run_case(LsCublas *b, const Bench *t)
{
    LsError e = {0};
    ck_assert_msg(ls_cublas_multiply(b, NULL, t->p, t->arg, "fc1", NULL, &e), "%s", e.text);
}

static void check_all(LsProductType type, double tolerance)
{
    LsCublas *b = open_fake(NULL, NULL);
    LsCudaMatmul p[NCASES];
    for (int k = 0; k < NCASES; k++) {
        p[k] = cases[k];
        p[k].type = type;
        Bench t = bench_new(&p[k]);
        run_case(b, &t);
        for (int64_t i = 0; i < t.size[C]; i++)
            check_element(&t, i / p[k].n / p[k].m, i / p[k].n % p[k].m, i % p[k].n, tolerance);
        check_sums(&t, tolerance);
        bench_free(&t);
    }
    ls_cublas_close(b);
}

START_TEST(row_major_products_come_out_whatever_is_turned_batched_or_done_after)
{
    check_all(LS_PRODUCT_F32, 2e-5);
    check_all(LS_PRODUCT_F64, 1e-9);
}
END_TEST

START_TEST(tf32_rounds_factors_and_nothing_else)
{
    LsCublas *b = open_fake(NULL, NULL);
    LsCudaMatmul exact = {PLAIN, .m = 3, .n = 4, .k = 5}, rounded = exact;
    rounded.type = LS_PRODUCT_TF32;
    Bench t = bench_new(&exact), u = bench_new(&rounded);
    for (int64_t i = 0; i < t.size[A]; i++) {
        set_at(&t, A, i, 1 + 1. / (4096 << (i % 2)));   /* 12 and 13 bits of fraction */
        set_at(&u, A, i, 1 + 1. / (4096 << (i % 2)));
    }
    run_case(b, &t);
    run_case(b, &u);
    check_element(&t, 0, 2, 3, 1e-6);
    ck_assert_double_gt(fabs(at(&u, C, 11) - product_at(&u, 0, 2, 3)), 1e-6);
    ck_assert_double_eq_tol(at(&u, C, 11), product_at(&u, 0, 2, 3), 1e-2);
    bench_free(&t);
    bench_free(&u);
    ls_cublas_close(b);
}
END_TEST

/* ---- choices ---- */
START_TEST(an_algorithm_is_asked_for_once_and_everything_is_given_back)
{
    FakeReport *r = report_of();
    LsCublas *b = open_fake(NULL, NULL);
    Bench t = bench_new(&cases[12]);        /* two calls of a batch of 4, three times over */
    run_case(b, &t);
    int asked = r->asked, live = r->live, products = r->products;
    ck_assert_int_eq(products, 6);
    run_case(b, &t);
    ck_assert_int_eq(r->asked, asked);
    ck_assert_int_eq(r->live, live);        /* a step makes no descriptor */
    ck_assert_int_eq(r->products, 2 * products);
    ls_cublas_close(b);
    ck_assert_int_eq(r->live, 0);
    bench_free(&t);
}
END_TEST

START_TEST(algorithms_that_add_up_in_place_are_not_taken)
{
    LsCublas *b = open_fake(NULL, NULL);
    Bench t = bench_new(&cases[3]);
    run_case(b, &t);
    ck_assert_uint_eq(b->product[0].algo.data[1], 1);   /* the first is one of those */
    ck_assert_uint_eq(b->product[0].algo.data[2], 4096);
    ls_cublas_close(b);
    bench_free(&t);
}
END_TEST

/* The clock reports the second tried candidate as faster. */
static double fake_clock(void *self, bool (*run)(void *job), void *job)
{
    int *calls = self;
    return run(job) ? 10 - ++*calls : -1;
}

START_TEST(choices_are_kept_for_device_and_version_and_checked_when_they_come_back)
{
    char folder[] = "/tmp/ls_cublaslt_XXXXXX", cache[64], path[128], command[128];
    FakeReport *r = report_of();
    int calls = 0;
    const LsStopwatch clock = {fake_clock, &calls};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/lowerset", folder);
    Bench t = bench_new(&cases[3]);
    for (int round = 0; round < 4; round++) {
        /* heuristic; recalled; timed, because a clock beats a heuristic; recalled without a
         * clock */
        static const uint64_t algo[] = {1, 1, 2, 2};
        static const int asks[] = {1, 0, 1, 0};
        LsCublas *b = open_fake(cache, round == 2 ? &clock : NULL);
        int asked = r->asked;
        run_case(b, &t);
        ck_assert_int_eq(r->asked - asked, asks[round]);
        ck_assert_uint_eq(b->product[0].algo.data[1], algo[round]);
        ls_cublas_close(b);
    }
    ck_assert_int_eq(calls, 2);
    snprintf(command, sizeof command, "test $(ls %s | wc -l) = 1", cache);
    ck_assert_int_eq(system(command), 0);   /* no half-written file lies beside it */
    snprintf(path, sizeof path, "%s/libcublasLt-fake.so-13.1.0-NVIDIA-H200.txt", cache);
    FILE *f = fopen(path, "r+");
    ck_assert_msg(f != NULL, "%s", path);
    char line[500];
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    char *word = strchr(line, '\t');
    ck_assert_msg(strncmp(line, "f32 5x16x9 TN after 1 in 4096\t15fa4e 2 0 ", 40) == 0, "%s", line);
    fseek(f, word - line + 1, SEEK_SET);
    fputs("0", f);                          /* the algorithm no longer exists */
    fputs("\nrubbish\nf32 1x1x1 NN\t1 2\n", f);
    fclose(f);
    LsCublas *b = open_fake(cache, NULL);
    int asked = r->asked;
    run_case(b, &t);
    ck_assert_int_eq(r->asked - asked, 1);
    ls_cublas_close(b);
    bench_free(&t);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(the_choice_does_not_depend_on_where_bias_and_matrices_lie)
{
    LsCublas *b = open_fake(NULL, NULL);
    LsCudaMatmul p = {PLAIN, .m = 8, .n = 8, .k = 8, .naxis = 1, .axis = {{3, 68, 64}}};
    Bench t = bench_new(&p);
    run_case(b, &t);
    ck_assert_uint_eq(b->product[0].algo.data[3], 64);      /* b: the library's A */
    ck_assert_uint_eq(b->product[0].algo.data[4], 16);      /* 68 floats apart */
    ck_assert_uint_eq(b->product[0].algo.data[6], 64);
    ls_cublas_close(b);
    bench_free(&t);
}
END_TEST

/* ---- refusals of the library ---- */
static int behinds;

static void count_behind(LsRun *run, void *const arg[])
{
    (void)run, (void)arg;
    behinds++;
}

/* The library refuses epilogue 6 of one product, when asked for an algorithm or at its first
 * run. */
START_TEST(an_epilogue_that_the_library_lacks_is_left_to_the_kernel_behind_that_product_alone)
{
    static const char *const how[] = {"FAKE_CUBLASLT_WITHOUT", "FAKE_CUBLASLT_STOPS"};
    static const char *const says[] = {"has no algorithm for a product f32 12x20x8 NN (epilogue 6) "
                                       "within 0 bytes: not supported",
                                       "a product f32 12x20x8 NN (epilogue 6): not supported"};
    for (int k = 0; k < 2; k++) {
        char said[1000] = "";
        FILE *notes = fmemopen(said, sizeof said, "w");
        LsCublas *b = open_fake(NULL, NULL);
        LsCudaMatmul relu = {PLAIN, .m = 12, .n = 20, .k = 8, .arg_bias = BIAS,
                             .after = LS_AFTER_RELU, .behind = count_behind}, gelu = relu;
        gelu.after = LS_AFTER_GELU;
        b->notes = notes;
        behinds = 0;
        Bench t = bench_new(&relu), u = bench_new(&gelu);
        setenv(how[k], "6", 1);
        for (int round = 0; round < 2; round++) {
            run_case(b, &t);
            run_case(b, &u);
        }
        unsetenv(how[k]);
        ck_assert_int_eq(behinds, 2);           /* of the first product, each time */
        check_element(&u, 0, 3, 4, 2e-5);
        relu.after = LS_AFTER_NONE;             /* this test has no kernel that does the rest */
        relu.arg_bias = -1;
        check_element(&t, 0, 3, 4, 2e-5);
        ls_cublas_close(b);
        fclose(notes);
        ck_assert_msg(strncmp(said, "note: node 'fc1': ", 18) == 0 && strstr(said, says[k]) != NULL
                      && strchr(said, '\n') == said + strlen(said) - 1, "%s", said);
        ck_assert_int_eq(report_of()->live, 0);
        bench_free(&t);
        bench_free(&u);
    }
}
END_TEST

START_TEST(without_such_a_kernel_or_an_algorithm_for_the_product_alone_it_is_an_error)
{
    LsCublas *b = open_fake(NULL, NULL);
    LsCudaMatmul relu = {PLAIN, .m = 12, .n = 20, .k = 8, .after = LS_AFTER_RELU};
    LsCudaMatmul plain = relu;
    Bench t = bench_new(&relu), u = bench_new(&plain);
    LsError e = {0};
    plain.behind = count_behind;
    behinds = 0;
    setenv("FAKE_CUBLASLT_WITHOUT", "1,2", 1);
    ck_assert(!ls_cublas_multiply(b, NULL, &relu, t.arg, NULL, NULL, &e));
    ck_assert_msg(strstr(e.text, "(epilogue 2)") != NULL, "%s", e.text);
    e = (LsError){0};
    ck_assert(!ls_cublas_multiply(b, NULL, &plain, u.arg, NULL, NULL, &e));
    ck_assert_msg(strstr(e.text, "(epilogue 1)") != NULL, "%s", e.text);
    ck_assert_int_eq(e.code, LS_EXIT_DEVICE);
    ck_assert_int_eq(behinds, 0);
    unsetenv("FAKE_CUBLASLT_WITHOUT");
    ls_cublas_close(b);
    bench_free(&t);
    bench_free(&u);
}
END_TEST

/* ---- errors ---- */
static void fails(const char *library, const char *says)
{
    LsCublas *b = NULL;
    LsError e = {0};
    ck_assert(!ls_cublas_open(&b, &(LsCublasSetup){.library = library, .device = "x"}, &e));
    ck_assert_int_eq(e.code, LS_EXIT_DEVICE);
    ck_assert_msg(strstr(e.text, says) != NULL, "%s", e.text);
}

START_TEST(a_missing_or_wrong_library_is_a_sentence_with_file_and_version)
{
    fails("/nowhere/libcublasLt.so.13", "/nowhere/libcublasLt.so.13");
    fails("libz.so.1", "libz.so.1 has no function cublasLtCreate");
    setenv("FAKE_CUBLASLT_VERSION", "111103", 1);
    fails(LS_FAKE_CUBLASLT, "is cuBLASLt 11.11.3: 12 or newer is needed");
    unsetenv("FAKE_CUBLASLT_VERSION");
    setenv("FAKE_CUBLASLT_NO_DEVICE", "1", 1);
    fails(LS_FAKE_CUBLASLT, "libcublasLt-fake.so 13.1.0 does not start");
    unsetenv("FAKE_CUBLASLT_NO_DEVICE");
}
END_TEST

START_TEST(a_library_that_the_loader_does_not_find_is_found_in_the_toolkit)
{
    char folder[] = "/tmp/ls_cublaslt_XXXXXX", path[128], command[128];
    void *there = dlopen("libcublasLt.so.13", RTLD_LAZY | RTLD_LOCAL);
    LsCublas *b = NULL;
    LsError e = {0};
    if (there != NULL) {
        printf("skipped: the loader finds a libcublasLt.so.13\n");
        dlclose(there);
        return;
    }
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/lib64", folder);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/lib64/libcublasLt.so.13", folder);
    ck_assert_int_eq(symlink(LS_FAKE_CUBLASLT, path), 0);
    setenv("CUDA_HOME", folder, 1);
    setenv("FAKE_CUBLASLT_VERSION", "120300", 1);
    ck_assert_msg(ls_cublas_open(&b, &(LsCublasSetup){.device = "x"}, &e), "%s", e.text);
    ck_assert_str_eq(ls_cublas_name(b), "libcublasLt.so.13 12.3.0");
    ls_cublas_close(b);
    unsetenv("FAKE_CUBLASLT_VERSION");
    unsetenv("CUDA_HOME");
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(the_real_library_accepts_every_description)
{
    LsCublas b = {0};
    LsError e = {0};
    if (!ls_cublas_library_open(&b.lib, getenv("LS_CUBLASLT"), &e)
        && !ls_cublas_library_open(&b.lib, LS_CUBLASLT, &e)) {
        printf("skipped: %s\n", e.text);
        return;
    }
    for (int k = 0; k < 3 * NCASES; k++) {
        LsCudaMatmul p = cases[k % NCASES];
        p.type = (LsProductType)(k / NCASES);
        LsBlasProduct q = {.p = &p};
        cublasLtMatmulPreference_t pref = NULL;
        e = (LsError){0};
        ck_assert_msg(ls_blas_product_make(&b.lib, &q, &e) && make_preference(&b, &q, &pref, &e),
                      "%d: %s", k, e.text);
        b.lib.MatmulPreferenceDestroy(pref);
        ls_blas_product_free(&b.lib, &q);
    }
    ls_cublas_library_close(&b.lib);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cublaslt");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, row_major_products_come_out_whatever_is_turned_batched_or_done_after);
    tcase_add_test(tc, tf32_rounds_factors_and_nothing_else);
    tcase_add_test(tc, an_algorithm_is_asked_for_once_and_everything_is_given_back);
    tcase_add_test(tc, algorithms_that_add_up_in_place_are_not_taken);
    tcase_add_test(tc, choices_are_kept_for_device_and_version_and_checked_when_they_come_back);
    tcase_add_test(tc, the_choice_does_not_depend_on_where_bias_and_matrices_lie);
    tcase_add_test(
        tc, an_epilogue_that_the_library_lacks_is_left_to_the_kernel_behind_that_product_alone);
    tcase_add_test(
        tc, without_such_a_kernel_or_an_algorithm_for_the_product_alone_it_is_an_error);
    tcase_add_test(tc, a_missing_or_wrong_library_is_a_sentence_with_file_and_version);
    tcase_add_test(tc, a_library_that_the_loader_does_not_find_is_found_in_the_toolkit);
    tcase_add_test(tc, the_real_library_accepts_every_description);
    return run_tests("cublaslt", tc);
}
