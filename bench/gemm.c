/* bench/gemm.c -- generated matrix products beside OpenBLAS, with and without its core type set.
 *
 *     gemm [-b] [-t THREADS] [-c CORETYPE] [-r ROUNDS] [-f FLAGS] [SUBSTRING]
 *
 * prints GFLOP/s for the products whose line contains SUBSTRING: those of a step of the MLP and the
 * GPT of bench/cpu.sh, then a few larger ones. The second column is OpenBLAS with OPENBLAS_* unset,
 * which may not recognise a new CPU and then falls back on slow kernels; the third has
 * OPENBLAS_CORETYPE set to CORETYPE. -b: the generated products have operands and results of
 * bfloat16, B' and the results of A' are f32, like weights and their gradients.
 *
 * The three take short turns, so that other jobs disturb all alike, and the best turn of each
 * counts. With one thread (the default) the time is processor time. Both OpenBLAS run in processes
 * of their own, because the library reads the variables once. Without the library there is one
 * column. */
#include <stdio.h>
#include <stdlib.h>
#define H_ASSERT(ok, ...) ((ok) ? (void)0 : (void)(fprintf(stderr, __VA_ARGS__), exit(1)))
#include "tests/support/kernel_harness.h"

#include <signal.h>
#include <time.h>

typedef struct Case { int64_t batch, m, n, k; bool ta, tb; const char *what; } Case;
static const Case cases[] = {
    {1, 256, 2048, 784, 0, 1, "MLP layer 1"},
    {1, 2048, 784, 256, 1, 0, "MLP layer 1 dW"},
    {1, 256, 10, 2048, 0, 1, "MLP layer 2"},
    {1, 256, 2048, 10, 0, 0, "MLP layer 2 dX"},
    {1, 10, 2048, 256, 1, 0, "MLP layer 2 dW"},
    {1, 1024, 768, 256, 0, 0, "GPT query, key, value"},
    {1, 1024, 256, 768, 0, 1, "GPT query, key, value dX"},
    {1, 256, 768, 1024, 1, 0, "GPT query, key, value dW"},
    {1, 1024, 256, 256, 0, 0, "GPT projection"},
    {1, 1024, 256, 256, 0, 1, "GPT projection dX"},
    {1, 256, 256, 1024, 1, 0, "GPT projection dW"},
    {1, 1024, 1024, 256, 0, 0, "GPT feed-forward in"},
    {1, 1024, 256, 1024, 0, 1, "GPT feed-forward in dX"},
    {1, 256, 1024, 1024, 1, 0, "GPT feed-forward in dW"},
    {1, 1024, 256, 1024, 0, 0, "GPT feed-forward out"},
    {1, 1024, 1024, 256, 0, 1, "GPT feed-forward out dX"},
    {1, 1024, 256, 1024, 1, 0, "GPT feed-forward out dW"},
    {32, 256, 256, 32, 0, 1, "GPT scores"},
    {32, 256, 32, 256, 0, 0, "GPT scores dQ, mix"},
    {32, 256, 32, 256, 1, 0, "GPT scores dK, mix dV"},
    {32, 256, 256, 32, 0, 1, "GPT mix dP"},
    {1, 1024, 4096, 256, 0, 1, "GPT logits"},
    {1, 1024, 256, 4096, 0, 0, "GPT logits dX"},
    {1, 4096, 256, 1024, 1, 0, "GPT logits dW"},
    {1, 1024, 1024, 1024, 0, 0, "cube"},
    {1, 1000, 1000, 1000, 0, 0, "cube, no power of two"},
    {1, 512, 3072, 768, 0, 0, "wide"},
    {1, 32, 1000, 512, 0, 1, "classifier, batch 32"},
    {1, 1, 4096, 1024, 0, 1, "one row"},
};
enum { NCASES = sizeof cases / sizeof *cases };

static double now(bool wall)
{
    struct timespec t;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double case_flops(const Case *c) { return 2. * (double)(c->batch * c->m * c->n * c->k); }

static int case_repeat(const Case *c) { return (int)(2e8 / case_flops(c)) + 1; }

static float *random_array(int64_t n, uint64_t seed)
{
    float *to = h_array(n, 4);
    double *x = h_random(n, seed);
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)x[i];
    free(x);
    return to;
}

/* ---- OpenBLAS, in a process of its own ---- */

typedef void Sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                   int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* Answers each case number (an int) read from `in` with the seconds of one run (a double). */
static void serve(int in, int out, int threads, Sgemm *sgemm)
{
    enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112 };
    float *a = NULL, *b = NULL, *y = NULL;
    int i, last = -1;
    while (read(in, &i, sizeof i) == sizeof i) {
        const Case *c = &cases[i];
        int m = (int)c->m, n = (int)c->n, k = (int)c->k, repeat = case_repeat(c);
        if (i != last) {
            free(a), free(b), free(y);
            a = random_array(c->batch * m * k, 0);
            b = random_array(c->batch * n * k, 1);
            y = h_array(c->batch * m * n, 4);
            last = i;
        }
        double start = now(threads > 1);
        for (int r = 0; r < repeat; r++)
            for (int64_t q = 0; q < c->batch; q++)
                sgemm(ROW_MAJOR, c->ta ? TURNED : PLAIN, c->tb ? TURNED : PLAIN, m, n, k, 1,
                      a + q * m * k, c->ta ? m : k, b + q * n * k, c->tb ? k : n, 0,
                      y + q * m * n, n);
        double each = (now(threads > 1) - start) / repeat;
        if (write(out, &each, sizeof each) != sizeof each)
            return;
    }
}

typedef struct Peer { int to, from; } Peer;

/* coretype NULL: not set. The process ends when `to` is closed. */
static Peer peer_start(const char *coretype, int threads)
{
    int to[2], from[2];
    H_ASSERT(pipe(to) == 0 && pipe(from) == 0, "no pipe\n");
    pid_t pid = fork();
    H_ASSERT(pid >= 0, "no process\n");
    if (pid > 0) {
        close(to[0]), close(from[1]);
        return (Peer){to[1], from[0]};
    }
    close(to[1]), close(from[0]);
    char number[16];
    snprintf(number, sizeof number, "%d", threads);
    unsetenv("OPENBLAS_CORETYPE");
    if (coretype != NULL)
        setenv("OPENBLAS_CORETYPE", coretype, 1);
    setenv("OPENBLAS_NUM_THREADS", number, 1);
    void *so = dlopen("libopenblas.so.0", RTLD_NOW);
    Sgemm *sgemm = NULL;
    if (so != NULL)
        *(void **)&sgemm = dlsym(so, "cblas_sgemm");
    if (sgemm != NULL)
        serve(to[0], from[1], threads, sgemm);
    _exit(0);
}

/* Seconds, or infinity without the library. */
static double peer_time(const Peer *p, int i)
{
    double t;
    return write(p->to, &i, sizeof i) == sizeof i && read(p->from, &t, sizeof t) == sizeof t
        ? t : INFINITY;
}

/* ---- ours ---- */

static HNode *case_node(const Case *c, bool brain)
{
    int64_t m = c->m, n = c->n, k = c->k;
    LsShape a = {3, {c->batch, c->ta ? k : m, c->ta ? m : k}};
    LsShape b = {3, {c->batch, c->tb ? n : k, c->tb ? k : n}}, y = {3, {c->batch, m, n}};
    HNode *h = h_node(LS_OP_MATMUL, 2, (LsShape[]){a, b}, &y, LS_ROW,
                      &(LsAttr){.gemm = {.trans_a = c->ta, .trans_b = c->tb, .alpha = 1}});
    if (brain) {
        h->node[1].rounds = h->value[1].type = LS_BF16;
        h->value[2].type = c->tb ? LS_REAL : LS_BF16;
        h->value[3].type = c->ta ? LS_REAL : LS_BF16;
    }
    return h;
}

static double our_time(LsKernel kernel, LsRun *run, void *const arg[], int repeat, bool wall)
{
    double start = now(wall);
    for (int q = 0; q < repeat; q++)
        kernel(run, arg);
    return (now(wall) - start) / repeat;
}

static void measure(const HObject *o, int i, const HNode *h, LsRun *run, const Peer peer[2],
                    int rounds, bool wall)
{
    const Case *c = &cases[i];
    int64_t work = h_workspace(h, LS_K_MATMUL, 4);
    void *arg[] = {h_elements(h->value[1].type, c->batch * c->m * c->k, 0),
                   h_elements(h->value[2].type, c->batch * c->n * c->k, 1),
                   h_array(c->batch * c->m * c->n, 4), h_array(work / 4, 4)};
    double best[3] = {INFINITY, INFINITY, INFINITY};
    o->kernel[i](run, arg);
    for (int r = 0; r < rounds; r++) {
        best[0] = fmin(best[0], our_time(o->kernel[i], run, arg, case_repeat(c), wall));
        for (int p = 0; p < 2; p++)
            best[1 + p] = fmin(best[1 + p], peer_time(&peer[p], i));
    }
    for (int p = 0; p < 3; p++)
        printf(" %10.0f", case_flops(c) / best[p] * 1e-9);
    printf(" %6.2f\n", best[2] / best[0]);
    fflush(stdout);
    for (int k = 0; k < 4; k++)
        free(arg[k]);
}

int main(int argc, char **argv)
{
    int threads = 1, rounds = 20, option;
    bool brain = false;
    const char *coretype = "SkylakeX";
    const char *flags = "-O3 -march=native -fno-math-errno -fno-trapping-math";
    while ((option = getopt(argc, argv, "bt:c:r:f:")) != -1)
        if (option == 't')
            threads = atoi(optarg);
        else if (option == 'b')
            brain = true;
        else if (option == 'c')
            coretype = optarg;
        else if (option == 'r')
            rounds = atoi(optarg);
        else if (option == 'f')
            flags = optarg;
        else
            return 2;
    const char *only = optind < argc ? argv[optind] : "";
    signal(SIGPIPE, SIG_IGN);           /* of a peer without the library */
    const Peer peer[2] = {peer_start(NULL, threads), peer_start(coretype, threads)};
    HNode *node[NCASES];
    for (int i = 0; i < NCASES; i++)
        node[i] = case_node(&cases[i], brain);
    HObject o = h_build("cc", flags, 4, false, NCASES, node);
    LsRun run = {.pool = o.pool_create(threads)};
    printf("%-48s %10s %10s %10s %6s\n", "matrix product, GFLOP/s", "ours", "OpenBLAS", coretype,
           "ratio");
    for (int i = 0; i < NCASES; i++) {
        const Case *c = &cases[i];
        char line[120];
        snprintf(line, sizeof line, "%s: %d of %dx%dx%d%s%s", c->what, (int)c->batch, (int)c->m,
                 (int)c->n, (int)c->k, c->ta ? " A'" : "", c->tb ? " B'" : "");
        if (strstr(line, only) == NULL)
            continue;
        printf("%-48s", line);
        measure(&o, i, node[i], &run, peer, rounds, threads > 1);
    }
    return 0;
}
